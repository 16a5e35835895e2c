"Rows whose goals become ones that their episode reached: observations of 25 numbers and goals of 3, like those of Fetch"
import numpy as np
from fastrl.memory.replay import ExperienceReplay
from fastrl.memory.sample import HER
from .frames import opened
from .measure import Case

sizes = dict(observation=25, achieved_goal=3, desired_goal=3)

def reward(achieved, goal, *_): return -(np.linalg.norm(np.asarray(achieved)-np.asarray(goal), axis=-1)>.05).astype(np.float32)

def steps(n, length):
    "Observation, next observation, and does the episode end?"
    rng = np.random.default_rng(0)
    def observed(): return {k: rng.normal(size=size).astype(np.float32) for k,size in sizes.items()}
    before = observed()
    for i in range(n):
        after = observed()
        yield before,after,(i+1)%length==0
        before = after

class Fastrl:
    name,package = 'fastrl','fastrl'
    def __init__(self, n, length, bs):
        self.er = ExperienceReplay(bs, max_sz=n, warmup_sz=1, sampler=HER(reward=reward), seed=0)
        for s,a,over in steps(n, length):
            self.er.add(state=s, action=np.zeros(4, np.float32), reward=0., next_state=a, terminated=over, truncated=False, env_id=0)
    def sample(self): return self.er.sample()[0]

class SB3:
    name,package = 'SB3','stable-baselines3'
    def __init__(self, n, length, bs):
        import gymnasium as gym
        from gymnasium.spaces import Box, Dict
        from stable_baselines3 import HerReplayBuffer
        from stable_baselines3.common.vec_env import DummyVecEnv
        class Env(gym.Env):
            observation_space = Dict({k: Box(-np.inf, np.inf, (size,), np.float32) for k,size in sizes.items()})
            action_space = Box(-1, 1, (4,), np.float32)
            def compute_reward(self, *args): return reward(*args)
        self.bs,action = bs,np.zeros((1,4), np.float32)
        self.rb = HerReplayBuffer(n, Env.observation_space, Env.action_space, DummyVecEnv([Env]), device='cpu')
        for s,a,over in steps(n, length):
            self.rb.add(*({k: v[None] for k,v in o.items()} for o in (s, a)), action, np.zeros(1), np.array([over]), [{}])
    def sample(self): return self.rb.sample(self.bs)

class Tianshou:
    name,package = 'tianshou','tianshou'
    def __init__(self, n, length, bs):
        from tianshou.data import Batch, HERReplayBuffer
        self.rb,self.bs = HERReplayBuffer(n, compute_reward_fn=reward, horizon=length, future_k=5),bs
        for s,a,over in steps(n, length):
            self.rb.add(Batch(obs=s, act=np.zeros(4, np.float32), rew=0., terminated=over, truncated=False, obs_next=a))
    def sample(self): return self.rb.sample(self.bs)[0].to_torch()

def drawing(length, n=10**5, bs=256, peers=(SB3, Tianshou)):
    "{name: what draws a batch}, or why there is none"
    return opened([Fastrl, *peers], n, bs, lambda store, _: store.sample, length)

toy = dict(n=200, peers=())
cases = [Case(f'Hindsight: sample 256 of 10⁵ rows, episodes of {length:,} steps', lambda length=length, **kw: drawing(length, **kw), goal=1, toy=toy,
              note='four of five with another goal, and its reward, which a function computes in NumPy') for length in (50, 1000)]
