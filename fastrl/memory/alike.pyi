"""A batch whose columns have the store's names, dtypes and shapes is copied as it is

A store takes lists, NumPy arrays and tensors of many dtypes, nested or flat, and looks at each column before it writes one. A loop that adds to a memory sends the same kind of batch each time, and for 64 rows the looking takes longer than the copying. `add_alike` is the short way: it only compares, and where a comparison fails, the general way looks closely.

Docs: https://fastrl.github.io/fastrl/memory.alike.html.md"""
from typing import Any, overload
from torch import Tensor
from .row import *
__all__ = ['as_array', 'alike_items', 'add_items', 'add_alike']

def as_array(t: Tensor, field: Field):
    """A tensor of a column's dtype as an array
    - `field`: The store's
    - returns: an array, without a copy; `None` if `t` needs a closer look"""
    ...

def alike_items(ring, batch: dict, replay=False):
    """The columns of `batch` with one item per row, if they can be copied as they are
    - `ring`: A `Ring`
    - `batch`: Columns that share their first axis
    - `replay`: Of a replay memory: numbers may come as `(n,)`, and a `td_error` may be missing?
    - returns: for each column of the store itself and what goes there, and how many rows; `None` if one needs a closer look"""
    ...

def add_items(ring, pairs, n) -> bool:
    """Add rows column by column
    - `ring`: A `Ring`, whose lock you hold
    - `n`: As `alike_items` gives them
    - returns: Were they added? They are not if there are too few slots before the end"""
    ...

def add_alike(ring, batch: dict, replay=False) -> bool:
    """Add the rows of `batch` if they can be copied as they are
    - `ring`: A `Ring`
    - `batch`: As `alike_items` takes them
    - returns: Were they added? If not, nothing has changed"""
    ...
