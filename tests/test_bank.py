"Banks and their files: every kind of value comes back, each row is merged once, and no file runs anything or loads by half"
import base64, collections, contextlib, copy, dataclasses, errno, io, itertools, json, logging, multiprocessing as mp
import os, pickle, random, shutil, sys, threading, types, warnings, zlib
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from unittest.mock import patch
import numpy as np, pytest, torch
from torch import Tensor, tensor
from fastrl.memory import bankfile, files, unpickle
from fastrl.memory.bank import BankUnion, Experience, ExperienceBank, Merge, bank_about, create_experience, merge_banks
from fastrl.memory.files import LoadError, checksum, read_tensors, write_tensors
from fastrl.memory.place import Place

logger = 'fastrl.memory.bank'
names = ('state','action','reward','next_state','done')

def same(a, b):
    "Are two experiences alike, their types included?"
    if isinstance(a, Experience): a,b = vars(a),vars(b)
    assert type(a)==type(b)
    if isinstance(a, dict):
        assert list(a)==list(b)
        for k in a: same(a[k], b[k])
    elif isinstance(a, (tuple,list)):
        assert len(a)==len(b)
        for x,y in zip(a, b): same(x, y)
    elif isinstance(a, (np.ndarray, np.generic, Tensor)): assert (a.dtype, a.tolist())==(b.dtype, b.tolist())
    else: assert a==b

def all_same(xs, ys):
    for x,y in zip(xs, ys, strict=True): same(x, y)

def step(i, n=2, **kwargs):
    return create_experience(np.full(n, i, np.float32), i%2, float(i), np.full(n, i+1, np.float32), i%5==4, **kwargs)

def E(state=1., action=1, reward=0., **kw): return Experience(state, action, reward, state, False, kw.get('info', {}))

def bank_with(*es, **kw):
    bank = ExperienceBank(**kw)
    for e in es: bank.add(e)
    return bank

def rewards(bank): return [e.reward for e in bank]
def states(bank): return [e.state for e in bank]

@contextlib.contextmanager
def fails(*says, exc=ValueError):
    "An error, with all these words in it"
    with pytest.raises(exc) as e: yield
    for o in says: assert o in str(e.value)

def load_fails(path, *says, exc=LoadError):
    with fails(path.name, *says, exc=exc): ExperienceBank.load(path)

def rose_module(module):
    "A module like ROSE's, and those above it"
    m = types.ModuleType(module)
    m.Experience = dataclasses.dataclass(type('Experience', (), {
        '__annotations__':dict.fromkeys(names, object)|{'info':dict}, 'info':None, '__module__':module}))
    m.rl,m.experience,m.__path__ = m,m,[]
    return {module.rsplit('.', i)[0]:m for i in range(3)}

def rose(es, protocol=4, module='rose.rl.experience'):
    "What ROSE's `save` writes"
    with patch.dict(sys.modules, mods := rose_module(module)):
        m = mods[module]
        return pickle.dumps([m.Experience(**vars(e)) for e in es], protocol=protocol)

def es3():
    return [create_experience(np.full(2, i, np.float32), i, np.float64(i), torch.full((2,), float(i)), i==2,
                              {'arr':[1.,2.], 'i':i}) for i in range(3)]

# %% What goes in comes back
kinds = [np.zeros(3, np.float32), np.arange(6, dtype=np.uint8).reshape(2,3), torch.ones(2, dtype=torch.bfloat16),
         torch.tensor(3), 5, 2.5, True, 1+2j, np.float64(.1), np.int8(-3), np.bool_(True), [1,2,3], [[.5,1.],[2.,3.]],
         {'pos':np.ones(2), 'map':{'a':torch.zeros(2,2), 'b':(1, 2.)}}, (np.zeros(2, np.int16), 7), np.array(4.),
         np.zeros((0,2), np.float32), np.ones(2, bool), {'x':1, 'no':{}}, torch.tensor([1+1j])]
infos = [None, {}, {'step':42}, {'a':[1,{'b':None}], 'ü':'ß', 'f':.1, 't':True}]
rest = ((1,0,False), (np.int64(2),.5,np.bool_(True)), (3,np.float32(1.5),1), (4,-1,torch.tensor(True)))

@pytest.mark.parametrize('i', range(len(kinds)))
def test_types(tmp_path, i):
    "With its type: from memory, from both kinds of files, after a merge, beside others that are wider"
    state = kinds[i]
    es = [Experience(state, a, r, state, o, infos[(i+j)%4]) for j,(a,r,o) in enumerate(rest)]
    bank = bank_with(*es, seed=0)
    whole = ExperienceBank()
    whole.add_batch(es)
    for k in ('pkl','safetensors'): bank.save(tmp_path, f'types.{k}')
    other = bank_with(Experience(state, True, True, state, 0), max_size=3)
    other.merge_inplace(bank)
    for o in (bank, whole, ExperienceBank.load(tmp_path/'types.pkl'), ExperienceBank.load(tmp_path/'types.safetensors')):
        all_same(es, o)
    all_same(es[1:], other)
    for e in bank.sample(6): same(e, next(o for o in es if o.action==e.action))
    b = bank.sample_batch(5)
    assert (list(b), b['reward'].dtype, b['action'].dtype, b['done'].dtype)==(
        list(names), torch.float32, torch.int64, torch.int64)

def test_info_is_plain_data_and_a_copy():
    info = {'a':np.float32(.5), 'b':np.arange(2), 'c':torch.ones(1), 1:'a', '1':(None, {True:b'x', (2,3):['y']})}
    bank = bank_with(Experience(1, 1, 1, 1, False, info))
    same(bank[0].info, info)
    bank[0].info['a'] = 7
    same(bank[0].info, info)

def test_arrays_are_copied():
    e = step(1)
    bank = bank_with(e)
    e.state += 1
    assert bank[0].state.tolist()==[1.,1.]

refused = [(5, 'an experience should have state'), (Experience(1,1,1.,1,np.array([True,False])), '`done` should be one bool'),
           (Experience(1,1,1.,1,'yes'), '`done` should be one bool'), (Experience(len,1,1.,1,False), '`state` should be plain data'),
           (Experience(1,[1,len],1.,1,False), '`action` should be plain data'),
           (Experience(1,1,1.,np.array([{}]),False), '`next_state` should be plain data'),
           (Experience(1,1,1.,torch.ones(2).to_sparse(),False), '`next_state` should be plain data'),
           (Experience(1,1,1.,1,False,'info'), '`info` should be a dict'), (Experience(1,1,1.,1,False,{'a':{1,2}}), 'plain data'),
           *((Experience(**{**vars(step(1)), k: v}), f'`{k}` should be plain data: numbers, strings, arrays, tensors, or lists, tuples and dicts of them ({what} is not')
             for k in ('state','action','done','info') for v,what in (
                 ({'a':{1}}, '`set`'), ({'a':[frozenset()]}, '`frozenset`'), ({'a':datetime.now()}, '`datetime`'), ({'a':np.datetime64('2026-01-01')}, '`datetime64`'),
                 ({'a':np.array([1,'a'], object)}, '`ndarray` of dtype object'), ({'a':np.array(['2026-01-01'], 'M8[D]')}, '`ndarray` of dtype datetime64[D]')))]

@pytest.mark.parametrize('bad,says', refused)
def test_refused_by_name(bad, says):
    "Alone, in a batch, after rows that fit, and as columns"
    for bank in (ExperienceBank(), ExperienceBank(3), bank_with(step(1), step(2))):
        n,rows,fields = len(bank),list(bank),bank.ring.fields
        with fails(says): bank.add(bad)
        with fails(says): bank.add_batch([bad])
        with fails(says): bank.add_batch([step(3), bad])
        if bad!=5:
            with fails(): bank.add_batch({k: [v]*2 for k,v in vars(bad).items()})
        assert len(bank)==n and bank.ring.fields==fields
        for a,b in zip(rows, bank): same(a, b)

def test_all_of_a_batch_or_none():
    bank = bank_with(step(1), step(2))
    for bad,says in (([step(1), 5], 'an experience should have'), ([step(1), Experience(1,1,1.,len,True)], 'plain data'),
                     (dict(state=1), 'columns should be'),
                     (dict(state=np.zeros((3,2),np.float32), action=[1,2], reward=[1.,2.],
                           next_state=np.zeros((2,2),np.float32), done=[0,1]), 'have one length')):
        with fails(says): bank.add_batch(bad)
        assert rewards(bank)==[1.,2.]
    bank.add_batch([])
    assert len(bank)==2

def test_arguments(tmp_path):
    bank = bank_with(step(1), step(2))
    for bad in (0, -1, 1.5, True, '3'):
        with fails('`max_size` should be'): ExperienceBank(bad)
    for bad in (0, 2.5, True, -3):
        with fails('`batch_size` should be'): bank.sample(bad)
    with fails('should be a string'): ExperienceBank(session_id=5)
    with fails('`other` should be an ExperienceBank'): bank.merge_inplace([1])
    for bad in (lambda: bank.merge([1]), lambda: bank.add_batch(E()), lambda: bank.add_batch(None), lambda: bank['a'],
                lambda: bank[[0]], lambda: bank.get_recent(1.5), lambda: bank.get_recent(-1), lambda: merge_banks('a.pkl')):
        with pytest.raises((ValueError,TypeError)): bad()
    with fails('is not a file', exc=LoadError): ExperienceBank.load(tmp_path)
    with pytest.raises(ValueError, match='^`max_size` should be'): # it does not call the file damaged
        ExperienceBank.load(bank.save(tmp_path), max_size=0)

