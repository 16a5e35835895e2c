"Uniform samples: rows drawn with replacement, five columns of torch tensors"
import torch
from . import stores
from .measure import Case
from .rows import make_rows, names

def sampler(bs):
    def do(s):
        stores.check(s.sample(), bs)
        return s.sample
    return do

def sample(kind, n, bs, peers=stores.peers):
    rows = make_rows(kind, n)
    ours = stores.Fastrl(rows, n, bs)
    ring,gen = ours.er.ring,torch.Generator().manual_seed(0)
    return {ours.name: sampler(bs)(ours), **stores.open_all(peers, rows, n, bs, sampler(bs)),
            stores.RingOnly.name: lambda: ring.gather(torch.randint(n, (bs,), generator=gen))}

def dozen(s, bs, k):
    "Several batches one after the other: ours at once, those of the others as one large draw that is cut up"
    if isinstance(s, stores.Fastrl):
        def f():
            for _ in s.er.sample(bs, n_batches=k): pass
        return f
    assert len(s.sample()['state'])==bs*k
    def f():
        b = s.sample()
        for _ in zip(*(b[o].split(bs) for o in names)): pass
    return f

def dozens(n=10**6, bs=256, k=16, peers=stores.peers):
    rows = make_rows('small', n)
    ours = stores.Fastrl(rows, n, bs)
    return {ours.name: dozen(ours, bs, k), **stores.open_all(peers, rows, n, bs*k, lambda s: dozen(s, bs, k)), 'one by one': lambda: [ours.sample() for _ in range(k)]}

def case(name, goal, kind, n, bs, note):
    return Case(name, lambda n=n, **kw: sample(kind, n, bs, **kw), goal=goal, beside=(stores.RingOnly.name,), note=note, toy=dict(n=64, peers=[]))

cases = [
    case('Sample 256 of 10⁶ CartPole rows', 2, 'small', 10**6, 256, '`ExperienceReplay.sample()`, which brings more columns than the five; "fastrl Ring" is the store alone, `ring.gather` of random row numbers, here and below'),
    Case('Sample 16 batches of 256 of 10⁶ CartPole rows, each', dozens, goal=1, per=16, beside=('one by one',), toy=dict(n=64, bs=4, peers=[]),
         note='`sample(n_batches=16)`; the others have none, and draw 4,096 rows, which are cut into 16'),
    case('Sample 256 of 2·10⁵ rows of 376 floats', 1, 'wide', 2*10**5, 256, 'state and next state of 376 floats, action of 17'),
    case('Sample 32 of 2·10⁴ rows of 4×84×84 frames', 1, 'frames', 2*10**4, 32, 'state and next state'),
]
