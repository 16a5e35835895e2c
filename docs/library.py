"""What an export leaves to do in `fastrl/`: comments beside parameters go into docstrings, and stubs tell editors the methods

`python docs/library.py` runs after `nbdev-export`, in the repository's root. `help` and `?` show docstrings only, so each function
gets its parameters' comments there. Methods are patched into their classes, which no editor follows, so each module gets
a stub (`.pyi`) in which they stand where they belong."""
import ast, io, re, tokenize
from pathlib import Path

functions = ast.FunctionDef,ast.AsyncFunctionDef

def is_public(name): return name[0]!='_' or name[:2]==name[-2:]=='__'

def modules(lib):
    "The exported modules below `lib`, by dotted name"
    files = [o for o in sorted(lib.rglob('*.py')) if o.name not in ('_modidx.py', '__init__.py')]
    return {'.'.join(o.relative_to(lib).with_suffix('').parts): o for o in files}

# Comments beside parameters

def all_args(node):
    a = node.args
    return [o for o in (*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg) if o is not None]

def last_lines(node):
    "The line on which each argument of `node` ends, with its default"
    a = node.args
    pos = [*a.posonlyargs, *a.args]
    ends = {o.arg: o.end_lineno for o in all_args(node)}
    with_default = [*zip(pos[len(pos)-len(a.defaults):], a.defaults), *zip(a.kwonlyargs, a.kw_defaults)]
    return ends | {o.arg: d.end_lineno for o,d in with_default if d is not None}

def said_in(node, lines):
    "The comments in the signature of `node`, by line; the one behind its colon stands under `return`"
    src = '\n'.join(lines[node.lineno-1:node.body[0].end_lineno])+'\n'
    said,depth,over = {},0,False
    for o in tokenize.generate_tokens(io.StringIO(src).readline):
        if o.type==tokenize.COMMENT:
            k = 'return' if over else node.lineno-1+o.start[0]
            said[k] = f"{said.get(k, '')} {o.string.lstrip('# ')}".strip()
        elif over and (o.type not in (tokenize.NEWLINE, tokenize.NL) or 'return' not in said): break # the body begins
        depth += (o.string in '([{')-(o.string in ')]}') if o.type==tokenize.OP else 0
        over = over or o.type==tokenize.OP and o.string==':' and not depth
    return said

def comments(node, lines):
    "`{parameters: comment}` of a function, those that share a line together, and under `return` that of its result"
    said,at = said_in(node, lines),{}
    for name,line in last_lines(node).items():
        if name not in ('self','cls'): at[line] = (*at.get(line, ()), name)
    one_line = lines[node.lineno-1].rstrip().endswith(said.get('return', '\n'))
    if one_line and said['return'][:2]!='->': return {} # a remark on the code
    return {at.get(line, line): text for line,text in said.items() if line in at or line=='return'}

def described(node, lines):
    "The docstring of `node` with its parameters' comments, or `None` if there are none"
    said = comments(node, lines)
    if not said: return
    stars = {node.args.vararg: '*', node.args.kwarg: '**'}
    names = {o.arg: stars.get(o, '')+o.arg for o in all_args(node)}
    doc = re.split(r'(?:^|\n)- (?:`|returns: )', ast.get_docstring(node) or '')[0] # it may have been here before
    items = [f"- {', '.join(f'`{names[o]}`' for o in k)}: {v}" for k,v in said.items() if k!='return']
    if 'return' in said: items.append(f"- returns: {said['return'].removeprefix('->').strip()}")
    return '\n'.join([doc, *items]).strip()

def quoted(doc, pad):
    "The lines of a docstring, indented by `pad`"
    end = '\n' if doc[-1] in '"\\' else ''
    text = ('r' if '\\' in doc else '')+'"""'+doc.replace('"""', "'''")+end+'"""'
    return [f'{pad}{o}'.rstrip() for o in text.splitlines()]

def with_docs(src):
    "The source `src`, its docstrings with the parameters' comments"
    lines,tree = src.splitlines(),ast.parse(src)
    for node in sorted((o for o in ast.walk(tree) if isinstance(o, functions)), key=lambda o: -o.lineno):
        doc,first = described(node, lines) if is_public(node.name) else '',node.body[0]
        if not doc: continue
        i,pad = first.lineno-1,' '*(node.col_offset+4)
        before,after = lines[i][:first.col_offset],lines[i][first.col_offset:]
        has = ast.get_docstring(node, clean=False) is not None
        if before.strip(): lines[i:i+1] = [before.rstrip(), *quoted(doc, pad), pad+after] # the body began beside the colon
        else: lines[i:first.end_lineno if has else i] = quoted(doc, pad)
    return apart('\n'.join(lines)+'\n')

