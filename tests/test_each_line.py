"At each line of what one process does, another one writes, wraps or clears, or Ctrl-C comes: no row is wrong, none is lost"
import copy, functools, itertools, linecache, signal, sys, threading, warnings
from pathlib import Path
import fastrl, numpy as np, pytest, torch
from fastrl.memory.bank import BankUnion, ExperienceBank, create_experience
from fastrl.memory.disk import Saved, verify
from fastrl.memory.episodes import EpisodeReplay, IndividualFileDataset, RingBufferDataset
from fastrl.memory.files import FileLock, put_files
from fastrl.memory.limit import RateLimiter
from fastrl.memory.replay import ExperienceReplay, ExperienceReplayException, MemoryNotWarm
from fastrl.memory.ring import Ring, locked
from fastrl.memory.sample import Prioritized, Uniform
from fastrl.memory.walk import Walk
from torch import tensor

library = f'{Path(fastrl.__file__).parent}/' # not all that lies in a clone of this name, as `.venv` does

@functools.cache
def is_with(file, line):
    "Such a line comes once more at its end, where no signal is handled"
    return linecache.getline(file, line).strip().startswith('with ')

def at_line(k, act, f, only=None):
    "Call `f`, and `act` at the `k`-th line of this library that runs in it: the result, and the functions whose lines were met"
    n,met = itertools.count(1),[]
    def trace(frame, event, _):
        code = frame.f_code
        if not code.co_filename.startswith(library) and code.co_filename!='<string>' or only and code.co_name not in only: return
        if event=='line' and not is_with(code.co_filename, frame.f_lineno) and next(n)==k:
            met.append(code.co_name)
            sys.settrace(None)
            act()
        return trace
    was = sys.gettrace()
    sys.settrace(trace)
    try: return f(),met
    except KeyboardInterrupt: return None,met
    finally: sys.settrace(was)

def ctrl_c(): raise KeyboardInterrupt

def same(a, b): assert a==b # `test_eq` takes a hundred times as long

def test_compiled_lines_count():
    "The functions that are compiled for the rows of a store are interrupted, too"
    ring = Ring(9)
    for _ in range(2): ring.add(n=1)
    same(at_line(1, ctrl_c, lambda: ring.writer.fits(dict(n=1))), (None, ['fits']))

def step(i, frames=False):
    "Step `i` of two environments that take turns, with episodes of five steps"
    e,t = i%2,i//2
    def see(t): return np.full((3,3), 100*e+t%97, np.uint8) if frames else np.full(3, 1000*e+t, np.float32)
    return dict(n=i, env_id=e, state=see(t), next_state=see(t+1), reward=1., terminated=t%5==4, truncated=False)
def steps(a, b, frames=False):
    rows = [step(i, frames) for i in range(a, b)]
    return {k: np.stack([np.asarray(o[k]) for o in rows]).reshape(b-a, *(np.shape(rows[0][k]) or (1,))) for k in rows[0]}

@functools.cache
def every(frames): return steps(0, 400, frames)

