"""Store each frame of a stack once

A stack of four frames shares three with the next one, and a row has two stacks: stored whole, each frame of a game is stored eight times, and a million steps of Atari take 56 GB. A `FrameRing` is a ring that keeps each frame once, in a pool, and in each row the numbers of its frames: 7.5 GB. Readers get stacks, bit for bit the ones that came.

Docs: https://fastrl.github.io/fastrl/memory.frames.html.md"""
from typing import Any, overload
import numpy as np
from torch import Tensor
from ..core import *
from .place import *
from .alike import *
from .ring import Ring
from .row import *
from .stacks import *
from .windows import ReadsFrames
__all__ = ['check_frame_settings', 'FrameRing', 'add_steps', 'stored', 'pool_path']

def check_frame_settings(pad, margin):
    """Raise unless frames can be stored with these
    - `pad`: `frame_pad`
    - `margin`: `frame_margin`"""
    ...

class FrameRing(ReadsFrames):
    """A ring in which `state` and `next_state`, or `obs` and `next_obs`, are stacks of frames, each of them stored once"""
    told: Any
    flat: Any
    stack: Any
    pad: str
    newest: Newest
    warned: bool
    pool: Ring

    def __init__(self, capacity: int, schema: dict | None=None, device: Any='cpu', shared: bool=False, path: Any=None, stack: int=4, pad: str='repeat', margin=0.05, about: dict | None=None):
        """- `capacity`: The most rows it holds
        - `schema`: `{name: (shape, dtype)}`, with stacks or single frames; without it the first row decides
        - `device`: Where rows and frames live
        - `shared`: In shared memory, where other processes see the same rows?
        - `path`: A file to live in; the frames live beside it, in `<path>.frames`
        - `stack`: Frames in a state; 0: it is one frame, and no stack
        - `pad`: Before the first frame of an episode: `'repeat'` that frame, or `'zeros'`
        - `margin`: Room for more frames than rows, as `frames_when_full` takes it
        - `about`: As `Ring` takes it"""
        ...

    @property
    def shown(self) -> int:
        ...

    @Ring.seams.setter
    def seams(self, s):
        ...

    def extend(self, batch: dict, strict: bool=True, anew: Any=()):
        """Write the rows of `batch`, in order
    - `batch`: Columns that share their first axis, like a `BD`; states are stacks or single frames
    - `strict`: Is a stack an error that neither continues the last one nor looks like a first one?
    - `anew`: Rows of `batch` that continue nothing before them, nor does any behind them"""
        ...

    def add(self, **row):
        """Write one row
    - `**row`: The fields of one step"""
        ...

    def reset(self, first: int | None=None, stop: int | None=None, before: int | None=None):
        """Forget all rows and their frames
    - `first`: As `Ring.reset` takes them
    - `before`: Forget only the rows below this serial number"""
        ...

    @property
    def n_held(self) -> int:
        """How many rows are stored with all of their frames"""
        ...

    @property
    def held(self) -> Tensor:
        """The numbers of these rows, oldest first"""
        ...

    def columns(self) -> BD:
        """All columns but the frames, of the rows that are held; ask for a column of frames by its name"""
        ...

    def __getitem__(self, o):
        """A column by name, of stacks a copy; or a copy of the rows that anything else names"""
        ...

    def copy_rows(self, source: FrameRing, idxs: Tensor, **columns):
        """Write rows of `source`, with their frames
    - `source`: Another one, with the same frames
    - `idxs`: Row numbers there, in the order in which they are written here
    - `**columns`: Columns that should have other values here"""
        ...

    def room_for(self, batch: dict, strict: bool=True, anew: Any=()) -> int:
        """How many rows of `batch` fit without one that is stored being lost
    - `batch`: Columns that share their first axis
    - `strict`: As `extend` takes it
    - `anew`: As `extend` takes them"""
        ...

    def forget_without(self, lacks: np.ndarray) -> int:
        """Forget the rows that need one of these frames, and those before them
    - `lacks`: By slot of the pool: is there no frame?
    - returns: How many"""
        ...

    def state_dict(self) -> dict:
        """What the next row of each environment continues"""
        ...

    def load_state_dict(self, state: dict):
        """The next rows continue what they continued there
    - `state`: From `state_dict` of a ring with the same rows"""
        ...

    def __getstate__(self):
        ...

    def __repr__(self):
        ...

def add_steps(ring: Ring, batch: dict, replay=False) -> bool:
    """Add rows in the short way
    - `ring`: Of frames, or as `add_alike` takes it
    - `batch`: As `alike_arrays` takes them
    - returns: Were they added? If not, nothing has changed"""
    ...

def stored(ring) -> int:
    """How many rows of a ring can be drawn"""
    ...