def test_columns():
    b = ExperienceBank()
    with fails('`info` should be a list of 2'):
        b.add_batch(dict(state=[1,2], action=[1,2], reward=[1,2], next_state=[1,2], done=[0,1], info=[{}]))
    b.add_batch(dict(state=torch.arange(4.).view(2,2), action=[1,2], reward=np.ones(2), next_state=torch.zeros(2,2),
                     done=np.array([False,True]), info=[{},{'a':1}]))
    same(b[1], Experience(tensor([2.,3.]), 2, np.float64(1), torch.zeros(2), np.bool_(True), {'a':1}))
    assert b.sample_batch(1)['reward'].dtype==torch.float32 # np.float64 is a Python float

# %% A bank beside a deque, whatever happens
def happens(rng, bank, model, new, folder):
    "One thing: one experience, many, a merge, a file between, forgetting"
    what = rng.randrange(9)
    if what<4: model.append(new()); bank.add(model[-1])
    elif what<6:
        es = [new() for _ in range(rng.randrange(12))]
        bank.add_batch(es); model.extend(es)
    elif what==6:
        es = [new() for _ in range(rng.randrange(9))]
        other = ExperienceBank(rng.choice([None, 3])); other.add_batch(es)
        bank.merge_inplace(other)
        model.extend(list(other))
        assert len(other)==min(len(es), other.max_size or 99)
    elif what==7:
        path,cap = bank.save(folder, f"model.{rng.choice(['pkl','safetensors'])}"),bank.max_size
        bank = ExperienceBank.load(path)
        assert (bank.max_size, bank.session_id)==(cap, 'me')
    elif rng.random()<.2: bank.clear(); model.clear()
    return bank

def alike(rng, bank, model):
    "Both hold the same, however they are read"
    all_same(model, bank)
    if not model: return
    n,i = rng.randrange(20),rng.randrange(-len(model), len(model))
    same(bank[i], model[i])
    all_same(list(model)[-n:] if n else [], bank.get_recent(n))
    all_same(list(model)[n::2], bank[n::2])
    at = [int(e.state[0]) for e in bank] # in the ring rows lie in another order
    by_state = {int(o): (a,b) for o,a,b in zip(bank.ring['state'][:,0], *(bank.ring[k].tolist() for k in ('episode','source')))}
    of = [by_state[o] for o in at]
    # an episode ends where it is done, or another source begins
    for a,b,e in zip(of, of[1:], list(model)): assert (a[0]!=b[0])==(bool(e.done) or a[1]!=b[1])
    assert {int(e.state[0]) for e in bank.sample(30)}<={int(e.state[0]) for e in model}

@pytest.mark.parametrize('cap,seed', [(o, s) if s<2 else pytest.param(o, s, marks=pytest.mark.slow) for o,s in itertools.product((None,1,5,40), range(6))])
@pytest.mark.halved
def test_like_a_deque(tmp_path, cap, seed):
    "Sixty things, with rewards of all kinds, so that columns become wider"
    rng,bank,model,count = random.Random(seed),ExperienceBank(cap, session_id='me'),collections.deque(maxlen=cap),itertools.count(1)
    def new():
        k = next(count)
        return Experience(np.full(2, k, np.float32), rng.choice([k, np.int32(k)]),
                          rng.choice([k, k/2, np.float32(k), k>3]), (k,), k%4==0, rng.choice([None, {}, {'k':k}]))
    with patch.object(logging.getLogger(logger), 'disabled', True):
        for _ in range(60):
            bank = happens(rng, bank, model, new, tmp_path)
            alike(rng, bank, model)

def test_drawn_evenly():
    bank = ExperienceBank(10, seed=0); bank.add_batch([step(i) for i in range(14)])
    counts = np.bincount([int(e.reward) for _ in range(100) for e in bank.sample(100)], minlength=14)
    assert counts[:4].sum()==0
    assert ((counts[4:]-1000)**2/1000).sum()<9+5*18**.5 # chi squared of 9 degrees of freedom
    assert len({int(o) for o in bank.sample_batch(10, replace=False)['reward']})==10

# %% Columns that become wider
def test_interrupted_widening():
    "Nothing that is stored is lost or changed, also when it breaks off"
    b = bank_with(*(E(action=i) for i in range(3)))
    with patch.object(Place, 'words', side_effect=MemoryError), pytest.raises(MemoryError): b.add(E(action=.5))
    assert [e.action for e in b]==[0,1,2]
    b.add(E(action=.5))
    assert [e.action for e in b]==[0,1,2,.5]

def test_mixed_columns():
    b = ExperienceBank()
    b.add_batch(dict(state=[1,2.5], action=[True,7], reward=[0,.5], next_state=[[1,2],[.5,1]], done=[0,1]))
    assert [(e.state, e.action, e.reward, e.next_state) for e in b]==[(1.,1,0.,[1.,2.]), (2.5,7,.5,[.5,1.])]

big = 2**60+1

@pytest.mark.parametrize('first,second', [
    (E(action=big), E(action=.5)), (E(action=.5), E(action=big)), (E(action=np.int64(big)), E(action=.5)),
    (E(action=tensor(big)), E(action=tensor(.5)))])
def test_no_digits_are_lost(first, second):
    b,c = bank_with(first, second),ExperienceBank()
    c.add_batch([first, second])
    for o in (b, c, b.merge(c)[2:]): all_same((first, second), o)

@pytest.mark.parametrize('kind', (lambda v: np.array(v), lambda v: np.array([1,v]), lambda v: [v], lambda v: tensor(v, dtype=type(v) is int and torch.int64 or torch.float64),
    lambda v: np.array([v], np.uint64 if type(v) is int else float)), ids=('number','array','list','tensor','uint64'))
def test_no_digits_are_lost_in_arrays(kind):
    "In any order, at once and one by one, with columns that have both kinds already"
    for vs in itertools.permutations((.5, 1, big)):
        es = [E(action=kind(v)) for v in vs]
        both = ExperienceBank()
        both.add_batch(es)
        for o in (both, bank_with(*es)): all_same(es, o)

def test_no_digits_are_lost_later(tmp_path):
    b = bank_with(*(E({'a':(o,)}) for o in (1.5, 2, 3.5)))
    b.add(E({'a':(big,)}))
    b = ExperienceBank.load(b.save(tmp_path, 'mixed.safetensors'))
    b.add(E({'a':(4.5,)}))
    b.add(E({'a':(big,)}))
    assert [e.state['a'][0] for e in b]==[1.5,2,3.5,big,4.5,big]

@pytest.mark.parametrize('first,second', [
    (E(1.5), E(1j)), (E(tensor(1.5, dtype=torch.bfloat16)), E(2.5)), (E([0,0]), E([.5,1])), (E(tensor(3)), E(tensor(3.5))),
    (E(True), E(7))])
def test_kinds_beside_one_another(tmp_path, first, second):
    "Also from files"
    b = bank_with(first, second)
    for o in (b, ExperienceBank.load(b.save(tmp_path, 'w.pkl')), ExperienceBank.load(b.save(tmp_path, 'w.safetensors'))):
        if isinstance(first.state, list): assert states(o)==[[0,0],[.5,1.]]
        else: all_same((first, second), o)

def test_tensors_become_wider():
    b = ExperienceBank()
    b.add_batch([E(tensor(1)), E(tensor(3.))])
    b.add(E(tensor(3.5)))
    assert [e.state.item() for e in b]==[1,3.,3.5]

def test_names_that_are_alike(tmp_path):
    b = bank_with(E({'a.b':1, 'a':{'b':2}, 'info text':3}))
    same(ExperienceBank.load(b.save(tmp_path, 'n.safetensors'))[0], b[0])

def test_lists_and_tuples(tmp_path):
    "Whatever they hold; a tensor is saved alone, not with its batch"
    for o in ([np.float32(1)], [np.ones(2)], ['a'], [1,'a'*99], (1,{},2), (1,2,{}), [1,.5,True], [[1],[2,3]]):
        same(bank_with(E(o))[0].state, o)
    many = ExperienceBank()
    many.add_batch([E(torch.ones(4)) for _ in range(300)])
    assert os.path.getsize(many.save(tmp_path, 't.pkl'))<600_000

# %% Files of others, and of earlier versions
@pytest.mark.parametrize('protocol', (2,3,4,5))
def test_rose(tmp_path, protocol):
    es,path = es3(),tmp_path/'ROSE_20250102_030405.pkl'
    path.write_bytes(rose(es, protocol))
    bank = ExperienceBank.load(path, max_size=9)
    all_same(es, bank)
    assert (bank.max_size, bank.date)==(9, '20250102_030405')

def test_rose_limited(tmp_path):
    "The last rows of such a file are the same rows, whatever limit it is loaded with"
    path = tmp_path/'rose.pkl'
    path.write_bytes(rose([step(i) for i in range(5)]))
    last,whole = ExperienceBank.load(path, max_size=2),ExperienceBank.load(path)
    assert rewards(last.merge(whole))==[3.,4.,0.,1.,2.] and rewards(whole.merge(last))==[0.,1.,2.,3.,4.]

