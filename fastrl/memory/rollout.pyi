"""Epochs over all rows or sequences, and advantages by GAE, for PPO and others that learn from what they just did

An on-policy agent collects a rollout, learns from all of it a few times, and throws it away. `memory.epoch(bs)` gives each row once, in another order each time; with `T`, pieces of episodes for a recurrent network. `memory.gae(value, next_value)` says how much better each action did than a critic expected. Both follow the episodes: no sum reaches into the next one, and what comes after a time limit counts.

Docs: https://fastrl.github.io/fastrl/memory.rollout.html.md"""
from typing import Any, overload
from torch import Tensor
from ..core import *
from .ring import Ring
__all__ = ['Epoch', 'rows_shown', 'rows_named', 'Rollouts']

class Epoch:
    """Batches of the rows that a memory has now, each row in one of them"""
    memory: Any
    bs: int
    T: int | None
    device: Any
    shuffle: bool
    idxs: Any
    serials: Any
    cols: Any

    def __init__(self, memory, bs: int, T: int | None=None, device: Any=None, shuffle: bool=True, cols: Any={}):
        """- `memory`: The `ExperienceReplay` whose rows are given
        - `bs`: Rows in a batch, or sequences
        - `T`: Steps in a sequence; without it single rows
        - `device`: Where batches should be
        - `shuffle`: In another order each time?
        - `cols`: More columns, with a value for each row"""
        ...

    def __len__(self):
        ...

    def __repr__(self):
        ...

    def __iter__(self):
        ...

class _Chosen:
    """The sampler that draws the rows `idxs`, as far as they are still there, and the columns `names` beside them"""
    sure: bool
    idxs: Any
    serials: Any
    cols: Any

    def __init__(self, names, idxs, serials, *cols):
        ...

    def draw(self, ring, bs):
        ...

class _AllGone(Exception):
    """Each row of a batch was overwritten"""

def rows_shown(ring: Ring) -> Tensor:
    """The numbers of the rows, in the order in which the memory shows its columns"""
    ...

def rows_named(ring: Ring, o):
    """Rows that are named by where the memory shows them
    - `ring`: Whose rows they are
    - `o`: Rows, named in any way
    - returns: `o`; of a mask the numbers, and of a slice where a `FrameRing` shows fewer rows than have numbers"""
    ...

class Rollouts:
    """A memory that gives each row once, and says what actions were worth"""

    def of_rows(self, f):
        """What `f` makes of the rows, of the new ones if another process cleared the memory meanwhile"""
        ...

    def epoch(self, bs: int | None=None, T: int | None=None, device: Any=None, shuffle: bool=True, **cols) -> Epoch:
        """Each row once, each time that you go through it
    - `bs`: At most so many rows in a batch, or sequences; `self.bs` by default
    - `T`: Steps in a sequence; without it single rows
    - `device`: Where batches should be
    - `shuffle`: In another order each time?
    - `**cols`: More columns, with a value for each row, in the order of the memory's own
    - returns: Of pairs, a batch and its row numbers: `(bs,)`, or `(bs,T)` and -1 where there is none"""
        ...

    def gae(self, value, next_value, gamma: Any=None, lam: float=0.95) -> Tensor:
        """How much better each action did than expected: generalized advantage estimation
    - `value`: What a critic expects at each row's `state`, `(n,1)` or `(n,)`; or the column that has it
    - `next_value`: And at its `next_state`; or a function that says so of a batch of rows: `value` has it of most of them
    - `gamma`: What a reward one step later is worth; `self.gamma` by default
    - `lam`: 0: one reward and what the critic expects then; 1: all rewards of the episode
    - returns: `(n,1)`, in the order of the memory's columns; with `value` added, targets for the critic"""
        ...
