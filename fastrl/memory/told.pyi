"""Of which environment and episode a row is, which step, and whether it is the last; and whether one observation continues another

Nothing but the rows themselves tells which of them belong together. `env_id` and `worker_id` name an environment, `terminated` and `truncated` say that its episode ended, `episode_id` and `step` count episodes and their steps where rows have them. `episode_columns` reads all that. Where no column names the environment, the observations have to tell: `observation_pairs` finds those that can be compared, and `first_unlike` compares them.

Docs: https://fastrl.github.io/fastrl/memory.told.html.md"""
from typing import Any, overload
import numpy as np
from ..core import *
from .ring import Ring
__all__ = ['names_env', 'episode_columns', 'observation_pairs', 'unlike', 'first_unlike', 'same_values']

def names_env(ring: Ring) -> bool:
    """Have rows a column that names their environment?
    - `ring`: Whose rows they are"""
    ...

def episode_columns(ring: Ring, idxs: np.ndarray) -> tuple:
    """Of the rows `idxs`: what names their environment, whether they end an episode, their episode and their step
    - `ring`: Whose rows they are
    - `idxs`: Row numbers
    - returns: `(n,names)`, `(n,)` bools, `(n,)` or empty, `(n,)` or empty; or a `ValueError`"""
    ...

def observation_pairs(cols: dict) -> list:
    """The columns of the first kind of observation that can be compared with one of the next observation
    - `cols`: Columns by path
    - returns: Of pairs of paths"""
    ...

def unlike(ring: Ring, p: tuple, idxs: np.ndarray, q: tuple, before: np.ndarray) -> np.ndarray:
    """Those of `idxs` whose column `p` differs from column `q` of `before`
    - `ring`: Whose rows they are
    - `p`, `idxs`: A column by its path, and rows
    - `q`, `before`: Another one, and as many rows
    - returns: Their places in `idxs`"""
    ...

def first_unlike(ring: Ring, p: tuple, idxs: np.ndarray, q: tuple, before: np.ndarray):
    """The first of `idxs` whose column `p` differs from column `q` of `before`; `None` if all agree
    - `ring`, `p`, `idxs`, `q`, `before`: As `unlike` takes them
    - returns: the place in `idxs`, or `None`"""
    ...

def same_values(a, b) -> bool:
    """Do two observations, also nested ones, have the same shapes and numbers, in the precision of the first?"""
    ...
