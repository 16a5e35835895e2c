"""Train on a stream, validate by playing: the `DataLoaders` of a `Source`

A `Learner` wants two data loaders: one to train on, one to validate with. A `Source` gives both. Training takes rows from the stream; validation plays whole episodes without exploring, so that `learn.validate()` returns what an agent is judged by. The habits of a fastai user work too: `dls.show_batch()`, `learn.predict(obs)`, `learn.get_preds(dl=…)`, `learn.show_results()`.

Docs: https://fastrl.github.io/fastrl/data.learner.html.md"""
from typing import Any, overload
from fastai.basics import Callback, DataLoader, Learner, Metric, SGD, ValueMetric, nn
from ..core import *
from .block import *
__all__ = ['SourceDL', 'returns_in', 'Returns', 'play_episodes', 'Spaced', 'EpisodeDL', 'add_return', 'ValidReturn', 'without_targets', 'NoValidation', 'Reward', 'NEpisodes', 'follow_returns', 'MeanReward', 'reward_loss', 'RowsAsTargets', 'fake_gym_learner', 'given_rows', 'RowsDL', 'rows_table', 'pictures_in', 'show_frames', 'row_titles']

class SourceDL(DataLoader):
    """Batches of `bs` rows from a `Source`, `n` rows per epoch"""
    n_inp: int
    keeps: Any
    skip: int
    since: Any
    upto: Any
    returns: Any

    def __init__(self, dataset: Source | None=None, n: int=0, bs: int=16, device: Any=None, **kwargs):
        """- `n`: Rows per epoch
        - `bs`: Rows per batch
        - `device`: Of the batches
        - `**kwargs`: What fastai says of shuffling and workers, which means nothing here"""
        ...

    def rows(self):
        """The batches of an epoch, as `BD`"""
        ...

    def __iter__(self):
        ...

    def on_device(self, b):
        ...

    @property
    def get_idxs(self):
        ...

    def new(self, dataset: Any=None, cls: Any=None, **kwargs) -> SourceDL:
        """A loader like this one
    - `dataset`: A `Source`; or rows, or a list of observations, which come in this order
    - `**kwargs`: `n`, `bs`, `device`; what fastai says of shuffling and workers means nothing here"""
        ...

    def one_batch(self):
        """The next batch, which training gets too"""
        ...

    def decode_batch(self, b, max_n=9, full=True):
        """Each observation with the agent's action for it: what `learn.predict` returns first"""
        ...

    def show_batch(self, b: Any=None, max_n: int=9, show: bool=True, **kwargs):
        """Show rows as a table, with pictures where there are any
    - `b`: A batch; the next one if not given
    - `max_n`: Rows to show
    - `show`: Or only return what would be shown"""
        ...

    def show_results(self, b, out, max_n: int=9, show: bool=True, **kwargs):
        """Show the rows of an episode, and what the network says of them
    - `b`: A batch
    - `out`: What the network says of it
    - `max_n`: Rows to show
    - `show`: Or only return what would be shown"""
        ...

def returns_in(rows: BD) -> list:
    """The returns of the episodes that end in `rows`
    - `rows`: With the columns `all_done` and `accum_rewards`, else nobody knows"""
    ...

class Returns(LoopCallback):
    """Note the return of each episode as it comes from the loop, before other callbacks change or fold its rows"""
    of: Any

    def __init__(self):
        ...

    def after_block(self):
        ...

def play_episodes(source: Source, n: int=5, seed: int | None=None, most: int=1000, film: bool=False, max_steps: int=10000):
    """Let the agent of `source` play without exploring, in environments of its own
    - `n`: Episodes, side by side
    - `seed`: The same episodes each time
    - `most`: Keep at most so many rows of each
    - `film`: With a column `image`, where the environment can draw itself
    - `max_steps`: Cut an episode off here
    - returns: a `BD` per episode (`None` if callbacks drop all its rows), returns `(n,)`"""
    ...

class Spaced:
    """At most `most` rows of one episode, at even distances"""
    most: Any
    every: int
    rows: Any
    over: Any
    total: Any

    def __init__(self, most):
        ...

    def add(self, b):
        """Keep those of `b` that are due"""
        ...

    def due(self, b):
        ...

