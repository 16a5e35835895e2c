"What it brings to draw ahead: a batch and an update of a network, with `loader` and with `sample`"
import itertools, torch
from torch import nn
from fastrl.memory.replay import ExperienceReplay
from . import stores
from .measure import Case
from .rows import make_rows

def dense(width): return nn.Sequential(nn.Flatten(), nn.Linear(4, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2))
def conv(width): return nn.Sequential(nn.Conv2d(4, width, 8, 4), nn.ReLU(), nn.Conv2d(width, width, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(width*81, 2))

def learner(net, batches):
    "One step of learning, as a callable"
    opt = torch.optim.SGD(net.parameters(), 1e-4)
    def f():
        batch,_ = next(batches)
        s,s2 = (batch[k].float() for k in ('state','next_state'))
        with torch.no_grad(): target = batch['reward'].view(-1)+.99*net(s2).max(1)[0]
        loss = ((net(s).max(1)[0]-target)**2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return f

def updates(kind, n, bs, make, width):
    rows = make_rows(kind, n)
    def er():
        er = ExperienceReplay(bs, n, 1, seed=0)
        for i in range(0, n, 1024): er+stores.fields(rows, slice(i, i+1024))
        return er
    a,b = er(),er()
    torch.manual_seed(0)
    return {'fastrl': learner(make(width), a.loader()), 'without `loader`': learner(make(width), (b.sample() for _ in itertools.count()))}

def case(name, kind, n, bs, make, width, toy):
    return Case(name, lambda n=n, bs=bs, width=width: updates(kind, n, bs, make, width), toy=toy, note='batch and update')

cases = [
    case('Learn from 256 of 10⁵ CartPole rows, a network of 32×32, drawn ahead', 'small', 10**5, 256, dense, 32, dict(n=64, bs=4, width=2)),
    case('Learn from 256 of 10⁵ CartPole rows, a network of 512×512, drawn ahead', 'small', 10**5, 256, dense, 512, dict(n=64, bs=4, width=2)),
    case('Learn from 32 of 10⁴ rows of 4×84×84 frames, convolutions, drawn ahead', 'frames', 10**4, 32, conv, 16, dict(n=64, bs=4, width=2)),
]
