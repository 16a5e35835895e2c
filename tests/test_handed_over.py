"Memories that are handed to other processes, as arguments or through a queue: a copy is a copy, and what is shared is shared"
import copy, multiprocessing as mp, os, pickle, signal, threading, time
from functools import partial
from unittest.mock import patch
import numpy as np, pytest, torch
from torch import tensor
from fastrl.core import test_same as same
from fastrl import ExperienceReplay, Prioritized, Ring, Uniform
from fastrl.memory import checkpoint, turn
from fastrl.memory.serial import Serials
from fastrl.memory.table import Table
from fastrl.memory.replay import ExperienceReplayException, MemoryNotWarm
from fastrl.memory.bank import BankUnion, ExperienceBank, create_experience
from fastrl.memory.episodes import EpisodeReplay, IndividualFileDataset, RingBufferDataset, ScoreEvictor

def whole(replay): return [replay.dataset[i]['obs'].tolist() for i in range(replay.num_episodes)]
def begin(dataset, **kwargs):
    "A whole episode, and one that runs"
    res = EpisodeReplay(dataset, 4, 2, **kwargs)
    for i in range(5): res.add_step(dict(obs=tensor(i), x=torch.ones(2, dtype=torch.bfloat16)), done=i==1)
    return res

def test_copies_of_running_episodes():
    "A memory and its copy from a queue go on with the episode that was running, each with its own steps"
    q = mp.Queue()
    ours = begin(RingBufferDataset(50))
    q.put(ours)
    theirs = q.get()
    for i in range(3):
        for o,n in ((ours,10), (theirs,20)): o.add_step(dict(obs=tensor(n+i), x=torch.zeros(2, dtype=torch.bfloat16)), done=i==2)
    same(whole(ours), [[0,1],[2,3,4,10,11,12]])
    same(whole(theirs), [[0,1],[2,3,4,20,21,22]])

def add_and_draw(replay, told):
    "In a process of its own"
    for i in (5,6): replay.add_step(dict(obs=tensor(i), x=torch.ones(2, dtype=torch.bfloat16)), done=i==6)
    told.put((whole(replay), sorted({tuple(o) for _ in range(20) for o in replay.sample()['obs'].tolist()})))

@pytest.mark.slow
def test_spawned_writer_of_episodes():
    "It gets the running episode, ends it, and draws; this process sees its episodes"
    replay,ctx = begin(RingBufferDataset(50, shared=True), seed=0),mp.get_context('spawn')
    told = ctx.Queue()
    p = ctx.Process(target=add_and_draw, args=(replay, told))
    p.start()
    episodes,drawn = told.get(timeout=60)
    p.join()
    same(episodes, [[0,1],[2,3,4,5,6]])
    same(drawn, [(0,1),(2,3),(3,4),(4,5),(5,6)])
    same(whole(replay), episodes)

def worth(e): return e['obs'][0].item()*7919%13
def add(dataset, ks):
    for k in ks: dataset.add_episode(dict(obs=1000*k+torch.arange(k*31%7+1)))
def kept(scored, ks, capacity=30):
    "The numbers of the episodes that are there, once all of these came"
    res,n = [],lambda k: k*31%7+1
    for k in ks:
        while sum(map(n, res))+n(k)>capacity: res.remove(min(res, key=lambda o: 1000*o*7919%13) if scored else res[0])
        res.append(k)
    return [[1000*k+i for i in range(n(k))] for k in res]
def episodes(dataset): return [dataset[i]['obs'].tolist() for i in range(dataset.num_episodes)]

@pytest.mark.skipif('fork' not in mp.get_all_start_methods(), reason='this system cannot fork')
@pytest.mark.parametrize('scored', [False,True])
def test_writers_in_turns(scored):
    "A forked process adds episodes, and then this one does: the right ones go, and none gets the steps of another"
    ds = RingBufferDataset(30, shared=True, evictor=ScoreEvictor(worth) if scored else None)
    ds.add_episode(dict(obs=tensor([0])))
    for k in range(1, 60, 10):
        add(ds, range(k, k+5))
        p = mp.get_context('fork').Process(target=add, args=(ds, range(k+5, k+10)))
        p.start(); p.join()
        same(episodes(ds), kept(scored, range(k+10)))

