"""Read pickles of plain objects without running anything they ask for

A pickle is a program: whoever opens it runs what its author wrote. ROSE saves its banks as pickles, and people share them. `read_objects` first looks through such a file, and reads it only if it consists of numbers, strings, lists, dicts, NumPy arrays, torch tensors and the objects of one class. Then stand-ins take the places of everything that the file would call. Anything else that a file asks for is refused by name, and nothing is run.

Docs: https://fastrl.github.io/fastrl/memory.unpickle.html.md"""
from typing import Any, overload
import pickle
from ..core import *
__all__ = ['read_objects']

class _Object:
    """Stands for an object of the one class, whatever its module"""
    fields: Any

    def __setstate__(self, state):
        ...

class _Later:
    """Stands for what the file would make"""
    args: Any
    state: Any

    def __init__(self, *args):
        ...

    def __setstate__(self, state):
        ...

    def value(self):
        ...

class _Dict(_Later):
    items: Any

    def __init__(self, *args):
        ...

    def __setitem__(self, k, v):
        ...

    def value(self):
        ...

class _TheClass(_Later):
    """Stands for `next`, by which our own files look for the class"""

    def __new__(cls, *args):
        ...

class _Made(_Later):
    """Made by the function `f` of its class"""
    made: Any

    def value(self):
        ...

class _DType(_Later):
    """Stands for a `np.dtype`"""
    dtype: Any

    def value(self):
        ...

class _Array(_Later):
    """Stands for a `np.ndarray`"""

    def value(self):
        ...

class _Unpickler(pickle.Unpickler):
    """Reads objects of the class `cls`, and what they are made of, from a pickle that was looked through"""
    cls: Any
    modules: Any

    def __init__(self, f, cls):
        ...

    def find_class(self, module, name):
        ...

def read_objects(raw: bytes, cls: str) -> tuple:
    """A pickled list of objects
    - `raw`: A pickle, perhaps with more behind its end
    - returns: By field, the value that each object has; the modules that the file names; the length of the pickle"""
    ...
