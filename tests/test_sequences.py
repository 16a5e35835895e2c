"Sequences against an oracle that keeps every row and knows nothing of the inside: who is drawn, how often, with what in front"
import copy, random, threading, time, warnings
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
import pytest, torch
from torch import tensor
from fastrl.core import test_same as same
from fastrl.memory.disk import Saved
from fastrl.memory.limit import RateLimiter
from fastrl.memory.replay import ExperienceReplay, ExperienceReplayException
from fastrl.memory.sample import Prioritized, Uniform
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
    assert idxs.shape==serial.shape==(len(idxs), burn+T) and 'mask' in batch and (burn or pad or batch['mask'].all())
    for row,i,j in zip(serial.tolist(), idxs.tolist(), range(len(idxs))):
        run = o.run(row[burn], T)
        want = o.before(row[burn], burn)+run+[None]*(T-len(run))
        assert [None if s<0 else s for s in row]==want and i==[-1 if s is None else s%o.cap for s in want]
        assert o.is_start(row[burn], T, pad)
        assert batch['mask'][j].tolist()==[s is not None for s in want]
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
    kept = {i: p for i,p in enumerate(s.starts.tree[:].tolist()) if p}
    assert kept==pytest.approx({k%o.cap: p for k,p in want.items()}, rel=1e-9 if s.alpha else 0)
    total,got = sum(want.values()),Counter(batch['serial'][:,0,0].tolist())
    assert set(got)<=set(want)
    for k,p in want.items(): assert abs(got[k]-n*p/total)<2.001, (k, got[k], n*p/total)
    p = tensor([want[k] for k in batch['serial'][:,0,0].tolist()]).double()
    least = min(want.values()) if s.normalize=='memory' else p.min()
    assert torch.allclose(batch['weight'][:,0].double(), (least/p)**beta, rtol=1e-4)

def history(seed, steps=60, saves=None):
    rng = random.Random(seed)
    cap,n_envs,pad = rng.choice((1,2,7,24,60,200)),rng.choice((1,2,5)),rng.random()<.5
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

@pytest.mark.parametrize('seed', [*range(4), 1081, 1090, *(pytest.param(o, marks=pytest.mark.slow) for o in range(4, 10))])
@pytest.mark.halved
def test_histories(seed, tmp_path): history(seed, saves=tmp_path/'er' if seed%3==0 else None)

@pytest.mark.long
def test_many_histories(tmp_path):
    for seed in range(1000, 3000): history(seed, saves=tmp_path/str(seed) if seed%20==0 else None)

@pytest.mark.parametrize('seed', range(4))
def test_lengths_in_turns(seed):
    "Whatever lengths are drawn in turns, each hears of every new error and every new row, and four need no second look"
    rng,er = random.Random(seed),ExperienceReplay(4, max_sz=200, warmup_sz=1, seed=seed, sampler=Prioritized(eps=.01))
    def add(t): er.add(x=t, env_id=t%2, terminated=rng.random()<.1, truncated=False)
    for t in range(200): add(t)
    hows = [(2,False),(3,True),(5,False),(1,False),(7,True)][:5 if seed%2 else 4]
    known = {}
    for t in range(200, 320):
        add(t)
        T,pad = rng.choice(hows)
        batch,idxs = er.sample_sequences(2, T, pad=pad)
        td = torch.rand(2, T, dtype=rng.choice((torch.float32,torch.float64))) # only the first is learnt in one compiled step
        er.update_td(td, idxs, batch['serial'])
        for o in (s := er.sampler).starts,*s.resting:
            if len(hows)==4: assert known.setdefault((o.T, o.pad), o) is o
            anew = copy.deepcopy(o)
            for each in (o, anew) if rng.random()<.5 else (): each.follow(er.ring, s.tree)
            if anew.at: torch.testing.assert_close(o.tree[:], anew.tree[:], rtol=1e-6, atol=1e-9)
        assert len(s.resting)<=3

