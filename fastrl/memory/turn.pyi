"""One process at a time adds rows that several processes see; a second one gets an error

Two workers get the same shared memory and both add their steps to it. Rows are lost, others are half of one step and half of another, and nothing looks wrong until you wonder why the agent does not learn. A `Turn` notes in the head of the rows which process writes. Another process may take over once the first one has written what it began; one whose turn is over gets an error before it writes anything.

Docs: https://fastrl.github.io/fastrl/memory.turn.html.md"""
from typing import Any, overload
from contextlib import contextmanager
from ..core import *
__all__ = ['turn_word', 'this_process', 'Turn', 'own_locks', 'wait_for_lock']
turn_word: int

def this_process() -> int:
    """The number of this process"""
    ...

class Turn:
    """Which process writes rows that several processes see"""
    wrote: Any
    kept: Any
    known: int

    def __init__(self, parent: Any=None, head: Any=None):
        """- `parent`: The `Turn` of the process that this one was forked from
        - `head`: Of the rows, for a `parent`"""
        ...

    def take(self, head) -> bool:
        """It is this process's turn now; an error if it was before, and one that took over is still running
        - `head`: Of the rows; word `turn_word` is kept here
        - returns: Has another process `passed`? What this one writes next doesn't follow those rows"""
        ...

    def done(self, head):
        """What this process wrote is there: another one may take over
    - `head`: Of the rows"""
        ...

    @contextmanager
    def keep(self, head):
        """`take`, and `done` at the end of the block, whatever is written in it
    - `head`: Of the rows"""
        ...

    def handed(self, head, by: Any=None) -> int:
        """Of how many rows a process that gets them now may continue the episodes: of all, if the giver wrote the last
    - `head`: Of the rows
    - `by`: The number of the process that gives them away; this one by default"""
        ...

    def passed(self, head) -> bool:
        """Did another process write last, whose episodes this one does not continue?
    - `head`: Of the rows; word 0 counts them"""
        ...

def own_locks(o, *names):
    """Give `o` locks that one thread at a time may hold, and new ones in a forked process
    - `o`: Any object
    - `*names`: Of attributes"""
    ...

def wait_for_lock(fd: int, path):
    """Lock a file as soon as nobody else has; a log says after ten seconds that this one still waits
    - `fd`: Of an open file or folder
    - `path`: Its name, for the log"""
    ...
