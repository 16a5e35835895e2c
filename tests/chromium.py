"A page in a browser, which notes what fails there"
import html, json, re, shutil, subprocess

browser = next(filter(None, map(shutil.which, ('chromium','chromium-browser','google-chrome','chrome'))), None)
options = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update',
           '--allow-file-access-from-files']

# Before all else on a page: note what fails. A file that is not there raises an event that does not bubble
watch = '''<script>
const failed = [];
window.requestAnimationFrame = f => setTimeout(() => f(performance.now()), 16); // a browser whose time is sped up draws no frames
addEventListener('error', e => failed.push(e.message || 'not loaded: '+(e.target.src || e.target.href)), true);
addEventListener('unhandledrejection', e => { if (e.reason !== undefined) failed.push(String(e.reason)); });
const log = console.error; console.error = (...a) => { failed.push(a.join(' ')); log(...a); };
</script>'''
# When it is there: do something, and leave what is `said` about it where `--dump-dom` finds it
say = '''<script>
addEventListener('load', () => setTimeout(async () => {
  const said = {}, wait = ms => new Promise(f => setTimeout(f, ms));
  const press = async (fig, ms) => { // in the middle of its slider, as a mouse makes it
    const rail = fig.querySelector('.slider-rail-touch-rect'), box = rail.getBoundingClientRect();
    const at = {clientX: box.left+box.width/2, clientY: box.top+box.height/2, bubbles: true, view: window};
    rail.dispatchEvent(new MouseEvent('mousedown', at));
    document.dispatchEvent(new MouseEvent('mouseup', at));
    await wait(ms);
  };
  try { %s } catch (e) { failed.push(String(e)); }
  said.failed = failed;
  said.fetched = performance.getEntriesByType('resource').map(o => o.name);
  document.body.setAttribute('data-said', JSON.stringify(said));
}, 1500));
</script>'''

def visit(page, folder, do='', query='', height=1400, ms=12000, width=1100):
    "Load `page`, `do` something, and give back what it said and what stands there; the browser keeps its things in `folder`"
    text = page.read_text(encoding='utf-8').replace('<head>', '<head>'+watch, 1).replace('</body>', say%do+'</body>', 1)
    at = page.with_name(f'_{page.stem}_{abs(hash((do, query)))}.html')
    at.write_text(text, encoding='utf-8')
    dom = subprocess.run([browser, *options, f'--user-data-dir={folder}/{at.stem}', f'--window-size={width},{height}', f'--virtual-time-budget={ms}',
                          '--dump-dom', at.as_uri()+query], capture_output=True, text=True, timeout=180).stdout
    at.unlink()
    return json.loads(html.unescape(re.search(r'data-said="([^"]*)"', dom)[1])),dom
