"One step of several CartPoles at once, as a loop over a vector of environments stores it"
import numpy as np
from . import stores
from .measure import Case
from .rows import make_rows

def steps_of(n_envs, n, length, seed=0):
    "What a loop has at each step; episodes end after `length` steps on average, half of them at a time limit"
    rng,now,res = np.random.default_rng(seed),np.zeros((n_envs,4), np.float32),[]
    for _ in range(n):
        after,over = rng.random((n_envs,4), np.float32),rng.random(n_envs)<1/length
        cut = over&(rng.random(n_envs)<.5)
        res.append(dict(obs=now, next_obs=after, action=rng.integers(2, size=n_envs), reward=np.ones(n_envs), terminated=over&~cut,
                        truncated=cut, infos=[{'TimeLimit.truncated': True} if o else {} for o in cut]))
        now = np.where(over[:,None], rng.random((n_envs,4), np.float32), after)
    return res

class Fastrl:
    name = 'fastrl'
    def __init__(self, steps, capacity, n_envs):
        from fastrl.memory.replay import ExperienceReplay
        self.er = ExperienceReplay(64, max_sz=capacity, warmup_sz=1, seed=0)
    def add(self, o):
        self.er.add_vector(o['obs'], o['action'], o['next_obs'], o['reward'], o['terminated'], o['truncated'], {}, autoreset='disabled')

class SB3:
    name,package = 'SB3','stable-baselines3'
    def __init__(self, steps, capacity, n_envs):
        from gymnasium.spaces import Box, Discrete
        from stable_baselines3.common.buffers import ReplayBuffer
        self.rb = ReplayBuffer(capacity, Box(-9, 9, (4,)), Discrete(2), device='cpu', n_envs=n_envs)
    def add(self, o): self.rb.add(o['obs'], o['next_obs'], o['action'], o['reward'], o['terminated']|o['truncated'], o['infos'])

class Tianshou:
    name,package = 'tianshou','tianshou'
    def __init__(self, steps, capacity, n_envs):
        from tianshou.data import Batch, VectorReplayBuffer
        self.Batch,self.rb,self.ids = Batch,VectorReplayBuffer(capacity, n_envs),np.arange(n_envs)
    def add(self, o):
        self.rb.add(self.Batch(obs=o['obs'], act=o['action'], rew=o['reward'], terminated=o['terminated'], truncated=o['truncated'],
                               obs_next=o['next_obs'], info=self.Batch()), self.ids)

class Cpprb:
    name,package = 'cpprb','cpprb'
    def __init__(self, steps, capacity, n_envs):
        from cpprb import ReplayBuffer
        self.rb = ReplayBuffer(capacity, dict(obs=dict(shape=4), next_obs=dict(shape=4), act=dict(dtype=np.int64), rew={}, done=dict(dtype=bool)))
    def add(self, o): self.rb.add(obs=o['obs'], next_obs=o['next_obs'], act=o['action'], rew=o['reward'], done=o['terminated'])

def stepping(n_envs, length, n=500, peers=(Cpprb,Tianshou,SB3)):
    steps = steps_of(n_envs, n, length)
    def do(s):
        def f():
            for o in steps: s.add(o)
        f() # tianshou's first row decides what it stores
        return f
    return stores.open_all([Fastrl, *peers], steps, 100_000, n_envs, do)

note = ('`add_vector(…, autoreset="disabled")` checks that each environment goes on from where its last step led, and notes '
        'which one a row is of; so does tianshou; SB3 notes time limits; cpprb stores rows of which it knows no more')
cases = [Case(f'A step of {n_envs} CartPoles, episodes of {length} steps', lambda n_envs=n_envs, length=length, **kw: stepping(n_envs, length, **kw),
              per=500, toy=dict(n=20, peers=()), note=note if (n_envs,length)==(8,500) else '') for n_envs in (8,100) for length in (500,20)]
