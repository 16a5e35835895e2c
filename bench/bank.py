"Banks: 50 files merged, and batches from what came of them, beside the way of ROSE: a pickle of objects, a deque that is copied for each batch"
import pickle, random
from collections import deque
from pathlib import Path
from fastrl.memory.bank import ExperienceBank, create_experience, merge_banks
from .disk import folder
from .measure import Case
from .rows import make_rows

def rows_of(n, seed): return make_rows('small', n, seed)
def experiences(rows): return [create_experience(s, int(a), float(r), o, bool(d)) for s,a,r,o,d in zip(*(rows[k] for k in ('state','action','reward','next_state','done')))]

class Pickles:
    "As ROSE saves, loads and merges, without the class around it"
    def __init__(self, d, banks, n):
        self.files,raw = [Path(d)/f'{i}.pkl' for i in range(banks)],pickle.dumps(experiences(rows_of(n, 0)))
        for o in self.files: o.write_bytes(raw)
    def merge(self):
        res = deque()
        for o in self.files: res.extend(pickle.loads(o.read_bytes()))
        return res

def merging(banks=50, n=20_000):
    d = folder()
    theirs,ours = Pickles(d.name, banks, n),[]
    for i in range(banks):
        bank = ExperienceBank()
        bank.add_batch(rows_of(n, i))
        ours.append(bank.save(d.name, f'{i:03d}.safetensors'))
    def merge(d=d): assert len(merge_banks(ours))==banks*n # as long as this lives the folder does
    def merge_objects(): assert len(theirs.merge())==banks*n
    return {'fastrl':merge, 'pickles of objects':merge_objects}

def sampling(n=10**6, bs=256):
    bank,rng = ExperienceBank(seed=0),random.Random(0)
    bank.add_batch(rows_of(n, 0))
    objects = deque(experiences(rows_of(n, 0)))
    return {'fastrl':lambda: bank.sample_batch(bs), 'a list of a deque':lambda: rng.choices(list(objects), k=bs), 'fastrl, a list of objects':lambda: bank.sample(bs)}

cases = [
    Case('Banks: merge 50 files of 20,000 CartPole experiences', merging, goal=20, turns=5, unit='ms', toy=dict(banks=3, n=50), note='`.safetensors` files with checksums, against pickles that are loaded and appended'),
    Case('Banks: sample 256 of 10⁶ experiences', sampling, goal=100, beside=('fastrl, a list of objects',), toy=dict(n=200, bs=8), note='as tensors, against objects from a copy of the deque; `sample` gives objects, too'),
]
