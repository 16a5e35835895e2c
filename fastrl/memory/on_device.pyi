"""Let a memory on a GPU draw, and learn TD errors, without waiting for the GPU

A draw on a GPU is one piece of work that the GPU is given, and so is an update. A TD error that comes late must not reach the row that has taken its row's place. On the CPU, `update_td` checks which rows are still there, and writes those. On a GPU that check would make Python wait until the network has done its update. So here the GPU checks: whatever is late writes nothing, and is counted there until you ask for the count.

Docs: https://fastrl.github.io/fastrl/memory.on_device.html.md"""
from typing import Any, overload
from ..core import *
__all__ = ['LearnsOnDevice']

class LearnsOnDevice:
    """Note TD errors where the rows are"""
    late: Any

    @property
    def dropped_updates(self) -> int:
        """How many TD errors came for rows that were gone (or, on a device, were NaN); this waits for the device"""
        ...

    @dropped_updates.setter
    def dropped_updates(self, n):
        ...

    def learn_there(self, td_errors, idxs, serials) -> bool:
        """Note TD errors by tensor operations alone, if they and the rows lie on a device
    - `td_errors`, `idxs`, `serials`: As `update_td` takes them
    - returns: Did it?"""
        ...