@pytest.mark.skipif('fork' not in mp.get_all_start_methods(), reason='this system cannot fork')
@pytest.mark.parametrize('where', ['path','files','shared'])
def test_first_episode_elsewhere(where, tmp_path):
    "A process that was forked before the first episode, which another one adds, finds it in files, and is told that shared rows are not there"
    ctx = mp.get_context('fork')
    def forked(f):
        asked,told = ctx.Queue(),ctx.Queue()
        def run():
            asked.get()
            try: told.put(f())
            except ValueError as e: told.put(str(e)[:40])
        ctx.Process(target=run).start()
        return asked,told
    shared = 'another process has added the first epis'
    def make(d):
        return (IndividualFileDataset(30, d) if where=='files' else RingBufferDataset(30, path=d/'ring') if where=='path'
                else RingBufferDataset(30, shared=True))
    ds = make(tmp_path/'a')
    processes = [forked(f) for f in (lambda: episodes(ds), lambda: next(iter(ds.get_loader(1)))['obs'][0].tolist(), lambda: str(ds.fields),
                                     lambda: EpisodeReplay(ds, 1, None).is_empty)]
    add(ds, [3])
    for asked,told in processes: asked.put(0)
    whole = episodes(ds)
    same([told.get(timeout=60) for _,told in processes], [shared]*4 if where=='shared' else [whole, whole[0], str(ds.fields), False])
    ds = make(tmp_path/'b')
    asked,told = forked(lambda: add(ds, [3]))
    asked.put(0); told.get(timeout=60)
    if where=='shared':
        for f in (lambda: episodes(ds), lambda: add(ds, [4]), lambda: ds.can_draw(1)):
            with pytest.raises(ValueError, match=shared): f()
    else: same(episodes(ds), kept(False, [3]))

def spoil(dataset, told):
    try: add(dataset, [70])
    except ValueError as e: told.put(str(e))

@pytest.mark.slow
def test_spawned_writer_without_evictor():
    "An evictor stays behind, so a spawned process may draw, and not add: other episodes would go"
    ds,ctx = RingBufferDataset(30, shared=True, evictor=ScoreEvictor(worth)),mp.get_context('spawn')
    add(ds, range(10))
    told = ctx.Queue()
    p = ctx.Process(target=spoil, args=(ds, told))
    p.start()
    assert 'evictor' in told.get(timeout=60)
    p.join()
    add(ds, range(10, 20))
    same(episodes(ds), kept(True, range(20)))

def pass_on(dataset, path, told, deeper):
    "In a spawned process: what is there, saved; and the same in a process that this one spawns"
    spoil(dataset, told)
    dataset.save(path/str(deeper))
    told.put(episodes(dataset))
    if deeper:
        p = mp.get_context('spawn').Process(target=pass_on, args=(dataset, path, told, deeper-1))
        p.start(); p.join()

@pytest.mark.slow
def test_spawned_reader_without_evictor(tmp_path):
    "It sees the episodes in the order in which they came, and saves them so that they can be loaded; so does one that it spawns"
    ds,ctx = RingBufferDataset(30, shared=True, evictor=ScoreEvictor(worth)),mp.get_context('spawn')
    add(ds, range(50))
    told = ctx.Queue()
    p = ctx.Process(target=pass_on, args=(ds, tmp_path, told, 1))
    p.start()
    for deeper in (1,0):
        assert 'evictor' in told.get(timeout=60)
        same(told.get(timeout=60), kept(True, range(50)))
        same(episodes(RingBufferDataset.load(tmp_path/str(deeper), ScoreEvictor(worth))), kept(True, range(50)))
    p.join()

