"""Write the columns of a bank to a file, and read back what is sound

A bank is saved in one of two formats. `.safetensors` holds columns: it is fast, and other tools read it. `.pkl` holds a list of objects, which ROSE and plain Python read. Both carry the same facts about the bank, `about`, and a checksum. `write_bank` and `read_bank` choose between them; neither knows what a bank does with its columns.

Docs: https://fastrl.github.io/fastrl/memory.bankfile.html.md"""
from typing import Any, overload
import pickle
from contextlib import contextmanager
from pathlib import Path
from ..core import *
from .bank_frames import *
from .forms import *
__all__ = ['write_columns', 'read_columns', 'write_pickle', 'read_pickle', 'write_bank', 'load_errors', 'read_bank', 'bank_files', 'write_folder', 'folder_said', 'banks_gone', 'bank_about', 'banks_in', 'free_path', 'put_named']

def write_columns(path, cols: dict, forms: list, texts: list, about: dict):
    """Write a `.safetensors` file
    - `path`: A new file
    - `cols`: Columns by path, some of them perhaps `Stacks`
    - `forms`: That `cols['form',]` numbers
    - `texts`: From `row_text`, one per row
    - `about`: What the file says of the bank"""
    ...

def read_columns(path: Path) -> tuple:
    """The columns of a bank, if file and head are sound
    - `path`: A `.safetensors` file
    - returns: What `write_columns` was given: columns, forms, texts and `about`"""
    ...

def write_pickle(path: Path, cols: dict, forms: list, texts: list, about: dict):
    """Write a `.pkl` file
    - `path`: A new file
    - `cols`: Columns by path, some of them perhaps `Stacks`: the file has them whole
    - `forms`: That `cols['form',]` numbers
    - `texts`: From `row_text`, one per row
    - `about`: What the file says of the bank"""
    ...

class _Called:
    """What a pickle gets by calling `f`"""
    f: Any
    args: Any

    def __init__(self, f, *args):
        ...

    def __reduce__(self):
        ...

class _Pickler(pickle.Pickler):

    def reducer_override(self, o):
        ...

def read_pickle(path: Path) -> tuple:
    """The columns of a bank, if the file is sound; nothing in it is run
    - `path`: A `.pkl` file, of this library or of ROSE
    - returns: What `write_pickle` was given; ROSE's files have no `source` and `episode`, and their `about` is short"""
    ...

def write_bank(path: Path, *args):
    """Put a bank in the place of `path`, whole or not at all
    - `*args`: As `write_columns` takes them"""
    ...

@contextmanager
def load_errors(path):
    """Whatever goes wrong within is a `LoadError` that names the file
    - `path`: The file being loaded"""
    ...

def read_bank(path: Path) -> tuple:
    """What was saved in a file of either format
    - returns: Columns by path, forms, texts, and `about`"""
    ...

def bank_files(folder: Path, last: str | None=None) -> list:
    """The banks of a folder, in the order of iterations and names
    - `last`: The name of the last one that counts, there or not; all of them by default
    - returns: Of names"""
    ...

def write_folder(folder: Path, last: str | None=None, max_size: int | None=None, name: str='memory.json', banks: int | None=None) -> Path:
    """Put a file into a folder of banks that says which of them are its memory
    - `last`: The name of the last bank that counts; none does by default
    - `max_size`: The most experiences; the oldest go first
    - `name`: Of the file
    - `banks`: How many count; without it nobody misses one that is removed"""
    ...

def folder_said(path: Path) -> tuple:
    """What `write_folder` wrote into a file
    - `path`: Any file
    - returns: The names of the banks, in their order, and the most experiences; `None` if it is something else"""
    ...

def banks_gone(path: Path) -> int:
    """How many of the banks that a file counts are no longer beside it
    - `path`: That `write_folder` wrote"""
    ...

def bank_about(path: Path) -> dict:
    """What a file says of the bank in it; `None` if it holds none, is damaged, or cannot be read
    - `path`: A file
    - returns: With `id`, `date`, `total`; in our files also `n`, `session_id`, `max_size`, `sources` and `spans`"""
    ...

def banks_in(folder: Path):
    """The banks in a folder, and a warning for each file that cannot be read: it may be one
    - returns: pairs of a path and what `bank_about` says of the bank there"""
    ...

def free_path(path: Path, ours) -> Path:
    """`path`, or the same name with the first number that makes it free
    - `ours`: Called with what `bank_about` says of the bank there: may it be replaced?"""
    ...

def put_named(path: Path, put, ours: Any=None) -> Path:
    """Put a bank under the first name that is free, while nobody else chooses one in that folder
    - `path`: Its folder is made if need be
    - `put`: Called with the path that the file gets, to put it there
    - `ours`: As `free_path` takes it; by default the file at `path` is replaced, whosever it is
    - returns: The one it got"""
    ...
