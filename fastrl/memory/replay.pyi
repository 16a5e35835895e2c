"""A replay buffer for any training loop: add steps, draw batches, update TD errors

Consecutive steps look alike, and a network trained on them in order forgets what it learnt an episode ago. `ExperienceReplay` is a replay buffer: it keeps the last `max_sz` steps and draws batches of `bs` from anywhere among them, once `warmup_sz` are stored. You need no fastai: `memory + batch`, `memory.sample()`, `memory.update_td(…)` work in any loop.

Docs: https://fastrl.github.io/fastrl/memory.replay.html.md"""
from typing import Any, overload
from contextlib import contextmanager
from torch import Tensor
from ..core import *
from .ahead import DrawsAhead
from .columns import *
from .disk import OneMoment, Savable
from .on_device import LearnsOnDevice
from .ring import Ring
from .sample import *
from .split import Splits
from .stream import DrawsChunks
from .td_errors import *
from .vector import TakesVectors, VectorSteps
from .walk import Walk
__all__ = ['saved_settings', 'ExperienceReplay', 'ExperienceReplayException', 'MemoryNotWarm', 'NoSuchRow', 'Columns']

class ExperienceReplay(OneMoment, Savable, DrawsAhead, DrawsChunks, Splits, LearnsOnDevice, TakesVectors, OtherNames):
    """The last `max_sz` rows, and batches of `bs` drawn from them"""
    __array_ufunc__: Any
    kind: Any
    freeze_memory: Any
    later: Any
    sized: Any
    schema: Any
    frame_stack: Any
    frame_pad: Any
    frame_margin: Any
    ring: Ring
    max_sz: int
    warmup_sz: int
    bs: int
    n_step: int | None
    gamma: float | str
    sampler: Any
    runs: Uniform
    walk: Walk
    vectors: VectorSteps
    dropped_updates: Any
    skipped: Any

    def __init__(self, bs: int=16, max_sz: int | None=None, warmup_sz: int | None=None, memory: BD | None=None, sampler: Any=None, n_step: int | None=None, gamma: float | str=0.99, seed: int | None=None, device: Any='cpu', shared: bool=False, path: Any=None, schema: dict | None=None, freeze_memory: bool=False, frame_stack: int | None=None, frame_pad: str='repeat', frame_margin=0.05):
        """- `bs`: Rows in a batch that is drawn
        - `max_sz`: The most rows it holds, 200 by default; then the oldest are overwritten
        - `warmup_sz`: Rows that must be stored before `sample` gives any: 100, or `max_sz` if that is less
        - `memory`: Rows to start from, copied
        - `sampler`: Which rows are drawn: `Uniform()` by default, `Prioritized()`, or your own
        - `n_step`: How many single-step rows to fold into one when sampling; you can change it at any time
        - `gamma`: Discount factor for `n_step`, or the name of a column that has one for each step
        - `seed`: Makes draws reproducible; a sampler's own comes first for rows, and for sequences without this
        - `device`: Where the rows live
        - `shared`: In shared memory, where other processes see the same rows?
        - `path`: A file to live in; if a memory left one there, it is opened with its rows
        - `schema`: The columns, `{name: (shape, dtype)}`; `(shape, dtype, 'later')` if rows come without it
        - `freeze_memory`: Keep the first `max_sz` rows, and drop what comes later?
        - `frame_stack`: Frames in a `state`, or an `obs`, each stored once; 0: it is one observation, no stack
        - `frame_pad`: Before an episode's first frame, if frames come singly: `'repeat'` it, or `'zeros'`
        - `frame_margin`: Room for more frames than rows: a share of `max_sz`, or an int"""
        ...

    @property
    def pointer(self) -> int:
        """Where the newest row ends: 1 after the first, `max_sz` when the memory is just full"""
        ...

    def __len__(self) -> int:
        ...

    def __bool__(self) -> bool:
        ...

    def __repr__(self):
        ...

    def __setattr__(self, k, v):
        ...

    def __add__(self, batch) -> ExperienceReplay:
        """Add the rows of `batch` in place
    - `batch`: A `BD`, a dict, or a tuple that holds just one of them"""
        ...

    def __radd__(self, batch):
        ...

    def sample(self, bs: int | None=None, device: Any=None, n_batches: int | None=None):
        """`bs` rows, drawn by the sampler, and their numbers
    - `bs`: How many; `self.bs` by default
    - `device`: Where the batch should be; where the rows are by default
    - `n_batches`: How many batches to draw at once
    - returns: the batch and the numbers of its rows, or `n_batches` such pairs"""
        ...

    def check_warm(self, need: int | None=None):
        """Raise a `MemoryNotWarm` while too few rows are stored to draw a batch
    - `need`: So many; `self.warmup_sz` by default, at least 1"""
        ...

    @property
    def memory(self) -> BD:
        """The stored columns, in the order of the ring; `None` before the first row"""
        ...

    def add(self, **row) -> ExperienceReplay:
        """Add one step
    - `**row`: The fields of one step: arrays keep their dtype, numbers make float32 columns `(n,1)`, actions int64"""
        ...

    def update_td(self, td_errors, idxs, serials: Tensor | None=None):
        """Store the TD error of each row that was not overwritten
    - `td_errors`: `(n,1)` or `(n,)`, one for each row; of sequences `(bs,T)` or `(bs,T,1)`
    - `idxs`: The batch; or the numbers that came with it, `(n,)` or `(bs,T)`, -1 names none
    - `serials`: With numbers: the batch's column `serial`; without it the rows are taken as they are now"""
        ...

    @property
    def is_warm(self) -> bool:
        """Are there enough rows to draw a batch?"""
        ...

    @property
    def is_full(self) -> bool:
        """Does the next row overwrite the oldest?"""
        ...

    def clear(self) -> ExperienceReplay:
        """Forget all rows"""
        ...

    def cut(self) -> ExperienceReplay:
        """No later row follows one that is stored, of any environment, as after abandoned episodes"""
        ...

    def put(self, name: str, idxs, values, serials: Any=None) -> int:
        """Write `values` into the rows `idxs` that were not overwritten
    - `name`: The column
    - `idxs`: The batch; or row numbers as they were drawn, `(n,)` or `(bs,T)`, -1 names none; or a mask
    - `values`: In the shape of `idxs`, followed by that of a row, if it is more than a number
    - `serials`: With numbers: the batch's column `serial`; without it the rows are taken as they are now
    - returns: How many rows are gone"""
        ...

    def sample_sequences(self, bs: int | None=None, T: int | None=None, pad: bool=False, burn_in: int=0, device: Any=None, n_batches: int | None=None, align: str='right'):
        """Runs of rows that follow one another, as they are stored; a `weight` is `(bs,1)`, for errors of shape `(bs,T)`
    - `bs`: How many; `self.bs` by default
    - `T`: Steps in each; without it whole episodes
    - `pad`: Also episodes that are shorter, filled up with zeros?
    - `burn_in`: How many earlier steps at most, to warm up a recurrent state; missing ones are zeros, `mask` False
    - `device`: Where the batch should be
    - `n_batches`: How many batches to draw at once; they need a `T`
    - `align`: Where a burn-in lacks steps: in front, or, with `'left'`, behind
    - returns: a batch `(bs, burn_in+T, …)` and row numbers `(bs, burn_in+T)`, -1 for none; or `n_batches` such pairs"""
        ...

    def copied(self):
        """All rows in a memory of their own, oldest first, to which nobody else writes"""
        ...

    def extend(self, other) -> ExperienceReplay:
        """Add the rows of another memory, oldest first, and keep the episodes of both apart
    - `other`: Another memory, with the same columns; or rows, as `+` takes them"""
        ...

    @contextmanager
    def belongings(self, extra: Any=None):
        """Everything to save, while nobody writes"""
        ...

    @classmethod
    def load(cls, folder, sampler: Any=None, on_error: str='raise', env_restored: bool=False, mapped: bool=False, device: Any='cpu', shared: bool=False, path: Any=None, **asked) -> ExperienceReplay:
        """The memory that was saved to `folder`
    - `folder`: Of a saved or checkpointed memory
    - `sampler`: One with the saved settings; needed for your own class, if it does not derive from `Uniform`
    - `on_error`: `'skip'` leaves damaged files out, and logs how many rows they had
    - `env_restored`: Do the environments resume where they were?
    - `mapped`: Leave the rows in the file, to be read when they are drawn? You cannot add to them then
    - `device`, `shared`, `path`: The rows' new place
    - `**asked`: Settings; an error unless it was saved with them"""
        ...

    @classmethod
    def empty(cls, saved, sampler: Any=None, device: Any='cpu') -> ExperienceReplay:
        """A memory with the settings of `saved`, and no rows yet"""
        ...

    def restored(self, saved, ring, beside, state) -> ExperienceReplay:
        """The memory over the rows that were loaded"""
        ...

    def __setstate__(self, state):
        ...

    @overload
    def __getitem__(self, o: str) -> Tensor:
        ...

    @overload
    def __getitem__(self, o: Any) -> ExperienceReplay:
        ...

class ExperienceReplayException(Exception):
    """The memory cannot store what it was given, or cannot give what it was asked for"""

class MemoryNotWarm(ExperienceReplayException):
    """Fewer than `warmup_sz` rows are stored"""

class NoSuchRow(ExperienceReplayException, IndexError):
    """A memory was asked for rows that it does not have"""
saved_settings: Any
