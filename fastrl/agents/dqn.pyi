"""A deep Q-network that learns from a replay memory, as fastai callbacks

Agents that learn from a memory prove that it works, and DQN needs one most: it learns how much reward each action will still bring, from steps that it took long ago. Here it is in four parts: an `EpsilonGreedy` agent that acts in the `Source`, a `QNet`, the `DQN` callback with the target, and `Evaluate`, which plays without exploring and keeps the best network. `dqn_learner` puts them together.

Docs: https://fastrl.github.io/fastrl/agents.dqn.html.md"""
from typing import Any, overload
import plotly.graph_objects as go
from fastai.basics import Callback, Learner, Metric
from torch import Tensor
from .nets import *
from ..core import *
from ..data.gym import *
from ..data.steps import *
from ..memory.experience_replay import *
from ..memory.updates import *
__all__ = ['EpsilonGreedy', 'huber', 'DQN', 'play', 'Evaluate', 'Score', 'Column', 'ShowColumns', 'dqn_learner', 'plot_learning', 'QNet', 'Dueling', 'Flat', 'mlp', 'Scale', 'nature_cnn', 'through', 'greedy_values']

class EpsilonGreedy:
    """The best action according to `model`, and with chance `epsilon` any action"""
    model: Any
    eps: Any
    eps_steps: int
    steps: Any
    n_actions: Any
    rng: Any

    def __init__(self, model, eps: Any=(1.0, 0.05), eps_steps: int=10000, seed: int | None=None):
        """- `model`: A `QNet`
        - `eps`: The chance to explore, at first and at last
        - `eps_steps`: Steps until the last chance is reached
        - `seed`: Makes the exploration reproducible"""
        ...

    @property
    def epsilon(self) -> float:
        """The chance to explore: set it yourself, as a `ParamScheduler` does, or let it fall"""
        ...

    @epsilon.setter
    def epsilon(self, value):
        ...

    def greedy(self, states):
        """The best actions, without exploring"""
        ...

    @property
    def first(self) -> int:
        ...

    def __call__(self, states):
        """- `states`: `(n, …)`, one state per environment
        - returns: actions `(n,)`"""
        ...

    def state_dict(self) -> dict:
        """The number of steps, an `epsilon` that was set, and the random generator"""
        ...

    def load_state_dict(self, state):
        """Resume exploring from `state`"""
        ...

def huber(q: Tensor, y: Tensor, weight: Tensor | None=None, beta: float=1.0):
    """Quadratic for small errors, linear for large ones
    - `q`: `(n,1)`, values of the taken actions
    - `y`: `(n,1)`, what they should be
    - `weight`: `(n,1)`, how much each row counts
    - `beta`: Errors up to here are small"""
    ...

class DQN(Callback):
    """The target of Q-learning for the drawn batch, and several updates per batch if you like"""
    order: Any
    in_fit: bool
    gamma: float
    double: bool
    tau: float
    target_every: int | None
    updates_per_batch: int
    updates: Any
    target: Any
    extra: Any

    def __init__(self, gamma: float=0.99, double: bool=True, tau: float=0.005, target_every: int | None=None, updates_per_batch: int=1, fast: bool=False):
        """- `gamma`: Discount factor
        - `double`: Does the learning network choose the next action?
        - `tau`: How far each update moves the target network towards the network
        - `target_every`: Copy the network to the target every so many updates instead
        - `updates_per_batch`: Updates for each batch of new steps
        - `fast`: Make these in a tight loop, of which other callbacks hear nothing?"""
        ...

    def before_fit(self):
        ...

    def after_fit(self):
        ...

    def after_pred(self):
        """Compare the values of the taken actions with the targets `y`, of episodes that validation plays, too"""
        ...

    def targets(self, batch: BD) -> Tensor:
        """What the values of the taken actions should be
    - `batch`: Transitions
    - returns: `(n,1)`"""
        ...

    def after_loss(self):
        """Give the memory the TD errors"""
        ...

    def after_step(self):
        """Count the update, and let the target follow the network"""
        ...

    def learn_from(self, rows: BD, k: int, step) -> Tensor:
        """Make `k` updates, each with the next of `rows`
    - `rows`: Of `k` batches, one after the other
    - `k`: Updates
    - `step`: `step(loss)` steps the optimizer
    - returns: The TD errors of `rows`"""
        ...

    def targets_of(self, rows, k):
        """The targets of each of `k` batches, of as many at once as no network that makes them changes"""
        ...

    def state_dict(self) -> dict:
        """The number of updates, and the target network"""
        ...

    def load_state_dict(self, state):
        """Resume learning from `state`"""
        ...

