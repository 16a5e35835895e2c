"Datasets in and out: what comes back is what went in, bit for bit, by plain lists that know nothing of the inside"
import json, subprocess, sys, tracemalloc, warnings, weakref
from collections import Counter
from pathlib import Path
import h5py, minari, numpy as np, pytest, torch
from gymnasium import spaces
from minari.data_collector import EpisodeBuffer
from fastrl.compat import from_d4rl, from_minari, to_minari
from fastrl.core import leaves, map_leaves, test_same as same
from fastrl.memory.replay import ExperienceReplay, ExperienceReplayException

pytestmark = pytest.mark.filterwarnings('ignore::UserWarning:minari')
root = Path(__file__).parent.parent
formats = ['hdf5', 'arrow', 'parquet']

@pytest.fixture(autouse=True)
def at_home(tmp_path, monkeypatch): monkeypatch.setenv('MINARI_DATASETS_PATH', str(tmp_path/'minari'))

all_spaces = dict(
    box=spaces.Box(-9, 9, (3,)), wide=spaces.Box(-9, 9, (2,2), np.float64), number=spaces.Box(-9, 9, ()),
    bytes=spaces.Box(0, 255, (4,), np.uint8), discrete=spaces.Discrete(7), start=spaces.Discrete(5, start=-2),
    many=spaces.MultiDiscrete([5,2,3]), bits=spaces.MultiBinary(6),
    image=spaces.Box(0, 255, (40,36,3), np.uint8), grey=spaces.Box(0, 255, (33,32), np.uint8),
    dict=spaces.Dict(dict(arm=spaces.Box(-1, 1, (2,)), cup=spaces.Dict(dict(at=spaces.Box(-1, 1, (1,), np.float64), full=spaces.Discrete(2))))),
    tuple=spaces.Tuple((spaces.Discrete(3), spaces.Tuple((spaces.Box(0, 255, (32,32), np.uint8), spaces.Box(-1, 1, (1,)))))),
    both=spaces.Tuple((spaces.Box(-1, 1, (2,)), spaces.Dict(dict(x=spaces.Discrete(4), y=spaces.Tuple((spaces.MultiBinary(2),)))))))

def column(values):
    "One array per leaf, of values that a space gave"
    if isinstance(values[0], dict): return {k: column([o[k] for o in values]) for k in values[0]}
    if isinstance(values[0], tuple): return tuple(column([o[k] for o in values]) for k in range(len(values[0])))
    return values if isinstance(values[0], str) else np.array(values)

def episodes(ob, ac, seed, n=7):
    "Episodes of 1 to 6 steps as plain lists; they end in all three ways"
    rng = np.random.default_rng(seed)
    ob.seed(seed); ac.seed(seed)
    res = []
    for T in [1, *rng.integers(1, 7, n-1).tolist()]:
        how = rng.integers(3)
        res.append(dict(obs=[ob.sample() for _ in range(T+1)], act=[ac.sample() for _ in range(T)], rew=rng.normal(size=T).tolist(),
                        over=[False]*(T-1)+[bool(how!=1)], late=[False]*(T-1)+[bool(how!=0)]))
    return res

def written(eps, ob, ac, data_format='hdf5', name='mine/test-v0'):
    buffers = [EpisodeBuffer(observations=column(e['obs']), actions=column(e['act']), rewards=e['rew'], terminations=e['over'], truncations=e['late']) for e in eps]
    return minari.create_dataset_from_buffers(name, buffers, observation_space=ob, action_space=ac, data_format=data_format, jpeg_encoding=False)

def identical(a, b):
    "Form, shapes, dtypes and bits"
    a,b = dict(leaves(a)),dict(leaves(b))
    assert a.keys()==b.keys()
    for p in a:
        x,y = np.asarray(a[p]),np.asarray(b[p])
        assert (x.shape,x.dtype)==(y.shape,y.dtype) and x.tobytes()==y.tobytes(), p

def identical_episodes(ds, eps):
    assert ds.total_episodes==len(eps) and ds.total_steps==sum(len(e['rew']) for e in eps)
    for got,e in zip(ds, eps):
        identical(got.observations, column(e['obs'])); identical(got.actions, column(e['act']))
        identical(got.rewards, np.array(e['rew'])); identical(got.terminations, np.array(e['over'])); identical(got.truncations, np.array(e['late']))

