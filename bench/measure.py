"""Time several ways to do one thing, in turns and in changing order: a slow moment of the machine, and what one leaves
to the next, hit all of them alike"""
import gc
from dataclasses import dataclass, field
from random import Random
from statistics import median
from time import perf_counter_ns

@dataclass
class Case:
    "One thing that can be done in several ways"
    name:str
    make:callable # → {column: callable}, or a text that says why there is none; the first column is ours
    goal:float=None # How many times as fast as the fastest of the others we want to be
    per:int=1 # How many times a call does it
    unit:str='µs' # `'steps/s'` is shown as a rate
    growth:bool=False # Is it about a ratio that should stay small? Then `goal` is its limit
    beside:tuple=() # Columns that are shown, and not raced against
    parts:bool=False # Are the columns parts of the first? Then their shares are shown
    turns:int=None # So many of one call each, for what takes long
    clock:callable=perf_counter_ns # What counts: nanoseconds, or bytes where the unit is `'kB'`
    note:str=''
    toy:dict=field(default_factory=dict) # For `make`, to try the case at the size of a toy

def reason(e): return f'{type(e).__name__}: {e}'.split('\n')[0]

def calls_in(f, secs, warm=2):
    "How many calls take about `secs`; the first few, which warm up, do not count"
    if hasattr(f, 'calls_in'): return f.calls_in(secs, warm) # it is in a process of its own
    for _ in range(warm): f()
    k = 1
    while True:
        start = perf_counter_ns()
        for _ in range(k): f()
        took = (perf_counter_ns()-start)/1e9
        if took>secs/4: return max(1, round(k*secs/took))
        k *= 4

def clocked(f, k, clock=perf_counter_ns):
    "What `k` calls take"
    if hasattr(f, 'clocked'): return f.clocked(k)
    if before := getattr(f, 'before', None): before() # what is not timed
    start = clock()
    for _ in range(k): f()
    return clock()-start

def time_turns(
    fs:dict, # {column: callable}
    reps:int=51, # Turns of each
    secs:float=.02, # What a turn takes, about
    warm:int=2, # Calls of each before the first
    each=lambda it: it, # Wraps the turns, to show progress
    clock=perf_counter_ns, # What counts
): # -> {column: µs a call, one for each turn}, {column: why there is none}
    "Time the columns one after the other, `reps` times, each time in another order"
    ks,failed,times,order = {},{},{},Random(0)
    for c,f in fs.items():
        if isinstance(f, str): failed[c] = f; continue
        try: ks[c],times[c] = calls_in(f, secs, warm),[]
        except Exception as e: failed[c] = reason(e)
    gc.collect()
    gc.freeze() # a collection should not walk through all that was imported
    for _ in each(range(reps)):
        for c in order.sample(list(ks), len(ks)): times[c].append(clocked(fs[c], ks[c], clock)/1000/ks[c])
    gc.unfreeze()
    return times,failed

def ratios(times, ours):
    "{column: how many times its time is ours}: of each turn, then the median"
    return {c: median(a/b for a,b in zip(ts, times[ours])) for c,ts in times.items() if c!=ours}

def measure(case, toy=False, **kwargs):
    "The figures of one case, as they are stored"
    fs = case.make(**(case.toy if toy else {}))
    ours = next(iter(fs))
    few = dict(reps=1 if toy else case.turns, secs=0, warm=0) if case.turns else dict(reps=3, secs=.001) if toy else {}
    times,failed = time_turns(fs, clock=case.clock, **few | kwargs)
    if ours in failed: raise RuntimeError(f'{case.name}: {failed[ours]}')
    times = {c: [t/case.per for t in ts] for c,ts in times.items()}
    ratio = ratios(times, ours)
    rivals = {} if case.parts else {c: r for c,r in ratio.items() if c not in case.beside}
    near = min(rivals, key=rivals.get, default=None) # the one that comes nearest
    r = rivals.get(near)
    if case.growth and r: r = 1/r
    reached = None if r is None or case.goal is None else bool(r<=case.goal if case.growth else r>=case.goal)
    return dict(name=case.name, ours=ours, unit=case.unit, growth=case.growth, parts=case.parts, beside=list(case.beside), note=case.note, goal=case.goal,
        us={c: median(ts) for c,ts in times.items()}, low={c: min(ts) for c,ts in times.items()}, high={c: max(ts) for c,ts in times.items()},
        failed=failed, ratios=ratio, fastest=near, ratio=r, reached=reached)
