"Train a DQN on CartPole, watch it play, and write a page about what it learnt from"
from pathlib import Path
import torch
from fastai.basics import Callback, CancelFitException
from fastai.callback.schedule import * # `fit_flat_cos`
from fastrl.agents.dqn import *
from fastrl.data.gym import *
from fastrl.memory.experience_replay import *

def watch(learn, n=200):
    "`n` steps of the trained agent, with pictures and the TD error of each step"
    device = learn.dls.device
    def greedy(states): return learn.model(dict(state=states.to(device))).argmax(1)
    source = Source([GymLoop('CartPole-v1', agent=greedy, mode='rgb_array', seed=7), ResReduce(4)])
    steps = source.take(n)
    source.close()
    with torch.no_grad():
        value,after = (learn.model(dict(state=steps[o].to(device))).max(1, keepdim=True)[0].cpu() for o in ('state','next_state'))
    return ExperienceReplay(max_sz=n, warmup_sz=1, memory=BD(steps, td_error=steps['reward']+learn.dqn.gamma*~steps['terminated']*after-value))

about = ('How a DQN learnt, and what its memory held in the end. Below, it plays: the slider moves the picture and the dots together. '
         'A TD error is what the network got wrong about a step: negative where it had expected more.')

class Solved(Callback):
    "Stop when two evaluations in a row reach `score`"
    order,once_per_batch = Evaluate.order+1,True
    def __init__(self, score): self.score = score
    def after_batch(self):
        last = [mean for _,mean in self.learn.evaluate.history[-2:]]
        if len(last)==2 and min(last)>=self.score: raise CancelFitException

def main(limit=60_000, seed=0):
    torch.set_num_threads(1) # the network is small: more threads would only wait for each other
    n = min(limit, 5000)
    learn = dqn_learner('CartPole-v1', n=n, prioritized=True, eval_episodes=20, seed=seed, fast=True, cbs=Solved(475))
    print(f'A DQN learns to balance a pole: until two evaluations in a row reach 475 of 500, or for {limit:,} steps')
    learn.fit_flat_cos(limit//n)
    print(f'After {learn.score.steps:,} steps, its greedy episodes: {", ".join(f"{m:.0f}" for _,m in learn.evaluate.history)}')
    returns = play('CartPole-v1', learn.model, 20, seed=1_000_000)
    print(f'20 fresh episodes without exploring: {returns.mean():.0f} on average, the shortest {returns.min():.0f}')
    playing = watch(learn)
    figs = [plot_learning(learn), plot_summary(learn.experience_replay), plot_images(playing), plot_replay_stats(playing, 'td_error,accum_rewards')]
    page = Path('demo/report.html')
    page.parent.mkdir(exist_ok=True)
    page.write_text(figures_to_html(figs, 'CartPole: what the agent learnt from', about), encoding='utf-8')
    learn.experience_replay.experience_replay.save('demo/memory')
    print('The memory is saved: `.venv/bin/fastrl info demo/memory` shows what is in it')
    print(f'Open this page to see what it learnt from: {page}')
    return returns.mean()

if __name__=='__main__': main()
