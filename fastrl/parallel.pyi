"""Many environments collect at once; their banks are merged, learnt from and tested, until the result is good enough

One environment at a time collects slowly and sees little. `ParallelExperience` runs many side by side, each with parameters of its own, in processes here or on other machines. It merges their banks into one memory, calls your update and your test, and repeats until the stop criterion is met. A task that fails, is killed or runs into its `timeout` does not affect the others, and a stopped run resumes where it left off. The API is that of [ROSE](https://github.com/radical-cybertools/ROSE).

Docs: https://fastrl.github.io/fastrl/parallel.html.md"""
from typing import Any, overload
from .bank_folder import BankFolder
from .core import Progress
from .engines import Ctx, Workflow
from .learner_config import *
from .run_state import *
from .supervisor import run_command
__all__ = ['log', 'ParallelExperience', 'SequentialReinforcementLearner', 'ParallelReinforcementLearner', 'BankFolder', 'Ctx', 'Workflow', 'run_command', 'Criterion', 'Failure', 'IterationState', 'State', 'LearnerConfig', 'TaskConfig', 'EQUAL_TO_THRESHOLD', 'GREATER_OR_EQUAL_TO_THRESHOLD', 'GREATER_THAN_OR_EQUAL_TO_THRESHOLD', 'GREATER_THAN_THRESHOLD', 'LESS_OR_EQUAL_TO_THRESHOLD', 'LESS_THAN_OR_EQUAL_TO_THRESHOLD', 'LESS_THAN_THRESHOLD']
log: Any

class ParallelExperience(Registry):
    """Environments that collect side by side, an update and a test, until the criterion is met"""
    patience: float
    timeout: Any
    max_size: Any
    retries: Any
    min_envs: Any
    seed: Any
    environments: Any
    update: Any
    criterion: Any
    asyncflow: Any
    engine: Any
    banks: BankFolder
    metric_values_per_iteration: Any

    def __init__(self, engine: Any=None, *, work_dir: Any='.', max_size: int | None=None, timeout: float | None=None, retries: int=0, min_envs: int=1, seed: int=0):
        """- `engine`: An executor, a Dask `Client` or an asyncflow `WorkflowEngine`; by default processes here
        - `work_dir`: Where update and test run, and where the folder of the memory is
        - `max_size`: The most experiences in the memory; the oldest go first
        - `timeout`: Seconds that an environment may take
        - `retries`: How often a failed environment is tried again
        - `min_envs`: The run stops with an error if fewer environments bring something
        - `seed`: The seed of each environment follows from it"""
        ...

    @property
    def work_dir(self):
        """Where update and test run, and where the folder of the memory is; set it while no iteration is running"""
        ...

    @work_dir.setter
    def work_dir(self, path):
        ...

    def stop(self):
        """Stop after the iteration that is running"""
        ...

    @property
    def policy(self):
        """The result of the last update, for the next one; set your own, or `None` for the one that was saved"""
        ...

    @policy.setter
    def policy(self, policy):
        ...

    @property
    def memory(self):
        """All experiences that were committed, as one bank"""
        ...

    def environment_task(self, f: Any=None, *, name: str | None=None, timeout: float | None=None, as_executable: bool | None=None, **params):
        """Decorate an environment: a function that collects, or an `async def` that gives a command
    - `f`: Set by the decorator
    - `name`: By default that of the function
    - `timeout`: Seconds, if not those of all
    - `as_executable`: `False` for a plain function, as of a `Task`
    - `**params`: For the function; a command finds them in `FASTRL_PARAMS`, too"""
        ...

    def set_params(self, name: str, **params):
        """Change parameters of an environment, from the next iteration on
    - `name`: Of an environment
    - `**params`: The new values; the others stay"""
        ...

    def update_task(self, f: Any=None, *, as_executable: bool | None=None, **params):
        """Decorate the update: a function of `ctx` that returns a policy, or an `async def` that gives a command
    - `f`: Set by the decorator
    - `as_executable`: `False` for a plain function, as of a `Task`
    - `**params`: As those of an environment; `timeout`, too, is one of the function: an update takes the time it needs"""
        ...

    def as_stop_criterion(self, metric_name: str, threshold: float, operator: str | None=None, as_executable: bool | None=None, **params):
        """Decorate the test: a function of `ctx` that gives a number, or an `async def` whose command prints one last
    - `metric_name`: What the number is called
    - `threshold`: What it is compared with
    - `operator`: One of `> < == >= <=`, or the constants of this module; by default `>`
    - `as_executable`: `False` for a plain function, as of a `Task`
    - `**params`: As those of an environment"""
        ...

    def merge_banks(self):
        """Add the banks `experience_bank_*` in `work_dir` to the memory, and merge all into `experience_bank.pkl`
    - returns: the memory"""
        ...

    def get_metric_results(self) -> dict:
        """The metrics by iteration, of this run and those that it resumes"""
        ...

    async def start(self, max_iter: int=0, skip_pre_loop: bool=False, *, skip_environment_step: bool=False, initial_config: Any=None):
        """Run iteration by iteration, from where the last run stopped: an async iterator of their `State`
    - `max_iter`: The most iterations, those of earlier runs included; without it until the criterion is met
    - `skip_pre_loop`: Should the first iteration only test, without collecting and learning?
    - `skip_environment_step`: Learn from the memory as it is, without collecting?
    - `initial_config`: A `LearnerConfig`, or a dict of parameters by task"""
        ...

    async def learn(self, max_iter: int=0, skip_pre_loop: bool=False, *, skip_simulation_step: bool=False, learner_config: Any=None) -> State:
        """Run until the criterion is met; the last state
    - `max_iter`: As of `start`, as the others are
    - `skip_simulation_step`: `skip_environment_step` of `start`
    - `learner_config`: `initial_config` of `start`"""
        ...

    async def shutdown(self, *args, **kwargs):
        """Shut down the engine that you gave; a Dask client leaves its cluster running"""
        ...

    def set_next_config(self, config):
        """Configure the tasks from the next iteration on
    - `config`: A `LearnerConfig`, or a dict of parameters by task"""
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

    async def start(self, parallel_learners: int=2, max_iter: int=0, skip_pre_loop: bool=False, learner_configs: list | None=None):
        """Run all learners: an async iterator of their states
        - `parallel_learners`: How many
        - `max_iter`: The most iterations of each; without it until the criterion is met
        - `skip_pre_loop`: Should the first iteration only test?
        - `learner_configs`: For each `None`, a `LearnerConfig`, or a dict of parameters by task"""
        ...

    async def learn(self, *args, **kwargs) -> list:
        """Run all learners until the criterion of each is met; the last state of each"""
        ...

    def set_next_config(self, config):
        """Configure the tasks of all learners from their next iteration on"""
        ...

    def get_metric_results(self):
        """The metrics by iteration, of each learner: `{'learner-0': {0: 1.5}}`"""
        ...

    def merge_banks(self):
        """There is nothing to merge: each learner has its own memory"""
        ...

    @property
    def memory(self):
        """All experiences that all learners committed"""
        ...
