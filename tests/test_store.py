"The store under threads, processes, signals, killed writers and files that say what cannot be"
import copy, itertools, os, pickle, random, subprocess, sys, textwrap, threading, time, warnings
from pathlib import Path
import numpy as np, pytest, torch, torch.multiprocessing as mp
from fastcore.test import test_close as close, test_eq as same, test_fail as fails
from fastrl.core import BD, test_same as same_rows
from fastrl.memory import ring as ring_module
from fastrl.memory.place import Place, head_words
from fastrl.memory.ring import Ring, schema_fields
from fastrl.memory.sample import Prioritized
from fastrl.memory.walk import Runs, Walk
from torch import tensor

root = Path(__file__).parent.parent
def fields_of(**shapes): return schema_fields({k: (shape, torch.int64) for k,shape in shapes.items()})

# %% Room
def test_shared_in_a_container(monkeypatch):
    "Shared memory counts as the container's memory, however large `/dev/shm` says that it is"
    from fastrl.memory import place
    monkeypatch.setattr(place, 'machine_memory', lambda: 10_000)
    with pytest.warns(UserWarning, match='shared memory has 10,000'): Place(shared=True).check_room(20_000)

def test_too_little_shared_memory(monkeypatch):
    "The warning points at your line, and the error says how a container gets more"
    from fastrl.memory import place
    def full(n): raise RuntimeError('unable to allocate shared memory(shm) for file </x>: No space left on device (28)')
    monkeypatch.setattr(place, 'machine_memory', lambda: 10_000)
    monkeypatch.setattr(torch.UntypedStorage, '_new_shared', full)
    with pytest.warns(UserWarning, match='shared memory has 10,000') as said:
        with pytest.raises(RuntimeError, match='bytes of shared memory .*No space left.*--shm-size'):
            Ring(1000, shared=True).add(x=np.arange(4))
    assert said[0].filename==__file__

def test_file_on_a_full_disk(monkeypatch, tmp_path):
    "Room for all rows is reserved at once, and if there is none you hear how much is needed, and where"
    def full(*args): raise OSError(28, 'No space left on device')
    monkeypatch.setattr(os, 'posix_fallocate', full, raising=False)
    with pytest.raises(OSError, match='bytes for 1,000 rows cannot be reserved .No space left.*rows'):
        Ring(1000, dict(x=((3,), torch.float32)), path=tmp_path/'rows')
    assert not list(tmp_path.iterdir())

# %% Threads
@pytest.mark.parametrize('seed', range(20))
def test_threads_grow_a_ring(seed):
    r = Ring()
    ts = [threading.Thread(target=lambda k=k: [r.add(x=float(k*600+i)) for i in range(600)]) for k in range(4)]
    for t in ts: t.start()
    for t in ts: t.join()
    same(sorted(r['x'].tolist()), list(range(2400)))

def test_first_rows_of_two_threads():
    r,errors = Ring(4),[]
    def first(**row):
        try: r.add(**row)
        except ValueError as e: errors.append(e)
    r._rows_lock.acquire()
    ts = [threading.Thread(target=first, kwargs=o) for o in (dict(x=1., y=2.), dict(z=tensor(5)))]
    for t in ts: t.start()
    r._rows_lock.release()
    for t in ts: t.join()
    same((len(r), len(errors)), (1, 1))

def test_threads_write_and_read(monkeypatch):
    "No row is lost, none is torn"
    r = Ring(4, dict(a=((), torch.int64), b=((4096,), torch.int64))) # wide rows: a gather takes long enough to be met
    def work(k):
        for i in range(1500): r.add(a=k*10000+i, b=np.full(4096, k*10000+i))
    ts = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6) # as often as can be
    try:
        for t in ts: t.start()
        while any(t.is_alive() for t in ts):
            if len(r): got = r[[0,1,2,3][:len(r)]]; assert (got['a'][:,None]==got['b']).all()
        for t in ts: t.join()
    finally: sys.setswitchinterval(switch)
    same(r.total, 4500)

@pytest.mark.parametrize('cap', (None, 5000))
def test_copy_while_a_thread_adds(cap):
    "A copy is of one moment; a growing ring that is reset while others add keeps each row in its slot"
    r,stop = Ring(cap),threading.Event()
    r.add(a=0, b=0)
    def adds():
        i = 0
        while not stop.is_set(): i += 1; r.add(a=i, b=i)
    t = threading.Thread(target=adds); t.start()
    try:
        for _ in range(10):
            o = copy.deepcopy(r)
            same_rows(o['a'], o['b'])
            if cap is None: time.sleep(.002); r.reset()
    finally: stop.set(); t.join()
    same_rows(r['a'], r['b'])
    assert (r['a'][1:]-r['a'][:-1]==1).sum()>=len(r)-2

