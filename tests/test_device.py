"""Rows on a device: the draw there gives the rows that compiled loops give, waits for nothing, and fits in one graph

No test needs a GPU. `Place.loops = False` sends rows in memory the way of a GPU's, and on torch's device `meta`, where
tensors have no values, whatever reads a number on the host fails. Where there is a GPU, each test runs there, too."""
import copy, gc, itertools, pickle, signal, weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace
import numpy as np, pytest, torch
from torch import tensor
from torch.utils._python_dispatch import TorchDispatchMode
from fastrl import (EpisodeReplay, ExperienceBank, ExperienceReplay, IndividualFileDataset, Mixture, Prioritized, Ring, RingBufferDataset,
                    Uniform, create_experience)
from fastrl.core import difference, leaves, map_leaves
from fastrl.memory import tensors
from fastrl.memory.place import Place
from fastrl.memory.random import random_rows, random_units
from fastrl.memory.tree import SumTree
from fastrl.memory.walk import Walk

@contextmanager
def as_on_a_gpu(on=True):
    Place.loops = not on
    try: yield
    finally: Place.loops = True

# Rows in memory that go the way of a GPU's, and rows on one where there is one
gpus = ['cuda']*torch.cuda.is_available()
theres = ['as on a GPU',*gpus]

@pytest.fixture(params=theres)
def there(request): return request.param

def where(there): return dict(device='cuda') if there=='cuda' else {}

def memory(there, cap, **settings):
    with as_on_a_gpu(there=='as on a GPU'):
        return ExperienceReplay(**{**dict(bs=4, max_sz=cap, warmup_sz=1, gamma=.5), **where(there), **settings})

def pair(there, cap, sampler, **settings): return [memory(o, cap, sampler=sampler(), **settings) for o in (None, there)]

def tree_pair(there, n): return SumTree(n),SumTree(n, **where(there), loops=False)

def at_home(o): return map_leaves(lambda t: t.cpu(), o)

samplers = dict(uniform=lambda: Uniform(seed=3), batch=lambda: Prioritized(alpha=1., eps=1., beta_steps=50, seed=3),
                memory=lambda: Prioritized(alpha=1., eps=1., beta_steps=50, normalize='memory', seed=3))

# %% The oracle keeps all rows, and knows nothing of links and trees
def steps(rng, n, oracle, envs, ends=.3):
    "The next `n` rows, with whole numbers as rewards"
    env = rng.integers(0, envs, n)
    over,first = rng.random(n)<ends,len(oracle.rows)
    rows = [dict(state=float(first+i), reward=float(rng.integers(-8, 9)), next_state=-float(first+i),
                 terminated=bool(over[i] and rng.random()<.5), env_id=int(env[i])) for i in range(n)]
    for r,o in zip(rows, over): r['truncated'] = bool(o and not r['terminated'])
    oracle.rows += rows
    return {**{k: tensor([r[k] for r in rows]) for k in rows[0]}, 'td_error':torch.zeros(n, 1)}

def folded(oracle, s, n, gamma=.5):
    "What `n` steps from row `s` on make"
    rows,total,last,k = oracle.rows,0.,s,0
    while True:
        total,k = total+gamma**k*rows[last]['reward'],k+1
        more = [j for j in range(last+1, len(rows)) if rows[j]['env_id']==rows[s]['env_id']]
        over = rows[last]['terminated'] or rows[last]['truncated']
        if k==n or over or not more or any(last<c<=more[0] for c in oracle.cuts): return total,last,k
        last = more[0]

def check_batch(oracle, batch, idxs, n, cap):
    "A batch of `n` steps each, against the oracle"
    for j,(i,s) in enumerate(zip(idxs.tolist(), batch['serial'][:,0].tolist())):
        assert i==(s-oracle.base)%cap and len(oracle.rows)-cap<=s<len(oracle.rows)
        total,last,k = folded(oracle, s, n or 1)
        want = dict(state=float(s), reward=total, next_state=-float(last), **{c: oracle.rows[last][c] for c in ('terminated','truncated')})
        if n: want.update(n_steps=k, discount=.5**k)
        assert {c: batch[c][j].item() for c in want}==want

