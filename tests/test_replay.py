"`ExperienceReplay` with every form of row, setting and refusal, and saved at any moment to any place"
import copy, gc, itertools, os, pickle, random, re, threading, weakref
from array import array
from collections import deque
from contextlib import suppress
from functools import partial
import numpy as np, pandas as pd, pytest, torch
from fastcore.test import expect_fail
from fastrl.core import BD, leaves, test_same as same
from fastrl.memory.disk import LoadError, Saved, pieces_of, write_manifest
from fastrl.memory.replay import ExperienceReplay, ExperienceReplayException, MemoryNotWarm
from fastrl.memory.ring import Ring
from fastrl.memory.sample import Prioritized, Uniform
from fastrl.memory.walk import Walk
from torch import tensor

long = pytest.mark.long
def refused(contains='', exc=ExperienceReplayException): return pytest.raises(exc, match=re.escape(contains) or None)
def steps(*ns): return BD(step=tensor(ns)[:,None])
def flag(*o): return tensor(o).bool()[:,None]
def column(er, name): return er[name][:,0].tolist()
def cloned(er): return er.memory.mapv(torch.clone)
def draws_alike(a, b, n=20):
    for i in range(n): same(draw(a, i), draw(b, i))

def few_of(cases, n):
    "The parameters of `cases`: half of a random sample of `n` that has every value; the other half for `make test-slow`, the rest for `make test-long`"
    cases = list(cases)
    few = random.Random(0).sample(cases, n)
    assert [set(o) for o in zip(*few)]==[set(o) for o in zip(*cases)]
    return [pytest.param(*o, id='-'.join(map(str, o)), marks=() if o in few[::2] else pytest.mark.slow if o in few else long) for o in cases]

# %% Adding batches
@pytest.fixture
def twelve():
    "A memory of 12 rows, and what it was made of"
    src = BD(x=torch.ones(2,1, requires_grad=True))
    er = ExperienceReplay(bs=2, max_sz=20, warmup_sz=0)
    return er+src+dict(src)+(src,)+(dict(src),)+dict(x=np.ones((2,1)))+BD(src, td_error=torch.full((2,1), 3.))

def test_ways_in(twelve):
    "`BD`, dict, tuple of one, NumPy, a `td_error` of its own, a gradient: nothing but the numbers is kept"
    assert (len(twelve), twelve.memory['x'].requires_grad, twelve.memory['td_error'].sum().item())==(12, False, 6.)

no_batches = (3, None, 'x', [BD(x=torch.ones(2,1))], (), (BD(x=torch.ones(2,1)),1), ([1],), dict(x=1), dict(x='a'),
              BD(x=torch.ones(2,1), y=torch.ones(3,1)), {}, torch.ones(2), dict(x=torch.ones(2,2)),
              dict(x=torch.ones(2,1,1)), dict(x=None))
@pytest.mark.parametrize('bad', no_batches, ids=range(len(no_batches)))
def test_no_batch(twelve, bad):
    "Anything else is refused, on either side of `+`, and nothing changes"
    before = cloned(twelve)
    with refused(): twelve+bad
    if not isinstance(bad, torch.Tensor):
        with refused(): bad+twelve
    same(twelve.memory, before)

def test_array_plus_memory(twelve):
    "An array does not spread over a memory"
    with refused('write `memory + batch`'): np.ones(2)+twelve

@pytest.mark.parametrize('td,idxs', [(torch.ones(2,1), [0]), (torch.ones(1,1), [12]), (torch.ones(1,1), [-13]),
                                     (torch.ones(1,1), [.5]), (torch.ones(1,2), [0])])
def test_wrong_update(twelve, td, idxs):
    "TD errors that fit no rows change nothing"
    before = cloned(twelve)
    with refused(): twelve.update_td(td, idxs)
    same(twelve.memory, before)

def test_start_rows_copied():
    "The rows to start from are copied"
    rows = steps(1,2,3)
    er = ExperienceReplay(max_sz=3, warmup_sz=1, memory=rows)
    rows['step'].zero_()
    assert column(er, 'step')==[1,2,3]

def test_start_rows_too_many():
    "More rows to start from than fit: a warning says how many stay"
    with pytest.warns(UserWarning, match='of 4 rows the newest 3 are kept'):
        er = ExperienceReplay(max_sz=3, warmup_sz=1, memory=steps(1,2,3,4))
    assert sorted(column(er, 'step'))==[2,3,4]

def test_empty():
    "An empty memory has no columns, nothing to update and nothing to draw"
    er = ExperienceReplay(warmup_sz=0)
    assert (er.memory, len(er), er.pointer)==(None, 0, 0)
    with refused('no rows yet'): er.update_td(torch.ones(1,1), [0])
    with refused(exc=MemoryNotWarm): er.sample()
    with refused(exc=MemoryNotWarm): er.sample_sequences(1, 1)

def test_warm_up():
    "`sample` waits for `warmup_sz` rows"
    er = ExperienceReplay(warmup_sz=3)+steps(1,2)
    with refused('2 rows are stored, and 3', MemoryNotWarm): er.sample()
    (er+steps(3)).sample()

numbers = [lambda: np.arange(3.), lambda: torch.arange(3.), lambda: [0.,1.,2.]]
@pytest.mark.parametrize('one', numbers, ids=('numpy','torch','list'))
def test_one_number_per_row(one):
    "`(n,)` is stored as `(n,1)` in every form, nested and beside wider columns"
    batch = dict(x=one(), nest=dict(y=one()), wide=torch.zeros(3,2))
    m = (ExperienceReplay(warmup_sz=0)+dict(**batch, td_error=torch.arange(3.))+batch).memory
    assert (m['x'].shape, m['nest']['y'].shape, m['wide'].shape)==((6,1), (6,1), (6,2))
    assert m['td_error'][:,0].tolist()==[0,1,2,0,0,0]

def test_foreign_ring():
    "A ring that was made elsewhere with single numbers keeps them"
    flat = ExperienceReplay(max_sz=4, warmup_sz=0)
    flat.ring.extend(dict(x=torch.arange(3.), td_error=torch.zeros(3,1)))
    same((flat+dict(x=torch.ones(1))).memory['x'], tensor([0.,1,2,1]))

big = 2**30+1
big_columns = ([np.int64(big)]*2, [tensor(big)]*2, np.array([big]*2), tensor([big]*2), range(big, big+2),
               deque([big, big]), array('q', [big, big]))
@pytest.mark.parametrize('col', big_columns, ids=lambda o: type(o).__name__)
def test_no_rounding(col):
    "No number is rounded, and every column gets a second axis, whatever holds it"
    a = (ExperienceReplay(warmup_sz=0)+dict(a=col, b=np.zeros((2,1)))).memory['a']
    assert (a.dtype, a.shape, a.min())==(torch.int64, (2,1), big)

def test_table():
    "The columns of a pandas table"
    m = ExperienceReplay(bs=4, warmup_sz=0)+dict(pd.DataFrame(dict(reward=[1.,2,3], done=[False]*3)))
    assert {k: tuple(o.shape) for k,o in m.memory.items()}==dict(reward=(3,1), done=(3,1), td_error=(3,1))

no_columns = ([[1],[1,2]], ['x','y'], [None]*2, object(), [torch.ones(1), torch.ones(2)], [tensor(1.), torch.ones(2)],
              [np.ones(1), np.ones(2)])
@pytest.mark.parametrize('bad', no_columns, ids=range(len(no_columns)))
def test_no_column(bad):
    "Ragged lists, texts and objects are no columns"
    with refused(): ExperienceReplay()+dict(b=np.zeros((2,1)), a=bad)

@pytest.mark.parametrize('td', [torch.zeros(2,1).long(), torch.zeros(2,1,1), torch.zeros(2,2),
                                torch.zeros(2,1, dtype=torch.complex64)])
def test_own_td_error(td):
    "A `td_error` of your own is floats of shape (n,1)"
    with refused('`td_error` should be floats'): ExperienceReplay()+BD(x=torch.ones(2,1), td_error=td)

# %% Adding one step
def test_add_forms():
    "Numbers, arrays, tensors and nested observations make the columns that a batch of one makes"
    er = ExperienceReplay(max_sz=3, warmup_sz=1).add(r=1., n=2, b=True, x=np.ones(2, np.float32), t=tensor(3),
                                                     s=np.float64(4), o=dict(a=(5., [6,7])))
    same(er.memory, BD(r=tensor([[1.]]), n=tensor([[2.]]), b=tensor([[True]]), x=torch.ones(1,2), t=tensor([[3]]),
                       s=tensor([[4.]]), o=dict(a=(tensor([[5.]]), tensor([[6.,7.]]))),
                       td_error=torch.zeros(1,1)))
    with refused(): er.add(r='x')

def test_int_columns():
    "Ints begin columns of ints where their name says so, and of floats elsewhere; later rows follow the column"
    er = ExperienceReplay(warmup_sz=0).add(action=1, env_id=0, step=2**24+1, reward=0, x=3, terminated=False)
    er.add(action=2, env_id=1, step=0, reward=.5, x=.5, terminated=True)
    assert {k: str(o.dtype)[6:] for k,o in er.memory.items()}==dict(
        action='int64', env_id='int64', step='int64', reward='float32', x='float32', terminated='bool', td_error='float32')
    assert (er.memory['step'].max(), column(er, 'x'))==(2**24+1, [3,.5])
    with refused('action'): er.add(action=.5, env_id=1, step=0, reward=0, x=0, terminated=True)

@pytest.mark.parametrize('first', [dict(r=np.float64(.1)), dict(r=[np.float64(.1)]), dict(r=.1)])
def test_rewards_of_environments(first):
    "`np.float64` is a Python float: alone, in a list and in a batch of lists it begins float32, which arrays do not"
    for er in (ExperienceReplay(warmup_sz=0).add(**first), ExperienceReplay(warmup_sz=0)+{k: v if isinstance(v, list) else [v] for k,v in first.items()}):
        er.add(r=.5).add(r=np.float64(.3))
        same(er.memory['r'], tensor([[.1],[.5],[.3]]))
    for wide in (np.array([.1]), tensor([.1]).double()): assert ExperienceReplay().add(r=wide).memory['r'].dtype==torch.float64
    with refused('`r` should be int64'): ExperienceReplay().add(r=np.int64(1)).add(r=np.float64(.5))