# %% Processes
def write_until(r, enough):
    for i in itertools.count():
        if enough.is_set(): return
        r.add(a=i, b=np.full(2048, i))

def test_process_writes_all_the_time():
    "No row that is read meanwhile is torn"
    r,fork = Ring(8, dict(a=((), torch.int64), b=((2048,), torch.int64)), shared=True),mp.get_context('fork')
    p = fork.Process(target=write_until, args=(r, enough := fork.Event()), daemon=True)
    p.start()
    reads,before = 0,0
    while reads<30:
        assert p.is_alive()
        if r.total>before: before,got,reads = r.total,r[:],reads+1; assert (got['a'][:,None]==got['b']).all()
    enough.set()
    p.join()
    same(sorted(r['a'].tolist()), [*range(max(0, r.total-8), r.total)])

spawn = """
    import torch, torch.multiprocessing as mp
    from fastrl.memory.ring import Ring
    def child(r): r.add(obs=r['obs'][0].item()+1)
    if __name__=='__main__':
        r = Ring(4, dict(obs=((), torch.float32)), shared=True)
        r.add(obs=1.)
        p = mp.get_context('spawn').Process(target=child, args=(r,)); p.start(); p.join()
        print(r['obs'].tolist())
        try: mp.get_context('spawn').Process(target=child, args=(Ring(4),)).start()
        except RuntimeError as e: print('refused', 'shared=True' in str(e))
"""
interrupts = """
    import signal
    from fastrl.memory.ring import Ring
    adding = False
    def alarm(*_):
        global adding
        if adding: adding = False; raise KeyboardInterrupt
    r,hits = Ring(50),0
    signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, .01, .0005)
    while hits<300:
        try:
            adding = True
            while True: r.add(a=1., b=2.)
        except KeyboardInterrupt: hits += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    print('locked', r._rows_lock._is_owned())
"""
def lines_of(code, folder):
    (folder/'prog.py').write_text(textwrap.dedent(code))
    env = {**os.environ, 'PYTHONPATH':str(root)}
    return subprocess.run([sys.executable, folder/'prog.py'], capture_output=True, text=True, env=env).stdout.splitlines()

@pytest.mark.slow
def test_new_process(tmp_path):
    "A process of its own, not a fork, sees and writes the same rows"
    same(lines_of(spawn, tmp_path), ['[1.0, 2.0]', 'refused True'])

def test_interrupted_adds(tmp_path):
    "Interrupted three hundred times in the middle of adding, the ring is not left locked"
    same(lines_of(interrupts, tmp_path), ['locked False'])

def test_fork_while_locked():
    "A forked child gets a lock that nobody holds, and writes: as one process it would wait for ever"
    r = Ring(4, dict(obs=((), torch.float32)), shared=True)
    r.add(obs=1.) # compiles the writer
    r.add(obs=2.)
    held,done = threading.Event(),threading.Event()
    def hold():
        with r: held.set(); done.wait()
    t = threading.Thread(target=hold); t.start(); held.wait()
    p = mp.get_context('fork').Process(target=lambda: r.add(obs=3.))
    p.start(); p.join(20)
    done.set(); t.join()
    if p.is_alive(): p.kill()
    same((p.exitcode, r['obs'].tolist()), (0, [1,2,3]))

# %% Writers that are interrupted or killed
def test_interrupted_batch(monkeypatch):
    "Between two columns: it is written all the same, or counts as overwritten"
    r = Ring(3)
    r.extend(dict(a=torch.arange(3), b=torch.arange(3)))
    copy_in,hits = Place.copy_in,[]
    def interrupted(self, cols, at, n):
        copy_in(self, cols[:1], at, n)
        hits.append(1)
        if len(hits)<=most: raise KeyboardInterrupt
        copy_in(self, cols, at, n)
    monkeypatch.setattr(Place, 'copy_in', interrupted)
    most = 1
    with pytest.raises(KeyboardInterrupt): r.extend(dict(a=[9.], b=[9.])) # floats for ints are looked at, in the general way
    same_rows(r.columns(), BD(a=tensor([9,1,2]), b=tensor([9,1,2])))
    most = 99
    with pytest.raises(KeyboardInterrupt): r.extend(dict(a=[8.], b=[8.]))
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        same_rows(r[:], BD(a=tensor([9,2]), b=tensor([9,2])))
        with pytest.raises(IndexError, match='row 1 is half written'): r[1]
    r.add(a=7, b=7)
    same_rows(r.columns(), BD(a=tensor([9,7,2]), b=tensor([9,7,2])))
    same(r.seams.cuts, [4]) # what was lost stood before it

