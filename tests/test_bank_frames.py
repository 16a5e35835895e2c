"""Banks that store each frame once read as those that store states whole, whatever happens to them"""
import copy, json, pickle, random, zlib
from pathlib import Path
import numpy as np, pytest, torch
from fastcore.test import expect_fail
from fastrl.memory import bank_frames
from fastrl.memory.bank import *
from fastrl.memory.bank_frames import FrameStore, Stacks, put_row, whole_columns
from fastrl.memory.forms import experiences_of
from fastrl.memory.files import LoadError, checksum, read_tensors, write_tensors

def plain(o):
    "What can be compared: types, dtypes and bytes"
    if isinstance(o, torch.Tensor): return 'tensor',str(o.dtype),tuple(o.shape),o.contiguous().view(-1).view(torch.uint8).numpy().tobytes()
    if isinstance(o, (np.ndarray, np.generic)): return type(o).__name__,str(o.dtype),o.shape,o.tobytes()
    if isinstance(o, dict): return 'dict',[(k, plain(v)) for k,v in o.items()]
    if isinstance(o, (list, tuple)): return type(o).__name__,[plain(v) for v in o]
    return type(o).__name__,repr(o)

def rows(bank): return [plain(vars(e)) for e in bank]

def same(once, whole):
    assert (len(once), len(once.sources), repr(once.max_size))==(len(whole), len(whole.sources), repr(whole.max_size))
    assert rows(once)==rows(whole)
    assert once._rows.episodes().tolist()==whole._rows.episodes().tolist() if len(once) else True
    for of in (once, whole): of.rng = np.random.default_rng(7)
    if not len(whole): return
    assert [plain(vars(e)) for e in once.sample(5)]==[plain(vars(e)) for e in whole.sample(5)]
    def drawn(bank):
        try: return plain(dict(bank.sample_batch(6)))
        except ValueError as e: return str(e)
    assert drawn(once)==drawn(whole)

class World:
    "Environments whose stacks continue one another, in a form of observation"
    def __init__(self, rng, stack, form, n_envs):
        self.rng,self.stack,self.form,self.now = rng,stack,form,[None]*n_envs
    def frame(self):
        rng = self.rng
        if rng.random()<.1: return np.zeros((4,4), np.uint8)
        return rng.integers(0, 256 if rng.random()<.7 else 3, (4,4)).astype(np.uint8)
    def shown(self, frames):
        a = np.stack(frames) if self.stack else frames[0]
        if self.form=='tensor': return torch.from_numpy(a)
        if self.form=='dict': return {'eye':a, 'arm':a.reshape(-1)[:2].astype(np.float32)}
        if self.form=='tuple': return (a, a.astype(np.float32)/2)
        if self.form=='list': return a.tolist()
        return a.astype(np.float32) if self.form=='mixed' and self.rng.random()<.1 else a
    def step(self):
        e,n,rng = int(self.rng.integers(len(self.now))),self.stack or 1,self.rng
        was = self.now[e] or [self.frame()]*n
        now,done = [*was[1:], self.frame()],bool(rng.random()<.2)
        self.now[e] = None if done else now
        after = None if done and self.form=='none' else self.shown(now)
        reward = float(rng.integers(9)) if rng.random()<.9 else int(rng.integers(9))
        return create_experience(self.shown(was), int(rng.integers(3)), reward, after, done, {'e':e})

forms = ['array','tensor','dict','list','none','mixed','tuple']

class Twins:
    "A bank that stores frames once and one that stores states whole, which do the same under the same ids"
    count = next = 0
    def __init__(self, make): # `make(k)` makes number `k` of the two
        Twins.count += 1000
        self.banks = []
        for k in range(2):
            Twins.next = Twins.count
            self.banks.append(make(k))
    def __iter__(self): return iter(self.banks)
    def each(self, f, *others): return Twins(lambda k: f(self.banks[k], *(o.banks[k] for o in others)))

@pytest.fixture
def same_ids(monkeypatch):
    "Both of two twins get the same names"
    def token(n): Twins.next += 1; return f'{Twins.next:0{2*n}x}'
    monkeypatch.setattr('fastrl.memory.bank.secrets.token_hex', token)

def done(f):
    "Of a method that changes a bank, the bank"
    def g(b, *args): f(b, *args); return b
    return g

