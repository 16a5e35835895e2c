"""Make every known mistake of replay buffers a test of yours

You changed your replay buffer, and the agent still learns, just less. `pytest --fastrl-memory mypkg:make_buffer` asks the function `make_buffer(capacity)` of your module for buffers, and looks for each mistake that `check_memory` knows in a test of its own. pytest finds the plugin once fastrl is installed. It needs NumPy and pytest; torch is not imported unless your buffer does it.

Docs: https://fastrl.github.io/fastrl/pytest_plugin.html.md"""
from typing import Any, overload
import pytest
__all__ = ['pytest_addoption', 'pytest_configure', 'named_make', 'MemoryItem', 'pytest_collection_modifyitems']

def pytest_addoption(parser):
    ...

def pytest_configure(config):
    ...

def named_make(spec, folder):
    """The function that `spec` names, `module:function`; modules in `folder` are found, too"""
    ...

class MemoryItem(pytest.Item):
    """One known mistake, looked for in the memories that one function makes"""
    check: Any
    trial: Any

    def __init__(self, *, check, trial, **kwargs):
        ...

    def runtest(self):
        ...

    def repr_failure(self, excinfo):
        ...

    def reportinfo(self):
        ...

def pytest_collection_modifyitems(session, config, items):
    ...