def check(batch, n_step=1):
    "Each row is whole, and is joined to those that followed it"
    i = batch['n'].view(-1).long().numpy()
    m = batch['n_steps'].view(-1).numpy() if 'n_steps' in batch else np.ones_like(i)
    last,frames = i+2*(m-1),batch['state'].dtype==torch.uint8
    assert (m<=n_step).all() and (i//10==last//10).all(), (i, m) # one episode
    a,b = ({k: v[o] for k,v in every(frames).items()} for o in (i, last))
    def newest(k): return (batch[k][:,-1] if frames else batch[k]).numpy()
    same((newest('state')==a['state']).all() and (newest('next_state')==b['next_state']).all(), True)
    same((batch['reward'][:,0].tolist(), batch['terminated'][:,0].tolist()), ((2-.5**(m-1)).tolist(), b['terminated'][:,0].tolist()))

def pair(tmp_path, k, sampler=Uniform, frames=False):
    "A memory in a file, as its writer and as a reader in another process see it"
    def new(sampler): return ExperienceReplay(bs=6, max_sz=20, warmup_sz=1, n_step=3, gamma=.5, path=tmp_path/str(k), sampler=sampler(seed=0),
                                              **(dict(frame_stack=2, frame_margin=10) if frames else {}))
    writer = new(Uniform)
    writer+steps(0, 13, frames)
    return writer,new(sampler)

# %% Another process writes
reads = dict(sample=lambda o: check(o.sample()[0], 3), sequences=lambda o: o.sample_sequences(4, 2), whole=lambda o: o.sample_sequences(2),
             put=lambda o: o.put('reward', tensor([3,12]), torch.ones(2,1), tensor([[3],[12]])))

@pytest.mark.parametrize('name,sampler', [('sample',Uniform), ('sample',Prioritized), ('sequences',Uniform), ('sequences',Prioritized),
                                          ('whole',Uniform), ('put',Uniform)])
@pytest.mark.halved
def test_cleared_beside(name, sampler, tmp_path):
    "A draw gives what is there, or says that the memory is not warm; the next draws know only the new rows"
    for k in itertools.count(1, 5):
        writer,reader = pair(tmp_path, k, sampler)
        if k%2: reader.sample()
        try: met = at_line(k, writer.clear, lambda: reads[name](reader))[1]
        except MemoryNotWarm: met = True
        if not met: break
        writer+steps(20, 24)
        for _ in range(3):
            batch = reader.sample(20)[0]
            check(batch, 3)
            assert batch['n'].min()>=20
    assert k>20

@pytest.mark.parametrize('name,sampler', [('sample',Uniform), ('sample',Prioritized), ('sequences',Uniform), ('sequences',Prioritized), ('whole',Uniform), ('stream',Uniform)])
def test_cleared_and_filled_beside(name, sampler, tmp_path):
    "A memory that is cleared before a draw, and has rows again right after it found none, gives these"
    writer,reader = pair(tmp_path, 0, sampler)
    reader.sample()
    was,acts = reader.check_warm,iter([lambda: (was(), writer.clear()), lambda: (writer+steps(20, 30), was())])
    reader.check_warm = lambda: next(acts, was)() and None
    dict(reads, stream=lambda o: next(o.stream(T=2)))[name](reader)
    assert next(acts, None) is None

@pytest.mark.parametrize('gone', [0, 1])
@pytest.mark.parametrize('column', ['td_error','hidden'])
@pytest.mark.parametrize('shape', [(6,), (3,2)])
@pytest.mark.halved
def test_put_beside(gone, column, shape, tmp_path):
    "Values come to the rows they were made for, or to none"
    for k in itertools.count(1):
        writer = Ring(20, dict(n=((1,), torch.int64), td_error=((1,), torch.float32), hidden=((2,3), torch.float32)), path=tmp_path/str(k))
        def write(a, b):
            n = torch.arange(a, b)[:,None]
            writer.extend(dict(n=n, td_error=torch.zeros(b-a,1), hidden=torch.zeros(b-a,2,3)))
        write(0, 20)
        reader = Ring(path=writer.place.path)
        idxs = torch.arange(6).view(shape)
        f = {f.name: f.shape for f in reader.fields}[column]
        values = (1.+idxs).view(*shape, *[1]*len(f)).expand(*shape, *f)
        write(20, 20+gone)
        met = at_line(k, lambda: write(20+gone, 27), lambda: reader.put(column, idxs, values.contiguous(), idxs[...,None]))[1]
        now,n = reader[:][column].reshape(20, -1),reader[:]['n'][:,0]
        assert ((now==0).all(1) | (now==1.+n[:,None]).all(1)).all(), (k, met, now[:8])
        if not met: break
    same((now[:gone]==0).all() and (now[gone:6]>0).all(), torch.tensor(True))
    assert k>9

def test_learnt_beside(tmp_path):
    "TD errors of sequences come to their rows, or to none"
    for k in itertools.count(1, 3):
        writer,reader = pair(tmp_path, k, lambda seed: Prioritized(seed=seed, eta=.9))
        writer+steps(13, 20)
        batch,idxs = reader.sample_sequences(4, 2)
        td = 1.+batch['n'][...,0]
        met = at_line(k, lambda: writer+steps(20, 33), lambda: reader.update_td(td, idxs, batch['serial']))[1]
        now,n = (reader.ring[:][o][:,0] for o in ('td_error','n'))
        assert ((now==0) | (now==1.+n)).all(), (k, met, now, n)
        if not met: break
    same((now>0).sum(), batch['n'].unique().numel())
    assert k>20

def test_cleared_while_there_are_no_rows(tmp_path):
    writer,reader = pair(tmp_path, 0)
    writer.clear()
    same(reader.put('reward', tensor([3,12]), torch.ones(2,1), tensor([[3],[12]])), 2) # both rows are gone
    with pytest.raises(IndexError, match='none has number 25'): reader.ring.put('reward', [25], torch.ones(1,1), [25])
    with pytest.raises(IndexError, match='there are 0 rows'): reader.ring.put('reward', [3], torch.ones(1,1))

@pytest.mark.parametrize('act', ['clears','wraps'])
@pytest.mark.parametrize('frames', [False, True])
@pytest.mark.halved
def test_saved_beside(act, frames, tmp_path):
    "What is saved can be loaded, and is of one moment"
    for k in itertools.count(1, 41):
        writer,reader = pair(tmp_path, k, Prioritized, frames)
        reader.sample()
        reader.checkpoint(tmp_path/'saved')
        def write():
            if act=='clears': writer.clear()
            writer+(steps(20, 27, frames) if act=='clears' else steps(13, 38, frames))
        met = at_line(k, write, lambda: reader.checkpoint(tmp_path/'saved'))[1]
        if not met: break
        loaded = ExperienceReplay.load(tmp_path/'saved')
        if len(loaded): check(loaded.sample(20)[0], 3)
    assert k>200

def test_saved_after_clear(tmp_path):
    "Also where episodes were looked at before"
    er = ExperienceReplay(bs=6, max_sz=20, warmup_sz=1, n_step=3)
    er+steps(0, 13)
    er.sample()
    er.clear().save(tmp_path)
    same(len(ExperienceReplay.load(tmp_path)), 0)

def empty_like(o): return ExperienceReplay(bs=6, max_sz=40, warmup_sz=1, n_step=3, gamma=.5, frame_stack=o.frame_stack, frame_margin=99)
copies = dict(slice=lambda o: o[3:11], extend=lambda o: empty_like(o).extend(o), plus=lambda o: empty_like(o)+o.memory)
@pytest.mark.parametrize('name', copies)
@pytest.mark.parametrize('frames', [False, True])
@pytest.mark.halved
def test_copied_beside(name, frames, tmp_path):
    "Rows that are overwritten while they are copied are left out, and the others are joined as they were"
    for k in itertools.count(1, 229 if frames else 61):
        writer,reader = pair(tmp_path, k, Uniform, frames)
        writer+steps(13, 23, frames)
        res,met = at_line(k, lambda: writer+steps(23, 29, frames), lambda: copies[name](reader))
        if not met: break
        check(res.sample(40)[0], 3)
        res.n_step = None
        check(res.sample(40)[0])
    assert k>200

@pytest.mark.parametrize('clear', [False, True])
def test_read_while_frames_are_forgotten(clear, tmp_path):
    "Rows come with their own frames, or not at all"
    n = 0
    for k in itertools.count(1, 3):
        new = lambda: ExperienceReplay(max_sz=20, warmup_sz=1, path=tmp_path/str(k), frame_stack=2, frame_margin=10 if clear else 1)
        writer = new()
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            writer+steps(0, 13, True)
            reader = new()
            def write():
                if clear: writer.clear()
                writer+(steps(20, 40, True) if clear else steps(13, 23, True))
            try: res,met = at_line(k, write, lambda: reader.ring[2:9])
            except IndexError as e: n += 'frames of some of these rows' in str(e)
            else:
                if not met: break
                check(res)
    assert n>1

def test_marks_beside(tmp_path):
    "Marks move up when another process cuts; whoever reads them meanwhile misses none that is still needed"
    for k in itertools.count(1):
        r = Ring(6, path=tmp_path/str(k))
        for o in range(9):
            r.add(obs=o)
            r.cut()
        reader = Ring(path=r.place.path)
        def cut():
            for o in range(2): r.add(obs=o); r.cut()
        seams,met = at_line(k, cut, lambda: reader.seams)
        if not met: break
        assert {o for o in range(5, 10)}<={*seams.cuts}, (k, seams)
    assert k>9

@pytest.mark.filterwarnings('ignore:15 of 20 rows are half written')
def test_drawn_beside_half_written_rows():
    "A killed writer has left most rows half written: those that are whole are drawn"
    er = ExperienceReplay(bs=16, max_sz=20, warmup_sz=1, sampler=Prioritized(seed=0), shared=True)
    er+steps(0, 20)
    er.ring.place.head[1] += 15 # as the writer of a batch leaves it
    for _ in range(30):
        batch,idxs = er.sample()
        assert batch['n'].min()>=15 and idxs.min()>=15

@pytest.mark.filterwarnings('ignore:15 of 20 rows are half written')
@pytest.mark.parametrize('normalize', ['batch','memory'])
def test_weights_beside_half_written_rows(normalize):
    "A row that is drawn twice as often weighs half as much; new rows in the place of half written ones are drawn again"
    er = ExperienceReplay(bs=16, max_sz=20, warmup_sz=1, sampler=Prioritized(seed=0, beta=1., normalize=normalize), shared=True)
    er+steps(0, 20)
    er.update_td(2.**torch.arange(20.)[:,None], torch.arange(20))
    er.ring.place.head[1] += 15
    for batch,idxs in (*(er.sample() for _ in range(5)), *er.sample(n_batches=5)):
        each = batch['weight'][:,0]*er.sampler.tree[idxs]
        assert idxs.min()>=15 and torch.allclose(each, each[0]), each
    er+steps(20, 37)
    assert {i for _ in range(20) for i in er.sample()[1].tolist()}>={*range(17)}

@pytest.mark.filterwarnings('ignore:3 of 20 rows are half written')
def test_frames_beside_half_written_rows(tmp_path):
    "The whole column of states is there after a writer was killed; the oldest whole row stands for those that are not"
    writer,reader = pair(tmp_path, 0, frames=True)
    writer+steps(13, 20, True)
    writer.ring.place.head[1] += 3 # as the writer of a batch leaves it
    same(reader['state'][:,-1,0,0].tolist(), [step(max(i, 3), True)['state'][0,0] for i in range(20)])

# %% Ctrl-C
def test_interrupted_clear(tmp_path):
    "All rows are there, as they were joined, or none; the next row is there in either case"
    for path,k in ((o, k) for o in (None, tmp_path) for k in range(1, 60)):
        er = ExperienceReplay(max_sz=20, warmup_sz=1, path=path and path/str(k))
        er+steps(0, 7)
        er.cut()
        er+steps(7, 9)
        at_line(k, ctrl_c, er.clear)
        n,cuts = len(er),er.ring.seams.cuts
        assert n==0 or cuts==[7], (k, n, cuts)
        er.add(**step(9))
        same((len(er), er.ring['n'][er.ring.pointer-1].item()), (n+1, 9))

def test_interrupted_draw():
    "What is known of the rows is what another look at them finds"
    for k in itertools.count(1, 3):
        er = ExperienceReplay(bs=6, max_sz=20, warmup_sz=1, n_step=3, gamma=.5, seed=0)
        er+steps(0, 17)
        er.sample()
        er+steps(17, 23)
        met = at_line(k, ctrl_c, lambda: er.sample_sequences(4, 2, burn_in=1))[1]
        if not met: break
        er+steps(23, 25)
        er.sample(), er.sample_sequences(4, 2)
        anew = Walk()
        anew.follow(er.ring)
        oldest = er.ring.seams.oldest
        same(er.walk.nxt.tolist(), anew.nxt.tolist())
        same(*[[o if o>=oldest else -1 for o in w.prv.tolist()] for w in (er.walk, anew)])
    assert k>20

def test_interrupted_frames():
    "A pool that is too small forgets rows, also where the forgetting was interrupted"
    full = ExperienceReplay(bs=6, max_sz=20, warmup_sz=1, frame_stack=2, frame_margin=1)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        for i in range(0, 70, 7): full+steps(i, i+7, True) # episodes of five steps take six frames and more
        for k in itertools.count(1):
            er = copy.deepcopy(full)
            met = at_line(k, ctrl_c, lambda: er+steps(70, 73, True), only=('_make_way','reset','forget','locked'))[1]
            if not met: break
            for i in range(int(er.ring['n'].max())+1, 75): er.add(**step(i, True))
            check(er.ring.gather(er.ring.held))
            check(er.sample(20)[0])
    assert k>15

def test_frames_cleared_beside_a_thread():
    "A thread that adds while another one clears waits until all is done"
    er,free = ExperienceReplay(bs=6, max_sz=20, warmup_sz=1, frame_stack=2, frame_margin=10),[]
    er+steps(0, 11, True)
    def other():
        t = threading.Thread(target=lambda: free.append(er.ring._rows_lock.acquire(blocking=False)))
        t.start(); t.join()
    was = er.ring.pool.reset
    er.ring.pool.reset = lambda *args: (other(), was(*args))
    er.clear()
    same(free, [False])

def test_merge_leaves_no_lock():
    "Neither memory stays locked, also where Ctrl-C comes while a lock is taken or let go"
    source = ExperienceReplay(bs=6, max_sz=20, warmup_sz=1, frame_stack=2, frame_margin=10)
    source+steps(0, 12, True)
    for k in itertools.count(1):
        other = empty_like(source)
        met = at_line(k, ctrl_c, lambda: other.extend(source), only=('__enter__','__exit__','holding','copy_rows'))[1]
        assert not any(o.ring._rows_lock._is_owned() for o in (source, other)), (k, met)
        if not met: break
    assert k>9

def test_interrupted_while_it_enters():
    "`with ring` leaves no lock behind, and no count that stands still"
    names = ('__enter__','__exit__','still','others')
    for k in range(1, 20):
        r = Ring(9, dict(a=((), torch.float32)), shared=True)
        def use():
            with r: pass
        at_line(k, ctrl_c, use, only=names)
        assert not r._rows_lock._is_owned(), k
        r.place.head[0] += 1 # as another process counts
        same((r.total, k), (1, k))

@pytest.mark.parametrize('shared', [False, True])
def test_interrupted_by_a_signal(shared):
    """At whatever moment, also between two steps of one line, no lock is left behind, for which a loader would wait for ever,
    and no old count of rows, with which the memory would draw none that others add"""
    er = ExperienceReplay(bs=4, max_sz=20, warmup_sz=1, shared=shared)
    er.add(state=0., reward=1.)
    idxs = er.sample()[1]
    def locks():
        while True:
            with locked(er.ring): pass
    def updates():
        while True: er.update_td(torch.ones(4, 1), idxs)
    def stop(*_): raise KeyboardInterrupt
    was = signal.signal(signal.SIGALRM, stop)
    try:
        for k in range(400):
            with pytest.raises(KeyboardInterrupt):
                # and again after a second: Python drops what is raised while it frees something
                signal.setitimer(signal.ITIMER_REAL, 2e-4+1e-6*k, 1)
                (updates if k%2 else locks)()
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert not er.ring._rows_lock._is_owned(), k
            er.add(state=0., reward=1.)
            assert er.ring.total==k+2
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, was)

