"""How many steps come before and after a row, and which row is so many steps further

Hindsight asks for the row that an episode reached some steps after another. A walk goes there step by step, and in an episode of ten thousand steps that takes longer than all the rest of a draw. `Positions` knows where each row stands in its episode, and gets from there to any other row of it in a few leaps.

Docs: https://fastrl.github.io/fastrl/memory.positions.html.md"""
from typing import Any, overload
import numpy as np
from ..core import *
from .ring import Ring
from .walk import Walk
__all__ = ['Positions']

class Positions(OwnArrays):
    """Where each row of a ring stands in its episode"""
    walk: Walk
    base: Any
    prv: Any
    rows: Any
    runs: Any
    free: Any
    n_free: Any
    seen: Any
    oldest: Any

    def __init__(self):
        ...

    def follow(self, ring: Ring):
        """Look at the rows that came and went since the last time
    - `ring`: Whose rows they are"""
        ...

    def around(self, ring: Ring, idxs: np.ndarray) -> tuple:
        """How many stored steps of its episode come before each of `idxs`, and how many after it
    - `ring`: Whose rows they are
    - `idxs`: Row numbers
    - returns: Two arrays"""
        ...

    def further(self, idxs: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """The rows that stand so many `steps` further in the episodes of `idxs`, as `around` saw them last
    - `idxs`: Row numbers
    - `steps`: Below 0: back
    - returns: The last or the first row of an episode where `steps` leads out of it"""
        ...
