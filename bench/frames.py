"""Stacks of frames that are stored once: 4×84×84, state and next state, episodes of 500 steps

Each peer is used in the way that it has for this. `python -m bench.frames [ROWS [STEPS]]` fills a memory of a million rows (or of ROWS),
whose episodes have 20 steps (or STEPS), and prints what the process holds in memory."""
import sys
import numpy as np, torch
from fastrl.memory.place import nbytes_when_full
from fastrl.memory.replay import ExperienceReplay
from . import stores
from .measure import Case
from .stores import tensors

S,length = 4,500
def schema(stack=S): return dict(state=((stack,84,84), torch.uint8), action=((1,), torch.int64), reward=((1,), torch.float32),
    next_state=((stack,84,84), torch.uint8), terminated=((1,), torch.bool), truncated=((1,), torch.bool), td_error=((1,), torch.float32))

class Game:
    "Frames whose numbers stand in their first bytes, so that a batch shows whether its stacks are right"
    def __init__(self, n, seed=0):
        self.n,self.some = n,np.random.default_rng(seed).integers(0, 255, (256,84,84), np.uint8)
    def frame(self, e, t):
        res = self.some[(e*31+t)%256].copy()
        res.view(np.uint32)[0,:2] = e,t
        return res
    def steps(self):
        "Stack, next stack, and does the episode end?"
        for i in range(self.n):
            e,t = divmod(i, length)
            if not t: stack = [self.frame(e, 0)]*S
            after = [*stack[1:], self.frame(e, t+1)]
            yield np.stack(stack),np.stack(after),t+1==length
            stack = after

def check(batch, bs):
    "Each stack is of one episode, one frame after another, and the next state is one further"
    s,n = (np.ascontiguousarray(batch[k]).reshape(bs, S, -1)[...,:8].view(np.uint32) for k in ('state','next_state'))
    assert (s[:,:1,0]==s[...,0]).all() and (np.diff(s[...,1].astype(int))<=1).all(), 'a stack is of several episodes'
    assert (s[:,1:]==n[:,:-1]).all(), 'a next state does not continue its state'

class Fastrl:
    name,package,kw = 'fastrl','fastrl',dict(frame_stack=S)
    def __init__(self, n, bs):
        self.er = ExperienceReplay(bs, max_sz=n, warmup_sz=1, seed=0, **self.kw)
        for o in Game(n).steps(): self.add(*o)
    def add(self, s, a, over): self.er.add(state=s, action=np.int64(0), reward=1., next_state=a, terminated=over, truncated=False)
    def sample(self): return self.er.sample()[0]
    def nbytes(self): return nbytes_when_full(10**6, schema(), self.kw.get('frame_stack'))/10**6

class Whole(Fastrl):
    name,kw = 'whole stacks',{}

class SB3:
    name,package = 'SB3','stable-baselines3'
    def __init__(self, n, bs):
        from gymnasium.spaces import Box, Discrete
        from stable_baselines3.common.buffers import ReplayBuffer
        self.bs = bs
        self.rb = ReplayBuffer(n, Box(0, 255, (S,84,84), np.uint8), Discrete(2), device='cpu', optimize_memory_usage=True, handle_timeout_termination=False)
        for o in Game(n).steps(): self.add(*o)
    def add(self, s, a, over): self.rb.add(s[None], a[None], np.zeros(1), np.zeros(1), np.array([over]), [{}])
    def sample(self):
        b = self.rb.sample(self.bs)
        return dict(state=b.observations, action=b.actions, reward=b.rewards, next_state=b.next_observations, done=b.dones)
    def nbytes(self): return self.rb.observations[:1].nbytes+8+4+4+4

class Tianshou:
    name,package = 'tianshou','tianshou'
    def __init__(self, n, bs):
        from tianshou.data import Batch, ReplayBuffer
        self.step,self.rb,self.bs = Batch,ReplayBuffer(n, stack_num=S, ignore_obs_next=True, save_only_last_obs=True),bs
        for o in Game(n).steps(): self.add(*o)
    def add(self, s, a, over): self.rb.add(self.step(obs=s, act=0, rew=1., terminated=over, truncated=False, obs_next=a))
    def sample(self):
        b,_ = self.rb.sample(self.bs)
        return tensors((b.obs, b.act, b.rew, b.obs_next, b.terminated))
    def nbytes(self): return 84*84+8+8+3

class Cpprb:
    name,package = 'cpprb','cpprb'
    def __init__(self, n, bs):
        from cpprb import ReplayBuffer
        form = dict(shape=(84,84,S), dtype=np.uint8)
        self.rb,self.bs = ReplayBuffer(n, dict(state=form, action={}, reward={}, done={}), next_of='state', stack_compress='state'),bs
        for o in Game(n).steps(): self.add(*o)
    def add(self, s, a, over):
        self.rb.add(state=s.transpose(1, 2, 0), action=0, reward=1., next_state=a.transpose(1, 2, 0), done=over)
        if over: self.rb.on_episode_end()
    def sample(self):
        cols = {k: torch.from_numpy(v) for k,v in self.rb.sample(self.bs).items()}
        return {k: v.movedim(-1, 1) if v.ndim==4 else v for k,v in cols.items()}
    def nbytes(self): return 84*84+4+4+4

