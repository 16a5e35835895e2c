"A learner with a memory among fastai's own habits: half precision, another machine, several updates, what is not a fit"
import copy, pickle, subprocess, sys, threading, warnings
from contextlib import suppress
from functools import partial
import gymnasium as gym, numpy as np, pytest, torch
from fastai.basics import (Callback, CancelBackwardException, CancelBatchException, CancelEpochException, CancelFitException,
                           CancelStepException, CancelTrainException, DataLoaders, Learner, nn)
from fastai.callback.all import (ActivationStats, CollectDataCallback, CSVLogger, LRFinder, MixedPrecision, ModelToHalf,
                                 NonNativeMixedPrecision, ParamScheduler, SchedLin, TerminateOnNaNCallback)
from fastcore.test import expect_fail, test_eq as eq
from gymnasium import spaces
from torch.nn.functional import mse_loss
from fastrl.agents.dqn import DQN, EpsilonGreedy, QNet, ShowColumns, dqn_learner
from fastrl.core import BD, test_same as same
from fastrl.data.gym import GymLoop, LoopCallback, NoValidation, Source
from fastrl.data.learner import NEpisodes, Reward, RowsDL, given_rows, fake_gym_learner, pictures_in, play_episodes, returns_in
from fastrl.memory.experience_replay import ExperienceReplay, ExperienceReplayCallback, Prioritized, Resume
from fastrl.memory.updates import MoreUpdates

class Walk(gym.Env):
    "Five places in a row; a step to the right from the last one ends the walk with reward 1"
    observation_space,action_space = spaces.Box(0, 1, (5,), np.float32),spaces.Discrete(2)
    metadata = dict(render_modes=['rgb_array'])
    def __init__(self, render_mode=None): self.render_mode = render_mode
    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.at,self.t = int(self.np_random.integers(5)),0
        return np.eye(5, dtype=np.float32)[self.at],{}
    def step(self, action):
        over,self.t = self.at==4 and action==1, self.t+1
        self.at = min(max(self.at+2*int(action)-1, 0), 4)
        return np.eye(5, dtype=np.float32)[self.at], float(over), over, self.t==20, {}
    def render(self):
        a = np.zeros((4,20,3), np.uint8)
        a[:,4*self.at:4*self.at+4] = 255
        return a
gym.register('TestWalk-v0', Walk)

class Target(Callback):
    run_valid = False
    def after_pred(self):
        b = self.xb[0]
        with torch.no_grad(): best = self.model(dict(state=b['next_state'])).max(1, keepdim=True)[0]
        self.learn.yb = (b['reward']+.9*~b['terminated']*best.float(),)
        self.learn.pred = self.pred.gather(1, b['action'])
    def after_loss(self): self.learn.experience_replay.update_td((self.yb[0]-self.pred).detach())

def plain(cbs=(), updates=1, event='after_pred', episodes=2, n=200, **kwargs):
    torch.manual_seed(0)
    model = QNet(nn.Linear(5, 2))
    source = Source(GymLoop('TestWalk-v0', agent=EpsilonGreedy(model, seed=0), seed=0))
    replay = ExperienceReplayCallback(bs=16, max_sz=300, warmup_sz=30, seed=0, event=event, **kwargs)
    return Learner(source.dataloaders(n, 10, episodes), model, loss_func=mse_loss, lr=.1,
                   cbs=[replay, Target(), MoreUpdates(updates), *cbs])
def dqn(cbs=(), updates=1, n=200, **kwargs):
    torch.manual_seed(0)
    return dqn_learner('TestWalk-v0', nn.Linear(5, 2), n=n, train_every=10, updates_per_batch=updates, bs=16, max_sz=300, warmup_sz=30, gamma=.9,
                       eval_every=1000, eval_episodes=2, seed=0, cbs=list(cbs), **kwargs)
def fit(learn, *args, **kwargs):
    with learn.no_bar(), learn.no_logging(): learn.fit(*args or (1,), **kwargs)
    return learn
learners = pytest.mark.parametrize('make', [plain, partial(plain, updates=3), partial(plain, updates=3, event='before_batch'), dqn, partial(dqn, updates=3)],
                                   ids=['plain','plain-3','plain-3-once','dqn','dqn-3'])

# %% Half precision
class InHalf(MixedPrecision):
    "As fastai's, which asks for a GPU, in the half precision that a CPU has, too"
    def before_fit(self): self.autocast,self.scales,self.td = torch.autocast(self.dls.device.type, torch.bfloat16),[],set()
    def before_backward(self): self.td.add(self.loss_grad.dtype)
    def before_step(self): pass
    def after_step(self): pass
    def after_fit(self): pass
class Precision(Callback):
    "In which precision the network predicts the drawn batch"
    order = -7.5
    def before_fit(self): self.seen = set()
    def after_pred(self): self.seen.add(self.pred.dtype)