def same(a, b):
    "The same batches; powers may differ in their last bit"
    (x,i),(y,j) = a,at_home(b)
    assert torch.equal(i, j) and {*x}=={*y}
    for k in x:
        assert x[k].shape==y[k].shape and x[k].dtype==y[k].dtype, k
        if k=='weight': torch.testing.assert_close(x[k], y[k], rtol=1e-6, atol=0)
        else: assert torch.equal(x[k], y[k]), k

def fresh(): return SimpleNamespace(rows=[], cuts=[], base=0)

# %% The same rows
_tables = [('uniform',1,.3), ('uniform',3,1.), ('batch',1,.3), ('batch',3,.2), ('memory',2,.5)]

@pytest.mark.parametrize('kind,envs,ends', _tables[::2])
def test_same_rows(kind, envs, ends, there): check_same_rows(kind, envs, ends, 1, there)

@pytest.mark.slow
@pytest.mark.parametrize('kind,envs,ends', _tables)
def test_same_rows_with_each_n_step(kind, envs, ends, there): check_same_rows(kind, envs, ends, 5, there)

def check_same_rows(kind, envs, ends, several, there):
    "Each capacity up to 12, each place of the cursor, twice; `several` of five `n_step` at each"
    for cap in range(1, 13):
        rng,oracle,(a,b) = np.random.default_rng(cap),fresh(),pair(there, cap, samplers[kind])
        for at in range(2*cap+2):
            rows = steps(rng, 1, oracle, envs, ends)
            for m in (a,b): m+rows
            for n in [*[None, 1, 2, 3, 4]*2][(at+cap)%5:][:several]:
                for m in (a,b): m.n_step = n
                got = [m.sample() for m in (a,b)]
                same(*got)
                check_batch(oracle, *got[1], n, cap)
            many = [list(m.sample(3, n_batches=2)) for m in (a,b)]
            for x,y in zip(*many): same(x, y)
            check_batch(oracle, *many[1][1], n, cap)
            for m,(batch,idxs) in zip((a,b), got): m.update_td(idxs[:,None].float(), idxs, batch['serial'])
            assert torch.equal(a.ring['td_error'], b.ring['td_error'].cpu())

def test_rows_by_priority_are_those_of_a_search_in_the_running_sum(there):
    for n in range(1, 40):
        rng = np.random.default_rng(n)
        p = rng.integers(0, 4, n).astype(float)
        if not p.any(): continue
        trees = tree_pair(there, n)
        for t in trees: t.update(np.arange(n), p)
        for bs,k in ((1,1), (3,2), (64,1)):
            u = random_units(7, 5, bs*k).reshape(k, bs)
            want = np.searchsorted(p.cumsum(), (u+np.arange(bs))*(p.sum()/bs), 'right')
            (i,v),(j,w) = (at_home(t.throw(7, 5, bs, [.4, .7][:k])) for t in trees)
            assert i.tolist()==j.tolist()==want.reshape(-1).tolist()
            torch.testing.assert_close(v, w, rtol=1e-6, atol=0)
            least = p[want].min(1, keepdims=True)
            np.testing.assert_allclose(w.view(k, bs), (least/p[want])**np.array([.4, .7][:k])[:,None], rtol=1e-6)

@pytest.mark.parametrize('n', [1, 7, 100, 5000])
def test_trees_of_any_numbers_agree(n, there):
    rng,(a,b) = np.random.default_rng(n),tree_pair(there, n)
    for r in range(30):
        idxs,p = rng.integers(0, n, 2*n if n<100 else 300),10.**rng.uniform(-8, 8, 2*n if n<100 else 300)
        for t in (a,b): t.update(idxs, p)
        first = int(rng.integers(0, 3*n))
        stop = first+int(rng.integers(1, n+1)) if r%2 else first+1
        td = torch.from_numpy(rng.normal(size=n)*rng.integers(0, 2, n))[:,None]
        for t in (a,b): t.renew(first, stop, td.to(t.device) if r%3 else None)
        torch.testing.assert_close(a[:].cpu(), b[:].cpu(), rtol=1e-14, atol=0) # powers of torch and NumPy differ in the last bit
        assert a.largest==pytest.approx(b.largest, rel=1e-14) and a.total==pytest.approx(b.total, rel=1e-12)
        b.update(np.arange(n), a[:].cpu())
        assert a[:].tolist()==b[:].tolist() and a.largest==b.largest and a.total==pytest.approx(b.total, rel=1e-12)
        assert a.throw(r, 9, 64, [.4])[0].tolist()==b.throw(r, 9, 64, [.4])[0].tolist()