def test_rose_before_numpy_2(tmp_path):
    es = es3()
    old = rose(es[:1], 2).replace(b'numpy._core', b'numpy.core')
    (tmp_path/'old.pkl').write_bytes(old)
    same(ExperienceBank.load(tmp_path/'old.pkl')[0], es[0])

def test_rose_byte_order(tmp_path):
    foreign = np.arange(6, dtype='>f4').reshape(2,3)
    (tmp_path/'old.pkl').write_bytes(rose([Experience(np.asfortranarray(foreign), 1, 1., foreign, True)]))
    same(ExperienceBank.load(tmp_path/'old.pkl')[0].state, foreign.astype('f4'))

def test_rose_empty(tmp_path):
    path = tmp_path/'experience_bank_20250102_030406_x.pkl'
    path.write_bytes(pickle.dumps([]))
    assert len(ExperienceBank.load(path))==0

def test_plain_pickle_reads_ours(tmp_path):
    es = es3()
    with open(bank_with(*es).save(tmp_path, 'ours.pkl'), 'rb') as f: plain = pickle.load(f)
    all_same(es, plain)

rose_rows = [Experience(np.ones(2), 1, 1., np.ones(2), False, {'i':0}), Experience(np.ones(2), 1, 2., None, True, {}),
             Experience(np.ones((2,3), np.float32), 'left', -1, np.ones(2), False, {1:'a', 'b':{2:[None,(1,'x')]}}),
             Experience('start', None, .5, 'end', True, None), Experience({'a':np.arange(3), 'b':None}, (1,'x'), 0, [1,[2]], None),
             Experience(torch.ones(2), [1,.5], 2**70, np.array(['a','bc']), False, {'arr':np.arange(3), 't':torch.ones(1)})]

@pytest.mark.parametrize('protocol', (2,3,4,5))
def test_whatever_rose_keeps(tmp_path, protocol):
    "No next state, strings, several shapes, keys that are ints: the same objects, however they come and go"
    path,one,whole = tmp_path/'rose.pkl',bank_with(*rose_rows),ExperienceBank()
    path.write_bytes(rose(rose_rows, protocol))
    whole.add_batch(rose_rows)
    banks = [one, whole, ExperienceBank.load(path), bank_with(E(), max_size=6).merge(one)[-6:], merge_banks([path])]
    for k in ('pkl','safetensors'):
        for o in (one, banks[2]): banks.append(ExperienceBank.load(o.save(tmp_path, f'ours.{k}')))
    for o in banks: all_same(rose_rows, o)
    for e in whole.sample(20): same(e, next(o for o in rose_rows if o.reward==e.reward))
    with open(one.save(tmp_path, 'ours.pkl'), 'rb') as f: all_same(rose_rows, pickle.load(f))
    with fails('cannot be a tensor'): one.sample_batch(2)
    full = ExperienceBank(2)
    full.add_batch(rose_rows); full.add(rose_rows[0]) # rows with and without texts leave
    all_same([rose_rows[-1], rose_rows[0]], full)

# a `.pkl` and a `.safetensors` of version 0.1, and an `Experience`, as pickle had it
old_pkl = (
    b'c-n=MO-sW-5Qfc%MI(Oxf{>F!C`oDsz34?M<m{=Iux++%u-%m1Ep3&6UL?ZaTo3*`uiiX*bT=O@)Pu`HX5PH>%rNYe`F^Ku6sISS`Oy$iMn=ss9H'
    b'(T_>;rr+xOF|BK$1W_fZ|P@Jc~>^Hz@-Qiq7TtvO3g49li+O00Wk!ScDpH5I6%QmbTB*#w`rzEGmmL!8IUq%FQ^%P~_Z9@GvdpL{`&j9~osk)aYD'
    b'otQzS>BeWgr$XZT-b~1r>bBgv}(Y_21Lw${~wIUcb!BB*sbwXYdj5Wf+ieT0RQxfXo{?1@Z0&G4yN$gzMj`z=TT-%|LQn|jUte7cj4CWC{9-tIXW'
    b'g5%nsegeNoOyoBkNlu6#+8Mo42)#lR={*h29V0ED{(!kz)3>WSTVYRYqyj%0R&=Jm{dxpxQM%+Ys>3PO@+Q|2UQp-RatR=!3uh-eV%<)i@3S{=&5'
    b'h{o^17yY~T6?MWL-L')
old_columns = (
    b'c-oznJ#X7E5QgoxC^Ba3NN_d+iJ}-gOM(ss3KYoH$u<PWq7WgnXow7w*3f_LPw3dO#}8Q_cHlr<j(2+b=<axe=AS2a?QxQ9h2|;OJW22k+T%=CTd'
    b'rY?Gp=-1pa)();Tgi#LU_NzdAfq#3I}J_3eK&t5=!N=Oqx?KF1+QhiOPQq6Qm{pNeHJP0bxNHg-J+SOnDG$sd-_%*y81LwGqnrOAB9{sMzI7rk1x'
    b'PGZfk2j#r}8PHF>LE{fFoOE|2wO<{%t`_#Hu{`FZQxn|Vjd)lz04V^YGyGp*%P`=NragJq`c;Qv*WsP&{&82wN$>H^Y^k>@m6?ab_q%01{QdtVGb'
    b'lW3^xq7c~Tc2b^+Ny1{y{K`HWryzf@1k4u;Wcgh_4BR}otoXY$dyKIt1Mw4GS%gqX4@}*J=|}qjmh)|k$BEn%)<D(HuG)cX23~684YR7=D3Eqp91'
    b'@Fr25xR7|l0E%^CH`t-qvz#`Y_cS*C<mCK$lnk#)-m`;6~H#te~Dm<Z-~!7Rs3&l$`q#)841lDUPr*&0y~0D!^*OYxUFA{QV4X5l)MmzhMOOvi8*'
    b'&=^9f<(NqtFyJ=NGT=Bcs4L0M^B4++ib(A4sQVfASzqt(f4l=0!(9>IW%H$uf|wo?M%x~1NUKl!Iqz|z=rqVQXmP!+Yt%0H_xOA3?Bvdw3vVy)rv'
    b'AZ)H|)oO|7qY)-_SQYxBlGr^Y}N&r{xTJ7v5fa`^8%{dEc6v1=Kyxp-ExwEb%t-me%M$sg&Eg')
old_experience = (
    b'fCQC<000000001t5@um@baHGiZDnn5a(OOdVQy=bj0#0~aAk67Wo~0-l#`Sxfs}oeD2xSjbYXO5lt(}C00000004{zVPkY@Z*G)J0*nT7Wp`n6WR'
    b'yog-~a#s0001t3T|b1bYF9HVRU7bO9O?Jj09wFZe^5+j09<JW^a^zl#BskluH3~bz&|')

def old_bank():
    bank = ExperienceBank(4, session_id='w')
    for i in range(5): bank.add(Experience((float(i),[i,2]), i, i/2, {'a':True}, i%2==1, {'i':i} if i else None))
    bank.id,bank.date = '0'*32,'20260131_120000'
    return bank

@pytest.mark.parametrize('name,old', [('o.pkl', old_pkl), ('o.safetensors', old_columns)])
def test_files_do_not_change(tmp_path, name, old):
    "Columns are byte for byte what earlier versions wrote; those are read, and their pickles, too"
    old,bank = zlib.decompress(base64.b85decode(old)),old_bank()
    (tmp_path/name).write_bytes(old)
    again = ExperienceBank.load(tmp_path/name)
    all_same(bank, again)
    assert (again.id, again.sources, again.ring['episode'].tolist())==('0'*32, ['w'], [0,1,1,2])
    if name=='o.safetensors': assert Path(bank.save(tmp_path, f'new{name}')).read_bytes()==old

def test_there_and_back(tmp_path):
    "ROSE reads our file as a list of its own objects, and what it saves of them is read here; so is a plain pickle of ours"
    path = Path(bank_with(*rose_rows).save(tmp_path, 'ours.pkl'))
    m = rose_module('rose.rl.experience')
    with patch.dict(sys.modules, m):
        es = pickle.loads(path.read_bytes())
        assert {type(e) for e in es}=={m['rose.rl.experience'].Experience}
        (tmp_path/'again.pkl').write_bytes(pickle.dumps(es))
    (tmp_path/'plain.pkl').write_bytes(pickle.dumps(pickle.loads(path.read_bytes())))
    for k in ('again','plain'): all_same(rose_rows, ExperienceBank.load(tmp_path/f'{k}.pkl'))

def test_pickled_classes():
    "A pickle names them as it always did"
    raw = base64.b85decode(old_experience)
    e = pickle.loads(raw)
    same(e, Experience(1., 2, .5, (3,), True, {'a':1}))
    assert pickle.dumps(e, 4)==raw
    assert [o.__module__ for o in (Experience, ExperienceBank, Merge)]==['fastrl.memory.bank']*3

# %% Hostile pickles
ran = []
def run(*args): ran.append(args)