@pytest.mark.parametrize('kind', ['memory', *(pytest.param(o, marks=pytest.mark.slow) for o in ('frames','shared','path','prioritized'))])
def test_interrupted_first_rows(kind, tmp_path):
    "The first rows are there, or can be added again"
    where = dict(shared=dict(shared=True), frames=dict(frame_stack=2, frame_margin=10)).get(kind, {})
    for k in itertools.count(1, 4 if kind=='frames' else 1):
        if kind=='path': where = dict(path=tmp_path/str(k)/'rows')
        if kind=='prioritized': where = dict(sampler=Prioritized(seed=0))
        er = ExperienceReplay(bs=6, max_sz=20, warmup_sz=1, n_step=3, gamma=.5, **where)
        met = at_line(k, ctrl_c, lambda: er+steps(0, 3, kind=='frames'))[1]
        if not met: break
        if not len(er): er+steps(0, 3, kind=='frames')
        for i in range(3, 13): er.add(**step(i, kind=='frames'))
        same(len(er), 13)
        check(er.sample(20)[0], 3)
    assert k>90

@pytest.mark.filterwarnings('ignore::pytest.PytestUnraisableExceptionWarning') # where a lock is let go once more
def test_interrupted_lock(tmp_path):
    "A lock that was to be let go is, and one that was to be taken is not left behind"
    def use():
        with FileLock(tmp_path): pass
    for k in itertools.count(1):
        if not at_line(k, ctrl_c, use)[1]: break
        FileLock(tmp_path).let_go() # would say that another writer has locked it
    assert k>15
    for k in range(1, 9):
        lock = FileLock(tmp_path)
        at_line(k, ctrl_c, lock.let_go)
        lock.let_go()
        FileLock(tmp_path).let_go()

