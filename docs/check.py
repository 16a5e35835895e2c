"Check the links of a built site: `python docs/check.py build/docs` fails if a link is broken, or if a page loads something from elsewhere"
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

class Page(HTMLParser):
    "The ids of a page, what it links to and what it loads"
    def __init__(self, path):
        super().__init__()
        self.ids,self.links,self.loads = {'','top'},[],[]
        self.feed(path.read_text(encoding='utf-8'))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids.add(attrs.get('id'))
        if (o := attrs.get('href')): (self.links if tag in ('a','use') else self.loads).append(o)
        if (o := attrs.get('src')): self.loads.append(o)

def bad_links(root):
    "`(page, address, what is wrong)` of each bad link under `root`"
    pages = {p: Page(p) for p in root.rglob('*.html') if '_static' not in p.parts}
    for p,pg in pages.items():
        where = p.relative_to(root)
        for o in dict.fromkeys(pg.links+pg.loads):
            u = urlsplit(o)
            if u.scheme=='data': continue
            if u.scheme or u.netloc:
                if o in pg.loads: yield where, o, 'loaded from elsewhere'
                continue
            to = (p.parent/unquote(u.path)).resolve() if u.path else p
            if not to.exists(): yield where, o, 'no such file'
            elif to in pages and unquote(u.fragment) not in pages[to].ids: yield where, o, 'no such place on that page'

if __name__=='__main__':
    bad = list(bad_links(Path(sys.argv[1]).resolve()))
    for o in bad: print(*o, sep=': ', file=sys.stderr)
    sys.exit(len(bad)>0)
