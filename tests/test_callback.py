"`ExperienceReplayCallback` and `Resume` among fastai's other callbacks, exported, stopped and resumed"
import copy, os, random, shutil, signal, threading, warnings
from contextlib import suppress
from itertools import count
import numpy as np, pytest, torch
from fastai.basics import (Callback, CancelBatchException, CancelEpochException, CancelFitException, CancelTrainException,
                           Learner, load_learner, nn)
from fastai.callback.all import CSVLogger, GradientClip, SaveModelCallback, TerminateOnNaNCallback
from fastcore.test import expect_fail, test_eq as eq
from torch.nn.functional import mse_loss
from fastrl.core import BD, test_same as same
from fastrl.data.gym import LoopCallback, NoValidation, Source
from fastrl.memory.disk import LoadError, Saved, verify
from fastrl.memory.experience_replay import ExperienceReplay, ExperienceReplayCallback, Prioritized, Resume, Uniform
from fastrl.memory.sample import HER
from fastrl.memory.updates import MoreUpdates

class Count(LoopCallback):
    "Whole numbers, and twice each"
    def before_loop(self): self.i = 0
    def collect(self, n):
        self.i += n
        x = torch.arange(self.i-n, self.i, dtype=torch.float32)[:,None]
        return BD(x=x, y=2*x)

class Images(Count):
    "Single frames, five steps an episode"
    def collect(self, n):
        i = torch.arange(self.i, self.i+n)
        def frames(i): return (i%250).to(torch.uint8)[:,None,None].expand(-1, 5, 5)
        over,at = (i%5==4)[:,None],i+i//5 # each episode has six frames
        return BD(**super().collect(n), state=frames(at), next_state=frames(at+1), terminated=over, truncated=over&False)

class Goals(Count):
    "Seven steps to a goal, an episode"
    def collect(self, n):
        x = torch.arange(self.i, self.i+n, dtype=torch.float32)[:,None]
        def state(x): return dict(observation=x, achieved_goal=x, desired_goal=x*0-1)
        over = x%7==6
        return BD(**super().collect(n), state=state(x), next_state=state(x+1), reward=x*0, terminated=over,
                  truncated=over&False, env_id=x.long()*0)

class OneWeight(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(0.))
    def forward(self, batch): return self.w*batch['x']

def y_loss(pred, batch): return mse_loss(pred, batch['y'])