@pytest.mark.parametrize('n', [2**63, 2**200], ids=['63','200'])
def test_int_too_large(n):
    "An int beyond int64 is refused"
    with refused(): ExperienceReplay().add(episode_id=n, x=1.)

# `add` has a fast way for rows that fit as they are
state = np.ones(2, np.float32)
odd_values = (0, 1, -1, 2**24+1, 2**53+1, 2**63, True, 0., .5, float('nan'), float('inf'), 1e300, np.int64(3),
              np.int8(3), np.float32(.5), np.float64(.1), np.bool_(True), np.zeros(1, np.float32), np.array(2.),
              np.zeros(2), tensor(3.), tensor([3]), [4], [.5], None, 'x', 1j)
def outcome(er, row):
    try: er.add(**row)
    except Exception as e: return type(e),str(e)
    return {k: o.tolist() for k,o in er.memory.items()},{k: o.dtype for k,o in er.memory.items()},er.pointer

def fast_and_general(first, **kw):
    "Two memories with the row `first`, of which the second has no fast way"
    a,b = (ExperienceReplay(max_sz=3, warmup_sz=0, **kw).add(**first) for _ in range(2))
    b.ring.writer = lambda row: False
    return a,b

@pytest.mark.parametrize('first', [dict(f=0., i=np.int64(0), b=False, s=state),
                                   dict(f=np.zeros(1), i=np.int8(0), b=np.bool_(0), s=state),
                                   dict(f=np.float16(0), i=np.uint8(0), b=False, s=state)], ids=['wide','numpy','small'])
def test_fast_add(first):
    "Whatever a row is, the fast way ends as the general one does: the same columns, or the same error"
    fine = {**first, 'f':.5, 'i':1, 'b':True}
    rows = [{**fine, k:v} for k in ('f','i','b','s','td_error') for v in odd_values]
    rows += [{k:v for k,v in fine.items() if k!=o} for o in fine] + [{**fine, 'more':1}, {}]
    for row in rows:
        x,y = (outcome(m, row) for m in fast_and_general(first))
        assert str(x)==str(y), (row, x, y) # as text: NaN is not itself
    assert len(rows)==5*len(odd_values)+4+2

@pytest.fixture
def ten():
    "A memory of the last three of ten rows, added the fast way, and the same one added the general way"
    er,other = fast_and_general(dict(f=0., i=1, b=True, s=state))
    for m in (er, other):
        for i in range(10): m.add(f=i, i=i, b=i%2==0, s=state*i)
    return er,other

def test_fast_add_wraps(ten):
    "Over the end of the ring, too"
    same(*(o.memory for o in ten))
    assert ten[0].pointer==2

@pytest.mark.parametrize('kwargs', [{}, dict(n_step=3), dict(frame_stack=2), dict(sampler=Prioritized())], ids=str)
@pytest.mark.halved
def test_freed_at_once(kwargs):
    "Whoever deletes a memory gets its gigabytes back then, not when Python next looks for rings of references"
    image,kwargs = np.zeros((5,5), np.float32),copy.deepcopy(kwargs)
    er = ExperienceReplay(4, max_sz=20, warmup_sz=1, **kwargs)
    for i in range(30): er.add(state=image, next_state=image, action=i, reward=1., terminated=i%3==2, truncated=False)
    batch,idxs = er.sample()
    er.update_td(torch.ones(4,1), idxs, batch['serial'])
    er.sample_sequences(2, 2); er.memory
    gc.collect(); gc.disable()
    try:
        rows = weakref.ref(er.ring.place)
        del er
        assert rows() is None
    finally: gc.enable()

@pytest.mark.parametrize('copied', [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))], ids=['deepcopy','pickle'])
def test_copy_adds_to_itself(ten, copied):
    "A copy does not add to the memory that it was copied from"
    er = ten[0]
    other = copied(er)
    other.add(f=99., i=9, b=True, s=state)
    assert (other.memory['f'].max(), er.memory['f'].max())==(99, 9)

@pytest.mark.parametrize('kind', ['ram','shared','file'])
def test_add_elsewhere(ten, tmp_path, kind):
    "Rows that live elsewhere are added to as well"
    ten[0].save(tmp_path/'saved')
    where = dict(ram={}, shared=dict(shared=True), file=dict(path=tmp_path/'ring'))[kind]
    again = ExperienceReplay.load(tmp_path/'saved', **where)
    for i in range(4): again.add(f=10.+i, i=i, b=False, s=state)
    assert sorted(column(again, 'f'))==[11,12,13]

def test_add_mapped(ten, tmp_path):
    "Mapped rows can only be read"
    ten[0].save(tmp_path)
    frozen = ExperienceReplay.load(tmp_path, mapped=True)
    with refused('mapped', Exception): frozen.add(f=1., i=1, b=True, s=state)

def test_add_whole_or_nothing():
    "What looks like an array and is none: a row is whole, or nothing is written"
    m,ones = ExperienceReplay(warmup_sz=0, shared=True),np.ones(3, np.float32)
    for o in (ones, np.ma.masked_array(ones, [0,1,0]), pd.Series(ones), tensor([1.,1,1])):
        with suppress(ExperienceReplayException): m.add(s=o)
    assert (m.memory['s']==1).all()
    assert m.ring.place.head[0]==m.ring.place.head[1]

def test_own_plus():
    "`add` goes through the `+` of a subclass"
    class Counts(ExperienceReplay):
        n = 0
        def __add__(self, batch): self.n += 1; return super().__add__(batch)
    m = Counts(warmup_sz=0)
    for _ in range(4): m.add(x=1.)
    assert m.n==4

class InWorker(torch.utils.data.IterableDataset):
    def __init__(self, er): self.er = er
    def __iter__(self):
        try: self.er.add(x=1.); yield 'added'
        except RuntimeError as e: yield str(e)

def test_add_in_worker():
    "A worker's copy is not added to: nobody would see the rows"
    m = ExperienceReplay(warmup_sz=0).add(x=0.).add(x=0.)
    loader = torch.utils.data.DataLoader(InWorker(m), batch_size=None, num_workers=1, multiprocessing_context='fork')
    assert 'a copy of this ring' in next(iter(loader))
    assert len(m.add(x=0.))==3

class Draws(torch.utils.data.IterableDataset):
    def __init__(self, draw): self.draw = draw
    def __iter__(self): return (self.draw()[1].tolist() for _ in range(3))

def made_before(er): # the workers start
    s = er.stream(T=2, seed=0)
    return lambda: next(s)
def seeded_within(er):
    def draw(): er.sampler.seed(3); return er.sample()
    return draw
draws_in_worker = dict(sample=lambda er: er.sample, several=lambda er: lambda: er.sample(n_batches=1)[0], rows=lambda er: lambda: er.sample_sequences(T=2),
                       whole=lambda er: er.sample_sequences, ahead=lambda er: lambda: next(er.loader()), stream=made_before, seeded=seeded_within)

@pytest.mark.skipif(not hasattr(os, 'fork'), reason='the workers are forked, which this system cannot')
@pytest.mark.parametrize('way,sampler', [('ahead',Uniform), ('rows',Prioritized), *(pytest.param(*o, marks=pytest.mark.slow)
    for o in (*((k, Uniform) for k in ('sample','seeded','several','rows','whole','stream')), ('sample',Prioritized)))])
def test_workers_draw_apart(way, sampler):
    "Workers of a `DataLoader`, and its epochs, draw other rows; for the same seeds the same ones, and those of a seed that they were given"
    er = ExperienceReplay(8, 400, 1, sampler=sampler(seed=0), seed=0, shared=True, schema=dict(n=((), torch.int64), terminated=((), torch.bool), truncated=((), torch.bool), env_id=((), torch.int64)))
    er+dict(n=torch.arange(400), terminated=torch.arange(400)%4==3, truncated=torch.zeros(400).bool(), env_id=torch.zeros(400).long())
    if way=='sample': er.sample() # so that its stream has begun
    draw = draws_in_worker[way](er)
    def drawn(seed):
        loader = torch.utils.data.DataLoader(Draws(draw), batch_size=None, num_workers=2, multiprocessing_context='fork', generator=torch.Generator().manual_seed(seed))
        return [str(o) for _ in range(2) for o in loader]
    a,there = drawn(0),way=='seeded'
    assert len({*a})==(1 if there else 12), a
    assert drawn(0)==a and {*drawn(1)}.isdisjoint(a)!=there

# %% Settings
@pytest.mark.parametrize('kw', [dict(bs=0), dict(max_sz=0, warmup_sz=0), dict(n_step=0), dict(n_step=-1), dict(bs=1.5),
                                dict(bs=True), dict(max_sz='a')], ids=str)
def test_no_setting(kw):
    "Counts are whole numbers of at least 1"
    with refused(f'`{next(iter(kw))}` should be'): ExperienceReplay(**kw)

@pytest.mark.parametrize('gamma', [-.1, 2., float('nan'), None, [.9], '.9', ''])
def test_no_gamma(gamma):
    "A discount factor lies between 0 and 1"
    with refused('`gamma` should be a number from 0 to 1, or name a column, got'): ExperienceReplay(gamma=gamma)

@pytest.mark.parametrize('bs', [0, -1, 2.5, 'cpu', True])
def test_no_batch_size(bs):
    "Nor does `sample` take anything for a number of rows"
    er = ExperienceReplay(warmup_sz=0)+steps(1)
    with refused('`bs` should be'): er.sample(bs)

@pytest.mark.parametrize('bad', [Uniform, 'prioritized', object()], ids=['class','name','object'])
def test_no_sampler(bad):
    "A sampler is an object that draws and updates"
    with refused('`sampler` should be'): ExperienceReplay(sampler=bad)

class Odd(Uniform):
    "Draws what it is told to"
    def draw(self, ring, bs): return self.drawn