@learners
@pytest.mark.parametrize('half', [InHalf, *[MixedPrecision]*torch.cuda.is_available()])
def test_half_precision(make, half):
    "The drawn batch is predicted in half precision, TD errors are float32, and afterwards autocast is off, though the first batches were cancelled"
    learn = make(cbs=[half(), Precision()], episodes=0) if 'dqn' not in str(make) else make(cbs=[half(), Precision(), NoValidation()])
    before = learn.model.net.weight.detach().clone()
    fit(learn)
    assert not torch.is_autocast_enabled(learn.dls.device.type)
    eq(learn.precision.seen, {torch.bfloat16 if half is InHalf else torch.float16})
    if half is InHalf: eq(learn.in_half.td, {torch.float32})
    td,after = learn.experience_replay.experience_replay['td_error'],learn.model.net.weight
    assert td.dtype==torch.float32 and td.abs().sum()>0 and after.isfinite().all() and not torch.equal(after, before)

class DividesTheLoss(Callback):
    "As `NonNativeMixedPrecision`, after batches too that the cold memory has cancelled"
    def after_batch(self):
        if self.training: self.learn.loss_grad /= 2

def divides(): return [DividesTheLoss()]
def halves(): return [ModelToHalf(),NonNativeMixedPrecision()]

@pytest.mark.parametrize('updates', [1, 3])
@pytest.mark.parametrize('half', [divides, *[halves]*torch.cuda.is_available()])
def test_half_of_the_model(half, updates):
    "fastai's own half precision, which asks for a GPU and halves the model: with `event='before_batch'` it trains"
    learn = fit(plain(cbs=half(), updates=updates, event='before_batch', episodes=0))
    assert learn.model.net.weight.dtype==torch.float32 and learn.model.net.weight.isfinite().all()

# %% Several updates
class Hear(Callback):
    run_valid = False
    def before_fit(self): self.said = []
for o in ('before_batch','after_pred','after_loss','before_backward','after_backward','before_step','after_step','after_batch'):
    setattr(Hear, o, lambda self, o=o: self.said.append(o))

@pytest.mark.parametrize('make', [plain, dqn])
def test_hears_each_update(make):
    "Each update tells a callback the same events in the same order, from the batch that warms the memory on"
    said = [fit(make(cbs=[Hear()], updates=k)).hear.said for k in (1,3)]
    warm = 2 # batches of 10 steps, of 20; the third one makes the memory warm
    one = ['before_batch','after_pred','after_loss','before_backward','after_backward','before_step','after_step','after_batch']
    cold = ['before_batch','after_batch']
    eq(said, [cold*warm+one*18, cold*warm+one*3*18])

class Same(gym.Env):
    "Always the same row: it does not matter which ones are drawn, nor when they came"
    observation_space,action_space = spaces.Box(0, 2, (1,), np.float32),spaces.Discrete(1)
    def reset(self, seed=None, options=None): return np.ones(1, np.float32),{}
    def step(self, action): return np.ones(1, np.float32), 1., False, False, {}

class Throw(Callback):
    "Raise `what` at some of the times that `event` comes"
    run_valid = False
    def __init__(self, what, event, at): self.what,self.at,self.n = what,at,0; setattr(self, event, self.count)
    def count(self):
        self.n += 1
        if self.n in self.at: raise self.what
@pytest.mark.parametrize('what,event', [(None,'after_pred'), (CancelBatchException,'after_pred'), (CancelBatchException,'before_step'),
    (CancelBackwardException,'before_backward'), (CancelStepException,'before_step'), (CancelTrainException,'after_loss'),
    (CancelEpochException,'after_step'), (CancelFitException,'before_step')])
@pytest.mark.parametrize('at', [(2,), (4,), (5,9,10)])
@pytest.mark.halved
def test_targets_and_counts(what, event, at):
    "Three updates a batch leave network, target network, counts and optimizer as one update in each of three times as many batches"
    def learnt(updates, batches):
        cbs = [NoValidation(), *([Throw(what, event, at)] if what else [])]
        torch.manual_seed(0)
        learn = dqn_learner(Same, nn.Linear(1, 1), n=batches*4, train_every=4, updates_per_batch=updates, bs=8, max_sz=400, warmup_sz=1, gamma=.5, n_step=1,
                            target_every=4, lr=.1, seed=0, cbs=cbs)
        fit(learn)
        state = learn.opt.state_dict()['state']
        return [p.item() for o in (learn.model, learn.dqn.target) for p in o.parameters()],learn.dqn.updates,[o['step'].item() for o in state.values()]
    eq(learnt(3, 6), learnt(1, 18))

@pytest.mark.parametrize('updates', [1, 3])
def test_schedules(updates):
    "One step of a schedule per batch of new rows, as the page says"
    learn = plain(updates=updates, episodes=0)
    with learn.no_bar(), learn.no_logging():
        learn.fit_one_cycle(2, .1)
        eq(len(learn.recorder.hps['lr']), 40)
        learn.fit_flat_cos(2, .1)
        eq(len(learn.recorder.hps['lr']), 40)
        learn.fit_sgdr(2, 1, .1)
        eq(len(learn.recorder.hps['lr']), 60)
        learn.lr_find(num_it=30, stop_div=False, show_plot=False)
    eq(len(learn.recorder.losses), 30)

