"The site in a browser: no page fails or fetches from elsewhere, the search finds, a slider moves its figure. `make docs` has to come first"
import os, re, shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import pytest
from chromium import browser, visit

root = Path(__file__).parent.parent
site = root/'build'/'docs'
wanted = os.environ.get('FASTRL_SITE') # `.ci/run` wants it, whatever is missing
pytestmark = pytest.mark.skipif(not wanted and (browser is None or not (site/'index.html').exists()), reason='no Chromium, or no site: install the one, and `make docs` for the other')

count = '''
  said.figures = document.querySelectorAll('.plotly-figure').length;
  said.drawn = document.querySelectorAll('.plotly-figure .main-svg').length;
'''
slide = '''
  const fig = [...document.querySelectorAll('.plotly-figure')].find(f => (f.layout.sliders || []).length);
  said.before = fig.layout.sliders[0].active || 0;
  await press(fig, 2500);
  said.after = fig.layout.sliders[0].active;
  said.dot = fig.data.filter(t => t.mode === 'markers').map(t => t.x[0])[0];
'''

@pytest.fixture(scope='module')
def pages(tmp_path_factory):
    "A copy of the site that says what happens"
    assert browser and (site/'index.html').exists(), 'this needs Chromium, and the site that `make docs` builds'
    copy = tmp_path_factory.mktemp('site')/'docs'
    shutil.copytree(site, copy)
    return copy

def test_pages(pages, tmp_path):
    names = [o for o in sorted(pages.rglob('*.html')) if '_static' not in o.parts and o.name!='search.html']
    assert len(names)>25
    with ThreadPoolExecutor(2) as pool:
        for page,(said,_) in zip(names, pool.map(lambda o: visit(o, tmp_path/o.parent.name, count), names)):
            assert said['failed']==[] and said['fetched']==[], (page, said)
            assert said['figures']<=said['drawn'], (page, said)

def test_search(pages, tmp_path):
    said,dom = visit(pages/'search.html', tmp_path, query='?q=priority')
    assert said['failed']==[] and said['fetched']==[]
    found = re.findall(r'<li[^>]*><a href="([^"?#]*)', dom.split('id="search-results"')[1])
    assert 'memory.tree.html' in found and 'tutorials/priorities.html' in found, found

def test_slider(pages, tmp_path):
    said,_ = visit(pages/'tutorials'/'looking.html', tmp_path, slide)
    assert said['failed']==[] and said['before']==0 and said['after']>10 and said['dot']>10

def test_a_page_that_fails_is_noticed(pages, tmp_path):
    page = pages/'core.html'
    text = page.read_text(encoding='utf-8')
    try:
        page.write_text(text.replace('</body>', '<script src="_static/none.js"></script><script>nobody()</script></body>', 1), encoding='utf-8')
        assert len(visit(page, tmp_path)[0]['failed'])==2
    finally: page.write_text(text, encoding='utf-8')
