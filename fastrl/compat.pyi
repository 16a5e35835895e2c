"""The replay buffer of cleanrl's scripts, without stable-baselines3

cleanrl's scripts share one replay buffer, a copy of stable-baselines3's. Import `ReplayBuffer` from here instead, and the same script draws by priority, folds n steps, and stores each observation once, or each frame of it. It needs neither library, and of gymnasium only the spaces that you pass. [`fastrl.sb3`](30_sb3.ipynb) makes SB3's own classes of it.

```python
from cleanrl_utils.buffers import ReplayBuffer    # was
from fastrl.compat import ReplayBuffer            # is
```

`dqn.py`, `dqn_atari.py`, `c51.py`, `td3_continuous_action.py` and `sac_continuous_action.py` of cleanrl run with this one line changed.

Docs: https://fastrl.github.io/fastrl/compat.html.md"""
from typing import Any, overload
from typing import NamedTuple
from torch import Tensor
from .core import *
from .memory.place import *
from .memory.replay import *
from .memory.sample import *
from .offline import *
__all__ = ['ReplayBuffer', 'ReplayBufferSamples', 'NStepSamples', 'from_minari', 'to_minari', 'from_d4rl']

class ReplayBuffer:
    """The replay buffer of cleanrl and SB3, over an `ExperienceReplay`"""
    memory: Any
    samples_as: Any
    sb3_draws: bool
    own_seed: bool
    frame_stack: Any
    observation_space: Any
    action_space: Any
    n_envs: int
    obs_shape: Any
    action_dim: Any
    device: Any
    buffer_size: Any
    optimize_memory_usage: Any
    handle_timeout_termination: Any
    n_steps: Any
    gamma: Any
    drawn: Any

    def __init__(self, buffer_size: int, observation_space, action_space, device: Any='auto', n_envs: int=1, optimize_memory_usage: bool=False, handle_timeout_termination: bool=True, n_steps: int=1, gamma: float=0.99, sampler: Any=None, seed: int | None=None, frame_stack: int | None=None, frame_margin=0.05):
        """- `buffer_size`: The most steps it holds, of all environments together
        - `device`: Where batches should be; the rows lie in ordinary memory
        - `optimize_memory_usage`: Store each observation once?
        - `handle_timeout_termination`: Is a step that ran out of time no termination?
        - `n_steps`: Fold so many steps into one
        - `gamma`: Discount factor, for `n_steps`; give the model's
        - `sampler`: `Prioritized()`, for example, of which each buffer has a copy
        - `seed`: Makes draws reproducible, by default one of NumPy's generator; `np.random`: draw as SB3 does
        - `frame_stack`: Frames in an observation, each stored once; 0: it is no stack, and is stored once
        - `frame_margin`: With it, room for so many more frames than steps: a share, or a number"""
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

    def cut(self):
        """The next steps begin new episodes"""
        ...

    def size(self) -> int:
        """How many steps of all environments are stored"""
        ...

    def extend(self, *args):
        """Add several steps: the arguments of `add`, with one more axis each"""
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

    @property
    def rewards(self):
        ...

    @property
    def dones(self):
        ...

    @property
    def timeouts(self):
        ...

    def sample(self, batch_size: int, env: Any=None):
        """Draw `batch_size` steps"""
        ...

    def update_td(self, td_errors: Tensor):
        """Store the TD errors of the steps that `sample` gave last
    - `td_errors`: `(batch_size, 1)`"""
        ...

    def __deepcopy__(self, memo):
        """A copy, which draws other steps unless you gave a `seed`"""
        ...

class ReplayBufferSamples(NamedTuple):
    """A batch, as cleanrl has it"""
    observations: Tensor
    actions: Tensor
    next_observations: Tensor
    dones: Tensor
    rewards: Tensor
    discounts: Any

class NStepSamples(NamedTuple):
    """A batch of several steps each"""
    observations: Tensor
    actions: Tensor
    next_observations: Tensor
    dones: Tensor
    rewards: Tensor
    discounts: Tensor
