"Batches: drawn in one compiled step or the general way, alone or by the dozen, now or ahead"
import copy, gc, json, os, pickle, random, subprocess, sys, threading, time, weakref, pytest, torch
from pathlib import Path
from torch import tensor
from fastrl.core import BD, test_same as same
from fastrl.memory.replay import ExperienceReplay, ExperienceReplayException, MemoryNotWarm
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

@pytest.mark.parametrize('where', (0, *(pytest.param(o, marks=pytest.mark.slow) for o in (1, 2))), ids=('memory','shared','mapped'))
@pytest.mark.parametrize('kind', (0, 1, 2), ids=('uniform','prioritized','normalized by memory'))
@pytest.mark.parametrize('n_step', (None, 3))
@pytest.mark.parametrize('nested', (False, True))
@pytest.mark.halved
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

class Latest(Uniform):
    def draw(self, ring, bs): return torch.arange(bs)%len(ring), dict(mark=torch.ones(bs, 1))

class Doubled(Uniform):
    "Draws in its own way, and asks its base"
    def draw(self, ring, bs):
        idxs,cols = super().draw(ring, bs)
        return idxs.sort()[0],cols

def test_own_draw_wins():
    er = ExperienceReplay(5, 20, 1, sampler=Latest(0), memory=steps(0, 20))
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

# %% Several at once
def pairs(er, k, **kwargs): return [er.sample(**kwargs) for _ in range(k)]

@pytest.mark.parametrize('where', (0, 1, 2), ids=('memory','shared','mapped'))
@pytest.mark.parametrize('kind', range(5), ids=('uniform','prioritized','normalized by memory','own','subclass'))
@pytest.mark.parametrize('n_step', (None, 3))
@pytest.mark.parametrize('nested', (False, True))
@pytest.mark.halved
def test_dozen_is_as_many_draws(tmp_path, where, kind, n_step, nested):
    "Bit for bit what as many calls of `sample` give: rows, numbers, weights, `beta`; and then both go on alike"
    for cap,rows in ((1, 3), (7, 20), (40, 33)):
        def make(name):
            kw = [*places(tmp_path/f'{name}{cap}')][where]
            s = [*samplers(3), Plain(Prioritized(seed=3)), Doubled(3)][kind]
            schema = {k: _schema(v) for k,v in steps(0, 1, nested).items()} if kw else None
            er = ExperienceReplay(6, cap, 1, sampler=s, n_step=n_step, schema=schema, **kw)+steps(0, rows, nested)
            td = torch.linspace(0, 3, 6)[:,None]
            er.update_td(td, (b := er.sample())[1], b[0]['serial'])
            return er
        a,b = make('a'),make('b')
        for k in (1, 2, 9):
            dozen = a.sample(n_batches=k)
            assert len(dozen)==k
            same([*dozen], pairs(b, k))
            same([*a.sample(3, n_batches=k)], pairs(b, k, bs=3))
        same(a.sample(), b.sample())

def test_dozen_updates():
    "Each pair of them brings its TD errors home; rows that were overwritten meanwhile are dropped and counted"
    er = ExperienceReplay(4, 20, 1, sampler=Prioritized(seed=0), memory=steps(0, 20))
    want,dropped = er.memory['td_error'].clone(),0
    for j,(batch,idxs) in enumerate(er.sample(n_batches=6)):
        er+steps(20+2*j, 2)
        want[[2*j, 2*j+1]] = 0
        gone = batch['serial'][:,0]<2*(j+1)
        td = torch.full((4,1), j+1.)
        want[idxs[~gone]],dropped = j+1.,dropped+int(gone.sum())
        er.update_td(td, idxs, batch['serial'])
    same((er.memory['td_error'], er.dropped_updates), (want, dropped))
    assert dropped

def test_dozen_apart():
    "Writing into one of them, also with autograd looking on, changes no other, and nothing stored"
    for kw in ({}, dict(n_step=2), dict(device='cpu')):
        device = kw.pop('device', None)
        er = ExperienceReplay(4, 20, 1, seed=0, memory=steps(0, 20), **kw)
        stored = {k: v.clone() for k,v in er.memory.items()}
        dozen = er.sample(n_batches=3, device=device)
        (a,_),(b,_),(c,_) = dozen
        kept = [{k: v.clone() for k,v in o.items()} for o in (a, c)]
        w = torch.ones(3, requires_grad=True)
        loss = (a['state']*w).sum()
        for v in b.values(): v.zero_()
        b['reward'] += w.sum() # grows a graph in place
        loss.backward()
        same([dict(a), dict(c)], kept)
        same(dict(er.memory), stored)
        same(dict(dozen[-1][0]), kept[1])
        same([o for _,o in dozen[:2]], [o for _,o in dozen][:2])
        same(dict(pickle.loads(pickle.dumps(dozen))[2][0]), kept[1])

