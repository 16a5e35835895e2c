"Compiled loops run whatever becomes of numba's cache, and whatever numba is told to leave uncompiled"
import os, shutil, subprocess, sys
from pathlib import Path
import fastrl, pytest

root = Path(__file__).parent.parent

loop = """
import numpy as np, sys
from fastrl.core import compiled
@compiled
def total(a):
    res = a[0]
    for o in a[1:]: res += o
    return res
for o in sys.argv[1:]: print(total(np.arange(1, 5).astype(o)))
print(sum(total.loop.stats.cache_hits.values()))
"""

def totals(folder, *dtypes, first=''):
    "What a process prints that adds up numbers of each dtype, and keeps what it compiles in `folder`; then how much it found there"
    (folder/'loop.py').write_text(loop)
    run = subprocess.run([sys.executable, '-c', f'{first}\nimport loop', *dtypes], cwd=folder, capture_output=True, text=True,
                         env={**os.environ, 'NUMBA_CACHE_DIR':str(folder), 'PYTHONPATH':str(root)})
    assert run.returncode==0, run.stderr
    return run.stdout.split()

@pytest.mark.slow
def test_a_cache_that_is_full(tmp_path):
    "A disk without room, or a quota that is used up"
    full = 'import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))'
    for _ in range(2): assert totals(tmp_path, 'int64', first=full)==['10','0']

@pytest.mark.slow
@pytest.mark.parametrize('ext', ['nbi','nbc'])
def test_a_cache_that_a_crash_left(tmp_path, ext):
    "Files whose names were on the disk before their content was"
    totals(tmp_path, 'int64')
    assert totals(tmp_path, 'int64')==['10','1']
    for o in tmp_path.rglob(f'*.{ext}'): o.write_bytes(b'')
    assert totals(tmp_path, 'int64')==['10','0']

@pytest.mark.slow
def test_a_cache_with_one_loop_in_the_place_of_another(tmp_path):
    "Two processes that compile at once may take the same file: float64 was then added up as if it were int64"
    right = ['10','10.0']
    assert totals(tmp_path, 'int64', 'float64')==[*right, '0']
    a,b = tmp_path.rglob('*.nbc')
    was = a.read_bytes()
    a.write_bytes(b.read_bytes()); b.write_bytes(was)
    assert totals(tmp_path, 'int64', 'float64')==[*right, '0'] # compiled anew
    assert totals(tmp_path, 'int64', 'float64')==[*right, '2']

def test_numba_that_compiles_nothing():
    "`NUMBA_DISABLE_JIT` is for the user's own loops, which stay Python"
    code = """if True:
        from fastrl.memory.tree import SumTree
        import numba
        tree = SumTree(4)
        tree.update([0,3], [1.,2.])
        print(tree.find([.5,2.5]).tolist(), numba.config.DISABLE_JIT, type(numba.njit(lambda: 1)).__name__)"""
    run = subprocess.run([sys.executable, '-c', code], cwd=root, env={**os.environ, 'NUMBA_DISABLE_JIT':'1'}, capture_output=True, text=True)
    assert run.stdout=='[0, 3] 1 function\n', run.stderr

@pytest.mark.slow
def test_a_module_that_changed(tmp_path):
    "What another module compiled is compiled anew when a loop that it calls has changed, or it would be called as it was"
    at = shutil.copytree(Path(fastrl.__file__).parent, tmp_path/'fastrl', ignore=shutil.ignore_patterns('__pycache__')) # with its times
    code = 'from fastrl.memory.tree import SumTree; tree = SumTree(99); tree.update(range(99), [1.]*99); print(tree.throw(20, 0, 9, [.4], 0.))'
    def drawn(**env): return subprocess.run([sys.executable, '-c', code], cwd=tmp_path, env={**os.environ, **env}, capture_output=True, text=True, check=True).stdout
    was,random = drawn(),at/'memory/random.py'
    assert drawn()==was
    random.write_text(random.read_text().replace('0xBF58476D1CE4E5B9', '0xBF58476D1CE4E5B1'))
    now = drawn()
    assert now!=was and now==drawn(NUMBA_CACHE_DIR=str(tmp_path/'new'))
