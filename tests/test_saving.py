"Whatever happens to a save: two writers, a full disk, an interruption, hostile files; the folder holds one state or the next"
import errno, json, multiprocessing, os, random, resource, shutil, signal, stat, subprocess, sys, threading, time, zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from unittest import mock
import pytest, torch
from fastrl.memory import checkpoint, disk, files, saved, turn
from fastrl.memory.disk import LoadError, Saved, VERSION, pieces_of, read_manifest, save_memory, verify, write_manifest
from fastrl.memory.replay import ExperienceReplay, ExperienceReplayException
from fastrl.memory.ring import Ring
from fastrl.memory.sample import Prioritized, Uniform

def same(a, b): return a.keys()==b.keys() and all(torch.equal(a[k], b[k]) for k in a)

def one_row(**row):
    r = Ring(5)
    r.add(**(row or dict(obs=1.)))
    return r

class Stop(BaseException): "As Ctrl-C"
def interrupted(*args): raise Stop

# %% Rows that cannot be followed
@pytest.mark.parametrize('how', ['save','checkpoint'])
def test_mixed_up_rows(tmp_path, how):
    "Rows of several environments without their `env_id` give no n-step returns, but they are saved; what is loaded says so, too"
    er = ExperienceReplay(2, 9, 1, n_step=3, seed=0)
    def add(*states):
        for x in states: er.add(state=x, next_state=x+1., reward=1., terminated=False, truncated=False)
    add(0., 1., 2.)
    er.sample()
    add(7., 3., 8.)
    getattr(er, how)(tmp_path)
    again = ExperienceReplay.load(tmp_path)
    assert same(dict(again.memory), dict(er.memory))
    for m in (er, again):
        with pytest.raises(ExperienceReplayException, match='row 3 should follow row 2'): m.sample()

# %% Samplers of one's own
class Counts(Uniform):
    "Keeps how often each row was drawn: a form of numbers, and a constructor, of its own"
    def __init__(self, form=lambda o: o): super().__init__(); self.n,self.form = torch.zeros(9, dtype=torch.int64),form
    def beside(self, ring): return dict(n=self.form(self.n[:len(ring)]))
    def load_state_dict(self, state, ring=None, beside=None):
        super().load_state_dict(state, ring, beside)
        self.n[:len(ring)] = torch.as_tensor(beside['n']).long().reshape(-1)

@pytest.mark.parametrize('form', [lambda o: o, lambda o: o.numpy().astype('f4'), lambda o: o[:,None].short()])
def test_numbers_beside(tmp_path, form):
    "What a sampler keeps for each row is saved in any form, also by a checkpoint after which no TD error came"
    er = ExperienceReplay(2, 9, 1, sampler=Counts(form))
    for i in range(6): er.add(x=float(i))
    for i in range(4):
        er.sampler.n[:len(er)] += torch.arange(len(er))+i
        er.checkpoint(tmp_path)
        again = ExperienceReplay.load(tmp_path)
        assert torch.equal(again.sampler.n, er.sampler.n)
        if i==2: er,er.sampler.form = again,form # goes on in the same folder
        er.add(x=0.)
    assert torch.equal(er[2:5].sampler.n[:3], er.sampler.n[2:5])

def test_no_numbers_beside(tmp_path):
    "What is not a number for each row is refused when it is saved"
    er = ExperienceReplay(2, 9, 1, sampler=Counts(lambda o: torch.ones(len(o), 2)))
    for i in range(6): er.add(x=float(i))
    with pytest.raises(ValueError, match=r"`beside` should give one number per row, got torch.float32 \[6, 2\] for 'n'"): er.save(tmp_path)

