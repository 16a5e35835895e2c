"""Check any memory, including yours, against what a replay memory must guarantee

The mistakes of a replay memory are silent: the loss goes down, the agent just learns less. `check_memory` feeds a memory tiny episodes in which every number says where it belongs, and checks that each drawn row belongs together. It finds rows that reach into another episode, rows that change with the caller's arrays, and updates that hit a row's successor.

Docs: https://fastrl.github.io/fastrl/memory.check.html.md"""
from typing import Any, overload
from ..core import *
__all__ = ['tiny_cases', 'tiny_steps', 'check_memory']
tiny_cases: Any

def tiny_steps(lengths, n: int=40):
    """Steps of the environments by turns, each with everything that a memory stores
    - `lengths`: How long the episodes of each environment are
    - `n`: How many steps
    - returns: list of dicts"""
    ...

def check_memory(make, cases: Any=tiny_cases, samples: int=2):
    """Raise an `AssertionError` that says what came out wrong; each case calls `make` for a new memory
    - `make`: `make(capacity)` → a memory
    - `cases`: `(capacity, lengths of episodes for each environment)`
    - `samples`: How many batches are checked after each step"""
    ...