class Break(Callback):
    "A NaN in the weights at the `at`-th step"
    def __init__(self, at): self.at,self.n = at,0
    def after_step(self):
        self.n += 1
        if self.n==self.at: next(self.model.parameters()).data.fill_(float('nan'))
@pytest.mark.parametrize('updates,at', [(1,5), (3,5), (3,6), (3,7)])
def test_nan_ends_at_once(updates, at):
    "The update after the one that breaks the network is the last"
    learn = fit(plain(cbs=[Break(at), TerminateOnNaNCallback()], updates=updates))
    eq(learn.break_.n if hasattr(learn, 'break_') else getattr(learn, 'break').n, at+1)

def test_stats_of_each_update():
    "`ActivationStats` and `CollectDataCallback` see all updates"
    learn = fit(plain(cbs=[ActivationStats(), CollectDataCallback()], updates=3, episodes=0))
    eq((len(learn.activation_stats.stats), len(learn.collect_data.data)), (2+3*18,)*2)

# %% What is not a fit
@learners
def test_validate(make):
    "Plays, and leaves memory, counts, network and training environment alone"
    learn = fit(make())
    er,before = learn.experience_replay.experience_replay,[p.clone() for p in learn.model.parameters()]
    was = er.ring.total,learn.dls.train.dataset.cbs[0]._episodes,learn.dls.train.dataset.agent.steps
    with learn.no_bar(): record = learn.validate()
    assert learn.dls.valid.returns.mean() in record
    eq((er.ring.total,learn.dls.train.dataset.cbs[0]._episodes,learn.dls.train.dataset.agent.steps), was)
    for p,q in zip(before, learn.model.parameters()): same(p, q.data)

@learners
def test_same_training_with_validation(make):
    "Validation changes nothing of what is learnt"
    a,b = fit(make(), 2),fit(make(cbs=[NoValidation()]), 2)
    for p,q in zip(a.model.parameters(), b.model.parameters()): same(p.data, q.data)

def test_resume_is_for_fits(tmp_path):
    "Validation and predictions neither load nor save a checkpoint"
    learn = plain(cbs=[Resume(tmp_path)])
    with learn.no_bar():
        learn.validate()
        learn.predict(np.zeros(5, np.float32))
    assert not (tmp_path/'manifest.json').exists()
    fit(learn)
    assert (tmp_path/'manifest.json').exists()

@pytest.mark.parametrize('items,n', [([np.zeros(5, np.float32)]*3, 3), (torch.zeros(4, 5), 4), (BD(state=torch.zeros(6, 5)), 6), (dict(state=torch.zeros(1, 5)), 1)])
def test_given_rows(items, n):
    "Rows and observations, in every form"
    learn = plain()
    with learn.no_bar(): values,_ = learn.get_preds(dl=learn.dls.test_dl(items, bs=2))
    eq(values.shape, (n,2))
    same(values, learn.model(given_rows(items).to(learn.dls.device)).detach().cpu())

def test_nested_observations():
    "Of dicts, and of single numbers"
    same(given_rows([dict(a=np.ones(2, np.float32), b=3)]*2), BD(state=dict(a=torch.ones(2,2), b=torch.full((2,1), 3))))
    same(given_rows([1, 2]), BD(state=torch.tensor([[1],[2]])))

def test_same_episodes():
    "With a seed validation plays the same ones each time, and others than training"
    learn = plain()
    states = [torch.cat([b['state'] for b, in learn.dls.valid]) for _ in range(2)]
    same(*states)
    film, = learn.dls.valid.one_batch()
    eq(film['image'].shape[1:], (4,20,3))
    learn.dls.valid.seed = 5
    eq([len(b['state']) for b, in learn.dls.valid] and learn.dls.valid.n, 2)

@pytest.mark.parametrize('steps', [1, 3])
def test_returns_of_folded_rows(steps):
    "The return is that of the steps, also where rows fold several of them and a callback scales rewards"
    from fastrl.data.gym import FirstLast
    class Scale(LoopCallback):
        def after_block(self): self.source.block['reward'] = self.source.block['reward']*100
    class Right(Walk): pass
    loop = GymLoop(Right, agent=lambda s: torch.ones(len(s), dtype=torch.long), seed=0, steps_count=steps, steps_delta=steps)
    rows,returns = play_episodes(Source([loop, FirstLast(.9), Scale]), 4, seed=0)
    eq(returns.tolist(), [1.]*4)
    for o in rows: assert o['all_done'].sum()==1 and o['reward'].max()>1