odd_draws = (tensor([0]), (tensor([3]), {}), (tensor([-1]), {}), (tensor([0.]), {}), (tensor([[[0]]]), {}), ([0], {}),
             (tensor([], dtype=torch.int64), {}), (tensor([0]), None), (tensor([0]), dict(weight=torch.ones(1))),
             (tensor([0]), dict(weight=[1.])), (tensor([0]), dict(weight=torch.ones(2,1))))
@pytest.mark.parametrize('drawn', odd_draws, ids=range(len(odd_draws)))
def test_odd_draw(drawn):
    "A sampler that draws what is not there is named"
    odd = Odd()
    odd.drawn = drawn
    er = ExperienceReplay(warmup_sz=0, sampler=odd)+dict(x=torch.ones(3,1))
    with refused('`draw` of Odd()'): er.sample()

def test_own_draw():
    "A sampler of one's own draws the rows that it names"
    odd = Odd()
    odd.drawn = (tensor([2,0]), {})
    same((ExperienceReplay(warmup_sz=0, sampler=odd)+dict(x=torch.arange(3.))).sample()[0]['x'], tensor([[2.],[0.]]))

def test_seed():
    "The memory's seed is that of a sampler without one"
    def first(sampler, **kw):
        return (ExperienceReplay(bs=50, warmup_sz=0, sampler=sampler, **kw)+dict(x=torch.arange(100.))).sample()[1]
    same(first(Prioritized(), seed=1), first(Prioritized(), seed=1))
    same(first(Prioritized(seed=3), seed=1), first(Prioritized(seed=3), seed=2))
    assert not torch.equal(first(Prioritized()), first(Prioritized()))

def test_sampler_repr():
    "Samplers show their settings"
    assert (repr(Uniform()), repr(Prioritized(alpha=.5)))==(
        'Uniform()', "Prioritized(alpha=0.5, beta=0.4, beta_steps=100000, eps=1e-06, normalize='batch')")

def test_slice_begins_nothing():
    "A gap in a slice may take away what told another row that its episode did not begin there: that row gets one, too"
    lived = [(0,0,1,0), (1,1,1,0), (2,2,1,1), (0,0,2,0), (1,1,2,0), (2,3,1,0), (0,0,3,1), (1,1,3,1), (2,3,2,0), (0,4,1,1),
             (1,5,1,1), (2,3,3,0), (0,6,1,0), (1,7,1,0), (2,3,4,1), (0,6,2,0), (1,7,2,0), (2,8,1,0)]
    env,episode,step,over = tensor(lived).T[:,:,None]
    er = ExperienceReplay(max_sz=20, warmup_sz=0, seed=0, memory=BD(
        env_id=env, episode_id=episode, step=step, terminated=over.bool(), truncated=torch.zeros_like(over).bool()))
    for rows in (slice(None,None,2), slice(1,None,2), slice(None,None,3), slice(4,None,5), slice(None)):
        batch,_ = er[rows].sample_sequences(100, 3, pad=True)
        first,mask = batch['is_first'].view(100, 3),batch['mask']
        assert ((batch['step'].view(100, 3)==1)==first)[mask].all(), rows

@pytest.mark.parametrize('o', [99, 'nothing', None, slice(3, None)], ids=str)
def test_no_such_row(o):
    "Rows and columns that are not there"
    er = ExperienceReplay(max_sz=3, warmup_sz=1, memory=steps(1,2,3))
    with refused(): er[o]

# %% Merging
def test_merge_of_a_loaded(tmp_path):
    "A memory that went round is known by its columns, also if nobody else holds it"
    er = ExperienceReplay(9, 10, 1)
    for i in range(14): er.add(state=i, reward=1., next_state=i+1, terminated=False, truncated=False, env_id=0)
    er.save(tmp_path)
    both = ExperienceReplay(9, 20, 1, n_step=3, seed=0)+ExperienceReplay.load(tmp_path).memory
    batch,_ = both.sample(300)
    assert ((batch['next_state']-batch['state']).long()==batch['n_steps']).all(), 'the oldest row follows the newest'

@pytest.mark.parametrize('columns', (('env_id',), ()), ids=('env_id','single'))
def test_merge_of_many_pieces(columns):
    "More pieces than a ring has marks for: rows that stand alone there do so in the copy"
    er,n = ExperienceReplay(9, 1400, 1, n_step=3, seed=0),1400
    for i in range(0, n, 2):
        row = dict(state=[i,i+1], next_state=[i+1,i+2], reward=[1.,1.], terminated=[False]*2, truncated=[False]*2, env_id=[0,0])
        er + {k: v for k,v in row.items() if k in columns or k!='env_id'}
        er.cut()
    alone = er.ring.seams.lone
    assert alone>100
    for copy in (er[:], er[1:], er[::2], ExperienceReplay(9, 2000, 1, n_step=3, seed=0).extend(er)):
        batch,_ = copy.sample(4000)
        i,k = batch['state'].long(),batch['n_steps']
        assert (k<=2).all() and not (k==2)[(i<alone)|(i%2==1)].any(), 'pieces are joined'

def test_merge_beside_draws():
    "Rows of another memory are joined in one act: whoever draws, or saves, beside it never sees steps of two memories as one"
    def rows(a, n=30):
        i,no = torch.arange(a, a+n)[:,None],torch.zeros(n, 1, dtype=torch.bool)
        return BD(state=i.float(), next_state=i+1., reward=torch.ones(n, 1), terminated=no, truncated=no, env_id=i*0)
    er,stop,drawn = ExperienceReplay(64, 200, 1, seed=0, n_step=5, memory=rows(90_000)),threading.Event(),[]
    parts = [ExperienceReplay(8, 30, 1, memory=rows(a)) for a in range(0, 3000, 1000)]
    def draw():
        while not stop.is_set(): drawn.append(er.sample()[0])
    t = threading.Thread(target=draw)
    t.start()
    try:
        for k in range(600): er.extend(parts[k%3]) if k%2 else er+parts[k%3].memory
    finally: stop.set(); t.join()
    assert len(drawn)>20 and all(torch.equal(b['next_state']-b['state'], b['n_steps'].float()) for b in drawn)

def test_merge_both_ways():
    "Two threads merge two memories into one another, and none waits for ever"
    a,b = (ExperienceReplay(2, 40, 1, memory=BD(x=torch.arange(10.))) for _ in range(2))
    def merge(a, b):
        for _ in range(300): a+b.memory; a.extend(b)
    ts = [threading.Thread(target=merge, args=o, daemon=True) for o in ((a, b), (b, a))]
    for t in ts: t.start()
    for t in ts: t.join(60)
    assert not any(t.is_alive() for t in ts) and len(a)==len(b)==40

def frames_of(n, **kwargs):
    er = ExperienceReplay(4, 40, 1, frame_stack=3, **kwargs)
    def f(t): return np.full((5,5), t, np.uint8)
    for e,t in itertools.product(range(n), range(8)):
        er.add(state=f(10*e+t), next_state=f(10*e+t+1), reward=0., terminated=t==7, truncated=False)
    return er

def test_frozen_frames():
    "A frozen memory of frames gives and takes any rows, as others do"
    free,frozen = (frames_of(4, freeze_memory=o) for o in (False, True))
    for o in (slice(3, 12), [3,12], [12,3]): same(frozen[o]['state'], free[o]['state'])
    to = ExperienceReplay(4, 40, 1, frame_stack=3, freeze_memory=True)
    to.extend(free[3:5])
    to.extend(free[[3,12]])
    assert to['state'][:,-1,0,0].tolist()==[3,4,3,14]

number,vector = ((), torch.float32),((3,), torch.float32)
@pytest.mark.parametrize('schema,fields', [
    (dict(obs=vector, reward=number), 'obs float32[3], reward float32[1]'), (dict(obs=(number, vector)), 'obs.0 float32[1], obs.1 float32[3]'),
    (dict(obs=(vector, number, number)), 'obs.0 float32[3], obs.1 float32[1], obs.2 float32[1]'), (dict(obs=((), torch.int8)), 'obs int8[1]'),
    (dict(obs=dict(value=number), value=(*vector, 'later')), 'obs.value float32[1], value float32[3]')], ids=str)
def test_schema(tmp_path, schema, fields):
    "Nested, of one or several numbers, for later: it names the columns, and a memory that is opened again has it, too"
    er = ExperienceReplay(2, 9, 1, schema=schema, path=tmp_path/'rows')
    assert repr(er.ring.fields)==f'[{fields}, td_error float32[1]]'
    del er
    again = ExperienceReplay(2, 9, 1, path=tmp_path/'rows')
    assert (again.schema, [*again.later])==(schema, ['value']*('value' in schema))

@pytest.mark.parametrize('bad', [5, None, [vector], (*vector, 'latr'), (*vector, 'later', 1), dict(value=(*vector, 'later'))], ids=str)
def test_schema_that_is_none(bad):
    with pytest.raises(ExperienceReplayException, match=r'the schema of `obs.*` should be `\(shape, dtype\)`, got'):
        ExperienceReplay(2, 9, 1, schema=dict(obs=bad))

def test_no_such_column():
    er = ExperienceReplay(2, 9, 1)+dict(x=torch.zeros(2))
    for b in (er.memory, BD(er.memory), pickle.loads(pickle.dumps(er.memory))):
        with pytest.raises(KeyError, match='nope'): b['nope']

def test_later_columns_of_frames():
    "Rows that lack a column for later come from another memory of frames, too"
    shape = (3,5,5),torch.uint8
    schema = dict(state=shape, next_state=shape, reward=((), torch.float32), terminated=((), torch.bool),
                  truncated=((), torch.bool), adv=((2,), torch.float32, 'later'))
    for add in (ExperienceReplay.extend, lambda a, b: a+b.memory):
        er,other = ExperienceReplay(4, 40, 1, frame_stack=3, schema=schema),frames_of(2)
        add(er, other)
        same(er['state'], other['state'])
        assert er['adv'].shape==(16,2) and not er['adv'].any()