@pytest.mark.parametrize('name', ['put_files','checkpoint'])
def test_interrupted_writer(name, tmp_path):
    "The next one need not wait"
    er = ExperienceReplay(max_sz=20, warmup_sz=1)
    er+steps(0, 7)
    writes = {tmp_path/o: lambda at, o=o: at.write_text(o) for o in 'ab'}
    write = dict(put_files=lambda: put_files(writes), checkpoint=lambda: er.checkpoint(tmp_path/'c'))[name]
    for k in itertools.count(1, 7):
        if not at_line(k, ctrl_c, write, only=('_only_writer','_hold','_take','let_go','_let_go','__init__','__exit__','is_of'))[1]: break
        write()
    assert k>7

def to_merge(tmp_path, k, frames):
    "A memory in a file, another process that reads it, and a memory to merge: an episode underway, a cut, a later episode"
    writer,reader = pair(tmp_path, k, frames=frames)
    other = ExperienceReplay(bs=6, max_sz=20, warmup_sz=1, **(dict(frame_stack=2, frame_margin=10) if frames else {}))
    other+steps(100, 108, frames)
    other.cut()
    other+steps(120, 123, frames)
    return writer,reader,other
merges = {'extend': lambda er, other: er.extend(other), '+': lambda er, other: er+other.memory}

