"""Replay buffers of other libraries, each used as its documentation says, behind the face that `pytest --fastrl-memory` checks

One function per buffer, `make(capacity)`; one that keeps environments apart by itself also asks for `n_envs`. Nothing here mends
a buffer or works around it. Each library is imported by its own functions only, since no environment holds all of them."""
from functools import cache
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

# %% fastrl
def fastrl(capacity, **kwargs):
    "`ExperienceReplay`"
    from fastrl.memory.replay import ExperienceReplay
    return ExperienceReplay(bs=BS, max_sz=capacity, warmup_sz=1, seed=0, **kwargs)

def fastrl_priorities(capacity):
    "`ExperienceReplay(sampler=Prioritized(), n_step=3)`"
    from fastrl.memory.sample import Prioritized
    return fastrl(capacity, sampler=Prioritized(), n_step=3, gamma=.9)

# %% stable-baselines3
def sb3(capacity, n_envs=1, kind='ReplayBuffer', **kwargs):
    "`ReplayBuffer`: as DQN, SAC and TD3 make it"
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
    return sb3(max(capacity, 2*n_envs), n_envs, optimize_memory_usage=True, handle_timeout_termination=False) # it draws from two on

def sb3_nstep(capacity, n_envs=1):
    "`NStepReplayBuffer(n_steps=3)`"
    return sb3(capacity, n_envs, 'NStepReplayBuffer', n_steps=3, gamma=.9)

# %% tianshou
def tianshou(capacity, n_envs=1, kind='VectorReplayBuffer', **kwargs):
    "`VectorReplayBuffer`: as its `Collector` fills it"
    from tianshou.data import Batch, buffer
    rb = getattr(buffer.vecbuf, kind)(capacity, n_envs, **kwargs)
    def add(**step):
        one = Batch(obs=step['state'], act=step['action'], rew=step['reward'], obs_next=step['next_state'],
                    terminated=step['terminated'], truncated=step['truncated'])
        rb.add(Batch.stack([one]), buffer_ids=[step['env_id']])
    def sample():
        b,idxs = rb.sample(BS)
        return dict(zip(names, (b.obs, b.act, b.rew, b.obs_next, b.terminated, b.truncated))),idxs
    res = Peer(add=add, sample=sample, capacity=rb.maxsize, rb=rb)
    if 'Prioritized' in kind: res.update_td = lambda td, idxs: rb.update_weight(idxs, td[:,0])
    return res

def tianshou_once(capacity, n_envs=1):
    "`VectorReplayBuffer(ignore_obs_next=True)`: each observation once"
    return tianshou(capacity, n_envs, ignore_obs_next=True)

def tianshou_priorities(capacity, n_envs=1):
    "`PrioritizedVectorReplayBuffer`"
    return tianshou(capacity, n_envs, 'PrioritizedVectorReplayBuffer', alpha=.6, beta=.4)

def tianshou_nstep(capacity, n_envs=1, n=3):
    "`VectorReplayBuffer`, 3-step returns: by `next` and `compute_nstep_return(n_step=3)`, as its DQN does"
    import torch
    from tianshou.algorithm.algorithm_base import Algorithm
    one = tianshou(capacity, n_envs)
    def sample():
        at = [one.rb.sample_indices(BS)]
        while len(at)<n: at.append(one.rb.next(at[-1]))
        b,last = one.rb[at[0]],one.rb[at[-1]]
        b = Algorithm.compute_nstep_return(b, one.rb, at[0], lambda rb, i: torch.zeros(len(i)), .9, n)
        rows = b.obs, b.act, b.returns, last.obs_next, last.terminated, last.truncated
        return dict(zip(names, rows), n_steps=1+sum(x!=y for x,y in zip(at, at[1:]))),at[0]
    return Peer(add=one.add, sample=sample, capacity=one.capacity, gamma=.9)

# %% cpprb
def cpprb(capacity, kind='ReplayBuffer', **kwargs):
    "`ReplayBuffer`: with `next_obs` given, and `on_episode_end` where an episode ends"
    import cpprb
    columns = dict(state=dict(shape=2), action=dict(dtype=np.int64), reward={}, next_state=dict(shape=2),
                   terminated={}, truncated={})
    if 'next_of' in kwargs: del columns['next_state']
    rb = getattr(cpprb, kind)(capacity, columns, **kwargs)
    def add(env_id, **step):
        over = step['terminated'] or step['truncated']
        rb.add(**step)
        if over: rb.on_episode_end()
    def sample():
        b = rb.sample(BS)
        return {k: b[k] for k in names},b.get('indexes')
    res = Peer(add=add, sample=sample, capacity=rb.get_buffer_size(), rb=rb)
    if 'Prioritized' in kind: res.update_td = lambda td, idxs: rb.update_priorities(idxs, td[:,0])
    return res

