"The demo's page in a browser: nothing fails, nothing is fetched, a slider moves all that belongs to its frame, and so do keys"
import json, os, re, shutil, subprocess, sys
from pathlib import Path
import pytest

root = Path(__file__).parent.parent
browser = next(filter(None, map(shutil.which, ('chromium','chromium-browser','google-chrome','chrome'))), None)

watch = '''<script>
const errors = [];
window.requestAnimationFrame = f => setTimeout(() => f(performance.now()), 16); // a browser whose time is sped up draws no frames
addEventListener('error', e => errors.push(String(e.message)));
addEventListener('unhandledrejection', e => { if (e.reason !== undefined) errors.push(String(e.reason)); });
const log = console.error; console.error = (...a) => { errors.push(a.join(' ')); log(...a); };
</script>'''
# A press in the middle of the first slider, as a mouse makes it; then what the page shows is left where `--dump-dom` finds it
press = '''<script>
addEventListener('load', () => setTimeout(() => {
  const rail = document.querySelector('.slider-rail-touch-rect'), box = rail.getBoundingClientRect();
  const at = {clientX: box.left+box.width/2, clientY: box.top+box.height/2, bubbles: true, view: window};
  rail.dispatchEvent(new MouseEvent('mousedown', at));
  document.dispatchEvent(new MouseEvent('mouseup', at));
  const figs = [...document.querySelectorAll('.plotly-graph-div')], said = {errors, figures: figs.length};
  const look = () => [figs.filter(f => (f.layout.sliders || []).length).map(f => f.layout.sliders[0].active), figs.flatMap(f => f.data.filter(t => t.mode === 'markers').map(t => t.x[0]))].flat();
  const wait = ms => new Promise(f => setTimeout(f, ms)), key = (key, shiftKey=false) => { dispatchEvent(new KeyboardEvent('keydown', {key, shiftKey})); return wait(1500); };
  setTimeout(async () => {
    said.pressed = look();
    await key('ArrowRight'); await key('ArrowRight', true); await key('ArrowLeft'); said.stepped = look();
    await key(' '); await key(' '); said.played = look();
    await wait(1000); said.stopped = look();
    said.fetched = performance.getEntriesByType('resource').map(o => o.name);
    document.body.setAttribute('data-said', JSON.stringify(said));
  }, 3000);
}, 1500));
</script>'''

@pytest.fixture(scope='module')
def page(tmp_path_factory):
    "A short run of the demo, in a folder of its own"
    folder = tmp_path_factory.mktemp('demo')
    code = f'import sys; sys.path.insert(0, {str(root/"examples")!r}); import demo; demo.main(2100)'
    env = dict(os.environ, PYTHONPATH=str(root), SDL_VIDEODRIVER='dummy')
    run = subprocess.run([sys.executable, '-c', code], cwd=folder, env=env, capture_output=True, text=True)
    assert run.returncode==0, run.stderr
    assert 'fresh episodes without exploring' in run.stdout and run.stdout.rstrip().endswith('demo/report.html')
    return folder/'demo'/'report.html'

def test_size(page):
    "At most 3 MB beside plotly itself, and nothing from elsewhere"
    from plotly.offline import get_plotlyjs
    text = page.read_text(encoding='utf-8').replace(get_plotlyjs(), '')
    assert len(text.encode())<3e6
    assert not re.findall(r'(?:src|href)="?https?:', text)

@pytest.mark.skipif(browser is None, reason='no Chromium here: install it to look at pages')
def test_browser(page, tmp_path):
    text = page.read_text(encoding='utf-8')
    watched = tmp_path/'page.html'
    watched.write_text(text.replace('<head>', '<head>'+watch, 1).replace('</body>', press+'</body>', 1), encoding='utf-8')
    dom = subprocess.run([browser, '--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update',
        f'--user-data-dir={tmp_path}/profile', '--window-size=1100,2400', '--virtual-time-budget=30000', '--dump-dom', watched.as_uri()], capture_output=True, text=True, timeout=180).stdout
    said = json.loads(re.search(r'data-said="([^"]*)"', dom)[1].replace('&quot;', '"').replace('&amp;', '&'))
    assert said['errors']==[] and said['fetched']==[] and said['figures']==4
    at = {k: v[0] for k,v in said.items() if k in ('pressed','stepped','played','stopped') and len(set(v))==1} # the sliders and the dots of all pictures
    assert 80<at['pressed']<120 and at['stepped']==at['pressed']+10 # of 200 frames
    assert at['stepped']<at['played']==at['stopped']<199