class Run:
    def __init__(self, *args): self.args = args
    def __reduce__(self): return self.args if len(self.args)>1 else (run, ('!',))

def crafted(o): return rose([Experience(o, 1, 1., 1, False)])

def evil_storage():
    f = io.BytesIO()
    torch.save({'a':Run()}, f, _use_new_zipfile_serialization=False)
    return f.getvalue()

tries = dict(
    run=lambda: pickle.dumps(Run()), as_state=lambda: crafted(Run()),
    in_info=lambda: rose([Experience(1, 1, 1., 1, False, {'a':Run()})]), eval=lambda: crafted(Run(eval, ('1',))),
    getattr=lambda: crafted(Run(getattr, ('x', 'upper'))), np_load=lambda: crafted(Run(np.load, ('x',))),
    torch_load=lambda: crafted(Run(torch.load, ('x',))), huge_array=lambda: crafted(Run(np.ndarray, ((10**15,),))),
    array_of_whatever_was_there=lambda: crafted(Run(np.ndarray, ((2,),))),
    storage=lambda: crafted(Run(torch.storage._load_from_bytes, (evil_storage(),))),
    object_dtype=lambda: crafted(Run(np.dtype, ('O',))), objects=lambda: crafted(np.array([{1:2}], object)),
    a_dict=lambda: pickle.dumps({'a':1}), numbers=lambda: pickle.dumps([1,2]),
    mixed=lambda: pickle.dumps([step(1), 5]), nothing=lambda: b'\x80\x04.', empty=lambda: b'', json=lambda: b'{"a": 1}',
    more=lambda: b'\x80\x04]\x94.more', cut=lambda: rose(es3())[:-9], print=lambda: crafted(Run(print, ('!',))))

def test_torchscript(tmp_path, monkeypatch):
    "torch before 2.6 runs the code of such a file, with `weights_only`, too: it never gets to see one"
    f,asked = io.BytesIO(),[]
    torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), f)
    (tmp_path/'crafted.pkl').write_bytes(crafted(Run(torch.storage._load_from_bytes, (f.getvalue(),))))
    monkeypatch.setattr(torch, 'load', lambda *args, **kwargs: asked.append(args))
    load_fails(tmp_path/'crafted.pkl')
    assert asked==[]

@pytest.mark.parametrize('name', tries)
def test_nothing_runs(tmp_path, name):
    "Whatever it hides behind"
    path = tmp_path/'crafted.pkl'
    path.write_bytes(tries[name]())
    load_fails(path)
    assert ran==[]

def test_refused_type_is_named(tmp_path):
    path = tmp_path/'crafted.pkl'
    path.write_bytes(crafted(Run(eval, ('1',))))
    load_fails(path, 'it asks for builtins.eval')

def test_small_file_that_unfolds(tmp_path):
    lol,path = 'x',tmp_path/'crafted.pkl'
    for _ in range(60): lol = [lol,lol] # small in the file, endless when it is unfolded
    path.write_bytes(crafted(lol))
    load_fails(path, 'unfolds')

def test_tensor_beyond_its_storage(tmp_path):
    far,path = torch.arange(4.),tmp_path/'far.pkl'
    path.write_bytes(rose([Experience(far, 1, 1., far, False)]).replace(b'K\x00K\x04\x85', b'K\x02K\x04\x85'))
    load_fails(path, 'does not lie in its storage')

@pytest.mark.parametrize('raw', [
    b'\x80\x04}K\x00'+b'\x85'*200_000+b'Ns.', b'\x80\x04}K\x00'+b'2\x86'*34+b'Ns.', b'\x80\x04(K\x00'+b'2\x86'*34+b'\x91.',
    b'\x80\x04]r\xff\xff\xff\x0f\x85.',
    b'\x80\x04\x8c\x13numpy._core.numeric\x8c\x0b_frombuffer\x93N}\x8c\x0c__defaults__)s\x86b.', rose([E()], 0),
    b'\x80\x04P1\n.', b'\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.'], ids=range(8))
def test_crash_hang_or_change(tmp_path, raw):
    "Files that would crash, hang, take gigabytes or change the module that reads them"
    (tmp_path/'crafted.pkl').write_bytes(raw)
    load_fails(tmp_path/'crafted.pkl')
    assert unpickle._from_bytes.__defaults__==('C',)

@pytest.mark.parametrize('name', ('INST OBJ EXT1 EXT2 EXT4 PERSID BINPERSID DUP EMPTY_SET ADDITEMS FROZENSET NEXT_BUFFER '
                                  'READONLY_BUFFER PUT GET DICT LIST').split())
def test_opcodes(name):
    "These could hash for ever, name things elsewhere, or build something else than plain data"
    with fails('parts that plain data does not need', exc=pickle.UnpicklingError):
        unpickle.read_objects(b'\x80\x04]('+getattr(pickle, name)+b'\x00'*16, 'Experience')

def test_far_more_than_the_file_has(tmp_path):
    wide = torch.zeros(1).expand(10**8)
    for o in (E(wide), E(info={'a':'x'*10**5})):
        (tmp_path/'crafted.pkl').write_bytes(rose([o]*(1 if o.info=={} else 3000)))
        load_fails(tmp_path/'crafted.pkl')

# %% Damaged files, forged heads
@pytest.mark.parametrize('ext', ('pkl','safetensors'))
def test_damaged(tmp_path, ext):
    "A file that was cut short or has a wrong bit is named; nothing else happens"
    bank,rng = ExperienceBank(5, 'x'),random.Random(0); bank.add_batch(es3())
    raw,path = Path(bank.save(tmp_path, f'whole.{ext}')).read_bytes(),tmp_path/f'bad.{ext}'
    for i in range(250):
        o = bytearray(raw)
        if i%2: o = o[:rng.randrange(len(o))]
        else: o[rng.randrange(len(o))] ^= 1<<rng.randrange(8)
        path.write_bytes(o)
        at = next((j for j,(x,y) in enumerate(zip(o, raw)) if x!=y), len(o))
        try: ExperienceBank.load(path)
        except LoadError as e: assert f'bad.{ext}' in str(e); continue
        pytest.fail(f'loaded in spite of byte {at} of {len(raw)}: {raw[max(0, at-40):at+40]}')

@pytest.mark.parametrize('k', range(1, 5))
@pytest.mark.parametrize('new', ('pkl','safetensors'))
def test_saved_anew_while_it_is_read(tmp_path, monkeypatch, new, k):
    "A bank that another process saves between two looks at its file is read as it was or as it is, and not said to be damaged"
    path,other = tmp_path/'bank.safetensors',tmp_path/f'other.{new}'
    bank_with(*es3(), session_id='old').save(tmp_path, path.name)
    bank_with(*es3(), *es3(), session_id='new').save(tmp_path, other.name)
    real,opened = open,[]
    def late(o, *args, **kwargs):
        if o==path: opened.append(o)
        if len(opened)==k and other.exists(): os.replace(other, path)
        return real(o, *args, **kwargs)
    for m in (bankfile, files): monkeypatch.setattr(m, 'open', late, raising=False)
    bank = ExperienceBank.load(path)
    assert len(opened)>=k and (bank.session_id, len(bank))==('new', 6)
    path.write_bytes(path.read_bytes()[:-3])
    load_fails(path)

def test_cut_behind_the_pickle(tmp_path):
    "Ours has more there: without it, sources and episodes would be lost"
    path = Path(bank_with(*es3()).save(tmp_path, 'whole.pkl'))
    (tmp_path/'cut.pkl').write_bytes(path.read_bytes()[:bank_about(path)['nbytes']])
    load_fails(tmp_path/'cut.pkl', 'cut short')

def test_damaged_rose(tmp_path):
    "It has no checksum; whatever a wrong bit makes of it, nothing but a `LoadError` comes out"
    raw,rng,path = rose(es3()),random.Random(1),tmp_path/'bad.pkl'
    for _ in range(400):
        o = bytearray(raw)
        o[rng.randrange(len(o))] ^= 1<<rng.randrange(8)
        path.write_bytes(o)
        with contextlib.suppress(LoadError): ExperienceBank.load(path)

@pytest.fixture(scope='module')
def good(tmp_path_factory):
    "A sound file: what its head says, and its tensors"
    path = tmp_path_factory.mktemp('good')/'good.safetensors'
    bank = ExperienceBank(5, 'x'); bank.add_batch(es3()); bank.save(path.parent, path.name)
    return bank_about(path),read_tensors(path)

def forge(path, about, cols, **kwargs):
    text = json.dumps({**about, 'crc32':checksum(cols), **kwargs})
    write_tensors(path, cols, dict(format='fastrl bank', bank=text, crc32=str(zlib.crc32(text.encode()))))
    return path

def test_not_forged(tmp_path, good): assert len(ExperienceBank.load(forge(tmp_path/'hostile.safetensors', *good)))==3

def kind_of_done(kind): return lambda about: dict(forms=[[*about['forms'][0][:4], kind]])

