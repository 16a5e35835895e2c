"""The library and its peers, each used as its documentation says, behind one face

A store is made from the rows it shall hold. `sample()` gives the five columns of a batch as torch tensors. `one_by_one(rows)` and
`at_once(rows)` prepare what can be prepared outside of a loop, and give the callable that is timed.
"""
import importlib, importlib.metadata
import numpy as np, torch
from fastrl.memory.replay import ExperienceReplay
from fastrl.memory.ring import Ring
from .measure import reason
from .rows import names

def fields(rows, i): return {k: a[i] for k,a in rows.items()}
def steps_of(rows):
    "Row by row, as an environment gives it: arrays and NumPy ints of its spaces, a Python float and a Python bool"
    return [(s, a, r.item(), n, d.item()) for s,a,r,n,d in zip(*(rows[k] for k in names))]
def tensors(arrays): return {k: torch.from_numpy(a) for k,a in zip(names, arrays)}

class Fastrl:
    "The whole way: is it warm, who is drawn, the batch and its row numbers. It has a column more than the others, `td_error`"
    name,package = 'fastrl','fastrl'
    def __init__(self, rows, capacity, bs):
        self.er = ExperienceReplay(bs, max_sz=capacity, warmup_sz=1, seed=0)
        for i in range(0, len(rows['reward']), 4096): self.er + fields(rows, slice(i, i+4096))
    def sample(self): return self.er.sample()[0]
    def one_by_one(self, rows):
        steps = steps_of(rows)
        def f():
            for s,a,r,n,d in steps: self.er.add(state=s, action=a, reward=r, next_state=n, done=d)
        return f
    def at_once(self, rows): return lambda: self.er + rows

class RingOnly:
    "Just the store"
    name,package = 'fastrl Ring','fastrl'
    def __init__(self, rows, capacity, bs):
        self.ring = Ring(capacity)
        for i in range(0, len(rows['reward']), 4096): self.ring.extend(fields(rows, slice(i, i+4096)))

    def one_by_one(self, rows):
        steps = steps_of(rows)
        def f():
            for s,a,r,n,d in steps: self.ring.add(state=s, action=a, reward=r, next_state=n, done=d)
        return f
    def at_once(self, rows): return lambda: self.ring.extend(rows)

class Cpprb:
    name,package = 'cpprb','cpprb'
    def __init__(self, rows, capacity, bs):
        from cpprb import ReplayBuffer
        self.rb,self.bs = ReplayBuffer(capacity, {k: dict(shape=a.shape[1:] or 1, dtype=a.dtype) for k,a in rows.items()}),bs
        for i in range(0, len(rows['reward']), 4096): self.rb.add(**fields(rows, slice(i, i+4096)))

    def sample(self): return {k: torch.from_numpy(a) for k,a in self.rb.sample(self.bs).items()}
    def one_by_one(self, rows):
        steps = steps_of(rows)
        def f():
            for s,a,r,n,d in steps: self.rb.add(state=s, action=a, reward=r, next_state=n, done=d)
        return f
    def at_once(self, rows): return lambda: self.rb.add(**rows)

class Tianshou:
    name,package = 'tianshou','tianshou'
    def __init__(self, rows, capacity, bs):
        from tianshou.data import Batch, ReplayBuffer
        self.Batch,self.ReplayBuffer,self.bs = Batch,ReplayBuffer,bs
        n = len(rows['reward'])
        self.rb = ReplayBuffer(capacity) if n<capacity else self.of({k: a.copy() for k,a in rows.items()})

    def of(self, rows):
        "`from_data`, the way for rows that come together"
        no = np.zeros(len(rows['reward']), bool)
        return self.ReplayBuffer.from_data(rows['state'], rows['action'], rows['reward'], rows['done'], no, rows['done'], rows['next_state'])

    def sample(self): # converting the five that are asked for is quicker than `Batch.to_torch_`, which converts them all
        b,_ = self.rb.sample(self.bs)
        return tensors((b.obs, b.act, b.rew, b.obs_next, b.terminated))

    def one_by_one(self, rows):
        steps = steps_of(rows)
        def f():
            for s,a,r,n,d in steps: self.rb.add(self.Batch(obs=s, act=a, rew=r, terminated=d, truncated=False, obs_next=n))
        f() # its first row decides what it stores
        return f
    def at_once(self, rows): return lambda: self.rb.update(self.of(rows))

