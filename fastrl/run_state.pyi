"""What an iteration brought, whether that is good enough, and where the next run resumes

A run collects, learns and tests, again and again, and you want to know after each iteration: what came, what failed, and is it good enough? A `State` says that, with a `Failure` for each environment that brought nothing, and a `Criterion` decides. `finish` writes that an iteration is over, so that a run that was killed resumes with the next one, and with the policy that it had.

Docs: https://fastrl.github.io/fastrl/run_state.html.md"""
from typing import Any, overload
import operator
from dataclasses import dataclass, field
from pathlib import Path
__all__ = ['log', 'GREATER_THAN_THRESHOLD', 'LESS_THAN_THRESHOLD', 'EQUAL_TO_THRESHOLD', 'GREATER_OR_EQUAL_TO_THRESHOLD', 'LESS_OR_EQUAL_TO_THRESHOLD', 'Failure', 'State', 'Criterion', 'finish', 'read_run', 'read_policy']
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
    collected: dict
    failures: list
    size: int
    metric_name: str | None = None
    metric: float | None = None
    should_stop: bool = False
    learner_id: int | None = None

    @property
    def metric_value(self):
        """The metric, by the name that ROSE gives it"""
        ...
GREATER_THAN_THRESHOLD: Any
LESS_THAN_THRESHOLD: Any
EQUAL_TO_THRESHOLD: Any
GREATER_OR_EQUAL_TO_THRESHOLD: Any
LESS_OR_EQUAL_TO_THRESHOLD: Any

@dataclass
class Criterion:
    """When to stop"""
    f: object
    metric_name: str
    threshold: float
    operator: str
    params: dict = field(default_factory=dict)

    def __post_init__(self):
        ...

    @property
    def task(self):
        """The test"""
        ...

    def met(self, value):
        """Is this good enough?"""
        ...

def finish(folder: Path, state: State, policy: Any=None):
    """Write that an iteration is over, and keep the policy

    - `folder`: Of the run
    - `state`: Of the iteration that is over
    - `policy`: Of the last update"""
    ...

def read_run(folder: Path) -> dict:
    """What `run.json` says

    - `folder`: Of the run
    - returns: Its `iterations` that are over; its `metric` and the file of its `policy`, if it has them"""
    ...

def read_policy(folder: Path, run: dict):
    """The policy of the last iteration that is over

    - `folder`: Of the run
    - `run`: From `read_run`
    - returns: the policy; `None` without one"""
    ...
