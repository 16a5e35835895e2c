"""Give each column of a batch the form it has in a replay memory

A reward of shape `(n,)` minus a value of shape `(n,1)` is an `(n,n)` matrix, and the loss made of it looks fine. So a replay memory stores one number per row as a column of shape `(n,1)`, in whatever form it comes. `as_rows` gives a batch this form, with a `td_error`; `row_schema` does the same to a schema.

Docs: https://fastrl.github.io/fastrl/memory.columns.html.md"""
from typing import Any, overload
from ..core import *
__all__ = ['other_words', 'other_places', 'draw_words', 'sequence_words', 'other_names', 'given_once', 'as_column', 'as_flags', 'as_rows', 'later_columns', 'with_later', 'check_put', 'names_column', 'row_schema', 'schema_data', 'kept_schema', 'ring_of', 'check_sampler', 'seeded_sampler', 'one_row', 'as_meant', 'warn_of_rest', 'what_came', 'refuse_positions', 'OtherNames', 'Columns']

def as_column(v):
    """One number per row as a column
    - `v`: `(n,)` numbers: a tensor, an array, a list, or anything that NumPy reads
    - returns: `(n,1)`; anything else as it came"""
    ...

def as_flags(v):
    """The whole numbers 0 and 1 as `False` and `True`
    - `v`: A column: a tensor, an array, a list, or a column of a table
    - returns: bools, if these are whole numbers, each 0 or 1; else as it came"""
    ...

def as_rows(batch: dict, fields: Any=None) -> dict:
    """The columns of `batch` in the form of a replay memory, with a `td_error`
    - `batch`: Columns that share their first axis
    - `fields`: The ring's, if it has rows"""
    ...

def later_columns(schema):
    """The columns that `put` will write
    - `schema`: `{name: (shape, dtype)}`, or `(shape, dtype, 'later')` for a column that rows need not have
    - returns: the schema without these marks, and a row of zeros for each marked column, by name"""
    ...

def with_later(rows: dict, zeros: dict) -> dict:
    """`rows` with zeros for the columns that they lack
    - `rows`: Columns `(n, …)`
    - `zeros`: From `later_columns`"""
    ...

def check_put(name: str):
    """Raise if a change of this column in some rows would change others
    - `name`: The column that is to be overwritten"""
    ...

def names_column(v) -> bool:
    """Is it a word, and no number in quotes?
    - `v`: A setting"""
    ...

def row_schema(schema: dict) -> dict:
    """`schema` with a column of shape `(1,)` where one number is stored, and a `td_error`
    - `schema`: `{name: (shape, dtype)}`, nested as a step is"""
    ...

def schema_data(schema: dict) -> list:
    """`schema` as data for JSON
    - `schema`: `{name: (shape, dtype)}`, nested as a step is; with columns for later
    - returns: Per field its path, shape and dtype, and perhaps the mark `'later'`"""
    ...

def kept_schema(schema, place, later: Any=()):
    """The schema that you gave, or else the one that was given when these rows were new
    - `schema`: Of a memory; `None` if you gave none
    - `place`: Where its rows are
    - `later`: Names of columns for later that a folder from before names
    - returns: the schema, a row of zeros for each column for later, by name"""
    ...

def ring_of(max_sz: int, schema, device, shared, path, frames: Any=(None, 'repeat', 0.05)):
    """The ring of a memory
    - `max_sz`: The most rows it holds
    - `schema`: Of the memory; `None` lets the first row decide
    - `device`, `shared`, `path`: Where the rows live, as `Ring` takes it
    - `frames`: `frame_stack`, `frame_pad` and `frame_margin`
    - returns: `Ring` or `FrameRing`"""
    ...

def check_sampler(name: str, s):
    """Raise unless `s` can choose rows
    - `name`: Of the setting
    - `s`: A sampler
    - returns: the sampler"""
    ...

def seeded_sampler(sampler, seed, device):
    """The sampler of a memory that was made with this `seed`
    - `sampler`: `None` makes a `Uniform`
    - `seed`: Of its draws, unless it has one; `None` for none
    - `device`: Of the rows
    - returns: a sampler"""
    ...

def one_row(row: dict, first: bool=False) -> dict:
    """One step as a batch of one row
    - `row`: The fields of a step
    - `first`: Does it decide what the columns hold?"""
    ...

def as_meant(name: str, v):
    """An int as the column `name` usually has it: an int where ints are meant, 0 or 1 as a bool for flags; rewards float
    - `name`: Of the field
    - `v`: Its value in the first step"""
    ...

def warn_of_rest(rows: dict, room: int):
    """Warn if not all rows stay
    - `rows`: From `as_rows`
    - `room`: Rows that a memory has room for"""
    ...

def what_came(v) -> str:
    """What came where a memory takes a batch, for an error
    - `v`: In the place of a batch
    - returns: It, and what to write instead"""
    ...

def refuse_positions(*args):
    """A `TypeError` that says how to write it
    - `*args`: What came without a name"""
    ...
other_words: Any
other_places: Any
draw_words: Any
sequence_words: Any
other_names: Any
given_once: Any

class OtherNames:
    """Settings and methods by the names of other libraries: the error says what to write"""

    def __dir__(self):
        ...

    def __setitem__(self, k, v):
        ...

    def __getitems__(self, idxs):
        ...

class Columns(BD):
    """The columns of a memory, which know whose they are as long as nothing was taken from them"""
    of: Any

    def __missing__(self, k):
        ...

    def __reduce__(self):
        ...