def test_killed_in_a_batch_larger_than_the_ring():
    r = Ring(4, dict(a=((), torch.float32)), shared=True)
    r.extend(dict(a=torch.arange(4.)))
    r.place.head[1] = 4+9 # as a writer leaves it that is killed within an `extend` of nine
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        for o in range(4): r.extend(dict(a=tensor([float(10+o)])))
    same_rows(r[:]['a'], tensor([10.,11.,12.,13.]))

class Slow:
    "Draws rows that another process writes over before they are read"
    def __init__(self, other, most): self.other,self.most,self.laps = other,most,0
    def draw(self, ring, bs):
        if self.laps<self.most: self.laps += 1; self.other.extend(dict(a=torch.arange(4.)+self.other.total))
        return torch.arange(4), {}

def test_overtaken_reader(tmp_path, monkeypatch):
    "Overtaken twice it tries again; overtaken each time it raises, instead of giving rows that are others by now"
    r = Ring(4, dict(a=((), torch.float32)), path=tmp_path/'r')
    r.extend(dict(a=torch.arange(4.)))
    slow = Slow(Ring(path=tmp_path/'r'), 2)
    batch,rows = r.draw(slow, 4)
    same_rows(batch['a'], batch['serial'][:,0].float())
    same(slow.laps, 2)
    monkeypatch.setattr(ring_module, '_give_up_after', .05)
    with pytest.raises(RuntimeError, match='give the ring a larger `capacity`'): r.draw(Slow(slow.other, 10**9), 4)

def test_overtaken_sampler(tmp_path):
    "A sampler whose rows are all replaced before it finds what it needs is asked again, however often"
    class Empty(Slow):
        def draw(self, ring, bs):
            res,had = Slow.draw(self, ring, bs),self.laps
            if had<self.most: raise ValueError('no episode has so many rows')
            return res
    r = Ring(4, dict(a=((), torch.float32)), path=tmp_path/'r')
    r.extend(dict(a=torch.arange(4.)))
    batch,_ = r.draw(Empty(Ring(path=tmp_path/'r'), 300), 4)
    same_rows(batch['a'], batch['serial'][:,0].float())

# %% Marks
def test_marks():
    "None before the first row, one at each place, the newest of as many as there is room for"
    r = Ring(2000)
    r.cut()
    same(r.seams.cuts, [])
    r.add(obs=0)
    r.cut(); r.cut()
    same(r.seams.cuts, [1])
    r.cut(False); r.cut(False)
    same(r.seams.cuts, [])
    r.cut(); r.add(obs=1); r.cut(False) # what was written after stays apart
    same(r.seams.cuts, [1])
    room = head_words-3-8
    for o in range(2, room+3):
        r.cut()
        r.add(obs=o)
    same((r.seams.cuts, r.seams.lone), ([*range(3, room+3)], 2)) # what was before the forgotten one stands alone
    r = Ring(5) # here marks are overwritten with their rows
    for o in range(3*room):
        r.add(obs=o)
        r.cut()
    same(r.seams.cuts, [*range(3*room-5, 3*room+1)])

def test_marks_of_a_shared_ring():
    "Within `with ring` too; a gap takes the place of a cut"
    r = Ring(9, dict(a=((), torch.float32)), shared=True)
    r.add(a=0)
    with r:
        r.extend(dict(a=torch.ones(1))); r.cut(); r.extend(dict(a=torch.ones(1)))
        same((r.seams.cuts, len(r)), ([2], 3))
    r.cut(); r.cut(gap=True)
    same((r.seams.cuts, r.seams.gaps), ([2], [3]))

def test_held_rows():
    "A row is there as long as its serial number is the one it had"
    for cap,total in ((4,3),(4,4),(4,9),(None,5)):
        r = Ring(cap)
        for i in range(total): r.add(x=i)
        n,stored = len(r),{s%(cap or total): s for s in range(max(0, total-(cap or total)), total)}
        for i in range(-1, n+2):
            for s in range(-2, total+3): same(r.holds(tensor([i]), tensor([[s]])).item(), stored.get(i)==s)
        same(r.serial(slice(None)).tolist(), [stored[i] for i in range(n)])

