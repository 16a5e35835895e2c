"Sequences against an oracle that keeps every row and knows nothing of the inside: who is drawn, how often, with what in front"
import copy, random
from collections import Counter
import pytest, torch
from torch import tensor
from fastrl.core import test_same as same
from fastrl.memory.replay import ExperienceReplay, ExperienceReplayException
from fastrl.memory.sample import Prioritized

def refused(says):
    import re
    return pytest.raises(ExperienceReplayException, match=re.escape(says))

class Oracle:
    "Every row that ever was, what came after it, and the error that it has"
    def __init__(self, cap, eps): self.cap,self.eps,self.rows,self.last,self.error = cap,eps,[],{},{}
    def add(self, env, over):
        s = len(self.rows)
        b = self.last.get(env)
        self.rows.append(dict(env=env, over=over, before=b, after=None))
        if b is not None: self.rows[b]['after'] = s
        self.last[env] = None if over else s
    @property
    def oldest(self): return max(0, len(self.rows)-self.cap)
    def stored(self): return range(self.oldest, len(self.rows))
    def catch_up(self):
        "A row has the largest error of those that are left when it comes; it comes when somebody draws or tells errors"
        for s in range(len(self.error), len(self.rows)):
            self.error[s] = max((self.error[o] for o in range(max(0, s-self.cap+1), s)), default=1.)
    def run(self, s, T):
        res = [s]
        while len(res)<T and (s := self.rows[s]['after']) is not None: res.append(s)
        return res
    def before(self, s, n):
        res = []
        while len(res)<n and (s := self.rows[s]['before']) is not None and s>=self.oldest: res.append(s)
        return [None]*(n-len(res))+res[::-1]
    def is_start(self, s, T, pad):
        b = self.rows[s]['before']
        return len(self.run(s, T))==T or pad and (b is None or b<self.oldest)
    def priorities(self, T, pad, eta, alpha):
        res = {}
        for s in self.stored():
            if not self.is_start(s, T, pad): continue
            e = [self.error[o] for o in self.run(s, T)]
            res[s] = (eta*max(e)+(1-eta)*sum(e)/len(e))**alpha
        return res

def check_batch(o, batch, idxs, T, pad, burn, missed):
    "Each sequence is a run of the oracle's rows, with those before it in front; `missed`: rows came and went unseen"
    serial = batch['serial'][...,0]
    assert idxs.shape==serial.shape==(len(idxs), burn+T) and bool(burn or pad)==('mask' in batch)
    for row,i,j in zip(serial.tolist(), idxs.tolist(), range(len(idxs))):
        run = o.run(row[burn], T)
        want = o.before(row[burn], burn)+run+[None]*(T-len(run))
        assert [None if s<0 else s for s in row]==want and i==[-1 if s is None else s%o.cap for s in want]
        assert o.is_start(row[burn], T, pad)
        if 'mask' in batch: assert batch['mask'][j].tolist()==[s is not None for s in want]
        first = [s is not None and o.rows[s]['before'] is None for s in want]
        assert all(map(int.__le__, batch['is_first'][j].tolist(), first))
        if not missed: assert batch['is_first'][j].tolist()==first
        assert batch['is_last'][j].tolist()==[s is not None and s in run and o.rows[s]['over'] for s in want]
        assert batch['x'][j,:,0].tolist()==[0 if s is None else s for s in want]

def check_chances(er, o, T, pad, n):
    "Stratified draws hit each sequence as often as its priority says, within one; weights are those of the paper"
    s,beta = er.sampler,er.sampler.beta
    o.catch_up()
    want = o.priorities(T, pad, s.eta, s.alpha)
    if not want:
        with refused(f'no episode has {T} rows in a row'): er.sample_sequences(4, T, pad=pad)
        return
    batch,idxs = er.sample_sequences(n, T, pad=pad)
    total,got = sum(want.values()),Counter(batch['serial'][:,0,0].tolist())
    assert set(got)<=set(want)
    for k,p in want.items(): assert abs(got[k]-n*p/total)<2.001, (k, got[k], n*p/total)
    p = tensor([want[k] for k in batch['serial'][:,0,0].tolist()]).double()
    least = min(want.values()) if s.normalize=='memory' else p.min()
    assert torch.allclose(batch['weight'][:,0].double(), (least/p)**beta, rtol=1e-4)

def history(seed, steps=60, saves=None):
    rng = random.Random(seed)
    cap,n_envs,pad = rng.choice((1,2,3,7,24,60)),rng.choice((1,2,5)),rng.random()<.5
    T,p_end = rng.choice((1,2,3,5,9)),rng.choice((0,.1,.3,.9))
    er = ExperienceReplay(4, max_sz=cap, warmup_sz=1, seed=seed, sampler=Prioritized(
        alpha=rng.choice((0,.6,1)), eta=rng.choice((0,.5,.9,1)), eps=.01, beta=rng.random(), normalize=rng.choice(('batch','memory'))))
    o,late,dropped = Oracle(cap, .01),[],0
    for t in range(steps):
        for _ in range(rng.choice((1,1,1,2,3,30))):
            env,over = rng.randrange(n_envs),rng.random()<p_end
            cut_off = over and rng.random()<.5
            er.add(x=len(o.rows), env_id=env, terminated=over and not cut_off, truncated=cut_off)
            o.add(env, over)
        if rng.random()<.1: T,pad = rng.choice((1,2,4)),rng.random()<.5
        what = rng.choice(('rows','steps','late','chances','burn','copy'))
        if what=='chances': check_chances(er, o, T, pad, 400)
        if what=='copy': er = copy.deepcopy(er)
        if what=='copy' and saves and rng.random()<.3:
            er.checkpoint(saves); er = ExperienceReplay.load(saves, env_restored=True)
        if what in ('steps','burn'):
            burn = rng.randrange(4)
            o.catch_up()
            try: batch,idxs = er.sample_sequences(rng.randint(1, 5), T, pad=pad, burn_in=burn)
            except ExperienceReplayException as e:
                assert 'rows in a row' in str(e) and not o.priorities(T, pad, 1, 1)
                continue
            check_batch(o, batch, idxs, T, pad, burn, er.walk.missed)
            late.append((idxs[:,burn:], batch['serial'][:,burn:], torch.rand(len(idxs), T)*rng.choice((.1,1,10))))
        if what=='rows':
            o.catch_up()
            batch,idxs = er.sample(3)
            late.append((idxs, batch['serial'], torch.rand(3, 1)*3))
        if late and what in ('rows','steps','late'):
            idxs,serial,td = late.pop(rng.randrange(len(late)))
            o.catch_up()
            er.update_td(td[...,None] if td.ndim==2 and idxs.ndim==2 and rng.random()<.5 else td, idxs, serial)
            for s,e in zip(serial.reshape(-1).tolist(), td.reshape(-1).tolist()):
                if s<0: continue
                if s<o.oldest: dropped += 1
                else: o.error[s] = abs(e)+.01
            assert er.dropped_updates==dropped
    check_chances(er, o, T, pad, 400)

@pytest.mark.parametrize('seed', range(12))
def test_histories(seed, tmp_path): history(seed, saves=tmp_path/'er' if seed%3==0 else None)

@pytest.mark.long
def test_many_histories(tmp_path):
    for seed in range(1000, 3000): history(seed, saves=tmp_path/str(seed) if seed%20==0 else None)
