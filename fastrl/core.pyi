"""Batches are dicts of tensors with one batch axis, and tests compare shape and dtype, too

A step has many parts: an observation, an action, a reward, an ending. Kept as loose tensors they drift apart, when one is shuffled and another is not. `BD` holds them together: a dict of tensors that you cut, join and print as one, along their first axis. `test_same` compares such batches exactly, and every notebook here uses it.

Docs: https://fastrl.github.io/fastrl/core.html.md"""
from typing import Any, overload
from contextlib import contextmanager
import numpy as np, torch
from torch import Tensor
__all__ = ['leaves', 'map_leaves', 'path_name', 'leaf_at', 'printable', 'difference', 'test_same', 'test_in', 'test_len', 'test_lt', 'tensor_from', 'row_index', 'row_numbers', 'TensorBatch', 'in_lines', 'BD', 'columns_html', 'rows_written', 'rows_text', 'alone', 'whole_number', 'true_or_false', 'number_within', 'refuse_words', 'usable_device', 'sent', 'warn_user', 'Progress', 'signals_held', 'compiled', 'check_idxs', 'writable', 'OwnArrays', 'prefetch', 'aligned_zeros', 'in_large_pages']

def leaves(o, path: tuple=()):
    """Each `(path, leaf)` of `o`, in order
    - `o`: A column, or a dict or tuple of them, however deep
    - `path`: Where `o` stands
    - returns: iterator of (path, leaf)"""
    ...

def map_leaves(f, o, *os):
    """Apply `f` to every leaf, keeping the form of `o`; dicts come out as `BD`
    - `f`: Called with the leaves at the same place in `o` and `os`
    - `o`: A column, or a dict or tuple of them
    - `*os`: Others of the same form"""
    ...

def path_name(path: tuple) -> str:
    """The name of the leaf at `path` in messages and tables"""
    ...

def leaf_at(o, path: tuple):
    """What stands at `path` in `o`"""
    ...

def printable(text: str) -> str:
    """`text` with escapes in the place of control characters, for a terminal or a log"""
    ...

def difference(a, b, path: Any=()):
    """The first difference between `a` and `b` in words, or `None`"""
    ...

def test_same(a, b):
    """`test` that `a` and `b` agree in shape, dtype and value, exactly, however nested"""
    ...

def test_in(a, b):
    """`test` that `a in b`"""
    ...

def test_len(a, b):
    """`test` that `a` has length `b`, or the length of `b`"""
    ...

def test_lt(a, b):
    """`test` that `a < b`"""
    ...

def tensor_from(o) -> Tensor:
    """`o`, an array or numbers, as a tensor, in memory if it is none yet, whatever torch's default device is"""
    ...

def row_index(o, n: int):
    """The rows that `o` names, or an `IndexError` that says what is wrong with it
    - `o`: An int, slice, list, mask, array or tensor
    - `n`: How many rows there are
    - returns: a slice, or a tensor of row numbers"""
    ...

def row_numbers(o, n: int) -> Tensor:
    """The numbers of the rows that `o` names, of a slice, too"""
    ...

class TensorBatch(Tensor):
    """A tensor that keeps its first axis, the batch, however you index it"""

    def __new__(cls, x):
        """- `x`: Tensor, array or list with a batch axis"""
        ...

    def bs(self) -> int:
        ...

    def new_empty(self, *args, **kwargs):
        ...

    def __getitem__(self, o):
        ...

def in_lines(s: str) -> str:
    """`s` in lines of 80, the form in which batches and memories print themselves"""
    ...

class BD(dict):
    """A batch: tensors, or dicts and tuples of tensors, that share their first axis"""
    drawn_from: Any
    __copy__: Any

    def bs(self) -> int:
        """The number of rows"""
        ...

    def copy(self):
        ...

    def __or__(self, o):
        ...

    def __repr__(self):
        ...

    def __missing__(self, k):
        """A leaf of a nested column by the name that errors and tables give it, `'state.arm'`"""
        ...

    def __getitems__(self, idxs):
        ...

    @classmethod
    def __torch_function__(cls, func, types, args: Any=(), kwargs: Any=None):
        ...

    def map(self, f, *args, **kwargs) -> BD:
        """A batch of the pairs that `f` returns for each `(name, column)`"""
        ...

    def mapk(self, f, *args, **kwargs) -> BD:
        """The same columns under new names, `f` of the old ones"""
        ...

    def mapv(self, f, *args, **kwargs) -> BD:
        """Apply `f` to every column, nested ones included"""
        ...

    def __add__(self, o):
        ...

    def __radd__(self, o):
        ...

    @classmethod
    def merge(cls, *ds) -> BD:
        """The columns of all `ds` side by side; the last of two with the same name wins"""
        ...

    def pandas(self, mu: bool=False, relative_shape: bool=False, jupyter_nrows: int | None=None, **kwargs):
        """The batch as a `pandas.DataFrame`, one line per row
    - `mu`: Add the mean of each row, as `<name>_mu`
    - `relative_shape`: Show the shape of one row instead of the column's
    - `jupyter_nrows`: Let pandas show so many rows of a table, this one and later ones
    - `**kwargs`: For `DataFrame`
    - returns: pandas.DataFrame"""
        ...

    def to(self, *args, **kwargs) -> BD:
        """Every column `to` a device or dtype, as of a tensor"""
        ...

    def __reduce__(self):
        ...

    @overload
    def __getitem__(self, o: str) -> Any:
        ...

    @overload
    def __getitem__(self, o: Any) -> BD:
        ...

