"""Rows on a GPU: a batch drawn there, against a batch drawn in memory and sent there; without a GPU only the second, unsent

Each call ends when the GPU is done. `the call alone` shows how soon Python goes on. What waits for the GPU meanwhile, by torch's
own account (`set_sync_debug_mode`), is an error, not a figure."""
import torch
from fastrl.memory.replay import ExperienceReplay
from fastrl.memory.sample import Prioritized, Uniform
from . import stores
from .measure import Case
from .rows import make_rows

def filled(kind, n, device, sampler, n_step):
    er,rows = ExperienceReplay(256, n, 1, sampler=sampler(seed=0), n_step=n_step, device=device),make_rows(kind, n)
    for i in range(0, n, 4096):
        new = stores.fields(rows, slice(i, i+4096))
        k = len(new['reward'])
        er+{**{c: torch.from_numpy(v) for c,v in new.items() if c!='done'}, 'terminated':torch.from_numpy(new['done']),
            'truncated':torch.zeros(k, dtype=torch.bool), 'env_id':torch.zeros(k, dtype=torch.int64)}
    return er

def drawn(er, bs, k, learn, device=None, done=lambda: None):
    "Draw `k` batches, and note a TD error for each row, as a callable"
    def f():
        for batch,idxs in er.sample(bs, device, n_batches=k):
            if learn: er.update_td(batch['reward'].view(-1, 1), idxs, batch['serial'])
        done()
    return f

def unwaited(f):
    "`f`, in which whatever waits for the GPU is an error"
    def g():
        torch.cuda.set_sync_debug_mode('error')
        try: f()
        finally: torch.cuda.set_sync_debug_mode('default')
    return g

def draws(kind, n, bs, k, sampler, n_step=None):
    learn = sampler is Prioritized
    if not torch.cuda.is_available():
        none = 'there is no GPU here: torch.cuda.is_available() is False'
        return {'rows in memory': drawn(filled(kind, n, 'cpu', sampler, n_step), bs, k, learn), 'rows on the GPU': none, 'the call alone': none}
    (here,there),sync = (filled(kind, n, d, sampler, n_step) for d in ('cpu','cuda')),torch.cuda.synchronize
    def sent(): # TD errors come back to the host
        for batch,idxs in here.sample(bs, 'cuda', n_batches=k):
            if learn: here.update_td(batch['reward'].view(-1, 1).cpu(), idxs, batch['serial'].cpu())
        sync()
    call = unwaited(drawn(there, bs, k, learn))
    def whole(): call(); sync()
    whole() # what is made once
    return {'rows in memory': sent, 'rows on the GPU': whole, 'the call alone': call}

def case(name, kind, n, *how, toy=64, **kwargs):
    return Case(name, lambda n=n: draws(kind, n, *how, **kwargs), beside=('the call alone',), toy=dict(n=toy), note='batches on the GPU, TD errors from there')

cases = [
    case('A GPU: draw 256 of 10⁶ CartPole rows', 'small', 10**6, 256, 1, Uniform),
    case('A GPU: draw 256 of 10⁶ CartPole rows by priority, 3 steps each, and update', 'small', 10**6, 256, 1, Prioritized, n_step=3),
    case('A GPU: draw 16 × 256 of 10⁶ CartPole rows by priority, and update', 'small', 10**6, 256, 16, Prioritized),
    case('A GPU: draw 4096 of 10⁵ Humanoid rows by priority, and update', 'wide', 10**5, 4096, 1, Prioritized),
    case('A GPU: draw 32 of 20,000 rows of frames', 'frames', 20_000, 32, 1, Uniform),
]