@pytest.mark.halved
@pytest.mark.parametrize('form', forms)
@pytest.mark.parametrize('stack', [0,1,3])
def test_random_histories(form, stack, tmp_path, same_ids):
    for seed in range(4):
        rng = np.random.default_rng([seed, stack, forms.index(form)])
        world = World(rng, stack, form, int(rng.integers(1, 4)))
        twins = [Twins(lambda k: ExperienceBank(m, f'b{i}', frame_stack=(stack, None)[k]))
                 for i,m in enumerate(rng.choice([None, 1, 7, 30], 3))]
        for t in range(40):
            i,j = rng.choice(3, 2, replace=False)
            mine,other = twins[i],twins[j]
            op = rng.choice(['add']*6+['batch']*3+['columns','merge','into','whole','safe','pickle','copy','pkl','clear','reader'])
            if op=='add': e = world.step(); mine = mine.each(done(lambda b: b.add(e)))
            elif op=='batch':
                es = [world.step() for _ in range(rng.integers(0, 9))]
                mine = mine.each(done(lambda b: b.add_batch(es)))
            elif op=='columns' and form in ('array','tensor'):
                es = [world.step() for _ in range(rng.integers(1, 9))]
                cols = {k: torch.stack([torch.as_tensor(getattr(e, k)) for e in es]) for k in ('state','next_state')}
                cols |= {k: np.array([getattr(e, k) for e in es]) for k in ('action','reward','done')}
                mine = mine.each(done(lambda b: b.add_batch(cols)))
            elif op=='merge': mine = mine.each(lambda a,b: a.merge(b, max_size=30), other)
            elif op=='into': mine = mine.each(done(lambda a,b: a.merge_inplace(b)), other)
            elif op=='whole': mine = mine.each(done(lambda a: a.merge_inplace(other.banks[1]))) # states that come whole
            elif op in ('safe','pkl'):
                path = f'x.{"safetensors" if op=="safe" else "pkl"}'
                mine = mine.each(lambda b: ExperienceBank.load(b.save(tmp_path, path)))
            elif op=='pickle': mine = mine.each(lambda b: pickle.loads(pickle.dumps(b)))
            elif op=='copy': mine = mine.each(copy.deepcopy)
            elif op=='clear' and rng.random()<.2: mine = mine.each(done(ExperienceBank.clear))
            elif op=='reader':
                e = world.step()
                same(*mine.each(lambda b: b.reader()).each(done(lambda b: b.add(e))))
            twins[i] = mine
            same(*mine)
            assert mine.banks[0].frame_stack==stack and mine.banks[1].frame_stack is None
        for o in twins: same(*o)

def image_bank(*ks, name='a', stack=2, **kwargs):
    "Of stacks of two images that show the numbers `ks` and those behind them"
    def see(i): return np.stack([np.full((4,4), i+j+1, np.int16) for j in range(stack)])
    bank = ExperienceBank(session_id=name, frame_stack=stack, **kwargs)
    for i in ks: bank.add(create_experience(see(i), i, float(i), see(i+1), False))
    return bank

def test_each_frame_once(tmp_path):
    "As many frames as there are, and those that rows had that are gone make room for others"
    bank = image_bank(*range(100))
    assert bank.n_frames==102 and len(bank._rows.stores['state',])<220
    short = image_bank(*range(5000), max_size=10)
    assert short.n_frames==12 and len(short._rows.stores['state',])<100
    same_size = [Path(o.save(tmp_path, f'{i}.safetensors')).stat().st_size for i,o in enumerate((short, image_bank(*range(10))))]
    assert abs(same_size[0]-same_size[1])<100
    path = image_bank(*range(5000)).save(tmp_path) # rows for which there is no room leave no frames behind
    few = ExperienceBank(10, frame_stack=2)
    few.add_batch(list(image_bank(*range(5000))))
    for o in (few, ExperienceBank.load(path, max_size=10), merge_banks([path], max_size=10)):
        assert (o.n_frames, len(o._rows.stores['state',])<100, rows(o)==rows(short))==(12, True, True)
    singles = ExperienceBank(frame_stack=0)
    for i in range(9): singles.add(create_experience([float(i)]*2, 0, 0., [i+1.]*2, False))
    assert (singles.n_frames, [e.state for e in singles][3:5])==(10, [[3.,3.], [4.,4.]])

def test_one_hash_for_all(monkeypatch):
    "Frames with one hash are still told apart"
    monkeypatch.setattr(bank_frames, 'hash', lambda o: 7, raising=False)
    bank = image_bank(*range(40), max_size=30)
    assert [(e.state[0,0,0], e.next_state[1,0,0]) for e in bank]==[(i+1, i+3) for i in range(10, 40)]

