"""Steps of gymnasium environments, one or many, as a stream of true transitions

Between an environment and a memory, experience breaks in small ways: the observation after a reset is taken for the outcome of the last action, a time limit for a death, a buffer that the environment reuses for a record. `GymLoop` steps one environment or a vector of them and yields transitions that are true, with `terminated` and `truncated` apart. `FirstLast` folds several steps into one, `ResReduce` shrinks images.

Docs: https://fastrl.github.io/fastrl/data.gym.html.md"""
from typing import Any, overload
from torch import Tensor
from ..core import *
from .block import *
from .envs import *
from .learner import *
from .steps import *
__all__ = ['GymLoop', 'FirstLast', 'windows', 'ResReduce', 'show_source', 'Source', 'LoopCallback', 'space_form', 'StepArrays', 'to_rows', 'since', 'SourceDL', 'Reward', 'NEpisodes', 'RowsAsTargets', 'NoValidation', 'MeanReward', 'reward_loss', 'fake_gym_learner']

class GymLoop(LoopCallback):
    """Steps of one gymnasium environment, or of several at once"""
    seed: Any
    env_kwargs: Any
    env: Any
    n_envs: Any
    obs_form: Any
    act_form: Any
    obs: Any

    def __init__(self, env_name, agent: Any=None, mode: str | None=None, steps_count: int=1, steps_delta: int=1, seed: int | None=None, n_envs: int=1, vectorization: str='sync', autoreset: str='next_step', env_kwargs: dict | None=None):
        """- `env_name`: Name of an environment, a function that makes one, or a ready environment or vector
        - `agent`: `agent(states)` → actions, both with a first axis of environments; without one actions are random
        - `mode`: `'rgb_array'` adds a column `image`, the view before the action; `'human'` shows a window
        - `steps_count`: Steps in a window, which a `FirstLast` folds into one row
        - `steps_delta`: Steps from the start of a window to the start of the next
        - `seed`: Of environments and random actions
        - `n_envs`: Environments at once
        - `vectorization`: `'sync'`: one after the other in this process; `'async'`: each in its own
        - `autoreset`: How a vector begins an episode: `'next_step'`, `'same_step'` or `'disabled'`
        - `env_kwargs`: For `gymnasium.make`"""
        ...

    def before_loop(self):
        """Open and reset the environment"""
        ...

    def collect(self, n):
        """The next `n` rows; or all of the steps that they take, where these come ahead or in windows"""
        ...

    def after_loop(self):
        """Close the environment, unless it was handed in"""
        ...

    def __getstate__(self):
        ...

    def go_on(self, n: int):
        """Resume after a break: new episodes with new numbers, and the same ones for the same `seed` and `n`
    - `n`: Rows that came from this loop before a break"""
        ...

    def after_block(self):
        """Without a `FirstLast`, put the steps of each window one below the other"""
        ...

    def to_play(self, n: int, seed: int | None=None, film: bool=False):
        """A loop over environments of its own, in which the agent does not explore
    - `n`: Episodes side by side
    - `seed`: The same episodes each time; by default those that follow from the seed of the loop
    - `film`: With a column `image`, where the environment can draw itself
    - returns: `GymLoop`, or `None` if the environment cannot be made again"""
        ...

class FirstLast(LoopCallback):
    """Fold the steps of a row into its first state and action, the discounted reward, and the last outcome"""
    gamma: float
    loop: Any
    begun: Any

    def __init__(self, gamma: float=0.99):
        """- `gamma`: What a reward one step later is worth"""
        ...

    def before_loop(self):
        ...

    def after_block(self):
        ...

    def fold(self, b, n):
        """The rows of `b` that are complete, folded, and their steps; the others wait in `self.begun`"""
        ...

    def thin(self, b, steps):
        """The rows that begin at every `steps_delta`-th step, and the last step if none of them reaches it"""
        ...

def windows(chain: Tensor, done: Tensor, n: int):
    """For each row the `n` rows from it on, up to an ending; how many they are; and whether more cannot come
    - `chain`: `(R,)`, rows with the same number follow one another
    - `done`: `(R,)` bool, where a chain ends
    - `n`: Steps in a window
    - returns: rows `(R, n)`, steps `(R,)`, complete `(R,)`"""
    ...

class ResReduce(LoopCallback):
    """Keep every `reduce_by`-th pixel of the column `image`"""
    reduce_by: Any

    def __init__(self, reduce_by: int=2):
        """- `reduce_by`: How many pixels, each way, become one"""
        ...

    def after_block(self):
        ...

def show_source(source: Source, iters: int=50):
    """Show the frames of the next rows of `source`, one after another
    - `source`: With pictures in its rows
    - `iters`: How many rows"""
    ...
