"Stores with many fields, written by many threads, and read by many processes"
import multiprocessing as mp, threading, time
from concurrent.futures import ThreadPoolExecutor
import numpy as np, torch
from fastrl.memory.replay import ExperienceReplay
from . import priority, stores
from .rows import make_rows
from .turns import more, resident

# %% Uniform and prioritized draws of CartPole rows
uniform = {p.name: p for p in (stores.Fastrl, *stores.peers)}
by_priority = {p.name: p for p in (priority.Fastrl_, priority.Cpprb, priority.Tianshou, priority.Torchrl)}

def draw(store, n, bs):
    s = uniform[store](make_rows('small', n), n, bs)
    stores.check(s.sample(), bs)
    return s.sample

def turn(store, n, bs):
    s,td = by_priority[store](make_rows('small', n), n, bs),torch.rand(bs, 1)
    stores.check(s.turn(td), bs)
    return lambda: s.turn(td)

# %% Rows of many fields
def make_wide(
    k:int, # How many: 3, or an odd number from 5 on
    n:int, # Rows
): # -> {column: array}
    "An action, a reward, whether it is done, and for the rest states of four floats with their next states, `state`+1"
    rng,m = np.random.default_rng(0),(k-3)//2
    rows = dict(action=rng.integers(0, 2, n), reward=rng.random(n, 'float32'))
    if not m: return {**rows, 's0': rng.random((n,4), 'float32')}
    for i in range(m): rows[f's{i}'] = rng.integers(0, 255, (n,4)).astype('float32')
    return {**rows, **{f'n{i}': rows[f's{i}']+1 for i in range(m)}, 'done':rng.random(n)<.01}