def identical_rows(memory, eps):
    "Each row is the one that the lists have"
    steps = [(k,e,t) for k,e in enumerate(eps) for t in range(len(e['rew']))]
    assert len(memory)==len(steps)
    want = dict(state=column([e['obs'][t] for _,e,t in steps]), next_state=column([e['obs'][t+1] for _,e,t in steps]), action=column([e['act'][t] for _,e,t in steps]),
                reward=np.array([e['rew'][t] for _,e,t in steps]), terminated=np.array([e['over'][t] for _,e,t in steps]), truncated=np.array([e['late'][t] for _,e,t in steps]),
                episode_id=np.array([k for k,*_ in steps]), step=np.array([t for *_,t in steps]))
    for k,v in want.items():
        got = map_leaves(lambda t: t.numpy(), memory[k])
        identical(got, map_leaves(lambda o: o if o.ndim>1 else o[:,None], v)) # a number per row is a column (n,1)

# %% Minari
@pytest.mark.parametrize('data_format', [formats[0], *(pytest.param(o, marks=pytest.mark.slow) for o in formats[1:])])
@pytest.mark.parametrize('kind', [*all_spaces])
@pytest.mark.halved
def test_round_trip(kind, data_format):
    "Dataset → memory → dataset → memory: any space, in all of Minari's storages"
    for seed,(ob,ac) in enumerate(((all_spaces[kind], spaces.Discrete(3)), (spaces.Box(-1, 1, (1,)), all_spaces[kind]))):
        eps = episodes(ob, ac, seed)
        memory = from_minari(written(eps, ob, ac, data_format, f'mine/a{seed}-v0'))
        identical_rows(memory, eps)
        back = to_minari(memory, f'mine/b{seed}-v0', observation_space=ob, action_space=ac, data_format=data_format)
        identical_episodes(minari.load_dataset(f'mine/b{seed}-v0'), eps)
        assert (back.observation_space, back.action_space)==(ob, ac)
        identical_rows(from_minari(back.id), eps)

def test_part_of_a_dataset():
    "Filtered episodes, in their order; `dtype` changes floats only"
    ob,ac = all_spaces['dict'],spaces.Discrete(3)
    eps = episodes(ob, ac, 3, 20)
    some = written(eps, ob, ac).filter_episodes(lambda e: len(e)>2)
    memory = from_minari(some, dtype=torch.float32)
    long = [e for e in eps if len(e['rew'])>2]
    assert 0<len(long)<20 and memory['episode_id'].unique().tolist()==[k for k,e in enumerate(eps) if len(e['rew'])>2]
    assert memory['reward'][:,0].tolist()==np.float32([r for e in long for r in e['rew']]).tolist()
    assert {(p[-1], t.dtype) for p,t in leaves(memory['state'])}=={('arm',torch.float32), ('at',torch.float32), ('full',torch.int64)}

def numbered(eps):
    "The same episodes with `[episode, step]` for observations"
    return [{**e, 'obs':[np.array([k,t], np.float32) for t in range(len(e['rew'])+1)]} for k,e in enumerate(eps)]

@pytest.mark.parametrize('seed', range(5))
def test_never_across(seed, tmp_path):
    "n-step returns, runs and whole episodes stay in theirs and end with the true last observation, also in a mapped file"
    ob,ac = spaces.Box(0, 99, (2,)),spaces.Discrete(3)
    eps = numbered(episodes(ob, ac, seed, 30))
    memory = from_minari(written(eps, ob, ac), bs=500, n_step=3, gamma=.5, seed=seed, path=tmp_path/'rows')
    batch,_ = memory.sample()
    for (k,t),(l,u),r,n,over in zip(*(batch[o].tolist() for o in ('state','next_state','reward','n_steps','terminated'))):
        e = eps[int(k)]; t = int(t)
        assert k==l and n[0]==min(3, len(e['rew'])-t) and u==t+n[0] and over[0]==e['over'][t+n[0]-1]
        assert abs(r[0]-sum(.5**j*e['rew'][t+j] for j in range(n[0])))<1e-9
    runs,_ = memory.sample_sequences(200, T=2)
    assert (runs['next_state'][:,0]==runs['state'][:,1]).all()
    whole,idxs = memory.sample_sequences(200)
    for k,n in zip(whole['state'][:,0,0].tolist(), (idxs>=0).sum(1).tolist()): assert n==len(eps[int(k)]['rew'])

