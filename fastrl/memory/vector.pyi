"""Number the episodes and steps of vector environments, and tell true steps from resets

One `step` of a vector environment gives a row per environment, but not every row is a transition: some environments have only been reset, and where an episode ended, `next_obs` may belong to the next one. `VectorSteps` follows the observations from step to step, says which rows are true transitions, and gives each its `env_id`, `episode_id` and `step`; `true_next` finds the last observation of an episode that ended.

Docs: https://fastrl.github.io/fastrl/memory.vector.html.md"""
from typing import Any, overload
import numpy as np
from types import SimpleNamespace
from ..core import *
__all__ = ['unchanged', 'array_of', 'VectorSteps', 'autoreset_name', 'true_next', 'check_mode', 'per_env', 'check_envs', 'with_more', 'rewards_for', 'TakesVectors']

def unchanged(obs, before, n: int) -> np.ndarray:
    """Is the observation of each environment the one from `before`?
    - `obs`: Observations `(n, …)`, also nested
    - `before`: Others of the same form, or `None` if there are none yet
    - `n`: How many environments
    - returns: `(n,)` bools"""
    ...

def array_of(o):
    """An array; of bfloat16, which NumPy lacks, the tensor"""
    ...

class VectorSteps(OwnArrays):
    """What is known of each vector environment between two of its steps"""
    told: Any
    vectors: Any
    next_episode: Any

    def __init__(self, vectors: Any=(), next_episode: int=0):
        """- `vectors`: A dict per vector, as in `vectors` of another one
        - `next_episode`: The number that the next new episode gets"""
        ...

    def __len__(self) -> int:
        ...

    def __repr__(self):
        ...

    def vector_of(self, env, n: int, obs) -> dict:
        """What is known of the vector `env`, which may be new
        - `env`: The vector environment; anything without `metadata` stands for the one vector that has no name
        - `n`: How many environments it has
        - `obs`: What they show now, by which a vector is recognized after loading
        - returns: Its entry in `vectors`"""
        ...

    def look(self, env, mode: str, obs, over) -> SimpleNamespace:
        """What one step of `env` was, by environment; it counts once you `commit` it
    - `env`: The vector environment, or any other name of its mode
    - `mode`: Its autoreset mode, from `autoreset_name`
    - `obs`: What the environments showed before the step
    - `over`: `(n,)` bools: did their episodes end with it?
    - returns: `lost`: only a reset; `left`: an unfinished episode was left off; `env_id`, `episode_id`, `step`"""
        ...

    def commit(self, s, next_obs):
        """Take the step `s` for done, now that its rows are stored
    - `s`: What `look` gave
    - `next_obs`: What the environments showed after the step"""
        ...

    def free_episode(self, ring) -> int:
        """A number above those of all episodes, stored or underway, that were counted
    - `ring`: Whose rows they are
    - returns: At least 1"""
        ...

    def going_on(self, env, obs, next_obs, terminated, truncated) -> dict:
        """What is known of the vector `env`, if its episodes plainly went on; `None` if this takes a longer look
    - `env`: As `look` takes it
    - `obs`, `next_obs`: What the environments showed before and after the step
    - `terminated`, `truncated`: `(n,)` bools
    - returns: Its entry in `vectors`"""
        ...

    def read(self, *, obs, rewards, terminated, truncated, next_obs, infos: Any=None, autoreset: Any=None, **columns) -> SimpleNamespace:
        """What one step of a vector was, checked; it counts once you `commit` it
    - `obs`, `rewards`, `terminated`, `truncated`, `next_obs`, `infos`, `autoreset`: As `add_vector` takes them
    - `**columns`: Others, `(n, …)`
    - returns: What `look` gives, and `rewards`, `terminated`, `truncated`, `over`, `next_obs`, `true_next`"""
        ...

def autoreset_name(mode) -> str:
    """The autoreset mode by its name
    - `mode`: A vector environment, its `autoreset_mode`, or the name of it
    - returns: `'next_step'`, `'same_step'` or `'disabled'`"""
    ...

def true_next(next_obs, over, infos):
    """`next_obs`, with the last observation of each episode that ended
    - `next_obs`: What the environments showed after the step
    - `over`: `(n,)` bools: did their episodes end with it?
    - `infos`: As `step` gave it, a dict or a list of dicts
    - returns: the same form as `next_obs`, copied"""
    ...

def check_mode(mode: str, over, infos, last):
    """A `ValueError` if `infos` has another last observation of an episode than `last`
    - `mode`: Name of the autoreset mode
    - `over`, `infos`: `(n,)` bools: did their episodes end? And what `step` gave
    - `last`: What the environments showed last by this mode, from `true_next`"""
    ...

def per_env(name: str, values, n: int, dtype: Any=None) -> np.ndarray:
    """One number for each environment, or a `ValueError`
    - `name`: For errors
    - `values`: One for each environment, `(n,)` or `(n,1)`
    - `n`: Environments
    - returns: `(n,)`"""
    ...

def check_envs(n: int, **columns):
    """A `ValueError` unless each of `columns` has a row for each environment
    - `n`: Environments
    - `**columns`: `(n, …)`, also nested"""
    ...

def with_more(own: dict, more: dict) -> dict:
    """The columns that `add_vector` writes, and those that you gave; a `ValueError` if you gave one of the first"""
    ...

def rewards_for(s, columns) -> np.ndarray:
    """The rewards in float32, which float64 columns would get rounded, and columns of whole numbers would refuse
    - `s`: From `VectorSteps.read`
    - `columns`: By path what has a `dtype`; `None` before the first row"""
    ...

class TakesVectors:
    """A memory with `add_vector`; it has `vectors`, `refused` (its exception), and `store_vector`"""
    stores_rows: bool

    def add_vector(self, obs, actions, next_obs, rewards, terminated, truncated, infos: Any=None, autoreset: Any=None, **more):
        """Add what one `step` of a vector environment gave
    - `obs`: What the environments showed before the step, `(n_envs, …)`, also nested
    - `actions`: The actions taken, `(n_envs, …)`
    - `next_obs`: What the environments showed after the step, as `step` gave it
    - `rewards`: One for each environment, or several of them, `(n_envs,k)`
    - `terminated`: Bools: did the episode end?
    - `truncated`: Bools: did a time limit cut it off?
    - `infos`: As `step` gave it, a dict or a list of dicts: in SAME_STEP mode it has `final_obs`
    - `autoreset`: Required: the vector environment, its `autoreset_mode`, or the name of it, `'next_step'`
    - `**more`: Other columns, `(n_envs, …)`"""
        ...

    def store_vector(self, s, actions, more: dict):
        """Add the true steps as rows, by `+` to the `ring`; then the step counts
    - `s`: From `VectorSteps.read`
    - `actions`: As they came
    - `more`: Other columns"""
        ...

    def vectors_left(self):
        """The vectors that were loaded do not resume: new ones take the numbers of their environments"""
        ...
