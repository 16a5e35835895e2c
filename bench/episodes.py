"Sequences of whole episodes: from memory, from files by several workers, and frames beside a plain copy"

from collections import deque
import numpy as np, torch
from fastrl.memory.episodes import IndividualFileDataset, RingBufferDataset
from . import stores
from .disk import folder
from .measure import Case

def episodes(n, length=200, obs=lambda n: torch.rand(n, 64)):
    "Episodes of `length` steps, `n` steps in all, whose observations differ from step to step"
    for i in range(0, n, length):
        m = min(length, n-i)
        yield dict(obs=obs(m), action=torch.rand(m, 4), reward=torch.arange(i, i+m).float(), terminated=torch.arange(m)==m-1)

class Fastrl:
    name,package = 'fastrl','fastrl'
    def __init__(self, n, B, T, **kwargs):
        self.ds = RingBufferDataset(n)
        for o in episodes(n, **kwargs): self.ds.add_episode(o)
        self.batches = iter(self.ds.get_loader(B, T, seed=0))
    def sample(self): return next(self.batches)

class Published:
    "The steps that maltemosbach/buffers goes through for a batch, without its `DataLoader` around them"
    name,package = 'its steps','torch'
    def __init__(self, n, B, T):
        self.n,self.B,self.T,self.bounds,self.lengths,at = n,B,T,deque(),[],0
        for o in episodes(n):
            m = len(o['reward'])
            if not at: self.ring = {k: torch.empty(n, *v.shape[1:], dtype=v.dtype) for k,v in o.items()}
            for k,v in o.items(): self.ring[k][at:at+m] = v
            self.bounds.append((at, at+m))
            self.lengths.append(m)
            at += m
    def sample(self):
        fit = torch.tensor([i for i in range(len(self.lengths)) if self.lengths[i]>=self.T])
        bounds = torch.tensor([self.bounds[i] for i in fit[torch.randint(len(fit), (self.B,))]])
        most = torch.remainder(bounds[:,1]-bounds[:,0], self.n)-self.T
        first = bounds[:,0]+(most*torch.rand(self.B)).long()
        idxs = torch.remainder(first[:,None]+torch.arange(self.T), self.n)
        return {k: v[idxs] for k,v in self.ring.items()}

class TorchrlSlices:
    name,package = 'torchrl','torchrl'
    def __init__(self, n, B, T):
        from tensordict import TensorDict
        from torchrl.data import LazyTensorStorage, ReplayBuffer, SliceSampler
        self.rb = ReplayBuffer(storage=LazyTensorStorage(n), batch_size=B*T, sampler=SliceSampler(num_slices=B, traj_key='episode', cache_values=True))
        for i,o in enumerate(episodes(n)): self.rb.extend(TensorDict({**o, 'episode':torch.full((len(o['reward']),), i)}, [len(o['reward'])]))
    def sample(self): return self.rb.sample()

def sequences(n=10**6, B=16, T=64, peers=(Published, TorchrlSlices)):
    def checked(s):
        r = s.sample()['reward'].reshape(B, T)
        assert bool((r==r[:,:1]+torch.arange(T)).all()), 'the steps of a sequence do not follow one another'
        return s.sample
    fs = {}
    for s in (Fastrl, *peers):
        try: fs[s.name] = checked(s(n, B, T))
        except Exception as e: fs[s.name] = stores.reason(e)
    return fs

def by_workers(n=200_000, B=512, T=16, batches=60, workers=(2,1,0)):
    "So many batches, from files that are in the page cache"
    d = folder()
    ds = IndividualFileDataset(n, d.name)
    for o in episodes(n): ds.add_episode(o)
    def run(loader):
        it = iter(loader)
        def f(d=d): # as long as one of these lives the folder does
            for _ in range(batches): next(it)
        return f
    names = {2:'fastrl', 1:'one worker', 0:'no worker'}
    return {names[w]: run(ds.get_loader(B, T, num_workers=w, seed=0, context='fork')) for w in workers}

def frames(n=50_000, B=16, T=64):
    def obs(m): return torch.randint(255, (m,64,64,3), dtype=torch.uint8)
    ours = Fastrl(n, B, T, obs=obs)
    rows,size = ours.ds.ring['obs'].clone(),B*T
    rng = np.random.default_rng(0)
    def copy():
        i = rng.integers(n-size+1)
        return rows[i:i+size].clone()
    return {'fastrl':ours.sample, 'plain copy of as many frames in a row':copy}

cases = [
    Case('Episodes: 16 sequences of 64 steps from 10⁶ steps of 64 floats', sequences, goal=10, beside=('torchrl',), toy=dict(n=1000, B=2, T=4, peers=(Published,)),
         note='episodes of 200 steps; "its steps" are what maltemosbach/buffers does for a batch (for each one it lists anew the episodes that are long enough, and their boundaries), without its `DataLoader`, while ours is included; torchrl draws slices with its cache on'),
    Case('Episodes in files: 60 batches of 512×16 steps, two workers', by_workers, goal=1.6, turns=7, unit='ms', beside=('no worker',), toy=dict(n=1000, B=2, T=4, batches=2, workers=(2,1)),
         note='episodes of 200 steps of 64 floats, one file each, in the page cache; against one worker; without workers, a batch of 16×64 steps takes 0.35 ms, which they cannot beat'),
    Case('Episodes: 16 sequences of 64 frames of 64×64×3', frames, goal=1.25, growth=True, toy=dict(n=500, B=2, T=4),
         note='12.6 MB, from 16 places, against a copy of as many bytes from one place to new memory'),
]
