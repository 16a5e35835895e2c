"""Check any memory, including yours, against what a replay memory must guarantee

The mistakes of a replay memory are silent: the loss goes down, the agent just learns less. `check_memory` feeds a memory tiny episodes in which every number says where it belongs, and looks for the mistakes that replay memories are known for: a wrong next state at a time limit, episodes joined at the write cursor, arrays that the caller overwrites, updates that come too late. It needs only NumPy, so your memory may use any library; `pytest --fastrl-memory` makes each mistake a test of its own.

Docs: https://fastrl.github.io/fastrl/memory.check.html.md"""
from typing import Any, overload
__all__ = ['known_mistakes', 'tiny_cases', 'all_columns', 'Mistake', 'NotThere', 'case', 'check_memory', 'tiny_steps', 'following', 'expected', 'new_memory', 'steps_for', 'arrays', 'drawn', 'first', 'fed', 'rows_of', 'same', 'joints_of', 'Trial', 'check_rows', 'check_time_limit', 'check_terminal', 'check_last_state', 'check_write_cursor', 'check_overwritten', 'check_episodes', 'check_environments', 'check_aliasing', 'after_update', 'frequent', 'check_late_priorities', 'random_states', 'check_random_state']

class Mistake(AssertionError):
    """A memory did something wrong"""

class NotThere(Exception):
    """A memory lacks what a case is about: there is nothing to check"""
known_mistakes: Any

def case(f):
    """Put `check_name(trial)` among the `known_mistakes`, as `name`"""
    ...
tiny_cases: Any

def check_memory(make, cases: Any=tiny_cases, samples: int=2):
    """Raise a `Mistake`, which is an `AssertionError`, that says what came out wrong; each case makes a new memory
    - `make`: `make(capacity)` → a memory; a parameter `n_envs`, if there is one, gets the number of environments
    - `cases`: `(capacity, lengths of episodes for each environment)`
    - `samples`: How many batches are checked after each step"""
    ...

def tiny_steps(lengths, n: int=40):
    """Steps of the environments by turns, each with everything that a memory stores
    - `lengths`: How long the episodes of each environment are
    - `n`: How many steps
    - returns: list of dicts"""
    ...

def following(steps, s):
    """The serial of the step after `s`; `None` if its episode is over, -1 if that step is yet to come"""
    ...

def expected(steps, s, n=1, gamma=1):
    """What `n` of `steps`, from `s` on, hold as one row; `gamma` is a number, or names what is in each step
    - returns: (how the last step ends, were there fewer than `n`?, columns)"""
    ...

def new_memory(make, cap, lengths):
    """A memory for so many environments, and how many rows it keeps"""
    ...

def steps_for(memory, lengths):
    """`tiny_steps`; with a column of discounts, if `gamma` of the `memory` names one"""
    ...

def arrays(step):
    ...

def drawn(memory):
    """A batch, and the numbers of its rows if they come with it"""
    ...

def first(v, ndim=1):
    """The first number of each row in `v`, an array of any library; rows have `ndim` axes"""
    ...

def fed(make, cases, several):
    """New memories, after each step of one environment, or of `several`
    - returns: (memory, its capacity, the steps so far, their serials by state, all that in words)"""
    ...

def rows_of(make, cases, samples, several=False):
    """Every row that new memories give while they are fed by one environment, or by `several`"""
    ...

def same(r, *names):
    """Does the row `r` hold what it should in the columns `names`?"""
    ...
all_columns: Any

def joints_of(make, cases, samples, several=False):
    """Each two steps that follow one another in sequences that new memories draw"""
    ...

class Trial:
    """Memories that `make` gives, and the rows and the joints of sequences that were drawn from them"""
    make: Any
    cases: Any
    samples: Any

    def __init__(self, make, cases: Any=tiny_cases, samples=2):
        ...

    def all_of(self, what, several):
        ...

    def rows(self):
        ...

    def joints(self):
        ...

    def mixed_rows(self):
        ...

    def mixed_joints(self):
        ...

def check_rows(trial):
    """What is drawn as one row was added as one"""
    ...

def check_time_limit(trial):
    """At a time limit, `next_state` is the true last observation, and `terminated` is false"""
    ...

def check_terminal(trial):
    """At a true end, `terminated` is true, and no reward comes after"""
    ...

def check_last_state(trial):
    """At a true end, `next_state` is the last observation"""
    ...

def check_write_cursor(trial):
    """The newest row is not joined to the oldest, which stands beside it"""
    ...

def check_overwritten(trial):
    """A row that was overwritten is drawn no more"""
    ...

def check_episodes(trial):
    """Several steps, folded into a row or drawn as a sequence, are consecutive steps of one episode"""
    ...

def check_environments(trial):
    """Steps of several environments, added by turns, are not mixed"""
    ...

def check_aliasing(trial):
    """The memory neither keeps the arrays it is given nor gives out its own"""
    ...

def after_update(make, late):
    """Give one row of a batch a huge TD error: at once, or `late`, when all rows are overwritten
    - returns: its state; the states drawn then, and which rows have that error"""
    ...

def frequent(states, share):
    """The state that more than this `share` of the rows has, if there is one"""
    ...

def check_late_priorities(trial):
    """An update for a row that was overwritten does not go to the row in its place"""
    ...

def random_states():
    """The random states that everybody shares, of the libraries that are in use"""
    ...

def check_random_state(trial):
    """Draws do not use the global random state"""
    ...
