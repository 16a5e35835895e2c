"What could be imported from a module still can, though each idea has a module of its own by now"
import importlib
import pytest

published = {
    'agents.dqn': '''
        Column DQN Dueling EpsilonGreedy Evaluate QNet Scale Score ShowColumns dqn_learner greedy_values huber make_env
        mlp nature_cnn play plot_learning''',
    'cli': '''
        commands explore info main merge train verify''',
    'core': '''
        BD TensorBatch compiled difference in_lines leaves map_leaves path_name progress row_index test_in test_len
        test_lt test_same''',
    'data.block': '''
        LoopCallback Source''',
    'data.gym': '''
        FirstLast GymLoop LoopCallback MeanReward NEpisodes NoValidation ResReduce Reward RowsAsTargets Source SourceDL
        StepArrays fake_gym_learner reward_loss show_source since space_form to_rows windows''',
    'memory.bank': '''
        Experience ExperienceBank Merge bank_about create_experience log merge_banks''',
    'memory.buffer': '''
        BatchExperience ReplayBuffer''',
    'memory.check': '''
        check_memory tiny_cases tiny_steps''',
    'memory.disk': '''
        Kept Saved load_memory log merged named_fields save_memory verify''',
    'memory.episodes': '''
        EpisodeDataset EpisodeLoader EpisodeReplay Evictor FIFOEvictor FieldType IndividualFileDataset ReplayBuffer
        RingBufferDataset ScoreEvictor concat log to_torch''',
    'memory.experience_replay': '''
        BD CancelBatchException ExperienceReplay ExperienceReplayCallback ExperienceReplayException MemoryNotWarm
        Prioritized Resume Tally TensorBatch Uniform figures_to_html get_steps plot_images plot_replay_stats
        plot_summary replay_report test_len test_same''',
    'memory.explore': '''
        Page figures_to_html frame_rows get_steps plot_images plot_replay_stats plot_summary replay_report thin''',
    'memory.files': '''
        Claim LoadError as_dtype blocks checksum file_dtypes freeze put_file read_tensors sync thaw write_tensors''',
    'memory.manifest': '''
        VERSION manifest_head one_writer pieces_of plain_file read_manifest write_manifest write_piece''',
    'memory.place': '''
        Place head_words machine_memory nbytes_when_full row_writer''',
    'memory.replay': '''
        Columns ExperienceReplay ExperienceReplayException MemoryNotWarm NoSuchRow''',
    'memory.ring': '''
        Field Ring Seams check_paths compiled log machine_memory nbytes_when_full nest pack_fields schema_fields
        torch_dtype''',
    'memory.row': '''
        Field Fields as_tensor batch_len check_paths fields_of fits nest pack_fields schema_fields tensors_of
        torch_dtype''',
    'memory.sample': '''
        Chains Prioritized Uniform Walk sampler_of''',
    'memory.tree': '''
        SumTree''',
    'memory.walk': '''
        Runs Walk links sequence_names''',
    'parallel': '''
        BankFolder Criterion Ctx EQUAL_TO_THRESHOLD Failure GREATER_OR_EQUAL_TO_THRESHOLD GREATER_THAN_THRESHOLD
        LESS_OR_EQUAL_TO_THRESHOLD LESS_THAN_THRESHOLD ParallelExperience ParallelReinforcementLearner
        SequentialReinforcementLearner State Workflow log run_command''',
}

@pytest.mark.parametrize('module', published)
def test_names(module):
    m = importlib.import_module(f'fastrl.{module}')
    missing = [o for o in published[module].split() if not hasattr(m, o)]
    assert not missing, f'{missing} cannot be imported from fastrl.{module}'

@pytest.mark.parametrize('module', published)
def test_pickles(module):
    "A pickle names a class by its path: the old one leads to the class"
    m = importlib.import_module(f'fastrl.{module}')
    moved = [o for k in published[module].split() if isinstance(o := getattr(m, k), type) and o.__module__.startswith('fastrl.')
             and getattr(importlib.import_module(o.__module__), o.__qualname__, None) is not o]
    assert not moved, f'{moved} cannot be pickled'

def test_main_names():
    "Each main name is there; `Saved` is one, and can still be had from `memory.disk`"
    import fastrl
    from fastrl.memory.disk import Saved
    assert fastrl.Saved is Saved and Saved.__module__==f"fastrl.{fastrl._where['Saved']}"
    for k in fastrl.__all__: assert callable(getattr(fastrl, k))