def test_frames_of_one_row():
    "Those of its state stay while those of its next state, which are others, look for room"
    store,rng,rows = FrameStore((2,), torch.int32),np.random.default_rng(0),[]
    for i in range(300):
        row = {(k,): torch.full((3,2), j, dtype=torch.int32)+torch.arange(3)[:,None].int() for k,j in (('state',9*i), ('next_state',9*i+4))}
        numbers = put_row(row, dict.fromkeys(row, store), 3, lambda o: [v for _,m in rows for v in m.values()])
        rows = (rows+[(row, numbers)])[-int(rng.integers(1, 9)):]
        for want,got in rows:
            for p in want: assert Stacks(store, got[p][None]).whole()[0].tolist()==want[p].tolist()
    assert len(store)<150

def test_long_batches(monkeypatch):
    "A frame of a state is recognised in the next one, though the batch has more frames than are recognised"
    monkeypatch.setattr(bank_frames, '_recognised', 4096)
    frames = torch.arange(12004*2, dtype=torch.int32).view(12004, 2)
    bank,i = ExperienceBank(frame_stack=2),torch.arange(12002)
    zeros = np.zeros(12002)
    bank.add_batch(dict(state=torch.stack([frames[i], frames[i+1]], 1), action=zeros, reward=zeros, next_state=torch.stack([frames[i+1], frames[i+2]], 1), done=zeros>0))
    assert bank.n_frames==12004

def test_as_of_one_moment():
    "What a pickle or a file is made of stays as it is while others write"
    bank = image_bank(*range(10), max_size=10)
    state,parts = bank.__getstate__(),bank._rows.parts_at(range(10), False)
    for e in image_bank(*range(50, 200)): bank.add(e)
    twin = ExperienceBank.__new__(ExperienceBank)
    twin.__setstate__(state)
    cols,*rest = parts
    for rows in (twin, experiences_of(whole_columns(cols), *rest)): assert [e.next_state[1,0,0] for e in rows]==[*range(3, 13)]

def test_merged_files(tmp_path):
    "A union stores frames once as soon as a bank with rows does, also in batches of many files, and one of files without rows"
    files = [image_bank(*range(i, i+3), name=f'w{i}').save(tmp_path) for i in range(0, 30, 3)]
    assert all(o.endswith('.safetensors') for o in files)
    merged = merge_banks(files)
    assert (merged.frame_stack, merged.n_frames, len(merged))==(2, 32, 30)
    assert sorted(e.state[0,0,0] for e in merged)==[*range(1, 31)]
    empty = [image_bank(name=f'e{i}').save(tmp_path/'empty') for i in range(2)]
    assert len(merge_banks(empty))==0 and len(merge_banks([*empty, *files]))==30
    other = ExperienceBank(); other.add(create_experience([1.], 0, 0., [2.], False))
    both = merge_banks([other.save(tmp_path, 'a.pkl'), files[0]]) # states of another shape are kept as text, as in any bank
    assert (both.frame_stack, len(both), both[0].state.shape if len(both[0].state)>1 else both[3].state.shape)==(None, 4, (2,4,4))

@pytest.mark.parametrize('stack,shapes', [(1, [(1,4,4), (4,4), (1,1,4,4)]), (2, [(2,3), (3,), (1,3), (2,1,3)]), (0, [(4,4), (1,4,4)])])
def test_other_shapes(stack, shapes):
    "A state that is no stack like the first one comes back as it was, also where its frames fit"
    bank,states = ExperienceBank(frame_stack=stack),[np.full(o, i, np.uint8) for i,o in enumerate([*shapes, shapes[0]], 1)]
    for o in states: bank.add(create_experience(o, 0, 0., o, False))
    assert [plain(e.state) for e in bank]==[plain(e.next_state) for e in bank]==[*map(plain, states)]

def test_lazy_tensors():
    "Tensors that torch conjugates or negates only when they are read"
    z = torch.arange(2*2*2).view(2,2,2)*(1+1j)
    for t in (z.conj(), torch._neg_view(z.real.contiguous())):
        bank = ExperienceBank(frame_stack=2)
        for _ in range(2): bank.add(create_experience(t, 0, 0., t, False))
        assert all(torch.equal(o, t) for e in bank for o in (e.state, e.next_state))

def test_odd_strides():
    "Stacks of single numbers may have any stride, and frames may be empty"
    for s,k in ((np.arange(4.)[None].T, 4), (np.arange(8.).reshape(2,4)[:1,::4], 1), (torch.arange(4.)[None].T, 4), (np.zeros((2,0), np.float32), 2)):
        for add in (ExperienceBank.add, lambda b, e: b.add_batch([e])):
            bank = ExperienceBank(frame_stack=k)
            for _ in range(2): add(bank, create_experience(s, 0, 0., s, False))
            assert [plain(e.state) for e in bank]==[plain(s)]*2

