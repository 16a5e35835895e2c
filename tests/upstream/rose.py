"ROSE's tests of reinforcement learning, and its example programs, on `fastrl.parallel` and `fastrl.memory.bank`"
import re, shutil
from pathlib import Path

url = 'https://github.com/radical-cybertools/ROSE'
commit = '5db6c20'
files = ['tests','examples/reinforcement_learn','tutorials'] # what is taken of it
needs = ['pytest-asyncio', 'dm_control==1.0.50', 'mujoco==3.17.0', # and what these need
         'absl-py', 'dm-env', 'dm-tree', 'etils', 'fsspec', 'glfw', 'importlib_resources', 'labmaze', 'lxml', 'protobuf', 'pyopengl',
         'pyparsing', 'requests', 'scipy', 'tqdm', 'zipp']
unit = 'tests/unit/'
tests = [f'{unit}test_rl_par_learner.py', f'{unit}test_rl_seq_learner.py', f'{unit}test_learner_core.py',
         'tests/integration/test_run_rl_par_learner.py', 'tests/integration/test_run_rl_seq_learner.py', 'tests/test_programs.py']

inside = 'replaces functions of the inside by mocks'
message = 'the same mistake has another message, or is none here: an update is not required'
compares = '`Criterion.met` compares; a metric without an operator is compared by `>`'
streams = 'a function of the inside'

def several(why, file, cls, *names): return {f'{unit}{file}::{cls}::{o}': why for o in names}

differs = {
    **several(inside, 'test_rl_par_learner.py', 'TestParallelReinforcementLearner', 'test_create_sequential_learner',
              'test_convert_to_sequential_config', 'test_start_mismatched_config_length', 'test_start_successful_execution',
              'test_start_handles_learner_exceptions', 'test_start_skip_pre_loop'),
    **several(message, 'test_rl_par_learner.py', 'TestParallelReinforcementLearner', 'test_start_missing_environment_function',
              'test_start_missing_update_function', 'test_start_without_iterations_or_criterion'),
    **several('one learner is allowed', 'test_rl_par_learner.py', 'TestParallelReinforcementLearner',
              'test_start_invalid_parallel_learners_count'),
    **several(inside, 'test_rl_seq_learner.py', 'TestSequentialReinforcementLearner', 'test_start_successful_execution',
              'test_start_stops_on_criterion', 'test_start_with_max_iterations', 'test_start_early_break', 'test_set_next_config',
              'test_iteration_state_attributes'),
    **several(message, 'test_rl_seq_learner.py', 'TestSequentialReinforcementLearner', 'test_start_missing_required_functions',
              'test_start_without_iterations_or_criterion'),
    **several('a name that nobody set is an `AttributeError`, and not `None`; `get` asks', 'test_learner_core.py', 'TestIterationState',
              'test_missing_state_key_returns_none'),
    **several(inside, 'test_learner_core.py', 'TestExtractStateFromResult', 'test_dict_result_registers_all_keys',
              'test_non_dict_result_does_nothing', 'test_excluded_keys_are_skipped'),
    **several(inside, 'test_learner_core.py', 'TestBuildIterationState', 'test_builds_state_with_metric_info_from_criterion',
              'test_builds_state_with_registered_state', 'test_metric_history_reflects_recorded_values',
              'test_current_config_stored_in_state', 'test_no_criterion_function_yields_none_metric_info'),
    **several(compares, 'test_learner_core.py', 'TestCompareMetric', 'test_less_than', 'test_greater_than_custom_operator',
              'test_equal_operator', 'test_custom_metric_without_operator_raises', 'test_unknown_operator_raises'),
    **several(streams, 'test_learner_core.py', 'TestStreamParallel', 'test_empty_run_fns_completes_immediately',
              'test_single_learner_streams_all_states', 'test_two_learners_all_states_yielded', 'test_done_count_terminates_loop',
              'test_error_is_propagated_after_all_done', 'test_error_from_one_does_not_suppress_states_from_other',
              'test_only_first_error_is_raised')}

modules = {'rose.rl.experience':'fastrl.memory.bank', 'rose.rl.reinforcement_learner':'fastrl.parallel',
           'rose.learner':'fastrl.parallel', 'rose.metrics':'fastrl.parallel'}

def prepare(src):
    "Change the import in the copy `src`, and put the test of the programs beside the others"
    for o in [o for k in ('*.py','*.ipynb') for o in src.rglob(k)]:
        text = o.read_text()
        for old,new in modules.items(): text = re.sub(rf'\b{re.escape(old)}\b', new, text)
        o.write_text(text)
    core = src/'tests'/'unit'/'test_learner_core.py'
    text = re.sub(r'^    _stream_parallel,\n', '', core.read_text(), flags=re.M) # there is none to import
    core.write_text(re.sub(r'^    Learner,', '    ParallelExperience as Learner,', text, flags=re.M)) # any learner does
    (src/'gym.py').write_text('from gymnasium import *') # its earlier name, whose last version does not run with numpy 2
    shutil.copy(Path(__file__).with_name('_rose_programs.py'), src/'tests'/'test_programs.py')
