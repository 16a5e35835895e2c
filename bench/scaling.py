"""How time and memory grow: with the capacity, the batch, the fields, the threads that write and the processes that read

Each store lives in a process of its own, torchrl's in an environment of its own, and they take turns. A point is stored as soon as
it is measured; a run that was stopped continues. `python -m bench.run scaling`, or alone: `python -m bench.scaling`"""
import json, subprocess, sys
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import median
from . import many, stores
from .measure import ratios, reason
from .report import folder, machine, rounded, write
from .turns import Apart, torchrl_python

there = 'fastrl, torchrl\'s torch'
names = 'fastrl', *(p.name for p in stores.peers)

@dataclass
class Curve:
    "One thing at several sizes"
    name:str # What a call does
    axis:str # What grows
    xs:tuple
    make:callable # `(store, x)` → callable, as `Apart` makes it
    stores:tuple=names
    tiny:int=None # An `x` to load and to compile with
    per:callable=lambda x: 1 # How many times a call does it
    nbytes:callable=lambda x: 0 # What all stores together need, about
    toy:tuple=() # What `make` is called with in the tests
    title:str='' # Of its picture
    note:str=''

row = 45 # bytes of the five fields, packed
def needs(n): return int(5*3.5*row*n) # while it is filled, a store stands beside the rows that it is filled from

def sampled(store, n): return many.draw(store, n, 256)
def prioritized(store, n): return many.turn(store, n, 256)
def sampled_by(store, bs, n=10**6): return many.draw(store, n, bs)
def prioritized_by(store, bs, n=10**6): return many.turn(store, n, bs)
def fields(store, k, n=10**5): return many.draw_wide(store, k, n, 256)
def added(store, k, n=10**5): return many.add_wide(store, k, n, 1000)
def writers(store, threads, n=10**5, bs=250, times=16): return many.write(store, threads, n, bs, times)
def writers_of_rows(store, threads, n=10**5, times=100): return many.write(store, threads, n, 1, times)
def readers(store, processes, n=10**6, secs=.1, writer=False): return many.Readers(store, processes, n if processes else 512, 256, secs, writer)
def readers_of_a_writer(store, processes, *args): return readers(store, processes, *args, writer=True)

prio,shared = ('fastrl','cpprb','tianshou','torchrl'),('fastrl','cpprb','torchrl')
capacities,batches,numbers,threads,processes = (10**4, 10**5, 10**6, 10**7),(32, 128, 512, 2048, 8192),(3, 5, 9, 17, 29),(1, 2, 4, 8),(1, 2, 4)
together,locks = 'all {} together; ','fastrl and torchrl lock by themselves, the others have a lock around them'
kinds = 'an action, a reward, whether it is done, and states of four floats with their next ones; three fields are one state without the end'
curves = [
    Curve('Sample 256 rows', 'capacity', capacities, sampled, tiny=256, nbytes=needs, toy=(64,), title='sample 256'),
    Curve('Prioritized: sample 256 rows and update them', 'capacity', capacities, prioritized, (*prio, there), tiny=512, nbytes=needs, toy=(512,),
          title='prioritized: sample 256, update', note=f'with weights; "{there}" is ours in torchrl\'s environment'),
    Curve('Sample a batch of 10⁶ rows', 'batch', batches, sampled_by, tiny=256, toy=(8, 64), title='sample from 10⁶ rows'),
    Curve('Prioritized: sample a batch of 10⁶ rows and update it', 'batch', batches, prioritized_by, prio, tiny=256, toy=(8, 64),
          title='prioritized: sample, update'),
    Curve('Sample 256 of 10⁵ rows', 'fields', numbers, fields, tiny=5, toy=(9, 256), title='sample 256 of 10⁵ rows', note=kinds),
    Curve('Add 1,000 rows at once', 'fields', numbers, added, tiny=5, toy=(9, 1000), title='add 1,000 rows at once',
          note='SB3 takes dicts row by row only'),
    Curve('Add 1,000 rows in batches of 250', 'writer threads', threads, writers, tiny=1, per=lambda x: 4*x, toy=(2, 500, 250, 2),
          title='add 1,000 rows, 250 at once', note=together.format('threads')+locks),
    Curve('Add a row', 'writer threads', threads, writers_of_rows, tiny=1, per=lambda x: 100*x, toy=(2, 500, 10), title='add one row',
          note=together.format('threads')+locks),
    Curve('Sample 256 of 10⁶ shared rows', 'reader processes', processes, readers, shared, 0, title='sample 256 of 10⁶ shared rows',
          note=together.format('processes')+'the memory counts the shared rows once, and what each reader keeps for itself'),
    Curve('Sample 256 of 10⁶ shared rows beside a writer', 'reader processes', processes, readers_of_a_writer, shared, 0, toy=(1, 500, .01),
          title='the same, beside a writer', note='it adds 64 rows a hundred times a second'),
]

def available():
    "Bytes of memory that are free, where somebody tells"
    try: return next(int(o.split()[1])*1024 for o in Path('/proc/meminfo').read_text().splitlines() if o.startswith('MemAvailable'))
    except (OSError, StopIteration): return sys.maxsize

def python_for(store):
    return str(torchrl_python) if store in ('torchrl', there) and torchrl_python.exists() else sys.executable