def apart(src):
    "An empty line between nbdev's comment and a definition without docstring, of which `help` would show the comment"
    lines = src.splitlines()
    for o in reversed(ast.parse(src).body):
        if not isinstance(o, (*functions, ast.ClassDef)) or ast.get_docstring(o): continue
        i = min([o.lineno, *(d.lineno for d in o.decorator_list)])-1
        if lines[i-1].startswith('# %%'): lines.insert(i, '')
    return '\n'.join(lines)+'\n'

# Stubs

def name_of(deco):
    "`patch` of `@patch(as_prop=True)`"
    return ast.unparse(deco.func if isinstance(deco, ast.Call) else deco)

def patched(node):
    "How a function is patched into its classes: `None`, or a dict of `patch`'s arguments"
    for o in node.decorator_list if isinstance(node, functions) else ():
        if name_of(o)=='patch': return {k.arg: True for k in getattr(o, 'keywords', ())}

def classes_of(node):
    "The names of the classes that a patched function belongs to"
    ann = (node.args.posonlyargs or node.args.args)[0].annotation
    parts = ann.elts if isinstance(ann, ast.Tuple) else [ann]
    return [ast.unparse(o) for o in parts]

def or_none(ann):
    return ann if re.search(r'\b(None|Optional|Any)\b', ast.unparse(ann)) else ast.BinOp(ann, ast.BitOr(), ast.Constant(None))

def optional(args):
    "Let a parameter be `None` where that is its default, and anything where a default is all that is said of it"
    pos = [*args.posonlyargs, *args.args]
    for a,d in [*zip(pos[len(pos)-len(args.defaults):], args.defaults), *zip(args.kwonlyargs, args.kw_defaults)]:
        if a.annotation is None and d is not None and not (isinstance(d, ast.Constant) and isinstance(d.value, (int, float))):
            a.annotation = ast.Name('Any')
        if a.annotation is not None and isinstance(d, ast.Constant) and d.value is None: a.annotation = or_none(a.annotation)

def stub_of(node, how=None):
    "A function without its body; as a method, if it was patched in"
    node = ast.parse(ast.unparse(node)).body[0]
    decos = [o for o in node.decorator_list if name_of(o) in ('property','classmethod','staticmethod','contextmanager') or name_of(o).endswith('.setter')]
    if how is not None:
        (node.args.posonlyargs or node.args.args)[0].annotation = None
        add = {'as_prop': 'property', 'set_prop': f'{node.name}.setter', 'cls_method': 'classmethod'}
        decos += [ast.Name(add[o]) for o in how if o in add]
    node.decorator_list = decos
    a = node.args # what is called `_` is there to be refused
    a.vararg,a.kwarg = (o if o is None or o.arg!='_' else None for o in (a.vararg, a.kwarg))
    optional(a)
    doc = ast.get_docstring(node, clean=False)
    node.body = [node.body[0]] if doc is not None else []
    node.body.append(ast.Expr(ast.Constant(...)))
    return node

def kind_of(value, params):
    "The type that an attribute gets from `value`: `None` if a variable does not tell"
    if isinstance(value, ast.Name): return params.get(value.id)
    if isinstance(value, (ast.IfExp, ast.BoolOp)): return 'Any'
    if isinstance(value, ast.Constant) and value.value is not None: return type(value.value).__name__
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id[0].isupper(): return value.func.id
    return 'Any'

# What an index gives depends on its type, which one annotation cannot say
indexed = {'BD': [('str', 'Any'), ('Any', 'BD')], 'ExperienceReplay': [('str', 'Tensor'), ('Any', 'ExperienceReplay')],
           'ExperienceBank': [('int', 'Experience'), ('slice', 'list[Experience]')]}

def overloads(cls):
    "How the class of that name may be indexed"
    lines = [f'@overload\ndef __getitem__(self, o: {a}) -> {b}: ...' for a,b in indexed.get(cls, ())]
    return ast.parse('\n'.join(lines)).body

