"Collecting CartPole steps, beside bare loops: one environment at random, and eight of them with an agent"
import numpy as np, torch
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

# %% Eight environments, and the same network on both sides
def net():
    from fastrl.agents.dqn import mlp
    torch.manual_seed(0)
    return mlp(4, 2, (64,64))

def agent_source(bs, n, k, mode):
    from fastrl.data.gym import FirstLast, GymLoop, Source
    src = Source([GymLoop('CartPole-v1', epsilon_greedy(), seed=0, n_envs=k, autoreset=mode), FirstLast])
    def f():
        for _ in range(n//bs): src.take(bs)
    return f

def by_hand(k):
    "Epsilon-greedy, as short as one can write it"
    model,rng = net(),np.random.default_rng(0)
    def act(states):
        with torch.no_grad(): a = model(torch.from_numpy(states)).argmax(1).numpy()
        return np.where(rng.random(k)<.1, rng.integers(2, size=k), a)
    return act

def epsilon_greedy():
    from fastrl.agents.dqn import EpsilonGreedy, QNet
    return EpsilonGreedy(QNet(net()), (.1,.1), seed=0)

def same_agent():
    agent = epsilon_greedy()
    return lambda states: agent(torch.from_numpy(states)).numpy()

def bare_vector(n, k, mode, act):
    "`next_step`: a step that only reset an environment is left out; `same_step`: last observations come from the infos"
    import gymnasium as gym
    from fastrl.data.envs import autoreset_modes
    envs = gym.vector.SyncVectorEnv([lambda: gym.make('CartPole-v1')]*k, autoreset_mode=autoreset_modes[mode])
    m = n+k
    state,nxt,action = np.empty((m,4), np.float32),np.empty((m,4), np.float32),np.empty(m, np.int64)
    reward,terminated = np.empty(m, np.float32),np.empty(m, bool)
    now,_ = envs.reset(seed=0)
    due = np.zeros(k, bool)
    def f():
        nonlocal now,due
        i = 0
        while i<n:
            a = act(now)
            obs,r,te,tr,infos = envs.step(a)
            over,after = te|tr,obs
            if mode=='same_step' and over.any():
                after = obs.copy()
                for e in np.flatnonzero(over): after[e] = infos['final_obs'][e]
            if mode=='next_step' and due.any():
                keep = ~due
                j = i+keep.sum()
                state[i:j],action[i:j],reward[i:j] = now[keep],a[keep],r[keep]
                nxt[i:j],terminated[i:j] = after[keep],te[keep]
            else:
                j = i+k
                state[i:j],action[i:j],reward[i:j],nxt[i:j],terminated[i:j] = now,a,r,after,te
            i,now,due = j,obs,over
    return f

def vectors(bs, mode, n=512, k=8, peers=None):
    return {'fastrl': agent_source(bs, n, k, mode), 'bare loop': bare_vector(n, k, mode, by_hand(k)),
            'bare loop, same agent': bare_vector(n, k, mode, same_agent())}

same = ('an `EpsilonGreedy` in training mode; the same network of two layers of 64 in a bare `SyncVectorEnv` loop, '
        'with the agent written by hand, and with the same `EpsilonGreedy`')
cases = [
    *(Case(f'Collect CartPole through `Source`, {bs} a batch', lambda bs=bs, **kw: collect(bs, **kw), goal=.8, per=1024,
           unit='steps/s', toy=dict(n=64), note=f'{bs} rows at a time, 15 columns; the bare loop stores 5') for bs in (16, 64)),
    *(Case(f'Collect 8 CartPoles with an agent, {mode.upper()}, {bs} a batch', lambda bs=bs, mode=mode, **kw: vectors(bs, mode, **kw),
           goal=1, per=512, unit='steps/s', toy=dict(n=64), beside=('bare loop, same agent',),
           note=same) for mode in ('next_step','same_step') for bs in (16, 64)),
]