@pytest.mark.parametrize('seed', range(4))
def test_random_histories(seed, there):
    rng,oracle = np.random.default_rng(seed),fresh()
    cap = int(rng.integers(2, 13))
    a,b = pair(there, cap, samplers[('uniform','batch','memory','batch')[seed]], n_step=1+seed)
    late = []
    for _ in range(150):
        act = rng.random()
        if act<.45 or not len(a):
            rows = steps(rng, int(rng.integers(1, cap+3)), oracle, 1+seed)
            for m in (a,b): m+rows
        elif act<.5:
            oracle.cuts.append(len(oracle.rows))
            for m in (a,b): m.ring.cut()
        elif act<.52:
            for m in (a,b): m.clear()
            oracle.base = a.ring.seams.first
            oracle.rows += [dict(state=0., reward=0., next_state=0., terminated=True, truncated=False, env_id=0)]*(oracle.base-len(oracle.rows))
            oracle.cuts.append(oracle.base); late = []
        elif act<.8:
            got = [m.sample() for m in (a,b)]
            same(*got)
            check_batch(oracle, *got[1], a.n_step, cap)
            late.append(got)
        elif late: # some of these rows are gone by now
            got = late.pop(rng.integers(len(late)))
            td = tensor(rng.integers(-9, 10, (4, 1))).float()
            for m,(batch,idxs) in zip((a,b), got): m.update_td(td, idxs, batch['serial'])
            assert a.dropped_updates==b.dropped_updates
        if len(a): assert torch.equal(a.ring['td_error'], b.ring['td_error'].cpu())
        if len(a) and kindly(a): assert torch.equal(a.sampler.tree[:], b.sampler.tree[:].cpu())
    assert a.dropped_updates

def kindly(m): return isinstance(m.sampler, Prioritized) and m.sampler.tree is not None and m.sampler.seen==m.ring.total

def test_update_is_that_of_a_loop(there):
    "Duplicates, late ones and rows that do not exist, against a loop over them"
    for seed in range(50):
        rng,m = np.random.default_rng(seed),memory(there, 8, sampler=samplers['batch']())
        m+steps(rng, 8+seed%9, fresh(), 2)
        oldest = m.ring.total-8
        serials = torch.from_numpy(rng.integers(max(0, oldest-3), m.ring.total, (20, 1)))
        idxs,td = serials[:,0]%8,torch.from_numpy(rng.integers(-5, 6, (20, 1))).float()
        td[rng.integers(20)] = float('nan')
        idxs[rng.integers(20)] = 99
        serials,idxs,td = (o.to(m.ring.device) for o in (serials, idxs, td))
        want,p,dropped = m.ring['td_error'][:,0].tolist(),[1.]*8,0
        for i,s,t in zip(idxs.tolist(), serials[:,0].tolist(), td[:,0].tolist()):
            if s>=oldest and i==s%8 and t==t: want[i],p[i] = t,abs(t)+1
            else: dropped += 1
        m.update_td(td, idxs, serials)
        assert m.ring['td_error'][:,0].tolist()==want and m.sampler.tree[:].tolist()==p and m.dropped_updates==dropped

# %% Nobody waits
class Reads(TorchDispatchMode):
    "Notes whatever brings a number from a device to the host, or gives a tensor a shape that depends on numbers"
    waits = ('_local_scalar_dense','nonzero','masked_select','unique','is_nonzero','equal')
    def __init__(self): super().__init__(); self.found = []
    def __torch_dispatch__(self, f, types, args=(), kwargs=None):
        name,flat = f.__name__.split('.')[0],torch.utils._pytree.tree_leaves((args, kwargs or {}))
        ts = [o for o in flat if isinstance(o, torch.Tensor)]
        if any(name.startswith(o) or name.startswith('_'+o) for o in self.waits): self.found.append(name)
        if name in ('index','index_put','index_put_') and any(o.dtype==torch.bool for o in ts[1:2]): self.found.append(name+' by mask')
        res = f(*args, **(kwargs or {}))
        if isinstance(res, torch.Tensor) and not res.is_meta and any(o.is_meta for o in ts): self.found.append(name+' to the host')
        return res