class Workers(dict):
    "A process for each store, begun when it is needed"
    def __missing__(self, store):
        self[store] = Apart(python_for(store))
        return self[store]

def point(curve, x, workers=None, turns=15, secs=.02, each=lambda it: it):
    "Time and memory of every store at `x`, as they are stored"
    res = dict(curve=curve.name, axis=curve.axis, x=x, us={}, low={}, high={}, nbytes={}, failed={}, ratios={}, date=str(date.today()))
    if (need := curve.nbytes(x))>(has := available()):
        return {**res, 'left_out': f'it needs some {need/1e9:.0f} GB while it is filled, and {has/1e9:.0f} GB are free'}
    workers,alone,ks,times = Workers() if workers is None else workers,{},{},{}
    for s in curve.stores:
        if s==there and not torchrl_python.exists(): res['failed'][s] = 'there is no `.venv-torchrl`'; continue
        name = s.partition(',')[0]
        alone[s] = workers[s].begin('scaling', curve.make.__name__, (name, x), None if curve.tiny is None else (name, curve.tiny))
    for s,o in alone.items():
        try: res['nbytes'][s],ks[s],times[s] = o.ready(),o.calls_in(secs, 2),[]
        except RuntimeError as e: res['failed'][s] = str(e)
    for _ in each(range(turns)):
        for s,k in list(ks.items()):
            try: times[s].append(alone[s].clocked(k)/1000/k/curve.per(x))
            except RuntimeError as e: res['failed'][s] = str(e); del ks[s],times[s],res['nbytes'][s]
    for s in ks: alone[s].end()
    res.update({k: {s: f(ts) for s,ts in times.items()} for k,f in (('us',median), ('low',min), ('high',max))})
    if 'fastrl' in times: res['ratios'] = ratios(times, 'fastrl')
    return res

def versions_there():
    "torchrl and its torch, as its environment has them"
    if not torchrl_python.exists(): return {}
    code = 'import json, importlib.metadata as m, torchrl._torchrl; print(json.dumps({o: m.version(o) for o in ("torchrl","torch","numpy")}))'
    p = subprocess.run([torchrl_python, '-W', 'ignore', '-c', code], text=True, capture_output=True)
    return json.loads(p.stdout) if not p.returncode else {'torchrl':'without its compiled part'}

class Points:
    "Measured points; a full set is measured anew, one that was stopped is completed"
    def __init__(self, curves, name='growth', folder=folder):
        self.curves,self.path,self.machine = curves,Path(folder)/f'{name}.json',machine() | {'there': versions_there()}
        old = json.loads(self.path.read_text(encoding='utf-8')) if self.path.exists() else {}
        self.points = {(p['curve'], p['x']): p for p in old.get('points', [])} if old.get('machine')==self.machine else {}
        runs = [self.points[o]['run'] if o in self.points else 0 for o in self.wanted()]
        self.run = min(runs)+1 if min(runs)==max(runs) else max(runs)

    def wanted(self): return [(c.name, x) for c in self.curves for x in c.xs]
    def todo(self): return [(c,x) for c in self.curves for x in c.xs if self.points.get((c.name, x), {}).get('run')!=self.run]
    def add(self, p):
        self.points[p['curve'],p['x']] = {**p, 'run':self.run}
        self.points = {o: self.points[o] for o in self.wanted() if o in self.points}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = ',\n'.join(json.dumps(rounded(o), ensure_ascii=False) for o in self.points.values())
        write(self.path, f'{{"machine": {json.dumps(self.machine)},\n"points": [\n{lines}\n]}}\n')
        from .pictures import growth_table
        write(self.path.with_suffix('.md'), growth_table(self.curves, list(self.points.values()), self.machine))

    def plot(self):
        from .pictures import plot_growth
        return plot_growth(self.curves, list(self.points.values()), self.path.with_suffix('.png'))

def run(points=None, **kwargs):
    "Measure what is missing, with its progress"
    from tqdm import tqdm
    points = points or Points(curves)
    todo,workers = points.todo(),Workers()
    if 0<len(todo)<len(points.wanted()): print(f'{len(points.wanted())-len(todo)} points are there, {len(todo)} to go')
    try:
        with tqdm(todo, unit='point', desc='curves') as bar:
            for c,x in bar:
                bar.set_postfix_str(f'{c.name}: {x:,} {c.axis}' if c.axis!='capacity' else f'{c.name} of {x:,}')
                p = point(c, x, workers, each=lambda it: tqdm(it, desc='  turns', leave=False), **kwargs)
                points.add(p)
                if 'left_out' in p: tqdm.write(f'{c.name}, {x:,}: left out, {p["left_out"]}')
                for s,why in p['failed'].items(): tqdm.write(f'{c.name}, {x:,}: no figure for {s}: {why}')
    finally:
        for o in workers.values(): o.close()
        if points.points:
            try: print(f'Written: {points.path.with_suffix(".md")} {points.plot() or ""}')
            except Exception as e: print(f'Written: {points.path.with_suffix(".md")}; no picture: {reason(e)}')

if __name__=='__main__':
    try: run()
    except KeyboardInterrupt: sys.exit('\nStopped. What was finished is kept, and the next run continues.')
