"""Where rows live: in memory, in shared memory, in a file, or on a device

The same rows may live in memory today, in shared memory tomorrow, where other processes see them, in a file when there are too many for memory, or on a GPU. A `Place` makes room for them there, opens a file that was left, and shows each field as a tensor. A `Ring`, or a table, decides which row goes where.

Docs: https://fastrl.github.io/fastrl/memory.place.html.md"""
from typing import Any, overload
from torch import Tensor
from ..core import *
from .row import *
from .writer import *
__all__ = ['head_words', 'ring_mark', 'Place', 'machine_memory', 'nbytes_when_full', 'frames_when_full', 'frame_shape', 'stacked_fields', 'column_rows', 'give_name', 'row_writer']
head_words: int

class Place:
    """Rows of words in memory, in shared memory, in a file, or on a device"""
    head: Any
    read_only: bool
    loops: bool
    pair: Any
    about: Any
    told: Any
    device: Any
    shared: Any
    path: Any
    fields: Any
    packed: Any
    changed: Any
    key: Any
    marks: Any
    pid: Any

    def __init__(self, device: Any='cpu', shared: bool=False, path: Any=None):
        """- `device`: Where the rows live
        - `shared`: In shared memory, where other processes see the same rows?
        - `path`: A file to live in"""
        ...

    @property
    def others(self) -> bool:
        """May other processes write here?"""
        ...

    @property
    def by_loops(self) -> bool:
        """Do compiled loops do the work here? On a device torch does"""
        ...

    def __len__(self):
        ...

    def __repr__(self):
        ...

    def check_room(self, nbytes: int):
        """Warn if there is less memory than that
    - `nbytes`: Of all rows"""
        ...

    def words(self, n: int):
        """`n` words, all 0, where this place is
    - `n`: How many
    - returns: tensor of int64"""
        ...

    def make(self, fields, n: int) -> Place:
        """Make room for `n` rows, all 0
    - `fields`: Of each row
    - `n`: How many rows"""
        ...

    def lay(self, fields, columns) -> Place:
        """Show `columns` as the rows of this place
    - `fields`: Of each row
    - `columns`: One tensor for each, wherever they lie"""
        ...

    def take(self, idxs):
        """A copy of the rows `idxs`, unchecked
    - `idxs`: `(n,)`, int64
    - returns: packed rows, or a list of columns where there are none"""
        ...

    def take_padded(self, idxs):
        """`take`, with zeros where there is no row
    - `idxs`: As `take`; below 0 for none
    - returns: as `take`"""
        ...

    def grow(self, need: int):
        """Make room for `need` rows, with the first ones as they are
    - `need`: Rows"""
        ...

    def write(self, field: Field, idxs: Tensor, values: Tensor):
        """Write `values` into the rows `idxs` of one column, unchecked
    - `field`: The column
    - `idxs`: `(n,)`
    - `values`: One for each"""
        ...

    def copy_in(self, cols, at: int, n: int):
        """Write rows to the slots from `at` on; behind the last slot comes the first
    - `cols`: One for each field, in their order
    - `at`: The slot of the first row
    - `n`: How many rows, at most one per slot"""
        ...

    def copy_column(self, path, t: Tensor, at: int):
        """Write one column of rows to the slots from `at` on
    - `path`: Of the field
    - `t`: Rows of this column alone
    - `at`: The slot of the first row; there are slots for all behind it"""
        ...

    def apart(self, cols) -> list:
        """`cols`, with copies of those that are views of these rows
    - `cols`: Tensors"""
        ...

    def tell(self):
        """Read from the device what its rows say about their episodes; whoever writes into the columns themselves calls it"""
        ...

    def mark_changed(self, name: str, idxs):
        """Note that these rows have changed, if anybody wants to know
    - `name`: The column, or whatever else is kept of each row
    - `idxs`: Row numbers"""
        ...

    def marks_of(self, name: str):
        """Where a device notes what has changed
    - `name`: As `mark_changed` takes it
    - returns: on a device, for each row if it has changed; `None` if nobody wants to know"""
        ...

    def changes(self) -> dict:
        """By column, which rows have changed; this waits for a device"""
        ...

    def create(self, fields: Fields, n: int) -> Place:
        """Make the file, if nobody was quicker, and open it
    - `fields`: Of each row
    - `n`: How many rows"""
        ...

    def open(self, fields: Any=None, n: int | None=None) -> Place:
        """Open the file of a place
    - `fields`: The fields it should have; others are an error
    - `n`: Rows it should have"""
        ...

    def check_process(self):
        """Raise in a `DataLoader`'s worker that has a copy"""
        ...

    def check_writable(self):
        """Raise where rows can only be read, or are the copy that a `DataLoader`'s worker has"""
        ...

    def __getstate__(self):
        ...

    def __setstate__(self, state):
        ...

def machine_memory() -> int:
    """Bytes of memory that this machine has, or this container may use"""
    ...

def nbytes_when_full(capacity: int, schema: dict, frame_stack: int | None=None, frame_margin=0.05) -> int:
    """Bytes that the rows of a `Ring` take
    - `capacity`: Rows
    - `schema`: `{name: (shape, dtype)}`, nested as a step is
    - `frame_stack`: With each frame stored once: how many are in an observation; 0: it is no stack
    - `frame_margin`: Room for more frames than rows, as `frames_when_full` takes it"""
    ...

def frames_when_full(capacity: int, stack: int, margin=0.05) -> int:
    """How many frames are kept for the rows
    - `capacity`: Rows
    - `stack`: Frames in a state
    - `margin`: Room for more frames: a share of `capacity` and the stacks of 16 environments; an int is a number"""
    ...

def frame_shape(path, shape, stack: int, pair):
    """What one frame looks like: `(4,84,84)` and `(84,84)` are both of frames `(84,84)`, if `stack` is 4
    - `path`: Of a field
    - `shape`: Of it in one step: a stack of frames, or one frame
    - `stack`: Frames in a state; 0: it is no stack
    - `pair`: From `observed_pair`
    - returns: the shape of one frame; `None` for a field of anything else"""
    ...

def stacked_fields(fields, stack: int):
    """Take the frames out of the fields of a step
    - `fields`: Of a step
    - `stack`: Frames in a state; 0: it is no stack
    - returns: the fields of a row, in which frames have numbers; and those of a frame"""
    ...

def column_rows(col, idxs):
    """A copy of the rows `idxs` of one column"""
    ...

def prefetch_row(rows, i):
    """Let a row that will be needed soon come from memory
    - `rows`: Packed
    - `i`: Its number, a `uint64`"""
    ...

def rows_at(rows, idxs):
    """A copy of some rows
    - `rows`: Packed
    - `idxs`: Row numbers, unchecked
    - returns: the rows, one behind the other"""
    ...
ring_mark: Any

def give_name(new, path):
    """Name a new file, never over another one: in one step, or in two on a disk without hard links"""
    ...