@contextmanager
def unwaited(on):
    "Whatever waits for a GPU is an error, by torch's own account"
    if gpus and on: torch.cuda.set_sync_debug_mode('error')
    try: yield
    finally: torch.cuda.set_sync_debug_mode('default') if gpus else None

def on_meta(sampler, **settings):
    m = ExperienceReplay(bs=4, max_sz=12, warmup_sz=1, device='meta', sampler=sampler(), **settings)
    m.sampler.skip(0) # its key, once, from a generator on the host
    return m

@pytest.mark.parametrize('kind', samplers)
@pytest.mark.parametrize('n_step', [None, 3])
@pytest.mark.parametrize('there', ['meta',*theres])
def test_a_draw_and_an_update_read_nothing(kind, n_step, there):
    rng,oracle = np.random.default_rng(0),fresh()
    m = on_meta(samplers[kind], n_step=n_step) if there=='meta' else memory(there, 12, sampler=samplers[kind](), n_step=n_step)
    m.sampler.skip(0)
    m.ring.place.changed = {} # as if there were a checkpoint
    at_first = 6*(there=='cuda') # a GPU's work is recorded when it comes the second time, and that waits
    for k,n in enumerate((5, 9, 1)*(3 if at_first else 1)): # before it is full, after, and a row at a time
        m+steps(rng, n, oracle, 2)
        with Reads() as r, unwaited(k>=at_first):
            batch,idxs = m.sample()
            assert {o.device.type for o in (*batch.values(), idxs)}=={m.ring.device.type}
            m.update_td(torch.zeros(4, 1, device=m.ring.device), idxs, batch['serial'])
            for form in ((4,1), (4,)): m.update_td(torch.zeros(form, device=m.ring.device), batch)
            for batch,idxs in m.sample(n_batches=3): pass
        assert r.found==[]

def test_such_reads_are_found():
    "The ring looks at what another sampler draws, and at TD errors without serial numbers: `meta` has nothing to see"
    class Mine(Uniform):
        def draw(self, ring, bs): return torch.zeros(bs, dtype=torch.int64, device=ring.device),{}
    m = on_meta(Mine)
    m+steps(np.random.default_rng(0), 5, fresh(), 2)
    with pytest.raises(RuntimeError, match='meta'): m.sample()
    m.sampler = Uniform()
    batch,idxs = m.sample()
    with pytest.raises(Exception, match='meta'): m.update_td(torch.zeros(4, 1, device='meta'), idxs)
    t,far = torch.arange(3.),torch.zeros(3, device='meta')
    for look in (lambda: t[0].item(), lambda: bool(t.any()), lambda: t[t>1], lambda: t.nonzero(), t.unique,
                 lambda: torch.zeros(3).copy_(far)):
        with Reads() as r:
            try: look()
            except NotImplementedError: r.found.append('a copy out of `meta`')
        assert r.found

def test_a_sampler_that_names_no_row_is_refused_there_too(there):
    for bad in ([0,1,2,99], [-1,0,0,0], [2**62]*4):
        class Mine(Uniform):
            def draw(self, ring, bs): return tensor(bad, device=ring.device),{}
        m = memory(there, 8, sampler=Mine())
        m+steps(np.random.default_rng(0), 5, fresh(), 2)
        with pytest.raises(Exception, match='should give row numbers'): m.sample()