# %% Changing settings
@pytest.mark.parametrize('k,v', [('n_step',0),('n_step',-3),('n_step',2.5),('gamma',1.5),('gamma',float('nan')),('warmup_sz',21),('bs',0),('max_sz',30)])
def test_no_change(k, v, tmp_path):
    "A setting that no memory could be made with is refused when it is set, not when the memory is loaded"
    er = ExperienceReplay(4, 20, 1, n_step=3, gamma=.9)
    for t in range(20): er.add(state=[float(t)], next_state=[t+1.], reward=1., terminated=0, truncated=False, env_id=0)
    was = getattr(er, k)
    with refused(f'`{k}`'): setattr(er, k, v)
    assert getattr(er, k)==was
    er.save(tmp_path)
    assert getattr(ExperienceReplay.load(tmp_path), k)==was

@pytest.mark.parametrize('k,v', [('frame_stack',4),('frame_pad','zeros'),('frame_margin',9),('seed',1),('device','cuda'),('shared',True),
                                 ('path','rows'),('max_sz',20.),('sampler',Prioritized),('sampler',object()),('freeze_memory','False')])
def test_lasting(k, v, tmp_path):
    "What would have no effect any more, or fails at the next draw or save, is refused when it is set; the memory goes on"
    er = ExperienceReplay(4, 20, 1)
    er+steps(*range(20))
    with expect_fail(Exception, contains=k): setattr(er, k, v)
    er.save(tmp_path)
    same(ExperienceReplay.load(tmp_path).sample(), er.sample())

def test_counts_of_any_kind():
    "A whole number of NumPy or torch is one, also when it is set later; no sampler is the usual one"
    made,er = ExperienceReplay(tensor(4), np.int64(20), 1, n_step=tensor(1)),ExperienceReplay(1, 20, 1)
    er.bs,er.max_sz,er.n_step,er.sampler = tensor(4),tensor(20),tensor(1),None
    row = dict(state=[0.], next_state=[1.], reward=1., terminated=False, truncated=False)
    for o in (made, er): assert len(o.add(**row).sample()[1])==4

def test_own_sampler_with_a_seed():
    "A seed of the memory's is for samplers of ours"
    class Own(Strange): seeded = False
    ExperienceReplay(4, 8, 1, sampler=Own(), seed=0)

def test_changes():
    er = ExperienceReplay(4, 20, 1)
    er.bs,er.n_step,er.gamma,er.warmup_sz,er.max_sz = 2,3,.5,20,20
    er.n_step = None
    assert (copy.deepcopy(er).bs, pickle.loads(pickle.dumps(er)).warmup_sz)==(2, 20)

def test_one_sampler_one_memory():
    "The TD errors of one memory mean nothing for the rows of another"
    s = Prioritized(seed=0)
    a,b = (ExperienceReplay(4, 20, 1, sampler=s) for _ in range(2))
    for er in (a, b): er+steps(*range(20))
    a.sample()
    with refused('a sampler of its own'): b.sample()
    with refused('a sampler of its own'): b.update_td(torch.ones(1, 1), tensor([0]))
    same(copy.deepcopy(a).sample(), pickle.loads(pickle.dumps(a)).sample())
    del a, er
    gc.collect()
    b.sample() # nobody else has it now

def test_flags_of_numbers():
    "Zeros and ones are flags where flags are meant"
    er = ExperienceReplay(4, 20, 1)
    er.add(x=1, terminated=0, truncated=1, done=1.)
    er.add(x=1, terminated=1, truncated=False, done=0.)
    for o in (0, 1, True):
        assert er.ring.writer(dict(x=1., terminated=o, truncated=o, done=float(o), td_error=0.)) # the fast way takes both
    assert not er.ring.writer(dict(x=1., terminated=2, truncated=0, done=0., td_error=0.))
    for k in ('terminated','truncated'): assert er[k].dtype is torch.bool
    assert column(er, 'terminated')==[False,True,False,True,True] and er['done'].dtype is torch.float32 # for `1-done`

def test_settings_of_a_subclass():
    "A class of your own may note a setting before it calls ours"
    class My(ExperienceReplay):
        def __init__(self, gamma, bs): self.gamma,self.bs = gamma,bs; super().__init__(gamma=gamma, bs=bs)
    er = My(.9, 3)
    with refused('`gamma`'): er.gamma = 2

def test_frames_opened_as_rows(tmp_path):
    "A file whose rows have their frames beside it is not opened as if these numbers were states"
    er = frames_of(2, path=tmp_path/'rows')
    del er
    gc.collect()
    with refused('give their `frame_stack`'): ExperienceReplay(4, 40, 1, path=tmp_path/'rows')
    assert len(ExperienceReplay(4, 40, 1, path=tmp_path/'rows', frame_stack=3))==16

@pytest.mark.parametrize('call,says', [(lambda: ExperienceReplay(nstep=3), '`n_step`'), (lambda: ExperienceReplay(gama=.9), '`gamma`'),
    (lambda: ExperienceReplay().sample(divice='cpu'), '`device`'), (lambda: ExperienceReplay().sample_sequences(burnin=1), '`burn_in`')])
def test_spelt_nearly_alike(call, says):
    with refused(says, TypeError): call()

# %% TD errors
@pytest.fixture
def numbered():
    "Twelve rows, and the serial numbers of the first three"
    er = ExperienceReplay(max_sz=12, warmup_sz=1, memory=steps(*range(12)))
    return er,er.ring.serial([0,1,2])[:,None]

i3 = tensor([0,1,2])
wrong_updates = dict(few_td=(torch.ones(2,1), i3, 2), complex=(torch.ones(3,1)*1j, i3, 3), deep_idxs=(torch.ones(3), i3[:,None,None], 3),
                     few_flat_td=(torch.ones(2), i3, 3), few_serials=(torch.ones(3,1), i3, 2),
                     no_row=(torch.ones(3,1), tensor([0,1,99]), 3), float_idxs=(torch.ones(3,1), i3.float(), 3))
@pytest.mark.parametrize('td,idxs,n', wrong_updates.values(), ids=wrong_updates)
def test_wrong_update_with_serials(numbered, td, idxs, n):
    "With serial numbers, too, an update that does not fit changes nothing"
    er,serials = numbered
    before = cloned(er)
    with refused(): er.update_td(td, idxs, serials[:n])
    same(er.memory, before)

@pytest.mark.parametrize('sampler', (Uniform,Prioritized))
def test_update_by_batch(sampler):
    "A batch alone says which rows it has: as row numbers and serials do, for rows and sequences, also when it comes late"
    def more(a, b):
        t = np.arange(a, b)
        return dict(reward=t, terminated=t%4==3, truncated=np.zeros(b-a, bool), env_id=np.zeros(b-a))
    both = [ExperienceReplay(bs=6, max_sz=9, warmup_sz=1, sampler=sampler(seed=0), seed=0, memory=more(0, 7)) for _ in range(2)]
    (a,b),rng,drawn,at = both,random.Random(0),[],7
    for k in range(400):
        drawn.append([o.sample() if k%2 else o.sample_sequences(4, T=3, pad=True) for o in both])
        if rng.random()<.5:
            for o in both: o+more(at, at+2)
            at += 2
        (batch,idxs),(same_batch,_) = drawn.pop(rng.randrange(len(drawn))) if len(drawn)>5 or rng.random()<.5 else drawn.pop()
        td = torch.tensor([rng.random() for _ in range(idxs.numel())]).view(idxs.shape)
        a.update_td(td if idxs.ndim==2 else td[:,None], idxs, batch['serial'])
        b.update_td(td, same_batch) # of rows also `(n,)`
        same((a['td_error'], a.dropped_updates), (b['td_error'], b.dropped_updates))
    assert a.dropped_updates>50
    with refused('by their column `serial`'): a.update_td(torch.ones(9, 1), a.memory)

def test_odd_updates(numbered):
    "A gradient is left behind, other dtypes are converted, and -1 names no row"
    er,serials = numbered
    er.update_td(torch.full((3,1), 4., requires_grad=True), i3, serials)
    assert column(er, 'td_error')[:3]==[4,4,4]
    er.update_td(torch.full((3,1), 5., dtype=torch.float64), tensor([0,1,-1]), serials.int())
    assert column(er, 'td_error')==[5,5,4]+[0]*9
    er.update_td([6.,7.,8.], [3,-1,4])
    assert column(er, 'td_error')==[5,5,4,6,8]+[0]*7 and er.dropped_updates==0
    with refused('-1 names none, got -10'): er.update_td(torch.ones(3,1), [0,1,-10], serials)

@pytest.mark.parametrize('idxs', [None, 'a', ..., {}], ids=str)
def test_no_row_numbers(numbered, idxs):
    "What names no rows updates none"
    with refused(): numbered[0].update_td(torch.ones(1,1), idxs)

@pytest.mark.parametrize('sampler,settings', ((Uniform,{}), (Uniform,dict(shared=True)), (Uniform,dict(frame_stack=2)),
                                              (partial(Prioritized, beta_steps=9),{})))
@pytest.mark.parametrize('n_batches', (None,3))
@pytest.mark.parametrize('before', (0,2))
def test_failed_draws(sampler, settings, n_batches, before):
    "A draw that fails after its random numbers were drawn uses up none: the next one is what it would have been"
    def memory():
        er = ExperienceReplay(bs=4, max_sz=99, warmup_sz=1, sampler=sampler(seed=0), **settings)
        for i in range(40):
            er.add(state=np.full(2, i), next_state=np.full(2, i+1), reward=1., terminated=i%5==4, truncated=False)
        for _ in range(before): er.sample()
        if sampler is not Uniform and before: er.update_td(torch.arange(40.)[:,None], torch.arange(40))
        return er
    a,b = memory(),memory()
    for f in (RuntimeError, KeyboardInterrupt):
        def read(*_): raise f
        for _ in range(3):
            with pytest.raises(f): a.ring.draw(a.sampler, 4, None, read, n_batches)
    for _ in range(3):
        for (x,idxs),(y,same_idxs) in zip(a.sample(n_batches=2), b.sample(n_batches=2)):
            same((idxs, x.get('weight', 0)), (same_idxs, y.get('weight', 0)))

def test_complex_update(numbered):
    "TD errors are real"
    with refused('real numbers'): numbered[0].update_td(torch.ones(1,1)*1j, [0])

def test_wrong_serials(numbered):
    "One serial number for each row"
    with refused('`serials`'): numbered[0].update_td(torch.ones(1,1), [0], [1,2])

