"""Which episodes are stored, and which sequences of them make the next batch

Several processes draw sequences while one adds episodes, and none of them should wait. A `Table` has one line of numbers per episode: where it begins, how long it is, its number. It lives where the steps live, in memory that all processes see. Readers take no lock: they copy first and ask the table afterwards whether the episode is still there.

Docs: https://fastrl.github.io/fastrl/memory.table.html.md"""
from typing import Any, overload
from ..core import *
from .place import Place
__all__ = ['whole_numbers', 'Table', 'age_of']

def whole_numbers(n: int, shape: Any=(), shared=False, path: Any=None) -> Place:
    """A place for `n` times whole numbers; an existing file is opened
    - `n`: How many; `None` for as many as the file has
    - `shape`: Of each
    - `shared`: In shared memory?
    - `path`: Or in this file"""
    ...

class Table:
    """The stored episodes, oldest first"""
    next: Any
    oldest: Any
    end: Any
    next_id: Any
    episodes: Any
    steps: Any
    evicted: Any
    changes: Any
    halves: Any
    doubts: Any
    scored: Any
    clears: Any
    place: Any
    inode: Any

    def __init__(self, slots: int, shared=False, path: Any=None):
        """- `slots`: Most entries
        - `shared`: In shared memory?
        - `path`: A file to live in; an existing one is opened"""
        ...

    @property
    def array(self):
        ...

    @property
    def slots(self):
        ...

    def line(self, e: int):
        """The line of entry `e`
    - returns: first position, length, number, tag"""
        ...

    def add(self, n: int, id: int | None=None, tag: int=0):
        """Enter an episode of `n` steps
    - `n`: Steps of the episode
    - `id`: Its number; the next one by default
    - `tag`: A number that means something to the dataset"""
        ...

    def drop(self, e: int):
        """Take entry `e` out: from now on no reader takes it for stored"""
        ...

    def trim(self):
        """Move `oldest` up to the first entry that is stored"""
        ...

    def lines(self):
        """A copy of all lines from the oldest entry to the newest, dropped ones between them included
    - returns: `(entries, 4)`"""
        ...

    def live(self):
        """The episodes that are stored, and not in doubt
    - returns: entries, and their lines"""
        ...

    def nth(self, i: int):
        """One episode, without a look at all others
    - `i`: Of the episodes, oldest first
    - returns: entry and line, or `None` if not all entries are live episodes, or there is none"""
        ...

    def draw(self, rng, bs: int, T: int, by_step: bool, pad: bool=False):
        """Which sequences make the next batch
    - `rng`: A generator of NumPy's
    - `bs`: How many
    - `T`: Steps in each; 0: whole episodes
    - `by_step`: Every place equally likely? Else every episode
    - `pad`: Also episodes that are shorter than `T`? Each of them is one place
    - returns: a line for each: entry, first position, offset, length, number, tag; none if nothing fits"""
        ...

    def still_there(self, picks) -> bool:
        """Are all of `picks` still what they were?
    - `picks`: From `draw`"""
        ...

    def has(self, T: int) -> bool:
        """Is there an episode of `T` steps or more?"""
        ...

    def has_shorter(self, T: int, since: int=0) -> bool:
        """Is there an episode of less than `T` steps, from entry `since` on?"""
        ...

    @property
    def counts(self):
        """A copy of the lines of counts"""
        ...

    def restore(self, counts, lines):
        """Take over what was saved; a `ValueError` if this is of no table
    - `counts`: Of a table
    - `lines`: Of that table"""
        ...

    def check(self, capacity: int | None=None):
        """A `ValueError` unless the counts, and with a `capacity` also the entries, can be true
    - `capacity`: Of the dataset: are all entries episodes of at most that many steps, one after another?"""
        ...

def age_of(line) -> tuple:
    """Tag and number of an episode: no other one has both, and older ones compare as smaller
    - `line`: Of a table"""
    ...