# %% One graph
@pytest.mark.parametrize('kind', ['uniform','batch'])
def test_the_draw_is_one_graph(kind, there):
    rng,m = np.random.default_rng(1),memory(there, 12, sampler=samplers[kind](), n_step=3)
    m+steps(rng, 17, fresh(), 2)
    m.sample()
    ring,t,(key,_),folds = m.ring,getattr(m.sampler, 'tree', None),m.sampler.skip(0),m.folds
    counts,oldest,nxt,reward = ring.serials.counts(),ring.serials.oldest,m.walk.next_there(ring),ring.place.columns['reward',].view(-1)
    levels = t and t.levels
    def draw(first, beta):
        if t is None: idxs,w = tensors.rows_on(ring.device, key, first, 8, counts[0]),None
        else: idxs,w = tensors.throw(t.sums, levels, tensors.units_on(ring.device, key, first, 8), 4, beta)
        last,steps_,total,discount = tensors.fold(nxt, reward, idxs, 3, .5)
        rows = tensors.joined_rows(ring.place.packed, idxs, last, folds.seen[1])
        return idxs.view(2, 4),rows.view(2, 4, -1),tensors.numbers_of(idxs, *counts[1:]),total,steps_,discount,w
    def learn(idxs, serials, td):
        ok = tensors.still_held(idxs, serials, *counts[1:], oldest)&td.isfinite()
        if t is not None: tensors.set_leaves(t.sums, t.tops, levels, idxs, td.abs()+1, ok)
    compiled,compiled_learn = (torch.compile(f, fullgraph=True, backend='eager') for f in (draw, learn))
    for _ in range(3):
        _,first = m.sampler.skip(0)
        beta = torch.tensor([[m.sampler._beta_at(m.sampler.draws+i)] for i in range(2)], dtype=torch.float64, device=ring.device) if t else 0.
        got = compiled(first, beta)
        for a,b in zip(got, draw(first, beta)): assert a is b is None or torch.equal(a, b)
        for k,(batch,idxs) in enumerate(m.sample(n_batches=2)):
            assert torch.equal(idxs, got[0][k]) and torch.equal(batch['serial'], got[2].view(2, 4, 1)[k])
            assert torch.equal(batch['reward'].view(-1), got[3].view(2, 4)[k].float())
        compiled_learn(got[0].view(-1), got[2], torch.arange(8., device=ring.device).double())
    torch._dynamo.reset()

@pytest.mark.parametrize('device', ['cpu',*gpus])
def test_random_numbers_are_those_of_the_loops(device):
    for key,first in ((0, 0), (2**62-1, 10**12), (1, 2**40)):
        assert tensors.units_on(device, key, first, 500).tolist()==random_units(key, first, 500).tolist()
        assert tensors.rows_on(device, key, first, 500, 10**9+7).tolist()==random_rows(key, first, 500, 10**9+7).tolist()

def test_nothing_holds_a_memory_that_is_gone(there):
    m = memory(there, 12, sampler=samplers['batch'](), n_step=3)
    for k in range(4):
        m+steps(np.random.default_rng(k), 5, fresh(), 2)
        batch,idxs = m.sample()
        m.update_td(idxs[:,None].float(), idxs, batch['serial'])
    m.sample() # what is new gets its priority
    copies = [pickle.loads(pickle.dumps(m)),copy.deepcopy(m)]
    want = at_home(m.sample())
    for o in copies: same(want, o.sample())
    gone = [weakref.ref(o) for o in (m.ring, m.sampler.tree)]
    del m, copies
    gc.collect()
    assert [o() for o in gone]==[None,None]

# %% Threads and interruptions
def whole(m, batch, idxs): return torch.equal(batch['state'], m.ring['state'][idxs])

def turns(m, at, n):
    "`n` times a row, a draw and its TD errors"
    for i in range(at, at+n):
        m.add(**(a_step(i)|dict(state=[float(i)], next_state=[i+1.])))
        batch,idxs = m.sample()
        assert whole(m, batch, idxs)
        m.update_td(batch['reward'], idxs, batch['serial'])

@pytest.mark.parametrize('loader', [False, True])
def test_each_thread_has_a_memory(there, loader):
    "CUDA records one graph at a time, and while it does, other threads draw"
    def work(k):
        m = memory(there, 30, sampler=samplers['batch'](), n_step=1)
        for r in range(3):
            turns(m, 20*r, 20)
            m.clear()
            turns(m, m.ring.total, 1)
            if not loader: continue
            with m.loader(bs=k+1+r) as batches:
                for batch,idxs in itertools.islice(batches, 5):
                    assert whole(m, batch, idxs)
                    m.update_td(batch['reward'], idxs, batch['serial'])
            m.clear()
        return True
    with ThreadPoolExecutor(4) as pool: assert all(pool.map(work, range(8)))