class Torchrl:
    "Single frames, and slices of five of them: with its `CatFrames` a batch took 0.4 s here, and each frame was stored twice"
    name,package = 'torchrl','torchrl'
    def __init__(self, n, bs):
        import logging
        from tensordict import TensorDict
        from torchrl.data import LazyTensorStorage, ReplayBuffer, SliceSampler
        logging.getLogger('torchrl').setLevel(logging.WARNING)
        self.bs,self.step,self.episode,k = bs,TensorDict,n,S+1
        self.rb = ReplayBuffer(storage=LazyTensorStorage(n), sampler=SliceSampler(slice_len=k, traj_key='episode', cache_values=True), batch_size=bs*k)
        steps = [(s[-1], i//length) for i,(s,*_) in enumerate(Game(n).steps())]
        for i in range(0, n, 1000):
            frames,episodes = zip(*steps[i:i+1000])
            self.rb.extend(TensorDict(dict(frame=torch.from_numpy(np.stack(frames)), episode=torch.tensor(episodes)), [len(frames)]))
    def add(self, s, a, over):
        self.rb.add(self.step(dict(frame=torch.from_numpy(s[-1]), episode=torch.tensor(self.episode))))
        self.episode += over
    def sample(self):
        frames = self.rb.sample()['frame'].view(self.bs, S+1, 84, 84)
        return dict(state=frames[:,:S], next_state=frames[:,1:])
    def nbytes(self): return 84*84+8

peers = [Cpprb, Tianshou, SB3, Torchrl]

def drawing(store, bs):
    check(store.sample(), bs)
    return store.sample

def opened(kinds, n, bs, then=drawing, *more):
    "{name: what draws a batch, or what else `then` makes of a store}, or why there is none"
    res = {}
    for K in kinds:
        try: res[K.name] = then(K(n, *more, bs), bs)
        except ModuleNotFoundError as e: res[K.name] = f'not installed ({e.name})'
        except Exception as e: res[K.name] = stores.reason(e)
    return res

def against_peers(n=3*10**4, peers=peers): return opened([Fastrl, *peers], n, 32)
def adding(n=3*10**4, peers=peers):
    "One row after the other, of one episode"
    steps = [*Game(length, 1).steps()]
    def then(store, _): return lambda: [store.add(*o) for o in steps]
    return opened([Fastrl, *peers], n, 32, then)
def against_whole(n=3*10**4): return opened([Fastrl, Whole], n, 32)

def observed_once(d, n=10**5, bs=256, steps=200):
    "Batches of rows of `d` numbers, `next_state` included: each observation stored once, and in every row that has it"
    rng = np.random.default_rng(0)
    walk,over = rng.random((n+1,d), np.float32),(np.arange(n)%steps==steps-1)[:,None]
    rows = dict(state=walk[:-1], action=rng.random((n,17), np.float32), reward=rng.random((n,1), np.float32), next_state=walk[1:],
                terminated=over, truncated=over&False)
    def drawn(stack):
        er = ExperienceReplay(bs, max_sz=n, warmup_sz=1, frame_stack=stack, seed=0)
        er + rows
        return lambda: er.sample()
    return {'fastrl':drawn(0), 'in each row':drawn(None)}

per_row = '; '.join(f'{k} {v:,} bytes' for k,v in dict(fastrl=7465, **{'whole stacks':56472}, cpprb=7068, tianshou=7075, SB3=28244, torchrl=7064).items())
cases = [
    Case('Frames stored once: sample 32 of 3·10⁴ rows of 4×84×84', against_peers, goal=1, toy=dict(n=64, peers=[]),
         note=f'each in its own way: `frame_stack=4`, `stack_compress` and `next_of`, `stack_num` with `ignore_obs_next`, '
              f'`optimize_memory_usage`, slices of five frames; a row takes: {per_row}; what the peers get wrong is in frames_wrong.txt'),
    Case('Frames stored once: add one row of 4×84×84', adding, per=length, toy=dict(n=64, peers=[]),
         note='as stacks, of which ours and the peers keep the frames that are new; torchrl gets single frames'),
    Case('Frames stored once, against whole stacks', against_whole, goal=.75, growth=True, toy=dict(n=64),
         note='how much longer it takes; both with state and next state'),
    *(Case(f'Observations of {d} numbers stored once: sample 256 of 10⁵ rows', lambda d=d, **kw: observed_once(d, **kw), growth=True,
           toy=dict(n=64), note='`frame_stack=0`, against rows that hold both' if d==376 else '') for d in (376,17)),
]

def resident():
    "Bytes of memory that this process holds"
    with open('/proc/self/smaps_rollup') as f: return next(int(o.split()[1])*1024 for o in f if o.startswith('Rss'))

def fill(n=10**6, steps=20, at_once=500):
    "Fill a memory of `n` rows, and some rows more; how many it holds, what it takes, and what `nbytes_when_full` says"
    some = np.random.default_rng(0).integers(0, 255, (256,84,84), np.uint8)
    def filled(n):
        er = ExperienceReplay(32, max_sz=n, warmup_sz=1, frame_stack=S)
        for i in range(0, n+n//10, at_once):
            e,k = np.divmod(np.arange(i, i+at_once), steps)
            over = k[:,None]==steps-1
            er + dict(state=some[(e*31+k)%256], action=np.zeros((at_once,1), np.int64), reward=np.ones((at_once,1), np.float32),
                      next_state=some[(e*31+k+1)%256], terminated=over, truncated=over&False)
        er.sample()
        return er
    small = filled(2*at_once) # what is imported and compiled on the way is not the memory
    before,er = resident(),filled(n)
    return len(er),resident()-before,nbytes_when_full(n, schema(), S)

def main(n=10**6, *more):
    held,took,said = fill(n, *more)
    print(f'{held:,} of {n:,} rows held; {took/1e9:.3f} GB resident, nbytes_when_full says {said/1e9:.3f} GB ({said/took-1:+.2%}); '
          f'whole stacks would take {nbytes_when_full(n, schema())/1e9:.1f} GB')

if __name__=='__main__': main(*map(int, sys.argv[1:]))
