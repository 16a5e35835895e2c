"""Draw each batch from several memories, a fixed share from each

You have a dataset, and an agent that now collects steps of its own. Added to the dataset's memory, its first thousand steps drown among a million; drawn alone, they forget the dataset. A `Mixture` draws each batch from both memories, a fixed share from each, and sends the TD errors back to the rows they belong to. It stores no rows, and uses no random numbers of its own.

Docs: https://fastrl.github.io/fastrl/memory.mixture.html.md"""
from typing import Any, overload
from ..core import *
__all__ = ['Mixture']

class Mixture:
    """Batches that take a fixed share of their rows from each of several memories"""
    memories: Any
    bs: Any

    def __init__(self, shares: dict, bs: int | None=None):
        """- `shares`: `{memory: share}`, shares that add up to 1
        - `bs`: Rows in a batch; by default the last memory's `bs`"""
        ...

    @property
    def shares(self) -> tuple:
        """The share of each memory; you can set others, in the same order"""
        ...

    @shares.setter
    def shares(self, shares):
        ...

    def __setattr__(self, k, v):
        ...

    def __len__(self) -> int:
        ...

    def __repr__(self):
        ...

    def counts(self, bs: int) -> list:
        """How many rows of a batch come from each memory: the shares of `bs`, rounded, in every batch the same
    - `bs`: Rows in a batch
    - returns: One number for each memory"""
        ...

    def sample(self, bs: int | None=None, device: Any=None, n_batches: int | None=None):
        """The rows that each memory draws, one memory after the other; the column `memory` says which
    - `bs`: How many; `self.bs` by default
    - `device`: Where the batch should be
    - `n_batches`: So many batches, drawn at once
    - returns: the batch, and numbers of its rows for `update_td`, or a list of such pairs"""
        ...

    def update_td(self, td_errors, idxs, serials: Any=None):
        """Store the TD error of each row in the memory that it came from
    - `td_errors`: `(n,1)` or `(n,)`, one for each row; of sequences `(bs,T)` or `(bs,T,1)`
    - `idxs`: The batch; or the numbers that came with it, `(n,)` or `(bs,T)`, -1 names none
    - `serials`: With numbers: the batch's column `serial`; without it the rows are taken as they are now"""
        ...

    def state_dict(self, last: bool=False) -> list:
        """For each memory but the last: the state of its draws, its priorities, the TD errors
    - `last`: Of the last memory, too? If other processes add to all of them, there is none to checkpoint"""
        ...

    def load_state_dict(self, state: list):
        """Resume drawing where another mixture of the same rows was
    - `state`: From `state_dict`"""
        ...

    def sample_sequences(self, bs: int | None=None, T: int | None=None, pad: bool=False, burn_in: int=0, device: Any=None, n_batches: int | None=None, align: str='right'):
        """The sequences that each memory draws, one memory after the other; the column `memory` says which
    - `bs`: How many; `self.bs` by default
    - `T`: Steps in each; required
    - `pad`: Also episodes that are shorter, filled up with zeros?
    - `burn_in`: Up to so many earlier steps; missing ones are zeros, `mask` False
    - `device`: Where the batch should be
    - `n_batches`: So many batches, drawn at once
    - `align`: Where a burn-in lacks steps: in front, or, with `'left'`, behind
    - returns: a batch of `(bs, burn_in+T, …)`, and numbers of its rows, -1 where there is none; or a list of such pairs"""
        ...

    def put(self, name: str, idxs, values, serials: Any=None) -> int:
        """Write `values` into the rows `idxs`, each in the memory that it came from
    - `name`: The column
    - `idxs`: The batch; or row numbers as they were drawn, `(n,)` or `(bs,T)`, -1 names none
    - `values`: In the shape of `idxs`, followed by that of a row, if it is more than a number
    - `serials`: With numbers: the batch's column `serial`; without it the rows are taken as they are now
    - returns: How many rows are gone"""
        ...
