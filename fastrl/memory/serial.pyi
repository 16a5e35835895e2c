"""Which rows are stored, which number each one has, and where one does not follow another

A full ring reuses its slots, so a slot alone says little: a TD error that arrives late may hit another row, and a batch that is read while somebody writes may mix two. `Serials` numbers the rows in the order they are written. Two counts then say which rows are stored, where each one lies, and which ones a writer is replacing right now. Beside the counts it notes where a row does not follow the one before it.

Docs: https://fastrl.github.io/fastrl/memory.serial.html.md"""
from typing import Any, overload
import threading
from typing import NamedTuple
import numpy as np
from torch import Tensor
from ..core import *
from .place import *
from .turn import *
__all__ = ['Serials', 'telling', 'oldest_now', 'Overwritten', 'Seams']

class Serials:
    """Which rows a `Place` holds, by serial number: how many rows were written before each"""
    tells: Any
    copied: Any
    place: Place
    capacity: int | None
    reopened: Any
    lock: Any
    turn: Any

    def __init__(self, place: Place, capacity: int | None=None):
        """- `place`: Where the rows live; its head keeps the counts
        - `capacity`: The most rows it holds; without it the place grows"""
        ...

    def free(self):
        """Start with a lock that nobody holds"""
        ...

    @property
    def base(self) -> int:
        """The number of the row in slot 0, or of the one that will be there"""
        ...

    @property
    def written(self) -> int:
        """How many rows are written by now"""
        ...

    @property
    def total(self) -> int:
        """How many rows were ever written; in a block of `still`, as of the first look"""
        ...

    def look(self):
        """Read `total` anew, also where it stands still"""
        ...

    def __len__(self):
        ...

    def slots_of(self, serials):
        """The slots where rows of these numbers lie while they are stored: from slot 0 on, and round again
    - `serials`: Serial numbers: one, or an array or tensor of them
    - returns: the same with slots"""
        ...

    def next_slot(self) -> int:
        """Where the next row goes; rows that another writer left half written are given up"""
        ...

    def begin(self, n: int):
        """`n` rows are about to be written: whoever reads now knows which slots to leave out
    - `n`: How many"""
        ...

    def end(self, n: int):
        """`n` rows were written
    - `n`: How many"""
        ...

    def of(self, idxs: Tensor) -> Tensor:
        """The serial numbers of `idxs`
    - `idxs`: Row numbers `(k,)`, unchecked
    - returns: `(k,1)`"""
        ...

    @property
    def pointer(self) -> int:
        """Where the newest row ends"""
        ...

    def counts(self):
        """How many rows are stored, how many slots there are, the row in slot 0, and how many rows were written"""
        ...

    def check(self, idxs: Tensor):
        """The serial numbers of `idxs`, of which -1 names no row and gets -1
    - `idxs`: Row numbers `(k,)`
    - returns: serial numbers `(k,1)`, and the least index: below -1 if one names no row"""
        ...

    def pick(self, at, k: int, rows: Any=None):
        """Rows drawn evenly, with their serial numbers
    - `at`: Of the random numbers, the stream and the place of the first one
    - `k`: How many rows
    - `rows`: Packed rows, an array, to be copied, too
    - returns: row numbers `(k,)`, serial numbers `(k,1)`, and the packed rows, one behind the other"""
        ...

    def check_rows(self, idxs: Tensor, rows):
        """`check`, and a copy of the rows
    - `idxs`: Row numbers `(k,)`
    - `rows`: Packed rows, an array
    - returns: as `check`, and the packed rows, one behind the other, if all of them exist"""
        ...

    @property
    def oldest(self) -> int:
        """The oldest row that no writer has begun to write over"""
        ...

    @property
    def torn(self) -> np.ndarray:
        """The slots of stored rows that a writer has begun to write over"""
        ...

    def forget(self, before: int):
        """Let the rows below `before` count as overwritten
    - `before`: A serial number, at most `total`"""
        ...

    @property
    def forgotten(self) -> int:
        """Rows below this one count as overwritten, though they may still lie in their slots"""
        ...

    def sound(self) -> bool:
        """Are all rows whole? If some stay half written, a warning says how many, once"""
        ...

    def write(self, n: int, copy, *args):
        """Write `n` rows by `copy(*args)`, which is called again if it was interrupted
    - `n`: How many
    - `copy`: Copies them when it is called
    - `*args`: For `copy`"""
        ...

    def hold(self, idxs, serials: Any=None) -> Tensor:
        """Are these rows still the ones that had these serial numbers?
    - `idxs`: Row numbers, of any shape; -1 names none
    - `serials`: As many, from `of` or a batch; without them: is anything stored there?
    - returns: bool, in the shape of `idxs`"""
        ...

    @property
    def live(self):
        """For `oldest_now`: the head, if other processes may write"""
        ...

    def write_held(self, col, idxs, values, serials) -> int:
        """Write `values` to those rows of `col` that are still the ones that had these `serials`
    - `col`: An array, one of the place's columns
    - `idxs`: Row numbers, an array
    - `values`: One for each, in an array
    - `serials`: Likewise
    - returns: How many rows were gone; -1 if an index names none, and nothing is written"""
        ...

    def still(self):
        """Lets the lock go at the end of a block; as long as the outermost one lives, `total` stands still for this thread
    - returns: the `__exit__` of a `with`"""
        ...

    def lost(self, idxs: Tensor) -> bool:
        """Has another process overwritten some of these rows since `total` was looked at?
    - `idxs`: Of any shape"""
        ...

    def touched(self, idxs: Tensor, total: int) -> bool:
        """Has a writer begun to write over some of these slots meanwhile?
    - `idxs`: `(k,)`
    - `total`: How many rows were written when you began to read"""
        ...

    @property
    def seams(self) -> Seams:
        """What the rows themselves do not say about what follows what"""
        ...

    @property
    def barrier(self) -> int:
        """The row that follows nothing before it, nor does any later one"""
        ...

    @seams.setter
    def seams(self, s):
        """Set the marks; `first` and `oldest` follow from the rows"""
        ...

    def cut(self, on: bool=True, gap: bool=False):
        """Mark that what is written next follows nothing that is stored
    - `on`: `False` takes back a mark that no row was written after: the environments resume where they were
    - `gap`: Are rows missing here, so that nobody knows whether an episode began with them?"""
        ...

    def opened(self):
        """The place was a file, and is open: look at its counts"""
        ...

    def reset(self, first: int | None=None, stop: int | None=None):
        """Forget all rows; the columns stay as they are
    - `first`: The serial number of the next row, if you load rows that had numbers; a new one by default
    - `stop`: The number after the last row, if the rows from `first` on lie in their slots already"""
        ...

    def writer(self):
        """A compiled function that writes and counts one row, if the row fits as it is"""
        ...

