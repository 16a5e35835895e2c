"""Draw sequences of steps by the TD errors of their steps

A recurrent network learns from sequences, and some teach more than others. R2D2 gives a sequence the priority $\\eta\\max_t|\\delta_t|+(1-\\eta)\\,\\overline{|\\delta|}$ of its steps' TD errors. `Starts` keeps it for each row at which a sequence can begin: a new error changes the priority of all sequences that hold its row, and a row that is overwritten takes its sequences with it.

Docs: https://fastrl.github.io/fastrl/memory.starts.html.md"""
from typing import Any, overload
from ..core import *
from .ring import Ring
from .tree import SumTree
from .walk import Walk
__all__ = ['Starts']

class Starts:
    """The priority of each row at which a sequence can begin"""
    walk: Walk
    T: int
    pad: bool
    eta: float
    alpha: float
    tree: Any
    errors: Any
    heirs: Any
    at: Any
    pending: Any
    n_pending: int

    def __init__(self, walk: Walk, T: int, pad: bool=False, eta: float=0.9, alpha: float=0.6):
        """- `walk`: Says which row follows which
        - `T`: Steps in a sequence
        - `pad`: Also shorter episodes?
        - `eta`: How much the largest error counts; the mean counts for the rest
        - `alpha`: How much priorities matter"""
        ...

    @property
    def how(self):
        ...

    def __getstate__(self):
        ...

    def __repr__(self):
        ...

    def follow(self, ring: Ring, rows: SumTree):
        """Look at the rows that came and went since the last time
    - `ring`: Whose rows they are
    - `rows`: Their own priorities, `error**alpha`"""
        ...

    def update(self, idxs, td_errors, eps: float):
        """Note new errors, for the next `follow`
    - `idxs`: `(n,)`, an array, best in the order of their sequences
    - `td_errors`: `(n,)`, likewise; if a row comes twice, its last error counts
    - `eps`: Added to each"""
        ...

    def learn(self, ring: Ring, rows: SumTree, td_errors, idxs, serials, eps: float) -> bool:
        """`update`, and set the column `td_error` and the priorities of the rows, if all of these are still there
    - `ring`: Whose rows they are
    - `rows`: Their own priorities
    - `td_errors`, `idxs`, `serials`: `(bs,T)` arrays
    - `eps`: Added to each error
    - returns: Did it?"""
        ...

    def draw(self, key, first, bs: int, beta: float=0.0, whole: bool=False):
        """Rows at which sequences begin, in proportion to their priorities
    - `key`, `first`: Of the random numbers, the stream and the place of the first one
    - `bs`: How many
    - `beta`: How far weights make up for being drawn more often
    - `whole`: Is the largest weight of all sequences 1? By default that of the batch is
    - returns: rows `(bs,)`, their weights `(bs,1)`"""
        ...
