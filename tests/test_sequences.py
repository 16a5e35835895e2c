"Sequences against an oracle that keeps every row and knows nothing of the inside: who is drawn, how often, with what in front"
import copy, random, threading, time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
import pytest, torch
from torch import tensor
from fastrl.core import test_same as same
from fastrl.memory.limit import RateLimiter
from fastrl.memory.replay import ExperienceReplay, ExperienceReplayException
from fastrl.memory.sample import Prioritized
from fastrl.memory.stream import Stream

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

# %% Streams
def streamed(seed):
    rng = random.Random(seed)
    cap,n_envs,T,bs,p_end = rng.choice((3,7,24,60)),rng.choice((1,2,5)),rng.choice((1,3,8)),rng.choice((1,4)),rng.choice((0,.1,.5))
    er,o = ExperienceReplay(4, max_sz=cap, warmup_sz=1),Oracle(cap, 1)
    chunks,last = er.stream(bs, T, seed=seed),[None]*bs
    assert isinstance(chunks, Stream)
    for t in range(80):
        for _ in range(rng.choice((0,1,1,2,5)) if t else 1):
            env,over = rng.randrange(n_envs),rng.random()<p_end
            er.add(x=len(o.rows), env_id=env, terminated=over, truncated=False)
            o.add(env, over)
        batch,idxs = next(chunks)
        assert idxs.shape==batch['mask'].shape==(bs,T) and batch['continues'].shape==(bs,1)
        for j,serials in enumerate(batch['serial'][...,0].tolist()):
            after = None if last[j] is None or last[j]<o.oldest else o.rows[last[j]]['after']
            run = o.run(serials[0], T)
            assert batch['continues'][j].item()==(after is not None) and serials[0]==(serials[0] if after is None else after)
            assert serials==run+[-1]*(T-len(run)) and run[0]>=o.oldest
            assert batch['mask'][j].tolist()==[s>=0 for s in serials]
            assert batch['x'][j,:,0].tolist()==[max(s, 0) for s in serials]
            assert batch['is_last'][j].tolist()==[s>=0 and o.rows[s]['over'] for s in serials]
            if not er.walk.missed: assert batch['is_first'][j].tolist()==[s>=0 and o.rows[s]['before'] is None for s in serials]
            last[j] = run[-1]

@pytest.mark.parametrize('seed', range(6))
def test_streams(seed): streamed(seed)

@pytest.mark.long
def test_many_streams():
    for seed in range(1000, 2000): streamed(seed)

# %% Limits
class Watched(RateLimiter):
    "Looks at every change whether both limits are kept"
    def check(self):
        left = self.inserts*self.samples_per_insert-self.samples
        assert self.min_diff<=left or not self.samples
        assert left<=self.max_diff or self.inserts<=self.min_size_to_sample
        assert not self.samples or self.inserts>=self.min_size_to_sample
    def can_insert(self, n=1): self.check(); return super().can_insert(n)
    def can_sample(self, n=1): self.check(); return super().can_sample(n)

@pytest.mark.parametrize('spi,least,buffer,n', [(1,1,2,1),(4,10,16,4),(.25,3,6,2),(32,5,160,64),(1,1,(0,3),1)])
def test_limited(spi, least, buffer, n):
    "Three actors and two learners, some of whom fail at times, end with the counts of a single thread"
    limiter,rows,drawn,playing = Watched(spi, least, buffer),[],[],[1]*3
    def turns(turn, done, size, k, seed):
        rng = random.Random(seed)
        while k>0 and playing:
            try:
                with turn(size, timeout=.05):
                    if rng.random()<.1: raise KeyError
                    done.append(size)
                k -= 1
            except (KeyError, TimeoutError): pass
        if turn==limiter.insert: playing.pop()
    with ThreadPoolExecutor(5) as pool:
        todo = [pool.submit(turns, limiter.insert, rows, 1, 20*max(1, round(n/spi)), i) for i in range(3)]
        todo += [pool.submit(turns, limiter.sample, drawn, n, 10**9, i) for i in range(2)]
        for o in todo: o.result(60)
    assert sum(rows)==60*max(1, round(n/spi)) and spi*sum(rows)-sum(drawn)<=limiter.max_diff
    limiter.check()
    assert (limiter.inserts, limiter.samples)==(sum(rows), sum(drawn)) and limiter.doing==dict(insert=0, sample=0)

def test_limits_raise():
    limiter = RateLimiter(2, 4, error_buffer=3)
    start = time.monotonic()
    with pytest.raises(TimeoutError, match='no sample of 1 was possible in 0.05 s'):
        with limiter.sample(timeout=.05): pass
    assert time.monotonic()-start>=.05
    for n in (4, 1): # 2*5-0 is at most 2*4+3
        with limiter.insert(n): pass
    with pytest.raises(TimeoutError, match='no insert of 1'):
        with limiter.insert(timeout=0): pass
    waiting = ThreadPoolExecutor(1).submit(lambda: limiter.insert().__enter__())
    time.sleep(.05)
    assert not waiting.done()
    limiter.close()
    with pytest.raises(RuntimeError, match='the limiter is closed'): waiting.result(10)
    for bad in (lambda: RateLimiter(0), lambda: RateLimiter(1, 0), lambda: RateLimiter(2, 4, (9, 10)), lambda: limiter.insert(0).__enter__(),
                lambda: RateLimiter(4, 1, error_buffer=2).insert(2).__enter__()):
        with pytest.raises(ValueError): bad()
