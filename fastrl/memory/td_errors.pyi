"""Which rows a learner's answer is for, and whether it can be stored

A learner draws a batch, and a moment later answers with a TD error for each row: by then other rows may lie in these places. Each row has a serial number that no other one ever gets, and each batch brings them along. These functions find out where the rows of a batch were, and check the errors before anything is stored.

Docs: https://fastrl.github.io/fastrl/memory.td_errors.html.md"""
from typing import Any, overload
from torch import Tensor
from ..core import *
from .ring import Ring
__all__ = ['rows_of_batch', 'of_another', 'refuse_another', 'one_per_row', 'rows_that_learn', 'is_batch', 'errors_given', 'steps_as_rows', 'as_drawn', 'learn_rows', 'numbers_given', 'checked_td']

def rows_of_batch(ring: Ring, batch: dict):
    """Where the rows of a batch lay when they were drawn
    - `ring`: From which it was drawn
    - `batch`: With its column `serial`
    - returns: row numbers `(n,)` or `(bs,T)`, -1 where there is none, and the serial numbers"""
    ...

def of_another(ring, batch):
    """Was `batch` drawn from a ring of other rows than `ring`? Only the batch itself knows, nothing made of it"""
    ...

def refuse_another(ring, batch):
    ...

def one_per_row(batch: dict, name: str) -> Tensor:
    """A column that has one number for each row, as it was drawn
    - `batch`: Of rows, or of sequences
    - `name`: Of a column
    - returns: `(n,1)` or `(bs,T,1)`"""
    ...

def rows_that_learn(ring: Ring, batch: dict):
    """The rows of a batch for which there are TD errors
    - `ring`: From which the batch was drawn
    - `batch`: With its column `serial`
    - returns: as from `rows_of_batch`, and -1 for each step where the column `learn` of sequences is false"""
    ...

def is_batch(idxs, serials: Any=None) -> bool:
    """Does a batch tell the rows? A `ValueError` if a batch came with something else, or in another place
    - `idxs`: A batch, or row numbers
    - `serials`: That came with row numbers"""
    ...

def errors_given(td_errors) -> Tensor:
    """TD errors as a tensor without a gradient, or a `ValueError` that names them
    - `td_errors`: In any form"""
    ...

def steps_as_rows(td_errors, idxs, serials: Any=None):
    """What belongs to the steps of sequences, one after another
    - `td_errors`: `(bs,T)` or `(bs,T,1)`
    - `idxs`: `(bs,T)`, -1 where there is no step
    - `serials`: As many, or `None`
    - returns: the same of `(n,)` rows: `(n,1)`, `(n,)`, `(n,1)` or `None`"""
    ...

def as_drawn(ring: Ring, td_errors, idxs, serials: Any=None, sure: bool=True):
    """The arrays of the usual update
    - `td_errors`: Of rows
    - `idxs`: The batch, or their numbers
    - `serials`: With numbers
    - `sure`: Can nothing refuse it? Else only the forms are those of a draw
    - returns: row numbers, TD errors and serials, arrays; `None` if this update needs a closer look"""
    ...

def learn_rows(ring: Ring, sampler, td_errors, idxs, serials: Any=None) -> bool:
    """Set the column `td_error` and the priorities of these rows, if nothing about them is unusual
    - `sampler`: A `Prioritized` of its rows
    - `td_errors`, `idxs`, `serials`: As `as_drawn` takes them
    - returns: Did it?"""
    ...

def numbers_given(idxs, n: int) -> Tensor:
    """Row numbers as a tensor; -1 names none, and nothing counts from the end
    - `idxs`: Numbers of rows
    - `n`: They are below"""
    ...

def checked_td(ring: Ring, n: int, td_errors, idxs, serials: Any=None):
    """An update in the form of the ring, or a `ValueError`
    - `n`: Row numbers are below
    - `td_errors`: `(n,)` or `(n,1)`
    - `idxs`: `(n,)`, -1 names none
    - returns: TD errors `(n,1)`, row numbers, serials or `None`, of the rows that are still there; and how many are not"""
    ...
