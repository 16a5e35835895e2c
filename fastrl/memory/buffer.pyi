"""A replay buffer of typed columns, as Velora's agents use it

An agent with a recurrent network has more to remember than what it saw and did: the hidden state of its network belongs to each step, too. `ReplayBuffer` keeps steps of one known form as columns, `states`, `actions`, `rewards`, `next_states`, `dones`, `hiddens`, and draws a `BatchExperience` from them. It can fill itself with the agent's own steps, and it reads and writes the files of [Velora](https://velora.achronus.dev).

Docs: https://fastrl.github.io/fastrl/memory.buffer.html.md"""
from typing import Any, overload
from contextlib import contextmanager
from dataclasses import InitVar, dataclass
import torch
from torch import Tensor
from ..core import *
from .disk import Lasting, OneMoment, Savable
from .sample import *
__all__ = ['ReplayBuffer', 'BatchExperience']

class ReplayBuffer(Lasting, OneMoment, Savable):
    """The last `capacity` steps as columns, and batches drawn from them"""
    kind: str
    lasting: Any
    frame_stack: Any
    states: Any
    actions: Any
    rewards: Any
    next_states: Any
    dones: Any
    hiddens: Any
    terminateds: Any
    truncateds: Any
    capacity: Any
    device: Any
    dropped_updates: Any
    state_dim: Any
    action_dim: Any
    hidden_dim: Any
    frame_margin: Any
    sampler: Any
    ring: Any

    def __init__(self, capacity: int, state_dim: int, action_dim: int, hidden_dim: int, *, device: Any=None, sampler: Any=None, seed: int | None=None, state_dtype: torch.dtype=torch.float32, action_dtype: torch.dtype=torch.float32, reward_dtype: torch.dtype=torch.float32, hidden_dtype: torch.dtype=torch.float32, frame_stack: int | None=None, frame_margin=0.05):
        """- `capacity`: The most steps it holds; then the oldest are overwritten
        - `state_dim`: Numbers in a state, or its shape as a tuple
        - `action_dim`: Numbers in an action: 1 if it is one of several
        - `hidden_dim`: Numbers in the hidden state of the network; 0 if it has none
        - `device`: Where the steps live
        - `sampler`: Which steps are drawn: `Uniform` by default, or `Prioritized(…)`
        - `seed`: Makes the draws reproducible; by default the sampler's, if it has one
        - `state_dtype`: Of `states` and `next_states`
        - `frame_stack`: Frames in a state, each stored once; 0: it is one observation, no stack
        - `frame_margin`: With it, room for so many more frames than steps: a share, or a number"""
        ...

    def __setattr__(self, k, v):
        ...

    @property
    def position(self) -> int:
        ...

    @property
    def size(self) -> int:
        ...

    def __len__(self) -> int:
        ...

    def __repr__(self):
        ...

    def add(self, state, action: Any=None, reward: Any=None, next_state: Any=None, done: Any=None, hidden: Any=None, truncated=False):
        """Write one step, over the oldest one when full
    - `state`: The observation; or a tuple of all that a step is
    - `action`: The action taken
    - `reward`: What it was rewarded with
    - `next_state`: The next observation
    - `done`: Was the episode over?
    - `hidden`: The hidden state that came with the action; 0 without
    - `truncated`: Was it only cut short, as by a time limit?"""
        ...

    def add_multi(self, states, actions: Any=None, rewards: Any=None, next_states: Any=None, dones: Any=None, hiddens: Any=None, truncateds: Any=None):
        """Write many steps, in order
    - `states`: `(n, …)`; or a tuple of all columns
    - `actions`: `(n, …)`, or `(n,)` if an action is one number
    - `rewards`: `(n,1)` or `(n,)`, as `dones` and `truncateds`
    - `next_states`: `(n, …)`
    - `dones`: Was the episode over?
    - `hiddens`: `(n, hidden_dim)`; 0 without
    - `truncateds`: Was it only cut short? No by default"""
        ...

    def sample(self, batch_size: int) -> BatchExperience:
        """Steps that the sampler chooses
    - `batch_size`: How many steps"""
        ...

    def update_td(self, td_errors, idxs, serials: Tensor | None=None):
        """Give the sampler the TD errors of the steps in `idxs`
    - `td_errors`: `(n,1)` or `(n,)`, one for each step
    - `idxs`: The batch; or its `idxs`, `(n,)`
    - `serials`: With numbers: the batch's `serials`; without them the rows are taken as they are now"""
        ...

    def metadata(self) -> dict:
        """What goes into the `.json`"""
        ...

    def state_dict(self) -> dict:
        """A copy of all columns, `capacity` rows each"""
        ...

    def save(self, dirpath, prefix: str='buffer_'):
        """Write `<prefix>state.safetensors` and `<prefix>metadata.json`
    - `dirpath`: A folder, made if need be
    - `prefix`: The names of the files begin with it"""
        ...

    @classmethod
    def load(cls, state_path, metadata: dict | None=None, **kwargs) -> ReplayBuffer:
        """The buffer that was saved
    - `state_path`: The `.safetensors` file, with or without this suffix; or the folder of a `checkpoint`
    - `metadata`: The contents of the `.json` beside it; without it this is read
    - `**kwargs`: For the new buffer: `sampler`, `seed`, `frame_stack`, `device`; for a folder those of `load_memory`"""
        ...

    @contextmanager
    def belongings(self, extra: Any=None):
        """Everything to checkpoint, while nobody writes"""
        ...

    @classmethod
    def empty(cls, saved, sampler: Any=None, device: Any='cpu') -> ReplayBuffer:
        """A buffer with the settings of `saved`, and no rows yet"""
        ...

    def restored(self, saved, ring, beside, state) -> ReplayBuffer:
        """The buffer over the rows that were loaded"""
        ...

    def warm(self, agent, n_samples: int, num_envs: int=8, seed: int | None=None):
        """Fill up to `n_samples` steps, by letting `agent` act in copies of its environment
    - `agent`: Has `env` and `predict(states, hidden, train_mode=True)` → actions, hidden
    - `n_samples`: Steps that should be stored afterwards; a few more come if the copies don't divide it
    - `num_envs`: Copies of the environment
    - `seed`: Of the copies"""
        ...

    def config(self):
        """Kind, capacity and dimensions, as a Velora agent writes them down
    - returns: Velora's `BufferConfig` if Velora is loaded, else an `AttrDict` that it accepts"""
        ...

class _Beside:
    """Slots for the attributes that are no fields; `vars` and the functions of `dataclasses` pass them by"""
    __slots__: Any

@dataclass
class BatchExperience(_Beside):
    """Steps as six columns, `(batch_size, features)` each, and attributes beside them"""
    states: Tensor
    actions: Tensor
    rewards: Tensor
    next_states: Tensor
    dones: Tensor
    hiddens: Tensor
    terminateds: InitVar[Tensor] | None = None
    truncateds: InitVar[Tensor] | None = None
    weights: InitVar[Tensor] | None = None
    idxs: InitVar[Tensor] | None = None
    serials: InitVar[Tensor] | None = None
    drawn_from: InitVar | None = None

    def __post_init__(self, *beside):
        ...

    def __getstate__(self):
        ...

    def __copy__(self):
        ...
