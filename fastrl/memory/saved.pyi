"""Read a memory that was saved to a folder, and trust nothing in it

A folder that you load may be damaged, incomplete, or written by somebody who means you harm. `Saved` compares sizes, names, shapes and dtypes of all files with the manifest before it makes room for a single row, and the checksum of every row before you get the memory (`mapped` rows are not read, and not compared). `verify` lists every problem, `read` gives you the ring, and `on_error='skip'` saves what can be saved.

Docs: https://fastrl.github.io/fastrl/memory.saved.html.md"""
from typing import Any, overload
from ..core import *
from .checkpoint import *
from .files import *
from .manifest import *
from .ring import *
__all__ = ['log', 'Saved', 'of_one_state', 'verify', 'Moved']
log: Any

class Saved:
    """A memory in a folder, as its manifest describes it"""
    folder: Any
    manifest: Any
    kind: Any
    config: Any
    ring: Any
    skipped: Any
    renumbered: Any

    def __init__(self, folder):
        """- `folder`: Of a saved or checkpointed memory"""
        ...

    @property
    def total(self):
        ...

    def __len__(self):
        ...

    def __repr__(self):
        ...

    def kept(self, ring, sampler: Any=None):
        """For the next checkpoint of the loaded `ring` to the same folder"""
        ...

    def expect(self, kind: str, **asked):
        """A `LoadError` unless the folder holds a `kind` with these settings
        - `kind`: The expected class
        - `**asked`: Its expected settings"""
        ...

    def tensors(self, piece: dict, checksum: bool=True) -> dict:
        """The tensors of a file, mapped if they are rows, if they agree with the manifest
    - `piece`: From the manifest
    - `checksum`: Read all of it, to compare its checksum?"""
        ...

    def scan(self, piece: dict, use: Any=None):
        """Read a file once and use its rows, but raise in the end if it does not have its checksum
    - `piece`: From the manifest
    - `use`: For `scan_tensors`"""
        ...

    def problems(self) -> dict:
        """The damaged files by name, each with its problem in words"""
        ...

    def state(self):
        """The state that was saved with the rows"""
        ...

    @property
    def extra(self):
        """What `save` or `checkpoint` got as `extra`; `None` if they got nothing"""
        ...

    def replaced(self) -> bool:
        """Did somebody save there since, so that files may be gone which this one names?"""
        ...

    def read(self, on_error: str='raise', mapped: bool=False, **where):
        """The rows of a saved memory
    - `on_error`: `'skip'` leaves damaged files out, and logs how many rows they had
    - `mapped`: Leave the rows in the file, to be read when they are drawn? You cannot add to them then
    - `**where`: `device`, `shared` or `path`, for the `Ring`
    - returns: the ring, and the numbers per row by name"""
        ...

def of_one_state(folder, use):
    """Use what was saved to `folder`, and begin anew if somebody saves there meanwhile and replaces its files
    - `folder`: Of a saved memory
    - `use`: Called with its `Saved`
    - returns: what `use` returns"""
    ...

def verify(folder) -> list:
    """Every problem of a saved memory in words; an empty list if it is sound
    - `folder`: Of a saved memory"""
    ...

class Moved:
    """New serial numbers for runs of rows: unchanged, or from 0 on where runs are missing"""
    first: Any
    stop: Any
    new: Any
    total: Any
    gaps: Any

    def __init__(self, first, lens, gaps):
        ...

    def base(self, cap):
        ...

    def __call__(self, serials):
        """New numbers; a missing row gets that of the next one"""
        ...

    def there(self, serials):
        ...
