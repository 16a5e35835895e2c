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
    def __init__(self, rng, n_envs=2, stack=2, pad='repeat', longest=6, shape=(3,3)):
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
                want = getattr(rows[s], k) if s>=0 else 0*getattr(rows[0], k)
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

@pytest.mark.filterwarnings('ignore:.*rows are kept')
@pytest.mark.parametrize('cap', (1,2,3,5,12))
@pytest.mark.parametrize('pad', ('repeat','zeros'))
def test_table(cap, pad):
    "Every cursor, environments by turns, one-step episodes, stacks or frames, both samplers, n-step and sequences"
    for stack,n_envs,longest,alone,margin in itertools.product((1,2,4), (1,2,3), (1,4), (False,True), (2,.05)):
        rng = random.Random(f'{stack} {n_envs} {longest}')
        sampler,n_step = rng.choice([None, Prioritized]),rng.randint(1, 4)
        memory,world = make(cap, stack, pad, sampler, frame_margin=margin),World(rng, n_envs, stack, pad, longest)
        for i in range(2*cap+3):
            row = world.step()
            memory.add(**(single(row) if alone else row))
            at = f'cap {cap}, stack {stack}, {n_envs} envs, episodes to {longest}, {pad}, alone {alone}, margin {margin}, row {i}'
            check(memory, world, at, n_step=n_step, sequences=i%3==0)
            if margin==.05: assert len(memory)==min(cap, i+1), f'{at}: {len(memory)} rows'
