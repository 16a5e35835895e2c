"Writing rows: one by one, 1,000 at once, and a whole memory full of them"
import numpy as np, torch
from . import stores
from .measure import Case
from .rows import make_rows

def one(n=1000, capacity=100_000, peers=[stores.Fastrl, *stores.peers]):
    rows = make_rows('small', n)
    return stores.open_all([stores.RingOnly, *peers], make_rows('small', 8), capacity, 1, lambda s: s.one_by_one(rows))

def many(n=1000, capacity=100_000, peers=[*stores.peers, stores.SB3Vector], as_tensors=False):
    full,rows = make_rows('small', capacity),make_rows('small', n)
    def do(s):
        if not as_tensors: return s.at_once(rows)
        ts = {k: torch.from_numpy(a) for k,a in rows.items()}
        if isinstance(s, (stores.RingOnly, stores.Torchrl)): return s.at_once(ts)
        return lambda: s.at_once({k: t.numpy() for k,t in ts.items()})()
    return stores.open_all([stores.RingOnly, *peers], full, capacity, 1, do)

def full(n=100_000, at_once=1000, peers=[stores.Cpprb]):
    "A new memory is made and filled; what was filled before has given its pages back"
    batches = [make_rows('wide', at_once, seed) for seed in range(4)]
    def fill(S):
        s = S(batches[0], n, 1)
        for i in range(1, n//at_once): s.at_once(batches[i%4])()
        return s
    stores_of = {S.name: S for S in [stores.Fastrl, stores.RingOnly, *peers]}
    return {k: lambda S=S: fill(S) for k,S in stores_of.items()} | {'NumPy arrays': lambda: fill_arrays(batches, n)}

def fill_arrays(batches, n):
    "What no store does without: columns of zeros, and rows copied into them"
    cols,k = {k: np.zeros((n,*a.shape[1:]), a.dtype) for k,a in batches[0].items()},len(batches[0]['reward'])
    for i in range(n//k):
        for c,a in batches[i%4].items(): cols[c][i*k:i*k+k] = a

toy = dict(n=10, capacity=100, peers=[])
cases = [
    Case('Add one row', one, goal=2, per=1000, toy=toy, beside=(stores.Fastrl.name,),
         note='`Ring.add(**row)`, checks and lock included; "fastrl" is `ExperienceReplay.add`, which stores one more column'),
    Case('Add 1,000 rows, NumPy arrays', many, goal=1, toy=toy, beside=(stores.SB3Vector.name,),
         note='`Ring.extend(batch)`; "SB3 with 1,000 envs" is a buffer made for 1,000 environments, which takes exactly one row of each at a time'),
    Case('Add 1,000 rows, torch tensors', lambda **kw: many(as_tensors=True, **kw), goal=1, toy=toy, beside=(stores.SB3Vector.name,)),
    Case('Fill a new memory with 100,000 Humanoid rows', full, goal=.833, unit='ms', turns=15, toy=dict(n=40, at_once=10, peers=[]),
         beside=(stores.RingOnly.name,'NumPy arrays'),
         note='1,000 at once, 3 kB a row; pages that another memory of this process had before, since the first touch of a page is the '
              "machine's time, not a library's"),
]
