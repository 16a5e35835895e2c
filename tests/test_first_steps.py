"A new user's first hour: mistakes that would be silent, or whose error would not say what to do"
import copy, pickle, re, sys, warnings
from types import SimpleNamespace
from functools import partial
import gymnasium as gym, numpy as np, pytest, torch
from fastrl import *
from fastrl.memory.episodes import RingBufferDataset
from fastrl.memory.replay import ExperienceReplayException

n = 4
vector = dict(state=np.zeros((n,3), np.float32), action=np.zeros(n, int), reward=np.ones(n), terminated=np.zeros(n, bool))
def memory(**kwargs): return ExperienceReplay(**dict(bs=2, max_sz=50, warmup_sz=1, seed=0) | kwargs)
def warned(f):
    "What `f` gives, and what it warns of, with the file of the line that is blamed"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter('always')
        res = f()
    return res,[(str(o.message), o.filename) for o in said if o.category is UserWarning]

# One step of several environments

names = dict(state='obs', terminated='done', reward='rewards')
@pytest.mark.parametrize('step', [
    vector, {names.get(k, k): o for k,o in vector.items()}, {k: torch.as_tensor(o) for k,o in vector.items()},
    {k: o.tolist() for k,o in vector.items()}, dict(vector, terminated=vector['terminated'][:,None]),
    dict(vector, state=dict(arm=vector['state'], eye=np.zeros((n,5,5)))), dict(vector, env_id=np.arange(n)),
    dict(vector, state=np.zeros(n, int)), {k: o[:1] for k,o in vector.items()}])
def test_a_vectors_step_given_to_add(step):
    (m,said) = warned(lambda: memory().add(**step))
    assert len(m)==1 and [f for _,f in said]==[__file__] and '`add_vector`' in said[0][0]
    assert not warned(lambda: m.add(**step))[1] # once, by the row that decides what a column holds

@pytest.mark.parametrize('step', [
    {k: o[0] for k,o in vector.items()}, dict(vector, terminated=False), dict(vector, terminated=False, reward=1.),
    dict(vector, env_id=3), # one of several environments with four agents each
    dict(state=np.zeros(1), action=0, reward=np.ones(1), terminated=np.zeros(1, bool)),
    dict(state=np.zeros((1,8,8)), reward=np.ones(1), terminated=np.zeros(1, bool)), # a grey image
    dict(state=np.zeros((n,3)), legal=np.ones(n, bool), reward=1., terminated=np.array(False)), dict(step=3)])
def test_a_step_that_is_one(step): assert warned(lambda: len(memory().add(**step)))==(1, [])

def test_a_vectors_step_as_a_batch():
    m,said = warned(lambda: memory()+dict(vector, env_id=np.arange(n)))
    assert (len(m), said)==(n, [])

# Flags that are ints: `~1` is -2

ints = [np.array([0,1,1]), np.array([0,1,1], np.uint8), torch.tensor([0,1,1]), torch.tensor([0,1,1], dtype=torch.int32), [0,1,1]]
@pytest.mark.parametrize('flags', ints)
@pytest.mark.parametrize('name', ['terminated','truncated','done'])
def test_flags_of_ints(flags, name):
    m = memory()
    for _ in range(2): m+{'reward': np.ones(3, np.float32), name: flags}
    for o in flags: m.add(**{name: o}, reward=1.)
    assert (~m[name]).flatten().tolist()==[True,False,False]*3

def test_flags_that_are_none():
    with pytest.raises(ExperienceReplayException, match='`terminated` should be 0 or 1, or a bool, got 2 in row 1'):
        memory()+dict(terminated=torch.tensor([0,2]))
    assert (memory()+dict(terminated=torch.tensor([0.,1.])))['terminated'].dtype is torch.float32
    assert (memory()+dict(alive=np.array([0,1])))['alive'].dtype is torch.int64
    kept = memory(schema=dict(terminated=((), torch.uint8)))+dict(terminated=np.array([0,1]))
    assert (kept['terminated'].dtype, kept['terminated'].flatten().tolist())==(torch.uint8, [0,1])

def test_flags_of_ints_fold_as_bools():
    rows = dict(reward=np.ones(6, np.float32), truncated=np.zeros(6, int), env_id=np.zeros(6, int))
    a,b = (memory(bs=20, n_step=3)+dict(rows, terminated=np.array([0,0,1,0,0,0], t)) for t in (int, bool))
    x,y = a.sample()[0],b.sample()[0]
    assert all(torch.equal(x[k], y[k]) and x[k].dtype is y[k].dtype for k in x)