def test_streamed():
    "Neither way does more than a few episodes lie in memory beside the rows"
    ob,ac,came,most = spaces.Box(-9, 9, (10_000,)),spaces.Discrete(2),[],[0]
    eps = episodes(ob, ac, 0, 60)
    ds = written(eps, ob, ac)
    size = sum(len(e['obs']) for e in eps)*10_000*4
    class Watched:
        total_steps = ds.total_steps
        def iterate_episodes(self):
            for e in ds.iterate_episodes():
                came.append(weakref.ref(e)); most[0] = max(most[0], sum(o() is not None for o in came))
                yield e
                del e
    memory = from_minari(Watched())
    assert len(came)==60 and most[0]<=2
    to_minari(memory[:9], 'mine/first-v0', observation_space=ob, action_space=ac) # imports and compiles
    tracemalloc.start()
    to_minari(memory, 'mine/back-v0', observation_space=ob, action_space=ac)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak<size/3, (peak, size) # one episode of 60, in a few forms

@pytest.mark.parametrize('seed', range(6))
def test_interleaved(seed):
    "Several environments, a ring that wrapped, episodes cut at both ends: each stored row is in the dataset once, in its episode"
    rng,n_envs,cap = np.random.default_rng(seed),4,60
    memory,steps,now,count = ExperienceReplay(max_sz=cap, warmup_sz=1),[],[None]*n_envs,0
    for _ in range(150):
        e = int(rng.integers(n_envs))
        if now[e] is None: now[e],count = [count,0],count+1
        k,t = now[e]
        how = rng.choice(4, p=[.7,.1,.1,.1])
        steps.append((k, t, rng.normal(), bool(how&1), bool(how&2), e))
        k,t,r,over,late,_ = steps[-1]
        memory.add(state=np.float32([k,t]), action=t%3, reward=r, next_state=np.float32([k,t+1]), terminated=over, truncated=late, env_id=e)
        now[e] = None if how else [k,t+1]
    ds = to_minari(memory, 'mine/wrapped-v0', observation_space=spaces.Box(0, 999, (2,)), action_space=spaces.Discrete(3), data_format=formats[seed%3])
    want = {}
    for o in steps[-cap:]: want.setdefault(o[0], []).append(o)
    assert ds.total_episodes==len(want)
    for got,rows in zip(ds, want.values()): # by their first stored row
        T = len(rows)
        assert got.observations.tolist()==[[o[0],o[1]] for o in rows]+[[rows[-1][0],rows[-1][1]+1]]
        assert got.rewards.tolist()==np.float32([o[2] for o in rows]).tolist() and got.actions.tolist()==[o[1]%3 for o in rows]
        assert got.terminations.tolist()==[o[3] for o in rows]
        assert got.truncations.tolist()==[o[4] for o in rows[:-1]]+[rows[-1][4] or not rows[-1][3]] # unfinished counts as truncated

def test_twin_of_minaris_torch_test():
    "Minari's tests/integrations/test_torch_rl.py, with a dataset that is made here"
    import gymnasium as gym
    env,eps = gym.make('CartPole-v1'),[]
    env.action_space.seed(0)
    for k in range(5):
        e = dict(obs=[env.reset(seed=k)[0]], act=[], rew=[], over=[False], late=[False])
        while not (e['over'][-1] or e['late'][-1]):
            e['act'].append(env.action_space.sample())
            for key,o in zip(('obs','rew','over','late'), env.step(e['act'][-1])): e[key].append(o)
        eps.append({**e, 'over':e['over'][1:], 'late':e['late'][1:]})
    buffers = [EpisodeBuffer(observations=column(e['obs']), actions=column(e['act']), rewards=e['rew'], terminations=e['over'], truncations=e['late']) for e in eps]
    recorded = minari.create_dataset_from_buffers('cartpole/random-v0', buffers, env='CartPole-v1')
    batch_size = 32
    dataset = from_minari('cartpole/random-v0', bs=batch_size, freeze_memory=True)
    env = recorded.recover_environment()
    sample,_ = dataset.sample()
    assert sample.bs()==batch_size and all(len(t)==batch_size for _,t in leaves(sample))
    assert sample['action'][0].shape==(env.action_space.shape or (1,))
    assert sample['state'][0].shape==env.observation_space.shape
    # the dataset cannot be written to: neither here nor on the disk
    before = {p: p.read_bytes() for p in Path(recorded.spec.data_path).rglob('*') if p.is_file()}
    rows = dataset['state'].clone()
    dataset + dataset[:3].memory
    same(dataset['state'].clone(), rows)
    dataset.update_td(torch.ones(32,1), dataset.sample()[1]); dataset.clear()
    assert {p: p.read_bytes() for p in Path(recorded.spec.data_path).rglob('*') if p.is_file()}==before
    # and back, by the environment alone
    dataset = from_minari('cartpole/random-v0')
    for e in ('CartPole-v1', env, env.spec):
        with warnings.catch_warnings(record=True): back = to_minari(dataset, 'cartpole/again-v0', e)
        assert back.env_spec.id=='CartPole-v1' and back.total_steps==recorded.total_steps
        for a,b in zip(back, recorded): identical(a.observations, b.observations); identical(a.rewards, b.rewards)
        minari.delete_dataset('cartpole/again-v0')
    with warnings.catch_warnings(record=True): back = to_minari(dataset, 'cartpole/again-v0', env, action_space=spaces.Discrete(5))
    assert (back.action_space, back.observation_space)==(spaces.Discrete(5), env.observation_space)