def number_at(i, n, cursor, total):
    """The serial number of the row in slot `i` of `n`; slots from the `cursor` on are one round behind"""
    ...

def number_each(idxs, stored, n, base, total):
    """Serial numbers, -1 for the row -1; and the least index, below -1 if one names no row"""
    ...

def pick_evenly(key, first, k, stored, n, base, total):
    """Rows drawn evenly, with their serial numbers
    - `key`, `first`: Of the random numbers, the stream and the place of the first one
    - `k`: How many rows
    - `stored`, `n`, `base`, `total`: From `Serials.counts`
    - returns: row numbers `(k,)`, serial numbers `(k,1)`"""
    ...

def numbered_rows(rows, idxs, stored, n, base, total):
    """Serial numbers, the least index, and the rows if all exist"""
    ...

def telling(ring):
    """A forked process hears that its copy of `ring` is one
    - `ring`: With `serials`
    - returns: the same"""
    ...

def oldest_now(live, n):
    ...

class _Block(threading.local):
    """What a thread holds still"""
    total: Any
    end: Any

class Overwritten(IndexError):
    """Another process has overwritten rows that are needed: draw anew"""

class Seams(NamedTuple):
    """What the rows themselves do not say about what follows what; all are serial numbers"""
    first: int
    oldest: int
    cuts: list
    gaps: list
    lone: int
    several: int
    forgotten: int = 0

    def slots_of(self, serials, capacity):
        """The slots where rows of these numbers lie while they are stored
        - `serials`: Serial numbers: one, or an array or tensor of them
        - `capacity`: Of the ring; `None` if it grows
        - returns: the same with slots"""
        ...
