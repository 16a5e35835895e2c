"""Steps that wait until their episode ends

Steps come one at a time, from one environment or from a thousand, and only a whole episode may enter a dataset. Until then its steps wait in a `Running`: those of all environments side by side, so that a step of a thousand environments is one copy per field.

Docs: https://fastrl.github.io/fastrl/memory.running.html.md"""
from typing import Any, overload
__all__ = ['Running', 'dones_of']

class Running:
    """The steps of episodes that have not ended"""
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
        """The episode of environment `i` up to `stop`; the next one begins there

    - `i`: Number of the environment
    - `stop`: The first step that is not part of it"""
        ...

def dones_of(done, lead: Any=None, num_envs: int | None=None):
    """`done` as an array, or a `ValueError`

    - `done`: As it came with a step
    - `lead`: Axes of the steps before; `None` if this is the first one
    - `num_envs`: Environments that a single `done` stands for
    - returns: array of bools; the axes in front of each field"""
    ...
