"""Drive everything that is compiled through random histories; under NUMBA_BOUNDSCHECK=1 an index out of bounds is an error

`python tests/bounds.py 0 5`: the seed, and how many seconds. The last line says how many kernels ran; `test_bounds.py` runs it
with a cache of its own, since compiled code from another cache would check nothing."""
import pickle, pkgutil, importlib, sys, tempfile, time, warnings
from pathlib import Path
import numba, numpy as np, torch
import fastrl
from fastrl import ExperienceBank, ExperienceReplay, Prioritized, Ring, Uniform
from fastrl.data.gym import GymLoop, Source
from fastrl.memory.bank import create_experience
from fastrl.memory.dataset import ScoreEvictor
from fastrl.memory.episode_rows import RingBufferDataset
from fastrl.memory.sample import HER
from fastrl.memory.tree import SumTree
from fastrl.memory.walk import Runs, Walk

def loop_of(o): return o.loop if isinstance(getattr(o, 'loop', None), numba.core.dispatcher.Dispatcher) else None

def kernels():
    "All compiled functions of the package, by name"
    res = {}
    for o in pkgutil.walk_packages(fastrl.__path__, 'fastrl.'):
        try: m = importlib.import_module(o.name)
        except ImportError: continue # of something optional
        res.update({f'{o.name}.{k}': f for k,v in vars(m).items() if (f := loop_of(v)) and v.__module__==o.name})
    return res

def ran(found):
    "Those that were called, or that one which was called calls"
    todo,seen = [v for v in found.values() if v.signatures],set()
    while todo:
        f = todo.pop()
        if f in seen: continue
        seen.add(f)
        names = f.py_func.__globals__
        todo += [o for n in f.py_func.__code__.co_names if (o := loop_of(names.get(n)))]
    return {k for k,v in found.items() if v in seen}

# %% Memories
def batch(rng, n, wide, kind, envs=3):
    over = rng.random(n)<.25
    res = dict(state=torch.from_numpy(rng.standard_normal((n, wide))).float(), action=torch.from_numpy(rng.integers(0, 4, n)),
               reward=torch.from_numpy(rng.integers(-3, 4, n)).to(torch.float64 if kind%3==1 else torch.float32),
               terminated=torch.from_numpy(over&(rng.random(n)<.5)), env_id=torch.from_numpy(rng.integers(0, envs, n)))
    res['truncated'] = torch.from_numpy(over)&~res['terminated']
    res['next_state'] = res['state']+1
    if kind%2: res['td_error'] = torch.zeros(n, 1)
    if kind==4: res.update(next_state=dict(achieved_goal=torch.zeros(n, 2), desired_goal=torch.zeros(n, 2)),
                           state=dict(desired_goal=torch.zeros(n, 2)))
    return res

def reward(achieved, goal, idxs): return (achieved==goal).all(1).float()

def memory(rng, kind):
    cap = int(rng.integers(1, 40))
    sampler = (Uniform, lambda **k: Prioritized(**k), lambda **k: Prioritized(normalize='memory', **k), Prioritized,
               lambda **k: HER(reward=reward, strategy=('future','final','episode')[rng.integers(3)], **k))[kind](seed=int(rng.integers(99)))
    return ExperienceReplay(bs=int(rng.integers(1, 9)), max_sz=cap, warmup_sz=1, sampler=sampler, gamma=.9,
                            n_step=None if kind==4 else (None, 1, 3, 7)[rng.integers(4)], shared=bool(rng.random()<.3))

def use(rng, er, folder, wide, kind):
    "One random act"
    act,late = rng.integers(14),er.late_ones
    if act<4 or not len(er): return er+batch(rng, int(rng.integers(1, er.max_sz+5)), wide, kind)
    if act==4 and kind!=4: return er.add(**{k: v[0].tolist() if v[0].ndim==0 else v[0].numpy() for k,v in batch(rng, 1, wide, kind).items()})
    if act in (5,6):
        late += [(i,b['serial']) for b,i in er.sample(n_batches=(None, 2)[act-5]) or ()] if act==6 else [(lambda b,i: (i,b['serial']))(*er.sample())]
    elif act==7:
        T = int(rng.integers(1, 6))
        try:
            b,i = er.sample_sequences(3, T if rng.random()<.8 else None, pad=bool(rng.integers(2)))
            late.append((i,b['serial']))
            b,i = er.sample_sequences(3, T, pad=True, burn_in=int(rng.integers(4)))
            late.append((i,b['serial']))
        except fastrl.memory.replay.ExperienceReplayException: pass # no episode is that long
    elif act==8 and late:
        i,s = late.pop(int(rng.integers(len(late))))
        er.update_td(torch.rand(*i.shape, 1), i, s)
        if len(late)>5: late.clear()
    elif act==9 and late:
        i,s = late[-1]
        er.put('action', i, torch.zeros(*i.shape, 1, dtype=torch.int64), s)
    elif act==10: er.ring.cut(gap=bool(rng.integers(2)))
    elif act==11 and rng.random()<.2: er.clear(); late.clear()
    elif act==12 and rng.random()<.3:
        a,b = sorted(rng.integers(0, len(er)+1, 2).tolist())
        if a<b:
            part = er[a:b]
            part.sample()
            if rng.random()<.5: part.extend(er)
    elif act==13 and rng.random()<.15:
        er.checkpoint(folder)
        res = ExperienceReplay.load(folder, env_restored=bool(rng.integers(2)), **({} if kind!=4 else dict(sampler=er.sampler)))
        if kind==4: res.sampler.walk = Walk()
        res.late_ones = late
        return res
    return er