def test_no_environment_again():
    "A ready environment that gymnasium cannot make again: nothing to validate with, and the fit goes through"
    source = Source(GymLoop(Walk(), seed=0))
    dls = source.dataloaders(40, 10)
    eq((len(dls.valid), list(dls.valid)), (0, []))
    with expect_fail(ValueError, contains='no environments to play in'): dls.valid.one_batch()
    model = QNet(nn.Linear(5, 2))
    learn = fit(Learner(dls, model, loss_func=mse_loss, cbs=[ExperienceReplayCallback(bs=4, warmup_sz=10), Target()]))
    eq(learn.recorder.metric_names, ['epoch','train_loss','valid_loss','time'])

def test_rows_alone():
    "Given rows need no source"
    eq([b['state'].shape for b, in RowsDL(torch.zeros(5, 5), bs=2)], [(2,5),(2,5),(1,5)])

def test_last_rows_dropped():
    "Callbacks that drop the ends of episodes, or all rows, do not keep validation playing"
    seen = []
    class Drop(LoopCallback):
        def __init__(self, all_of=False): self.all_of = all_of
        def after_block(self):
            b = self.source.block
            seen.append(b.bs())
            self.source.block = b[~b['done'][:,0]] if not self.all_of else b[b['step'][:,0]==1]
    loop = GymLoop('TestWalk-v0', agent=lambda s: torch.ones(len(s), dtype=torch.long), seed=0)
    for drop in (Drop(), Drop(True)):
        seen.clear()
        rows,returns = play_episodes(Source([loop, drop]), 3, seed=0)
        eq(returns.tolist(), [1.]*3)
        assert sum(seen)<32*3*40 and not any(o is not None and o['done'].any() and o.bs()>1 for o in rows)

def test_updates_may_change():
    "`updates_per_batch` of a `DQN` counts from the next fit on"
    learn = fit(dqn(updates=3))
    done = learn.dqn.updates
    learn.dqn.updates_per_batch = 1
    eq((done, fit(learn).dqn.updates-done), (3*18, 20))

def test_peek_loses_nothing():
    "`show_batch`, `one_batch` and `summary` look at rows that training gets afterwards"
    learn = plain()
    first, = learn.dls.one_batch()
    with learn.no_bar(): learn.summary()
    same(BD(next(iter(learn.dls.train))[0]), BD(first))

def test_half_of_the_live_batch():
    "fastai's own half precision halves the batch before the model: it is refused where rows are swapped after that"
    with expect_fail(ValueError, contains="`event='before_batch'`"): fit(plain(cbs=[NonNativeMixedPrecision()]))
    plain(cbs=[NonNativeMixedPrecision()], event='before_batch').experience_replay.before_fit()

# %% Schedules
def test_scheduled():
    "`beta`, `n_step` and `epsilon` follow a schedule, with fastai's optimizers and with torch's"
    lines = dict(beta=SchedLin(.4, 1.), n_step=SchedLin(1, 3), epsilon=SchedLin(1., .1))
    for learn in (plain(sampler=Prioritized(seed=0)), dqn(prioritized=True)):
        fit(learn, 2, cbs=ParamScheduler(lines))
        er,hps = learn.experience_replay.experience_replay,learn.recorder.hps
        eq((er.sampler.beta, er.n_step, learn.dls.train.dataset.agent.epsilon), (hps['beta'][-1], 3, hps['epsilon'][-1]))
        eq(len(hps['beta']), 40)
        learn.opt.state_dict()

class Seen(Callback):
    "What is scheduled, as each batch comes; stops after the `at`-th one"
    order,run_valid,once_per_batch = 99,False,True # after `Resume`
    def __init__(self, at=None): self.at,self.had = at,[]
    def before_batch(self):
        er = self.learn.experience_replay.experience_replay
        self.had.append((er.sampler.beta, er.n_step, self.dls.train.dataset.agent.epsilon))
    def after_batch(self):
        if len(self.had)==self.at: raise RuntimeError('killed')
    after_cancel_batch = after_batch

def test_scheduled_and_resumed(tmp_path):
    "A training that is stopped and resumed has the settings in each batch that it would have had"
    lines = dict(beta=SchedLin(.4, 1.), n_step=SchedLin(1, 3.1), epsilon=SchedLin(1., .1))
    def run(*cbs, at=None):
        learn = dqn(prioritized=True)
        with suppress(RuntimeError): fit(learn, 2, cbs=[ParamScheduler(lines), seen := Seen(at), *cbs])
        return seen.had
    whole = run()
    for at in (12,20,30): # an epoch has 20
        parts = [run(Resume(tmp_path/str(at), every=2), at=n) for n in (at,None)]
        eq([len(o) for o in parts], [at,len(whole)-at])
        np.testing.assert_allclose(parts[0]+parts[1], whole, rtol=1e-9)