@pytest.mark.parametrize('seed', range(3))
def test_alpha_that_changes(seed):
    "Sequences are drawn as if it had always been so"
    def run(first, then):
        er,rng,out = ExperienceReplay(8, 64, 1, sampler=Prioritized(alpha=first, seed=0)),random.Random(seed),[]
        for t in range(50):
            if t==25: er.sampler.alpha = then
            for _ in range(rng.randint(1, 8)):
                x = rng.random()
                er.add(state=x, action=0, next_state=x+1, reward=1., terminated=rng.random()<.1, truncated=False, env_id=0)
            if t>2: out.append(er.sample_sequences(4, 3)[0])
            some = tensor(rng.sample(range(len(er)), min(len(er), 6)))
            er.sampler.update(er.ring, some, tensor([5*rng.random() for _ in some]))
        batch,idxs = er.sample_sequences(4, 3)
        er.sampler.alpha = 2.
        er.update_td(torch.full(idxs.shape, 3.), idxs, batch['serial'])
        torch.testing.assert_close(er.sampler.tree[idxs.flatten()], torch.full((12,), 9.).double(), rtol=1e-5, atol=0)
        return out[25:]
    for a,b in zip(run(.5, 1.2), run(1.2, 1.2), strict=True):
        same(a['state'], b['state'])
        torch.testing.assert_close(a['weight'], b['weight'])

# %% Streams
def streamed(seed, saves=None):
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
        if saves and t in (5,6,40): # the rest is given by another stream, of the memory that was loaded
            er.checkpoint(saves, extra=dict(chunks=chunks.state_dict()))
            state,was = Saved(saves).extra['chunks'],chunks
            er = ExperienceReplay.load(saves, env_restored=True)
            chunks = er.stream(bs, T)
            chunks.load_state_dict(state)
            for _ in range(rng.choice((0,2))):
                ours,theirs = next(chunks),next(was)
                same(dict(ours[0]), dict(theirs[0]))
                same(ours[1], theirs[1])
            last = [None if s<0 else int(s) for s in chunks.last]
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
def test_streams(seed, tmp_path): streamed(seed, tmp_path/'er' if seed%2 else None)

def test_a_stream_of_lost_rows(tmp_path):
    "Where serial numbers have changed, no sequence goes on with rows that are others now"
    er = ExperienceReplay(4, max_sz=50, warmup_sz=1)
    for t in range(40): er.add(x=t, env_id=0, terminated=t%10==9, truncated=False)
    chunks = er.stream(4, T=3, seed=0)
    next(chunks)
    state = chunks.state_dict()
    few = er[20:].stream(4, T=3)
    few.load_state_dict(state)
    assert not next(few)[0]['continues'].any()
    assert next(chunks)[0]['continues'].any()

def test_a_stream_begins_anywhere():
    "Each stored row is a place to begin, the last one of an episode too; a device that is none is refused at once"
    er = ExperienceReplay(4, max_sz=50, warmup_sz=1)
    for t in range(6): er.add(x=t, env_id=0, terminated=t==3, truncated=False)
    for T in (1,3):
        batch,_ = next(er.stream(200, T=T, seed=0))
        assert {*batch['x'][:,0,0].tolist()}=={*range(6)} and not batch['continues'].any()
    with pytest.raises(ValueError, match='nowhere'): er.stream(4, T=3, device='nowhere')

@pytest.mark.long
def test_many_streams(tmp_path):
    for seed in range(1000, 2000): streamed(seed, tmp_path/str(seed) if seed%10==0 else None)

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
    assert (limiter.inserts, limiter.samples)==(sum(rows), sum(drawn)) and limiter.doing==dict(insert=0, sample=0, delete=0)

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

# reverb's tests of its limiter (rate_limiter_test.cc, table_test.cc), as settings, what is done, and what is allowed then:
# 'i2' inserts two rows, 's1' draws one, 'd1' removes one; 'I3' and 'S1' may happen, '-I3' and '-S1' may not
reverbs = dict(
    blocks_samples_until_min_inserts=(1, 2, (-1,3), 'S0 -S1 I1 i1 -S1 I1 i1 S1'),
    within_the_buffer=(1.5, 1, (-3,3.1), 'i1 I1 i1 s1 s1 s1 s1 s1 s1 -S1'),
    beyond_the_limits=(1.5, 2, (-1,3), '-S1 I1 i1 -S1 i1 s1 -I1 s1 I1 i1'),
    can_sample=(1, 1, (-1,1), '-S1 I1 i1 S1 S2 -S3'),
    can_insert=(1.5, 2, (0,5), 'I1 I2 I3 -I4 i1 i1 i1 -I1 s1 s1 I1 -I2'),
    delete_unblocks_inserts=(5, 2, (0,15), 'i1 i1 I1 -I2 i1 -I1 s1 -I1 d1 -I1 d1 I1'),
    delete_blocks_samples=(5, 2, (0,15), 'i1 i1 S1 d1 -S1 I1 -S1 i1 S1'),
    queue=(1, 1, (0,10), 'i1 i1 i1 i1 i1 i1 i1 i1 i1 i1 -I1 s1 I1 s1 s1 s1 s1 s1 s1 s1 s1 s1 -S1 i1 s1 -S1'),
    timeout=(1, 1, (-1,1), 'i1 -I1'))