def cpprb_once(capacity, n_envs=1):
    "`ReplayBuffer(next_of='state')`: each observation once; one for each environment, as rows must be consecutive"
    all_of = [cpprb(max(1, capacity//n_envs), next_of='state') for _ in range(n_envs)]
    def sample():
        batches = [b for b,_ in (o.sample() for o in all_of if o.rb.get_stored_size())]
        return {k: np.concatenate([b[k] for b in batches]) for k in names}
    return Peer(add=lambda **step: all_of[step['env_id']].add(**step), sample=sample, capacity=sum(o.capacity for o in all_of))

def cpprb_priorities(capacity):
    "`PrioritizedReplayBuffer`"
    return cpprb(capacity, 'PrioritizedReplayBuffer')

def cpprb_checked(capacity):
    "`PrioritizedReplayBuffer(check_for_update=True)`"
    return cpprb(capacity, 'PrioritizedReplayBuffer', check_for_update=True)

# %% torchrl
def torchrl(capacity, n_envs=1, kind='TensorDictReplayBuffer', generator=False, **kwargs):
    "`TensorDictReplayBuffer`: with `SliceSampler`, which is told if steps of several environments are interleaved"
    import logging, torch
    from tensordict import TensorDict
    from torchrl import data
    logging.getLogger('torchrl').setLevel(logging.WARNING)
    at,how = {e: dict(episode=e, step_count=0) for e in range(n_envs)},dict(fragmented=True) if n_envs>1 else {}
    rb = getattr(data, kind)(storage=data.LazyTensorStorage(capacity), batch_size=BS, **kwargs)
    if generator: rb.set_rng(torch.Generator().manual_seed(0))
    def add(**step):
        t = {k: torch.as_tensor(v) for k,v in step.items()}
        nxt = dict(state=t['next_state'], reward=t['reward'], done=t['terminated']|t['truncated'])
        nxt.update({k: t[k] for k in ('terminated','truncated')})
        place = at[step['env_id']] if n_envs>1 else {}
        rb.add(TensorDict(dict(state=t['state'], action=t['action'], next=TensorDict(nxt, []), **{k: torch.tensor(v) for k,v in place.items()}), []))
        if place and nxt['done']: place.update(episode=place['episode']+n_envs, step_count=0)
        elif place: place['step_count'] += 1
    def columns(b): return {k: b[k] if k in ('state','action') else b['next', k.removeprefix('next_')] for k in names}
    def sample():
        b = rb.sample()
        return columns(b),b['index']
    def sample_sequences(bs, T):
        rb.set_sampler(data.SliceSampler(slice_len=T, **how)) # episodes end by the default, ('next','done')
        b = columns(rb.sample(bs*T))
        rb.set_sampler(data.RandomSampler())
        return {k: v.reshape(-1, T, *v.shape[1:]) for k,v in b.items()}
    res = Peer(add=add, sample=sample, capacity=capacity)
    if 'Prioritized' in kind: res.update_td = lambda td, idxs: rb.update_priority(idxs, torch.as_tensor(td[:,0]))
    else: res.sample_sequences = sample_sequences
    return res

def torchrl_generator(capacity, n_envs=1):
    "`TensorDictReplayBuffer` after `set_rng`"
    return torchrl(capacity, n_envs, generator=True)

def torchrl_priorities(capacity):
    "`TensorDictPrioritizedReplayBuffer`"
    return torchrl(capacity, kind='TensorDictPrioritizedReplayBuffer', alpha=.6, beta=.4)

# %% flashbax
@cache
def _compiled(kind, **kwargs):
    "Its pure functions, which belong into `jit`"
    import flashbax, jax
    buffer = getattr(flashbax, f'make_{kind}_buffer')(**kwargs)
    return {k: jax.jit(getattr(buffer, k)) for k in ('add','sample','can_sample','set_priorities') if hasattr(buffer, k)} | {'init':buffer.init}

class Flashbax(Peer):
    "A buffer's functions with a state and a key; `shaped` gives a step the axes that `add` wants"
    def __init__(self, row, kind, shaped=lambda o: o, **kwargs):
        import jax
        self.row,self.f,self.shaped,self.state,self.key = row,_compiled(kind, **kwargs),shaped,None,jax.random.PRNGKey(0)
        super().__init__(capacity=kwargs.get('max_length') or kwargs['max_length_time_axis'])
    def add(self, **step):
        import jax.numpy as jnp
        step = {k: jnp.asarray(v) for k,v in step.items() if k in self.row}
        if self.state is None: self.state = self.f['init'](self.example(step))
        self.state = self.f['add'](self.state, {k: self.shaped(v) for k,v in step.items()})
    def example(self, step): return step
    def draw(self):
        import jax
        if self.state is None or not self.f['can_sample'](self.state): return None
        self.key,key = jax.random.split(self.key)
        return self.f['sample'](self.state, key)
    def sample(self):
        got = self.draw()
        return {'state':np.zeros((0,2))} if got is None else (dict(got.experience),getattr(got, 'indices', None))

def flashbax(capacity):
    "`make_item_buffer`: whole transitions"
    return Flashbax(names, 'item', max_length=capacity, min_length=1, sample_batch_size=min(BS, capacity))

def flashbax_priorities(capacity):
    "`make_prioritised_item_buffer`"
    res = Flashbax(names, 'prioritised_item', max_length=capacity, min_length=1, sample_batch_size=min(BS, capacity))
    def update_td(td, idxs): res.state = res.f['set_priorities'](res.state, idxs, td[:,0])
    res.update_td = update_td
    return res

class TimeSteps(Flashbax):
    "Steps without their next state, of several environments side by side"
    def __init__(self, *args, **kwargs): super().__init__([o for o in names if o!='next_state'], *args, **kwargs)
    def example(self, step): return {k: v[0] for k,v in step.items()}

def flashbax_pairs(capacity, n_envs=1):
    "`make_flat_buffer`: time steps, drawn as pairs"
    rb = TimeSteps('flat', max_length=max(capacity, 3)*n_envs, min_length=2, sample_batch_size=2, add_batch_size=n_envs)
    def sample():
        got = rb.draw()
        return {'state':np.zeros((0,2))} if got is None else dict(got.experience.first, next_state=got.experience.second['state'])
    return Peer(add=turns(n_envs, lambda step: rb.add(**step)), sample=sample, capacity=rb.capacity)

def flashbax_sequences(capacity, n_envs=1):
    "`make_trajectory_buffer`, one for each length"
    all_of = {T: TimeSteps('trajectory', lambda o: o[:,None], add_batch_size=n_envs, sample_batch_size=4, period=1, sample_sequence_length=T,
                           min_length_time_axis=T, max_length_time_axis=max(capacity, 4)) for T in (1,2,3)}
    def add(step):
        for o in all_of.values(): o.add(**step)
    def sample():
        got = all_of[1].draw()
        return {'state':np.zeros((0,2))} if got is None else {k: v[:,0] for k,v in got.experience.items()}
    def sample_sequences(bs, T):
        got = all_of[T].draw()
        return {'state':np.zeros((0,T,2))} if got is None else got.experience
    return Peer(add=turns(n_envs, add), sample=sample, sample_sequences=sample_sequences, capacity=all_of[1].capacity*n_envs)

# %% reverb
def reverb(capacity, priorities=False):
    "`Table` of whole transitions: `Uniform` draws, `Fifo` removes"
    import reverb
    while _servers: _servers.pop().stop()
    sampler = reverb.selectors.Prioritized(.6) if priorities else reverb.selectors.Uniform()
    table = reverb.Table('rows', sampler, reverb.selectors.Fifo(), capacity, reverb.rate_limiters.MinSize(1))
    _servers.append(reverb.Server([table]))
    client = _servers[0].localhost_client()
    def add(**step): client.insert([np.asarray(step[k]) for k in names], {'rows':1.})
    def sample():
        rows = [o[0] for o in client.sample('rows', BS)]
        return {k: np.stack([o.data[i] for o in rows]) for i,k in enumerate(names)},[o.info.key for o in rows]
    res = Peer(add=add, sample=sample, capacity=capacity)
    if priorities: res.update_td = lambda td, keys: client.mutate_priorities('rows', dict(zip(keys, map(float, td[:,0]))))
    return res

_servers = []

def reverb_priorities(capacity):
    "`Table` with the selector `Prioritized`"
    return reverb(capacity, True)