@pytest.mark.parametrize('kw', [
    dict(n=2), dict(n=-1), dict(n='3'), dict(fields=[]), dict(fields=[[['state'],'nothing','int8']]),
    dict(fields=[[['state'],'state','int8']]), dict(forms=[]), dict(forms=['x']), dict(forms=[['x']*5]),
    dict(forms=[['int']*5]), kind_of_done('array O'), kind_of_done(['tuple','int']), dict(forms=5), dict(sources=[]),
    dict(episode=[1]), dict(max_size=-1), dict(max_size='a'), dict(id=5), dict(date='../../x'), dict(date=None),
    dict(session_id=7), dict(crc32=1), dict(parents=5), dict(parents=[['a']]), dict(parents=[[1,2]]), dict(parents=[['a','b']]),
    lambda about: dict(fields=[o for o in about['fields'] if o[0]!=['source']]),
    lambda about: dict(fields=[*about['fields'], [['more'],'done','bool']])],
    ids=lambda o: None if callable(o) else str(o))
def test_forged_head(tmp_path, good, kw):
    "A head that says what is not so"
    load_fails(forge(tmp_path/'hostile.safetensors', *good, **(kw(good[0]) if callable(kw) else kw)))

@pytest.mark.parametrize('form,dtype,value', [('int',torch.float64,float('nan')), ('int',torch.float64,.5), ('array float32',torch.bfloat16,1.5),
    ('list float64 ii',torch.float64,.5), ('tensor float8_x',torch.float64,1.), ('array int8',torch.float64,300.), ('text',torch.float64,1.),
    ('int',torch.complex64,1j)])
def test_forged_to_fail_later(tmp_path, form, dtype, value):
    "What loads can be read: forms that do not fit the numbers are refused at once"
    bank,path = bank_with(E(action=1.), E(action=2.)),tmp_path/'good.safetensors'
    bank.save(tmp_path, path.name)
    about,cols = bank_about(path),read_tensors(path)
    cols['action'] = torch.full((2,2) if form[:4] in ('arra','list') else (2,), value).to(dtype)
    fields = [[p, k, str(dtype)[6:] if p==['action'] else t] for p,k,t in about['fields']]
    path = forge(tmp_path/'hostile.safetensors', about, cols, fields=fields, forms=[['float', form, *about['forms'][0][2:]]])
    with contextlib.suppress(LoadError): list(ExperienceBank.load(path))

@pytest.mark.parametrize('text', ['[]', '[{}]', '[{}, {"state": 1}]', '{"__kind__": ["len", 1]}', '{"__kind__": ["array", "O", [1], "AAAA"]}',
                                  '{"__kind__": ["tensor", "float32", [9], ""]}', '['*2000, '"a"', '{"__kind__": []}'])
def test_forged_texts(tmp_path, good, text):
    about,cols = good
    cols = {**cols, 'info text':torch.frombuffer(bytearray(text.encode()*3), dtype=torch.uint8), 'info end':torch.tensor([1,2,3])*len(text)}
    load_fails(forge(tmp_path/'hostile.safetensors', about, cols))

@pytest.mark.parametrize('kw', [dict(total=2**70), dict(total=-1), dict(episode=[0,2**70]), dict(episode=[-1,1]), dict(spans=[['a',0,2]]),
                                dict(spans=[['a',3,0],['b',0,6]]), dict(spans=[[1,0,3]]), dict(spans=5)], ids=str)
def test_forged_numbers(tmp_path, good, kw): load_fails(forge(tmp_path/'hostile.safetensors', *good, **kw))

def test_names_never_reach_the_terminal(tmp_path, caplog):
    "Control characters are shown as escapes, in errors, logs and representations"
    evil = 'w\x1b[2J\n\u202e'
    bank = bank_with(E(), E(), session_id=evil)
    with caplog.at_level('INFO', logger): bank.merge(bank_with(E()), max_size=1)
    (tmp_path/'evil.pkl').write_bytes(pickle.dumps([step(1)]).replace(b'fastrl.memory.bank', b'fastrl\x1b[2Jory.bank').replace(b'Experience', b'Experi\x1b\x1b\x1be'))
    with pytest.raises(LoadError) as e: ExperienceBank.load(tmp_path/'evil.pkl')
    with pytest.raises(ValueError) as f: bank_with(E(np.ones(2))).check_fits(bank)
    for o in (repr(bank), *caplog.messages, str(e.value), str(f.value)): assert o.isprintable(), o

@pytest.mark.parametrize('change', [
    lambda c: {**c, 'form':c['form']+1}, lambda c: {**c, 'form':c['form']-1}, lambda c: {**c, 'source':c['source'][:2]},
    lambda c: {**c, 'info end':c['info end'][:1]}, lambda c: {**c, 'info end':c['info end']+1},
    lambda c: {k: v for k,v in c.items() if k!='info end'}], ids=range(6))
def test_forged_columns(tmp_path, good, change):
    about,cols = good
    load_fails(forge(tmp_path/'hostile.safetensors', about, change(cols)))

def put_tail(path, raw, text):
    "A pickle with `text` and a correct checksum behind its end"
    crc = zlib.crc32(raw+text)
    path.write_bytes(raw+text+b''.join(o.to_bytes(8, 'little') for o in (len(text), crc))+bankfile._tail_mark)

@pytest.mark.parametrize('text', ('[1]', '{}', '{"date": 5}', '{"id": []}', 'null'))
def test_forged_tail(tmp_path, text):
    put_tail(tmp_path/'odd.pkl', pickle.dumps([]), text.encode())
    assert ExperienceBank.list_saved_banks(tmp_path)==[]
    load_fails(tmp_path/'odd.pkl')
    with fails(exc=LoadError): merge_banks([tmp_path/'odd.pkl'])

@pytest.mark.parametrize('kw', [dict(n=2), dict(runs=[[0,0,2]]), dict(runs=[[0,0,4]]), dict(runs=[[0,-1,3]]),
                                dict(runs=[[0,'0',3]]), dict(runs=[[1,0,3]]), dict(runs=[]), dict(nbytes=5)], ids=str)
def test_forged_runs(tmp_path, kw):
    "A tail that says something else of the rows than the pickle before it"
    bank,path = ExperienceBank(session_id='x'),tmp_path/'odd.pkl'
    bank.add_batch(es3())
    raw = Path(bank.save(tmp_path, 'good.pkl')).read_bytes()
    about = bank_about(tmp_path/'good.pkl')
    put_tail(path, raw[:about['nbytes']], json.dumps(about).encode())
    assert len(ExperienceBank.load(path))==3
    put_tail(path, raw[:about['nbytes']], json.dumps({**about, **kw}).encode())
    load_fails(path)

# %% Folders
def test_full_disk(tmp_path):
    "It leaves the bank that was there"
    bank = bank_with(*es3())
    before = Path(bank.save(tmp_path, 'kept.pkl')).read_bytes()
    with patch.object(os, 'replace', lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, 'full'))), pytest.raises(OSError):
        bank.save(tmp_path, 'kept.pkl')
    assert ((tmp_path/'kept.pkl').read_bytes(), list(tmp_path.glob('*.new')))==(before, [])

@pytest.fixture
def many(tmp_path):
    "A folder with banks of both formats, of ROSE, and other files; and the paths of our banks"
    def saved(name, n, date, **kw):
        bank = ExperienceBank(**kw); bank.date = date; bank.add_batch([step(i) for i in range(n)])
        return bank.save(tmp_path, name)
    paths = [saved('z.pkl', 1, '20250101_000000'), saved('a.safetensors', 2, '20250102_000000'),
             saved(None, 3, '20250103_000000', session_id='s'), saved('no_extension', 4, '20250104_000000')]
    (tmp_path/'experience_bank_20241231_000000_r.pkl').write_bytes(rose([step(0)]*5))
    (tmp_path/'notes.txt').write_text('mine')
    (tmp_path/'other.pkl').write_bytes(pickle.dumps({'a':1}))
    write_tensors(tmp_path/'weights.safetensors', dict(a=torch.ones(2)))
    (tmp_path/'sub').mkdir()
    (tmp_path/'empty').touch()
    return tmp_path,paths

def test_listed(many):
    f,_ = many
    found = ExperienceBank.list_saved_banks(f)
    assert [os.path.basename(o) for o in found]==['experience_bank_20241231_000000_r.pkl', 'z.pkl', 'a.safetensors',
                                                   'experience_bank_20250103_000000_s.pkl', 'no_extension']
    assert [len(ExperienceBank.load(o)) for o in found]==[5,1,2,3,4]

@pytest.mark.parametrize('error,warned', ((errno.EACCES,1), (errno.EIO,1), (errno.ENOENT,0)))
def test_listed_unreadable(many, error, warned):
    "A file that cannot be read just now is left out with a warning; one that has just been moved, without"
    f,_ = many
    about = bankfile._about_in
    def read(path):
        if path.name=='z.pkl': raise OSError(error, os.strerror(error), str(path))
        return about(path)
    with patch.object(bankfile, '_about_in', read), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter('always')
        assert len(ExperienceBank.list_saved_banks(f))==4
    assert [f'{f}/z.pkl cannot be read ({os.strerror(error)})' in str(o.message) for o in said]==[True]*warned