@pytest.mark.skipif('fork' not in mp.get_all_start_methods(), reason='this system cannot fork')
@pytest.mark.parametrize('where', ['shared','path'])
@pytest.mark.parametrize('scored', [False,True])
@pytest.mark.halved
def test_saved_beside_a_writer(scored, where, tmp_path):
    "What a process saves while another one adds episodes can be loaded, and none of them is torn"
    def long(k): return dict(obs=1000*k+torch.arange(k*31%7+10), x=torch.full((k*31%7+10, 40), k))
    def write():
        for k in range(1, 10**9):
            ds.add_episode(long(k))
            time.sleep(.0002)
    ds = RingBufferDataset(600, shared=where=='shared', path=tmp_path/'ring' if where=='path' else None,
                           evictor=ScoreEvictor(worth) if scored else None)
    ds.add_episode(long(0))
    same(dict(ds[0]), long(0))
    if where=='path': ds.writing = None # the process that adds has the lock
    p = mp.get_context('fork').Process(target=write)
    p.start()
    try:
        while ds.num_episodes<10: pass
        for _ in range(12):
            replay = EpisodeReplay(ds, 2)
            replay.checkpoint(tmp_path/'saved')
            again = EpisodeReplay.load(tmp_path/'saved', evictor=ds.evictor).dataset
            assert again.num_episodes
            for i in range(again.num_episodes): same(dict(again[i]), long(int(again[i]['obs'][0])//1000))
    finally: p.kill(); p.join()

@pytest.mark.skipif('fork' not in mp.get_all_start_methods(), reason='this system cannot fork')
@pytest.mark.parametrize('copied', [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))], ids=['deepcopy','pickle'])
@pytest.mark.parametrize('scored', [False,True])
@pytest.mark.halved
def test_episodes_copied_beside_a_writer(scored, copied):
    "A copy of episodes to which another process adds has whole ones, and goes on by itself"
    def long(k): return dict(obs=1000*k+torch.arange(k*31%7+10), x=torch.full((k*31%7+10, 400), k))
    def write():
        for k in range(1, 10**9): ds.add_episode(long(k))
    ds = RingBufferDataset(600, shared=True, evictor=ScoreEvictor(worth) if scored else None)
    ds.add_episode(long(0))
    replay = EpisodeReplay(ds, 8, 5)
    p = mp.get_context('fork').Process(target=write)
    p.start()
    try:
        while ds.num_episodes<30: pass
        for _ in range(20):
            theirs = copied(replay)
            assert theirs.num_episodes
            theirs.dataset.add_episode(long(10**6))
            for i in range(theirs.num_episodes): same(dict(e := theirs.dataset[i]), long(int(e['obs'][0])//1000))
            drawn = theirs.sample()
            assert (drawn['x']==drawn['obs'][...,None]//1000).all()
    finally: p.kill(); p.join()

def tell(dataset, asked, told):
    for _ in range(2):
        asked.get(timeout=60)
        told.put(episodes(dataset))

@pytest.mark.slow
def test_spawned_reader_of_files(tmp_path):
    "It sees episodes in files, also those that come later, though nobody called `share`"
    ds,ctx = IndividualFileDataset(30, tmp_path),mp.get_context('spawn')
    add(ds, range(9))
    asked,told = ctx.Queue(),ctx.Queue()
    p = ctx.Process(target=tell, args=(ds, asked, told))
    p.start()
    for n in (9,20):
        add(ds, range(9, n))
        asked.put(0)
        same(told.get(timeout=60), kept(False, range(n)))
    p.join()

# %% Two writers
def memory_of(where, folder):
    "With rows that say which process wrote them"
    kw = dict(path=folder/'rows') if where=='path' else dict(shared=True)
    if where=='frames': kw.update(frame_stack=2)
    shape = (4,4) if where=='frames' else (4,)
    one,flag = ((1,), torch.int64),((1,), torch.bool)
    return ExperienceReplay(4, 50, 1, schema=dict(state=(shape, torch.float32), next_state=(shape, torch.float32), of=one,
                            terminated=flag, truncated=flag), **kw)

def row(m, of):
    shape = (4,4) if m.frame_stack else (4,)
    return dict(state=np.full(shape, of, np.float32), next_state=np.full(shape, of, np.float32), of=of, terminated=False, truncated=True)

def fill(m, of, asked, told):
    "Writes a row, or three, whenever it is asked to"
    while n := asked.get(timeout=60):
        try:
            if n==1: m.add(**row(m, of))
            else: m+{k: np.stack([v]*n) for k,v in row(m, of).items()}
            told.put('')
        except ExperienceReplayException as e: told.put(str(e))

@pytest.mark.parametrize('how', [pytest.param(o, marks=() if o=='fork' else pytest.mark.slow) for o in mp.get_all_start_methods()])
@pytest.mark.parametrize('where', ['shared','path','frames'])
def test_two_writers(where, how, tmp_path):
    "The first of two writers is told before it writes anything, and may go on once the other has ended, apart from its rows"
    ctx,m,rows = mp.get_context(how),memory_of(where, tmp_path),[]
    def start(of):
        asked,told = ctx.Queue(),ctx.Queue()
        p = ctx.Process(target=fill, args=(m, of, asked, told)); p.start()
        def write(n, ok=True):
            asked.put(n)
            err = told.get(timeout=120)
            assert ok==(not err) and (ok or 'only one process adds to a memory' in err), err
            rows.extend([of]*n*ok)
            same(m.ring['of'][:,0].tolist(), rows)
            if where=='path': same(ExperienceReplay(4, 50, 1, path=tmp_path/'rows').ring['of'][:,0].tolist(), rows)
        return p,write,asked
    m.add(**row(m, 0)); rows.append(0)
    (p,one,_),(q,two,asked) = start(1),start(2)
    for n in (1,1,3): one(n)
    for n in (1,1,3): two(n)
    for n in (1,3): one(n, False)
    with pytest.raises(ExperienceReplayException, match='adds to a memory'): m.add(**row(m, 0))
    p.kill(); p.join() # it was not in turn
    two(1)
    with pytest.raises(ExperienceReplayException, match='adds to a memory'): m+{k: np.stack([v]) for k,v in row(m, 0).items()}
    q.kill(); q.join()
    m.add(**row(m, 0)); rows.append(0)
    same(m.ring['of'][:,0].tolist(), rows)
    assert len(rows)-1 in m.ring.seams.cuts # it follows none of those rows

def last_number(e): return float(e['obs'][-1])
def fill_episodes(ds, asked, told):
    while n := asked.get(timeout=60): told.put(ds.add_episode(dict(obs=torch.full((5,), n))))

@pytest.mark.parametrize('how', [pytest.param(o, marks=() if o=='fork' else pytest.mark.slow) for o in mp.get_all_start_methods()])
@pytest.mark.parametrize('scored', [False, True])
def test_two_writers_of_episodes(scored, how):
    "The first of two writers is told before an episode goes; once the other has ended it goes on"
    if scored and how!='fork': return # a spawned process gets no evictor
    ctx,ds = mp.get_context(how),RingBufferDataset(15, evictor=ScoreEvictor(last_number) if scored else None, shared=True)
    def add(n): ds.add_episode(dict(obs=torch.full((5,), n)))
    def there(): return [ds[i]['obs'][0].item() for i in range(ds.num_episodes)]
    for n in (1,2,3): add(n)
    asked,told = ctx.Queue(),ctx.Queue()
    p = ctx.Process(target=fill_episodes, args=(ds, asked, told)); p.start()
    for n in (4,5,6,7):
        asked.put(n)
        told.get(timeout=120)
        with pytest.raises(ValueError, match='only one process adds to a memory'): add(9)
        same(there(), [n-2,n-1,n])
    p.kill(); p.join()
    add(9)
    same(there(), [6,7,9])

@pytest.mark.skipif('fork' not in mp.get_all_start_methods(), reason='this system cannot fork')
@pytest.mark.parametrize('make', [IndividualFileDataset, lambda n, path: RingBufferDataset(n, path=path)], ids=['files','rows'])
def test_killed_beside_its_workers(make, tmp_path):
    "The next writer need not wait until the workers of a killed one have noticed its death"
    ctx,path = mp.get_context('fork'),tmp_path/'kept'
    drawn = ctx.Event()
    def write():
        ds = make(99, path)
        for n in range(3): ds.add_episode(dict(obs=torch.full((5,), n)))
        batches = iter(ds.get_loader(2, 3, num_workers=2, context='fork'))
        for _ in range(4): next(batches)
        drawn.set()
        time.sleep(60)
    p = ctx.Process(target=write); p.start()
    assert drawn.wait(60)
    p.kill(); p.join()
    ds = make(99, path)
    ds.add_episode(dict(obs=torch.full((5,), 3)))
    same([ds[i]['obs'][0].item() for i in range(4)], [*range(4)])

def begin_slowly(add, begun, asked):
    "Another process adds while this one is in the middle of its first write"
    end = Serials.end
    def slow(*args):
        begun.set()
        asked.wait(60)
        time.sleep(.2)
        end(*args)
    Serials.end = slow
    add(1)

@pytest.mark.skipif('fork' not in mp.get_all_start_methods(), reason='this system cannot fork')
@pytest.mark.parametrize('where', ['shared','path','frames','episodes','scored'])
def test_first_writes_at_once(where, tmp_path):
    "Two processes write for the first time, at once: the rows of both are there"
    ctx = mp.get_context('fork')
    if where in ('episodes','scored'):
        ds = RingBufferDataset(15, evictor=ScoreEvictor(last_number) if where=='scored' else None, shared=True)
        def add(of): ds.add_episode(dict(obs=torch.full((5,), of)))
        def there(): return sorted(ds[i]['obs'].tolist() for i in range(ds.num_episodes))
        want = [[i]*5 for i in range(3)]
    else:
        m = memory_of(where, tmp_path)
        def add(of): m.add(**row(m, of))
        def there(): return sorted(m.ring['of'][:,0].tolist())
        want = [0,1,2]
    add(0)
    begun,asked = ctx.Event(),ctx.Event()
    p = ctx.Process(target=begin_slowly, args=(add, begun, asked)); p.start()
    assert begun.wait(20)
    def add_then():
        asked.set()
        add(2)
    q = ctx.Process(target=add_then); q.start()
    p.join(); q.join()
    same((p.exitcode, q.exitcode, there()), (0, 0, want))

@pytest.mark.skipif(not os.path.exists('/proc/self/stat'), reason='nobody can tell whether a process was stopped')
@pytest.mark.parametrize('where', ['shared','path'])
def test_stopped_while_it_writes(where, tmp_path):
    "A writer that was stopped in the middle of its rows writes the rest of them when it continues: nobody takes over before that"
    m = memory_of(where, tmp_path)
    def add_and_stop():
        end = Serials.end
        def stop_and_end(*args):
            os.kill(os.getpid(), signal.SIGSTOP)
            end(*args)
        m.add(**row(m, 0))
        Serials.end = stop_and_end
        m+{k: np.asarray(v)[None] for k,v in row(m, 1).items()}
    p = mp.get_context('fork').Process(target=add_and_stop); p.start()
    os.waitpid(p.pid, os.WUNTRACED)
    other = mp.get_context('fork').Process(target=refused, args=(lambda: m.add(**row(m, 2)),)); other.start(); other.join()
    os.kill(p.pid, signal.SIGCONT); p.join()
    same((other.exitcode, p.exitcode), (0, 0))
    m.add(**row(m, 3))
    same(m.ring['of'][:,0].tolist(), [0,1,3])

def refused(add):
    with patch.object(turn, '_patience_s', .1), pytest.raises(ExperienceReplayException, match='was stopped in the middle'): add()

@pytest.mark.skipif('fork' not in mp.get_all_start_methods(), reason='this system cannot fork')
def test_counted_after_a_kill():
    "Where a writer was killed while it counted a new episode, the counts are those of the episodes that are there"
    ds = RingBufferDataset(15, shared=True)
    ds.add_episode(dict(obs=torch.zeros(5)))
    def end_within():
        Table.next_id = property(Table.next_id.fget, lambda *_: os._exit(1))
        ds.add_episode(dict(obs=torch.ones(4)))
    p = mp.get_context('fork').Process(target=end_within); p.start(); p.join()
    same((p.exitcode, ds.num_episodes, ds.num_timesteps, ds.episode_lengths), (1, 1, 5, [5]))
    ds.add_episode(dict(obs=torch.ones(3)))
    same((ds.num_episodes, ds.num_timesteps, ds.episode_lengths), (2, 8, [5,3]))

# %% Copies beside a process
def numbered(i):
    "Rows whose columns all tell their numbers"
    i = np.asarray(i)
    state,flag = np.repeat(i[:,None]%1000, 4, 1).astype('f4'),np.zeros((len(i),1), bool)
    return dict(state=state, next_state=np.repeat((i[:,None]+1)%1000, 4, 1).astype('f4'), i=i[:,None],
                wide=np.repeat(i[:,None], 2000, 1), terminated=flag, truncated=i[:,None]%7==6)

def numbers_of(rows):
    "The numbers of `rows`, if none of them is torn"
    want = numbered(i := rows['i'][:,0].numpy())
    for k,v in want.items(): assert (rows[k].numpy()==v).all(), k
    return np.sort(i)

@pytest.mark.skipif('fork' not in mp.get_all_start_methods(), reason='this system cannot fork')
@pytest.mark.parametrize('copied', [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))], ids=['deepcopy','pickle'])
@pytest.mark.parametrize('frames', [{},dict(frame_stack=0)], ids=['rows','frames'])
@pytest.mark.parametrize('sampler', [Uniform, pytest.param(Prioritized, marks=pytest.mark.slow)])
@pytest.mark.halved
def test_copied_beside_a_writer(sampler, frames, copied):
    "What another process writes while a memory is copied is in no row of the copy, which goes on by itself"
    flag = (1,),torch.bool
    m = ExperienceReplay(8, 300, 1, sampler=sampler(seed=0), shared=True, **frames, schema=dict(
        state=((4,), torch.float32), next_state=((4,), torch.float32), i=((1,), torch.int64), wide=((2000,), torch.int64),
        terminated=flag, truncated=flag))
    m+numbered(range(300))
    def write():
        for n in range(300, 10**9, 3):
            m+numbered(range(n, n+3))
            time.sleep(.0002)
    p = mp.get_context('fork').Process(target=write); p.start()
    try:
        some = 0
        while m.ring.total==300: pass
        for _ in range(10):
            theirs = copied(m)
            if not len(theirs): continue # with a warning
            some += 1
            i = numbers_of(theirs[:].memory)
            numbers_of(theirs.sample(32)[0])
            numbers_of(theirs.memory)
            assert (np.diff(i)==1).all()
            theirs+numbered(range(i[-1]+1, i[-1]+6))
            assert (numbers_of(theirs[:].memory)[-6:]==range(i[-1], i[-1]+6)).all()
        assert some
    finally: p.kill(); p.join()

class Fast(list):
    "When it is saved, another process adds so many rows"
    def __init__(self, m, n): self.m,self.n = m,n
    def __iter__(self): self.m+numbered(range(self.n, 2*self.n)); return iter(())

@pytest.fixture(params=[{},dict(frame_stack=0)], ids=['rows','frames'])
def beside(request, tmp_path):
    "A memory of 50 rows, as its reader and its writer have it, and what was saved of it"
    m,writer = [ExperienceReplay(8, 50, 1, path=tmp_path/'rows', **request.param, schema=dict(
        state=((4,), torch.float32), next_state=((4,), torch.float32), i=((1,), torch.int64),
        wide=((2000,), torch.int64), terminated=((1,), torch.bool), truncated=((1,), torch.bool))) for _ in range(2)]
    writer+numbered(range(50))
    return m, writer, lambda: numbers_of(ExperienceReplay.load(tmp_path/'saved')[:].memory).tolist()

@pytest.mark.parametrize('how', ['save','checkpoint'])
def test_saved_beside_a_faster_writer(beside, how, tmp_path, monkeypatch):
    "If it overwrites all rows before they are read, they are read again; in the end that is an error, and what was saved before stays"
    m,writer,there = beside
    getattr(m, how)(tmp_path/'saved')
    same(there(), [*range(50)])
    writer+numbered(range(50, 100))
    faster = [*range(100, 400, 50)]
    def later(*args, was=checkpoint.write_piece, **kwargs):
        if 'rows' in args and faster: writer+numbered(range(k := faster.pop(0), k+50))
        return was(*args, **kwargs)
    monkeypatch.setattr(checkpoint, 'write_piece', later)
    with pytest.raises(RuntimeError, match='overwritten all 50 rows'): getattr(m, how)(tmp_path/'saved')
    same((faster, there()), ([350], [*range(50)]))
    getattr(m, how)(tmp_path/'saved') # it is saved once the writer is slower
    same(there(), [*range(350, 400)])

@pytest.mark.parametrize('how', ['save','checkpoint'])
@pytest.mark.parametrize('when', ['flushed','state'])
def test_saved_before_they_are_overwritten(beside, how, when, tmp_path, monkeypatch):
    "What is overwritten while rows that were read go to the disk is not lost"
    m,writer,there = beside
    files = ['frames','rows'] if hasattr(m.ring, 'pool') else ['rows']
    def flush(*args, was=os.posix_fadvise):
        if files.pop()=='rows' and files: return was(*args) # frames are yet to be read
        for k in range(50, 350, 50): writer+numbered(range(k, k+50))
        monkeypatch.undo()
        return was(*args)
    if when=='flushed': monkeypatch.setattr(os, 'posix_fadvise', flush)
    getattr(m, how)(tmp_path/'saved', extra=Fast(writer, 50) if when=='state' else None)
    same(there(), [*range(50)])
    getattr(m, how)(tmp_path/'saved')
    same(there(), [*range(300, 350)] if when=='flushed' else [*range(50, 100)])

@pytest.mark.parametrize('named', [slice(None), 3, [0,3]])
def test_slice_beside_a_faster_writer(named, tmp_path):
    "If all rows are overwritten while they are counted, they are counted again"
    m,writer = [ExperienceReplay(4, 50, 1, path=tmp_path/'rows', schema=dict(a=((1,), torch.int64))) for _ in range(2)]
    writer+dict(a=torch.arange(50)[:,None])
    do = [lambda: writer+dict(a=torch.arange(50, 100)[:,None])]
    def holds(i, serials=None):
        if serials is None: serials = m.ring.serial(i)
        if do: do.pop()()
        return Ring.holds(m.ring, i, serials)
    m.ring.holds = holds
    same(m[named].memory['a'][:,0].tolist(), torch.arange(50, 100)[named].reshape(-1).tolist())
    with pytest.raises(IndexError): m[50]

# %% Copies beside a thread
class Meanwhile:
    "When it is copied, another thread does something, or waits for the copy to be done"
    do = None
    def __getstate__(self):
        if not self.do: return {}
        t = threading.Thread(target=self.do); t.start(); t.join(.3)
        self.waited,self.do = t.is_alive(),None
        return {}

class Interrupted(RingBufferDataset):
    def __getstate__(self):
        self.now.__getstate__()
        return super().__getstate__()

@pytest.mark.parametrize('copied', [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))], ids=['deepcopy','pickle'])
def test_episodes_copied_beside_a_thread(copied):
    "No episode of the copy is the beginning of another: what ended meanwhile does not go on"
    ours = begin(Interrupted(50))
    def on(o, n, last): o.add_step(dict(obs=tensor(n), x=torch.zeros(2, dtype=torch.bfloat16)), done=last)
    now = ours.dataset.now = Meanwhile()
    now.do = lambda: [on(ours, 5, True), on(ours, 6, False)]
    theirs = copied(ours)
    for _ in range(2): on(theirs, 20, True)
    same(whole(theirs), [[0,1],[2,3,4,20],[20]] if now.waited else [[0,1],[2,3,4,5],[20]])
    while ours.num_episodes<2: pass
    same(now.waited, copied is copy.deepcopy)