@pytest.mark.parametrize('way', merges)
@pytest.mark.parametrize('frames', [False, True])
@pytest.mark.halved
def test_merged_beside(way, frames, tmp_path):
    "Whoever draws while memories are merged joins no row of one to a row of the other, then or later"
    for k in itertools.count(1, 97 if frames else 13):
        writer,reader,other = to_merge(tmp_path, k, frames)
        reader.sample()
        met = at_line(k, lambda: check(reader.sample(30)[0], 3), lambda: merges[way](writer, other))[1]
        if not met: break
        writer+steps(13, 15, frames)
        for er in (reader, writer): check(er.sample(30)[0], 3)
    assert k>600

@pytest.mark.filterwarnings('ignore:.* of 20') # half written rows, and a pool of frames that is full
@pytest.mark.parametrize('way', merges)
@pytest.mark.parametrize('frames,every', [(False,11), *(pytest.param(*o, marks=pytest.mark.slow) for o in ((False,2), (True,97)))])
def test_interrupted_merge(way, frames, every, tmp_path):
    "All rows of the other memory are there, or the first of them; they are joined as they were, and so are all later ones"
    there,(writer,_,other) = set(),to_merge(tmp_path, 0, frames)
    merges[way](writer, other) # what compiles is compiled now, or it would be after each interruption
    for k in itertools.count(1, every):
        writer,_,other = to_merge(tmp_path, k, frames)
        met = at_line(k, ctrl_c, lambda: merges[way](writer, other))[1]
        if not met: break
        came = [o for o in writer['n'].view(-1).int().tolist() if o>=100]
        same(sorted(came), [*range(100, 108), *range(120, 123)][:len(came)])
        there.add(len(came))
        for rows in (steps(13, 15, frames), steps(15, 17, frames)):
            check(writer.sample(30)[0], 3)
            writer+rows
        check(writer.sample(30)[0], 3)
    assert k>600 and there>={0,11}

def test_interrupted_checkpoint(tmp_path):
    "The folder has the memory of now, or that of the last time, and all of its files"
    for k in itertools.count(1):
        er = ExperienceReplay(max_sz=20, warmup_sz=1)
        for i in range(3):
            er.add(**step(i))
            er.checkpoint(tmp_path/str(k))
        er.add(**step(3))
        met = at_line(k, ctrl_c, lambda: er.checkpoint(tmp_path/str(k)), only=('save_memory','_sweep','<genexpr>'))[1]
        same((verify(tmp_path/str(k)), Saved(tmp_path/str(k)).total in (3, 4)), ([], True))
        if not met: break
    assert k>30

def bank_file(at, *ks):
    "The file of a bank with experiences of these numbers"
    bank = ExperienceBank()
    bank.add_batch([create_experience([float(k)], k, 0., [0.], False) for k in ks])
    return Path(bank.save(at, f'{ks[0]}.safetensors'))

@pytest.mark.parametrize('limit', [None, 5])
def test_interrupted_union(limit, tmp_path):
    "A file whose adding was interrupted can be added again: each of its rows comes once"
    a,b,c = (bank_file(tmp_path, *range(o, o+3)) for o in (0, 10, 20))
    for k in itertools.count(1):
        union = BankUnion(limit)
        union.add(a)
        met = at_line(k, ctrl_c, lambda: union.add(b), only=('add','whole','_whole','total','_take_back','_add_unseen'))[1]
        for o in (b, c): union.add(o)
        same([e.action for e in union.bank], [0,1,2,10,11,12,20,21,22][-(limit or 9):])
        if not met: break
    assert k>20

bank_calls = dict(add=lambda a, b: a.add(create_experience([9.], 9, .5, [0.], False)), add_batch=lambda a, b: a.add_batch([*b]),
                  merge=lambda a, b: a.merge_inplace(b), sample=lambda a, b: a.sample(2), slice=lambda a, b: a[:], clear=lambda a, b: a.clear(),
                  own_rows=lambda a, b: (o := a.reader(), o.own_rows()), pickle=lambda a, b: copy.deepcopy(a))
