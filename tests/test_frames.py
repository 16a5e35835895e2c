"""A memory that stores each frame once gives what one gives that stores everything: random histories against plain lists

The lists know nothing of the inside: they keep each row with both of its stacks, whole. The memory says how many of them it
holds, and these have to be the newest ones."""
import copy, itertools, multiprocessing, pickle, random, warnings
from types import SimpleNamespace
from unittest.mock import patch
import numpy as np, pytest, torch
from fastrl.core import BD, leaves, map_leaves
from fastrl.memory import frames, stacks
from fastrl.memory.frames import *
from fastrl.memory.replay import *
from fastrl.memory.ring import Ring
from fastrl.memory.row import nest
from fastrl.memory.sample import *

# %% Environments, and what they did
def frame(ep, t, shape): # no two are the same, and none is empty
    return np.resize(np.array([ep%256, ep//256, t, 1+(ep*7+t*13)%250], np.uint8), shape)

class World:
    "Environments that take steps by turns, and everything that they did"
    def __init__(self, rng, n_envs=2, stack=2, pad='repeat', longest=6, shape=(5,3)): # `stack` 0: a state is one frame
        self.rng,self.stack,self.pad,self.longest,self.shape = rng,stack,pad,longest,shape
        self.eps,self.rows = itertools.count(),[]
        self.envs = [SimpleNamespace(t=None, last=None) for _ in range(n_envs)]

    def step(self, e=None):
        "One step of environment `e`: a row with whole stacks, and its single frames"
        e,S = self.rng.randrange(len(self.envs)) if e is None else e,max(self.stack, 1)
        env = self.envs[e]
        if env.t is None:
            env.ep,env.t,env.n = next(self.eps),0,self.rng.randint(1, self.longest)
            first = frame(env.ep, 0, self.shape)
            env.stack = [first if self.pad=='repeat' or k==S-1 else np.zeros_like(first) for k in range(S)]
        new = frame(env.ep, env.t+1, self.shape)
        over,how = env.t+1==env.n,self.rng.randrange(3)
        shown = np.stack if self.stack else lambda o: o[0]
        row = dict(state=shown(env.stack), action=np.array([self.rng.randrange(9)]), reward=np.array([float(self.rng.randint(-9, 9))], np.float32),
                   next_state=shown([*env.stack[1:], new]), terminated=np.array([over and how!=1]), truncated=np.array([over and how!=0]),
                   env_id=np.array([e]), episode_id=np.array([env.ep]), step=np.array([env.t]))
        self.rows.append(SimpleNamespace(**row, over=over, before=env.last, after=None))
        if env.last is not None: self.rows[env.last].after = len(self.rows)-1
        env.last = None if over else len(self.rows)-1
        env.stack,env.t = [*env.stack[1:], new],None if over else env.t+1
        return row

names = 'state','action','reward','next_state','terminated','truncated','env_id','episode_id','step'
def single(row, stack=1): return {**row, 'state':row['state'][-1], 'next_state':row['next_state'][-1]} if stack else row
def bits(a): return np.ascontiguousarray(a).tobytes()

# %% What a memory has to give
def check_rows(rows, batch, at, n_step=None, gamma=.5):
    "Each row of `batch`, by its serial number, bit for bit"
    cols = {k: v.numpy() for k,v in batch.items()}
    for j,s in enumerate(cols['serial'][:,0]):
        run = [s]
        while len(run)<(n_step or 1) and rows[run[-1]].after is not None: run.append(rows[run[-1]].after)
        want = {k: getattr(rows[run[-1] if k in ('next_state','terminated','truncated') else s], k) for k in names}
        if n_step: want['reward'] = np.float32([sum(gamma**i*rows[o].reward[0] for i,o in enumerate(run))])
        for k in names: assert bits(cols[k][j])==bits(want[k]), f'{at}: row {s} has the {k}\n{cols[k][j]}\n, not\n{want[k]}'
        if n_step: assert cols['n_steps'][j,0]==len(run), f'{at}: row {s} has {cols["n_steps"][j]} steps, not {run}'

def check_runs(rows, batch, idxs, held, at):
    for b,serials in enumerate(batch['serial'][...,0].tolist()):
        there = [s for s in serials if s>=0]
        assert all(rows[a].after==c for a,c in zip(there, there[1:])) and there[0]>=held, f'{at}: a sequence of the rows {serials}'
        for t,s in enumerate(serials):
            for k in ('state','next_state','action'):
                want = getattr(rows[s], k) if s>=0 else 0*getattr(rows[-1], k)
                assert bits(batch[k][b,t].numpy())==bits(want), f'{at}: step {t} of {serials} has another {k}'

def check(memory, world, at, base=0, n_step=None, sequences=True):
    "The memory holds the newest rows and nothing else, through every door; `base` rows were added before the first"
    rows,n = world.rows,len(memory)
    if not n: return
    first = len(rows)-n
    serials = memory.ring.serial(memory.ring.held).view(-1).tolist()
    assert serials==list(range(first+base, len(rows)+base)), f'{at}: the rows {serials}, and not the newest {n}'
    whole = memory.ring.gather(memory.ring.held)
    for k in names:
        want = np.stack([getattr(o, k) for o in rows[first:]])
        assert bits(whole[k].numpy())==bits(want)==bits(memory[k][_order(memory)].numpy()), f'{at}: column {k}'
    shifted = SimpleNamespace(rows=[None]*base+[SimpleNamespace(**{**vars(o), 'after':None if o.after is None else o.after+base}) for o in rows]).rows
    for n_step in (None, n_step):
        memory.n_step = n_step
        batch,idxs = memory.sample()
        check_rows(shifted, batch, at, n_step)
        assert memory.ring.holds(idxs, batch['serial']).all() and (batch['serial']>=first+base).all(), f'{at}: {batch["serial"]}'
        if isinstance(memory.sampler, Prioritized): memory.update_td(torch.rand(len(idxs), 1)*9, idxs, batch['serial'])
    if sequences:
        for T,pad in ((2,True), (3,True)): check_runs(shifted, *memory.sample_sequences(5, T, pad), first+base, at)

def _order(memory):
    "Where the rows of `memory[column]`, which come by number, stand by age"
    ring = memory.ring
    return torch.arange(len(memory)) if ring.n_held<len(ring) else ring.held

# %% All combinations
def make(cap, stack, pad, sampler=None, **kw):
    return ExperienceReplay(bs=6, max_sz=cap, warmup_sz=1, sampler=sampler and sampler(seed=1), gamma=.5, seed=0,
                            frame_stack=stack, frame_pad=pad, **kw)

def table(caps, pads, stacks, marginal):
    "Every cursor, environments by turns, one-step episodes, stacks or frames, both samplers, n-step and sequences"
    for cap,pad,stack,n_envs,longest,alone,margin in itertools.product(
            caps, pads, stacks, (1,2,3), (1,4), (False,True), marginal):
        at = f'cap {cap}, stack {stack}, {n_envs} envs, episodes to {longest}, {pad}, alone {alone}, margin {margin}'
        rng = random.Random(at)
        sampler,n_step = rng.choice([None, Prioritized]),rng.randint(1, 4)
        memory,world = make(cap, stack, pad, sampler, frame_margin=margin),World(rng, n_envs, stack, pad, longest)
        for i in range(2*cap+3):
            row = world.step()
            memory.add(**(single(row, stack) if alone else row))
            check(memory, world, f'{at}, row {i}', n_step=n_step, sequences=i%3==0)
            if margin==.05: assert len(memory)==min(cap, i+1), f'{at}: {len(memory)} rows'

pytestmark = pytest.mark.filterwarnings('ignore:.*rows are kept')
@pytest.mark.parametrize('cap', (1, 2, pytest.param(5, marks=pytest.mark.slow)))
def test_table(cap): table((cap,), ('repeat','zeros'), (0,1,3), (2,))

@pytest.mark.long
@pytest.mark.parametrize('cap', range(1, 13))
@pytest.mark.parametrize('pad', ('repeat','zeros'))
def test_whole_table(cap, pad): table((cap,), (pad,), (0,1,2,4), (2,.05))

# %% Random histories
class History:
    "A memory, what it should hold, and everything that may happen to it"
    def __init__(self, seed, folder):
        self.rng,self.folder = (rng := random.Random(seed)),folder
        self.cap,stack,pad = rng.randint(3, 30),rng.choice((0,1,2,4)),rng.choice(('repeat','zeros'))
        self.world = World(rng, rng.randint(1, 4), stack, pad, rng.choice((1,3,8)), rng.choice(((5,3), (8,), (5,2,2))))
        self.memory = make(self.cap, stack, pad, rng.choice((None, Prioritized)), frame_margin=rng.choice((0,5,.05)))
        self.base,self.at = 0,f'seed {seed}'

    def add(self):
        row = self.world.step()
        self.memory.add(**(single(row, self.world.stack) if self.rng.random()<.5 else row))
    def add_several(self):
        rows = [self.world.step() for _ in range(self.rng.randint(1, 2*self.cap))]
        if self.rng.random()<.5: rows = [single(o, self.world.stack) for o in rows]
        self.memory+BD({k: torch.from_numpy(np.stack([o[k] for o in rows])) for k in names})
    def step_all(self):
        "As a vector: some environments, in any order, take a step at the same time"
        envs = self.world.envs
        for _ in range(self.rng.randint(1, 4)):
            rows = [self.world.step(e) for e in self.rng.sample(range(len(envs)), self.rng.randint(1, len(envs)))]
            if self.rng.random()<.7: rows = [single(o, self.world.stack) for o in rows]
            self.memory+{k: np.stack([o[k] for o in rows]) for k in names}
    def one_env(self):
        e = self.rng.randrange(len(self.world.envs)) # the others wait, and resume
        for _ in range(self.rng.randint(1, 2*self.cap)): self.memory.add(**single(self.world.step(e), self.world.stack))
    def save(self):
        to = self.folder/f'{self.rng.random()}'
        self.memory.save(to)
        self.memory = ExperienceReplay.load(to, env_restored=True)
    def checkpoint(self):
        self.memory.checkpoint(self.folder/'checkpoints')
        if self.rng.random()<.5: self.memory = ExperienceReplay.load(self.folder/'checkpoints', env_restored=True)
    def copy(self): self.memory = (copy.deepcopy if self.rng.random()<.5 else lambda o: pickle.loads(pickle.dumps(o)))(self.memory)
    def slice(self):
        if not len(self.memory): return
        i = self.memory.ring.held
        i = i[sorted(self.rng.sample(range(len(i)), self.rng.randint(1, len(i))))]
        part,rows = self.memory[i],self.memory.ring.gather(i)
        part.warmup_sz = 1
        whole = part.ring.gather(part.ring.held)
        for k in names: assert bits(whole[k].numpy())==bits(rows[k].numpy()), f'{self.at}: {k} of a slice'
        other = make(2*self.cap, self.world.stack, self.world.pad).extend(part).extend(self.memory)
        for k in ('state','next_state'):
            want = torch.cat([rows[k], self.memory.ring.gather(self.memory.ring.held)[k]])[-len(other):]
            assert bits(other.ring.gather(other.ring.held)[k].numpy())==bits(want.numpy()), f'{self.at}: {k} of two memories'
    def mapped(self):
        if not len(self.memory): return
        self.memory.save(self.folder/'mapped')
        there = ExperienceReplay.load(self.folder/'mapped', mapped=True)
        for k in ('state','next_state'):
            assert bits(there.ring.gather(there.ring.held)[k].numpy())==bits(self.memory.ring.gather(self.memory.ring.held)[k].numpy()), self.at
        there.warmup_sz = 1
        there.sample()
    def clear(self):
        if self.rng.random()<.7: return
        self.memory.clear()
        for o in self.world.envs: o.t = o.last = None
        self.world.rows.clear()
        self.memory.add(**self.world.step())
        self.base = self.memory.ring.total-1

    def run(self, n):
        acts = [self.add]*6+[self.step_all]*4+[self.add_several, self.one_env, self.save, self.checkpoint, self.copy, self.slice, self.mapped, self.clear]
        for i in range(n):
            act = self.rng.choice(acts)
            at = f'{self.at}, act {i}, {act.__name__}'
            act()
            self.memory.bs,n_step = 6,self.rng.randint(1, 4)
            check(self.memory, self.world, at, self.base, n_step, sequences=i%3==0)

@pytest.mark.parametrize('seed', [*range(16), *(pytest.param(o, marks=pytest.mark.slow) for o in range(16, 40))])
@pytest.mark.halved
def test_histories(seed, tmp_path): History(seed, tmp_path).run(25)

@pytest.mark.long
@pytest.mark.parametrize('seed', range(100, 4100, 100))
def test_many_histories(seed, tmp_path):
    for i in range(100):
        (tmp_path/str(i)).mkdir()
        History(seed+i, tmp_path/str(i)).run(40)

# %% The short way and the long way
short_ways = 'continued','continued_by_each'

def inside(ring):
    "All that a ring of frames remembers"
    new,pool = ring.newest,ring.pool
    envs = sorted((k, o.serial, o.episode, o.step, o.numbers, [bits(x) for f in o.frames for x in f]) for k,o in new.envs.items())
    return [(o.total, o.seams, bits(o.place.packed.numpy()) if o.fields else b'') for o in (ring, pool)],envs,(new.seen, new.base, new.barrier, new.last.tolist(), ring.warned)

@pytest.mark.parametrize('seed', [*range(16), *(pytest.param(o, marks=pytest.mark.slow) for o in range(16, 40))])
@pytest.mark.halved
def test_short_way(seed, monkeypatch):
    "Rows that take the short way, one or several at a time, leave all as the long way does, which also says what is wrong with some"
    rng = random.Random(seed)
    stack,pad,cap,margin = rng.choice((0,1,2,4)),rng.choice(('repeat','zeros')),rng.randint(12, 30),rng.choice((0,5,.05))
    shows = rng.choice(('repeat','zeros')) # a stack may begin with zeros, whatever the memory does with single frames
    world,found,nested = World(rng, rng.randint(1, 5), stack, shows, rng.choice((1,3,8)), (6,3)),[],seed%4
    unsaid = rng.choice(((), (), ('step',), ('episode_id',), ('step','episode_id')))
    told = [o for o in names if o not in unsaid]
    memories = [make(cap, stack, pad, frame_margin=margin, shared=seed%3==1) for _ in range(2)]
    def noted(f): return lambda *args: found.append(res := f(*args)) or res
    def views(*seen):
        "Of one camera, or of two, of which the second sees less, and not what is odd in the first, or the other way round"
        a,b = seen[::swap]
        return dict(cam=a, arm=np.zeros(a.shape[:not one], np.float32), **(dict(wrist=b[...,:2]) if nested else {}))
    def add(memory, rows, one, way):
        if nested in (0,3): rows = {k: views(o, usual.get(k, o)) if 'state' in k else o for k,o in rows.items()}
        with monkeypatch.context() as m:
            for k in short_ways: m.setattr(frames, k, way(getattr(frames, k)))
            try: memory.add(**rows) if one else memory+rows
            except ExperienceReplayException as e: return str(e)
    def both(*rows):
        said = [add(o, *rows, way) for o,way in zip(memories, (noted, lambda f: lambda *args: None))]
        assert said[0]==said[1] and inside(memories[0].ring)==inside(memories[1].ring), f'seed {seed}: {said}'
        return said[0] is None
    for _ in range(100):
        one,n = rng.random()<(.1,.5,.9)[seed%3],len(world.envs)
        envs = rng.sample(range(n), 1 if one else rng.randint(1, n)) if rng.random()<.8 else rng.choices(range(n), k=1 if one else 3)
        rows = [world.step(e) for e in envs]
        if rng.random()<.6: rows = [single(o, stack) for o in rows]
        batch = usual = {k: rows[0][k].copy() if one else np.stack([o[k] for o in rows]) for k in told}
        swap = rng.choice((1, -1))
        if rng.random()<.4:
            act = rng.randrange(8)
            for o in memories: o.cut() if act==0 else o.clear() if act==1 and len(o) else o.ring.copy_rows(o.ring, o.ring.held[-2:]) if act==2 and len(o) else None
            v = batch[k := rng.choice([o for o in rng.choice((('state','next_state'), ('step','episode_id','env_id'), names)) if o in told] or ['state'])]
            odd = [~v, torch.from_numpy(v)] if v.dtype==bool else [v+1, v*0+3, np.concatenate([v[1:], v[:1]]), v.astype('f8'), torch.from_numpy(v+0)]
            if both({**batch, k:rng.choice(odd)}, one) or act<3: # what comes next is to follow nothing
                for o in world.envs: o.t = o.last = None
                [o.cut() for o in memories]
                continue
        both(batch, one)
        for v in batch.values(): v[...] = 1 # it is the caller's
    assert any(found), f'seed {seed}'

def odd_forms(v):
    "What nobody should send as a column, or may send for once"
    t = torch.from_numpy(v+0*v)
    return [None, 3, 3., True, 'x', {}, {'a':v}, (v,), [[1],[2,3]], object(), np.int64(3), np.array(3), torch.tensor(3), v.tolist(), v[:0], v[...,None],
            np.concatenate([v,v]), np.stack([v,v], -1), v.astype('f2'), v.astype('c8'), v.astype('>i4'), v.astype('U'), v.astype(object), v*np.nan, v*-0.,
            np.array([[{}]]*v.size, object)[:,0].reshape(v.shape), np.asfortranarray(v), np.repeat(v, 2, 0)[::2], np.ma.masked_array(v), v.reshape(len(v), -1).view(np.matrix), v.astype('i8').astype('M8[s]'),
            t, t.float().requires_grad_(), t.bfloat16(), torch.conj(t.to(torch.complex64)), torch._neg_view(t.float()), t.to('meta'), t.float().to_sparse()]

@pytest.mark.parametrize('one,stack', [(True,2), (False,0), *(pytest.param(*o, marks=pytest.mark.slow) for o in ((True,0), (False,2)))])
@pytest.mark.parametrize('told', (names, *(pytest.param(o, marks=pytest.mark.slow) for o in (names[:-3], [o for o in names if o!='step']))))
def test_short_way_leaves(told, stack, one, monkeypatch):
    "An unusual value in a row or batch is taken or refused as the long way does, in the same words"
    def step(world): return {o: u.astype('f4') if 'state' in o else u for o,u in world.step().items() if o in told}
    def begun():
        memory,world = make(24, stack, 'repeat'),World(random.Random(stack), 1, stack, longest=99)
        for _ in range(12): memory.add(**step(world))
        return memory,{o: u if one else u[None] for o,u in step(world).items()}
    def tried(memory, row, short):
        with monkeypatch.context() as m, warnings.catch_warnings():
            warnings.simplefilter('ignore')
            if not short: [m.setattr(frames, o, lambda *args: None) for o in short_ways]
            try: memory.add(**row) if one else memory+row
            except (ExperienceReplayException, RuntimeError) as e: return str(e)
    a,b = begun(),begun()
    for k in ('state','next_state','terminated','env_id','episode_id','step'):
        for v in odd_forms(a[1].get(k, np.zeros((1,)*(2-one), np.int64))):
            said = [tried(memory, {**row, k:v}, short) for (memory,row),short in ((a, True), (b, False))]
            assert said[0]==said[1] and inside(a[0].ring)==inside(b[0].ring), f'{k} as {v!r}: {said}'
            if said[0] is None: a,b = begun(),begun()

@pytest.mark.parametrize('one', (True, False))
@pytest.mark.parametrize('stack,form', ((0,dict), (1,single), (3,single), (3,dict)))
def test_two_cameras(one, stack, form, monkeypatch):
    "What is wrong with either camera is refused, or stored, as the long way does"
    world = World(random.Random(stack), 1, stack, longest=99, shape=(6,4))
    rows = [form(world.step()) for _ in range(12)]
    def view(o): return dict(cam=o, wrist=o[...,:3].astype(np.int16))
    def row_of(*changes):
        row = {k: view(v) if 'state' in k else v for k,v in rows[-1].items()}
        for k,camera,change in changes: row[k][camera] = change(row[k][camera])
        return row if one else {k: map_leaves(lambda v: v[None], o) for k,o in row.items()}
    def after(row, short):
        memory = make(24, stack, 'repeat')
        with monkeypatch.context() as m:
            if not short: [m.setattr(frames, o, lambda *args: None) for o in short_ways]
            for o in rows[:-1]: memory.add(**{k: view(v) if 'state' in k else v for k,v in o.items()})
            try: memory.add(**row) if one else memory+row
            except ExperienceReplayException as e: return str(e)
        return inside(memory.ring)
    changes = (lambda v: v+1, lambda v: v.astype(np.float64), lambda v: v[...,:1], lambda v: v[0], lambda v: v[None], lambda v: np.stack([v]*3), lambda v: np.zeros((0, *v.shape), v.dtype))
    for k,camera,f in itertools.product(('state','next_state'), ('cam','wrist'), changes):
        for row in (row_of((k,camera,f)), row_of(*((o,camera,f) for o in ('state','next_state')))): assert after(row, True)==after(row, False), (k, camera)
    assert after(row_of(), True)==after(row_of(), False)

@pytest.mark.parametrize('one', (True, False))
@pytest.mark.parametrize('stack', (0,2))
def test_tuple_with_numbers(one, stack, monkeypatch):
    "Cameras of different height in tuples, and numbers between them: frames are stored in the short way, as those of a dict are"
    def view(t): return (np.full((6,4), t, np.uint8), np.full((5,4), t, np.uint8)),np.full(3, t, np.float32),np.full((5,4), t, np.uint8)
    memory,looked,closely = make(24, stack, 'repeat'),[],Ring._write_checked
    monkeypatch.setattr(Ring, '_write_checked', lambda self, *args, **kwargs: (looked.append(self), closely(self, *args, **kwargs))[1])
    row = dict(terminated=np.array([False]), truncated=np.array([False]))
    for t in range(12):
        step = dict(state=view(t), next_state=view(t+1), **row)
        memory.add(**step) if one else memory+map_leaves(lambda o: o[None], step)
        if t==8: looked.clear() # the first of them has the short way compiled
    assert not looked
    for k in ('state','next_state'):
        for o in (*memory[k][0], memory[k][2]): assert o[...,0,0].reshape(12, -1)[:,-1].tolist()==[*range(k!='state', 12+(k!='state'))]

@pytest.mark.parametrize('one', (True, False))
def test_minus_zero(one):
    "-0. is another frame than 0.: a stack that has it where the last one has 0. is refused, and not stored with the other sign"
    def stack(*frames): return np.stack([np.full((2,3), o, np.float32) for o in frames])
    memory = make(24, 2, 'repeat')
    for t in range(12): memory.add(state=stack(t, t+1), next_state=stack(t+1, t+2 if t<11 else 0.), terminated=False, truncated=False)
    row = dict(state=stack(12, 0.), next_state=stack(-0., 5), terminated=np.zeros(1, bool), truncated=np.zeros(1, bool))
    with pytest.raises(ExperienceReplayException, match='should be its `state` without the first frame'):
        memory.add(**row) if one else memory+{k: v[None] for k,v in row.items()}
    assert len(memory)==12

# %% Episodes that are stored whole
@pytest.mark.parametrize('pad', ('repeat','zeros'))
@pytest.mark.parametrize('kind', ('memory','files'))
def test_episodes_stack_when_drawn(kind, pad, tmp_path):
    "Sequences of stacks, of pieces and of whole episodes; what was stored is a frame for each step"
    from fastrl.memory.episodes import EpisodeReplay, IndividualFileDataset, RingBufferDataset
    for T,S in itertools.product((1,3,None), (1,2,4)):
        ds = RingBufferDataset(60) if kind=='memory' else IndividualFileDataset(60, tmp_path/f'{T}{S}')
        er = EpisodeReplay(ds, 8, T, seed=0, frame_stack=S, frame_pad=pad)
        world = World(random.Random(0), 1, S, pad, 7)
        for _ in range(40):
            row = world.step(0)
            er.add_step({k: torch.from_numpy(single(row)[k]) for k in ('state','next_state','episode_id','step')}, done=world.rows[-1].over)
        assert f'stacks of {S}' in ' '.join(repr(er).split()) and ds[0]['state'].shape[1:]==world.shape
        at = {(int(o.episode_id[0]), int(o.step[0])): o for o in world.rows}
        er.save(tmp_path/f'saved{T}{S}')
        for batch in (er.sample(), EpisodeReplay.load(tmp_path/f'saved{T}{S}').sample()):
            mask = batch.get('mask', torch.ones(batch['step'].shape[:2], dtype=torch.bool))
            for b,t in itertools.product(*map(range, mask.shape)):
                o = at[int(batch['episode_id'][b,t]),int(batch['step'][b,t])] if mask[b,t] else None
                for k in ('state','next_state'):
                    want = getattr(o, k) if o else np.zeros_like(world.rows[0].state)
                    assert bits(batch[k][b,t].numpy())==bits(want), f'T {T}, stack {S}: {k} of {b,t}'

# %% Batches that are written to
def batch_of(seed=0, parts=()):
    "Both stacks, of a memory of some episodes; `parts` of an observation are alike"
    memory,world = make(40, 4, 'repeat'),World(random.Random(seed), 2, 4)
    for _ in range(40): memory.add(**{k: dict.fromkeys(parts, v) if parts and 'state' in k else v for k,v in world.step().items()})
    b,_ = memory.sample(8)
    return memory,b

def through_dlpack(t):
    a = np.from_dlpack(t)
    if a.flags.writeable: a.fill(5) # never before NumPy 2

def into_storage(t): torch.tensor([], dtype=t.dtype).set_(t.untyped_storage(), t.storage_offset(), t.shape, t.stride()).fill_(5)
doors = {'zero_': lambda t: t.zero_(), 'setitem': lambda t: t.__setitem__((slice(None), 1), 7), 'out': lambda t: torch.add(t.clone(), 1, out=t),
         'numpy': lambda t: t.numpy().fill(5), 'asarray': lambda t: np.asarray(t).fill(5), 'data': lambda t: t.data.fill_(5),
         'dlpack': through_dlpack, 'torch dlpack': lambda t: torch.from_dlpack(t).fill_(5), 'view': lambda t: t[:,2:].fill_(5),
         'share_memory_': lambda t: t.share_memory_().fill_(5), 'storage': lambda t: t.untyped_storage().fill_(5), 'set_': into_storage,
         'foreach': lambda t: torch._foreach_add_([t], 1), 'index_fill_': lambda t: t.index_fill_(0, torch.tensor([0,1]), 5),
         'to': lambda t: t.to(torch.uint8).fill_(5), 'detach': lambda t: t.detach().fill_(5)}

@pytest.mark.parametrize('door', doors)
@pytest.mark.parametrize('who', ('state','next_state'))
def test_writes(door, who):
    "Whatever is written into one stack, the other one and the memory stay as they are"
    memory,b = batch_of()
    other = b['next_state' if who=='state' else 'state']
    before,stored = other.clone(),memory['state'].clone()
    doors[door](b[who])
    assert torch.equal(other, before) and torch.equal(memory['state'], stored)

def three_steps(memory):
    memory.n_step = 3
    return memory.sample(8)[0]
def ahead(memory):
    with memory.loader(8) as batches: return next(batches)[0]
draws = {'dozen': lambda m: m.sample(8, n_batches=2)[1][0], 'n_step': three_steps, 'sequences': lambda m: m.sample_sequences(4, 3, pad=True)[0],
         'loader': ahead, 'slice': lambda m: m[5:30].sample(8)[0], 'rows': lambda m: m.ring[:9]}

@pytest.mark.parametrize('draw', draws)
@pytest.mark.parametrize('who', ('state','next_state'))
def test_writes_into_any_batch(draw, who):
    "Wherever it comes from, its stacks are apart from each other, and from what is stored"
    memory,_ = batch_of()
    stored = memory['state'].clone()
    for door in ('zero_','setitem','numpy','dlpack','foreach'):
        b = draws[draw](memory)
        other = b['next_state' if who=='state' else 'state']
        before = other.clone()
        doors[door](b[who])
        assert torch.equal(other, before) and torch.equal(memory['state'], stored), door

def test_batches_travel():
    "Pickled, collated, pinned by nothing: both stacks come along as they are"
    _,b = batch_of()
    c = pickle.loads(pickle.dumps(b))
    d = torch.utils.data.default_collate([{k: v[0] for k,v in b.items()}, {k: v[1] for k,v in b.items()}])
    for k in ('state','next_state'):
        assert torch.equal(b[k], c[k]) and torch.equal(b[k][:2], d[k])
        assert torch.equal(b[k].to(torch.float32), b[k].float()) and torch.equal(b[k].contiguous(), b[k].clone())

@pytest.mark.slow
@pytest.mark.parametrize('parts', ((), ('cam','wrist')))
def test_threads_write(parts):
    "Each into its own stack, or into its own part of one, at the same time"
    from threading import Barrier, Thread
    memory,_ = batch_of(parts=parts)
    for _ in range(3000): # torch's own way fails in one of some hundred
        b,_ = memory.sample(8)
        shown = [b[k][o] for k in ('state','next_state') for o in parts] or [b['state'], b['next_state']]
        wait = Barrier(len(shown))
        def fill(o, v): wait.wait(); o.fill_(v)
        ts = [Thread(target=fill, args=o) for o in zip(shown, range(9))]
        for t in ts: t.start()
        for t in ts: t.join()
        for v,o in enumerate(shown): assert (o==v).all()

# %% Other processes, places and forms
def schema_of(row): return {k: (v.shape if v.ndim>1 else (1,), torch.from_numpy(v).dtype) for k,v in single(row).items()}

def read(memory, want, at, todo):
    "Another process: wait for rows, and look at what is drawn"
    todo.wait()
    for _ in range(20):
        b,_ = memory.sample(16)
        for s,a,n in zip(b['serial'][:,0].tolist(), b['state'].numpy(), b['next_state'].numpy()):
            if bits(a)!=want[s][0] or bits(n)!=want[s][1]: at.put(f'row {s} is another one'); return
    at.put('fine')

@pytest.mark.slow
@pytest.mark.parametrize('place', ('shared', pytest.param('path', marks=pytest.mark.long)))
def test_reader_in_another_process(place, tmp_path):
    "It sees the rows and frames that come later, and never mixes two"
    world = World(random.Random(1), 2, 4, 'repeat', 3)
    rows = [world.step() for _ in range(300)]
    where = dict(shared=True) if place=='shared' else dict(path=tmp_path/'a.ring')
    memory = make(50, 4, 'repeat', frame_margin=8, schema=schema_of(rows[0]), **where)
    ctx = multiprocessing.get_context('spawn')
    at,todo = ctx.Queue(),ctx.Event()
    want = [(bits(o.state), bits(o.next_state)) for o in world.rows]
    p = ctx.Process(target=read, args=(memory, want, at, todo))
    p.start()
    for i,row in enumerate(rows):
        if i==60: todo.set()
        memory.add(**row)
    assert at.get(timeout=60)=='fine'
    p.join()
    if place=='path':
        again = make(50, 4, 'repeat', frame_margin=8, path=tmp_path/'a.ring')
        assert len(again)==len(memory) and torch.equal(again['next_state'], memory['next_state'])

@pytest.mark.skipif('fork' not in multiprocessing.get_all_start_methods(), reason='this system cannot fork')
@pytest.mark.parametrize('seed', [*range(4), *(pytest.param(o, marks=pytest.mark.slow) for o in range(4, 24))])
def test_writers_in_turns(seed):
    """A forked process adds rows, and then this one does: it notes what they need before it writes over a frame

    The pool goes round several times, so a row whose frames went too soon would show others."""
    rng,ctx = random.Random(seed),multiprocessing.get_context('fork')
    cap,stack,pad = rng.randint(8, 25),rng.choice((0,1,2,4)),rng.choice(('repeat','zeros'))
    world = World(rng, rng.randint(1, 3), stack, pad, rng.choice((3,8)))
    memory = make(cap, stack, pad, shared=True, frame_margin=rng.choice((0,5)))
    def add(rows, at_once):
        if at_once: memory+{k: np.stack([o[k] for o in rows]) for k in names}
        else: [memory.add(**o) for o in rows]
    memory.add(**world.step())
    for turn in range(16):
        if alone := rng.random()<.5: # single frames, of new episodes: the old ones are cut by whoever takes over
            for o in world.envs: o.t = o.last = None
        job = [world.step() for _ in range(rng.randint(1, 2*cap))],rng.random()<.5
        if alone: job = [single(o, stack) for o in job[0]],job[1]
        if turn%2: add(*job)
        else:
            p = ctx.Process(target=add, args=job)
            p.start(); p.join()
            assert p.exitcode==0
        check(memory, world, f'seed {seed}, turn {turn}', sequences=False)

@pytest.mark.parametrize('at_once', [False,True], ids=['rows','batch'])
def test_episodes_in_turns(at_once):
    "Without `env_id`, `episode_id` keeps episodes apart whose steps come in turns"
    def one(i): return np.full((2,2), i, np.uint8)
    rows = [dict(state=one(10*e+t), next_state=one(10*e+t+1), episode_id=e,
                 reward=0., terminated=False, truncated=False) for t in range(4) for e in (1,2)]
    er = ExperienceReplay(frame_stack=3, max_sz=20, warmup_sz=1)
    if at_once: er += {k: np.stack([o[k] for o in rows]) for k in rows[0]}
    else:
        for o in rows: er.add(**o)
    state,after = (er.memory[k][:,:,0,0].tolist() for k in ('state','next_state'))
    assert state==[[10*e+max(t-k, 0) for k in (2,1,0)] for t in range(4) for e in (1,2)]
    assert after==[[10*e+max(t-k, 0) for k in (1,0,-1)] for t in range(4) for e in (1,2)]

def test_freeze():
    "The first rows stay, with their frames, until there is room for no other"
    memory = make(20, 2, 'repeat', freeze_memory=True, frame_margin=0)
    world = World(random.Random(0), 2, 2, 'repeat', 1)
    for _ in range(30): memory.add(**world.step())
    assert len(memory)==10 and memory['episode_id'][:,0].tolist()==list(range(10)) # an episode of one step has two frames
    assert bits(memory['state'].numpy())==bits(np.stack([o.state for o in world.rows[:10]]))

def test_freeze_row_by_row():
    "A frozen memory keeps the first rows with all of their frames, however many a row brings, until there is no room for one"
    for seed in range(40):
        rng = random.Random(seed)
        cap,stack,pad = rng.randint(3, 30),rng.choice((0,1,2,4)),rng.choice(('repeat','zeros'))
        world = World(rng, rng.randint(1, 3), stack, pad, rng.choice((1,3,8)))
        memory,n = make(cap, stack, pad, freeze_memory=True, frame_margin=rng.choice((0,5,.05))),0
        for _ in range(2*cap):
            row = world.step()
            memory.add(**(single(row, stack) if rng.random()<.5 else row))
            assert len(memory)>=n, f'seed {seed}: {len(memory)} of {n} rows'
            n = len(memory)
        for k in names: assert bits(memory[k].numpy())==bits(np.stack([getattr(o, k) for o in world.rows[:n]])), f'seed {seed}: {k}'

@pytest.mark.parametrize('way', ['extend','+','frozen'])
@pytest.mark.parametrize('form', ['frames','stacks','single'])
@pytest.mark.parametrize('named', [False, True])
def test_merged_into_frames(named, form, way):
    "Rows of another memory keep their stacks, also of single frames, which begin anew after a cut there; stacks share their frames"
    def make_one(n, **kw): return ExperienceReplay(4, n, 1, n_step=2, **kw)
    def stack(ep, t): return np.stack([frame(ep, max(k, 0), (4,4)) for k in (t-2,t-1,t)])
    def row(env, ep, t, form=form):
        s,n = (stack(ep, k) if form=='stacks' else frame(ep, k, (4,4)) for k in (t, t+1))
        return dict(state=s, next_state=n, reward=0., terminated=t==5, truncated=False, **(dict(env_id=env) if named else {}))
    frames = dict(frame_stack=3, frame_margin=20)
    other = make_one(20 if way=='+' else 14, **(frames if form=='frames' else {}))
    steps = [(0,0,t) for t in range(6)]+[(0,1,0),(0,1,1)] # the second episode is left off
    steps += [(ep-2,ep,t) for t in range(6) for ep in (2,3)] if named else [(0,ep,t) for ep in (2,3) for t in range(6)]
    for i,o in enumerate(steps):
        if i==8: other.cut()
        other.add(**row(*o))
    memory = make_one(40, freeze_memory=way=='frozen', **frames)
    memory.add(**row(0, 99, 5, 'single'))
    memory+other.memory if way=='+' else memory.extend(other)
    for got,(_,ep,t) in zip(memory['state'][1:].numpy(), steps[-len(other):], strict=True): assert bits(got)==bits(stack(ep, t)), (ep, t)
    assert len(memory.ring.pool)<=2+6*4+7
    memory.sample(), memory.sample_sequences(4, 2)

@pytest.mark.parametrize('way', ['add','batch','loaded'])
def test_cut_long_ago(way, tmp_path):
    "An environment that pauses for longer than the memory is long still follows nothing from before the cut"
    memory = ExperienceReplay(4, 20, 1, frame_stack=3, frame_margin=60)
    def row(env, ep, t): return dict(env_id=env, state=frame(ep, t, (4,4)), next_state=frame(ep, t+1, (4,4)), reward=0., terminated=False, truncated=False)
    def batch(rows): return {k: np.stack([np.reshape(o[k], np.shape(o[k]) or (1,)) for o in rows]) for k in rows[0]}
    for t in range(4):
        for env in (0,1): memory.add(**row(env, env, t))
    memory.cut()
    rows = [row(0, 2, t) for t in range(50)]
    if way=='batch': memory+batch(rows)
    else:
        for o in rows: memory.add(**o)
    if way=='loaded':
        memory.save(tmp_path)
        memory = ExperienceReplay.load(tmp_path, env_restored=True)
    first = row(1, 3, 0)
    first['state'] = frame(1, 4, (4,4)) # it looks like what would have come next
    memory.add(**first)
    assert torch.equal(memory['state'][memory.pointer-1], torch.from_numpy(np.stack([first['state']]*3)))
    memory.cut()
    for o in rows: memory.add(**o)
    memory.add(**row(1, 4, 0)) # nor need it look like that

@pytest.mark.parametrize('stack', [1,2])
@pytest.mark.parametrize('freeze', [False, True])
def test_rows_of_frames_apart(stack, freeze):
    "Slices and merges take any rows, also stacks of one frame and in a frozen memory"
    memory,world = make(20, stack, 'repeat', freeze_memory=freeze),World(random.Random(0), 1, stack, 'repeat')
    for _ in range(20): memory.add(**world.step())
    for rows in (slice(None, None, -1), [1,3], slice(0, None, 2)):
        part = memory[rows]
        other = make(20, stack, 'repeat', freeze_memory=True).extend(part)
        for o in (part, other): assert bits(o['state'].numpy())==bits(memory['state'].numpy()[rows])

def test_bytes():
    "What `nbytes_when_full` says is what is there"
    from fastrl.memory.place import nbytes_when_full
    row = World(random.Random(0), 1, 4, shape=(16,16)).step()
    for stack,margin in ((4,.05), (2,.2), (4,7)):
        memory = make(20_000, stack, 'repeat', schema=schema_of(row), frame_margin=margin)
        have = sum(o.place.packed.nbytes for o in (memory.ring, memory.ring.pool if memory.ring.pool.fields else memory.ring))
        said = nbytes_when_full(20_000, {**schema_of(row), 'td_error': ((1,), torch.float32)}, stack, margin)
        assert abs(said/have-1)<.02

def test_one_warning():
    "Short episodes: one warning, which says why; long ones: none, however rows come"
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter('always')
        for longest,at_once in ((60,1), (60,40), (1,1)):
            memory,world = make(200, 4, 'repeat', frame_margin=30),World(random.Random(0), 1, 4, longest=longest)
            for e in range(20 if longest==60 else 500):
                if longest==60: world.rng = SimpleNamespace(randint=lambda a, b: b, randrange=lambda n: 0)
                rows = [world.step() for _ in range(longest)]
                for i in range(0, longest, at_once):
                    memory+BD({k: torch.from_numpy(np.stack([o[k] for o in rows[i:i+at_once]])) for k in names})
            if longest==60: assert len(memory)==200 and not warned
    assert len(warned)==1 and 'episodes are short' in str(warned[0].message) and 'frame_margin' in str(warned[0].message)

def test_damaged_frames(tmp_path):
    "A file of frames that is damaged costs the rows that need it, and those before them; nothing else"
    from fastrl.memory.disk import verify
    memory,world = make(200, 2, 'repeat'),World(random.Random(0), 2, 2)
    for _ in range(4):
        for _ in range(30): memory.add(**world.step())
        memory.checkpoint(tmp_path)
    files = sorted(tmp_path.glob('frames-*'), key=lambda o: o.stat().st_mtime_ns)
    assert len(files)==4 and not verify(tmp_path)
    data = bytearray(files[1].read_bytes())
    data[-1] ^= 1
    files[1].write_bytes(data)
    with pytest.raises(Exception, match='checksum'): ExperienceReplay.load(tmp_path)
    again = ExperienceReplay.load(tmp_path, on_error='skip')
    assert 50<=len(again)<=61 and again.skipped==120-len(again)
    for k in ('state','next_state'):
        assert bits(again.ring.gather(again.ring.held)[k].numpy())==bits(np.stack([getattr(o, k) for o in world.rows[-len(again):]]))

@pytest.mark.parametrize('dtype', (torch.float32, torch.bfloat16, torch.int16, torch.uint16, torch.bool, torch.complex64))
def test_dtypes(dtype):
    memory = make(9, 2, 'zeros')
    frames = (torch.arange(8*6).view(8, 3, 2)%7).to(dtype)
    for i in range(5): memory.add(state=frames[i], next_state=frames[i+1], terminated=False, truncated=False)
    assert memory['state'].dtype==dtype and torch.equal(memory['state'][2:,0], frames[1:4]) and torch.equal(memory['next_state'][:,1], frames[1:6])

# %% Environments
def play(memory, env, n, seed=0, also=None):
    obs,_ = env.reset(seed=seed)
    env.action_space.seed(seed)
    for _ in range(n):
        action = env.action_space.sample()
        new,reward,terminated,truncated,_ = env.step(action)
        for o in [memory]+[also]*(also is not None):
            o.add(state=obs, action=action, reward=reward, next_state=new, terminated=terminated, truncated=truncated)
        obs = env.reset()[0] if terminated or truncated else new

def check_env(make_env, n, n_frames=None):
    "Stacks and single frames of the same game, and whole stacks; then two games side by side"
    import gymnasium as gym
    once,alone,whole = make(500, 4, 'repeat'),make(500, 4, 'repeat'),ExperienceReplay(bs=6, max_sz=500, warmup_sz=1)
    play(once, make_env(True), n, also=whole)
    play(alone, make_env(False), n)
    for k in ('state','next_state'): assert torch.equal(once[k], whole[k]) and torch.equal(alone[k], whole[k])
    assert len(once.ring.pool)==len(alone.ring.pool)<=n+20
    for stacked in (True, False):
        vector,memory = gym.vector.SyncVectorEnv([lambda: make_env(stacked)]*2),make(500, 4, 'repeat')
        obs,_ = vector.reset(seed=0)
        for _ in range(n//2):
            actions = vector.action_space.sample()
            new,rewards,terminated,truncated,infos = vector.step(actions)
            memory.add_vector(obs=obs, actions=actions, rewards=rewards, terminated=terminated, truncated=truncated, next_obs=new,
                              infos=infos, autoreset=vector)
            obs = new
        assert len(memory)>n-40 and torch.equal(memory['state'][:,1:], memory['next_state'][:,:-1])

def test_odd_addresses():
    "Frames that begin anywhere in memory, as slices of a buffer do, continue what they continue"
    buffer = np.zeros(9*64, np.uint8)
    odd = [buffer[i*64+i:][:64].reshape(8,8) for i in range(8)]
    for i,o in enumerate(odd): o[:] = i
    memory = ExperienceReplay(4, max_sz=20, warmup_sz=1, frame_stack=4)
    for i in range(6): memory.add(state=odd[i], next_state=odd[i+1], terminated=False, truncated=False)
    assert memory.memory['state'][-1,:,0,0].tolist()==[2,3,4,5]

def kept(ring):
    "All that a ring of frames keeps"
    return ({p: bits(v.numpy()) for p,v in ring.place.columns.items()}, bits(ring.pool.place.columns['frame',].numpy()), ring.total, ring.pool.total,
            ring.n_held, ring.seams, bits(ring.newest.last),
            {k: (o.serial, o.episode, o.step, list(o.numbers), [bits(x) for f in o.frames for x in f]) for k,o in ring.newest.envs.items()})

@pytest.mark.parametrize('seed', range(12))
@pytest.mark.halved
def test_one_way_or_the_other(seed):
    "A step in arrays, which has a way of its own, is stored or refused as a batch of one is, also where it continues nothing"
    rng = random.Random(seed)
    S,named,cap,pad,margin = (rng.choice(o) for o in ((1,2,4), (True,True,False), (6,12,40), ('repeat','zeros'), (0,.05)))
    alone,batches = (FrameRing(cap, stack=S, pad=pad, margin=margin) for _ in range(2))
    world,same,refused = World(rng, n_envs=3 if named else 1, stack=S, pad=pad, longest=8),0,0
    for i in range(150):
        row = world.step()
        if not named: row = {k: v for k,v in row.items() if k not in ('env_id','episode_id','step')}
        if rng.random()<.7: row = single(row)
        what = rng.random()
        if what<.05: row['state'] = row['state']+np.uint8(1) # no state that was seen
        elif what<.08 and row['next_state'].ndim>2: row['next_state'] = np.roll(row['next_state'], 1) # does not continue its state
        elif what<.12 and named: row['step'] = row['step']+rng.choice((-1,1,3))
        elif what<.16 and named: row['episode_id'] = row['episode_id']+1000
        elif what<.18: row['reward'] = np.zeros((2,2), np.float32)
        elif what<.20: alone.cut(); batches.cut()
        elif what<.22: world.envs = [SimpleNamespace(t=None, last=None) for _ in world.envs] # all episodes are abandoned
        elif what<.24: alone.reset(before=alone.total-1); batches.reset(before=batches.total-1)
        elif what<.26: alone,batches = pickle.loads(pickle.dumps((alone, batches)))
        elif what<.27: alone.reset(); batches.reset()
        def stopped(*_, **__): raise KeyboardInterrupt
        if .27<=what<.32: alone._note = batches._note = stopped # the row is written, and what is newest was not noted
        def tried(f, *args, **kwargs):
            with warnings.catch_warnings():
                warnings.simplefilter('ignore')
                try: f(*args, **kwargs)
                except ValueError as e: return str(e)
                except KeyboardInterrupt: pass
                finally: vars(f.__self__).pop('_note', None)
        told = tried(alone.add, **row),tried(batches.extend, {k: v[None] for k,v in row.items()})
        assert (told[0] is None)==(told[1] is None), f'step {i}: {told}'
        assert kept(alone)==kept(batches), f'step {i} ({what:.2f}), refused: {told[0]}'
        same,refused = same+(told[0] is None),refused+(told[0] is not None)
        if told[0]: alone.cut(); batches.cut() # or single frames would be refused until their episode ends
    assert same>5 and refused>3

def test_frame_stack_observation():
    "gymnasium's wrapper, around a game that is as bright as its step; episodes of 7 steps"
    import gymnasium as gym
    from gymnasium.wrappers import FrameStackObservation
    class Bright(gym.Env):
        observation_space,action_space = gym.spaces.Box(0, 255, (7,5), np.uint8),gym.spaces.Discrete(2)
        def reset(self, **kw): super().reset(**kw); self.t = 1; return self.obs(),{}
        def obs(self): return np.full((7,5), self.t, np.uint8)
        def step(self, a): self.t += 1; return self.obs(), 0., False, self.t==8, {}
    check_env(lambda stacked: FrameStackObservation(Bright(), 4) if stacked else Bright(), 60)

@pytest.mark.slow
def test_atari():
    "A real game, where ale-py and OpenCV are installed"
    gym,ale,_ = pytest.importorskip('gymnasium'),pytest.importorskip('ale_py'),pytest.importorskip('cv2')
    from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation
    gym.register_envs(ale)
    def make_env(stacked):
        env = AtariPreprocessing(gym.make('ALE/Breakout-v5', frameskip=1, max_episode_steps=400), noop_max=0)
        return FrameStackObservation(env, 4) if stacked else env
    check_env(make_env, 300)

@pytest.mark.parametrize('seed', range(6))
@pytest.mark.halved
def test_beside_the_rest(seed):
    "Batches by the dozen, drawn ahead, sequences by priority and with burn-in: what comes is held, and has its own stacks"
    rng,errors,short = random.Random(seed),torch.Generator().manual_seed(seed),seed>3 # short episodes: rows leave before their time
    world = World(rng, 1+seed%3, longest=2 if short else 9)
    er = ExperienceReplay(bs=6, max_sz=40, warmup_sz=1, frame_stack=2, frame_margin=2 if short else 60, seed=seed,
                          sampler=Prioritized(seed=seed) if seed%2 else None)
    def check(batch, idxs):
        there = idxs>=0
        assert er.ring.holds(idxs[there]).all()
        check_rows(world.rows, {k: batch[k][there] for k in (*names,'serial')}, seed)
    for i in range(150):
        with warnings.catch_warnings():
            warnings.simplefilter('ignore') # fewer rows than `max_sz` are kept
            er.add(**world.step())
        if i<5 or rng.random()<.8: continue
        for batch,idxs in (er.sample(), er.sample_sequences(3, 2, pad=True, burn_in=2)):
            check(batch, idxs)
            er.update_td(torch.rand((*idxs.shape, 1), generator=errors), idxs, batch['serial'])
        for o in (*pickle.loads(pickle.dumps(er.sample(n_batches=3))), *er.sample_sequences(2, 2, pad=True, n_batches=2)): check(*o)
        if seed%2: # the priorities of sequences are what they are to somebody who looks at all rows
            there,anew = er.sampler.starts,copy.deepcopy(er.sampler.starts)
            anew.follow(er.ring, er.sampler.tree); there.follow(er.ring, er.sampler.tree)
            torch.testing.assert_close(there.tree[:], anew.tree[:], rtol=1e-6, atol=1e-9)
        with er.loader(4) as ahead: check(*next(ahead))
    assert (len(er)<40)==short

def test_put_refuses_frames():
    "Rows have frames in common, so none is overwritten, not by its number either; other columns are"
    er = ExperienceReplay(4, max_sz=20, warmup_sz=1, frame_stack=2, seed=0)
    for t in range(30): er.add(state=torch.full((1,3), t, dtype=torch.uint8), next_state=torch.full((1,3), t+1, dtype=torch.uint8), value=0., terminated=t%5==4, truncated=False, env_id=0)
    before = er.memory['state'].clone(),er.memory['next_state'].clone()
    batch,idxs = er.sample()
    for o in (batch['state'], torch.zeros(4, 2, dtype=torch.int32)):
        with pytest.raises(ExperienceReplayException, match='cannot be overwritten'): er.put('state', idxs, o, batch['serial'])
    assert all(map(torch.equal, before, (er.memory['state'], er.memory['next_state'])))
    assert er.put('value', idxs, torch.ones(4,1), batch['serial'])==0 and (er.memory['value'][idxs]==1).all()

@pytest.mark.filterwarnings('error')
def test_frames_that_are_no_stacks():
    "Colours, lights that blink, and frames that stand still are no stacks"
    for moves in (lambda i: np.stack([np.where(np.eye(8)>0, 255*(i%2), 0), np.zeros((8,8)), np.zeros((8,8))]),
                  lambda i: np.full((3,8,8), i), lambda i: np.zeros((8,8,3))+i%2):
        er = ExperienceReplay(4, max_sz=60, warmup_sz=1, frame_stack=4)
        for i in range(12): er.add(state=moves(i).astype(np.uint8), next_state=moves(i+1).astype(np.uint8), reward=0., terminated=False, truncated=False)

def test_rows_of_several_steps():
    "Whole stacks have one new frame a row; a next state that shows more is refused, and nothing of its batch is stored"
    world = World(random.Random(0), stack=3, longest=9)
    rows = [world.step(0) for _ in range(3)]
    er,batch = ExperienceReplay(4, 20, 1, frame_stack=3),{k: np.stack([o[k] for o in rows]) for k in rows[0]}
    batch['next_state'][1] = batch['next_state'][2]
    with pytest.raises(ExperienceReplayException, match='`next_state` of row 1 should be its `state` without the first frame'): er+BD(batch)
    with pytest.raises(ExperienceReplayException, match='`next_state` of row 0 should be'): er.add(**{k: v[1] for k,v in batch.items()})
    assert not len(er)

# %% States with several images
@pytest.mark.parametrize('n_step', (None, 2))
@pytest.mark.parametrize('pad', ('repeat','zeros'))
@pytest.mark.parametrize('cameras,wide', ((('left',), 1), (('left','right'), 1), (('left','right'), 3000)))
def test_cameras(cameras, wide, pad, n_step):
    "Each has its own frames, wherever a batch comes from: an observation is the episode's number and the step"
    sizes,S,n = {k: dict(left=((2,2), 1), right=((5,7), 101))[k] for k in cameras},3,6
    def seen(e, t): return {k: np.full(size, 10*e+t+off, np.uint8) for k,(size,off) in sizes.items()}|dict(at=np.full(wide, 10*e+t, np.float32))
    er = ExperienceReplay(40, 20, 1, frame_stack=S, frame_pad=pad, n_step=n_step, seed=0)
    for e,t in itertools.product(range(4), range(n)): er.add(state=seen(e, t), next_state=seen(e, t+1), reward=1., terminated=t==n-1, truncated=False)
    def right(batch):
        for which in ('state','next_state'):
            at = batch[which]['at'][...,0].reshape(-1).int()
            back = at[:,None]%10-torch.arange(S-1, -1, -1) # step of each frame in the stack
            for k,(size,off) in sizes.items():
                want = torch.where(back<0, 0 if pad=='zeros' else (at-at%10+off)[:,None], (at-at%10+off)[:,None]+back)
                got = batch[which][k].reshape(-1, S, *size).int()
                assert torch.equal(got, want[...,None,None].expand_as(got))
        assert '#1' not in batch
        return len(batch['reward'])
    assert right(er.sample()[0])==40 and [right(o) for o,_ in er.sample(n_batches=3)]==[40]*3
    assert right(er[5:9].sample(30)[0])==30 and right(er.ring[:])==20
    if not n_step: assert right(er.sample_sequences(9, T=4)[0])==9

def test_columns_beside_frames():
    "They show the rows that are held: here the pool has room for 6 frames, and each episode needs 2 for its one row"
    er = ExperienceReplay(4, 5, 1, frame_stack=2, frame_margin=1)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        for i in range(7): er.add(state=np.full((1,3), i+1, np.uint8), next_state=np.full((1,3), i+2, np.uint8), value=float(i), terminated=True, truncated=False)
    held = er.ring['value'].flatten().tolist()
    assert 0<len(er)==len(held)<5 and sorted(held)==list(range(7-len(er), 7))
    cols = er.ring.columns()
    assert [*cols]==['value','terminated','truncated','td_error'] and cols['value'].flatten().tolist()==held

@pytest.mark.parametrize('margin', (True, 'a', None, -1, float('inf'), float('nan')))
def test_margins_that_are_none(margin):
    with pytest.raises(ExperienceReplayException, match='`frame_margin` should be a share like .05'): ExperienceReplay(4, 5, 1, frame_stack=2, frame_margin=margin)

@pytest.mark.parametrize('S', (2,3))
def test_stacks_of_another_size(S):
    "Longer or shorter ones are refused, also where they go on from the last row"
    def stack(t, n=S): return np.stack([np.full((2,5), max(o, 0)+1, np.uint8) for o in range(t-S+1, t-S+1+n)])
    er = ExperienceReplay(4, 40, 1, frame_stack=S)
    def add(t, n=S): er.add(state=stack(t, n), next_state=stack(t+1, n), terminated=False, truncated=False)
    for t in range(20): add(t)
    for n in (S+1, S-1):
        with pytest.raises(ExperienceReplayException, match='`state` should be'): add(20, n)
    add(20)
    assert len(er)==21 and (er.memory['next_state'][-1].numpy()==stack(21)).all()

def test_a_camera_stands_still():
    "Frames are the same, and stacks continue one another, if those of all cameras do"
    def stacks(t): return dict(left=np.ones((3,2,2), np.uint8), right=np.stack([np.full((2,5), o, np.uint8) for o in (t-2,t-1,t)]))
    er = ExperienceReplay(4, 20, 1, frame_stack=3)
    def add(t): er.add(state=stacks(t), next_state=stacks(t+1), terminated=False, truncated=False)
    for t in range(5, 9): add(t)
    with pytest.raises(ExperienceReplayException, match='does not continue the `next_state` of the last row'): add(20)
    for which,off in (('state',5), ('next_state',6)):
        for k in ('left','right'): assert (er.memory[which][k].numpy()==np.stack([stacks(t+off)[k] for t in range(4)])).all()

# %% Observations that are no stacks
def observed(rng, form):
    v = {'short':lambda: rng.normal(size=2), 'wide':lambda: rng.normal(size=40), 'image':lambda: rng.integers(0, 256, (5,4,3), np.uint8)}
    if form!='nested': return v[form]().astype(np.uint8 if form=='image' else np.float32)
    return dict(cam=v['image'](), arm=v['wide'](), at=(v['short'](), np.int64(rng.integers(9)))) # the last two lie in the rows

def same_batches(a, b, at):
    a,b = (dict(leaves(o)) for o in (a, b))
    assert list(a)==list(b), at
    for p,v in a.items(): assert torch.equal(b[p], v) and b[p].dtype==v.dtype, f'{at}: {p}'

@pytest.mark.parametrize('seed', [*range(2), *(pytest.param(o, marks=pytest.mark.slow) for o in range(2, 5))])
@pytest.mark.parametrize('form', ('short','wide','image','nested'))
@pytest.mark.halved
def test_observations_once(form, seed, tmp_path):
    "Each stored once, they come in the batches of a memory that stores them twice, whatever happens to both"
    rng,pick = np.random.default_rng(seed),random.Random(seed)
    cap,n_envs,n_step,sampler = pick.randint(5, 40),pick.randint(1, 3),pick.choice((None,3)),pick.choice((Uniform, Prioritized))
    two,one = (ExperienceReplay(6, cap, 1, sampler=sampler(seed=1), seed=0, n_step=n_step, **o) for o in ({}, dict(frame_stack=0, frame_margin=4*cap)))
    last = [None]*n_envs
    def step():
        e = pick.randrange(n_envs)
        if last[e] is None or pick.random()<.05: last[e] = observed(rng, form) # abandoned, and nobody says so
        row,over = dict(state=last[e], action=pick.randrange(9), reward=pick.random(), next_state=observed(rng, form), env_id=e),pick.random()<.2
        last[e] = None if over else row['next_state']
        return {**row, 'terminated':over and pick.random()<.5, 'truncated':over}
    for i in range(40):
        act = pick.choice(('add','add','batch','save','checkpoint','slice','merge','cut'))
        at = f'{form}, seed {seed}, act {i}, {act}'
        if act=='batch':
            rows = [step() for _ in range(pick.randint(1, cap))]
            batch = nest({p: torch.stack([torch.as_tensor(dict(leaves(o))[p]) for o in rows]) for p,_ in leaves(rows[0])})
            for o in (two,one): o+batch
        elif act=='cut':
            for o in (two,one): o.cut()
            last = [None]*n_envs
        elif len(two)<2: continue
        elif act=='merge': two,one = (o.extend(o[:len(o)//2]) for o in (two,one))
        elif act in ('save','checkpoint'):
            for k,o in dict(two=two, one=one).items(): getattr(o, act)(tmp_path/act/k)
            two,one = (ExperienceReplay.load(tmp_path/act/k, env_restored=True) for k in ('two','one'))
        elif act=='slice':
            a = pick.randrange(len(two))
            same_batches(*(o[a:].sample(bs=5)[0] for o in (two,one)), at)
        row = step()
        for o in (two,one): o.add(**row)
        assert len(one)==len(two), at
        (b,j),(c,k) = two.sample(),one.sample()
        assert torch.equal(j, k), at
        same_batches(b, c, at)
        if sampler is Prioritized:
            for o,had,rows in ((two, b, j), (one, c, k)): o.update_td(had['reward'], rows, had['serial'])
        for b,c in zip(*(o.sample(n_batches=2) for o in (two,one))): same_batches(b[0], c[0], at)
        same_batches(*(o.sample_sequences(3, 4, pad=True)[0] for o in (two,one)), at)

def test_rest_of_an_episode_whose_first_frames_are_damaged(tmp_path):
    "It is no whole episode, and does not begin with the first row that is left"
    from fastrl.memory.disk import Saved, pieces_of
    def rows(steps):
        at = np.array(steps)
        frames = [np.tile(o.astype(np.uint8)[:,None,None,None], (1,1,2,2)) for o in (at, at+1)]
        return dict(state=frames[0], next_state=frames[1], reward=np.ones(len(at), np.float32), terminated=at==8, truncated=at<0, step=at)
    memory = ExperienceReplay(bs=4, max_sz=20, warmup_sz=1, seed=0, frame_stack=1) + rows([1,2,3,4])
    memory.checkpoint(tmp_path)
    memory = memory + rows([5,6,7,8])
    assert memory.sample_sequences(1)[0]['step'].shape==(1,8,1)
    memory.checkpoint(tmp_path)
    (tmp_path/pieces_of(Saved(tmp_path).manifest, 'frames')[0]['file']).unlink()
    rest = ExperienceReplay.load(tmp_path, on_error='skip')
    with pytest.raises(ExperienceReplayException, match='no episode is stored whole'): rest.sample_sequences(1)
    assert not rest.sample_sequences(20, 2)[0]['is_first'].any()

def test_shows_all_columns():
    "Of a nested observation it names the frames that are stored once, and all other fields of both states"
    memory = ExperienceReplay(warmup_sz=1, max_sz=9, frame_stack=2)
    def seen(): return dict(image=np.zeros((2,8,8), np.uint8), arm=np.zeros(3, np.float32))
    memory.add(state=seen(), action=0, reward=0., next_state=seen(), terminated=False, truncated=False)
    shown = ' '.join(repr(memory).split())
    assert 'stacks of 2 frames uint8[8, 8]; state.arm float32[3], action' in shown and 'next_state.arm float32[3]' in shown and '.image' not in shown, shown

def test_arrays_that_are_used_anew():
    "What is newest is a copy: an array that shows something else later does not break the chain of frames"
    er = ExperienceReplay(4, 30, 1, frame_stack=2)
    state,after = np.zeros((2,8,8), np.uint8)
    for i in range(20):
        state[:],after[:] = i,i+1
        er.add(state=state, action=0, reward=1., next_state=after, terminated=False, truncated=i==9)
        state[:],after[:] = 200,201
    assert (er.memory['state'][:,-1,0,0].tolist(), er.ring.pool.total)==([*range(20)], 22)

# %% Two pairs
def test_two_pairs(tmp_path):
    "With two pairs of observations nobody knows which has the frames; a memory that was saved with both loads and goes on"
    def row(i):
        img = torch.full((4,5,5), i, dtype=torch.uint8)
        return dict(state=torch.arange(2.), next_state=torch.arange(2.), obs=img, next_obs=img, reward=0., terminated=True, truncated=False)
    schema = {k: (np.shape(o), torch.as_tensor(o).dtype) for k,o in row(0).items()}
    for S in (0,4):
        for make in (lambda: ExperienceReplay(max_sz=9, frame_stack=S).add(**row(0)), lambda: ExperienceReplay(max_sz=9, frame_stack=S, schema=schema)):
            with pytest.raises(ExperienceReplayException, match='nobody says which of .*obs.* give the other one names of your own'): make()
    named = {dict(state='extra', next_state='next_extra').get(k, k): o for k,o in row(7).items()}
    er = ExperienceReplay(bs=1, max_sz=9, warmup_sz=1, frame_stack=4).add(**named)
    assert er.ring.place.pair==('obs','next_obs') and torch.equal(er.sample()[0]['obs'][0], named['obs'])
    with patch.object(stacks, 'observed_pairs', lambda paths: []): # as it was
        er = ExperienceReplay(bs=1, max_sz=9, warmup_sz=1, frame_stack=4)
        for i in range(3): er.add(**row(i))
        er.save(tmp_path)
    er = ExperienceReplay.load(tmp_path).add(**row(3))
    assert [len(o) for o in (er, er[1:3])]==[4, 2] and er.sample()[0]['state'].shape==(1,4,2)