class EpisodeDL(SourceDL):
    """A batch per episode, played without exploring"""
    keeps: Any
    seed: int | None
    returns: Any
    n: int

    def __init__(self, dataset: Source | None=None, n: int=5, seed: int | None=None, device: Any=None, **kwargs):
        """- `n`: Episodes
        - `seed`: The same episodes each time
        - `device`: Of the batches
        - `**kwargs`: As for a `SourceDL`"""
        ...

    def rows(self):
        ...

    def one_batch(self):
        ...

def add_return(learn: Learner):
    """Show the mean return of the episodes that validation played
    - `learn`: Gets a metric `return`, if its validation plays and no metric has this name"""
    ...

class ValidReturn(ValueMetric):
    """The mean return in validation"""

def without_targets(learn: Learner):
    """A validation loss of nan where no batch had targets: fastai's `None` breaks plots"""
    ...

class NoValidation(Callback):
    """Leave out validation in a fit, and its columns in the log"""

    def before_fit(self):
        ...

    def before_train(self):
        ...

    def before_validate(self):
        ...

    def after_validate(self):
        ...

    def after_fit(self):
        ...

class Reward(Metric):
    """Mean return of the last `rolling_reward_n` episodes that ended in training batches"""
    rolling_reward_n: int
    returns: Any

    def __init__(self, rolling_reward_n: int=100):
        ...

    def accumulate(self, learn):
        ...

    @property
    def value(self):
        ...

class NEpisodes(Reward):
    """How many episodes ended in training batches"""

    @property
    def value(self):
        ...

def follow_returns(learn: Learner) -> bool:
    """Let the metrics `Reward` and `NEpisodes` see the returns that the training loader counts
    - returns: Does its training loader count?"""
    ...

class MeanReward(nn.Module):
    """Predict the same reward for every row"""
    mean: Any

    def __init__(self):
        ...

    def forward(self, batch):
        ...

def reward_loss(pred, batch):
    """Mean squared error of a prediction of the reward"""
    ...

class RowsAsTargets(Callback):
    """In training, a batch without targets is its own target"""
    run_valid: bool

    def before_batch(self):
        ...

def fake_gym_learner(source: Source, n: int=1000, bs: int=1, cbs: Any=None, num_workers: int=0, metrics: Any=None, opt_func: Any=SGD, lr: float=0.1, **kwargs) -> Learner:
    """A `Learner` over `source`, whose network of one number learns the mean reward
    - `n`: Rows per epoch
    - `bs`: Rows per batch
    - `cbs`: Callbacks
    - `num_workers`: Means nothing here: `GymLoop(…, vectorization='async')` has processes
    - `metrics`: `Reward` and `NEpisodes` if not given
    - `opt_func`, `lr`: For one number no other optimizer is better
    - `**kwargs`: For `Learner`"""
    ...

def given_rows(items) -> BD:
    """Rows for a network: columns as they are, observations as the column `state`
    - `items`: Columns by name; or observations, as a list or a tensor"""
    ...

class RowsDL(SourceDL):
    """Given rows, in batches of `bs`"""
    given: Any

    def __init__(self, items, source: Any=None, bs=64, device: Any=None):
        ...

    def rows(self):
        ...

    def new(self, dataset: Any=None, cls: Any=None, **kwargs):
        ...

def rows_table(rows: BD, most: int=9):
    """Columns of one number as they are, short vectors in full, and shapes of all else
    - `most`: Rows to show
    - returns: pandas.DataFrame"""
    ...

def pictures_in(rows: BD):
    """Pictures of `rows`: the column `image`, or states that are images
    - returns: `(n,H,W,C)` or `(n,H,W)`, or `None`"""
    ...

def show_frames(frames, titles: list):
    """Pictures beside each other, four in a line
    - `frames`: From `pictures_in`
    - `titles`: One for each"""
    ...

def row_titles(rows, values: Any=None):
    """What happened in each row, in a few words"""
    ...

def tensorboard_log(x: BD, y, samples, outs, writer, step):
    ...
