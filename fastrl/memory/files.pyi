"""Write tensors, and the data around them, to files that are complete or absent, and run nothing when they are read

Tensors are usually saved as a pickle. A pickle runs code when you open it, and a crash leaves half of one behind. Here `write_tensors` and `read_tensors` use safetensors files, `freeze` puts the numbers and words around the tensors into JSON, `put_file` and `put_files` replace one file, or several, in one step, and a `FileLock` keeps two writers apart.

Docs: https://fastrl.github.io/fastrl/memory.files.html.md"""
from typing import Any, overload
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import torch
from torch import Tensor
from ..core import *
__all__ = ['file_dtypes', 'Claim', 'blocks', 'xxh64', 'write_tensors', 'checksum', 'LoadError', 'read_tensors', 'read_meta', 'as_dtype', 'scan_tensors', 'freeze', 'thaw', 'frozen_items', 'sync', 'put_file', 'put_twice', 'FileLock', 'put_files']
file_dtypes: Any

def blocks(t: Tensor, spans: Any=None):
    """The bytes of `t`'s rows in order, a few megabytes at a time
    - `t`: With a first axis
    - `spans`: Rows as pairs `(first, stop)`; all by default
    - returns: iterator of arrays"""
    ...

class _Threads(ThreadPoolExecutor):
    """Threads; at the end of a program the caller does their work"""

    def submit(self, f, *args):
        ...

def xxh64(data) -> int:
    """The checksum XXH64 of `data`, as other tools give it
    - `data`: Bytes, or an array of them"""
    ...

def write_tensors(path, columns: dict, meta: dict | None=None) -> dict:
    """Write a safetensors file; `put_file` sees it through to the disk
    - `path`: A new file
    - `columns`: Tensors by name; or the dtype, the shape and the blocks of bytes of each
    - `meta`: Strings about the file, for other tools
    - returns: Its name, size and checksum"""
    ...

def checksum(columns: dict) -> int:
    """One number for the names and bytes of all `columns`, in the order of their names
    - `columns`: Tensors by name"""
    ...

class LoadError(ValueError):
    """A saved memory, or one of its files, cannot be loaded"""

def read_tensors(path, mapped: bool=True) -> dict:
    """The tensors of a safetensors file by name
    - `path`: A safetensors file
    - `mapped`: Share the file's pages? Should it become shorter, the next access ends the program
    - returns: Tensors; what you write to them stays with you"""
    ...

def read_meta(path) -> dict:
    """The strings that `write_tensors` wrote into the header as `meta`
    - `path`: A safetensors file
    - returns: Strings by name"""
    ...

def as_dtype(col: Tensor, dtype: torch.dtype) -> Tensor:
    """The column that was written, also where the file holds its bytes
    - `col`: From `read_tensors`
    - `dtype`: Of the column that was written
    - returns: A view"""
    ...

def scan_tensors(path, use: Any=None, kind: str='xxh64'):
    """Read a file once: compute its checksum, and use its rows on the way
    - `path`: A safetensors file
    - `use`: `use(name, row, rows)` is called by several threads, with some rows at a time; `row` numbers the first
    - `kind`: Of the checksum; `'crc'` is that of older files, which takes one thread
    - returns: the checksum, as `write_tensors` gave it"""
    ...

def freeze(o, tensors: dict, path: str='it'):
    """`o` with a name in the place of each tensor
    - `o`: Dicts, lists and tuples of tensors, arrays, numbers, strings and None
    - `tensors`: Receives the tensors, under new names
    - `path`: The name of `o` in an error
    - returns: data for JSON"""
    ...

def thaw(o, tensors: dict):
    """Undo `freeze`, with tensors of its own
    - `o`: From `freeze`
    - `tensors`: By name; each is used once"""
    ...

def frozen_items(o) -> list:
    """The items of a dict that was frozen
    - `o`: From `freeze`
    - returns: Pairs, each still frozen; none if this was no dict"""
    ...

def sync(path):
    """Wait until a file, or the file names in a folder, are on the disk
    - `path`: A file or a folder"""
    ...

def put_file(path: Path, write, others: Any=()):
    """Write a file and put it in the place of `path`, in one step, once it is on the disk
    - `write`: Text, bytes, or the `Path` of a file to copy; or called with the path of a new file, to open in mode `'xb'`
    - `others`: New files in its folder that have to be on the disk before it gets its name"""
    ...

def put_twice(folder, path, put):
    """Put a file at `path`, and keep the latest one of each path in `folder`
    - `folder`: Of the caller; without one, or once it is gone, only `path` is written
    - `path`: A file anywhere
    - `put`: Called with a path, to put the file there"""
    ...

class FileLock:
    """A lock on a file or a folder, held until `let_go`, or until this object is gone"""
    alone: Any

    def __init__(self, path, wait=False, alone=False):
        """- `wait`: Wait for it? Otherwise a lock that is taken is an error
        - `alone`: Does it end with this process, although processes that it forked run on?"""
        ...

    def let_go(self):
        """Unlock it"""
        ...

    def is_of(self, path) -> bool:
        """Is what it locks still what is called `path`?"""
        ...

    def __enter__(self):
        ...

    def __exit__(self):
        ...
Claim = FileLock

def leave_locks():
    """In a forked process that only reads: let the locks that it holds, too, end with the process that took them"""
    ...

def put_files(writes: dict):
    """Write several files and put all of them in their places at one moment, once they are on the disk
    - `writes`: By path, all in one folder: what `put_file` takes"""
    ...
