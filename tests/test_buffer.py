"`ReplayBuffer` with every form of step, file and environment"
import copy, dataclasses, itertools, json, os, pickle, random, re, shutil, signal, stat, sys, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Literal
from unittest import mock
import gymnasium as gym, numpy as np, pytest, torch
from fastprogress import fastprogress
from IPython.utils.capture import capture_output
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from fastrl.core import test_same as same
from fastrl.memory import buffer, files
from fastrl.memory.buffer import BatchExperience, ReplayBuffer
from fastrl.memory.sample import Prioritized
from torch import tensor

names = 'states','actions','rewards','next_states','dones','hiddens','terminateds','truncateds'
def refused(contains='', exc=ValueError): return pytest.raises(exc, match=re.escape(contains) or None)
def step(i): return tensor([i, i+.5]), i%2, i/10, [i+1, i+1.5], False, torch.full((3,), float(i))
def steps(*ns):
    i = tensor(ns).float()
    return (torch.stack([i, i+.5], 1), i%2, i/10, torch.stack([i+1, i+1.5], 1), torch.zeros(len(i)),
            i[:,None].expand(-1,3))

# %% Rows against a list
def row(i):
    return dict(states=[i,-i], actions=[i%3], rewards=[i/4], next_states=[i+1,-i-1], dones=[float(i%5==0)],
                hiddens=[i+.25], terminateds=[float(i%5==0 and i%2==0)], truncateds=[float(i%5==0 and i%2)])

def add_rows(b, ns, one):
    "Add the rows `ns`, as columns or singly"
    if one:
        r = row(ns[0])
        return b.add(*(tensor(o) for o in list(r.values())[:6]), truncated=bool(r['truncateds'][0]))
    r = {k: tensor([row(i)[k] for i in ns]).float() for k in row(0)}
    b.add_multi(*(r[k] for k in list(r)[:6]), truncateds=r['truncateds'])

@pytest.mark.parametrize('prioritized', [False, True], ids=['uniform','prioritized'])
@pytest.mark.parametrize('cap', [1,2,3,4,7])
def test_any_order(cap, prioritized):
    "However single steps and many alternate, the rows are those of a list, where Velora has them: sixty turns each"
    rng,gen = np.random.default_rng(cap),torch.Generator().manual_seed(cap)
    b = ReplayBuffer(cap, 2, 1, 1, seed=0, sampler=Prioritized(seed=0) if prioritized else None)
    want,position,size,i = [None]*cap,0,0,0
    for k in rng.integers(0, 2*cap+3, 60):
        n = max(1, int(k)) # 0 stands for a single step
        add_rows(b, range(i, i+n), k==0)
        for j in range(i, i+n): want[position],position,size = j,(position+1)%cap,min(size+1, cap)
        i += n
        assert (b.position, b.size, len(b), b.ring.total)==(position, size, size, i)
        for o in names:
            same(getattr(b, o), tensor([[0.]*len(row(0)[o]) if j is None else row(j)[o] for j in want]).float())
        batch = b.sample(size)
        same(batch.serials[:,0], tensor([want[j] for j in batch.idxs]))
        for o in names: same(getattr(batch, o), getattr(b, o)[batch.idxs])
        assert (batch.weights is not None)==prioritized
        if prioritized: b.update_td(torch.rand(size,1, generator=gen), batch.idxs, batch.serials)
    assert b.dropped_updates==0

# %% Forms of a step
s,h = tensor([1.,2.]),tensor([1.,2.,3.])
forms = [(s, 1., 2., s, True, h), (s[None], tensor([[1.]]), tensor(2.), s[None].double(), tensor(True), h[None]),
         ([1,2], 1, 2, [1.,2.], 1, [1,2,3]),
         (s.numpy(), np.float64(1), np.float32(2), np.array([1,2]), np.bool_(True), h.double().numpy()),
         (s.int(), tensor([1], dtype=torch.uint8), np.array([[2.]]), (1.,2.), tensor([[1]]), h.clone().requires_grad_()),
         (s, [1.], [2.], s.half(), [True], h[None,None]), (s.bfloat16(), True, 2, s, 1., h)]
many = [(s.expand(2,2), torch.ones(2), [1.,2.], s.expand(2,2).numpy(), np.array([True,False]), h.expand(2,3)),
        ([[1,2],[1,2]], torch.ones(2,1,1), tensor([1,2]), [s,s], [1,0], [[1,2,3]]*2),
        (s.expand(2,1,2), [1,1], np.array([[1],[2]]), s.expand(2,2), [[True],[False]], h.expand(2,3).double())]

@pytest.fixture
def b():
    "A buffer with a few steps"
    b = ReplayBuffer(50, 2, 1, 3, seed=0)
    b.add_multi(*steps(0,1,2,3,4,5,6))
    return b

@pytest.mark.parametrize('form', forms, ids=range(len(forms)))
def test_forms(form):
    "A step comes out the same in every form in which it may come, as arguments or as one tuple"
    b = ReplayBuffer(2, 2, 1, 3)
    b.add(*form)
    b.add(form)
    for o in ('states','next_states'): same(getattr(b, o), s.expand(2,2))
    for o,v in dict(actions=1., rewards=2., dones=1., terminateds=1., truncateds=0.).items():
        same(getattr(b, o), torch.full((2,1), v))
    same(b.hiddens, h.expand(2,3))
    assert not b.hiddens.requires_grad

@pytest.mark.parametrize('form', many, ids=range(len(many)))
def test_forms_of_many(form):
    "So do many steps"
    b = ReplayBuffer(4, 2, 1, 3)
    b.add_multi(*form)
    b.add_multi(form)
    same((b.states, b.next_states, b.actions, b.hiddens), (s.expand(4,2), s.expand(4,2), torch.ones(4,1), h.expand(4,3)))
    same((b.rewards[:,0], b.dones[:,0]), (tensor([1.,2,1,2]), tensor([1.,0,1,0])))

