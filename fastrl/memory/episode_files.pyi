"""Episodes in files, one each: more than memory holds, and safe from crashes

Some collections outgrow memory, or should outlive the program. An `IndividualFileDataset` writes one safetensors file per episode and reads just the steps that are drawn. The folder is what is saved: open it again, and everything is there. A file is written under another name, flushed to the disk, and renamed, so a crash leaves it whole or not at all. Damaged files are set aside, and all others stay in use.

Docs: https://fastrl.github.io/fastrl/memory.episode_files.html.md"""
from typing import Any, overload
from pathlib import Path
from ..core import *
from .dataset import EpisodeDataset
from .disk import Lasting
__all__ = ['log', 'episode_file', 'episode_files', 'episode_head', 'check_episode_file', 'write_episode_file', 'read_episode_file', 'IndividualFileDataset']
log: Any

def episode_file(n: int, id: int, tag: int) -> str:
    """The name of an episode's file
    - `n`: Steps
    - `id`: Number of the episode
    - `tag`: Four times the time, plus 1 for an `.npz`, 2 for a `.pt`"""
    ...

def episode_files(folder) -> set:
    """All files in `folder` that have the name of an episode
    - `folder`: Of a dataset
    - returns: of length, number and tag"""
    ...

def episode_head(path: Path, n: int):
    """What is in the file of an episode of `n` steps, or a `LoadError`
    - `path`: Of an episode's file
    - `n`: Its steps
    - returns: `FieldType` by path; where in the file each begins"""
    ...

def check_episode_file(path: Path, n: int) -> dict:
    """Read all of a file, and compare its checksum; a `LoadError` if it is damaged
    - `path`: Of an episode's file
    - `n`: Its steps
    - returns: Its tensors by name"""
    ...

def write_episode_file(path: Path, cols: dict):
    """Write an episode, and wait until it is on the disk
    - `path`: A new file
    - `cols`: Tensors by path"""
    ...

def read_episode_file(path: Path, n: int) -> dict:
    """All steps of an episode, checked; the file stays where it is, also if it is damaged
    - `path`: Of an episode's file
    - `n`: Its steps
    - returns: Columns by path"""
    ...

class IndividualFileDataset(Lasting, EpisodeDataset):
    """Episodes in files, one each; `get_loader` batches them, a plain `DataLoader` needs `batch_size=None`"""
    lasting: Any
    directory: Any

    def __init__(self, capacity: int, directory: Any='individual_file_dataset', evictor: Any=None, max_episodes: int=2 ** 20):
        """- `capacity`: The most steps
        - `directory`: Made if need be; existing episodes are taken over
        - `evictor`: Which episode goes when it is full: `FIFOEvictor()` by default, a `ScoreEvictor`, or your own
        - `max_episodes`: The most episodes"""
        ...

    @property
    def step_words(self):
        ...

    def find_schema(self):
        """Read it from a file that another process wrote"""
        ...

    def check_storable(self, schema, cols):
        """Raise for a dtype that safetensors lacks"""
        ...

    def lock_files(self):
        """Become the one that writes to the folder"""
        ...

    def only_writer(self):
        """A context in which no other process adds an episode; an error if a forked one, which has the lock, has taken over"""
        ...

    def not_seen(self) -> str:
        """In words: episodes that came by another process; `''` without"""
        ...

    def stage_steps(self, cols, n):
        """Write the file under another name, so that a full disk costs no stored episode"""
        ...

    def store_steps(self, cols, n, staged):
        """Give the file its name"""
        ...

    def match_steps(self, lines):
        """Remove files that came or went when an `add_episode` was interrupted"""
        ...

    def remove_steps(self, first, n, id, tag):
        """Remove the file of an episode"""
        ...

    def fix_schema(self, schema):
        """From now on all steps are of this `schema`"""
        ...

    def read_steps(self, picks, T):
        """The steps of `picks`, `(sequences, T, words)`; in each sequence the columns one after another"""
        ...

    def columns_of(self, block):
        """What `read_steps` gave, as columns"""
        ...

    def restore_order(self, counts, lines) -> bool:
        """Put the episodes into the order of a saved table, so that draws continue as they would have
    - `counts`: Of the table when it was saved
    - `lines`: Of that table
    - returns: Does the folder hold just these episodes? If not, nothing changes"""
        ...

    def settle(self):
        """Judge the files that readers could not read"""
        ...

    @property
    def damaged(self) -> list:
        """Files that were found damaged"""
        ...

    def verify(self) -> list:
        """Read all files, compare their checksums, and set aside the damaged ones; gives `damaged`"""
        ...

    def share(self) -> bool:
        """Put the table where workers see it"""
        ...

    def __getstate__(self):
        ...

    def __setstate__(self, state):
        ...
