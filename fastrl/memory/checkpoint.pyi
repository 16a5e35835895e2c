"""Write a memory to a folder, and the next time only what is new

A checkpoint that copies a million rows every few minutes stalls the training that it protects. `save_memory` writes a memory to a folder of safetensors files. When it knows what it wrote there the last time, it writes only the rows that came since, and the numbers that changed since. The manifest comes last, in one step, so that the folder always holds the state before or the state after.

Docs: https://fastrl.github.io/fastrl/memory.checkpoint.html.md"""
from typing import Any, overload
from ..core import *
from .files import *
from .manifest import *
from .ring import *
__all__ = ['marked_shape', 'named_fields', 'fields_in', 'save_memory', 'tensors_as_text', 'tensors_from_text', 'files_to_join', 'merged', 'Kept', 'changed_shape']

def named_fields(fields, beside: Any=()) -> list:
    """`fields` for JSON, each with a name of its own
    - `fields`: Of a ring; `None` before its first row
    - `beside`: Names that are taken
    - returns: Per field its path, shape, dtype, and name in files"""
    ...

def fields_in(fields, mutable) -> list:
    """The `fields` that `mutable` names
    - `fields`: From `named_fields`
    - `mutable`: Names as `Ring.put` takes them, of columns or of leaves"""
    ...

def save_memory(folder, kind: str, config: dict, ring, state: Any=None, beside: dict | None=None, mutable: Any=(), kept: Any=None, sampler: Any=None):
    """Write a memory to `folder`, or only what changed since `kept`; hold `locked(ring)` from before you collect `state`
    - `folder`: Made if need be
    - `kind`: The class of the memory
    - `config`: Its settings, data for JSON
    - `ring`: Its `Ring`
    - `state`: Everything else, for `freeze`
    - `beside`: Numbers per row, `(len(ring),)` by name
    - `mutable`: Columns that are expected to change; columns that `Ring.put` changed count without being named
    - `kept`: The `Kept` of the last time; without it everything is written
    - `sampler`: The owner of `beside`
    - returns: `Kept`, for the next time"""
    ...

class _Writer:
    """Writes files to `folder`, notes their names in `new`, and what others had overwritten when the last row was read"""
    folder: Any
    new: Any
    rings: Any
    seams: Any

    def __init__(self, folder, ring):
        ...

    def look(self):
        ...

    def __call__(self, kind, columns, *args, **kwargs):
        ...

def tensors_as_text(tensors: dict) -> dict:
    """Small tensors by name, for JSON"""
    ...

def tensors_from_text(texts: dict) -> dict:
    """The tensors that `tensors_as_text` wrote"""
    ...

def files_to_join(sizes, new: int) -> int:
    """How many of the last files to write once more, in one file with the `new` rows
    - `sizes`: Rows per file, oldest first
    - `new`: Rows that are about to be written"""
    ...

def merged(sizes) -> int:
    """As `files_to_join`, by its earlier name: the last of `sizes` is about to be written, and counts"""
    ...

class _Notes(dict):
    """By column, a flag for each row that changed since it was written, for every `Kept` in `of`"""
    of: Any

    def __init__(self, of: Any=()):
        ...

class Kept:
    """What a memory knows of the folder that it was saved to: its manifest, and the rows that changed since"""
    folder: Any
    manifest: Any
    head: Any
    before: Any
    of: Any
    sums: Any

    def __init__(self, folder, manifest, head, ring, sampler: Any=None, sums: Any=None):
        ...

    def __reduce__(self):
        ...

    def still(self, folder, ring, sampler: Any=None):
        """Is the folder as we left it, for the same ring and sampler, with every change noted?"""
        ...

    def changed(self, ring):
        """By column, a flag for each row that changed since this checkpoint"""
        ...

    def flags(self, ring, sums):
        """Per row of `ring`: did anything in it change?"""
        ...

def changed_shape(shape) -> list:
    """The shape of a column in a file of changes: a column of one number has no axis"""
    ...
marked_shape: Any
