"ROSE's example programs, as `rose.py` copies and changes them: each runs to its end, and learns from what it collected"
import json, os, shutil, subprocess, sys
from pathlib import Path
import pytest
from fastrl.memory.bank import ExperienceBank

root = Path(__file__).parents[1]
learn = root/'examples'/'reinforcement_learn'
engine = [("RadicalExecutionBackend({'resource': 'local.localhost'})", 'ConcurrentExecutionBackend(ThreadPoolExecutor())'), # no RADICAL-Pilot here
          ('import RadicalExecutionBackend', 'import ConcurrentExecutionBackend; from concurrent.futures import ThreadPoolExecutor; import asyncio'),
          (', jupyter_async=True', '')] # asyncflow takes it no longer
soon = [('threshold=200', 'threshold=5')] # not after an hour

runner = '''
import ast, asyncio, inspect, json, sys, types
main = sys.modules['__main__'] = types.ModuleType('__main__')
code = compile(open(sys.argv[1]).read(), sys.argv[1], 'exec', flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
async def run():
    res = eval(code, vars(main))
    if inspect.isawaitable(res): await res
asyncio.run(run())
'''

def run(folder, name, changes, to):
    "Run a program in a copy of its folder; its output"
    shutil.copytree(folder, to)
    text = (to/name).read_text()
    if name.endswith('.ipynb'): text = '\n\n'.join(''.join(c['source']) for c in json.loads(text)['cells'] if c['cell_type']=='code')
    for old,new in changes:
        assert old in text, old
        text = text.replace(old, new)
    (to/'program.py').write_text(text)
    args = ['-c', runner, 'program.py'] if name.endswith('.ipynb') else ['program.py']
    p = subprocess.run([sys.executable, *args], cwd=to, capture_output=True, text=True, timeout=500, env={**os.environ, 'MUJOCO_GL':'disabled'})
    assert p.returncode==0, p.stderr
    return p.stdout

def metrics(folder): return json.loads((folder/'experience'/'run.json').read_text())['metrics']

def test_basic(tmp_path):
    out = run(learn, 'run_me.py', soon, to := tmp_path/'copy')
    assert 'Iteration 0: metric=' in out and metrics(to)['0']>5
    assert len(ExperienceBank.load(to/'experience'/'memory.json'))==len(ExperienceBank.load(to/'data'/'experience_bank.pkl'))>0

def test_sequential(tmp_path):
    run(learn, 'reinforcementlearning.ipynb', engine+soon, to := tmp_path/'copy')
    assert metrics(to/'data')['0']>5 and (to/'data'/'dqn_model.pth').exists()

def test_parallel_experience(tmp_path):
    run(learn, 'parallelexperience.ipynb', engine+soon, to := tmp_path/'copy')
    data = to/'data'
    assert metrics(data)['0']>5
    banks = [ExperienceBank.load(data/f'experience_bank_{i}.pkl') for i in range(1, 6)]
    assert len(ExperienceBank.load(data/'experience_bank.pkl'))==sum(map(len, banks))>0

def test_mujoco(tmp_path):
    pytest.importorskip('dm_control')
    run(learn/'mujoco', 'mujocolearning.ipynb', engine[:2]+[('max_iter=15', 'max_iter=2')], to := tmp_path/'copy')
    assert list(metrics(to))==['0','1'] and (to/'data'/'trained_policy.pkl').exists()

def test_tutorial(tmp_path):
    run(root/'tutorials', '01-reinforcement-learning.ipynb', [('episodes: int = 1000', 'episodes: int = 30')], to := tmp_path/'copy')
    assert list(metrics(to))==['0','1','2'] and (to/'cartpole_policy.pt').exists()
