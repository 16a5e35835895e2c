"What saving takes and what loading touches, seen from outside of the process"
import os, subprocess, sys, tempfile
from ast import literal_eval
from pathlib import Path
from unittest import mock
import numpy as np, pytest, torch
from fastrl.core import leaves, path_name, test_same as same
from fastrl.memory import checkpoint, disk
from fastrl.memory.disk import Saved, load_memory, save_memory
from fastrl.memory.explore import replay_report
from fastrl.memory.replay import ExperienceReplay
from fastrl.memory.ring import Ring, nest, schema_fields

root = Path(__file__).parent.parent

def run(code, **kwargs):
    res = subprocess.run([sys.executable, '-c', code], cwd=root, capture_output=True, text=True, **kwargs)
    assert res.returncode==0, res.stdout+res.stderr
    return res.stdout

memory = '''
import os, sys, torch
from fastrl.memory.replay import ExperienceReplay
from fastrl.memory.ring import Ring
from fastrl.memory.buffer import ReplayBuffer
from fastrl.memory.sample import Prioritized
def filled(n=50):
    er = ExperienceReplay(bs=4, max_sz=40, warmup_sz=1, n_step=2, sampler=Prioritized(seed=0))
    for i in range(n): er.add(state=[i, i], reward=float(i), terminated=i%7==6, truncated=False)
    return er
'''

def test_no_pickle(tmp_path):
    "With pickle broken, and torch.load too, everything still loads"
    out = run(f'folder = {str(tmp_path)!r}\n'+memory+'''
er,buffer = filled(),ReplayBuffer(5, 2, 1, 3)
buffer.add([1.,2.], [0.], 1., [2.,3.], True, [0.]*3)
er.sample(), er.update_td(torch.ones(4,1), torch.arange(4)) # numba keeps what it compiled in pickles of its own: these are read now
er.checkpoint(folder+'/er'); er.ring.save(folder+'/ring'); buffer.save(folder+'/velora'); buffer.checkpoint(folder+'/buffer')
again = ExperienceReplay.load(folder+'/er'); again.sample(), again.sample_sequences(2, 3)
import _pickle, pickle
def broken(*args, **kwargs): raise AssertionError('a pickle was read')
for m in (pickle, _pickle):
    for o in ('load','loads','Unpickler'): setattr(m, o, broken)
pickle._Unpickler = pickle._load = pickle._loads = torch.load = broken
for o in (ExperienceReplay.load(folder+'/er'), ExperienceReplay.load(folder+'/er', path=folder+'/er.ring'), ExperienceReplay.load(folder+'/er', on_error='skip')): print(len(o.sample()[1]))
print(len(Ring.load(folder+'/ring', mapped=True)), len(ReplayBuffer.load(folder+'/velora/buffer_state')), len(ReplayBuffer.load(folder+'/buffer')))
''')
    assert out=='4\n4\n4\n40 1 1\n'

@pytest.mark.slow
@pytest.mark.skipif(not Path('/proc/self/status').exists(), reason='the system does not say how much memory was taken at most')
def test_memory(tmp_path):
    "Saving a memory of 600 MB takes a few MB more, and so does a checkpoint of everything"
    out = run(f'folder = {str(tmp_path)!r}\n'+memory+'''
def most():
    return int(next(o for o in open('/proc/self/status') if o.startswith('VmHWM')).split()[1])/1024
filled().save(folder+'/small') # what is loaded and compiled for the first time
er = ExperienceReplay(bs=4, max_sz=10_000, warmup_sz=1, sampler=Prioritized(seed=0))
for i in range(100): er+dict(state=torch.full((100, 60_000), i, dtype=torch.uint8))
before = most()
er.save(folder+'/big')
er.checkpoint(folder+'/run')
er.update_td(torch.ones(10_000, 1), torch.arange(10_000))
er.checkpoint(folder+'/run')
print(most()-before)
''')
    assert float(out)<60, out