@pytest.mark.parametrize('copied', [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))], ids=['deepcopy','pickle'])
def test_union_copied_beside_a_thread(copied):
    "Which rows a union has, and the rows, are of one moment, so that each row comes once"
    def bank(i):
        res = ExperienceBank()
        res.add(create_experience([float(i)], 0, 1., [0.], False))
        return res
    banks,ours = [bank(i) for i in range(3)],BankUnion()
    ours.add('0', banks[0])
    ours.left_out['x'] = now = Meanwhile()
    now.do = lambda: ours.add('1', banks[1])
    theirs = copied(ours)
    assert now.waited and len(theirs.bank)==1
    for o in (ours, theirs):
        for i,b in enumerate(banks): o.add(f'{i}', b)
        same(sorted(e.state[0] for e in o.bank), [0.,1.,2.])

# %% Files that two open before there are steps
def fill_files(path, scored, ready, go):
    ds = RingBufferDataset(30, path=path, evictor=ScoreEvictor(worth) if scored else None)
    ready.set(); go.wait(60)
    add(ds, range(9))

@pytest.mark.skipif('fork' not in mp.get_all_start_methods(), reason='this system cannot fork')
@pytest.mark.parametrize('first', ['reader','writer'])
@pytest.mark.parametrize('scored', [False,True])
def test_reader_of_files_before_the_first_episode(scored, first, tmp_path):
    "It takes nothing away from the process that is about to fill them, and sees what comes"
    def open_(): return RingBufferDataset(30, path=tmp_path/'ring', evictor=ScoreEvictor(worth) if scored else None)
    ctx = mp.get_context('fork')
    ready,go = ctx.Event(),ctx.Event()
    p = ctx.Process(target=fill_files, args=(tmp_path/'ring', scored, ready, go))
    if first=='reader': ds = open_()
    p.start(); ready.wait(60)
    if first=='writer': ds = open_()
    replay = EpisodeReplay(ds, 2, 1)
    assert replay.is_empty
    go.set(); p.join()
    same((p.exitcode, episodes(ds)), (0, kept(scored, range(9))))
    assert not replay.is_empty and replay.sample()['obs'].shape==(2,1)
    same(episodes(open_()), kept(scored, range(9)))

