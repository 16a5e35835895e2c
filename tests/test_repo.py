"The repository agrees with itself: the library, README.md and the version are what the notebooks and settings.ini say"
import ast, asyncio, builtins, gc, importlib, math, os, re, shutil, subprocess, sys, tempfile
from configparser import ConfigParser
from importlib.metadata import version
from pathlib import Path
import fastrl, numpy as np, pytest
from fastcore.nbio import read_nb

root = Path(__file__).parent.parent
cfg = ConfigParser(delimiters=['='], interpolation=None)
cfg.read(root/'settings.ini', encoding='utf-8')
cfg = cfg['DEFAULT']

def texts(d, *globs):
    "The files under `d`, by name"
    ps = [p for g in globs for p in d.rglob(g) if '.ipynb_checkpoints' not in p.parts]
    return {p.relative_to(d).as_posix(): p.read_text(encoding='utf-8') for p in ps}

def differing(a, b): return sorted(k for k in a.keys()|b.keys() if a.get(k)!=b.get(k))

def test_in_sync(tmp_path):
    "Exported, cleaned and staged anew, nothing changes; this also catches a hand edit, and the module of a notebook that is gone"
    d = tmp_path
    for o in ('pyproject.toml', 'settings.ini'): shutil.copy(root/o, d)
    for o in ('nbs', 'docs'): shutil.copytree(root/o, d/o)
    (d/'fastrl').mkdir()
    shutil.copy(root/'fastrl/__init__.py', d/'fastrl')  # nbdev keeps the version here, and edits the rest
    env = {k:v for k,v in os.environ.items() if k!='IN_TEST'}  # under which nbdev-export does nothing
    bin = Path(sys.executable).parent
    for o in ([bin/'nbdev-export'], [sys.executable, 'docs/library.py'], [bin/'nbdev-clean'], [sys.executable, 'docs/stage.py', 'readme']):
        subprocess.run(o, cwd=d, env=env, check=True)
    def differ(folder, *kinds): return differing(texts(d/folder, *kinds), texts(root/folder, *kinds))
    assert not differ('fastrl', '*.py', '*.pyi'), 'run `make export`; remove stale modules'
    assert not differ('nbs', '*.ipynb', '*.txt'), 'run `nbdev-clean`'
    new,old = (o/'README.md' for o in (d, root))
    assert new.read_text(encoding='utf-8')==old.read_text(encoding='utf-8'), 'run `make readme`'

def test_pages_have_places():
    "Each notebook stands in the site's table of contents: a new one that doesn't would only fail when the site is built"
    fs = [p.relative_to(root/'nbs').with_suffix('').as_posix() for p in (root/'nbs').rglob('*.ipynb') if '.ipynb_checkpoints' not in p.parts]
    code = f'import stage; print(len(stage.toctrees({{stage.page(stage.cfg.nbs_path/f"{{o}}.ipynb").with_suffix("").as_posix(): o for o in {fs}}})))'
    run = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, cwd=root, env={**os.environ, 'PYTHONPATH':str(root/'docs')})
    assert run.returncode==0 and int(run.stdout)>1, run.stderr

@pytest.mark.slow
def test_readme_runs(tmp_path):
    "The code of README.md does what stands below it, in an empty folder"
    code,out = re.search(r'```python\n(.*?)```\n\n```\n(.*?)```', (root/'README.md').read_text(encoding='utf-8'), flags=re.S).groups()
    assert len([o for o in code.splitlines() if o])<=18
    *lines,last = code.strip().splitlines()
    run = subprocess.run([sys.executable, '-c', '\n'.join([*lines, f'print({last})'])], capture_output=True, text=True, cwd=tmp_path, env={**os.environ, 'PYTHONPATH':str(root)})
    assert (run.stdout, run.returncode)==(out, 0), run.stderr

def test_readme_links():
    "Each link leads to a file of the repository, or to a site that exists; and the page is short"
    text = (root/'README.md').read_text(encoding='utf-8')
    links = re.findall(r'\]\(([^)]+)\)', text)
    assert not [o for o in links if not o.startswith('https://') and not (root/o).exists()]
    assert not [o for o in links if 'fastrl.github.io' in o or 'github.com/fastrl/' in o]
    assert len(text.splitlines())<=90

def test_readme_counts():
    "As many random histories and kills as README says"
    import test_pipeline
    marks = [[m.args for m in getattr(f, 'pytestmark', []) if m.name=='parametrize'] for f in vars(test_pipeline).values() if callable(f)]
    few,many = 0,0
    for args in marks:
        if not (seeds := [v for k,v in args if k=='seeds']): continue
        times = math.prod(len(v) for k,v in args if k!='seeds')
        half,rest,others = (times*len(o.values[0]) for o in seeds[0])
        few,many = few+half+rest,many+others
    text = (root/'README.md').read_text(encoding='utf-8')
    assert f'over some {round(few, -2):,} random histories' in text and f'a long run covers some {round(many, -3):,}.' in text, (few, many)
    kills = re.search(r'def test_killed_often\(\): killed\((\d+),', (root/'tests/test_crash.py').read_text(encoding='utf-8'))[1]
    assert f'Killed at {kills} random moments' in text

