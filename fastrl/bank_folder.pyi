"""A folder of banks that only grows: each task adds one file, whole or not at all, and the memory is all of them merged

A memory that is rewritten in each round can be lost in each round: a full disk or a kill between two writes takes everything. A `BankFolder` never rewrites a bank. Each task of each iteration commits one file: what it left is read and checked, and the file gets its name once it is on the disk. The memory is the files that are there, merged; a damaged file goes into quarantine and takes nothing along.

Docs: https://fastrl.github.io/fastrl/bank_folder.html.md"""
from typing import Any, overload
from contextlib import contextmanager
from pathlib import Path
from .engines import Ctx
from .memory.bank import ExperienceBank
__all__ = ['BankFolder']

class BankFolder:
    """The banks that were committed to a folder, and a quarantine for what cannot be used"""
    folder: Path

    def __init__(self, folder):
        """- `folder`: Made by the first `commit`"""
        ...

    @property
    def files(self):
        """In the order of iterations and names"""
        ...

    def path(self, ctx):
        """The file of the bank of an iteration and an environment"""
        ...

    def has(self, ctx):
        """Did this environment commit its bank in this iteration?"""
        ...

    def count(self, ctx):
        """How many experiences it committed; read whole if need be, so that an error says why it cannot be read"""
        ...

    def merged(self, max_size: Any=None) -> ExperienceBank:
        """All banks as one"""
        ...

    @contextmanager
    def locked(self):
        """Make the folder if need be, and let nobody else lock it"""
        ...

    def check_place(self):
        """Raise if the folder that is `locked` was moved or removed"""
        ...

    def set_aside(self, name: str, put):
        """Put a file into the quarantine
    - `name`: What its name begins with
    - `put`: What `put_file` takes"""
        ...

    def commit(self, ctx: Ctx, files: dict, new: bool=True) -> list:
        """Make one bank of the files that a task left; nothing of them counts before all of it does
    - `ctx`: The iteration and the environment
    - `files`: Their bytes, by name
    - `new`: Did the task make them? Else rows that came before count once
    - returns: what is wrong with which file"""
        ...

    def gather(self, max_size: Any=None):
        """Merge what came since the last time
    - `max_size`: The most experiences; the oldest go first
    - returns: the bank, and `(name, error)` of each file that had to be set aside"""
        ...

    def reader(self, seed: Any=None) -> ExperienceBank:
        """What `gather` has merged
    - `seed`: Makes the draws reproducible"""
        ...

    def save_memory(self, name: Any='memory.json'):
        """Note in a file what `gather` has merged
    - `name`: Of the file
    - returns: its path"""
        ...

    def sweep(self):
        """Remove what killed writers left"""
        ...
