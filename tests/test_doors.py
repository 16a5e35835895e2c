"Each part goes through the doors of the others: no private names across modules, all public ones explained"
import ast, importlib, re
from functools import cache
from pathlib import Path
import pytest, torch
from fastcore.nbio import read_nb

root = Path(__file__).parent.parent
paths = {'.'.join(p.relative_to(root).with_suffix('').parts): p for p in sorted((root/'fastrl').rglob('*.py'))
         if p.stem not in ('__init__','_modidx')}
functions = ast.FunctionDef,ast.AsyncFunctionDef
defs = (*functions, ast.ClassDef)
def private(name): return bool(re.fullmatch(r'_(?!_)\w+', name)) and name!='_all_' # which is nbdev's

@cache
def tree(module): return ast.parse(paths[module].read_text(encoding='utf-8'))

def patched(f):
    "The name of the class that `f` is patched onto, if it is"
    marks = [ast.unparse(o).split('(')[0] for o in f.decorator_list]
    return ast.unparse(f.args.args[0].annotation) if 'patch' in marks and f.args.args else None

# %% Who owns which name
def names_in(t):
    "Private names that are made in `t`: defined, assigned, or given to `self`"
    for n in ast.walk(t):
        if isinstance(n, defs): yield n.name
        elif isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store):
            if ast.unparse(n.value) in ('self','cls'): yield n.attr
        elif isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store): yield n.id
        elif isinstance(n, ast.arg): yield n.arg

@cache
def made(module): return {o for o in names_in(tree(module)) if private(o)}

@cache
def everybodys(): return set().union(*map(made, paths))

@cache
def classes():
    "By name: the module of a class, its bases, and its private names"
    res = {n.name: (m, [b.id for b in n.bases if isinstance(b, ast.Name)], {*filter(private, names_in(n))})
           for m in paths for n in tree(m).body if isinstance(n, ast.ClassDef)}
    for m in paths:
        for f in tree(m).body:
            c = patched(f) if isinstance(f, functions) else None
            if c in res and res[c][0]==m: res[c][2].update(filter(private, names_in(f)))
    return res

# what goes by these names everywhere
usual = dict(ring='Ring', walk='Walk', place='Place', fields='Fields', serials='Serials', tree='SumTree',
             sampler='Prioritized', loop='GymLoop', source='Source', learn='Learner',
             **dict.fromkeys(('er','experience_replay','memory'), 'ExperienceReplay'))

others = 'Learner', # classes of other libraries, with private names of their own

def line_of(c):
    "A class and the library's classes that it is made of"
    return [c, *(o for b in classes()[c][1] for o in line_of(b))] if c in classes() else []

def receivers(module):
    "Attributes in `module`, and the class of what they are looked up in, where that can be told"
    def go(n, known):
        if isinstance(n, ast.ClassDef): known = {**known, 'self':n.name, 'cls':n.name}
        if isinstance(n, functions):
            said = [o for o in (*n.args.args, *n.args.kwonlyargs) if o.annotation]
            known = {**known, **{o.arg: ast.unparse(o.annotation) for o in said}}
        if isinstance(n, ast.Attribute):
            of = ast.unparse(n.value)
            yield n,known.get(of) or usual.get(of.split('.')[-1])
        for o in ast.iter_child_nodes(n): yield from go(o, known)
    return go(tree(module), {})

def imports_us(n): return isinstance(n, ast.ImportFrom) and (n.level or (n.module or '').startswith('fastrl'))
def where(module, n, what): return f'{module}:{n.lineno} {what}'

@pytest.mark.parametrize('module', paths)
def test_private_names(module):
    "What begins with an underscore is used where it is made, and nowhere else"
    bad,foreign = [],everybodys()-made(module)
    for n in ast.walk(tree(module)):
        if imports_us(n): bad += [where(module, n, f'imports {o.name}') for o in n.names if private(o.name)]
    for n,c in receivers(module):
        if not private(n.attr): continue
        theirs = [o for o in line_of(c) if classes()[o][0]!=module and n.attr in classes()[o][2]]
        if theirs or n.attr in foreign and c not in others:
            bad.append(where(module, n, f'uses {ast.unparse(n)}{" of "+theirs[0] if theirs else ""}'))
    assert not bad, '\n'.join(bad)

