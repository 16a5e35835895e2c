"""Random numbers by their place in a stream, so that a compiled loop makes them where it needs them

To draw 256 rows takes 256 random numbers. Asking torch for a tensor of them takes longer than making them, and a compiled loop cannot ask torch at all. A stream here is a key and a count: number `i` of stream `key` is a function of both, so any loop computes the numbers that it needs, and two whole numbers say where a stream is.

Docs: https://fastrl.github.io/fastrl/memory.random.html.md"""
from typing import Any, overload
import torch
from ..core import *
__all__ = ['random_bits', 'random_unit', 'random_row', 'random_units', 'random_rows', 'keep_numbers', 'own_numbers']

def random_bits(key, i):
    """Number `i` of the stream `key`: 64 random bits"""
    ...

def random_unit(key, i):
    """Number `i` of the stream `key` as a float, from 0 up to but without 1"""
    ...

def random_row(key, i, n):
    """Number `i` of the stream `key` as a row number below `n`"""
    ...

def random_units(key, first, k):
    """`k` numbers of a stream, from 0 up to but without 1
    - `key`: Of the stream
    - `first`: The place of the first number
    - `k`: How many
    - returns: array of float64"""
    ...

def random_rows(key, first, k, n):
    """`k` row numbers below `n`
    - `key`: Of the stream
    - `first`: The place of the first number
    - `k`: How many
    - `n`: Rows there are
    - returns: array of int64"""
    ...

def keep_numbers(gen: torch.Generator):
    """If this is a worker, the numbers that `gen` gives next are meant for it"""
    ...

def own_numbers(gen: torch.Generator, *at) -> bool:
    """In a worker to which `gen` came from outside, begin a stream of its own, once
    - `*at`: Where a stream is that came from it
    - returns: Does it give other numbers now?"""
    ...
