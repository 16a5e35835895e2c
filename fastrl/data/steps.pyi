"""Arrays for blocks of steps, in the form of any space

An environment hands out one step at a time, often in an array that it will use again. `StepRows` copies steps into columns, nested as the space is, numbers them, and hands them out as the rows of a batch. `StepArrays` holds the steps of a block, `to_rows` turns a block into rows, and `since` counts what follows from where episodes begin. [`GymLoop`](05b_data.gym.ipynb) is made of these; you need them only to write a loop of your own.

Docs: https://fastrl.github.io/fastrl/data.steps.html.md"""
from typing import Any, overload
from torch import Tensor
from ..core import *
__all__ = ['space_form', 'check_value', 'survives', 'StepArrays', 'to_rows', 'since', 'StepRows']

def space_form(space, name: str):
    """The form of the values of `space`, with `[shape, NumPy dtype]` at its leaves
    - `space`: Of observations or actions
    - `name`: What an error calls the space
    - returns: `[shape, NumPy dtype]`, or dicts and tuples of these"""
    ...

def check_value(form, value, name: str='observation'):
    """A `ValueError` unless `value` has the shape of its space, and numbers that survive in its dtype
    - `form`: From `space_form`
    - `value`: Of that space
    - `name`: What an error calls it"""
    ...

def survives(a, dtype) -> bool:
    """Does `a` stay what it is in this dtype? Floats may be rounded to floats
    - `a`: An array
    - `dtype`: NumPy's"""
    ...

class StepArrays:
    """Arrays for the values of a space at `T` steps in `n` environments"""
    form: Any
    leaves: Any
    flat: Any

    def __init__(self, form, T: int, n: int):
        """- `form`: From `space_form`
        - `T`: Steps
        - `n`: Environments"""
        ...

    def put(self, t, value):
        """Copy `value` into step `t`"""
        ...

    def at(self, *where):
        """A copy of step `t`, of all environments, or of one: `at(t)`, `at(t, i)`"""
        ...

def to_rows(a, keep: Any=None) -> Tensor:
    """One row per step and environment; a single number becomes a row of shape `(1,)`
    - `a`: `(T, n, …)`
    - `keep`: Which of the T·n rows to keep"""
    ...

def since(x, start, carry=0):
    """Sum of `x` since the last `start`, that step included
    - `x`: `(T, n)`, summed along the first axis
    - `start`: `(T, n)` bool, where the sum begins anew
    - `carry`: `(n,)`, the sum before the block"""
    ...

class StepRows:
    """Steps of `n` environments as rows, written at the back and taken from the front"""
    n: int
    episode: Any
    worker: int
    forms: Any
    first: Any
    stop: int
    size: int
    now: Any
    none: Any
    beside: Any
    cols: Any
    gain: Any
    counted: Any
    leaves: Any
    shown: Any

    def __init__(self, obs, act, n: int=1, episode: int=0, worker: int=0):
        """- `obs`: Form of the observations, from `space_form`
        - `act`: Form of the actions
        - `n`: Environments
        - `episode`: The number of the first episode
        - `worker`: For the column `worker_id`"""
        ...

    def __len__(self) -> int:
        ...

    def column(self, name):
        """`rows.column('state')[i] = value` copies into a column, at one row or at a slice"""
        ...

    def only(self, name, value, envs):
        """What `value` has for these environments; if it has no axis of environments, it is for all"""
        ...

    def at(self, name, row):
        """A copy of a column at `row`, a number or a slice"""
        ...

    def make_room(self, k: int):
        """If the columns are full, begin new ones with the rows that wait: what was taken never changes
    - `k`: For so many rows"""
        ...

    def count(self, spent: Any=None):
        """Number the steps and episodes of the rows that were written, and sum up returns
    - `spent`: `(n,)` bool: which environments spent the last step on a reset? Their episodes get a number now"""
        ...

    def add_beside(self, name: str, values):
        """Another column, for the rows of a block
    - `name`: Of the column
    - `values`: An array, one for each row that came since the last time"""
        ...

    def take(self, n: int) -> BD:
        """The oldest `n` rows, once they are counted
    - `n`: How many"""
        ...

class _Nested:
    leaves: Any

    def __init__(self, leaves):
        ...

    def __setitem__(self, rows, value):
        ...
