"Batches: drawn in one compiled step or the general way, alone or by the dozen, now or ahead"
import copy, pickle, random, numpy as np, pytest, torch
from torch import tensor
from fastrl.core import BD, leaves, test_same as same
from fastrl.memory.replay import ExperienceReplay
from fastrl.memory.ring import Ring
from fastrl.memory.sample import Prioritized, Uniform

def steps(first, n, nested=False):
    "Rows of one environment, episodes of 7 steps, that say their number in each column"
    i = torch.arange(first, first+n)
    obs = i[:,None]+torch.tensor([0.,.25,.5])
    return BD(state=BD(arm=obs, eye=(obs[:,:2].half(), i[:,None].to(torch.int16))) if nested else obs, action=i[:,None],
              reward=i[:,None].double() if nested else i[:,None].float(), next_state=obs+1, terminated=i[:,None]%7==6,
              truncated=torch.zeros(n, 1, dtype=torch.bool), env_id=torch.zeros(n, 1, dtype=torch.int64))

class Plain:
    "A sampler of one's own around another: the ring knows only its `draw`, as it always was"
    def __init__(self, s): self.s = s
    def draw(self, ring, bs): return self.s.draw(ring, bs)
    def update(self, ring, idxs, td_errors): self.s.update(ring, torch.as_tensor(idxs), torch.as_tensor(td_errors).view(-1))

def samplers(seed): return [Uniform(seed), Prioritized(seed=seed), Prioritized(alpha=1., beta=.7, beta_steps=5, normalize='memory', seed=seed)]

def places(tmp_path):
    yield {}
    yield dict(shared=True)
    yield dict(path=tmp_path/'rows')

@pytest.mark.parametrize('where', (0, 1, 2), ids=('memory','shared','mapped'))
@pytest.mark.parametrize('kind', (0, 1, 2), ids=('uniform','prioritized','normalized by memory'))
@pytest.mark.parametrize('n_step', (None, 3))
@pytest.mark.parametrize('nested', (False, True))
def test_one_step_is_the_general_way(tmp_path, where, kind, n_step, nested):
    "Both ways draw the same rows, numbers and weights, at every fill and cursor, with TD errors between the draws"
    rng = random.Random(kind)
    for cap in (1, 2, 5, 12):
        kw = [*places(tmp_path/f'{cap}')][where]
        a,b = samplers(3)[kind],Plain(samplers(3)[kind])
        first = steps(0, 1, nested)
        schema = None if not kw else {k: _schema(v) for k,v in first.items()}
        er = ExperienceReplay(6, cap, 1, sampler=a, n_step=n_step, schema=schema, **kw)
        at = 0
        for _ in range(12):
            n = rng.randint(1, 4)
            er+steps(at, n, nested); at += n
            er.sampler = a; x,i = er.sample()
            er.sampler = b; y,j = er.sample()
            same((x, i), (y, j))
            assert (x['action']==x['serial']).all() and bool((er.ring.serial(i)==x['serial'][:,0]).all())
            td = torch.rand(6, 1)
            er.sampler = a; er.update_td(td, i, x['serial'])
            b.update(er.ring, i, td)

def _schema(v):
    if isinstance(v, dict): return {k: _schema(o) for k,o in v.items()}
    return tuple(map(_schema, v)) if isinstance(v, tuple) else (tuple(v.shape[1:]), v.dtype)

def test_even():
    "χ² of the draws, over rows and over pairs of neighbouring draws: within five standard deviations"
    for cap,rows in ((10, 10), (7, 20), (None, 13), (100, 64)):
        ring = Ring(cap)
        ring.extend(dict(x=torch.arange(float(rows))))
        n,s,k = len(ring),Uniform(seed=1),40_000
        _,idxs = ring.draw(s, k)
        chi = lambda counts: ((counts-counts.mean())**2/counts.mean()).sum()
        for counts,df in ((torch.bincount(idxs, minlength=n).double(), n-1),
                          (torch.bincount(idxs[1::2]*n+idxs[::2], minlength=n*n).double(), n*n-1)):
            assert len(counts)==df+1 and abs(chi(counts)-df)<5*(2*df)**.5
    a,b = (Uniform(seed=o).draw(ring, 20_000)[0].double() for o in (0, 1))
    assert abs(torch.corrcoef(torch.stack([a, b]))[0,1])<5/20_000**.5 # samplers of neighbouring seeds are independent

