"""Read pickles of plain objects without running anything they ask for

A pickle is a program: whoever opens it runs what its author wrote. ROSE saves its banks as pickles, and people share them. `read_objects` reads such a file with an interpreter that knows numbers, strings, NumPy arrays, torch tensors and the objects of one class, and hands these back as dicts. Anything else that a file asks for is refused by name, and nothing is run.

Docs: https://fastrl.github.io/fastrl/memory.unpickle.html.md"""
from typing import Any, overload
import pickle
__all__ = ['read_objects']

class _Object:
    """Stands for an object of the one class, whatever its module"""
    fields: Any

    def __setstate__(self, state):
        ...

class _DType:
    """Stands for a `np.dtype`"""
    dtype: Any

    def __init__(self, name, align=False, copy=False):
        ...

    def __setstate__(self, state):
        ...

class _Array:
    """Stands for a `np.ndarray`"""
    value: Any

    def __init__(self, *args):
        ...

    def __setstate__(self, state):
        ...

class _Unpickler(pickle._Unpickler):
    """Reads objects of the class `cls`, and what they are made of"""
    dispatch: Any
    cls: Any
    modules: Any

    def __init__(self, f, cls):
        ...

    def find_class(self, module, name):
        ...
pickle: Any

def read_objects(raw: bytes, cls: str) -> tuple:
    """A pickled list of objects, as dicts

    - `raw`: A pickle, perhaps with more behind its end
    - `cls`: The name of the only class that objects may have, in any module
    - returns: The fields of each object, the modules that the file names, and the length of the pickle"""
    ...
