"""Arrays for blocks of steps, in the form of any space

An environment hands out one step at a time, often in an array that it will use again. `StepArrays` copies steps into a block, nested as the space is; `to_rows` turns a block into the rows of a batch, and `since` counts what follows from where episodes begin. [`GymLoop`](05b_data.gym.ipynb) is made of these; you need them only to write a loop of your own.

Docs: https://fastrl.github.io/fastrl/data.steps.html.md"""
from typing import Any, overload
from torch import Tensor
from ..core import *
__all__ = ['space_form', 'StepArrays', 'to_rows', 'since']

def space_form(space, name: str):
    """The form of the values of `space`, with `[shape, NumPy dtype]` at its leaves
    - `space`: Of observations or actions
    - `name`: What an error calls the space
    - returns: `[shape, NumPy dtype]`, or dicts and tuples of these"""
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
