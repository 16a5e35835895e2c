"""Pack the fields of a step side by side into one row, and check every step before it is stored

A step has many fields: an observation, an action, a reward, two endings. Stored apart, each costs a gather of its own. `Fields` packs them side by side into one row of words, so that a step is one piece of memory, and turns gathered rows back into named columns. It also checks every step: a field that doesn't fit is refused by name, before anything is written.

Docs: https://fastrl.github.io/fastrl/memory.row.html.md"""
from typing import Any, overload
import numpy as np, torch
from dataclasses import dataclass
from torch import Tensor
from ..core import *
__all__ = ['flag_names', 'observed', 'final_names', 'like', 'Field', 'dtype_of', 'schema_fields', 'pack_fields', 'nest', 'Fields', 'Batches', 'as_tensor', 'fits', 'tensors_of', 'fields_of', 'check_column', 'check_names', 'tensors_for', 'batch_len', 'follower', 'observed_pairs', 'observed_pair', 'followed', 'goal_fields', 'over_of', 'final_of', 'check_final', 'check_paths', 'torch_dtype', 'as_ints']

def like(shape, dtype) -> str:
    """A shape and a dtype as errors and tables show them: `float32[4]`"""
    ...

@dataclass(frozen=True)
class Field:
    """One field of a row"""
    path: tuple
    shape: tuple
    dtype: torch.dtype
    start: int = 0

    @property
    def name(self):
        ...

    @property
    def like(self):
        ...

    def __repr__(self):
        ...

def dtype_of(o) -> torch.dtype:
    """The dtype of a column
    - `o`: A dtype of torch or of NumPy, or its name
    - returns: `None` for anything else"""
    ...

def schema_fields(schema, path: Any=()):
    """The fields of a `schema`, in order
    - `schema`: `{name: (shape, dtype)}`, nested as a step is
    - `path`: Of `schema` in a larger one
    - returns: iterator of `Field`"""
    ...

def pack_fields(fields):
    """Place the fields side by side in a row, each aligned to the size of its elements
    - `fields`: Of any `start`
    - returns: list of `Field`, bytes a row"""
    ...

def nest(flat: dict):
    """The nested form of these leaves; the ints 0, 1, 2… in paths are places in a tuple
    - `flat`: Leaves by path
    - returns: nested dicts and tuples, `leaves` undone"""
    ...

class Fields(list):
    """The fields of a row, side by side, each aligned to the size of its elements"""
    nbytes: Any
    flat: Any
    record: Any
    apart: Any
    strides: Any
    form: Any

    def __init__(self, fields):
        """- `fields`: Of any `start`"""
        ...

    def __reduce__(self):
        ...

    def columns(self, rows, shape: Any=(-1,)) -> list:
        """The columns of packed `rows`, sharing their memory
    - `rows`: Packed, `(n, words)` or `(n*words,)` of int64: an array, or a tensor on any device
    - `shape`: Axes of the batch"""
        ...

    def named(self, cols) -> BD:
        """`cols` in the nested form of a step
    - `cols`: One for each field, in their order"""
        ...

    def batch(self, rows, shape: Any=(-1,), device: Any=None, cols: Any={}) -> BD:
        """Gathered `rows` as a batch
    - `rows`: Packed, or a list of columns
    - `shape`: Axes of the batch, `(B,T)` for sequences
    - `device`: Where the batch should be
    - `cols`: Columns beside the fields, or in the place of some"""
        ...

    def moved(self, o, device):
        """Packed rows, or columns in a list or a dict, on another device
    - `o`: An array or a tensor of packed rows, or tensors in a list or a dict
    - `device`: Where to"""
        ...

    def fit(self, ts: dict, one: bool) -> list:
        """The columns of `ts` in the order of the fields, or a `ValueError` that names the one that does not fit
    - `ts`: From `tensors_of`
    - `one`: One step, or columns with a first axis?"""
        ...

class Batches:
    """Batches that were gathered together, each with the numbers of its rows"""
    drawn_from: Any
    then: Any
    n: Any
    parts: Any
    names: Any
    paths: Any
    plain: Any

    def __init__(self, fields: Fields, rows, idxs: Tensor, cols: dict, k: int, device: Any=None):
        """- `rows`: Packed, those of one batch after those of the other; or a list of columns
        - `idxs`: Their numbers
        - `cols`: Columns beside the fields
        - `k`: How many batches
        - `device`: Where the batches should be"""
        ...

    def __getstate__(self):
        ...

    def __len__(self):
        ...

    def __repr__(self):
        ...

    def __iter__(self):
        ...

    def __getitem__(self, i):
        ...

