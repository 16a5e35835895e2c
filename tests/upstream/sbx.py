"The suite of sbx, stable-baselines3's agents in JAX, with our replay buffers in the place of SB3's"
from tests.upstream import sb3

url = 'https://github.com/araffin/sbx'
commit = '9bdc9c1'
files = ['tests','sbx']
needs = ['stable-baselines3==2.9.2', 'jax==0.10.2', 'jaxlib==0.10.2', 'flax==0.12.8', 'optax==0.2.8', # pip requirements, complete
         'tfp-nightly==0.26.0.dev20261027', 'ml-dtypes', 'opt-einsum', 'orbax-checkpoint', 'tensorstore', 'treescope', 'msgpack', 'etils',
         'dm-tree', 'decorator', 'gast', 'humanize', 'simplejson', 'aiofiles', 'uvloop', 'prometheus-client', 'rich', 'tqdm',
         'markdown-it-py', 'mdurl', 'absl-py', 'scipy', 'wrapt']
tests = ['tests/test_buffers.py', 'tests/test_run.py::test_dqn', 'tests/test_run.py::test_dict']

differs = {} # test: why

prepare = sb3.prepare
