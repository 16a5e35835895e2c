"""Batches of sequences without end, drawn by this process or by several workers

A recurrent network wants batches of sequences: `(batch, time, …)`, none of which spans two episodes. `get_loader` gives an `EpisodeLoader`, a `DataLoader` without end. It draws in this process, or in workers that see each episode as soon as it is added. `concat` draws from several datasets, with exact shares.

Docs: https://fastrl.github.io/fastrl/memory.loader.html.md"""
from typing import Any, overload
from torch.utils.data import DataLoader, IterableDataset
from ..core import *
from .dataset import EpisodeDataset
from .stacks import *
__all__ = ['episode_words', 'EpisodeLoader', 'concat']

def check_padding(mask: bool, fields):
    """Raise if both a field and the padding are called `mask`
    - `mask`: Are sequences of unequal length filled up?
    - `fields`: Names of the fields of a step"""
    ...

class Sequences(IterableDataset):
    """What a worker draws"""
    rng: Any
    resumed: Any
    owed: Any
    pad: bool
    dataset: Any
    bs: Any
    T: Any
    chunk: Any
    by_step: Any
    lead: Any
    slots: Any
    entropy: Any
    round: int

    def __init__(self, dataset, batch_size, T, chunk, by_step, seed, pad, lead=0):
        ...

    def __iter__(self):
        ...

class EpisodeLoader(DataLoader):
    """Batches of sequences from an `EpisodeDataset`, without end"""
    episodes: Any
    parts: Any
    ends: Any
    mask: Any
    stack: Any
    frame_pad: Any
    sequences: Sequences
    pin_memory: bool

    def __init__(self, dataset, batch_size, sequence_length, chunk_size, num_workers, pin_memory, seed, by, context, pad=False, frame_stack: Any=None, frame_pad: Any='repeat'):
        ...

    def __getstate__(self):
        ...

    def __setstate__(self, state):
        ...

    def seed(self, seed: int):
        """Restart the stream of random numbers, from the next pass on"""
        ...

    @property
    def settings(self):
        ...

    @property
    def least(self):
        ...

    def __iter__(self):
        ...
episode_words: Any

class Concat(EpisodeDataset):
    """Draws from several datasets"""

    @property
    def num_episodes(self):
        ...

    @property
    def num_timesteps(self):
        ...

    @property
    def episode_lengths(self):
        ...

    @property
    def is_full(self):
        ...

    @property
    def drawn(self):
        ...

    @property
    def step_words(self):
        ...
    datasets: Any
    weights: Any
    table: Any

    def __init__(self, datasets, weights):
        ...

    def add_episode(self, episode):
        ...

    def clear(self):
        ...

    def can_draw(self, T):
        ...

    def why_none(self, bs, T):
        ...

    def share(self):
        ...

    def __getitem__(self, i):
        ...

def concat(datasets, weights: Any=None) -> EpisodeDataset:
    """Draw from several datasets, with exact proportions
    - `datasets`: Of the same fields
    - `weights`: The share of each; without it all have the same"""
    ...