def test_files_before_the_first_episode(tmp_path):
    "Nobody has used them, so they may be opened with another capacity; and so may those whose steps are gone"
    at = tmp_path/'ring'
    for n,scored in ((30,False), (60,False), (60,True), (30,True)):
        ds = RingBufferDataset(n, path=at, max_episodes=5 if scored else None, evictor=ScoreEvictor(worth) if scored else None)
        same((ds.num_episodes, ds.capacity), (0, n))
    add(ds, range(3))
    held = ds
    at.unlink()
    held.writing.let_go(); del ds, held
    ds = RingBufferDataset(60, path=at)
    add(ds, [3])
    same(episodes(ds), kept(False, [3], 60))

@pytest.mark.parametrize('frames', [{},dict(frame_stack=0)], ids=['rows','frames'])
@pytest.mark.parametrize('first', ['len','sample','slice','memory','save','extend','sequences','loader'])
def test_reader_of_a_file_before_the_first_row(first, frames, tmp_path):
    "A memory that was opened without a schema before there was a file has the rows that another process writes there"
    def open_(**kw): return ExperienceReplay(4, 50, 1, path=tmp_path/'rows', **frames, **kw)
    reader,writer = open_(sampler=Prioritized(seed=0)),open_()
    same(len(reader), 0)
    reader.save(tmp_path/'before')
    with pytest.raises(MemoryNotWarm): reader.sample()
    writer+numbered(range(20))
    def saved():
        reader.save(tmp_path/'saved')
        return ExperienceReplay.load(tmp_path/'saved')
    if first=='len': same(len(reader), 20)
    elif first=='sample': numbers_of(reader.sample()[0])
    elif first=='slice': same(numbers_of(reader[:].memory).tolist(), [*range(20)])
    elif first=='memory': same(numbers_of(reader.memory).tolist(), [*range(20)])
    elif first=='save': same(numbers_of(saved()[:].memory).tolist(), [*range(20)])
    elif first=='extend': same(len(ExperienceReplay(4, 50, 1, **frames).extend(reader)), 20)
    elif first=='sequences': assert reader.sample_sequences(4, 3)[0]['i'].shape==(4,3,1)
    else: numbers_of(next(reader.loader())[0])
    writer+numbered(range(20, 60))
    numbers_of(reader.sample()[0])
    same(numbers_of(reader[:].memory).tolist(), [*range(10, 60)])

