"Prioritized samples with their update; what folding steps and drawing sequences cost"
import numpy as np, torch
from fastrl.memory.replay import ExperienceReplay
from fastrl.memory.sample import Prioritized
from . import stores
from .measure import Case
from .rows import make_rows
from .turns import Apart, torchrl_python

class Fastrl(stores.Fastrl):
    "Row numbers and serial numbers go back with the errors, as the callback gives them"
    def __init__(self, rows, capacity, bs, **kwargs):
        self.er = ExperienceReplay(bs, max_sz=capacity, warmup_sz=1, **kwargs)
        for i in range(0, len(rows['reward']), 4096): self.er + stores.fields(rows, slice(i, i+4096))
    def turn(self, td):
        batch,idxs = self.er.sample()
        self.er.update_td(td, idxs, batch['serial'])
        return batch

class Cpprb(stores.Cpprb):
    def __init__(self, rows, capacity, bs):
        from cpprb import PrioritizedReplayBuffer
        self.rb,self.bs = PrioritizedReplayBuffer(capacity, {k: dict(shape=a.shape[1:] or 1, dtype=a.dtype) for k,a in rows.items()}, alpha=.6),bs
        for i in range(0, len(rows['reward']), 4096): self.rb.add(**stores.fields(rows, slice(i, i+4096)))
    def turn(self, td):
        b = self.rb.sample(self.bs, beta=.4)
        self.rb.update_priorities(b['indexes'], td[:,0].abs().numpy())
        return {k: torch.from_numpy(a) for k,a in b.items()}

class Tianshou(stores.Tianshou):
    def __init__(self, rows, capacity, bs):
        from tianshou.data import PrioritizedReplayBuffer
        super().__init__(rows, capacity, bs)
        rb = PrioritizedReplayBuffer(capacity, alpha=.6, beta=.4)
        rb.update(self.rb)
        self.rb = rb
    def turn(self, td):
        b,idxs = self.rb.sample(self.bs)
        self.rb.update_weight(idxs, td[:,0])
        return {**stores.tensors((b.obs, b.act, b.rew, b.obs_next, b.terminated)), 'weight':torch.from_numpy(b.weight)}

class Torchrl(stores.Torchrl):
    def __init__(self, rows, capacity, bs):
        from tensordict import TensorDict
        from torchrl.data import LazyTensorStorage, TensorDictPrioritizedReplayBuffer
        self.TensorDict,self.rb = TensorDict,TensorDictPrioritizedReplayBuffer(alpha=.6, beta=.4, storage=LazyTensorStorage(capacity, device=self.device), batch_size=bs)
        for i in range(0, len(rows['reward']), 4096): self.at_once(stores.fields(rows, slice(i, i+4096)))()
    def turn(self, td):
        b = self.rb.sample()
        b['td_error'] = td[:,0].abs()
        self.rb.update_tensordict_priority(b)
        return b

class Fastrl_(Fastrl):
    def __init__(self, rows, capacity, bs): super().__init__(rows, capacity, bs, sampler=Prioritized(alpha=.6, beta=.4, seed=0))

def prioritized(n=10**6, bs=256, peers=(Cpprb, Tianshou, Torchrl)):
    td = torch.rand(bs, 1)
    def do(s):
        stores.check(s.turn(td), bs)
        return lambda: s.turn(td)
    res = stores.open_all([Fastrl_, *peers], make_rows('small', n), n, bs, do)
    if Torchrl in peers and not callable(res['torchrl']) and torchrl_python.exists():
        res['torchrl'] = Apart(str(torchrl_python)).begin('scaling', 'prioritized', ('torchrl', n))
    return res

def ended(n, length=200):
    "CartPole-like rows of one environment, with the flags that tell its episodes apart"
    rows = make_rows('small', n)
    rows['terminated'] = np.arange(1, n+1)%length==0
    return {**rows, 'truncated':np.zeros(n, bool), 'env_id':np.zeros(n, np.int64)}

class SB3Steps(stores.SB3):
    "`NStepReplayBuffer`, which folds the steps that it draws, as ours does"
    def __init__(self, rows, capacity, bs):
        from stable_baselines3.common.buffers import NStepReplayBuffer
        super().__init__({**rows, 'done':rows['terminated']}, capacity, bs)
        was,self.rb = self.rb,NStepReplayBuffer(capacity, self.rb.observation_space, self.rb.action_space, device='cpu', n_steps=3, gamma=.99)
        for k in ('observations','next_observations','actions','rewards','dones','pos','full'): setattr(self.rb, k, getattr(was, k))

class CpprbSteps(stores.Cpprb):
    "`Nstep`, which folds steps as they are added"
    def __init__(self, rows, capacity, bs):
        from cpprb import ReplayBuffer
        rows = {**{k: rows[k] for k in ('state','action','reward','next_state')}, 'done':rows['terminated']}
        kinds = {k: dict(shape=a.shape[1:] or 1, dtype=a.dtype) for k,a in rows.items()}
        self.rb,self.bs = ReplayBuffer(capacity, kinds, Nstep=dict(size=3, gamma=.99, rew='reward', next='next_state')),bs
        for i in range(0, len(rows['reward']), 200): # an episode
            self.rb.add(**{k: a[i:i+200].copy() for k,a in rows.items()}) # it writes the sums into what it is given
            self.rb.on_episode_end()

def folded(n=10**6, bs=256, n_step=3, peers=(CpprbSteps, SB3Steps)):
    rows = ended(n)
    one,some = (Fastrl(rows, n, bs, seed=0, n_step=o).er.sample for o in (None, n_step))
    return {'fastrl': some, 'single steps': one, **stores.open_all(peers, rows, n, bs, lambda s: s.sample)}