def test_refused():
    "Before anything is stored"
    bank = ExperienceBank(frame_stack=4)
    for state in (np.zeros((84,84)), np.zeros((3,84,84)), np.zeros(4), 5.):
        for add in (lambda e: bank.add(e), lambda e: bank.add_batch([e])):
            with expect_fail(ValueError, contains='should be a stack of 4 frames'): add(create_experience(state, 0, 0., state, False))
    assert (len(bank), bank.ring.fields)==(0, None)
    with expect_fail(ValueError, contains='`frame_stack` should be'): ExperienceBank(frame_stack=-1)
    whole = ExperienceBank(); whole.add(create_experience([1.], 0, 0., [2.], False))
    with expect_fail(ValueError, contains='should be a stack of 4 frames'): bank.merge_inplace(whole)
    assert len(bank)==0

def forge(path, about, cols, **kwargs):
    path.unlink(missing_ok=True)
    text = json.dumps({**about, 'crc32':checksum(cols), **kwargs})
    write_tensors(path, cols, dict(format='fastrl bank of frames', bank=text, crc32=str(zlib.crc32(text.encode()))))
    return path

def test_hostile_files(tmp_path):
    "Numbers of frames that are not there are an error that names the file"
    good = Path(image_bank(0, 1, 2).save(tmp_path, 'good.safetensors'))
    about,cols = bank_about(good),read_tensors(good)
    assert len(ExperienceBank.load(forge(tmp_path/'x.safetensors', about, cols)))==3
    def number(v): return {**cols, 'state': torch.full((3,2), v, dtype=torch.int32)}
    def field(*o): return dict(fields=[[p, k, t, *(o if of else [])] for p,k,t,*of in about['fields']])
    bad = [(number(99), {}), (number(-1), {}), ({**cols, 'state':cols['state'].long()}, {}), ({**cols, 'state':cols['state'][:,:1]}, {}),
           ({**cols, 'frames 0':cols['frames 0'][:0]}, {}), ({**cols, 'frames 0':cols['frames 0']+1}, {}), ({**cols, 'frames 0':cols['frames 0'][:,0,0]}, {}),
           (cols, field(1)), (cols, field('a')), (cols, field(None)), (cols, field()), (cols, dict(frame_stack='2')), (cols, dict(frame_stack=-1)), (cols, dict(frame_stack=3))]
    for i,(o,more) in enumerate(bad):
        try: bank = ExperienceBank.load(forge(tmp_path/'x.safetensors', about, o, **more))
        except LoadError as e: assert 'x.safetensors' in str(e)
        else: pytest.fail(f'{i}: {[*bank]}')
    raw,rng = good.read_bytes(),random.Random(0)
    for i in range(120):
        o = bytearray(raw)
        if i%2: o = o[:rng.randrange(len(o))]
        else: o[rng.randrange(len(o))] ^= 1<<rng.randrange(8)
        (tmp_path/'bad.safetensors').write_bytes(o)
        with pytest.raises(LoadError): ExperienceBank.load(tmp_path/'bad.safetensors')

def test_command_line(tmp_path):
    "`info`, `merge`, `verify` and `explore` of such banks"
    from test_cli import here
    for k in 'ab': image_bank(*range(3), name=k).save(tmp_path, f'{k}.safetensors')
    said = here('merge', 'a.safetensors', 'b.safetensors', '--out', 'all.safetensors', cwd=tmp_path)
    assert said.returncode==0, said.stderr
    said = here('info', 'all.safetensors', cwd=tmp_path).stdout
    assert 'state int16[2, 4, 4]' in said and 'stacks of 2 frames: 5 frames, each stored once' in said
    assert here('verify', 'all.safetensors', cwd=tmp_path).returncode==0
    assert here('explore', 'all.safetensors', cwd=tmp_path).returncode==0 and 'reward' in (tmp_path/'all.html').read_text()

def test_memory_of_a_run(tmp_path):
    "A learner finds the banks that workers saved under their own names, and its memory stores frames once"
    from fastrl.parallel import ParallelExperience
    for k in 'ab': image_bank(*range(3), name=k).save(tmp_path)
    rl = ParallelExperience()
    rl.work_dir = tmp_path
    memory = rl.merge_banks()
    assert (len(memory), memory.frame_stack, memory.n_frames)==(6, 2, 5)
    assert not [*tmp_path.glob('experience_bank_*')]
    again = ExperienceBank.load(tmp_path/'experience_bank.pkl')
    assert (len(again), again.frame_stack)==(6, 2)
