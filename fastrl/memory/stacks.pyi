"""Tell which frames of a stack came before, and which are new

A stack of four frames brings one new frame, if it continues the last one of its environment, and four if an episode begins. Guess wrong once, and frames of two episodes meet in one state. `planned` compares the frames themselves, row by row, with what came last from the same environment, and gives each frame a number before anything is stored.

Docs: https://fastrl.github.io/fastrl/memory.stacks.html.md"""
from typing import Any, overload
import numpy as np
from pathlib import Path
from torch import Tensor
from ..core import *
from .place import *
from .row import *
__all__ = ['check_frames', 'warn_of_stacks', 'pool_path', 'pool_file', 'is_image', 'stack_sequences', 'with_numbers', 'numbers_at', 'fields_with_stacks', 'parted', 'slots_of_rows', 'pick_windows', 'Newest', 'Latest', 'said_of', 'frames_in', 'as_words', 'Steps', 'same_frames', 'planned', 'continued', 'continued_by_each']

def check_frames(fields, stack: int, saved: bool=False):
    """A `ValueError` unless observations before and after a step have the same frames, and rows say where episodes end
    - `fields`: Of a step
    - `stack`: Frames in a state
    - `saved`: Of a memory that was saved? In an earlier version the first of several pairs had the frames"""
    ...

def warn_of_stacks(state: Tensor, next_state: Tensor, stack: int) -> bool:
    """Warn if these frames are stacks already: the next frame continues each along an axis, maybe that of channels
    - `state`: Frames that came singly, `(n, …)`
    - `stack`: Frames in a state, as you said
    - returns: Was there a warning?"""
    ...

def pool_path(path) -> Path:
    """The file for their frames
    - `path`: Where rows live"""
    ...

def pool_file(path) -> Path:
    """The file for their frames, which should be there if the rows are
    - `path`: Where rows live, or are to live; `None` if they don't in a file"""
    ...

def is_image(shape) -> bool:
    """Do fields of this `shape` get stacked? Those of two axes and more; vectors and numbers stay as they are"""
    ...

def stack_sequences(cols: dict, at: np.ndarray, n: np.ndarray, stack: int, pad: str='repeat') -> dict:
    """Sequences of stacks, which never reach into another episode
    - `cols`: By path `(batch, stack-1+time, …)`: each sequence begins up to `stack-1` steps early
    - `at`: `(batch,)`, which step of its episode each sequence begins with
    - `n`: `(batch,)`, the lengths of these episodes
    - `stack`: Frames in a stack
    - `pad`: Before the first frame: `'repeat'` it, or `'zeros'`
    - returns: By path `(batch, time, …)`, images as `(batch, time, stack, …)`"""
    ...

def with_numbers(data, pair, fields, numbers, rows: Any=slice(None)) -> dict:
    """`data` with the numbers of frames in their place
    - `data`: One step, or columns
    - `pair`: Of columns, from `observed_pair`
    - `fields`: Of a frame
    - `numbers`: `(stack+1,)` of a step, `(n, stack+1)` of columns
    - `rows`: Which rows of the columns"""
    ...

def numbers_at(fields, named) -> tuple:
    """Where rows have the numbers of their frames
    - `fields`: Of rows, which may come from a file
    - `named`: The path of a frame in a state
    - returns: Of `state` the place among the columns and where it begins in a row, the same of `next_state`"""
    ...

def fields_with_stacks(fields, frames, stack: int) -> list:
    """The fields as batches show them, with stacks in the place of these numbers
    - `fields`: Of rows with numbers of frames
    - `frames`: The fields of a frame
    - `stack`: Frames in a stack; 0: it is none"""
    ...

def parted(fields, stack: int):
    """What is stored of a step, and what of its frames
    - `fields`: Of a step; `None` if they are not known
    - `stack`: Frames in a state; 0: it is no stack
    - returns: schemas of the rows, with numbers of frames, and of the frames"""
    ...

def slots_of_rows(rows, idxs, state, nxt, S, k):
    """Where the frames of packed rows lie in the pool
    - `rows`: Packed, `(n, words)`
    - `idxs`: Their numbers; below 0: a row without frames
    - `state`, `nxt`: Where the slots of a row's frames begin, counted in `int32`
    - `S`: Frames in a stack
    - `k`: `S+1`: a window of frames for each row; `2*S`: two stacks
    - returns: slots `(n*k,)`, -1 for none; and are any missing?"""
    ...

def pick_windows(rows, state, nxt, S, key, first, n, stored, slots, base, total, oldest=0):
    """Rows drawn evenly, and where the windows of their frames lie
    - `rows`, `state`, `nxt`, `S`: As `slots_of_rows` takes them
    - `key`, `first`, `n`: The stream of random numbers, the place of the first one, and how many rows
    - `stored`, `slots`, `base`, `total`: From `Serials.counts`
    - `oldest`: Rows below it, which may lie in their slots, are not drawn
    - returns: how many random numbers it took, row numbers, serial numbers, packed rows, slots, and are any missing?"""
    ...

