"Does the R2D2 of our tutorial learn what needs memory, and what does each of its ingredients do? Many seeds of the code on that page"
import json, os, sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from statistics import mean
from time import process_time
from .report import folder, machine, write

page = folder.parents[1]/'nbs'/'tutorials'/'r2d2.ipynb'
tasks = { # name: environment, arguments of `r2d2_learner`, the return that solves it
    'T-maze with a corridor of 30': ('TMaze', dict(n=8000, T=31, hidden=32, rescaled=False), .95),
    'CartPole without velocities': ('Positions', dict(n=50_000, T=30, burn_in=10, lr=5e-4, eval_every=1000), 475)}
variants = { # name: what is taken away, seeds at most
    'R2D2': ({}, 10), 'feed-forward': (dict(recurrent=False), 3), 'no stored state': (dict(stored=False), 3),
    'no burn-in': (dict(burn_in=0), 3), 'no priorities': (dict(prioritized=False), 3), 'one-step targets': (dict(n_step=1), 3),
    'no double Q-learning': (dict(double=False), 3), 'values as they are': (dict(rescaled=False), 3),
    'values rescaled': (dict(rescaled=True), 3), 'no last push': (dict(pushes=False), 3)}
nothing = { # what a task does not have: mazes are drawn whole, from a state of zero on, and show no push
    'T-maze with a corridor of 30': {'no stored state','no burn-in','values as they are','no last push'},
    'CartPole without velocities': {'values rescaled'}}
FRESH = 10**6 # the seed of the first fresh episode

def shown():
    "What the page defines above its training"
    cells = json.loads(page.read_text())['cells']
    end = next(i for i,c in enumerate(cells) if ''.join(c['source']).startswith('## Train'))
    names = dict(__name__='r2d2')
    for c in cells[:end]:
        if c['cell_type']=='code': exec(''.join(c['source']), names)
    return names

def run(task, variant, seed):
    "One training, and what became of it"
    import torch
    names,(env,kwargs,_) = shown(),tasks[task]
    torch.set_num_threads(1)
    env,play,kwargs = names[env],names['play_recurrent'],{**kwargs, **variants[variant][0]}
    if 'pushes' in kwargs: env = partial(env, pushes=kwargs.pop('pushes'))
    learn,start = names['r2d2_learner'](env, seed=seed, **kwargs),process_time()
    with learn.no_bar(), learn.no_logging(): learn.fit_flat_cos(1)
    took,last = process_time()-start,play(env, learn.model, 100, FRESH)
    learn.evaluate.load_best()
    best = play(env, learn.model, 100, FRESH)
    return dict(task=task, variant=variant, seed=seed, steps=learn.score.steps, updates=learn.dqn.updates, seconds=round(took, 1),
                last=round(last.mean(), 3), best=round(best.mean(), 3), curve=[(s,round(r, 2)) for s,r in learn.evaluate.history])

def planned(first=0, seeds=10):
    "The full agent with all seeds, then without each ingredient, seed by seed"
    every = [(t,v,s) for s in range(first, first+seeds) for v,(_,most) in variants.items() for t in tasks
             if s<first+most and v not in nothing.get(t, ())]
    return sorted(every, key=lambda o: o[1]!='R2D2')

def table(rows):
    res = ['# What a recurrent agent learns, and by what', '', '`make learn`: the code of `nbs/tutorials/r2d2.ipynb`, training with `fit_flat_cos`. '
           'The last network, and the one that played best in its own evaluations, then play 100 episodes that they have not seen. Their mean returns:', '']
    for t,(_,_,goal) in tasks.items():
        mine = [r for r in rows if r['task']==t]
        if not mine: continue
        res += [f"## {t}", '', f"{mine[0]['steps']:,} steps, {mine[0]['updates']:,} updates; solved from {goal:g} on.", '',
                '| | seeds | solved by the last network | by the best one | last networks | best networks |', '| --- | ---: | ---: | ---: | --- | --- |']
        for v in variants:
            if not (of := sorted((r for r in mine if r['variant']==v), key=lambda r: r['seed'])): continue
            def each(k): return ', '.join(f'{r[k]:g}' for r in of)
            res.append(f"| {v} | {len(of)} | {sum(r['last']>=goal for r in of)} | {sum(r['best']>=goal for r in of)} | {each('last')} | {each('best')} |")
        res.append('')
    m,seeds = machine(),sorted({r['seed'] for r in rows})
    return '\n'.join([*res, f"Seeds from {seeds[0]} on; a training took {mean(r['seconds'] for r in rows):.0f} s of a processor on average, on a machine that did other things, too. "
        f"{m['cpu']} ({m['cores']} cores), Python {m['python']}, {', '.join(f'{k} {v}' for k,v in m['versions'].items() if k in ('fastrl','torch','numpy'))}.", ''])

def main(first=9000, seeds=10, jobs=None, only=''):
    "Train what is not stored yet; `only` those whose name has it, such as 'CartPole without velocities, R2D2'"
    path = folder/'r2d2.json'
    def stored(): return json.loads(path.read_text()) if path.exists() else []
    done = {(r['task'],r['variant'],r['seed']) for r in stored()} # an interrupted run resumes
    with ProcessPoolExecutor(jobs or os.cpu_count(), mp_context=get_context('spawn')) as pool:
        todo = [pool.submit(run, *o) for o in planned(first, seeds) if o not in done and only in f'{o[0]}, {o[1]}']
        for f in as_completed(todo):
            rows = [*stored(), f.result()] # read anew: another process may have added some
            print('{task}, {variant}, seed {seed}: {last}, best {best}, in {seconds} s'.format(**rows[-1]), flush=True)
            write(path, '[\n'+',\n'.join(map(json.dumps, rows))+'\n]\n')
            write(path.with_suffix('.md'), table(rows))

if __name__=='__main__': main(*map(int, sys.argv[1:4]), *sys.argv[4:])
