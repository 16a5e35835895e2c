"""Read Minari datasets and D4RL's arrays into a replay memory, and write a memory as a Minari dataset

You have a dataset of episodes, and an agent that learns from a replay memory. Between the two lies a loop that everybody writes, and where its mistakes hide: the last observation of each episode, time limits that look like terminations, targets that run into the next episode. `from_minari`, `to_minari` and `from_d4rl` are that loop, one episode at a time. [Minari](https://minari.farama.org) is imported when you call them.

Docs: https://fastrl.github.io/fastrl/offline.html.md"""
from typing import Any, overload
from .core import *
from .memory.replay import *
__all__ = ['from_minari', 'to_minari', 'from_d4rl']

def from_minari(dataset, dtype: Any=None, **kwargs) -> ExperienceReplay:
    """A memory with every step of a Minari dataset, read one episode at a time
    - `dataset`: A `MinariDataset`, or the id of one on this machine; or a list of episodes as Minari has them
    - `dtype`: What floats become, for example `torch.float32` or 'float32'; without it they stay as they are
    - `**kwargs`: For `ExperienceReplay`: `bs`, `sampler`, `n_step`, `path`, …"""
    ...

class _Episode:
    """An episode of your own, a dict or an `EpisodeBuffer`, as a dataset would give it"""
    id: Any
    more: Any
    rewards: Any

    def __init__(self, i, of):
        ...

    def __len__(self):
        ...

def to_minari(memory: ExperienceReplay, dataset_id: str, env: Any=None, observation_space: Any=None, action_space: Any=None, **kwargs):
    """Write the rows of `memory` as a new Minari dataset, one episode at a time
    - `memory`: Its rows have `state`, `action`, `reward`, `next_state`, `terminated` and `truncated`
    - `dataset_id`: `'pendulum/mine-v0'`, for example
    - `env`: The environment, its id or its spec
    - `observation_space`, `action_space`: By default those of `env`
    - `**kwargs`: For `minari.create_dataset_from_buffers`: `data_format`, `author`, `description`, …
    - returns: the `MinariDataset`"""
    ...

def from_d4rl(data, dtype: Any=None, **kwargs) -> ExperienceReplay:
    """A memory with the steps of a dataset in D4RL's form
    - `data`: Arrays by name: a dict, or an open HDF5 file; with `next_observations` it needs no `timeouts`
    - `dtype`: What floats become, for example `torch.float32` or 'float32'; without it they stay as they are
    - `**kwargs`: For `ExperienceReplay`: `bs`, `sampler`, `n_step`, `path`, …"""
    ...