# %% Arrays in D4RL's form
def arrays_of(eps, nexts):
    steps = [(e,t) for e in eps for t in range(len(e['rew']))]
    res = dict(observations=np.array([e['obs'][t] for e,t in steps]), actions=np.array([e['act'][t] for e,t in steps]), rewards=np.float32([e['rew'][t] for e,t in steps]),
               terminals=np.array([e['over'][t] for e,t in steps]), timeouts=np.array([e['late'][t] for e,t in steps]))
    return {**res, 'next_observations':np.array([e['obs'][t+1] for e,t in steps])} if nexts else res

@pytest.mark.parametrize('nexts', [True, False])
@pytest.mark.parametrize('seed,n', [(0,1), (1,9), (2,40), pytest.param(3, 5000, marks=pytest.mark.slow)])
def test_d4rl(seed, n, nexts, tmp_path):
    "Dicts and HDF5 files, also of more rows than are read at a time; rows whose next observation nobody knows are left out"
    eps = numbered(episodes(spaces.Box(-1, 1, (2,)), spaces.Box(-1, 1, (2,)), seed, n))
    if n>1: eps[-1].update(over=[False]*len(eps[-1]['rew']), late=[False]*len(eps[-1]['rew'])) # the data end in the middle
    arrays = arrays_of(eps, nexts)
    want = []
    for e in eps:
        T = len(e['rew'])
        for t in range(T):
            known = nexts or t<T-1 or e['over'][t]
            if known: want.append((e['obs'][t], e['obs'][t] if e['over'][t] and not nexts else e['obs'][t+1], np.float32(e['rew'][t]), e['over'][t],
                                   e['late'][t] or t==T-2+nexts and not e['over'][-1]))
    with h5py.File(tmp_path/'d4rl.hdf5', 'w') as f:
        for k,v in arrays.items(): f[k] = v
    if not want: return pytest.raises(ValueError, from_d4rl, arrays).match('no step to store')
    with h5py.File(tmp_path/'d4rl.hdf5') as f:
        for data in (arrays, f):
            memory = from_d4rl(data, bs=300, n_step=4, gamma=1., seed=0)
            for k,v in zip(('state','next_state','reward','terminated','truncated'), zip(*want)):
                identical(memory[k].numpy(), np.array(v) if np.ndim(v[0]) else np.array(v)[:,None])
            batch,_ = memory.sample()
            assert (batch['state'][:,0]==batch['next_state'][:,0]).all()
            lengths = Counter(int(o[0][0]) for o in want)
            assert batch['n_steps'][:,0].tolist()==[min(4, lengths[int(k)]-int(t)) for k,t in batch['state'].tolist()]

def test_more_than_is_read_at_a_time():
    "Each row leads to the next one wherever reading stops; a memory that is frozen when it is full takes the first ones"
    at = np.arange(2**14+9)[:,None]
    data = dict(observations=at, actions=at, rewards=at*0., terminals=at<0, timeouts=at<0)
    m = from_d4rl(data)
    same((m['state'], m['next_state']), (torch.from_numpy(at[:-1]), torch.from_numpy(at[1:])))
    same(from_d4rl(data, max_sz=7, freeze_memory=True)['state'], torch.arange(7)[:,None])

