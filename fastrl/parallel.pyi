"""Many environments collect at once; their banks are merged, learnt from and tested, until the result is good enough

One environment at a time collects slowly and sees little. `ParallelExperience` runs many side by side, each with parameters of its own, in processes here or on other machines. It merges their banks into one memory, calls your update and your test, and repeats until the stop criterion is met. A task that fails, is killed or runs into its `timeout` does not affect the others, and a stopped run resumes where it left off. The API is that of [ROSE](https://github.com/radical-cybertools/ROSE).

Docs: https://fastrl.github.io/fastrl/parallel.html.md"""
from typing import Any, overload
from .bank_folder import BankFolder
from .core import Progress
from .engines import Ctx, Workflow
from .run_state import *
from .supervisor import run_command
__all__ = ['log', 'ParallelExperience', 'SequentialReinforcementLearner', 'ParallelReinforcementLearner', 'BankFolder', 'Ctx', 'Workflow', 'run_command', 'Criterion', 'Failure', 'State', 'EQUAL_TO_THRESHOLD', 'GREATER_OR_EQUAL_TO_THRESHOLD', 'GREATER_THAN_THRESHOLD', 'LESS_OR_EQUAL_TO_THRESHOLD', 'LESS_THAN_THRESHOLD']
log: Any

class ParallelExperience:
    """Environments that collect side by side, an update and a test, until the criterion is met"""
    patience: float
    work_dir: Any
    timeout: Any
    max_size: Any
    retries: Any
    min_envs: Any
    seed: Any
    environments: Any
    update: Any
    criterion: Any
    policy: Any
    banks: BankFolder
    engine: Any

    def __init__(self, engine: Any=None, *, work_dir: Any='.', max_size: int | None=None, timeout: float | None=None, retries: int=0, min_envs: int=1, seed: int=0):
        """- `engine`: An executor, a Dask `Client` or an asyncflow `WorkflowEngine`; by default processes here
        - `work_dir`: Where update and test run, and where the folder of the memory is
        - `max_size`: The most experiences in the memory; the oldest go first
        - `timeout`: Seconds that an environment may take
        - `retries`: How often a failed environment is tried again
        - `min_envs`: The run stops with an error if fewer environments bring something
        - `seed`: The seed of each environment follows from it"""
        ...

    def stop(self):
        """Stop after the iteration that is running"""
        ...

    @property
    def memory(self):
        """All experiences that were committed, as one bank"""
        ...

    def environment_task(self, f: Any=None, *, name: str | None=None, timeout: float | None=None, **params):
        """Decorate an environment: a function that collects, or an `async def` that gives a command

    - `f`: Set by the decorator
    - `name`: By default that of the function
    - `timeout`: Seconds, if not those of all
    - `**params`: For the function; a command finds them in `FASTRL_PARAMS`, too"""
        ...

    def set_params(self, name: str, **params):
        """Change parameters from the next iteration on

    - `name`: Of an environment
    - `**params`: The new values; the others stay"""
        ...

    def update_task(self, f: Any=None, **params):
        """Decorate the update: a function of `ctx` that returns a policy, or an `async def` that gives a command

    - `f`: Set by the decorator
    - `**params`: As those of an environment"""
        ...

    def as_stop_criterion(self, metric_name: str, threshold: float, operator: str='>', **params):
        """Decorate the test: a function of `ctx` that gives a number, or an `async def` whose command prints one last

    - `metric_name`: What the number is called
    - `threshold`: What it is compared with
    - `operator`: One of `> < == >= <=`, or the constants of this module
    - `**params`: As those of an environment"""
        ...

    async def start(self, max_iter: int=0):
        """Run iteration by iteration, from where the last run stopped: an async iterator of their `State`

    - `max_iter`: The most iterations, those of earlier runs included; without it until the criterion is met"""
        ...

    async def learn(self, max_iter: int=0) -> State:
        """Run until the criterion is met; the last state

    - `max_iter`: The most iterations, those of earlier runs included; without it until the criterion is met"""
        ...

class _Count:
    """How many tasks are done"""
    bar: Progress
    done: int
    comment: str

    def __init__(self, patience):
        ...

    async def add(self, coro):
        """Count a task once it is done"""
        ...

class SequentialReinforcementLearner(ParallelExperience):
    """One environment, an update and a test, until the criterion is met"""

    def environment_task(self, f: Any=None, **kwargs):
        """Decorate the environment: a function that collects, or an `async def` that gives a command"""
        ...

class ParallelReinforcementLearner(SequentialReinforcementLearner):
    """Several learners side by side, with configurations and memories of their own"""

    async def start(self, parallel_learners: int=2, max_iter: int=0, learner_configs: list | None=None):
        """Run all learners: an async iterator of their states

        - `parallel_learners`: How many
        - `max_iter`: The most iterations of each; without it until the criterion is met
        - `learner_configs`: For each `None`, or parameters, `dict(environment=…, update=…, criterion=…)`"""
        ...

    async def learn(self, *args, **kwargs) -> list:
        """Run all learners until the criterion of each is met; the last state of each"""
        ...

    @property
    def memory(self):
        """All experiences that all learners committed"""
        ...