def memories(rng, folder):
    for kind in range(5):
        er,wide = memory(rng, kind),int(rng.choice([1, 3, 200]))
        er.late_ones = []
        for _ in range(25):
            new = use(rng, er, folder/f'{kind}.{rng.integers(2**60)}', wide, kind)
            er = new if isinstance(new, ExperienceReplay) else er

def frames(rng, folder):
    for n_step in None,2: some_frames(rng, n_step, (Uniform, Uniform, Prioritized)[rng.integers(3)](seed=1))

def some_frames(rng, n_step, sampler):
    er = ExperienceReplay(bs=4, max_sz=int(rng.integers(5, 30)), warmup_sz=1, frame_stack=2, n_step=n_step, sampler=sampler)
    t = 0
    for i in range(40):
        over = rng.random()<.2
        er.add(state=np.full((3,3), t, np.uint8), action=i, reward=1., next_state=np.full((3,3), t+1, np.uint8),
               terminated=bool(over), truncated=False, env_id=0)
        t = 0 if over else t+1
        er.sample()
    er[1:3].sample()

def evenly(rng, folder):
    "Rows that come one after another from environments, drawn few and many at once, by us and by a sampler of one's own"
    source = Source([GymLoop('CartPole-v1', n_envs=int(rng.integers(1, 4)), seed=0)])
    er = ExperienceReplay(bs=4, max_sz=int(rng.integers(1, 60)), warmup_sz=1, sampler=Uniform(seed=1))
    for _ in range(5):
        er + source.take(int(rng.integers(1, 60)))
        er.sample(), er.sample(3000), er.sample(n_batches=3)
        er.ring.draw(Picky(Uniform(seed=2)), 5)
    er.save(folder/'saved')
    ExperienceReplay.load(folder/'saved').sample()

def rollouts(rng, folder):
    "All rows at once: their advantages, their episodes, each of them once an epoch; and batches that come back as they are"
    er = ExperienceReplay(bs=4, max_sz=int(rng.integers(1, 40)), warmup_sz=1, sampler=Prioritized(seed=1))
    for _ in range(6):
        er + batch(rng, int(rng.integers(1, er.max_sz+5)), 2, int(rng.integers(2))*2)
        er.gae(torch.rand(len(er)), torch.rand(len(er)))
        er.episode_numbers()
        for T in (None, int(rng.integers(1, 6))): list(er.epoch(T=T))
        b,_ = er.sample()
        er.update_td(torch.rand(4), b)
        if rng.random()<.5: er + batch(rng, 3, 2, 0)
        er.update_td(torch.rand(4), b)

def vectors(rng, folder):
    "Vectors of environments of some sizes, that end, are reset by hand, and lose what they showed"
    er,shown = ExperienceReplay(bs=4, max_sz=int(rng.integers(1, 60)), warmup_sz=1),{}
    for _ in range(20):
        n,mode = int(rng.integers(1, 6)),('next_step','disabled')[rng.integers(2)]
        obs = shown.get(n, np.zeros((n, 2), 'f4'))
        if rng.random()<.3: obs = obs+(rng.random((n, 1))<.3).astype('f4')
        shown[n],(over,cut) = obs+1,rng.random((2, n))<.2
        er.add_vector(obs, np.zeros(n, int), shown[n], np.ones(n), over, cut, {}, autoreset=mode)
    er.sample()

class Picky:
    def __init__(self, sampler): self.sampler = sampler
    def draw(self, ring, bs): return self.sampler.draw(ring, bs)

