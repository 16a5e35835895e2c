"""Which rows of a memory are drawn

If a learner draws from the same random stream as its environment or its network, each draw changes both; and nobody can debug a run that cannot be repeated. Here each sampler owns its generator: a seed repeats its draws, and no other random number moves. `Uniform` and `Prioritized` choose the rows of a batch, and `HER` gives them goals that were reached; a [`Walk`](02a_memory.walk.ipynb) turns each into several steps, and a [`Mixture`](02d_memory.mixture.ipynb) draws from several memories.

Docs: https://fastrl.github.io/fastrl/memory.sample.html.md"""
from typing import Any, overload
import torch
from ..core import *
from .mixture import Mixture
from .positions import Positions
from .ring import Ring
from .walk import Walk
__all__ = ['Chains', 'Uniform', 'Prioritized', 'HER', 'sampler_of', 'Walk', 'Mixture']

class Uniform:
    """Draw rows with equal chances, with replacement"""
    key: Any
    drawn: Any
    draws: Any
    of: Any
    of_key: Any
    gen: Any
    seeded: bool

    def __init__(self, seed: int | None=None, device: Any='cpu'):
        """- `seed`: Makes the draws reproducible; without it they differ each time
        - `device`: No longer needed: rows are drawn where they live"""
        ...

    def seed(self, seed: int):
        """Restart the stream of random numbers"""
        ...

    def give_back(self, *at):
        ...

    def __repr__(self):
        ...

    def there(self, ring: Ring, bs: int, k: int):
        """`draw` as work that can be `recorded`
    - `ring`: On a device
    - `bs`: How many to draw
    - `k`: Of so many batches, one after the other
    - returns: what the draw depends on, tensors that it sees, numbers for it, and the draw: `f(numbers)` → as `draw`; `None` if `draw` is not `Uniform`'s, or there are no rows"""
        ...

    def skip(self, n: int):
        """Use up the next `n` random numbers
    - `n`: Random numbers
    - returns: the key of the stream, and the place of the first of them"""
        ...

    def own(self) -> torch.Generator:
        """The generator; a worker of a `DataLoader` begins a stream of its own"""
        ...

    def draw(self, ring: Ring, bs: int, n_batches: int=1):
        """Choose the rows of the next batch
    - `bs`: How many to draw
    - `n_batches`: How many such batches, one after the other
    - returns: row numbers `(bs*n_batches,)`, and columns that the draw adds to the batch"""
        ...

    def evenly(self, n: int):
        """Use up the random numbers of `n` evenly drawn rows, which the ring then makes itself
    - `n`: Row numbers
    - returns: the key of the stream, and the place of the first number; `None` if `draw` is not `Uniform`'s"""
        ...

    @property
    def settings(self) -> dict:
        """The arguments that make another sampler of this kind"""
        ...

    @property
    def sure(self) -> bool:
        """Are all rows that `draw` names stored? Then nobody waits for a GPU to look"""
        ...

    def update(self, ring, idxs, td_errors):
        """Take the TD errors of the rows `idxs`; `Uniform` ignores them"""
        ...

    def belong(self, ring: Ring):
        """Remember that this sampler belongs to `ring`; raise if it belongs to another that still exists"""
        ...

    def beside(self, ring) -> dict:
        """What the sampler keeps for each row, by name"""
        ...

    def state_dict(self) -> dict:
        """The position in its stream of random numbers"""
        ...

    def load_state_dict(self, state: dict, ring: Ring | None=None, beside: dict | None=None):
        """Resume drawing where another sampler was
    - `state`: From `state_dict`
    - `ring`: The rows to draw from
    - `beside`: What was kept for each row"""
        ...

    def rewind(self, state: dict):
        """Go back to where this sampler was; what it keeps for each row stays
    - `state`: From `state_dict`"""
        ...

    def __getstate__(self):
        ...

    def __setstate__(self, state):
        ...

