"`ExperienceReplayCallback` and `Resume` among fastai's other callbacks, exported, stopped and resumed"
import random, warnings
from contextlib import suppress
import numpy as np, pytest, torch
from fastai.basics import Callback, Learner, load_learner, nn
from fastai.callback.all import CSVLogger, GradientClip, SaveModelCallback, TerminateOnNaNCallback
from fastcore.test import expect_fail, test_eq as eq
from torch.nn.functional import mse_loss
from fastrl.core import BD, test_same as same
from fastrl.data.gym import LoopCallback, NoValidation, Source
from fastrl.memory.disk import LoadError, Saved
from fastrl.memory.experience_replay import ExperienceReplayCallback, Prioritized, Resume
from fastrl.memory.ring import Ring

class Count(LoopCallback):
    "Whole numbers, and twice each"
    def before_loop(self): self.i = 0
    def collect(self, n):
        self.i += n
        x = torch.arange(self.i-n, self.i, dtype=torch.float32)[:,None]
        return BD(x=x, y=2*x)

class OneWeight(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(0.))
    def forward(self, batch): return self.w*batch['x']

def y_loss(pred, batch): return mse_loss(pred, batch['y'])

def toy_learner(n=20, bs=5, **kwargs):
    return Learner(Source(Count()).dataloaders(n, bs), OneWeight(), loss_func=y_loss, lr=1e-3,
                   cbs=[NoValidation, ExperienceReplayCallback(**kwargs)])

def fit(learn, *args, **kwargs):
    with learn.no_bar(), learn.no_logging(): learn.fit(*args, **kwargs)

# %% Among other callbacks
def test_targets_of_a_cancelled_batch():
    "Targets that another callback sets for the live batch are not logged with a loss of 0 when the batch is cancelled"
    class Early(Callback):
        def before_batch(self): self.learn.yb = self.xb
    learn,losses = toy_learner(bs=5, max_sz=100, warmup_sz=11),[]
    def count_loss(pred, batch):
        losses.append(y_loss(pred, batch))
        return losses[-1]
    learn.loss_func = count_loss
    fit(learn, 1, cbs=Early)
    eq((len(learn.recorder.losses), len(losses)), (2, 2))

def test_callbacks_of_fastai(tmp_path):
    "They work beside it, over cancelled batches, too, and no global generator moves"
    learn = toy_learner(bs=5, max_sz=100, warmup_sz=11)
    learn.path = tmp_path
    with learn.no_bar(), learn.no_logging():
        learn.fit_one_cycle(2, cbs=[TerminateOnNaNCallback(), GradientClip(.1), CSVLogger(),
                                    SaveModelCallback(monitor='train_loss')])
    eq(len((tmp_path/'history.csv').read_text().splitlines()), 3)
    eq(len(learn.recorder.losses), 6)
    before = torch.get_rng_state(), np.random.get_state()[1], random.getstate()
    learn.experience_replay.experience_replay.sample()
    same((torch.get_rng_state(), np.random.get_state()[1], random.getstate()), before)

def test_exported(tmp_path):
    "An exported learner comes back with an empty memory, and can be trained again"
    learn = Learner(Source(Count()).dataloaders(20, 5), OneWeight(), loss_func=y_loss, path=tmp_path,
                    cbs=ExperienceReplayCallback(bs=3, max_sz=30, warmup_sz=6, seed=1))
    fit(learn, 1)
    learn.export()
    eq(len(learn.experience_replay.experience_replay), 20) # the one in use kept its rows
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        back = load_learner(tmp_path/'export.pkl')
    er = back.experience_replay.experience_replay
    eq((len(er), er.bs, er.max_sz, er.warmup_sz), (0, 3, 30, 6))
    back.dls = Source(Count()).dataloaders(20, 5)
    fit(back, 1)
    eq(len(er), 20)