@pytest.mark.skipif(not hasattr(signal, 'setitimer'), reason='a timer that interrupts')
def test_interrupted_draws(there, interrupting):
    "After a Ctrl-C at any moment, a memory draws what a copy of it draws"
    rng,stopped = np.random.default_rng(0),0
    for r in range(30):
        m = memory(there, 30, sampler=samplers['batch'](), n_step=1+r%2)
        turns(m, 0, 1)
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-4, .02))
            while True: turns(m, m.ring.total, 1)
        except KeyboardInterrupt: stopped += 1
        for k in range(3):
            m.sample()
            alike = copy.deepcopy(m)
            assert torch.equal(m.ring['state'], alike.ring['state'])
            got = m.sample()
            same(at_home(alike.sample()), got)
            m.update_td(got[0]['reward'], got[1], got[0]['serial'])
    assert stopped==30

@pytest.fixture
def interrupting():
    "A timer that interrupts as Ctrl-C does"
    was = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, was)

# %% Where it meets other parts
def test_files_resume_on_either(tmp_path, there):
    "A checkpoint of rows on a device resumes there or in memory, with the same draws"
    rng,oracle,(a,b) = np.random.default_rng(2),fresh(),pair(there, 8, samplers['batch'], n_step=2)
    for k in range(3):
        rows = steps(rng, 5, oracle, 2)
        for m in (a,b):
            m+rows
            batch,idxs = m.sample()
            m.update_td(idxs[:,None].float(), idxs, batch['serial'])
        b.checkpoint(tmp_path/'b')
        for to in (None, there):
            with as_on_a_gpu(to=='as on a GPU'): c,d = ExperienceReplay.load(tmp_path/'b', env_restored=True, **where(to)),b[:]
            assert (c.ring.place.told is not None)==bool(to) and torch.equal(c.ring['td_error'].cpu(), a.ring['td_error'])
            assert len(d)==len(b)
            was = a.sampler_state()
            same(a.sample(), c.sample())
            a.sampler.rewind(was)
            more = steps(rng, 1, SimpleNamespace(rows=[*oracle.rows]), 2)
            c+more
            c.sample()

@pytest.mark.parametrize('kind', samplers)
def test_errors_are_in_the_next_checkpoint(kind, there, tmp_path):
    "Which writes what has changed: TD errors and priorities that were noted there, too"
    for to in (None, there):
        er = memory(to, 500, sampler=samplers[kind]())
        er + steps(np.random.default_rng(0), 500, fresh(), 1)
        er.checkpoint(at := tmp_path/str(to))
        batch,idxs = er.sample(8)
        er.update_td(torch.arange(1., 9, device=idxs.device)[:,None], idxs, batch['serial'])
        er.checkpoint(at)
        again = ExperienceReplay.load(at)
        assert torch.equal(again['td_error'], er['td_error'].cpu()) and (er['td_error']>0).sum()==len(idxs.unique())
        if kind!='uniform': assert again.sampler.tree[:500].tolist()==er.sampler.tree[:500].tolist()

def test_errors_for_other_samplers(there):
    "One of your own hears of TD errors there, too, and so do the starts of sequences"
    class Own(Uniform):
        def update(self, ring, idxs, td): told.append((idxs.tolist(), td.tolist()))
    told,more = [],[]
    for er in pair(there, 50, lambda: Own(seed=3)):
        er + steps(np.random.default_rng(0), 50, fresh(), 1)
        batch,idxs = er.sample(4)
        er.update_td(tensor([[1.],[2],[3],[4]]), idxs, batch['serial'])
    assert len(told)==2 and told[0]==told[1]
    for er in pair(there, 50, lambda: Prioritized(alpha=1., eps=1., eta=.9, seed=3)):
        er + steps(np.random.default_rng(0), 50, fresh(), 1, ends=.05)
        for k in range(9):
            batch,idxs = er.sample_sequences(4, 3)
            more.append(idxs.tolist())
            er.update_td(100.*k+torch.arange(12.).view(4,3), idxs, batch['serial'])
    assert more[:9]==more[9:]

