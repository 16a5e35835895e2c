"""A memory that stores each frame once gives what one gives that stores everything: random histories against plain lists

The lists know nothing of the inside: they keep each row with both of its stacks, whole. The memory says how many of them it
holds, and these have to be the newest ones."""
import copy, itertools, multiprocessing, pickle, random, warnings
from types import SimpleNamespace
import numpy as np, pytest, torch
from fastrl.core import BD
from fastrl.memory.frames import *
from fastrl.memory.replay import *
from fastrl.memory.sample import *

# %% Environments, and what they did
def frame(ep, t, shape): # no two are the same, and none is empty
    return np.resize(np.array([ep%256, ep//256, t, 1+(ep*7+t*13)%250], np.uint8), shape)

class World:
    "Environments that take steps by turns, and everything that they did"
    def __init__(self, rng, n_envs=2, stack=2, pad='repeat', longest=6, shape=(5,3)):
        self.rng,self.stack,self.pad,self.longest,self.shape = rng,stack,pad,longest,shape
        self.eps,self.rows = itertools.count(),[]
        self.envs = [SimpleNamespace(t=None, last=None) for _ in range(n_envs)]

    def step(self, e=None):
        "One step of environment `e`: a row with whole stacks, and its single frames"
        e,S = self.rng.randrange(len(self.envs)) if e is None else e,self.stack
        env = self.envs[e]
        if env.t is None:
            env.ep,env.t,env.n = next(self.eps),0,self.rng.randint(1, self.longest)
            first = frame(env.ep, 0, self.shape)
            env.stack = [first if self.pad=='repeat' or k==S-1 else np.zeros_like(first) for k in range(S)]
        new = frame(env.ep, env.t+1, self.shape)
        over,how = env.t+1==env.n,self.rng.randrange(3)
        row = dict(state=np.stack(env.stack), action=np.array([self.rng.randrange(9)]), reward=np.array([float(self.rng.randint(-9, 9))], np.float32),
                   next_state=np.stack([*env.stack[1:], new]), terminated=np.array([over and how!=1]), truncated=np.array([over and how!=0]),
                   env_id=np.array([e]), episode_id=np.array([env.ep]), step=np.array([env.t]))
        self.rows.append(SimpleNamespace(**row, over=over, before=env.last, after=None))
        if env.last is not None: self.rows[env.last].after = len(self.rows)-1
        env.last = None if over else len(self.rows)-1
        env.stack,env.t = [*env.stack[1:], new],None if over else env.t+1
        return row

names = 'state','action','reward','next_state','terminated','truncated','env_id','episode_id','step'
def single(row): return {**row, 'state':row['state'][-1], 'next_state':row['next_state'][-1]}
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
            memory.add(**(single(row) if alone else row))
            check(memory, world, f'{at}, row {i}', n_step=n_step, sequences=i%3==0)
            if margin==.05: assert len(memory)==min(cap, i+1), f'{at}: {len(memory)} rows'

pytestmark = pytest.mark.filterwarnings('ignore:.*rows are kept')
@pytest.mark.parametrize('cap', (1,2,5))
def test_table(cap): table((cap,), ('repeat','zeros'), (1,3), (2,))

@pytest.mark.long
@pytest.mark.parametrize('cap', range(1, 13))
@pytest.mark.parametrize('pad', ('repeat','zeros'))
def test_whole_table(cap, pad): table((cap,), (pad,), (1,2,4), (2,.05))

# %% Random histories
class History:
    "A memory, what it should hold, and everything that may happen to it"
    def __init__(self, seed, folder):
        self.rng,self.folder = (rng := random.Random(seed)),folder
        self.cap,stack,pad = rng.randint(3, 30),rng.choice((1,2,4)),rng.choice(('repeat','zeros'))
        self.world = World(rng, rng.randint(1, 4), stack, pad, rng.choice((1,3,8)), rng.choice(((5,3), (8,), (5,2,2))))
        self.memory = make(self.cap, stack, pad, rng.choice((None, Prioritized)), frame_margin=rng.choice((0,5,.05)))
        self.base,self.at = 0,f'seed {seed}'

    def add(self):
        row = self.world.step()
        self.memory.add(**(single(row) if self.rng.random()<.5 else row))
    def add_several(self):
        rows = [self.world.step() for _ in range(self.rng.randint(1, 2*self.cap))]
        if self.rng.random()<.5: rows = [*map(single, rows)]
        self.memory+BD({k: torch.from_numpy(np.stack([o[k] for o in rows])) for k in names})
    def one_env(self):
        e = self.rng.randrange(len(self.world.envs)) # the others wait, and resume
        for _ in range(self.rng.randint(1, 2*self.cap)): self.memory.add(**single(self.world.step(e)))
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
        acts = [self.add]*6+[self.add_several, self.one_env, self.save, self.checkpoint, self.copy, self.slice, self.mapped, self.clear]
        for i in range(n):
            act = self.rng.choice(acts)
            at = f'{self.at}, act {i}, {act.__name__}'
            act()
            self.memory.bs,n_step = 6,self.rng.randint(1, 4)
            check(self.memory, self.world, at, self.base, n_step, sequences=i%3==0)

@pytest.mark.parametrize('seed', range(40))
def test_histories(seed, tmp_path): History(seed, tmp_path).run(25)

@pytest.mark.long
@pytest.mark.parametrize('seed', range(100, 4100, 100))
def test_many_histories(seed, tmp_path):
    for i in range(100):
        (tmp_path/str(i)).mkdir()
        History(seed+i, tmp_path/str(i)).run(40)

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
