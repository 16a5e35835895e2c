"""Turn the notebooks into the sources of the site, and into README.md

`python docs/stage.py` runs nbdev's documentation processors over `nbs/`, translates the Quarto dialect that they emit, and
writes plain notebooks to `build/nbs/` (for Sphinx) and plain markdown to `build/md/`. `python docs/stage.py readme` writes
README.md only. Both run in the repository's root."""
import ast, inspect, re, shutil, sys, yaml
from fastcore.all import *
from fastcore.docments import DocmentTbl, DocmentText
from fastcore.nbio import *
from inspect import isclass
from nbdev.config import get_config, nbpath2html
from nbdev.doclinks import nbglob, NbdevLookup
from nbdev.processors import exec_show_docs, FilterDefaults
from nbdev.showdoc import BasicMarkdownRenderer

cfg = get_config()
build = cfg.config_path/'build'
plotly_mime = 'application/vnd.plotly.v1+json'

# As nbdev does it, with three differences: which cells run, where names link to, and how a definition is shown

class run_definitions(exec_show_docs):
    "As nbdev, which runs what `show_doc` needs; but an import inside of other code doesn't make a cell run"
    def __call__(self, cell):
        trees = cell.cell_type=='code' and cell.parsed_()
        imports = trees and all(isinstance(o, (ast.Import,ast.ImportFrom)) for o in trees)
        defines = {'export','exports','exporti','exec_doc'} & cell.directives_.keys()
        if imports or defines or 'show_doc(' in (cell.source or ''): super().__call__(cell)

class Procs(FilterDefaults):
    def base_procs(self): return [run_definitions if o is exec_show_docs else o for o in super().base_procs()]

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
    if not m: return tbl
    tbl = tbl.replace(f'| **{m[2]}** |', '|  |')
    return re.sub(rf'^\| {m[1]} \|(.*\|)  \|$', lambda o: f'| \\*\\*{m[1]} |{o[1]} {m[2]} |', tbl, flags=re.M)

@patch
def _repr_markdown_(self:BasicMarkdownRenderer):
    "A definition as heading, link to its source, signature, docstring and table of parameters"
    src,nm = NbdevLookup().code(self.fn),self.nm
    if isclass(self.sym) and (self.sig is None or issubclass(self.sym, Exception)): sig,tbl = f'class {nm}({self.sym.__base__.__name__})',''
    elif self.sig is None: sig,tbl = str(self.dm),''
    else:
        dm = DocmentText(self.sym, docstring=False, maxline=85)
        for o in dm.dm.values(): o['docment'] = None  # they stand in the table
        sig,tbl = (short_types(str(o)) for o in (dm, DocmentTbl(self.sym)))
        tbl = with_kwargs(tbl, self.sym)
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
        f'<div class="plotly-figure{" wide" if "xaxis2" in d["layout"] else ""}" id="{id}" style="height:{d["layout"].get("height") or 450}px"></div>\n'
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
        text = '\n\n'.join(''.join(o.data['text/markdown']) for o in outs if 'data' in o)
        return None if unseen.search(text) else md(text)
    res = mk_cell(re.sub(r'^#\|.*\n?', '', c.source, flags=re.M), id=c.get('id'))
    tags = ['remove-input']*(dirs.get('echo')=='false') + ['hide-input']*('code-fold' in dirs)
    for o in outs: # the name of a temporary folder means nothing to a reader
        if 'text' in o: o['text'] = re.sub(r'/tmp/tmp\w+', '…', ''.join(o['text']))
    res.outputs,res.metadata = outs,{'tags':tags} if tags else {}
    return res if c.source.strip() or outs else None

def plain_nb(f):
    "Notebook at `f`, as plain cells whose links are absolute"
    nb = read_nb(f)
    Procs()(nb)
    nb.cells = list(filter(None, (plain_cell(c, f) for c in nb.cells)))
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
    "README.md's text: the index, with its pictures where the repository has them"
    md = to_md(plain_nb(cfg.nbs_path/cfg.readme_nb), cfg.doc_url)
    return re.sub(r'(!\[[^]]*\]\(|<img [^>]*src=")(?!\w+:)', rf'\1{cfg.nbs_path.name}/', md)

def to_site(nb, up):
    "Make plain notebook `nb` a page of the site, whose root is at `up` from there"
    js = f'{up}_static/plotly.min.js'
    for c in nb.cells:
        if c.cell_type=='markdown':
            url = f']({cfg.doc_url}'
            c.source = c.source.replace(f'{url})', f'{url}index.html)').replace(url, f']({up}')
            continue
        for i,o in enumerate(c.outputs):
            if (d := nested_idx(o, 'data', plotly_mime)):
                o['data'] = {'text/plain': 'interactive figure', 'text/html': plotly_html(d, f'fig-{c.id}-{i}', js)}
                js = ''  # once a page
        # a picture for a fine screen has twice the pixels of its width
        if (w := first(nested_idx(o, 'metadata', 'image/png', 'width') for o in c.outputs)):
            c.metadata['mystnb'] = {'image': {'width':f'{w}px'}}

groups = {'start':'Start', 'tutorials':'Tutorials', 'howto':'How-to', '':'Reference'}  # folders of `nbs/`, as the site names them

def toctrees(pages, index):
    "Contents: a list for each folder, its pages in the order of the last link to each in the text `index`"
    dirs = groupby(pages, lambda o: o.rpartition('/')[0])
    if new := dirs.keys()-groups.keys(): raise ValueError(f'`groups` has no name for the pages in {new}')
    for k,v in dirs.items():
        if k: v.sort(key=lambda o: index.rfind(f'({o}.html'))
    return [mk_cell('\n'.join(['```{toctree}', ':hidden:', f':caption: {v}', '', *dirs[k], '```']), 'markdown') for k,v in groups.items() if k in dirs]

def stage():
    "Write each notebook to `build/nbs/` and, as markdown, to `build/md/`: nbdev's module docstrings link to the latter"
    fs = nbglob(as_path=True).sorted(key=str)
    others = shutil.ignore_patterns('*.ipynb', '*.py', '_*', '.*', '*.yml')
    for o in ('nbs','md'):
        shutil.rmtree(build/o, ignore_errors=True)
        shutil.copytree(cfg.nbs_path, build/o, ignore=others)  # pictures, llms.txt
    names = {f: page(f).with_suffix('').as_posix() for f in fs}
    for f,nm in names.items():
        nb = plain_nb(f)
        (build/f'md/{nm}.html.md').mk_write(to_md(nb, f'{cfg.doc_url}{nm}.html'))
        to_site(nb, '../'*nm.count('/'))
        if nm=='index': nb.cells += toctrees([o for o in names.values() if o!='index'], '\n'.join(c.source for c in nb.cells))
        write_nb(nb, build/f'nbs/{nm}.ipynb')

if __name__=='__main__':
    if sys.argv[1:]==['readme']: (cfg.config_path/'README.md').write_text(readme(), encoding='utf-8')
    else: stage()
