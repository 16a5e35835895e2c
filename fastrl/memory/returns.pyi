"""What the next few rewards of a row are worth together

A network that learns the value of a state from the reward of one step, and from its own guess about the next state, carries news back by one step at a time. The return of `n` steps takes more rewards and a later guess. Given which row follows which, `returns` sums up rewards for many rows at once. Each step may have a discount of its own, and each row several rewards.

Docs: https://fastrl.github.io/fastrl/memory.returns.html.md"""
from typing import Any, overload
from torch import Tensor
from ..core import *
from .ring import Field, Ring
__all__ = ['returns', 'each_worth', 'reward_of', 'gamma_of']

def returns(nxt, reward: Tensor, idxs: Tensor, n: int, gamma):
    """Go `n` steps from each of `idxs`
    - `nxt`: An array: the row that follows each; below 0: none
    - `reward`: One for each row
    - `idxs`: `(bs,)`
    - `n`: How many steps at most
    - `gamma`: What a reward one step later is worth: a number, or one for each row
    - returns: the last row of each `(bs,)`, how many steps it is, their discounted reward, and the product of their `gamma`, `(bs,1)` each"""
    ...

def each_worth(gamma, n: int) -> Tensor:
    """`gamma` by row
    - `gamma`: A number, or a tensor with one for each row
    - `n`: Rows
    - returns: One for each row, a number without space for more than one"""
    ...

def reward_of(ring: Ring) -> Field:
    """The field `reward`, if it can be summed up
    - `ring`: Whose rows they are"""
    ...

def gamma_of(ring: Ring, gamma):
    """What a reward one step later is worth
    - `ring`: Whose rows they are
    - `gamma`: A number, or the name of a column
    - returns: the number, or the column: one for each row, `(rows,)`, or for each of their rewards, `(rows,k)`"""
    ...