@pytest.mark.parametrize('event,epoch', [('before_validate',0), ('before_validate',2), ('after_batch',1)])
def test_killed_before_it_validated(tmp_path, event, epoch):
    "An epoch whose last batch is in the last checkpoint is validated all the same, and trained no further"
    def kill(self):
        if self.epoch==epoch: raise RuntimeError('killed')
    def run(folder, *cbs):
        learn = dqn()
        with suppress(RuntimeError): fit(learn, 3, cbs=[Resume(folder, every=20), *cbs]) # an epoch has 20 batches
        return learn
    whole,first = run(tmp_path/'whole'),run(tmp_path/'killed', type('Kill', (Callback,), {'order':80, event:kill})())
    learn = run(tmp_path/'killed')
    steps = [o[0] for o in learn.evaluate.history]
    eq((steps, learn.score.steps, learn.dqn.updates), ([200,400,600][-len(steps):], 600, whole.dqn.updates))
    eq(len(learn.recorder.values), 3-len(first.recorder.values)+(event=='after_batch'))
    eq(len(steps), 3)
    eq([len(o) for o in learn.recorder.values], [len(learn.recorder.metric_names)-2]*len(learn.recorder.values))

def test_log_of_a_resumed_epoch(tmp_path):
    "Its line has all columns; it lacked the first one, and trackers compared the wrong numbers"
    class Kill(Callback):
        order,run_valid = 80,False
        def after_batch(self):
            if self.iter==12: raise RuntimeError('killed')
    with suppress(RuntimeError): fit(dqn(n=195), 2, cbs=[Resume(tmp_path, every=5), Kill()]) # the last batch has 5 rows
    learn = fit(dqn(n=195), 2, cbs=Resume(tmp_path))
    rows = [dict(zip(learn.recorder.metric_names[1:], o)) for o in learn.recorder.values]
    eq([o['steps'] for o in rows], [195,390])
    assert all(0<o['train_loss']<1 for o in rows), rows


def test_nothing_is_left_of_lr_find(tmp_path, recwarn):
    "What was played to find a rate counts nowhere, nor do its TD errors; nothing counts twice after a resume in the same process"
    learn = fit(dqn(), 1, cbs=Resume(tmp_path))
    was,td = learn.score.state_dict(),learn.experience_replay.memory['td_error'].clone()
    assert 3<len(was['returns'])<20 and td.any()
    with learn.no_bar(), learn.no_logging(): learn.lr_find(num_it=9, show_plot=False, suggest_funcs=())
    same((learn.score.state_dict(), learn.experience_replay.memory['td_error']), (was, torch.cat([td, torch.zeros(90, 1)])))
    fit(learn, 1, cbs=Resume(tmp_path)) # which is done
    same(learn.score.state_dict(), was)
    assert not any('nothing was trained' in str(o.message) for o in recwarn)

def test_beta_after_lr_find():
    "`beta` rises with the updates of a training, and not with those that find a rate"
    learn = fit(dqn(prioritized=True, updates=3))
    was = (s := learn.experience_replay.experience_replay.sampler).beta
    with learn.no_bar(), learn.no_logging(): learn.lr_find(num_it=9, show_plot=False, suggest_funcs=())
    eq((s.beta, was>.4), (was, True))

# %% What a loader gives
@pytest.mark.parametrize('make', [plain, dqn])
def test_returns_of_live_rows(make):
    "`Reward` and `NEpisodes` count the episodes that were played, whatever rows are drawn"
    learn = make()
    class Live(Callback):
        order,run_valid,once_per_batch,returns = -20,False,True,[]
        def before_batch(self): self.returns += self.xb[0]['accum_rewards'][self.xb[0]['all_done']].tolist()
    learn.metrics = learn.metrics+[n := NEpisodes(), mean := Reward(10**6)]
    fit(learn, 2, cbs=Live())
    eq((n.value, mean.value), (len(Live.returns), np.mean(Live.returns)))
    assert len(Live.returns)>10

@pytest.mark.parametrize('make,known', [(plain,False), (dqn,True)])
def test_validation_loss(make, known):
    "A number where validation has targets, and nan, not `None`, where it has none"
    learn = fit(make())
    eq(np.isfinite(learn.recorder.values[-1][:2]).tolist(), [True,known])

def test_validation_of_a_fake_learner():
    "Rows are their own targets in training alone"
    learn = fit(fake_gym_learner(Source(GymLoop('TestWalk-v0', seed=0)), n=20, bs=5))
    with learn.no_bar(): eq(np.isnan(learn.validate()[0]), True)

def test_log_of_a_dqn():
    "`ShowColumns` shows the columns without a validation; the speed is that of the training, whenever you ask"
    learn = dqn(cbs=[ShowColumns])
    assert np.isnan(learn.score.speed)
    fit(learn)
    rec = learn.recorder
    had = dict(zip(rec.metric_names[1:-1], rec.values[-1], strict=True))
    eq((had['steps'], had['episodes'], 'valid_loss' in had), (200, learn.score.episodes, False))
    eq(learn.score.speed, learn.score.speed)

