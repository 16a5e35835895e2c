"The site in a browser: no page fails or fetches from elsewhere, the search finds, a slider moves its figure. `make docs` has to come first"
import json, os, re, shutil, zlib
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

find = '''
  const first = query => { const [q, a, b, c, d] = Search._parseQuery(query);
    return Search._performSearch(q, a, b, c, d).reverse().slice(0, 3).map(o => o[0]+o[2]); };
  said.found = Object.fromEntries(%s.map(q => [q, first(q)]));
'''

look = '''
  const fig = document.querySelector('.plotly-figure'), ink = o => getComputedStyle(o).color, box = q => document.querySelector(q).getBoundingClientRect();
  const colours = () => [getComputedStyle(document.body).backgroundColor, getComputedStyle(fig.querySelector('.xtick text')).fill,
                         getComputedStyle(fig.querySelector('.main-svg')).backgroundColor];
  said.copied = document.querySelectorAll('.highlight button.copy').length; said.blocks = document.querySelectorAll('.cell_input .highlight').length;
  said.contents = [box('.toc-drawer').left, box('.toc-drawer').right, box('article').right]; said.room = innerWidth; said.wide = document.documentElement.scrollWidth;
  document.body.dataset.theme = 'light'; await wait(1200); said.light = colours();
  document.body.dataset.theme = 'dark'; await wait(1200); said.dark = colours();
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

answers = {'replay buffer':'memory.replay', 'experience replay':'memory.replay', 'prioritized experience replay':'tutorials/priorities',
    'memory usage':'tutorials/larger_than_ram', 'lstm':'tutorials/recurrent_tmaze', 'n-step':'tutorials/priorities', 'torchrl':'start/comparison',
    'minari':'howto/minari', 'd4rl':'howto/minari', 'offline rl':'tutorials/offline_online', 'HER':'memory.sample', 'SB3':'howto/sb3', 'stable-baselines3':'howto/sb3', 'frame stacking':'howto/frames', 'atari':'howto/frames', 'burn-in':'memory.replay', 'rate limiter':'memory.limit', 'prefetch':'memory.ahead', 'cleanrl':'compat', 'time limit':'tutorials/endings'}

def test_search_words(pages, tmp_path):
    "What people look for stands among the first three that are found"
    said,_ = visit(pages/'search.html', tmp_path, find%json.dumps(list(answers)), query='?q=replay')
    assert said['failed']==[] and said['found'].keys()==answers.keys()
    missed = {k: said['found'][k] for k,v in answers.items() if not any(re.match(rf'{re.escape(v)}(#|$)', o) for o in said['found'][k])}
    assert not missed, missed

def lightness(colour):
    "From 0 to 255, and `None` where one looks through"
    *rgb,alpha = *map(float, re.findall(r'[\d.]+', colour)), *([] if 'rgba' in colour else [1])
    return sum(rgb)/3 if alpha else None

def test_page_at_1280(pages, tmp_path):
    "Its contents stand beside it, code can be copied, and figures are dark where the page is"
    said,_ = visit(pages/'tutorials'/'looking.html', tmp_path, look, width=1280)
    assert said['failed']==[] and said['copied']>=said['blocks']>3
    left,right,text = said['contents']
    assert text<=left and right<=said['room'] and said['wide']<=said['room'], said
    for mode,page,ink in (('light', 255, 60), ('dark', 20, 200)):
        got = [lightness(o) for o in said[mode]]
        assert abs(got[0]-page)<20 and abs(got[1]-ink)<60 and got[2] is None, (mode, said[mode])

def test_descriptions(pages):
    "Each page says what it is about, and each module's page first what it is for"
    names = [o for o in sorted(pages.rglob('*.html')) if '_static' not in o.parts and o.name!='search.html']
    texts = {o.relative_to(pages).as_posix(): o.read_text(encoding='utf-8') for o in names}
    none = [k for k,o in texts.items() if not re.search(r'<meta name="description" content="[^"]{20,}"', o)]
    assert not none, none
    for page,name in (('memory.replay','experiencereplay'), ('memory.ring','ring'), ('core','bd'), ('memory.explore','plot_replay_stats'), ('parallel','parallelexperience')):
        assert re.search(r'class="overview.*?href="([^"]*)"', texts[f'{page}.html'], flags=re.S)[1]==f'#{name}'

def test_objects(pages):
    "Other sites can link to what is defined here: https://www.sphinx-doc.org/en/master/usage/extensions/intersphinx.html"
    raw = (pages/'objects.inv').read_bytes().split(b'\n', 4)[4]
    found = dict(re.findall(r'^(\S+) (py:\S+) ', zlib.decompress(raw).decode(), flags=re.M))
    want = {'fastrl.memory.replay.ExperienceReplay':'py:class', 'fastrl.memory.replay.ExperienceReplay.sample':'py:method', 'fastrl.ExperienceReplay':'py:class',
            'fastrl.memory.replay.MemoryNotWarm':'py:exception', 'fastrl.memory.ring.Ring.pointer':'py:property', 'fastrl.core.whole_number':'py:function', 'fastrl.memory.ring':'py:module'}
    assert {k: found.get(k) for k in want}==want and len(found)>400

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
