"""Let actors and learners in several threads keep pace

If one thread plays and another one learns, the faster one decides how often each row is learnt from: once today, fifty times on a faster machine, and neither run can be repeated. A `RateLimiter` holds the number of draws per insert, as [reverb](https://github.com/google-deepmind/reverb)'s does: whoever is ahead waits.

Docs: https://fastrl.github.io/fastrl/memory.limit.html.md"""
from typing import Any, overload
from ..core import *
__all__ = ['RateLimiter']

class RateLimiter:
    """Keeps `samples_per_insert`: `insert` and `sample` wait until it is their turn"""
    samples_per_insert: Any
    min_size_to_sample: Any
    min_diff: Any
    max_diff: Any
    done: Any
    largest: Any
    turns: Any
    change: Any
    closed: bool

    def __init__(self, samples_per_insert: float, min_size_to_sample: int=1, error_buffer: Any=None):
        """- `samples_per_insert`: How often a row is drawn, on average
        - `min_size_to_sample`: Rows before the first draw
        - `error_buffer`: How many draws the two may be apart, either way; or the pair of these limits"""
        ...

    @property
    def inserts(self) -> int:
        ...

    @property
    def samples(self) -> int:
        ...

    @property
    def doing(self) -> dict:
        ...

    @property
    def size(self) -> int:
        ...

    def __repr__(self):
        ...

    def insert(self, n: int=1, timeout: float | None=None):
        """Wait until `n` rows may be added; they count when the block ends, unless it raises
    - `n`: Rows
    - `timeout`: Seconds to wait; 0 raises at once, without it there is no end
    - returns: a context, to add them in"""
        ...

    def sample(self, n: int=1, timeout: float | None=None):
        """Wait until `n` rows may be drawn; they count when the block ends, unless it raises
    - `n`: Rows, or whatever you count
    - `timeout`: Seconds to wait; 0 raises at once, without it there is no end
    - returns: a context, to draw them in"""
        ...

    def can_insert(self, n: int=1) -> bool:
        """May `n` rows be added now?"""
        ...

    def can_sample(self, n: int=1) -> bool:
        """May `n` rows be drawn now?"""
        ...

    def close(self):
        """Raise a `RuntimeError` in whoever waits or comes later"""
        ...

    def delete(self, n: int=1):
        """`n` rows were removed, and none came in their place
    - `n`: Rows"""
        ...

    def reset(self):
        """Count from zero again; whoever waits looks anew"""
        ...

    def state_dict(self) -> dict:
        """How many rows came, were drawn and went, and how often each should be drawn"""
        ...

    def load_state_dict(self, state: dict):
        """Resume where another limiter was; its limits may be others
    - `state`: From `state_dict`"""
        ...