def columns_html(batch, about: str, most: int=200000) -> str:
    """A small table of the columns, for notebooks
    - `batch`: Columns that share their first axis, or `None`
    - `about`: What it is, as HTML
    - `most`: Numbers per column to look at"""
    ...

def rows_written(ring):
    """How many rows came, since the `ring` was cleared if it was"""
    ...

def rows_text(name, ring):
    """How many rows the `ring` of a memory holds, for `columns_html`"""
    ...

def alone(t):
    """A tensor of its own, if `t` is a view of more than it shows; what processes share stays shared"""
    ...

def whole_number(name: str, n, least: int=1, most: int | None=None) -> int:
    """`n` as an int between `least` and `most`, or a `ValueError` that names it
    - `name`: Of the argument, for the error
    - `n`: An int, of Python, NumPy or torch
    - `most`: Without it there is no upper limit"""
    ...

def true_or_false(name: str, o) -> bool:
    """`o` as a bool, or a `ValueError` that names it if it is a word: Python counts `'False'` as true"""
    ...

def number_within(name: str, v, least, most, want: str | None=None):
    """`v`, or a `ValueError` that names it
    - `name`: Of the argument, for the error
    - `v`: A number
    - `least`, `most`: Its limits
    - `want`: The limits in words"""
    ...

def refuse_words(where: str, got: dict, of: Any=None, /, **ours):
    """Raise a `TypeError` for the first keyword in `got`, with the word used here
    - `where`: The function
    - `got`: Its keywords that it has no parameter for
    - `of`: The function itself: its parameter that is spelt nearly alike is proposed
    - `**ours`: A word of another library, and what to write here: code, or a sentence with `code`"""
    ...

def usable_device(device) -> torch.device:
    """The `torch.device` of this name, such as `'cuda:1'`, or a `ValueError` if this machine has none"""
    ...

def sent(t: Tensor, device):
    """`t` on a `device`; what is large goes to a GPU from memory that the GPU reads itself, so that nobody waits"""
    ...

def warn_user(message: str):
    """Warn of what happened, and say what to do, at the line that called fastrl"""
    ...

class Progress:
    """A progress bar that appears after `patience` seconds, if anybody can see it; `total` says how much there is to do"""
    total: int | None
    due: Any
    bar: Any

    def __init__(self, total: int | None=None, patience: float=2.0):
        ...

    def update(self, done: int, comment: str=''):
        """Show that `done` of `total` are done; `comment` stands behind the bar"""
        ...

def progress(total):
    """A bar of fastprogress, or `None` where nobody would see it"""
    ...

@contextmanager
def signals_held():
    """Handlers written in Python wait until the block ends, in the thread that runs them"""
    ...

def compiled(f):
    """`f`, compiled by numba and cached for the next process; a Ctrl-C waits until it is compiled"""
    ...

def check_idxs(idxs, n):
    """An `IndexError` unless all of `idxs` number one of `n` rows: before a compiled loop follows them into other memory"""
    ...

def writable(o):
    """`o`, an array, or dicts, lists and tuples of them, with a copy of each one that can only be read"""
    ...

class OwnArrays:
    """An object whose arrays can be written after unpickling, too"""

    def __setstate__(self, state):
        ...

def prefetch(a, i: int):
    """Have the processor fetch the cache line of an element, and don't wait for it
    - `a`: An array without gaps
    - `i`: An element, counted from the first as if `a` were flat; one that does not exist does no harm"""
    ...

def aligned_zeros(n: int, dtype: Any=np.float64) -> np.ndarray:
    """`n` zeros that begin at a cache line, so that what is as long as a line, or half as long, lies in one line
    - `n`: How many
    - `dtype`: Of 8 bytes"""
    ...

def in_large_pages(words: Tensor) -> Tensor:
    """Ask the system to keep `words`, in shared memory or mapped, in large pages; it may refuse"""
    ...