def test_dozen_of_long_rows_and_odd_types():
    rows = BD(x=torch.arange(9.)[:,None]+torch.zeros(9, 300), h=torch.arange(9)[:,None].to(torch.bfloat16))
    a,b = (ExperienceReplay(5, 9, 1, seed=4, memory=rows) for _ in range(2))
    same([*a.sample(n_batches=3)], pairs(b, 3))
    big = BD(x=torch.arange(3000.)[:,None])
    a,b = (ExperienceReplay(700, 3000, 1, seed=4, memory=big) for _ in range(2))
    same([*a.sample(n_batches=3)], pairs(b, 3)) # many rows are copied by another loop
    same(a.sample(2000), b.sample(2000))

def test_dozen_of_sequences():
    a,b = (ExperienceReplay(4, 60, 1, seed=2, memory=steps(0, 50)) for _ in range(2))
    for T,pad in ((3, False), (5, True)):
        same([*a.sample_sequences(T=T, pad=pad, n_batches=5)], [b.sample_sequences(T=T, pad=pad) for _ in range(5)])
    with pytest.raises(ExperienceReplayException, match='give sequences a length `T`'):
        long = ExperienceReplay(1, 60, 1, seed=2, memory=steps(0, 15)) # one episode of 7, one of 7, and a piece
        long+BD({**steps(15, 1), 'terminated':torch.ones(1, 1, dtype=torch.bool)})
        long.sample_sequences(n_batches=40)

def test_dozen_refused():
    er = ExperienceReplay(4, 20, 5, seed=0, memory=steps(0, 20))
    for bad in (0, -1, 1.5, '3', True):
        with pytest.raises(ExperienceReplayException, match='`n_batches` should be a whole number of at least 1'): er.sample(n_batches=bad)
    with pytest.raises(MemoryNotWarm): ExperienceReplay(4, 20, 5).sample(n_batches=3)
    with pytest.raises(IndexError): er.sample(n_batches=3)[3]
    assert repr(er.sample(n_batches=3))=='3 batches of 4 rows'

# %% Drawn ahead
def memory(kind=0, **kwargs):
    return ExperienceReplay(4, 20, 1, sampler=samplers(0)[kind], memory=steps(0, 20), **kwargs)

def settled(loader, n):
    "Wait until so many batches are ready"
    until = time.monotonic()+30
    while len(loader.flight.pending)<n and time.monotonic()<until: time.sleep(.001)
    assert len(loader.flight.pending)==n

def loader_threads(): return [t for t in threading.enumerate() if t.name=='fastrl loader']

def gone(threads):
    for t in threads: t.join(30)
    assert not any(t.is_alive() for t in threads)

@pytest.mark.parametrize('kind', (0, 1, 2))
@pytest.mark.parametrize('n_prefetch', (1, 2, 7))
@pytest.mark.parametrize('n_step', (None, 3))
def test_ahead_is_what_sample_gives(kind, n_prefetch, n_step):
    "The same batches; however many waited when the loader ended, the memory goes on as if none had"
    a,b = (memory(kind, n_step=n_step) for _ in range(2))
    for k in (1, 5, 12):
        with a.loader(n_prefetch=n_prefetch) as batches: same([next(batches) for _ in range(k)], pairs(b, k))
        same(a.sample(), b.sample())
        for _,pair in zip(range(k), a.loader(3, n_prefetch)): same(pair, b.sample(3)) # ended by nobody holding it
        same(a.sample(), b.sample())
    gone(loader_threads())

@pytest.mark.parametrize('kind', (0, 1, 2))
@pytest.mark.parametrize('how', ('save','checkpoint'))
def test_ahead_checkpoint(tmp_path, kind, how):
    "Saved with batches in flight: these are drawn again, bit for bit, while nothing was added or updated since"
    a,b = memory(kind),memory(kind)
    for k in range(3):
        loader = a.loader(n_prefetch=3)
        for _ in range(k+1):
            batch,idxs = next(loader)
            same((batch, idxs), b.sample())
        settled(loader, 3)
        getattr(a, how)(tmp_path/'m')
        c,d = (ExperienceReplay.load(tmp_path/'m') for _ in range(2))
        with d.loader() as other: same([next(other) for _ in range(9)], want := pairs(c, 9))
        same([next(loader) for _ in range(9)], want)
        same([b.sample() for _ in range(9)], want)
        loader.close()