def test_read_only():
    "A folder that may not be written to: one clear error, and what was saved is as it was"
    with tempfile.TemporaryDirectory() as d:
        os.chmod(d, 0o755)
        out = run(f'folder = {d!r}\n'+memory+'''
er = filled()
er.save(folder+'/saved')
for o in ('/saved',''): os.chmod(folder+o, 0o555)
before = sorted(os.listdir(folder+'/saved'))
if os.geteuid()==0: os.setuid(65534) # to root nothing is read-only
er.add(state=[9, 9], reward=1., terminated=False, truncated=False)
for to in ('/saved','/new'):
    try: er.save(folder+to)
    except PermissionError as e: print('could not be saved' in str(e) and 'is unchanged' in str(e))
    else: print('it was saved')
print(sorted(os.listdir(folder+'/saved'))==before, ExperienceReplay.load(folder+'/saved').ring.total)
''')
        for o in ('','/saved'): os.chmod(d+o, 0o755)
    assert out=='True\nTrue\nTrue 50\n'

@pytest.mark.slow
def test_read_only_rows():
    "Rows in a folder that may only be read: drawn by anybody, added to by nobody"
    with tempfile.TemporaryDirectory() as d:
        os.chmod(d, 0o755)
        out = run(f'folder = {d!r}\n'+memory+'''
from fastrl.memory.episodes import RingBufferDataset, ScoreEvictor
ring = Ring(4, path=folder+'/ring')
for i in range(6): ring.add(obs=i)
ring.save(folder+'/saved')
for k,kw in (('old',{}), ('low',dict(evictor=ScoreEvictor(lambda e: e['obs'][0])))):
    ds = RingBufferDataset(9, path=f'{folder}/{k}', **kw)
    ds.add_episode(dict(obs=torch.arange(4))); next(iter(ds.get_loader(1))) # which is compiled
del ds
del ring
for o in (*os.listdir(folder), *('saved/'+o for o in os.listdir(folder+'/saved')), ''):
    os.chmod(f'{folder}/{o}', 0o555 if os.path.isdir(f'{folder}/{o}') else 0o444)
def look(): return {o: open(o, 'rb').read() for o in (os.path.join(at, n) for at,_,ns in os.walk(folder) for n in ns)}
before = look()
if os.geteuid()==0: os.setuid(65534) # to root nothing is read-only
def refused(f):
    try: f()
    except (PermissionError, ValueError) as e: print(type(e).__name__, 'only be read' in str(e) or 'not write' in str(e))
    else: print('it was written')
ring,mapped = Ring(path=folder+'/ring'),Ring.load(folder+'/saved', mapped=True)
for o in (ring, mapped):
    print(o['obs'].tolist(), o.total, o[[1,3]]['obs'].tolist())
    refused(lambda: o.add(obs=9)); refused(lambda: o.extend(dict(obs=torch.arange(2))))
import pickle
print(pickle.loads(pickle.dumps(ring))['obs'].tolist())
for k,kw in (('old',{}), ('low',dict(evictor=ScoreEvictor(lambda e: e['obs'][0])))):
    ds = RingBufferDataset(9, path=f'{folder}/{k}', **kw)
    print(next(iter(ds.get_loader(1)))['obs'].tolist())
    refused(lambda: ds.add_episode(dict(obs=torch.arange(4))))
print(look()==before)
''')
        for o in ('','/saved'): os.chmod(d+o, 0o755)
    ring = '[4.0, 5.0, 2.0, 3.0] 6 [5.0, 3.0]\n'
    said = [ring+'PermissionError True\n'*2, ring+'ValueError True\n'*2, '[4.0, 5.0, 2.0, 3.0]\n', *['[[0, 1, 2, 3]]\nPermissionError True\n']*2, 'True\n']
    assert out==''.join(said)

