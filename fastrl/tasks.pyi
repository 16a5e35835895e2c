"""Write an environment, an update or a test as a Python function, or as a command that starts a program of yours

Your environment may be a Python function, or a program in any language that a command starts. A `Task` is either, with its parameters and its timeout. `collect` sends it to an engine, on this machine or another one, and brings back the files that it left; `run_here` runs it beside the driver. If it fails, `why_failed` says why in words.

Docs: https://fastrl.github.io/fastrl/tasks.html.md"""
from typing import Any, overload
from dataclasses import dataclass, field
from .engines import Ctx
__all__ = ['log', 'Task', 'as_seconds', 'EngineLost', 'why_failed', 'in_thread', 'as_number']
log: Any

@dataclass
class Task:
    """A function of a `Ctx`, an `async def` that gives a command, or a plain function"""
    f: object
    params: dict = field(default_factory=dict)
    timeout: float | None = None
    as_executable: bool | None = None
    args: tuple = ()

    def __post_init__(self):
        ...

    @property
    def is_plain(self):
        """Is it a function that gets no `Ctx`?"""
        ...

    @property
    def is_command(self):
        """Does it give a command?"""
        ...

    def call_with(self, before: Any=()) -> tuple:
        """What a plain function, or the `async def` of a command, is called with
    - `before`: Results of the tasks before it
    - returns: `(args, kwargs)`"""
        ...

    @property
    def needs_before(self):
        """Does it need a result of a task before it?"""
        ...

    async def command(self, before: Any=()) -> str:
        """The command that the `async def` gives for `params`
    - `before`: Results of the tasks before it"""
        ...

    async def collect(self, submit, ctx: Ctx, before: Any=()) -> dict:
        """Run an environment on an engine
    - `submit`: `submit(task, ctx, timeout)` runs `run_task` on an engine, and gives a future
    - `ctx`: For which iteration and environment; its `params` become ours
    - `before`: Results of the tasks before it
    - returns: As of `run_task`; the exit code is `None` if the task never ran"""
        ...

    async def run_here(self, ctx: Ctx, what: str, wanted: Any=None, before: Any=()):
        """Run an update or a test
    - `ctx`: Its `params` become ours; a command runs in its `work_dir`
    - `what`: For an error: the update, or the test
    - `wanted`: A command is killed once this gives `False`
    - `before`: Results of the tasks before it
    - returns: the result of a function, or the output of a command"""
        ...

def as_seconds(timeout) -> float:
    """A timeout as a number, `None` for none
    - `timeout`: As a user gives it
    - returns: or `None`"""
    ...

class EngineLost(RuntimeError):
    """The engine dropped a task: it was shut down, or killed, or cannot be reached any more"""

def why_failed(res: dict, timeout: float | None=None) -> str:
    """Why a task failed, in words
    - `res`: What `collect` gave
    - `timeout`: Seconds that it had
    - returns: `None` if it did not"""
    ...

class _Call:
    """A call in a thread of its own, which does not outlive the program"""
    f: Any
    lock: Any
    over: bool
    future: Any
    thread: Any

    def __init__(self, f):
        ...

    def interrupt(self):
        """Raise a `KeyboardInterrupt` in it"""
        ...

async def in_thread(f, *args, what: str='it', stop: Any=None, patience: float=2.0):
    """Call a function in a thread, and stop it if we are cancelled
    - `f`: A function
    - `*args`: Its arguments
    - `what`: For a warning
    - `stop`: Called to stop it; by default a `KeyboardInterrupt` is raised in it
    - `patience`: Seconds to wait for its end then; `None` for as long as it takes
    - returns: its result"""
    ...

def as_number(got, what: str) -> float:
    """The number that a test gave, or printed last
    - `got`: The result of a test, or its output
    - `what`: For an error: which number"""
    ...
