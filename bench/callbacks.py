"""What each callback of a fastai `Learner` costs per batch: bench/results/callbacks.json, which nbs/howto/speed.ipynb shows

    python -m bench.callbacks

All ways train the same network of 64×64 on the same batch of 64 rows, in turns; a callback's cost is the median over the turns of the time with it, less that of a `Learner` that has only fastai's own."""
import json
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from statistics import median
import torch
from fastai.basics import Callback, DataLoader, DataLoaders, Learner, OptimWrapper, nn
from fastai.callback.progress import ProgressCallback
from fastai.callback.all import GradientClip, ParamScheduler, SchedLin, TerminateOnNaNCallback
from fastai.optimizer import Adam
from torch.nn.functional import mse_loss
from fastrl.data.gym import NoValidation, Source, LoopCallback
from fastrl.core import BD
from fastrl.memory.experience_replay import ExperienceReplayCallback
from fastrl.memory.updates import MoreUpdates, TightUpdates
from .measure import time_turns
from .report import folder, machine, rounded, write

n,k = 64,8 # batches, and updates per batch where there are several
fused = partial(OptimWrapper, opt=torch.optim.Adam, fused=True, foreach=False)

def body(): return nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
rows = BD(state=torch.randn(64, 4), y=torch.randn(64, 1))

class Net(nn.Module):
    def __init__(self): super().__init__(); self.net = body()
    def forward(self, batch): return self.net(batch['state'])

class Same(DataLoader):
    "The same batch, `n` times"
    def __iter__(self):
        for _ in range(n): yield rows['state'],rows['y']
    def __len__(self): return n

def plain():
    net = body()
    opt = torch.optim.Adam(net.parameters(), fused=True, foreach=False)
    def f():
        for _ in range(n):
            mse_loss(net(rows['state']), rows['y']).backward()
            opt.step()
            opt.zero_grad()
    return f

def bare(*cbs, bar=False, opt_func=fused, **kwargs):
    dls = DataLoaders(Same([0]), Same([0]), device=torch.device('cpu'))
    learn = Learner(dls, body(), loss_func=mse_loss, opt_func=opt_func, cbs=[NoValidation, *cbs], **kwargs)
    if not bar: learn.remove_cbs([cb for cb in learn.cbs if isinstance(cb, ProgressCallback)])
    learn.logger = lambda *_: None
    def f():
        with redirect_stdout(StringIO()): learn.fit(1) # where a bar is drawn
    return f

class Rows(LoopCallback):
    def collect(self, m): return rows[:m]

class Fits:
    "Learns `y`"
    def learn_from(self, rows, k, step):
        m = rows.bs()//k
        for j in range(k):
            b = rows[m*j:m*(j+1)]
            step(mse_loss(self.learn.model(b), b['y']))
        return torch.zeros(rows.bs(), 1)

def replay(more=None):
    "With a memory: 16 rows come in, 64 are drawn for each update"
    def loss(pred, batch): return mse_loss(pred, batch['y'])
    agent = Fits()
    more = dict(more=lambda: MoreUpdates(k), tight=lambda: TightUpdates(k, agent))[more]() if more else None
    steps = n//k if more else n
    source = Source(Rows())
    learn = Learner(source.dataloaders(16*steps, 16, 0), Net(), loss_func=loss, opt_func=fused, cbs=[ExperienceReplayCallback(64, 10_000, 64, event='before_batch', seed=0), NoValidation, *([more] if more else [])])
    learn.remove_cbs([cb for cb in learn.cbs if isinstance(cb, ProgressCallback)])
    learn.logger,agent.learn = lambda *_: None,learn
    return lambda: learn.fit(1)

def ways():
    slope = dict(lr=SchedLin(1e-3, 1e-4))
    return {'plain torch': plain(), 'bare': bare(),
            'a callback that hears nothing': bare(Callback()), 'ProgressCallback': bare(bar=True), 'ParamScheduler': bare(ParamScheduler(slope)), 'GradientClip': bare(GradientClip(10.)), 'TerminateOnNaNCallback': bare(TerminateOnNaNCallback()),
            'a metric of training batches': bare(metrics=distance), "fastai's own `Adam`": bare(opt_func=Adam),
            'ExperienceReplayCallback': replay(), 'MoreUpdates': replay('more'), 'TightUpdates': replay('tight')}

def distance(pred, y): return (pred-y).abs().mean()

def main(turns=15):
    torch.set_num_threads(1)
    times,failed = time_turns(ways(), reps=turns, secs=0, warm=2)
    assert not failed, failed
    us = {c: median(ts)/n for c,ts in times.items()}
    more = {c: median(a-b for a,b in zip(ts, times['bare']))/n for c,ts in times.items()}
    res = dict(machine=machine(), us=us, more=more)
    write(folder/'callbacks.json', json.dumps(rounded(res), indent=1)+'\n')
    for c in us: print(f'{c:32} {us[c]:7.0f} µs a batch or update, {more[c]:+7.0f}')

if __name__=='__main__': main()
