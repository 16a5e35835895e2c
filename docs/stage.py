"""Turn the notebooks into the sources of the site, and into README.md

`python docs/stage.py` runs nbdev's documentation processors over `nbs/`, translates the Quarto dialect that they emit, and
writes plain notebooks to `build/nbs/` (for Sphinx) and plain markdown to `build/md/`. `python docs/stage.py readme` writes
README.md only. Both run in the repository's root."""
import ast, importlib, inspect, re, shutil, sys, yaml
from fastcore.all import *
from fastcore.docments import DocmentTbl, DocmentText
from fastcore.nbio import *
from inspect import isclass
from nbdev.config import get_config, nbpath2html
from nbdev.doclinks import nbglob, NbdevLookup
from nbdev.processors import add_show_docs, exec_show_docs, FilterDefaults
from nbdev.showdoc import BasicMarkdownRenderer

cfg = get_config()
build = cfg.config_path/'build'
plotly_mime = 'application/vnd.plotly.v1+json'

# As nbdev does it, with four differences: which cells run, in which order the definitions of a cell are shown, where names link to,
# and how a definition is shown

class run_definitions(exec_show_docs):
    "As nbdev, which runs what `show_doc` needs; but an import inside of other code doesn't make a cell run"
    def __call__(self, cell):
        trees = cell.cell_type=='code' and cell.parsed_()
        imports = trees and all(isinstance(o, (ast.Import,ast.ImportFrom)) for o in trees)
        defines = {'export','exports','exporti','exec_doc'} & cell.directives_.keys()
        if imports or defines or 'show_doc(' in (cell.source or ''): super().__call__(cell)

class show_in_order(add_show_docs):
    "As nbdev, which shows the definitions of one cell backwards, and a decorated method without its class"
    def begin(self):
        super().begin()
        cells,at = self.nb.cells,[i for i,o in enumerate(self.nb.cells) if getattr(o, 'has_sd', False)]
        for i in at: cells[i].source = re.sub(r'show_doc\((.+)\)', r"show_doc(\1, name='\1')", cells[i].source)
        for run in groupby(at, lambda i: i-at.index(i)).values(): cells[run[0]:run[-1]+1] = cells[run[0]:run[-1]+1][::-1]

ours = {exec_show_docs: run_definitions, add_show_docs: show_in_order}
class Procs(FilterDefaults):
    def base_procs(self): return [ours.get(o, o) for o in super().base_procs()]

_lookup = NbdevLookup.__getitem__
@patch
def __getitem__(self:NbdevLookup, s):
    "As nbdev, but a bare lower-case name links only to our own: elsewhere `merge` is a word and not fastcore's function, and `info` is not a command"
    res = _lookup(self, s)
    if '.' in s or s[:1].isupper() or cfg.doc_url in str(res) and f'{cfg.doc_url}cli.' not in str(res): return res

def short_types(s):
    "`BD` for `fastrl.core.BD`; and no type where there is just a default of None"
    s = re.sub(r'\b(__main__|_C|torch|pathlib|(fastrl|plotly)(\.\w+)+)\.(?=[A-Z])', '', s)
    s = re.sub(r'dataclasses\.InitVar\[(\w+)\]', r'\1', s)
    return s.replace(':NoneType=', '=').replace('| NoneType |', '|  |')

def with_kwargs(tbl, sym):
    "The table of parameters, with the comment beside `**kwargs`: docments loses it, or takes it for that of the result"
    try: m = re.search(r'^ *\*\*(\w+),? *# *(.+)$', inspect.getsource(sym.__init__ if isclass(sym) else sym), flags=re.M)
    except (OSError, TypeError): m = None
    if not m or m[1]=='_': return tbl
    tbl = tbl.replace(f'| **{m[2]}** |', '|  |')
    return re.sub(rf'^\| {m[1]} \|(.*\|)  \|$', lambda o: f'| \\*\\*{m[1]} |{o[1]} {m[2]} |', tbl, flags=re.M)

