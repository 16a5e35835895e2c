"The curves of how time and memory grow, as tables and as small pictures side by side"
from math import exp, log
from .report import looks, number, peers

black = '#000000'
def look(store): return looks.get(store, (black,'o'))
def size(b): return f'{b/1e9:.2f} GB' if b>=1e9 else f'{number(b/1e6)} MB'
def time(us): return f'{number(us/1000)} ms' if us>=10_000 else f'{number(us)} µs'
def power(x): return f'{x:,}' if x<10**4 else '10'+''.join('⁰¹²³⁴⁵⁶⁷⁸⁹'[int(o)] for o in str(len(str(x))-1))

def growth_table(curves, points, machine):
    "A table for each curve"
    res = ['# How time and memory grow', '',
        'Medians of turns that the stores took one after the other, each in a process of its own, on one torch thread. The memory is what the process '
        'had more of once its store was filled and drawn from; first loading and compiling are not counted. The ratio says how many times our time '
        'the quickest peer took (more than 1: fastrl is quicker).', '']
    for c in curves:
        ps = [p for p in points if p['curve']==c.name]
        if not ps: continue
        res += [f'## {c.name}, by {c.axis}', '', *([c.note[0].upper()+c.note[1:]+'.', ''] if c.note else []),
                f"| {c.axis} | {' | '.join(c.stores)} | quickest peer |", '| ---: |'+' ---: |'*(len(c.stores)+1)]
        for p in ps:
            cells = [f"{time(p['us'][s])}, {size(max(0, p['nbytes'][s]))}" if s in p['us'] else '–' for s in c.stores]
            rivals = {s: r for s,r in p['ratios'].items() if s in peers}
            best = min(rivals, key=rivals.get, default=None)
            res.append(f"| {power(p['x'])} | {' | '.join(cells)} | {'left out: '+p['left_out'] if 'left_out' in p else f'{rivals[best]:.2f}× {best}' if best else '–'} |")
        why = {f'{s}: {o}' for p in ps for s,o in p['failed'].items()}
        res += ['', *(f'No figure for {o}.\n' for o in sorted(why))]
    v,days = machine['versions'],sorted({p['date'] for p in points})
    res += [f"{' to '.join(dict.fromkeys((days[0], days[-1])))}, {machine['cpu']} ({machine['cores']} cores), Python {machine['python']}, "
            f"{', '.join(f'{k} {o}' for k,o in v.items() if k!='torchrl' or not machine['there'])}. "
            + (f"torchrl in an environment of its own: {', '.join(f'{k} {o}' for k,o in machine['there'].items())}." if machine['there'] else ''), '']
    return '\n'.join(res)

def spread(ys, gap, top):
    "Move labels at `ys` (rising) apart so that they do not touch, all of them below `top`"
    res = []
    for y in ys: res.append(y if not res else max(y, res[-1]+gap))
    over = max(sum(a-b for a,b in zip(res, ys))/max(1, len(ys)), res[-1]-top)
    return [o-over for o in res]

def ticks(lo, hi):
    "Round numbers from `lo` to `hi`, few of them"
    for steps in ((1,2,5), (1,), (1,100)):
        res = [s*10**e for e in range(-6, 12) for s in steps if lo<=s*10**e<=hi]
        if len(res)<=6: break
    return sorted(set(res))

def panel(ax, curve, ps, of, title):
    "One curve of each store, log-log, with its name at its end"
    ends = []
    for s in reversed([s for s in curve.stores if s in ('fastrl', *peers)]):
        xy = [(p['x'], p[of][s]) for p in ps if s in p['us'] and p[of].get(s, 0)>0]
        if not xy: continue
        color,mark = look(s)
        ax.plot(*zip(*xy), color=color, marker=mark, ms=4.5, lw=2.4 if s=='fastrl' else 1.4, zorder=3 if s=='fastrl' else 2)
        ends.append((xy[-1], s, color))
    ax.set(xscale='log', yscale='log')
    ax.set_title(title, fontsize=10, loc='left')
    ax.set_xlabel(curve.axis, fontsize=9, labelpad=1)
    if not ends: return
    xs = sorted({p['x'] for p in ps})
    if len(xs)>1: ax.set_xlim(xs[0]/(xs[-1]/xs[0])**.06, xs[-1]*(xs[-1]/xs[0])**.5)
    ax.set_xticks(xs, [power(x) for x in xs])
    lo,hi = ax.get_ylim()
    if hi/lo<10: # a flat one is shown flat
        lo,hi = (lo*hi/10)**.5,(lo*hi*10)**.5
        ax.set_ylim(lo, hi)
    ys = ticks(lo, hi)
    ax.set_yticks(ys, [f'{y:,g}' for y in ys])
    ax.minorticks_off()
    ax.grid(color='#eeeeee', zorder=0)
    ax.tick_params(labelsize=8.5, length=2, pad=1)
    for o in ('top','right'): ax.spines[o].set_visible(False)
    ends.sort(key=lambda o: o[0][1])
    at = spread([log(y) for (_,y),*_ in ends], .1*log(hi/lo), log(hi))
    for ((x,y),s,color),t in zip(ends, at):
        ax.annotate(s, (x, y), (x*max(1.1, (xs[-1]/xs[0])**.09), exp(t)), fontsize=9, color=color, va='center', weight='bold' if s=='fastrl' else None,
                    arrowprops=dict(arrowstyle='-', color=color, lw=.5, shrinkA=0, shrinkB=2))

def plot_growth(curves, points, path):
    "A row for each axis: time, and memory last"
    import matplotlib
    matplotlib.use('agg')
    import matplotlib.pyplot as plt
    by = {c.name: [p for p in points if p['curve']==c.name and 'left_out' not in p] for c in curves}
    rows = {}
    for c in curves:
        if by[c.name]: rows.setdefault(c.axis, []).append(c)
    if not rows: return
    fig,axs = plt.subplots(len(rows), 3, figsize=(10, 2.75*len(rows)), dpi=100, layout='constrained', squeeze=False)
    for line,(axis,cs) in zip(axs, rows.items()):
        for ax,c in zip(line, cs[:2]): panel(ax, c, by[c.name], 'us', f'{c.title or c.name}, µs')
        for ax in line[len(cs):2]: ax.set_visible(False)
        mb = [{**p, 'nbytes': {s: b/1e6 for s,b in p['nbytes'].items()}} for p in by[cs[0].name]]
        panel(line[2], cs[0], mb, 'nbytes', 'memory, MB')
    fig.savefig(path)
    plt.close(fig)
    return path
