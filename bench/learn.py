"Does the agent learn? The defaults of `dqn_learner` on ten seeds, each judged by a hundred fresh greedy episodes of its best network"
import json, os, sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from statistics import mean
from time import perf_counter
from .report import folder, machine, write

tasks = { # name: environment, arguments of `dqn_learner`, the return that solves it
    'CartPole-v1, uniform': ('CartPole-v1', {}, 475),
    'CartPole-v1, prioritized': ('CartPole-v1', dict(prioritized=True), 475),
    'Acrobot-v1, uniform': ('Acrobot-v1', {}, -100),
}
STEPS,FRESH = 50_000,10**6 # training steps; the seed of the first fresh episode

def run(task, seed, steps=STEPS):
    "One training, and what became of it"
    import torch
    from fastrl.agents.dqn import dqn_learner, play
    torch.set_num_threads(1)
    env,kwargs,_ = tasks[task]
    learn,start = dqn_learner(env, n=steps, seed=seed, **kwargs),perf_counter()
    with learn.no_bar(), learn.no_logging(): learn.fit(1)
    took = perf_counter()-start
    learn.evaluate.load_best()
    returns = play(env, learn.model, 100, seed=FRESH)
    return dict(task=task, seed=seed, steps=learn.score.steps, updates=learn.dqn.updates, seconds=round(took, 1), mean=round(returns.mean(), 1), low=returns.min(),
                curve=[(s,round(r, 1)) for s,r in learn.evaluate.history])

def table(rows):
    res = ['# Does the agent learn?', '', f'`make learn`: the defaults of `dqn_learner`, {STEPS:,} steps of training. The network that played best in its own evaluations, every 2,500 steps, '
           'then plays 100 episodes that it has not seen. Their mean return:', '']
    for t,(_,_,goal) in tasks.items():
        mine = sorted((r for r in rows if r['task']==t), key=lambda r: r['seed'])
        if not mine: continue
        good = sum(r['mean']>=goal for r in mine)
        res += [f'## {t}', '', f'{good} of {len(mine)} seeds reach {goal}, in {mean(r["seconds"] for r in mine):.0f} s each, evaluations included.', '',
                '| seed | mean return of 100 | lowest | steps until an evaluation reached it |', '| ---: | ---: | ---: | ---: |',
                *(f"| {r['seed']} | {r['mean']:g} | {r['low']:g} | {next((f'{s:,}' for s,m in r['curve'] if m>=goal), '–')} |" for r in mine), '']
    m = machine()
    return '\n'.join([*res, f"{m['cpu']} ({m['cores']} cores), Python {m['python']}, {', '.join(f'{k} {v}' for k,v in m['versions'].items() if k in ('fastrl','torch','numpy'))}.", ''])

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
        ax.axhline(tasks[t][2], color='#666666', ls=':', lw=1, label='solved')
        ax.set(title=t, xlabel='steps of training', ylabel='return of 10 greedy episodes')
        ax.legend(frameon=False, loc='lower right')
    fig.savefig(path, dpi=110)
    plt.close(fig)

def main(seeds=10):
    from tqdm import tqdm
    path,rows = folder/'learn.json',[]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context('spawn')) as pool:
        todo = [pool.submit(run, t, s) for t in tasks for s in range(seeds)]
        try:
            for f in tqdm(as_completed(todo), total=len(todo), unit='training', desc='learn'):
                rows.append(f.result())
                tqdm.write('{task}, seed {seed}: {mean} in {seconds} s'.format(**rows[-1]))
                write(path, '[\n'+',\n'.join(map(json.dumps, rows))+'\n]\n')
                write(path.with_suffix('.md'), table(rows))
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            sys.exit('\nStopped. What was finished is kept.')
    plot(rows, path.with_suffix('.png'))

if __name__=='__main__': main(*map(int, sys.argv[1:]))
