"""Networks that give each action a value, and a quick way to ask small ones

An agent asks its network at every step, and a learner at every update. Any module that gives one number per action will do; `mlp` and `nature_cnn` make the usual ones, for numbers and for images. A `QNet` reads the column `state` of a batch, `greedy_values` is what an agent asks for, and `through` saves a third of the time that a small network takes.

Docs: https://fastrl.github.io/fastrl/agents.nets.html.md"""
from typing import Any, overload
from fastai.basics import nn
from torch import Tensor
from ..core import *
__all__ = ['Flat', 'mlp', 'Dueling', 'Scale', 'nature_cnn', 'through', 'QNet', 'greedy_values']

class Flat(nn.Flatten):
    """Rows of floats, whatever numbers the environment shows"""

    def forward(self, x):
        ...

def mlp(n_in: int, n_actions: int, hidden: Any=(128, 128), dueling: bool=False):
    """A fully connected network, for states of a few numbers
    - `n_in`: Numbers in a state
    - `hidden`: Neurons of each hidden layer
    - `dueling`: With a `Dueling` head?"""
    ...

class Dueling(nn.Module):
    """The last layer: the value of the state, and the advantage of each action"""
    v: Any
    a: Any

    def __init__(self, n_in, n_actions):
        ...

    def forward(self, x):
        ...

class Scale(nn.Module):
    """Bytes of an image to floats from 0 to 1"""

    def forward(self, x):
        ...

def nature_cnn(shape, n_actions: int, dueling: bool=False):
    """The network of [Mnih et al. 2015](https://doi.org/10.1038/nature14236) for images
    - `shape`: Of a stack of frames: channels, height, width
    - `dueling`: With a `Dueling` head?"""
    ...

def through(net: nn.Module, x, call: Any=nn.Module.__call__):
    """`net(x)`, in two thirds of the time where `net` is a chain of small plain layers
    - `x`: Its input
    - `call`: Called instead with a module that is not plain, or has hooks"""
    ...

class QNet(nn.Module):
    """The value of each action, which `net` computes from the column `state`"""
    net: Any
    first: int

    def __init__(self, net, first: int=0):
        """- `net`: Any module: states `(n, …)`, or dicts and tuples of them → `(n, n_actions)`
        - `first`: What the environment calls the first action"""
        ...

    def forward(self, batch, *call):
        ...

    def fitting(self, states):
        """Environments like `float64`, networks rarely do"""
        ...

    def reset(self):
        ...

def greedy_values(model: nn.Module, states) -> Tensor:
    """The values that `model` gives the actions in `states`, on the CPU; not in training mode, so without dropout
    - `model`: A `QNet`, or any module that takes a batch
    - `states`: `(n, …)`, or dicts and tuples of them
    - returns: `(n, n_actions)`"""
    ...
