"Writing rows: one by one, and 1,000 at once"
import torch
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

toy = dict(n=10, capacity=100, peers=[])
cases = [
    Case('Add one row', one, goal=2, per=1000, toy=toy, beside=(stores.Fastrl.name,),
         note='`Ring.add(**row)`, checks and lock included; "fastrl" is `ExperienceReplay.add`, which stores one more column'),
    Case('Add 1,000 rows, NumPy arrays', many, goal=1, toy=toy, beside=(stores.SB3Vector.name,),
         note='`Ring.extend(batch)`; "SB3 with 1,000 envs" is a buffer made for 1,000 environments, which takes exactly one row of each at a time'),
    Case('Add 1,000 rows, torch tensors', lambda **kw: many(as_tensors=True, **kw), goal=1, toy=toy, beside=(stores.SB3Vector.name,)),
]