def toy_learner(n=20, bs=5, rows=Count, device=None, **kwargs):
    return Learner(Source(rows()).dataloaders(n, bs, device=device), OneWeight(), loss_func=y_loss, lr=1e-3,
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

class Moves(Count):
    "Steps without numbers, of one environment whose episodes have seven"
    def collect(self, n):
        i = torch.arange(self.i, self.i+n)[:,None]
        return BD(**super().collect(n), reward=i.float(), terminated=i%7==6, truncated=i<0, env_id=i*0)

class Counts(Moves):
    "They count on when the source is opened again"
    i = 0
    def before_loop(self): pass

@pytest.mark.parametrize('how', [KeyboardInterrupt, CancelBatchException, 'on_device'])
@pytest.mark.parametrize('kw', [dict(rows=Images, frame_stack=3), dict(rows=Moves, n_step=3, gamma=1.)], ids=['frames','n_step'])
def test_a_live_batch_that_is_lost(kw, how):
    "Ctrl-C before the memory has it, or a callback that skips it: what comes next follows nothing that is stored"
    learn = toy_learner(n=24, bs=3, max_sz=100, warmup_sz=1, seed=0, **kw)
    er = learn.experience_replay.replay
    class Lose(Callback):
        n = 0
        def before_batch(self):
            self.n += self.training
            if self.n==3: raise how
    def on_device(b, n=count(1)):
        if next(n)==3: raise KeyboardInterrupt
        return b
    if how=='on_device': learn.dls.train.on_device = on_device # the loader has taken the rows, and they are no batch yet
    with suppress(KeyboardInterrupt): fit(learn, 1, cbs=[] if how=='on_device' else Lose)
    fit(learn, 1)
    x = er['x'][:,0].long().tolist()
    gone = [o for o in range(max(x)) if o not in x]
    eq(gone, [6,7,8])
    if 'frame_stack' in kw:
        assert states_belong(er)
        eq(er['state'][x.index(9)].flatten(1)[:,0].tolist(), [10]*3)
    else:
        b,_ = er.sample(200)
        i,m = b['x'][:,0].long(),b['n_steps'][:,0]
        same(m, torch.tensor([min(3, 7-o%7, (6 if o<6 else max(x)+1)-o) for o in i.tolist()]))

@pytest.mark.parametrize('how', [CancelBatchException, CancelTrainException, CancelEpochException, CancelFitException, 'take', 'get_preds', 'close'])
def test_rows_that_the_memory_did_not_hear_of(how):
    "A callback that skips a batch before the memory hears of it, or somebody who takes rows between two fits"
    learn = toy_learner(n=24, bs=3, max_sz=100, warmup_sz=1, seed=0, rows=Counts, n_step=3, gamma=1.)
    class Lose(Callback):
        order,n = -20,0
        def before_batch(self):
            self.n += self.training
            if self.n==3: raise how
    fit(learn, 1, cbs=[] if isinstance(how, str) else Lose)
    learn.dls.train.dataset.peek(5) # nobody misses these
    if how=='take': learn.dls.train.dataset.take(3)
    if how=='close': learn.dls.train.dataset.close() # now they are gone
    if how=='get_preds':
        with learn.no_bar(): learn.get_preds(ds_idx=0)
    fit(learn, 1)
    er = learn.experience_replay.replay
    x = er['x'][:,0].long().tolist()
    first = next(o for o in range(max(x)) if o not in x)
    eq(first, 24 if isinstance(how, str) else 6)
    b,_ = er.sample(200)
    i,m = b['x'][:,0].long(),b['n_steps'][:,0]
    same(m, torch.tensor([min(3, 7-o%7, (first if o<first else max(x)+1)-o) for o in i.tolist()]))

@pytest.mark.parametrize('order', [-20, 20])
@pytest.mark.parametrize('event', ['before_batch','after_batch'])
def test_rows_that_a_callback_takes(event, order):
    "Rows that a callback takes from the source within a batch are missing after that batch, whether the memory has heard of it by then or not"
    class Takes(Callback):
        def take(self):
            if self.iter==2: self.dls.train.dataset.take(2)
    Takes.order = order
    setattr(Takes, event, Takes.take)
    learn = toy_learner(n=24, bs=3, max_sz=100, warmup_sz=1, seed=0, rows=Moves, n_step=3, gamma=1.)
    fit(learn, 1, cbs=Takes)
    er = learn.experience_replay.replay
    eq([o for o in range(26) if o not in er['x']], [9,10])
    b,_ = er.sample(200)
    i,m = b['x'][:,0].long(),b['n_steps'][:,0]
    same(m, torch.tensor([min(3, 7-o%7, (9 if o<9 else 26)-o) for o in i.tolist()]))

def test_several_updates_miss_no_rows():
    "Batches that bring no rows of their own, as further updates do, leave no gap"
    learn = toy_learner(n=24, bs=3, max_sz=100, warmup_sz=1, seed=0, rows=Moves, n_step=3, gamma=1.)
    fit(learn, 2, cbs=MoreUpdates(3))
    b,_ = learn.experience_replay.sample(200)
    same(b['n_steps'][:,0], torch.tensor([min(3, 7-o%7, 48-o) for o in b['x'][:,0].long().tolist()]))

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

def exported(tmp_path, cb):
    "The memory of a learner that was exported with `cb`, and loaded"
    learn = Learner(Source(Count()).dataloaders(20, 5), OneWeight(), loss_func=y_loss, path=tmp_path, cbs=cb)
    learn.export()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return load_learner(tmp_path/'export.pkl').experience_replay.experience_replay

settings = dict(bs=3, max_sz=30, warmup_sz=6, n_step=2, gamma=.5, freeze_memory=True, frame_stack=4, frame_pad='zeros',
                frame_margin=60)
@pytest.mark.parametrize('handed_in', [True, False])
def test_exported_settings(tmp_path, handed_in):
    "Every setting comes back, whether the callback made its memory or was given it"
    kw = dict(settings, seed=7, sampler=Prioritized(alpha=.3, seed=5),
              schema=dict(state=((4,5,5), torch.uint8), next_state=((4,5,5), torch.uint8), reward=((), torch.float16),
                          terminated=((), torch.bool), truncated=((), torch.bool), noted=((), torch.int16, 'later')))
    er = ExperienceReplay(**kw)
    back = exported(tmp_path, ExperienceReplayCallback(**(dict(memory=er) if handed_in else kw)))
    eq({k: getattr(back, k) for k in settings}, settings)
    same((back.ring.fields, back.later, back.sampler.settings, back.sampler.state_dict(), back.runs.state_dict()),
         (er.ring.fields, er.later, er.sampler.settings, er.sampler.state_dict(), er.runs.state_dict()))

@pytest.mark.parametrize('how', ['slice', 'load', 'open'])
def test_exported_schema(tmp_path, how):
    "A memory that was sliced, loaded or opened has the schema of the first one, and so has an exported learner"
    schema = dict(state=((), torch.int64), noted=((2,), torch.int16, 'later'))
    er = ExperienceReplay(2, 4, 1, schema=schema, path=tmp_path/'rows')
    er.add(state=1)
    er.save(tmp_path/'saved')
    er = (er[:1] if how=='slice' else ExperienceReplay.load(tmp_path/'saved') if how=='load'
          else ExperienceReplay(2, 4, 1, path=tmp_path/'rows'))
    back = exported(tmp_path, ExperienceReplayCallback(memory=er))
    eq(back.schema, schema)
    back.add(state=2)
    same(back['noted'], torch.zeros(1, 2, dtype=torch.int16))

def test_exported_as_set(tmp_path):
    "A setting that was changed later comes back as it is"
    cb = ExperienceReplayCallback(bs=3, max_sz=30, warmup_sz=6)
    cb.replay.bs = 4
    eq(exported(tmp_path, cb).bs, 4)

def test_exported_without_its_file(tmp_path):
    "Rows in a file stay with the memory that has them"
    cb = ExperienceReplayCallback(bs=3, max_sz=9, warmup_sz=1, memory=BD(x=torch.ones(5, 1), y=torch.ones(5, 1)), path=tmp_path/'rows.bin')
    back = exported(tmp_path, cb)
    eq((len(back), back.ring.place.path, len(cb.experience_replay)), (0, None, 5))

def test_exported_without_a_seed(tmp_path):
    "Each learner that is loaded draws its own rows, as without a seed"
    a,b = (exported(tmp_path, cb) for cb in [ExperienceReplayCallback(sampler=Prioritized())]*2)
    assert not torch.equal(a.sampler.gen.get_state(), b.sampler.gen.get_state())

def test_exported_with_an_own_sampler(tmp_path):
    "A sampler that cannot be made by its name and settings stays behind"
    class Own(Uniform):
        def __init__(self, power): super().__init__()
    class Foreign:
        def draw(self, ring, bs): return torch.arange(bs),{}
        def update(self, *_): pass
    for o in (Own(2), Foreign()): eq(type(exported(tmp_path, ExperienceReplayCallback(sampler=o)).sampler), Uniform)

# %% In validation
def validated(er, rows):
    "Rows of a validation as the model and its loss see them"
    class See(Callback):
        def after_pred(self): self.seen = self.xb[0]
    learn = toy_learner(memory=er)
    with learn.no_bar(): learn.get_preds(dl=[(rows,)], cbs=(see := See()), with_loss=False)
    return see.seen

@pytest.mark.parametrize('gamma', (.9,'worth'))
@pytest.mark.parametrize('reward', [torch.ones(4, 1, dtype=torch.int64), torch.ones(4, 1, dtype=torch.float64), torch.ones(4)])
def test_columns_of_validation(reward, gamma):
    "They are those of drawn batches, whatever the dtype and shape of rewards"
    er = ExperienceReplay(bs=4, warmup_sz=1, n_step=1, gamma=gamma, sampler=Prioritized())
    over = torch.ones(4, 1, dtype=torch.bool)
    worth = torch.full((4,), .9)
    er+BD(x=torch.zeros(4, 1), reward=reward, worth=worth, terminated=over, truncated=~over, env_id=over.long())
    drawn,_ = er.sample()
    seen = validated(er, BD(x=torch.zeros(4, 1), reward=reward, worth=worth))
    for k in ('n_steps','discount','weight'): eq((seen[k].dtype, seen[k].shape), (drawn[k].dtype, drawn[k].shape))
    eq((seen['n_steps'].unique().item(), seen['weight'].unique().item()), (1, 1))
    same(seen['discount'].cpu(), torch.full((4,1), .9))

@pytest.mark.parametrize('name', ('discount','worth'))
@pytest.mark.parametrize('reward,form,dtype', (((), (), torch.float64), ((1,), (), torch.float32), ((1,), (1,), torch.bool),
                                               ((2,2), (1,), torch.float16), ((2,2), (4,), torch.float32)))
def test_discounts_of_validation(reward, form, name, dtype):
    "A column that `gamma` names is shown as drawn rows show it, one of the name `discount`, too"
    er,over = ExperienceReplay(bs=4, warmup_sz=1, n_step=1, gamma=name, seed=0),torch.ones(4, 1, dtype=torch.bool)
    rows = BD(x=torch.zeros(4, 1), reward=torch.zeros(4, *reward), discount=torch.full((4,1), 7.), terminated=over, truncated=~over,
              env_id=over.long()) | {name:torch.rand(4, *form).to(dtype)}
    with warnings.catch_warnings():
        warnings.simplefilter('ignore') # of a column that the batch's own `discount` hides
        drawn,idxs = (er+rows).sample(40)
    seen = validated(er, rows)
    same(drawn['discount'], seen['discount'].cpu()[idxs])

@pytest.mark.parametrize('worth', (None, torch.ones(4, 2), torch.ones(4, dtype=torch.complex64), dict(x=torch.ones(4))))
def test_validation_without_discounts(worth):
    "The error names the column"
    er,rows = ExperienceReplay(warmup_sz=1, n_step=1, gamma='worth'),BD(x=torch.zeros(4, 1), reward=torch.zeros(4, 3))
    with expect_fail(Exception, contains="names the column 'worth', and validation's rows need it"):
        validated(er, rows if worth is None else rows | dict(worth=worth))

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

class Begin(Callback):
    "Stop before anything is done"
    def before_train(self): raise Killed('at once')
    def state_dict(self): return {}
    def load_state_dict(self, state): raise AssertionError('nothing was saved for it')

def start(folder, at=None, **kwargs):
    learn = toy_learner(n=40, bs=5, max_sz=30, warmup_sz=1, **kwargs)
    learn.add_cb(Kill(at))
    with suppress(Killed): fit(learn, 4, cbs=Resume(folder, every=3))
    return learn

def test_resumes_with_what_was_saved(tmp_path):
    "Network, optimizer, rows and a mark behind them; callbacks that are new begin anew"
    class GoesOn(Count):
        def go_on(self, n): self.n = n
    learn = start(tmp_path, 10)
    extra = Saved(tmp_path).extra
    learn.dls = Source(GoesOn()).dataloaders(40, 5)
    tally = learn.experience_replay.tally
    with suppress(Killed): fit(learn, 4, cbs=[Resume(tmp_path), Begin()])
    same(learn.model.state_dict(), extra['model'])
    ring = learn.experience_replay.experience_replay.ring
    eq((ring.total, ring.seams.cuts, learn.dls.train.dataset.cbs[0].n), (45, [45], 45))
    assert learn.experience_replay.tally is not tally

@pytest.mark.parametrize('at', ['before_batch','before_validate','after_validate'])
def test_a_signal_ends_the_fit_and_saves(tmp_path, at):
    "Started again, the training ends as one that ran through, with the epochs and batches of both, each once"
    asked = threading.Event()
    class Goes(Count):
        n = 0
        def before_loop(self): self.i = self.n
        def go_on(self, n): self.n = n
    class Term(Kill):
        "Ask for an end at the `at`-th of an event"
        order = 90
        def after_step(self): self.steps += 1
        def __call__(self, name):
            if name=='after_validate': log.append((self.epoch, self.steps))
            if name==at:
                self.n = getattr(self, 'n', 0)+1
                if self.n==self.at: signal.raise_signal(signal.SIGTERM)
            return super().__call__(name)
    def train(folder, *ats):
        for o in (*ats, None):
            asked.clear()
            learn = Learner(Source(Goes()).dataloaders(40, 5), OneWeight(), loss_func=y_loss, lr=1e-3,
                            cbs=[ExperienceReplayCallback(max_sz=30, warmup_sz=1, sampler=Prioritized(seed=1))])
            learn.dls.loaders[1] = [(BD(x=torch.ones(2,1), y=torch.ones(2,1)),)]*3
            learn.add_cb(Term(o))
            fit(learn, 4, cbs=Resume(folder, every=1000, stop=asked.is_set))
            eq(asked.is_set(), o is not None)
        return learn
    was = signal.signal(signal.SIGTERM, lambda *_: asked.set())
    try:
        log = []
        one = train(tmp_path/'a')
        log = []
        two = train(tmp_path/'b', 2, 1) if at!='before_batch' else train(tmp_path/'b', 11, 5, 1, 9)
    finally: signal.signal(signal.SIGTERM, was)
    eq((two.term.steps, sorted(set(log))), (32, [(i, 8*(i+1)) for i in range(4)]))
    same(two.model.state_dict(), one.model.state_dict())
    ours,theirs = (o.experience_replay.replay for o in (two, one))
    same((ours.memory, ours.sample()), (theirs.memory, theirs.sample()))

@pytest.mark.parametrize('begun', [False, True])
def test_two_trainings_of_one_folder(tmp_path, begun):
    "The one that finds checkpoints of the other stops, and leaves them as they are; it may resume from there"
    if begun: start(tmp_path, 8)
    class Twice(Callback):
        def after_step(self):
            if self.learn.kill.steps==10: start(tmp_path, 14) # also by somebody else
    learn = toy_learner(n=40, bs=5, max_sz=30, warmup_sz=1)
    learn.add_cbs([Kill(99), Twice()])
    resume = Resume(tmp_path, every=4)
    if not begun: resume.every = 12 # the other one finds nothing
    with expect_fail(ValueError, contains='another training has saved'): fit(learn, 4, cbs=resume)
    assert Saved(tmp_path).extra['cbs']['kill']['steps']==12 and not verify(tmp_path)
    learn.remove_cb(Twice)
    fit(learn, 4, cbs=resume)
    eq(learn.kill.steps, 32)

@pytest.mark.parametrize('at', [0, 3, 4]) # before it is loaded; before the next one is saved, and after
def test_a_checkpoint_that_cannot_be_read_now(tmp_path, monkeypatch, at):
    "It is named and stays: no training begins anew over it, and nobody is said to have saved meanwhile"
    start(tmp_path, 20)
    reads,real = count(),open
    def fails(path, mode='r', *args, **kw):
        if str(path).endswith('manifest.json') and 'r' in mode and next(reads)==at: raise PermissionError(13, 'denied')
        return real(path, mode, *args, **kw)
    with monkeypatch.context() as m:
        m.setattr('builtins.open', fails)
        with expect_fail(PermissionError, contains='denied'): start(tmp_path)
    assert Saved(tmp_path).extra['cbs']['kill']['steps']>=18 and not verify(tmp_path)
    eq(start(tmp_path).kill.steps, 32)

def handed_in(folder, at=None, rows=None, sampler=None, **kw):
    "A training with a memory that was made before it, and that other parts of a program may use"
    er = ExperienceReplay(16, 30, 1, seed=3, sampler=sampler, **kw)
    if rows: er+rows
    learn = toy_learner(n=40, memory=er)
    learn.add_cb(Kill(at))
    with suppress(Killed): fit(learn, 4, cbs=Resume(folder, every=3))
    return learn,er

@pytest.mark.parametrize('prioritized', [False, True])
@pytest.mark.parametrize('where', [{}, dict(shared=True), dict(path='rows.ring')], ids=lambda o: ''.join(o) or 'in memory')
def test_resumes_in_the_memory_handed_in(tmp_path, where, prioritized):
    "It has the rows, cursors, sampler and random state of the checkpoint afterwards, whatever it had before"
    where = {k: tmp_path/v if k=='path' else v for k,v in where.items()}
    def sampler(): return Prioritized(seed=7) if prioritized else None
    handed_in(tmp_path/'b', 14, sampler=sampler(), **where)
    shutil.copytree(tmp_path/'b', tmp_path/'c')
    at = ExperienceReplay.load(tmp_path/'b', sampler=sampler())
    s = sampler()
    er = ExperienceReplay(16, 30, 1, seed=4, sampler=s, schema={f.name: (f.shape, f.dtype) for f in at.ring.fields}, **where)
    er+BD(at.memory)[:3]
    er.sample()
    loader = er.loader()
    next(loader)
    learn = toy_learner(n=40, memory=er)
    with suppress(Killed): fit(learn, 4, cbs=[Resume(tmp_path/'b'), Kill(0), Begin()])
    assert learn.experience_replay.replay is er and (s is None or er.sampler is s) and next(loader, None) is None
    same((er.ring.total, er.pointer, er.ring[:], er.sampler.state_dict()), (at.ring.total, at.pointer, at.ring[:], at.sampler.state_dict()))
    same((er.sample(), er.runs.state_dict()), (at.sample(), at.runs.state_dict()))
    learn,er = handed_in(tmp_path/'b', sampler=sampler(), **where)
    want = start(tmp_path/'c', sampler=sampler()).experience_replay.replay # as in a memory that the callback made
    assert learn.experience_replay.replay is er and er.ring.total>at.ring.total
    same((er.ring.total, er.ring[:], er.sample()), (want.ring.total, want.ring[:], want.sample()))

def test_damaged_for_the_memory_handed_in(tmp_path):
    "A damaged checkpoint leaves it as it was"
    handed_in(tmp_path, 14)
    for o in tmp_path.glob('rows-*'): o.write_bytes(o.read_bytes()[:-1])
    er,twin = (ExperienceReplay(16, 30, 1, seed=4) for _ in range(2))
    for o in (er, twin): o+BD(x=torch.ones(4,1)); o.sample()
    before = dict(vars(er))
    learn = toy_learner(n=40, memory=er)
    with pytest.raises(LoadError): fit(learn, 4, cbs=Resume(tmp_path))
    assert vars(er).keys()==before.keys() and all(v is before[k] for k,v in vars(er).items())
    same((er.ring[:], er.sample()), (twin.ring[:], twin.sample()))

@pytest.mark.parametrize('kw', (dict(max_sz=31), dict(warmup_sz=2), dict(n_step=2), dict(gamma=.5), dict(sampler=Prioritized()),
                                dict(freeze_memory=True), dict(frame_stack=4)), ids=lambda o: next(iter(o)))
def test_another_training(tmp_path, kw):
    "A training with other settings does not resume this one"
    start(tmp_path, 10)
    other = toy_learner(**{**dict(bs=5, max_sz=30, warmup_sz=1), **kw})
    with expect_fail(LoadError, contains=f'`{list(kw)[0]}` was'): fit(other, 4, cbs=Resume(tmp_path))

def test_the_same_in_another_type(tmp_path):
    "Settings are compared by value"
    start(tmp_path, 10)
    eq(start(tmp_path, gamma=np.float64(.99)).kill.steps, 32)

@pytest.mark.parametrize('was,now,says', [
    (dict(max_sz=30), dict(max_sz=31), '`max_sz` was 30, got 31'),
    (dict(n_step=3), {}, '`n_step` was 3, got None (single steps)'), # `dqn_learner(n_step=1)` folds nothing
    ({}, dict(n_step=3, gamma=.5), '`n_step` was None (single steps), got 3; `gamma` was 0.99, got 0.5: resume'),
    (dict(sampler=Prioritized(alpha=.5)), {}, "`sampler` was Prioritized with {'alpha': 0.5, 'beta': 0.4, "),
    ({}, dict(sampler=Prioritized()), "`sampler` was Uniform, got Prioritized with {'alpha': 0.6, ")],
    ids=lambda o: ' '.join(o) if isinstance(o, dict) else '')
def test_says_what_differs(tmp_path, was, now, says):
    "The message has what was saved, what came, and what to do"
    usual = dict(n=40, max_sz=30, warmup_sz=1, rows=Goals)
    with suppress(Killed): fit(toy_learner(**{**usual, **was}), 1, cbs=[Resume(tmp_path, every=1), Kill(2)])
    with expect_fail(LoadError, contains=says): fit(toy_learner(**{**usual, **now}), 1, cbs=Resume(tmp_path))
    with expect_fail(LoadError, contains='resume it with the settings that it was saved with, or give another folder'):
        fit(toy_learner(**{**usual, **now}), 1, cbs=Resume(tmp_path))

def test_no_training(tmp_path):
    "Nor does a folder without a training"
    learn = start(tmp_path/'run', 10)
    for extra in (None, dict(note=1), 'note'):
        learn.experience_replay.experience_replay.save(tmp_path/'memory', extra)
        with expect_fail(LoadError, contains='holds only a memory'): fit(learn, 4, cbs=Resume(tmp_path/'memory'))

def test_another_network(tmp_path):
    "Of another network nothing is loaded, neither its weights nor its memory"
    start(tmp_path, 10)
    other = toy_learner(bs=5, max_sz=30, warmup_sz=1)
    other.model.w,other.model.more = torch.nn.Parameter(torch.full_like(other.model.w, 7.)),torch.nn.Linear(2, 2)
    was = {k: v.clone() for k,v in other.model.state_dict().items()}
    with expect_fail(LoadError, contains='holds a training of another network: resume it with'): fit(other, 4, cbs=Resume(tmp_path))
    same(dict(other.model.state_dict()), was)
    eq(len(other.experience_replay.experience_replay), 0)

def test_lines_of_the_log(tmp_path):
    "Epochs of an earlier run have no lines"
    start(tmp_path, 20)
    learn,lines = toy_learner(n=40, bs=5, max_sz=30, warmup_sz=1),[]
    learn.logger = lines.append
    def logged(n, *cbs):
        lines.clear()
        with learn.no_bar(): learn.fit(n, cbs=cbs)
        return [o[0] for o in lines if o[0]!='epoch']
    eq([logged(4, Resume(tmp_path)), logged(4, Resume(tmp_path))], [[2,3], []])
    eq([logged(1), logged(5, Resume(tmp_path))], [[0], [4]]) # after a training that was complete

def test_lr_find(tmp_path):
    "`lr_find` neither resumes a training nor saves one"
    start(tmp_path/'run', 10)
    before = Saved(tmp_path/'run').manifest
    learn = toy_learner(n=40, bs=5, max_sz=30, warmup_sz=1)
    learn.path = tmp_path/'other'
    learn.add_cb(Resume(tmp_path/'run', every=2))
    with learn.no_bar(), learn.no_logging(): learn.lr_find(num_it=6, show_plot=False, suggest_funcs=())
    eq(Saved(tmp_path/'run').manifest, before)

# %% A memory in a file
in_files = pytest.mark.parametrize('kw', [{}, dict(rows=Images, frame_stack=4, frame_margin=60)], ids=['rows','frames'])

def files(folder): return {str(o.relative_to(folder)): o.read_bytes() for o in sorted(folder.rglob('*')) if o.is_file()}
def rows_of(er): return er.ring.gather(torch.arange(len(er)))
def states_belong(er):
    "Does each state end with the frame of its row?"
    rows = rows_of(er)
    return 'state' not in rows or torch.equal(rows['state'][:,-1,0,0], ((x := rows['x'][:,0].long())+x//5)%250)

@in_files
def test_memory_in_a_file(tmp_path, kw):
    "A memory in a file resumes in its file, with those rows that the checkpoint has"
    path = tmp_path/'rows.ring'
    learn = start(tmp_path/'run', 14, path=path, **kw)
    learn.add_cb(Begin())
    with suppress(Killed): fit(learn, 4, cbs=Resume(tmp_path/'run'))
    er = learn.experience_replay.experience_replay
    eq((er.ring.place.path, er.ring.total), (path.absolute(), 60)) # 70 were in the file
    eq(sorted(o.name for o in tmp_path.iterdir() if o.is_file()), ['rows.ring','rows.ring.frames'][:1+len(kw)//3])
    same(rows_of(ExperienceReplay(**learn.experience_replay.settings)), rows_of(er))
    same(rows_of(er), rows_of(ExperienceReplay.load(tmp_path/'run')))
    learn = start(tmp_path/'run', path=path, **kw)
    eq((learn.kill.steps, learn.experience_replay.experience_replay.ring.total), (32, 160))

@in_files
def test_refused_in_a_file(tmp_path, kw):
    "A checkpoint that is damaged, or of another network, leaves every file as it was"
    def again(): return start(tmp_path/'run', path=tmp_path/'rows.ring', **kw)
    start(tmp_path/'run', 14, path=tmp_path/'rows.ring', **kw)
    whole = files(tmp_path)
    learn = toy_learner(n=40, bs=5, max_sz=30, warmup_sz=1, path=tmp_path/'rows.ring', **kw)
    learn.model = nn.Linear(2, 2)
    with pytest.raises(LoadError, match='another network'): fit(learn, 4, cbs=Resume(tmp_path/'run'))
    same(files(tmp_path), whole)
    for damaged in (o for o in (tmp_path/'run').iterdir() if o.name.startswith(('rows','frames'))):
        raw = damaged.read_bytes()
        damaged.write_bytes(raw[:-1]+bytes([raw[-1]^1]))
        before = files(tmp_path)
        with expect_fail(LoadError, contains='is damaged'): again()
        same(files(tmp_path), before)
        damaged.write_bytes(raw)
    eq(again().kill.steps, 32)

@pytest.mark.skipif(not hasattr(os, 'fork'), reason='the process that is killed is a fork')
@in_files
def test_killed_while_files_are_replaced(tmp_path, kw):
    "Whichever file has its new name by then, the same command resumes"
    kw = dict(kw, device='cpu') # a fork cannot use a GPU
    start(tmp_path/'was/run', 14, path=tmp_path/'was/rows.ring', **kw)
    def killing(f, left):
        def g(*args, **kwargs):
            if 'rows.ring' in str(args[0]):
                if not left[0]: os._exit(9)
                left[0] -= 1
            return f(*args, **kwargs)
        return g
    for at in count():
        shutil.copytree(tmp_path/'was', folder := tmp_path/f'{at}')
        if not (pid := os.fork()):
            left = [at]
            for k in ('replace','unlink','link'): setattr(os, k, killing(getattr(os, k), left))
            try: start(folder/'run', 13, path=folder/'rows.ring', **kw) # one step
            finally: os._exit(0)
        killed = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])==9
        found = toy_learner(n=40, bs=5, max_sz=30, warmup_sz=1, path=folder/'rows.ring', **kw).experience_replay.replay
        # old rows, new ones or none, but never with the frames of others
        if len(found): assert found.ring.total in (70, 60, 65) and states_belong(found)
        learn = start(folder/'run', path=folder/'rows.ring', **kw)
        eq((learn.kill.steps, learn.experience_replay.experience_replay.ring.total), (32, 160))
        same(rows_of(ExperienceReplay(**learn.experience_replay.settings)), rows_of(learn.experience_replay.experience_replay))
        if not killed: break
    assert at>5

# %% Other samplers
def reached(achieved, goal, idxs): return achieved[:,0]-goal[:,0]

class Own(Uniform):
    "A sampler with something that no file can hold"
    def __init__(self, weigh, seed=None): super().__init__(seed); self.weigh = weigh
    def draw(self, ring, bs, n_batches=1):
        idxs,_ = Uniform.draw(self, ring, bs, n_batches)
        return idxs,dict(weighed=self.weigh(idxs)[:,None])

@pytest.mark.parametrize('make', [lambda: HER(reward=reached, seed=0), lambda: Prioritized(seed=0), lambda: Own(lambda o: 2*o, seed=0)],
                         ids=['HER','Prioritized','Own'])
def test_resumes_with_its_sampler(tmp_path, make):
    "The callback's own sampler draws what it would have drawn at the checkpoint, be it new or used"
    used = start(tmp_path/'a', 14, rows=Goals, sampler=make())
    shutil.copytree(tmp_path/'a', tmp_path/'b')
    new = toy_learner(n=40, bs=5, max_sz=30, warmup_sz=1, rows=Goals, sampler=make())
    want = ExperienceReplay.load(tmp_path/'a', sampler=make())
    batches = [want.sample(16)[0] for _ in range(3)]
    for learn,d in ((used,'a'), (new,'b')):
        sampler = learn.experience_replay.experience_replay.sampler
        learn.add_cb(Begin())
        with suppress(Killed): fit(learn, 4, cbs=Resume(tmp_path/d))
        er = learn.experience_replay.experience_replay
        assert er.sampler is sampler
        same([er.sample(16)[0] for _ in range(3)], batches)
        learn.remove_cb(Begin)
    eq(start(tmp_path/'b', rows=Goals, sampler=make()).kill.steps, 32)

@pytest.mark.parametrize('sampler', [lambda: None, lambda: Prioritized(seed=0)])
def test_refused_resume_changes_no_draw(tmp_path, sampler):
    "A training that cannot be resumed, as its network is another, leaves the memory drawing as it drew"
    def toy(): return toy_learner(max_sz=40, warmup_sz=5, seed=0, sampler=sampler())
    fit(toy(), 2, cbs=Resume(tmp_path))
    learn = toy()
    er = learn.experience_replay.experience_replay
    for k in range(25): er+BD(x=torch.ones(1, 1)*k, y=torch.ones(1, 1))
    er.sample(); er.update_td(torch.arange(25.)[:,None], torch.arange(25))
    other = copy.deepcopy(er)
    learn.model = nn.Linear(2, 2)
    with pytest.raises(LoadError, match='another network'): fit(learn, 4, cbs=Resume(tmp_path))
    assert learn.experience_replay.experience_replay is er
    for _ in range(3): same(er.sample(), other.sample())
