"""What all datasets of episodes share: they take whole episodes, make room, count, and give them back

An episode should enter a memory whole or not at all, whatever interrupts you: a full disk, Ctrl-C, a score function that raises. `EpisodeDataset` sees to that, for memory and files alike. It checks each episode, asks the evictor who makes room, and keeps exact counts. Subclasses only store, read and remove steps; this page writes one in fifteen lines.

Docs: https://fastrl.github.io/fastrl/memory.dataset.html.md"""
from typing import Any, overload
from fastrl.memory.loader import EpisodeLoader
from abc import ABC
from dataclasses import dataclass, field
import torch
from torch.utils.data import IterableDataset
from ..core import *
from .table import Table
__all__ = ['dataset_words', 'stored_as', 'FieldType', 'device_or_cpu', 'fit_schema', 'Evictor', 'FIFOEvictor', 'ScoreEvictor', 'is_fifo', 'EpisodeDataset']

@dataclass(frozen=True)
class FieldType:
    """What a field holds at each step"""
    shape: tuple
    dtype: torch.dtype
    device: torch.device = field(default=torch.device('cpu'), compare=False)

    def __repr__(self):
        ...

def device_or_cpu(name: str) -> torch.device:
    """The device called `name`, or the CPU if it is not here
    - `name`: Of a device that another machine may have had"""
    ...

def fit_schema(data: dict, schema, lead: tuple):
    """The tensors of `data`; a `ValueError` names the one that does not fit
    - `data`: A step, or columns of steps
    - `schema`: `FieldType` by path; `None` before the first step
    - `lead`: Axes in front of each field: `()` for a step, `(n,)` for `n` steps
    - returns: the schema, tensors by path"""
    ...

class Evictor(ABC):
    """Decides which episode goes: derive from it, and define `evict`"""
    score: Any

    def __call__(self, *args, **kwargs) -> int:
        ...

    def evict(self, *args, **kwargs) -> int:
        """The number of the episode that goes, counted in the order in which they came"""
        ...

class FIFOEvictor(Evictor):
    """The oldest episode goes first"""

    def evict(self, *args, **kwargs) -> int:
        ...

    def __repr__(self):
        ...

class ScoreEvictor(Evictor):
    """The episode with the lowest score goes first, of equals the older one"""
    score: Any

    def __init__(self, score):
        """- `score`: Called with each new episode, a `BD` of its steps; gives a number, and changes nothing"""
        ...

    def evict(self, *args, **kwargs):
        ...

    def __repr__(self):
        ...

def is_fifo(evictor) -> bool:
    """Does the oldest episode always go first?
    - `evictor`: `None` for the default"""
    ...

