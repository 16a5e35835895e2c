"""The replay buffers of stable-baselines3, with priorities, n-step returns of any observation, and hindsight

Your agent is written with stable-baselines3, and its replay buffer draws every step equally often. Pass `ReplayBuffer` as `replay_buffer_class`, and the same program draws by priority, folds n steps of Dict observations too, and joins no two episodes. `ReplayBuffer`, `DictReplayBuffer`, `NStepReplayBuffer` and `HerReplayBuffer` have SB3's names and contracts, and are subclasses of its own.

Docs: https://fastrl.github.io/fastrl/sb3.html.md"""
from typing import Any, overload
from torch.overrides import TorchFunctionMode
from .compat import ReplayBuffer as CompatBuffer
from .memory.sample import *
from stable_baselines3 import HerReplayBuffer as _Her
from stable_baselines3.common.buffers import DictReplayBuffer as _Dict, NStepReplayBuffer as _NStep, ReplayBuffer as _Replay
from stable_baselines3.common.type_aliases import DictReplayBufferSamples, ReplayBufferSamples
__all__ = ['ReplayBuffer', 'DictReplayBuffer', 'NStepReplayBuffer', 'HerReplayBuffer', 'Priorities']

class ReplayBuffer(CompatBuffer, _Replay):
    """SB3's replay buffer, over an `ExperienceReplay`"""
    samples_as = ReplayBufferSamples

class DictReplayBuffer(ReplayBuffer, _Dict):
    """SB3's replay buffer for Dict observations, over an `ExperienceReplay`"""
    samples_as = DictReplayBufferSamples

class NStepReplayBuffer(ReplayBuffer, _NStep):
    """SB3's replay buffer with n-step returns, over an `ExperienceReplay`"""

    def __init__(self, *args, n_steps: int=3, gamma: float=0.99, **kwargs):
        ...

class HerReplayBuffer(_Her, DictReplayBuffer):
    """SB3's hindsight replay, relabelled by `HER` at the draw"""
    own_seed: Any

    def __init__(self, *args, seed: int | None=None, **kwargs):
        ...

    def sample(self, batch_size: int, env: Any=None):
        """Draw `batch_size` steps"""
        ...

    def truncate_last_trajectory(self):
        """Count the newest episodes as finished"""
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