# %% What does not fit
def test_refused(tmp_path):
    "Each error says what was expected, what came and what to do; nothing is left behind"
    ob,ac = spaces.Box(-1, 1, (2,)),spaces.Discrete(3)
    eps = episodes(ob, ac, 0)
    def fails(match, f, *args, kind=ValueError, **kwargs):
        with pytest.raises(kind, match=match): f(*args, **kwargs)
    bad = [dict(e) for e in eps]; bad[4]['act'] = bad[4]['act']+[0]
    written(bad, ob, ac, name='mine/long-v0')
    fails(r'episode 4 has \d rewards, so `actions` should have \d entries, got \d: leave the episode out', from_minari, 'mine/long-v0', path=tmp_path/'rows')
    assert not (tmp_path/'rows').exists()
    text = spaces.Dict(dict(said=spaces.Text(5, min_length=5)))
    fails('state.said', from_minari, written(episodes(text, ac, 0), text, ac, name='mine/text-v0'), kind=ExperienceReplayException)
    fails('or a list of episodes, got 3', from_minari, 3)
    fails('the dataset is empty', from_minari, written(eps, ob, ac, name='mine/some-v0').filter_episodes(lambda e: False))
    fails('not found locally', from_minari, 'mine/none-v0', kind=FileNotFoundError)
    # a dataset that does not name its spaces
    at = Path(minari.load_dataset('mine/some-v0').spec.data_path)/'metadata.json'
    at.write_text(json.dumps({k: v for k,v in json.loads(at.read_text()).items() if k!='observation_space'}))
    fails('should name `observation_space` and `action_space` in its metadata.json', from_minari, 'mine/some-v0')
    # episodes that Minari's Arrow storage does not give back whole
    line = dict(obs=[np.zeros(2, np.float32)]*40_001, act=[0]*40_000, rew=[0.]*40_000, over=[False]*40_000, late=[False]*39_999+[True])
    fails("'hdf5'", from_minari, written([line], ob, ac, 'arrow', 'mine/arrow-v0'))
    identical_rows(from_minari(written([line], ob, ac, 'hdf5', 'mine/hdf5-v0')), [line])
    # rows that are there already stay
    memory = from_minari(written(eps, ob, ac), path=tmp_path/'rows')
    fails('rows already', from_minari, 'mine/test-v0', path=tmp_path/'rows')
    identical_rows(ExperienceReplay(max_sz=len(memory), warmup_sz=1, path=tmp_path/'rows'), eps)
    # out
    both = dict(observation_space=ob, action_space=ac)
    def out(match, m=memory, kind=ValueError, **kwargs):
        fails(match, to_minari, m, 'mine/out-v0', kind=kind, **{**both, **kwargs})
        assert 'mine/out-v0' not in minari.list_local_datasets()
    out('give the `env`, or `observation_space` and `action_space`', observation_space=None)
    out('`state` should be like Box', observation_space=spaces.Box(-1, 1, (3,)))
    out('`action` should be like Box', action_space=spaces.Box(-1, 1, (1,)))
    out('`state` should be like Dict', observation_space=spaces.Dict(dict(x=ob)))
    out('an `ExperienceReplay`, got', m=memory.ring)
    out(r"needs the columns \['next_state'\]", m=ExperienceReplay()+{k: memory[k] for k in ('state','action','reward','terminated','truncated')})
    out('No storage implemented', data_format='paper')
    out('unexpected keyword', kind=TypeError, colour='red')
    gap = {k: memory[k].clone() for k in ('state','action','reward','next_state','terminated','truncated','episode_id')}
    longest = max(range(len(eps)), key=lambda k: len(eps[k]['rew']))
    gap['next_state'][int((gap['episode_id']==longest).nonzero()[0,0])] += 1
    out('each `next_state` should be the `state` of the row that follows', m=ExperienceReplay()+{**gap, 'env_id':torch.zeros(len(memory),1)})
    box = from_minari(written(episodes(all_spaces['dict'], ac, 0), all_spaces['dict'], ac, name='mine/dict-v0'))
    out("got {'state.arm': 'torch.float32", m=box)
    to_minari(memory, 'mine/out-v0', **both)
    fails('already exists', to_minari, memory, 'mine/out-v0', **both)
    identical_episodes(minari.load_dataset('mine/out-v0'), eps)
    # D4RL
    arrays = arrays_of(numbered(eps), False)
    for k in arrays: fails(rf"\['{k}'\] are missing", from_d4rl, {o: v for o,v in arrays.items() if o!=k})
    fails('have one length', from_d4rl, {**arrays, 'rewards':arrays['rewards'][1:]})
    fails('have one length', from_d4rl, {**arrays, 'next_observations':arrays['observations'][1:]})

