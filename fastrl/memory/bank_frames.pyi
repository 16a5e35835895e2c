"""Store each frame of a bank once, whoever brings it, and give it up when no row has it any more

A state of four frames shares three with the next one, so an experience brings one frame, and a bank that stores states whole keeps each frame eight times. A `FrameStore` keeps it once and gives it a number; the bank's rows hold numbers. It recognises a frame by what is in it. So it need not know which experience follows which: they may come from many environments, in any order, from a file or from another bank.

Docs: https://fastrl.github.io/fastrl/memory.bank_frames.html.md"""
from typing import Any, overload
import numpy as np, torch
from torch import Tensor
from ..core import *
from .forms import *
__all__ = ['FrameStore', 'Stacks', 'stacked', 'whole_columns', 'frames_of', 'apart', 'stores_for', 'put_columns', 'put_row']

class FrameStore:
    """Frames by number, each of them once; number 0 is black"""
    shape: Any
    dtype: torch.dtype
    raw: Any
    free: Any
    known: Any

    def __init__(self, shape: tuple, dtype: torch.dtype, raw: np.ndarray | None=None):
        """- `shape`: Of a frame
        - `dtype`: Of its numbers
        - `raw`: Frames that are there, as rows of bytes, a black one first"""
        ...

    def __len__(self):
        ...

    def __getstate__(self):
        ...

    def __setstate__(self, state):
        ...

    @property
    def frames(self) -> Tensor:
        """All places, those included that are free"""
        ...

    def put(self, frames: np.ndarray, used: Any=lambda: []) -> np.ndarray:
        """Store those frames that are not there yet
        - `frames`: As rows of bytes
        - `used`: Gives arrays of the numbers to keep
        - returns: Their numbers"""
        ...

class Stacks:
    """A column of stacks, or with one number per row of single frames, like a tensor `(n, frames, …)`"""

    @property
    def ndim(self):
        ...
    store: FrameStore
    numbers: np.ndarray

    def __init__(self, store: FrameStore, numbers: np.ndarray):
        """- `numbers`: Of each row's frames"""
        ...

    @property
    def dtype(self) -> torch.dtype:
        ...

    @property
    def shape(self) -> torch.Size:
        ...

    def __len__(self):
        ...

    def __getitem__(self, i):
        ...

    def whole(self) -> Tensor:
        """The column as a tensor"""
        ...

def stacked(fields, stack: int) -> dict:
    """The shape of a frame in each column that has frames
    - `fields`: Of experiences
    - `stack`: Frames in a state; 0: it is one observation; `None`: nothing is stored once
    - returns: By path"""
    ...

def whole_columns(cols: dict) -> dict:
    """All of them as tensors
    - `cols`: Columns by path, some of them perhaps `Stacks`"""
    ...

def frames_of(col) -> Tensor:
    """Its numbers, those of each frame once
    - `col`: A column"""
    ...

def apart(cols: dict) -> dict:
    """The same columns, with copies of just the frames that they need
    - `cols`: Columns by path, some of them perhaps `Stacks`"""
    ...

def stores_for(fields, stack: int, have: dict) -> dict:
    """A store for each column of frames; those that fit stay
    - `fields`: Of experiences
    - `stack`: As `stacked` takes it
    - `have`: The stores so far, by path
    - returns: By path"""
    ...

def put_columns(cols: dict, stores: dict, used: Any=lambda store: []) -> dict:
    """Store the frames of some rows
    - `cols`: Columns by path
    - `stores`: By path, from `stores_for`
    - `used`: Gives arrays of the numbers to keep in a store
    - returns: The same, with numbers in the place of frames"""
    ...

def put_row(row: dict, stores: dict, stack: int, used: Any=lambda store: []) -> dict:
    """Store the frames of one row
    - `row`: Tensors by path
    - `stores`: As `put_columns` takes them
    - `stack`: As `stacked` takes it
    - returns: The same, with numbers in the place of frames"""
    ...
