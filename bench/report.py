"What was measured, as JSON, as a table and as a picture"
import json, os, platform
from datetime import date
from pathlib import Path
from textwrap import fill
from . import stores

folder = Path(__file__).parent/'results'
peers = [p.name for p in stores.peers]

def machine():
    "What the figures depend on, beside the code"
    try: cpu = next(o.split(':')[1].strip() for o in Path('/proc/cpuinfo').read_text().splitlines() if o.startswith('model name'))
    except (OSError, StopIteration): cpu = platform.processor() or platform.machine()
    return dict(cpu=cpu, cores=os.cpu_count(), python=platform.python_version(), versions=stores.versions())

def write(path, text):
    "Replace the file at `path` with all of `text`, or leave it as it is"
    tmp = path.with_suffix('.tmp')
    tmp.write_text(text, encoding='utf-8')
    os.replace(tmp, path)

class Results:
    "The figures of all cases; one that is measured again replaces its former self"
    def __init__(self, order, name='foundation', folder=folder):
        self.order,self.path,self.machine = list(order),Path(folder)/f'{name}.json',machine()
        self.cases = {}
        if self.path.exists():
            old = json.loads(self.path.read_text(encoding='utf-8'))
            if old['machine']==self.machine: self.cases = {c['name']: c for c in old['cases']} # figures of other machines or versions do not mix

    def add(self, case):
        self.cases[case['name']] = {**case, 'date': str(date.today())}
        self.cases = {k: self.cases[k] for k in self.order if k in self.cases}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        cases = ',\n'.join(json.dumps(rounded(c), ensure_ascii=False) for c in self.cases.values())
        write(self.path, f'{{"machine": {json.dumps(self.machine)},\n"cases": [\n{cases}\n]}}\n')
        write(self.path.with_suffix('.md'), table(self.cases.values(), self.machine))

    def plot(self): return plot(self.cases.values(), self.path.with_suffix('.png'))

def rounded(o):
    if isinstance(o, dict): return {k: rounded(v) for k,v in o.items()}
    return float(f'{o:.4g}') if isinstance(o, float) else o

def number(v): return f'{v:,.0f}' if v>=100 else f'{v:.3g}'
def show(us, unit): return f'{number(1e6/us)} steps/s' if unit=='steps/s' else f'{number(us/1000)} ms' if unit=='ms' else f'{number(us)} {unit}'

def verdict(c):
    "ratio, goal, reached?"
    if c['ratio'] is None: return ['–', '', '']
    of,what = c['fastest'],'bytes' if c['unit']=='kB' else 'time'
    ratio = f"{c['ratio']:.2f}× the {what} of \"{of}\"" if c['growth'] else f"{c['ratio']:.2f}× the speed of \"{of}\"" if of not in peers else f"{c['ratio']:.2f}× as fast as {of}"
    return [ratio, '' if c['goal'] is None else f"{'≤' if c['growth'] else '≥'} {c['goal']:g}×", {True: 'yes', False: '**no**', None: ''}[c['reached']]]

def line(c):
    us,failed,unit = c['us'],c['failed'],c['unit']
    others = [k for k in us if k not in (c['ours'], *peers)]
    cells = [show(us[p], unit) if p in us else 'no figure' if p in failed else '–' for p in peers]
    def shown(k): return f'{k}: {show(us[k], unit)}' + (f" ({us[k]/us[c['ours']]:.0%})" if c.get('parts') else '')
    return [c['name'], show(us[c['ours']], unit), *cells, '; '.join(map(shown, others)), *verdict(c)]

