"""Consecutive chunks of episodes, with the state carried from one batch to the next

A robot's episode never ends, and no batch is long enough for it. A `Stream` gives it chunk by chunk: row `b` of each batch continues where row `b` of the batch before ended, so that a recurrent network keeps its state from one to the next. Where that is not possible, because the episode ended, its rows were overwritten, or the next one is not there yet, the row begins elsewhere, and `continues` says so. A learner that is faster than its robot therefore loses the state often: a [`RateLimiter`](05qa_memory.limit.ipynb) makes it wait.

Docs: https://fastrl.github.io/fastrl/memory.stream.html.md"""
from typing import Any, overload
from ..core import *
__all__ = ['Stream', 'DrawsChunks']

class Stream:
    """Batches of consecutive chunks, without end"""
    memory: Any
    bs: Any
    T: Any
    device: Any
    gen: Any
    last: Any

    def __init__(self, memory, bs: int, T: int, seed: int | None=None, device: Any=None):
        """- `memory`: The `ExperienceReplay` whose rows are given
        - `bs`: Sequences side by side
        - `T`: Steps in a chunk
        - `seed`: Makes the places reproducible where sequences begin
        - `device`: Where batches should be"""
        ...

    def __iter__(self):
        ...

    def __next__(self):
        """- returns: a batch `(bs, T, …)`, row numbers `(bs, T)`, -1 where there is none"""
        ...

    def draw(self, ring, bs):
        """The next rows of each sequence, and the columns that say where they are in their episode"""
        ...

    def draw_starts(self, ring, bs, walk):
        """The rows with which the chunks begin, and the column `continues`"""
        ...

    def state_dict(self) -> dict:
        """Where each sequence is, and the position in the stream of random numbers"""
        ...

    def load_state_dict(self, state: dict):
        """Resume where another stream of the same rows was
    - `state`: From `state_dict`"""
        ...

class DrawsChunks:
    """A memory that gives long sequences chunk by chunk"""

    def stream(self, bs: int | None=None, T: int=1, seed: int | None=None, device: Any=None) -> Stream:
        """Long sequences, chunk by chunk
        - `bs`: Sequences side by side; `self.bs` by default
        - `T`: Steps in a chunk
        - `seed`: Makes the places reproducible where sequences begin
        - `device`: Where batches should be
        - returns: An iterator of pairs, a batch `(bs, T, …)` and row numbers `(bs, T)`"""
        ...
