"""Draw by priority among a million rows, and change priorities, in microseconds

To draw rows in proportion to their priorities, throw a dart at a line on which each row owns a piece as long as its priority, and see whose piece it hits. You could search a running sum, but then every changed priority moves the whole sum. A `SumTree` keeps the sum of every four priorities, of every four of those sums, and so on: to find a row or to change one takes one step per level.

Docs: https://fastrl.github.io/fastrl/memory.tree.html.md"""
from typing import Any, overload
from torch import Tensor
from ..core import *
from .recorded import *
__all__ = ['SumTree', 'set_leaves']

class SumTree(OwnArrays):
    """`n` priorities and their sum; finds whose piece of the sum a number hits"""
    device: Any
    n: int
    starts: Any
    sums: Any
    tops: Any

    def __init__(self, n: int, device: Any='cpu', loops: bool | None=None):
        """- `n`: How many priorities; all are 0 at first
        - `device`: Where they live
        - `loops`: Do compiled loops the work, not torch? By default on the cpu"""
        ...

    @property
    def total(self) -> float:
        ...

    @property
    def largest(self) -> float:
        ...

    @property
    def numba(self) -> bool:
        ...

    @property
    def levels(self) -> list:
        ...

    def __len__(self):
        ...

    def __getitem__(self, i) -> Tensor:
        ...

    def __repr__(self):
        ...

    def update(self, idxs, priorities):
        """Set the `priorities` of `idxs`
    - `idxs`: `(k,)`; if one comes twice, its last priority counts
    - `priorities`: `(k,)`, finite and not negative, as is the sum of `n` such ones"""
        ...

    @property
    def least(self):
        """The least priority above 0; without one 0, or on a device, where it stays, infinity"""
        ...

    def update_td(self, idxs, td_errors, alpha: float, eps: float):
        """Set the priorities of `idxs` to `(|td_errors|+eps)**alpha`
    - `idxs`: `(k,)` of int64: a tensor, or on the cpu also an array
    - `td_errors`: `(k,)`, finite, likewise
    - `alpha`: How much the errors matter
    - `eps`: Added to each"""
        ...

    def raised(self, power: float) -> SumTree:
        """A copy with every priority above 0 raised to this power, as if its `alpha` had been so many times as large
    - `power`: 1 changes nothing"""
        ...

    def renew(self, first: int, stop: int, td_errors: Any=None, alpha: float=0.6, eps: float=1e-06):
        """Give what is new the priority of its TD error, or the largest that was there before it, or 1
    - `first`: Counted from the first that there ever was: number `first%n` is new
    - `stop`: And so are those after it, up to but without this one
    - `td_errors`: `(n,1)` or `(n,)` of floats, a tensor or on the cpu also an array; 0 is none
    - `alpha`: As `update_td` takes it
    - `eps`: Likewise"""
        ...

    def find(self, masses) -> Tensor:
        """The number of the priority that each of `masses` hits
    - `masses`: `(k,)`, from 0 up to but without `total`
    - returns: `(k,)`"""
        ...

    def draw(self, u: Tensor, beta=0.0, least: float=0.0):
        """Throw a dart into each of `k` equal parts of the total; for several batches, into as many parts for each
    - `u`: `(k,)` of float64, where in its part each dart lands: from 0 up to but without 1
    - `beta`: How far weights make up for being drawn more often, from 0 to 1; a list has one for each batch
    - `least`: The priority of weight 1; the smallest that is drawn by default
    - returns: numbers `(k,)`, their weights `(k,1)`: `(least/priority)**beta`"""
        ...

    def throw(self, key, first, bs: int, betas: list, least: float=0.0):
        """`draw` with random numbers by their place in a stream
    - `key`, `first`: Of the random numbers, the stream and the place of the first one
    - `bs`: Darts in each batch
    - `betas`: As in `draw`, one for each batch
    - `least`: As in `draw`; of rows on a device a tensor, too
    - returns: as `draw`"""
        ...

    def throw_rows(self, key, first, bs: int, betas: list, least: float, rows, counts):
        """`throw`, and read the rows
    - `key`, `first`, `bs`, `betas`, `least`: As in `throw`
    - `rows`: Packed, an array
    - `counts`: From `Serials.counts`
    - returns: numbers, the rows one behind the other, the columns `weight` and `serial`; `None` if there is none"""
        ...

    def set_there(self, idxs: Tensor, priorities: Tensor):
        """`update`, without a look at the numbers
    - `idxs`: `(k,)`, numbers that exist
    - `priorities`: `(k,)`, finite and not negative"""
        ...

def set_leaves(sums, tops, starts, n, idxs, priorities):
    ...

def throw_at(sums, starts, key, first, bs, betas, least):
    ...
