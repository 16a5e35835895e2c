"""A batch whose columns have the store's names and shapes, and dtypes that lose nothing, is copied with few questions

A store takes lists, NumPy arrays and tensors of many dtypes, nested or flat, and looks at each column before it writes one. A loop that adds to a memory sends the same kind of batch each time, and for 64 rows the looking takes longer than the copying. `add_alike` is the short way: it only compares, converts what fits without loss, and where a comparison fails, the general way looks closely.

Docs: https://fastrl.github.io/fastrl/memory.alike.html.md"""
from typing import Any, overload
__all__ = ['alike_arrays', 'add_arrays', 'add_alike']

def alike_arrays(ring, batch: dict, replay: bool=False):
    """The columns of `batch`, if they can be copied as they are
    - `ring`: A `Ring`
    - `batch`: Columns that share their first axis
    - `replay`: Of a replay memory: numbers may come as `(n,)`, and a `td_error` may be missing?
    - returns: how many rows, and an array for each field of the store; `None` if one needs a closer look"""
    ...

def add_arrays(ring, n, arrays) -> bool:
    """Add rows column by column
    - `ring`: A `Ring`, whose lock you hold
    - `n`, `arrays`: As `alike_arrays` gives them
    - returns: Were they added? They are not if there are too few slots before the end"""
    ...

def add_alike(ring, batch: dict, replay: bool=False) -> bool:
    """Add the rows of `batch` if they can be copied as they are
    - `ring`: A `Ring`
    - `batch`: As `alike_arrays` takes them
    - returns: Were they added? If not, nothing has changed"""
    ...
