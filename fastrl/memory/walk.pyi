"""Which row follows which, and what several steps in a row make

An n-step return, a sequence, a whole episode: each needs the row that follows a row. With many environments that is not the one in the next slot; and at the end of an episode, at the write cursor, or where rows are missing, no row follows. A `Walk` links the rows of a `Ring` once, by everything the rows say. Whatever takes more than one step then walks along these links.

Docs: https://fastrl.github.io/fastrl/memory.walk.html.md"""
from typing import Any, overload
import torch
from torch import Tensor
from ..core import *
from .returns import *
from .ring import Ring
from .told import *
__all__ = ['end_before', 'sequence_names', 'Walk', 'links', 'warn_of_short', 'names_beside', 'Runs']

class Walk(OwnArrays):
    """By row: the next one of its episode and the one before, or a code below that says why there is none"""
    there: Any
    sent: Any
    lately: Any
    to_compare: Any
    compared: Any
    jumps: Any
    looked: Any
    seen: int
    base: Any
    missed: Any
    least: Any
    anew: Any
    missed_at: Any
    named: Any
    nxt: Any
    prv: Any
    ids: Any
    last: Any
    episodes: Any
    steps: Any
    look_at: Any

    def __init__(self):
        ...

    def follow(self, ring: Ring):
        """Link the rows that came since the last time
    - `ring`: Whose rows they are"""
        ...

    def runs(self, idxs: Tensor, T: int):
        """The rows that follow each of `idxs`
    - `idxs`: `(bs,)`
    - `T`: How many steps at most
    - returns: row numbers `(bs, T)`, the last one repeated where there are no more, and how many steps there are `(bs,)`"""
        ...

    def returns(self, reward: Tensor, idxs: Tensor, n: int, gamma):
        """Go `n` steps from each of `idxs`
    - `reward`, `idxs`, `n`, `gamma`: As the function `returns` takes them
    - returns: as `returns`"""
        ...

    def fold(self, ring: Ring, idxs: Tensor, n: int, gamma):
        """Go `n` steps from each of the rows `idxs` of `ring`
    - `ring`: Whose rows they are
    - `idxs`: `(bs,)`
    - `n`: How many steps at most
    - `gamma`: What a reward one step later is worth: a number, or the name of a column
    - returns: as `returns`; of several rewards the total, and of as many discounts theirs, `(bs,k)`"""
        ...

    def next_there(self, ring: Ring) -> Tensor:
        """Which row follows each, where the rows are; nobody waits for that
    - `ring`: On a device
    - returns: One for each slot"""
        ...

    def bounds(self, ring: Ring) -> tuple:
        """The serial numbers of the row in slot 0, of the oldest whole row, after the newest one; and how many slots
    - `ring`: Whose rows they are"""
        ...

    def draw_runs(self, ring: Ring, bs: int, T: int, pad: bool, gen: torch.Generator):
        """Runs of `T` rows, all of them equally likely
    - `ring`: Whose rows they are
    - `bs`: How many
    - `T`: Steps in each
    - `pad`: Also pieces of episodes that are shorter?
    - `gen`: Source of randomness
    - returns: row numbers `(bs, T)`, steps `(bs,)`"""
        ...

    def whole(self, ring: Ring) -> tuple:
        """The first rows of all episodes that are stored whole, and how many steps these are, `(episodes,)` each
    - `ring`: Whose rows they are"""
        ...

    def pieces(self, ring: Ring, T: int):
        """All rows, each in one run of `T`, or of fewer where its episode ends
    - `ring`: Whose rows they are
    - `T`: Steps in each
    - returns: row numbers `(n,T)`, -1 behind the end; and which begin an episode, end one, exist, `(n,T)` each"""
        ...

    def state_dict(self, ring: Ring) -> dict:
        """What the rows of `ring` do not say about the rows before and after them
    - `ring`: Whose rows were followed"""
        ...

    def load_state_dict(self, state, ring: Ring):
        """Link the rows of `ring` as they were
    - `state`: From `state_dict`
    - `ring`: With the same rows"""
        ...
end_before: Any

def links(chain, over, episode: Any=(), step: Any=()) -> Walk:
    """A walk over rows that are in no ring
    - `chain`: `(R,)`, rows with the same number are of one environment, in order
    - `over`: `(R,)` bool, where that ends
    - `episode`: `(R,)`, if rows have a number for it
    - `step`: Likewise"""
    ...

def warn_of_short(lengths, T: int):
    """Warn that these are never drawn
    - `lengths`: Of all episodes
    - `T`: Steps in a sequence; some episodes are shorter"""
    ...
sequence_names: Any

def names_beside(ring: Ring, unequal: bool=True, burn_in: bool=False) -> list:
    """How batches of sequences name what they have beside the fields
    - `ring`: Whose rows they are
    - `unequal`: May sequences differ in length?
    - `burn_in`: Do some steps only warm up a network?
    - returns: `None` where rows have such a column"""
    ...

class Runs:
    """Draw runs of rows within one episode"""
    sure: bool
    walk: Walk
    gen: torch.Generator
    T: int | None
    pad: bool
    burn_in: int
    by: Any
    left: bool

    def __init__(self, walk: Walk, gen: torch.Generator, T: int | None=None, pad: bool=False, burn_in: int=0, by: Any=None, left: bool=False):
        """- `gen`: Source of randomness
        - `T`: Steps in each; without it whole episodes
        - `pad`: Also shorter pieces of episodes, filled up with zeros?
        - `burn_in`: Steps before each, as many of them as are stored
        - `by`: Has `draw_starts(ring, bs, walk, T, pad)`, as `Prioritized`; without it all are equally likely
        - `left`: Begin each with its first step, and not with what the burn-in lacks?"""
        ...

    def draw(self, ring, bs):
        ...