def test_names_of_its_own(tmp_path):
    "Under the name that `save` chooses, no rows of another bank are replaced; one that has them, or had them, replaces its file"
    def files(): return sorted(o.name for o in tmp_path.iterdir())
    def rest(): return sorted(states(merge_banks(ExperienceBank.list_saved_banks(tmp_path))))
    bank = bank_with(E(0.), session_id='w', max_size=3)
    bank.save(tmp_path)
    copies = [pickle.loads(pickle.dumps(bank)) for _ in range(2)] # as two processes get it
    for i,o in enumerate(copies, 1):
        o.add(E(float(i)))
        o.save(tmp_path)
    same((len(files()), rest()), (2, [0.,1.,2.])) # the first one has all that was there
    for i in range(3,7): copies[1].add(E(float(i))), copies[1].save(tmp_path) # drops rows that it had
    loaded = ExperienceBank.load(copies[0].save(tmp_path))
    for i in range(7,11): loaded.add(E(float(i)))
    loaded.save(tmp_path)
    same((len(files()), rest()), (2, [4.,5.,6.,8.,9.,10.]))
    loaded.clear()
    for o in (loaded, ExperienceBank(session_id='w')): # within the same second, or after the clock was set back
        o.date = bank.date
        o.add(E(float(20+len(files()))))
        o.save(tmp_path), o.save(tmp_path)
    same((len(files()), rest()), (4, [4.,5.,6.,8.,9.,10.,22.,23.]))

def test_names_of_older_copies(tmp_path):
    "A copy of an earlier moment, which knows nothing of the rows that came later, leaves their file alone"
    bank = bank_with(E(0.), session_id='w')
    older = [pickle.loads(pickle.dumps(bank)), ExperienceBank.load(bank.save(tmp_path/'else', 'w.pkl'))]
    bank.add(E(1.))
    bank.save(tmp_path)
    for o in older:
        o.save(tmp_path)
        assert sorted(states(merge_banks(ExperienceBank.list_saved_banks(tmp_path))))==[0.,1.]

def test_names_lead_nowhere_else(tmp_path):
    out = tmp_path/'out'
    for k in ('a/../../../evil', 'a/b', 'n\0ul', 'x'*300, 'ü\ud800'):
        assert Path(bank_with(E(), session_id=k).save(out)).parent==out
    assert len(ExperienceBank.list_saved_banks(out))==5
    path = bank_with(E()).save(tmp_path)
    (out/'half.pkl.new').write_bytes(Path(path).read_bytes()) # it is being written
    assert len(ExperienceBank.list_saved_banks(out))==5

# %% Merging
def test_merge_folder(many):
    "Each row comes once, whatever the files overlap in"
    f,paths = many
    m = merge_banks(ExperienceBank.list_saved_banks(f))
    assert rewards(m)==[0.,1.,*[0.]*5,0.,1.,2.,*range(4),0.]
    assert len(m.sources)==5
    assert len(merge_banks([*paths, paths[0], shutil.copy(paths[1], f/'copy.safetensors')]))==10
    bank = ExperienceBank.load(paths[0]) # the same bank, later
    bank.add(step(9))
    bank.save(f, 'later.pkl')
    assert rewards(merge_banks([paths[0], f/'later.pkl']))==[0.,9.]

def whose(bank):
    "Of each row its reward, who collected it, and which of the bank's episodes it is in"
    at,first = bank._rows.slots(np.arange(len(bank))),{}
    source,episode = (bank.ring[k].flatten()[at].tolist() for k in ('source','episode'))
    return [(r, bank.sources[i], first.setdefault(e, len(first))) for r,i,e in zip(rewards(bank), source, episode)]

@pytest.mark.parametrize('limit', [None,4])
def test_folder_is_its_files(tmp_path, limit):
    "Files of one layout are read at once, and give what they give one by one: who collected which row, in which episode"
    a,b = (ExperienceBank(session_id=o) for o in 'ab')
    ran = [(a,(0,3,4,5)), (b,(6,)), (a,(1,2)), (b,(7,9,8))] # 4 and 9 end an episode
    for k,(bank,steps) in enumerate(ran):
        for i in steps: bank.add(step(i))
        bank.save(tmp_path, f'{k:06d}.{bank.session_id}.safetensors')
    files = bankfile.bank_files(tmp_path)
    got = ExperienceBank.load(bankfile.write_folder(tmp_path, files[-1], limit))
    want = [(0.,'a',0), (3.,'a',0), (4.,'a',0), (5.,'a',1), (6.,'b',2), (1.,'a',1), (2.,'a',1), (7.,'b',2), (9.,'b',2), (8.,'b',3)]
    if limit is None: assert whose(got)==want
    assert whose(got)==whose(merge_banks([tmp_path/o for o in files], limit))

def test_merge_names_the_file(many):
    f,paths = many
    bank_with(step(1, 3)).save(f, 'zz.pkl')
    assert [len(o) for o in states(merge_banks([paths[0], f/'zz.pkl']))]==[2,3]
    with pytest.raises(FileNotFoundError): merge_banks([paths[0], f/'gone.pkl'])
    with fails('notes.txt holds no bank', exc=LoadError): merge_banks([f/'notes.txt'])

def test_limits(many, caplog):
    "A limit drops the oldest, and the log says so"
    f,paths = many
    with caplog.at_level('WARNING', logger): m = merge_banks(paths, max_size=6)
    assert rewards(m)==rewards(merge_banks(paths))[-6:]
    assert 'are dropped' in caplog.messages[0]
    caplog.clear()
    with caplog.at_level('WARNING', logger): small = ExperienceBank.load(paths[2], max_size=2)
    assert (rewards(small), len(caplog.messages))==([1.,2.], 1)
    caplog.clear()
    with caplog.at_level('WARNING', logger): all_ = ExperienceBank.load(paths[2], max_size=3)
    assert (rewards(all_), caplog.messages)==([0.,1.,2.], []) # none goes

def test_names_of_many_banks(tmp_path):
    "A bank of few rows forgets who collected those that are gone, but for a hundred; its rows keep their sources"
    bank,want,rng = ExperienceBank(3, session_id='own'),[],random.Random(0)
    for i in range(600):
        name = f's{rng.choice((i, i//2, 7))}' if rng.random()<.9 else 'own'
        if name=='own': bank.add(create_experience(i, 0, 0., i, True))
        else: bank.merge_inplace(bank_with(create_experience(i, 0, 0., i, True), session_id=name))
        want = [*want, (i, name)][-3:]
        if i%100==50: bank = ExperienceBank.load(bank.save(tmp_path, f'{i}.safetensors'))
        of = bank.ring['source'][torch.from_numpy(bank._rows.slots(range(len(bank))))].tolist()
        assert [(e.state, bank.sources[o]) for e,o in zip(bank, of)]==want
    assert 100<len(bank.sources)<=107
    assert {*range(500)}-{*bank._rows.unused(range(500), 17)}=={17, *bank.ring['source'].tolist()} # its own stays

def test_merge_of_full_banks():
    "It has room for both, also for one with itself"
    full = [ExperienceBank(4), ExperienceBank(4)]
    for o in full: o.add_batch([step(i) for i in range(4)])
    assert len(full[0].merge(full[1]))==8
    full[0].merge_inplace(full[0])
    assert len(full[0])==4
    m = full[0].merge(full[1])
    m.add(step(1))
    assert (m.sources[m.ring['source'][m.ring.pointer-1]], m.sources[:-1])==(m.session_id, full[0].sources+full[1].sources)

@pytest.fixture
def old(tmp_path):
    "A bank with room for four, after 100, and its file"
    b = ExperienceBank(4); b.add_batch([E(float(i)) for i in range(100)])
    return b,b.save(tmp_path, 'old.pkl')

def test_continued(tmp_path, old):
    "A bank that continues a loaded one has its rows, too; none is lost because the later file has dropped it"
    _,old = old
    l = ExperienceBank.load(old)
    l.add(E(100.))
    new = l.save(tmp_path, 'new.safetensors')
    assert states(merge_banks([old, new]))==[97.,98.,99.,100.,96.]
    l.add(E(101.))
    newer = l.save(tmp_path, 'newer.pkl')
    assert states(merge_banks([old, newer]))==[98.,99.,100.,101.,96.,97.]
    assert sorted(states(merge_banks([old, new, newer])))==[96.,97.,98.,99.,100.,101.]
    m = ExperienceBank.load(old)
    m.add(E(-1.))
    assert sorted(states(merge_banks([new, m.save(tmp_path, 'other.pkl')])))==[-1.,97.,98.,99.,100.]

def test_snapshots(tmp_path):
    "Saved, loaded and added to, time and again; what no file has is gone"
    g,snaps = ExperienceBank(3),[]
    for i in range(9):
        g.add(E(float(i)))
        if i%2:
            snaps.append(tmp_path/f'snap{i}.pkl')
            g = ExperienceBank.load(g.save(tmp_path, snaps[-1].name))
    assert states(merge_banks(snaps))==[float(i) for i in range(8)]
    assert states(merge_banks(snaps[::2]))==[0.,1.,3.,4.,5.]

def test_merges_are_banks_of_their_own(tmp_path, old):
    b,path = old
    x,y,one = ExperienceBank.load(path),ExperienceBank.load(path),bank_with(E(-2.))
    x.merge_inplace(one)
    one.add(E(-3.))
    y.merge_inplace(one)
    assert {-2.,-3.}<={*states(merge_banks([x.save(tmp_path, 'x.pkl'), y.save(tmp_path, 'y.pkl')]))}
    assert len({x.id, y.id, b.id})==3