# Nothing is silently left out

def test_load_makes_a_new_memory(tmp_path):
    m = memory()+vector
    m.save(tmp_path)
    with pytest.raises(AttributeError, match='write `memory = ExperienceReplay.load'): memory().load(tmp_path)
    assert len(ExperienceReplay.load(tmp_path))==n and not hasattr(m, 'load')
    class Mine(ExperienceReplay): pass
    assert type(Mine.load(tmp_path)) is Mine
    replay = EpisodeReplay(RingBufferDataset(9), 1)
    with pytest.raises(AttributeError, match='write `memory = EpisodeReplay.load'): replay.load(tmp_path)

@pytest.mark.parametrize('name', ['batch_size','capacity','n_steps','discount','beta'])
def test_a_setting_by_another_name(name):
    m = memory(sampler=Prioritized())
    with pytest.raises(AttributeError, match='write `memory.'): setattr(m, name, 3)
    with pytest.raises(AttributeError, match='write `memory.'): getattr(m, name)
    m.note = 'mine' # an attribute of your own
    assert m.note=='mine' and not hasattr(m, name)

@pytest.mark.parametrize('name,write', [('to','sample(device='), ('keys','memory.memory`'), ('to_pandas','memory.memory.pandas'),
    ('update_weight','update_td('), ('update_tensordict_priority','update_td('), ('on_episode_end','cut()'), ('add_batch','add('),
    ('get_all_transitions','memory`'), ('dump','save('), ('full','is_full`'), ('pos','pointer`')])
def test_a_habit_by_another_name(name, write):
    with pytest.raises(AttributeError, match=re.escape(f'no attribute {name!r}: write `memory.{write.removeprefix("memory.")}')): getattr(memory(), name)

@pytest.mark.parametrize('make,name,write', [
    (ExperienceReplay, 'total_size', 'max_sz'), (ExperienceReplay, 'pin_memory', 'memory.loader('),
    (ExperienceReplay, 'prefetch', 'memory.loader('), (ExperienceReplay, 'beta_frames', 'sampler=Prioritized(beta_steps='),
    (ExperienceReplay, 'priority_key', 'memory.update_td('), (ExperienceReplay, 'n_envs', 'memory.add_vector('),
    (ExperienceReplay, 'handle_timeout_termination', 'memory.add(…, terminated=…, truncated=…)'),
    (ExperienceReplay, 'default_dtype', 'schema='), (ExperienceReplay, 'observation_space', 'schema='),
    (ExperienceReplay, 'sequence_length', 'memory.sample_sequences('), (ExperienceReplay, 'n_sampled_goal', 'sampler=HER('),
    (Prioritized, 'beta_start', 'beta`'), (Prioritized, 'beta_frames', 'beta_steps'), (Prioritized, 'max_capacity', 'ExperienceReplay(max_sz='),
    (Prioritized, 'priority_key', 'memory.update_td('), (Prioritized, 'epsilon', 'eps'),
    (HER, 'n_sampled_goal', 'k'), (HER, 'goal_selection_strategy', 'strategy'), (HER, 'compute_reward', 'reward')])
def test_a_word_of_another_library(make, name, write):
    with pytest.raises(TypeError, match=re.escape(f'{make.__name__}() got an unexpected keyword argument {name!r}: write `{write}')):
        make(**{name: 1})

def test_words_of_a_batch():
    "What scripts write that unpack a batch of another library"
    m = memory(sampler=Prioritized()).add(state=[0.], action=0, reward=1.)
    with pytest.raises(TypeError, match=re.escape("argument 'beta': write `Prioritized(beta=…)`")): m.sample(4, beta=.4)
    for name in ('states','actions','rewards'):
        with pytest.raises(AttributeError, match=re.escape(f"no attribute {name!r}: write batch[{name[:-1]!r}]")): getattr(m.sample()[0], name)

@pytest.mark.parametrize('name,write', [('learning_rate','`lr`'), ('batch_size','`bs`'), ('buffer_size','`max_sz`'),
    ('learning_starts','`warmup_sz`'), ('target_network_frequency','`target_every`'), ('exploration_fraction','`eps_steps`'),
    ('per','`prioritized=True`'), ('total_timesteps','`learn.fit(epochs)`'), ('eval_ever','`eval_every`')])
