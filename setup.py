"Package metadata comes from settings.ini; `pyproject.toml` marks these fields `dynamic`."
from configparser import ConfigParser
from pathlib import Path
from setuptools import setup, find_packages

here = Path(__file__).resolve().parent
cfg = ConfigParser(delimiters=['='], interpolation=None)
cfg.read(here/'settings.ini', encoding='utf-8')
cfg = cfg['DEFAULT']

def lines(k): return [o.strip() for o in cfg.get(k, '').splitlines() if o.strip() and o.strip()[0]!='#']

statuses = ['Planning', 'Pre-Alpha', 'Alpha', 'Beta', 'Production/Stable', 'Mature', 'Inactive']
dev,doc,bench,dask,asyncflow,sb3,minari = (
    lines(f'{o}_requirements') for o in ('dev','doc','bench','dask','asyncflow','sb3','minari'))

setup(
    name=cfg['lib_name'], version=cfg['version'], description=cfg['description'],
    long_description=(here/'README.md').read_text(encoding='utf-8'), long_description_content_type='text/markdown',
    keywords=cfg['keywords'].split(), author=cfg['author'], author_email=cfg['author_email'],
    license_expression=cfg['license'], python_requires=f">={cfg['min_python']}",
    classifiers=[
        f"Development Status :: {cfg['status']} - {statuses[int(cfg['status'])-1]}",
        f"Intended Audience :: {cfg['audience']}", f"Natural Language :: {cfg['language']}",
        'Programming Language :: Python :: 3', 'Programming Language :: Python :: 3 :: Only'],
    install_requires=lines('requirements'), extras_require={'dev': dev+doc+dask+asyncflow+sb3+minari, 'docs': doc, 'bench': bench, 'dask': dask, 'asyncflow': asyncflow, 'sb3': sb3, 'minari': minari},
    packages=find_packages(include=[cfg['lib_path'], f"{cfg['lib_path']}.*"]),
    package_data={cfg['lib_name']: ['py.typed', '*.pyi', '**/*.pyi']},
    entry_points={'nbdev': [f"{cfg['lib_path']}={cfg['lib_path']}._modidx:d"], 'console_scripts': lines('console_scripts'),
        'pytest11': lines('pytest11')},
    zip_safe=False)
