"Sphinx's settings: `make docs` runs it over the notebooks that stage.py wrote"
import shutil, plotly
from configparser import ConfigParser
from pathlib import Path
from docutils.nodes import SkipNode
from latex2mathml.converter import convert

cfg = ConfigParser(delimiters=['='], interpolation=None)
cfg.read(Path(__file__).parents[1]/'settings.ini', encoding='utf-8')
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
html_static_path,html_css_files = ['static'],['custom.css']
html_extra_path = ['../build/md']    # <page>.html.md, which module docstrings link to, and files beside the notebooks
html_copy_source = html_show_sourcelink = html_show_sphinx = html_show_copyright = html_use_index = False
html_math_renderer = 'mathml'        # browsers draw it, no script is loaded

def mathml(display):
    def visit(self, node):
        self.body.append(convert(node.astext(), display=display))
        raise SkipNode
    return visit, None

def copy_plotly(app, exc):
    if not exc: shutil.copy(Path(plotly.__file__).parent/'package_data/plotly.min.js', app.outdir/'_static')

def setup(app):
    app.add_html_math_renderer('mathml', mathml('inline'), mathml('block'))
    app.connect('build-finished', copy_plotly)
