"""Put a replay buffer into a fastai `Learner`: it remembers every live batch and trains on drawn ones

A `Learner` trains on the batch that its data loader gives it, and in reinforcement learning that batch is the last few steps: the worst there is to learn from. `ExperienceReplayCallback` puts a replay memory between the two. The live batch goes in, a batch of rows from any time comes out, and the prediction, the loss and the optimizer step all belong to the rows that came out.

Docs: https://fastrl.github.io/fastrl/memory.experience_replay.html.md"""
from typing import Any, overload
import torch
from fastai.basics import Callback

class CancelBatchException(Exception):
    ...
from ..core import *
from .explore import *
from .replay import *
from .sample import Prioritized, Uniform
__all__ = ['refused', 'ExperienceReplayCallback', 'Tally', 'stateful', 'Resume', 'ExperienceReplay', 'ExperienceReplayException', 'MemoryNotWarm', 'get_steps', 'plot_replay_stats', 'plot_summary', 'plot_images', 'figures_to_html', 'replay_report', 'Uniform', 'Prioritized', 'BD', 'TensorBatch', 'CancelBatchException', 'test_len', 'test_same']

class ExperienceReplayCallback(Callback):
    """Remember each live batch, and train on one drawn from the memory instead"""
    order: Any
    waited: int
    event: str
    settings: Any
    drawn: Any
    serials: Any
    tally: Tally
    drew: bool
    experience_replay: Any

    def __init__(self, bs: int=16, max_sz: int | None=None, warmup_sz: int | None=None, memory: Any=None, event: str='after_pred', **kwargs):
        """- `bs`: Rows in a drawn batch
        - `max_sz`: The most rows that the memory holds; 200 if not given
        - `warmup_sz`: Rows before the first batch is drawn: 100, or `max_sz` if that is less
        - `memory`: Rows to start from, copied; or an `ExperienceReplay`, which stays as it is, with its own settings
        - `event`: When the batches change places; with `'before_batch'` the model runs once
        - `**kwargs`: For `ExperienceReplay`: `sampler`, `seed`, `freeze_memory` and others"""
        ...

    def __repr__(self):
        ...

    def __setattr__(self, name, value):
        ...

    def before_batch(self):
        ...

    def after_pred(self):
        """Add `learn.xb` to the memory, put a sample in its place, and predict that"""
        ...

    def swap(self, predicted: bool=False):
        """Add `learn.xb` to the memory and put a sample in its place, or cancel the batch if the memory is not warm
    - `predicted`: Has the model seen the live batch?"""
        ...

    def complete(self):
        """Give validation's rows the columns that drawn ones have, so that the same callback sets targets for both"""
        ...

    def draw(self, k: int=1) -> int:
        """Put a sample in the place of `learn.xb` and `learn.yb`
    - `k`: So many batches at once, if TD errors do not decide which rows
    - returns: How many they are"""
        ...

    @property
    def replay(self) -> ExperienceReplay:
        """The memory that this callback fills and draws from"""
        ...

    @property
    def memory(self) -> BD:
        """The stored columns; `None` before the first row"""
        ...

    def sample(self, bs: int | None=None, device: Any=None) -> tuple[BD, torch.Tensor]:
        """Draw a batch, which the training does not see
    - `bs`: How many; the memory's `bs` by default
    - `device`: Where the batch should be; where the rows are by default
    - returns: The batch, and the numbers of its rows"""
        ...

    def __len__(self) -> int:
        ...

    def __bool__(self) -> bool:
        ...

    def update_td(self, td_errors):
        """Store the TD errors of the drawn batch, except for rows that are overwritten by now
    - `td_errors`: `(bs,1)`"""
        ...

    def after_epoch(self):
        ...

    def after_create(self):
        """Agents that act before the first fit find the model where its batches are"""
        ...

    def before_fit(self):
        ...

    def warm_up(self):
        """Take batches from the training loader, as other callbacks make them, until the memory is warm"""
        ...

    def after_validate(self):
        ...

    def after_fit(self):
        ...

    def before_train(self):
        """Find out which settings have a schedule"""
        ...

    def __getstate__(self):
        ...

    def __setstate__(self, state):
        ...

class Tally:
    """How often each stored row was drawn"""
    times: Any
    seen: int

    def __init__(self):
        ...

    def count(self, ring, idxs):
        ...

    def of(self, ring):
        """`times` of the rows that the `ring` holds now: 0 of those that came since the last draw"""
        ...
refused: Any

def stateful(learn):
    """The agent and the callbacks that have a state, by name"""
    ...

class Resume(Callback):
    """Checkpoint a training to `folder`, and resume it from there when it is started again"""
    order: Any
    run_valid: Any
    once_per_batch: Any
    folder: Any
    every: Any
    stop: Any
    run: Any
    epoch_at: Any
    iter_at: Any

    def __init__(self, folder, every: int=500, stop: Any=None):
        """- `folder`: Holds the memory and everything else
        - `every`: Batches between checkpoints; one at the end, too, and after epochs that a tracker compares
        - `stop`: `stop()` is asked after each batch; once it is true, the fit saves and ends. A signal may set it"""
        ...

    def before_fit(self):
        ...

    def before_epoch(self):
        """Skip the epochs that are done; an epoch of an earlier run has no line in this table"""
        ...

    def after_epoch(self):
        ...

    def before_train(self):
        """Schedules, too, resume in the middle of the epoch; one that lacks only its validation trains nothing"""
        ...

    def after_batch(self):
        """Count the batch, save every so many, and end the epoch where it should end"""
        ...

    def after_cancel_train(self):
        """An epoch with all its batches is a whole one: the recorder leaves the loss out of others"""
        ...

    def after_fit(self):
        ...

    def before_validate(self):
        ...

    def save(self):
        """Save a checkpoint now"""
        ...