def together(b, k):
    "The columns of a batch belong together, all `k` of them"
    assert all(isinstance(o, torch.Tensor) for o in b.values()) and len(b)>=k, f'not {k} tensors: {b.keys()}'
    assert all(bool((b[f'n{i}']==b[f's{i}']+1).all()) for i in range((k-3)//2)), 'the columns of a batch come from different rows'

class TorchrlWide(stores.Torchrl):
    def sample(self): return dict(self.rb.sample().items())

class TianshouWide(stores.Tianshou):
    "States in a dict, which is how it takes several of them"
    def __init__(self, rows, capacity, bs):
        from tianshou.data import Batch, ReplayBuffer
        if 'done' not in rows: raise ValueError('its rows have at least obs, act, rew, terminated, truncated, done, obs_next')
        self.Batch,self.ReplayBuffer,self.bs,self.n = Batch,ReplayBuffer,bs,sum(k[0]=='s' for k in rows)
        self.rb = self.of({k: a.copy() for k,a in rows.items()})
    def part(self, rows, c): return self.Batch({f's{i}': rows[f'{c}{i}'] for i in range(self.n)})
    def of(self, rows): return super().of({**rows, 'state':self.part(rows, 's'), 'next_state':self.part(rows, 'n')})
    def sample(self):
        b,_ = self.rb.sample(self.bs)
        res = dict(action=b.act, reward=b.rew, done=b.terminated)
        for i in range(self.n): res[f's{i}'],res[f'n{i}'] = b.obs[f's{i}'],b.obs_next[f's{i}']
        return {k: torch.from_numpy(a) for k,a in res.items()}

class FastrlWide(stores.Fastrl):
    def at_once(self, rows): return lambda: self.er + rows

class SB3Wide(stores.SB3):
    "`DictReplayBuffer`"
    def __init__(self, rows, capacity, bs):
        from gymnasium.spaces import Box, Dict, Discrete
        from stable_baselines3.common.buffers import DictReplayBuffer
        if 'done' not in rows: raise ValueError('its rows have at least five fields')
        self.n,self.bs = sum(k[0]=='s' for k in rows),bs
        self.rb = DictReplayBuffer(capacity, Dict({f's{i}': Box(0, 255, (4,)) for i in range(self.n)}), Discrete(2), device='cpu', handle_timeout_termination=False)
        for i in range(self.n):
            self.rb.observations[f's{i}'][:,0] = rows[f's{i}']
            self.rb.next_observations[f's{i}'][:,0] = rows[f'n{i}']
        for to,k in ((self.rb.actions,'action'),(self.rb.rewards,'reward'),(self.rb.dones,'done')): to[:,0] = rows[k].reshape(-1, *to.shape[2:])
        self.rb.full = True
    def sample(self):
        b = self.rb.sample(self.bs)
        res = dict(action=b.actions, reward=b.rewards, done=b.dones)
        for i in range(self.n): res[f's{i}'],res[f'n{i}'] = b.observations[f's{i}'],b.next_observations[f's{i}']
        return res
    def at_once(self, rows): # its `extend` takes no dicts
        def state(c, i): return {f's{j}': rows[f'{c}{j}'][i:i+1] for j in range(self.n)}
        steps = [(state('s', i), state('n', i), *(rows[k][i:i+1] for k in ('action','reward','done')), [{}]) for i in range(len(rows['reward']))]
        def f():
            for o in steps: self.rb.add(*o)
        return f

wide = dict(zip(uniform, (FastrlWide, stores.Cpprb, TianshouWide, SB3Wide, TorchrlWide)))

def draw_wide(store, k, n, bs):
    s = wide[store](make_wide(k, n), n, bs)
    together(s.sample(), k)
    return s.sample

def add_wide(store, k, n, bs):
    rows = make_wide(k, n)
    return wide[store](rows, n, bs).at_once({o: a[:bs].copy() for o,a in rows.items()})

# %% Threads that write
writable = {**uniform, 'fastrl':FastrlWide}
own_lock = 'fastrl','torchrl' # the others promise nothing about threads: a lock of the user's

def write(store, threads, n, bs, times):
    "Each thread adds a batch, `times` times; or single rows, if `bs` is 1"
    rows = make_rows('small', n)
    s,batch,lock = writable[store](rows, n, bs),stores.fields(rows, slice(bs)),threading.Lock()
    del rows
    how = s.one_by_one if bs==1 else s.at_once
    adds = [how({k: a.copy() for k,a in batch.items()}) for _ in range(threads)]
    def locked(add):
        with lock: add()
    def one(add):
        for _ in range(times): add() if store in own_lock else locked(add)
    pool = ThreadPoolExecutor(threads)
    def f(): list(pool.map(one, adds))
    return f

# %% Processes that read
class SharedFastrl:
    package = 'fastrl'
    def __init__(self, rows, capacity, bs):
        self.er = ExperienceReplay(bs, max_sz=capacity, warmup_sz=1, shared=True, schema={k: (a.shape[1:], torch.from_numpy(a[:1]).dtype) for k,a in rows.items()})
        for i in range(0, capacity, 4096): self.add(stores.fields(rows, slice(i, i+4096)))
    def add(self, rows): self.er + rows
    def sample(self): return self.er.sample()[0]

class SharedCpprb(stores.Cpprb):
    "`MPReplayBuffer`, which is made for one process that samples, and several that add"
    def __init__(self, rows, capacity, bs):
        from cpprb import MPReplayBuffer
        self.rb,self.bs = MPReplayBuffer(capacity, {k: dict(shape=a.shape[1:] or 1, dtype=a.dtype) for k,a in rows.items()}, ctx=context, backend='SharedMemory'),bs
        for i in range(0, capacity, 4096): self.add(stores.fields(rows, slice(i, i+4096)))
    def add(self, rows): self.rb.add(**rows)

class SharedTorchrl(stores.Torchrl):
    def __init__(self, rows, capacity, bs):
        from tensordict import TensorDict
        from torchrl.data import LazyMemmapStorage, ReplayBuffer
        self.TensorDict,self.rb = TensorDict,ReplayBuffer(storage=LazyMemmapStorage(capacity), batch_size=bs, shared=True)
        for i in range(0, capacity, 4096): self.add(stores.fields(rows, slice(i, i+4096)))
    def add(self, rows): self.at_once(rows)()

context = mp.get_context('spawn')
shareable = dict(fastrl=SharedFastrl, cpprb=SharedCpprb, torchrl=SharedTorchrl)

def reader(s, bs, pipe):
    "Draw for as many seconds as asked, and say how often"
    torch.set_num_threads(1)
    stores.check(s.sample(), bs)
    before = resident()
    pipe.send(None)
    try:
        while (secs := pipe.recv()) is not None:
            if not secs: pipe.send(more(before)[0]); continue
            end,k = time.perf_counter()+secs,0
            while time.perf_counter()<end: s.sample(); k += 1
            pipe.send(k)
    except EOFError: pass

class Readers:
    "A call draws batches in all processes at once; while it does, batches are added at a steady pace if there is a `writer`"
    def __init__(self, store, processes, n, bs, secs, writer):
        if store=='cpprb' and processes>1: raise ValueError('its `MPReplayBuffer` is documented for one process that samples')
        rows = make_rows('small', n)
        self.s,self.batch,self.secs,self.writer = shareable[store](rows, n, bs),{k: a[:64].copy() for k,a in rows.items()},secs,writer
        del rows
        self.pipes,self.ps = [],[]
        for _ in range(processes):
            ours,theirs = context.Pipe()
            self.pipes.append(ours)
            self.ps.append(context.Process(target=reader, args=(self.s, bs, theirs), daemon=True))
            self.ps[-1].start()
            theirs.close()
        for o in self.pipes: o.recv()

    def ask(self, what):
        for o in self.pipes: o.send(what)
    def __call__(self): self.clocked(1)
    def clocked(self, k): return sum(self.once() for _ in range(k))
    def calls_in(self, secs, warm): return 1
    def once(self):
        "Nanoseconds for a batch, of all processes together"
        start = time.perf_counter()
        self.ask(self.secs)
        if self.writer:
            for i in range(int(self.secs*100)): # 6,400 rows a second
                self.s.add(self.batch)
                time.sleep(max(0, start+(i+1)/100-time.perf_counter()))
        drawn = sum(o.recv() for o in self.pipes)
        return (time.perf_counter()-start)*1e9/max(1, drawn)

    @property
    def nbytes(self):
        "What the readers keep for themselves; one that gave back a page keeps nothing"
        self.ask(0)
        return sum(max(0, o.recv()) for o in self.pipes)
    def close(self):
        self.ask(None)
        for p in self.ps: p.join()
