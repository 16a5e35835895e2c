"""Draw, predict and step several times for each batch of new rows

Off-policy agents learn more than once from each step, and a `Learner` makes one update per batch. `MoreUpdates(n)` makes `n`: the first as ever, the others right after it, each with rows that the memory draws for it. Most callbacks see each update as a batch of its own, without new rows.

Docs: https://fastrl.github.io/fastrl/memory.updates.html.md"""
from typing import Any, overload
from contextlib import contextmanager
from fastai.basics import Callback
from ..core import *
__all__ = ['MoreUpdates', 'tiny_as_zero', 'TightUpdates', 'clip_norm', 'step_of']

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

    def __getstate__(self):
        """Callbacks of a fit that is over, which it heard, do not come along"""
        ...

    def make_others(self, er, left):
        ...

    def one_more(self):
        """One more update, as `Learner.one_batch` makes it, without new rows"""
        ...

    def before_train(self):
        """Find the callbacks that take part in an update"""
        ...

@contextmanager
def tiny_as_zero():
    """Within it, numbers too small to be stored with all their digits count as 0"""
    ...

class TightUpdates(MoreUpdates):
    """Make `n` updates per batch, all but the first in a tight loop: the same updates, in less time"""
    agent: Any
    at_once: Any

    def __init__(self, n: int, agent, at_once: int=16):
        """- `n`: Updates, with the one that the `Learner` makes
        - `agent`: `agent.learn_from(rows, k, step)` makes `k` updates, and gives the TD errors of `rows`
        - `at_once`: The most batches that are drawn together"""
        ...

    def before_train(self):
        ...

    def make_others(self, er, left):
        ...

    def stepper(self):
        """What steps the optimizer, and need not ask again before the next batch"""
        ...

def clip_norm(params, most: float):
    """`torch.nn.utils.clip_grad_norm_`, which leaves gradients alone that are small enough
    - `params`: Whose gradients
    - `most`: Their norm is at most this"""
    ...

def step_of(opt):
    """What `opt.step` does; a fused Adam's without the questions that torch asks at each step
    - `opt`: fastai's, or an `OptimWrapper`
    - returns: a function"""
    ...