def params_of(func):
    "`{parameter: annotation}` of a function, `None` included where it may be"
    args = ast.parse(ast.unparse(func)).body[0].args
    optional(args)
    return {o.arg: ast.unparse(o.annotation) for o in (*args.posonlyargs, *args.args, *args.kwonlyargs) if o.annotation}

def assigned(func):
    "Pairs of each attribute that `func` gives to `self`, and its value"
    for o in ast.walk(func):
        if not isinstance(o, (ast.Assign, ast.AnnAssign)): continue
        for t in o.targets if isinstance(o, ast.Assign) else [o.target]:
            many = isinstance(t, ast.Tuple)
            values = o.value.elts if many and isinstance(o.value, ast.Tuple) else [o.value]*len(t.elts) if many else [o.value]
            for k,v in zip(t.elts if many else [t], values):
                whole = v if not many or isinstance(o.value, ast.Tuple) else None # of unpacked values we do not know the parts
                if isinstance(k, ast.Attribute) and isinstance(k.value, ast.Name) and k.value.id=='self': yield k.attr,whole

def attributes(methods):
    "`{name: type}` of what the methods of a class give to `self`"
    kinds = {}
    for f in methods:
        for k,v in assigned(f):
            if is_public(k): kinds.setdefault(k, set()).add(kind_of(v, params_of(f)))
    return {k: ({*v}-{None} or {'Any'}).pop() if len(v-{None})<2 else 'Any' for k,v in kinds.items()}

def plain_assign(node):
    "An assignment of public names as a stub has it"
    if isinstance(node, ast.AnnAssign):
        if isinstance(node.value, ast.Constant) and node.value.value is None: node.annotation = or_none(node.annotation)
        return [node] if is_public(ast.unparse(node.target)) else []
    targets = [t for t in node.targets if not isinstance(t, ast.Attribute)] # a class is given something there
    names = [o.id for t in targets for o in ast.walk(t) if isinstance(o, ast.Name) and (is_public(o.id))]
    if names==['__all__'] or names and isinstance(node.value, ast.Name) and node.value.id[0].isupper(): return [node] # another name of a class
    if isinstance(node.value, ast.Call) and name_of(node.value)=='property':
        return ast.parse(''.join(f'@property\ndef {o}(self): ...\n' for o in names)).body
    if len(node.targets)==1 and len(names)==1 and isinstance(node.value, ast.Constant) and node.value.value is not None:
        return [ast.parse(f'{names[0]}: {type(node.value.value).__name__}').body[0]]
    return [ast.parse(f'{o}: Any').body[0] for o in names]

def stub_class(node, methods):
    "A class with its attributes, and with the methods that were patched into it, as pairs of function and how"
    node = ast.parse(ast.unparse(node)).body[0]
    own = [o for o in node.body if isinstance(o, functions)]
    body = [o for o in node.body if isinstance(o, ast.Expr) and isinstance(o.value, ast.Constant)][:1]
    for o in node.body:
        if isinstance(o, (ast.Assign, ast.AnnAssign)): body += plain_assign(o)
    funcs = [stub_of(f, how) for f,how in [*((o, None) for o in own), *methods] if is_public(f.name) and f.name!='__getattr__']
    taken = {o.name for o in funcs} | {n.id for o in body for n in ast.walk(o) if isinstance(n, ast.Name)}
    found = attributes([*own, *(f for f,how in methods)])
    body += [ast.parse(f'{k}: {v}').body[0] for k,v in found.items() if k not in taken and (v=='Any' or 'self' not in v)]
    if node.name in indexed: funcs = [o for o in funcs if o.name!='__getitem__']+overloads(node.name)
    node.body = [*body, *funcs] or [ast.Expr(ast.Constant(...))]
    return node

def imports_for(func, origin, home):
    "What the stub of module `home` needs for a method that module `origin` patches into a class there"
    path,tree = origin
    used = {n.id for o in (*all_args(func),) if o.annotation for n in ast.walk(o.annotation) if isinstance(n, ast.Name)}
    used |= {n.id for n in ast.walk(func.returns) if isinstance(n, ast.Name)} if func.returns else set()
    have = {(a.asname or a.name) for o in home.body if isinstance(o, (ast.Import, ast.ImportFrom)) for a in o.names}
    have |= {o.name for o in home.body if isinstance(o, (*functions, ast.ClassDef))}
    for o in tree.body:
        if isinstance(o, ast.ClassDef) and o.name in used-have: yield f'from fastrl.{path} import {o.name}'
        if isinstance(o, ast.ImportFrom) and not o.level:
            yield from (f'from {o.module} import {a.name}' for a in o.names if a.name in used-have)

