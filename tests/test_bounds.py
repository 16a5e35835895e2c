"""No compiled loop reads or writes past the end of an array, and no door lets an index through that names no row"""
import os, subprocess, sys
from pathlib import Path
import numpy as np, pytest, torch
from torch import tensor
from fastrl import ExperienceReplay, Prioritized, Uniform
from fastrl.memory.folds import Folds
from fastrl.memory.starts import Starts
from fastrl.memory.walk import Walk

# %% What is compiled, with every index checked
def run_bounds(cache, *args, check='1'):
    env = {**os.environ, 'NUMBA_BOUNDSCHECK':check, 'NUMBA_CACHE_DIR':str(cache), 'OMP_NUM_THREADS':'1'}
    return subprocess.run([sys.executable, str(Path(__file__).with_name('bounds.py')), *map(str, args)],
                          env=env, capture_output=True, text=True, timeout=3000)

def check_bounds(pytestconfig, *args):
    "What is compiled is kept for the next time, in pytest's own cache: the first time takes a minute longer"
    res = run_bounds(pytestconfig.cache.mkdir('numba-bounds'), *args)
    assert res.returncode==0, res.stderr[-3000:]
    return res.stdout

@pytest.mark.long
def test_no_kernel_leaves_its_arrays(pytestconfig):
    for seed in range(1, 4): assert check_bounds(pytestconfig, seed, 120).endswith('missing []\n')

@pytest.mark.long
def test_without_the_check_it_says_so(tmp_path):
    res = run_bounds(tmp_path, 0, 0, check='0')
    assert res.returncode==1 and 'indices out of bounds are no errors here' in res.stderr

# %% Doors
def rows(n): return dict(state=torch.arange(n).float(), reward=torch.ones(n), next_state=torch.ones(n), terminated=torch.zeros(n).bool(),
                         truncated=torch.zeros(n).bool(), env_id=torch.zeros(n))

def memory(cap=8, n=5):
    m = ExperienceReplay(bs=3, max_sz=cap, warmup_sz=1, sampler=Prioritized(seed=0))
    m+rows(n)
    m.sample()
    return m

none = dict(past=[0,1,5], huge=[2**62], huge_uint=np.array([2**63+1], np.uint64), far_below=[-6], least=[-2**63],
            float=[1.5], whole_float=np.array([1.]), nan=[float('nan')], complex=[1j], text=['1'], int8_past=np.array([100], np.int8))
a_bool = dict(bool=[True, False])

def td(o): return torch.zeros(np.asarray(o).size, 1)
doors = {
    'memory[…]': (lambda m,o: m[o], {**none, **a_bool}),
    'memory.ring[…]': (lambda m,o: m.ring[o], {**none, **a_bool}),
    'put': (lambda m,o: m.put('reward', o, td(o)+7), {**none, **a_bool}),
    'ring.put': (lambda m,o: m.ring.put('reward', o, td(o)+7), {**none, **a_bool}),
    'update_td': (lambda m,o: m.update_td(td(o)+7, o), {**none, **a_bool}),
    'serial': (lambda m,o: m.ring.serial(o), {**none, **a_bool}),
    'holds, of no ints': (lambda m,o: m.ring.holds(o), {k: v for k,v in {**none, **a_bool}.items() if k in ('float','whole_float','nan','complex','text','bool')}),
    'gather': (lambda m,o: m.ring.gather(torch.as_tensor(o)),
               {k: none[k] for k in ('past','huge','far_below','least','float','nan')} | {'past':[0,8], 'far_below':[-99]}), # whatever else lies in a slot
    'tree.update': (lambda m,o: m.sampler.tree.update(o, np.full(np.asarray(o).size, 7.)), {**none, **a_bool, 'past':[0,8], 'below':[-1]}),
    'tree.update_td': (lambda m,o: m.sampler.tree.update_td(np.asarray(o), np.full(np.asarray(o).size, 7.), .6, 1e-6),
                       {**none, **a_bool, 'past':[0,8], 'below':[-1]}),
    'sampler.update': (lambda m,o: m.sampler.update(m.ring, np.asarray(o), np.full(np.asarray(o).size, 7.)),
                       {**none, **a_bool, 'past':[0,8], 'below':[-1]}),
    'walk.runs': (lambda m,o: walk(m).runs(tensor(o), 3), dict(past=[0,8], huge=[2**62], below=[-1], least=[-2**63])),
    'walk.fold': (lambda m,o: walk(m).fold(m.ring, tensor(o), 3, .9), dict(past=[0,8], huge=[2**62], below=[-1], least=[-2**63])),
    'folds': (lambda m,o: Folds(Walk(), 3, .9)(m.ring, tensor(o)), dict(past=[0,8], huge=[2**62], below=[-1], least=[-2**63])),
    'starts.update': (lambda m,o: starts(m).update(np.array(o), np.ones(len(o)), 1e-6), dict(past=[0,8], huge=[2**62], below=[-1], least=[-2**63])),
    'find': (lambda m,o: m.sampler.tree.find(o), dict(past=[1e9], below=[-.1], nan=[float('nan')])),
}

