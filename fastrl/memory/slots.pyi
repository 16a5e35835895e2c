"""Shared memory through which a worker hands its blocks to the process that trains

A worker has drawn a block of steps, and the process that trains should get it. A `DataLoader` would make a new piece of shared memory for each block, and both sides would map it, which takes longer than copying the steps. So each worker has `Slots` that live as long as it does: it fills one while two others are on their way.

Docs: https://fastrl.github.io/fastrl/memory.slots.html.md"""
from typing import Any, overload
from torch import Tensor
__all__ = ['Slots', 'use_slots', 'new_block']

class Slots:
    """Three slots that a worker fills in turn"""
    words: Any
    turn: Any
    used: int

    def __init__(self, words: int):
        """- `words`: Of 8 bytes, in each slot"""
        ...

    def next_slot(self):
        """Begin to fill the next slot"""
        ...

    def block(self, shape):
        """Room for a block of words in this slot; `None` if it is too small"""
        ...

    def put(self, block):
        """How to find a `block` again, if it lies in a slot; else the block itself"""
        ...

    def take(self, o, pin=False):
        """The block that `put` gave `o` for: a copy, as its slot will be filled again"""
        ...

def use_slots(slots: Slots):
    """From now on `new_block` takes its room from `slots`
    - `slots`: Of this worker"""
    ...

def new_block(*shape) -> Tensor:
    """Words, not yet filled; in a worker they lie where the parent sees them"""
    ...