def stubs(sources):
    "The stub of each of the modules `{dotted name: source}`"
    trees = {k: ast.parse(v) for k,v in sources.items()}
    own = {k: {o.name for o in t.body if isinstance(o, ast.ClassDef)} for k,t in trees.items()}
    home = {c: k for k in reversed(trees) for c in own[k]} # of two classes with one name the first
    methods,extra = {},{k: [] for k in trees}
    for k,t in trees.items():
        for f in t.body:
            if (how := patched(f)) is None: continue
            for c in classes_of(f):
                if (of := k if c in own[k] else home.get(c)) is None: continue
                methods.setdefault((of, c), []).append((f, how))
                if of!=k: extra[of] += imports_for(f, (k, t), trees[of])
    return {k: stub_module(t, {c: m for (of,c),m in methods.items() if of==k}, extra[k]) for k,t in trees.items()}

def needed(node, used):
    "An import of nothing but what is `used`; a star stays whole"
    names = [o for o in node.names if o.name=='*' or (o.asname or o.name).split('.')[0] in used]
    made = [o.name for o in names if re.fullmatch(r'Cancel\w+Exception', o.name)] # by fastai at runtime, which no checker sees
    node = ast.parse(ast.unparse(node)).body[0]
    node.names = [o for o in names if o.name not in made]
    return [*([node] if node.names else []), *(ast.parse(f'class {o}(Exception): ...').body[0] for o in made)]

def stub_module(tree, methods, extra):
    "The text of a stub"
    body,imports = [],[]
    classes = {o.name for o in tree.body if isinstance(o, ast.ClassDef)}
    for o in tree.body:
        if isinstance(o, (ast.Import, ast.ImportFrom)): imports.append(o)
        elif isinstance(o, (ast.Assign, ast.AnnAssign)):
            body += [n for n in plain_assign(o) if not isinstance(n, ast.AnnAssign) or ast.unparse(n.target) not in classes]
        elif isinstance(o, ast.ClassDef): body.append(stub_class(o, methods.get(o.name, [])))
        elif isinstance(o, functions) and patched(o) is None and is_public(o.name): body.append(stub_of(o))
    nodes = [n for o in body for n in ast.walk(o)]
    used = {n.id for n in nodes if isinstance(n, ast.Name)} | {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    body = [n for o in imports for n in needed(o, used)]+body
    doc = ast.get_docstring(tree, clean=False)
    lines = [ast.unparse(ast.Module([ast.Expr(ast.Constant(doc))], []))] if doc else []
    lines += ['from typing import Any, overload', *dict.fromkeys(extra), ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))]
    return '\n'.join(lines)+'\n'

def stub_of_package(src):
    "The main names, which `fastrl/__init__.py` imports when they are asked for"
    tree = ast.parse(src)
    where = next(eval(ast.unparse(o.value)) for o in tree.body if isinstance(o, ast.Assign) and o.targets[0].id=='_where')
    doc = ast.unparse(ast.Module([ast.Expr(ast.Constant(ast.get_docstring(tree, clean=False)))], []))
    return '\n'.join([doc, *(f'from .{m} import {k} as {k}' for k,m in where.items()), '__version__: str'])+'\n'

def write(lib):
    "Bring the docstrings and stubs of the library in folder `lib` up to date"
    files = modules(lib)
    for f in files.values(): f.write_text(with_docs(f.read_text(encoding='utf-8')), encoding='utf-8')
    found = stubs({k: f.read_text(encoding='utf-8') for k,f in files.items()})
    for f in set(lib.rglob('*.pyi'))-{o.with_suffix('.pyi') for o in (*files.values(), lib/'__init__.py')}: f.unlink()
    for k,s in found.items(): files[k].with_suffix('.pyi').write_text(s, encoding='utf-8')
    (lib/'__init__.pyi').write_text(stub_of_package((lib/'__init__.py').read_text(encoding='utf-8')), encoding='utf-8')

if __name__=='__main__': write(Path('fastrl'))