def test_no_hidden():
    "Without a hidden state it is 0"
    b = ReplayBuffer(7, 2, 1, 3)
    b.hiddens[:] = 9
    b.add(s, 1., 2., s, False, None)
    b.add(s, 1., 2., s, False)
    b.add((s, 1., 2., s, False))
    b.add_multi(*many[0][:5])
    b.add_multi(many[0][:5])
    same(b.hiddens, torch.zeros(7,3))

def test_negative_zero(b):
    "-0.0 stays what it is"
    b.add(s, 1., -0., s, False)
    assert str(b.rewards[b.position-1].item())=='-0.0'

# %% Refused by name
ok,fine = forms[0],many[0]
def put_in(step, i, v): return *step[:i],v,*step[i+1:]
def refuse(b, bad, contains, f=None, **kw):
    "`add`, or `f`, refuses `bad`, and nothing is written"
    before,at = b.state_dict(),b.ring.total
    with refused(contains): (f or b.add)(*bad, **kw)
    same((b.state_dict(), b.ring.total), (before, at))

no_values = (torch.zeros(4), torch.zeros(2,2), torch.zeros(3,1), torch.zeros(0), 'a', {}, [[1],[2,3]], object(), 1j,
             torch.zeros(2).to_sparse())
fields = list(enumerate(('state','action','reward','next_state','done','hidden')))
@pytest.mark.parametrize('i,name', fields)
def test_wrong_value(b, i, name):
    "Whatever does not fit a field is refused by its name"
    for v in no_values:
        refuse(b, put_in(ok, i, v), f'`{name}')
        if isinstance(v, torch.Tensor) and v.shape==(2,2) and i in (0,3): continue # it fits
        refuse(b, put_in(fine, i, v), '`' if i==0 else f'`{name}', b.add_multi)

@pytest.mark.parametrize('i,name', fields[:5])
def test_missing_value(b, i, name):
    "All but the hidden state must be there"
    refuse(b, put_in(ok, i, None), f"without ['{name}']")
    refuse(b, put_in(fine, i, None), f"without ['{name}']", b.add_multi)

@pytest.mark.parametrize('v', [.5, -1, 2, float('nan'), float('inf'), tensor([.5])], ids=str)
def test_no_flag(b, v):
    "`done` and `truncated` are true or false"
    refuse(b, put_in(ok, 4, v), '`done` should be True or False')
    refuse(b, ok, '`truncated` should be', truncated=v)

@pytest.mark.parametrize('v', [[.5,1.], [0,2], [0,float('nan')]], ids=str)
def test_no_flags(b, v):
    "Each of many, too"
    refuse(b, put_in(fine, 4, v), '`done` should be', b.add_multi)
    refuse(b, fine, '`truncated` should be', b.add_multi, truncateds=v)

@pytest.mark.parametrize('v', [True, [True], torch.ones(3), torch.ones(2,2)], ids=range(4))
def test_truncateds_shape(b, v):
    "`truncateds` has one flag for each step"
    refuse(b, fine, '`truncateds` should be of shape (2, 1)', b.add_multi, truncateds=v)

@pytest.mark.parametrize('v', [(), (s,), (*ok, False), list(ok), s], ids=range(5))
def test_no_step(b, v):
    "A step is a tuple of five or six"
    refuse(b, [v], 'a step is (state, action, reward, next_state, done, hidden)')

def test_too_few(b):
    "The error names everything that is missing, or the first field that does not fit the others"
    refuse(b, [s, 1.], "without ['reward', 'next_state', 'done']")
    refuse(b, [fine[0]], 'without', b.add_multi)
    refuse(b, put_in(fine, 0, s), '`states` should be of shape (2, 2), as the buffer was made, got (2,)', b.add_multi)
    refuse(b, put_in(fine, 0, tensor(1.)), '`states`', b.add_multi)

wrong_settings = (dict(capacity=0), dict(capacity=1.5), dict(capacity=None), dict(capacity=True), dict(state_dim=0),
                  dict(state_dim=()), dict(state_dim=(2,0)), dict(action_dim='2'), dict(action_dim=-1),
                  dict(hidden_dim=-1), dict(hidden_dim=None))
@pytest.mark.parametrize('kw', wrong_settings, ids=str)
def test_wrong_setting(kw):
    "Counts are whole numbers, and so are dimensions"
    with refused(f'`{next(iter(kw))}` should be'): ReplayBuffer(**{**dict(capacity=3, state_dim=2, action_dim=1, hidden_dim=1), **kw})

@pytest.mark.parametrize('n', [0, -1, 1.5, None, True, 'a'], ids=str)
def test_wrong_batch_size(b, n):
    "A batch has a whole number of steps"
    with refused('`batch_size` should be'): b.sample(n)

# %% Dtypes
@pytest.fixture
def small():
    "A buffer of other dtypes, with one step"
    b = ReplayBuffer(2, (2,1), (2,), 2, state_dtype=torch.uint8, action_dtype=torch.int64, reward_dtype=torch.float64,
                     hidden_dtype=torch.float16)
    b.add([[1],[255]], [2,3], .1, np.array([[7],[8]]), True, [.5,1], truncated=True)
    return b

def test_dtypes(small):
    "Dtypes are kept"
    batch = small.sample(1)
    same({o: getattr(batch, o) for o in (*names,'weights')},
         dict(states=tensor([[[1],[255]]], dtype=torch.uint8), actions=tensor([[2,3]]),
              rewards=tensor([[.1]], dtype=torch.float64), next_states=tensor([[[7],[8]]], dtype=torch.uint8),
              dones=tensor([[1.]]), hiddens=tensor([[.5,1]]).half(), terminateds=tensor([[0.]]),
              truncateds=tensor([[1.]]), weights=None))