@pytest.mark.parametrize('every', (8, pytest.param(3, marks=pytest.mark.slow)))
@pytest.mark.parametrize('name', bank_calls)
@pytest.mark.halved
def test_interrupted_bank(name, every):
    "Other threads need not wait for a call that has ended"
    for k in itertools.count(1, every):
        banks = a,b = [ExperienceBank() for _ in range(2)]
        for i,o in enumerate(banks): o.add_batch([create_experience([float(j)], j, 0, [0.], False) for j in range(i, 3)])
        met = at_line(k, ctrl_c, lambda: bank_calls[name](a, b))[1]
        assert not any(o.lock.rlock._is_owned() for o in banks), (k, met)
        if not met: break
    assert k>9

def image_step(i, dtype=np.uint8):
    "Step `i` of an endless episode of stacks of two images, each of which shows its number"
    def see(t): return np.stack([np.full((2,2), t+j, dtype) for j in range(2)])
    return create_experience(see(i), i, .5, see(i+1), False)

image_calls = dict(add=lambda a, b: a.add(image_step(50)), wider=lambda a, b: a.add(image_step(50, np.float32)), merge=lambda a, b: a.merge_inplace(b),
                   add_batch=lambda a, b: a.add_batch([image_step(i) for i in range(50, 57)]), own_rows=lambda a, b: (o := a.reader(), o.own_rows()))
@pytest.mark.parametrize('every', (13, pytest.param(7, marks=pytest.mark.slow)))
@pytest.mark.parametrize('name', image_calls)
@pytest.mark.parametrize('limit', (None, 5))
@pytest.mark.halved
def test_interrupted_bank_of_frames(name, limit, every):
    "The rows are those before or after the call; frames that came without their rows make room for others"
    def seen(bank): return [(e.state.tolist(), e.action, e.next_state.tolist()) for e in bank]
    def right(*ks): return seen(map(image_step, ks))
    for k in itertools.count(1, every):
        banks = a,b = [ExperienceBank(limit, frame_stack=o) for o in (2, 2 if k%2 else None)]
        a.add_batch([image_step(i) for i in range(4)])
        b.add_batch([image_step(i) for i in range(60, 63)])
        came = dict(merge=(60,61,62), add_batch=range(50, 57), own_rows=()).get(name, (50,))
        met = at_line(k, ctrl_c, lambda: image_calls[name](a, b))[1]
        assert seen(a) in (right(*range(4)), right(*[*range(4), *came][-(limit or 99):])), k
        for i in range(70, 190): a.add(image_step(i))
        same(seen(a)[-(limit or 120):], right(*range(70, 190))[-(limit or 120):])
        if not limit: same(seen(a)[:4], right(*range(4)))
        assert len(a._rows.stores['state',])<(100 if limit else 260)
        if not met: break
    assert k>15

@pytest.mark.parametrize('what', ['insert','sample'])
def test_interrupted_turn(what):
    "Whoever waits for the turn to end need not wait for ever"
    for k in itertools.count(1):
        limiter = RateLimiter(1., error_buffer=5.)
        with limiter.insert(): pass
        def use():
            with getattr(limiter, what)(): pass
        met = at_line(k, ctrl_c, use)[1]
        same(limiter.doing, dict(insert=0, sample=0, delete=0))
        if not met: break
    assert k>20

