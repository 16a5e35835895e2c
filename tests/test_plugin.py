"Each known mistake is found where it is and nowhere else, and `pytest --fastrl-memory` makes tests of them, without torch"
import re, subprocess, sys
from pathlib import Path
import pytest
import broken
from fastrl.memory.check import Mistake, NotThere, Trial, known_mistakes

root = Path(__file__).parent.parent

few = [(2,(3,)), (5,(3,)), (9,(7,)), (5,(4,2))]

def found(make, cases=few):
    "What each known mistake says of `make`'s memories"
    res,trial = {},Trial(make, cases)
    for k,f in known_mistakes.items():
        try: f(trial)
        except Mistake as e: res[k] = str(e)
        except NotThere as e: raise AssertionError(f'{k} had nothing to check: {e}')
    return res

def test_right():
    assert not found(broken.Right) # and with all cases in `test_without_torch`

also = dict(rows={'time_limit','terminal','write_cursor','environments'}, # a wrong reward is wrong at each end
            aliasing_out={'late_priorities'}) # its td_error is its own, too
@pytest.mark.parametrize('name', known_mistakes)
def test_found(name):
    "Each mistake is found in a memory that has it, and in no way that the other ones know"
    got = found(getattr(broken, name))
    assert name in got and not got.keys()-{name}-also.get(name, set())

@pytest.mark.slow
@pytest.mark.parametrize('sampler', ('Uniform','Prioritized'))
def test_ours_with_two_steps(sampler):
    "The notebook checks one step and five"
    from fastrl.memory import sample
    from fastrl.memory.check import check_memory
    from fastrl.memory.replay import ExperienceReplay
    check_memory(lambda cap: ExperienceReplay(bs=8, max_sz=cap, warmup_sz=1, n_step=2, gamma=.9, sampler=getattr(sample, sampler)(seed=0)), samples=1)

def test_more_found():
    assert found(broken.next_row).keys()>={'time_limit','last_state','write_cursor'}
    assert 'give out its own arrays' in found(broken.aliasing_out)['aliasing']
    assert 'went to another row' in found(broken.wrong_priorities)['late_priorities']

def test_says_where():
    "A message names the case: capacity, episodes, how many steps were added; and what came and should have come"
    said = found(broken.time_limit)['time_limit']
    assert re.search(r'capacity \d+, episodes of \(.*\), after \d+ steps: the row \d+ has the terminated True, but should have False', said)

def run(*args, cwd, blocked=()):
    "pytest in a process of its own, where the packages `blocked` cannot be imported"
    code = f'''
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in {list(blocked)!r}: raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocked())
import pytest
sys.exit(pytest.main(sys.argv[1:], plugins=[]))'''
    return subprocess.run([sys.executable, '-c', code, '-p', 'fastrl.pytest_plugin', '-p', 'no:cacheprovider', *args], cwd=cwd, text=True,
                          capture_output=True, env={'PYTHONPATH':str(root), 'PATH':''})

@pytest.mark.slow
def test_without_torch():
    "NumPy is enough, in a run of other tests even that is not asked for"
    res = run('--fastrl-memory', 'broken:Right', '-v', '-c', '/dev/null', cwd=root/'tests', blocked=['torch','fastcore','fastai','numba'])
    assert '11 passed' in res.stdout, res.stdout+res.stderr
    assert [*known_mistakes]==re.findall(r'^broken:Right::(\w+) PASSED', res.stdout, flags=re.M)

def test_light(tmp_path):
    "Who does not ask for it pays nothing"
    (tmp_path/'test_mine.py').write_text('import sys\ndef test_mine(): assert "fastrl.pytest_plugin" in sys.modules and "numpy" not in sys.modules')
    res = run(cwd=tmp_path)
    assert '1 passed' in res.stdout, res.stdout+res.stderr

def test_fails_and_tells():
    res = run('--fastrl-memory', 'broken:time_limit', '--fastrl-memory', 'broken:aliasing', '-q', '-k', 'time_limit or aliasing', '-c', '/dev/null', cwd=root/'tests')
    assert {*re.findall(r'^FAILED (?:\S+/)?(broken:\S+)', res.stdout, flags=re.M)}=={'broken:time_limit::time_limit','broken:aliasing::aliasing'}, res.stdout
    assert 'does the memory keep the arrays that it is given?' in res.stdout and res.returncode==1

def test_entry_point():
    "What is installed names the plugin, by the name of its module"
    code = (root/'setup.py').read_text(encoding='utf-8')
    assert "'pytest11': lines('pytest11')" in code
    assert '\nfastrl.pytest_plugin=fastrl.pytest_plugin\n' in (root/'settings.ini').read_text(encoding='utf-8').replace('    ', '')
