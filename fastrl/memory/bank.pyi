"""Collect experience in many workers, each into its own bank, then save, merge and draw from them

Many workers collect experience, each in a process of its own. A worker adds what its environment gives to an `ExperienceBank` and saves it as one file; `merge_banks` makes one bank of many files. The API is that of [ROSE](https://github.com/radical-cybertools/ROSE). Underneath, the rows lie in a `Ring`, so a batch costs the same from a thousand experiences as from a million.

Docs: https://fastrl.github.io/fastrl/memory.bank.html.md"""
from typing import Any, overload
from pathlib import Path
from ..core import *
from .bank_rows import *
from .bankfile import *
from .disk import Lasting
from .forms import *
from .seen import Seen
__all__ = ['log', 'Merge', 'ExperienceBank', 'BankUnion', 'merge_banks', 'Experience', 'bank_about', 'create_experience']
log: Any

class ExperienceBank(Lasting):
    """Experiences of one worker, or of many"""
    lasting: Any
    max_size: Any
    session_id: Any
    date: Any
    rng: Any
    lock: BankLock

    def __init__(self, max_size: int | None=None, session_id: str | None=None, *, seed: Any=None, frame_stack: int | None=None):
        """- `max_size`: The most experiences; without it the bank grows
        - `session_id`: A name; a random one if you give none
        - `seed`: Makes the draws reproducible
        - `frame_stack`: Frames in a `state`, each stored once; 0: it is one observation, no stack"""
        ...

    def clear(self):
        """Forget all experiences; from now on it is another bank"""
        ...

    @property
    def ring(self):
        """Where the rows lie; with `frame_stack` they have numbers of frames"""
        ...

    @property
    def frame_stack(self):
        ...

    @property
    def fields(self):
        """Those of `ring`, with stacks in the place of numbers"""
        ...

    @property
    def n_frames(self):
        """How many frames are stored"""
        ...

    def __len__(self):
        ...

    def __repr__(self):
        ...

    def __getstate__(self):
        ...

    def __setstate__(self, state):
        ...

    def add(self, experience: Experience):
        """Add an experience"""
        ...

    def add_batch(self, experiences):
        """Add experiences, in order: all of them or none
    - `experiences`: A list of them; or a dict of columns by field, perhaps with a list `info`"""
        ...

    def __iter__(self):
        ...

    def get_recent(self, n: int) -> list:
        """The newest experiences, the oldest of them first
    - `n`: How many; all, if there are fewer"""
        ...

    def sample(self, batch_size: int, replace: bool=True) -> list:
        """Draw experiences
    - `batch_size`: How many
    - `replace`: May one be drawn twice?"""
        ...

    def sample_batch(self, batch_size: int, replace: bool=True) -> BD:
        """Draw a batch of tensors
    - `batch_size`: How many
    - `replace`: May one be drawn twice?"""
        ...

    def save(self, work_dir: Any='.', bank_file: str | None=None) -> str:
        """Write all experiences to a file
    - `work_dir`: Made if it does not exist
    - `bank_file`: The name of the file, if you want another one
    - returns: Its path"""
        ...

    @classmethod
    def load(cls, filepath, max_size: int | None=None) -> ExperienceBank:
        """The bank that was saved in a file
    - `filepath`: Where a bank was saved, by this library or by ROSE
    - `max_size`: Another limit than it had"""
        ...

    @classmethod
    def list_saved_banks(cls, work_dir: Any='.') -> list:
        """The banks in a folder, the oldest first
    - `work_dir`: A folder
    - returns: of their paths"""
        ...

    def merge(self, other, max_size: Any='sum') -> ExperienceBank:
        """A new bank with the experiences of both
    - `other`: Another bank
    - `max_size`: The limit of the new one; by default the sum of both limits, or none if one has none"""
        ...

    def merge_inplace(self, other):
        """Add those experiences of another bank that are not here yet
    - `other`: Another bank"""
        ...

    def check_fits(self, other):
        """Raise if `sample_batch` can draw from each of the banks, and could not from both; change nothing
    - `other`: Another bank"""
        ...

    def stamp(self, id: str):
        """Count all experiences as written by `id`, whoever wrote them
    - `id`: Of no other bank"""
        ...

    def reader(self, seed: Any=None) -> ExperienceBank:
        """A bank with the rows that are here now; it copies them when it is written, and so do you by `own_rows`
    - `seed`: Makes the draws reproducible"""
        ...

    @overload
    def __getitem__(self, o: int) -> Experience:
        ...

    @overload
    def __getitem__(self, o: slice) -> list[Experience]:
        ...

class BankUnion:
    """The union of the banks in the files that you add: one bank, with each row once"""
    seen: Seen
    left_out: Any

    def __init__(self, max_size: int | None=None):
        """- `max_size`: Of the bank"""
        ...

    def __getstate__(self):
        ...

    def __setstate__(self, state):
        ...

    def add(self, path: Path, bank: ExperienceBank | None=None) -> int:
        """Add those rows of a file that did not come before
    - `bank`: The one in the file, if you have loaded it already
    - returns: How many rows were new"""
        ...

    @property
    def bank(self) -> ExperienceBank:
        """All rows so far; it takes a name that follows from them"""
        ...

    def add_files(self, files, on_error: str='raise'):
        """Add files in the order of their names, each of them once, whatever leads to it
    - `files`: Of banks
    - `on_error`: `'skip'` leaves files out that cannot be read, and notes why in `left_out`"""
        ...
Merge = BankUnion

def merge_banks(files, max_size: int | None=None, on_error: str='raise') -> ExperienceBank:
    """One bank of many files, in the order of their names
    - `files`: Of banks
    - `max_size`: The limit of the new one; the oldest experiences go first
    - `on_error`: `'skip'` leaves files out that cannot be read, logs why, and lets them be"""
    ...

class _Reader(ExperienceBank):
    """Reads the rows of a bank, until it has rows of its own"""

    def own_rows(self):
        """Copy the rows: the other bank may be written now"""
        ...

    def clear(self):
        ...