class Newest(OwnArrays):
    """By environment the newest row, with the frames that the next one continues"""
    barrier: int
    envs: Any
    seen: int
    base: int
    last: Any

    def __init__(self):
        ...

class Latest(OwnArrays):
    """The newest row of an environment"""
    serial: Any
    episode: Any
    step: Any
    numbers: Any
    frames: Any

    def __init__(self, serial, episode, step, numbers, frames):
        ...

def said_of(cols, n):
    """What rows say of themselves: environment, end of an episode, its number, and step"""
    ...

def frames_in(ts: dict, path, f, one: bool, stack: int) -> Tensor:
    """The frames of some steps, or a `ValueError`
    - `ts`: As of `tensors_of`
    - `path`: Of the column of frames
    - `f`: The field of a frame
    - `one`: Is it one step, and not a batch?
    - `stack`: Frames in a stack; 0: it is none
    - returns: `(n, frames, …)`"""
    ...

def as_words(t):
    """A tensor of rows as an array `(n, frames, words)` that is quick to compare"""
    ...

class Steps:
    """The frames of `n` rows: `frame(j, k)` is number `k` of row `j`, the newest of its state is number `stack-1`"""
    fields: Any
    n: Any
    stack: Any
    parts: Any
    names: Any
    pair: Any
    whole: Any

    def __init__(self, fields, pairs, n, stack, names: Any=(), pair: Any=observed_pair(())):
        ...

    def frame(self, j, k):
        ...

    def alone(self):
        """The first row whose next state does not continue its state; -1 if all do"""
        ...

    def leads_to_first(self, j):
        """Is the next state of row `j` the stack of a first frame: repeated, or after zeros?"""
        ...

def same_frames(a, b):
    """Are these frames, tuples of arrays, the same?"""
    ...

class _Plan:
    """For each row the numbers of its frames, -1 for zeros; the frames to store; what comes newest; where to cut"""
    ring: Any
    steps: Any
    next: Any
    numbers: Any
    counts: Any
    frames: Any
    envs: Any
    cuts: Any

    def __init__(self, ring, steps):
        ...

    def store(self, frame):
        """The number that a new frame gets"""
        ...

    def begin(self, j):
        """Numbers and frames of row `j`, of whose episode nothing is known"""
        ...

    def resume(self, j, was):
        """Numbers and frames of row `j`, which continues `was`; frames that will soon be overwritten are stored anew"""
        ...

    def portions(self, most):
        """Rows to write together: between cuts, and with so few frames that none needs one which another overwrites"""
        ...

    def continues(self, j, key, was, episode, step, strict):
        """Does row `j`, of environment `key`, continue the row `was`? An error if it should, and does not"""
        ...

    def environment(self, key):
        """An environment in words, by what its rows say"""
        ...

    def like_a_start(self, j):
        """Is it the stack of a first frame: repeated, or after zeros?"""
        ...

def planned(ring, steps, said, strict, anew: Any=()):
    """The plan for these rows, of which those from each of `anew` on continue none before it; nothing is changed yet"""
    ...

def continued(row, envs: dict, pair, parts, stack: int, zeros: bool, barrier: int, total: int, number: int):
    """What a row of arrays continues or begins; `None` for all that is not so simple
    - `row`: One step
    - `envs`: By environment its `Latest`
    - `pair`: Of columns, from `observed_pair`
    - `parts`: Of a frame, in pairs: where it is in a state, `()` or a path, and an array of those that are stored
    - `stack`: Frames in a state
    - `zeros`: Do zeros come before a first frame?
    - `barrier`: Rows below it are not continued
    - `total`: The serial numbers of the row
    - `number`: and of its first new frame
    - returns: numbers of its `stack+1` frames, the new ones in parts, and by environment its next `Latest`. Or `None`"""
    ...

def continued_by_each(batch, envs: dict, pair, parts, stack: int, zeros: bool, barrier: int, total: int, number: int):
    """What each row of some arrays continues or begins; `None` for all that is not so simple
    - `batch`: Columns
    - `envs`: By environment its `Latest`
    - `pair`, `parts`: As `continued` takes them
    - `stack`: Frames in a state
    - `zeros`: Do zeros come before a first frame?
    - `barrier`: Rows below it are not continued
    - `total`: The serial numbers of the first row
    - `number`: and of the first frame
    - returns: numbers of frames `(n,stack+1)`, the new frames in parts, and by environment its next `Latest`. Or `None`"""
    ...