@pytest.mark.parametrize('name', reverbs)
def test_reverbs_cases(name):
    spi,least,buffer,steps = reverbs[name]
    limiter = RateLimiter(spi, least, buffer)
    for o in steps.split():
        n = int(o[-1])
        if not n: continue
        ask = limiter.can_insert if 'I' in o else limiter.can_sample
        if o[0] in 'IS' or o[0]=='-': assert ask(n)==(o[0]!='-'), o
        elif o[0]=='d': limiter.delete(n)
        else:
            with (limiter.insert if o[0]=='i' else limiter.sample)(n, timeout=0): pass

def waits(f, *args):
    "Something that another thread waits for"
    res = Future()
    def turn():
        try:
            with f(*args): res.set_result(True)
        except Exception as e: res.set_exception(e)
    threading.Thread(target=turn, daemon=True).start() # a test that fails should not wait for it
    time.sleep(.05)
    assert not res.done()
    return res

def test_reservations():
    "What somebody is about to do counts as done for his side, and not yet for the other; if he fails, it never was"
    limiter = RateLimiter(1, 2, (0,6))
    with limiter.insert(2):
        assert not limiter.can_sample() # the rows are not there yet
        assert limiter.can_insert(4) and not limiter.can_insert(5)
    def inside(f, n, go, fails):
        with f(n): go.wait(10); 1/(not fails)
    for f,other,room,k in ((limiter.sample, limiter.can_insert, 2, 4), (limiter.insert, limiter.can_sample, 6, 0)):
        go = threading.Event()
        with ThreadPoolExecutor(room) as pool:
            todo = [pool.submit(inside, f, 1, go, i%2) for i in range(room)] # as many at once as there is room for
            until = time.monotonic()+10
            while sum(limiter.doing.values())<room and time.monotonic()<until: time.sleep(.001)
            assert sum(limiter.doing.values())==room and (not k or other(k)) and not other(k+1)
            with pytest.raises(TimeoutError):
                with f(timeout=.02): pass
            more = waits(f, room//2) # may go on when half of them have failed
            go.set()
            assert more.result(10) and [isinstance(o.exception(10), ZeroDivisionError) for o in todo]==[i%2==1 for i in range(room)]
        assert limiter.doing==dict(insert=0, sample=0, delete=0)
    assert (limiter.inserts, limiter.samples)==(8, 2)

def test_who_waits_is_woken():
    "By the other side, by a removal, by a new beginning, by the end; and nobody's place is kept after his time is up"
    limiter = RateLimiter(1, 2, 1)
    for _ in range(3):
        with limiter.insert(): pass
    one = waits(limiter.insert)
    with limiter.sample(): pass
    assert one.result(10)
    one = waits(limiter.insert)
    limiter.delete(3) # one is left, and of the first two nobody waits
    assert one.result(10)
    with pytest.raises(TimeoutError):
        with limiter.insert(timeout=.02): pass
    assert limiter.doing==dict(insert=0, sample=0, delete=0)
    one = waits(limiter.insert)
    limiter.reset()
    assert one.result(10) and (limiter.inserts, limiter.samples)==(1, 0)
    other = RateLimiter(1, 3, 4)
    with other.insert():
        one = waits(other.insert, 7) # with eight there would be one too many, if the first one comes
    with pytest.raises(ValueError, match='7 rows are too many at once'): one.result(10)
    all_ = [waits(limiter.sample) for _ in range(3)]
    limiter.close()
    for o in all_:
        with pytest.raises(RuntimeError, match='closed'): o.result(10)

def test_no_deadlock():
    "Wherever two sides that take turns of fixed sizes can come to, one of them can go on, or the limiter has refused them"
    refused = 0
    for spi in (.25,.5,1,1.5,4):
        for least in (1,3):
            for width in (None,.5,1,1.5,2,3,5,8,20): # by itself it is wide enough for one at a time
                for n,m in ((1,1),(1,4),(2,3),(8,1)):
                    limiter = RateLimiter(spi, least, width)
                    try:
                        for f,k in ((limiter.sample, m), (limiter.insert, n), (limiter.sample, m), (limiter.insert, n)):
                            try:
                                with f(k, timeout=0): pass
                            except TimeoutError: pass
                    except ValueError: refused += 1; assert (width, n, m)!=(None, 1, 1); continue
                    todo,seen = [(0,0)],set()
                    while todo:
                        at = todo.pop()
                        if at in seen or at[0]>60: continue
                        seen.add(at)
                        limiter.done.update(insert=at[0], sample=at[1])
                        there = [(at[0]+n, at[1])]*limiter.can_insert(n)+[(at[0], at[1]+m)]*limiter.can_sample(m)
                        assert there, (spi, least, width, n, m, at)
                        todo += there
    assert refused>20

def test_limits_are_resumed(tmp_path):
    "With the memory whose rows they counted, and the two go on as if nothing had been"
    er,limiter = ExperienceReplay(2, max_sz=20, warmup_sz=1),RateLimiter(1.5, 3, (-float('inf'),9))
    for t in range(30):
        if limiter.can_insert():
            with limiter.insert(): er.add(x=t, terminated=False, truncated=False)
        if t%3 and limiter.can_sample(2):
            with limiter.sample(2): er.sample()
        if t%7==6:
            er.checkpoint(tmp_path/'er', extra=dict(limiter=limiter.state_dict()))
            er,anew = ExperienceReplay.load(tmp_path/'er'),RateLimiter(1.5, 3, (-float('inf'),9))
            anew.load_state_dict(Saved(tmp_path/'er').extra['limiter'])
            for k in range(1, 9): assert (anew.can_insert(k), anew.can_sample(k))==(limiter.can_insert(k), limiter.can_sample(k))
            limiter = anew
    assert limiter.inserts==er.ring.total and limiter.samples>10
    with pytest.raises(ValueError, match='should be 1.5'): RateLimiter(1).load_state_dict(limiter.state_dict())

# %% Writing back
def test_put(tmp_path):
    "Values of sequences that are written back, late ones dropped; a checkpoint writes what changed, and all of it is resumed"
    rng,flag = random.Random(0),((), torch.bool)
    er = ExperienceReplay(4, max_sz=2000, warmup_sz=1, seed=0, sampler=Prioritized(seed=0), schema=dict(
        x=((), torch.int64), terminated=flag, truncated=flag, env_id=((), torch.int64),
        wide=((64,), torch.float32), value=((), torch.float32, 'later'), hidden=((2,), torch.float64, 'later')))
    def row(x): return dict(x=x, terminated=x%9==8, truncated=False, env_id=0, wide=torch.full((64,), float(x)))
    for x in range(2000): er.add(**row(x))
    er.checkpoint(tmp_path/'er')
    def written(): return sum(o.stat().st_size for o in (tmp_path/'er').rglob('*') if o.is_file())
    size,value,hidden,n,late = written(),{},{},2000,[]
    for k in range(8):
        batch,idxs = er.sample_sequences(4, T=5, pad=True, burn_in=2)
        late.append((idxs, batch['serial'], torch.rand(4, 7, 1), torch.rand(4, 7, 2).double()))
        if k%2: er.add(**row(n)); n += 1
        if k==4: er+dict(BDs(row, range(n, n+1900))); n += 1900
        for idxs,serial,v,h in late[-2:]:
            gone = sum(0<=s<n-2000 for s in serial.reshape(-1).tolist())
            assert (er.put('value', idxs, v, serial), er.put('hidden', idxs, h, serial))==(gone, gone)
            for s,a,b in zip(serial.reshape(-1).tolist(), v.reshape(-1).tolist(), h.reshape(-1, 2).tolist()):
                if s>=0: value[s],hidden[s] = a,b
        er.checkpoint(tmp_path/'er')
        if k==3: assert written()-size<100_000 # of half a MB of rows
        if k%3==2: er = ExperienceReplay.load(tmp_path/'er', env_restored=True)
        serials = er.ring.serial(torch.arange(2000)).reshape(-1).tolist()
        same(er['value'][:,0], tensor([value.get(s, 0.) for s in serials]))
        same(er['hidden'], tensor([hidden.get(s, [0.,0.]) for s in serials]).double())
        assert er['x'][:,0].tolist()==serials
    with refused("missing ['x']"): er.add(**{k: v for k,v in row(0).items() if k!='x'})

def test_learnt_errors_are_checkpointed(tmp_path):
    "A checkpoint writes the TD errors that steps of sequences learnt since the last one, though no priority tells them"
    er = ExperienceReplay(4, max_sz=2000, warmup_sz=1, seed=0, sampler=Prioritized(alpha=0, seed=0))
    flags = dict(terminated=torch.arange(2000)%9==8, truncated=torch.zeros(2000).bool(), env_id=torch.zeros(2000).long())
    er+dict(x=torch.arange(2000), wide=torch.zeros(2000, 64), **flags)
    for k in range(6):
        if k: er.update_td(torch.rand(4, 5, 1), er.sample_sequences(4, T=5, pad=True)[0])
        before = {o for o in tmp_path.rglob('*')}
        er.checkpoint(tmp_path)
        assert not k or sum(o.stat().st_size for o in {*tmp_path.rglob('*')}-before if o.is_file())<100_000 # of half a MB
        again = ExperienceReplay.load(tmp_path, env_restored=True)
        same(again['td_error'], er['td_error'])
        same(again.sample_sequences(4, T=5, pad=True)[1], copy.deepcopy(er).sample_sequences(4, T=5, pad=True)[1])
        if k==3: er = again
    assert er['td_error'].count_nonzero()>60

@pytest.mark.parametrize('bad', [float('nan'), float('inf'), -float('inf')])
def test_learnt_errors_are_finite(bad):
    "A network that diverged is named, and neither errors nor priorities change"
    er = ExperienceReplay(4, max_sz=50, warmup_sz=1, seed=0, sampler=Prioritized(seed=0))
    for t in range(50): er.add(x=t, terminated=t%9==8, truncated=False, env_id=0)
    for named in (True,False):
        batch,idxs = er.sample_sequences(4, T=5)
        td = torch.rand(4, 5, 1)
        er.update_td(td, batch) # these are as usual
        before = er['td_error'],er.sampler.tree[:].clone()
        td[2,3] = bad
        with refused('should be finite'): er.update_td(td, batch) if named else er.update_td(td, idxs, batch['serial'])
        same((er['td_error'], er.sampler.tree[:]), before)

def BDs(row, xs):
    rows = [row(x) for x in xs]
    return {k: torch.stack([torch.as_tensor(o[k]) for o in rows]) for k in rows[0]}

def test_own_names():
    "A column `is_first` or `is_last` comes as it was stored; where a column `mask` is needed, one of the user's must have another name"
    er = ExperienceReplay(4, max_sz=20, warmup_sz=1, seed=0, sampler=Prioritized(seed=0))
    for t in range(12): er.add(x=t, is_first=t%2, mask=t, terminated=t%4==3, truncated=False, env_id=0)
    batch,idxs = er.sample_sequences(8, T=3)
    same(batch['is_first'], idxs[...,None].float()%2)
    same(batch['mask'], idxs[...,None].float())
    for kw in (dict(T=3, burn_in=2), dict(T=3, pad=True), dict()):
        with refused('call the stored column `mask` another name'): er.sample_sequences(8, **kw)
    with refused('call the stored column another name'): next(er.stream(2, T=3))
    for bad in (-1, 1.5, True):
        with refused('`burn_in`'): er.sample_sequences(8, T=3, burn_in=bad)
    with refused('give `T`'): er.sample_sequences(8, burn_in=2)
    for td,serial in ((torch.zeros(8,2), None), (torch.zeros(8,3), torch.zeros(8,2)), (torch.full((8,3), float('nan')), None)):
        before = er['td_error'].clone()
        with pytest.raises(ExperienceReplayException): er.update_td(td, idxs, serial)
        same(er['td_error'], before)

class Few(Uniform):
    "A sampler that has a length, and begins each sequence at the same row"
    def __len__(self): return 0
    def draw_starts(self, ring, bs, walk, T, pad=False):
        walk.follow(ring)
        return torch.full((bs,), 4).numpy(),{}

def test_own_sampler(tmp_path):
    "A sampler of the user's says where sequences begin, before and after a load, also one whose length is 0"
    er = ExperienceReplay(4, max_sz=20, warmup_sz=1, sampler=Few())
    for t in range(12): er.add(x=t, terminated=False, truncated=False, env_id=0)
    er.save(tmp_path/'er')
    mine = Few()
    back = ExperienceReplay.load(tmp_path/'er', sampler=mine)
    assert back.sampler is mine
    for o in (er, back): same(o.sample_sequences(8, T=3)[1], tensor([[4,5,6]]*8))

def test_put_keeps_links():
    "What says which row follows which is not overwritten, before or after the first draw: a loaded memory links its rows as this one"
    er = ExperienceReplay(4, max_sz=20, warmup_sz=1, seed=0)
    for t in range(20): er.add(x=t, step=t%5, terminated=t%5==4, truncated=False, env_id=0, episode_id=t//5)
    for _ in range(2):
        for name in ('terminated','truncated','env_id','episode_id','step'):
            with refused('says which row follows which'): er.put(name, torch.arange(20), torch.zeros_like(er.memory[name]))
        assert {o[0] for o in er.sample_sequences(200, T=5)[1].tolist()}=={0,5,10,15}

def test_own_weight():
    "A stored `weight` is told once that batches drawn by priority show another; it stays as it is"
    er = ExperienceReplay(4, max_sz=20, warmup_sz=1, sampler=Prioritized(seed=0))
    er.add(x=1., weight=7.)
    with pytest.warns(UserWarning, match='show a `weight` of their own') as told: batch,_ = er.sample()
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        er.sample(), er.add(x=2., weight=8.), er.sample()
    assert len(told)==1 and (batch['weight']==1).all() and er['weight'][:,0].tolist()==[7,8]

def of_lengths(lengths, prioritized=False):
    "A memory of one environment's whole episodes"
    over = [t==n for n in lengths for t in range(1, n+1)]
    m = ExperienceReplay(bs=4, max_sz=len(over), warmup_sz=0, sampler=Prioritized() if prioritized else None, seed=0)
    return m+dict(reward=torch.ones(len(over)), terminated=tensor(over), truncated=torch.zeros(len(over)).bool(), env_id=torch.zeros(len(over)),
                  episode_id=torch.arange(len(lengths)).repeat_interleave(tensor(lengths)))

@pytest.mark.parametrize('prioritized', [False, True])
def test_short_episodes_are_told(prioritized):
    "Once for each length, at the user's line"
    m = of_lengths([7,3,6,4], prioritized)
    with pytest.warns(UserWarning, match='2 of 4 episodes .50%. are shorter than 5 steps, and are never drawn; they have 35% of all') as told:
        for _ in range(9): m.sample_sequences(4, 5)
        m.sample_sequences(4, 3)
        m.sample_sequences(4, 7, pad=True)
        m.sample_sequences(4)
    assert [o.filename for o in told]==[__file__]
    with pytest.warns(UserWarning, match='3 of 4 .* shorter than 7'): m.sample_sequences(4, 7)

def test_short_episodes_that_come_later():
    "They are told when there are twice as many rows as at the last look; a warning that is an error comes once, too"
    m = ExperienceReplay(bs=4, max_sz=100, warmup_sz=0, seed=0)
    def add(episode, n): m+dict(reward=torch.ones(n), terminated=torch.arange(n)==n-1, truncated=torch.zeros(n).bool(),
                                env_id=torch.zeros(n), episode_id=torch.full((n,), episode))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        add(0, 8), m.sample_sequences(4, 5)
        add(1, 3), m.sample_sequences(4, 5) # 11 rows: not yet
        add(2, 5)
        with pytest.raises(UserWarning, match='1 of 3 episodes'): m.sample_sequences(4, 5)
        assert m.sample_sequences(4, 5)[1].shape==(4,5)
        for k in range(3, 20): add(k, 3+k%2*4), m.sample_sequences(4, 5) # many more are short: you know that

def test_few_starts():
    "One row in 50 begins a run: all of these are drawn, equally often"
    m = of_lengths(([5]*39+[13])*100)
    every = Counter()
    for _ in range(40): every.update(m.sample_sequences(1000, 10)[1][:,0].tolist())
    starts = {k*208+195+i for k in range(100) for i in range(4)}
    assert set(every)==starts
    chi2 = sum((every[s]-100)**2/100 for s in starts) # 399 degrees of freedom: 399 ± 28
    assert 250<chi2<560, chi2

def test_whole_episodes_of_many():
    "Episodes of any length are equally likely; those that began before the memory, or go on, don't come"
    m = of_lengths([1,2,9]*700)
    every = Counter()
    for _ in range(30): every.update(m.sample_sequences(100)[1][:,0].tolist())
    assert {k%12 for k in every}=={0,1,3} and len(every)>1500 # of 2,100 that 3,000 draws may find, 1,597 on average
    by = Counter(k%12 for k in every.elements())
    assert all(900<by[o]<1100 for o in (0,1,3)), by # 1,000 ± 26
    for _ in range(3): m.add(reward=1., terminated=False, truncated=False, env_id=0., episode_id=2100) # goes on, and part of the first is gone
    every = Counter(k for _ in range(30) for k in m.sample_sequences(100)[1][:,0].tolist())
    assert not {0,1,2}&{*every} and {k%12 for k in every}=={0,1,3}