@patch
def _repr_markdown_(self:BasicMarkdownRenderer):
    "A definition as heading, link to its source, signature, docstring and table of parameters"
    nm = self.nm
    if nm.endswith('__') and not self.sym.__doc__: return ''  # a special method that nothing is said about
    src = NbdevLookup().code(self.fn) or NbdevLookup().code(nm)
    if isclass(self.sym) and (self.sig is None or issubclass(self.sym, Exception)): sig,tbl = f'class {nm}({self.sym.__base__.__name__})',''
    elif self.sig is None: sig,tbl = str(self.dm),''
    else:
        dm = DocmentText(self.sym, docstring=False, maxline=85)
        for o in dm.dm.values(): o['docment'] = None  # they stand in the table
        sig,tbl = (short_types(str(o)) for o in (dm, DocmentTbl(self.sym)))
        tbl = with_kwargs(re.sub(r'^\| _ \|.*\n?', '', tbl, flags=re.M), self.sym)  # `**_` catches misspelt words
        if isclass(self.sym): sig = re.sub('^def', 'class', sig).replace('->None:', ':')
        line = re.sub(r'\(\n +', '(', sig.replace('\n)', ')'))
        if len(line)<=85: sig = line
    return '\n\n'.join(filter(None, [
        f'<span id="{nm.lower()}"></span>' if re.search('[._]', nm) else '',  # elsewhere Sphinx gives the heading this id
        '#'*self.title_level + ' ' + nm.replace('_', r'\_'), f'<a class="src" href="{src}">source</a>' if src else '',
        f'```python\n{sig}\n```', self.docs, tbl]))

# From one notebook to its plain form

def page(f):
    "Address, in the site, of the notebook at `f`"
    return nbpath2html(f.relative_to(cfg.nbs_path))

def resolve(s, f):
    "Markdown `s` of notebook `f`, its links to notebooks made into addresses of the site"
    def url(m):
        p = (f.parent/m[1]).resolve()
        if not p.exists(): raise FileNotFoundError(f'{f.name} links to {m[1]}, which is not there')
        return f']({cfg.doc_url}{page(p).as_posix()}{m[2] or ""})'
    s = re.sub(r'\[([^][]*)\[(`[^`]+`)\]\([^)]*\)([^][]*)\]\(', r'[\1\2\3](', s)  # nbdev linked a name inside of a link
    return re.sub(r'\]\(([^)#:\s]+\.ipynb)(#[^)\s]*)?\)', url, s)

def plotly_html(d, id, js):
    "A figure's JSON as HTML, drawn by plotly.js, which is loaded from `js` if given"
    fig = {k:d[k] for k in ('data','layout','frames') if k in d}
    fig['config'] = dict(responsive=True, displaylogo=False, showSendToCloud=False)
    fig = dumps(fig).replace('</', r'<\/')  # `</script>` in a string would end the script
    return (f'<script src="{js}"></script>\n' if js else '') + (
        f'<div class="plotly-figure" id="{id}" style="height:{d["layout"].get("height") or 450}px"></div>\n'
        f'<script>Plotly.newPlot("{id}", {fig})</script>')

unseen = re.compile(r'^#+ \S*\\_\\_(repr|getstate|setstate|reduce)\\_\\_$', flags=re.M)  # nobody calls these by name

def plain_cell(c, f):
    "Cell `c` of notebook `f`, with tags and plain markdown for nbdev's and Quarto's directives; None if it isn't shown"
    def md(s): return mk_cell(resolve(s, f), 'markdown')
    if c.cell_type=='raw':
        fm = yaml.safe_load(c.source.strip().strip('-'))
        return md('\n\n> '.join(filter(None, [f"# {fm['title']}", fm.get('description')])))
    if c.cell_type=='markdown': return None if 'AUTOGENERATED' in c.source else md(re.sub(r'^#\|.*\n', '', c.source))
    dirs = dict(re.findall(r'^#\|\s*([\w-]+)\s*:?\s*(.*)$', c.source, flags=re.M))
    outs = [] if dirs.get('output')=='false' else c.get('outputs') or []
    if dirs.get('include')=='false': return
    if dirs.get('output')=='asis':
        text = '\n\n'.join(''.join(o.data['text/markdown'] or '') for o in outs if 'data' in o)
        return None if unseen.search(text) or not text else md(text)
    res = mk_cell(re.sub(r'^#\|.*\n?', '', c.source, flags=re.M), id=c.get('id'))
    tags = ['remove-input']*(dirs.get('echo')=='false') + ['hide-input']*('code-fold' in dirs)
    for o in outs: # the name of a temporary folder means nothing to a reader
        if 'text' in o: o['text'] = re.sub(r'/tmp/tmp\w+', '…', ''.join(o['text']))
    res.outputs,res.metadata = outs,{'tags':tags} if tags else {}
    return res if c.source.strip() or outs else None

