"Uniform samples: rows drawn with replacement, five columns of torch tensors"
from . import stores
from .measure import Case
from .rows import make_rows

def sampler(bs):
    def do(s):
        stores.check(s.sample(), bs)
        return s.sample
    return do

def sample(kind, n, bs, peers=stores.peers):
    rows = make_rows(kind, n)
    ours = stores.Fastrl(rows, n, bs)
    er = ours.er
    return {ours.name: sampler(bs)(ours), **stores.open_all(peers, rows, n, bs, sampler(bs)),
            stores.RingOnly.name: lambda: er.ring.gather(er.sampler.draw(len(er), bs))}

def case(name, goal, kind, n, bs, note):
    return Case(name, lambda n=n, **kw: sample(kind, n, bs, **kw), goal=goal, beside=(stores.RingOnly.name,), note=note, toy=dict(n=64, peers=[]))

cases = [
    case('Sample 256 of 10⁶ CartPole rows', 2, 'small', 10**6, 256, '`ExperienceReplay.sample()`, with a column `td_error` more than the others; "fastrl Ring" is `ring.gather(sampler.draw(n, bs))` alone, here and below'),
    case('Sample 256 of 2·10⁵ rows of 376 floats', 1, 'wide', 2*10**5, 256, 'state and next state of 376 floats, action of 17'),
    case('Sample 32 of 2·10⁴ rows of 4×84×84 frames', 1, 'frames', 2*10**4, 32, 'state and next state'),
]
