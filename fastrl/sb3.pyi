"""The replay buffers of stable-baselines3, with priorities, n-step returns of any observation, and hindsight

Your agent is written with stable-baselines3, and its replay buffer draws every step equally often. Pass `ReplayBuffer` as `replay_buffer_class`, and the same program draws by priority, folds n steps of Dict observations too, and joins no two episodes. `ReplayBuffer`, `DictReplayBuffer`, `NStepReplayBuffer` and `HerReplayBuffer` have SB3's names and contracts, and are subclasses of its own.

Docs: https://fastrl.github.io/fastrl/sb3.html.md"""
from typing import Any, overload
from torch.overrides import TorchFunctionMode
from .core import *
from .memory.replay import *
from .memory.sample import *
from stable_baselines3 import HerReplayBuffer as _Her
from stable_baselines3.common.buffers import DictReplayBuffer as _Dict, NStepReplayBuffer as _NStep, ReplayBuffer as _Replay
__all__ = ['ReplayBuffer', 'DictReplayBuffer', 'NStepReplayBuffer', 'HerReplayBuffer', 'Priorities']

class ReplayBuffer(_Replay):
    """SB3's replay buffer, over an `ExperienceReplay`"""
    memory: Any
    buffer_size: Any
    optimize_memory_usage: bool
    handle_timeout_termination: bool
    n_steps: int
    gamma: float
    drawn: Any

    def __init__(self, buffer_size: int, observation_space, action_space, device: Any='auto', n_envs: int=1, optimize_memory_usage: bool=False, handle_timeout_termination: bool=True, n_steps: int=1, gamma: float=0.99, sampler: Any=None, seed: int | None=None):
        """- `buffer_size`: The most steps it holds, of all environments together
        - `device`: Where batches should be; the rows lie in ordinary memory
        - `optimize_memory_usage`: Store each observation once?
        - `handle_timeout_termination`: Is a step that ran out of time no termination?
        - `n_steps`: Fold so many steps into one
        - `gamma`: Discount factor, for `n_steps`; give the model's
        - `sampler`: `Prioritized()`, for example, of which each buffer has a copy
        - `seed`: Makes the draws reproducible; by default NumPy's generator gives one"""
        ...

    def add(self, obs, next_obs, action, reward, done, infos):
        """Write one step of each environment"""
        ...

    @property
    def pos(self) -> int:
        """Where the next step of all environments goes"""
        ...

    @pos.setter
    def pos(self, v):
        ...

    @property
    def full(self) -> bool:
        """Does the next step replace the oldest?"""
        ...

    @full.setter
    def full(self, v):
        ...

    def reset(self):
        """Forget all steps"""
        ...

    @property
    def observations(self):
        ...

    @property
    def next_observations(self):
        ...

    @property
    def actions(self):
        ...

    def sample(self, batch_size: int, env: Any=None):
        """Draw `batch_size` steps"""
        ...

    def update_td(self, td_errors):
        """Note the TD errors `(batch_size, 1)` of the steps that `sample` gave last"""
        ...

class DictReplayBuffer(ReplayBuffer, _Dict):
    """SB3's replay buffer for Dict observations, over an `ExperienceReplay`"""

class NStepReplayBuffer(ReplayBuffer, _NStep):
    """SB3's replay buffer with n-step returns, over an `ExperienceReplay`"""

    def __init__(self, *args, n_steps: int=3, gamma: float=0.99, **kwargs):
        ...

class HerReplayBuffer(_Her, DictReplayBuffer):
    """SB3's hindsight replay, relabelled by `HER` at the draw"""
    sample: Any

    def __init__(self, *args, seed: int | None=None, **kwargs):
        ...

    def truncate_last_trajectory(self):
        """Take the newest episodes as finished"""
        ...

class _Weighted(TorchFunctionMode):
    """Within it, losses are weighted by the last draw of `buffer`, which gets the errors"""
    buffer: Any
    drawn: Any
    errors: Any

    def __init__(self, buffer):
        ...

    def __torch_function__(self, func, types, args: Any=(), kwargs: Any=None):
        ...

class Priorities:
    """Before a model class of SB3: its `train` weights losses, and writes priorities back"""

    def train(self, *args, **kwargs):
        ...
