"Does a sample take longer when more is stored? And what does the machine take for one random read a row?"
import numpy as np, torch
from . import stores
from .measure import Case
from .rows import make_rows

class Tiled(stores.Fastrl):
    "`rows`, over and over"
    def __init__(self, rows, capacity, bs):
        super().__init__(rows, capacity, bs)
        while len(self.er)<capacity: self.er + rows

def replay(n):
    return Tiled(make_rows('small', min(n, 100_000)), n, 256).sample

def read(n, words=7):
    "Numbers are drawn, and the first word of each of these rows is read: less than a sample can do"
    rows,rng = np.ones(n*words, np.int64),torch.Generator().manual_seed(0)
    return lambda: rows.take(words*torch.randint(n, (256,), generator=rng).numpy())

def grown(few=10**5, many=10**7, peers=None):
    return {'fastrl': replay(many), 'at 10⁵': replay(few), 'one read a row': read(many), 'one read a row at 10⁵': read(few)}

cases = [Case('Sample 256 of 10⁷ CartPole rows, against 10⁵', grown, goal=1.5, growth=True, beside=('one read a row','one read a row at 10⁵'),
              toy=dict(few=100, many=1000), note='how much longer it takes; "one read a row" draws 256 numbers and reads 8 bytes of each of these rows, which shows what the caches of the machine cost')]
