"""`fastrl train`, `explore`, `info`, `verify`, `merge`: replay memories from a terminal

Not every question is worth a script: can an agent learn this, what is in that folder, did the file arrive whole? The command `fastrl` trains an agent that you can stop and resume, shows what a saved memory holds, and checks its files. If something goes wrong, it says so in one line.

Docs: https://fastrl.github.io/fastrl/cli.html.md"""
from typing import Any, overload
from typing import Annotated
__all__ = ['commands', 'info', 'verify', 'explore', 'merge', 'train', 'main']

def info(path: str, json: bool=False):
    """Show what a saved memory holds
    - `path`: Folder of a memory, a training or a parallel run, or file of a ring or a bank
    - `json`: Print JSON?"""
    ...

def verify(path: Annotated[str, {'nargs': '+'}]):
    """Check that all files of saved memories are as they were written
    - `path`: Folders of memories, trainings or parallel runs, or files of rings or banks
    - returns: the number of problems, which is the exit code"""
    ...

def explore(path: str, out: str | None=None):
    """Write a page with pictures of a saved memory
    - `path`: Folder of a memory, a training or a parallel run, or file of a ring or a bank
    - `out`: File for the page (default: report.html in the folder, FILE.html beside a file)"""
    ...

def merge(files: Annotated[str, {'nargs': '+'}], out: str | None=None, max_size: int | None=None, on_error: str='raise'):
    """Make one bank or memory of many
    - `files`: Files of banks, or folders of parallel runs, memories or trainings
    - `out`: File or folder for the result, required; of banks, `.safetensors` is the fast format
    - `max_size`: How many rows to keep at most, the newest ones (default: all)
    - `on_error`: `skip` leaves out what cannot be read, and merges the others"""
    ...

def train(env: str, steps: int=50000, seed: int=0, prioritized: bool=False, n_step: int=3, gamma: float=0.998, lr: float=0.001, n_envs: int=1, max_sz: int=50000, out: str | None=None, every: int=300):
    """Train a DQN, or resume its training
    - `env`: Name of a gymnasium environment with discrete actions
    - `steps`: Steps in all, including those before a stop
    - `seed`: Makes the training reproducible
    - `prioritized`: Prioritized replay?
    - `n_step`: Steps of a target
    - `gamma`: Discount factor
    - `lr`: Learning rate
    - `n_envs`: Environments that step side by side
    - `max_sz`: Steps that the memory holds
    - `out`: Folder for everything it keeps (default: runs/ENV)
    - `every`: Batches between checkpoints"""
    ...
commands: Any

def main(args: Any=None):
    """The command `fastrl`
    - `args`: The words after `fastrl`; by default those of the command line"""
    ...
