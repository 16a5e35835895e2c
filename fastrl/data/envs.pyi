"""Open one gymnasium environment or a vector of them, and begin each episode the way it does

You reset a single environment; a vector resets its environments itself, in one of three ways. `open_envs` makes either from a name, `reset_mode` says how the next episode begins, `next_start` gives the observation it begins with, and `close_envs` closes even a vector that was interrupted. [`GymLoop`](05b_data.gym.ipynb) does all of it for you.

Docs: https://fastrl.github.io/fastrl/data.envs.html.md"""
from typing import Any, overload
import gymnasium as gym
from gymnasium.vector import SyncVectorEnv
from ..core import *
__all__ = ['autoreset_modes', 'one_number', 'one_flag', 'check_last', 'CopyObs', 'SyncEnvs', 'by_name', 'make_env', 'can_draw', 'open_envs', 'spaces_of', 'actions_of', 'reset_mode', 'next_start', 'close_envs', 'naming_the_dead']
autoreset_modes: Any

def one_number(o, name: str='a reward'):
    """The number in `o`
    - `o`: A number or a bool, or an array, a tensor or a list with one
    - `name`: What an error calls it"""
    ...

def one_flag(o) -> bool:
    """Does an episode end? Also in an array, a tensor or a list with one; `None` is no"""
    ...

def check_last(obs, info, i: int | None=None):
    """A `ValueError` if `info` has another last observation: then the environment has reset itself
    - `obs`: What a `step` that ended an episode returned
    - `info`: Its info; of a vector, all infos
    - `i`: In a vector: which environment"""
    ...

class CopyObs(gym.ObservationWrapper):
    """Copy each observation, for environments that return the same array each time"""
    form: Any

    def reset(self, **kwargs):
        ...

    def step(self, action):
        ...

    def observation(self, obs):
        ...

class SyncEnvs(SyncVectorEnv):
    """gymnasium's `SyncVectorEnv` of environments in `CopyObs`, in less time where an observation is one array"""

    def step(self, actions):
        ...

def by_name(env) -> bool:
    """Can `env` be made, by name or by a function, or is it ready?"""
    ...

def make_env(env, **kwargs):
    """Make one environment
    - `env`: Name of an environment, or a function that makes one
    - `**kwargs`: For it
    - returns: an environment"""
    ...

def can_draw(env, env_kwargs: Any=None) -> bool:
    """Can it give its view as an array?
    - `env`: Name of an environment, or a function that makes one
    - `env_kwargs`: For it"""
    ...

def open_envs(env, n_envs: int=1, vectorization: str='sync', autoreset: str='next_step', env_kwargs: dict | None=None):
    """Make the environment or the vector that `env` names; a ready one is returned
    - `env`: Name of an environment, a function that makes one, or a ready environment or vector
    - `n_envs`: Environments at once
    - `vectorization`: `'sync'`: one after the other in this process; `'async'`: each in its own
    - `autoreset`: How a vector begins an episode: `'next_step'`, `'same_step'` or `'disabled'`
    - `env_kwargs`: For `gymnasium.make`, or the function
    - returns: an environment, or a vector of them"""
    ...

def spaces_of(env):
    """The spaces of one environment, in a vector too
    - returns: observation space, action space"""
    ...

def actions_of(env):
    """The space of what `env.step` takes: of a vector, an action for each environment
    - returns: a space"""
    ...

def reset_mode(env):
    """How `env` begins the next episode
    - returns: an `AutoresetMode`, or `None` for a single environment, which is reset by hand"""
    ...

def next_start(env, mode, obs, terminated, truncated):
    """The observation that the next step starts from
    - `env`: From `open_envs`
    - `mode`: Its `reset_mode`
    - `obs`: What its last `step` returned
    - `terminated`: Did episodes end there?
    - `truncated`: Did a time limit cut them?"""
    ...

def close_envs(env):
    """Close `env`, even if an interruption left its processes in the middle of a step, or one of them died
    - `env`: From `open_envs`"""
    ...

class naming_the_dead:
    """An error that names the environment whose process died, instead of an `EOFError`"""
    env: Any

    def __init__(self, env):
        """- `env`: From `open_envs`"""
        ...

    def __enter__(self):
        ...

    def __exit__(self, kind, e, trace):
        ...
