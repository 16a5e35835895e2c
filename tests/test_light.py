"The memory works where neither fastai nor an environment is installed"
import subprocess, sys
from pathlib import Path
import pytest

root = Path(__file__).parent.parent
light = ['core','memory.ring','memory.tree','memory.sample','memory.disk','memory.replay','memory.buffer','memory.episodes','memory.bank']
heavy = ['fastai','gymnasium','plotly','pandas','matplotlib','IPython']

def without(code, blocked=heavy):
    "What `code` prints when the packages `blocked` cannot be imported"
    block = f'''
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in {blocked!r}: raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocked())
'''
    run = subprocess.run([sys.executable, '-c', block+code], cwd=root, capture_output=True, text=True)
    assert run.returncode==0, run.stderr
    return run.stdout

def test_imports():
    "Each may be the first that is imported"
    anew = "for k in [k for k in sys.modules if k.split('.')[0]=='fastrl']: del sys.modules[k]\n"
    without(anew.join(f'import fastrl.{o}\n' for o in light))

@pytest.mark.slow
def test_without_sb3():
    "Only `fastrl.sb3` wants stable-baselines3, and says how to get it"
    out = without('''
import fastrl.memory.sample
try: import fastrl.sb3
except ImportError as e: print(e)''', ['stable_baselines3'])
    assert "pip install 'fastrl[sb3]'" in out

@pytest.mark.slow
def test_no_locks():
    "Everything that runs imports without `fcntl`, which Windows lacks; there a lock is always free, and nothing is swept"
    out = without('''
import fastrl.cli, tempfile
from fastrl.bank_folder import BankFolder
from fastrl.engines import sweep_scratch, while_wanted
from fastrl.memory.files import FileLock
from fastrl.parallel import ParallelExperience
with tempfile.TemporaryDirectory() as d, FileLock(d), FileLock(d):
    tempfile.tempdir = d
    at = tempfile.mkdtemp(prefix='fastrl-task-')
    sweep_scratch()
    with while_wanted() as wanted: told = [wanted(), wanted.__reduce__()[0](wanted.path)()]
    print(*told, wanted(), wanted.__reduce__()[0](wanted.path)(), os.path.exists(at), len(BankFolder(d).merged()))
'''.replace('import fastrl.cli', 'import os, fastrl.cli'), ['fcntl'])
    assert out=='True True False False True 0\n'

@pytest.mark.slow
def test_works():
    code = '''
import torch
from fastrl.memory.replay import ExperienceReplay
from fastrl.memory.sample import Prioritized
memory = ExperienceReplay(bs=4, max_sz=8, warmup_sz=1, sampler=Prioritized(), n_step=2)
for i in range(9): memory.add(state=[i, i], reward=1., next_state=[i+1, i+1], terminated=i%3==2, truncated=False)
batch,idxs = memory.sample()
memory.update_td(torch.ones(4,1), idxs, batch['serial'])
print(len(memory), *batch['state'].shape)
'''
    assert without(code)=='8 4 2\n'

@pytest.mark.slow
def test_blocked():
    "The blocking works: what needs fastai does not import without it"
    with pytest.raises(AssertionError, match='fastai'): without('import fastrl.memory.experience_replay')

@pytest.mark.slow
def test_plain_torch():
    "The example needs no fastai, and learns"
    out = without(f'''
sys.path.insert(0, 'examples')
import torch
torch.set_num_threads(1)
from plain_torch import train
returns = train(4001)
print(len(returns), min(returns)>=8, max(returns[-5:])>max(returns[:5]))
''', ['fastai'])
    assert 'True True' in out.splitlines()[-1]
    assert len((root/'examples'/'plain_torch.py').read_text().splitlines())<60