cuts = (0,[[1],[256]]), (0,[[-1],[0]]), (0,torch.ones(2,1)), (1,[.5,1]), (1,torch.ones(2)), (3,np.ones((2,1)))
@pytest.mark.parametrize('i,v', cuts, ids=range(len(cuts)))
def test_never_cut(small, i, v):
    "A number that an int column cannot hold is refused, not cut"
    with refused('out of its range' if i<1 and isinstance(v, list) else 'convert it first'): small.add(*put_in(([[1],[2]], [2,3], .1, [[7],[8]], True, [.5,1]), i, v))
    assert len(small)==1

@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16], ids=str)
def test_too_large_for_half(dtype):
    "A Python number that would be infinite in half precision is refused by `add` and by `add_multi`"
    b = ReplayBuffer(2, 2, 1, 0, action_dtype=dtype, reward_dtype=dtype)
    for act,rew in ((1e39, 0.), (0., 1e39)):
        with refused('out of its range'): b.add(s, act, rew, s, True)
        with refused('out of its range'): b.add_multi(s[None], [act], [rew], s[None], [True])
    b.add(s, .5, True, s, False)
    same((b.actions[0], b.rewards[0]), (tensor([.5], dtype=dtype), tensor([1.], dtype=dtype)))

def test_odd_dtypes():
    "A dtype that NumPy lacks, rewards that are ints, and no hidden state"
    b = ReplayBuffer(2, 2, 1, 0, state_dtype=torch.bfloat16, reward_dtype=torch.int32)
    b.add(s, 1., 3, s, True)
    b.add_multi(s[None].bfloat16(), [1], [4], s[None], [False], truncateds=[True])
    with refused('`reward` should be int32'): b.add(s, 1., 3.5, s, True)
    same((b.states, b.rewards, b.hiddens, b.terminateds, b.dones),
         (s.expand(2,2).bfloat16(), tensor([[3],[4]], dtype=torch.int32), torch.zeros(2,0), tensor([[1.],[0.]]), torch.ones(2,1)))
    assert b.sample(2).states.dtype==torch.bfloat16

# %% Priorities
@pytest.fixture
def picky():
    "Four steps, drawn by priority alone"
    b = ReplayBuffer(4, 2, 1, 3, sampler=Prioritized(alpha=1., seed=0))
    b.add_multi(*steps(0,1,2,3))
    return b

i4 = torch.arange(4)
no_updates = ((torch.ones(3), None), (torch.ones(1,4), None), (tensor(1.), None), (torch.ones(4), torch.arange(1)),
              (torch.ones(4), torch.arange(3)), (tensor([1,2,3,float('nan')]), None))
@pytest.mark.parametrize('td,serials', no_updates, ids=range(len(no_updates)))
def test_wrong_update(picky, td, serials):
    "One TD error and one serial number for each row, and no NaN"
    with refused(): picky.update_td(td, i4, serials)

@pytest.mark.parametrize('idxs', [[4], [-5], [.5], None], ids=str)
def test_no_such_row(picky, idxs):
    "Rows that are not there cannot be updated"
    with refused(exc=IndexError): picky.update_td(torch.ones(1), idxs)

def test_update_empty():
    "Nor can an empty buffer"
    with refused('there are 0 rows', IndexError): ReplayBuffer(4, 2, 1, 3, sampler=Prioritized()).update_td([1.], [0])

def test_late_update(picky):
    "An update that comes too late does not reach the new row, which has the priority of a new one"
    picky.add(*step(4)) # in the place of 0
    picky.update_td(torch.zeros(4,1), i4, i4[:,None])
    assert picky.dropped_updates==1
    assert set(picky.sample(4).idxs.tolist())=={0}
    picky.update_td([5,0], [3,0])
    assert set(picky.sample(4).idxs.tolist())=={3}

def test_update_by_batch():
    "A batch alone says which rows it has: as its numbers do, also when it comes late"
    both,rng,drawn = [ReplayBuffer(7, 2, 1, 3, sampler=Prioritized(seed=0)) for _ in range(2)],random.Random(0),[]
    (a,b),n = both,0
    for _ in range(200):
        for _ in range(rng.randrange(1, 4)):
            for o in both: o.add(*step(n))
            n += 1
        drawn.append([o.sample(1) for o in both])
        one,same_one = drawn.pop(rng.randrange(len(drawn))) if rng.random()<.7 else drawn[-1]
        td = [rng.random()]
        a.update_td(td, one.idxs, one.serials)
        b.update_td(td, same_one)
        assert (a.dropped_updates, a.sample(1).serials.tolist())==(b.dropped_updates, b.sample(1).serials.tolist())
    assert 10<a.dropped_updates<190
    with refused('TD errors come first'): a.update_td(one, td)
    with refused('by `idxs` and `serials`'): a.update_td(td, BatchExperience(*[torch.zeros(1, 1)]*6))

def test_update_uniform(b):
    "To a uniform sampler a TD error makes no difference"
    b.update_td([1.], [0])
    assert b.dropped_updates==0

# %% Files
wide = dict(state_dtype=torch.float64, hidden_dtype=torch.bfloat16)
@pytest.mark.parametrize('cap,fill,kw', itertools.product((1,3), range(8), ({}, wide)))
def test_files(tmp_path, cap, fill, kw):
    "At every fill: what is loaded is what was saved, and the next step goes where it would have gone"
    b = ReplayBuffer(cap, (2,1), 2, 0 if fill%2 else 3, **kw)
    for i in range(fill):
        b.add([[i],[i+1]], [i,-i], i, [[i+1],[i+2]], i%3==0, None if fill%2 else [i]*3, truncated=i%2==1)
    b.save(str(tmp_path), prefix='x.1_')
    assert sorted(o.name for o in tmp_path.iterdir())==['x.1_metadata.json','x.1_state.safetensors']
    meta = json.loads((tmp_path/'x.1_metadata.json').read_text())
    assert meta=={**b.metadata(), 'state_dim':[2,1]}
    for name in ('x.1_state','x.1_state.safetensors'):
        again = ReplayBuffer.load(str(tmp_path/name), meta, seed=1)
        same((again.state_dict(), again.metadata()), (b.state_dict(), b.metadata()))
    for o in (b, again): o.add([[7],[8]], [1,2], 3., [[8],[9]], False)
    same((again.state_dict(), again.metadata()), (b.state_dict(), b.metadata()))
    if len(b)>1: assert len(again.sample(2).states)==2
    b.state_dict()['states'][:] = 99
    same(again.state_dict(), b.state_dict()) # it was a copy

