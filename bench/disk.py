"""Saving a memory and loading it again

Ours are through to the disk, with a checksum a file, and replace the state before in one step; `torch.save` is given an `fsync` and
a new name that is renamed over the old one, so that a crash costs it nothing either. The others are as their libraries write:
what they wrote may still be on its way to the disk when they return."""
import os, pickle, tempfile
from collections import deque
from pathlib import Path
import numpy as np, torch
from fastrl.memory.replay import ExperienceReplay
from . import stores
from .measure import Case, reason
from .rows import make_rows, names

tmp = Path(__file__).parent/'tmp'

def folder():
    tmp.mkdir(exist_ok=True)
    return tempfile.TemporaryDirectory(dir=tmp)

class Ours:
    def __init__(self, rows, d):
        n = len(rows['reward'])
        self.er,self.to = ExperienceReplay(32, max_sz=n, warmup_sz=1, seed=0),d/'fastrl'
        for i in range(0, n, 4096): self.er + stores.fields(rows, slice(i, i+4096))
    def save(self): self.er.save(self.to)
    def load(self): assert len(ExperienceReplay.load(self.to))==len(self.er)
    def map(self): assert len(ExperienceReplay.load(self.to, mapped=True))==len(self.er)

class TorchSave:
    def __init__(self, rows, d): self.rows,self.to = {k: torch.from_numpy(a) for k,a in rows.items()},d/'rows.pt'
    def save(self):
        with open(self.to.with_suffix('.new'), 'wb') as f:
            torch.save(self.rows, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(f.name, self.to)
    def load(self): assert len(torch.load(self.to)['reward'])==len(self.rows['reward'])

class Cpprb:
    def __init__(self, rows, d): self.rb,self.to,self.rows = stores.Cpprb(rows, len(rows['reward']), 32).rb,d/'cpprb.npz',rows
    def save(self): self.rb.save_transitions(self.to)
    def load(self):
        rb = stores.Cpprb({k: a[:1] for k,a in self.rows.items()}, len(self.rows['reward']), 32).rb
        rb.clear()
        rb.load_transitions(self.to)
        assert rb.get_stored_size()==len(self.rows['reward'])

class Tianshou:
    def __init__(self, rows, d): self.rb,self.to = stores.Tianshou(rows, len(rows['reward']), 32).rb,d/'tianshou.hdf5'
    def save(self): self.rb.save_hdf5(str(self.to))
    def load(self): assert len(type(self.rb).load_hdf5(str(self.to)))==len(self.rb)

class Pickle:
    "A tenth of the rows: a million take minutes"
    def __init__(self, rows, d): self.rows,self.to = deque(zip(*(rows[k][:len(rows[k])//10] for k in names))),d/'deque.pkl'
    def save(self):
        with open(self.to, 'wb') as f: pickle.dump(self.rows, f)
    def load(self):
        with open(self.to, 'rb') as f: assert len(pickle.load(f))==len(self.rows)

ways = {'fastrl':Ours, 'torch.save, fsync':TorchSave, 'cpprb':Cpprb, 'tianshou':Tianshou, 'pickle of a deque, a tenth of the rows':Pickle}

def do(what, kind, n, ways=ways):
    "{column: a callable that saves or loads}"
    rows,d,fs = make_rows(kind, n),folder(),{}
    size = sum(a.nbytes for a in rows.values())
    for c,way in ways.items():
        try:
            o = way(rows, Path(d.name))
            o.save()
            f = getattr(o, what)
            fs[c] = lambda f=f, d=d: f() # as long as one of them lives the folder does
            fs[c].before = lambda: np.ones(2*size, np.uint8) # a virtual machine has memory ready then, for whoever comes first
        except Exception as e: fs[c] = f'not installed ({e.name})' if isinstance(e, ModuleNotFoundError) else reason(e)
    if what=='load': fs['fastrl, mapped'] = lambda f=Ours.map, o=fs['fastrl'].__defaults__[0].__self__, d=d: f(o)
    return fs

def new_rows(kind, n, parts=100):
    "A checkpoint when a hundredth of the rows is new, and a whole one"
    rows,d = make_rows(kind, n),folder()
    ours = Ours(rows, Path(d.name))
    ours.er.checkpoint(ours.to.with_name('run'))
    def checkpoint(d=d): ours.er.checkpoint(ours.to.with_name('run'))
    checkpoint.before = lambda: ours.er + stores.fields(rows, slice(0, n//parts))
    return {'fastrl':checkpoint, 'a whole save':ours.save}

toy = dict(n=200, ways={k: ways[k] for k in ('fastrl','torch.save, fsync','pickle of a deque, a tenth of the rows')})
def cases_of(kind, n, what, turns, load=None):
    size = f'{n:,} {what}'
    return [Case(f'Save {size}', lambda **kw: do('save', kind, **{'n':n, **kw}), goal=.8, unit='ms', turns=turns, beside=('cpprb','tianshou','pickle of a deque, a tenth of the rows'), toy=toy,
                 note='flushed to the disk, with checksums; against `torch.save` of the same columns to a new file, `fsync` and a rename; the others do not wait for the disk'),
            Case(f'Load {size}', lambda **kw: do('load', kind, **{'n':n, **kw}), goal=load, unit='ms', turns=turns, beside=('fastrl, mapped','pickle of a deque, a tenth of the rows'), toy=toy,
                 note='ours compares checksums, in as many threads as there are processors, and loads packed rows that can be added to; "mapped" reads no row before it is drawn'),
            Case(f'Checkpoint of 1% new rows, of {size}', lambda **kw: new_rows(kind, kw.get('n', n)), goal=.05, growth=True, unit='ms', turns=turns, toy=dict(n=200), note='against a whole save')]
cases = [*cases_of('small', 10**6, 'CartPole rows', 7), *cases_of('frames', 2*10**4, 'Atari rows', 3, load=.6)]