def defined(cells):
    "The names of the definitions that plain `cells` show, in order"
    text = '\n'.join(o.source for o in cells if o.cell_type=='markdown')
    return [o.replace('\\_', '_') for o in re.findall(r'^#{3,} (\S+)\n\n<a class="src"', text, flags=re.M)]

def overview(cells, mod):
    "What module `mod` defines: first the class that the page is about, with its methods in the order of their use"
    names,lib = L(defined(cells)).unique(),importlib.import_module(mod)
    def said(nm): return (inspect.getdoc(getattr(lib, nm, None)) or '').partition('\n')[0]
    def link(nm, text): return f'[`{text}`](#{nm.lower()})'
    def failure(nm): return isinstance(o := getattr(lib, nm, None), type) and issubclass(o, BaseException)
    about = re.split(r'[:,]? ', cells[0].source.removeprefix('# '))[0].lower()
    tops = names.map(lambda o: o.partition('.')[0]).unique()
    methods = {t: [o for o in names if o.startswith(f'{t}.')] for t in tops}
    intro = cells[1].source # names what the page is for
    def place(o): return (failure(o), o.lower()!=about, intro.find(f'`{o}`') if f'`{o}`' in intro else len(intro), not o[0].isupper())
    tops = sorted(tops, key=place)
    res = []
    for t in tops:
        line = f'- {link(t, t) if t in names else f"`{t}`"}'
        if t in names and (o := said(t)): line += f': {o}'
        if methods[t]: line += f'<br>{" · ".join(link(o, o[len(t):]) for o in methods[t])}'
        res.append(line)
    return '\n'.join(res)

def plain_nb(f):
    "Notebook at `f`, as plain cells whose links are absolute"
    nb = read_nb(f)
    mod = first(m[1] for c in nb.cells if (m := re.match(r'#\|\s*default_exp (\S+)', c.source)))
    Procs()(nb)
    nb.cells = list(filter(None, (plain_cell(c, f) for c in nb.cells)))
    if mod and len(defined(nb.cells))>2:
        at = next(i for i,c in enumerate(nb.cells) if i and (c.cell_type=='code' or '## ' in c.source))
        nb.cells.insert(at, mk_cell(overview(nb.cells, f'{cfg.lib_path.name}.{mod}'), 'markdown', metadata={'overview':True}))
    nb.metadata = dict(language_info=dict(name='python', pygments_lexer='ipython3'))
    return nb

# From the plain form to markdown, or to a page of the site

def out_md(o, url):
    "Markdown of one output; pictures stay on the site"
    d = o.get('data', {})
    if plotly_mime in d or any(k.startswith('image/') for k in d): return f'*A picture stands here [on the site]({url}).*'
    if 'text/markdown' in d: return ''.join(d['text/markdown'])
    s = ''.join(o.get('text') or d.get('text/plain') or '').rstrip()
    return f'```\n{s}\n```' if s else ''

def to_md(nb, url):
    "Markdown of plain notebook `nb`, whose page is at `url`"
    res = []
    for c in nb.cells:
        if c.cell_type=='markdown': res.append(c.source)
        else:
            if 'remove-input' not in c.metadata.get('tags', []): res.append(f'```python\n{c.source}\n```')
            res += [out_md(o, url) for o in c.outputs]
    return '\n\n'.join(o.strip() for o in res if o.strip()) + '\n'

