"A writer that is killed leaves the state before or the state after, whole"
import os, subprocess, sys
from pathlib import Path
import pytest

root = Path(__file__).parent.parent

def killed(*args, what='crash'):
    run = subprocess.run([sys.executable, f'tests/{what}.py', *map(str, args)], cwd=root, capture_output=True, text=True)
    assert run.returncode==0, run.stdout+run.stderr

needs_fork = pytest.mark.skipif(not hasattr(os, 'fork'), reason='writers are forked, which this system cannot')

@needs_fork
@pytest.mark.parametrize('times', (6, pytest.param(20, marks=pytest.mark.slow)))
def test_killed(times): killed(times, 0)

@pytest.mark.long
@needs_fork
def test_killed_often(): killed(300, 1)

@pytest.mark.slow
@needs_fork
def test_banks(): killed(8, 0, 1499, what='crash_banks')

@pytest.mark.long
@needs_fork
def test_banks_often(): killed(200, 1, 61, what='crash_banks')
