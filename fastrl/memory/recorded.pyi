"""Record what a draw gives a GPU to do, and hand it over as one piece of work from then on

A draw by priority is some hundred small operations. A GPU does each in a microsecond or two, but Python takes ten to ask for it, and so takes a millisecond or two for a batch. `Recorded` asks once: CUDA records the operations as a graph, and every later call sends the numbers that have changed and starts the graph. The results are the same, bit by bit.

Docs: https://fastrl.github.io/fastrl/memory.recorded.html.md"""
from typing import Any, overload
import torch
from ..core import *
__all__ = ['Recorded', 'recorded']

class Recorded:
    """A function of numbers and tensors, recorded where a GPU runs it"""
    graph: Any
    calls: Any
    tries: Any
    stream: Any
    f: Any
    device: torch.device
    inputs: Any
    results: Any

    def __init__(self, f, device: torch.device):
        """- `f`: `f(numbers, *tensors)` → tensors, however nested, or `None`; by tensor operations alone
        - `device`: Of all tensors"""
        ...

    def __call__(self, numbers: list, *tensors):
        """What `f` gives, in tensors that nothing else writes into
        - `numbers`: Whole numbers of the host
        - `*tensors`: Of the same form at each call"""
        ...

def recorded(of, how: tuple, sees: tuple, f, device) -> Recorded:
    """The work of an object that is done in this way, on these tensors
    - `of`: Whose work it is
    - `how`: What else the function depends on, beside its arguments and the tensors
    - `sees`: Tensors that it looks at or writes into
    - `f`: As `Recorded` takes it
    - `device`: Of all tensors"""
    ...