# %% What changed, over many checkpoints
@pytest.mark.parametrize('frame_stack', [None, pytest.param(0, marks=pytest.mark.slow)])
@pytest.mark.parametrize('sampler', [Uniform,Prioritized])
@pytest.mark.parametrize('max_sz', [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_changes_of_joined_files(tmp_path, max_sz, sampler, frame_stack):
    "TD errors and priorities are loaded as they were, also where files of rows were just joined, and those of changes were not"
    rng = random.Random(0)
    er = ExperienceReplay(8, max_sz, 1, seed=0, sampler=sampler(seed=0), frame_stack=frame_stack)
    for t in range(70):
        x = torch.arange(4*t, 4*t+rng.randint(1, 4))[:,None]+torch.zeros(16)
        er+dict(state=x, next_state=x+1, terminated=x[:,:1]%3==0, truncated=x[:,:1]<0)
        batch,idxs = er.sample()
        er.update_td(torch.randn(8, 1), idxs, batch['serial'])
        er.checkpoint(tmp_path)
        if t%4>1: er.checkpoint(tmp_path) # nothing changed
        again = ExperienceReplay.load(tmp_path)
        assert same(dict(again.memory), dict(er.memory)), t
        assert same(again.sampler.beside(again.ring), er.sampler.beside(er.ring)), t

# %% Several at once
def test_load_beside_writer(tmp_path):
    "Loading a folder that somebody writes to gives one state or the next one"
    r = Ring(50)
    r.add(obs=0)
    r.checkpoint(tmp_path)
    stop = threading.Event()
    def write():
        while not stop.is_set():
            r.extend(dict(obs=torch.full((7,), float(r.total))))
            r.checkpoint(tmp_path) if r.total%3 else r.save(tmp_path)
    t = threading.Thread(target=write)
    t.start()
    try:
        for _ in range(50):
            o = Ring.load(tmp_path)
            first = {0:0.} | {i:float(i-(i-1)%7) for i in range(1, o.total+7)}
            assert o['obs'].tolist()==[first[i] for i in o.serial(slice(None)).tolist()]
    finally:
        stop.set()
        t.join()

def test_two_writers(tmp_path):
    "Two writers to one folder take turns"
    rs = [Ring(5) for _ in range(2)]
    def write(i):
        for _ in range(20): rs[i].add(obs=float(i)); rs[i].checkpoint(tmp_path)
    ts = [threading.Thread(target=write, args=(i,)) for i in range(2)]
    for o in ts: o.start()
    for o in ts: o.join()
    assert verify(tmp_path)==[] and len(set(Ring.load(tmp_path)['obs'].tolist()))==1

def test_torn(tmp_path):
    "Another process keeps writing into a full ring while it is saved: rows that it overwrites are left out"
    r = Ring(4, shared=True)
    r.extend(dict(obs=torch.arange(4.)))
    r.place.head[1] = 5 # it has begun row 4, in the place of row 0
    r.save(tmp_path)
    again = Ring.load(tmp_path)
    assert (again['obs'].tolist(), again.seams.cuts, again.seams.gaps)==([1.,2.,3.], [3], [0])

@pytest.mark.skipif(not Path('/proc/locks').exists(), reason='nobody knows who has a lock')
def test_stopped_in_a_save(tmp_path, caplog):
    "Whoever waits for a process that was stopped in the middle of a save says so once, with its number"
    code = """import sys, time
from pathlib import Path
from fastrl.memory.manifest import one_writer
with one_writer(Path(sys.argv[1])): print(flush=True); sys.stdin.read()"""
    other = subprocess.Popen([sys.executable, '-c', code, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        other.stdout.readline()
        other.send_signal(signal.SIGSTOP)
        with mock.patch.object(turn, '_patience_s', .2), ThreadPoolExecutor(1) as pool:
            saving = pool.submit(one_row().save, tmp_path)
            until = time.monotonic()+60
            while not caplog.records and time.monotonic()<until: time.sleep(.05)
            other.send_signal(signal.SIGCONT)
            other.communicate()
            saving.result(60)
    finally: other.kill()
    said, = caplog.messages
    assert f'still waiting for {tmp_path}, which process {other.pid} has locked' in said and f'kill -CONT {other.pid}' in said
    assert len(Ring.load(tmp_path))==1

# %% Failures
def test_full_disk(tmp_path):
    "A save that fails leaves what is there, and nothing half done"
    r,d = one_row(),tmp_path/'run'
    r.save(d)
    before,(soft,hard) = sorted(d.iterdir()),resource.getrlimit(resource.RLIMIT_FSIZE)
    big = one_row(obs=torch.zeros(100_000))
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(OSError, match='the state that was saved there before is unchanged'): big.save(d)
    finally: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(d.iterdir())==before and same(Ring.load(d)[:], r[:])
    (tmp_path/'file').write_text('')
    with pytest.raises(OSError, match='could not be saved'): r.save(tmp_path/'file')

@pytest.mark.parametrize('fails', (1,2))
def test_disk_is_not_sure(tmp_path, fails):
    "If the disk refuses the names of the files, the error says which state is there: the one before, or the new one"
    r,fsync,folders = one_row(),os.fsync,[]
    r.save(tmp_path)
    def refuse(fd):
        if stat.S_ISDIR(os.fstat(fd).st_mode): folders.append(fd)
        if len(folders)==fails: raise OSError(errno.EIO, 'Input/output error')
        fsync(fd)
    new = one_row(obs=torch.tensor([9.]))
    with mock.patch.object(os, 'fsync', refuse), pytest.raises(OSError) as e: new.save(tmp_path)
    assert ('before is unchanged' in str(e.value), 'save it again' in str(e.value))==(fails==1, fails==2)
    assert same(Ring.load(tmp_path)[:], (r if fails==1 else new)[:])

@pytest.mark.parametrize('module,name', [(checkpoint,'write_manifest'), (checkpoint,'_write_rows'), (files,'sync')],
                         ids=lambda o: getattr(o, '__name__', o))
def test_interrupted(tmp_path, module, name):
    r = one_row()
    r.save(tmp_path)
    before = sorted(tmp_path.iterdir())
    with mock.patch.object(module, name, interrupted), suppress(Stop): r.save(tmp_path)
    assert same(Ring.load(tmp_path)[:], r[:]) and sorted(tmp_path.iterdir())==before

def test_cut_after_it_was_read(tmp_path):
    "Files of changes and of states are read at once: if one becomes shorter later, nobody misses it"
    er = ExperienceReplay(2, 9, 1, sampler=Prioritized(seed=0))
    er+dict(obs=torch.arange(5.)[:,None])
    er.checkpoint(tmp_path)
    er.update_td(torch.ones(3, 1), torch.arange(3))
    er.checkpoint(tmp_path, extra=torch.zeros(20_000))
    read,seen = saved.read_tensors,[]
    def read_and_cut(path, *args, **kwargs):
        res = read(path, *args, **kwargs)
        seen.append(path.name[:5])
        if seen[-1]=='marks' or seen.count('state')==2: os.truncate(path, 0) # the first time it is only looked at
        return res
    if not (pid := os.fork()):
        ok = False
        try:
            with mock.patch.object(saved, 'read_tensors', read_and_cut): again = ExperienceReplay.load(tmp_path)
            ok = same(again.memory, er.memory) and sorted(seen)[:1]+sorted(seen)[-2:]==['marks','state','state']
        finally: os._exit(not ok)
    assert os.waitpid(pid, 0)[1]==0

def test_stale_file(tmp_path):
    "On a network drive a file that another process replaces while it is read is a stale one: what came in its place is loaded"
    old,new = one_row(obs=1.),one_row(obs=2.)
    old.save(tmp_path)
    scan,left = Saved.scan,[]
    def stale(*args):
        if not left: return scan(*args)
        left.pop()()
        raise OSError(errno.ESTALE, 'Stale file handle')
    with mock.patch.object(Saved, 'scan', stale):
        left.append(lambda: None)
        with pytest.raises(OSError, match='Stale'): Ring.load(tmp_path)
        left.append(lambda: new.save(tmp_path))
        assert same(Ring.load(tmp_path)[:], new[:])

def test_folders_without_fsync(tmp_path):
    "Some shared folders cannot be flushed by themselves: what is saved there is saved"
    r,fsync = one_row(),os.fsync
    def no_folders(fd):
        if stat.S_ISDIR(os.fstat(fd).st_mode): raise OSError(errno.EINVAL, 'Invalid argument')
        fsync(fd)
    with mock.patch.object(os, 'fsync', no_folders):
        r.save(tmp_path)
        assert same(Ring.load(tmp_path)[:], r[:])
    with mock.patch.object(os, 'fsync', side_effect=OSError(errno.EINVAL, 'Invalid argument')), pytest.raises(OSError): r.save(tmp_path)

@pytest.mark.slow
def test_large_state(tmp_path):
    r = one_row()
    r.save(tmp_path)
    with pytest.raises(ValueError, match='in arrays'): save_memory(tmp_path, 'Ring', {}, r, state=list(range(3_000_000)))
    assert same(Ring.load(tmp_path)[:], r[:])

def test_broken_disk(tmp_path):
    "A disk that fails while the next part is copied raises, though it fails only once"
    r,calls = Ring(2**21),[]
    r.extend(dict(obs=torch.zeros(2**21, 8)))
    def once(fd, *args):
        calls.append(fd)
        if len(calls)==1: raise OSError(errno.EIO, 'the disk is broken')
    with mock.patch.object(os, 'posix_fadvise', once, create=True), pytest.raises(OSError, match='the disk is broken'):
        r.save(tmp_path)
    assert list(tmp_path.iterdir())==[]

def test_durable(tmp_path):
    "Files are on the disk before they are named, and named on the disk before `save` returns"
    did,fsync,replace = [],os.fsync,os.replace
    def synced(fd):
        fsync(fd)
        did.append(('sync', os.fstat(fd).st_ino))
    def replaced(old, new):
        did.append(('name', os.stat(old).st_ino))
        replace(old, new)
    r = one_row()
    with mock.patch.object(os, 'fsync', synced), mock.patch.object(os, 'replace', replaced):
        save_memory(tmp_path, 'Ring', {}, r, state=torch.zeros(2**16))
    names = {tmp_path.stat().st_ino: 'folder', **{o.stat().st_ino: o.name.split('-')[0] for o in tmp_path.iterdir()}}
    assert [f'{what} {names[o]}' for what,o in did if o in names]==[ # numba renames files of its own
        'sync rows', 'sync state', 'sync manifest.json', 'sync folder', 'name manifest.json', 'sync folder']

def test_folder_gone(tmp_path):
    "A folder that was removed is written again"
    r = Ring(5)
    for _ in range(2):
        r.add(obs=1.)
        r.checkpoint(tmp_path/'run')
        assert same(Ring.load(tmp_path/'run')[:], r[:])
        shutil.rmtree(tmp_path/'run')

def test_file_for_rows(tmp_path):
    "Loading never overwrites a file; a load that is killed in the middle leaves none that looks whole"
    one_row().save(tmp_path/'run')
    (tmp_path/'taken').write_text('precious')
    with pytest.raises(FileExistsError, match='written over'): Ring.load(tmp_path/'run', path=tmp_path/'taken')
    assert (tmp_path/'taken').read_text()=='precious'
    with mock.patch.object(disk, '_name_ring', interrupted), suppress(Stop): Ring.load(tmp_path/'run', path=tmp_path/'cut.ring')
    assert list(tmp_path.glob('cut.ring*'))==[]
    for kwargs,says in ((dict(on_error='ignore'), "should be 'raise' or 'skip'"), (dict(bs=4), r"\['bs'\] is none of them"),
                        (dict(mapped=True, shared=True), 'mapped rows stay'), (dict(mapped=True, path=tmp_path/'x.ring'), 'mapped rows stay')):
        with pytest.raises(ValueError, match=says): Ring.load(tmp_path/'run', **kwargs)

def test_mapped_rows_in_a_process(tmp_path):
    "Mapped rows cannot go to a process that is spawned: the error says to load them there, not to share them, which is refused"
    one_row().save(tmp_path/'run')
    ring = Ring.load(tmp_path/'run', mapped=True)
    with pytest.raises(RuntimeError, match='load it where it is needed'):
        multiprocessing.get_context('spawn').Process(target=print, args=(ring,)).start()
    with pytest.raises(RuntimeError, match='`shared=True`.* for a copy, as of a bank'):
        multiprocessing.get_context('spawn').Process(target=print, args=(one_row(),)).start()

# %% Other people's files
def test_files_of_others(tmp_path):
    "A save removes what a crash of ours left, and nothing else"
    r = one_row()
    r.save(tmp_path)
    for o in ('notes.txt','state-dict.safetensors','rows-0000000000000000.safetensors','manifest.json.1.2.new'):
        (tmp_path/o).write_text('mine')
    r.checkpoint(tmp_path)
    assert sorted(o.name.split('-')[0] for o in tmp_path.iterdir())==['manifest.json', 'notes.txt', 'rows', 'state']

@pytest.fixture
def ten(tmp_path):
    "Ten checkpoints of ten rows"
    r = Ring(100)
    for o in range(10):
        r.extend(dict(obs=torch.arange(10.)+10*o))
        r.checkpoint(tmp_path/'ten')
    return tmp_path/'ten'

@pytest.fixture
def edited(ten):
    "A copy of `ten` whose manifest says something else, with a checksum that fits"
    good = read_manifest(ten)
    def f(**kwargs):
        bad = ten.parent/'bad'
        shutil.rmtree(bad, ignore_errors=True)
        shutil.copytree(ten, bad)
        write_manifest(bad, {**json.loads(json.dumps(good)), **kwargs})
        return bad
    return f

def flip(path, at):
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)

def test_damaged_manifest(edited):
    "A damaged manifest may name files that are whole: nothing is removed because of it"
    bad = edited()
    flip(bad/'manifest.json', 99)
    before = sorted(bad.glob('rows-*'))
    with mock.patch.object(checkpoint, '_write_rows', lambda *_: 1/0), pytest.raises(ZeroDivisionError): one_row().save(bad)
    assert sorted(bad.glob('rows-*'))==before

def test_skipped(edited):
    "A memory loaded from a damaged folder is written again as a whole"
    bad = edited()
    flip(bad/pieces_of(read_manifest(bad), 'rows')[2]['file'], -1)
    left = Ring.load(bad, on_error='skip')
    assert left.skipped==10
    left.checkpoint(bad)
    assert same(Ring.load(bad)[:], left[:])

def frozen(**tensors): return dict(state=dict(tensor='a', dtype='int8', numpy=False), tensors=tensors)
def ring(**changes): return lambda good: dict(ring={**good['ring'], **changes})
def field(shape, dtype): return ring(fields=[[['obs'],shape,dtype,'obs']])
def first(**changes): return lambda good: dict(pieces=[{**good['pieces'][0], **changes}, *good['pieces'][1:]])

hostile = [
    (dict(version=VERSION+1), 'newer fastrl'), (dict(version='1'), 'is not a complete manifest'),
    (first(file='../x.safetensors'), 'not the name of a piece'), (first(file='/etc/passwd'), 'not the name of a piece'),
    (first(xxh64='x'*16), 'is not a checksum'), (first(xxh64=5), 'is not a complete manifest'), (first(crc=-1), 'is not a count'),
    (first(nbytes=-1), 'is not a count'), (first(stop=9), 'does not follow'),
    (lambda good: dict(pieces=good['pieces'][1:]), 'do not hold all rows'), (dict(pieces=[]), 'do not hold all rows'),
    (lambda good: dict(pieces=good['pieces'][:1]*3), 'does not follow'), (ring(capacity=0), 'the capacity is 0'),
    (ring(capacity=2**61), 'bytes when full, and there are'), (ring(total=2**61), 'cannot be the oldest'),
    (ring(total=1.5), 'is not a count'), (field([2**40], 'float32'), 'should have'), (field([], 'load'), 'is no dtype'),
    (field([], 'int32'), 'should have'), (ring(cuts=[-102]), 'is not a count'), (ring(cuts=[5]*9999), 'cuts'),
    (ring(fields=[]), 'of 0 fields'), (dict(state=dict(tensor='7', dtype='int8', numpy=False)), 'state of'),
    (dict(state=dict(tuple=5)), 'state of'), (frozen(a=['int8',[3],'AAA']), 'state of'),
    (frozen(a=['int8',[4],'AAAA']), 'state of'), (frozen(a=['load',[3],'AAAA']), 'state of'),
    (frozen(a=['int16',[1],'AAAA']), 'state of'), (frozen(a=['int8',[3],'AA!A']), 'state of'), (frozen(a=5), 'state of'),
    (frozen(a=['int8',None,'AAAA']), 'state of'), (frozen(b=['int8',[3],'AAAA']), 'state of'),
    ({**frozen(), 'tensors':[1]}, 'state of'), ({**frozen(), 'tensors':5}, 'state of'), (dict(tensors=None), 'no state'),
    (lambda good: dict(pieces=[*good['pieces'], {**good['pieces'][0], 'file':'state-0000000000000000.safetensors'}]), 'no state'),
    (dict(kind='Rign'), 'holds a saved Rign'), (dict(config=None), 'no state')]

@pytest.mark.parametrize('change,says', hostile, ids=range(len(hostile)))
def test_hostile_manifest(edited, ten, change, says):
    bad = edited(**(change(read_manifest(ten)) if callable(change) else change))
    with pytest.raises(LoadError, match=says): Ring.load(bad)

def test_no_manifest(edited):
    text = b'{"version": 1, "x": %s}' % (b'['*100_000+b']'*100_000)
    path = edited()/'manifest.json'
    path.write_bytes(b'{"checksum": "%08x", "memory": %s}\n' % (zlib.crc32(text), text))
    with pytest.raises(LoadError, match='is not a complete manifest'): Ring.load(path.parent)
    for o in (b'', b'{}', b'null', b'\xff\xfe', b'{"checksum": "00000000", "memory": {}}\n'):
        path.write_bytes(o)
        with pytest.raises(LoadError, match='is damaged'): Ring.load(path.parent)
    path.unlink()
    os.mkfifo(path) # a pipe, on which reading would wait for ever
    with pytest.raises(LoadError, match='is not a manifest'): Ring.load(path.parent)
    path.unlink()
    with pytest.raises(FileNotFoundError, match='no manifest'): Ring.load(path.parent)

def test_link(edited, ten):
    "Links out of the folder are not followed"
    name = pieces_of(read_manifest(ten), 'rows')[0]['file']
    bad = edited()
    (bad/name).unlink()
    (bad/name).symlink_to(ten/name)
    with pytest.raises(LoadError, match='is not an ordinary file'): Ring.load(bad)

@pytest.mark.parametrize('times', (60, pytest.param(300, marks=pytest.mark.slow)))
def test_any_damage(edited, times):
    "A flipped bit or a cut anywhere in the folder is an error, and nothing is written"
    rng = random.Random(0)
    for i in range(times):
        bad = edited()
        o = rng.choice(sorted(bad.iterdir()))
        raw = bytearray(o.read_bytes())
        if i%2: raw = raw[:rng.randrange(len(raw))]
        else: raw[rng.randrange(len(raw))] ^= 1<<rng.randrange(8)
        o.write_bytes(raw)
        names = sorted(bad.iterdir())
        with pytest.raises(LoadError): Ring.load(bad)
        assert verify(bad) and sorted(bad.iterdir())==names

def test_no_pickle(ten):
    "No pickle is in the way of loading"
    class NoPickle:
        def find_spec(self, name, *_):
            if name in ('pickle','_pickle','dill','cloudpickle'): raise ImportError(f'{name} is blocked')
    gone = {k: sys.modules.pop(k) for k in ('pickle','_pickle') if k in sys.modules}
    sys.meta_path.insert(0, block := NoPickle())
    try: assert len(Ring.load(ten))==100
    finally:
        sys.meta_path.remove(block)
        sys.modules.update(gone)

# %% Files of every age and size
def as_before(folder):
    "Give the manifest of `folder` the checksums that versions up to 3 had"
    m = read_manifest(folder)
    for p in m['pieces']:
        del p['xxh64']
        p['crc'] = zlib.crc32((folder/p['file']).read_bytes())
    write_manifest(folder, {**m, 'version':3})

@pytest.mark.parametrize('old', [False,True])
def test_large_rows(tmp_path, old):
    "Rows that span blocks of a file, and files of several blocks, are loaded as they were; damage in any block is found"
    rng,cols = random.Random(0),dict(wide=torch.arange(12*700_000).view(12, 700_000).to(torch.int16), x=torch.arange(12.))
    for cap,n in ((12,12),(12,9),(None,5),(7,12)):
        r = Ring(cap)
        r.extend({k: v[:4] for k,v in cols.items()})
        if n>4: r.extend({k: v[4:n] for k,v in cols.items()})
        shutil.rmtree(tmp_path/'a', ignore_errors=True)
        r.save(tmp_path/'a')
        if old: as_before(tmp_path/'a')
        again = Ring.load(tmp_path/'a')
        assert same(again[:], r[:]) and again.total==r.total and verify(tmp_path/'a')==[]
    path, = (tmp_path/'a').glob('rows-*')
    assert path.stat().st_size>2**22
    for at in [0, 2**22-1, 2**22, -1, *(rng.randrange(path.stat().st_size) for _ in range(5))]:
        flip(path, at)
        with pytest.raises(LoadError, match='damaged|checksum'): Ring.load(tmp_path/'a')
        for where in (dict(path=tmp_path/'ring'), dict(shared=True)):
            with pytest.raises(LoadError): Ring.load(tmp_path/'a', **where)
        assert verify(tmp_path/'a') and sorted(os.listdir(tmp_path))==['a']
        flip(path, at)
    assert same(Ring.load(tmp_path/'a', path=tmp_path/'ring')[:], r[:])

def test_saved_before(tmp_path):
    "Memories that were saved before files had an XXH64 are loaded, and checkpoints go on in their folders"
    from fastrl.memory.replay import ExperienceReplay, ExperienceReplayException
    shutil.copytree(Path(__file__).parent/'saved_before', tmp_path/'old')
    rows,frames = tmp_path/'old'/'rows',tmp_path/'old'/'frames'
    assert [Saved(o).manifest['version'] for o in (rows, frames)]==[1,3] and verify(rows)==verify(frames)==[]
    er = ExperienceReplay.load(rows)
    assert er.memory['action'].flatten().tolist()==[8,9,10,3,4,5,6,7]
    assert er.memory['td_error'].flatten().tolist()==[0,0,0,0,1,2,0,0]
    assert er.sample()[1].tolist()==[1,1,5,7] # what the old library drew next
    er.add(state=[9.,9.], action=11, reward=0., next_state=[9.,9.], terminated=False, truncated=False)
    er.checkpoint(rows)
    assert {'crc' in p for p in read_manifest(rows)['pieces']}=={True,False} and verify(rows)==[]
    assert ExperienceReplay.load(rows).memory['action'].flatten().tolist()==[8,9,10,11,4,5,6,7]
    er = ExperienceReplay.load(frames)
    batch,idxs = er.sample()
    assert idxs.tolist()==[0,1,0,4] and batch['state'].shape==(4,2,3,3)
    assert torch.equal(batch['state'][:,1,0,0].float(), batch['reward'].flatten())
    flip(next(rows.glob('rows-*')), -1)
    with pytest.raises(LoadError, match='checksum'): ExperienceReplay.load(rows)

@pytest.mark.slow
def test_saved_at_exit(tmp_path):
    "A handler of `atexit` saves and loads memories of any size, when no thread can start any more"
    code = f"""
import atexit, torch
from fastrl.memory.experience_replay import ExperienceReplay
er = ExperienceReplay(4, 400_000, 1)
@atexit.register
def last():
    for k in (100, 160_000):
        er+dict(x=torch.randn(k,8), y=torch.arange(k))
        er.save(f'{tmp_path}/{{k}}')
        er.checkpoint('{tmp_path}/run')
        for o in (f'{tmp_path}/{{k}}', '{tmp_path}/run'): assert torch.equal(ExperienceReplay.load(o)['x'], er['x'])
    print('all there')
"""
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, timeout=300)
    assert done.stdout=='all there\n', done.stderr