def readme():
    "README.md's text: the index, with links to files of the repository"
    md = to_md(plain_nb(cfg.nbs_path/cfg.readme_nb), cfg.doc_url).replace(f'](https://github.com/{cfg.user}/{cfg.repo}/blob/main/', '](')
    files = {page(f).as_posix(): f.relative_to(cfg.config_path).as_posix() for f in nbglob(as_path=True)}
    md = re.sub(rf'\]\({re.escape(cfg.doc_url)}([^)#]+)(#[^)]*)?\)', lambda m: f']({files[m[1]]})', md) # there, wherever it was cloned
    return re.sub(r'(!\[[^]]*\]\(|<img [^>]*src=")(?!\w+:)', rf'\1{cfg.nbs_path.name}/', md)

def to_site(nb, up):
    "Make plain notebook `nb` a page of the site, whose root is at `up` from there"
    js = f'{up}_static/plotly.min.js'
    for c in nb.cells:
        if c.cell_type=='markdown':
            url = f']({cfg.doc_url}'
            c.source = c.source.replace(f'{url})', f'{url}index.html)').replace(url, f']({up}')
            if c.metadata.get('overview'): c.source = f':::{{container}} overview\n{c.source}\n:::'
            continue
        for i,o in enumerate(c.outputs):
            if (d := nested_idx(o, 'data', plotly_mime)):
                o['data'] = {'text/plain': 'interactive figure', 'text/html': plotly_html(d, f'fig-{c.id}-{i}', js)}
                js = ''  # once a page
        # a picture for a fine screen has twice the pixels of its width
        if (w := first(nested_idx(o, 'metadata', 'image/png', 'width') for o in c.outputs)):
            c.metadata['mystnb'] = {'image': {'width':f'{w}px'}}

# The sidebar: captions, the pages below them, and below these the pages of their parts. A page of a folder that is not listed comes last.
contents = {
    'Start': {'start/modules': [], 'start/comparison': [], 'start/checked': [], 'start/not_here': []},
    'Tutorials': dict.fromkeys(f'tutorials/{o}' for o in (
        'first_agent','plain_pytorch','sac','ppo','endings','priorities','offline_online','looking','larger_than_ram','many_workers','your_own')) | {
        'tutorials/episodes_quickstart': ['tutorials/episodes_workers', 'tutorials/episodes_compose', 'tutorials/recurrent_tmaze', 'tutorials/r2d2']},
    'How-to': dict.fromkeys(f'howto/{o}' for o in ('recipes','frames','gpu','cluster','fastai','speed','sb3','minari','world_models','from_velora','from_rose','from_buffers','from_fastrl')),
    'Reference: the memory': {
        'memory.replay': ['memory.columns', 'memory.on_device', 'memory.ahead', 'memory.stream', 'memory.rollout', 'memory.split', 'memory.limit'], 'memory.experience_replay': ['memory.updates'], 'memory.sample': ['memory.mixture', 'memory.tree', 'memory.walk', 'memory.told', 'memory.returns', 'memory.folds', 'memory.starts', 'memory.td_errors', 'memory.positions'],
        'memory.ring': ['memory.row', 'memory.writer', 'memory.alike', 'memory.place', 'memory.random', 'memory.tensors', 'memory.recorded', 'memory.turn', 'memory.serial', 'memory.moment', 'memory.frames', 'memory.windows', 'memory.stacks', 'memory.joins'],
        'memory.disk': ['memory.checkpoint', 'memory.saved', 'memory.manifest', 'memory.files'],
        'memory.explore': [], 'memory.check': ['pytest_plugin'], 'memory.buffer': [], 'compat': ['sb3', 'offline'], 'core': [], 'cli': []},
    'Reference: environments': {
        'data.block': [], 'data.gym': ['data.envs', 'data.steps', 'memory.vector'], 'data.learner': [], 'agents.dqn': ['agents.nets']},
    'Reference: episodes': {
        'memory.episodes': ['memory.running'], 'memory.episode_rows': [], 'memory.episode_files': [],
        'memory.dataset': ['memory.table'], 'memory.loader': ['memory.slots']},
    'Reference: banks and workers': {
        'memory.bank': ['memory.bank_rows', 'memory.bank_frames', 'memory.forms', 'memory.bankfile', 'memory.unpickle', 'memory.seen'],
        'parallel': ['tasks', 'engines', 'bank_folder', 'run_state', 'learner_config', 'supervisor']}}