class SB3:
    name,package = 'SB3','stable-baselines3'
    def __init__(self, rows, capacity, bs, n_envs=1):
        from gymnasium.spaces import Box, Discrete
        from stable_baselines3.common.buffers import ReplayBuffer
        s,a = rows['state'],rows['action']
        box = Box(0, 255, s.shape[1:], s.dtype.type)
        self.rb,self.bs = ReplayBuffer(capacity, box, Box(-1, 1, a.shape[1:]) if a.ndim>1 else Discrete(2), device='cpu', n_envs=n_envs,
                                       handle_timeout_termination=False),bs
        n = len(s)//n_envs
        for to,k in (('observations','state'),('next_observations','next_state'),('actions','action'),('rewards','reward'),('dones','done')):
            to = getattr(self.rb, to) # it takes rows one by one: these get there at once
            to[:n] = rows[k][:n*n_envs].reshape(n, *to.shape[1:])
        self.rb.pos,self.rb.full = n%self.rb.buffer_size,n==self.rb.buffer_size

    def sample(self):
        b = self.rb.sample(self.bs)
        return dict(state=b.observations, action=b.actions, reward=b.rewards, next_state=b.next_observations, done=b.dones)

    def one_by_one(self, rows): # in the shapes in which it keeps them, which saves it work
        cols = [rows[k] for k in ('state','next_state','action','reward','done')]
        steps = [(*(a[i:i+1] for a in cols), [{}]) for i in range(len(cols[0]))]
        def f():
            for s,n,a,r,d,infos in steps: self.rb.add(s, n, a, r, d, infos)
        return f

    def at_once(self, rows):
        cols,infos = [rows[k] for k in ('state','next_state','action','reward','done')],[[{}]]*len(rows['reward'])
        return lambda: self.rb.extend(*cols, infos)

class SB3Vector(SB3):
    "As many environments as rows: one write for all of them, and never any other number"
    name = 'SB3 with 1,000 envs'
    def __init__(self, rows, capacity, bs): super().__init__(rows, capacity, bs, n_envs=1000)
    def at_once(self, rows):
        cols,infos = [rows[k] for k in ('state','next_state','action','reward','done')],[{}]*len(rows['reward'])
        return lambda: self.rb.add(*cols, infos)

class Torchrl:
    "`ReplayBuffer` rather than `TensorDictReplayBuffer`, which adds a column and took 1.7 times as long"
    name,package,device = 'torchrl','torchrl','cpu'
    def __init__(self, rows, capacity, bs):
        import logging
        from tensordict import TensorDict
        from torchrl.data import LazyTensorStorage, ReplayBuffer
        logging.getLogger('torchrl').setLevel(logging.WARNING)
        self.TensorDict,self.rb = TensorDict,ReplayBuffer(storage=LazyTensorStorage(capacity, device=self.device), batch_size=bs)
        for i in range(0, len(rows['reward']), 4096): self.at_once(fields(rows, slice(i, i+4096)))()

    def sample(self): return self.rb.sample()
    def one_by_one(self, rows):
        steps = steps_of(rows)
        def f(): # `as_tensor` first: a TensorDict that is made from arrays takes twice as long
            for o in steps: self.rb.add(self.TensorDict({k: torch.as_tensor(v) for k,v in zip(names, o)}, batch_size=[]))
        return f
    def at_once(self, rows):
        return lambda: self.rb.extend(self.TensorDict({k: torch.as_tensor(v) for k,v in rows.items()}, batch_size=[len(rows['reward'])]))

peers = [Cpprb, Tianshou, SB3, Torchrl]

def versions():
    "{package: version} of the library, what it stands on, and the peers that are installed"
    res = {}
    for o in ('fastrl','torch','numpy', *(p.package for p in peers)):
        try: res[o] = importlib.metadata.version(o)
        except importlib.metadata.PackageNotFoundError: pass
    try: import torchrl._torchrl # noqa: F401
    except Exception:
        if 'torchrl' in res: res['torchrl'] += ' (without its compiled part, which is for another torch)'
    return res

def check(batch, bs):
    "The columns of `batch` are tensors of `bs` rows, and belong to the same rows"
    for k in names: assert isinstance(batch[k], torch.Tensor) and len(batch[k])==bs, f'`{k}` is no tensor of {bs} rows'
    assert bool((batch['next_state']==batch['state']+1).all()), 'the columns of a batch come from different rows'

def open_all(stores, rows, capacity, bs, do):
    "{name: what `do` makes of each store}, or why there is none"
    res = {}
    for S in stores:
        try: res[S.name] = do(S(rows, capacity, bs))
        except ModuleNotFoundError as e: res[S.name] = f'not installed ({e.name})' if e.name in (S.package, S.package.replace('-', '_')) else reason(e)
        except Exception as e: res[S.name] = reason(e)
    return res
