"""Tell which rows of saved banks came before, so that each is merged once

Files overlap: two snapshots of one bank, a copy beside the original, a merged bank beside one of its parts. A row is known by who wrote it and its number there. `row_spans` says which numbers a file holds, and `Seen` remembers which ones came. This is arithmetic on numbers: no file is opened here, and no row is read.

Docs: https://fastrl.github.io/fastrl/memory.seen.html.md"""
from typing import Any, overload
import numpy as np
__all__ = ['row_spans', 'last_spans', 'some_spans', 'Seen']

def row_spans(about: dict, n: int) -> list:
    """Who wrote each of `n` rows, and its number there
    - `about`: With `id` and `total`, and perhaps `spans` or `parents`
    - `n`: How many rows are there, the last of them
    - returns: Of `(bank, from, to)`, in the order of the rows"""
    ...

def last_spans(spans, n: int) -> list:
    """The spans of the last `n` rows; those that continue each other are one
    - `spans`: Of `(bank, from, to)`
    - `n`: How many rows"""
    ...

def some_spans(spans, mask) -> list:
    """The spans of some of the rows
    - `spans`: Of all rows
    - `mask`: One bool per row: which of them?"""
    ...

class Seen:
    """Rows that came already"""
    spans: Any

    def __init__(self, spans: dict | None=None):
        """- `spans`: By bank, a list of `(from, to)`"""
        ...

    def add(self, spans):
        """Note that these rows came
        - `spans`: From `row_spans`"""
        ...

    def new(self, spans) -> np.ndarray:
        """Which of these rows have not come yet, neither before nor earlier among them?
    - `spans`: From `row_spans`
    - returns: One bool per row, in their order"""
        ...