@pytest.mark.slow
def test_opened_exclusively(tmp_path):
    "Whatever is written to be renamed is opened as a new file: no link that was planted is followed"
    out = run(f'folder = {str(tmp_path)!r}\n'+memory+'''
from pathlib import Path
from fastrl import bank_folder, cli, run_state
from fastrl.memory.bank import ExperienceBank, create_experience
from fastrl.memory.episodes import IndividualFileDataset
from fastrl.memory.explore import replay_report
from fastrl.memory.files import put_twice
seen,bad = {},[]
def hook(event, args):
    if event!='open' or not isinstance(args[0], (str, bytes)): return
    path,mode,flags = os.fsdecode(args[0]),*args[1:]
    if not path.startswith(folder) or not flags&os.O_CREAT: return
    seen[Path(path).name.split('.')[0].split('-')[0]] = 1
    if not flags&os.O_EXCL: bad.append(path)
sys.addaudithook(hook)
er = filled(); er.checkpoint(folder+'/er'); er.save(folder+'/er')
Ring(4, path=folder+'/ring').add(a=1.)
b = ReplayBuffer(5, 2, 1, 3); b.add([1.,2.], [0.], 1., [2.,3.], True, [0.]*3)
for _ in range(2): b.save(folder+'/velora')
bank = ExperienceBank(); bank.add(create_experience(0., 0, 0., 0., True))
for o in ('bank.pkl','bank.safetensors'): bank.save(folder, o)
IndividualFileDataset(9, folder+'/files').add_episode(dict(obs=torch.arange(4)))
replay_report(er, folder+'/report.html')
Path(folder+'/cli').mkdir()
with cli._only_run(Path(folder+'/cli'), dict(a=1)): pass
bank_folder.BankFolder(Path(folder+'/cli')).set_aside('odd.pkl', Path(folder+'/report.html'))
os.mkdir(folder+'/run'); os.mkdir(folder+'/twice')
put_twice(folder+'/twice', folder+'/twice.txt', lambda p: open(p, 'x').close())
run_state.finish(Path(folder+'/run'), run_state.State(0, bank), {'w': torch.ones(2)})
print(bad); print(sorted(seen))
''')
    bad,seen = map(literal_eval, out.splitlines())
    assert not bad and {*'000000 bank buffer_metadata buffer_state manifest odd report ring rows run settings twice'.split()}<={*seen}, seen

def test_report(tmp_path):
    "A report that cannot be written leaves the one before; no link is followed"
    resource = pytest.importorskip('resource')
    er,path,other = ExperienceReplay(warmup_sz=1)+dict(x=torch.ones(4)),tmp_path/'report.html',tmp_path/'other'
    other.write_text('theirs')
    path.symlink_to(other)
    assert replay_report(er, path)==path and not path.is_symlink() and other.read_text()=='theirs'
    text,limits = path.read_text(),resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, limits[1])) # as on a full disk
    try:
        with pytest.raises(OSError): replay_report(er, path, title='another')
    finally: resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text()==text and sorted(os.listdir(tmp_path))==['other','report.html']

# What is put back comes back: random histories, against a dict that keeps everything

shapes = dict(td=((1,), torch.float32), serial=((1,), torch.int64), n=((), torch.int64), hidden=((40,), torch.float32), odd=((3,), torch.uint16),
              small=((2,), torch.float8_e4m3fn), z=((1,2), torch.complex128), obs=dict(arm=((2,), torch.float16), cam=(((5,), torch.uint8), ((), torch.bool))))

def values(rng, n):
    "By leaf, `n` rows of bytes that are numbers"
    return {f.name: torch.from_numpy(rng.integers(0, 2, (n,*f.shape))).to(f.dtype) for f in schema_fields(shapes)}

def nested(leaves): return nest({f.path: leaves[f.name] for f in schema_fields(shapes)})