def test_nan_update():
    "A priority cannot be NaN, and nothing is written"
    er = ExperienceReplay(bs=2, max_sz=3, warmup_sz=1, sampler=Prioritized(), memory=steps(1,2))
    before = cloned(er)
    with refused('got nan for number 1'): er.update_td(tensor([[1.],[float('nan')]]), [0,1])
    same(er.memory, before)

def history(cap, sampler, n, seed):
    "`n` random adds, draws and late updates, each time compared with a dict by serial number"
    rng = np.random.default_rng(seed)
    er,want,pending,dropped = ExperienceReplay(bs=3, max_sz=cap, warmup_sz=1, memory=steps(0), sampler=sampler),{0:0.},[],0
    for act in rng.integers(0, 3, n):
        if act==0:
            for _ in range(rng.integers(1, 4)):
                want[er.ring.total] = 0.
                er.ring.add(step=[er.ring.total], td_error=[0.])
        elif act==1: pending.append(er.sample())
        elif pending:
            batch,idxs = pending.pop(rng.integers(0, len(pending)))
            td,serials = rng.random(3, np.float32),batch['serial'][:,0].tolist()
            er.update_td(torch.from_numpy(td)[:,None], idxs, batch['serial'])
            want.update(here := {s: v.item() for s,v in zip(serials, td) if s in want})
            dropped += sum(s not in here for s in serials)
        want = {s: v for s,v in want.items() if s>=er.ring.total-cap}
        assert dict(zip(column(er, 'step'), column(er, 'td_error')))==want
    assert er.dropped_updates==dropped
    return dropped

@pytest.mark.parametrize('n', [500, pytest.param(17_000, marks=long)])
@pytest.mark.parametrize('sampler', [Uniform, Prioritized])
@pytest.mark.parametrize('cap', [1,3,7])
def test_history(cap, sampler, n):
    "However adds, draws and updates alternate, each TD error belongs to its row, and late ones are dropped"
    assert history(cap, sampler(seed=cap), n, cap+100)>n/60

class Another(Prioritized):
    "Draws alike, and its updates take the long way"

