"""Copy rows from one ring to another, and keep which row follows which

A slice of a memory, or the rows of another one, lie side by side in their new ring, whatever lay between them. An n-step return that trusted this would span rows that are years apart. `join_rows` compares both rings, and marks a gap wherever two rows that meet are no neighbours.

Docs: https://fastrl.github.io/fastrl/memory.joins.html.md"""
from typing import Any, overload
from contextlib import contextmanager
from ..core import *
from .ring import Ring
from .serial import Seams
__all__ = ['join_rows', 'holding', 'copy_joined', 'breaks_in', 'oldest_first', 'copy_held']

def join_rows(ring: Ring, source: Ring, idxs, first: int, before: Seams):
    """Join the copies in `ring` as the originals are joined in `source`
    - `ring`: Has the copies, from serial number `first` on
    - `source`: Has the originals
    - `idxs`: Their row numbers, in the order of the copies
    - `first`: The serial number of the first copy
    - `before`: `ring.seams` from before they were written"""
    ...

class _If:
    """A ring as it would be with other values of these attributes"""

    def __init__(self, ring, **attrs):
        ...

    def __len__(self):
        ...

@contextmanager
def holding(a: Ring, b: Ring):
    """Hold both rings, in an order in which no two threads wait for each other
    - `b`: Another one, or the same"""
    ...

def copy_joined(ring: Ring, source: Ring, idxs, write, go_on=False):
    """Write copies of rows, and join them as they were
    - `ring`: Gets the copies
    - `source`: Has the originals
    - `idxs`: Their row numbers
    - `write`: `write()` adds the copies to `ring`, or the first of them
    - `go_on`: May rows that are added later follow them?"""
    ...

def breaks_in(source: Ring, idxs):
    """Where copies follow nothing before them: after a cut, or where rows between them are left out
    - `source`: Has the originals
    - `idxs`: Their row numbers, in the order of the copies
    - returns: array of positions in `idxs`"""
    ...

def oldest_first(ring: Ring):
    """The rows that are stored, without any that are half written
    - returns: row numbers, a tensor"""
    ...

def copy_held(ring: Ring, name, copy):
    """A copy of rows, without those that another process has overwritten meanwhile
    - `ring`: Another process may write to it
    - `name`: `name()` gives numbers of rows that are stored, or raises
    - `copy`: `copy(idxs)` copies these rows; a mask leaves rows out of the result"""
    ...