def test_reader_of_a_file_of_others(tmp_path):
    "It says so if the memory in the file is another one"
    reader = ExperienceReplay(4, 50, 1, path=tmp_path/'rows')
    ExperienceReplay(4, 60, 1, path=tmp_path/'rows')+numbered(range(20))
    with pytest.raises(ExperienceReplayException, match='has the capacity 60'): len(reader)

def read_only(o):
    "As joblib hands large arrays to its workers, and Ray all of them: in memory that can only be read"
    parts = []
    p = pickle.dumps(o, 5, buffer_callback=parts.append)
    assert parts
    return pickle.loads(p, buffers=[bytes(o.raw()) for o in parts])

def counted(i, frames):
    "Row `i` of episodes of ten steps"
    def obs(t): return np.array([[t,t+1],[t+1,t+2]] if frames else [t,t+1], np.uint8)
    return dict(state=obs(i%10), action=i%2, reward=float(i), next_state=obs(i%10+1), terminated=i%10==9, truncated=False)

@pytest.mark.parametrize('frames', [None,0,2])
@pytest.mark.parametrize('sampler', [Uniform,Prioritized,partial(Prioritized, eta=.9)])
def test_copy_in_memory_that_can_only_be_read(sampler, frames):
    "It is a copy like any other: it draws, learns and takes rows, and what it was made from stays"
    memory = ExperienceReplay(bs=8, max_sz=40, warmup_sz=1, seed=0, sampler=sampler(seed=0), n_step=3, frame_stack=frames)
    def use(m, first):
        for i in range(first, first+25): m.add(**counted(i, frames))
        for _ in range(5):
            batch,idxs = m.sample()
            m.update_td(batch['reward']-first, idxs, batch['serial'])
            m.sample_sequences(4, T=3)
        m.put('reward', [0], [[7.]])
    use(memory, 0); use(memory, 25)
    ours,state,theirs = copy.deepcopy(memory),pickle.dumps(memory, 5),read_only(memory)
    for o in (ours, theirs): use(o, 50)
    same(theirs.memory, ours.memory)
    for x,y in zip(theirs.sample(), ours.sample()): same(x, y)
    same(pickle.dumps(memory, 5)==state, True)
    same(len(theirs.clear()), 0)