@pytest.fixture
def saved(tmp_path):
    "A buffer that was saved, its metadata and its file of columns"
    b = ReplayBuffer(5, 2, 1, 3)
    b.add_multi(*steps(1,2))
    b.save(tmp_path/'v')
    return b,b.metadata(),tmp_path/'v'/'buffer_state.safetensors'

def test_velora(saved):
    "Velora's `load` looks for six float32 tensors of full length"
    b,_,state = saved
    with safe_open(state, 'pt') as f: got = {k: f.get_tensor(k) for k in f.keys()}
    same({k: got[k] for k in names[:6]}, {k: getattr(b, k).contiguous() for k in names[:6]})
    assert {(len(o), o.dtype) for o in got.values()}=={(5, torch.float32)}

class Mine(ReplayBuffer): "A subclass"
def test_load_subclass(saved):
    "A subclass stays one, and takes a sampler"
    again = Mine.load(saved[2], saved[1], sampler=Prioritized(seed=0))
    assert (type(again), again.metadata()['device'], again.sample(2).weights.tolist())==(Mine, None, [[1.],[1.]])

def test_load_device(saved):
    "The saved device is used, or the one you give; one that is not there is refused"
    _,meta,state = saved
    for d,want in (('cpu','cpu'), (torch.device('cpu'),'cpu'), (None,None)):
        assert ReplayBuffer(1, 1, 1, 1, device=d).metadata()['device']==want
    assert ReplayBuffer.load(state, {**meta, 'device':'cpu'}).metadata()['device']=='cpu'
    for d in ('nowhere', 'xpu:77'):
        with refused('give another'): ReplayBuffer.load(state, {**meta, 'device':d})
    assert ReplayBuffer.load(state, {**meta, 'device':'xpu:77'}, device='cpu').device=='cpu'

def broken(saved, contains, **kw):
    "Loading raises an error that names the file"
    with refused(contains) as e: ReplayBuffer.load(saved[2], {**saved[1], **kw})
    assert str(saved[2]) in str(e.value)

@pytest.mark.parametrize('part', [0, .01, .03, .5, .999])
def test_cut_short(saved, part):
    "A file that was cut short"
    good = saved[2].read_bytes()
    saved[2].write_bytes(good[:int(part*len(good))])
    broken(saved, 'was cut short, or is no safetensors file')

def test_last_byte_lost(saved):
    "By as little as one byte, or to as little as four"
    good = saved[2].read_bytes()
    for n in (4, 20, len(good)-1):
        saved[2].write_bytes(good[:n])
        broken(saved, 'was cut short, or is no safetensors file')

@pytest.mark.parametrize('n', range(1, 40, 3))
def test_flipped(saved, n):
    "A flipped bit"
    good = saved[2].read_bytes()
    saved[2].write_bytes(good[:-n] + bytes([good[-n]^1]) + good[len(good)-n+1:])
    broken(saved, 'is damaged: its checksum is')

def resave(saved, head=None, **kw):
    "Other columns in the file; `None` leaves one out"
    save_file({k:v for k,v in {**saved[0].state_dict(), **kw}.items() if v is not None}, saved[2], head)

@pytest.mark.parametrize('kw,says', [(dict(hiddens=None, rewards=None), "missing ['hiddens', 'rewards'], unknown []"),
                                     (dict(truncateds=None), "missing ['truncateds'], unknown []"),
                                     (dict(other=torch.ones(1)), "missing [], unknown ['other']")], ids=['two','one','more'])
def test_other_columns(saved, kw, says):
    "Columns that are missing or unknown"
    resave(saved, **kw)
    broken(saved, says)

@pytest.mark.parametrize('name', names)
def test_other_shape(saved, name):
    "Columns of another shape"
    resave(saved, **{name: torch.zeros(4,1)})
    broken(saved, f'`{name}` should be of shape (5,')

def test_other_dtype(saved):
    "`states` and `next_states` have one dtype"
    resave(saved, next_states=torch.zeros(5,2).int())
    broken(saved, '`next_states` should be torch.float32 as `states`, got torch.int32')

def test_two_saves(saved):
    "Columns and metadata of two saves do not go together"
    resave(saved, dict(position='3', size='2'))
    broken(saved, 'has the position 3, and the metadata say 2: they are not of one save')

def test_velora_columns(saved):
    "The six columns of Velora are enough"
    resave(saved, terminateds=None, truncateds=None)
    assert len(ReplayBuffer.load(saved[2], saved[1]))==2

def test_wrong_metadata(saved):
    "Metadata that lack a number, or have one that cannot be"
    _,meta,state = saved
    for k in meta:
        with refused(f"['{k}'] are missing") as e: ReplayBuffer.load(state, {o:v for o,v in meta.items() if o!=k})
        assert str(state) in str(e.value)
    for o in ('buffer_metadata.json', [1]):
        with refused('should be a dict') as e: ReplayBuffer.load(state, o)
        assert str(state) in str(e.value)
    for k,v in dict(capacity=0, state_dim='a', action_dim=-1, hidden_dim=None, position=1.5, size=-1).items():
        broken(saved, str(state), **{k:v})

@pytest.mark.parametrize('kw', [dict(size=6), dict(position=3), dict(size=5, position=5), dict(size=3)], ids=str)
def test_wrong_position(saved, kw):
    "A size and a position that no buffer has together"
    resave(saved)
    broken(saved, 'never has the size', **kw)