def test_predicted():
    "The action for an observation, and a loader of rows from a loader of rows"
    learn = fit(dqn())
    with learn.no_bar(): action,_,values = learn.predict([0.,1.,0.,0.,0.])
    eq(action, values.argmax())
    rows = learn.dls.train.dataset.take(7)
    dl = learn.dls.test_dl(rows, bs=4)
    for o,sizes in ((dl, [4,3]), (dl.new(), [4,3]), (dl.new(bs=2), [2,2,2,1])):
        got = [b for b, in o]
        eq([b.bs() for b in got], sizes)
        same(sum(got).to('cpu'), rows)
    eq(len(dl.decode_batch((rows[:4],))), 4)
    few = learn.dls.train.new(n=5) # of the same source
    eq((few.dataset is learn.dls.train.dataset, [b.bs() for b, in few]), (True, [5]))

def test_returns_and_pictures_in():
    over,got = torch.tensor([[True],[False]]),torch.tensor([[3.],[4.]])
    eq([returns_in(o) for o in (BD(all_done=over, accum_rewards=got), BD(all_done=over), BD(accum_rewards=got))], [[3.],[],[]])
    for shape,want in {(2,5,6,3):(2,5,6,3), (2,5,6,1):(2,5,6,1), (2,5,6,4):(2,5,6,4), (2,4,5,6):(2,5,6), (2,2,5,6):(2,5,6), (2,5,6):None}.items():
        frames = pictures_in(BD(state=torch.zeros(shape, dtype=torch.uint8)))
        eq(frames if frames is None else tuple(frames.shape), want)

# %% One memory, several learners
def test_two_learners_one_memory():
    "They add to it and draw from it by turns; what one writes the other reads"
    er = ExperienceReplay(bs=8, max_sz=500, warmup_sz=20, seed=0)
    a,b = plain(memory=er),plain(memory=er)
    for _ in range(2):
        for o in (a,b): fit(o)
    eq((er.ring.total, a.experience_replay.experience_replay is b.experience_replay.experience_replay), (800, True))
    eq((len(a.recorder.losses), len(b.recorder.losses)), (20, 20))

def test_interrupted_fit():
    "Ctrl-C in any event, and the next fit is a whole one"
    events = ('before_fit','before_batch','after_pred','after_loss','before_step','after_step','after_batch','before_validate','after_epoch')
    for event in events:
        def stop(self): raise KeyboardInterrupt
        learn = plain(updates=2)
        with suppress(KeyboardInterrupt): fit(learn, cbs=type('Stop', (Callback,), {event:stop})())
        learn.remove_cbs([o for o in learn.cbs if type(o).__name__=='Stop'])
        er = learn.experience_replay.experience_replay
        before,cold = er.ring.total,-(-(30-len(er))//10)-1 if len(er)<30 else 0
        fit(learn)
        eq((er.ring.total-before, len(learn.recorder.losses)), (200, 20-max(0, cold)))

# %% Another machine
@pytest.mark.slow
def test_exported_learner_acts_elsewhere(tmp_path):
    "A process that knows nothing but the file"
    learn = fit(dqn_learner('CartPole-v1', n=200, train_every=10, warmup_sz=50, eval_episodes=1, seed=0, path=tmp_path))
    state = [.1, 0., .05, 0.]
    with learn.no_bar(): action,_,values = learn.predict(state)
    learn.export()
    code = '''import sys, warnings
warnings.simplefilter('ignore')
from fastai.basics import load_learner
learn = load_learner(sys.argv[1])
with learn.no_bar(): action,_,values = learn.predict(%s)
print(action.item(), values.tolist())''' % state
    said = subprocess.run([sys.executable, '-c', code, tmp_path/'export.pkl'], capture_output=True, text=True, cwd=tmp_path)
    eq(said.stdout.strip(), f'{action.item()} {values.tolist()}')

@pytest.mark.parametrize('append,at,want', [(True, 48, 'epoch 0 1 epoch 2'), (False, 48, 'epoch 2'), (True, 22, 'epoch 0 epoch 0 1 2')])
def test_lines_of_a_resumed_run(tmp_path, append, at, want):
    "`CSVLogger` begins its file anew, or appends: then each start adds a header, and an epoch that is done again has two lines"
    for n in (at,None): # an epoch has 20 batches, and batch 15, 30 and so on are in a checkpoint
        learn = dqn([CSVLogger(append=append), Resume(tmp_path/'run', every=15), Seen(n)], prioritized=True, path=tmp_path)
        with suppress(RuntimeError): fit(learn, 3)
    lines = (tmp_path/'history.csv').read_text().splitlines()
    eq(' '.join(o.split(',')[0] for o in lines), want)

def test_stopped_before_its_first_batch(tmp_path):
    "A resumed training that fails before its first batch leaves later fits of the learner all of their batches"
    class Fails(Callback):
        order = 99
        def before_train(self): raise RuntimeError('no such file')
    with suppress(RuntimeError): fit(dqn(prioritized=True), 1, cbs=[Resume(tmp_path, every=5), Seen(12)])
    learn = dqn(prioritized=True)
    with suppress(RuntimeError): fit(learn, 1, cbs=[Resume(tmp_path), Fails()])
    fit(learn, 1, cbs=(seen := Seen()))
    eq(len(seen.had), 20)

# %% Callbacks that come and go
class Holds(Callback):
    "Has what no file takes, as a writer of TensorBoard has"
    def __init__(self): self.lock = threading.Lock()
    def after_step(self): pass

@pytest.mark.parametrize('make', [plain, dqn])
def test_exported_without_callbacks_of_a_fit(make, tmp_path):
    "`fit(cbs=…)` gives callbacks for this fit alone: `learn.export` afterwards neither fails of them nor carries them"
    learn = fit(make(updates=2), cbs=[Holds()])
    learn.path = tmp_path
    learn.export()

def test_exported_without_its_rows(tmp_path):
    "The file of a `dqn_learner` is as small with a large memory as with a small one"
    def size(max_sz):
        learn = fit(dqn_learner('TestWalk-v0', nn.Linear(5, 2), n=60, train_every=10, bs=4, max_sz=max_sz, warmup_sz=30, eval_episodes=1, seed=0, path=tmp_path))
        learn.export()
        return (tmp_path/'export.pkl').stat().st_size
    assert abs(size(100)-size(20_000))<1000

@pytest.mark.parametrize('again', [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))], ids=['copy','pickle'])
def test_log_of_a_copy(again):
    "The columns that a copied learner logs are its own: its steps, its returns, its memory"
    learn = fit(dqn())
    del learn.loss_grad # fastai leaves it in the graph, where no copy takes it
    other = fit(again(learn), 2)
    had = [dict(zip(other.recorder.metric_names[1:], o)) for o in other.recorder.values]
    eq([(o['steps'], o['memory']) for o in had], [(400,200/300), (600,1.)])
    eq((learn.score.steps, other.score.steps, float(learn.metrics[0].value)), (200, 600, 200))
    learn = plain()
    learn.validate()
    other = again(learn)
    other.dls.valid.returns = np.array([7.])
    eq((other.metrics[0].value, learn.metrics[0].value), (7, learn.dls.valid.returns.mean()))

