"Datasets of episodes against a plain list of them; with workers, hostile files, killed processes and interruptions"
import copy, errno, gc, io, itertools, json, logging, os, pickle, random, shutil, signal, subprocess, sys, textwrap, threading
import time, warnings, zipfile
from collections import Counter
from contextlib import contextmanager, suppress
from multiprocessing import active_children
from pathlib import Path
from unittest.mock import patch
import numpy as np, pytest, torch
from safetensors.torch import load_file
from torch import tensor
from torch.utils.data import DataLoader
from fastrl.core import BD, map_leaves, test_same as same
from fastrl.memory import dataset, episode_files, loader as loader_module
from fastrl.memory.disk import LoadError, Saved, save_memory, write_tensors
from fastrl.memory.episodes import *
from fastrl.memory.place import Place
from fastrl.memory.replay import ExperienceReplay
from fastrl.memory.ring import Ring

root = Path(__file__).parent.parent
fork = dict(context='fork')
pytestmark = pytest.mark.skipif(not hasattr(os, 'fork'), reason='most workers here are forked, which this system cannot')

def raises(says, exc=ValueError):
    "The exception whose message contains `says`"
    import re
    return pytest.raises(exc, match=re.escape(says))

@contextmanager
def logged():
    "What is logged"
    res,h = [],logging.Handler()
    h.emit = lambda r: res.append(r.getMessage())
    log.addHandler(h)
    try: yield res
    finally: log.removeHandler(h)

@pytest.fixture(autouse=True)
def no_worker_left():
    "Each test ends the workers that it started"
    before[:] = active_children() # of tests of other files
    yield
    if workers(): gc.collect()
    if not (left := workers()): return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL) # torch's handler would raise in the middle of pytest
    for o in left: o.kill()
    pytest.fail(f'{left} are left')

before = []
def workers(): return [o for o in active_children() if o not in before and 'Dask' not in o.name] # whose clusters close slowly
def take(it, n): return [*itertools.islice(it, n)]
def first(loader): return next(iter(loader))
def episode(k, n): return dict(obs=10*k+torch.arange(n), reward=torch.ones(n))
def columns(xs): return dict(x=tensor(xs), y=tensor(xs)[:,None].float()*tensor([1.,2.]))
def follow(x): return torch.equal(x, x[:,:1]+torch.arange(x.shape[1]))

# %% A plain list of episodes, and whether a dataset agrees with it
def worth(e): return e['x'].view(-1)[0]%7 # many are equal
def old_first(e): return e['x'][0]*7919%1000

class Longest(Evictor):
    "The longest episode goes, of equals the older one"
    def evict(self, *args, **kwargs): return int(np.argmax(self.dataset.episode_lengths))

def evicted(make, scored, **kw):
    "A dataset from `make`: the oldest goes, the one with the lowest score, or for `'own'` the longest"
    if scored!='own': return make(evictor=ScoreEvictor(worth) if scored else None, **kw)
    ds = make(evictor=Longest(), **kw)
    ds.evictor.dataset = ds
    return ds

class Model:
    "Negative steps are rows of an episode that never came: they take room"
    def __init__(self, cap, most, scored):
        self.cap,self.most,self.scored,self.all,self.full = cap,most or cap,scored,[],False
    @property
    def eps(self): return [o for o in self.all if o[0]>=0]
    def add(self, xs):
        while sum(map(len, self.all))+len(xs)>self.cap or len(self.all)>=self.most:
            ns = [-len(o) for o in self.all] if self.scored=='own' else [o[0]%7*bool(self.scored) for o in self.all]
            self.all.pop(ns.index(min(ns)))
            self.full = True
        self.all.append(xs)
    def clear(self): self.all,self.full = [],False

def agree(ds, m):
    n = sum(map(len, m.eps))
    assert ((ds.episode_lengths, ds.num_episodes, ds.num_timesteps, ds.is_full, len(ds))
            ==([len(o) for o in m.eps], len(m.eps), n, m.full, n))
    assert [ds[i]['x'].tolist() for i in range(len(m.eps))]==m.eps
    for T in (2, 5): assert (ds.table.has(T), ds.table.has_shorter(T))==(any(len(o)>=T for o in m.eps), any(len(o)<T for o in m.eps))
    assert [ds[i]['y'][:,1].tolist() for i in range(-len(m.eps), 0)]==[[2.*o for o in xs] for xs in m.eps]

def fill(ds, m, n, rng, at=0, every=1, most=None):
    for k in range(n):
        size = int(rng.integers(1, (most or ds.capacity)+1)) if rng.random()<.8 else 1
        xs = list(range(at, at := at+size))
        ds.add_episode(columns(xs)); m.add(xs)
        if rng.random()<.08: ds.clear(); m.clear(); agree(ds, m)
        if k%every==0: agree(ds, m)
    agree(ds, m)
    return at