class EpisodeDataset(IterableDataset):
    """Whole episodes, `capacity` steps at most; `get_loader` batches them, a plain `DataLoader` needs `batch_size=None`"""
    __radd__: Any
    capacity: Any
    evictor: Any
    max_episodes: Any
    table: Table
    writing: Any
    other: Any

    def __init__(self, capacity: int, evictor: Any=None, max_episodes: int | None=None, **where):
        """- `capacity`: The most steps
        - `evictor`: Which episode goes when it is full: `FIFOEvictor()` by default, a `ScoreEvictor`, or your own
        - `max_episodes`: The most episodes; without it any number of them fits
        - `**where`: For the table: `shared` or `path`"""
        ...

    @property
    def scored(self):
        ...

    @property
    def any_order(self):
        ...

    @property
    def table_slots(self):
        ...

    @property
    def schema(self):
        ...

    @property
    def others_added(self):
        ...

    @property
    def other_dataset(self):
        ...

    def __len__(self):
        ...

    def __iter__(self):
        """Whole episodes at random, without end; `get_loader` batches them, a plain `DataLoader` needs `batch_size=None`"""
        ...

    def __add__(self, other):
        ...

    def check_storable(self, schema, cols):
        """Raise if these columns cannot be stored"""
        ...

    def lock_files(self):
        """A lock on the files, so that nobody else writes to them; `None` if nobody can"""
        ...

    def only_writer(self):
        """A context in which no other process adds an episode; an error if one has taken over"""
        ...

    def prepare(self, schema):
        """Make room for steps of this `schema`; called before each episode"""
        ...

    def stage_steps(self, cols, n):
        """Do what may fail before others make room; `store_steps` gets the result"""
        ...

    def steps_taken(self):
        """Steps that fill the room"""
        ...

    def move_steps(self, old, new, n):
        """Give the `n` positions from `old` on those from `new` on"""
        ...

    def match_steps(self, lines):
        """After an interruption: keep the steps of these entries, and no others"""
        ...

    def forget_steps(self, lines):
        """Remove the steps of all episodes"""
        ...

    def find_schema(self):
        """Find the schema that another process fixed with the first episode"""
        ...

    def not_seen(self) -> str:
        """In words: episodes that came by another process, and that this dataset does not know of; `''` without"""
        ...

    def settle(self):
        """Take out episodes that readers found damaged"""
        ...

    def share(self) -> bool:
        """Let workers see what is stored; `False` if they cannot, and this process should draw"""
        ...

    def share_table(self):
        """Put the table where workers see it"""
        ...

    def fix_schema(self, schema):
        """From now on all steps are of this `schema`"""
        ...

    def named(self, cols):
        """Columns in the order of the schema, in the form of a step"""
        ...

    @property
    def longest(self) -> int:
        """The most steps that an episode may have"""
        ...

    @property
    def num_episodes(self) -> int:
        """How many episodes are stored"""
        ...

    @property
    def num_timesteps(self) -> int:
        """How many steps they have together"""
        ...

    @property
    def is_empty(self) -> bool:
        """Is no episode stored?"""
        ...

    @property
    def is_full(self) -> bool:
        """Did an episode ever have to make room?"""
        ...

    @property
    def episode_lengths(self) -> list:
        """The lengths of the episodes, in the order in which they came"""
        ...

    @property
    def average_episode_length(self) -> float:
        """Steps per episode; 0 without any"""
        ...

    @property
    def fields(self) -> dict:
        """What a step consists of, by name; empty before the first episode"""
        ...

    def __repr__(self):
        ...

    def lose(self, e: int):
        """Take out entry `e`, whose steps are gone"""
        ...

    def recover(self):
        """Undo what was interrupted, and count everything anew"""
        ...

    def mend(self):
        """`recover`, if an `add_episode` was interrupted"""
        ...

    def score_all(self):
        """Queue all episodes by their scores; known scores are kept"""
        ...

    def add_episode(self, episode: dict):
        """Store an episode; if there is no room for it, others go
    - `episode`: Columns, `(steps, …)` each, or lists of steps"""
        ...

    def __getitem__(self, i: int) -> BD:
        """A copy of episode `i`, `(steps, …)`
    - `i`: Of the episodes in the order in which they came"""
        ...

    def read_episode(self, e, line):
        """The episode of entry `e`; `None` if it has gone meanwhile"""
        ...

    def __getstate__(self):
        ...

    def __setstate__(self, state):
        ...

    def clear(self) -> EpisodeDataset:
        """Forget all episodes; a larger dataset, which `extend` joined, keeps its own"""
        ...

    def extend(self, other: EpisodeDataset, other_batch_size: int=64, other_num_workers: int | None=None, fetch_from_other_every: int=1, seed: int | None=None):
        """Pass each new episode on to `other`, and once full fetch some back
    - `other`: The larger one
    - `other_batch_size`: Episodes to take from it at a time; never more than fit
    - `other_num_workers`: Processes that draw them
    - `fetch_from_other_every`: Episodes that are added between two times
    - `seed`: Makes the draws reproducible"""
        ...

    def can_draw(self, T: int) -> bool:
        """Is there an episode of `T` steps or more?
    - `T`: Steps in a sequence; 0: whole episodes"""
        ...

    def why_none(self, bs: int, T: int) -> str:
        """In words: what is stored, and what was asked for
    - `bs`: Sequences that were asked for
    - `T`: Steps in each; 0: whole episodes"""
        ...

    @property
    def drawn(self):
        """The datasets that sequences come from"""
        ...

    def get_loader(self, batch_size: int, sequence_length: int | None=None, chunk_size: int | None=None, num_workers: int | None=None, pin_memory: bool | None=None, seed: int | None=None, by: str='transition', context: Any=None, pad: bool=False, frame_stack: int | None=None, frame_pad: str='repeat') -> EpisodeLoader:
        """Batches of sequences, without end
    - `batch_size`: Sequences in a batch
    - `sequence_length`: Steps in each; without it whole episodes
    - `chunk_size`: Sequences that a worker hands over at once; a whole batch by default
    - `num_workers`: Processes that draw; by default this one does
    - `pin_memory`: Pin what workers hand over? By default if there is a GPU
    - `seed`: Makes the draws reproducible
    - `by`: `'transition'`: every place is equally likely; `'episode'`: every episode
    - `context`: How workers start: `'fork'`, `'spawn'`, …; by default as Python does
    - `pad`: Also episodes shorter than `sequence_length`, filled up with zeros? `mask` says what is a step
    - `frame_stack`: Images come in stacks of so many, made when they are drawn; each is stored once
    - `frame_pad`: Before the first image of an episode: `'repeat'` it, or `'zeros'`"""
        ...
dataset_words: Any
stored_as: Any

class _LeftBehind(Evictor):
    """Stands in a spawned process, which only draws, for the evictor that stayed in the one before"""

    def evict(self, *args, **kwargs):
        ...
