"""Let a draw give n-step returns, though each row was stored as one step

A reward that comes late is learnt late: each update carries it back by one step. With n-step returns it travels `n` steps at once. Stores that fold steps as they come in keep one `n` for ever. A `Folds` folds when rows are drawn: each becomes a row that begins where it began, sums up to `n` rewards, and ends where the last of them ended. You can change `n` at any time.

Docs: https://fastrl.github.io/fastrl/memory.folds.html.md"""
from typing import Any, overload
from torch import Tensor
from ..core import *
from .ring import Ring
from .walk import Walk
__all__ = ['Folds', 'folds_of', 'outcome_of']

class Folds:
    """A `read` for `Ring.draw`: rows into each of which up to `n` steps are folded"""
    walk: Walk
    n: int
    gamma: Any
    seen: Any

    def __init__(self, walk: Walk, n: int, gamma: float | str):
        """- `walk`: Says which row follows which
        - `n`: At most so many steps
        - `gamma`: What a reward one step later is worth: a number, or the name of a column"""
        ...

    def __getstate__(self):
        ...

    def __repr__(self):
        ...

    def __call__(self, ring: Ring, idxs: Tensor):
        """The rows `idxs`, folded
    - `ring`: Whose rows they are
    - `idxs`: `(bs,)`
    - returns: the rows, packed or as a list of columns, and the columns `n_steps`, `discount`, and if need be `reward`"""
        ...

    def there(self, ring: Ring):
        """A call as work that can be `recorded`
    - `ring`: On a device
    - returns: what the reading depends on, the tensors that it sees, and `f(idxs)` → as a call"""
        ...

    def evenly(self, ring: Ring, at, k: int):
        """Rows drawn evenly and folded
    - `ring`: Whose rows they are
    - `at`: Of the random numbers, the stream and the place of the first one
    - `k`: How many rows
    - returns: row numbers, packed rows, and their columns, with `serial`; `None` if there are no rows, or the compiled loop cannot fold them"""
        ...

    def by_priority(self, ring: Ring):
        """What draws rows by priority and folds them
    - `ring`: Whose rows they are
    - returns: `f(tree, key, first, bs, betas, least)` → as `SumTree.throw_rows`, with folded rows; `None` if the compiled loop cannot fold them"""
        ...

def folds_of(memory) -> Folds:
    """How a memory reads rows with `n_step`, kept from draw to draw
    - `memory`: Has a `walk`, `n_step` and `gamma`"""
    ...

def outcome_of(fields) -> set:
    """The columns that a folded row has from its last step: flags, and what a step led to, as `next_obs` beside `obs`
    - `fields`: Of a row
    - returns: Names"""
    ...