class TorchrlSlices(stores.Torchrl):
    def __init__(self, rows, capacity, bs):
        from tensordict import TensorDict
        from torchrl.data import LazyTensorStorage, ReplayBuffer, SliceSampler
        over = rows['terminated']
        rows = {**rows, 'episode':np.cumsum(np.roll(over, 1))}
        self.TensorDict = TensorDict
        self.rb = ReplayBuffer(storage=LazyTensorStorage(capacity), batch_size=bs, sampler=SliceSampler(num_slices=16, traj_key='episode', cache_values=True))
        for i in range(0, len(rows['reward']), 4096): self.at_once(stores.fields(rows, slice(i, i+4096)))()

class TorchrlPrioritizedSlices(stores.Torchrl):
    def __init__(self, rows, capacity, bs):
        from tensordict import TensorDict
        from torchrl.data import LazyTensorStorage, PrioritizedSliceSampler, TensorDictReplayBuffer
        rows = {**rows, 'episode':np.cumsum(np.roll(rows['terminated'], 1))}
        self.TensorDict = TensorDict
        sampler = PrioritizedSliceSampler(max_capacity=capacity, alpha=.6, beta=.4, num_slices=16, traj_key='episode', cache_values=True)
        self.rb = TensorDictReplayBuffer(storage=LazyTensorStorage(capacity), batch_size=bs, sampler=sampler)
        for i in range(0, len(rows['reward']), 4096): self.at_once(stores.fields(rows, slice(i, i+4096)))()
    def turn(self, td):
        b = self.rb.sample()
        b['td_error'] = td
        self.rb.update_tensordict_priority(b)
        return b

def by_priority(rows, n, B, T, burn_in):
    "Draw sequences by priority, and tell the TD errors of all steps but the first `burn_in`"
    er,td = Fastrl(rows, n, B, sampler=Prioritized(alpha=.6, beta=.4, seed=0)).er,torch.rand(B, T)
    def turn():
        batch,idxs = er.sample_sequences(B, T, burn_in=burn_in)
        er.update_td(td, idxs[:,burn_in:], batch['serial'][:,burn_in:])
        return batch
    assert turn()['state'].shape==(B, burn_in+T, 4)
    return turn

def prioritized_sequences(n=10**6, B=16, T=64, burn_in=16, peers=(TorchrlPrioritizedSlices,)):
    rows,td = ended(n),torch.rand(B*(burn_in+T))
    res = {'fastrl': by_priority(rows, n, B, T, burn_in), **stores.open_all(peers, rows, n, B*(burn_in+T), lambda s: lambda: s.turn(td))}
    if peers and not callable(res['torchrl']) and torchrl_python.exists():
        res['torchrl'] = Apart(str(torchrl_python)).begin('priority', 'slices_by_priority', (n, B*(burn_in+T)))
    return res

def slices_by_priority(n, rows):
    "The same of torchrl alone, in a process with the torch that its wheel wants"
    s,td = TorchrlPrioritizedSlices(ended(n), n, rows),torch.rand(rows)
    return lambda: s.turn(td)

def against_uniform(n=10**6, B=16, T=64, burn_in=16):
    rows = ended(n)
    er = Fastrl(rows, n, B, seed=0).er
    return {'fastrl': by_priority(rows, n, B, T, burn_in), 'evenly': lambda: er.sample_sequences(B, burn_in+T)}

def against_fewer(n=10**7, few=10**6, B=16, T=64, burn_in=16):
    return {'fastrl': by_priority(ended(n), n, B, T, burn_in), 'at 10⁶': by_priority(ended(few), few, B, T, burn_in)}

def sequences(n=10**6, B=16, T=64, peers=(TorchrlSlices,)):
    rows = ended(n)
    er = Fastrl(rows, n, B, seed=0).er
    assert er.sample_sequences(B, T)[0]['state'].shape==(B, T, 4)
    return {'fastrl': lambda: er.sample_sequences(B, T), **stores.open_all(peers, rows, n, B*T, lambda s: s.sample)}

cases = [
    Case('Prioritized: sample 256 of 10⁶ CartPole rows and update them', prioritized, goal=2, toy=dict(n=64, bs=8, peers=()),
         note='with weights; ours drops updates that come too late; torchrl in a process of its own, with the torch that its wheel wants'),
    Case('Sample 256 of 10⁶ rows with 3-step returns, against single steps', folded, goal=1.5, growth=True,
         beside=('cpprb','SB3'), toy=dict(n=500, bs=8, peers=()),
         note='how much longer it takes; cpprb has folded the steps when they were added, SB3 folds those that it draws'),
    Case('Sequences: 16 of 64 steps from 10⁶ CartPole rows', sequences, goal=5, toy=dict(n=1000, B=2, T=4, peers=()),
         note='episodes of 200 steps; torchrl draws slices with its cache on'),
    Case('Sequences by priority: 16 of 64 steps with 16 of burn-in from 10⁶ CartPole rows, and their update', prioritized_sequences, goal=5,
         toy=dict(n=1000, B=2, T=4, burn_in=2, peers=()), note="torchrl's `PrioritizedSliceSampler` draws 16 slices of 80 steps by the priority of their first one"),
    Case('The same, against 16 sequences of 80 steps drawn evenly', against_uniform, goal=2.2, growth=True,
         toy=dict(n=1000, B=2, T=4, burn_in=2), note='how much longer it takes'),
    Case('The same of 10⁷ rows, against 10⁶', against_fewer, goal=1.5, growth=True,
         toy=dict(n=2000, few=1000, B=2, T=4, burn_in=2), note='one level more of each tree'),
]
