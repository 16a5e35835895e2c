"""Change the arguments of a learner's tasks, for a whole run or from one iteration to the next

You want to explore less after fifty iterations, or try four learning rates side by side, and write your tasks only once. A `TaskConfig` holds arguments of one task; a `LearnerConfig` has one for each task, or one per iteration. Learners take it when they start, or between two iterations. The names are those of [ROSE](https://github.com/radical-cybertools/ROSE).

Docs: https://fastrl.github.io/fastrl/learner_config.html.md"""
from typing import Any, overload
from dataclasses import dataclass, field
from .tasks import Task
__all__ = ['TaskConfig', 'LearnerConfig', 'configured', 'check_config']

@dataclass
class TaskConfig:
    """Arguments of a task"""
    args: tuple = ()
    kwargs: dict = field(default_factory=dict)

    def __post_init__(self):
        ...

@dataclass
class LearnerConfig:
    """Arguments of a learner's tasks: for each a `TaskConfig`, or a dict of them by iteration"""
    environment: object | None = None
    update: object | None = None
    criterion: object | None = None
    simulation: object | None = None
    training: object | None = None
    prediction: object | None = None
    active_learn: object | None = None

    def __post_init__(self):
        ...

    def get_task_config(self, task_name: str, iteration: int) -> TaskConfig:
        """The arguments of a task in an iteration; the key -1 or `'default'` stands for all others
        - `task_name`: Such as `'update'`
        - returns: `None` if there is none"""
        ...

def configured(task: Task, config, name: str, iteration: int) -> Task:
    """A task with the arguments that a configuration has for it
    - `config`: A `LearnerConfig`, a dict of parameters by task, or `None`
    - `name`: Of the task, such as `'update'`"""
    ...

def check_config(config, tasks, what: Any='the configuration'):
    """Raise unless a configuration is for tasks that there are
    - `config`: A `LearnerConfig`, a dict of parameters by task, or `None`
    - `tasks`: Names of the tasks that there are
    - `what`: For the error"""
    ...
