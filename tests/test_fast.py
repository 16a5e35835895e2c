"The fast way makes the updates that the plain way makes: the same rows, weights, TD errors and logs, bit for bit"
import gymnasium as gym, pytest, torch
from fastai.basics import default_device
from fastai.callback.training import GradientClip
from fastrl.agents.dqn import dqn_learner, mlp
from fastrl.core import test_same as same
from fastrl.data.gym import NoValidation
from fastrl.memory.experience_replay import Resume
from fastrl.memory.updates import MoreUpdates, TightUpdates

@pytest.fixture(autouse=True)
def on_a_cpu():
    "A GPU sums up a batch of another size in another order"
    default_device(False)
    yield
    default_device(None)

def learner(fast, *cbs, n=320, clip=10., env='CartPole-v1', dueling=False, **kwargs):
    torch.manual_seed(0)
    settings = dict(n=n, train_every=32, updates_per_batch=7, bs=16, max_sz=200, warmup_sz=64, seed=3, eval_every=10**9, n_step=1)
    return dqn_learner(env, mlp(4, 2, (16,16), dueling=dueling), fast=fast, cbs=[GradientClip(clip), NoValidation, *cbs], **settings | kwargs)

def fit(learn, epochs=1):
    with learn.no_bar(), learn.no_logging(): learn.fit(epochs)
    return learn

def state(learn):
    cb = learn.experience_replay
    er = cb.experience_replay
    return dict(model=dict(learn.model.state_dict()), target=dict(learn.dqn.target.state_dict()), opt=learn.opt.state_dict()['state'], updates=learn.dqn.updates,
                td_error=er.memory['td_error'], drawn=cb.tally.times, sampler=er.sampler.state_dict(), beside=er.sampler.beside(er.ring),
                losses=[o.item() for o in learn.recorder.losses], lrs=learn.recorder.lrs, next=er.sample()[1])

ways = [dict(target_every=5, double=False), dict(target_every=7, double=False), dict(target_every=100, double=False), dict(target_every=5), dict(tau=.1), dict(tau=.1, double=False),
        dict(updates_per_batch=40, target_every=3, double=False), dict(updates_per_batch=1), dict(clip=1e-3), dict(dueling=True, lr=.1)]
rows = [{}, dict(n_step=3), dict(prioritized=True, n_step=3)]

@pytest.mark.parametrize('way', ways, ids=str)
@pytest.mark.parametrize('row', [*(pytest.param(o, marks=pytest.mark.slow) for o in rows[:2]), rows[2]], ids=str)
@pytest.mark.halved
def test_same_updates(way, row):
    plain,fast = (fit(learner(o, **way, **row)) for o in (False,True))
    assert type(fast.dqn.extra) is TightUpdates and type(plain.dqn.extra) is MoreUpdates
    assert plain.dqn.updates==9*way.get('updates_per_batch', 7) # the first of ten batches warms up
    same(state(plain), state(fast))

def test_same_updates_of_batches_drawn_together():
    "The network that chooses the next actions of a batch is the one that has learned from the batches before it"
    test_same_updates(dict(target_every=50, lr=1.), {}) # so large that it soon chooses others

class FromThree(gym.ActionWrapper):
    "The actions 3 and 4 of a pole on a cart"
    def __init__(self): super().__init__(gym.make('CartPole-v1')); self.action_space = gym.spaces.Discrete(2, start=3)
    def action(self, a): return a-3

@pytest.mark.parametrize('fast', (False,True))
def test_actions_that_begin_later(fast):
    "Learn what those learn that begin at 0"
    same(state(fit(learner(fast, env=FromThree))), state(fit(learner(False))))

@pytest.mark.parametrize('row', rows, ids=str)
def test_resumed(row, tmp_path):
    "Stopped in the middle of an epoch and resumed, which begins the environments anew: the fast way draws and learns as the plain one still"
    found = []
    for fast in (False,True):
        folder = tmp_path/str(fast)
        first = learner(fast, Resume(folder, every=4), target_every=5, double=False, **row)
        first.resume.after_fit = lambda: None # as if it had been killed, two batches after the checkpoint
        fit(first)
        second = fit(learner(fast, Resume(folder), target_every=5, double=False, **row))
        assert second.dqn.updates==first.dqn.updates==63
        found.append(state(second))
    same(*found)

def test_schedules():
    "A schedule sets the learning rate of all updates of a batch, and the recorder notes it"
    found = []
    for fast in (False,True):
        learn = learner(fast)
        with learn.no_bar(), learn.no_logging(): learn.fit_one_cycle(2, 1e-2)
        found.append(state(learn))
    same(*found)
    assert len(set(found[1]['lrs']))==len(found[1]['lrs'])>10
