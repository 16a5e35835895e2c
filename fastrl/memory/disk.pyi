"""Save a memory so that nothing is lost and nothing is run: safetensors and JSON, complete or absent

A memory of a million steps is hours of work. As a pickle it is copied whole each time, a crash leaves half of it, and opening it runs code. Here a memory is a folder of plain tensors with a manifest and checksums. `save` writes all of it, `checkpoint` writes what is new, `load` needs nothing but the folder, and after a crash at any moment the folder holds the state before or the state after.

Docs: https://fastrl.github.io/fastrl/memory.disk.html.md"""
from typing import Any, overload
from fastcore.imports import noop
from ..core import *
from .checkpoint import *
from .files import *
from .manifest import *
from .ring import *
from .saved import *
__all__ = ['load_memory', 'remove_files', 'Savable', 'copy_of_now', 'OneMoment', 'warn_of_replaced', 'warn_of_dropped', 'OfClass', 'Lasting', 'settings_of', 'is_ring', 'ring_at', 'move_files']

def load_memory(folder, kind: str, asked: dict, make: Any=noop, restore: Any=None, on_error: str='raise', env_restored: bool=False, mapped: bool=False, **where):
    """Load a memory of any class: the class makes it, and restores what is its own
    - `folder`: Of a saved or checkpointed memory
    - `kind`: The expected class
    - `asked`: Its expected settings
    - `make`: `make(saved)` gives an empty memory, before any row is read
    - `restore`: `restore(empty, saved, ring, beside, state)` gives the memory; by default it is the ring
    - `on_error`: `'skip'` leaves damaged files out
    - `env_restored`: Do the environments resume where they were? Otherwise new rows follow nothing stored
    - `mapped`: Leave the rows in the file?
    - `**where`: `device`, `shared` or `path`, for the `Ring`
    - returns: the memory, its `Saved`"""
    ...

def remove_files(path):
    """Remove the file of the rows, and that of their frames
    - `path`: Where rows live, or not"""
    ...

class Savable:
    """A memory that can be saved: it has a `ring`, and says what else belongs to it"""
    kind: Any
    ring: Any

    def belongings(self, extra: Any=None):
        """A context that holds writers off and gives the arguments of `save_memory`: `ring`, `config`, `state`, …"""
        ...

    @classmethod
    def empty(cls, saved, **how):
        """A memory with the settings of `saved`, and no rows yet"""
        ...

    def restored(self, saved, ring, beside, state):
        """The memory over the rows that were loaded"""
        ...

    def save(self, folder, extra: Any=None):
        """Write all of the memory to `folder`
    - `folder`: Made if need be; a memory that is there is replaced, in one step
    - `extra`: More that belongs to this moment, tensors and data; find it in `Saved(folder).extra`"""
        ...

    def checkpoint(self, folder, extra: Any=None):
        """Write to `folder` what changed since the last time
    - `folder`: The same one each time
    - `extra`: More that belongs to this moment, each time anew; `{}` drops what the last time had without a warning"""
        ...

    @classmethod
    def load_as(cls, folder, asked: Any=None, on_error: Any='raise', env_restored=False, mapped=False, where: Any=None, **how):
        """Load a memory of this class: what every `load` has in common
    - `folder`: Of a saved or checkpointed memory
    - `asked`: Its expected settings
    - `on_error`, `env_restored`, `mapped`, `where`: For `load_memory`
    - `**how`: For `empty`"""
        ...

def copy_of_now(self, memo):
    """A deep copy of one moment: meanwhile no thread adds rows, of which the sampler would know and the ring would not"""
    ...

class OneMoment:
    """A memory that may be copied and pickled while other threads add to it"""
    __deepcopy__: Any

    def __reduce_ex__(self, protocol):
        ...

def warn_of_replaced(folder, n: int):
    """Warn if another memory left more rows there, as after a restart that forgot to load them
    - `folder`: Of the first checkpoint of a memory
    - `n`: How many rows it has"""
    ...

def warn_of_dropped(folder, extra):
    """Warn if the last checkpoint has an `extra` that the next one lacks; reads no more than the manifest
    - `folder`: Of the last checkpoint
    - `extra`: What the next one gets"""
    ...

class OfClass:
    """A method that makes a new object; an object that is there does not have it"""
    f: Any

    def __init__(self, f):
        """- `f`: Called with the class"""
        ...

    def __get__(self, obj, cls):
        ...

class Lasting:
    """Settings that are named in `lasting` stay as they were given"""
    lasting: Any

    def __setattr__(self, k, v):
        ...

def settings_of(sampler) -> dict:
    """The settings of `sampler`; a warning if it was made with more than they name
    - `sampler`: What makes it anew is in its `settings`"""
    ...

def is_ring(path) -> bool:
    """Is it the file of a ring, sound or not?
    - `path`: A file"""
    ...

def ring_at(path) -> Ring:
    """The ring in a file
    - `path`: A file that a ring left
    - returns: A `FrameRing` if its frames lie beside it"""
    ...

def move_files(ring, path):
    """Rename the files of `ring`; a kill in between leaves no rows rather than rows with frames of others
    - `ring`: It lives in a file, and stays usable
    - `path`: Its new one, on the same disk; what is there is replaced"""
    ...
