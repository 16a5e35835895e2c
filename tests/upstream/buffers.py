"The suite of buffers and its three notebooks, with our episodes"
import json, re
url = 'https://github.com/maltemosbach/buffers'
commit = '0582566'
needs = ['prettytable', 'wcwidth'] # pip requirements, complete: nothing else is installed
tests = ['tests/test_datasets.py', 'tests/test_notebooks.py']

parallel = ('one bool, and fields that may be one environment or four: it passes with `num_envs=4`, and with `done=` in its '
            'last step, which it counts to the episode that ends; a tensor alone means "was done", as the README says')
differs = { # test: why
    **{f'tests/test_datasets.py::TestDatasets::test_add_from_parallel_environments[{o}]': parallel
       for o in ('RingBufferDataset','IndividualFileDataset')},
    'tests/test_notebooks.py::test_notebook[multiprocess_data_loading]':
        'five datasets write to one folder, over the files of each other: it passes with a folder for each',
}

runner = '''"The notebooks of this repository, each in an empty folder"
import json, pytest
from pathlib import Path

here = Path(__file__).parent
codes = json.loads((here/'notebooks.json').read_text())

@pytest.mark.parametrize('name', codes)
def test_notebook(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(here.parent/'notebooks')
    exec(compile(codes[name], name, 'exec'), dict(__name__='__main__'))
'''

def ours(text): return re.sub(r'\b(from|import) (?:replay|buffers)(?:\.\w+)*', r'\1 fastrl.memory.episodes', text)

def code_of(path):
    "The code of a notebook, without magics and without the cell that plots: its visualizer is not here"
    cells = [''.join(o['source']) for o in json.loads(path.read_text())['cells'] if o['cell_type']=='code']
    return '\n'.join(o for o in cells if 'Visualizer' not in o)

def prepare(src):
    "Change the import in the copy `src`, and make tests of its notebooks"
    for p in (*src.glob('tests/*.py'), src/'notebooks'/'utils.py'): p.write_text(ours(p.read_text()))
    codes = {p.stem: ours(code_of(p)) for p in sorted(src.glob('notebooks/*.ipynb'))}
    (src/'tests'/'notebooks.json').write_text(json.dumps(codes))
    (src/'tests'/'test_notebooks.py').write_text(runner)
