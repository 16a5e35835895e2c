"""The one store: packed rows; when it is full, the newest replaces the oldest

A replay buffer that keeps a list of steps gets slower as it fills, and one that keeps a tensor per field needs a dozen gathers per batch. A `Ring` packs all fields of a step side by side into one row of one tensor, and shows each field as an ordinary tensor. So a batch is one gather, whatever a step consists of. Every row is checked before it is written, and copied.

Docs: https://fastrl.github.io/fastrl/memory.ring.html.md"""
from typing import Any, overload
import torch
from torch import Tensor
from ..core import *
from .place import *
from .row import *
from .serial import *
from .moment import *
from .alike import *
__all__ = ['log', 'Ring', 'locked', 'Field', 'schema_fields', 'pack_fields', 'nest', 'check_paths', 'torch_dtype', 'nbytes_when_full', 'machine_memory', 'compiled', 'Seams']
log: Any

class Ring:
    """Rows of one schema; once `capacity` is reached, the newest row replaces the oldest"""
    capacity: Any
    place: Place
    serials: Serials
    writer: Any

    def __init__(self, capacity: int | None=None, schema: dict | None=None, device: Any='cpu', shared: bool=False, path: Any=None, about: dict | None=None):
        """- `capacity`: The most rows it holds; without it the ring grows
        - `schema`: `{name: (shape, dtype)}`, nested as a step is; without it the first row decides
        - `device`: Where the rows live
        - `shared`: In shared memory, where other processes see the same rows?
        - `path`: A file to live in; if a ring left one there, it is opened with its rows
        - `about`: What a new file should say of its rows; an opened one tells it in `place.about`"""
        ...

    def __len__(self):
        ...

    def __repr__(self):
        ...

    def save(self, folder):
        """Write all rows to `folder`
    - `folder`: Made if need be; a memory that is there is replaced, in one step"""
        ...

    @classmethod
    def load(cls, folder, capacity: int | None=None, on_error: str='raise', env_restored: bool=False, mapped: bool=False, **where) -> Ring:
        """The ring that was saved to `folder`
    - `folder`: Of a saved or checkpointed ring
    - `capacity`: An error unless it has this one
    - `on_error`: `'skip'` leaves damaged files out, and logs how many rows they had
    - `env_restored`: Do the environments resume where they were? Otherwise new rows follow nothing stored
    - `mapped`: Leave the rows in the file, to be read when they are drawn? You cannot add to them then
    - `**where`: `device`, `shared` or `path`: the rows' new place"""
        ...

    def checkpoint(self, folder):
        """Write to `folder` what came since the last time
    - `folder`: The same one each time"""
        ...

    def add(self, **row):
        """Write one row
    - `**row`: The fields of one step: numbers, arrays, tensors, or dicts and tuples of them"""
        ...

    def extend(self, batch: dict):
        """Write the rows of `batch`, in order
    - `batch`: Columns that share their first axis, like a `BD`"""
        ...

    def write_by(self, n: int, write):
        """Count the `n` rows that `write` puts into the columns
    - `n`: How many rows; they must not cross the end of the ring
    - `write`: `write(slot)` puts them into `place.columns` (or `place.arrays`), the first one at `slot`"""
        ...

    @property
    def fields(self) -> list:
        """What a row consists of, a list of `Field`; `None` before the first row"""
        ...

    @property
    def device(self) -> torch.device:
        """Where the rows are"""
        ...

    @property
    def total(self) -> int:
        """How many rows were ever written, plus the numbers that `clear` skipped"""
        ...

    @property
    def pointer(self) -> int:
        """Where the newest row ends"""
        ...

    def columns(self) -> BD:
        """All columns, as views of the rows that are stored"""
        ...

    def __getitem__(self, o):
        """A column by name, a view; or a copy of the rows that anything else names"""
        ...

    def gather(self, idxs: Tensor, device: Any=None) -> BD:
        """Rows by number, unchecked: one gather, and one copy if they go to another `device`
    - `idxs`: Row numbers, known to be stored; of shape `(B,T)` they give columns `(B,T,…)`
    - `device`: Where the batch should be"""
        ...

    def serial(self, idxs) -> Tensor:
        """How many rows were written before each of these
    - `idxs`: Rows, named in any way"""
        ...

    def holds(self, idxs, serials: Any=None) -> Tensor:
        """Are these rows still the ones that had these serial numbers?
    - `idxs`: Row numbers, of any shape; -1 names none
    - `serials`: Their serial numbers, from `serial` or a batch; without them: is anything stored there?
    - returns: bool, in the shape of `idxs`"""
        ...

    def draw(self, sampler, bs: int, device: Any=None, read: Any=None, n_batches: int | None=None):
        """The batch that `sampler` chooses, read before any of its rows can change
    - `sampler`: Has `draw(ring, bs)` → row numbers, `(bs,)` or `(bs,T)`, -1 for a row of zeros, and a dict of columns
    - `bs`: How many
    - `device`: Where the batch should be
    - `read`: `read(ring, idxs)` → packed rows (or a list of columns) and more columns; else the rows as they are
    - `n_batches`: How many batches, all of them as of this moment
    - returns: (BD, row numbers), or `Batches` of them"""
        ...

    def put(self, name: str, idxs, values, serials: Any=None) -> int:
        """Write `values` into rows that were not overwritten
    - `name`: The column; of a nested one the whole or a leaf, `'obs.arm'`
    - `idxs`: Row numbers, of any shape; -1 names none
    - `values`: In the shape of `idxs`, followed by that of a row, if it is more than a number
    - `serials`: From the batch, as many as `idxs`; without it the rows are taken as they are now
    - returns: How many rows were gone"""
        ...

    @property
    def seams(self) -> Seams:
        """What the rows themselves do not say about what follows what"""
        ...

    @seams.setter
    def seams(self, s):
        """Set the marks; `first` and `oldest` follow from the rows"""
        ...

    def cut(self, on: bool=True, gap: bool=False):
        """Mark that what is written next follows nothing that is stored
    - `on`: `False` takes back a mark that no row was written after: the environments resume where they were
    - `gap`: Are rows missing here, so that nobody knows whether an episode began with them?"""
        ...

    def reset(self, first: int | None=None, stop: int | None=None, before: int | None=None):
        """Forget all rows; the columns stay as they are
    - `first`: The serial number of the next row, if you load rows that had numbers; a new one by default
    - `stop`: The number after the last row, if the rows from `first` on lie in their slots already
    - `before`: Forget only the rows below this serial number: they count as overwritten"""
        ...

    def __getstate__(self):
        ...

    def __setstate__(self, state):
        ...

def locked(ring: Ring):
    """Within `with locked(ring):` no other thread writes, and after the first look other processes' rows are ignored"""
    ...

class _Within(property):
    """A method that `with ring:` finds in C: Ctrl-C may come before the first line of one in Python"""

    def __get__(self, ring, cls: Any=None):
        ...