def test_a_word_of_another_dqn(name, write):
    from fastrl.agents.dqn import dqn_learner
    with pytest.raises(TypeError, match=re.escape(f"dqn_learner() got an unexpected keyword argument {name!r}: write {write}")):
        dqn_learner('CartPole-v1', **{name: 1})
    assert dqn_learner('CartPole-v1', wd=.1).wd==.1 # a `Learner` takes it

@pytest.mark.parametrize('name,write', [('add','replay.add_step('), ('push','replay.add_step('), ('add_episode','replay.dataset.add_episode'),
    ('capacity','replay.dataset.capacity'), ('is_full','replay.dataset.is_full'), ('sample_sequences','replay.sample()')])
def test_episodes_by_another_name(name, write):
    replay = EpisodeReplay(RingBufferDataset(9), 1)
    for o in (replay, copy.copy(replay), pickle.loads(pickle.dumps(replay))):
        with pytest.raises(AttributeError, match=re.escape(f'no attribute {name!r}: write `{write}')): getattr(o, name)
        assert not hasattr(o, 'nothing')

@pytest.mark.parametrize('name,write', [('max_sz','`capacity`'), ('buffer_size','`capacity`'), ('max_episode','`max_episodes`'),
    ('batch_size','`EpisodeReplay(dataset, …, batch_size=…)`'), ('sequence_length','`EpisodeReplay(dataset, …, sequence_length=…)`'),
    ('path','`directory`')])
def test_a_dataset_by_another_word(name, write, tmp_path):
    from fastrl.memory.episodes import IndividualFileDataset
    for make in (IndividualFileDataset, RingBufferDataset):
        if (name, make)==('path', RingBufferDataset): continue # it has one
        with pytest.raises(TypeError, match=re.escape(f'{make.__name__}() got an unexpected keyword argument {name!r}: write {write}')):
            make(9, **{name: tmp_path/'new'})
    assert not (tmp_path/'new').exists()

def test_episodes_that_are_iterated():
    replay = EpisodeReplay(RingBufferDataset(9), 1)
    replay.add_step(dict(obs=np.zeros(2)), done=True)
    for f in (lambda: next(iter(replay)), lambda: replay[0], lambda: next(iter(torch.utils.data.DataLoader(replay)))):
        with pytest.raises(TypeError, match='iterate over `replay.loader`.*`replay.dataset'): f()

@pytest.mark.parametrize('pad', ['left', 'zeros', None, 8])
def test_a_pad_that_is_no_bool(pad):
    "Libraries that pad on a side of your choice name it; here short episodes are filled up behind their end"
    m = memory()
    for i in range(3): m.add(obs=float(i), terminated=i==2, truncated=False)
    says = re.escape(f'`pad` should be True, to fill up short episodes behind their end, or False, got {pad!r}')
    with pytest.raises(ExperienceReplayException, match=says): m.sample_sequences(2, 2, pad=pad)
    with pytest.raises(ValueError, match=says): RingBufferDataset(9).get_loader(2, 2, pad=pad)
    with pytest.raises(ValueError, match=says): EpisodeReplay(RingBufferDataset(9), 2, 2, pad=pad)
    assert m.sample_sequences(2, 5, pad=np.True_)[0]['mask'].tolist()==[[True]*3+[False]*2]*2

def test_a_class_of_ones_own_may_use_any_name():
    "`alpha` and `capacity` of a subclass are its own"
    class Mine(ExperienceReplay):
        def __init__(self):
            super().__init__()
            self.alpha,self.capacity = .6,5
    assert (Mine().alpha, Mine().capacity)==(.6, 5)

def test_a_property_of_ones_own_says_what_it_lacks():
    "Its `AttributeError` is not taken for one of the memory"
    class Mine(ExperienceReplay):
        @property
        def share(self): return self.sampler.kept/2
    with pytest.raises(AttributeError, match="'Uniform' object has no attribute 'kept'"): Mine().share

def test_a_capacity_where_bs_stands():
    assert [o[:37] for o,_ in warned(lambda: ExperienceReplay(10_000))[1]]==['`bs`, the first argument, is 10000, a']
    assert not warned(lambda: ExperienceReplay(10_000, 100_000))[1]

