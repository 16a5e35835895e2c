"""What an iteration brought, whether that is good enough, and where the next run resumes

A run collects, learns and tests, again and again, and you want to know after each iteration: what came, what failed, and is it good enough? A `State` says that, with a `Failure` for each environment that brought nothing, and a `Criterion` decides. `finish` writes that an iteration is over, so that a run that was killed resumes with the next one, and with the policy that it had.

Docs: https://fastrl.github.io/fastrl/run_state.html.md"""
from typing import Any, overload
import operator
from dataclasses import dataclass, field
from pathlib import Path
__all__ = ['log', 'IterationState', 'GREATER_THAN_THRESHOLD', 'LESS_THAN_THRESHOLD', 'EQUAL_TO_THRESHOLD', 'GREATER_OR_EQUAL_TO_THRESHOLD', 'LESS_OR_EQUAL_TO_THRESHOLD', 'GREATER_THAN_OR_EQUAL_TO_THRESHOLD', 'LESS_THAN_OR_EQUAL_TO_THRESHOLD', 'Failure', 'State', 'Registry', 'operator_of', 'Criterion', 'finish', 'read_run', 'read_policy']
log: Any

@dataclass
class Failure:
    """An environment that brought nothing, or not all"""
    iteration: int
    name: str
    why: str
    code: object = 0
    stderr: str = ''

    def __str__(self):
        ...

@dataclass
class State:
    """The result of an iteration"""
    iteration: int
    collected: dict = field(default_factory=dict)
    failures: list = field(default_factory=list)
    size: int = 0
    metric_name: str | None = None
    metric_value: float | None = None
    should_stop: bool = False
    learner_id: int | None = None
    metric_threshold: float | None = None
    metric_history: list = field(default_factory=list)
    current_config: object | None = None
    state: dict = field(default_factory=dict)

    @property
    def metric(self):
        """`metric_value`, in short"""
        ...

    def to_dict(self):
        """Everything but failures and configuration, the values of `state` among the others"""
        ...

    def get(self, key, default: Any=None):
        """A value of `state`"""
        ...
IterationState = State

class Registry:
    """Values that the tasks of a learner register"""

    def __init__(self):
        ...

    def register_state(self, key, value):
        """Set a value, and tell everybody who watches"""
        ...

    def get_state(self, key, default: Any=None):
        """One of the values"""
        ...

    def get_all_state(self):
        """All values"""
        ...

    def clear_state(self):
        """Forget all values"""
        ...

    def on_state_update(self, callback):
        """Call `callback(key, value)` for each value from now on"""
        ...

    def remove_state_callback(self, callback):
        """Call `callback` no longer"""
        ...
GREATER_THAN_THRESHOLD: Any
LESS_THAN_THRESHOLD: Any
EQUAL_TO_THRESHOLD: Any
GREATER_OR_EQUAL_TO_THRESHOLD: Any
LESS_OR_EQUAL_TO_THRESHOLD: Any
GREATER_THAN_OR_EQUAL_TO_THRESHOLD: Any
LESS_THAN_OR_EQUAL_TO_THRESHOLD: Any

def operator_of(metric_name: str) -> str:
    """How a metric is compared by default
    - `metric_name`: Of a criterion that names no operator"""
    ...

@dataclass
class Criterion:
    """When to stop"""
    f: object
    metric_name: str
    threshold: float
    operator: str | None = None
    params: dict = field(default_factory=dict)
    as_executable: bool | None = None

    def __post_init__(self):
        ...

    @property
    def task(self):
        """The test"""
        ...

    def met(self, value):
        """Is this good enough?"""
        ...

def finish(folder: Path, state: State, policy: Any=None, metrics: Any=None):
    """Write that an iteration is over, and keep the policy
    - `folder`: Of the run
    - `state`: Of the iteration that is over
    - `policy`: Of the last update
    - `metrics`: By iteration"""
    ...

def read_run(folder: Path) -> dict:
    """What `run.json` says
    - `folder`: Of the run
    - returns: Its `iterations` that are over; its `metrics` by iteration, the last one, and the file of its `policy`"""
    ...

def read_policy(folder: Path, run: dict):
    """The policy of the last iteration that is over
    - `folder`: Of the run
    - `run`: From `read_run`
    - returns: the policy; `None` without one"""
    ...
