"One update: where its time goes, and beside stable-baselines3's DQN and SAC"
from collections import Counter
from contextlib import contextmanager
from time import perf_counter_ns
import gymnasium as gym, numpy as np, torch
from . import stores
from .measure import Case

class Spent:
    "The time of each wrapped function, without that of wrapped ones that it calls"
    def __init__(self): self.ns,self.inner = Counter(),0
    def wrap(self, owner, name, part):
        f = getattr(owner, name)
        def timed(*args, **kwargs):
            outer,self.inner,start = self.inner,0,perf_counter_ns()
            try: return f(*args, **kwargs)
            finally:
                took = perf_counter_ns()-start
                self.ns[part] += took-self.inner
                self.inner = outer+took
        setattr(owner, name, timed)
        return f
    @contextmanager
    def watching(self, *what):
        were = [(owner, name, self.wrap(owner, name, part)) for owner,name,part in what]
        try: yield
        finally:
            for owner,name,f in were: setattr(owner, name, f)

class CartPoleLike(gym.Env):
    "Numbers of a given size; the updates of a network do not ask what they mean"
    def __init__(self, n=4, action=gym.spaces.Discrete(2)):
        self.observation_space,self.action_space,self.rng,self.t = gym.spaces.Box(-1, 1, (n,), np.float32),action,np.random.default_rng(0),0
    def see(self): return self.rng.uniform(-1, 1, self.observation_space.shape).astype(np.float32)
    def reset(self, *, seed=None, options=None): return self.see(),{}
    def step(self, action):
        self.t += 1
        return self.see(), 1., self.t%100==0, False, {}

class HumanoidLike(CartPoleLike):
    def __init__(self): super().__init__(376, gym.spaces.Box(-.4, .4, (17,), np.float32))

def fitted(learn):
    "`learn` after a few batches, ready for more updates"
    with learn.no_bar(), learn.no_logging(): learn.fit(1)
    learn.training = True # validation was left out, but ended it
    learn.model.train()
    learn.xb = learn.experience_replay.experience_replay.sample()[0],
    return learn

def further(learn, more):
    "The updates that `more` makes beside the first one of a batch"
    if more not in learn.cbs: learn.add_cb(more) # a `DQN` takes it away after a fit
    def run():
        learn.experience_replay.drew = True # as the first one leaves it
        more.after_batch()
    weight = next(learn.model.parameters())
    before = weight.detach().clone()
    run()
    assert not torch.equal(weight, before), 'nothing was updated'
    return run

def dqn(fast, n, target_every=128, double=False, bs=64):
    "`n` updates with the settings of the whole training"
    from fastai.callback.training import GradientClip
    from fastrl.agents.dqn import dqn_learner, mlp
    from fastrl.data.gym import NoValidation
    learn = fitted(dqn_learner(CartPoleLike, mlp(4, 2, (256,256)), n=4096, train_every=2048, updates_per_batch=n+1, bs=bs, max_sz=100_000, lr=1e-5, gamma=.99, n_step=1, double=double,
        beta=1., target_every=target_every, fast=fast, eps=(1.,1.), eval_every=10**9, seed=0, cbs=[GradientClip(10.), NoValidation]))
    return learn,further(learn, learn.dqn.extra)

def sb3_dqn(n):
    from stable_baselines3 import DQN
    model = DQN('MlpPolicy', CartPoleLike(), learning_rate=1e-5, batch_size=64, buffer_size=100_000, learning_starts=1000, train_freq=2048, gradient_steps=1, max_grad_norm=10.,
                policy_kwargs=dict(net_arch=[256,256]), seed=0, device='cpu').learn(4096)
    return lambda: model.train(n, 64)

