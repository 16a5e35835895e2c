"""An endless stream of experience, made by callbacks

Experience does not lie in a folder: an agent makes it, step by step, and there is always more. A `Source` is that stream. One callback of its loop makes the steps, the others read or change them, and you take as many rows as a batch needs.

Docs: https://fastrl.github.io/fastrl/data.block.html.md"""
from typing import Any, overload
from fastai.basics import DataLoaders
from fastcore.foundation import L
from ..core import *
__all__ = ['loop_events', 'LoopCallback', 'Source']

class LoopCallback:
    """A part of the loop of a `Source`, which it finds as `self.source`"""
    source: Any

    def __repr__(self):
        ...

class Source:
    """An endless stream of rows, made by the callbacks of its loop"""
    block: Any
    device: Any
    taken: int
    cbs: L

    def __init__(self, cbs: Any=None):
        """- `cbs`: `LoopCallback`s, or their classes, in the order in which they act"""
        ...

    @property
    def agent(self):
        """What chooses the actions, if a callback knows"""
        ...

    def has(self, event):
        ...

    def __call__(self, event):
        ...

    def __repr__(self):
        ...

    def take(self, n: int) -> BD:
        """The next `n` rows
    - `n`: How many rows"""
        ...

    def peek(self, n: int) -> BD:
        """The next `n` rows, which `take` returns again
    - `n`: How many rows"""
        ...

    def show_loop(self):
        """Print the events of the loop, and the callbacks that act at each"""
        ...

    def close(self):
        """Close what the callbacks opened; the next `take` opens it anew"""
        ...

    def __getstate__(self):
        """A copy is closed: environments stay with the source that opened them"""
        ...

    def __setstate__(self, state):
        ...

    def __copy__(self):
        """Copies of its callbacks come with it; one that holds another holds the original's"""
        ...

    def new_empty(self) -> Source:
        """An empty source with the same agent, which `Learner.export` stores in place of the environments"""
        ...

    def __iter__(self):
        """One row at a time, without end; rows of the same `window` come together"""
        ...

    def to_play(self, n: int, seed: int | None=None, film: bool=False):
        """A source that plays without exploring, in environments of its own
    - `n`: Episodes side by side
    - `seed`: The same episodes each time
    - `film`: With a column `image`, where the environment can draw itself
    - returns: `Source`, or `None` if no callback can play, or one cannot"""
        ...

    def dataloaders(self, n: int=1000, bs: int=16, episodes: int=5, seed: int | None=None, device: Any=None, path: Any='.') -> DataLoaders:
        """`DataLoaders` for a `Learner`: the first takes rows, the second plays
    - `n`: Rows per epoch
    - `bs`: Rows per batch
    - `episodes`: To validate with, played without exploring; 0 for none
    - `seed`: Of these episodes: the same ones each time
    - `device`: Of the batches, and of a `Learner`'s model: fastai's `default_device()` if not given
    - `path`: Where a `Learner` keeps its files"""
        ...
loop_events: Any
