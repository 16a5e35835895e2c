"""Compile functions for rows of known fields: one writes a row, one reads a batch

A loop adds a row at each step. Checking its fields one by one takes longer than copying them, so `row_writer` makes a function for the fields of a store: it tests whether a row of arrays, tensors and numbers fits, and packs a short row in one call. `batch_reader` does the same for the columns of a batch. Lists and other floats and ints, as some environments give them, are converted if no value is lost. Rows that fail the test take the general way, which converts the rest or refuses them.

Docs: https://fastrl.github.io/fastrl/memory.writer.html.md"""
from typing import Any, overload
from .turn import *
__all__ = ['row_writer', 'batch_reader']

def row_writer(place, lock, base: int | None=None):
    """A function that is compiled to write rows of these fields
    - `place`: A `Place` with room; word 0 of its head counts the rows that are written, word 1 those that were begun
    - `lock`: Held while a row is written
    - `base`: Of a place that grows, the word that has the number of the row in slot 0; others make room
    - returns: `f(row)`, which writes a row that fits as it is: did it? `f.fits(row)` only looks"""
    ...

def batch_reader(place, replay: bool=False, lacks: Any=None):
    """A function that is compiled to read batches of these fields, without a copy; `rows` are those of the store
    - `place`: A `Place` with room
    - `replay`: Of a replay memory: may numbers come as `(n,)`?
    - `lacks`: The name of a field that the batches don't have, as it is zero
    - returns: `f(batch, rows)` → how many, and an array for each field; `None` if one needs a closer look"""
    ...
