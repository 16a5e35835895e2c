"""Whole episodes in memory or in files, and batches of sequences from them, drawn by one process or by many

A recurrent network learns from sequences, so a memory must never cut an episode short or join two. `EpisodeReplay` collects the steps of one environment or of thousands, and hands whole episodes to an `EpisodeDataset`: a `RingBufferDataset` in memory, or an `IndividualFileDataset` with one file per episode. Both know exactly what they hold, and draw sequences in this process or in several workers. The API is that of [buffers](https://github.com/maltemosbach/buffers).

Docs: https://fastrl.github.io/fastrl/memory.episodes.html.md"""
from typing import Any, overload
from contextlib import contextmanager
from ..core import *
from .dataset import EpisodeDataset, Evictor, FIFOEvictor, FieldType, ScoreEvictor
from .disk import Savable, Saved
from .episode_files import IndividualFileDataset, log
from .episode_rows import RingBufferDataset
from .loader import EpisodeLoader, concat
from .ring import Ring
from .vector import TakesVectors, VectorSteps
__all__ = ['ReplayBuffer', 'EpisodeReplay', 'saved_episodes', 'episode_problems', 'to_torch', 'Evictor', 'FIFOEvictor', 'FieldType', 'ScoreEvictor', 'EpisodeDataset', 'EpisodeLoader', 'IndividualFileDataset', 'RingBufferDataset', 'concat', 'log']

class _EpisodeNames:
    """What an `EpisodeReplay` does not have: the error says what to write"""

    def __getitem__(self, i):
        ...

    def __setattr__(self, k, v):
        ...

class EpisodeReplay(TakesVectors, Savable, _EpisodeNames):
    """Steps in, whole episodes kept, batches of sequences out"""
    kind: Any
    stores_rows: Any
    refused = ValueError
    dataset: EpisodeDataset
    running: Any
    loader: Any
    num_envs: Any
    vectors: VectorSteps

    def __init__(self, dataset: EpisodeDataset, batch_size: int, sequence_length: int=1, chunk_size: int | None=None, num_workers: int | None=None, *, num_envs: int | None=None, schema: dict | None=None, frame_stack: int | None=None, frame_pad: str='repeat', **kwargs):
        """- `dataset`: Where episodes are kept
        - `batch_size`: Sequences in a batch
        - `sequence_length`: Steps in each; `None` for whole episodes
        - `chunk_size`: Sequences that a worker hands over at once
        - `num_workers`: Processes that draw; by default this one does
        - `num_envs`: Environments; without it the first step says how many they are
        - `schema`: The fields of one step, `{name: (shape, dtype)}`; without it the first step decides
        - `frame_stack`: Images come in stacks of so many, made when they are drawn; each is stored once
        - `frame_pad`: Before the first image of an episode: `'repeat'` it, or `'zeros'`
        - `**kwargs`: For `get_loader`: `pad`, `seed`, `by`, `pin_memory`, `context`"""
        ...

    @property
    def num_episodes(self) -> int:
        ...

    @property
    def num_timesteps(self) -> int:
        ...

    @property
    def is_empty(self) -> bool:
        ...

    def __len__(self) -> int:
        ...

    def __repr__(self):
        ...

    def __setstate__(self, state):
        ...

    def __getstate__(self):
        ...

    def __deepcopy__(self, memo):
        ...

    def __reduce_ex__(self, protocol):
        ...

    def add_step(self, step_data: dict, over: Any=None, *, done: Any=None, was_done: Any=None):
        """Add a step of one environment or of many
    - `step_data`: The fields of a step; each with a first axis if there are several environments
    - `over`: Use `done=` (ended with this step) or `was_done=` (with the one before), whichever your loop knows
    - `done`: Did the episode end with this step? One flag, or one per environment; a nameless bool means this
    - `was_done`: Did it end with the step before? A nameless array or list, one per environment, means this"""
        ...

    def store_vector(self, s, actions, more: dict):
        """Append the true steps to the running episodes of their environments, and end those that are over
    - `s`: From `VectorSteps.read`
    - `actions`: As they came
    - `more`: Other columns"""
        ...

    def sample(self) -> BD:
        """A batch `(batch, time, …)`; each field is on its device"""
        ...

    def close(self):
        """End the workers, if there are any; `sample` starts new ones"""
        ...

    def clear(self) -> EpisodeReplay:
        """Forget all episodes, and the steps that wait: the next step begins an episode. Episodes in files are deleted"""
        ...

    def seed(self, seed: int):
        """Restart the stream of random numbers, as a new replay with this `seed` begins"""
        ...

    @property
    def ring(self) -> Ring:
        """The rows of the dataset"""
        ...

    @contextmanager
    def belongings(self, extra: Any=None):
        """Everything to save, while nobody writes"""
        ...

    def checkpoint(self, folder, extra: Any=None):
        """Write to `folder` what came since the last time, and all steps that wait
    - `folder`: The same one each time
    - `extra`: More that belongs to this moment"""
        ...

    @classmethod
    def load(cls, folder, dataset: EpisodeDataset | None=None, evictor: Any=None, env_restored: bool=False, device: Any='cpu', shared: bool=False, path: Any=None, num_workers: int | None=None, context: Any=None) -> EpisodeReplay:
        """The replay that was saved to `folder`, which draws what that one would have drawn, if it draws without workers
    - `folder`: Of a saved or checkpointed replay
    - `dataset`: The one it had, if that keeps its episodes elsewhere and has moved
    - `evictor`: As it was
    - `env_restored`: Do the environments resume where they were? Otherwise the steps that wait are left out
    - `device`: Where the episodes should live
    - `shared`: In shared memory?
    - `path`: Or in a new file?
    - `num_workers`: Processes that draw; by default as it was
    - `context`: How they start"""
        ...

    @classmethod
    def empty(cls, saved, dataset, evictor, keep, num_workers, context, **where):
        """A replay with the settings of `saved`, and no step yet"""
        ...

    def restored(self, saved, ring, beside, state) -> EpisodeReplay:
        """The replay over the rows that were loaded"""
        ...

def saved_episodes(saved: Saved) -> list:
    """The episode files on which a saved replay counts
    - `saved`: Of a replay
    - returns: Paths and lengths, oldest first; `None` if no files belong to it"""
    ...

def episode_problems(saved: Saved) -> list:
    """Read each of the `saved_episodes`, compare its checksum, and say which are damaged or missing
    - `saved`: Of a replay
    - returns: In words; empty if all are sound"""
    ...
ReplayBuffer = EpisodeReplay

def to_torch(o):
    """`o` as a tensor, a list or tuple as a list of tensors; what has no numbers stays as it is
    - `o`: A number, an array, or a list or tuple of values"""
    ...
Desk: Any