class Cut:
    "An array whose file ends early"
    def __len__(self): return 20_000
    def __getitem__(self, k):
        if k.start: raise OSError('the file ends here')
        return np.zeros(k.stop, np.float32)

@pytest.mark.parametrize('stack', (None,2))
def test_nothing_is_left(stack, tmp_path):
    "Data that end in the middle leave no file, of frames neither"
    n = len(Cut())
    data = dict(observations=np.arange(n*9, dtype=np.int32).reshape(n, 3, 3), actions=np.zeros((n,1)), rewards=Cut(), terminals=np.zeros(n), timeouts=np.arange(n)%50==49)
    with pytest.raises(OSError, match='ends here'): from_d4rl(data, path=tmp_path/'rows', frame_stack=stack)
    assert not [*tmp_path.glob('rows*')]

def test_interrupted(tmp_path, monkeypatch):
    "A Ctrl-C in the middle of writing leaves no half dataset"
    ob,ac = spaces.Box(-1, 1, (2,)),spaces.Discrete(3)
    memory,calls = from_minari(written(episodes(ob, ac, 0), ob, ac)),[]
    import minari.data_collector as collector
    real = collector.EpisodeBuffer
    def late(**kwargs):
        calls.append(1)
        if len(calls)==7+4: raise KeyboardInterrupt # 7 were looked at first
        return real(**kwargs)
    monkeypatch.setattr(collector, 'EpisodeBuffer', late)
    with pytest.raises(KeyboardInterrupt): to_minari(memory, 'mine/out-v0', observation_space=ob, action_space=ac)
    assert 'mine/out-v0' not in minari.list_local_datasets() and not (tmp_path/'minari/mine/out-v0').exists()

def test_imports_nothing():
    "Neither Minari nor gymnasium is imported until it is used; without Minari an error says how to get it"
    code = '''import sys, fastrl.offline, fastrl.compat
assert not {'minari','gymnasium','h5py','pyarrow'} & {*sys.modules}, 'imported'
sys.modules['minari'] = None
try: fastrl.compat.from_minari('a/b-v0')
except ImportError as e: print(e)'''
    run = subprocess.run([sys.executable, '-c', code], cwd=root, capture_output=True, text=True)
    assert "pip install 'fastrl[minari]'" in run.stdout, run.stderr

@pytest.mark.parametrize('wide', (False,True), ids=('in one piece','in pieces'))
def test_qlearning_dataset(wide, tmp_path):
    "Without `timeouts`, as `d4rl.qlearning_dataset` leaves them out with their steps, an episode ends where the next row does not go on from it"
    lengths,rng = [40]*500 if wide else [3,1,4,1,5],np.random.default_rng(0)
    rows = dict(observations=[], next_observations=[], terminals=[], of=[])
    for e,n in enumerate(lengths):
        at,over = 1000*e+np.arange(n+1),e%2==0
        for k,v in dict(observations=at[:-1], next_observations=at[1:], terminals=(np.arange(n)==n-1)&over, of=[e]*n).items(): rows[k].extend(v)
    of = np.array(rows.pop('of'))
    data = {k: np.array(v, 'f4')[:,None] if 'obs' in k else np.array(v) for k,v in rows.items()}
    data.update(actions=rng.random((len(of), 2)).astype('f4'), rewards=rng.random(len(of)).astype('f4'))
    with h5py.File(tmp_path/'q.hdf5', 'w') as f:
        for k,v in data.items(): f[k] = v
    with h5py.File(tmp_path/'q.hdf5') as f:
        for source in (data, f):
            m = from_d4rl(source, n_step=3, bs=999, seed=0)
            last = np.append(of[1:]!=of[:-1], True)
            assert (m['episode_id'][:,0].numpy()==of).all() and (m['truncated'][:,0].numpy()==(last&~data['terminals'])).all()
            b,_ = m.sample()
            assert (b['next_state']-b['state']==b['n_steps']).all()