def test_the_replay_buffer_of_others():
    "`fastrl.ReplayBuffer` has Velora's arguments; SB3's and cleanrl's, which take spaces, are those of `fastrl.compat`"
    spaces = gym.spaces.Box(-1, 1, (4,)),gym.spaces.Discrete(2)
    with pytest.raises(ValueError, match='got Box.*: for spaces take `fastrl.compat.ReplayBuffer`'): ReplayBuffer(9, *spaces, 'cpu')
    for k in ('n_envs','optimize_memory_usage','handle_timeout_termination'):
        with pytest.raises(TypeError, match=f'argument {k!r}: write `fastrl.compat.ReplayBuffer'): ReplayBuffer(9, *spaces, 'cpu', **{k: 1})
    with pytest.raises(TypeError, match="argument 'batch_size': write `buffer.sample"): ReplayBuffer(9, 4, 1, 0, batch_size=3)
    with pytest.raises(TypeError, match="argument 'sampl': write `sampler`"): ReplayBuffer(9, 4, 1, 0, sampl=3)

@pytest.mark.parametrize('name,write', [('capacity','`buffer_size`'), ('max_sz','`buffer_size`'), ('num_envs','`n_envs`'),
    ('n_step','`n_steps`'), ('discount','`gamma`'), ('alpha','`sampler=Prioritized(alpha=…)`'), ('batch_size','`buffer.sample(batch_size)`')])
def test_the_words_of_cleanrls_buffer(name, write):
    from fastrl.compat import ReplayBuffer
    spaces = gym.spaces.Box(-1, 1, (4,)),gym.spaces.Discrete(2)
    with pytest.raises(TypeError, match=re.escape(f'ReplayBuffer() got an unexpected keyword argument {name!r}: write {write}')):
        ReplayBuffer(9, *spaces, **{name: 1})

def test_a_capacity_where_alpha_stands():
    "torchrl's sampler takes it first: each power of a TD error was infinite, which the error did not say"
    with pytest.raises(ValueError, match='`alpha` should be a number from 0 to 10, got 10000'): Prioritized(10_000, .6)