class Life:
    "A ring that lives in `folder`, with `weights` beside it, and by serial number what its rows should be"
    def __init__(self, rng, folder, cap, where):
        self.rng,self.folder,self.where,self.n,self.rows,self.kept = rng,folder,where,0,{},None
        self.ring = Ring(cap, shapes, **self.place())
        self.weights = np.zeros(0)

    def place(self):
        self.n_files = getattr(self, 'n_files', 0)+1
        return dict(path=f'{self.folder}.{self.n_files}.ring') if self.where=='path' else {self.where: True} if self.where else {}

    def extend(self):
        "Some rows, one at a time or many"
        n,r = int(self.rng.integers(1, 9)),self.ring
        new = values(self.rng, n)
        start = r.total
        if self.rng.random()<.3: n = 1; r.add(**{k: v[0] if not isinstance(v, dict) else dict(arm=v['arm'][0], cam=tuple(o[0] for o in v['cam'])) for k,v in nested(new).items()})
        else: r.extend(nested(new))
        for i in range(n): self.rows[start+i] = {k: v[i].clone() for k,v in new.items()}
        self.grow()

    def grow(self): self.weights = np.concatenate([self.weights, np.zeros(max(0, len(self.ring)-len(self.weights)))])

    def put(self):
        "A column, or a leaf, of some rows"
        r = self.ring
        if not len(r): return
        idxs = torch.from_numpy(self.rng.choice(len(r), int(self.rng.integers(0, len(r)+1)), replace=False))
        name = str(self.rng.choice(['td','td','n','serial','hidden','odd','small','z','obs','obs.arm','obs.cam.1','weight']))
        serials = r.serial(idxs).flatten().tolist()
        if name=='weight': # the sampler changes what it keeps, and notes it
            self.weights[idxs.numpy()] = new = self.rng.random(len(idxs))
            if r.place.changed is not None: r.place.changed['weight'] = r.place.changed.get('weight', np.zeros(len(r.place), bool))|np.isin(np.arange(len(r.place)), idxs.numpy())
            return
        new = values(self.rng, len(idxs))
        r.put(name, idxs, nested(new)['obs'] if name=='obs' else new[name], r.serial(idxs) if self.rng.random()<.5 else None)
        for i,s in enumerate(serials):
            for k in new:
                if k==name or k.startswith(name+'.'): self.rows[s][k] = new[k][i].clone()

    def checkpoint(self):
        with self.ring: self.kept = save_memory(self.folder, 'Ring', {}, self.ring, beside=dict(weight=torch.from_numpy(self.weights[:len(self.ring)].copy())), mutable=['td'], kept=self.kept)

    def fail(self):
        "A checkpoint that a full disk stops"
        def full(*_): raise OSError(28, 'the disk is full')
        with mock.patch.object(checkpoint, 'write_manifest', full), pytest.raises(OSError): self.checkpoint()

    def aside(self):
        "Somebody else saves the same ring elsewhere"
        self.ring.checkpoint(f'{self.folder}.aside')
        self.check(Ring.load(f'{self.folder}.aside', env_restored=True, mapped=self.rng.random()<.1 and len(self.ring)==self.ring.capacity==self.ring.total))

    def forget(self):
        "Somebody takes the notes away"
        if self.rng.random()<.3: self.ring.place.changed = {}

    def reset(self):
        if self.rng.random()<.2: self.ring.reset(); self.weights = np.zeros(0)

    def load(self):
        self.checkpoint()
        was = self.ring
        def restore(empty, saved, ring, beside, state): return ring,beside['weight']
        (self.ring,self.weights),self.saved = load_memory(self.folder, 'Ring', {}, restore=restore, env_restored=True, **self.place())
        self.kept = self.saved.kept(self.ring)
        self.check()
        a,b = self.ring.seams,was.seams
        assert (a.first, a.oldest, a.cuts, a.gaps, max(a.several, a.oldest))==(b.first, b.oldest, b.cuts, b.gaps, max(b.several, b.oldest))
        assert (self.ring.pointer, self.ring.total)==(was.pointer, was.total)
        if self.ring.capacity: assert len(disk.pieces_of(self.saved.manifest, 'marks'))<60
        assert (self.ring.serial(slice(None))==was.serial(slice(None))).all()
        if self.folder.name.endswith('0'): assert not disk.verify(self.folder)

    def other(self):
        "Another process puts something into columns that were put back here before"
        if self.where!='path' or not self.kept or not len(self.ring): return
        theirs,i = Ring(path=self.ring.place.path),[int(self.rng.integers(len(self.ring)))]
        for name in set(self.kept.manifest['mutable'])&{'td','hidden','odd'}:
            theirs.put(name, i, new := values(self.rng, 1)[name])
            self.rows[int(self.ring.serial(i))][name] = new[0].clone()

    def check(self, ring=None):
        ring = self.ring if ring is None else ring
        if not len(ring): return
        cols,serials = {path_name(p): v for p,v in leaves(ring[:])},ring.serial(slice(None)).flatten().tolist()
        for k,v in cols.items():
            want = torch.stack([self.rows[s][k] for s in serials]) if serials else v[:0]
            assert torch.equal(v[...,None].contiguous().view(torch.uint8), want[...,None].contiguous().view(torch.uint8)), k

