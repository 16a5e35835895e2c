"A whole training, beside stable-baselines3's DQN with the settings that it publishes for CartPole"
import torch
from . import parts, stores
from .measure import Case

shared = dict(lr=2.3e-3, bs=64, max_sz=100_000, train_every=256, updates=128, hidden=(256,256), gamma=.99, last_eps=.04, clip=10.)

def fastrl(steps, fast=True, env='CartPole-v1', seed=0):
    from fastai.callback.training import GradientClip
    from fastrl.agents.dqn import dqn_learner, mlp
    from fastrl.data.gym import NoValidation
    s = shared
    def net():
        torch.manual_seed(seed)
        return mlp(4, 2, s['hidden'])
    def train():
        learn = dqn_learner(env, net(), n=steps, train_every=s['train_every'], updates_per_batch=s['updates'], bs=s['bs'], max_sz=s['max_sz'],
            lr=s['lr'], gamma=s['gamma'], n_step=1, double=False, beta=1., target_every=s['updates'], fast=fast, eps=(1.,s['last_eps']), eps_steps=int(.16*steps),
            eval_every=10**9, seed=seed, cbs=[GradientClip(s['clip']), NoValidation])
        with learn.no_bar(), learn.no_logging(): learn.fit(1)
    return train

def sb3(steps, env='CartPole-v1', seed=0):
    try: from stable_baselines3 import DQN
    except ImportError as e: return f'not installed ({e.name})'
    s = shared
    def train(): # its target network is renewed every 10 steps of the environment: once between trainings
        DQN('MlpPolicy', env() if callable(env) else env, learning_rate=s['lr'], batch_size=s['bs'], buffer_size=s['max_sz'], learning_starts=1000, gamma=s['gamma'], target_update_interval=10,
            train_freq=s['train_every'], gradient_steps=s['updates'], exploration_fraction=.16, exploration_final_eps=s['last_eps'], max_grad_norm=s['clip'],
            policy_kwargs=dict(net_arch=list(s['hidden'])), seed=seed, device='cpu').learn(steps)
    return train

def trainings(steps=50_000, peers=True):
    return {'fastrl': fastrl(steps), **({stores.SB3.name: sb3(steps)} if peers else {}), 'each update with all callbacks': fastrl(steps, fast=False)}

def in_learner(hidden, live, n=150, event='before_batch'):
    "A fit of `n` batches with plain targets"
    from fastai.basics import Callback, Learner
    from torch.nn.functional import mse_loss
    from fastrl.agents.dqn import EpsilonGreedy, QNet, mlp
    from fastrl.data.gym import GymLoop, NoValidation, Source
    from fastrl.memory.experience_replay import ExperienceReplayCallback
    class Target(Callback):
        def after_pred(self):
            b = self.xb[0]
            with torch.no_grad(): best = self.model(dict(state=b['next_state'])).max(1, keepdim=True)[0]
            self.learn.yb = (b['reward']+.99*~b['terminated']*best,)
            self.learn.pred = self.pred.gather(1, b['action'])
    def train():
        model = QNet(mlp(4, 2, (hidden,)*2))
        source = Source(GymLoop('CartPole-v1', agent=EpsilonGreedy(model, (1.,1.), seed=0), seed=0))
        replay = ExperienceReplayCallback(64, 10_000, 64, event=event, seed=0)
        learn = Learner(source.dataloaders(n*live, live, 0), model, loss_func=mse_loss, cbs=[replay, Target, NoValidation])
        with learn.no_bar(), learn.no_logging(): learn.fit(1)
    return train

def predictions(hidden, live, n=150): return {'one prediction': in_learner(hidden, live, n), 'two predictions': in_learner(hidden, live, n, 'after_pred')}

cases = [*parts.cases,
         Case('Train a DQN on CartPole for 50,000 steps, 25,000 updates of 256×256', trainings, goal=1.6, beside=('each update with all callbacks',), per=50_000, unit='steps/s', turns=3, toy=dict(steps=2000, peers=False),
              note='whole trainings, with the published settings of stable-baselines3: the same network, batch, ratio of updates, loss and clipping; no evaluations'),
         *(Case(f'150 batches in a fastai Learner: a network of {hidden}×{hidden}, {live} live and 64 drawn rows', lambda hidden=hidden, live=live, n=150: predictions(hidden, live, n), per=150, turns=7,
                toy=dict(n=5), note="`event='before_batch'` beside `'after_pred'`, which predicts the live batch, too") for hidden in (64,1024) for live in (16,64))]
