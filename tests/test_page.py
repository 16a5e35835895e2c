"The demo's page in a browser: nothing fails, nothing is fetched, a slider moves all that belongs to its frame, and so do keys"
import os, re, shutil, subprocess, sys
from pathlib import Path
import pytest
from chromium import browser, visit

root = Path(__file__).parent.parent
step = '''
  const figs = [...document.querySelectorAll('.plotly-graph-div')];
  const look = () => [figs.filter(f => (f.layout.sliders || []).length).map(f => f.layout.sliders[0].active), figs.flatMap(f => f.data.filter(t => t.mode === 'markers').map(t => t.x[0]))].flat();
  const key = (key, shiftKey=false) => { dispatchEvent(new KeyboardEvent('keydown', {key, shiftKey})); return wait(1500); };
  said.figures = figs.length;
  await press(document, 3000); said.pressed = look();
  await key('ArrowRight'); await key('ArrowRight', true); await key('ArrowLeft'); said.stepped = look();
  await key(' '); await key(' '); said.played = look();
  await wait(1000); said.stopped = look();
'''

look = '''
  const ground = () => getComputedStyle(document.body).backgroundColor, fig = document.querySelectorAll('.plotly-graph-div')[1];
  const text = () => getComputedStyle(fig.querySelector('.gtitle, .annotation-text, .xtick text')).fill;
  const lefts = () => new Set(Object.keys(fig.layout).filter(k => /^xaxis/.test(k)).map(k => fig.layout[k].domain[0])).size;
  said.columns = lefts(); said.wide = document.documentElement.scrollWidth; said.room = innerWidth;
  said.tops = [...document.querySelectorAll('.plotly-graph-div')].map(f => f.getBoundingClientRect()).map(b => [Math.round(b.top), Math.round(b.bottom)]);
  said.light = [ground(), text()];
  document.getElementById('theme').click(); await wait(1500);
  said.dark = [ground(), text()];
'''

@pytest.fixture
def page(tmp_path_factory):
    "A short run of the demo, in a folder of its own"
    folder = tmp_path_factory.mktemp('demo')
    code = f'import sys; sys.path.insert(0, {str(root/"examples")!r}); import demo; demo.main(2100)'
    env = dict(os.environ, PYTHONPATH=str(root), SDL_VIDEODRIVER='dummy')
    run = subprocess.run([sys.executable, '-c', code], cwd=folder, env=env, capture_output=True, text=True)
    assert run.returncode==0, run.stderr
    assert 'fresh episodes without exploring' in run.stdout and run.stdout.rstrip().endswith('demo/report.html')
    return folder/'demo'/'report.html'

@pytest.mark.slow
def test_page(page, tmp_path):
    "The page is made once: its size, then what a browser sees"
    check_size(page)
    if browser is None: pytest.skip('no Chromium here: install it to look at pages')
    check_keys(page, tmp_path)
    check_narrow_and_dark(page, tmp_path)

def check_size(page):
    "At most 3 MB beside plotly itself, and nothing from elsewhere"
    from plotly.offline import get_plotlyjs
    text = page.read_text(encoding='utf-8').replace(get_plotlyjs(), '')
    assert len(text.encode())<3e6
    assert not re.findall(r'(?:src|href)="?https?:', text)

def check_keys(page, tmp_path):
    alone = shutil.copy(page, tmp_path) # it needs no file beside it
    said,_ = visit(Path(alone), tmp_path, step, height=2400, ms=30000)
    assert said['failed']==[] and said['fetched']==[] and said['figures']==4
    at = {k: v[0] for k,v in said.items() if k in ('pressed','stepped','played','stopped') and len(set(v))==1} # the sliders and the dots of all pictures
    assert 80<at['pressed']<120 and at['stepped']==at['pressed']+10 # of 200 frames
    assert at['stepped']<at['played']==at['stopped']<199

def lightness(rgb): return sum(map(int, re.findall(r'\d+', rgb)[:3]))/3

def check_narrow_and_dark(page, tmp_path):
    "Side by side on a screen, below one another on a phone, and nothing overlaps; the button makes all of it dark"
    for width,columns in ((1100, 2), (500, 1)):
        said,_ = visit(page, tmp_path, look, height=2400, width=width)
        assert said['failed']==[] and said['columns']==columns and said['wide']<=said['room'], said
        assert all(a[1]<=b[0] for a,b in zip(said['tops'], said['tops'][1:])), said['tops']
        (light,ink),(dark,chalk) = said['light'],said['dark']
        assert lightness(light)>240 and lightness(ink)<100 and lightness(dark)<40 and lightness(chalk)>180, said