def history(tmp_path, cap, most, scored, n, rng):
    "In memory, shared, mapped, in files; files are opened again and again"
    def ring(**kw): return evicted(RingBufferDataset, scored, capacity=cap, max_episodes=most, **kw)
    def files(d): return evicted(IndividualFileDataset, scored, capacity=cap, directory=d, max_episodes=most or 2**20)
    for shared in (False,True): fill(ring(shared=shared), Model(cap, most, scored), 6*n, rng, every=5)
    m,at,d = Model(cap, most, scored),0,tmp_path/f'{cap}{most}{scored}'
    for _ in range(4):
        ds = None; gc.collect() # one at a time may write
        at = fill(ds := ring(path=d/'ring'), m, n, rng, at, every=3)
    m,at = Model(cap, most, scored),0
    for _ in range(2):
        m.full,ds = False,None; gc.collect() # a folder does not say so
        at = fill(ds := files(d/'files'), m, -(-n*2//3), rng, at, every=3)
    assert len(os.listdir(d/'files'))==len(m.eps)

histories = [*itertools.product((1,3,20), (None,1,3), (False,True,'own'))]

@pytest.mark.parametrize('cap,most,scored', [(3,None,True), *(
    pytest.param(*o, marks=pytest.mark.slow) for o in ((1,None,False), (20,None,False), (20,None,True), (20,3,True), (20,None,'own'), (3,3,'own'), (20,3,'own')))])
def test_history(tmp_path, cap, most, scored): history(tmp_path, cap, most, scored, 6, np.random.default_rng(0))

@pytest.mark.long
def test_histories(tmp_path):
    rng = np.random.default_rng(0)
    for o in histories: history(tmp_path, *o, 10, rng)

# %% Draws
def places(m, T, pad=False): return [xs[i:i+T] for xs in m.eps for i in range(max(pad, len(xs)-T+1))]
def chi2(counts, expected): return sum((counts.get(k, 0)-v)**2/v for k,v in expected.items())

def drawn(ds, m, T, by, N, pad=False):
    "How often each sequence came, each of which is what it says"
    got = Counter()
    for b in take(ds.get_loader(100, T, seed=3, by=by, pad=pad), N//100):
        mask = b['mask'] if pad or T is None else torch.ones_like(b['x'], dtype=torch.bool)
        for x,y,k,f,l in zip(b['x'], b['y'], mask, b['is_first'], b['is_last']):
            xs = x[k].tolist()
            got[tuple(xs)] += 1
            own = next(o for o in m.eps if xs[0] in o)
            assert f.nonzero().tolist()==([[0]] if xs[0]==own[0] else [])
            assert l.nonzero().tolist()==([[len(xs)-1]] if xs[-1]==own[-1] else [])
            assert (y[k][:,1].tolist(), y[~k].sum().item(), x[~k].sum().item())==([2.*o for o in xs], 0, 0)
    return got

def expected_of(m, T, by, N, pad=False):
    if T is None: return {tuple(o): N/len(m.eps) for o in m.eps}
    if by=='transition': return {tuple(o): N/len(places(m, T, pad)) for o in places(m, T, pad)}
    fit = [o for o in m.eps if pad or len(o)>=T]
    return {tuple(o[i:i+T]): N/len(fit)/max(1, len(o)-T+1) for o in fit for i in range(max(1, len(o)-T+1))}

@pytest.mark.parametrize('kind,scored,T', [o for o in itertools.product(('ring','files'), (False,True), (1,3,8,None))
                                           if o[0]=='ring' or o[2] in (3,None)])
@pytest.mark.halved
def test_draws(tmp_path, kind, scored, T):
    "Places alike, or episodes alike, after a wrap, after gaps, for every length, against a count of all"
    ev,rng = ScoreEvictor(worth) if scored else None,np.random.default_rng(1)
    ds = RingBufferDataset(20, evictor=ev) if kind=='ring' else IndividualFileDataset(20, tmp_path, ev)
    m,at = Model(20, None, scored),0
    while True:
        at = fill(ds, m, 3 if kind=='files' else 23, rng, at, every=100, most=9)
        if m.full and any(len(o)>=(T or 1) for o in m.eps): break
    for by,pad in itertools.product(('transition','episode'), (False,True) if T==3 else (False,)):
        N = 2000 if kind=='ring' else 500
        got,expected = drawn(ds, m, T, by, N, pad),expected_of(m, T, by, N, pad)
        assert set(got)<=set(expected)
        k = len(expected)-1
        assert chi2(got, expected)<k+5*(2*k)**.5+5

@pytest.mark.parametrize('workers', [0,1])
def test_short_episodes(tmp_path, workers):
    "One warning, as soon as an episode is never drawn; none with `pad`; an error if no episode is long enough"
    two = [RingBufferDataset(100, shared=True),IndividualFileDataset(100, tmp_path)]
    for ds in two: ds.add_episode(episode(0, 5))
    replays = [EpisodeReplay(o, 4, 5, seed=0, num_workers=workers, **fork) for o in (*two, concat(two))]
    def said(r, n=3):
        with warnings.catch_warnings(record=True) as res:
            warnings.simplefilter('always')
            warnings.filterwarnings('ignore', 'This process', DeprecationWarning) # of Python, that threads and forks don't go together
            for _ in range(n): r.sample()
        return [str(o.message) for o in res]
    assert [said(o) for o in replays]==[[]]*3
    for ds in two:
        for k in range(1, 5): ds.add_episode(episode(k, k))
    says = [said(o) for o in replays]
    assert says[0]==says[1]==['4 of 5 episodes (80%) are shorter than 5 steps, and are never drawn; '
                              'they have 67% of all steps. `pad=True` draws them too']
    assert len(says[2])==1 and '8 of 10 episodes (80%)' in says[2][0]
    assert [said(o) for o in replays]==[[]]*3
    for o in replays: o.close()
    padded = EpisodeReplay(two[0], 4, 7, pad=True)
    assert not padded.is_empty and said(padded)==[]
    padded.save(tmp_path/'saved')
    assert EpisodeReplay.load(tmp_path/'saved').sample()['mask'].shape==(4,7)
    with raises('1 to 5 steps, and 4 sequences of 7 steps were asked for: add longer episodes first, or draw what there is with `pad=True`', RuntimeError):
        EpisodeReplay(two[0], 4, 7).sample()
    with raises('call the stored field `mask`'): EpisodeReplay(RingBufferDataset(9), 2, 3, pad=True, schema=dict(mask=((), torch.bool)))

# %% Many environments, against a loop over each
def reference(stream, dones, most):
    "The episodes in the order in which they ended; was one too long?"
    res,long = [],False
    for i in range(dones.shape[1]):
        now,out = [],False
        for t in range(len(dones)):
            if dones[t,i]:
                if now and not out: res.append((t, i, now))
                now,out = [],False
            now.append(stream[t,i].item())
            long,out = long or len(now)>most,out or len(now)>most
    return [xs for _,_,xs in sorted(res, key=lambda o: o[:2])],long

kinds = (lambda o: o, torch.from_numpy, lambda o: o.tolist(), lambda o: tensor(o).float(), lambda o: o.astype(int))

def environments(n, shared, T, cases):
    rng = np.random.default_rng(2)
    for cap,p in cases:
        dones,stream = rng.random((T,n))<p,torch.arange(T*n).view(n,T).T*1.
        m,refused = Model(cap, None, False),0
        replay = EpisodeReplay(RingBufferDataset(cap, shared=shared), 4, 2, seed=0,
                               num_workers=int(shared and (n,cap,p)==(2,40,.3)), **fork)
        for t in range(T):
            step = dict(x=stream[t].long(), y=torch.stack([stream[t],2*stream[t]], 1))
            try: replay.add_step(step, kinds[t%5](dones[t]))
            except ValueError as e: refused += 1; assert f'has {cap+1} steps by now, and the capacity is {cap}' in str(e)
            if t%40==39 and not replay.is_empty: assert follow(replay.sample()['x'])
        episodes,long = reference(stream.long(), dones, cap)
        for xs in episodes: m.add(xs)
        agree(replay.dataset, m)
        assert (refused>0)==long
        replay.close()

streams = [*itertools.product((6,40,500), (.05,.3,.9))]

@pytest.mark.parametrize('n,shared', [(1,False),(2,True),(5,False)])
def test_environments(n, shared):
    "Wrap, eviction, workers, kinds of `done`"
    environments(n, shared, 60, streams)

@pytest.mark.long
@pytest.mark.parametrize('n,shared', itertools.product((1,2,5), (False,True)))
def test_environments_long(n, shared): environments(n, shared, 300, streams)

@pytest.mark.parametrize('cap,p', itertools.product((6,40), (.05,.3,1.)))
def test_environment(cap, p):
    "Of one environment `done` belongs to its own step"
    dones,m,now,out,refused = np.random.default_rng(4).random(200)<p,Model(cap, None, False),[],False,0
    replay = EpisodeReplay(RingBufferDataset(cap), 4)
    for t,done in enumerate(dones):
        now.append(t)
        step = dict(x=tensor(t), y=np.array([t,2*t], np.float32))
        try: replay.add_step(step, [bool(done), tensor(bool(done)), np.bool_(done), int(done)][t%4])
        except ValueError: out = True; refused += 1; assert len(now)==cap+1
        if done:
            if not out: m.add(now)
            now,out = [],False
    agree(replay.dataset, m)
    if (cap,p)==(6,.05): assert refused

@pytest.mark.parametrize('first', [1, True, np.int64(1), np.bool_(True)])
def test_first_reward(first):
    "A first reward that is an int of NumPy's, or a bool, may be followed by .5; arrays keep their dtype, and a schema decides"
    def steps(first): return (dict(obs=0., reward=first), dict(obs=0., reward=.5))
    replay,memory = EpisodeReplay(RingBufferDataset(9), 1, 2),ExperienceReplay(warmup_sz=1)
    for i,o in enumerate(steps(first)):
        replay.add_step(o, bool(i))
        memory.add(**o)
    same((replay.dataset[0]['reward'].view(-1), memory['reward'].view(-1)), (tensor([1.,.5]),)*2)
    same((ExperienceReplay()+dict(reward=np.array([1,2])))['reward'], tensor([[1],[2]]))
    ints = ExperienceReplay(schema=dict(reward=((), torch.int64))).add(reward=int(first))
    assert ints['reward'].dtype==torch.int64

def test_dones():
    "One environment, or several; what is none"
    one,many = EpisodeReplay(RingBufferDataset(9), 1),EpisodeReplay(RingBufferDataset(9), 1)
    one.add_step(dict(x=True), tensor(True)); assert one.dataset.fields['x'].dtype==torch.bool
    many.add_step(dict(x=torch.zeros(2)), torch.zeros(2).bfloat16())
    for bad in (torch.zeros(2,1), torch.zeros(0), torch.zeros(2, device='meta'), [[1],[1,0]], 'no', None, torch.eye(2).to_sparse()):
        with raises('`done`'): EpisodeReplay(RingBufferDataset(9), 2).add_step(dict(x=torch.zeros(2)), bad)

# %% One environment or several, and which step ended an episode
shapes = [(dict(obs=(4,10), act=(4,5)), 4), (dict(obs=(4,10), rew=(4,)), 4), (dict(img=(84,84)), 84), (dict(obs=(1,3), rew=(1,)), 1),
          (dict(a=dict(b=(2,3)), c=(2,)), 2), (dict(img=(84,84), rew=()), None), (dict(img=(84,84), obs=(10,)), None),
          (dict(obs=(10,), act=(5,)), None), (dict(obs=(10,), act=(10,)), None), (dict(obs=(10,)), None), (dict(rew=()), None),
          (dict(obs=(0,5), act=(0,)), None)]

def each_shape(f, o): return {k: each_shape(f, v) for k,v in o.items()} if isinstance(o, dict) else f(o)

@pytest.mark.parametrize('fields,n', shapes)
def test_one_done(fields, n):
    "One bool, nothing declared: raises where the fields may be a batch, and stores nothing; else one environment"
    step = each_shape(torch.zeros, fields)
    for over in (dict(over=False), dict(done=False), dict(was_done=tensor(0)), dict(over=np.bool_(False))):
        replay = EpisodeReplay(RingBufferDataset(9), 1)
        if n is None: replay.add_step(step, **over); assert replay.running.lead==()
        else:
            with raises(f'say `num_envs={n}`'): replay.add_step(step, **over)
            assert replay.running is None
            with raises('`schema=dict('): replay.add_step(step, **over)
    if n is None: return
    flat,each = (each_shape(f, fields) for f in (lambda s: (s, torch.float32), lambda s: (s[1:], torch.float32)))
    many = [EpisodeReplay(RingBufferDataset(999), 1, **kw) for kw in (dict(num_envs=n), dict(schema=each))]
    known = RingBufferDataset(999); known.add_episode(each_shape(lambda s: torch.zeros(2, *s[1:]), fields))
    for o in (*many, EpisodeReplay(known, 1)): o.add_step(step, True); assert o.dataset.episode_lengths[-n:]==[1]*n
    one = EpisodeReplay(RingBufferDataset(9), 1, schema=flat); one.add_step(step, True); assert one.num_episodes==1

def test_declared():
    "What is declared is checked, also against the dataset; fields stay where their steps come from"
    schema = dict(obs=((3,), torch.float32), d=dict(e=((), torch.int64)))
    replay = EpisodeReplay(RingBufferDataset(9), 1, schema=schema)
    with raises('`obs` should be float32[3], got float32[2]'): replay.add_step(dict(obs=torch.zeros(2), d=dict(e=1)), False)
    with raises("missing ['d.e']"): replay.add_step(dict(obs=torch.zeros(3)), False)
    replay.add_step(dict(obs=torch.zeros(2,3), d=dict(e=tensor([1,2]))), True); assert replay.num_episodes==2
    with raises('the dataset has the fields'): EpisodeReplay(replay.dataset, 1, schema=dict(obs=((3,), torch.float32)))
    EpisodeReplay(replay.dataset, 1, schema=schema)
    with raises('call the stored field `mask`'): EpisodeReplay(RingBufferDataset(9), 2, None, schema=dict(mask=((), torch.bool)))
    late = EpisodeReplay(RingBufferDataset(9), 2, None)
    with raises('call the stored field `mask`'): late.add_step(dict(mask=1.), False)
    assert late.running is None
    for bad in (dict(), dict(over=False, done=False), dict(done=True, was_done=True), dict(over=None)):
        with raises('give one of `done` and `was_done`'): late.add_step(dict(x=1.), **bad)

@pytest.mark.parametrize('kind', ['ring','files'])
def test_counts_of_the_original(tmp_path, kind):
    "As its suite counts: a bool ends all with this step, and so does `done=`; a tensor alone ends with the step before"
    counts = []
    for last in (dict(done=tensor([1,0,0,0]).bool()), dict(over=tensor([1,0,0,0]).bool())):
        ds = RingBufferDataset(1000) if kind=='ring' else IndividualFileDataset(1000, tmp_path/str(len(counts)))
        replay,step = EpisodeReplay(ds, 5, 4, num_envs=4),dict(obs=torch.zeros(4,10), act=torch.zeros(4,5))
        for t in range(32): replay.add_step(step, t==31)
        assert (ds.num_timesteps, ds.num_episodes)==(128, 4)
        for _ in range(10): replay.add_step(step, False)
        replay.add_step(step, **last)
        counts.append(ds.num_timesteps); assert ds.num_episodes==5
        assert replay.sample()['obs'].shape==(5,4,10)
    assert counts==[139,138]

class Oracle:
    "Each environment by itself, against a `Model`"
    def __init__(self, n, m): self.now,self.m,self.most = [[] for _ in range(n)],m,m.cap
    def end(self, done):
        for i in np.flatnonzero(done):
            if 0<len(self.now[i])<=self.most: self.m.add(self.now[i])
            self.now[i] = []
    def step(self, xs, done, before):
        "Is an episode too long as of now?"
        if before: self.end(done)
        for o,x in zip(self.now, xs): o.append(x)
        long = any(len(o)==self.most+1 for o in self.now)
        if not before: self.end(done)
        return long

def said(rng, done):
    "A way to say `done`, and whether it means the step before"
    one = len(set(done))==1 and rng.random()<.5
    o = [bool, tensor, np.bool_, int][rng.integers(4)](bool(done[0])) if one else kinds[rng.integers(5)](done)
    before = bool(rng.random()<.5)
    return (dict(over=o),not one) if rng.random()<.3 else ({'was_done' if before else 'done':o},before)

def saved_replay(rng, replay, d, ev):
    "`replay` as it is loaded, or itself"
    [replay.save, replay.checkpoint][rng.integers(2)](d)
    again = EpisodeReplay.load(d, evictor=ev, shared=bool(rng.random()<.3), env_restored=True)
    if not replay.is_empty: same(again.sample(), replay.sample())
    if not replay.is_empty and rng.random()<.5: replay.close(); again.close(); same(again.sample(), replay.sample())
    return again if rng.random()<.6 else replay

def replays(tmp_path, n, scored, how, steps, cap, p, seed):
    "Steps of `n` environments whose ends are said in any way; saved and loaded at any moment"
    rng = np.random.default_rng(seed)
    make = dict(ring=RingBufferDataset, files=lambda **kw: IndividualFileDataset(directory=tmp_path/'files', **kw))[how]
    m = Model(cap, None, scored)
    oracle,replay = Oracle(n, m),EpisodeReplay(evicted(make, scored, capacity=cap), 3, 2, num_envs=n, seed=seed)
    for t in range(steps):
        xs,done = [1000*i+t for i in range(n)],rng.random(n)<p if rng.random()<.7 else np.full(n, rng.random()<p)
        x = tensor(xs)
        kw,before = said(rng, done)
        long = oracle.step(xs, done, before)
        try: replay.add_step(dict(x=x, y=x[:,None].float()*tensor([1.,2.])), **kw); refused = False
        except ValueError as e: refused = True; assert 'it is left out up to its `done`' in str(e)
        assert refused==long
        if rng.random()<.04: oracle.now = [[] for _ in range(n)]; m.clear(); replay.clear(); assert replay.is_empty
        if rng.random()<.12:
            ev,d = replay.dataset.evictor,tmp_path/'saved'
            if how=='ring': replay = saved_replay(rng, replay, d, ev)
            else:
                replay.checkpoint(d)
                drawn = None if replay.is_empty else replay.sample()
                replay = ev.dataset = None; gc.collect() # one at a time may write
                replay = EpisodeReplay.load(d, evictor=ev, env_restored=True)
                if drawn is not None: same(replay.sample(), drawn)
            ev.dataset = replay.dataset
        if t%5==0: agree(replay.dataset, m)
    agree(replay.dataset, m)

both_kinds = [(1,False,'ring'),(3,False,'ring'),(3,True,'ring'),(2,'own','ring'),(3,False,'files'),(2,'own','files')]

@pytest.mark.parametrize('n,scored,how', [*both_kinds[:2], *(pytest.param(*o, marks=pytest.mark.slow) for o in both_kinds[2:])])
def test_replays(tmp_path, n, scored, how): replays(tmp_path, n, scored, how, 90 if how=='ring' else 40, 25, .15, 0)

@pytest.mark.long
@pytest.mark.parametrize('n,scored,how', both_kinds)
def test_replays_long(tmp_path, n, scored, how):
    for seed,(cap,p) in enumerate(itertools.product((4,25,120), (.03,.15,.6))): 
        replays(tmp_path/str(seed), n, scored, how, 200, cap, p, seed+1)

def test_saved_after_an_interruption(tmp_path):
    "Episodes that had ended when a step was interrupted, and were not stored yet, are stored by the loaded replay, once"
    class Stops(RingBufferDataset):
        def add_episode(self, episode):
            if self.num_episodes: raise KeyboardInterrupt
            super().add_episode(episode)
    replay = EpisodeReplay(Stops(99), 1, num_envs=3)
    for t in range(3): replay.add_step(dict(x=tensor([10,20,30])+t), False)
    with suppress(KeyboardInterrupt): replay.add_step(dict(x=tensor([13,23,33])), done=[1,1,1])
    replay.save(tmp_path)
    again = EpisodeReplay.load(tmp_path, env_restored=True)
    again.add_step(dict(x=tensor([14,24,34])), done=True)
    ends = [again.dataset[i]['x'].tolist() for i in range(again.num_episodes)]
    assert ends==[[10,11,12,13], [20,21,22,23], [30,31,32,33], [14], [24], [34]]

def test_saved_elsewhere(tmp_path):
    "What a replay keeps of itself: settings, a schema, extra, nothing at all; what is refused"
    d,schema = tmp_path,dict(o=dict(a=((2,), torch.float32)), n=((), torch.uint16))
    new = EpisodeReplay(RingBufferDataset(50, half_precision=True), 6, None, 3, schema=schema, by='episode')
    new.save(d/'new', extra=dict(run=7)); assert Saved(d/'new').extra==dict(run=7)
    new = EpisodeReplay.load(d/'new')
    assert (new.loader.settings, new.running, new.num_envs, new.dataset.half_precision)==(
        dict(batch_size=6, sequence_length=None, chunk_size=3, num_workers=0, by='episode', pad=False), None, None, True)
    for t in range(70): new.add_step(dict(o=dict(a=torch.ones(3,2)*t), n=torch.full((3,), t, dtype=torch.uint16)), t in (40,69))
    new.add_step(dict(o=dict(a=torch.ones(3,2)), n=torch.zeros(3, dtype=torch.uint16)), False); new.save(d/'new')
    again = EpisodeReplay.load(d/'new', env_restored=True); copy.deepcopy(again)
    for o in (new, again): o.add_step(dict(o=dict(a=torch.ones(3,2)), n=torch.ones(3, dtype=torch.uint16)), True)
    same(*[[o.dataset[i] for i in range(o.num_episodes)] for o in (new, again)])
    assert EpisodeReplay.load(d/'new').running.start.max()==0
    ev = ScoreEvictor(worth)
    EpisodeReplay(RingBufferDataset(9, evictor=ev), 1).save(d/'scored')
    with raises('`scored` is True there, not False', LoadError): EpisodeReplay.load(d/'scored')
    with raises('give no `dataset`', LoadError): EpisodeReplay.load(d/'new', dataset=RingBufferDataset(9))
    with raises('load it by `RingBufferDataset.load`', LoadError): RingBufferDataset(9).save(d/'ds'); EpisodeReplay.load(d/'ds')
    files = EpisodeReplay(IndividualFileDataset(30, d/'f'), 1)
    for i in range(5): files.add_step(dict(x=i), i==2)
    files.save(d/'s'); del files; (d/'f').rename(d/'g')
    with raises('which is gone', LoadError): EpisodeReplay.load(d/'s')
    files = EpisodeReplay.load(d/'s', dataset=IndividualFileDataset(30, d/'g'), env_restored=True); files.add_step(dict(x=5), True)
    assert files.dataset[1]['x'].tolist()==[3.,4.,5.]
    class Mine(IndividualFileDataset): pass
    EpisodeReplay(Mine(30, d/'m'), 1).save(d/'mine')
    with raises('give it as `dataset=`', LoadError): EpisodeReplay.load(d/'mine')
    assert EpisodeReplay.load(d/'mine', dataset=Mine(30, d/'m')).is_empty
    workers_ = EpisodeReplay(RingBufferDataset(30), 2, num_workers=1, seed=0, **fork); workers_.dataset.add_episode(columns([1,2]))
    workers_.sample(); workers_.save(d/'w'); workers_.close()
    again = EpisodeReplay.load(d/'w', **fork); assert again.sample()['x'].shape==(2,1); again.close()
    assert EpisodeReplay.load(d/'w', num_workers=0).loader.num_workers==0

def test_files_are_drawn_as_before(tmp_path):
    "The order of the files is saved; where it cannot be that of the folder, it is the age of the episodes"
    ev,d = ScoreEvictor(lambda e: float(e['x'][0]*7%10)),tmp_path
    live = EpisodeReplay(IndividualFileDataset(15, d/'f', ev), 8, 2, seed=0)
    for t in range(60): live.add_step(dict(x=tensor(t//3)), done=t%3==2)
    live.checkpoint(d/'s')
    def begun(**kw): return EpisodeReplay.load(d/'s', **kw)
    again = begun(evictor=ev); t = again.dataset.table
    assert (again.dataset.is_full, t.next_id)==(True, live.dataset.table.next_id)
    drawn = live.sample(); same(again.sample(), drawn)
    with live.belongings() as o: ring,config,state = o['ring'],o['config'],o['state']
    lines,counts = state['lines'],state['counts']
    for o in (dict(lines=5), dict(lines=lines[:,:3]), dict(lines=lines.astype(float)), dict(counts=counts[:2]), dict(counts=-counts-1)):
        save_memory(d/'bad', 'EpisodeReplay', config, ring, {**state, **o})
        with pytest.raises(LoadError): EpisodeReplay.load(d/'bad', evictor=ev)
    earlier = {k: v for k,v in state.items() if k not in ('lines','counts')} # as it was saved before
    for o in (earlier, {**state, 'lines':lines[:-1]}): # another folder by now
        save_memory(d/'other', 'EpisodeReplay', config, ring, o)
        by_age = EpisodeReplay.load(d/'other', evictor=ev)
        assert by_age.dataset.episode_lengths==[3]*5 and by_age.sample()['x'].shape==(8,2)
    roomy = begun(dataset=IndividualFileDataset(99, d/'f', ev)); same(roomy.sample(), drawn)
    tight = begun(dataset=IndividualFileDataset(15, d/'f', ev, max_episodes=5)) # has no lines for all that were
    assert tight.sample()['x'].shape==(8,2)
    oldest = begun(dataset=IndividualFileDataset(15, d/'f')) # by age is the only order that it knows
    assert oldest.dataset[0]['x'].tolist()==live.dataset[0]['x'].tolist()
    del live; gc.collect() # one at a time may write
    for e in range(20,30): again.dataset.add_episode(dict(x=torch.full((3,), e)))
    assert again.dataset.num_timesteps==15 and again.sample()['x'].shape==(8,2)

def test_steps_that_cannot_wait(tmp_path):
    "A folder that says what cannot be of them is refused"
    replay = EpisodeReplay(RingBufferDataset(20), 1, num_envs=2)
    for t in range(4): replay.add_step(dict(x=torch.arange(2)+t), [0,t==2])
    replay.sample() if not replay.is_empty else None
    with replay.belongings() as o: good,ring,config = o['state'],o['ring'],o['config']
    r,draws = good['running'],good['draws']
    bad = [{**r, k:v} for k,v in (('t',3), ('t',-1), ('t','4'), ('lead',[3]), ('lead',[]), ('lead',[2,1]), ('lead',[0]),
           ('start',np.array([0,9])), ('start',np.array([-1,3])), ('start',r['start'].astype(float)), ('out',r['start']),
           ('pending',r['pending'][:1]), ('steps',[]), ('steps',[r['steps'][0][:2]]), ('steps',[r['steps'][0].float()]),
           ('fields',[]), ('fields',[[['y'],'cpu']]), ('fields',5), ('steps',None))]
    states = [{**good, 'running':o} for o in bad]+[{**good, 'draws':o} for o in (None, {}, {**draws, 'entropy':-1},
        {**draws, 'round':-1}, {**draws, 'rng':dict(bit_generator='PCG64')}, {**draws, 'rng':5})]
    for o in states:
        save_memory(tmp_path, 'EpisodeReplay', config, ring, o)
        with pytest.raises(LoadError): EpisodeReplay.load(tmp_path)
    for o in (dict(batch_size='x'), dict(by=3), dict(num_envs=-1), dict(schema=[[['a'],[2],'Tensor']]), dict(chunk_size=7)):
        save_memory(tmp_path, 'EpisodeReplay', {**config, **o}, ring, good)
        with pytest.raises(LoadError): EpisodeReplay.load(tmp_path)
    save_memory(tmp_path, 'EpisodeReplay', config, ring, good); EpisodeReplay.load(tmp_path)

def test_own_names(tmp_path):
    "Fields called `is_first`, `is_last` and `mask` are stored as any other, everywhere"
    def ep(k, n): return dict(x=10*k+torch.arange(n), is_first=torch.arange(n)%2==0, is_last=torch.zeros(n), mask=torch.ones(n).double()*k)
    for i,ds in enumerate((RingBufferDataset(20), IndividualFileDataset(20, tmp_path/'f'), RingBufferDataset(20, path=tmp_path/'p'))):
        for k in range(1, 6): ds.add_episode(ep(k, 5))
        if i==1: del ds; ds = IndividualFileDataset(20, tmp_path/'f')
        if i==0: ds.save(tmp_path/'s'); ds = RingBufferDataset.load(tmp_path/'s')
        same(dict(ds[-1]), ep(5, 5))
        b = first(ds.get_loader(30, 3, seed=0))
        same(b['mask'], (b['x']//10).double()); same(b['is_first'], b['x']%2==0); same(b['is_last'], torch.zeros(30,3))
        with raises('call the stored field `mask`'): ds.get_loader(30)
    small = RingBufferDataset(10); small.extend(RingBufferDataset(99), seed=0)
    for k in range(9): small.add_episode(ep(k, 4)); same(small[0]['mask'], (small[0]['x']//10).double())

# %% Any fields
def step(i):
    return dict(a=tensor(i%2==0), b=torch.full((2,3), i).half(), c=torch.zeros(0),
                d=dict(e=(torch.full((2,), i).byte(), tensor(i)), f=torch.full((1,5), float(i)).double()),
                g=tensor(i).to(torch.bfloat16), h=tensor(i).to(torch.complex64))

@pytest.mark.parametrize('make', [lambda d: RingBufferDataset(30), lambda d: IndividualFileDataset(30, d),
    lambda d: RingBufferDataset(30, shared=True, evictor=ScoreEvictor(lambda e: e['d']['e'][1][0])),
    lambda d: RingBufferDataset(30, half_precision=True)], ids=['ring','files','scored','half'])
def test_fields(tmp_path, make):
    "Every dtype, no numbers at all, images, nested"
    ref = [step(i) for i in range(20)]
    want = map_leaves(lambda *ts: torch.stack(ts), *ref)
    replay = EpisodeReplay(ds := make(tmp_path), 8, 4, seed=0)
    for i in range(20): replay.add_step(ref[i], i in (9,19))
    same(ds[0], map_leaves(lambda t: t[:10], want))
    b = replay.sample()
    i = b['d']['e'][1]
    assert follow(i)
    same({k: b[k] for k in ref[0]}, map_leaves(lambda t: t[i], want))
    assert list(ds.fields)==['a','b','c','d.e.0','d.e.1','d.f','g','h']
    if os.listdir(tmp_path): same(IndividualFileDataset(30, tmp_path)[1], map_leaves(lambda t: t[10:], want))

def test_names_in_files(tmp_path):
    odd = {'[x':torch.ones(2), '["a"]':torch.zeros(2), '__metadata__':torch.ones(2), 'a.b':torch.ones(2), '_y':torch.ones(2)}
    IndividualFileDataset(30, tmp_path/'a'/'b').add_episode(odd) # folders are made
    same(dict(IndividualFileDataset(30, tmp_path/'a'/'b')[0]), odd)
    path = tmp_path/'x.safetensors'
    def write(*args): path.unlink(missing_ok=True); write_tensors(path, *args)
    for bad in ('[1]', '[]', '["a",1.5]', '["a",true]', '[null,"a"]'):
        write({bad: torch.ones(2)})
        with raises('a field cannot be called', LoadError): episode_files.episode_head(path, 2)
    for fields in ('["x"]', '["x","y","z"]', '["y","x"]'): # a list of others says nothing of their order
        write(dict(x=torch.ones(2), y=torch.zeros(2)), dict(fields=fields))
        same(episode_files.read_episode_file(path, 2), {('x',):torch.ones(2), ('y',):torch.zeros(2)})

def test_no_episode():
    with raises('named by strings'): RingBufferDataset(3).add_episode({1: torch.zeros(2)})
    for bad in (None, {}, dict(x=1.), dict(x=torch.zeros(2), y=torch.zeros(3)), [torch.zeros(2)]):
        with pytest.raises(ValueError): RingBufferDataset(3).add_episode(bad)
    ds = RingBufferDataset(9); ds.add_episode(dict(x=[tensor(1),tensor(2)], y=[.5,1.]))
    same(dict(ds[0]), dict(x=tensor([1,2]), y=tensor([.5,1.])))

def test_arguments(tmp_path):
    ds = RingBufferDataset(9); ds.add_episode(columns([1,2]))
    for f in (lambda: RingBufferDataset(0), lambda: RingBufferDataset(2.5), lambda: RingBufferDataset(True),
              lambda: RingBufferDataset(3, max_episodes=0), lambda: ds.get_loader(0), lambda: ds.get_loader(4, 0),
              lambda: ds.get_loader(4, 2, 0), lambda: ds.get_loader(4, 2, num_workers=-1), lambda: concat([]),
              lambda: concat([ds], [0]), lambda: concat([ds], [1,2]), lambda: concat([ds], [-1]), lambda: ds.extend(ds),
              lambda: RingBufferDataset(4, shared=True, path=tmp_path/'x')):
        with pytest.raises(ValueError): f()
    for i in (99,-99):
        with pytest.raises(IndexError): ds[i]
    for bad in ('fifo', FIFOEvictor, 5):
        with raises('`evictor` should be'): RingBufferDataset(9, evictor=bad)
    with raises('`score` should be'): ScoreEvictor(3)
    with raises('episodes have numbers', TypeError): ds['x']
    with raises('`dataset` should be of episodes'): EpisodeReplay(8, 16)
    for k in ('capacity','max_episodes','evictor','device'):
        with raises(f'EpisodeReplay() got an unexpected keyword argument {k!r}: it belongs to the dataset', TypeError): EpisodeReplay(ds, 4, **{k:3})
    with raises('`EpisodeReplay(RingBufferDataset(3), …)`', TypeError): EpisodeReplay(ds, 4, capacity=3)
    for k,ours in dict(seq_len='sequence_length', bs='batch_size', n_envs='num_envs').items():
        with raises(f'EpisodeReplay() got an unexpected keyword argument {k!r}: write `{ours}`', TypeError): EpisodeReplay(ds, 4, **{k:3})
    with raises("EpisodeReplay() got an unexpected keyword argument 'speed'", TypeError): EpisodeReplay(ds, 4, speed=3)
    EpisodeReplay(ds, 4, pad=True, seed=0, by='episode', pin_memory=False, context=None)
    for k in ('done','was_done'): assert f'`{k}=`' in EpisodeReplay.add_step.__doc__
    for o in (EpisodeDataset, RingBufferDataset.__iter__, IndividualFileDataset): assert 'get_loader' in o.__doc__ and '`batch_size=None`' in o.__doc__
    unequal = RingBufferDataset(9); unequal.add_episode(columns([1,2])); unequal.add_episode(columns([3]))
    assert {len(next(iter(o))['x']) for _ in range(20) for o in [torch.utils.data.DataLoader(unequal, batch_size=None)]}=={1,2}
    assert (repr(FIFOEvictor()), repr(ScoreEvictor(worth)))==('FIFOEvictor()', 'ScoreEvictor(worth)')
    with raises('got nan'): RingBufferDataset(4, evictor=ScoreEvictor(lambda e: float('nan'))).add_episode(dict(x=torch.zeros(2)))

@pytest.mark.parametrize('workers', [{}, dict(num_workers=1, multiprocessing_context='fork')])
def test_a_plain_loader_with_a_batch_size(workers):
    "It stacks episodes of one length, as torch does; of others the error says what to write"
    ds = RingBufferDataset(9, shared=True)
    for k in (0,1): ds.add_episode(dict(x=torch.zeros(3), arm=dict(y=torch.ones(3,2))))
    batch = next(iter(DataLoader(ds, batch_size=4, **workers)))
    assert type(batch) is BD and (batch['x'].shape, batch['arm']['y'].shape)==((4,3), (4,3,2))
    ds.add_episode(dict(x=torch.zeros(2), arm=dict(y=torch.ones(2,2))))
    it = iter(DataLoader(ds, batch_size=50, **workers))
    with raises('of one length, got [2, 3] steps: iterate over `dataset.get_loader(batch_size, sequence_length)`'): next(it)
    if workers: it._shutdown_workers() # what its error holds on to, torch ends after five seconds only
    class Mine(BD): pass
    assert type(torch.utils.data.default_collate([Mine(x=torch.zeros(2))]*3)) is Mine

def test_a_reader_whose_files_have_gone(tmp_path):
    "Another process made room for its own episodes: this one cannot add any, and should open the folder again"
    def steps(k): return dict(x=torch.full((3,), float(k)))
    writer = IndividualFileDataset(6, tmp_path)
    writer.add_episode(steps(0))
    reader = IndividualFileDataset(6, tmp_path)
    for f in tmp_path.glob('*.safetensors'): f.unlink()
    with raises('there are no episodes, and 1 sequences of 2 steps were asked for: add episodes first, or open the dataset again'
                ' when others have come', RuntimeError): EpisodeReplay(reader, 1, 2).sample()
    for k in (1,2): writer.add_episode(steps(k))
    with raises(f'there are no episodes, and 1 whole episodes were asked for: 2 episodes came to {tmp_path} since it was opened: '
                'open it again', RuntimeError): next(iter(reader.get_loader(1)))
    assert len(IndividualFileDataset(6, tmp_path).episode_lengths)==2

# %% An episode that cannot be stored
def test_refused_takes_no_place(tmp_path):
    ds = RingBufferDataset(10)
    for k in (0,1): ds.add_episode(dict(x=torch.full((5,), float(k))))
    with raises('device meta'): ds.add_episode(dict(x=torch.zeros(10, device='meta')))
    assert ds.episode_lengths==[5,5]
    with raises('device meta'): EpisodeReplay(ds, 2).add_step(dict(x=torch.zeros((), device='meta')), False)
    fs,z,y = IndividualFileDataset(10, tmp_path),tensor([1+2j,3+4j]),torch.zeros(10)
    for o in (z.conj(), z.conj()): fs.add_episode(dict(x=o, y=o.imag))
    same(fs[0]['x'], tensor([1-2j,3-4j])); same(fs[0]['y'], tensor([-2.,-4.]))
    with raises('`y`'): fs.add_episode(dict(x=y*z[0], y=y.double()))
    def full(path): raise OSError(errno.ENOSPC, 'No space left')
    with patch.object(episode_files, 'sync', full), raises('nothing that is there has changed', OSError):
        fs.add_episode(dict(x=y*z[0], y=y))
    assert (fs.episode_lengths, len(os.listdir(tmp_path)))==([2,2], 2)
    with raises('complex128, which `z` is'): IndividualFileDataset(3, tmp_path/'c').add_episode(dict(z=torch.zeros(2).cdouble()))

def test_refused_fixes_no_field():
    "Nor is it in either of two that are joined"
    nan = ScoreEvictor(lambda e: float('nan'))
    for small in (RingBufferDataset(10, half_precision=True), RingBufferDataset(10, evictor=nan)):
        small.extend(large := RingBufferDataset(99))
        with pytest.raises(ValueError): small.add_episode(dict(x=torch.full((2,), 1e6)))
        assert (large.num_episodes, small.fields)==(0, {})
    half = RingBufferDataset(4, half_precision=True)
    half.add_episode(dict(obs=tensor([float('inf'),1.]), action=tensor([1,2]))); assert half[0]['obs'][0]==float('inf')
    many = {f'f{i}':torch.zeros(1) for i in range(63)}
    with raises('62'): RingBufferDataset(2, half_precision=True).add_episode(many)
    z,one_shape = torch.zeros(2),'tensors of one shape'
    for bad,says in (({'e':{2:z}}, 'named by strings'), (dict(x=[z, torch.zeros(3)]), one_shape), (dict(x=[z, 5]), one_shape)):
        with raises(says): RingBufferDataset(9).add_episode(bad)

# %% Workers and threads
def score_of_obs(episode): return float(episode['obs'][0]%7)

def test_global_generators():
    "Nothing draws from them, and workers end"
    state = torch.get_rng_state(),np.random.get_state()[1].copy()
    ds = RingBufferDataset(50, shared=True); ds.add_episode(columns(list(range(20))))
    for w in (0,1): next(b := iter(ds.get_loader(4, 3, num_workers=w, **fork))); b.close()
    take(ds.get_loader(4, 3), 20)
    same(torch.get_rng_state(), state[0]); assert (np.random.get_state()[1]==state[1]).all()
    assert workers()==[]
    assert not torch.equal(*[first(ds.get_loader(64, 3))['x'] for _ in range(2)])
    assert next(iter(ds))['x'].tolist()==list(range(20))
    plain = DataLoader(ds, batch_size=None, num_workers=1, multiprocessing_context='fork') # torch's own
    assert next(it := iter(plain))['x'].tolist()==list(range(20))
    it._shutdown_workers()

@pytest.mark.parametrize('make', [lambda d: RingBufferDataset(9, shared=True), lambda d: RingBufferDataset(9, path=d/'ring'),
                                  lambda d: IndividualFileDataset(9, d)], ids=['shared','path','files'])
def test_workers_of_torch(make, tmp_path):
    "Its `DataLoader` forks them: they see new episodes, and miss none that had to go"
    ds = make(tmp_path)
    for k in range(3): ds.add_episode(dict(x=torch.full((3,), k)))
    loader = DataLoader(ds, batch_size=None, num_workers=2, multiprocessing_context='fork', persistent_workers=True)
    assert {first(loader)['x'][0].item() for _ in range(9)}<={0,1,2}
    for k in range(3, 6): ds.add_episode(dict(x=torch.full((3,), k)))
    assert {first(loader)['x'][0].item() for _ in range(9)}<={3,4,5}
    loader._iterator._shutdown_workers()

class DrawnBy(torch.utils.data.IterableDataset):
    def __init__(self, draw): self.draw = draw
    def __iter__(self): return (str(self.draw()['obs'][:,0].tolist()) for _ in range(3))

@pytest.mark.parametrize('begun', [False, True])
def test_workers_of_torch_draw_apart(begun):
    "A replay, and a loader, in workers of torch's own `DataLoader`: they and their epochs draw other sequences, the same ones for the same seeds"
    er = EpisodeReplay(RingBufferDataset(400, shared=True), 8, 2, seed=0)
    for t in range(400): er.add_step(dict(obs=tensor(t)), done=t%10==9)
    if begun: er.sample()
    loader = er.dataset.get_loader(8, 2, seed=0)
    for draw in (er.sample, lambda: next(iter(loader))):
        def drawn(seed):
            it = DataLoader(DrawnBy(draw), batch_size=None, num_workers=2, multiprocessing_context='fork', generator=torch.Generator().manual_seed(seed))
            return [o for _ in range(2) for o in it]
        a = drawn(0)
        assert len({*a})==12 and drawn(0)==a and {*drawn(1)}.isdisjoint(a), a

def test_workers_of_torch_with_a_copy():
    "One that would never change is refused, as that of a ring is"
    ds = RingBufferDataset(9)
    ds.add_episode(dict(x=torch.zeros(3)))
    it = iter(DataLoader(ds, batch_size=None, num_workers=1, multiprocessing_context='fork'))
    with raises('give the ring `shared=True`', RuntimeError): next(it)
    it._shutdown_workers()

def hammer(ds, T, batches, w):
    "One process adds while others draw: each sequence is of one moment"
    def new(k): return dict(x=torch.arange(k*100, k*100+k%7+4), big=torch.full((k%7+4,64), float(k)))
    for k in range(5): ds.add_episode(new(k))
    it,seen,k = iter(ds.get_loader(8, T, num_workers=w, **fork)),set(),5
    for _ in range(batches):
        for _ in range(5): ds.add_episode(new(k)); k += 1
        b = next(it)
        mask = b['mask'] if T is None else torch.ones_like(b['x'], dtype=torch.bool)
        for x,big,m in zip(b['x'], b['big'], mask):
            assert (x[m]-x[0]).tolist()==list(range(m.sum()))
            assert (big[m]==x[0]//100).all()
            seen.add(x[0].item()//100)
    it.close()
    assert max(seen)>20 # what came after the workers started
    assert (ds.num_timesteps, ds.num_episodes)==(sum(ds.episode_lengths), len(ds.episode_lengths))

hammers = dict(shared=(lambda d: RingBufferDataset(60, shared=True), 4, 250),
    one=(lambda d: RingBufferDataset(12, shared=True), None, 250), # often just one episode is there
    scored=(lambda d: RingBufferDataset(60, shared=True, evictor=ScoreEvictor(old_first)), 4, 200),
    path=(lambda d: RingBufferDataset(60, path=d/'ring'), 4, 150), files=(lambda d: IndividualFileDataset(60, d), 4, 40),
    scored_files=(lambda d: IndividualFileDataset(60, d, ScoreEvictor(old_first)), None, 40))

@pytest.mark.parametrize('kind', ['shared', 'scored_files', *(pytest.param(o, marks=pytest.mark.slow) for o in ('one','scored','path','files'))])
def test_draw_while_others_add(tmp_path, kind):
    make,T,n = hammers[kind]
    hammer(make(tmp_path), T, n, 1 if kind=='scored_files' else 2)

@pytest.mark.long
@pytest.mark.parametrize('kind', hammers)
def test_draw_long_while_others_add(tmp_path, kind):
    make,T,n = hammers[kind]
    hammer(make(tmp_path), T, 8*n, 2)

def in_threads(f, n):
    "Run `f` in `n` threads; the exceptions that came"
    errors = []
    def run():
        try: f()
        except Exception as e: errors.append(e)
    ts = [threading.Thread(target=run) for _ in range(n)]
    for t in ts: t.start()
    return ts,errors

@pytest.mark.parametrize('cap,scored', [(60,False), (60,True), pytest.param(3000, False, marks=pytest.mark.slow)])
@pytest.mark.parametrize('clone', [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_copied_beside_threads(cap, scored, clone):
    "A copy has the episodes of one moment, whole, however many a thread adds meanwhile"
    ds,over,number = RingBufferDataset(cap, evictor=ScoreEvictor(score_of_obs) if scored else None),[],itertools.count()
    def add():
        k = next(number)
        ds.add_episode(dict(obs=100*k+torch.arange(2+k%5)))
    for _ in range(9): add()
    def look():
        o = clone(ds)
        for e in range(o.num_episodes):
            obs = o[e]['obs'].tolist()
            assert obs==[*range(k := obs[0], k+2+k//100%5)]
        o.add_episode(dict(obs=torch.arange(2)))
    def go_on():
        while not over: add()
    was = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        t = threading.Thread(target=go_on)
        t.start()
        for _ in range(25): look()
    finally:
        over.append(1)
        t.join()
        sys.setswitchinterval(was)

def test_threads():
    "Two draw while one adds; four draw from one replay"
    ds = RingBufferDataset(60); ds.add_episode(columns(list(range(5))))
    stop = threading.Event()
    def look():
        for b in ds.get_loader(8, 4):
            assert follow(b['x']) and torch.equal(b['y'][...,1], 2.*b['x'])
            if stop.is_set(): return
    ts,errors = in_threads(look, 2)
    for k in range(400): ds.add_episode(columns(list(range(100*k, 100*k+5+k%9))))
    stop.set()
    for t in ts: t.join()
    assert not errors
    ds = RingBufferDataset(50); ds.add_episode(episode(1, 9)); replay = EpisodeReplay(ds, 4, 3)
    ts,errors = in_threads(lambda: [replay.sample() for _ in range(300)], 4)
    for t in ts: t.join()
    assert not errors
    copy.deepcopy(replay).sample()

def large_shared():
    ds = RingBufferDataset(3000, shared=True)
    for k in range(20): ds.add_episode(dict(obs=1000*k+torch.arange(100), big=torch.ones(100,9)*k))
    return ds

def two_passes(ds, w, chunk, T):
    "Two at once over one loader"
    loader = ds.get_loader(8, T, chunk, w, seed=1, **fork)
    b1,b2 = iter(loader),iter(loader)
    for _ in range(6):
        x,y = next(b1),next(b2)
        for o in (x,y): same(o['obs'], o['obs'][:,:1]+torch.arange(T or 100)); same(o['big'][...,0], (o['obs']//1000).float())
        assert not torch.equal(x['obs'], y['obs'])
    b1.close(); b2.close()

def test_two_passes():
    ds = large_shared()
    for chunk,T in itertools.product((None,4,1), (1,30,None)): two_passes(ds, 0, chunk, T)
    two_passes(ds, 2, 4, 30); two_passes(ds, 1, 1, None)

def test_workers_of_a_loaded_replay(tmp_path):
    "Saved by a process that drew by itself: two workers, and two passes, draw other sequences"
    er = EpisodeReplay(RingBufferDataset(400), 8, 2, seed=0)
    for t in range(400): er.add_step(dict(obs=tensor(t)), done=t%10==9)
    er.sample()
    er.save(tmp_path)
    er,drawn = EpisodeReplay.load(tmp_path, num_workers=2, **fork),[]
    for _ in range(2):
        drawn += [tuple(er.sample()['obs'][:,0].tolist()) for _ in range(4)]
        er.close()
    assert len({*drawn})==8, drawn
    assert drawn[0]==tuple(EpisodeReplay.load(tmp_path).sample()['obs'][:,0].tolist()) # the first worker draws on

@pytest.mark.long
def test_two_passes_of_workers():
    ds = large_shared()
    for chunk,T in itertools.product((None,4,1), (1,30,None)): two_passes(ds, 2, chunk, T)

def test_chunks_of_workers():
    "A seed repeats the draws of each worker; the first one's are those of this process"
    ds = large_shared()
    one = [[o['obs'] for o in take(ds.get_loader(8, 5, c, w, seed=1, **fork), 6)] for c,w in ((None,0),(8,1),(None,2),(2,2),(2,2))]
    same(one[0], one[1]); same(one[3], one[4]); assert not torch.equal(one[2][1], one[0][1])

def test_blocks():
    "Too large for a slot; batches stay what they were when more are made"
    ds = large_shared()
    with patch.object(loader_module, '_most_words', 10):
        b = iter(ds.get_loader(8, 30, num_workers=1, **fork))
        for _ in range(5): assert follow(next(b)['obs'])
        b.close()
    same(take(ds.get_loader(8, 30, num_workers=1, seed=3, **fork), 12), take(ds.get_loader(8, 30, seed=3), 12))

@pytest.mark.slow
def test_workers_end():
    "When a replay is closed or let go; an error if they find nothing any more"
    replay = EpisodeReplay(large_shared(), 8, 30, num_workers=1, **fork); replay.sample(); assert len(workers())==1
    replay.close(); assert workers()==[]
    replay.sample(); del replay; gc.collect(); assert workers()==[]
    ds = RingBufferDataset(10, shared=True); ds.add_episode(episode(1, 8))
    replay = EpisodeReplay(ds, 4, 5, num_workers=1, **fork); replay.sample()
    ds.add_episode(episode(2, 3))
    with raises('there is one episode of 3 steps, and 4 sequences of 5 steps were asked for', RuntimeError):
        for _ in range(9): replay.sample()
    ds.add_episode(episode(3, 7)); assert replay.sample()['obs'].min()>=30
    replay.close(); assert workers()==[]

# %% Processes that end, however they do
script = textwrap.dedent("""
    import os, signal, sys, time, torch
    from pathlib import Path
    from torch.multiprocessing import active_children
    from fastrl.memory.episodes import *
    def episode(k, n): return dict(obs=10*k+torch.arange(n))
    if __name__=='__main__':
        what,folder = sys.argv[1:]
        signal.signal(signal.SIGINT, signal.default_int_handler) # in the background of a shell it is ignored
        if what in ('spawn','forkserver'):
            torch.multiprocessing.set_start_method(what, force=True) # as where it is the default
            every = (RingBufferDataset(50, shared=True, evictor=ScoreEvictor(lambda e: 0)),
                     RingBufferDataset(50, path=f'{folder}/ring'), IndividualFileDataset(50, f'{folder}/more'))
            for ds in every: ds.add_episode(episode(1, 5))
            batches = iter(concat(every).get_loader(6, 3, 3, num_workers=1, seed=0))
            b = next(batches)
            for ds in every: ds.add_episode(episode(2, 9))
            while (b['obs'][:3]<20).any(): b = next(batches)
            print((b['obs']-b['obs'][:,:1]).tolist()==[[0,1,2]]*6, len(active_children()), flush=True)
            batches.close()
            replay = EpisodeReplay(RingBufferDataset(50), 4, 3, num_workers=1)
            for k in range(10): replay.add_step(dict(obs=torch.tensor(k)), k%5==4)
            replay.sample()
            print(*[o.pid for o in active_children()], flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            ds = RingBufferDataset(50, shared=True) if what=='ring' else IndividualFileDataset(50, f'{folder}/files')
            ds.add_episode(episode(1, 5))
            batches = iter(ds.get_loader(64, 3, num_workers=2, context='fork'))
            next(batches)
            print(*[o.pid for o in active_children()], flush=True)
            if what=='files': os.kill(os.getpid(), signal.SIGKILL)
            try:
                for _ in batches: pass # not `while True`: Python 3.11 may miss the `except` as it jumps back to a `try`
            except KeyboardInterrupt: print('stopped', flush=True)
            ds = RingBufferDataset(10); ds.add_episode(episode(1,2)); print('on', next(iter(ds.get_loader(1)))['obs'].tolist())
    """)

def python(*args, **kw):
    return subprocess.Popen([sys.executable, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, 'PYTHONPATH':str(root)}, **kw)

def gone(pid, patience=20):
    until = time.monotonic()+patience
    while time.monotonic()<until:
        try:
            if Path(f'/proc/{pid}/stat').read_text().split(')')[-1].split()[0]=='Z': return True
        except (FileNotFoundError, ProcessLookupError): return True
        time.sleep(.05)

def segments(pids):
    return [o for o in os.listdir('/dev/shm') if any(f'_{pid}_' in o for pid in pids)] if os.path.exists('/dev/shm') else []

@pytest.mark.slow
def test_processes_end(tmp_path):
    "Workers by each start method, Ctrl-C, a parent that is killed: no process, no segment is left"
    (tmp_path/'script.py').write_text(script)
    def begin(*names): return {o: python(tmp_path/'script.py', o, tmp_path/o, start_new_session=True) for o in names}
    ps,pids = {},{}
    if os.path.exists('/proc'): # by itself: it draws without a pause until it is stopped
        ps = begin('ring')
        pids['ring'] = ps['ring'].stdout.readline().split()
        time.sleep(.3); os.killpg(ps['ring'].pid, signal.SIGINT) # as Ctrl-C does, to all of them
        ps |= begin('files')
    ps |= begin('spawn','forkserver')
    drawn = {o: ps[o].stdout.readline() for o in ('spawn','forkserver')}
    pids |= {o: p.stdout.readline().split() for o,p in ps.items() if o not in pids}
    said = {o: p.communicate(timeout=120) for o,p in ps.items()}
    for o in drawn: assert (drawn[o], len(pids[o]), 'Traceback' in said[o][1])==('True 1\n', 1, False), (drawn, pids, said)
    if 'ring' in ps: assert said['ring'][0]=='stopped\non [[10, 11]]\n', said['ring']
    assert all(gone(o) for os_ in pids.values() for o in os_)
    assert segments([*itertools.chain(*pids.values()), *(p.pid for p in ps.values()), os.getpid()])==[]

@pytest.mark.slow
@pytest.mark.parametrize('method', ['forkserver','spawn'])
def test_script_without_its_main_guard(method, tmp_path):
    "Workers that are not forked import the script, which starts workers: the error says what to write"
    (tmp_path/'script.py').write_text(textwrap.dedent(f"""
        import torch
        from fastrl.memory.episodes import *
        ds = RingBufferDataset(50)
        ds.add_episode(dict(obs=torch.arange(9)))
        next(iter(ds.get_loader(2, 3, num_workers=2, context={method!r})))"""))
    said = python(tmp_path/'script.py').communicate(timeout=120)[1].splitlines()[-1]
    assert "a script starts workers under `if __name__=='__main__':`" in said, said

@pytest.mark.slow
def test_killed_before_its_first_batch():
    "By the system, say, for want of memory: the program is not to blame"
    ds = RingBufferDataset(50)
    ds.add_episode(episode(0, 9))
    it = iter(ds.get_loader(2, 3, num_workers=1, context='spawn'))
    was = signal.signal(signal.SIGCHLD, signal.SIG_DFL) # torch's handler raises anywhere in this test
    try:
        for o in workers(): os.kill(o.pid, signal.SIGKILL)
        with raises('the next batch starts new workers', RuntimeError): next(it)
    finally: signal.signal(signal.SIGCHLD, was)

@pytest.mark.slow
def test_killed_workers_of_the_larger_one():
    "An error, and then new ones"
    small,large = RingBufferDataset(4),RingBufferDataset(100, shared=True); small.extend(large, 2, 1)
    for k in range(6): small.add_episode(episode(k, 2))
    with suppress(RuntimeError): # torch says so at any moment
        for o in workers(): os.kill(o.pid, signal.SIGKILL)
        time.sleep(.2)
    for k in range(60):
        with suppress(RuntimeError): small.add_episode(episode(k, 2))
    for k in range(8): small.add_episode(episode(k, 2)) # with new workers
    assert len(workers())==1
    small._refill = None; gc.collect(); assert workers()==[]

def forked(f):
    "Run `f` in a process of its own: it, and the lines that it writes to what `f` gets"
    read,write = os.pipe()
    if pid := os.fork(): os.close(write); return pid,os.fdopen(read)
    try: f(os.fdopen(write, 'w', buffering=1))
    finally: os._exit(1)

@pytest.mark.parametrize('leave', [lambda er,it: er.close(), lambda er,it: setattr(er, '_drawing', None), lambda er,it: it.close()], ids=['close','drop','iterator'])
def test_forked_beside_workers(leave):
    "A forked process draws with workers of its own, and leaves those of its parent alone"
    er = EpisodeReplay(RingBufferDataset(40, shared=True), 4, 2, num_workers=1, seed=0, **fork)
    for k in range(9): er.dataset.add_episode(episode(k, 3))
    it = iter(er.loader)
    theirs = [er.sample()['obs'].tolist(), next(it)['obs'].tolist()]
    def child(out):
        try: next(it)
        except RuntimeError as e: print('forked from' in str(e), file=out)
        print(er.sample()['obs'].tolist() in theirs, file=out)
        leave(er, it)
        er.close()
        os._exit(0)
    pid,said = forked(child)
    assert said.read().split()==['True','False'] and os.waitpid(pid, 0)[1]==0
    for _ in range(6): assert follow(er.sample()['obs']) and follow(next(it)['obs'])
    er.close(); it.close()

def test_forked_without_its_gpu(monkeypatch):
    "A process that was forked from one with a GPU draws with workers of its own, and pins nothing"
    er = EpisodeReplay(RingBufferDataset(40), 4, 2, num_workers=1, seed=0, pin_memory=True, **fork)
    for k in range(9): er.dataset.add_episode(episode(k, 3))
    monkeypatch.setattr(torch.cuda, '_is_in_bad_fork', lambda: True)
    assert follow(er.sample()['obs']) and not er.loader.pin_memory
    er.close()

def write_for_ever(what, d, out):
    ds = opened(what, d)
    k = max([int(ds[i]['x'][0])//100 for i in range(ds.num_episodes)], default=-1)+1
    while True:
        n = k%7+1
        ds.add_episode(dict(x=torch.arange(100*k, 100*k+n), big=torch.full((n,64), float(k))))
        print(k, file=out); k += 1

def opened(what, d):
    return (IndividualFileDataset(40, d/'files') if what=='files' else
            RingBufferDataset(40, path=d/what, evictor=ScoreEvictor(old_first) if what=='scored' else None))

def killed_writer(what, d, n):
    "Kill a writer once it has added `n` episodes; all that it had finished is there"
    pid,out = forked(lambda out: write_for_ever(what, d, out))
    for _ in range(n): last = int(out.readline())
    os.kill(pid, signal.SIGKILL)
    last = max([last, *map(int, out.read().split('\n')[:-1])]); os.waitpid(pid, 0); out.close()
    ds = opened(what, d)
    eps = [ds[i] for i in range(ds.num_episodes)]
    ks = [o['x'][0].item()//100 for o in eps]
    for k,o in zip(ks, eps): same(dict(o), dict(x=torch.arange(100*k, 100*k+k%7+1), big=torch.full((k%7+1,64), float(k))))
    assert (ds.num_timesteps, ds.num_episodes)==(sum(len(o['x']) for o in eps), len(eps))
    if what=='files': assert ds.damaged==[]
    if what=='scored': return
    assert ks==list(range(ks[0], ks[-1]+1))
    assert ks[-1] in (last,last+1) and (ds.num_timesteps+ks[0]%7>20)

def test_killed_writers(tmp_path):
    "A writer that is killed anywhere loses nothing that it had finished, in files and in a mapped file"
    for what,n in (('files',40),('files',53),('ring',40),('scored',40)): killed_writer(what, tmp_path, n)

@pytest.mark.long
def test_killed_writers_often(tmp_path):
    for what,n in itertools.product(('files','ring','scored'), range(20, 80, 3)): killed_writer(what, tmp_path/what, n)

def test_half_a_file(tmp_path):
    "What a killed writer had begun goes when the next one begins"
    ds = opened('files', tmp_path)
    half = tmp_path/'files/0000001_2_20260101-000000.safetensors.new'
    half.write_text('half')
    ds.add_episode(dict(x=torch.arange(2), big=torch.zeros(2,64)))
    assert not half.exists()

def end_in_the_middle(where, path):
    "Add three episodes, and end while the third one is written"
    def columns(i): return dict(obs=i, twice=2*i)
    ds = RingBufferDataset(10, path=path)
    for k in (1,2): ds.add_episode(columns(10*k+torch.arange(3)))
    items,done = Place._in_items,[]
    def once(self, *args): # the first field is written, the second is not
        if done: os._exit(9)
        done.append(True)
        return items(self, *args)
    if where=='rows': Place._in_items = once
    else: dataset.Table.add = lambda *args, **kwargs: os._exit(9)
    ds.add_episode(columns(30+torch.arange(7)))

@pytest.mark.parametrize('where', ['rows','entry'])
def test_killed_in_the_middle(tmp_path, where):
    "Between two fields of its rows, or between the rows and their entry: all else is saved, and loads"
    pid,out = forked(lambda out: end_in_the_middle(where, tmp_path/'ring'))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])==9
    out.close()
    with warnings.catch_warnings(): warnings.simplefilter('ignore'); ds = RingBufferDataset(10, path=tmp_path/'ring')
    assert ds[0]['obs'].tolist()==[20,21,22]
    for k in range(4, 9):
        ds.add_episode(dict(obs=10*k+torch.arange(3), twice=2*(10*k+torch.arange(3))))
        ds.save(tmp_path/'s'); ds.checkpoint(tmp_path/'c')
        have = [dict(ds[i]) for i in range(ds.num_episodes)]
        assert [o['obs'][0].item()//10 for o in have]==[2,*range(4, k+1)][-len(have):]
        for o in (RingBufferDataset.load(tmp_path/o) for o in ('s','c')):
            same([dict(o[i]) for i in range(o.num_episodes)], have)
        o.add_episode(dict(obs=tensor([700,701]), twice=tensor([0,0])))
        o.checkpoint(tmp_path/'c') # that was loaded from there: it writes what is new
        assert RingBufferDataset.load(tmp_path/'c')[-1]['obs'].tolist()==[700,701]
        same(*[[dict(x[i]) for i in range(x.num_episodes)] for x in (o, RingBufferDataset.load(tmp_path/'c'))])
    assert ds.episode_lengths==[3]*3

# %% Interrupted at any line while an episode comes
inner = {'_add_checked','_evict','steps_taken','drop','trim','add','store_steps','_overwrite','remove_steps','_enter','_tidy',
         'move_steps','prepare','stage_steps','_positions','claim'}
ours = {dataset.__file__, episode_files.__file__, sys.modules[RingBufferDataset.__module__].__file__,
        sys.modules[dataset.Table.__module__].__file__}

def interrupt(k, f, inner=inner):
    "Run `f`, and interrupt it at the `k`th line of `inner`; was it?"
    left = [k]
    def lines(frame, event, arg):
        if event=='line':
            if not left[0]: left[0] = -1; raise KeyboardInterrupt
            left[0] -= 1
        return lines
    def calls(frame, event, arg):
        return lines if frame.f_code.co_filename in ours and frame.f_code.co_name in inner else None
    was = sys.gettrace()
    sys.settrace(calls)
    try: f()
    except KeyboardInterrupt: return True
    finally: sys.settrace(was)
    return left[0]==-1

def whole(ds):
    "The episodes of `ds`, each of which is as it came"
    res = [ds[i]['x'].tolist() for i in range(len(ds.episode_lengths))]
    for xs in res: assert xs==list(range(xs[0], xs[0]+len(xs)))
    assert (ds.num_episodes, ds.num_timesteps, ds.episode_lengths)==(len(res), sum(map(len, res)), [len(o) for o in res])
    return res

def remains(make, k, scored, d):
    "The model of what is stored after an interruption at line `k` and four more episodes; `None` if it came to no line `k`"
    ds,run = make(),d/'run'
    for i,n in enumerate((3,4,2,5,3,1,4)): ds.add_episode(columns(list(range(100*i, 100*i+n))))
    before,new = whole(ds),list(range(900, 906))
    if not interrupt(k, lambda: ds.add_episode(columns(new))): return
    after = whole(ds)
    assert all(o in before or o==new for o in after)
    saved = isinstance(ds, RingBufferDataset)
    if saved: ds.checkpoint(run); assert whole(RingBufferDataset.load(run, evictor=ds.evictor))==after
    m = Model(12, None, scored)
    m.all,m.full = after[:],True
    lost = ds.ring.total-ds.table.live()[1][-1,:2].sum() if saved and after and not scored else 0
    if lost: m.all.append([-1]*int(lost))
    for i in range(10, 14):
        xs = list(range(100*i, 100*i+i%4+1))
        ds.add_episode(columns(xs)); m.add(xs); agree(ds, m)
    if saved: ds.checkpoint(run); agree(RingBufferDataset.load(run, evictor=ds.evictor), m)
    return m

@pytest.mark.slow
def test_interrupted_clear(tmp_path):
    "All or none are gone, in memory and in files, wherever it is interrupted; what comes later finds its room"
    for scored,kind in itertools.product((False,True), ('ring','path','files')):
        for k in itertools.count():
            d,kw = tmp_path/f'{scored}{kind}{k}',dict(evictor=ScoreEvictor(worth) if scored else None)
            d.mkdir()
            ds = dict(ring=lambda: RingBufferDataset(12, **kw), path=lambda: RingBufferDataset(12, path=d/'ring', **kw),
                      files=lambda: IndividualFileDataset(12, d/'files', **kw))[kind]()
            for i in range(5): ds.add_episode(columns([100*i,100*i+1,100*i+2]))
            before = whole(ds)
            if not interrupt(k, ds.clear, {'clear','forget_steps','remove_steps','recover','match_steps','trim'}): break
            assert (after := whole(ds)) in (before,[])
            if kind=='files': assert len(list((d/'files').glob('*.safetensors')))==len(after)
            m = Model(12, None, scored)
            m.all,m.full = after[:],bool(after)
            for i in range(10, 16):
                xs = list(range(100*i, 100*i+i%4+1))
                ds.add_episode(columns(xs)); m.add(xs)
                m.full = ds.is_full # one that was interrupted may say it still
                agree(ds, m)
        assert k>10 and whole(ds)==[]

def interrupted(tmp_path, kind, scored, ks):
    "What is stored is whole and counted right, also in what is saved then; what comes later finds its room"
    kw,hits = dict(evictor=ScoreEvictor(worth) if scored else None),0
    for k in ks:
        d = tmp_path/str(k); d.mkdir()
        make = dict(ring=lambda: RingBufferDataset(12, **kw), path=lambda: RingBufferDataset(12, path=d/'ring', **kw),
                    files=lambda: IndividualFileDataset(12, d/'files', **kw))[kind]
        if (m := remains(make, k, scored, d)) is None: break
        if kind!='ring': assert whole(make())==m.eps
        hits += 1
        shutil.rmtree(d)
    return hits

by_kind = pytest.mark.parametrize('kind,scored', itertools.product(('ring','path','files'), (False,True)))

@pytest.mark.parametrize('kind,scored', [('ring',True), ('files',False), *(pytest.param(*o, marks=pytest.mark.slow) for o in (('ring',False), ('path',False), ('path',True), ('files',True)))])
def test_interrupted(tmp_path, kind, scored):
    step = 5 if kind=='ring' else 9
    assert interrupted(tmp_path, kind, scored, itertools.count(scored, step))>40//step

@pytest.mark.long
@by_kind
def test_interrupted_at_every_line(tmp_path, kind, scored):
    assert interrupted(tmp_path, kind, scored, itertools.count())>40

def test_interrupted_move_of_the_first():
    "The first episode ever, whose steps begin at position 0, is there once wherever its move is interrupted"
    for at in itertools.count():
        ds = RingBufferDataset(6, evictor=ScoreEvictor(lambda e: -e['x'][0]), max_episodes=3)
        for i in range(7): ds.add_episode(columns([i]))
        assert ds.table.line(ds.table.oldest)[0]==0
        if not interrupt(at, lambda: ds.add_episode(columns([7])), {'_tidy'}): break
        same([o for o in whole(ds) if o in ([0],[1])], [[0],[1]])
    assert at>9 and ds.table.line(ds.table.oldest)[0]

# %% Files
def cut(path, n=120):
    with open(path, 'r+b') as f: f.truncate(n)
def flip(path):
    with open(path, 'r+b') as f: f.seek(-5, 2); o = f.read(1); f.seek(-1, 1); f.write(bytes([o[0]^255]))
def start(d, scored=False, n=6):
    ds = IndividualFileDataset(100, d, ScoreEvictor(lambda e: e['obs'][0]) if scored else None)
    for k in range(n): ds.add_episode(episode(k, 5))
    return ds,[next(ds.directory.glob(f'{k:07d}_*')) for k in range(n)]

@pytest.mark.parametrize('scored,w', itertools.product((False,True), (0,1)))
def test_damaged_while_drawn(tmp_path, scored, w):
    "Found by this process or by a worker, set aside, logged; all others stay in use"
    with logged() as said:
        ds,fs = start(tmp_path, scored)
        batches = iter(ds.get_loader(8, 2, num_workers=w, seed=0, **fork))
        next(batches)
        cut(fs[0]); fs[2].unlink(); cut(fs[5], 0)
        ds._begins.clear()
        until = time.monotonic()+20
        while len(said)<3 and time.monotonic()<until: assert (next(batches)['obs']%10<5).all(); ds.num_episodes
        batches.close()
        assert (ds.episode_lengths, ds.num_timesteps, [o.name[:7] for o in ds.damaged])==([5]*3, 15, ['0000000','0000005'])
        assert sum('is gone' in o for o in said)==1
        for k in range(20,40): ds.add_episode(episode(k, 5)) # more than fit
        assert (ds.num_timesteps, ds.num_episodes)==(100, 20)
        assert sorted(ds[i]['obs'][0].item()//10 for i in range(20))==list(range(20,40))
        assert len(os.listdir(tmp_path))==22
        assert IndividualFileDataset(100, tmp_path).num_episodes==20

def test_filled_up_with_zeros(tmp_path):
    "Whatever was in memory before, and whatever number an episode has"
    def used(*shape): return torch.full(shape, -1)
    for ds in (RingBufferDataset(40), IndividualFileDataset(40, tmp_path)):
        for k in range(20): ds.add_episode(episode(k, 2+k%3))
        with patch.object(episode_files, 'new_block', used), patch.object(sys.modules[RingBufferDataset.__module__], 'new_block', used):
            for T,pad in ((4,True), (None,False)):
                b = first(ds.get_loader(64, T, pad=pad, seed=0))
                assert not b['mask'].all() and not any((b[k][~b['mask']]!=0).any() for k in ('obs','reward','is_first','is_last'))

def test_file_of_another_length(tmp_path):
    "It is whole, and not the episode that its name says"
    with logged() as said:
        ds,fs = start(tmp_path)
        fs[1].unlink(); write_tensors(fs[1], episode(1, 4))
        assert [o.name for o in ds.verify()]==[f'{fs[1].name}.damaged'] and ds.episode_lengths==[5]*5 and len(said)==1

def test_damaged_when_opened(tmp_path):
    ds,_ = start(tmp_path/'gone')
    shutil.rmtree(ds.directory)
    with raises('the folder of the episodes is gone', FileNotFoundError): first(ds.get_loader(8, 2))
    d = tmp_path/'d'
    with logged() as said:
        ds,fs = start(d)
        flip(fs[1]); fs[3].rename(str(fs[3]).replace('_5_', '_4_')); fs[4].write_bytes(fs[4].read_bytes()[:-1])
        (d/'0000009_5_20200101-000000.safetensors').write_bytes(b'x'*50); (d/'notes.txt').write_text('mine')
        ds = IndividualFileDataset(100, d)
        assert ([ds[i]['obs'][0].item()//10 for i in range(3)], len(said))==([0,1,2], 3)
        assert len(ds.verify())==4 and ds.episode_lengths==[5]*3
        assert (d/'notes.txt').read_text()=='mine'
        write_tensors(d/'0000011_1_20300101-000000.safetensors', dict(obs=torch.zeros(1)))
        with raises('keep them in different folders'): IndividualFileDataset(100, d)

def fails_once(f, ext, code):
    "As `f`, but the first call with the path of an episode fails as if the machine were in trouble"
    left = [1]
    def g(path, *args, **kwargs):
        if str(path).endswith(ext) and left and left.pop(): raise OSError(code, os.strerror(code), str(path))
        return f(path, *args, **kwargs)
    return g

@pytest.mark.parametrize('ext,code', itertools.product(('safetensors','npz','pt'), (errno.EMFILE, errno.EIO, errno.EACCES)))
def test_trouble_of_the_machine(tmp_path, ext, code):
    "A file that cannot be read now is not a damaged one: it keeps its name, and its place"
    for k in range(3):
        if ext=='pt': save_pt(tmp_path, k, episode(k, 5))
        elif ext=='npz': np.savez(tmp_path/f'{k:07d}_5_20231105-12345{k}.npz', **{a: b.numpy() for a,b in episode(k, 5).items()})
    if ext=='safetensors': start(tmp_path, n=3)
    names,opened,read = sorted(os.listdir(tmp_path)),fails_once(open, ext, code),fails_once(io.open, ext, code)
    with patch('builtins.open', opened), patch('io.open', read), raises('nothing was changed', OSError):
        IndividualFileDataset(100, tmp_path)
    ds = IndividualFileDataset(100, tmp_path)
    fs = sorted(tmp_path.iterdir())
    for i in range(3): # also while it is judged
        raw = fs[i].read_bytes(); fs[i].write_bytes(b''); ds._begins.clear()
        with patch.object(episode_files, 'check_episode_file', fails_once(episode_files.check_episode_file, ext, code)):
            with pytest.raises(OSError): ds[i]
        fs[i].write_bytes(raw)
        assert (ds.num_episodes, ds.num_timesteps)==(3, 15) and follow(ds[i]['obs'][None])
    assert sorted(os.listdir(tmp_path))==names and ds.episode_lengths==[5]*3

def test_damaged_and_read_only(tmp_path):
    "In a folder that cannot be written, a damaged file keeps its name, and all others are used"
    _,fs = start(tmp_path, n=3)
    fs[1].write_bytes(b'')
    with logged() as said, patch.object(Path, 'rename', side_effect=OSError(errno.EROFS, 'Read-only file system')):
        ds = IndividualFileDataset(100, tmp_path)
        assert ds.episode_lengths==[5,5] and len(said)==1 and 'is left out' in said[0]

ran = []
class Evil:
    def __reduce__(self): return (ran.append, ('!',))

@pytest.mark.slow
def test_files_of_the_original(tmp_path):
    "Compressed, with a pickle inside, with a wrong bit, and beside new ones"
    d = tmp_path
    with logged() as said:
        for k in range(3): np.savez_compressed(d/f'{k:07d}_5_20231105-12345{k}.npz', **{a: b.numpy() for a,b in episode(k, 5).items()})
        np.savez(d/'0000007_1_20231105-123456.npz', obs=np.array([Evil()], object), reward=np.ones(1, np.float32))
        np.savez(d/'0000008_1_20231105-123456.npz', obs=np.array(['a']), reward=np.ones(1, np.float32))
        (d/'0000009_5_20231105-123456.npz').write_bytes((d/'0000001_5_20231105-123451.npz').read_bytes()[:200])
        swapped = {k: v.numpy().astype(v.numpy().dtype.newbyteorder('>')) for k,v in episode(3, 5).items()}
        np.savez(d/'0000010_5_20231105-123456.npz', **swapped)
        ds = IndividualFileDataset(30, d)
        assert (ds.episode_lengths, len(said), ran)==([5]*4, 3, [])
        same([dict(ds[i]) for i in range(4)], [episode(i, 5) for i in range(4)])
        ds.add_episode(episode(4, 5))
        b = take(ds.get_loader(64, 3, num_workers=1, **fork), 1)[0]['obs']
        assert follow(b) and set((b//10).unique().tolist())==set(range(5))
        wrong = d/'0000002_5_20231105-123452.npz'
        raw = bytearray(wrong.read_bytes()); raw[60] ^= 255; wrong.write_bytes(raw)
        assert len(ds.verify())==4 and ds.episode_lengths==[5]*4
        for k in range(5,8): ds.add_episode(episode(k, 5))
        assert [ds[i]['obs'][0].item()//10 for i in range(6)]==[1,3,4,5,6,7]

def save_pt(d, k, cols, **kw):
    torch.save(cols, p := d/f'{k:07d}_{len(next(iter(cols.values())))}_20231105-12345{k}.pt', **kw)
    return p

def test_pt_of_the_original(tmp_path):
    "In the order of its fields, as views, of any dtype, beside others, drawn by a worker, evicted like any other"
    d = tmp_path; d.joinpath('f').mkdir(); d = d/'f'
    odd = dict(c=torch.arange(5).to(torch.complex128).conj(), b=torch.arange(5).bfloat16(), u=torch.arange(5).to(torch.uint16),
               z=torch.zeros(5,0), t=torch.ones(3,5).T, p=torch.arange(5.).requires_grad_())
    for k in range(3): save_pt(d, k, dict(x=5*k+torch.arange(10)[5:]-5, **odd))
    ds = IndividualFileDataset(20, d)
    assert ([*ds.fields], ds.episode_lengths)==(['x',*odd], [5]*3)
    same(dict(ds[1]), dict(x=5+torch.arange(5), **{k: v.detach().resolve_conj() for k,v in odd.items()}))
    batches = iter(ds.get_loader(64, 3, num_workers=1, seed=0, **fork)); b = next(batches); batches.close()
    assert follow(b['x']) and set((b['x']//5).unique().tolist())==set(range(3)) and torch.equal(b['b'][...].float(), (b['x']%5).float())
    d = tmp_path/'g'; d.mkdir()
    for k in range(2): save_pt(d, k, episode(k, 5))
    np.savez(d/'0000002_5_20231105-123452.npz', **{a: b.numpy() for a,b in episode(2, 5).items()})
    ds = IndividualFileDataset(20, d); ds.add_episode(episode(3, 5)); ds.add_episode(episode(4, 5)); assert ds.verify()==[]
    assert [ds[i]['obs'][0].item() for i in range(4)]==[10,20,30,40]
    assert sorted(o.suffix for o in d.iterdir())==['.npz','.pt','.safetensors','.safetensors']

def test_pt_that_is_none(tmp_path):
    "Pickles that would run something, that hold other things, that claim more than they have: set aside by name, nothing runs"
    d,x = tmp_path,torch.arange(3)
    save_pt(d, 0, dict(obs=x))
    huge = torch.zeros(1).expand(3, 10**9)
    for i,o in enumerate((dict(obs=Evil()), dict(obs=x, more=Evil()), [x,x,x], dict(obs=huge), {1:x}, dict(obs='abc'), dict(obs=x.to_sparse()),
                          dict(obs=x, more=None), dict(obs=torch.zeros(3, device='meta')),
                          dict(obs=torch.nn.Parameter(torch.zeros(3))), dict(obs=torch.zeros(2)), {})):
        torch.save(o, d/f'{i+1:07d}_3_20231105-123456.pt')
    save_pt(d, 8, dict(obs=x), _use_new_zipfile_serialization=False).rename(d/'0000050_3_20231105-123456.pt')
    (d/'0000051_3_20231105-123456.pt').write_bytes(pickle.dumps(dict(obs=Evil())))
    torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), d/'0000052_3_20231105-123456.pt')
    with logged() as said: ds = IndividualFileDataset(99, d)
    assert (ds.episode_lengths, len(said), len(ds.damaged), ran)==([3], 15, 15, [])
    assert sum('this was refused, and nothing was run' in o for o in said)==3 and 'asks for getattr' in said[0]
    assert not any('weights_only' in o and 'False' in o for o in said)

def test_torchscript(tmp_path, monkeypatch):
    "torch before 2.6 runs the code of such a file, with `weights_only`, too: it never gets to see one"
    torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), tmp_path/'0000000_3_20231105-123456.pt')
    asked = []; monkeypatch.setattr(torch, 'load', lambda *args, **kwargs: asked.append(args))
    with logged() as said: assert IndividualFileDataset(9, tmp_path).is_empty
    assert asked==[] and 'asks for TorchScript: this was refused, and nothing was run' in said[0]

def test_flipped_pt(tmp_path):
    "A flip anywhere: found, or harmless; cut anywhere: found, when it is opened or drawn"
    rng = random.Random(0)
    f = save_pt(tmp_path, 0, dict(obs=torch.arange(3), r=torch.ones(3,2)))
    raw,found,want = f.read_bytes(),0,torch.load(f)
    with logged():
        for i in range(60):
            o = bytearray(raw); o[rng.randrange(len(o))] ^= 1<<rng.randrange(8)
            Path(f'{f}.damaged').unlink(missing_ok=True); f.write_bytes(o if i%4 else raw[:rng.randrange(len(raw))])
            ds = IndividualFileDataset(9, tmp_path); found += len(ds.verify())
            for k in range(ds.num_episodes): same(dict(ds[k]), want)
    assert found>20

def test_files_of_another_kind(tmp_path):
    "A folder with episodes that nobody can read says so"
    (tmp_path/'0000000_5_20231105-123456.zst').touch(); (tmp_path/'notes.zst').touch()
    with logged() as said: assert IndividualFileDataset(9, tmp_path).is_empty
    assert len(said)==1 and '1 files are named like episodes, but not of a kind that can be read: 0000000_5' in said[0]

def changed_head(path, cols, change):
    "A safetensors file with another head"
    write_tensors(path, cols)
    raw = path.read_bytes(); n = int.from_bytes(raw[:8], 'little'); head = json.loads(raw[8:8+n])
    change(head)
    head = json.dumps(head).encode(); path.write_bytes(len(head).to_bytes(8, 'little')+head+raw[8+n:])

heads = [lambda h: h.update(__metadata__=5), lambda h: h.update(__metadata__={'fields':'5'}),
         lambda h: h.update(__metadata__={'fields':'["[[1]]"]'}), lambda h: h.update({'[[1]]':h.pop('obs')}),
         lambda h: h.update({'[]':h.pop('obs')}), lambda h: h.update(__metadata__={'fields':'x'})]

def test_foreign_files(tmp_path):
    "Folders with what does not belong there, and files that are not what their names say"
    d,good = tmp_path,dict(obs=torch.arange(3))
    def name(i, n=3): return d/f'{i:07d}_{n}_20240101-0000{i:02d}.safetensors'
    write_tensors(name(0), good)
    for i,h in enumerate(heads, 1): changed_head(name(i), good, h)
    name(20).mkdir(); name(21).symlink_to(name(21)); name(23).symlink_to(d/'nowhere')
    if hasattr(os, 'mkfifo'): os.mkfifo(name(22))
    (d/'00000000_3_20240101-000000.safetensors').write_bytes(name(0).read_bytes())
    write_tensors(name(24, 0), dict(obs=torch.zeros(0).long()))
    with logged():
        ds = IndividualFileDataset(99, d)
        assert (ds.episode_lengths, len(ds.damaged))==([3], 6)
        ds.add_episode(dict(obs=torch.arange(4))); assert ds.episode_lengths==[3,4]
        assert name(20).is_dir()
        ds.table.line(0)[1] *= -1; ds.table.doubts = 1; assert ds.episode_lengths==[3,4] # one that was doubted and is sound

def test_npz_heads(tmp_path):
    "Names that JSON or NumPy would take otherwise; heads of the second version"
    d = tmp_path
    np.savez(d/'0000000_3_20231105-123456.npz', **{'_y':np.arange(3.), '[x':np.ones(3)})
    ds = IndividualFileDataset(100, d); same(ds[0]['_y'], torch.arange(3.).double())
    ds.add_episode({'_y':torch.zeros(2).double(), '[x':torch.ones(2).double()}); del ds
    assert IndividualFileDataset(100, d).episode_lengths==[3,2]
    with zipfile.ZipFile(d/'0000009_3_20231105-123457.npz', 'w') as z:
        for k in ('_y','[x'):
            with z.open(f'{k}.npy', 'w') as f: np.lib.format.write_array(f, np.arange(3.), version=(2,0))
    assert IndividualFileDataset(100, d).num_episodes==3

def test_flipped_npz(tmp_path):
    "A flip anywhere: found, or harmless"
    rng,f = random.Random(0),tmp_path/'0000000_3_20231105-123456.npz'
    np.savez_compressed(f, obs=np.arange(3), r=np.ones((3,2)))
    raw,found = f.read_bytes(),0
    with logged():
        for i in range(150):
            o = bytearray(raw); o[rng.randrange(len(o))] ^= 1<<rng.randrange(8)
            Path(f'{f}.damaged').unlink(missing_ok=True); f.write_bytes(o)
            ds = IndividualFileDataset(9, tmp_path); found += len(ds.verify())
            for k in range(ds.num_episodes): ds[k]
    assert found>50

def test_odd_reads(tmp_path):
    "A read that gives less than was asked for; a file that cannot be read though it is sound; a clock that goes back"
    ds = IndividualFileDataset(99, tmp_path/'r'); ds.add_episode(episode(1, 50)); real = os.preadv
    with patch.object(os, 'preadv', lambda fd, bs, at: real(fd, [bs[0][:100]], at)): same(ds[0], BD(episode(1, 50)))
    with patch.object(os, 'preadv', lambda *_: 0), raises('cut short', LoadError): ds[0]
    assert ds.num_episodes==1
    with patch.object(time, 'strftime', lambda *_: '20200101000000'): ds.add_episode(episode(2, 4))
    del ds; assert IndividualFileDataset(99, tmp_path/'r').episode_lengths==[50,4]
    # columns of several widths have one checksum in any order
    ds = IndividualFileDataset(99, tmp_path/'w')
    ds.add_episode(dict(a=torch.ones(3, dtype=torch.uint8), b=torch.ones(3).double(), c=torch.ones(6)[::2]))
    assert ds.verify()==[]
    del ds; assert IndividualFileDataset(99, tmp_path/'w').verify()==[]

def test_one_writer(tmp_path):
    "One writes at a time, and says so; others read; nobody's files go"
    d = tmp_path
    a,b = RingBufferDataset(20, path=d/'p'),RingBufferDataset(20, path=d/'p')
    b.add_episode(episode(1, 5))
    with raises('another '): a.add_episode(episode(2, 5))
    c = RingBufferDataset(20, path=d/'p'); assert c.episode_lengths==[5]
    with raises('another writer has locked'): c.add_episode(episode(2, 5))
    b.add_episode(episode(3, 4)); assert (c.episode_lengths, c.num_timesteps, b.num_timesteps)==([5,4], 9, 9)
    copied = copy.deepcopy(b)
    with raises('another writer has locked'): copied.add_episode(episode(2, 5))
    del a,b,copied; gc.collect(); c.add_episode(episode(4, 3)); del c
    assert RingBufferDataset(20, path=d/'p').episode_lengths==[5,4,3]
    (d/'q.episodes').write_text('mine')
    with pytest.raises(ValueError): RingBufferDataset(20, path=d/'q')
    assert (d/'q.episodes').read_text()=='mine'
    x,y = IndividualFileDataset(20, d/'f'),IndividualFileDataset(20, d/'f')
    x.add_episode(episode(1, 5))
    with raises('another writer has locked'): y.add_episode(episode(2, 5))
    del x
    with raises('1 episodes came to'): y.add_episode(episode(2, 5))
    assert len(os.listdir(d/'f'))==1
    z = IndividualFileDataset(20, d/'f'); z.add_episode(episode(2, 5)); assert z.episode_lengths==[5,5]

words = [(False, o) for o in ((1,-2**62), (2,2**33), (2,-3), (0,2**62), (12,-5), (13,2**33), (12,2**61))]

@pytest.mark.parametrize('scored,word', words+[(True, o) for o in ((0,2**40), (1,-7))])
def test_damaged_table(tmp_path, scored, word):
    kw = dict(path=tmp_path/'r', evictor=ScoreEvictor(lambda e: e['obs'][0]) if scored else None)
    ds = RingBufferDataset(20, **kw); ds.add_episode(episode(1, 5)); ds.add_episode(episode(2, 5))
    (ds.places.array if scored else ds.table.array).reshape(-1)[word[0]] = word[1]
    del ds
    with raises('cannot be used'): RingBufferDataset(20, **kw)

# %% Saved and loaded
def saved_and_loaded(d, scored, n, half, more):
    "In any place, in any state"
    ev,rng = ScoreEvictor(worth) if scored else None,np.random.default_rng(5)
    ds,m = RingBufferDataset(20, evictor=ev, half_precision=half, max_episodes=6),Model(20, 6, scored)
    at = fill(ds, m, n, rng, every=100, most=9)
    ds.save(d/'s')
    for _ in range(4): # one after another, of which each writes what came
        at = fill(ds, m, n//4, rng, at, every=100, most=9)
        ds.checkpoint(d/'run')
        agree(RingBufferDataset.load(d/'run', evictor=ev), m)
    ds.save(d/'s')
    for kw in (dict(), dict(shared=True), dict(path=d/'ring')):
        new,m2 = RingBufferDataset.load(d/'s', evictor=ev, **kw),copy.deepcopy(m)
        agree(new, m2); assert (new.fields, new.is_full)==(ds.fields, ds.is_full)
        if n: same(*[first(o.get_loader(7, 1, seed=1)) for o in (ds,new)])
        fill(new, m2, more, np.random.default_rng(n), at, every=4, most=9)
    if n: agree(RingBufferDataset(20, evictor=ev, path=d/'ring', half_precision=half), m2)

@pytest.mark.parametrize('scored,n,half', itertools.product((False,True), (0,1,5,40), (False,True)))
@pytest.mark.halved
def test_saved(tmp_path, scored, n, half): saved_and_loaded(tmp_path, scored, n, half, 9)

@pytest.mark.long
@pytest.mark.parametrize('scored,n,half', itertools.product((False,True), (0,1,5,40,100), (False,True)))
def test_saved_long(tmp_path, scored, n, half): saved_and_loaded(tmp_path, scored, n, half, 60)

@pytest.mark.parametrize('scored', [False,True])
def test_tables_that_do_not_fit(tmp_path, scored):
    "A folder that says what cannot be is refused"
    d,ev = tmp_path,ScoreEvictor(worth) if scored else None
    ds = RingBufferDataset(20, evictor=ev, max_episodes=6)
    fill(ds, Model(20, 6, scored), 40, np.random.default_rng(5), every=100, most=9)
    ds.save(d/'s')
    good,ring,config = Saved(d/'s').state(),RingBufferDataset.load(d/'s', evictor=ev).ring,Saved(d/'s').config
    def other(at, value, key='lines'):
        a = good[key].copy()
        a[at] = value
        return {**good, key:a}
    bad = [other((0,1), 10**9), other((0,1), -1), other((0,0), -1), other((0,0), 2**40), {**good, 'lines':good['lines'][:,:3]},
           {**good, 'lines':np.repeat(good['lines'], 20, 0)}, {**good, 'counts':good['counts'][:1]}, other((0,3), -1, 'counts'),
           {}, 5, {**good, 'lines':None}]
    if scored: bad += [other(0, 20, 'places'), other(0, -1, 'places'), other(0, good['places'][1], 'places'),
                       {**good, 'places':good['places'][1:]}, {**good, 'places':good['places'].astype(np.float64)}]
    for o in bad:
        save_memory(d/'bad', 'RingBufferDataset', config, ring, o)
        with pytest.raises(LoadError): RingBufferDataset.load(d/'bad', evictor=ev)
    save_memory(d/'bad', 'RingBufferDataset', config, ring, good)
    assert len(RingBufferDataset.load(d/'bad', evictor=ev))==good['lines'][:,1].sum()

@pytest.mark.parametrize('scored', [False,True])
def test_checkpoints(tmp_path, scored):
    "A checkpoint writes what came, or all of it where any row may have changed"
    ds = RingBufferDataset(99, evictor=ScoreEvictor(worth) if scored else None)
    for k,n in enumerate((40,3,4)):
        ds.add_episode(columns(list(range(100*k, 100*k+n))))
        ds.checkpoint(tmp_path)
    assert sorted(len(load_file(o)['x']) for o in tmp_path.glob('rows-*'))==([47] if scored else [3,4,40])

@pytest.mark.parametrize('scored', [False,True])
def test_dropped_extra(tmp_path, scored):
    "A checkpoint that drops the `extra` of the last one warns, once, of a dataset and of a replay"
    ds = RingBufferDataset(99, evictor=ScoreEvictor(worth) if scored else None)
    ds.add_episode(columns([0, 1, 2]))
    for o in (ds, EpisodeReplay(ds, 1, 2)):
        o.checkpoint(tmp_path, extra=dict(net=tensor([1.])))
        with pytest.warns(UserWarning, match=r"drops that of the last one, \['net'\]") as said: o.checkpoint(tmp_path)
        assert len(said)==1 and said[0].filename==__file__
        with warnings.catch_warnings():
            warnings.simplefilter('error')
            o.checkpoint(tmp_path)

def test_not_loaded(tmp_path):
    d = tmp_path
    with pytest.raises(FileNotFoundError): RingBufferDataset.load(d/'nothing')
    Ring(3).save(d/'plain')
    with raises('holds a saved Ring', LoadError): RingBufferDataset.load(d/'plain')
    ds = RingBufferDataset(9); ds.add_episode(episode(1, 3)); ds.save(d/'s')
    cut(next((d/'s').glob('rows-*')))
    with raises('cut short', LoadError): RingBufferDataset.load(d/'s')

def test_mapped(tmp_path):
    d = tmp_path
    ds = RingBufferDataset(9, path=d/'m'); ds.add_episode(episode(1, 3))
    with raises('capacity 9'): RingBufferDataset(8, path=d/'m')
    with raises('without a `ScoreEvictor`'): RingBufferDataset(9, path=d/'m', evictor=ScoreEvictor(worth))
    assert sorted(o for o in os.listdir(d) if o.startswith('m'))==['m','m.episodes']
    os.unlink(d/'m'); ds = RingBufferDataset(20, path=d/'m') # what is left beside steps that are gone goes
    assert (len(ds), ds.max_episodes)==(0, 20); ds.add_episode(episode(1, 3))
    os.unlink(d/'m.episodes')
    with raises('is missing', FileNotFoundError): RingBufferDataset(20, path=d/'m')

def test_copies():
    ds = RingBufferDataset(9); ds.add_episode(episode(1,3))
    same(copy.deepcopy(ds)[0], ds[0]); same(pickle.loads(pickle.dumps(ds))[0], ds[0])
    assert ReplayBuffer is EpisodeReplay and len(EpisodeReplay(ds, 2))==3

def test_names_in_pickles():
    "Pickles of earlier versions look for their classes in `fastrl.memory.episodes`"
    from fastrl.memory import episodes as E
    for o in ('Table','FieldType','FIFOEvictor','ScoreEvictor','RingBufferDataset','IndividualFileDataset','Concat','Sequences',
              'EpisodeLoader','EpisodeReplay','Running','Desk','_as_is'): assert hasattr(E, o), o
    state = {k:v for k,v in RingBufferDataset(9).__getstate__().items() if k!='_waited'}
    old = RingBufferDataset.__new__(RingBufferDataset); old.__setstate__(state)
    old.add_episode(episode(1, 3)); assert old.episode_lengths==[3]

# %% Joined
@pytest.mark.parametrize('every,n', itertools.product((1,3), (1,64)))
def test_extended(every, n):
    "Both get all; the small one is refreshed, never more than it holds; nothing of a refused episode is anywhere"
    small,large = RingBufferDataset(9),RingBufferDataset(1000)
    small.extend(large, n, None, every, seed=0)
    fresh = Counter()
    for k in range(60):
        small.add_episode(episode(k, 3))
        have = [small[i]['obs'][0].item()//10 for i in range(small.num_episodes)]
        assert (large.num_episodes, small.num_timesteps<=9, k in have)==(k+1, True, True)
        fresh[sum(o<k-2 for o in have)] += 1
    if every==1 and n==64: assert sum(v for k,v in fresh.items() if k)>30 # most have come from the large one
    if every==3: assert fresh[0]
    with raises('the capacity is 9'): small.add_episode(episode(1, 10))
    assert large.num_episodes==60

def test_extended_chain():
    a,b,c = RingBufferDataset(5),RingBufferDataset(50),RingBufferDataset(7)
    a.extend(b); b.extend(c); a.add_episode(episode(1, 5)); assert (a.num_episodes, b.num_episodes, c.num_episodes)==(1,1,1)
    few = RingBufferDataset(9, max_episodes=1); few.extend(RingBufferDataset(99), seed=0)
    for k in range(9): few.add_episode(episode(k, 3)); assert [few[i]['obs'][0].item()//10 for i in range(few.num_episodes)]==[k]
    with raises('by itself'): c.extend(a)
    with raises('the capacity is 7'): b.add_episode(episode(1, 8))
    other = RingBufferDataset(9); other.add_episode(columns([1]))
    with raises('the same fields'): c.extend(other)
    c.add_episode(episode(2, 1)); b.extend(d := three()[2]); d.extend(c) # of the same fields, and none is empty
    b.add_episode(episode(3, 4)); assert (b.num_episodes, d.num_episodes, c.num_episodes)==(2,4,2)
    with raises('the same fields'): first(concat([c,other]).get_loader(4))

def test_extended_by_files(tmp_path):
    small,large = RingBufferDataset(10),IndividualFileDataset(100, tmp_path)
    small.extend(large, 3, 1, seed=0)
    for k in range(12): small.add_episode(episode(k, 4))
    assert len(workers())==1
    same([small[i]['obs']-small[i]['obs'][0] for i in range(2)], [torch.arange(4)]*2)
    del small; gc.collect(); assert workers()==[]

def three():
    res = [RingBufferDataset(99, shared=True) for _ in range(3)]
    for k,o in enumerate(res):
        for n in (2,3,4+k): o.add_episode(episode(k, n))
    return res

def shares(dss, ws, n, bs=7, T=2, **kw):
    return torch.cat([torch.bincount(o['obs'][:,0]//10, minlength=3)[None]
                      for o in take(concat(dss, ws).get_loader(bs, T, seed=0, **kw), n)])

def test_shares():
    dss = three()
    for ws,bs in itertools.product(([1,1,1], [1,2,3], [.5,.25,.25], [.7,.2,.1], [1,0,0], None), (1,7,12)):
        w = np.array(ws or [1,1,1])/np.sum(ws or [1,1,1])
        got = shares(dss, ws, 20, bs).cumsum(0).numpy()
        assert (abs(got-np.arange(1,21)[:,None]*bs*w)<1.5).all()
    same(shares(dss, [1,1,2], 5, 8), tensor([[2,2,4]]*5))
    same(shares(dss, [1,1,2], 4, 8, num_workers=1, chunk_size=4, **fork), tensor([[2,2,4]]*4))

def test_concat():
    "Whole episodes of different lengths; counts; what cannot be drawn"
    a,_,c = three()
    both = concat([a,c])
    batch = first(both.get_loader(40, seed=0))
    assert (batch['obs'].shape, set(batch['mask'].sum(1).tolist()))==((40,6), {2,3,4,6})
    same(batch['obs']*~batch['mask'], torch.zeros(40,6).long())
    assert ((both.num_episodes, both.num_timesteps, len(both), both.episode_lengths, both.is_full, both.is_empty,
             both.average_episode_length)==(6, 20, 20, [2,3,4,2,3,6], False, False, 20/6))
    same(both[3], c[0]); same(both[-1], c[2])
    with pytest.raises(IndexError): both[6]
    with raises('no episodes yet', RuntimeError): iter(concat([a,RingBufferDataset(3)]).get_loader(4, 2))
    assert first(concat([a,RingBufferDataset(3)], [1,0]).get_loader(4, 2))['obs'].shape==(4,2)
    here = RingBufferDataset(3); concat([a,here]).get_loader(4, num_workers=1); assert here.ring.place.shared
    repr(both)

@pytest.mark.parametrize('copied', (copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))))
def test_copied_together(copied):
    "Datasets that are drawn from together are copied and pickled together"
    two = RingBufferDataset(20),RingBufferDataset(20)
    for k,ds in enumerate(two): ds.add_episode(episode(k, 5))
    twin = copied(concat(two))
    two[0].add_episode(episode(7, 5))
    drawn = next(iter(twin.get_loader(8, 3, seed=0)))['obs']
    assert follow(drawn) and {*(drawn//10).flatten().tolist()}=={0,1}

def test_a_reader_beside_a_writer(tmp_path, caplog):
    "That another process makes room is no reason for a warning; that a file is gone, and nothing came for it, is one"
    writer = IndividualFileDataset(6, tmp_path)
    for k in range(3): writer.add_episode(dict(obs=k*10+torch.arange(2)))
    for gone in (False,True):
        reader = IndividualFileDataset(6, tmp_path)
        if gone: sorted(tmp_path.glob('*.safetensors'))[0].unlink()
        else: writer.add_episode(dict(obs=70+torch.arange(2)))
        caplog.clear()
        loader = iter(reader.get_loader(8, 2, seed=0))
        for _ in range(20): next(loader)
        assert reader.num_episodes==2
        assert ['did somebody remove it' in o.getMessage() for o in caplog.records if o.levelname=='WARNING']==[True]*gone

def test_steps_exact_tensors(monkeypatch):
    "A step that needs no closer look becomes the tensors that a closer look would make of it"
    rng,took = np.random.default_rng(0),0
    look = dataset._exact_tensors
    def value(f, lead):
        v = tensor(rng.choice([0, 1, 2, 100, np.nan if f.dtype.is_floating_point else 3], size=lead+f.shape)).to(f.dtype)
        how = rng.random()
        if how<.1 and v.is_floating_point(): return v.requires_grad_()
        if how<.2 and v.is_complex(): return v.conj()
        if how<.5: v = v.numpy()
        if how<.3: return v[::-1] if v.ndim else v.astype(v.dtype.newbyteorder())
        if .5<how<.7: return v.tolist()
        return v if how<.9 else [1, 1.5, True, 2**70, 1e300, np.inf, -1, None, 'a', np.float32(2), np.int64(3), np.float64(.1), np.bool_(True)][rng.integers(13)]
    def kind(): return FieldType([(), (2,), (2,3)][rng.integers(3)], [torch.float32, torch.float64, torch.int64, torch.bool,
                                                                      torch.uint8, torch.complex64][rng.integers(6)])
    def fit(step, schema, lead):
        try: return repr(dataset.fit_schema(step, schema, lead)[1])
        except ValueError as e: return str(e)
    for _ in range(1500):
        schema,lead = {(k,): kind() for k in 'abc'[:rng.integers(1, 4)]},[(), (2,)][rng.integers(2)]
        step = {k[0]: value(f if rng.random()<.8 else kind(), lead) for k,f in schema.items()}
        res = fit(step, schema, lead)
        took += look(step, schema, lead) is not None
        with monkeypatch.context() as m:
            m.setattr(dataset, '_exact_tensors', lambda *_: None)
            assert fit(step, schema, lead)==res
    assert took>300

def test_a_refused_episode_holds_nothing(tmp_path):
    "Its error, once it was handled, keeps no memory alive: the folder is free as soon as the memory is gone"
    gc.disable()
    try:
        replay = EpisodeReplay(IndividualFileDataset(10, tmp_path/'eps'), batch_size=2)
        refused = 0
        replay.add_step(dict(o=0.), done=True) # now the folder is locked
        for i in range(12):
            try: replay.add_step(dict(o=float(i)), done=False)
            except ValueError: refused += 1
        assert refused==1
        del replay
        IndividualFileDataset(10, tmp_path/'eps').add_episode(dict(o=torch.zeros(3)))
    finally: gc.enable()

@pytest.mark.parametrize('evictor', [None, ScoreEvictor(lambda e: e['obs'][0]%10)], ids=['oldest first','lowest score first'])
def test_what_comes_stays(evictor):
    "Whatever is fetched from a larger dataset, and however it scores, the episode that just came is there"
    def there(ds): return [int(ds[j]['obs'][0]) for j in range(ds.num_episodes)]
    for seed in range(6):
        rng = np.random.default_rng(seed)
        small,large = RingBufferDataset(20, evictor=evictor),RingBufferDataset(400)
        small.extend(large, int(rng.integers(1, 6)), 0, int(rng.integers(1, 3)), seed=seed)
        for i in range(60):
            small.add_episode(dict(obs=np.full(int(rng.integers(1, 6)), i, np.float32)))
            assert i in there(small)
        assert there(large)==[*range(60)] and len({*there(small)})>1
