"""Steps that wait until their episode ends

Steps come one at a time, from one environment or from a thousand, and only a whole episode may enter a dataset. Until then its steps wait in a `Running`: those of all environments side by side, so that a step of a thousand environments is one copy per field.

Docs: https://fastrl.github.io/fastrl/memory.running.html.md"""
from typing import Any, overload
import numpy as np
from ..core import *
__all__ = ['Running', 'flags_of', 'dones_of', 'lead_of', 'resume_running']

class Running:
    """The steps of episodes that have not ended"""
    last: Any
    lead: Any
    fields: Any
    t: int
    room: int
    start: Any
    out: Any
    pending: Any
    steps: Any

    def __init__(self, lead, fields):
        """- `lead`: Axes in front of each field: `()` for one environment, `(n,)` for `n`
        - `fields`: `FieldType` by path"""
        ...

    def put(self, cols):
        """Add a step of all environments"""
        ...

    def grow(self):
        """Make twice the room"""
        ...

    def take(self, i: int, stop: int) -> dict:
        """The episode of environment `i` up to `stop`, and its `last` step; the next one begins there
    - `i`: Number of the environment
    - `stop`: The first step that is not part of it"""
        ...

    def put_last(self, cols):
        """An episode that is taken from now on gets one step more, with these fields
    - `cols`: What the environments show now: some of the fields, by path"""
        ...

    def __getstate__(self):
        ...

    def __setstate__(self, state):
        ...

    def waiting(self) -> dict:
        """Everything that waits, for `resume_running`"""
        ...

def flags_of(done) -> np.ndarray:
    """`done` as an array, or a `ValueError`
    - `done`: As it came with a step
    - returns: Of bools; without axes, or `(n,)`"""
    ...

def dones_of(done, lead: Any=None, num_envs: int | None=None):
    """`done` as one flag for each environment, or a `ValueError`
    - `done`: As it came with a step
    - `lead`: Axes of the steps before; `None` if this is the first one
    - `num_envs`: Environments, if somebody said how many they are
    - returns: array of bools; the axes in front of each field"""
    ...

def lead_of(step, schema: Any=None):
    """`()` for one environment, `(n,)` for `n`, by the shapes of the fields; a `ValueError` if they fit both
    - `step`: As it came with one `done` for all
    - `schema`: `FieldType` by path, if it is known
    - returns: the axes in front of each field"""
    ...

def resume_running(state: dict) -> Running:
    """The steps that waited, or a `ValueError` if they cannot be
    - `state`: From `waiting`"""
    ...