@pytest.mark.parametrize('vector', [False,True])
def test_episodes_in_memory_that_can_only_be_read(vector):
    "Also episodes, and the steps of those that run"
    replay = EpisodeReplay(RingBufferDataset(50), 4, 2, seed=0)
    def use(r, ks):
        for i in ks: r.add_step(dict(obs=torch.full((2,), i) if vector else tensor(i)), done=[i%5==0]*2 if vector else i%5==4)
        r.sample()
    use(replay, range(33))
    ours,theirs = copy.deepcopy(replay),read_only(replay)
    for o in (ours, theirs): use(o, range(33, 70))
    same(whole(theirs), whole(ours))
    same(theirs.sample(), ours.sample())
    same(theirs.clear().num_episodes, 0)

def test_vector_steps_in_memory_that_can_only_be_read():
    "Also what is known between two steps of a vector environment, and the rows of banks"
    memory,bank = ExperienceReplay(bs=8, max_sz=40, warmup_sz=1, seed=0),ExperienceBank(max_size=5)
    def use(m, b, ts):
        for t in ts:
            obs,over = np.full((2,1), t, np.float32),np.array([t%4==3, t%5==4])
            m.add_vector(obs=obs, actions=[0,1], rewards=[t,t], terminated=over, truncated=over&False, next_obs=obs+1,
                         infos={}, autoreset='next_step')
            b.add(create_experience([float(t)], 0, 1., [t+1.], False))
    use(memory, bank, range(9))
    (ours,rest),(theirs,others) = copy.deepcopy((memory, bank)),read_only((memory, bank))
    use(ours, rest, range(9, 30)); use(theirs, others, range(9, 30))
    same(theirs.memory, ours.memory)
    same([e.state for e in others], [e.state for e in rest])