@pytest.mark.slow
def test_recipes(tmp_path, monkeypatch):
    "Each recipe runs by itself, after the first cell"
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
    cells = [o for o in read_nb(root/'nbs'/'howto'/'recipes.ipynb').cells if '#| hide' not in o.source]
    begin = next(o.source for o in cells if o.cell_type=='code')
    starts = [i for i,o in enumerate(cells) if o.source.startswith('### …')]
    assert len(starts)>=12
    for i,j in zip(starts, [*starts[1:], len(cells)]):
        code = '\n'.join([begin, *(o.source for o in cells[i:j] if o.cell_type=='code')])
        wait = eval(compile(code, cells[i].source.splitlines()[0], 'exec', ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), {'__name__':'__main__'})
        if wait is not None: asyncio.run(wait)
        gc.collect() # the threads of ALE's vector end here: a worker that a later recipe forks would abort where it frees them

def test_settings_of_papers():
    "The memories in the table of papers can be made as they are written there, and draw as it says"
    from fastrl import HER, EpisodeReplay, ExperienceReplay, Mixture, Prioritized, RingBufferDataset
    table, = (o.source for o in read_nb(root/'nbs'/'howto'/'recipes.ipynb').cells if 'the memory of its paper' in o.source)
    offline,online = (ExperienceReplay(bs=9, warmup_sz=1) for _ in range(2))
    known = dict(vars(), math=math, reward=lambda achieved, goal, idxs: (achieved==goal).float())
    made = [eval(f'dict({o})' if o.startswith('sampler') else o, known)
            for o in re.findall(r'`(\w+[(=][^`]*)`', table) if not o.startswith('sample_')]
    assert len(made)==10
    for o in made: # none has the 200 rows of a memory whose size nobody gave
        if isinstance(o, ExperienceReplay): assert o.sized, o
    assert online+dict(reward=np.ones(200), terminated=np.zeros(200, bool), truncated=np.zeros(200, bool), env_id=np.zeros(200))
    how, = re.findall(r'`(sample_sequences.*?)`', table)
    assert eval(f'online.{how}', known)[0]['reward'].shape==(9,120,1)

def names(tree):
    "What the code of `tree` uses, and what it defines"
    nodes = list(ast.walk(tree))
    stars = [vars(importlib.import_module(o.module)) for o in nodes if isinstance(o, ast.ImportFrom) and o.names[0].name=='*']
    defined = {k for m in stars for k in m.get('__all__') or [k for k in m if k[0]!='_']}
    defined |= {(o.asname or o.name).split('.')[0] for n in nodes if isinstance(n, (ast.Import, ast.ImportFrom)) for o in n.names}
    defined |= {o.name for o in nodes if isinstance(o, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))} | {o.arg for o in nodes if isinstance(o, ast.arg)}
    defined |= {o.name for o in nodes if isinstance(o, ast.ExceptHandler)}
    used = {o.id for o in nodes if isinstance(o, ast.Name) and isinstance(o.ctx, ast.Load)}
    return used,defined | {o.id for o in nodes if isinstance(o, ast.Name) and isinstance(o.ctx, ast.Store)}

@pytest.mark.parametrize('nb', [o for d in ('tutorials','howto','start') for o in sorted((root/'nbs'/d).glob('*.ipynb'))], ids=lambda o: o.stem)
def test_can_be_copied(nb):
    "What a page shows needs no name that only a hidden cell has"
    seen = [o.source for o in read_nb(nb).cells if o.cell_type=='code' and not re.search(r'^#\|\s*(hide|echo: false)', o.source, flags=re.M)]
    used,defined = names(ast.parse('\n'.join(seen)))
    assert not used-defined-vars(builtins).keys()

@pytest.mark.parametrize('nb', sorted((root/'nbs').rglob('*.ipynb')), ids=lambda o: o.stem)
def test_lines_fit(nb):
    long = [l for o in read_nb(nb).cells if o.cell_type=='code' and not re.search(r'^#\|\s*hide', o.source, flags=re.M) for l in o.source.splitlines() if len(l)>120]
    assert not long
    assert not [o.id for o in read_nb(nb).cells if o.source!=o.source.strip('\n')], 'cells that begin or end with an empty line'

def test_version(): assert cfg['version']==fastrl.__version__==version('fastrl'), 'run `make install export`'

def test_name(): assert f'name = "{cfg["lib_name"]}"' in (root/'pyproject.toml').read_text()

def test_no_vision():
    "fastai.vision loads torchvision, which must fit the installed torch to the letter; nothing here needs it"
    cells = [(p.name, c.source) for p in (root/'nbs').rglob('*.ipynb') for c in read_nb(p).cells if c.cell_type=='code']
    assert not [o for o in cells if 'fastai.vision' in o[1]]

def test_no_paths_in_outputs():
    "A warning that a notebook stored would show where it was run; a temporary folder is nobody's"
    path = re.compile(r'site-packages|(?<![\w/.:<)…])/(?!tmp/|var/folders/)\w[\w.-]*/\w')
    for nb in (root/'nbs').rglob('*.ipynb'):
        outs = str([o.get('outputs') for o in read_nb(nb).cells if o.cell_type=='code'])
        outs = re.sub(r"'(image/png|bdata)': '[^']*'", '', outs) # base64 has slashes of its own
        assert not (found := path.search(outs)), f'{nb.name} stores a path in its outputs: {outs[found.start():][:80]}'