def sequences(rng, folder):
    "Drawn by priority, learnt from, and some of them late"
    T,pad,beside = int(rng.integers(1, 6)),bool(rng.integers(2)),int(rng.integers(4))
    er = ExperienceReplay(bs=4, max_sz=int(rng.integers(T+1, 60)), warmup_sz=1, sampler=Prioritized(seed=1))
    for _ in range(15):
        er + batch(rng, int(rng.integers(1, er.max_sz//2+3)), 2, 1, envs=int(rng.integers(1, 3)))
        for _ in range(int(rng.integers(3))):
            try: b,i = er.sample_sequences(3, T, pad=pad, burn_in=beside)
            except fastrl.memory.replay.ExperienceReplayException: break # no episode is that long
            i,s = i[:,beside:],b['serial'][:,beside:]
            if rng.random()<.3: er + batch(rng, 3, 2, 1)
            er.update_td(torch.rand(3, T), i, s)
            if rng.random()<.3: er.update_td(torch.rand(3, T), i)

def trees(rng, folder):
    t = SumTree(n := int(rng.integers(1, 300)))
    for _ in range(10):
        k = int(rng.integers(0, 2*n))
        t.update(rng.integers(0, n, k), rng.random(k)*(rng.random(k)<.5))
        t.update_td(rng.integers(0, n, k), rng.random(k), .6, 1e-6)
        first = int(rng.integers(0, 5*n))
        t.renew(first, first+int(rng.integers(1, 2*n+1)), torch.randn(n, 1) if rng.random()<.5 else None)
        t.find(rng.random(9)*t.total*.999)
        t.throw(3, int(rng.integers(2**40)), int(rng.integers(1, 99)), [.4], 0.)
        t.throw_rows(3, int(rng.integers(2**40)), int(rng.integers(1, 99)), [.4], 0., np.zeros((n, 3), np.int64), (n,n,0,first+n))
        t.draw(torch.rand(9, dtype=torch.float64), .5)

def walks(rng, folder):
    r = Ring(None if rng.random()<.3 else int(rng.integers(2, 30)))
    w,gen = Walk(),torch.Generator().manual_seed(int(rng.integers(99)))
    for _ in range(6):
        r.extend(batch(rng, int(rng.integers(1, 9)), 2, 0))
        for T,pad in ((1, False), (3, True)): w.draw_runs(r, 4, T, pad, gen)
        w.fold(r, torch.randint(len(r), (5,), generator=gen), int(rng.integers(1, 9)), .9)
        try: Runs(w, gen).draw(r, 3)
        except ValueError: pass # no episode is stored whole
        r.draw(Runs(w, gen, 2, True, 2), 4)

def episodes(rng, folder):
    evictor = ScoreEvictor(lambda e: float(e['obs'].sum())) if rng.random()<.5 else None
    ds = RingBufferDataset(int(rng.integers(12, 60)), evictor=evictor)
    for _ in range(15):
        n = int(rng.integers(1, 12))
        ds.add_episode(dict(obs=torch.rand(n, 2), image=torch.zeros(n, 3, 3, dtype=torch.uint8)))
    for T,pad in ((None, False), (2, False), (int(rng.integers(3, 30)), True)):
        for by in ('transition','episode'):
            loader = iter(ds.get_loader(4, T, pad=pad, seed=0, by=by, chunk_size=2))
            for _ in range(2): next(loader)

def pickles(rng, folder):
    "Files that ROSE could have written, and what is left of them after a few bytes were changed"
    from fastrl.memory.unpickle import _compiled_look, _in_python
    bank = ExperienceBank()
    for i in range(30): bank.add(create_experience(rng.random(3), int(rng.integers(3)), 1., rng.random(3), False, dict(a=[1, (2,), 'x'])))
    raw = bytearray(Path(bank.save(folder, 'bank.pkl')).read_bytes())
    raw += pickle.dumps([rng.random(2).tolist(), {'a':{'b':()}}, b'x'*300], protocol=int(rng.integers(2, 5)))
    for _ in range(300):
        a = bytearray(raw[:rng.integers(len(raw)+1)] if rng.random()<.3 else raw[rng.integers(len(raw)):] if rng.random()<.2 else raw)
        for _ in range(rng.integers(0, 9)):
            if a: a[rng.integers(min(len(a), 400) if rng.random()<.5 else len(a))] = rng.integers(256)
        _compiled_look(np.frombuffer(bytes(a), np.uint8), *_in_python)

# %%
def checked():
    "Is an index out of bounds an error here?"
    @numba.njit
    def past(a, i): return a[i]
    found = 0
    for i in (3, -4, np.uint64(3), np.uint64(2**63)):
        try: past(np.zeros(3), i)
        except IndexError: found += 1
    return found==4

if __name__=='__main__':
    seed,secs = int(sys.argv[1]),float(sys.argv[2])
    warnings.simplefilter('ignore')
    if not checked(): sys.exit('indices out of bounds are no errors here: set NUMBA_BOUNDSCHECK=1, and a NUMBA_CACHE_DIR')
    found,rounds,until = kernels(),0,None
    while until is None or time.monotonic()<until:
        for f in (memories, frames, evenly, rollouts, vectors, sequences, trees, walks, episodes, pickles):
            with tempfile.TemporaryDirectory() as d: f(np.random.default_rng([seed, rounds]), Path(d))
        rounds += 1
        until = until or time.monotonic()+secs # compiling does not count
    missing = {*found}-ran(found)
    print(f'{rounds} rounds, {len(found)-len(missing)} of {len(found)} kernels; missing {sorted(missing)}')