@pytest.mark.parametrize('how', [copy.copy, copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_copies_know_no_other_names(how):
    m = how(memory()+vector)
    assert len(m)==n
    with pytest.raises(AttributeError, match='no attribute .push.: write `memory.add'): m.push

# Columns as tables and files have them

def test_what_a_memory_is_given(tmp_path):
    np.savez(tmp_path/'rows.npz', **vector)
    rows = np.load(tmp_path/'rows.npz')
    with pytest.raises(ExperienceReplayException, match=r'got a NpzFile: write `memory \+ {\*\*batch}'): memory()+rows
    m = memory()+dict(rows)
    with pytest.raises(ExperienceReplayException, match=r'write `memory.extend\(other\)`'): m+m
    with pytest.raises(ExperienceReplayException, match=r'got a bank: write `memory.add\(state=e.state'): m+ExperienceBank()
    lists = np.empty(2, object)
    lists[:] = [np.zeros(3), np.ones(3)]
    with pytest.raises(ExperienceReplayException, match='`state` should be numbers.*`np.stack`'): memory()+dict(state=lists)
    assert (memory()+dict(state=np.stack(lists)))['state'].shape==(2,3)
    with pytest.raises(ExperienceReplayException, match='`next_state`.*got None: an ending has a next'):
        memory().add(state=np.zeros(3), next_state=None)

# In a learner

@pytest.fixture
def learner():
    from fastai.basics import Learner, nn
    class Net(nn.Module):
        def __init__(self): super().__init__(); self.w = nn.Parameter(torch.zeros(1))
        def forward(self, b): return self.w*b['reward']
    def make(cb, n=60):
        source = Source([GymLoop('CartPole-v1', seed=0)])
        return Learner(source.dataloaders(n, bs=10, episodes=1), Net(), cbs=cb,
                       loss_func=lambda pred, b: ((pred-(b['reward'] if isinstance(b, dict) else 1.))**2).mean())
    return make

def fit(learn, n=1):
    def run():
        with learn.no_bar(), learn.no_logging(): learn.fit(n)
    return warned(run)[1]

def test_a_fit_that_trains_nothing_says_so(learner):
    learn = learner(ExperienceReplayCallback(bs=4, warmup_sz=100))
    (text,file), = fit(learn)
    assert text.startswith('nothing was trained: 60 rows are stored, and 100 are needed') and file==__file__
    assert not fit(learn) and learn.recorder.losses # warm in its second epoch
    assert not fit(learn)

def test_fits_that_need_no_warning(learner):
    assert not fit(learner(ExperienceReplayCallback(bs=4, warmup_sz=60)))
    learn = learner(ExperienceReplayCallback(bs=4, warmup_sz=100))
    assert not fit(learn, 0)
    with learn.no_bar(): assert not warned(learn.validate)[1]
    with learn.no_bar(): assert not warned(partial(learn.lr_find, num_it=5, show_plot=False, suggest_funcs=None))[1]

def test_plots_of_a_learner(learner):
    learn = learner(ExperienceReplayCallback(bs=4, warmup_sz=10))
    fit(learn)
    for o in (learn, learn.experience_replay):
        assert len(plot_summary(o).layout.annotations)==3 # how often rows were drawn is known
    assert len(plot_summary(learn.experience_replay.replay).layout.annotations)==2
    for o in (learner(None), memory().sample, 3):
        with pytest.raises(ValueError, match='a learner that has one; got a'): plot_replay_stats(o)

def test_a_dataset_that_does_not_fit():
    rows = dict(vector, reward=np.ones(n))
    m,said = warned(lambda: memory(max_sz=3)+rows)
    assert (len(m), [o for o,_ in said])==(3, ['of 4 rows the newest 3 are kept: give a larger `max_sz`'])
    assert said[0][1]==__file__
    assert not warned(lambda: m+rows)[1] # it is full, as memories are
    assert not warned(lambda: memory(max_sz=3, freeze_memory=True)+rows)[1]
    assert len(warned(lambda: memory(max_sz=3, memory=rows))[1])==len(warned(lambda: memory(max_sz=2, memory=m.memory))[1])==1

def test_columns_of_a_table():
    pd = pytest.importorskip('pandas')
    table = pd.DataFrame(dict(state=[*np.ones((4,3))], terminated=[0,0,0,1], reward=1., action=[0,1,0,1]))
    with pytest.raises(ExperienceReplayException, match=r'got a DataFrame: write `memory \+ {\*\*batch}'): memory()+table
    with pytest.raises(ExperienceReplayException, match='`state`.*`np.stack`'): memory()+dict(table)
    m = memory()+dict(dict(table), state=np.stack(table['state']))
    assert m['state'].shape==(4,3) and (~m['terminated']).sum()==3 and m['action'].dtype is torch.int64

# In other processes

schema = dict(state=((3,), torch.float32), reward=((), torch.float32))
def add_two(m, to):
    "What two rows bring, in a process that has `m`"
    step = dict(state=np.zeros(3, np.float32), reward=1.)
    def add(by_batch):
        if by_batch: return m+{k: np.stack([o]) for k,o in step.items()}
        return m.add(**step)
    to.put([warned(lambda: add(by_batch))[1] for by_batch in (True, False, False)]+[len(m)])

def forked(m):
    import multiprocessing as mp
    ctx = mp.get_context('fork')
    q = ctx.SimpleQueue()
    p = ctx.Process(target=add_two, args=(m, q))
    p.start(); res = q.get(); p.join()
    return res

@pytest.mark.skipif(sys.platform!='linux', reason='fork')
@pytest.mark.parametrize('m', [memory(), memory().add(state=np.zeros(3, np.float32), reward=1.), memory(shared=True)])
def test_rows_that_a_forked_process_adds_to_its_copy(m):
    before = len(m)
    (first,*later,n) = forked(m)
    (text,file), = first
    assert text.startswith('this process was forked with a copy of the memory') and file==__file__
    assert (later, n, len(m))==([[],[]], before+3, before)
    assert forked(m)[0] # each process hears it
    add_two(m, SimpleNamespace(put=lambda res: None)) # and this one can go on
    assert not warned(lambda: m+dict(state=np.zeros((1,3), np.float32), reward=np.ones(1, np.float32)))[1]

@pytest.mark.skipif(sys.platform!='linux', reason='fork')
def test_forked_processes_that_need_no_warning(tmp_path):
    shared,mapped = memory(shared=True, schema=schema),memory(path=tmp_path/'rows', schema=schema)
    for m in (shared, mapped): assert (forked(m), len(m))==([[],[],[],3], 3)
    part = (memory()+dict(state=np.zeros((2,3), np.float32), reward=np.ones(2)))[:1]
    part.save(tmp_path/'saved')
    for m in (part, ExperienceReplay.load(tmp_path/'saved')): assert forked(m)[0]

def test_a_right_memory_passes_its_check_in_silence():
    from fastrl.memory.check import check_memory
    assert not warned(lambda: check_memory(lambda n: memory(max_sz=n)))[1] # of episodes that are shorter than a sequence, say

def some_steps(): return dict(obs=torch.zeros(2, 3))
def a_replay(): (r := EpisodeReplay(RingBufferDataset(9), 2)).dataset.add_episode(some_steps()); return r
def a_buffer():
    from fastrl.memory.buffer import ReplayBuffer
    return ReplayBuffer(9, 1, 1, 1)

@pytest.mark.parametrize('word', ['clear','reset','empty'])
@pytest.mark.parametrize('make', [memory, a_replay, lambda: a_replay().dataset, a_buffer])
def test_words_that_empty_a_memory_elsewhere(make, word):
    "SB3 and tianshou say `reset`, torchrl `empty`, cpprb `clear`: the memory does it, or says what does"
    m = make()
    if make is not a_buffer and word=='clear': assert not len(m.clear()); return
    says = 'write `memory = ReplayBuffer(…)`' if make is a_buffer else 'write `memory.clear()`'
    with pytest.raises(AttributeError) as e: getattr(m, word)()
    assert says in str(e.value)

def by_add(m, o): return m.add(**{k: v[0] for k,v in o.items()}, reward=0.)
@pytest.mark.parametrize('add', [lambda m, o: m+dict(o, reward=np.zeros(2)), lambda m, o: m+dict(o, reward=torch.zeros(2)), by_add])
def test_an_observation_that_was_written_over(add):
    "A simulator that writes its next observation over the last one: both are the same array, and a warning says so, once"
    for make in (np.zeros, torch.zeros):
        seen,m = make((2,3)),ExperienceReplay(max_sz=9, warmup_sz=1)
        with pytest.warns(UserWarning, match='`state` and `next_state` are one and the same array') as said:
            for _ in range(3): add(m, dict(state=seen, next_state=seen))
        assert len(said)==1
        with warnings.catch_warnings():
            warnings.simplefilter('error')
            steps = make((3,3))
            add(ExperienceReplay(max_sz=9, warmup_sz=1), dict(state=steps[:-1], next_state=steps[1:]))
            goal = make((2,3)) # stays what it is
            add(ExperienceReplay(max_sz=9, warmup_sz=1), {k: dict(seen=o, goal=goal) for k,o in (('state',steps[:-1]), ('next_state',steps[1:]))}
                if add is not by_add else dict(state=steps[:-1], next_state=steps[1:]))

@pytest.mark.parametrize('make,wrong', [(ExperienceReplay, dict(warmup_sz='100')), (ExperienceReplay, dict(max_sz='200')),
    (ExperienceReplay, dict(shared='False')), (ExperienceReplay, dict(freeze_memory='no')), (ExperienceReplay, dict(gamma='.9')),
    *((Prioritized, {k: v}) for k in ('alpha','beta','beta_steps','eps','eta') for v in ('1e-6', None))])
def test_words_for_numbers(make, wrong):
    "An argument from a command line or a YAML file (there, `1e-6` is a word) raises by its name"
    (k,v), = wrong.items()
    with pytest.raises((ValueError,ExperienceReplayException), match=f'`{k}` should be .*, got {v!r}'): make(**wrong)

def test_beta_that_is_a_word():
    sampler = Prioritized()
    with pytest.raises(ValueError, match="`beta` should be a number from 0 to 1, got '1'"): sampler.beta = '1'

@pytest.mark.parametrize('first', [True,False])
def test_masked_values(first):
    "A masked value is none: it isn't stored as if it were"
    memory,masked = ExperienceReplay(max_sz=9, warmup_sz=1),np.ma.masked_array([1.,2.], [True,False])
    if not first: memory.add(x=np.zeros(2))
    for add in (lambda: memory+dict(x=masked[None]), lambda: memory.add(x=masked)):
        with pytest.raises(ExperienceReplayException, match='`x` has masked values: fill them first'): add()
    memory.add(x=np.ma.masked_array([1.,2.]))
    assert torch.equal(memory['x'][-1], torch.tensor([1.,2.], dtype=torch.float64))
    replay = EpisodeReplay(RingBufferDataset(9), 1, 1)
    with pytest.raises(ValueError, match='`x` has masked values'): replay.add_step(dict(x=masked), False)

def test_a_column_where_an_attribute_stands():
    m = memory()
    m.add(obs=0., reward=1.)
    with pytest.raises(AttributeError, match=re.escape("no attribute 'rewards': write `memory['reward']`")): m.rewards
    with pytest.raises(AttributeError, match=re.escape("write `memory['obs']`")): m.obs
    assert not hasattr(memory(), 'obs')