def play(env, model, episodes: int=10, seed: int | None=None, max_steps: int=10000):
    """The returns of episodes played greedily
    - `env`: Name of an environment, or a function that makes one
    - `model`: A `QNet`
    - `seed`: Of the first episode; each next one has the next number
    - `max_steps`: An episode is cut off here
    - returns: returns `(episodes,)`"""
    ...

class Evaluate(Callback):
    """Play without exploring every `every` steps, and keep the best network"""
    order: Any
    run_valid: Any
    once_per_batch: Any
    env: Any
    every: Any
    seed: int | None
    episodes: Any
    steps: Any
    history: Any
    best: Any
    best_state: Any

    def __init__(self, env, every: int=2500, episodes: int=10, seed: int | None=None):
        """- `env`: Name of an environment, or a function that makes one
        - `every`: Steps of training
        - `episodes`: How many to play each time
        - `seed`: The same episodes each time"""
        ...

    def after_batch(self):
        ...

    def before_fit(self):
        ...

    def before_train(self):
        ...

    def after_validate(self):
        ...

    def note(self, mean):
        """Note how well the agent plays"""
        ...

    def state_dict(self):
        ...

    def load_state_dict(self, state):
        ...

    def load_best(self):
        """Give the model the weights that played best"""
        ...

class Score(Callback):
    """Count steps, episodes and their returns as they come in"""
    order: Any
    run_valid: Any
    once_per_batch: Any
    steps: Any
    episodes: Any
    returns: Any
    curve: Any

    def __init__(self, recent=20):
        ...

    @property
    def mean(self) -> float:
        ...

    def before_train(self):
        ...

    def after_train(self):
        ...

    def before_batch(self):
        ...

    def state_dict(self):
        ...

    def load_state_dict(self, state):
        ...

    @property
    def speed(self) -> float:
        ...

class _Short(float):
    """A number that a table shows with three digits, or whole from 1,000 on"""

    def __format__(self, spec):
        ...

class Column(Metric):
    """A column of the log with the value of `f()` at the end of each epoch"""
    f: Any

    def __init__(self, name, f):
        ...

    def reset(self):
        ...

    def accumulate(self, learn):
        ...

    @property
    def value(self):
        ...

    @property
    def name(self):
        ...

class ShowColumns(NoValidation):
    """Leave out validation, and show the columns of a DQN beside the loss all the same"""

    def before_fit(self):
        ...

def dqn_learner(env, net: Any=None, n: int=5000, train_every: int=16, updates_per_batch: int=8, bs: int=128, max_sz: int=50000, warmup_sz: int=1000, lr: float=0.001, beta: float=5.0, gamma: float=0.998, n_step: int=3, prioritized: bool=False, double: bool=True, dueling: bool=False, tau: float=0.005, target_every: int | None=None, fast: bool=False, eps: Any=(1.0, 0.05), eps_steps: int=10000, eval_every: int=2500, eval_episodes: int=10, n_envs: int=1, frame_stack: int | None=None, seed: int | None=None, cbs: Any=None, **kwargs) -> Learner:
    """A `Learner` that trains a DQN in `env`: `learn.fit(10)` is ten epochs of `n` steps
    - `env`: Name of an environment, or a function that makes one
    - `net`: States → values of the actions; by default an `mlp`, or the `nature_cnn` for images
    - `n`: Steps per epoch
    - `train_every`: Steps between updates
    - `updates_per_batch`: Updates each time
    - `bs`: Rows per update
    - `max_sz`: Rows in the memory
    - `warmup_sz`: Rows before the first update
    - `beta`: Of the loss, `huber`
    - `gamma`: Discount factor
    - `n_step`: Steps of a target
    - `prioritized`: Prioritized replay?
    - `double`: Double Q-learning?
    - `dueling`: A dueling head?
    - `tau`: How far each update moves the target network
    - `target_every`: Copy the network to the target every so many updates instead
    - `fast`: Updates in a tight loop: the same ones, but callbacks hear only the first of each batch
    - `eps`: The chance to explore, at first and at last
    - `eps_steps`: Steps until the last chance is reached
    - `eval_every`: Steps between evaluations
    - `n_envs`: Environments that step side by side; each of their steps counts
    - `frame_stack`: Frames in a state, where `env` stacks them: each is stored once
    - `seed`: Makes everything reproducible, on the CPU
    - `cbs`: More callbacks
    - `**kwargs`: For `Learner`, say `opt_func`; `loss_func` and `metrics` take `(q, y, weight=None)`"""
    ...

def plot_learning(learn) -> go.Figure:
    """Returns over the steps of training
    - `learn`: A trained `Learner` of `dqn_learner`"""
    ...
