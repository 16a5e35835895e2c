"""Run an environment task wherever you have processors: in processes of this machine, on a Dask cluster, or with asyncflow

`ParallelExperience` doesn't care where an environment runs. It gives `run_task` and a task to an executor, which may be a pool of threads here, a Dask cluster or an asyncflow engine. There the task runs in a process of its own, in a scratch folder, and its files come back as bytes, so that no disk needs to be shared. When the driver ends or loses interest, the task is killed wherever it is.

Docs: https://fastrl.github.io/fastrl/engines.html.md"""
from typing import Any, overload
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
__all__ = ['Ctx', 'call_plain', 'sweep_scratch', 'run_task', 'Workflow', 'executor_of']

def safe_name(name):
    """A file name for `name`, and a different one for each"""
    ...

@dataclass
class Ctx:
    """What a task gets"""
    iteration: int
    name: str = ''
    params: dict = field(default_factory=dict)
    seed: int = 0
    path: Path | None = None
    policy: object | None = None
    work_dir: str = ''
    read: object = field(default=None, repr=False, compare=False)

    def __post_init__(self):
        ...

    @property
    def bank(self):
        """The merged bank, one object for the whole task; draws from it follow from `seed`"""
        ...

    def __getstate__(self):
        ...

    @property
    def bank_name(self):
        """The file name of an environment's bank"""
        ...

    @property
    def variables(self):
        """The same for a command, as environment variables"""
        ...

def call_plain(f, args: Any=(), kwargs: Any=None):
    """Call a function that may be an `async def`; never from a thread whose loop is running
    - `f`: A function, or an `async def`
    - `args`: Its arguments
    - `kwargs`: Its keywords
    - returns: its result"""
    ...

class _Elsewhere:
    """Does some process lock the file `path`? On a machine without the file the answer is always yes"""
    path: Any
    here: Any

    def __init__(self, path):
        ...

    def __call__(self):
        ...

class Wanted:
    """Is the result still wanted? Ask by calling it, in this process or wherever it was sent"""
    path: Any
    of: Any
    over: Any
    pid: Any

    def __init__(self, path, of: Any=None):
        ...

    def __call__(self):
        ...

    def __reduce__(self):
        ...

@contextmanager
def while_wanted():
    """A `Wanted` that says yes until the block or this process ends"""
    ...

def sweep_scratch():
    """Remove the scratch files that killed programs left"""
    ...

def run_task(task, ctx: Ctx, timeout: float | None=None, wanted: Any=None) -> dict:
    """Run an environment task in a scratch folder, on whichever machine this is
    - `task`: A command, or a function and its `Ctx`, pickled by cloudpickle
    - `ctx`: Its context
    - `timeout`: Seconds, after which it is killed
    - `wanted`: Called ten times a second: the task is killed once this gives `False`
    - returns: Exit code, the ends of stdout and stderr, the files of the task by name, and a plain function's result"""
    ...

class Workflow(Executor):
    """An asyncflow `WorkflowEngine` as an executor"""
    engine: Any
    folder: Any

    def __init__(self, engine, folder):
        """- `engine`: A `WorkflowEngine`
        - `folder`: For the files of tasks, where these have to be commands"""
        ...

    def submit(self, f, /, *args, wanted, **kwargs):
        """Call `f` on the engine; `wanted` goes along, and is over when the engine drops the task"""
        ...

def executor_of(engine, folder):
    """An executor that runs tasks on `engine`; `None` without one"""
    ...
