"What saving takes and what loading touches, seen from outside of the process"
import os, subprocess, sys, tempfile
from pathlib import Path
import pytest

root = Path(__file__).parent.parent

def run(code, **kwargs):
    res = subprocess.run([sys.executable, '-c', code], cwd=root, capture_output=True, text=True, **kwargs)
    assert res.returncode==0, res.stdout+res.stderr
    return res.stdout

memory = '''
import os, sys, torch
from fastrl.memory.replay import ExperienceReplay
from fastrl.memory.ring import Ring
from fastrl.memory.buffer import ReplayBuffer
from fastrl.memory.sample import Prioritized
def filled(n=50):
    er = ExperienceReplay(bs=4, max_sz=40, warmup_sz=1, n_step=2, sampler=Prioritized(seed=0))
    for i in range(n): er.add(state=[i, i], reward=float(i), terminated=i%7==6, truncated=False)
    return er
'''

def test_no_pickle(tmp_path):
    "With pickle broken, and torch.load too, everything still loads"
    out = run(f'folder = {str(tmp_path)!r}\n'+memory+'''
er,buffer = filled(),ReplayBuffer(5, 2, 1, 3)
buffer.add([1.,2.], [0.], 1., [2.,3.], True, [0.]*3)
er.sample(), er.update_td(torch.ones(4,1), torch.arange(4)) # numba keeps what it compiled in pickles of its own: these are read now
er.checkpoint(folder+'/er'); er.ring.save(folder+'/ring'); buffer.save(folder+'/velora'); buffer.checkpoint(folder+'/buffer')
again = ExperienceReplay.load(folder+'/er'); again.sample(), again.sample_sequences(2, 3)
import _pickle, pickle
def broken(*args, **kwargs): raise AssertionError('a pickle was read')
for m in (pickle, _pickle):
    for o in ('load','loads','Unpickler'): setattr(m, o, broken)
pickle._Unpickler = pickle._load = pickle._loads = torch.load = broken
for o in (ExperienceReplay.load(folder+'/er'), ExperienceReplay.load(folder+'/er', path=folder+'/er.ring'), ExperienceReplay.load(folder+'/er', on_error='skip')): print(len(o.sample()[1]))
print(len(Ring.load(folder+'/ring', mapped=True)), len(ReplayBuffer.load(folder+'/velora/buffer_state')), len(ReplayBuffer.load(folder+'/buffer')))
''')
    assert out=='4\n4\n4\n40 1 1\n'

@pytest.mark.skipif(not Path('/proc/self/status').exists(), reason='the system does not say how much memory was taken at most')
def test_memory(tmp_path):
    "Saving a memory of 600 MB takes a few MB more, and so does a checkpoint of everything"
    out = run(f'folder = {str(tmp_path)!r}\n'+memory+'''
def most():
    return int(next(o for o in open('/proc/self/status') if o.startswith('VmHWM')).split()[1])/1024
filled().save(folder+'/small') # what is loaded and compiled for the first time
er = ExperienceReplay(bs=4, max_sz=10_000, warmup_sz=1, sampler=Prioritized(seed=0))
for i in range(100): er+dict(state=torch.full((100, 60_000), i, dtype=torch.uint8))
before = most()
er.save(folder+'/big')
er.checkpoint(folder+'/run')
er.update_td(torch.ones(10_000, 1), torch.arange(10_000))
er.checkpoint(folder+'/run')
print(most()-before)
''')
    assert float(out)<60, out

def test_read_only():
    "A folder that may not be written to: one clear error, and what was saved is as it was"
    with tempfile.TemporaryDirectory() as d:
        os.chmod(d, 0o755)
        out = run(f'folder = {d!r}\n'+memory+'''
er = filled()
er.save(folder+'/saved')
for o in ('/saved',''): os.chmod(folder+o, 0o555)
before = sorted(os.listdir(folder+'/saved'))
if os.geteuid()==0: os.setuid(65534) # to root nothing is read-only
er.add(state=[9, 9], reward=1., terminated=False, truncated=False)
for to in ('/saved','/new'):
    try: er.save(folder+to)
    except PermissionError as e: print('could not be saved' in str(e) and 'is as it was' in str(e))
    else: print('it was saved')
print(sorted(os.listdir(folder+'/saved'))==before, ExperienceReplay.load(folder+'/saved').ring.total)
''')
        for o in ('','/saved'): os.chmod(d+o, 0o755)
    assert out=='True\nTrue\nTrue 50\n'