def as_tensor(path, v):
    """`v` as a tensor, or a `ValueError` that names it
    - `path`: Of `v` in its step, for errors
    - `v`: A number, array or tensor, or a list of them
    - returns: tensor, did it come as Python numbers?"""
    ...

def fits(t: Tensor, python: bool, dtype: torch.dtype) -> bool:
    """May `t` go into a column of `dtype`? Ints must survive unchanged, floats not become infinite in half precision
    - `python`: Did it come as Python numbers?
    - `dtype`: Of the column"""
    ...

def tensors_of(data: dict, meta=False) -> dict:
    """Every leaf of `data` as a tensor, or a `ValueError`
    - `data`: A step, or a batch of steps
    - `meta`: Allow tensors without values, on the device `meta`?
    - returns: By path a tensor, and whether it came as Python numbers"""
    ...
flag_names: Any

def fields_of(ts: dict, one: bool) -> Fields:
    """The fields of such steps
    - `ts`: From `tensors_of`
    - `one`: One step, or columns with a first axis?"""
    ...

def check_column(name: str, t: Tensor, python: bool, shape, dtype: torch.dtype, lead: int=0, exact: bool=False):
    """A `ValueError` unless `t` fits a column of this shape and dtype
    - `name`: Of the field, for the error
    - `python`: Did it come as Python numbers?
    - `shape`: Expected, without the first `lead` axes of `t`
    - `dtype`: Expected
    - `lead`: Axes of the batch
    - `exact`: Convert Python numbers only?"""
    ...

def check_names(have, want, of: str='a row here'):
    """A `ValueError` unless the same fields came
    - `have`: Paths of the fields that came
    - `want`: Paths of the fields that a row has
    - `of`: The row in the error"""
    ...

def tensors_for(name: str, fields, values, shape: tuple) -> list:
    """A tensor for each of the `fields` of the column `name`, of `values` nested as it is, for rows of this `shape`"""
    ...

def batch_len(ts: dict) -> int:
    """The common length of all columns
    - `ts`: From `tensors_of`"""
    ...
observed: Any

def follower(name: str, names) -> str:
    """The column that shows after a step what `name` shows before it, `next_obs` for `obs`; `None` if there is none
    - `name`: Of a column
    - `names`: Of all columns"""
    ...

def observed_pairs(paths) -> list:
    """What an environment shows before and after a step, like `obs` and `next_obs`
    - `paths`: Of all columns
    - returns: Of pairs, in the order of `observed`"""
    ...

def observed_pair(paths) -> tuple:
    """The first of `observed_pairs`
    - `paths`: Of all columns
    - returns: `state` and `next_state` if there are none"""
    ...

def followed(name: str) -> str:
    """The column that `name` follows by its name, `obs` for `next_obs`; `None` if it follows none
    - `name`: Of a column"""
    ...

def goal_fields(fields, goal: str='desired_goal', achieved: str='achieved_goal') -> tuple:
    """Where a row has goals, and what can take their place
    - `fields`: Of a row
    - `goal`: The field that is replaced, wherever it stands
    - `achieved`: The field of `next_state` (or `next_obs` …) that says what a step achieved
    - returns: The numbers of the fields that are goals, of the one that was achieved, and of the reward"""
    ...

def over_of(**flags) -> np.ndarray:
    """Does each row end its episode? A `ValueError` if rows have several of the same flag
    - `**flags`: `terminated` and `truncated`, `(n, …)` arrays
    - returns: `(n,)` bools"""
    ...
final_names: Any

def final_of(infos, i: int):
    """What environment `i` showed last, before it was reset in the same step
    - `infos`: What `step` of a vector environment gave: a dict of arrays, or a list of dicts
    - `i`: Which environment
    - returns: an observation, or `None`"""
    ...

def check_final(i: int, before, last, first, warn):
    """A `ValueError` if a reset has overwritten the `last` observation with the `first` one
    - `i`: The environment
    - `before`, `last`, `first`: What it showed before the step, as the last of its episode, and as the first of the next
    - `warn`: Called with what is wrong, if it may be so by chance"""
    ...

def check_paths(paths):
    """A `ValueError` unless these lists can be the paths of one row's fields
    - `paths`: As JSON gives them"""
    ...

def torch_dtype(name: str) -> torch.dtype:
    """The dtype of that name, and nothing else in torch's namespace
    - `name`: For example 'float32'"""
    ...

def as_ints(t: Tensor) -> np.ndarray:
    """The bits of `t` as ints, in the same memory if it is on the CPU
    - `t`: Of any dtype
    - returns: With one axis more if `t` is complex"""
    ...