@pytest.mark.parametrize('module', paths)
def test_private_names_as_text(module):
    "Nor by `getattr`, a key of `__dict__`, or as a keyword"
    nodes,foreign = list(ast.walk(tree(module))),everybodys()-made(module)
    parts = {id(o) for n in nodes if isinstance(n, ast.JoinedStr) for o in n.values} # of names that are put together
    texts = [n for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    words = [(n, n.value) for n in texts if id(n) not in parts]
    for n in nodes: # `self.__dict__.update(_x=…)`, but not the names that code is compiled with
        if isinstance(n, ast.Call) and re.search(r'(__dict__|vars\(.*\))\.update$', ast.unparse(n.func)):
            words += [(n, o.arg) for o in n.keywords if o.arg]
    bad = [where(module, n, repr(o)) for n,o in words if private(o) and o in foreign]
    assert not bad, '\n'.join(bad)

def test_no_name_of_a_base():
    "A class does not define a private name anew that one of its bases has in another module"
    bad = [f'{c}.{o} is also of {b}' for c,(m,_,own) in classes().items() for b in line_of(c)[1:]
           if classes()[b][0]!=m for o in own&classes()[b][2]]
    assert not bad, '\n'.join(bad)

def test_one_meaning():
    "A private function, class or constant has a name of its own in the whole library"
    made_in = {}
    for m in paths:
        for n in tree(m).body:
            names = [n.name] if isinstance(n, defs) else [o.id for t in getattr(n, 'targets', []) for o in ast.walk(t) if isinstance(o, ast.Name)]
            for o in filter(private, names): made_in.setdefault(o, set()).add(m)
    bad = [f'{k} in {sorted(v)}' for k,v in made_in.items() if len(v)>1]
    assert not bad, '\n'.join(bad)

@pytest.mark.parametrize('module', paths)
def test_room(module):
    "A module has at most 600 lines"
    n = len(paths[module].read_text(encoding='utf-8').splitlines())
    assert n<=600, f'{module} has {n} lines: split it where the idea changes'

# %% Pages and examples
def code_of(p):
    if p.suffix=='.py': return p.read_text(encoding='utf-8')
    cells = [o.source for o in read_nb(p).cells if o.cell_type=='code']
    return '\n'.join(re.sub(r'^\s*[%!].*', '', o, flags=re.M) for o in cells if not o.lstrip().startswith('%%'))

folders = [*((f'nbs/{o}', '*.ipynb') for o in ('tutorials','howto','start')),
           *(('examples', o) for o in ('*.py','*.ipynb'))]
pages = [root/'nbs/index.ipynb', *(o for d,kind in folders for o in sorted((root/d).rglob(kind)))]

@pytest.mark.parametrize('page', pages, ids=lambda o: o.stem)
def test_pages(page):
    "Nobody needs an underscore to use the library"
    t = ast.parse(code_of(page))
    theirs = everybodys()-{*names_in(t)}
    used = [n.attr for n in ast.walk(t) if isinstance(n, ast.Attribute)]
    used += [n.value for n in ast.walk(t) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    used += [o.name for n in ast.walk(t) if imports_us(n) for o in n.names]
    assert not (bad := sorted({o for o in used if private(o) and o in theirs})), bad

# %% What stands at a door
def has_comment(module, n):
    lines = paths[module].read_text(encoding='utf-8').splitlines()
    return '#' in lines[n.end_lineno-1][n.end_col_offset:]

def methods(c):
    "Public methods and properties of a class, wherever they were patched in: module, function"
    for m in paths:
        for n in tree(m).body:
            if isinstance(n, functions) and patched(n)==c: yield m,n
            if not isinstance(n, ast.ClassDef) or n.name!=c: continue
            yield from ((m, o) for o in n.body if isinstance(o, functions))

def is_setter(f): return any(o in ast.unparse(d) for d in f.decorator_list for o in ('set_prop','.setter'))

def params(f):
    a = f.args
    return [o for o in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if o and o.arg not in ('self','cls')]

@pytest.mark.parametrize('c', ('Ring','Walk','Place','Fields','Serials'))
def test_explained(c):
    "A docstring for each public method and property, a comment for each parameter"
    found,bad = [o for o in methods(c) if not o[1].name.startswith('_')],[]
    assert found
    for m,f in found:
        if not ast.get_docstring(f): bad.append(where(m, f, f'{c}.{f.name} has no docstring'))
        if is_setter(f): continue
        bad += [where(m, o, f'{c}.{f.name}: `{o.arg}` has no comment') for o in params(f) if not has_comment(m, o)]
    assert not bad, '\n'.join(bad)

def test_ring_is_narrow():
    "What one has to know of the store; a name that nobody outside needs stays inside"
    importlib.import_module('fastrl.memory.disk') # which gives it `save`, `load` and `checkpoint`
    from fastrl.memory.ring import Ring
    names = [o for o in dir(Ring(4, dict(a=((2,), torch.float32)))) if o[0]!='_']
    assert len(names)<=23, f'{len(names)} public names: {names}'

# %% Who may know whom
def test_order():
    "A module imports from notebooks that come before its own, so that they can be read in their order"
    of = {}
    for i,p in enumerate(sorted((root/'nbs').glob('*.ipynb'))):
        cells = [o.source for o in read_nb(p).cells[:3] if o.cell_type=='code']
        found = re.search(r'^#\| *default_exp +(\S+)', '\n'.join(cells), flags=re.M)
        if found: of[f'fastrl.{found[1]}'] = i,p.stem
    assert set(of)==set(paths)
    bad = []
    for m in paths:
        for n in ast.walk(tree(m)):
            if isinstance(n, ast.Import): names = [o.name for o in n.names]
            elif isinstance(n, ast.ImportFrom):
                at = '.'.join([*m.split('.')[:-n.level], *([n.module] if n.module else [])]) if n.level else n.module
                names = [at, *(f'{at}.{o.name}' for o in n.names)]
            else: continue
            bad += [where(m, n, f'imports {o}, of {of[o][1]}') for o in names if o in of and of[o][0]>of[m][0]]
    # everything of the fastai page can be had from its module, the pictures too
    bad = [o for o in bad if not ('memory.experience_replay:' in o and 'fastrl.memory.explore' in o)]
    assert not bad, '\n'.join(bad)