class Prioritized(Uniform):
    """Draw rows in proportion to `(|td_error|+eps)**alpha`"""
    forgotten: Any
    tree: Any
    starts: Any
    resting: Any
    beta_steps: Any
    eps: Any
    eta: Any
    normalize: Any
    draws: Any
    seen: int
    base: int
    beta0: float

    def __init__(self, alpha: float=0.6, beta: float=0.4, beta_steps: int=100000, eps: float=1e-06, normalize: str='batch', seed: int | None=None, device: Any='cpu', eta: float=0.9):
        """- `alpha`: 0 draws uniformly, 1 in proportion to the TD error
        - `beta`: How far the weights correct for that at first; 1 corrects in full
        - `beta_steps`: Batches until `beta` is 1
        - `eps`: Added to each error, so that rows without one are drawn too
        - `normalize`: Where the largest weight is 1: in the `'batch'`, or in the whole `'memory'`
        - `seed`: Makes the draws reproducible
        - `device`: No longer needed: rows are drawn where they live
        - `eta`: A sequence's priority is `eta` times its largest TD error plus `1-eta` times their mean"""
        ...

    @property
    def alpha(self) -> float:
        """How much TD errors matter; a new value counts for known ones, too, unless the old one was 0"""
        ...

    @alpha.setter
    def alpha(self, value):
        ...

    @property
    def beta(self) -> float:
        """How far weights correct: set it yourself, or let it rise to 1 over `beta_steps` draws"""
        ...

    @beta.setter
    def beta(self, value):
        ...

    def there(self, ring: Ring, bs: int, k: int):
        """`draw` as work that can be `recorded`
    - `ring`, `bs`, `k`: As `Uniform` takes them
    - returns: as `Uniform`"""
        ...

    @property
    def settings(self) -> dict:
        """The arguments that make another sampler of this kind"""
        ...

    def follow(self, ring: Ring):
        """Give new rows the largest priority that was there before, or that of the `td_error` with which they came"""
        ...

    def leave_out(self, slots):
        """Draw none of these rows, which are half written, until they are written anew
    - `slots`: An array of row numbers"""
        ...

    def update(self, ring, idxs, td_errors):
        """Set the priorities of `idxs` by their TD errors"""
        ...

    def learn(self, ring: Ring, td_errors, idxs, serials) -> bool:
        """`update`, and the column `td_error` with it, if nothing about these is unusual
    - `td_errors`, `idxs`, `serials`: Of sequences, `(bs,T)`, as they were drawn
    - returns: Did it?"""
        ...

    def betas(self, k: int) -> list:
        """`beta` for each of the next `k` batches
    - `k`: Batches"""
        ...

    def draw(self, ring: Ring, bs: int, n_batches: int=1):
        """Choose the rows of the next batch, and how much each counts
    - `bs`: How many to draw
    - `n_batches`: How many such batches, one after the other
    - returns: row numbers `(bs*n_batches,)`, and the column `weight`"""
        ...

    def draw_rows(self, ring, bs, n_batches, read):
        """`draw`, and read the whole rows; `None` if they are long, `draw` was replaced, or `read` cannot take part"""
        ...

    def draw_starts(self, ring: Ring, bs: int, walk: Walk, T: int, pad: bool=False):
        """Choose the rows with which the sequences of the next batch begin, and how much each counts
    - `bs`: How many to draw
    - `walk`: Says which row follows which
    - `T`: Steps in a sequence
    - `pad`: Also shorter episodes?
    - returns: row numbers `(bs,)`, an array, and the column `weight`"""
        ...

    def beside(self, ring) -> dict:
        """The priority of each row"""
        ...

    def state_dict(self) -> dict:
        """The position in its stream of random numbers, and how far `beta` has come"""
        ...

    def load_state_dict(self, state: dict, ring: Ring | None=None, beside: dict | None=None):
        """Resume drawing where another sampler was
    - `state`: From `state_dict`
    - `ring`: The rows to draw from
    - `beside`: From `beside`, for these rows"""
        ...

    def rewind(self, state: dict):
        """Go back to where this sampler was; priorities stay
    - `state`: From `state_dict`"""
        ...

class HER(Uniform):
    """Draw rows, most of them with a goal that their own episode achieved; sequences keep the goals they have"""
    at: Any
    plan: Any
    strategy: Any
    k: Any
    reward: Any
    goal: str
    achieved: str
    rows: Positions

    def __init__(self, strategy: str='future', k: int=4, reward: Any=None, goal: str='desired_goal', achieved: str='achieved_goal', seed: int | None=None, device: Any='cpu'):
        """- `strategy`: Whose achieved goal: a `'future'` row's, the `'final'` one's, or any of the `'episode'`
        - `k`: Rows with another goal for each that keeps its own
        - `reward`: `reward(achieved, goal, idxs)` → one number per row; `idxs` are row numbers, not an `info`
        - `goal`: The field that is replaced, wherever it stands
        - `achieved`: The field of `next_state` (or `next_obs` …) that says what a step achieved
        - `seed`: Makes the draws reproducible
        - `device`: No longer needed: rows are drawn where they live"""
        ...

    def draw(self, ring: Ring, bs: int, n_batches: int=1):
        """Choose the rows of the next batch, as `Uniform` does
    - `bs`: How many to draw
    - `n_batches`: How many such batches, one after the other
    - returns: row numbers `(bs*n_batches,)`, and columns that the draw adds to the batch"""
        ...

    def draw_rows(self, ring, bs, n_batches, read):
        """`draw` and `read` in fewer steps; `None` if one of them was replaced"""
        ...

    @property
    def settings(self) -> dict:
        """The arguments that make another sampler of this kind, apart from `reward`, which no file can hold"""
        ...

    def read(self, ring: Ring, idxs):
        """Copy the rows `idxs`, with their new goals and rewards
    - `idxs`: `(bs,)`
    - returns: packed rows, or a list of columns, and the column `relabelled`"""
        ...

def sampler_of(kind: str, settings: dict, device: Any='cpu') -> Uniform:
    """Rebuild a saved sampler from its class name and settings
    - `kind`: 'Uniform' or the name of a subclass
    - `settings`: From its `settings`
    - `device`: Where the rows live"""
    ...
Chains = Walk