@pytest.mark.parametrize('was,now', [(False,False), (True,True), (False,True)])
def test_another_dqn(was, now):
    "A `DQN` in the place of another makes the updates that it was made with"
    learn = fit(dqn(updates=3, fast=was))
    learn.remove_cb(DQN)
    learn.add_cb(DQN(updates_per_batch=2, fast=now))
    eq(fit(learn).dqn.updates, 40)

@pytest.mark.parametrize('fast', [False, True])
def test_removed_dqn(fast):
    "It takes the updates that it made with it, after a fit that ended and after Ctrl-C, though `validate` came between"
    for stops in ([], [type('Stop', (Callback,), dict(once_per_batch=True, after_batch=lambda self: (_ for _ in ()).throw(KeyboardInterrupt)))()]):
        learn = dqn(updates=3, fast=fast)
        with suppress(KeyboardInterrupt): fit(learn, cbs=stops)
        with learn.no_bar(): learn.validate()
        learn.remove_cb(DQN)
        learn.add_cb(Target() if not stops else DQN(updates_per_batch=1))
        learn.loss_func,steps = mse_loss,Hear()
        fit(learn, cbs=steps)
        eq(steps.said.count('after_step'), 20 if not stops else 19)

def test_teacher():
    "A callback of your own that holds a `DQN` as its `agent`, which the learner does not have, stays"
    class Teacher(Callback):
        def __init__(self): self.agent = DQN()
    learn = fit(dqn(cbs=[Teacher()]))
    assert 'teacher' in learn.cbs.attrgot('name')

@pytest.mark.parametrize('updates', [1, 3])
def test_skipped_before_the_memory_hears(updates):
    "A callback that skips a batch before all others do: no update is made in it, neither the first nor more"
    class Skip(Callback):
        order,run_valid,once_per_batch = -50,False,True
        def before_batch(self):
            if self.iter>=10: raise CancelBatchException
    eq(fit(dqn(updates=updates), cbs=Skip()).dqn.updates, updates*8)

def test_two_memories():
    "A second memory would remember what the first one drew: it is refused, as is the callback of a cell that ran twice"
    learn = fit(plain())
    learn.add_cb(ExperienceReplayCallback(bs=16, warmup_sz=30))
    with expect_fail(ValueError, contains='2 replay memories'): fit(learn)
    learn.remove_cb(learn.cbs[-1])
    learn = plain(cbs=[ExperienceReplayCallback(), ExperienceReplayCallback()])
    with expect_fail(ValueError, contains='3 replay memories'): fit(learn)

