"The adapters that our pages show"
import json
from pathlib import Path

nbs = Path(__file__).resolve().parents[2]/'nbs'

def cells(page, *names):
    "The code cells of `page` that import for it, and that define each of `names`"
    codes = [''.join(o['source']) for o in json.loads((nbs/page).read_text())['cells'] if o['cell_type']=='code']
    return '\n\n'.join([codes[0], *(next(o for o in codes if o.startswith(f'class {n}')) for n in names)])+'\n'