# %% Stopped and resumed
class Killed(Exception): pass
class Kill(Callback):
    "Count steps, and die at the `at`-th"
    def __init__(self, at): self.at,self.steps = at,0
    def after_step(self):
        self.steps += 1
        if self.steps==self.at: raise Killed('in the middle')
    def state_dict(self): return dict(steps=self.steps)
    def load_state_dict(self, state): self.steps = state['steps']

def start(folder, at=None, **kwargs):
    learn = toy_learner(n=40, bs=5, max_sz=30, warmup_sz=1, **kwargs)
    learn.add_cb(Kill(at))
    with suppress(Killed): fit(learn, 4, cbs=Resume(folder, every=3))
    return learn

def test_resumes_with_what_was_saved(tmp_path):
    "Network, optimizer, rows and a mark behind them; callbacks that are new begin anew"
    class GoesOn(Count):
        def go_on(self, n): self.n = n
    class Begin(Callback):
        "Stop before anything is done"
        def before_train(self): raise Killed('at once')
        def state_dict(self): return {}
        def load_state_dict(self, state): raise AssertionError('nothing was saved for it')
    learn = start(tmp_path, 10)
    extra = Saved(tmp_path).state()['extra']
    learn.dls = Source(GoesOn()).dataloaders(40, 5)
    tally = learn.experience_replay.tally
    with suppress(Killed): fit(learn, 4, cbs=[Resume(tmp_path), Begin()])
    same(learn.model.state_dict(), extra['model'])
    ring = learn.experience_replay.experience_replay.ring
    eq((ring.total, ring.seams.cuts, learn.dls.train.dataset.cbs[0].n), (45, [45], 45))
    assert learn.experience_replay.tally is not tally

@pytest.mark.parametrize('kw', (dict(max_sz=31), dict(warmup_sz=2), dict(n_step=2), dict(gamma=.5), dict(sampler=Prioritized())),
                         ids=lambda o: next(iter(o)))
def test_another_training(tmp_path, kw):
    "A training with other settings does not resume this one"
    start(tmp_path, 10)
    other = toy_learner(**{**dict(bs=5, max_sz=30, warmup_sz=1), **kw})
    with expect_fail(LoadError, contains=f'`{list(kw)[0]}` is'): fit(other, 4, cbs=Resume(tmp_path))

def test_no_training(tmp_path):
    "Nor does a folder without a training"
    learn = start(tmp_path/'run', 10)
    learn.experience_replay.experience_replay.save(tmp_path/'memory')
    with expect_fail(LoadError, contains='holds only a memory'): fit(learn, 4, cbs=Resume(tmp_path/'memory'))

def test_lines_of_the_log(tmp_path):
    "Epochs of an earlier run have no lines"
    start(tmp_path, 20)
    learn,lines = toy_learner(n=40, bs=5, max_sz=30, warmup_sz=1),[]
    learn.logger = lines.append
    with learn.no_bar(): learn.fit(4, cbs=Resume(tmp_path))
    eq([o[0] for o in lines if o[0]!='epoch'], [2,3])

def test_lr_find(tmp_path):
    "`lr_find` neither resumes a training nor saves one"
    start(tmp_path/'run', 10)
    before = Saved(tmp_path/'run').manifest
    learn = toy_learner(n=40, bs=5, max_sz=30, warmup_sz=1)
    learn.path = tmp_path/'other'
    learn.add_cb(Resume(tmp_path/'run', every=2))
    with learn.no_bar(), learn.no_logging(): learn.lr_find(num_it=6, show_plot=False, suggest_funcs=())
    eq(Saved(tmp_path/'run').manifest, before)

def test_memory_in_a_file(tmp_path):
    "A memory in a file resumes in its file"
    for at in (15, None): learn = start(tmp_path/'run', at, path=tmp_path/'rows.ring')
    ring = learn.experience_replay.experience_replay.ring
    eq((ring.place.path, ring.total), ((tmp_path/'rows.ring').absolute(), 160))
    same(Ring(path=ring.place.path)['x'], ring['x'])