def test_frames_sequences_and_nested_rows(there):
    a,b = pair(there, 20, samplers['batch'], frame_stack=2)
    for i in range(30):
        f = lambda k: torch.full((2,3,3), k, dtype=torch.uint8)
        for m in (a,b): m.add(state=torch.stack([f(max(i-1, i//7*7))[0], f(i)[0]]), reward=1., next_state=torch.stack([f(i)[0], f(i+1)[0]]),
                              terminated=i%7==6, truncated=False, env_id=0, action=i)
        same(a.sample(), b.sample())
        same(a.sample_sequences(3, 2, pad=True), b.sample_sequences(3, 2, pad=True))
    a,b = pair(there, 9, samplers['uniform'])
    for i in range(12):
        for m in (a,b): m.add(state=dict(x=np.full(2, i, np.int16), y=(i/2, True)), reward=i, terminated=False, truncated=i%4==3, env_id=0)
        (x,i1),(y,i2) = a.sample(),at_home(b.sample())
        assert torch.equal(i1, i2) and torch.equal(x['state']['x'], y['state']['x']) and torch.equal(x['state']['y'][0], y['state']['y'][0])

def test_a_ring_that_grows(there):
    with as_on_a_gpu(there=='as on a GPU'): r = Ring(**where(there))
    for i in range(3): r.extend(dict(obs=torch.arange(700.)+700*i, terminated=torch.zeros(700).bool(), truncated=torch.zeros(700).bool(), env_id=torch.zeros(700), reward=torch.ones(700)))
    w = Walk()
    assert w.next_there(r)[:2100].tolist()==[*range(1, 2100), -1]
    assert len(r.place.told['terminated',])==len(r.place)

# %% What you make is on torch's default device; what is stored, drawn and counted here is not
@contextmanager
def default_device(device):
    torch.set_default_device(device)
    try: yield
    finally: torch.set_default_device(None)

def a_step(i):
    return dict(state=np.full(2, i, np.float32), reward=float(i), next_state=np.full(2, i+1, np.float32), terminated=i%5==4, truncated=False, env_id=0)

def a_batch(a, b): return {k: np.stack([np.asarray(a_step(i)[k]) for i in range(a, b)]) for k in a_step(0)}

def use_memory(sampler, d, **settings):
    "All that a training does with a memory"
    m = ExperienceReplay(bs=4, max_sz=30, warmup_sz=1, sampler=sampler, seed=0, **settings)
    for i in range(20): m.add(**a_step(i))
    m+a_batch(20, 40)
    (b,idxs),seqs = m.sample(),m.sample_sequences(2, 3, pad=True)[0]
    m.update_td(np.ones((4,1)), idxs, b['serial'])
    m.update_td([[1.]]*4, idxs.tolist())
    m.put('reward', [0], [[9.]])
    m.checkpoint(d/'memory')
    after,same_after = m.sample(),ExperienceReplay.load(d/'memory').sample()
    with m.loader() as ahead: drawn = next(ahead)
    part = m[::-2]
    return b,idxs,seqs,after,same_after,drawn,m.memory,part.memory,(part+m.memory).memory,m.ring.serial([0,1])

def use_episodes(d, dataset, workers):
    e = EpisodeReplay(dataset(d), 2, 3, num_workers=workers)
    for i in range(20): e.add_step(dict(obs=np.full(2, i, np.float32)), i%5==4)
    return e.sample()

def use_bank(d):
    bank,two = ExperienceBank(),ExperienceBank()
    for i in range(9): bank.add(create_experience(np.full(2, i), i, .5, np.full(2, i+1), i%3==2))
    two.merge_inplace(bank)
    return [[o.state for o in ExperienceBank.load(two.save(d, f'bank.{ext}'))] for ext in ('safetensors','pkl')]

def use_mixture(d, **settings):
    ms = [ExperienceReplay(bs=4, warmup_sz=1, sampler=Prioritized(seed=i), seed=i, **settings)+a_batch(0, 20) for i in range(2)]
    mixed = Mixture({m: .5 for m in ms})
    b,idxs = mixed.sample(4)
    mixed.update_td(np.ones((4,1)), idxs, b['serial'])
    return b

def use_vector(d, **settings):
    m = ExperienceReplay(bs=4, warmup_sz=1, n_step=2, seed=0, **settings)
    for t in range(9):
        m.add_vector(obs=np.full((2,3), t), actions=np.zeros(2, int), rewards=np.ones(2), terminated=np.array([t%4==3,False]), truncated=np.zeros(2, bool),
                     next_obs=np.full((2,3), t+1), infos={}, autoreset='next_step')
    return m.sample()

on_either = dict(uniform=lambda d, **s: use_memory(Uniform(seed=0), d, **s), folded=lambda d, **s: use_memory(Prioritized(seed=0), d, n_step=2, **s),
                 sequences=lambda d, **s: use_memory(Prioritized(eta=.9, seed=0), d, **s),
                 frames=lambda d, **s: use_memory(Uniform(seed=0), d, frame_stack=0, **s), mixture=use_mixture, vector=use_vector)
uses = dict(on_either, shared=lambda d: use_memory(Uniform(seed=0), d, shared=True), mapped=lambda d: use_memory(Uniform(seed=0), d, path=d/'ring'),
            episodes=lambda d: use_episodes(d, lambda d: RingBufferDataset(100), 0), workers=lambda d: use_episodes(d, lambda d: RingBufferDataset(100), 1),
            files=lambda d: use_episodes(d, lambda d: IndividualFileDataset(100, d/'episodes'), 0), bank=use_bank)

@pytest.mark.parametrize('use', on_either)
def test_all_that_a_training_does(use, there, tmp_path):
    "The same comes out for rows in memory and there, after a file, through a loader, in a slice and in a sum"
    here = on_either[use](tmp_path/'a')
    with as_on_a_gpu(there=='as on a GPU'): got = on_either[use](tmp_path/'b', **where(there))
    for (at,a),(there_at,b) in zip(leaves(here), leaves(got), strict=True): # powers may differ in their last bit
        assert at==there_at
        torch.testing.assert_close(b.cpu(), a, rtol=1e-6, atol=0, equal_nan=True)

@pytest.mark.parametrize('use', uses)
@pytest.mark.parametrize('device', ['meta',*gpus])
def test_default_device(use, device, tmp_path):
    "`torch.set_default_device('cuda')`, as many scripts begin, moves nothing: a tensor that was made on `meta` would have no values"
    with default_device(device): there = uses[use](tmp_path/'a')
    for _,t in leaves(there): assert not torch.is_tensor(t) or t.is_cpu
    if use in ('workers','episodes','files'): return # they draw by a seed that nobody gave
    here = uses[use](tmp_path/'b')
    assert difference(here, there) is None

# %% Batches that go to where the network is
devices = ['cpu',*gpus]

@pytest.mark.parametrize('rows,device', [('cpu','cpu'), *(('cpu',o) for o in gpus), *((o,o) for o in gpus)])
@pytest.mark.parametrize('n_step', [None, 3])
def test_a_loader_hands_over_whole_batches(rows, device, n_step):
    "Though the learner writes into each at once, and keeps the device busy"
    a,b = (ExperienceReplay(bs=64, max_sz=500, warmup_sz=1, n_step=n_step, sampler=samplers['batch'](), device=o)+a_batch(0, 500) for o in (rows, 'cpu'))
    busy = torch.ones(300, 300, device=device)
    with a.loader(n_prefetch=1, device=device) as batches:
        for k,(batch,idxs) in zip(range(100), batches):
            busy = (busy@busy).clamp(max=1)
            want,i = b.sample()
            same((want, i), (batch, idxs))
            for _,t in leaves(batch): t.zero_()

@pytest.mark.parametrize('device', devices)
def test_errors_from_the_device_reach_rows_in_memory(device):
    er = ExperienceReplay(bs=64, max_sz=500, warmup_sz=1, sampler=samplers['batch'](), memory=a_batch(0, 500))
    with er.loader(device=device) as batches:
        for _,(batch,idxs) in zip(range(20), batches):
            td = batch['state'][:,:1]+1
            er.update_td(td, idxs, batch['serial'])
            assert torch.equal(er['td_error'][idxs.cpu()], td.cpu())

@pytest.mark.parametrize('workers', [0, 1])
@pytest.mark.parametrize('pin', [False, *[True]*len(gpus)])
def test_pinned_episodes(workers, pin):
    "What workers hand over can be pinned, so that a copy to a GPU waits for nobody"
    e = EpisodeReplay(RingBufferDataset(200), 4, 3, num_workers=workers, pin_memory=pin, seed=0)
    for i in range(100): e.add_step(dict(obs=np.full(2, i, np.float32)), i%10==9)
    for _ in range(3):
        batch = e.sample()
        obs = batch['obs']
        assert obs.is_pinned()==bool(workers and pin)
        there = obs.to(devices[-1], non_blocking=True)
        assert (there[:,1:]-there[:,:-1]==1).all()
