"""Gather the frames of two stacks as one window, and show it twice

A row of a `FrameRing` has the numbers of its frames, which lie in a pool. Its two stacks of four frames share three, so a draw gathers five frames, and shows them twice. `ReadsFrames` is the half of a `FrameRing` that reads; the other half writes.

Docs: https://fastrl.github.io/fastrl/memory.windows.html.md"""
from typing import Any, overload
from torch import Tensor
from ..core import *
from .ring import Ring
from .row import *
from .stacks import *
__all__ = ['ReadsFrames', 'two_stacks', 'with_stacks']

class ReadsFrames(Ring):
    """A ring whose rows have the numbers of frames, which are in its `pool`"""
    stack: Any
    shown: Any
    pool: Ring

    @property
    def number_paths(self):
        """The two columns with numbers of frames; where an observation has several parts, those of the first, as of all"""
        ...

    def find_numbers(self):
        """Which columns have the numbers of frames, and where in a row they begin"""
        ...

    def pixels(self, slots, lacks, apart=True):
        """The frames in `slots`, zeros for -1: a tensor for each part of a frame; if not `apart`, one to be cloned lazily"""
        ...

    def draw(self, sampler, bs: int, device: Any=None, read: Any=None, n_batches: int | None=None):
        """The batch that `sampler` chooses, with its stacks
    - `sampler`: As `Ring.draw` takes them
    - returns: (BD, row numbers), or `Batches` of them"""
        ...

    def gather(self, idxs: Tensor, device: Any=None) -> BD:
        """Rows by number, with their stacks
    - `idxs`: Row numbers, known to be stored
    - `device`: Where the batch should be"""
        ...

def two_stacks(frames: Tensor, rows, stack: int):
    """Two stacks that can be written to without changing each other
    - `frames`: `(rows*k, …)`: of each row the two stacks one behind the other, or overlapping
    - `rows`: Shape of the batch
    - `stack`: Frames in each; 0: one, without an axis
    - returns: state, next state"""
    ...

def with_stacks(pair, fields, stack: int, batch, idxs) -> BD:
    """A batch with stacks in the place of the numbers of their frames
    - `pair`: Of columns, from `observed_pair`
    - `fields`: Of a frame
    - `stack`: Frames in a stack; 0: it is none
    - `batch`: Its columns `#0`, `#1`…, the frames of each field, are taken out
    - `idxs`: Whose shape the batch has
    - returns: `batch`"""
    ...