@pytest.mark.parametrize('event', ['after_pred','before_batch'])
def test_warmed_up_by_lr_find(event):
    "`lr_find` fills a cold memory with rows as other callbacks make them, and not as they come from the loader"
    class Scale(Callback):
        order,run_valid = -20,False
        def before_batch(self):
            b, = self.xb
            self.learn.xb = (BD({**b, 'reward':b['reward']*10-5}),)
    learn = plain(cbs=[Scale(), InHalf(), Precision(), steps := Steps()], event=event)
    with learn.no_bar(), learn.no_logging(): learn.lr_find(num_it=5, show_plot=False, suggest_funcs=())
    assert not torch.is_autocast_enabled(learn.dls.device.type)
    er = learn.experience_replay.replay
    eq((learn.precision.seen, steps.n), ({torch.bfloat16}, 6)) # no update while it warmed up
    eq((er['reward'].unique().tolist(), len(er), len(learn.recorder.losses)), ([-5.,5.], 30+5*10, 6))

class Steps(Callback):
    n = 0
    def after_step(self): self.n += 1

def test_never_warmed_up_by_lr_find():
    "Where a callback skips all batches that would warm the memory up, `lr_find` ends, and nothing is drawn"
    class Skip(Callback):
        order,run_valid,n = -50,False,0
        def before_batch(self):
            self.n += 1
            if self.n>200: raise AssertionError('it goes on for ever')
            if self.n>1: raise CancelBatchException
    learn = plain(cbs=[Skip()])
    with learn.no_bar(), learn.no_logging(), pytest.warns(UserWarning, match='nothing was trained'): learn.fit(1, cbs=LRFinder(num_it=5))
    eq(len(learn.experience_replay), 10)

def test_batches_as_lists():
    "Loaders of torch give lists, of one dict here"
    rows = fit(plain()).experience_replay.memory
    def loader(n): return torch.utils.data.DataLoader([(dict(rows[i]),) for i in range(n)], 10, collate_fn=lambda o: [{k: torch.cat([r[k] for r, in o]) for k in o[0][0]}])
    learn = fit(Learner(DataLoaders(loader(50), loader(10)), QNet(nn.Linear(5, 2)), loss_func=mse_loss, cbs=[ExperienceReplayCallback(bs=4, warmup_sz=20), Target()]))
    eq((len(learn.experience_replay), len(learn.recorder.losses)), (50, 4))

@pytest.mark.parametrize('event', ['after_pred','before_batch'])
def test_td_errors_of_validation(event):
    "A callback that reports TD errors in validation, too: they are of rows that the memory does not have, and no stored row gets them"
    class Everywhere(Target): run_valid = True
    rows = fit(plain()).experience_replay.memory
    learn = Learner(DataLoaders([(dict(rows[i:i+10]),) for i in range(0, 60, 10)], [(dict(rows[100:104]),), (dict(rows[100:107]),)]), QNet(nn.Linear(5, 2)),
                    loss_func=mse_loss, cbs=[ExperienceReplayCallback(bs=4, warmup_sz=20, event=event), Everywhere(), trained := TdAfterTraining()])
    fit(learn)
    same(learn.experience_replay.memory['td_error'], trained.td)
    eq(np.isfinite(learn.recorder.values[-1]).tolist(), [True,True])
class TdAfterTraining(Callback):
    def after_train(self): self.td = self.learn.experience_replay.memory['td_error'].clone()

@pytest.mark.parametrize('fast', [False, True])
def test_validated_within_a_fit(fast):
    "A callback that validates between two epochs changes no weight, neither the network's nor its target's"
    class Validates(Callback):
        def after_epoch(self):
            if not self.learn.lock.locked(): self.learn.validate()
    weights = [[*learn.model.parameters(), *learn.dqn.target.parameters()] for cbs in (None, Validates()) for learn in [fit(dqn(updates=2, fast=fast), 3, cbs=cbs)]]
    same(*weights)

def test_validated_while_cold():
    "Only a fit that is over says that nothing was trained: `validate` within it does not"
    class Validates(Callback):
        def after_epoch(self):
            if not self.learn.lock.locked(): self.learn.validate()
    with warnings.catch_warnings(action='error'): fit(plain(n=20), 2, cbs=Validates())

@pytest.mark.parametrize('rows,came', [([dict(state=torch.ones(4,5)), dict(reward=torch.ones(4,1))], 'dict, dict'), ([torch.ones(4,5)], 'Tensor'),
                                       ([[torch.ones(4)]], 'list'), ([np.ones(4)], 'ndarray'), ([3], 'int')])
def test_batches_that_are_no_dict(rows, came):
    "The error says what a loader should give; nobody calls `memory + batch` in a fit"
    class Gives(Callback):
        order = -20
        def before_batch(self): self.learn.xb = (*rows,)
    learn = plain(event='before_batch')
    with expect_fail(Exception, contains='a loader should give batches of one dict of columns'): fit(learn, cbs=Gives())
    with expect_fail(Exception, contains=f'and not of {came}'): fit(learn, cbs=Gives())
    assert not len(learn.experience_replay.experience_replay)