# %% Files
def test_opened_file_is_marked_once(tmp_path):
    "By the first row that is written; not if the environments go on where they were"
    r = Ring(9, path=tmp_path/'a.ring')
    r.add(obs=0)
    same(r.seams.cuts, [])
    r = Ring(path=r.place.path)
    for o in (1,2): r.extend(dict(obs=tensor([float(o)])))
    same(r.seams.cuts, [1])
    r = Ring(path=r.place.path)
    r.cut(False)
    for o in (3,4): r.add(obs=o)
    same((r.seams.cuts, r['obs'].tolist()), ([1], [0,1,2,3,4]))
    r = Ring(path=r.place.path)
    r.cut(); r.add(obs=5)
    same(r.seams.cuts, [1,5])

def test_heads_that_say_what_cannot_be(tmp_path):
    r = Ring(9, path=tmp_path/'a.ring')
    for o in range(6): r.add(obs=o)
    head,data = np.fromfile(r.place.path, np.int64, head_words),r.place.path.read_bytes()
    for at,v in ((0,-5), (3,2**62), (3,-1), (5,-1), (5,9999)):
        bad = head.copy()
        bad[at] = v
        with open(r.place.path, 'rb+') as f: f.write(bad.tobytes())
        with pytest.raises(ValueError, match=str(r.place.path)): Ring(path=r.place.path)
    r.place.path.write_bytes(data+b'more')
    with pytest.raises(ValueError, match='should have'): Ring(path=r.place.path)

def test_who_makes_the_file_first(tmp_path):
    "The second of two that begin with the same file finds the first one's rows, and leaves them if its own are others"
    a,b,c = (Ring(9, path=tmp_path/'new'/'folder'/'same') for _ in range(3))
    for o in range(4): a.add(obs=o)
    b.add(obs=4)
    same((a['obs'].tolist(), len(b)), ([0,1,2,3,4], 5))
    fails(lambda: c.add(obs=1, more=2), contains='has the fields [obs float32], not')
    same(len(a), 5)
    fails(lambda: pickle.dumps(Ring(9, path=tmp_path/'none')), contains='give the memory a `schema`')
    fails(lambda: Ring(2**35, dict(a=((2**20,), torch.int64)), path=tmp_path/'huge'), exc=OSError)
    same([o.name for o in tmp_path.iterdir()], ['new']) # nothing is left behind

def test_files_that_are_no_rings(tmp_path):
    p = tmp_path/'x'; p.write_text('precious')
    fails(lambda: Ring(3, path=p), contains='not the file of a ring')
    same(p.read_text(), 'precious')
    r = Ring(3, dict(a=((), torch.int64)), path=tmp_path/'y')
    with open(r.place.path, 'r+b') as f: f.truncate(4096)
    fails(lambda: Ring(path=r.place.path), contains='cut short')
    same(len(pickle.loads(pickle.dumps(Ring(3, dict(a=((), torch.int64)), path=tmp_path/'z')))), 0)

def test_files_that_are_no_places(tmp_path):
    p = tmp_path/'x'; p.write_text('precious')
    fails(lambda: Place(path=p).open(), contains='not the file of a ring')
    same(p.read_text(), 'precious')
    one = Place(path=tmp_path/'y').make(fields_of(a=()), 3)
    with open(one.path, 'r+b') as f: f.truncate(4096)
    fails(lambda: Place(path=one.path).open(), contains='cut short')
    fails(lambda: Place(path=tmp_path/'huge').make(fields_of(a=(2**20,)), 2**35), exc=OSError)
    os.mkfifo(tmp_path/'pipe')
    fails(lambda: Place(path=tmp_path/'pipe').open(), contains='is not the file of a ring')
    same(sorted(o.name for o in tmp_path.iterdir()), ['pipe','x','y']) # nothing is left behind