def test_copies_are_banks_of_their_own(tmp_path):
    x = bank_with(E(1.))
    y = copy.deepcopy(x)
    x.add(E(-4.))
    y.add(E(-5.))
    assert {-4.,-5.}<={*states(merge_banks([x.save(tmp_path, 'x.pkl'), y.save(tmp_path, 'y.pkl')]))}

def test_cleared(tmp_path, old):
    "A bank that was cleared is another one"
    b,path = old
    b.clear(); b.add(E(5.))
    assert len(merge_banks([path, b.save(tmp_path, 'cleared.pkl')]))==5
    c = ExperienceBank.load(path)
    c.add(E(5.))
    c.clear()
    c.add_batch([E(float(i)) for i in range(10,15)])
    assert len(merge_banks([path, c.save(tmp_path, 'cleared.pkl')]))==8 # 4 and 4

def test_parts_come_once(tmp_path):
    "A merged bank beside its parts, in memory and in files, whoever merged it"
    a,b = (bank_with(*(E(float(10*i+j)) for j in range(10))) for i in range(2))
    fs = [Path(o.save(tmp_path, f'{k}.pkl')) for k,o in (('a',a), ('b',b))]
    m = tmp_path/'m.safetensors'
    for merged in (merge_banks(fs), a.merge(b)):
        merged.save(tmp_path, m.name)
        for o in itertools.permutations([m, *fs]): assert sorted(states(merge_banks(o)))==[float(i) for i in range(20)]
    m2 = Path(merge_banks([m, fs[1]]).save(tmp_path, 'm2.pkl'))
    memory = ExperienceBank.load(m2)
    memory.add(E(-1.)) # a merged bank that continues
    memory.merge_inplace(ExperienceBank.load(fs[0]))
    assert sorted(states(memory))==[-1.]+[float(i) for i in range(20)]
    assert len(merge_banks([*fs, m, m2, memory.save(tmp_path, 'later.pkl')]))==21

@pytest.mark.parametrize('ours', (True, False))
def test_loop_that_was_stopped(tmp_path, ours):
    "ROSE's loop merges what workers left into its memory, saves that, and deletes what they left; killed before that, it doubles nothing"
    def work(i):
        for j in range(2):
            es,path = [E(float(100*i+10*j+k)) for k in range(10)],tmp_path/f'experience_bank_{i}_{j}.pkl'
            if ours: bank_with(*es).save(tmp_path, path.name)
            else: path.write_bytes(rose(es))
    def merge(killed):
        parts,memory = sorted(tmp_path.glob('experience_bank_*.pkl')),ExperienceBank()
        if (tmp_path/'experience_bank.pkl').exists(): memory = ExperienceBank.load(tmp_path/'experience_bank.pkl')
        for o in parts: memory.merge_inplace(ExperienceBank.load(o))
        memory.save(tmp_path, 'experience_bank.pkl')
        for o in parts[:None if not killed else killed-1]: o.unlink()
        return memory
    for i in range(3):
        work(i)
        for killed in (1,2): merge(killed)
        assert len(merge(0))==20*(i+1)

def test_equal_files_of_rose(tmp_path, caplog):
    "The same path comes once, whatever leads to it; another path counts, and a warning names both"
    a,b = tmp_path/'a.pkl',tmp_path/'b.pkl'
    for o in (a, b): o.write_bytes(rose([E(1.), E(2.)]))
    (tmp_path/'sub').mkdir()
    (tmp_path/'link.pkl').symlink_to(a)
    with caplog.at_level('WARNING', logger):
        assert len(merge_banks([a, str(a), tmp_path/'sub/../a.pkl', tmp_path/'link.pkl']))==2
        assert not caplog.messages
        m = merge_banks([a, b])
    assert len(m)==4 and str(a) in caplog.text and str(b) in caplog.text
    m.save(tmp_path, 'm.pkl')
    assert len(merge_banks([tmp_path/'m.pkl', a, b]))==4
    os.utime(a, (1, 1)) # written anew: a deterministic script's next bank
    assert len(merge_banks([tmp_path/'m.pkl', a, b]))==6

@pytest.mark.parametrize('ext', ('pkl','safetensors'))
def test_same_files_same_bytes(tmp_path, ext):
    fs = [Path(bank_with(step(i), step(i+1, info={'i':i})).save(tmp_path, f'{i}.{ext}')) for i in range(3)]
    (tmp_path/'rose.pkl').write_bytes(rose(rose_rows))
    found = [Path(merge_banks([*fs[::k], tmp_path/'rose.pkl'], 6).save(tmp_path, f'm{k}.{ext}')).read_bytes() for k in (1,-1)]
    assert found[0]==found[1]
    m = ExperienceBank.load(tmp_path/f'm1.{ext}'),ExperienceBank.load(tmp_path/f'm-1.{ext}')
    for o in m: o.add(E()) # from here on they are two
    assert len(m[0].merge(m[1]))==7

def test_skipped(many, caplog):
    "A bad file is named and stays where it is; the others are merged"
    f,paths = many
    (f/'cut.pkl').write_bytes(Path(paths[0]).read_bytes()[:-3])
    before = {o: o.read_bytes() for o in f.iterdir() if o.is_file()}
    with caplog.at_level('WARNING', logger): m = merge_banks([*paths, f/'cut.pkl', f/'gone.pkl', f/'sub'], on_error='skip')
    assert len(m)==10 and all(k in caplog.text for k in ('cut.pkl','gone.pkl','sub'))
    assert before=={o: o.read_bytes() for o in f.iterdir() if o.is_file()}
    with fails('none of the files holds a bank', exc=LoadError): merge_banks([f/'cut.pkl'], on_error='skip')
    with fails("`on_error` should be 'raise' or 'skip'"): merge_banks(paths, on_error='ignore')

# %% Interrupted at every line
library = f'{Path(bankfile.__file__).parents[1]}/' # not all that lies in a clone of this name, as `.venv` does

def at_line(k, f, *args, again=0):
    "Call `f`, with a KeyboardInterrupt at the `k`-th line of this library that runs in it, and `again` lines later: how many came?"
    n,came = itertools.count(1),[]
    def trace(frame, event, _):
        if frame.f_code.co_filename!='<string>' and not frame.f_code.co_filename.startswith(library): return
        if event=='line' and next(n) in (k, again and k+again):
            came.append(1)
            raise KeyboardInterrupt # which ends the tracing
        return trace
    def resume(frame, event, _):
        if again and len(came)==1 and not sys.gettrace(): sys.settrace(trace)
    was = sys.gettrace(),sys.getprofile()
    sys.settrace(trace), sys.setprofile(resume)
    try: f(*args)
    except KeyboardInterrupt: pass
    finally: sys.setprofile(was[1]), sys.settrace(was[0])
    return len(came)

def numbered(i): return Experience(np.full(2, i, np.float32), i%2, float(i), None if i%5==4 else (i,), i%3==2, {'i':i})
def history(cap, n):
    bank = ExperienceBank(cap, 'me')
    bank.add_batch([numbered(i) for i in range(n)])
    bank.add(numbered(n))
    return bank

others = history(None, 2)
interrupted = dict(add=lambda b: b.add(numbered(15)), text=lambda b: b.add(E('left')), wider=lambda b: b.add(E(action=.5)),
                   batch=lambda b: b.add_batch([numbered(i) for i in range(20,23)]), merge=lambda b: b.merge_inplace(others),
                   large=lambda b: b.add_batch([*map(numbered, range(30,40)), E(np.ones(3), info={1:2})]))

@pytest.mark.parametrize('cap,n,name,every', [(4,9,'add',7), (4,9,'batch',29), (None,3,'wider',47),
    *(pytest.param(*o, marks=pytest.mark.slow) for o in ((4,9,'add',1), (4,9,'batch',11), (None,3,'wider',23))),
    *(pytest.param(*o, 1, marks=pytest.mark.long) for o in itertools.product((4,None), (0,9), interrupted)),
    *(pytest.param(None, 1023, o, 7, marks=pytest.mark.long) for o in interrupted)]) # the ring grows
def test_interrupted(tmp_path, cap, n, name, every):
    "The bank is as it was before the call or as it is after it: its rows, their infos and episodes; and it goes on"
    def seen(b):
        of = [b._rows.columns_at()[k,].tolist() for k in ('source','episode')]
        return [repr(vars(e)) for e in b],of,b._all_spans()[:-1],b._rows.total
    f,before = interrupted[name],history(cap, n)
    after = pickle.loads(pickle.dumps(before))
    was,then = seen(before),(f(after), seen(after))[1]
    for k in itertools.count(1, every):
        b = history(cap, n)
        if not at_line(k, f, b): break
        now = seen(b)
        assert now[:2] in (was[:2], then[:2]), k
        b.sample(3)
        if k//every%9==0: all_same(b, ExperienceBank.load(b.save(tmp_path, 'x.safetensors')))
        if now[0]==was[0]: f(b); assert seen(b)[:2]==then[:2], k
        b.add(numbered(50))
        same(b[-1], numbered(50))
    assert k>20

