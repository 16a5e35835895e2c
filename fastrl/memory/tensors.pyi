"""The compiled loops of a draw once more, as tensor operations, for rows that live on a GPU

If your rows live on a GPU, a compiled loop can't reach them, and each number that Python asks for (how many? which? is it true?) makes it wait until the GPU has done all it was given. The functions here draw, gather, fold and weigh by tensor operations alone: every shape is known beforehand, nothing is asked back, and `torch.compile` takes them in one graph. On the CPU they give the rows that the loops give.

Docs: https://fastrl.github.io/fastrl/memory.tensors.html.md"""
from typing import Any, overload
from torch import Tensor
from ..core import *
__all__ = ['per_node', 'units_on', 'rows_on', 'descend', 'weights_of', 'least_of', 'throw', 'last_of_each', 'put_each', 'put_last', 'renew_parents', 'set_leaves', 'renew', 'numbers_of', 'still_held', 'fold', 'fold_each', 'joined_rows']

def units_on(device, key, first, k: int) -> Tensor:
    """`random_units`, made on a `device`
    - `device`: Where they should be
    - `key`, `first`: The stream, and the place of the first number: ints, or tensors of one
    - `k`: How many
    - returns: `(k,)` of float64"""
    ...

def rows_on(device, key, first, k: int, n) -> Tensor:
    """`random_rows`, made on a `device`
    - `device`: Where they should be
    - `key`, `first`: As in `units_on`
    - `k`: How many
    - `n`: Rows there are, likewise
    - returns: `(k,)`"""
    ...
per_node: int

def descend(sums: Tensor, levels: list, left: Tensor, found: Tensor | None=None, level: int | None=None) -> Tensor:
    """The leaves that darts hit
    - `sums`, `levels`: Of a `SumTree`
    - `left`: `(k,)`, what is left of each dart
    - `found`: `(k,)`, the nodes that they hit, of a `level`; the root by default
    - returns: `(k,)`"""
    ...

def weights_of(p: Tensor, beta, least: Any=None) -> Tensor:
    """Importance weights, `(least/priority)**beta`
    - `p`: `(batches, bs)`, the priorities that were drawn
    - `beta`: How far weights make up for being drawn more often: a number, or `(batches, 1)`
    - `least`: The priority of weight 1; the smallest of each batch by default
    - returns: `(batches*bs, 1)`"""
    ...

def least_of(p: Tensor) -> Tensor:
    """The least priority above 0
    - `p`: Priorities
    - returns: Infinity, if none is above 0"""
    ...

def throw(sums: Tensor, levels: list, u: Tensor, bs: int, beta=0.0, least: Any=None):
    """As `SumTree.draw`, by tensors alone
    - `sums`, `levels`: Of a `SumTree`
    - `u`: `(k,)` of float64, where in its part each dart lands: from 0 up to but without 1
    - `bs`: Darts in each batch
    - `beta`, `least`: As in `weights_of`
    - returns: numbers `(k,)`, their weights `(k,1)`; without any priority the weights are NaN"""
    ...

def last_of_each(idxs: Tensor, ok: Tensor | None=None):
    """Which entry has the last word on each number
    - `idxs`: `(k,)`
    - `ok`: `(k,)` bool: which of them count; all by default
    - returns: `idxs` in order, and for each of these the place of the last entry of that number that counts, -1 if none does"""
    ...

def put_each(col: Tensor, rows: Tensor, values: Tensor, source: Tensor):
    """Write into each row the value from its `source`
    - `col`: A column
    - `rows`: `(k,)`, rows that exist
    - `values`: `(k,)`
    - `source`: `(k,)`: for each row the place of its value; -1 if it keeps what it has"""
    ...

def put_last(col: Tensor, idxs: Tensor, values: Tensor, ok: Tensor | None=None) -> Tensor:
    """Write `values` into the rows `idxs`; of several for one row the last
    - `col`: A column
    - `idxs`: `(k,)`, rows that exist
    - `values`: One for each
    - `ok`: `(k,)` bool: which of them count; all by default
    - returns: `idxs` in order"""
    ...

def renew_parents(sums: Tensor, tops: Tensor, levels: list, idxs: Tensor):
    """Add up anew what is above the leaves `idxs`
    - `sums`, `tops`, `levels`: Of a `SumTree`
    - `idxs`: `(k,)`"""
    ...

def set_leaves(sums: Tensor, tops: Tensor, levels: list, idxs: Tensor, p: Tensor, ok: Tensor | None=None):
    """Set priorities; the last one of a leaf counts
    - `sums`, `tops`, `levels`: Of a `SumTree`
    - `idxs`: `(k,)`, of leaves that exist
    - `p`: `(k,)`, finite and not negative where it counts
    - `ok`: `(k,)` bool: which of them count; all by default"""
    ...

def renew(sums: Tensor, tops: Tensor, levels: list, n: int, at: Tensor, k: int, known: Any=None):
    """Give what is new the priority of its TD error, or the largest that was there before it, or 1
    - `sums`, `tops`, `levels`: Of a `SumTree`
    - `n`: How many leaves
    - `at`: `first` and `stop`, as `SumTree.renew` takes them
    - `k`: As many as these name, or more, as long as there are leaves
    - `known`: `(td_errors, alpha, eps)`, as `SumTree.renew` takes them"""
    ...

def numbers_of(idxs: Tensor, n: int, base, total) -> Tensor:
    """The serial numbers of rows
    - `idxs`: Row numbers of any shape; -1 names none
    - `n`: Slots
    - `base`, `total`: The row in slot 0, and how many rows were written: ints, or tensors of one
    - returns: -1 for -1"""
    ...

def still_held(idxs: Tensor, serials: Tensor, n: int, base, total, oldest) -> Tensor:
    """Are these rows still the ones that had these numbers?
    - `idxs`, `serials`: Row numbers, and the serial numbers that came with them
    - `n`, `base`, `total`: As in `numbers_of`
    - `oldest`: The oldest row that is whole, likewise
    - returns: bool"""
    ...

def fold(nxt: Tensor, reward: Tensor, idxs: Tensor, n: int, gamma):
    """As `Walk.returns`, by tensors alone
    - `nxt`: The row that follows each; below 0: none
    - `reward`: One for each row
    - `idxs`: `(bs,)`
    - `n`: At most so many steps
    - `gamma`: What a reward one step later is worth: a number, or one for each row
    - returns: the last row of each `(bs,)`; how many steps, their discounted reward, the product of their `gamma`: `(bs,1)`"""
    ...

def fold_each(f, rewards: Tensor, gamma):
    """Fold each of several rewards of a row
    - `f`: `f(reward, gamma)` → as `fold`, of one reward for each row
    - `rewards`: `(rows, …)`
    - `gamma`: As `fold` takes it, or `(rows, k)`: one for each of the rewards
    - returns: the same, with a total for each of the rewards, `(bs,k)`, and a discount if each has its own"""
    ...

def joined_rows(packed: Tensor, idxs: Tensor, last: Tensor, mask: Tensor) -> Tensor:
    """Rows of which some bits are another row's
    - `packed`: `(rows, words)` of int64
    - `idxs`, `last`: `(bs,)`, where rows begin and where they end
    - `mask`: `(words,)`, ones where the last row counts
    - returns: `(bs, words)`"""
    ...