def updated(kind, seed, folder):
    "What a memory has and draws after a random history of updates: of rows that came twice, late, after resets, under other numbers, and of sequences"
    rng,n = np.random.default_rng(seed),1+seed%7
    er,drawn = ExperienceReplay(3, n, 1, seed=seed, sampler=kind(.7, seed=1)),[]
    for t in range(60):
        k = rng.integers(9)
        if k<2 or not len(er):
            ends = rng.random((m := rng.integers(1, min(n, 3)+1), 1))<.3
            er+dict(x=rng.random((m,1)), td_error=rng.random((m,1), np.float32)*(t%3==0), terminated=ends, truncated=ends&False, env_id=ends*0)
        elif k==2: er.ring.reset(before=er.ring.total-rng.integers(1, n+1))
        elif k==3 and t%4==0: er.clear()
        elif k<6: drawn.append(er.sample())
        elif k==6 and seed%3==0: drawn.append(er.sample_sequences(2, 2, pad=True))
        elif drawn:
            batch,idxs = drawn[rng.integers(max(0, len(drawn)-4), len(drawn))]
            td = torch.from_numpy(rng.standard_normal((*idxs.shape,1))).to((torch.float32,torch.float64)[t%4//2])
            er.update_td(td, *((batch,) if t%2 else (idxs.flip(0) if t%10==2 else idxs, batch['serial'])))
        if t==40: er.checkpoint(folder)
    if len(er) and seed%3==0: # sequences learn what their rows do
        er.sample_sequences(2, 2, pad=True)
        er.update_td(torch.from_numpy(rng.standard_normal((3,1))), er.sample()[0])
    er.checkpoint(folder)
    saved = ExperienceReplay.load(folder)
    learnt,again = ((o['td_error'].tolist() if len(o) else [], o.sampler.beside(o.ring)['priority'].tolist()) for o in (er, saved))
    assert again==learnt
    return [er.dropped_updates, learnt,
            [f(20)[1].tolist() for f in (er.sample, partial(er.sample_sequences, T=2, pad=True)) if len(er)]]

@pytest.mark.parametrize('part', [0, 1, *(pytest.param(o, marks=pytest.mark.slow) for o in (2,3,4))])
def test_update_by_either_way(part, tmp_path):
    for i in range(12): assert updated(Prioritized, seed := 12*part+i, tmp_path/f'{i}a')==updated(Another, seed, tmp_path/f'{i}b'), seed

# %% Several steps and sequences
def interleaved(n_envs, total, lengths=(3,4,2)):
    "Rows of `n_envs` environments by turns; the reward is the serial number, the state its place in the episode"
    rows,at,ep = [],[0]*n_envs,[0]*n_envs
    for s in range(total):
        e = s%n_envs
        over,state = at[e]+1==lengths[e],100*e+10*ep[e]+at[e]
        rows.append(dict(env_id=e, worker_id=0, state=state, next_state=state+1, reward=float(s),
                         terminated=over and ep[e]%2==0, truncated=over and ep[e]%2==1))
        at[e],ep[e] = (0,ep[e]+1) if over else (at[e]+1,ep[e])
    return rows

def feed(er, rows):
    if rows: er+BD({k: tensor([o[k] for o in rows])[:,None] for k in rows[0]})

def followers(rows, s, n, total):
    "Up to `n` rows of the episode of row `s`, from there on, by brute force"
    run = [s]
    while len(run)<n and not (rows[run[-1]]['terminated'] or rows[run[-1]]['truncated']):
        later = [k for k in range(run[-1]+1, total) if rows[k]['env_id']==rows[s]['env_id']]
        if not later: break
        run.append(later[0])
    return run

@pytest.mark.parametrize('n_envs,cap,n,sampler', few_of(itertools.product((1,2,3), (1,4,9,12), (1,2,5), ('uniform','prioritized')), 24))
def test_n_step(n_envs, cap, n, sampler):
    "Priorities, n-step, environments, wrap and late updates as one: each drawn row is what a search of its episode gives"
    rows,gen = interleaved(n_envs, 40),torch.Generator().manual_seed(0)
    sampler = Prioritized(seed=1) if sampler=='prioritized' else Uniform(1)
    er = ExperienceReplay(bs=8, max_sz=cap, warmup_sz=1, n_step=n, gamma=.9, sampler=sampler)
    for i in range(0, 40, 3):
        feed(er, rows[i:i+3])
        batch,idxs = er.sample()
        assert batch.bs()==8
        for j in range(8):
            s = batch['serial'][j].item()
            assert s%cap==idxs[j].item() and er.ring.total-cap<=s<er.ring.total
            run = followers(rows, s, n, er.ring.total)
            first,last = rows[s],rows[run[-1]]
            assert [batch[k][j].item() for k in ('state','next_state','terminated','truncated','n_steps')]==[
                first['state'], last['next_state'], last['terminated'], last['truncated'], len(run)]
            assert abs(batch['reward'][j].item()-sum(.9**k*rows[o]['reward'] for k,o in enumerate(run)))<1e-3
            assert abs(batch['discount'][j].item()-.9**len(run))<1e-6
        er.update_td(torch.rand(8,1, generator=gen), idxs, batch['serial'])

ends = dict(terminated=flag(0,0), truncated=flag(0,0), env_id=torch.zeros(2,1))
def test_int_rewards():
    "Rewards that are ints are not cut when they are discounted"
    er = ExperienceReplay(bs=20, max_sz=2, warmup_sz=1, n_step=2, gamma=.5, seed=0, memory=BD(reward=tensor([[1],[1]]), **ends))
    assert set(column(er.sample()[0], 'reward'))=={1.5, 1.}

@pytest.mark.parametrize('extra', [1,300], ids=['packed','by_column'])
def test_n_step_device(extra):
    "Short rows are folded packed, long ones column by column: both go to another device"
    er = ExperienceReplay(bs=3, max_sz=8, warmup_sz=1, n_step=2)
    er+BD(state=torch.zeros(4,extra), next_state=torch.ones(4,extra), reward=torch.ones(4,1), terminated=flag(*[0]*4),
          truncated=flag(*[0]*4), env_id=torch.zeros(4,1))
    assert {v.device.type for _,v in leaves(er.sample(device='meta')[0])}=={'meta'}
    assert er.sample()[0]['next_state'].shape==(3,extra)

def test_n_step_needs_flags():
    "Without the columns that say where episodes end there is no n-step and no sequence"
    er = ExperienceReplay(max_sz=5, warmup_sz=1, memory=steps(1,2), n_step=2)
    with refused("without the columns ['terminated', 'truncated']"): er.sample()
    with refused('without the columns'): er.sample_sequences(1, 1)
    for column,hint in ((dict(done=flag(0)), 'instead of `done`'), (dict(dones=flag(0)), 'instead of `dones`'),
                        (dict(terminals=flag(0)), 'instead of `terminals`; `from_d4rl`'),
                        (dict(terminals=flag(0), timeouts=flag(0)), "instead of `terminals` and `timeouts`; `from_d4rl`, in fastrl.offline,"),
                        (dict(next=dict(terminated=flag(0), truncated=flag(0))), 'with each row, not in a dict `next`'), # torchrl's
                        (dict(terminated=dict(red=flag(0), blue=flag(0)), truncated=dict(red=flag(0), blue=flag(0))), # PettingZoo's
                         'with each row, not in a dict `terminated`')):
        er = ExperienceReplay(max_sz=5, warmup_sz=1, n_step=2)+dict(column, reward=torch.ones(1))
        with refused(hint): er.sample()

def test_n_step_needs_reward():
    "Nor n-step without a reward, or of rows that are several steps already"
    er = ExperienceReplay(max_sz=5, warmup_sz=1, memory=BD(x=torch.ones(2,1), **ends), n_step=2)
    with refused("column 'reward'"): er.sample()
    folded = BD(reward=torch.ones(2,1), n_steps=tensor([[1],[2]]), **ends)
    with refused('of several steps already'): ExperienceReplay(max_sz=5, warmup_sz=1, memory=folded, n_step=2).sample()

@pytest.mark.parametrize('bs,T', [(0,1), (1,0), (-1,None)])
def test_no_sequence(bs, T):
    "Sequences have at least one step, and a batch at least one of them"
    er = ExperienceReplay(warmup_sz=1, memory=BD(reward=torch.ones(2,1), **ends))
    with refused('at least 1'): er.sample_sequences(bs, T)

def test_whole_episodes():
    "Without `T` whole episodes are drawn, and only these"
    er = ExperienceReplay(bs=5, max_sz=9, warmup_sz=1, seed=0, memory=BD(
        x=torch.arange(5)[:,None], terminated=flag(0,1,0,0,0), truncated=flag(0,0,0,1,0), env_id=torch.zeros(5,1)))
    batch,idxs = er.sample_sequences()
    assert set(map(tuple, idxs.tolist()))<={(0,1),(2,3)}
    assert (batch['mask'].all().item(), batch['x'].shape)==(True, (5,2,1))

# %% Saved at any moment
def lively(cap, kind, **where):
    how = dict(uniform=dict(sampler=Uniform(5)), prioritized=dict(sampler=Prioritized(seed=5, beta_steps=50)),
               n_step=dict(n_step=3), both=dict(n_step=2, sampler=Prioritized(seed=5, normalize='memory')))[kind]
    return ExperienceReplay(bs=5, max_sz=cap, warmup_sz=0, seed=7, **how, **where)

def draw(er, i):
    "A batch, and by turns an update of it and sequences"
    try: batch,idxs = er.sample()
    except MemoryNotWarm: return None
    res = [batch,idxs]
    if i%3==0: er.update_td(batch['reward'].sin(), idxs, batch['serial'])
    for kw in (dict(T=2, pad=True), dict(T=2), {}) if i%5==0 else ():
        try: res.append(er.sample_sequences(2, **kw))
        except ExperienceReplayException as e: res.append(str(e))
    return res

def state_of(er):
    return [er.ring.total, er.pointer, len(er), er.memory, getattr(er.sampler, 'beta', None), er.dropped_updates,
            er.walk.nxt.tolist()]

def resume(folder, cap, kind, rows, fill, lives_in, goes_to):
    "Save a memory with `fill` rows whole and in checkpoints; load both and let all three live on"
    folder.mkdir()
    er = lively(cap, kind, path=folder/'a.ring' if lives_in=='file' else None)
    for i in range(fill):
        feed(er, rows[i:i+1])
        draw(er, i)
        if i%5==2: er.checkpoint(folder/'run')
    er.checkpoint(folder/'run')
    er.save(folder/'whole')
    loaded = []
    for o in ('run','whole'):
        assert Saved(folder/o).problems()=={}
        loaded.append(ExperienceReplay.load(folder/o, env_restored=True, shared=goes_to=='shared',
                                            path=folder/f'{o}.ring' if goes_to=='file' else None))
        same(state_of(loaded[-1]), state_of(er))
    there,again = loaded
    for i in range(100): # rows come in between, and one more checkpoint is made of what was loaded
        want = draw(er, i)
        same(want, draw(there, i))
        same(want, draw(again, i))
        if i%2:
            for m in (er, there, again): feed(m, rows[fill+i//2:fill+i//2+1])
        if i==40:
            again.checkpoint(folder/'whole')
            again = ExperienceReplay.load(folder/'whole', env_restored=True)
    same(state_of(there), state_of(er))
    same(state_of(again), state_of(er))

def once(cap, kind, n_envs, lives_in, goes_to):
    "Other places and memories of one row are tried once for each kind"
    return not (goes_to!='ram' and (lives_in=='file' or n_envs==1) or cap==1 and (n_envs==3 or lives_in=='file'))

lives = [o for o in itertools.product((1,7), ('uniform','prioritized','n_step','both'), (1,3), ('ram','file'),
                                      ('ram','file','shared')) if once(*o)]
@pytest.mark.parametrize('cap,kind,n_envs,lives_in,goes_to', few_of(lives, 8))
@pytest.mark.halved
def test_resume(tmp_path, cap, kind, n_envs, lives_in, goes_to):
    "A loaded memory draws, updates and adds as the one that was not interrupted: at any fill, from and to any place"
    rows = interleaved(n_envs, 3*cap+80)
    for fill in sorted({0, 1, cap-1, cap, cap+1, 2*cap+3}):
        if goes_to!='ram' and fill not in (0, cap-1, 2*cap+3): continue
        resume(tmp_path/str(fill), cap, kind, rows, fill, lives_in, goes_to)

@pytest.fixture
def cut(tmp_path):
    "A memory with rows of two environments, and what was loaded of it without `env_restored`"
    er = lively(20, 'n_step')
    feed(er, interleaved(2, 60)[:25])
    draw(er, 1)
    er.save(tmp_path/'cut')
    return er,ExperienceReplay.load(tmp_path/'cut')

def test_new_environments(cut):
    "Until the next row the draws are the same; later rows follow nothing that was there"
    draws_alike(*cut)
    for o in cut: feed(o, interleaved(2, 60)[25:30]); draw(o, 1)
    later = set(range(5, 10)) # the places of the new rows
    was,now = (any(n in later for i,n in enumerate(o.walk.nxt) if i not in later) for o in cut)
    assert was and not now
    assert cut[1].ring.seams.cuts==[25]

def test_cut_saved_again(cut, tmp_path):
    "The cut is still there when the memory is saved and loaded again"
    er = cut[1]
    feed(er, interleaved(2, 60)[25:30])
    draw(er, 1)
    er.save(tmp_path/'cut')
    twice = ExperienceReplay.load(tmp_path/'cut')
    assert twice.ring.seams.cuts==[25,30]
    twice.walk = Walk()
    twice.walk.follow(twice.ring)
    same(twice.walk.nxt, er.walk.nxt)

@pytest.mark.parametrize('kind', ['both','uniform','n_step'])
def test_mapped(tmp_path, kind):
    "Mapped rows give the same draws, sequences included; updates change no file, and nothing is added"
    er,rows = lively(20, kind),interleaved(2, 60)
    feed(er, rows[:25])
    draw(er, 1)
    er.save(tmp_path)
    m = ExperienceReplay.load(tmp_path, mapped=True)
    draws_alike(er, m)
    assert Saved(tmp_path).problems()=={}
    with refused('can only be read'): feed(m, rows[:1])

def test_many_checkpoints(tmp_path):
    "After many checkpoints the marks are still few, and right"
    er,rows = lively(40, 'prioritized'),interleaved(2, 60)
    feed(er, rows[:30])
    for i in range(200):
        draw(er, 0)
        if i%50==49: feed(er, rows[30+i//50:31+i//50])
        er.checkpoint(tmp_path)
        assert len(pieces_of(Saved(tmp_path).manifest, 'marks'))<=64
    draws_alike(er, ExperienceReplay.load(tmp_path, env_restored=True))

def test_small_checkpoints(tmp_path):
    "A few updates cost a few bytes, even after a hundred checkpoints"
    n = 20_000
    er = ExperienceReplay(bs=4, max_sz=n, warmup_sz=1, sampler=Prioritized(seed=0), memory=dict(x=torch.zeros(n, 1)))
    er.checkpoint(tmp_path)
    size,gen = 0,torch.Generator().manual_seed(0)
    for _ in range(150):
        before = set(tmp_path.iterdir())
        er.update_td(torch.ones(50,1), torch.randint(n, (50,), generator=gen))
        er.checkpoint(tmp_path)
        size += sum(o.stat().st_size for o in set(tmp_path.iterdir())-before if o.name.startswith('marks'))
    assert size<3*150*50*20+150*400
    same(ExperienceReplay.load(tmp_path).memory, er.memory)

class Newest(Uniform):
    def draw(self, ring, bs): return torch.arange(len(ring))[-bs:],{}
class Strange:
    def draw(self, ring, bs): return torch.zeros(bs).long(),{}
    def update(self, *_): pass

def test_own_samplers(tmp_path):
    "A subclass of `Uniform` is saved; another class is refused, and what was saved stays"
    er = ExperienceReplay(bs=2, max_sz=5, warmup_sz=1, sampler=Newest(), memory=steps(1,2,3))
    er.save(tmp_path)
    assert ExperienceReplay.load(tmp_path).sample()[1].tolist()==[1,2]
    er.sampler = Strange()
    with refused('subclass of `Uniform`'): er.save(tmp_path)
    assert ExperienceReplay.load(tmp_path).sample()[1].tolist()==[1,2]

@pytest.fixture
def nested(tmp_path):
    "A folder with a memory of nested observations, and what else belongs to the moment"
    er = ExperienceReplay(max_sz=3, warmup_sz=1).add(obs=dict(a=(1,2.)))
    er.save(tmp_path, extra=dict(model=tensor([1.]), epoch=3))
    return er,tmp_path

def test_extra(nested):
    "`extra` and nested observations come back"
    er,folder = nested
    same(Saved(folder).extra, dict(model=tensor([1.]), epoch=3))
    same(ExperienceReplay.load(folder).memory, er.memory)

def test_other_class(nested):
    "A folder says what it holds"
    with refused('holds a saved ExperienceReplay, not a Ring', ValueError): Ring.load(nested[1])

@pytest.mark.parametrize('lost', ['sampler','sampler_settings','gamma'])
def test_lost_setting(nested, lost):
    "A manifest that lacks a setting, or has another in its place, is refused"
    m = Saved(nested[1]).manifest
    config = {k:v for k,v in m['config'].items() if k!=lost} | ({} if lost!='gamma' else {'nonsense':1})
    write_manifest(nested[1], {**m, 'config':config})
    with refused('cannot be loaded as ExperienceReplay', LoadError): ExperienceReplay.load(nested[1])

def test_swapped_sampler(tmp_path):
    "With another sampler, of another or the same kind, a checkpoint writes everything"
    er = ExperienceReplay(bs=2, max_sz=5, warmup_sz=1, memory=steps(1,2,3))
    er.checkpoint(tmp_path)
    for o in range(2):
        er.sampler = Prioritized(seed=o)
        er.update_td(tensor([[9.]]), tensor([o]))
        er.checkpoint(tmp_path)
        same(ExperienceReplay.load(tmp_path).sample(), er.sample())

@pytest.fixture
def clash(tmp_path):
    "A memory whose columns are called as what is kept beside them, or as what files have for other things"
    er = ExperienceReplay(bs=4, max_sz=5, warmup_sz=1, sampler=Prioritized(seed=0),
                          memory={'priority':tensor([[1.],[2.]]), '__metadata__':tensor([[1.],[2.]])})
    er.update_td(tensor([[9.]]), tensor([1]))
    er.save(tmp_path)
    return er,tmp_path

def test_clashing_names(clash):
    "Names that clash do no harm"
    er,folder = clash
    again = ExperienceReplay.load(folder)
    same(again.memory, er.memory)
    same(again.sample(), er.sample())

@pytest.mark.parametrize('copied', [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))], ids=['deepcopy','pickle'])
def test_copies_stand_alone(clash, copied):
    "A copy of a loaded memory knows nothing of the folder"
    er = ExperienceReplay.load(clash[1])
    o = copied(er)
    same(o.memory, er.memory)
    assert er._kept is not None and o._kept is None

def test_pickle():
    "A pickled memory draws the same, and adds to itself"
    er = ExperienceReplay(max_sz=3, warmup_sz=1, seed=0, memory=steps(1,2,3))
    other = pickle.loads(pickle.dumps(er))
    same(other.sample(), er.sample())
    other+steps(1)
    assert other.ring.total==er.ring.total+1
    er = ExperienceReplay(max_sz=8, warmup_sz=1, n_step=2, seed=0, memory=BD(reward=torch.ones(2,1), **ends))
    other = pickle.loads(pickle.dumps(er))
    same(other.sample(), er.sample())
    er+BD(er.memory[:1])
    assert other.ring.total+1==er.ring.total

def test_many_updates(tmp_path):
    "More updates than are copied at once"
    n = 2**18+5
    er = ExperienceReplay(bs=4, max_sz=n, warmup_sz=1, memory=dict(x=torch.zeros(n, 1)))
    er.checkpoint(tmp_path)
    er.update_td(torch.arange(float(n))[:,None], torch.arange(n))
    er.checkpoint(tmp_path)
    assert len(pieces_of(Saved(tmp_path).manifest, 'marks'))==1
    same(ExperienceReplay.load(tmp_path).memory, er.memory)

def test_update_outlives(tmp_path):
    "An update of a row outlives that of an older row in the same file"
    er = ExperienceReplay(bs=2, max_sz=4, warmup_sz=1, memory=steps(0,1,2,3))
    er+steps(4,5)
    er.checkpoint(tmp_path)
    er.update_td(tensor([[5.],[3.]]), tensor([1,3])) # rows 5 and 3
    er.checkpoint(tmp_path)
    er+steps(6,7) # row 3 is gone
    er.checkpoint(tmp_path)
    same(ExperienceReplay.load(tmp_path).memory, er.memory)

def test_other_process(tmp_path):
    "What another process notes of shared rows is saved, too"
    er = ExperienceReplay(bs=2, max_sz=4, warmup_sz=1, shared=True)+steps(1,2)
    er.checkpoint(tmp_path)
    er.ring['td_error'][0] = 7. # as the other process writes it
    er.checkpoint(tmp_path)
    same(ExperienceReplay.load(tmp_path).memory, er.memory)

# %% Damaged and hostile files
def remove(folder, kind, i=0): (folder/pieces_of(Saved(folder).manifest, kind)[i]['file']).unlink()

def test_damaged_middle(tmp_path):
    "Rows in the middle and the state are damaged: each row that is left has its own TD error and priority"
    er = ExperienceReplay(bs=2, max_sz=8, warmup_sz=1, sampler=Prioritized(seed=0))
    for i in range(6):
        er+steps(2*i,2*i+1)
        er.checkpoint(tmp_path)
    er.update_td(er['step'].float()+1, torch.arange(8))
    er.checkpoint(tmp_path, torch.zeros(2**16)) # more than the manifest takes
    remove(tmp_path, 'rows', 1)
    remove(tmp_path, 'state')
    left = ExperienceReplay.load(tmp_path, on_error='skip')
    assert (column(left, 'step'), left.skipped)==([4,5,8,9,10,11], 2)
    same(left['td_error'], left['step'].float()+1)
    assert (left.sampler.tree[:6]-(left['td_error'][:,0].double()+1e-6)**.6).abs().max()<1e-9
    left.checkpoint(tmp_path) # what was loaded of a damaged folder is written anew as a whole
    same(ExperienceReplay.load(tmp_path).memory, left.memory)

@pytest.mark.parametrize('env_restored', [False, True])
def test_damaged_episodes(tmp_path, env_restored):
    "Pieces of episodes that are left are not taken for whole ones"
    er = ExperienceReplay(bs=2, max_sz=100, warmup_sz=1, seed=0)
    for i in range(6):
        at = torch.arange(15*i, 15*i+15)[:,None]
        er+BD(at=at, terminated=at%10==9, truncated=at<0, env_id=at*0)
        er.checkpoint(tmp_path)
    remove(tmp_path, 'rows', 2)
    left = ExperienceReplay.load(tmp_path, on_error='skip', env_restored=env_restored)
    batch,_ = left.sample_sequences(200)
    assert set(batch['at'][:,0,0].tolist())=={0,10,20,50,60,70,80}
    assert set(batch['mask'].sum(1).tolist())=={10}

def test_damaged_marks(tmp_path):
    "Damaged marks are left out with the rest: rows are as they were first written"
    er = ExperienceReplay(bs=2, max_sz=5, warmup_sz=1, sampler=Prioritized(seed=0), memory=steps(1,2,3))
    er.checkpoint(tmp_path)
    er.update_td(tensor([[9.]]), tensor([1]))
    er.checkpoint(tmp_path)
    remove(tmp_path, 'marks')
    with refused('is missing', ValueError): ExperienceReplay.load(tmp_path)
    left = ExperienceReplay.load(tmp_path, on_error='skip')
    assert (column(left, 'step'), column(left, 'td_error'))==([1,2,3], [0,0,0])

@pytest.fixture
def numpy_settings(tmp_path):
    "A folder with a memory whose settings were NumPy's numbers"
    er = ExperienceReplay(bs=np.int64(2), max_sz=3, warmup_sz=1, n_step=np.int64(2), gamma=.5,
                          sampler=Prioritized(alpha=np.float32(.5)), memory=steps(1,2,3))
    er.dropped_updates = 7
    er.save(tmp_path/'config')
    return tmp_path/'config'

def test_settings_come_back(numpy_settings):
    "All settings and counts come back, NumPy's numbers too"
    again = ExperienceReplay.load(numpy_settings)
    assert [getattr(again, k) for k in ('bs','max_sz','warmup_sz','n_step','gamma','dropped_updates')]==[2,3,1,2,.5,7]

asked = [(dict(sampler=Uniform()), 'should be a Prioritized'), (dict(sampler=Prioritized(alpha=.1)), "'alpha': 0.5"),
         (dict(n_step=None), '`n_step` is 2 there, not None'), (dict(batch_size=8), "not ['batch_size']")]
@pytest.mark.parametrize('kw,says', asked, ids=['kind','settings','n_step','unknown'])
def test_other_settings(numpy_settings, kw, says):
    "Settings that are not the saved ones are refused"
    with refused(says, ValueError): ExperienceReplay.load(numpy_settings, **kw)

def test_hostile_manifest(numpy_settings):
    "A manifest chooses no arguments but the settings"
    m,evil = Saved(numpy_settings).manifest,numpy_settings.parent/'evil.ring'
    write_manifest(numpy_settings, {**m, 'config':{**m['config'], 'path':str(evil), 'max_sz':9}})
    with refused('`max_sz` is 9', ValueError): ExperienceReplay.load(numpy_settings)
    write_manifest(numpy_settings, {**m, 'config':{**m['config'], 'path':str(evil), 'memory':[1]}})
    ExperienceReplay.load(numpy_settings)
    assert not evil.exists()

@pytest.mark.parametrize('key,value', dict(ids=np.zeros((2,1), np.int64), last=np.array([3]), before=np.array([5])).items(),
                         ids=['ids','last','before'])
def test_hostile_links(key, value):
    "The state of the episodes is one of these rows"
    r,walk = Ring(3),Walk()
    r.extend(BD(terminated=torch.zeros(3).bool(), truncated=torch.zeros(3).bool(), env_id=torch.zeros(3)))
    walk.follow(r)
    with refused('the state of the episodes', Exception): Walk().load_state_dict({**walk.state_dict(r), key:value}, r)

# %% Vectors
class Vector: metadata = dict(autoreset_mode='next_step')
vectors = {1:Vector(), 2:Vector()}

def go(er, env, n, obs):
    "`n` steps of one environment, whose observation counts its steps; episodes have four"
    for _ in range(n):
        nxt = np.array([env*10+0. if obs[0]%10==4 else obs[0]+1], np.float32)
        er.add_vector(obs=obs, actions=np.zeros(1, int), rewards=np.zeros(1), terminated=nxt%10==4, next_obs=nxt,
                      truncated=np.zeros(1, bool), autoreset=vectors.get(env, 'next_step'))
        obs = nxt
    return obs

def complete(er):
    "The whole episodes that are stored, by their observations"
    batch,_ = er.sample_sequences(60)
    return {tuple(o[m].flatten().tolist()) for o,m in zip(batch['state'], batch['mask'])}

start = np.zeros(1, np.float32)
@pytest.fixture
def er(): return ExperienceReplay(bs=4, max_sz=50, warmup_sz=1, seed=0)

def test_own_resets(er):
    "A vector that is reset by hand after an ending"
    go(er, 0, 4, start)
    go(er, 0, 6, start)
    assert (complete(er), column(er, 'step'))==({(0,1,2,3)}, [1,2,3,4,1,2,3,4,1])

def test_two_vectors(er):
    "Two vectors feed one memory by turns"
    a,b = np.array([10.], np.float32),np.array([20.], np.float32)
    for _ in range(11): a,b = go(er, 1, 1, a),go(er, 2, 1, b)
    assert complete(er)=={(10,11,12,13),(20,21,22,23)}
    assert ((er['state']%10<4).all().item(), er['env_id'].unique().tolist())==(True, [0,1])

def test_fewer_columns():
    "Without a column for episodes, one that is left off by hand is cut"
    names = 'state','action','reward','next_state','terminated','truncated','env_id'
    few = ExperienceReplay(bs=4, max_sz=50, warmup_sz=1, n_step=3, seed=0, schema={k: ((), torch.float32) for k in names})
    go(few, 0, 2, start)
    go(few, 0, 2, np.array([1.], np.float32))
    assert (few.sample(50)[0]['n_steps'].max().item(), few.ring.seams.cuts)==(2, [2])

def test_vector_saved(er, tmp_path):
    "A memory that is saved within an episode goes on counting its steps"
    obs = go(er, 0, 2, start)
    er.save(tmp_path)
    again = ExperienceReplay.load(tmp_path, env_restored=True)
    go(again, 0, 3, obs)
    assert (column(again, 'step'), complete(again))==([1,2,3,4], {(0,1,2,3)})

def test_vector_refused(er):
    "A step whose rows do not fit is not counted"
    obs = go(er, 0, 2, start)
    with refused(): er.add_vector(obs=obs, actions=np.zeros(1, int), rewards=np.zeros(1), terminated=[False], truncated=[False],
                                  next_obs=obs+1, autoreset='next_step', more=np.zeros(1))
    go(er, 0, 2, obs)
    assert (column(er, 'step'), complete(er))==([1,2,3,4], {(0,1,2,3)})

def test_slice_after_merge():
    "What is added to a slice follows none of the rows that another memory gave, as in the memory itself"
    def add(er, n): er.add(n=n, env_id=0, state=float(n), next_state=n+1., reward=1., terminated=False, truncated=False)
    def new(): return ExperienceReplay(4, 20, 1, n_step=2)
    for way in (lambda a, b: a+b.memory, lambda a, b: a.extend(b)):
        other = new(); add(other, 7)
        er = new(); add(er, 0)
        way(er, other)
        for o in (er[:], er): add(o, 30); assert set(o.sample(30)[0]['n_steps'].view(-1).tolist())=={1}

@pytest.mark.parametrize('kind', ('memory','buffer'))
def test_copy_of_one_moment(kind):
    "While a memory is copied, another thread that adds to it waits: a sampler and rows of two moments gave transitions that never were"
    from fastrl.memory.buffer import ReplayBuffer
    o = ExperienceReplay(4, 20, 1) if kind=='memory' else ReplayBuffer(20, 1, 1, 1)
    def add(i): o.add(state=[i], next_state=[i+1]) if kind=='memory' else o.add([i], i, i, [i+1], 0., [i])
    class Meanwhile:
        def __deepcopy__(self, memo):
            self.writer = threading.Thread(target=add, args=(9.,))
            self.writer.start()
            self.writer.join(.3)
            return self.writer.is_alive()
    for i in range(5): add(float(i))
    o.note = Meanwhile()
    twin = copy.deepcopy(o)
    o.note.writer.join()
    assert (twin.note, len(twin), len(o))==(True, 5, 6)

class Adds(Prioritized):
    "When its state is taken, another thread adds rows"
    add = None
    def __getstate__(self):
        res = {**super().__getstate__(), 'add':None}
        if self.add and not self.add(): res['add'] = 'waits' # as the memory is locked
        return res

@pytest.mark.parametrize('kind', ('memory','frames','shared'))
def test_pickled_beside_a_thread(kind):
    "The copy draws its own rows, also if some come while it is pickled; who else has the sampler or the ring still has it afterwards"
    two,flag = ((2,), torch.float32),((), torch.bool)
    where = dict(frames=dict(frame_stack=0), shared=dict(shared=True, schema=dict(state=two, next_state=two, terminated=flag, truncated=flag))).get(kind, {})
    for more in (1,3,30):
        o = ExperienceReplay(4, 20, 1, sampler=Adds(seed=0), **where)
        def add(i): o.add(state=np.full(2, i, np.float32), next_state=np.full(2, i+1, np.float32), terminated=False, truncated=i%3==2)
        for i in range(5): add(i)
        o.sample()
        def meanwhile():
            t = threading.Thread(target=lambda: [(add(5+i), o.sample()) for i in range(more)])
            t.start(); t.join(5)
            return not t.is_alive()
        o.sampler.add = meanwhile
        twin,sampler,ring = pickle.loads(pickle.dumps((o, o.sampler, o.ring)))
        assert twin.sampler is sampler and sampler.add is None and twin.ring is ring
        assert kind=='shared' or twin.ring.total==5+more # it may know more rows than its sampler, and never fewer
        for _ in range(20):
            batch,_ = twin.sample()
            same(batch['next_state'], batch['state']+1)
            if kind!='shared': same(batch['serial'].float().expand(4, 2), batch['state'])
            twin.update_td(torch.rand(4,1), _, batch['serial'])

@pytest.mark.parametrize('form', [np.float64, np.float32, np.float16, np.int64, torch.float64])
def test_td_errors_of_any_form(form):
    "Arrays and doubles make the priorities that the same numbers make one by one"
    ers = [ExperienceReplay(8, 50, 1, seed=0, sampler=Prioritized(seed=0)) for _ in range(2)]
    for er in ers:
        for i in range(70): er.add(x=float(i))
    for _ in range(9):
        (batch,idxs),again = (er.sample() for er in ers)
        td = np.random.default_rng(_).random((8,1))*9
        td = torch.tensor(td, dtype=form) if isinstance(form, torch.dtype) else td.astype(form)
        ers[0].update_td(td, idxs, batch['serial'])
        ers[1].update_td(tensor(td.tolist()).float(), again[1].tolist(), again[0]['serial'].tolist())
        assert torch.equal(*(er['td_error'] for er in ers))
        assert torch.equal(*(er.sampler.tree[:] for er in ers))


@pytest.mark.parametrize('first', [0., np.float32(0), np.zeros(1), torch.tensor(0.)])
@pytest.mark.parametrize('name', ['terminated','truncated','done'])
@pytest.mark.parametrize('frames', [{}, dict(frame_stack=0)])
def test_a_flag_is_0_or_1(first, name, frames):
    "NaN and 0.5 counted as an ending in one place and as none in another"
    def row(k, flag): return dict(state=np.float32([k,0]), next_state=np.float32([k+1,0]), reward=0., env_id=0, **{**dict(terminated=False, truncated=False), name:flag})
    def rows(flag): return {k: torch.stack([torch.as_tensor(o) for o in v]) for k,v in
                            {k: [o[k] for o in (row(7, 0.), row(8, 0.))] for k in row(0, 0.)}.items()}|{name:flag}
    er = ExperienceReplay(max_sz=100, **frames)
    for k in range(3): er.add(**row(k, first))
    er.add(**row(3, type(first)(1) if isinstance(first, float) else first+1))
    was = er.memory[name].clone()
    assert was.is_floating_point() and was[:,0].tolist()==[0,0,0,1]
    for bad in (.5, float('nan'), 2, np.float32('nan'), np.full(1, .5), torch.tensor(.5)):
        with pytest.raises(ExperienceReplayException, match=f'`{name}` should be 0 or 1'): er.add(**row(4, bad))
        with pytest.raises(ExperienceReplayException, match=f'`{name}` should be 0 or 1'): ExperienceReplay(max_sz=100).add(**row(4, bad))
    for bad in ([0.,.5], torch.tensor([0.,float('nan')]), np.array([0.,.5], was.numpy().dtype), np.array([[0.],[-1]]), [0,2], np.array([0,2])):
        for into in (er, ExperienceReplay(max_sz=100)):
            with pytest.raises(ExperienceReplayException, match=f'`{name}` should be 0 or 1, or a bool, got [^ ]* in row 1'): into + rows(bad)
    assert torch.equal(er.memory[name], was)
    er + rows(np.array([0.,1.], was.numpy().dtype))
    assert er.memory[name][:,0].tolist()==[0,0,0,1,0,1]

@pytest.mark.parametrize('dtype', [torch.int64, torch.int32], ids=str)
def test_episodes_named_by_hashes(dtype, tmp_path):
    "Numbers near the end of their dtype are names: others are counted from below, and a memory that has them can be loaded"
    most,no = torch.iinfo(dtype).max,np.zeros(2, bool)
    def named(*ids): return ExperienceReplay(max_sz=20, warmup_sz=0)+dict(state=np.ones((len(ids),1), np.float32), action=[0]*len(ids), reward=[0.]*len(ids),
        next_state=np.ones((len(ids),1), np.float32), terminated=[True]*len(ids), truncated=[False]*len(ids), env_id=np.zeros(len(ids), np.int64), episode_id=tensor(ids)[:,None].to(dtype))
    joined,vector = named(most, most, 5, most-1).extend(named(most-7, 0, most, 0)),named(most, 3)
    assert column(joined, 'episode_id')==[most, most, 5, most-1, 7, 6, 8, 6]
    vector.add_vector(obs=np.zeros((2,1), np.float32), actions=[0,0], rewards=[0.,0.], terminated=no, truncated=no, next_obs=np.ones((2,1), np.float32), autoreset='next_step')
    assert column(vector, 'episode_id')==[most, 3, 4, 5]
    for er,free in ((joined, 9), (vector, 6)):
        er.save(tmp_path)
        assert column(ExperienceReplay.load(tmp_path).extend(named(0)), 'episode_id')[-1]==free

@pytest.mark.parametrize('frames', [{}, dict(frame_stack=2)], ids=str)
def test_no_numbers_left_for_episodes(frames):
    "A narrow column of episode numbers that has its last one takes no episodes of another memory"
    def of(*ids):
        er = ExperienceReplay(max_sz=20, warmup_sz=0, **frames)
        for i in ids: er.add(state=np.zeros((2,2), np.uint8), action=0, reward=0., next_state=np.zeros((2,2), np.uint8),
                             terminated=True, truncated=False, env_id=0, episode_id=np.uint8(i))
        return er
    assert column(of(253).extend(of(9, 9, 3)), 'episode_id')==[253,255,255,254]
    er = of(254)
    with pytest.raises(ExperienceReplayException, match='`episode_id` should be uint8'): er.extend(of(1, 2))
    assert column(er, 'episode_id')==[254]