def sac(n, hidden=256, bs=256):
    "`n` updates of the soft actor-critic of nbs/tutorials/sac.ipynb, as large as Humanoid needs it"
    from functools import partial
    from .sac import page_names
    from fastrl.memory.updates import TightUpdates
    names = page_names()
    names['net'].__defaults__ = hidden,
    class TightSAC(names['SAC']):
        def learn_from(self, rows, k, step):
            for j in range(k):
                batch = rows[bs*j:bs*(j+1)]
                self.learn.xb,self.learn.pred = (batch,),self.learn.model(batch)
                self.after_pred()
                step(names['sac_loss'](self.learn.pred, *self.learn.yb))
                self.after_step()
            return torch.zeros(k*bs, 1)
    TightSAC.__name__ = 'SAC'
    model,Learner = names['ActorCritic'](376, 17, .4),names['Learner']
    source = names['Source']([names['GymLoop'](HumanoidLike, agent=names['Motor'](model), seed=0)])
    agent = TightSAC(entropy=-17.)
    learn = fitted(Learner(source.dataloaders(n=1024, bs=512, episodes=0), model, loss_func=names['sac_loss'], lr=3e-4, opt_func=partial(names['OptimWrapper'], opt=torch.optim.Adam, fused=True, foreach=False),
                           cbs=[names['ExperienceReplayCallback'](bs=bs, max_sz=20_000, warmup_sz=500, seed=0), agent, more := TightUpdates(n+1, agent), names['NoValidation']]))
    return learn,further(learn, more)

def sb3_sac(n):
    from stable_baselines3 import SAC
    model = SAC('MlpPolicy', HumanoidLike(), learning_rate=3e-4, batch_size=256, buffer_size=20_000, learning_starts=500, train_freq=512, gradient_steps=1, policy_kwargs=dict(net_arch=[256,256]), seed=0, device='cpu').learn(1024)
    return lambda: model.train(n, 256)

def peer(f, n):
    try: return f(n)
    except ImportError as e: return f'not installed ({e.name})'

def dqn_updates(n=127, peers=True):
    return {'fastrl': dqn(True, n)[1], **({stores.SB3.name: peer(sb3_dqn, n)} if peers else {}), 'each update with all callbacks': dqn(False, n)[1]}
def sac_updates(n=16, peers=True): return {'fastrl': sac(n)[1], **({stores.SB3.name: peer(sb3_sac, n)} if peers else {})}

booked = [0] # nanoseconds that the clock of these cases shows

def shares(n=127, fast=True):
    "{part: what books its time}; the first runs all parts"
    from fastrl.memory import updates
    learn,run = dqn(fast, n)
    cb,agent,spent = learn.experience_replay,learn.dqn,Spent()
    parts = [(cb, 'draw', 'draw'), (cb, 'update_td', 'TD errors'), (agent, 'targets', 'targets'), (learn.model, 'forward', 'forward'), (learn, 'loss_func', 'loss'),
             (torch.Tensor, 'backward', 'backward'), *([(updates, 'clip_norm', 'clipping'), (updates, 'adam', 'optimizer')] if fast else
               [(torch.nn.utils, 'clip_grad_norm_', 'clipping'), (learn.opt.opt, 'step', 'optimizer')])]
    def whole():
        spent.ns.clear()
        with spent.watching(*parts):
            start = perf_counter_ns()
            run()
            took = perf_counter_ns()-start
        spent.ns['all else'] = took-sum(spent.ns.values())
        booked[0] += took
    def part(name):
        def f(): booked[0] += spent.ns[name]
        return f
    return {'all': whole, **{name: part(name) for name in [*dict.fromkeys(p for *_,p in parts), 'all else']}}

cases = [Case('An update of a DQN: 256×256, 64 rows', dqn_updates, goal=1.6, per=127, turns=15, beside=('each update with all callbacks',), toy=dict(n=3, peers=False)),
         *(Case(f'Where the time of such an update goes, {how}', lambda fast=fast, n=127: shares(n, fast), per=127, turns=15, clock=lambda: booked[0], parts=True, toy=dict(n=3))
           for how,fast in (('in a tight loop', True), ('with all callbacks', False))),
         Case('An update of a soft actor-critic: 376 observations, 17 actions, 256×256, 256 rows', sac_updates, per=16, turns=9, toy=dict(n=2, peers=False),
              note='the actor and both critics of `nbs/tutorials/sac.ipynb`, in a tight loop')]
