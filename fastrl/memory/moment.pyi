"""A copy has the rows of one moment, though another process writes while it is made

A memory in shared memory takes a while to copy or to pickle. Another process writes meanwhile: the rows of the copy are old ones, new ones and halves of both, and its counts are those of a third moment. A lock would stop the writer. A `Moment` notes instead how many rows there were before, and which ones were still whole afterwards. `at_moment` keeps only these.

Docs: https://fastrl.github.io/fastrl/memory.moment.html.md"""
from typing import Any, overload
__all__ = ['Moment', 'at_moment']

class Moment:
    """Which rows a copy has, though another process may write while it is made"""
    serials: Any
    first: Any
    total: Any

    def __init__(self, serials):
        """- `serials`: `Serials` of the rows that are about to be copied"""
        ...

    def __reduce__(self):
        ...

def at_moment(ring, first, total, seams):
    """Leave the rows to `ring` that were whole from before it was copied until afterwards
    - `ring`: A `Ring`, just copied
    - `first`, `total`, `seams`: From the copy of its `Moment`"""
    ...
