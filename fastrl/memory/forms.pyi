"""Turn experiences of any kind into columns of numbers, and back into what they were

Steps come as Python numbers, NumPy arrays, tensors, lists, or dicts and tuples of them. A memory wants columns of numbers, and you want back what you put in. So every experience is split in two: its numbers become columns, and a *form* remembers what they were. `None`, strings and arrays of another shape, which no column of numbers holds, become a text beside their row. `columns_of` takes experiences apart, `experiences_of` puts them together again.

Docs: https://fastrl.github.io/fastrl/memory.forms.html.md"""
from typing import Any, overload
from dataclasses import dataclass
from typing import Any
import torch
from torch import Tensor
from ..core import *
__all__ = ['experience_fields', 'Experience', 'create_experience', 'form_of', 'has_numbers', 'values_of', 'experience_form', 'text_fields', 'kinds_of', 'to_text', 'from_text', 'row_text', 'of_row', 'wider', 'as_wide', 'fit_fields', 'has_large', 'columns_of', 'columns_of_values', 'ends', 'columns_of_batch', 'experiences_of', 'field_columns', 'wider_fields']

@dataclass
class Experience:
    """One step of an environment"""
    state: Any
    action: Any
    reward: float
    next_state: Any
    done: bool
    info: dict | None = None

def create_experience(state, action, reward, next_state, done, info: Any=None) -> Experience:
    """An `Experience`; its `info` is empty if you give none"""
    ...

def form_of(v):
    """What `v` is, apart from its numbers
    - `v`: Anything
    - returns: a string, or a tuple of forms"""
    ...

def has_numbers(form) -> bool:
    """Has a value of this form numbers in columns?
    - `form`: From `form_of`"""
    ...

def values_of(form, cols: dict, path: tuple, n: int) -> list:
    """The `n` values at `path`, with the types that they had
    - `form`: From `form_of`
    - `cols`: Columns by path
    - `path`: Where the values stand in `cols`
    - `n`: How many there are"""
    ...
experience_fields: Any

def experience_form(e) -> tuple:
    """The forms of an experience, in the order of `experience_fields`
    - `e`: Anything with the five fields
    - returns: A form for each field"""
    ...

def text_fields(form: tuple) -> list:
    """The fields that are kept as text
    - `form`: From `experience_form`"""
    ...

def kinds_of(form: tuple) -> dict:
    """What each leaf of an experience is that has numbers in columns
    - `form`: From `experience_form`
    - returns: Strings by path"""
    ...

def to_text(o, name: str) -> str:
    """What is kept of `o`
    - `o`: Numbers, strings, `None`, arrays, tensors, or lists, tuples and dicts of them
    - `name`: What errors call it"""
    ...

def from_text(text: str):
    """The object that was kept as `text`
    - `text`: From `to_text`"""
    ...

def row_text(info: dict, fields: dict | None=None) -> str:
    """What is kept beside the columns of a row
    - `info`: Or None
    - `fields`: Those that are kept as text"""
    ...

def of_row(text: str) -> tuple:
    """What was kept beside the columns of a row
    - `text`: From `row_text`
    - returns: `info` and the fields"""
    ...

def wider(a: torch.dtype, b: torch.dtype) -> torch.dtype:
    """The dtype that holds the numbers of both `a` and `b`"""
    ...

def as_wide(path: tuple, v: Tensor, dtype: torch.dtype) -> Tensor:
    """`v` as `dtype`, if it loses nothing
    - `path`: Names the column in an error"""
    ...

def fit_fields(into: dict, cols: dict, n: int) -> dict:
    """`cols` in the dtypes of a store
    - `into`: The store's columns, by path
    - `cols`: Columns of `n` rows, by path
    - returns: A column for each of `into`; zeros where these rows have none"""
    ...

def has_large(e) -> bool:
    """Has `e` a whole number that a column of floats may not hold exactly?
    - `e`: An `Experience`"""
    ...

def columns_of(experiences, stored: dict | None=None) -> tuple:
    """Experiences as columns
    - `experiences`: A list of them
    - `stored`: Columns by path that have the shapes to fit, if there are some
    - returns: Columns by path, forms, texts of the rows"""
    ...

def columns_of_values(values: dict, stored: dict | None=None) -> tuple:
    """The values of experiences as columns
    - `values`: Of each field, in lists or arrays; perhaps with `info`
    - `stored`: As `columns_of` takes it
    - returns: As `columns_of`"""
    ...

def ends(done) -> bool:
    """Does its episode end here?
    - `done`: Of an experience"""
    ...

def columns_of_batch(batch: dict) -> tuple:
    """A dict of columns, as `columns_of` gives them
    - `batch`: A column for each field, nested as experiences are, perhaps with a list `info`
    - returns: As `columns_of`"""
    ...

def experiences_of(cols: dict, forms: list, texts: list) -> list:
    """The experiences that `columns_of` took apart
    - `cols`: Columns by path; `('form',)` numbers the form of each row
    - `forms`: From `experience_form`
    - `texts`: From `row_text`, one per row"""
    ...

def field_columns(cols: dict) -> dict:
    """The columns of the five fields, without those beside them
    - `cols`: Columns by path"""
    ...

def wider_fields(have, cols: dict, who: str) -> dict:
    """The fields that hold what is stored and `cols`, or a `ValueError` that names what does not fit
    - `have`: Fields of the five that are stored
    - `cols`: Columns of the five by path
    - `who`: Whose columns these are, for an error
    - returns: By path"""
    ...
