"""Replace a folder of files in one step, and check everything that a folder claims

A saved memory is several files, and the machine may stop between two of them. A manifest names the files of the memory, with the size and checksum of each, and carries its own checksum. `write_piece` writes files under new names; then `write_manifest` replaces the manifest. Until that moment the folder holds the old state, from then on the new one.

Docs: https://fastrl.github.io/fastrl/memory.manifest.html.md"""
from typing import Any, overload
from contextlib import contextmanager
from pathlib import Path
from ..core import *
from .files import *
__all__ = ['VERSION', 'write_piece', 'pieces_of', 'write_manifest', 'plain_file', 'read_manifest', 'fields_from', 'manifest_head', 'one_writer']

def write_piece(folder: Path, kind: str, columns: dict, meta: dict | None=None, **about) -> dict:
    """Write a file under a new name; nobody reads it until a manifest names it
    - `kind`: `'rows'`, `'frames'`, `'marks'` or `'state'`
    - `columns`: For `write_tensors`
    - `meta`: Strings about the file, for other tools
    - `**about`: More for the manifest
    - returns: One of the manifest's `pieces`"""
    ...

def pieces_of(manifest: dict, kind: str) -> list:
    """The files of one kind, oldest first
    - `kind`: `'rows'`, `'frames'`, `'marks'` or `'state'`"""
    ...
VERSION: int

def write_manifest(folder: Path, manifest: dict, files: Any=()) -> bytes:
    """Replace the manifest of `folder`, in one step
    - `manifest`: Data for JSON
    - `files`: Files that it names and that may not be on the disk yet
    - returns: Its first bytes, unlike those of any other"""
    ...

def plain_file(path: Path, most: int=2 ** 62) -> bool:
    """Is it an ordinary file of at most `most` bytes? A link could lead elsewhere, a pipe keeps a reader waiting
    - `most`: Bytes"""
    ...

def read_manifest(folder) -> dict:
    """The manifest of a saved memory, checked
    - `folder`: Of a saved memory"""
    ...

def fields_from(named) -> list:
    """The fields of a ring that a manifest names
    - `named`: Of each field its path, shape, dtype, and name in files, as in a manifest"""
    ...

def manifest_head(manifest: dict) -> bytes:
    """The first bytes of its file, unlike those of any other
    - `manifest`: As `read_manifest` gave it"""
    ...

@contextmanager
def one_writer(folder: Path):
    """Let only one process and thread write to `folder`, and remove the files that no manifest names in the end
    - `folder`: Made if need be
    - returns: a set; put the files of the new manifest into it"""
    ...