def test_other_dims(saved):
    "Metadata of another buffer"
    broken(saved, 'should be of shape (10, 2)', capacity=10)
    broken(saved, '(5, 2, 1)', state_dim=[2,1])

def test_pickle_refused(saved):
    "A pickle is not opened"
    saved[2].write_bytes(pickle.dumps(saved[0].state_dict()))
    broken(saved, 'no safetensors file')

def test_no_file(saved):
    "A folder, or nothing, is no file"
    _,meta,state = saved
    with refused('v.safetensors', FileNotFoundError): ReplayBuffer.load(state.parent, meta)
    with refused('none.safetensors', FileNotFoundError): ReplayBuffer.load(state.parent/'none.safetensors', meta)

def test_failed_save(saved, monkeypatch):
    "A save that fails leaves the files that were there, and no other"
    b,_,state = saved
    was = {o.name: o.read_bytes() for o in state.parent.iterdir()}
    b.add(*step(5))
    def half(path, data, head):
        path.write_bytes(b'half')
        raise OSError('the disk is full')
    monkeypatch.setattr(buffer, 'write_tensors', half)
    with refused('disk is full', OSError): b.save(state.parent)
    assert {o.name: o.read_bytes() for o in state.parent.iterdir()}==was

def test_flushed(saved, monkeypatch):
    "Both files are flushed to the disk"
    synced,fsync,folder = [],os.fsync,saved[2].parent
    def note(fd):
        if stat.S_ISREG(os.fstat(fd).st_mode): synced.append(os.fstat(fd).st_size)
        fsync(fd)
    monkeypatch.setattr(os, 'fsync', note)
    saved[0].save(folder)
    assert set(synced)=={(folder/o).stat().st_size for o in ('buffer_state.safetensors','buffer_metadata.json')}

# %% Warming up
class Line(gym.Env):
    "Counts from `start`, and logs what is done to it; a continuous action is added to the reward"
    made = []
    observation_space,action_space = gym.spaces.Box(-99, 99, (2,)),gym.spaces.Box(-1, 1, (2,))
    metadata = dict(render_modes=['human'])
    def __init__(self, start=0, length=99, both=False, render_mode=None):
        self.start,self.length,self.both,self.render_mode = start,length,both,render_mode
        self.log,self.x = [],np.zeros(2, np.float32) # it always shows the same array
        Line.made.append(self)
    def reset(self, *, seed=None, options=None):
        self.log.append('reset')
        self.x[:] = self.start
        return self.x,{}
    def step(self, a):
        assert self.action_space.contains(a), a
        self.log.append('step')
        self.x += 1
        over = self.x[0]==self.start+self.length
        return self.x, float(a.sum()), over, over and self.both, {}
    def close(self): self.log.append('close')
gym.register('FastrlLine-v0', entry_point=Line, disable_env_checker=True) # it would warn

class Act:
    "Acts the same in each state, and keeps what it saw"
    def __init__(self, **kw): self.env,self.seen = gym.make('FastrlLine-v0', **kw),[]
    def predict(self, states, hidden, *, train_mode):
        assert train_mode and not torch.is_grad_enabled()
        self.seen.append(states)
        return states*0+tensor([.25,.5]), None

@pytest.fixture
def made():
    "The environments that were made; the first is the agent's"
    Line.made.clear()
    return Line.made

kinds = (dict(start=3, length=4), dict(length=4, both=True), dict(max_episode_steps=4),
         dict(length=4, max_episode_steps=4), dict(render_mode='human', length=4))
