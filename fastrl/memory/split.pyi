"""Which episode each row is of, and two memories that share none

Neighbouring steps are nearly alike, and a model that learnt from one knows the next almost by heart. So judge it by episodes that it never saw: `memory.split(.2)` holds out a fifth of them. `memory.episode_numbers()` says which episode each row is of, also where environments take turns, so that you can choose episodes by anything you can say of their rows: their returns, their lengths, who played.

Docs: https://fastrl.github.io/fastrl/memory.split.html.md"""
from typing import Any, overload
from torch import Tensor
from ..core import *
from .rollout import Rollouts
__all__ = ['Splits']

class Splits(Rollouts):
    """A memory that knows which episode each row is of, and splits between episodes"""

    def episode_numbers(self) -> Tensor:
        """Which episode each row is of"""
        ...

    def split(self, valid_pct: float=0.2, seed: int=0) -> tuple:
        """Two memories of whole episodes, one to learn from and one to judge by
    - `valid_pct`: Which share of the episodes to hold out, at least one
    - `seed`: Another one holds out others
    - returns: The memory to learn from, and the one of the episodes that are held out"""
        ...