captions = {'start':'Start', 'tutorials':'Tutorials', 'howto':'How-to'}  # of the folders of `nbs/`

# What people type into the search box, and where the site answers it
words = {
    'memory.replay': 'replay buffer; experience replay; replay memory',
    'tutorials/plain_pytorch': 'PyTorch; training loop', 'memory.experience_replay': 'fastai; callback; Learner',
    'tutorials/priorities': 'prioritized experience replay; PER; n-step; n-step returns; multi-step returns',
    'memory.sample#prioritized': 'prioritized experience replay; importance sampling weights', 'memory.tree': 'sum tree; segment tree',
    'tutorials/larger_than_ram#how-much-memory-it-takes': 'memory usage; memory use; RAM', 'memory.place': 'memory mapped; shared memory; GPU', 'memory.random': 'seed; random numbers', 'memory.ahead': 'prefetch; DataLoader; pin_memory; background thread',
    'tutorials/recurrent_tmaze': 'LSTM; GRU; RNN; recurrent; DRQN; POMDP', 'tutorials/r2d2': 'R2D2; recurrent; LSTM; POMDP; stored state',
    'howto/world_models': 'DreamerV3; Dreamer; TD-MPC2; world model; model-based; latent states', 'memory.episodes': 'sequences; recurrent replay',
    'tutorials/endings': 'terminated; truncated; done; time limit; TimeLimit; bootstrapping; autoreset', 'memory.returns': 'n-step; n-step returns; discount', 'memory.starts': 'R2D2; prioritized sequences; eta', 'memory.stream': 'truncated backpropagation; TBPTT; continuing tasks',
    'memory.limit': 'samples per insert; rate limiter; reverb; replay ratio', 'memory.replay#burn-in-and-stored-states': 'burn-in; stored state; recurrent state',
    'memory.disk': 'save; load; checkpoint; resume; safetensors', 'memory.vector': 'vector environments; VectorEnv; AsyncVectorEnv',
    'agents.dqn': 'DQN; Double DQN; Dueling DQN; Rainbow', 'parallel': 'distributed; Dask; Ray; parallel', 'cli': 'command line; terminal',
    'pytest_plugin': 'pytest; test; plugin', 'memory.check': 'bugs; mistakes; correctness',
    'memory.explore': 'plot; visualize; dashboard; report', 'start/comparison': 'torchrl; reverb; cpprb; tianshou; stable-baselines3; SB3; flashbax; benchmark',
    'howto/gpu': 'GPU; CUDA; device; torch.compile', 'memory.tensors': 'torch.compile', 'memory.recorded': 'CUDA graphs',
    'howto/cluster': 'SLURM; cluster; preemption; SIGTERM; requeue; actors and learner; Ape-X',
    'howto/speed': 'performance; profiling; slow training; overhead; torch.compile; fused optimizer',
    'howto/frames': 'frame stacking; frame stack; FrameStackObservation; AtariPreprocessing; Atari; images',
    'howto/frames#how-much-memory-it-takes': 'memory usage; RAM', 'memory.sample#her-hindsight-experience-replay': 'HER; hindsight experience replay; goal',
    'howto/sb3': 'stable-baselines3; SB3; sbx; prioritized replay in SB3; replay_buffer_class; resume SB3', 'howto/sb3#her': 'HerReplayBuffer; HER in SB3', 'compat': 'cleanrl; CleanRL',
    'howto/minari': 'Minari; offline dataset; from_minari; to_minari', 'howto/minari#d4rls-arrays': 'D4RL; qlearning_dataset',
    'howto/minari#robot-data-robomimic-lerobot-rlds': 'robomimic; LeRobot; RLDS; Open X-Embodiment; demonstrations; delta_timestamps', 'offline': 'Minari; D4RL',
    'tutorials/offline_online': 'offline RL; offline to online; RLPD; CQL', 'memory.mixture': 'mixture; symmetric sampling; several memories',
    'start/not_here#jax-and-tensorflow': 'JAX; TensorFlow',
    'start/not_here#a-server-for-many-machines': 'server; remote; rate limiter', 'tutorials/sac': 'SAC; soft actor-critic; continuous actions; Pendulum', 'start/not_here#other-agents': 'TD3; A2C; policy gradient', 'tutorials/ppo': 'PPO; on-policy; actor-critic', 'memory.split': 'validation set; held-out episodes; train-test split', 'memory.rollout': 'GAE; rollout; RolloutBuffer; on-policy; advantages; epoch; without replacement'}

