"Velora's suite and the programs in its documentation, with its agents on our `ReplayBuffer`"
import re, shutil
from pathlib import Path

url = 'https://github.com/Achronus/velora'
commit = '88b8103' # 0.2.0
needs = ['pydantic==2.11.3', 'pydantic-core==2.33.1', 'pydantic-settings==2.8.1', 'python-dotenv', 'annotated-types',
         'typing-inspection', 'typing_extensions', 'sqlmodel==0.0.24', 'sqlalchemy==2.0.40', # the lock file's
         'mujoco==3.3.1', 'glfw', 'pyopengl', 'etils', 'absl-py', 'fsspec', 'importlib_resources', 'zipp', 'imageio',
         'moviepy', 'proglog', 'imageio-ffmpeg', 'decorator', 'tqdm', 'array-api-compat']
tests = ['tests']
differs = {'tests/test_buffer.py::TestReplayBuffer::test_buffer_warm_single_env':
           '`warm` accepts a single environment'}

def prepare(src):
    "Change the import in the copy `src`, and have its documentation run, too"
    for f in [*(src/'velora').rglob('*.py'), *(src/'tests').rglob('*.py')]:
        if f.parent!=src/'velora'/'buffer':
            f.write_text(re.sub(r'velora\.buffer\.(replay|experience)(?= import)', 'fastrl.memory.buffer', f.read_text()))
    shutil.copy(Path(__file__).with_name('_velora_docs.py'), src/'tests'/'test_docs.py')
    (src/'comet_ml.py').write_text('class Experiment: pass\nclass ExistingExperiment: pass\n') # its tests replace both