def test_ahead_checkpoint_between_updates(tmp_path):
    "With errors written and rows added meanwhile, too: a full memory draws the same rows; with priorities, resumed runs agree"
    for kind in range(3):
        a = memory(kind)
        loader = a.loader(n_prefetch=3)
        batch,idxs = next(loader)
        settled(loader, 3)
        a+steps(20, 2)
        a.update_td(torch.rand(4, 1), idxs, batch['serial'])
        a.save(tmp_path/f'{kind}')
        c,d = (ExperienceReplay.load(tmp_path/f'{kind}') for _ in range(2))
        assert c.sampler.draws==(type(c.sampler) is Prioritized) # of those that the consumer has seen
        with d.loader() as other: same([next(other) for _ in range(9)], want := pairs(c, 9))
        if not kind: same([next(loader)[1] for _ in range(9)], [i for _,i in want])
        loader.close()

def test_ahead_updates():
    "Errors of batches that waited find their rows; late ones are dropped and counted"
    er = memory(1)
    want,dropped,n = er.memory['td_error'].clone(),0,20
    with er.loader(n_prefetch=4) as batches:
        for j,(batch,idxs) in zip(range(30), batches):
            settled(batches, 4)
            assert (batch['action']==batch['serial']).all()
            gone = batch['serial'][:,0]<n-20
            td = torch.full((4,1), j+1.)
            want[idxs[~gone]],dropped = j+1.,dropped+int(gone.sum())
            er.update_td(td, idxs, batch['serial'])
            same((er.memory['td_error'], er.dropped_updates), (want, dropped))
            er+steps(n, 1); want[n%20] = 0; n += 1
    assert dropped

def test_ahead_never_torn():
    "While another thread writes as fast as it can, each row of each batch is whole, and is the row of its serial number"
    er,stop = ExperienceReplay(64, 500, 1, seed=0, memory=steps(0, 500)),threading.Event()
    def write():
        at = 500
        while not stop.is_set(): er+steps(at, 7); at += 7
    t = threading.Thread(target=write)
    t.start()
    try:
        with er.loader(n_prefetch=3) as batches:
            for _,(batch,idxs) in zip(range(300), batches):
                s = batch['serial']
                assert (batch['action']==s).all() and (batch['reward']==s).all() and (batch['state'][:,:1]==s).all()
                assert (batch['next_state'][:,:1]==s+1).all() and (s[:,0]%500==idxs).all()
    finally: stop.set(); t.join()

def test_ahead_errors():
    "An error reaches whoever waits for the batch; the next time the loader tries again"
    er = ExperienceReplay(4, 20, 5, seed=0)
    loader = er.loader()
    for _ in range(2):
        with pytest.raises(MemoryNotWarm, match='0 rows are stored'): next(loader)
    er+steps(0, 20)
    same([next(loader) for _ in range(5)], pairs(ExperienceReplay(4, 20, 5, seed=0, memory=steps(0, 20)), 5))
    class Broken:
        def draw(self, ring, bs): raise KeyError('mine')
        def update(self, *_): pass
    loader.close()
    er.sampler = Broken()
    with er.loader() as broken:
        with pytest.raises(KeyError, match='mine'): next(broken)
    for bad in (dict(n_prefetch=0), dict(n_prefetch=1.5), dict(bs=0), dict(device='nowhere')):
        with pytest.raises(ExperienceReplayException, match='should be'): er.loader(**bad)
    with pytest.raises(TypeError, match='a loader stays in its process'): pickle.dumps(loader)

def test_ahead_error_of_two():
    "If drawing fails, each of two threads that wait hears of it, and neither waits for ever"
    it,out = ExperienceReplay(4, max_sz=100, warmup_sz=10, seed=0).loader(),[]
    def consume():
        try: next(it)
        except Exception as e: out.append(type(e))
    ts = [threading.Thread(target=consume, daemon=True) for _ in range(2)]
    for t in ts: t.start()
    for t in ts: t.join(30)
    assert out==[MemoryNotWarm]*2

