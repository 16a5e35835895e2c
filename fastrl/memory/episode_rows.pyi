"""Episodes in memory, in shared memory, or in one mapped file

Most agents learn from what fits into memory. A `RingBufferDataset` keeps the steps of whole episodes as rows of one `Ring`. If the oldest go first, an episode lies in one piece, perhaps around the end. If others may go (a score decides, or an evictor of your own), its steps go wherever rows are free, and an index says where. With a `path` all of it is still there tomorrow; `save`, `checkpoint` and `load` are those of every memory.

Docs: https://fastrl.github.io/fastrl/memory.episode_rows.html.md"""
from typing import Any, overload
from contextlib import contextmanager
from ..core import *
from .dataset import EpisodeDataset
from .disk import Lasting, Savable
__all__ = ['RingBufferDataset']

class RingBufferDataset(Lasting, EpisodeDataset, Savable):
    """Episodes in memory"""
    kind: Any
    lasting: Any
    half_precision: Any
    ring: Any
    places: Any
    free: Any
    table: Any

    def __init__(self, capacity: int, device: Any='cpu', half_precision: bool=False, evictor: Any=None, shared: bool=False, path: Any=None, max_episodes: int | None=None):
        """- `capacity`: The most steps
        - `device`: Where they live
        - `half_precision`: Keep float32 fields as float16? They come back as float32
        - `evictor`: Which episode goes when it is full: `FIFOEvictor()` by default, a `ScoreEvictor`, or yours
        - `shared`: In shared memory from the start? It moves there when workers are asked for
        - `path`: A file to live in, with two more beside it: workers can draw, and all is there the next time
        - `max_episodes`: The most episodes; without it any number of them fits"""
        ...

    @property
    def n_places(self):
        ...

    @property
    def device(self):
        ...

    @property
    def step_words(self):
        ...

    def prepare(self, schema):
        """Fix the schema with the first episode, and what each field is stored as"""
        ...

    def fix_schema(self, schema):
        """From now on all steps are of this `schema`"""
        ...

    def store_steps(self, cols, n, staged):
        """Write the rows of an episode"""
        ...

    def steps_taken(self):
        """If the oldest go first, rows that were written for an episode that never came take room, too"""
        ...

    def remove_steps(self, *line):
        """The rows of an episode become free"""
        ...

    def forget_steps(self, lines):
        """All rows become free when they are counted anew"""
        ...

    def move_steps(self, old, new, n):
        """The steps stay; only their positions change"""
        ...

    def read_steps(self, picks, T):
        """The packed rows of `picks`, `(sequences, T, words)`"""
        ...

    def columns_of(self, block):
        """What `read_steps` gave, as columns"""
        ...

    def check_storable(self, schema, cols):
        """Raise if float16 cannot hold these columns"""
        ...

    def lock_files(self):
        """Become the one that writes to the files"""
        ...

    def only_writer(self):
        """A context in which no other process adds an episode to shared memory; an error if one has taken over"""
        ...

    def share(self) -> bool:
        """Move what is stored to shared memory, where workers see it; not from another device"""
        ...

    def find_schema(self):
        """Open the file that another process made with the first episode; what it shares without one cannot be seen"""
        ...

    def match_steps(self, lines):
        """After an interruption: which rows are free, and which is the next position"""
        ...

    def __getstate__(self):
        ...

    def __setstate__(self, state):
        ...

    @contextmanager
    def belongings(self, extra: Any=None):
        """Everything to save, while nobody writes"""
        ...

    def checkpoint(self, folder, extra: Any=None):
        """Write to `folder` what came since the last time; all of it, if any episode may go
    - `folder`: The same one each time
    - `extra`: More that belongs to this moment"""
        ...

    @classmethod
    def load(cls, folder, evictor: Any=None, device: Any='cpu', shared: bool=False, path: Any=None) -> RingBufferDataset:
        """The episodes that were saved
    - `folder`: Of a saved or checkpointed dataset
    - `evictor`: As it was
    - `device`: Where the episodes should live
    - `shared`: In shared memory?
    - `path`: Or in a new file?"""
        ...

    @classmethod
    def empty(cls, saved, evictor, device, shared, path):
        """A dataset with the settings of `saved`, and no episode yet"""
        ...

    def restored(self, saved, ring, beside, state):
        """The dataset over the rows that were loaded"""
        ...

class _WhoGets:
    """A new process gets shared rows themselves; a copy gets the whole episodes that are there when it is made"""
    dataset: Any
    parts: Any

    def __init__(self, dataset, parts):
        ...

    def __reduce__(self):
        ...
