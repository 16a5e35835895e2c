"""Gather the frames of two stacks as one window, and show it twice

A row of a `FrameRing` has the numbers of its frames, which lie in a pool. Its two stacks of four frames share three, so a draw gathers five frames, and shows them twice. `ReadsFrames` is the half of a `FrameRing` that reads; the other half writes.

Docs: https://fastrl.github.io/fastrl/memory.windows.html.md"""
from typing import Any, overload
from torch import Tensor
from ..core import *
from .ring import Ring
from .row import *
from .stacks import *
__all__ = ['ReadsFrames']

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
