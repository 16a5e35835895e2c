"""Draw the next batches in a thread while the network learns from this one

While a network learns, its memory waits; while the memory gathers the next batch, the network waits. `memory.loader()` draws batches ahead in a thread, copies them to a GPU if you have one, and hands them out in order. For a given seed you get the batches that `sample` would give, TD errors find their rows as ever, and a checkpoint knows which batches nobody has seen yet. A batch that waits was drawn before your latest rows and TD errors, and how many wait is a matter of time: if you add rows or update priorities meanwhile, two runs differ. For a run that repeats to the last bit, use `sample`. Rows on a GPU are drawn when you ask: such a draw waits in the GPU's queue, not in Python, and a thread would gain nothing.

Docs: https://fastrl.github.io/fastrl/memory.ahead.html.md"""
from typing import Any, overload
from ..core import *
__all__ = ['DrawsAhead', 'Prefetch']

class DrawsAhead:
    """A memory whose batches can be drawn ahead"""
    refused = ValueError

    def loader(self, bs: int | None=None, n_prefetch: int=2, device: Any=None):
        """Batches and their row numbers, drawn ahead without end; it replaces an open loader of the same memory
        - `bs`: Rows in each batch; `self.bs` by default
        - `n_prefetch`: The most batches that wait
        - `device`: Where the batches should be; where the rows are by default
        - returns: a `Prefetch`"""
        ...

    def refuse_draw(self, e: Exception, base: int):
        """Raise what a draw raised, unless another process has cleared the memory meanwhile and given it new rows
        - `e`: From the ring
        - `base`: `ring.serials.base` from before the memory was found warm"""
        ...

    def sampler_state(self) -> dict:
        """The sampler's state as if the batches that wait had never been drawn"""
        ...

    def forget_ahead(self):
        """Give back the batches that wait, and draw no more until somebody asks: the rows go"""
        ...

    def __getstate__(self):
        ...

class Prefetch:
    """An iterator of batches that a thread draws ahead"""
    flight: Flight

    def __init__(self, memory, bs: Any=None, n=2, device: Any=None):
        ...

    def __iter__(self):
        ...

    def __next__(self):
        ...

    def __enter__(self):
        ...

    def __exit__(self):
        ...

    def __reduce__(self):
        ...

    def __repr__(self):
        ...

    def close(self):
        """Stop drawing ahead; batches that still wait are as if they had never been drawn"""
        ...

def flight_of(memory):
    """The batches of a memory that are drawn ahead, or `None`"""
    ...

class Flight:
    """Batches on their way: the thread that draws them and the loader share it"""
    memory: Any
    bs: Any
    n: Any
    device: Any
    pending: Any
    open: bool
    error: Any
    begun: Any
    after: Any
    replaced: bool
    wanted: bool
    when_asked: Any
    beside: Any
    moved: Any
    thread: Any

    def __init__(self, memory, bs, n, device):
        ...

    def land(self):
        """Start with a lock that nobody holds, and without a thread"""
        ...

    def next(self):
        ...

    def wait(self) -> bool:
        """Is there room for a batch? Waits until there is, or until nobody wants any more"""
        ...

    def draw(self):
        """Draw the next batch, and note what the sampler was before"""
        ...

    def end(self, wait=False, replaced=False):
        """Draw no more, and give back what waits"""
        ...

    def give_back(self):
        """Take the sampler back to before the batches that wait"""
        ...
