"""Draw, predict and step several times for each batch of new rows

Off-policy agents learn more than once from each step, and a `Learner` makes one update per batch. `MoreUpdates(n)` makes `n`: the first as ever, the others right after it, each with rows that the memory draws for it. Most callbacks see each update as a batch of its own, without new rows.

Docs: https://fastrl.github.io/fastrl/memory.updates.html.md"""
from typing import Any, overload
from fastai.basics import Callback
from ..core import *
__all__ = ['MoreUpdates']

class MoreUpdates(Callback):
    """Make `n` updates for each batch of new rows"""
    order: Any
    run_valid: Any
    once_per_batch: Any
    n: Any
    nothing: Any

    def __init__(self, n: int):
        """- `n`: Updates, with the one that the `Learner` makes"""
        ...

    def after_batch(self):
        ...

    def one_more(self):
        """One more update, as `Learner.one_batch` makes it, without new rows"""
        ...

    def before_train(self):
        """Find the callbacks that take part in an update"""
        ...
