"""Turn experiences of any kind into columns of numbers, and back into what they were

Steps come as Python numbers, NumPy arrays, tensors, lists, or dicts and tuples of them. A memory wants columns of numbers, and you want back what you put in. So every experience is split in two: its numbers become columns, and a *form* remembers what they were. `columns_of` takes experiences apart, `experiences_of` puts them together again.

Docs: https://fastrl.github.io/fastrl/memory.forms.html.md"""
from typing import Any, overload
from dataclasses import dataclass
from typing import Any
import torch
from torch import Tensor
from ..core import *
__all__ = ['experience_fields', 'Experience', 'create_experience', 'form_of', 'values_of', 'experience_form', 'kinds_of', 'info_text', 'info_of', 'wider', 'as_wide', 'columns_of', 'columns_of_batch', 'experiences_of', 'field_columns', 'wider_fields']

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

def form_of(v, name: str):
    """What `v` is, apart from its numbers

    - `v`: A number, an array, a tensor, a list of numbers, or a dict or tuple of them
    - `name`: What errors call it
    - returns: a string, or a tuple of forms"""
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

def kinds_of(form: tuple) -> dict:
    """What each leaf of an experience is

    - `form`: From `experience_form`
    - returns: Strings by path"""
    ...

def info_text(info: dict) -> str:
    """What is kept of an `info`

    - `info`: Or None"""
    ...

def info_of(text: str):
    """The `info` that was kept as `text`

    - `text`: From `info_text`
    - returns: dict, or None"""
    ...

def wider(a: torch.dtype, b: torch.dtype) -> torch.dtype:
    """The dtype that holds the numbers of both `a` and `b`"""
    ...

def as_wide(path: tuple, v: Tensor, dtype: torch.dtype) -> Tensor:
    """`v` as `dtype`, if it loses nothing

    - `path`: Names the column in an error"""
    ...

def columns_of(experiences) -> tuple:
    """Experiences as columns, or a `ValueError` that names what does not fit

    - `experiences`: A list of them
    - returns: Columns by path, forms, texts of the infos"""
    ...

def columns_of_batch(batch: dict) -> tuple:
    """A dict of columns, as `columns_of` gives them

    - `batch`: A column for each field, nested as experiences are, perhaps with a list `info`
    - returns: As `columns_of`"""
    ...

def experiences_of(cols: dict, forms: list, infos: list) -> list:
    """The experiences that were taken apart

    - `cols`: Columns by path; `('form',)` numbers the form of each row
    - `forms`: From `experience_form`
    - `infos`: From `info_text`, one per row"""
    ...

def field_columns(cols: dict) -> dict:
    """The columns of the five fields, without those beside them

    - `cols`: Columns by path"""
    ...

def wider_fields(have, cols: dict, who: str, lists: Any=()) -> dict:
    """The fields that hold what is stored and `cols`, or a `ValueError` that names what does not fit

    - `have`: Fields of the five that are stored; none yet, if this is empty
    - `cols`: Columns of the five by path
    - `who`: Whose columns these are, for an error
    - `lists`: Paths that are lists: they have no dtype that would have to stay
    - returns: By path"""
    ...