def walk(m):
    w = Walk()
    w.follow(m.ring)
    return w

def starts(m):
    s = Starts(Walk(), 2)
    s.follow(m.ring, m.sampler.tree)
    return s

def held(m): return {k: v.clone() for k,v in m.memory.items()},m.sampler.tree[:].clone(),m.dropped_updates

@pytest.mark.parametrize('door,name', [(d,k) for d,(_,bad) in doors.items() for k in bad])
def test_an_index_that_names_no_row_is_an_error(door, name):
    m = memory()
    f,bad = doors[door]
    cols,p,dropped = held(m)
    with pytest.raises(Exception) as e: f(m, bad[name])
    assert isinstance(e.value, (ValueError, IndexError, TypeError, RuntimeError)) or 'fastrl' in type(e.value).__module__, e.value
    was,q,still = held(m)
    assert all(torch.equal(cols[k], was[k]) for k in cols) and torch.equal(p, q) and dropped==still
    m.sample()

@pytest.mark.parametrize('empty', [[], np.zeros(0), np.zeros(0, np.int64), torch.zeros(0, dtype=torch.int64)])
def test_no_rows_are_no_error_but_for_a_slice(empty):
    m = memory()
    m.put('reward', empty, torch.zeros(0, 1))
    m.update_td(torch.zeros(0, 1), empty)
    assert len(m.ring[empty]['reward'])==0 and len(m.ring.serial(empty))==0==len(m.ring.holds(empty))
    with pytest.raises(Exception, match='names none of the 5 rows'): m[empty]

# %% Samplers of users
class Given(Uniform):
    "Draws what it was given"
    def __init__(self, o): super().__init__(); self.o = o
    def draw(self, ring, bs): return self.o,{}

wrong = dict(past=tensor([0,5]), huge=tensor([2**62]), least=tensor([-2**63]), below=tensor([-1]), below_2d=tensor([[0,-2]]), past_2d=tensor([[0,5]]),
             float=tensor([1.]), bool=tensor([True]), int32=tensor([1], dtype=torch.int32), uint8=tensor([1], dtype=torch.uint8), array=np.array([1]),
             list=[1], empty=torch.zeros(0, dtype=torch.int64), no_axis=tensor(1), three_axes=torch.zeros(1, 1, 1, dtype=torch.int64), nothing=None)

@pytest.mark.parametrize('settings', [{}, dict(n_step=2), dict(frame_stack=2)], ids=['rows','n_step','frames'])
@pytest.mark.parametrize('name', wrong)
def test_a_sampler_that_names_no_row(name, settings):
    m = ExperienceReplay(bs=2, max_sz=8, warmup_sz=1, sampler=Given(wrong[name]), **settings)
    for i in range(5):
        m.add(state=np.full((3,3), i, np.uint8), reward=1., next_state=np.full((3,3), i+1, np.uint8), terminated=False, truncated=False, env_id=0)
    for n in (None, 2):
        with pytest.raises(Exception, match='should give row numbers'): m.sample(n_batches=n)
    m.sampler = Uniform()
    m.sample()
