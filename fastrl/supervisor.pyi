"""Run a command or a Python function in a process of its own that never outlives you, and that leaves nothing behind

A child process may hang, crash, or start children that outlive it, and if your program is killed, all of them stay. `run_command` and `run_function` put a supervisor beside the child: a small process that kills it, and everything it started, after a timeout, when you no longer want it, or when your program ends, even by `kill -9`. A fork server imports what your functions need once, so that the next child starts in milliseconds.

Docs: https://fastrl.github.io/fastrl/supervisor.html.md"""
from typing import Any, overload
import socket
__all__ = ['as_main', 'pickled', 'check_fork', 'run_command', 'run_function']

def as_main(f):
    """Put the globals of a function that was defined in `__main__` where pickle looks for them"""
    ...

class ForkServer:
    """The process that forks supervisors, as this program sees it"""
    lock: Any
    process: Any
    socket: Any

    def __init__(self):
        ...

    def start(self):
        """Start the process, with one end of a socket; the other is ours"""
        ...

    def send(self, *fds):
        """Have it fork a supervisor that uses the files `fds`"""
        ...
fork_server: Any

def pickled(o) -> bytes:
    """Pickle `o` so that a process without this program's script can unpickle it
    - `o`: What to send, such as a function and its arguments"""
    ...

def check_fork():
    """Raise where processes cannot be forked"""
    ...

def run_command(args: list, cwd, env: dict | None=None, timeout: float | None=None, wanted: Any=None):
    """Run a command that ends with this process
    - `args`: The program and its arguments
    - `cwd`: The folder where it runs
    - `env`: Variables, besides those of this process
    - `timeout`: Seconds, after which it is killed
    - `wanted`: Called ten times a second: the command is killed once this gives `False`
    - returns: exit code, `'late'` or `'unwanted'`; the ends of stdout and stderr"""
    ...

def run_function(f, *args, cwd: Any='.', env: dict | None=None, timeout: float | None=None, wanted: Any=None, preload: Any=()):
    """Call a function in a process that ends with this one
    - `f`: Anything callable that [cloudpickle](https://github.com/cloudpipe/cloudpickle) can send, such as a lambda
    - `*args`: Its arguments
    - `cwd`: The folder where it runs
    - `env`: Variables, besides those of this process
    - `timeout`: Seconds, after which it is killed
    - `wanted`: Called ten times a second: the function is killed once this gives `False`
    - `preload`: Modules that the fork server imports, so that no child has to
    - returns: as of `run_command`"""
    ...
