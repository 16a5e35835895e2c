"""Replay buffers of other libraries, each used as its documentation says, behind the face that `pytest --fastrl-memory` checks

One function per buffer, `make(capacity)`; one that keeps environments apart by itself also asks for `n_envs`. Nothing here mends
a buffer or works around it. Each library is imported by its own functions only, since no environment holds all of them."""
import numpy as np

names = 'state','action','reward','next_state','terminated','truncated'
BS = 8 # rows in a batch

class Peer:
    "What the adapters share: `capacity`, as the buffer rounds it"
    def __init__(self, **attrs): vars(self).update(attrs)

def turns(n_envs, add):
    "`add(steps)` once each environment has made its step: vector environments come together"
    waiting = []
    def one(**step):
        waiting.append(step)
        if len(waiting)==n_envs: add({k: np.stack([np.asarray(o[k]) for o in waiting]) for k in step}); waiting.clear()
    return one

# %% stable-baselines3
def sb3(capacity, n_envs=1, kind='ReplayBuffer', **kwargs):
    "`ReplayBuffer`, as DQN, SAC and TD3 make it"
    from gymnasium.spaces import Box, Discrete
    from stable_baselines3.common import buffers
    rb = getattr(buffers, kind)(capacity, Box(-np.inf, np.inf, (2,)), Discrete(3), device='cpu', n_envs=n_envs, **kwargs)
    def add(s): # as its `OffPolicyAlgorithm` does, which marks time limits in `infos`
        rb.add(s['state'], s['next_state'], s['action'][:,None], s['reward'], s['terminated']|s['truncated'],
               [{'TimeLimit.truncated':bool(o)} for o in s['truncated']])
    def sample():
        if not rb.size(): return {'state':np.zeros((0,2))}
        b = rb.sample(BS)
        res = dict(state=b.observations, action=b.actions, reward=b.rewards, next_state=b.next_observations, terminated=b.dones)
        if b.discounts is not None: res['n_steps'] = (b.discounts.log()/np.log(kwargs['gamma'])).round()
        return res
    return Peer(add=turns(n_envs, add), sample=sample, capacity=rb.buffer_size*n_envs, gamma=kwargs.get('gamma', 1))

def sb3_once(capacity, n_envs=1):
    "`ReplayBuffer(optimize_memory_usage=True)`: each observation once"
    return sb3(capacity, n_envs, optimize_memory_usage=True, handle_timeout_termination=False)

def sb3_nstep(capacity, n_envs=1):
    "`NStepReplayBuffer(n_steps=3)`"
    return sb3(capacity, n_envs, 'NStepReplayBuffer', n_steps=3, gamma=.9)

# %% tianshou
def tianshou(capacity, n_envs=1, kind='VectorReplayBuffer', **kwargs):
    "`VectorReplayBuffer`, as its `Collector` fills it"
    from tianshou.data import Batch, buffer
    rb = getattr(buffer.vecbuf, kind)(capacity, n_envs, **kwargs)
    def add(**step):
        one = Batch(obs=step['state'], act=step['action'], rew=step['reward'], obs_next=step['next_state'],
                    terminated=step['terminated'], truncated=step['truncated'])
        rb.add(Batch.stack([one]), buffer_ids=[step['env_id']])
    def sample():
        b,idxs = rb.sample(BS)
        return dict(zip(names, (b.obs, b.act, b.rew, b.obs_next, b.terminated, b.truncated))),idxs
    res = Peer(add=add, sample=sample, capacity=rb.maxsize)
    if 'Prioritized' in kind: res.update_td = lambda td, idxs: rb.update_weight(idxs, td[:,0])
    return res

def tianshou_once(capacity, n_envs=1):
    "`VectorReplayBuffer(ignore_obs_next=True)`: each observation once"
    return tianshou(capacity, n_envs, ignore_obs_next=True)

def tianshou_priorities(capacity, n_envs=1):
    "`PrioritizedVectorReplayBuffer`"
    return tianshou(capacity, n_envs, 'PrioritizedVectorReplayBuffer', alpha=.6, beta=.4)

def tianshou_nstep(capacity, n_envs=1):
    "`VectorReplayBuffer` and `compute_nstep_return(n_step=3)`, with the next observation as the value"
    import torch
    from tianshou.algorithm.algorithm_base import Algorithm
    from tianshou.data import VectorReplayBuffer # noqa: F401
    raise NotImplementedError

# %% cpprb
def cpprb(capacity, kind='ReplayBuffer', **kwargs):
    "`ReplayBuffer`, with `next_obs` given, and `on_episode_end` where an episode ends"
    import cpprb
    columns = dict(state=dict(shape=2), action=dict(dtype=np.int64), reward={}, next_state=dict(shape=2),
                   terminated={}, truncated={})
    if 'next_of' in kwargs: del columns['next_state']
    if 'Nstep' in kwargs: columns['done'] = {}
    rb = getattr(cpprb, kind)(capacity, columns, **kwargs)
    def add(env_id, **step):
        over = step['terminated'] or step['truncated']
        rb.add(**step, **({'done':float(over)} if 'Nstep' in kwargs else {}))
        if over: rb.on_episode_end()
    def sample():
        if not rb.get_stored_size(): return {'state':np.zeros((0,2))}
        b = rb.sample(BS)
        return {k: b[k] for k in names},b.get('indexes')
    res = Peer(add=add, sample=sample, capacity=rb.get_buffer_size())
    if 'Prioritized' in kind: res.update_td = lambda td, idxs: rb.update_priorities(idxs, td[:,0])
    return res

def cpprb_once(capacity):
    "`ReplayBuffer(next_of='state')`: each observation once"
    return cpprb(capacity, next_of='state')

def cpprb_priorities(capacity):
    "`PrioritizedReplayBuffer`"
    return cpprb(capacity, 'PrioritizedReplayBuffer')

def cpprb_checked(capacity):
    "`PrioritizedReplayBuffer(check_for_update=True)`"
    return cpprb(capacity, 'PrioritizedReplayBuffer', check_for_update=True)
