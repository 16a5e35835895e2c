"Collecting CartPole steps at random, beside a bare loop"
import numpy as np
from .measure import Case

def source(bs, n):
    from fastrl.data.gym import FirstLast, GymLoop, Source
    src = Source([GymLoop('CartPole-v1', seed=0), FirstLast])
    def f():
        for _ in range(n//bs): src.take(bs)
    return f

def bare(n):
    import gymnasium as gym
    env = gym.make('CartPole-v1')
    env.action_space.seed(0)
    state,nxt,action = np.empty((n,4), np.float32),np.empty((n,4), np.float32),np.empty(n, np.int64)
    reward,terminated = np.empty(n, np.float32),np.empty(n, bool)
    now,_ = env.reset(seed=0)
    def f():
        nonlocal now
        for i in range(n):
            a = env.action_space.sample()
            obs,r,te,tr,_ = env.step(a)
            state[i],action[i],reward[i],nxt[i],terminated[i] = now,a,r,obs,te
            now = env.reset()[0] if te or tr else obs
    return f

def collect(bs, n=1024, peers=None): return {'fastrl': source(bs, n), 'bare loop': bare(n)}

cases = [Case(f'Collect CartPole through `Source`, {bs} a batch', lambda bs=bs, **kw: collect(bs, **kw), goal=.5, per=1024, unit='steps/s',
              toy=dict(n=1024), note=f'{bs} rows at a time, 15 columns; the bare loop stores 5') for bs in (16, 64)]
