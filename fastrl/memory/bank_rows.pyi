"""Keep experiences in a ring, with a form and a text for each, and let no interrupt tear them apart

An `ExperienceBank` knows who collected which row, and what its file is called. It leaves the rows to `BankRows`. They lie in a `Ring`, whose columns never change. So if a number needs a wider column, the rows move to a new ring; a value that fits no column is kept as text beside its row. Ctrl-C may come at any line: a row is there with everything that belongs to it, or it is not there.

Docs: https://fastrl.github.io/fastrl/memory.bank_rows.html.md"""
from typing import Any, overload
import numpy as np
from ..core import *
from .bank_frames import *
from .forms import *
from .ring import Ring
__all__ = ['bank_words', 'per_row', 'BankRows', 'BankLock', 'number_names', 'number_episodes', 'saved_layout', 'join_saved']
bank_words: Any
per_row: Any

class BankRows:
    """Rows in a ring, with a form and a text for each"""
    max_size: int | None
    ring: Ring
    before: int
    texts: Any
    first_text: int
    frame_stack: int | None
    stores: Any
    forms: Any
    mixed: bool

    def __init__(self, max_size: int | None=None, frame_stack: int | None=None):
        """- `max_size`: The most rows; without it they grow
        - `frame_stack`: As `stacked` takes it"""
        ...

    def __len__(self):
        ...

    @property
    def total(self):
        """How many rows were ever written"""
        ...

    @property
    def fields(self):
        """The fields of the experiences; empty before the first one"""
        ...

    @property
    def all_fields(self):
        """Those of the ring; where it has numbers of frames, that of the stacks"""
        ...

    @property
    def columns(self):
        """Their columns by path: views of the ring, and of all frames as if each were a stack"""
        ...

    def fit(self, cols: dict, forms: list, texts: list) -> tuple:
        """Bring rows into a form that fits the ring, and make the ring ready for them
    - `cols`: Columns by path, as `columns_of` gives them
    - `forms`: That `cols['form',]` numbers
    - `texts`: One per row
    - returns: The same three"""
        ...

    def widen(self, cols: dict):
        """Make the ring ready for columns like these
    - `cols`: Columns that fit, by path"""
        ...

    def slots(self, idxs) -> np.ndarray:
        """The slots of rows in the ring
    - `idxs`: Of rows, the oldest is 0"""
        ...

    def columns_at(self, idxs: Any=None, whole: bool=True) -> dict:
        """The columns of rows, copied
    - `idxs`: All rows by default
    - `whole`: Stacks as tensors? Otherwise they are `Stacks`, whose frames are where they were
    - returns: By path"""
        ...

    def texts_at(self, idxs) -> list:
        """The texts of rows
    - `idxs`: A sequence of numbers"""
        ...

    def parts_at(self, idxs, whole: bool=True) -> tuple:
        """Copies of all that rows consist of
    - `idxs`: A sequence of numbers
    - `whole`: As `columns_at` takes it; the frames of `Stacks` are copies here
    - returns: Columns by path, forms, texts: what `experiences_of` takes"""
        ...

    def experiences_at(self, idxs) -> list:
        """Rows as the experiences that they were
    - `idxs`: A sequence of numbers"""
        ...

    def text_in(self) -> list:
        """The fields that are kept as text in some rows"""
        ...

    def draw(self, rng: np.random.Generator, n: int, replace: bool) -> np.ndarray:
        """Draw numbers of rows
    - `n`: How many
    - `replace`: May one be drawn twice?"""
        ...

    def batch_at(self, idxs) -> BD:
        """Rows as tensors; Python's floats are `float32`, as PyTorch makes them
    - `idxs`: Of rows without text"""
        ...

    @property
    def n_frames(self) -> int:
        """How many frames the rows have"""
        ...

    def extend(self, cols: dict, forms: list, texts: list):
        """Write rows; the ring is ready for them
    - `cols`: From `fit`, with `source` and `episode`
    - `forms`: That `cols['form',]` numbers
    - `texts`: One per row"""
        ...

    def add(self, text: str, **row):
        """Write one row, of a form that came before
    - `text`: From `row_text`
    - `**row`: Of a form that is in `forms`, with `form`, `source` and `episode`"""
        ...

    def whole(self, owner, f, *args):
        """Call `f`; whatever stops it before it has written its rows, rows and owner are as they were
    - `owner`: Its attributes are what is noted
    - `f`: Writes rows, after it has noted what will be true of them
    - `*args`: Of `f`
    - returns: the result of `f`"""
        ...

    def count_from(self, total: int):
        """Number the rows as they were numbered where they come from
    - `total`: Rows that were ever written, those that are here included"""
        ...

    def state(self) -> dict:
        """A copy of the rows and of all that belongs to them"""
        ...

    @classmethod
    def of_state(cls, state: dict) -> BankRows:
        """Rows that were copied
    - `state`: From `state`"""
        ...

    def unused(self, names: list, own: int | None=None) -> list:
        """The names that no row has any more, so that years of merging into a bank of some rows leave no list behind
    - `names`: Of the sources of all rows that ever came
    - `own`: The number of one to keep
    - returns: Their numbers, once there are many more names than rows"""
        ...

    def episodes(self, idxs: Any=None) -> np.ndarray:
        """The number of each row's episode
    - `idxs`: All rows by default"""
        ...

    def number_on(self, ours, theirs, new, episodes, open: int, free: int) -> tuple:
        """Number the episodes of new rows, of which some go on from rows that are here
    - `ours`: Who wrote each row that is here, from `row_spans`
    - `theirs`: Who wrote the rows of another bank
    - `new`: Which of these are new
    - `episodes`: Of all of these, as that bank numbers them
    - `open`: The number of the episode that our own next row belongs to
    - `free`: The first number that no episode has here
    - returns: The episode of each new row; then the open one, and the first free number"""
        ...

class BankLock:
    """Lets one thread at a time write a bank"""

    def __init__(self):
        ...

    def __reduce__(self):
        ...

    def beside(self, other) -> list:
        """Both locks, in the order in which to take them
        - `other`: Another `BankLock`, or the same"""
        ...

def number_names(names: list, numbers, others: list, free: Any=()) -> tuple:
    """Number the sessions of another bank's rows; names without a row don't come along
    - `names`: Those of this bank
    - `numbers`: Of the rows of another one, in `others`
    - `others`: The names of that bank
    - `free`: Numbers of names that are no longer needed
    - returns: The rows' numbers here, and the names, with those that are new"""
    ...

def number_episodes(over, open: int, free: int) -> tuple:
    """Number the episodes of new rows
    - `over`: Where an episode is over, an array of bools
    - `open`: The number of the episode that the first row belongs to
    - `free`: The first number that no episode has
    - returns: The episode of each row; then the open one, and the first free number"""
    ...

def saved_layout(cols, forms):
    """What saved banks must have in common to be joined"""
    ...

def join_saved(parts: list) -> tuple:
    """Saved banks, one after another, as one
    - `parts`: Saved banks of one layout: each its columns by path, forms, texts, and what its file says
    - returns: The same four"""
    ...