def toctree(pages, titles, caption=None):
    "A hidden table of contents, which names each page by its title up to the colon"
    head = ['```{toctree}', ':hidden:'] + ([f':caption: {caption}'] if caption else []) + ['']
    return mk_cell('\n'.join([*head, *(f'{titles[o].partition(":")[0]} </{o}>' for o in pages), '```']), 'markdown')

def toctrees(titles):
    "`{page: its tables of contents}`; every page of `titles` stands in just one"
    tree = {k: dict(v) for k,v in contents.items()}
    listed = [o for v in tree.values() for k,kids in v.items() for o in (k, *(kids or ()))]
    for o in sorted(titles.keys()-{*listed, 'index'}):
        if (folder := o.rpartition('/')[0]) not in captions: raise ValueError(f'`contents` in docs/stage.py has no place for {o}')
        tree[captions[folder]][o] = []
    tree = {k: {p: [o for o in kids or () if o in titles] for p,kids in v.items() if p in titles} for k,v in tree.items()}
    res = {p: [toctree(kids, titles)] for v in tree.values() for p,kids in v.items() if kids}
    return res | {'index': [toctree(v, titles, k) for k,v in tree.items() if v]}

def slug(line): return re.sub(r'[^\w -]', '', line.strip('# ').lower()).replace(' ', '-') if line.startswith('#') else None

def add_words(nb, nm):
    "Put the search words of page `nm` below the headings that answer them"
    for k,v in words.items():
        page,_,at = k.partition('#')
        if page!=nm: continue
        index = ['', f'```{{index}} {", ".join(f"!{o}" for o in v.split("; "))}', '```', '']  # `!`: listed before all that mention it
        for c in nb.cells if at else nb.cells[:1]:
            lines = c.source.splitlines()
            i = len(lines) if not at else next((i+1 for i,l in enumerate(lines) if slug(l)==at), 0) if c.cell_type=='markdown' else 0
            if not i: continue
            c.source = '\n'.join([*lines[:i], *index, *lines[i:]])
            break
        else: raise ValueError(f'`words` in docs/stage.py names {k}, and there is no such heading')

def stage():
    "Write each notebook to `build/nbs/` and, as markdown, to `build/md/`: nbdev's module docstrings link to the latter"
    fs = nbglob(as_path=True).sorted(key=str)
    others = shutil.ignore_patterns('*.ipynb', '*.py', '_*', '.*', '*.yml')
    for o in ('nbs','md'):
        shutil.rmtree(build/o, ignore_errors=True)
        shutil.copytree(cfg.nbs_path, build/o, ignore=others)  # pictures, llms.txt
    names = [page(f).with_suffix('').as_posix() for f in fs]
    method = 'fork' if sys.platform=='linux' else None
    nbs = dict(zip(names, parallel(plain_nb, fs, method=method, progress=False)))
    trees = toctrees({k: v.cells[0].source.splitlines()[0].removeprefix('# ') for k,v in nbs.items()})
    for nm,nb in nbs.items():
        (build/f'md/{nm}.html.md').mk_write(to_md(nb, f'{cfg.doc_url}{nm}.html'))
        to_site(nb, '../'*nm.count('/'))
        add_words(nb, nm)
        nb.cells += trees.get(nm, [])
        write_nb(nb, build/f'nbs/{nm}.ipynb')

if __name__=='__main__':
    if sys.argv[1:]==['readme']: (cfg.config_path/'README.md').write_text(readme(), encoding='utf-8')
    else:
        import stage # by name: other processes could not find what is in `__main__`, whose place the cells take that run
        stage.stage()