@pytest.mark.parametrize('where', [None,'shared','path'])
@pytest.mark.parametrize('cap', [*(pytest.param(o, marks=pytest.mark.slow) for o in (1,30)), 7, None])
@pytest.mark.parametrize('seeds', [pytest.param(range(1), id='few'), pytest.param(range(1, 3), id='more', marks=pytest.mark.slow)])
@pytest.mark.halved
def test_put_back(tmp_path, cap, where, seeds):
    if cap is None and where: return
    for seed in seeds:
        rng = np.random.default_rng(seed)
        o = Life(rng, tmp_path/f'{seed}', cap, where)
        for _ in range(150):
            act = str(rng.choice(['extend','put','put','put','checkpoint','checkpoint','fail','aside','reset','load','other','forget'], p=[.2,.15,.1,.1,.1,.1,.05,.05,.05,.04,.04,.02]))
            weights = o.weights.copy()
            getattr(o, act)()
            if act=='load': assert (o.weights==weights[:len(o.ring)]).all()
            o.check()
        o.load()

@pytest.mark.parametrize('what', ['run','field','fields','buffer'])
def test_nested_too_deep(what, tmp_path):
    "JSON of many levels is damage like any other, not a crash"
    from safetensors.torch import save_file
    from fastrl.memory.buffer import ReplayBuffer
    from fastrl.memory.episodes import IndividualFileDataset
    from fastrl.run_state import read_run
    deep,episode = '['*20_000,tmp_path/'0000001_3_20231105-123456.safetensors'
    if what=='run':
        (tmp_path/'run.json').write_text(deep)
        with pytest.raises(disk.LoadError, match='should say how many iterations are over'): read_run(tmp_path)
    if what=='field': # the name of a column, in a file of somebody else
        save_file({deep:torch.ones(3)}, episode)
        assert list(IndividualFileDataset(9, tmp_path)[0])==[deep]
    if what=='fields':
        save_file({'a':torch.ones(3)}, episode, dict(fields=deep))
        assert [o.suffix for o in IndividualFileDataset(9, tmp_path).damaged]==['.damaged']
    if what=='buffer':
        save_file({'a':torch.ones(3)}, tmp_path/'state.safetensors')
        (tmp_path/'metadata.json').write_text(deep)
        with pytest.raises(ValueError, match='metadata.json is damaged'): ReplayBuffer.load(tmp_path/'state.safetensors')

def test_saved_anew_while_damaged_files_are_skipped(tmp_path, monkeypatch):
    "Files that another process has replaced are not damaged: all rows are loaded, and what belongs to them"
    def save(n, reward):
        er = ExperienceReplay(max_sz=9, warmup_sz=1, seed=0)+dict(state=torch.zeros(n, 1), reward=torch.full((n,1), reward))
        for _ in range(n): er.sample()
        er.save(tmp_path, extra=torch.zeros(100_000)) # too large for the manifest
        return er
    init,er = Saved.__init__,None
    save(3, 0.)
    def late(self, folder):
        nonlocal er
        init(self, folder)
        if er is None: er = save(5, 1.)
    monkeypatch.setattr(Saved, '__init__', late)
    loaded = ExperienceReplay.load(tmp_path, on_error='skip')
    assert loaded['reward'][:,0].tolist()==[1.]*5 and not loaded.skipped
    same(loaded.sample(), er.sample())