# %% What follows what: n-step returns and runs against an oracle that knows the episodes
class Oracle:
    "A list of rows (serial, env, reward, over, truncated, first of its episode)"
    def __init__(self, lengths, total):
        self.rows,at,ep = [],[0]*len(lengths),[0]*len(lengths)
        for s in range(total):
            e = s%len(lengths)
            at[e] += 1
            over = at[e]==lengths[e]
            self.rows.append((s, e, float(s+1), over, over and ep[e]%2==1, at[e]==1))
            if over: at[e],ep[e] = 0,ep[e]+1

    def ring(self, cap, walk, each):
        "All rows at once, or `each` of them followed when it comes"
        r = Ring(cap)
        s,e,rew,over,trunc,_ = zip(*self.rows)
        over,trunc = tensor(over)[:,None],tensor(trunc)[:,None]
        b = BD(env_id=tensor(e)[:,None], reward=tensor(rew)[:,None], terminated=over&~trunc, truncated=trunc)
        for i in range(0, len(s), 1 if each else len(s)):
            r.extend(b[i:i+1] if each else b)
            walk.follow(r)
        return r

    def run(self, s, n):
        "The serial numbers from `s` on, at most `n`, up to an ending"
        res = [s]
        while len(res)<n and not self.rows[res[-1]][3]:
            later = [o[0] for o in self.rows[res[-1]+1:] if o[1]==self.rows[s][1]]
            if not later: break
            res.append(later[0])
        return res

def check_returns(o, walk, ring, stored, n):
    idxs = torch.arange(len(ring))
    last,steps,ret,disc = walk.fold(ring, idxs, n, .9)
    rows,m = walk.runs(idxs, n)
    for i,s in stored.items():
        run = o.run(s, n)
        same((last[i].item(), steps[i].item()), (run[-1]%ring.capacity, len(run)))
        close((ret[i].item(), disc[i].item()), (sum(.9**k*o.rows[s][2] for k,s in enumerate(run)), .9**len(run)), eps=1e-6)
        same(rows[i,:m[i]].tolist(), [s%ring.capacity for s in run])

def check_drawn(draw, legal, n, error):
    "`draw(k)` gives rows that begin at all `legal` slots and nowhere else, or raises if there are none"
    if legal: same(set(draw(30*n)[0][:,0].tolist()), legal)
    else: fails(lambda: draw(4), contains=error)

def check_walk(lengths, cap, total, each, seed):
    "Every `n`, every row, every kind of draw; the number of cases"
    o,walk = Oracle(lengths, total),Walk()
    ring,gen = o.ring(cap, walk, each),torch.Generator().manual_seed(seed)
    stored = {s%cap: s for s in range(max(0, total-cap), total)}
    def begins(s): return o.rows[s][5] or not any(s in o.run(b, 2)[1:] for b in stored.values())
    def known(s): # was the row before it ever seen?
        return each or total<=cap or any(o.rows[b][1]==o.rows[s][1] and b<s for b in stored.values())
    for n in (1,2,3,4,5):
        check_returns(o, walk, ring, stored, n)
        for pad in (False, True):
            legal = {i for i,s in stored.items() if len(o.run(s, n))==n or pad and begins(s)}
            check_drawn(lambda k: walk.draw_runs(ring, k, n, pad, gen), legal, len(ring), 'rows in a row')
    whole = {i for i,s in stored.items() if o.rows[s][5] and known(s) and o.rows[o.run(s, 99)[-1]][3]}
    check_drawn(lambda k: Runs(walk, gen).draw(ring, k), whole, len(ring), 'no episode is stored whole')
    return 10

def all_walks():
    "Lengths of the episodes of each environment, capacities, and every cursor, partly filled ones too"
    for lengths in (*((n,) for n in range(1,8)),(1,3),(4,2),(7,5),(2,3,1),(4,7,3)):
        for cap in range(1,13):
            for total in sorted({1, cap-1, *range(cap, 2*cap+1), 3*cap+1}-{0}):
                for each in {total%2==0, total==2*cap}: yield lengths,cap,total,each

@pytest.mark.parametrize('seed', range(4))
def test_some_walks(seed):
    walks = random.Random(seed).sample([*all_walks()], 40)
    same(sum(check_walk(*o, seed=i) for i,o in enumerate(walks)), 400)

@pytest.mark.long
def test_all_walks(): assert sum(check_walk(*o, seed=i) for i,o in enumerate(all_walks()))>4000

