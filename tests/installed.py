"Use fastrl as it was installed from its wheel: `make dist` runs this in an environment that holds nothing else"
import importlib, pkgutil, re, subprocess, sys
from importlib.metadata import entry_points, version
from pathlib import Path
import fastrl

assert Path(fastrl.__file__).is_relative_to(sys.prefix), f'{fastrl.__file__} is not what was installed'
wants = {'fastrl.sb3': "pip install 'fastrl[sb3]'", 'fastrl.pytest_plugin': "No module named 'pytest'"}
for o in pkgutil.walk_packages(fastrl.__path__, 'fastrl.'):
    try: importlib.import_module(o.name)
    except ImportError as e: assert wants.get(o.name, 'nothing else') in str(e), e
assert 'fastrl.pytest_plugin' in entry_points(group='pytest11').names
assert (Path(fastrl.__file__).parent/'py.typed').exists()
code = re.search(r'```python\n(.*?)```', (Path(__file__).parent.parent/'README.md').read_text(encoding='utf-8'), flags=re.S)[1]
exec(code)
said = subprocess.run([Path(sys.prefix)/'bin'/'fastrl', '--version'], capture_output=True, text=True, check=True).stdout
assert said==f'fastrl {version("fastrl")}\n', said
print(f'fastrl {version("fastrl")} works as installed from its wheel')