class Newest(Uniform):
    def draw(self, ring, bs): return torch.arange(bs)%len(ring), dict(mark=torch.ones(bs, 1))

class Doubled(Uniform):
    "Draws in its own way, and asks its base"
    def draw(self, ring, bs):
        idxs,cols = super().draw(ring, bs)
        return idxs.sort()[0],cols

def test_own_draw_wins():
    er = ExperienceReplay(5, 20, 1, sampler=Newest(0), memory=steps(0, 20))
    batch,idxs = er.sample()
    assert idxs.tolist()==[0,1,2,3,4] and bool((batch['mark']==1).all())
    er.sampler = Doubled(0)
    assert er.sample(9)[1].tolist()==Uniform(0).draw(er.ring, 9)[0].sort()[0].tolist()
    er.sampler = Uniform(0)
    er.sampler.draw = lambda ring, bs: (torch.zeros(bs, dtype=torch.int64), {})
    assert er.sample()[1].tolist()==[0]*5
    er.sampler = Uniform(0)
    assert er.sample(9)[1].tolist()==Uniform(0).draw(er.ring, 9)[0].tolist()

def test_long_rows():
    "Rows that are no longer short take the general way, with the same draws"
    long = ExperienceReplay(5, 9, 1, seed=4, memory=BD(x=torch.arange(9.)[:,None]+torch.zeros(9, 300)))
    short = ExperienceReplay(5, 9, 1, seed=4, memory=BD(x=torch.arange(9.)[:,None]))
    for _ in range(3):
        (a,i),(b,j) = long.sample(),short.sample()
        same((i, a['x'][:,:1], a['serial']), (j, b['x'], b['serial']))

@pytest.mark.parametrize('kind', (0, 1, 2))
def test_states(tmp_path, kind):
    "Saved, pickled or copied between any two draws, a sampler resumes bit for bit"
    er = ExperienceReplay(4, 30, 1, sampler=samplers(0)[kind], memory=steps(0, 30))
    for k in range(4):
        er.update_td(torch.rand(4, 1), (b := er.sample())[1], b[0]['serial'])
        er.save(tmp_path/f'{k}')
        others = [ExperienceReplay.load(tmp_path/f'{k}'), copy.deepcopy(er), pickle.loads(pickle.dumps(er))]
        want = [er.sample() for _ in range(3)]
        for o in others: same([o.sample() for _ in range(3)], want)
        er.sampler.seed(k)
        again = er.sample()[1]
        er.sampler.seed(k)
        same(er.sample()[1], again)

def test_older_states():
    "A state from before the stream had a key: a generator's; it loads, and what it draws can be repeated"
    old = torch.Generator().manual_seed(5)
    torch.rand(7, generator=old)
    state = dict(gen=old.get_state(), device='cpu')
    ring = Ring(9)
    ring.extend(dict(x=torch.arange(9.)))
    a,b = Uniform(1),Uniform(2)
    a.draw(ring, 3)
    for o in (a, b): o.load_state_dict(state)
    same(a.draw(ring, 50), b.draw(ring, 50))
    c = Uniform(3)
    c.load_state_dict(a.state_dict())
    same(c.draw(ring, 50), a.draw(ring, 50))
    old = {k: v for k,v in Uniform(4).__getstate__().items() if k not in ('key','drawn')} # a pickle from then
    d,e = Uniform.__new__(Uniform),Uniform(4)
    d.__setstate__(old)
    same(d.draw(ring, 9), e.draw(ring, 9))

def test_own_columns_are_apart():
    "Writing into one column changes no other, and no autograd of another: each is a tensor of its own"
    er = ExperienceReplay(5, 20, 1, seed=0, memory=steps(0, 20))
    batch,_ = er.sample()
    want = {k: v.clone() for k,v in batch.items()}
    w = torch.ones(3, requires_grad=True)
    loss = (batch['state']*w).sum()
    batch['reward'] += 1
    loss.backward()
    batch['reward'] -= 1
    same(dict(batch), want)
    same(er.memory['reward'], steps(0, 20)['reward'])