def play(memory, eps):
    "Episodes of environment 0 that are left off after four steps; each begins and ends with a black frame"
    def obs(ep, t): return np.full((4,4), 10*ep+t if 0<t<4 else 0, np.uint8)
    for ep in eps:
        for t in range(4): memory.add(state=obs(ep, t), next_state=obs(ep, t+1), reward=ep, terminated=False, truncated=False, env_id=0)

@pytest.mark.skipif('fork' not in mp.get_all_start_methods(), reason='this system cannot fork')
@pytest.mark.parametrize('method', ['fork', pytest.param('spawn', marks=pytest.mark.long)])
@pytest.mark.parametrize('where', ['shared','path'])
@pytest.mark.parametrize('frames', [{},dict(frame_stack=3)], ids=['rows','frames'])
def test_writers_one_after_another(frames, where, method, tmp_path):
    "A worker continues the episode of the process that started it, but nobody continues a worker's: neither the next one nor that process"
    def child(*eps):
        p = mp.get_context(method).Process(target=play, args=(memory, eps))
        p.start(); p.join()
        same(p.exitcode, 0)
    column = ((1,), torch.float32)
    schema = dict(state=((4,4), torch.uint8), next_state=((4,4), torch.uint8), reward=column, terminated=column, truncated=column, env_id=column)
    for ours,joined in (([],[]), ([1],[2] if method=='fork' or where=='shared' else [])): # a file that is opened begins anew
        memory = ExperienceReplay(64, 50, 1, n_step=2, schema=schema, seed=0, **frames,
                                  **(dict(shared=True) if where=='shared' else dict(path=tmp_path/f'{len(ours)}')))
        play(memory, ours); child(2); child(3); play(memory, [4])
        eps = [*ours,2,3,4]
        same(memory['reward'][:,0].tolist(), [float(ep) for ep in eps for _ in range(4)])
        same(memory.ring.seams.cuts, [4*i for i,ep in enumerate(eps) if i and ep not in joined])
        if frames: same([ep for i,ep in enumerate(eps) if memory['state'][4*i].any()], joined) # else all three are black
        batch,_ = memory.sample(500)
        last = batch['reward'].frac()>0 # of two steps, as gamma is .99
        same(batch['reward'][last].unique().shape[0], len(eps)+len(joined)) # two steps of each episode; and of a joined pair
