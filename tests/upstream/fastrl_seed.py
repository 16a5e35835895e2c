"The gym and replay notebooks of fastrl of October 2021, cell by cell, on our `GymLoop` and `ExperienceReplay`"
import json, re
url = 'https://github.com/josiahls/fastrl'
commit = '444aaf8' # the day of the page; the commit before it differs in the pictures only
notebooks = dict(gym='nbs/05b_data.gym.ipynb', replay='nbs/06a_memory.experience_replay.ipynb')
files,needs,tests = [*notebooks.values()],[],[f'test_{o}.py' for o in notebooks]
differs = dict.fromkeys((f'test_replay.py::test_cell[{o}]' for o in (41,42)),
                        'TensorBoard: `replay_report` writes a page of the memory instead')

# the import; environments of gymnasium; and 40 batches where 7 leave out one of 20 rows in 6 runs of 100
changes = {'import gym\n': 'import gymnasium as gym\n', 'from fastrl.callback.core import *': '',
           'from fastrl.agent import *': '', 'from torch.utils.tensorboard import SummaryWriter': '',
           'HumanoidPyBulletEnv-v0': 'Pendulum-v1', 'range(7)': 'range(40)'}
ours = dict(gym='from fastrl.data.gym import *', replay='from fastrl.memory.experience_replay import *')

runner = """import json, pytest
cells,names = json.load(open(__file__.replace('.py', '.json'))),{}

@pytest.mark.parametrize('n', cells)
def test_cell(n): exec(compile(cells[n], f'cell {n}', 'exec'), names)
"""

def prepare(src):
    "A test per cell; left out are definitions, which are ours, hidden cells and those for Jupyter only"
    for name,path in notebooks.items():
        cells,imports = {},True
        for i,c in enumerate(json.loads((src/path).read_text())['cells']):
            s = ''.join(c['source'])
            if c['cell_type']!='code' or re.match(r'#\s*(hide|default_exp)|%|$', s): continue
            if re.match(r'#\s*exports?\b', s):
                if not imports: continue
                s,imports = f'{s}\n{ours[name]}',False
            for a,b in changes.items(): s = s.replace(a, b)
            cells[f'{i:02}'] = s
        (src/f'test_{name}.py').write_text(runner)
        (src/f'test_{name}.json').write_text(json.dumps(cells))
