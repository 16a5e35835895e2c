"""Rows on a GPU, beside rows in memory that are sent there, and beside the peers: bench/results/device.md, where there is a GPU

    make bench TOPICS=device

All batches end on the GPU, and TD errors come from there. Each call ends when the GPU is done; `the call alone` shows how soon
Python goes on, and what waits for the GPU meanwhile, by torch's own account (`set_sync_debug_mode`), is an error, not a figure."""
import itertools, numpy as np, torch
from contextlib import contextmanager
from fastrl.memory.replay import ExperienceReplay
from fastrl.memory.sample import Prioritized, Uniform
from . import priority, stores
from .ahead import conv, dense, learner
from .measure import Case, measure
from .report import Results
from .rows import make_rows

def settled(f):
    "`f`, and then the GPU is done"
    def g(): f(); torch.cuda.synchronize()
    return g

@contextmanager
def unwaited():
    torch.cuda.set_sync_debug_mode('error')
    try: yield
    finally: torch.cuda.set_sync_debug_mode('default')

def filled(rows, bs, device, sampler, n_step, capacity=None):
    n = len(rows['reward'])
    er = ExperienceReplay(bs, capacity or n, 1, sampler=sampler(seed=0), n_step=n_step, device=device)
    for i in range(0, n, 4096):
        new = stores.fields(rows, slice(i, i+4096))
        k = len(new['reward'])
        er + {**{c: v for c,v in new.items() if c!='done'}, 'terminated':new['done'], 'truncated':np.zeros(k, bool), 'env_id':np.zeros(k, int)}
    return er

def drawn(er, bs, k, device=None):
    "Draw `k` batches, and note TD errors from the GPU if the sampler wants them, as a callable"
    td,learn,home = torch.rand(bs, 1, device='cuda'),isinstance(er.sampler, Prioritized),er.ring.device
    def f():
        for batch,idxs in er.sample(bs, device, k) if k>1 else [er.sample(bs, device)]:
            if learn: er.update_td(td.to(home), idxs, batch['serial'].to(home))
    return f

class OnGpu:
    "A peer's batch, sent there"
    def sample(self): return {k: v.to('cuda') for k,v in super().sample().items()}
class Cpprb(OnGpu, stores.Cpprb): pass
class Tianshou(OnGpu, stores.Tianshou): pass
class SB3(stores.SB3):
    "It sends them itself"
    def __init__(self, *args): super().__init__(*args); self.rb.device = torch.device('cuda')
class Torchrl(stores.Torchrl):
    "Its storage is on the GPU"
    device = 'cuda'

class ByPriority:
    "TD errors come from the GPU, batches go there"
    def turn(self, td): return {k: v.to('cuda') for k,v in super().turn(td.cpu()).items()}
class PCpprb(ByPriority, priority.Cpprb): pass
class PTianshou(ByPriority, priority.Tianshou): pass
class PTorchrl(priority.Torchrl):
    device = 'cuda'

def draws(kind, n, bs, sampler, k=1, n_step=None, peers=()):
    rows = make_rows(kind, n)
    there,here = (filled(rows, bs, d, sampler, n_step) for d in ('cuda','cpu'))
    call = drawn(there, bs, k)
    for _ in range(3): call() # what is recorded is recorded
    def alone():
        with unwaited(): call()
    res = {'fastrl': settled(call), 'rows in memory': settled(drawn(here, bs, k, 'cuda')), 'the call alone': alone}
    def do(s):
        if sampler is Uniform:
            stores.check({c: v.cpu() for c,v in s.sample().items()}, bs)
            return settled(s.sample)
        td = torch.rand(bs, 1, device='cuda')
        def turn(): s.turn(td)
        turn()
        return settled(turn)
    return res | stores.open_all(peers, rows, n, bs, do)

def added(n, k):
    "`k` rows that were made on the GPU"
    rows = make_rows('wide', k)
    there = {c: torch.from_numpy(v).cuda() for c,v in rows.items()}
    def fastrl(device):
        er = filled(rows, 1, device, Uniform, None, n)
        over,env = there['done'],torch.arange(k, device='cuda')
        new = {**{c: v for c,v in there.items() if c!='done'}, 'terminated':over, 'truncated':torch.zeros_like(over), 'env_id':env}
        return settled(lambda: er+(new if device=='cuda' else {c: v.cpu() for c,v in new.items()}))
    return {'fastrl': fastrl('cuda'), 'rows in memory': fastrl('cpu')} | stores.open_all([Torchrl], rows, n, 1, lambda s: settled(s.at_once(there)))

def updates(kind, n, bs, make, width):
    "A batch and an update of a network on the GPU"
    rows = make_rows(kind, n)
    def learns(device, batches_of):
        torch.manual_seed(0)
        return settled(learner(make(width).cuda(), batches_of(filled(rows, bs, device, Uniform, None))))
    return {'fastrl': learns('cpu', lambda er: er.loader(device='cuda')),
            'without `loader`': learns('cpu', lambda er: (er.sample(device='cuda') for _ in itertools.count())),
            'rows on the GPU': learns('cuda', lambda er: (er.sample() for _ in itertools.count()))}

uniform,prioritized = (Cpprb, Tianshou, SB3, Torchrl),(PCpprb, PTianshou, PTorchrl)
def case(name, *how, **kwargs): return Case(name, lambda: draws(*how, **kwargs), beside=('the call alone',))

cases = [
    case('Draw 256 of 10⁶ CartPole rows', 'small', 10**6, 256, Uniform, peers=uniform),
    case('Draw 256 of 10⁶ CartPole rows by priority, and update', 'small', 10**6, 256, Prioritized, peers=prioritized),
    case('Draw 256 of 10⁶ CartPole rows by priority, 3 steps each, and update', 'small', 10**6, 256, Prioritized, n_step=3),
    case('Draw 16 × 256 of 10⁶ CartPole rows by priority, and update', 'small', 10**6, 256, Prioritized, k=16),
    case('Draw 4096 of 10⁵ Humanoid rows', 'wide', 10**5, 4096, Uniform, peers=uniform),
    case('Draw 4096 of 10⁵ Humanoid rows by priority, and update', 'wide', 10**5, 4096, Prioritized, peers=prioritized),
    case('Draw 256 of 10,000 rows of frames', 'frames', 10_000, 256, Uniform, peers=uniform),
    Case('Learn from 256 of 10⁵ CartPole rows, a network of 512×512, drawn ahead', lambda: updates('small', 10**5, 256, dense, 512), beside=('rows on the GPU',)),
    Case('Learn from 256 of 10,000 rows of frames, convolutions, drawn ahead', lambda: updates('frames', 10_000, 256, conv, 32), beside=('rows on the GPU',)),
    Case('Add 4096 Humanoid rows that are on the GPU', lambda: added(10**5, 4096)),
]

def run(each=lambda it: it, **kwargs):
    if not torch.cuda.is_available(): return print('No figures for a GPU: torch.cuda.is_available() is False')
    results = Results([c.name for c in cases], 'device')
    results.machine['gpu'] = torch.cuda.get_device_name()
    for c in each(cases):
        results.add(measure(c, **kwargs))
        torch.cuda.empty_cache()
    print(f'Written: {results.path.with_suffix(".md")}')
