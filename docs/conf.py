"Sphinx's settings: `make docs` runs it over the notebooks that stage.py wrote"
import html, importlib, inspect, re, shutil, sys
from configparser import ConfigParser
from pathlib import Path
import plotly
from docutils import nodes
from latex2mathml.converter import convert

root = Path(__file__).parents[1]
sys.path.insert(0, str(root))
from fastrl import _where
from fastrl._modidx import d as modidx
from fastrl.memory.explore import plot_script

cfg = ConfigParser(delimiters=['='], interpolation=None)
cfg.read(root/'settings.ini', encoding='utf-8')
cfg = cfg['DEFAULT']

project,author,release = cfg['lib_name'],cfg['author'],cfg['version']
extensions = ['myst_nb', 'sphinx.ext.githubpages']
nb_execution_mode = 'off'            # the stored outputs are shown
nb_merge_streams = True
nb_code_prompt_show,nb_code_prompt_hide = 'Show the source','Hide the source'
myst_enable_extensions = ['dollarmath', 'amsmath', 'colon_fence']
myst_all_links_external = True       # stage.py resolved them, check.py follows them
suppress_warnings = ['myst.header']  # a definition's heading is H3 wherever it stands

html_theme = 'furo'
html_title = f'{project} {release}'
html_theme_options = dict(navigation_with_keys=True,
    light_css_variables={'color-brand-primary':'#1f6f5c', 'color-brand-content':'#1f6f5c'},
    dark_css_variables={'color-brand-primary':'#6fd3b5', 'color-brand-content':'#6fd3b5'})
html_static_path,html_css_files,html_js_files = ['static'],['custom.css'],['copy.js', 'plots.js']
html_extra_path = ['../build/md']    # <page>.html.md, which module docstrings link to, and files beside the notebooks
html_copy_source = html_show_sourcelink = html_show_sphinx = html_show_copyright = html_use_index = html_domain_indices = False
html_math_renderer = 'mathml'        # browsers draw it, no script is loaded

def mathml(display):
    def visit(self, node):
        self.body.append(convert(node.astext(), display=display))
        raise nodes.SkipNode
    return visit, None

def add_files(app, exc):
    if exc: return
    shutil.copy(Path(plotly.__file__).parent/'package_data/plotly.min.js', app.outdir/'_static')
    script = plot_script.replace("'.plotly-graph-div'", "'.plotly-figure'")
    (app.outdir/'_static/plots.js').write_text(f'addEventListener("load", () => {{{script}}});', encoding='utf-8')

def kind_of(o, parent):
    "What Sphinx calls the definition `o`"
    if isinstance(o, type): return 'exception' if issubclass(o, BaseException) else 'class'
    if isinstance(o, property): return 'property'
    return 'method' if parent is not None else 'function' if callable(o) else 'data'

def note_objects(app, doctree):
    "Tell Sphinx what this page defines, for its search and for other sites: intersphinx reads `objects.inv`"
    docname,py = app.env.docname,app.env.get_domain('py')
    ids = {i for n in doctree.findall(nodes.Element) for i in n['ids']}
    ids |= {i for n in doctree.findall(nodes.raw) for i in re.findall(r'id="([^"]+)"', n.astext())}
    for mod,syms in modidx['syms'].items():
        here = {k: at for k,(url,_) in syms.items() for page,_,at in [url.partition('.html#')] if page==docname}
        if not here: continue
        lib = importlib.import_module(mod)
        py.note_module(mod, '', (inspect.getdoc(lib) or '').partition('\n')[0], '', False)
        for k,at in here.items():
            *path,last = k.removeprefix(f'{mod}.').split('.')
            try: parent = getattr(lib, path[0]) if path else None
            except AttributeError: continue # patched into a class of another module
            if at not in ids: continue
            py.note_object(k, kind_of(getattr(parent or lib, last, None), parent), at)
            if not path and f'fastrl.{_where.get(last)}'==mod: py.note_object(f'fastrl.{last}', kind_of(getattr(lib, last), None), at, aliased=True)

def describe(app, pagename, templatename, context, doctree):
    "The sentence under a page's title is its description, for search engines and where a link is shown"
    if doctree is None: return
    said = next(doctree.findall(nodes.block_quote), None)
    if said is None: return
    text = html.escape(' '.join(said.astext().split()))
    context['metatags'] = context.get('metatags', '')+f'\n<meta name="description" content="{text}" />\n<meta property="og:description" content="{text}" />'

def setup(app):
    app.add_html_math_renderer('mathml', mathml('inline'), mathml('block'))
    app.connect('doctree-read', note_objects)
    app.connect('html-page-context', describe)
    app.connect('build-finished', add_files)