@pytest.mark.slow
@pytest.mark.parametrize('cap,n,name,every', [(4,9,'add',37), (4,9,'batch',291),
    *(pytest.param(*o, 3, marks=pytest.mark.long) for o in itertools.product((4,None), (9,), interrupted))])
def test_interrupted_twice(cap, n, name, every):
    "So it is after a second Ctrl-C, at any line of what takes back or completes what the first one stopped"
    def seen(b): return [repr(vars(e)) for e in b],[b._rows.columns_at()[k,].tolist() for k in ('source','episode')],b._all_spans()[0][1:]
    f,before,twice = interrupted[name],history(cap, n),0
    was,after = seen(before),(f(before), seen(before))[1]
    for k in itertools.count(1, every):
        for again in itertools.count(1):
            b = history(cap, n)
            came = at_line(k, f, b, again=again)
            twice += came==2
            assert seen(b)[:2] in (was[:2], after[:2]), (k, again)
            if seen(b)[0]==was[0]: f(b)
            assert seen(b)==after, (k, again)
            if came<2: break
        if not came: break
    assert twice>5

def add_and_save(i):
    forked_bank.add(E(float(i)))
    return forked_bank.save(forked_folder, f'forked{i}.safetensors')

@pytest.mark.skipif('fork' not in mp.get_all_start_methods(), reason='needs fork')
def test_forked(tmp_path):
    "Workers that are forked write banks of their own"
    global forked_bank, forked_folder
    forked_bank,forked_folder = bank_with(E(7.)),tmp_path
    with mp.get_context('fork').Pool(3) as pool: fs = pool.map(add_and_save, range(3), chunksize=1)
    assert sorted(states(merge_banks(fs)))==[0.,1.,2.,7.]

class InWorker(torch.utils.data.Dataset):
    def __init__(self, bank): self.bank = bank
    def __len__(self): return 3
    def __getitem__(self, i):
        if isinstance(self.bank, bytes): self.bank = pickle.loads(self.bank)
        try: return self.bank[i].reward
        except RuntimeError as e: return str(e)

@pytest.mark.skipif('fork' not in mp.get_all_start_methods(), reason='needs fork')
def test_read_by_a_loader():
    "A worker of torch hears how it gets a copy of a bank, and that copy it reads"
    bank = bank_with(*(E(reward=float(i)) for i in range(3)))
    refused,read = (list(torch.utils.data.DataLoader(InWorker(o), batch_size=None, num_workers=1, multiprocessing_context='fork'))
                    for o in (bank, pickle.dumps(bank)))
    assert all('of a bank or a `ReplayBuffer`, send `pickle.dumps` of it' in o for o in refused) and read==[0.,1.,2.]

def _save_at_once(begin):
    begin.wait()
    for i in range(3):
        forked_bank.add(E(os.getpid()+i/4))
        forked_bank.save(forked_folder)

def test_forked_that_save_at_once(tmp_path):
    "Under names that `save` chooses: none replaces the rows of another one"
    global forked_bank, forked_folder
    fork,forked_bank,forked_folder = mp.get_context('fork'),bank_with(E(0.), session_id='w'),tmp_path
    begin = fork.Barrier(6)
    workers = [fork.Process(target=_save_at_once, args=(begin,)) for _ in range(6)]
    for o in workers: o.start()
    for o in workers: o.join()
    own = [o.pid+i/4 for o in workers for i in range(3)]
    assert sorted(states(merge_banks(ExperienceBank.list_saved_banks(tmp_path))))==sorted([0., *own]) and len([*tmp_path.iterdir()])==6

# %% Threads
def at_once(*fs):
    "Call all of `fs`, each in a thread, which take turns as often as they can: their results"
    was = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(len(fs)) as pool: return [o.result() for o in [pool.submit(f) for f in fs]]
    finally: sys.setswitchinterval(was)

def meanwhile(f, n, *others):
    "Call `f` so often, while threads call each of `others` again and again"
    over = []
    def call():
        try:
            for _ in range(n): f()
        finally: over.append(1)
    def again(o):
        while not over: o()
    at_once(call, *(lambda o=o: again(o) for o in others))

def whole_ones(es):
    "The numbers of experiences, each of them as it was added"
    for e in es: same(e, numbered(e.info['i']))
    return [e.info['i'] for e in es]

def add_all(bank, numbers):
    "Add experiences, some of them in batches"
    for i in range(0, len(numbers), 10):
        for j in numbers[i:i+7]: bank.add(numbered(j))
        bank.add_batch([numbered(j) for j in numbers[i+7:i+10]])

@pytest.mark.parametrize('cap', [None, 150])
def test_added_by_threads(tmp_path, cap):
    "Each experience is there, whole, in the order in which its thread added it; an episode has one end, its last row"
    bank = ExperienceBank(cap)
    at_once(*(lambda t=t: add_all(bank, range(1000*t, 1000*t+300)) for t in range(4)))
    there = whole_ones(bank)
    assert (len(there), bank._rows.total)==(cap or 1200, 1200)
    for t in range(4):
        own = [i for i in there if i//1000==t]
        assert own==[*range(1000*t+300-len(own), 1000*t+300)]
    episodes = bank._rows.columns_at()['episode',].tolist()
    for a,b,e in zip(episodes, episodes[1:], bank): assert (a!=b)==e.done
    assert whole_ones(ExperienceBank.load(bank.save(tmp_path)))==there

def test_odd_ones_by_threads():
    "Numbers that need a wider column, and values that are kept as text, come beside others"
    bank,kinds = ExperienceBank(),(lambda i: i, lambda i: i+.5, lambda i: f'text {i}', lambda i: [i,i], lambda i: 2**40+i)
    at_once(*(lambda f=f: [bank.add(E(f(i))) for i in range(40)] for f in kinds))
    assert sorted(map(repr, states(bank)))==sorted(repr(f(i)) for f in kinds for i in range(40))

copies = dict(save=lambda b, at: ExperienceBank.load(b.save(at)), pickle=lambda b, at: pickle.loads(pickle.dumps(b)),
              deepcopy=lambda b, at: copy.deepcopy(b), merge=lambda b, at: b.merge(ExperienceBank()), iter=lambda b, at: b,
              slice=lambda b, at: b[:], recent=lambda b, at: b.get_recent(150))
@pytest.mark.parametrize('name', copies)
@pytest.mark.parametrize('cap', [None, 150])
@pytest.mark.halved
def test_copied_beside_threads(tmp_path, cap, name):
    "A copy is of one moment: the rows that each thread had added until then, whole"
    bank = ExperienceBank(cap)
    add_all(bank, range(200))
    def read():
        there = whole_ones(copies[name](bank, tmp_path))
        for t in range(3):
            own = [i for i in there if i//10**6==t]
            assert not own or own==[*range(own[0], own[0]+len(own))]
        assert len(there)>=150 or cap and name=='iter'
    count = [itertools.count(10**6*t, 10) for t in (1,2)]
    def add(c):
        if cap or len(bank)<900: add_all(bank, [*range(i := next(c), i+10)])
    meanwhile(read, 9, *(lambda c=c: add(c) for c in count))

def test_drawn_beside_threads():
    "Draws give whole experiences, also while the bank is cleared and filled anew"
    bank,count = ExperienceBank(99),itertools.count(1000)
    def read():
        try: es = bank.sample(40)
        except ValueError as e: assert 'the bank is empty' in str(e)
        else: whole_ones(es)
    def begin_anew(): bank.clear(); add_all(bank, range(40))
    meanwhile(read, 150, begin_anew, lambda: bank.add(numbered(next(count))))

def test_merged_by_threads(tmp_path):
    "Two banks that merge one another, and a union of files, get each row once; nobody waits for ever"
    a,b,union = ExperienceBank(session_id='a'),ExperienceBank(session_id='b'),BankUnion()
    files = [bank_with(*(numbered(i) for i in range(k, k+9))).save(tmp_path, f'{k}.pkl') for k in range(0, 90, 9)]
    def fill(one, other, first):
        for i in range(first, first+300, 10):
            add_all(one, range(i, i+10))
            one.merge_inplace(other)
            one.check_fits(other)
    at_once(lambda: fill(a, b, 0), lambda: fill(b, a, 1000), *(lambda fs=fs: [union.add(o) for o in fs] for fs in (files, files[::-1], files[5:])))
    for one,other in ((a, b), (b, a)):
        one.merge_inplace(other)
        assert sorted(whole_ones(one))==[*range(300), *range(1000, 1300)]
    assert sorted(whole_ones(union.bank))==[*range(90)]

@pytest.mark.skipif('fork' not in mp.get_all_start_methods(), reason='needs fork')
@pytest.mark.filterwarnings('ignore:.*multi-threaded.*fork:DeprecationWarning')
def test_forked_while_a_thread_holds_it():
    "A forked process waits for no thread that it does not have"
    bank = bank_with(numbered(0))
    lock = bank.lock.rlock
    begun,over = threading.Event(),threading.Event()
    def hold():
        with lock: begun.set(); over.wait()
    t = threading.Thread(target=hold)
    t.start(); begun.wait()
    p = mp.get_context('fork').Process(target=bank.add, args=(numbered(1),))
    p.start(); p.join(20)
    over.set(); t.join()
    if p.exitcode is None: p.kill()
    assert p.exitcode==0