@pytest.mark.parametrize('n,kw', itertools.product((1,2,8), kinds), ids=str)
def test_warm(made, n, kw):
    "`warm` leaves the agent's environment as it is, closes its copies, and keeps their arguments and time limits"
    agent,b,start = Act(**kw),ReplayBuffer(60, 2, 2, 1),kw.get('start', 0)
    agent.env.reset()
    b.warm(agent, 30, num_envs=n)
    k = b.size
    assert k==-(-30//n)*n
    assert made[0].log==['reset'] and [o.log[-1] for o in made[1:]]==['close']*n
    assert {o.render_mode for o in made[1:]}=={None}
    x,y = b.states[:k].view(-1,n,2),b.next_states[:k].view(-1,n,2) # one column of them for each copy
    same(y, x+1)
    same(x[:,:,0], (torch.arange(len(x))%4+start).float()[:,None].expand(-1,n))
    over,term,trunc = (y[:,:,0]==start+4).float().view(-1,1),'length' in kw,'max_episode_steps' in kw or 'both' in kw
    same((b.dones[:k], b.terminateds[:k], b.truncateds[:k]), (over, over*term, over*trunc))
    same((b.rewards[:k], b.actions[:k], b.hiddens[:k]), (torch.full((k,1), .75), tensor([.25,.5]).expand(k,2), torch.zeros(k,1)))
    assert {(o.shape, o.dtype) for o in agent.seen}=={((n,2), torch.float32)}

class Toy(gym.Env):
    "The state counts the steps; action 1 ends the episode at the second; all environments write into one array"
    observation_space,action_space,out = gym.spaces.Box(0, 9, (1,)),gym.spaces.Discrete(2),np.zeros(1, np.float32)
    def see(self): Toy.out[:] = self.t; return Toy.out
    def reset(self, *, seed=None, options=None): self.t = 0; return self.see(),{}
    def step(self, a): self.t += 1; return self.see(), float(self.t), a==1 and self.t==2, False, {}
gym.register('FastrlOneArray-v0', entry_point=Toy, max_episode_steps=3, disable_env_checker=True)

class Agent:
    "Ends the episodes of the first environment early; its hidden state counts, too"
    def __init__(self, name='FastrlOneArray-v0', **kwargs): self.env = gym.make(name, **kwargs)
    def predict(self, states, hidden, train_mode=False):
        if hidden is None: hidden = torch.zeros(len(states), 1)
        return (torch.arange(len(states))==0).long(), hidden+1

def test_warm_one_array():
    "Environments that all write what they show into one array"
    b = ReplayBuffer(30, 1, 1, 1)
    b.warm(Agent(), 30, num_envs=3)
    same(b.next_states, b.states+1)
    same(b.hiddens, b.next_states)

def test_warm_enough():
    "No more steps are made than were asked for; a full buffer overwrites its oldest"
    b = ReplayBuffer(8, 2, 2, 1)
    b.warm(None, 0)
    b.warm(Act(), 8, num_envs=3)
    assert (len(b), b.ring.total)==(8, 9)
    b.warm(None, 8)
    b = ReplayBuffer(20, 2, 2, 1)
    b.add_multi(*(torch.zeros(5,o) for o in (2,2,1,2,1)))
    b.warm(Act(), 7, num_envs=1)
    assert len(b)==7

class Bad(Act):
    def __init__(self, gives, **kw): super().__init__(**kw); self.gives = gives
    def predict(self, states, hidden, train_mode): return self.gives(states)

gives = dict(wide=(lambda s: (torch.zeros(4,3), None), 'actions of shape (4, 2), got (4, 3)'),
             flat=(lambda s: (torch.zeros(2), None), 'got (2,)'),
             complex=(lambda s: (torch.zeros(4,2)+1j, None), 'actions of float32'),
             hidden=(lambda s: (s*0, torch.zeros(4,7)), '`hiddens` should be of shape (4, 1), as the buffer was made, got (4, 7)'),
             error=(lambda s: 1/0, 'division'))
@pytest.mark.parametrize('gives,text', gives.values(), ids=gives)
def test_warm_wrong_agent(made, gives, text):
    "An agent that errs: nothing is stored, and all copies are closed"
    b = ReplayBuffer(20, 2, 2, 1)
    with refused(text, Exception): b.warm(Bad(gives), 8, num_envs=4)
    assert (len(b), [o.log[-1] for o in made[1:]], made[0].log)==(0, ['close']*4, [])

@pytest.mark.parametrize('dims,text', [((3,2,1), '`states` should be of shape (8, 3)'),
                                       ((2,1,1), '`actions` should be of shape (8, 1)')], ids=['state','action'])
def test_warm_wrong_dims(dims, text):
    "A buffer of other dimensions than the environment"
    with refused(text): ReplayBuffer(20, *dims).warm(Act(), 8)

def test_warm_wrong_dtype():
    "Or of another dtype"
    with refused('`states` should be uint8'): ReplayBuffer(20, 2, 2, 1, state_dtype=torch.uint8).warm(Act(), 8)

wrong_args = ((21,), '`n_samples` should be at most 20'), ((1.5,), '`n_samples`'), ((5, 0), '`num_envs` should be'), ((5, 1.5), '`num_envs`')
@pytest.mark.parametrize('args,text', wrong_args, ids=range(4))
def test_warm_wrong_args(args, text):
    "Counts are whole numbers, and no more steps are asked for than fit"
    with refused(text): ReplayBuffer(20, 2, 2, 1).warm(Act(), *args)

class Two(Line): observation_space = gym.spaces.Tuple([Line.observation_space]*2)
gym.register('FastrlTwo-v0', entry_point=Two)

def test_warm_no_copy():
    "An environment that was not made by gymnasium, or whose wrapper does not say how, cannot be copied"
    bare = Act()
    bare.env = Line()
    with refused('should be made by `gymnasium.make`'): ReplayBuffer(20, 2, 2, 1).warm(bare, 5)
    bare.env = gym.Wrapper(gym.make('FastrlLine-v0'))
    with refused('RecordConstructorArgs', Exception): ReplayBuffer(20, 2, 2, 1).warm(bare, 9)

@pytest.mark.filterwarnings('ignore')
def test_warm_no_array():
    "Observations of several parts cannot be stored"
    bare = Act()
    bare.env = gym.make('FastrlTwo-v0')
    with refused('one array or number each'): ReplayBuffer(20, 2, 2, 1).warm(bare, 5)

class Right:
    "Goes right in FrozenLake, whose states are numbers"
    device = torch.device('cpu')
    def __init__(self): self.env = gym.make('FrozenLake-v1', is_slippery=False, max_episode_steps=7)
    def predict(self, states, hidden, train_mode):
        assert (states.dtype, states.shape)==(torch.int64, (3,1))
        return np.full((3,1), 2), None

def test_warm_discrete():
    "Numbers as states, and a choice of several"
    b = ReplayBuffer(30, 1, 1, 0, state_dtype=torch.int64, action_dtype=torch.int64)
    b.warm(Right(), 21, num_envs=3, seed=0)
    same(b.states[:21].view(-1,3), tensor([0,1,2,3,3,3,3])[:,None].expand(-1,3))
    assert b.truncateds[:21].view(-1,3).sum(0).tolist()==[1,1,1]

def test_warm_wrappers():
    "The wrappers of the agent's environment count; those that convert or film do not"
    twice = Act()
    twice.env = gym.wrappers.RescaleObservation(twice.env, np.float32(0), np.float32(2))
    for o in buffer._wrappers_left_out: # stand-ins, since some need more packages
        class Aside(gym.Wrapper, gym.utils.RecordConstructorArgs):
            def __init__(self, env): gym.utils.RecordConstructorArgs.__init__(self); super().__init__(env)
            @classmethod
            def class_name(cls): return cls.name
            def reset(self, **kw): raise RuntimeError('only for the agent')
        Aside.name = o
        twice.env = Aside(twice.env)
    assert [o.name for o in twice.env.spec.additional_wrappers]==[
        'RescaleObservation','NumpyToTorch','RecordVideo','HumanRendering','RenderCollection']
    b = ReplayBuffer(30, 2, 2, 1)
    b.warm(twice, 4, num_envs=2)
    same(b.next_states[:2], torch.full((2,2), 2*100/198))

class Double(Act):
    def predict(self, states, hidden, train_mode):
        states *= 0
        return np.zeros((len(states),2)), states[:,:1]

def test_warm_careless():
    "float64 actions; and what the agent does to its states is not stored"
    b = ReplayBuffer(30, 2, 2, 1)
    b.warm(Double(start=3), 4, num_envs=2)
    same(b.states[:4], tensor([[3.,3],[3,3],[4,4],[4,4]]))

class Mind(Agent):
    "Its hidden state is a matrix that counts the steps"
    def predict(self, states, hidden, train_mode):
        if hidden is None: hidden = torch.zeros(len(states), 2, 2)
        same(hidden, states[:,:,None].expand(-1,2,2))
        self.hidden = hidden+1
        self.was = self.hidden.clone()
        return (torch.arange(len(states))%2).long(), self.hidden

@pytest.mark.parametrize('n', [1,2,5])
def test_warm_hidden(n):
    "Hidden states begin at 0 again, each with its own copy, in any shape, and the agent's own tensor stays what it is"
    b,mind = ReplayBuffer(99, 1, 1, (2,2)),Mind()
    b.warm(mind, 60, num_envs=n)
    same(b.hiddens[:60], b.next_states[:60,:,None].expand(-1,2,2))
    same(mind.hidden, mind.was)

class Push(Agent):
    "Pushes CartPole to the side to which it leans"
    def predict(self, states, hidden, train_mode): return (states[:,2]>0).long(), hidden

def test_warm_seed():
    "The same seed, the same steps: those of single environments"
    one,two = (ReplayBuffer(99, 4, 1, 8) for _ in range(2))
    for o in (one,two): o.warm(Push('CartPole-v1', max_episode_steps=7), 80, seed=4)
    same(one.state_dict(), two.state_dict())
    assert one.truncateds.any()
    alone = gym.make('CartPole-v1', max_episode_steps=7)
    x,want = alone.reset(seed=6)[0],[] # the third copy has the seed 6
    for _ in range(10):
        y,*_,terminated,truncated,_ = alone.step(int(x[2]>0))
        want.append([x, y])
        x = alone.reset()[0] if terminated or truncated else y
    same(torch.stack([one.states[2:80:8], one.next_states[2:80:8]], 1), tensor(np.array(want)))

def test_velora_page():
    "The example of Velora's page, with a stand-in for its agent"
    b = ReplayBuffer(1000, 4, 1, 8)
    b.warm(Push('CartPole-v1'), 5, num_envs=2)
    exp = (torch.zeros(4), tensor((1.)), 2., torch.zeros(4), False, torch.zeros(8))
    b.add(*exp)
    exp = (torch.zeros((3, 4)), torch.ones((3, 1)), torch.ones((3, 1)), torch.zeros((3, 4)), torch.ones((3, 1)),
           torch.zeros((3, 8)))
    b.add_multi(*exp)
    batch = b.sample(batch_size=5)
    assert len(b)==10
    assert (batch.rewards + (1 - batch.dones)*.9*torch.ones(5,1)).shape==(5,1)
    BatchExperience(*(torch.zeros(2,1) for _ in range(6)))

# %% Velora's forms
six,beside = names[:6],('terminateds','truncateds','weights','idxs','serials')

@pytest.mark.parametrize('sampler', [None, Prioritized(seed=0)], ids=['uniform','prioritized'])
def test_batch_is_six_columns(sampler):
    "Whoever iterates over a batch gets Velora's six, one shape `(batch_size, features)`, and can build another of them"
    b = ReplayBuffer(9, 2, 1, 3, sampler=sampler)
    b.add_multi(*steps(*range(9)))
    batch = b.sample(5)
    want = {k: getattr(batch, k) for k in six}
    assert tuple(f.name for f in dataclasses.fields(batch))==six==tuple(o.strip() for o in re.findall(r'(\w+)=tensor', repr(batch)))
    for got in (vars(batch), batch.__dict__, dataclasses.asdict(batch), dict(zip(six, dataclasses.astuple(batch)))):
        assert tuple(got)==six
        same(got, want)
    assert {k: tuple(v.shape) for k,v in want.items()}==dict(zip(six, ((5,2),(5,1),(5,1),(5,2),(5,1),(5,3))))
    again = BatchExperience(*dataclasses.astuple(batch))
    same(vars(again), vars(batch))
    assert [getattr(again, k) for k in beside]==[None]*5

copies = dict(pickle=lambda o: pickle.loads(pickle.dumps(o)), old_pickle=lambda o: pickle.loads(pickle.dumps(o, 2)),
              copy=copy.copy, deepcopy=copy.deepcopy, replace=lambda o: dataclasses.replace(o, states=o.states.clone()),
              positional=lambda o: BatchExperience(*(getattr(o, k) for k in six+beside)))
@pytest.mark.parametrize('how', copies)
def test_batch_copies(how):
    "A copy of a batch has the attributes that are no fields, each can be set, and no other name can stand in for one"
    b = ReplayBuffer(9, 2, 1, 3, sampler=Prioritized(seed=0))
    b.add_multi(*steps(*range(9)), truncateds=torch.arange(9)%2)
    batch = b.sample(5)
    got = copies[how](batch)
    for k in six+beside: same(getattr(got, k), getattr(batch, k))
    got.weights = torch.zeros(5,1)
    assert got.weights.sum()==0 and batch.weights.sum()>0 and tuple(vars(got))==six
    b.update_td(torch.rand(5), got.idxs, got.serials)

def test_batch_by_hand():
    "Keywords make a batch, too; the six are needed"
    cols = {k: torch.zeros(2,1) for k in six}
    batch = BatchExperience(**cols, idxs=tensor([3,4]))
    same((batch.idxs, batch.serials, batch.states), (tensor([3,4]), None, torch.zeros(2,1)))
    with refused('hiddens', TypeError): BatchExperience(*list(cols.values())[:5])

def loaded(**names): return mock.patch.dict(sys.modules, {'velora.models.config':SimpleNamespace(**names)})
def test_config():
    "`config` is a dict of five items until Velora is loaded, and then what Velora makes of them; a subclass is of the same kind"
    class Mine(ReplayBuffer): pass
    want = dict(type='ReplayBuffer', capacity=9, state_dim=2, action_dim=1, hidden_dim=3)
    for cls in (ReplayBuffer, Mine):
        config = cls(9, 2, 1, 3).config()
        assert config==want and config.state_dim==2 and json.loads(json.dumps(config))==want
        with loaded(): assert cls(9, 2, 1, 3).config()==want # a Velora without the name
        with loaded(BufferConfig=SimpleNamespace): assert cls(9, 2, 1, 3).config()==SimpleNamespace(**want)

def test_config_in_pydantic():
    "Fields of a pydantic model take both, and say what they cannot hold"
    pydantic = pytest.importorskip('pydantic')
    class BufferConfig(pydantic.BaseModel):
        type: Literal['ReplayBuffer']; capacity: int; state_dim: int; action_dim: int; hidden_dim: int
    class Agent(pydantic.BaseModel): buffer: BufferConfig
    b = ReplayBuffer(9, 2, 1, 3)
    one = Agent(buffer=b.config())
    with loaded(BufferConfig=BufferConfig):
        assert isinstance(b.config(), BufferConfig) and Agent(buffer=b.config())==one
        with refused('state_dim'): ReplayBuffer(9, (2,2), 1, 3).config()
    assert one.buffer==BufferConfig(type='ReplayBuffer', capacity=9, state_dim=2, action_dim=1, hidden_dim=3)

def test_warm_progress():
    "A long warm-up shows a progress bar"
    real,bars = fastprogress.progress_bar,[]
    def make(*args, **kw): bars.append(real(*args, **kw)); return bars[-1]
    with (mock.patch.object(time, 'monotonic', itertools.count(step=100).__next__), capture_output(),
          mock.patch.multiple(fastprogress, IN_NOTEBOOK=True, progress_bar=make)):
        (b := ReplayBuffer(20, 2, 2, 1)).warm(Act(), 20)
    assert (len(b), [o.total for o in bars])==(20, [20])

# %% A save over an earlier one

def numbered(i):
    "A buffer whose every save is told from the others: other rows, another capacity"
    b = ReplayBuffer(4+i%3, 2, 1, 1)
    for k in range(2+i%5): b.add([i, k], 0, float(i), [i, k+1], False, [0.])
    return b

def found(folder):
    "Which save a folder holds, for this library and for a reader that knows two files, as Velora's loader"
    meta = json.loads((folder/'buffer_metadata.json').read_text())
    cols,b = load_file(folder/'buffer_state.safetensors'),ReplayBuffer.load(folder/'buffer_state.safetensors', meta)
    i = int(b.rewards[0])
    want = numbered(i)
    same((meta, b.metadata()), (want.metadata(), want.metadata()))
    same(({k: cols[k] for k in names[:6]}, b.state_dict()), ({k: getattr(want, k).contiguous() for k in names[:6]}, want.state_dict()))
    return i

def look_of(folder):
    "All names in a folder, and what they are"
    return [(o, os.readlink(o) if o.is_symlink() else o.stat().st_ino, not o.is_symlink() and o.stat().st_size)
            for o in sorted(folder.rglob('*'))]

def moments(folder, f):
    "Copies of `folder` as a kill would leave it, at each line of `f` that changed something; the last one is afterwards"
    res,last = [],[None]
    def look():
        if not folder.exists() or (now := look_of(folder))==last[0]: return
        last[0] = now
        res.append(shutil.copytree(folder, f'{folder}.{len(res)}', symlinks=True))
    def trace(frame, event, _):
        if frame.f_code.co_filename not in (files.__file__, shutil.__file__): return
        look()
        return trace
    was = sys.gettrace()
    sys.settrace(trace)
    try: f()
    finally: sys.settrace(was)
    look()
    return [Path(o) for o in res]

@pytest.mark.parametrize('start', ['earlier','of Velora','nothing'])
def test_killed_save(tmp_path, start):
    "Wherever a save is killed, the earlier one is there, or the new one: both files of it, for any reader"
    folder,seen = tmp_path/'b',[]
    if start!='nothing': numbered(0).save(folder)
    if start=='of Velora': # six columns, and no header
        at = folder/'buffer_state.safetensors'
        save_file({k: v for k,v in load_file(at).items() if k in names[:6]}, at)
    for o in moments(folder, lambda: numbered(1).save(folder)):
        there = [(o/f'buffer_{k}').exists() for k in ('state.safetensors','metadata.json')]
        seen.append(found(o) if all(there) else None)
        assert all(there) or start=='nothing' and not any(there)
        numbered(2).save(o) # over what was left
        assert (found(o), sorted(os.listdir(o)))==(2, ['buffer_metadata.json','buffer_state.safetensors'])
    assert len(seen)>15 and seen==sorted(seen, key=lambda o: o==1) and {*seen}=={None if start=='nothing' else 0, 1}

@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, 'fork'), reason='children are forked')
def test_killed_savers(tmp_path):
    "Savers that are killed at random moments, each of which finds what the one before it left"
    rng,now,both = random.Random(0),0,0
    numbered(0).save(tmp_path)
    for _ in range(100):
        if not (pid := os.fork()):
            for i in itertools.count(now+1): numbered(i).save(tmp_path)
        time.sleep(rng.random()*.1)
        os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)
        got = found(tmp_path)
        assert got>=now
        both,now = both+(len(os.listdir(tmp_path))>2),got
    assert both>10, 'hardly any kill hit a saver in the middle'

def test_two_savers(tmp_path):
    "Two threads that save to one folder: both files are always of one save"
    def save(i):
        for k in range(8): numbered(i+k).save(tmp_path)
    with ThreadPoolExecutor(2) as pool: [*pool.map(save, (0,100))]
    assert found(tmp_path) in (7,107) and len(os.listdir(tmp_path))==2