def table(cases, machine):
    cases = list(cases)
    heads = ['', 'fastrl', *peers, 'also measured', 'ratio', 'goal', 'reached?']
    rows = [heads, ['---']+['---:']*(len(peers)+1)+['---']*4, *map(line, cases)]
    failed = {f'{p}: {why}' for c in cases for p,why in c['failed'].items()}
    days = sorted({c['date'] for c in cases})
    v = machine['versions']
    return '\n'.join(['# fastrl compared with other replay buffers', '',
        'Medians of interleaved repetitions, on one torch thread. Each ratio is taken within a repetition, and the median of these is shown. Every sample ends in torch tensors.', '',
        *(f"| {' | '.join(r)} |" for r in rows), '',
        *(f"- {c['name']}: {c['note']}." for c in cases if c['note']), '',
        *(f'No figure for {o}.\n' for o in sorted(failed)),
        f"{' to '.join(dict.fromkeys((days[0], days[-1])))}, {machine['cpu']} ({machine['cores']} cores), {machine['gpu']+', ' if 'gpu' in machine else ''}Python {machine['python']}, "
        f"{', '.join(f'{k} {o}' for k,o in v.items())}.", ''])

# Okabe and Ito's colours, which the colour-blind can tell apart; the marks differ too
looks = dict(zip(peers, [('#0072B2','o'), ('#E69F00','s'), ('#009E73','D'), ('#CC79A7','^')]))

def plot(cases, path):
    "How many times as long as ours each peer takes: right of the line is slower than fastrl"
    import matplotlib
    matplotlib.use('agg')
    import matplotlib.pyplot as plt
    cases = [c for c in cases if any(p in c['ratios'] for p in peers)]
    if not cases: return
    names = [fill(c['name'], 55, break_on_hyphens=False) for c in cases] # a long one would leave no room for the figures
    fig,ax = plt.subplots(figsize=(8, 1.3+.5*len(cases)+.2*sum(o.count('\n') for o in names)), dpi=110, layout='constrained')
    for i,c in enumerate(cases):
        rs = {p: c['ratios'][p] for p in peers if p in c['ratios']}
        ax.plot([1, max(rs.values())], [i,i], color='#dddddd', lw=1, zorder=1)
        for p,r in rs.items(): ax.scatter(r, i+.09*(peers.index(p)-1.5), s=60, color=looks[p][0], marker=looks[p][1], zorder=3, edgecolor='white', lw=.8)
        if c['goal'] and c['fastest'] in peers: ax.plot([c['goal']]*2, [i-.3,i+.3], color='#555555', lw=1.5, zorder=2)
    ax.axvline(1, color='black', lw=2, zorder=2)
    ax.set(xscale='log', ylim=(len(cases)-.4, -.6))
    lo,hi = min(.8, *(r for c in cases for p,r in c['ratios'].items() if p in peers)),max(r for c in cases for p,r in c['ratios'].items() if p in peers)
    ax.set_xlim(lo/1.3, hi*1.3)
    ticks = [t for t in (.1,.2,.5,1,2,5,10,20,50,100,300,1000) if lo/1.3<t<hi*1.3]
    ax.set_xticks(ticks, ['fastrl' if t==1 else f'{t:g}×' for t in ticks])
    ax.minorticks_off()
    ax.set_yticks(range(len(cases)), [f"{o}\nfastrl: {show(c['us'][c['ours']], c['unit'])}" for o,c in zip(names, cases)], fontsize=9)
    for o in ('top','right','left'): ax.spines[o].set_visible(False)
    ax.tick_params(axis='y', length=0)
    ax.grid(axis='x', color='#eeeeee', zorder=0)
    fig.supxlabel("time beside fastrl's, log scale: right of the line is slower", fontsize=10)
    handles = [plt.Line2D([], [], color=c, marker=m, ls='', label=p) for p,(c,m) in looks.items() if any(p in o['ratios'] for o in cases)]
    handles.append(plt.Line2D([], [], color='#555555', marker='|', ms=11, mew=1.5, ls='', label='our goal'))
    fig.legend(handles=handles, loc='outside upper center', ncol=len(handles), frameon=False)
    fig.savefig(path)
    plt.close(fig)
    return path