def test_ahead_ends():
    "No thread outlives its loader: closed, dropped, replaced by another one, or dropped together with its memory"
    er = memory()
    first = er.loader()
    next(first)
    second = er.loader()
    next(second)
    with pytest.raises(ExperienceReplayException, match='was replaced'): next(first)
    gone(loader_threads()[:-1])
    second.close(); second.close()
    assert not loader_threads() and [*second]==[]
    third = er.loader(); next(third); threads = loader_threads(); ref = weakref.ref(er)
    del first,second,third
    gone(threads)
    del er; gc.collect()
    assert ref() is None
    er = memory(); third = er.loader(); next(third); threads,ref = loader_threads(),weakref.ref(er)
    del er,third
    gone(threads)
    gc.collect()
    assert ref() is None

def test_ahead_holds_no_lock():
    "While the loader waits for room, other threads add, draw and save"
    er = memory()
    with er.loader(n_prefetch=1) as batches:
        next(batches); settled(batches, 1)
        t = threading.Thread(target=lambda: (er+steps(20, 3), er.sample(), er.update_td(torch.ones(1,1), tensor([3]))))
        t.start(); t.join(30)
        assert not t.is_alive()

def test_ahead_beside_own_draws():
    "Whoever draws from the sampler besides keeps what he drew: closing does not take it back"
    er = memory()
    loader = er.loader()
    next(loader); settled(loader, 2)
    er.sample()
    was = er.sampler.state_dict()
    loader.close()
    same(er.sampler.state_dict(), was)

@pytest.mark.parametrize('waiting', (0,2))
def test_ahead_forked_between_draws(waiting):
    "A child draws what the parent's consumer gets next, whether batches wait or not"
    er,b = memory(),memory()
    loader = er.loader(n_prefetch=3)
    for _ in range(2): loader.flight.draw(); same(loader.flight.pending.popleft()[2], b.sample())
    for _ in range(waiting): loader.flight.draw()
    want,code = b.sample()[1].tolist(),2
    if (pid := os.fork())==0:
        try: code = er.sample()[1].tolist()!=want
        finally: os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])==0

begin = '''
def memory(): return ExperienceReplay(4, 20, 1, seed=0, memory=BD(x=torch.arange(20.)[:,None]))
er = memory()
loader = er.loader()
next(loader)
'''
endings = (('', 0), ('raise SystemExit(3)', 3), ('del loader', 0), ('1/0', 1), (
# Python 3.11 looks up who catches an interrupt at the end of a loop by what stands before it: something within the `try`
'threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\\ntry:\\n    n = 0\\n    while True: next(loader)\\n'
'except KeyboardInterrupt: loader.close(); print(len(threading.enumerate())<3); sys.exit(7)', 7), (
# a forked child draws what its parent draws, whatever its thread was about
'other = memory()\\nother.sample()\\nfor _ in range(25):\\n    want = [other.sample()[1].tolist() for _ in range(5)]\\n'
'    if (pid := os.fork())==0: os._exit([next(loader)[1].tolist() for _ in range(5)]!=want)\\n'
'    assert [next(loader)[1].tolist() for _ in range(5)]==want\\n    assert not os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])', 0))
each = '''
import json, os, signal, sys, threading, time, torch
from fastrl import BD, ExperienceReplay
signal.signal(signal.SIGINT, signal.default_int_handler) # which the background of a shell ignores
for at,code in json.loads(sys.argv[1]).items(): # each in a process of its own, which ends as Python does
    if pid := os.fork(): print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    else:
        os.dup2(os.open(at, os.O_WRONLY|os.O_CREAT), 2)
        exec(code)
        break
'''
@pytest.mark.slow
def test_ahead_interpreter_ends(tmp_path):
    "At exit, after an error, Ctrl-C or in a forked child: nothing hangs, nothing crashes"
    programs = {str(tmp_path/str(i)): begin+then.replace('\\n', '\n') for i,(then,_) in enumerate(endings)}
    res = subprocess.run([sys.executable, '-c', each, json.dumps(programs)], stdout=subprocess.PIPE, text=True, timeout=120)
    codes = [int(o) for o in res.stdout.splitlines() if o!='True']
    assert codes==[code for _,code in endings] and 'True' in res.stdout.splitlines()
    for at,code in zip(programs, codes):
        said = Path(at).read_text()
        assert 'Fatal' not in said and ('Traceback' in said)==(code==1), said
