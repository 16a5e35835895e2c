"""Whole episodes in memory or in files, and batches of sequences from them, drawn by one process or by many

A recurrent network learns from sequences, so a memory must never cut an episode short nor join two. `EpisodeReplay` collects the steps of one environment or of thousands, and hands whole episodes to an `EpisodeDataset`: a `RingBufferDataset` in memory, or an `IndividualFileDataset` with one file per episode. Both know exactly what they hold, and draw sequences in this process or in several workers. The API is that of [buffers](https://github.com/maltemosbach/buffers).

Docs: https://fastrl.github.io/fastrl/memory.episodes.html.md"""
from typing import Any, overload
from ..core import *
from .dataset import EpisodeDataset, FIFOEvictor, FieldType, ScoreEvictor
from .episode_files import IndividualFileDataset, log
from .episode_rows import RingBufferDataset
from .loader import EpisodeLoader, concat
__all__ = ['ReplayBuffer', 'EpisodeReplay', 'FIFOEvictor', 'FieldType', 'ScoreEvictor', 'EpisodeDataset', 'EpisodeLoader', 'IndividualFileDataset', 'RingBufferDataset', 'concat', 'log']

class EpisodeReplay:
    """Steps in, whole episodes kept, batches of sequences out"""
    dataset: EpisodeDataset
    running: Any
    loader: Any
    num_envs: Any
    lock: Any

    def __init__(self, dataset: EpisodeDataset, batch_size: int, sequence_length: int=1, chunk_size: int | None=None, num_workers: int | None=None, *, num_envs: int | None=None, **kwargs):
        """- `dataset`: Where episodes are kept
        - `batch_size`: Sequences in a batch
        - `sequence_length`: Steps in each; `None` for whole episodes
        - `chunk_size`: Sequences that a worker hands over at once
        - `num_workers`: Processes that draw; by default this one does
        - `num_envs`: If a single `done` may stand for all environments: how many they are
        - `**kwargs`: For `get_loader`: `seed`, `by`, `pin_memory`, `context`"""
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

    def add_step(self, step_data: dict, done):
        """Add a step of one environment or of many

    - `step_data`: The fields of a step; each with a first axis if there are several environments
    - `done`: Did the episode end with this step? For several environments: did it end with the one before?"""
        ...

    def sample(self) -> BD:
        """A batch `(batch, time, …)`; each field is on its device"""
        ...

    def close(self):
        """End the workers, if there are any; `sample` starts new ones"""
        ...

    def __getstate__(self):
        ...

    def __setstate__(self, state):
        ...
ReplayBuffer = EpisodeReplay
Desk: Any
