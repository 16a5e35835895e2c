"Does the agent learn, and stay good? The defaults of `dqn_learner` on ten seeds, its last and its best network judged by a hundred fresh greedy episodes"
import json, os, sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from statistics import mean
from time import perf_counter
from .pixels import invaders
from .report import folder, machine, write

# for pictures the network is large: smaller batches, fewer updates, smaller steps, and few seeds
pictures = dict(frame_stack=4, bs=32, updates_per_batch=4, lr=3e-4, beta=1., gamma=.99, eps_steps=20_000, eval_every=5000)
tasks = { # name: environment, arguments of `dqn_learner`, the return that solves it, steps of training, seeds at most
    'CartPole-v1, uniform': ('CartPole-v1', {}, 475, 50_000, 10),
    'CartPole-v1, prioritized': ('CartPole-v1', dict(prioritized=True), 475, 50_000, 10),
    'Acrobot-v1, uniform': ('Acrobot-v1', {}, -100, 50_000, 10),
    "MinAtar's Space Invaders, from pictures": (invaders, pictures, None, 150_000, 2),
}
FRESH = 10**6 # the seed of the first fresh episode

def run(task, seed):
    "One training, and what became of it"
    import torch
    from fastai.callback.schedule import Learner # with `fit_flat_cos`
    from fastrl.agents.dqn import dqn_learner, play
    torch.set_num_threads(1)
    env,kwargs,_,steps,_ = tasks[task]
    learn,start = dqn_learner(env, n=steps, seed=seed, **kwargs),perf_counter()
    with learn.no_bar(), learn.no_logging(): learn.fit_flat_cos(1)
    took = perf_counter()-start
    last = play(env, learn.model, 100, seed=FRESH)
    learn.evaluate.load_best()
    best = play(env, learn.model, 100, seed=FRESH)
    more = memory_of(learn.experience_replay.replay.ring) if 'frame_stack' in kwargs else {}
    return dict(task=task, seed=seed, steps=learn.score.steps, updates=learn.dqn.updates, seconds=round(took, 1), **more,
                last=round(last.mean(), 1), low=last.min(), best=round(best.mean(), 1),
                curve=[(s,round(r, 1)) for s,r in learn.evaluate.history])

def memory_of(ring):
    "Megabytes that the memory takes, and that its stacks would take by themselves"
    whole = ring.capacity*sum(ring[:1][k].nbytes for k in ('state','next_state'))
    return dict(mb=round(sum(o.place.packed.nbytes for o in (ring, ring.pool))/1e6, 1), whole_mb=round(whole/1e6, 1))

def table(rows):
    seeds = sorted({r['seed'] for r in rows})
    res = ['# Does the agent learn, and stay good?', '', f'`make learn`: the defaults of `dqn_learner`, training with `fit_flat_cos`, seeds {seeds[0]} to {seeds[-1]}. '
           'The last network, and the one that played best in its own evaluations, every 2,500 steps, then play 100 episodes that they have not seen. Their mean returns:', '']
    for t,(_,_,goal,steps,_) in tasks.items():
        mine = sorted((r for r in rows if r['task']==t), key=lambda r: r['seed'])
        if not mine: continue
        took = mean(r['seconds'] for r in mine)
        if goal is None: res += [f'## {t}', '', *from_pictures(mine, took), '']; continue
        last,best = (sum(r[k]>=goal for r in mine) for k in ('last','best'))
        res += [f'## {t}', '', f'The last network reaches {goal} with {last} of {len(mine)} seeds, the best one with {best}; {steps:,} steps in {took:.0f} s each, evaluations included.', '',
                '| seed | last network | its lowest return | best network | steps until an evaluation reached it |', '| ---: | ---: | ---: | ---: | ---: |',
                *(f"| {r['seed']} | {r['last']:g} | {r['low']:g} | {r['best']:g} | {next((f'{s:,}' for s,m in r['curve'] if m>=goal), '–')} |" for r in mine), '']
    m = machine()
    return '\n'.join([*res, f"{m['cpu']} ({m['cores']} cores), Python {m['python']}, {', '.join(f'{k} {v}' for k,v in m['versions'].items() if k in ('fastrl','torch','numpy'))}.", ''])

def from_pictures(mine, took):
    "What to say about them: no return solves this game"
    r = mine[0]
    return [f"Each picture is stored once: the memory takes {r['mb']:g} MB, its stacks alone would take {r['whole_mb']:g}. {r['steps']:,} steps in {took:.0f} s, "
            f"{r['steps']/took:.0f} a second, evaluations included. Mean returns:", '', '| seed | first evaluation | last network | its lowest return | best network |', '| ---: | ---: | ---: | ---: | ---: |',
            *(f"| {r['seed']} | {r['curve'][0][1]:g} | {r['last']:g} | {r['low']:g} | {r['best']:g} |" for r in mine)]

def plot(rows, path):
    import matplotlib
    matplotlib.use('agg')
    import matplotlib.pyplot as plt
    shown = [t for t in tasks if any(r['task']==t for r in rows)]
    fig,axs = plt.subplots(1, len(shown), figsize=(4.5*len(shown), 3), squeeze=False, layout='constrained')
    for t,ax in zip(shown, axs[0]):
        mine = [r['curve'] for r in rows if r['task']==t]
        for c in mine: ax.plot(*zip(*c), color='#0072B2', alpha=.25, lw=1)
        ax.plot([s for s,_ in mine[0]], [mean(c[i][1] for c in mine) for i in range(min(map(len, mine)))], color='#D55E00', lw=2, label='mean of the seeds')
        if tasks[t][2] is not None: ax.axhline(tasks[t][2], color='#666666', ls=':', lw=1, label='solved')
        ax.set(title=t, xlabel='steps of training', ylabel='return of 10 greedy episodes')
        ax.locator_params('x', nbins=5)
        ax.legend(frameon=False, loc='lower right')
    fig.savefig(path, dpi=110)
    plt.close(fig)

def main(first=0, seeds=10):
    from tqdm import tqdm
    path,rows = folder/'learn.json',[]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context('spawn')) as pool:
        todo = [pool.submit(run, t, s) for t,(*_,most) in tasks.items() for s in range(first, first+min(seeds, most))]
        try:
            for f in tqdm(as_completed(todo), total=len(todo), unit='training', desc='learn'):
                rows.append(f.result())
                tqdm.write('{task}, seed {seed}: {last}, best {best}, in {seconds} s'.format(**rows[-1]))
                write(path, '[\n'+',\n'.join(map(json.dumps, rows))+'\n]\n')
                write(path.with_suffix('.md'), table(rows))
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            sys.exit('\nStopped. What was finished is kept.')
    plot(rows, path.with_suffix('.png'))

if __name__=='__main__': main(*map(int, sys.argv[1:]))
