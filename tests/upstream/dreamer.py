"DreamerV3's tests of its replay buffer, with that buffer and with the adapter of our page on world models"
import re
from ._page import cells

url = 'https://github.com/danijar/dreamerv3'
commit = 'e3f0224'
files = ['embodied/core','embodied/tests/test_replay.py']
needs = ['elements==3.22.4', 'portal==3.8.3', 'cloudpickle', 'psutil', 'msgpack'] # pip requirements, complete: nothing else is installed
tests = ['embodied/tests/test_replay.py']

def several(why, end, **cases):
    return {f'embodied/tests/test_replay.py::TestReplay::test_{k}[{o}-{end}]': why for k,os in cases.items() for o in os}

chunks = ['1-1-1','3-10-5','5-100-12']
differs = { # test: why
    **several('counts the `.npz` files that it writes', 'DreamerReplay', restore_chunks_exact=chunks,
              restore_chunks_workers=[f'{o}-{n}' for o in chunks for n in (1,2,5)]),
    **several('fails with its own buffer: with room for one item, `Uniform` removes the key it just added', 'Replay',
              capacity_exact=['1-1-1'], sample_sequences=['1-1-1-128'], worker_delay=['1-1-1'], restore_exact=['1-1-128'],
              restore_noclear=['1-1-128'], restore_insert=['1-1-128'], restore_workers=['1-1-1'],
              restore_chunks_exact=['1-1-1'], restore_chunks_workers=['1-1-1-1'])}

def prepare(src):
    "Mend the calls of `dataset`, which is gone; run each test with both buffers, and without JAX"
    (src/'embodied'/'__init__.py').write_text('from .core import *\n')
    (src/'ours.py').write_text(cells('howto/world_models.ipynb', 'Items', 'DreamerReplay'))
    f = src/'embodied'/'tests'/'test_replay.py'
    text = f.read_text().replace('replay.dataset(1)', 'iter(lambda: replay.sample(1), None)')
    text = re.sub(r'^    embodied\.replay\.Replay,$', '    embodied.replay.Replay, DreamerReplay,', text, flags=re.M)
    f.write_text(text.replace('import pytest\n', 'import pytest\nfrom ours import DreamerReplay\n'))
