"""Which episode each row is of, and two memories that share none

A model that is judged by steps from between those that it learnt knows them nearly by heart. `memory.split(.2)` holds out whole episodes. `memory.episode_numbers()` says which episode each row is of, also where environments take turns, so that you can choose episodes by anything you can say of their rows: their returns, their lengths, who played.

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
        """Whole episodes in one memory or the other, so that none that you train on tells of one that judges you
    - `valid_pct`: Which share of the episodes to hold out, at least one
    - `seed`: Another one holds out others
    - returns: Two memories: of the other episodes, and of those that are held out"""
        ...