def test_walks_leave_out_torn_rows():
    "A row that another process has begun to write over begins no run and no episode"
    r,walk,gen = Ring(4, dict(env_id=((), torch.int64), terminated=((), torch.bool), truncated=((), torch.bool)),
                      shared=True),Walk(),torch.Generator().manual_seed(0)
    for o in range(6):
        r.add(env_id=0, terminated=True, truncated=False)
        walk.follow(r)
    for torn,want in ((0, {0,1,2,3}), (1, {0,1,3}), (2, {0,1})):
        r.place.head[1] = 6+torn # a writer is at rows 6 and 7, over 2 and 3
        same(set(walk.draw_runs(r, 200, 1, False, gen)[0].flatten().tolist()), want)
        same(set(Runs(walk, gen).draw(r, 200)[0].flatten().tolist()), want)

# %% One row, in the compiled way and in the general one
kinds_of_rows = [torch.float32,torch.float64,torch.float16,torch.int64,torch.int32,torch.uint8,torch.bool,torch.complex64,torch.bfloat16]

def any_value(rng, dtype, shape):
    "A tensor, perhaps a view or with a gradient; an array; a list"
    some = [0, 1, 2, 100, np.nan if dtype.is_floating_point else 3, 1e30 if dtype is torch.float32 else 5]
    v = torch.tensor(rng.choice(some, size=shape)).to(dtype)
    how = rng.random()
    if how<.1 and v.ndim: return torch.stack([v,v], -1)[...,0]
    if how<.2 and v.is_floating_point(): return v.requires_grad_()
    if how<.3 and dtype is not torch.bfloat16: return v.numpy()
    return v.tolist() if how<.35 else v

def added(r, row):
    try: r.add(**row)
    except Exception as e: return type(e).__name__,str(e)
    return {k: (v.dtype, v[-1:].tolist()) for k,v in r[:].items()}

@pytest.mark.filterwarnings('ignore')
def test_rows_of_tensors():
    "A row of tensors, arrays and numbers is stored, or refused in the same words, whether the compiled function takes it or not"
    rng,stored = np.random.default_rng(0),0
    def kind(): return kinds_of_rows[rng.integers(9)],[(), (1,), (2,), (2,3)][rng.integers(4)]
    for _ in range(600):
        fields,a,b = {k: kind() for k in 'abc'[:rng.integers(1, 4)]},Ring(5),Ring(5)
        for r in (a, b): r.add(**{k: torch.zeros(shape, dtype=dtype) for k,(dtype,shape) in fields.items()})
        for _ in range(2):
            row = {k: any_value(rng, *(o if rng.random()<.8 else kind())) for k,o in fields.items()}
            b.writer = lambda row: False # as for a row that it does not take
            res = added(a, row)
            assert repr(res)==repr(added(b, row)), row
            stored += isinstance(res, dict)
    assert stored>600


@pytest.mark.parametrize('dtype', [torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128])
@pytest.mark.parametrize('other', [torch.float32, torch.bfloat16]) # without NumPy's dtypes rows are written otherwise
def test_put_spares_rows_that_another_process_writes_meanwhile(tmp_path, dtype, other):
    schema = dict(x=((2,), dtype), y=((3,), other))
    writer,reader = (Ring(4, schema, path=tmp_path/'rows') for _ in range(2))
    def add(v): writer.add(x=torch.full((2,), v, dtype=dtype), y=torch.full((3,), v, dtype=other))
    for i in range(4): add(i)
    holds,idxs = reader.holds,torch.arange(4)
    serials = reader.serial(idxs)[:,None]
    def then_overwritten(*args):
        res = holds(*args)
        add(9)
        return res
    reader.holds = then_overwritten
    reader.put('x', list(range(4)), torch.full((4,2), 5, dtype=dtype), serials)
    reader.put('y', list(range(4)), torch.full((4,3), 6, dtype=other), serials)
    assert reader['x'][:,0].tolist()==[9,9,5,5]
    assert reader['y'][:,0].tolist()==[9,9,6,6]


def test_priorities_of_rows_that_another_process_has_just_cleared(tmp_path):
    schema = dict(x=((1,), torch.float32))
    writer,reader = (Ring(8, schema, path=tmp_path/'rows') for _ in range(2))
    for i in range(8): writer.add(x=[i])
    sampler = Prioritized(seed=0)
    reader.draw(sampler, 4)
    writer.add(x=[8]) # which the sampler has yet to see
    with reader:
        assert reader.holds(torch.arange(8)).all()
        writer.reset() # after `update_td` found its rows in place
        sampler.update(reader, torch.arange(8), torch.full((8,), 9.))
    for i in range(2): writer.add(x=[i])
    assert set(reader.draw(sampler, 64)[1].tolist())=={0,1}