# %% Vectors and episodes
def vector_step(t, mode):
    "Step `t` of three environments whose episodes have 3, 4 and 5 steps; they show 1000·environment+50·episode+step"
    n = np.arange(3,6)
    def at(t):
        period = n+(mode=='next_step') # a step that only resets
        return 1000*np.arange(3)+50*(t//period)+t%period, t%period
    (was,_),(nxt,s) = at(t),at(t+1)
    over = s==n if mode=='next_step' else s==0
    final = [np.array([o+1.], np.float32) if e else None for o,e in zip(was, over)]
    infos = {} if mode=='next_step' or not over.any() else dict(final_obs=np.array([*final, None], object)[:3], _final_obs=over)
    def column(o): return o[:,None].astype(np.float32)
    return dict(obs=column(was), actions=[0]*3, rewards=[1.]*3, terminated=over, truncated=[False]*3, next_obs=column(nxt), infos=infos, autoreset=mode)

@pytest.mark.parametrize('mode', ['next_step','same_step'])
@pytest.mark.parametrize('t', [11, *(pytest.param(o, marks=pytest.mark.slow) for o in (12, 13, 14))])
def test_interrupted_vector(t, mode):
    "Once its rows are stored a step counts: the next one continues their episodes, and one that only resets is no row"
    for k in itertools.count(1, 5):
        er = ExperienceReplay(bs=6, max_sz=90, warmup_sz=1, n_step=3)
        for i in range(t): er.add_vector(**vector_step(i, mode))
        n = len(er)
        met = at_line(k, ctrl_c, lambda: er.add_vector(**vector_step(t, mode)))[1]
        if not met: break
        for i in range(t+(len(er)>n), t+9): er.add_vector(**vector_step(i, mode))
        batch = er.sample(99)[0]
        same((batch['next_state']-batch['state']).view(-1).long().tolist(), batch['n_steps'].view(-1).tolist())
        same(er['step'].view(-1).tolist(), (er['next_state']%50).view(-1).long().tolist())
        same(len({*er['episode_id'].view(-1).tolist()}), len({*(er['state']//50).view(-1).tolist()}))
    assert k>200

def test_interrupted_vector_that_goes_on():
    "A step of arrays in which no episode ends or begins, which takes the short way, counts once its rows are stored, too"
    def arrays(t): return {k: np.asarray(v) if type(v) is list else v for k,v in vector_step(t, 'next_step').items()}
    t = 21 # there each of the three is in the midst of an episode
    for k in itertools.count(1):
        er = ExperienceReplay(bs=6, max_sz=90, warmup_sz=1, n_step=3)
        for i in range(t): er.add_vector(**arrays(i))
        step,n = arrays(t),len(er)
        assert er.vectors.going_on('next_step', *(step[o] for o in ('obs','next_obs','terminated','truncated')))
        met = at_line(k, ctrl_c, lambda: er.add_vector(**step))[1]
        if not met: break
        for i in range(t+(len(er)>n), t+9): er.add_vector(**arrays(i))
        same(er['step'].view(-1).tolist(), (er['next_state']%50).view(-1).long().tolist())
        same(len({*er['episode_id'].view(-1).tolist()}), len({*(er['state']//50).view(-1).tolist()}))
    assert k>50

@pytest.mark.parametrize('files', [False, True])
def test_interrupted_end_of_episode(files, tmp_path):
    "The running episode is stored, or still running; the next one is stored, too"
    for k in itertools.count(1, 3):
        er = EpisodeReplay(IndividualFileDataset(14, tmp_path/str(k)) if files else RingBufferDataset(14), 4, 2)
        for t in range(14): er.add_step(dict(obs=tensor(t)), done=t%4==3)
        met = at_line(k, ctrl_c, lambda: er.add_step(dict(obs=tensor(14)), done=True))[1]
        if not met: break
        er.add_step(dict(obs=tensor(15)), done=True)
        *_,a,b = [er.dataset[i]['obs'].tolist() for i in range(er.num_episodes)]
        assert (a, b) in (([8,9,10,11], [12,13,15]), ([12,13,14], [15])), (k, a, b)
    assert k>300

@pytest.mark.parametrize('mode', ['next_step','same_step'])
@pytest.mark.parametrize('t,every', [(11,14), *(pytest.param(o, 5, marks=pytest.mark.slow) for o in (11, 12, 13, 14))])
def test_interrupted_vector_of_episodes(t, every, mode):
    "Each episode is stored once, whole, and without a step of another"
    for k in itertools.count(1, every):
        er = EpisodeReplay(RingBufferDataset(200), 4, 2)
        for i in range(t): er.add_vector(**vector_step(i, mode))
        n = er.vectors.vectors[0]['running'].t
        met = at_line(k, ctrl_c, lambda: er.add_vector(**vector_step(t, mode)))[1]
        if not met: break
        for i in range(t+(er.vectors.vectors[0]['running'].t>n), t+12): er.add_vector(**vector_step(i, mode))
        all = [er.dataset[i]['obs'].view(-1).long().tolist() for i in range(er.num_episodes)]
        for o in all: same(o, [*range(o[0], o[0]+o[0]//1000+4)])
        same(len({o[0] for o in all}), len(all))
    assert k>250

def test_interrupted_where_priorities_move():
    "A ring that has grown keeps the priorities of its old rows, which are drawn as ever"
    n = torch.arange(1024.)[:,None] # as many as fit before it grows
    for k in itertools.count(1):
        ring,prio = Ring(),Prioritized(alpha=1., seed=0)
        ring.extend(dict(n=n))
        ring.draw(prio, 4)
        prio.update(ring, torch.arange(1024), 1+n[:,0])
        ring.extend(dict(n=n[:3]))
        met = at_line(k, ctrl_c, lambda: ring.draw(prio, 4), only=('follow','update'))[1]
        ring.draw(prio, 4)
        assert torch.allclose(prio.tree[:1024], 1+n[:,0].double()), (k, met)
        if not met: break
    assert k>9

def test_interrupted_behind_a_cut():
    "Frames from before a cut are in no later stack, also after the cut's own row is gone"
    def see(env, *ts): # single frames, whose first one comes twice in its stack
        for t in ts: er.add(state=np.full((3,3), t, np.uint8), next_state=np.full((3,3), t+1, np.uint8), env_id=env, terminated=False, truncated=False)
    for k in itertools.count(1):
        er = ExperienceReplay(max_sz=6, warmup_sz=1, frame_stack=2, frame_margin=20)
        see(0, 0, 1, 2, 3)
        er.cut()
        met = at_line(k, ctrl_c, lambda: see(1, 100), only=('_note','<dictcomp>'))[1]
        see(1, *range(er.ring.total+96, 107))
        see(0, 4)
        same((er['state'][-1,:,0,0].tolist(), k), ([4,4], k))
        if not met: break
    assert k>4

@pytest.mark.parametrize('path', [False, True])
def test_interrupted_first_episode(path, tmp_path):
    "Whatever becomes of it, the next one is stored"
    for k in itertools.count(1, 3):
        ds = RingBufferDataset(20, half_precision=True, path=tmp_path/str(k) if path else None)
        met = at_line(k, ctrl_c, lambda: ds.add_episode(dict(obs=torch.arange(3.))))[1]
        ds.add_episode(dict(obs=torch.arange(4.)))
        same([ds[i]['obs'].tolist() for i in range(ds.num_episodes)][-1], [0,1,2,3])
        if not met: break
    assert k>150

@pytest.mark.parametrize('mode', ['next_step','same_step'])
def test_interrupted_vector_begins_anew(mode):
    "The last observation of an episode that is left off is that of its last step, not of one that never came"
    for k in itertools.count(1, 5):
        er = EpisodeReplay(RingBufferDataset(200), 4, 2)
        for i in range(2): er.add_vector(**vector_step(i, mode))
        met = at_line(k, ctrl_c, lambda: er.add_vector(**vector_step(2, mode)))[1]
        for i in range(7): er.add_vector(**vector_step(i, mode)) # all environments were reset
        for o in (er.dataset[i]['obs'].view(-1).long().tolist() for i in range(er.num_episodes)): same(o, [*range(o[0], o[0]+len(o))])
        if not met: break
    assert k>250

def test_interrupted_before_two_datasets():
    "An episode that a larger dataset has got already does not come to it again"
    for k in itertools.count(1, 7):
        small,large = RingBufferDataset(30),RingBufferDataset(200)
        small.extend(large, 2, 0)
        er = EpisodeReplay(small, 4, 2)
        for t in range(10): er.add_step(dict(obs=tensor(t)), done=t%4==3)
        met = at_line(k, ctrl_c, lambda: er.add_step(dict(obs=tensor(10)), done=True))[1]
        er.add_step(dict(obs=tensor(11)), done=True)
        in_small,in_large = ([o[i]['obs'].tolist() for i in range(o.num_episodes)] for o in (small, large))
        assert in_large[2:] in ([[8,9,10], [11]], [[8,9,11]]) and all(in_small.count(o)<2 and o in in_large for o in in_small), (k, in_small, in_large)
        assert in_small[-1]==in_large[-1]
        if not met: break
    assert k>500

@pytest.mark.filterwarnings('ignore::pytest.PytestUnraisableExceptionWarning') # where a lock is let go once more
def test_interrupted_at_the_end_of_a_checkpoint(tmp_path):
    "The next one need not wait, also while somebody keeps the traceback, as a notebook does"
    er,kept = ExperienceReplay(max_sz=20, warmup_sz=1),[]
    er+steps(0, 7)
    def save():
        try: er.checkpoint(tmp_path)
        except KeyboardInterrupt as e: kept.append(e)
    for k in itertools.count(1):
        if not at_line(k, ctrl_c, save, only=('one_writer','__exit__','let_go','_let_go'))[1]: break
        FileLock(tmp_path).let_go() # would say that another writer has locked it
    assert k>9 and kept

@pytest.mark.filterwarnings('ignore::pytest.PytestUnraisableExceptionWarning') # where a lock is let go once more
@pytest.mark.parametrize('name', ['save','put_files'])
def test_interrupted_lock_of_names(name, tmp_path):
    "Whoever saves next need not wait for ever, also while somebody keeps the traceback, as a notebook does"
    bank,kept = bank_file(tmp_path, 0),[]
    bank = ExperienceBank.load(bank)
    def write():
        try: bank.save(tmp_path/'b') if name=='save' else put_files({tmp_path/'b'/o: o for o in 'xy'})
        except KeyboardInterrupt as e: kept.append(e)
    (tmp_path/'b').mkdir()
    for k in itertools.count(1):
        met = at_line(k, ctrl_c, write, only=('_naming','_only_writer','_take','__init__','__enter__','__exit__','let_go','_let_go','is_of'))[1]
        for o in (tmp_path/'b').iterdir(): # would say that another writer has locked it
            if o.is_dir() or o.suffix=='.lock': FileLock(o).let_go()
        if not met: break
    assert k>15 and kept

@pytest.mark.parametrize('own', [False, True])
def test_interrupted_update(own):
    "The column `td_error` and the priorities are both as before, or both new"
    class Own(Prioritized): pass
    def new():
        er = ExperienceReplay(bs=6, max_sz=20, warmup_sz=1, sampler=(Own if own else Prioritized)(alpha=1., seed=0))
        er+steps(0, 13)
        er.update_td(torch.ones(13, 1), torch.arange(13))
        return er,*er.sample()
    for k in itertools.count():
        er,batch,idxs = new()
        met = at_line(k, ctrl_c, lambda: er.update_td(5.+batch['n'], idxs, batch['serial']))[1]
        assert torch.allclose(er.sampler.tree[:13], er['td_error'][:,0].double(), atol=1e-4), (k, met)
        if k and not met: break # the first one compiles
    assert k>60

def test_interrupted_update_that_is_refused():
    "Ctrl-C ends a program, also where an update of no rows would be an error that it goes on after"
    er = ExperienceReplay(bs=6, max_sz=20, warmup_sz=1)+steps(0, 13)
    for k in itertools.count(1):
        try: met = at_line(k, ctrl_c, lambda: er.update_td(torch.ones(2, 1), [0,99]), only=('_note_td','checked_td'))[1]
        except ExperienceReplayException: break # all lines ran
        assert met
    assert k>5
