"Hindsight: random histories against an oracle that keeps every step and knows nothing of the links"
import copy, gc, multiprocessing, numpy as np, pickle, pytest, torch
from fastrl import ExperienceReplay
from fastrl.core import leaves
from fastrl.memory.replay import ExperienceReplayException
from fastrl.memory.ring import Ring
from fastrl.memory.sample import HER, Prioritized, Uniform

def reward(achieved, goal, idxs): return achieved[:,0]*1000+goal[:,0]

def goal_obs(achieved, goal): return dict(observation=[achieved], achieved_goal=[achieved], desired_goal=[goal])

class History:
    "Environments that take steps in any order, and what all of them did"
    def __init__(self, seed, n_envs, cap):
        self.rng,self.n_envs,self.cap = np.random.default_rng(seed),n_envs,cap
        self.at,self.episode,self.n,self.steps = [0]*n_envs,list(range(n_envs)),n_envs,[]
        self.count = 0

    def step(self):
        "One step: what it achieves is a number that comes only once"
        e,rng = int(self.rng.integers(self.n_envs)),self.rng
        self.count += 1
        over = rng.random()<.15
        row = dict(state=goal_obs(self.at[e], 10**6+self.episode[e]), next_state=goal_obs(self.count, 10**6+self.episode[e]),
                   reward=-1., terminated=over and rng.random()<.5, truncated=over, env_id=e)
        self.steps.append((self.episode[e], self.count))
        self.at[e] = self.count
        if over: self.episode[e],self.at[e],self.n = self.n,0,self.n+1
        return row

    def stored(self): return self.steps[-self.cap:]

def check(h, batch, strategy):
    "Each goal is one that the row's own episode achieved, where the strategy looks; each reward is that of its goal"
    of,by = dict((c, e) for e,c in h.stored()),{}
    for e,c in h.stored(): by.setdefault(e, []).append(c)
    achieved = batch['next_state']['achieved_goal'][:,0].int().tolist()
    goals = batch['state']['desired_goal'][:,0].int().tolist()
    assert torch.equal(batch['state']['desired_goal'], batch['next_state']['desired_goal'])
    for a,g,new,r in zip(achieved, goals, batch['relabelled'][:,0].tolist(), batch['reward'][:,0].tolist()):
        if not new: assert (g, r)==(10**6+of[a], -1); continue
        mine = by[of[a]]
        assert g in dict(future=[o for o in mine if o>=a], final=mine[-1:], episode=mine)[strategy]
        assert r==a*1000+g

def run(seed, strategy):
    rng = np.random.default_rng(seed)
    cap = int(rng.integers(1, 40))
    h = History(seed, int(rng.integers(1, 5)), cap)
    er = ExperienceReplay(32, cap, 1, sampler=HER(strategy, k=int(rng.integers(0, 6)), reward=reward, seed=seed))
    for _ in range(6):
        for _ in range(int(rng.integers(1, 25))): er.add(**h.step())
        check(h, er.sample()[0], strategy)

@pytest.mark.parametrize('strategy', ['future','final','episode'])
def test_histories(strategy):
    for seed in range(25): run(seed, strategy)

@pytest.mark.long
@pytest.mark.parametrize('strategy', ['future','final','episode'])
def test_many_histories(strategy):
    for seed in range(1000, 3000): run(seed, strategy)

def filled(n=50, cap=64, **kwargs):
    h = History(0, 2, cap)
    er = ExperienceReplay(32, cap, 1, sampler=HER(reward=reward, seed=0, **kwargs))
    for _ in range(n): er.add(**h.step())
    return er

def test_share():
    "Of `k+1` rows `k` have another goal"
    for k in (0, 1, 4):
        n = filled(k=k).sample(20_000)[0]['relabelled'].float().sum().item()
        p = k/(k+1)
        assert abs(n-20_000*p)<=5*(20_000*p*(1-p))**.5

def test_even():
    "Later goals are drawn evenly"
    r,her = Ring(8),HER(k=10**9, reward=reward, seed=1)
    for i in range(5): r.add(state=goal_obs(i, 9), next_state=goal_obs(i+1, 9), reward=0., terminated=False, truncated=False)
    batch,idxs = r.draw(her, 20_000, read=her.read)
    for i in range(5):
        goals = batch['state']['desired_goal'][idxs==i][:,0].int()
        counts,n = torch.bincount(goals, minlength=6)[i+1:],len(goals)
        p = 1/(5-i)
        assert ((counts-n*p).abs()<=5*(n*p*(1-p))**.5+1e-9).all()

def test_nothing_changes_in_the_memory():
    er = filled()
    before = copy.deepcopy(er.ring[:])
    er.sample(500)
    assert str(before)==str(er.ring[:])

def test_repeats():
    a,b = filled(),filled()
    for _ in range(3): assert str(a.sample())==str(b.sample())
    c = copy.deepcopy(a)
    assert str(a.sample())==str(c.sample())

def test_refusals():
    with pytest.raises(ExperienceReplayException, match='give no `n_step`'): filled().__class__(sampler=HER(reward=reward), n_step=3)
    er = filled()
    with pytest.raises(ExperienceReplayException, match='give no `n_step`'): er.n_step = 2
    folding = ExperienceReplay(4, 9, 1, n_step=2)
    folding.add(**History(0, 1, 9).step())
    with pytest.raises(ExperienceReplayException, match='give no `n_step`'): folding.sampler = HER(reward=reward)
    with pytest.raises(ValueError, match='`strategy` should be one of'): HER('past')
    with pytest.raises(ValueError, match='`reward` should be a function'): HER(reward=1)
    with pytest.raises(ValueError, match='`k` should be'): HER(k=-1)
    bare = ExperienceReplay(4, 9, 1, sampler=HER())
    bare.add(**History(0, 1, 9).step())
    with pytest.raises(ExperienceReplayException, match='needs a `reward`'): [bare.sample() for _ in range(9)]
    bare.sampler.reward = lambda achieved, goal, info: info['x'] # as elsewhere
    with pytest.raises((IndexError, TypeError)) as e: [bare.sample() for _ in range(9)]
    assert 'row numbers come third' in e.value.__notes__[0]
    bare.sampler.reward = lambda achieved, goal, idxs: torch.zeros(len(idxs)+1)
    with pytest.raises(ExperienceReplayException, match='one number for each of'): [bare.sample() for _ in range(9)]
    for odd in (None, 'x', {'reward':0.}, (torch.zeros(4), {}), [[0.],[1.,2.]], np.array([None])): # a `return` is missing, say
        bare.sampler.reward = lambda achieved, goal, idxs: odd
        with pytest.raises(ExperienceReplayException, match='one number for each of . rows, got '+type(odd).__name__): [bare.sample() for _ in range(9)]
    plain = ExperienceReplay(4, 9, 1, sampler=HER(reward=reward))
    plain.add(state=[1.], next_state=[2.], reward=0., terminated=False, truncated=False)
    with pytest.raises(ExperienceReplayException, match='next_state.achieved_goal.*both goals as `state`'): [plain.sample() for _ in range(9)]

def test_saved(tmp_path):
    "Saved without its function: pass the sampler to `load`, and the next draws are the same"
    er = filled()
    er.save(tmp_path/'m')
    want = str(er.sample())
    assert want==str(ExperienceReplay.load(tmp_path/'m', sampler=HER(reward=reward)).sample())
    with pytest.raises(ExperienceReplayException, match='sampler=HER'): ExperienceReplay.load(tmp_path/'m').sample()

def test_slice():
    "A part of a memory draws with the same reward"
    assert filled()[5:20].sample()[0]['relabelled'].any()

def test_images_stored_once():
    "Goals are changed where images are stored once as where they are stored whole"
    rng = np.random.default_rng(0)
    both = [ExperienceReplay(bs=64, max_sz=60, warmup_sz=1, seed=0, sampler=HER(reward=lambda a,g,i: (a==g).all(1).float(), seed=0), **o) for o in ({}, dict(frame_stack=2))]
    def seen(cams, at): return dict(cam=np.stack(cams), achieved_goal=np.full(2, at, np.float32), desired_goal=np.full(2, -1, np.float32))
    cams = None
    for i in range(100):
        cams = cams or [np.full((3,3), i, np.uint8)]*2
        nxt,end = [cams[1], np.full((3,3), i+1, np.uint8)],bool(rng.random()<.2)
        for o in both: o.add(state=seen(cams, i), next_state=seen(nxt, i+1), action=0, reward=0., terminated=end, truncated=False, env_id=0)
        cams = None if end else nxt
    (whole,rows),(once,same) = (o.sample() for o in both)
    assert torch.equal(rows, same) and whole['reward'].sum()>0
    there = dict(leaves(once))
    for k,v in leaves(whole): assert torch.equal(there[k], v), k

@pytest.mark.parametrize('frame_stack,shape', [(0,(20,)), (1,(3,3)), (2,(3,3))])
def test_goals_stored_once(frame_stack, shape):
    "Rows have only the numbers of such goals, which are no goals: that is an error"
    er = ExperienceReplay(bs=8, max_sz=60, warmup_sz=1, seed=0, sampler=HER(reward=reward, seed=0), frame_stack=frame_stack)
    def seen(i): return dict(achieved_goal=np.full(shape, i, np.uint8), desired_goal=np.zeros(shape, np.uint8))
    for i in range(20): er.add(state=seen(i), next_state=seen(i+1), action=0, reward=0., terminated=False, truncated=False)
    with pytest.raises(ExperienceReplayException, match='share a `achieved_goal` of .* leave out `frame_stack`'): er.sample()

# the cases of torchrl's test/rb/test_her.py, in this memory's words; its 'random' strategy, goals of any episode, is none of ours

def rollout(*lengths, reward=-99.):
    "Episodes one after the other, whose steps achieve their number, with the goal -1"
    n,ends = sum(lengths),np.cumsum(lengths)-1
    at = torch.arange(n)[:,None].float()
    def seen(at): return dict(observation=at*2, achieved_goal=at, desired_goal=torch.full((n,1), -1.))
    over = torch.isin(torch.arange(n), torch.as_tensor(ends))
    return dict(state=seen(at-.5), next_state=seen(at), action=torch.zeros(n, 2), reward=torch.full((n,1), reward),
                terminated=over, truncated=torch.zeros(n, dtype=torch.bool), env_id=torch.zeros(n, dtype=torch.int64))

def close(achieved, goal, idxs): return ((achieved-goal).abs()<.5).float()

def drawn(*lengths, bs=400, **kwargs):
    er = ExperienceReplay(bs, 100, 1, sampler=HER(reward=close, seed=0, **kwargs))+rollout(*lengths)
    batch,idxs = er.sample()
    return er,batch,idxs,batch['state']['desired_goal'][:,0]

all_of_them = 10**9 # a share of k/(k+1) that leaves none out

@pytest.mark.parametrize('strategy', ['future','final','episode'])
def test_every_strategy_gives_whole_batches(strategy):
    er,batch,idxs,_ = drawn(20, strategy=strategy)
    assert len(batch['reward'])==len(idxs)==400 and 'HER' in repr(er.sampler)
    assert .7<batch['relabelled'].float().mean()<.9 # 4 of 5

def test_no_share_gives_what_is_stored():
    er,batch,idxs,_ = drawn(20, k=0)
    stored = dict(leaves(er.ring.gather(idxs)))
    for k,v in leaves(batch):
        if k in stored: assert torch.equal(v, stored[k]), k
    assert not batch['relabelled'].any()

def test_goals_stay_in_their_episode():
    ends = torch.tensor([5,13,20])
    for strategy in ('future','final','episode'):
        _,_,idxs,goal = drawn(5, 8, 7, strategy=strategy, k=all_of_them)
        last = ends[torch.searchsorted(ends, idxs, right=True)]-1
        first = torch.tensor([0,5,13])[torch.searchsorted(ends, idxs, right=True)]
        if strategy=='final': assert torch.equal(goal, last.float())
        else:
            least = idxs if strategy=='future' else first
            assert (goal>=least).all() and (goal<=last).all()
            assert (goal>idxs).any() and (goal<last).any() and (strategy=='future' or (goal<idxs).any())

def test_rewards_are_of_the_new_goals_and_of_no_others():
    _,batch,idxs,goal = drawn(20)
    new,reward = batch['relabelled'][:,0],batch['reward'][:,0]
    assert torch.equal(reward[new], (goal==idxs).float()[new]) and set(reward[new].tolist())=={0., 1.}
    assert (reward[~new]==-99).all() and (goal[~new]==-1).all()
    assert drawn(15, k=all_of_them)[1]['relabelled'].all()

def test_steps_that_come_later_are_goals_too():
    er,_,_,goal = drawn(10, strategy='final', k=all_of_them)
    assert (goal==9).all()
    for more,goals in ((12, {9., 11.}), (1, {9., 11., 0.})): # each after a draw, which noted what follows what
        er+rollout(more)
        assert set(er.sample()[0]['state']['desired_goal'][:,0].tolist())==goals

def test_fields_of_other_names():
    er = ExperienceReplay(50, 100, 1, sampler=HER(reward=close, k=all_of_them, goal='aim', achieved='hit', seed=0))
    names = dict(observation='observation', achieved_goal='hit', desired_goal='aim')
    r = {k: {names[i]: o for i,o in v.items()} if isinstance(v, dict) else v for k,v in rollout(10).items()}
    batch,_ = (er+r).sample()
    assert (batch['state']['aim']>=0).all() and torch.equal(batch['state']['aim'], batch['next_state']['aim'])

def test_sequences_are_as_stored():
    "Goals are for single rows: a sequence has those of its steps, and their rewards"
    er = filled()
    assert (er.sample()[0]['relabelled']).any()
    for batch,idxs in (er.sample_sequences(16, 3), er.sample_sequences(16), er.sample_sequences(16, 2, pad=True, burn_in=2)):
        there = idxs>=0
        assert 'relabelled' not in batch and (batch['reward'][there]==-1).all()
        for k in ('state','next_state'):
            assert torch.equal(batch[k]['desired_goal'][there], er[k]['desired_goal'][idxs[there]])
            assert (batch[k]['desired_goal'][there]>=10**6).all()

@pytest.mark.parametrize('strategy', ['future','final','episode'])
def test_batches_at_once(strategy):
    "Several batches at once are those that as many calls would give, goals and rewards included"
    a,b = (filled(strategy=strategy) for _ in range(2))
    for _ in range(3):
        for (p,i),(q,j) in zip([a.sample() for _ in range(3)], b.sample(n_batches=3), strict=True):
            assert torch.equal(i, j) and all(torch.equal(x, y) for (_,x),(_,y) in zip(leaves(p), leaves(q), strict=True))
    (p,i),(q,j) = a.sample(5),b.sample(5)
    assert torch.equal(i, j) and torch.equal(p['reward'], q['reward'])

class InTwoSteps(HER):
    "Chooses rows, and reads them afterwards"
    def read(self, *args): return HER.read(self, *args)

@pytest.mark.parametrize('strategy', ['future','final','episode'])
def test_chosen_and_read_at_once(strategy):
    "Whoever chooses rows and reads them in two steps gets the same batches"
    a,b = (ExperienceReplay(32, 40, 1, sampler=kind(strategy, reward=reward, seed=3)) for kind in (HER, InTwoSteps))
    h = History(1, 3, 40)
    for k in (1, 2, 5):
        for row in (h.step() for _ in range(17)): a.add(**row); b.add(**row)
        for (p,i),(q,j) in zip(a.sample(n_batches=k), b.sample(n_batches=k), strict=True):
            assert torch.equal(i, j) and all(torch.equal(x, y) for (_,x),(_,y) in zip(leaves(p), leaves(q), strict=True))
            assert p['relabelled'].any()
    assert a.sampler.state_dict()['drawn']==b.sampler.state_dict()['drawn']==32*8

def test_read_again():
    "Rows that are read a second time get goals of their own"
    er = filled(strategy='future')
    idxs,_ = er.sampler.draw(er.ring, 64)
    (first,a),(again,b) = (er.sampler.read(er.ring, idxs) for _ in range(2))
    assert not torch.equal(a['relabelled'], b['relabelled'])



def seen(i): return dict(achieved_goal=np.array([float(i)]), desired_goal=np.array([-1.]))
def add_walk(memory, first, n):
    for i in range(first, first+n):
        memory.add(state=seen(i), next_state=seen(i+1), reward=-1., terminated=False, truncated=i%20==19, env_id=0)

class Overtaken(HER):
    "Another process overwrites the older half of the rows between the choice of goals and their reading"
    more = None
    def _achievers(self, *args):
        rows = super()._achievers(*args)
        if self.more: self.more.pop()()
        return rows

def test_goals_that_another_process_overwrites():
    "The rows that were drawn are still there, but not those whose goals they should get: they are drawn anew"
    number,flag,goal = ((), torch.float32),((), torch.bool),((1,), torch.float64)
    goals = dict(achieved_goal=goal, desired_goal=goal)
    schema = dict(state=goals, next_state=goals, reward=number, terminated=flag, truncated=flag, env_id=((), torch.int64))
    for seed in range(20):
        her = Overtaken('episode', k=10**9, reward=lambda a, g, i: a[:,0]-g[:,0], seed=seed)
        memory = ExperienceReplay(bs=1, max_sz=20, warmup_sz=1, shared=True, schema=schema, sampler=her)
        add_walk(memory, 0, 20)
        def overwrite():
            p = multiprocessing.get_context('fork').Process(target=add_walk, args=(memory, 1000, 10))
            p.start(); p.join()
        her.more = [overwrite]
        batch,_ = memory.sample()
        state,goal = (batch['state'][k].item() for k in ('achieved_goal','desired_goal'))
        assert (state<1000)==(goal<1000), (seed, state, goal)


def in_turn(memory, *lengths):
    "Episodes one after the other, whose steps achieve 1, 2, 3, …"
    n,ends = 0,np.cumsum(lengths)
    for n in range(ends[-1]): memory.add(state=seen(n), next_state=seen(n+1), reward=-1., terminated=n+1 in ends, truncated=False)
    return memory

def goals_of(memory):
    batch,_ = memory.sample(200)
    new = batch['relabelled'][:,0]
    return {*zip(batch['next_state']['achieved_goal'][new,0].int().tolist(), batch['state']['desired_goal'][new,0].int().tolist())}

other_rows = {(1,2),(2,2),(3,5),(4,5),(5,5),(6,6)}

def test_a_sampler_for_the_next_memory():
    "A sampler whose memory is gone knows nothing of the rows of the next one, which may be as many"
    for sampler in (HER('final', reward=reward, seed=0), Prioritized(seed=0)):
        memory = in_turn(ExperienceReplay(8, 50, 1, sampler=sampler), 3, 3)
        memory.sample()
        memory.update_td(torch.eye(6)[:,:1]*1e6, torch.arange(6))
        for lengths in ((2,3,1), (2,)): # as many rows, and fewer
            del memory
            gc.collect()
            memory = in_turn(ExperienceReplay(8, 50, 1, sampler=sampler), *lengths)
            n = sum(lengths)
            if isinstance(sampler, HER): assert goals_of(memory)=={o for o in other_rows if o[0]<=n}
            else: assert set(memory.sample(200)[1].tolist())=={*range(n)}

@pytest.mark.parametrize('copied', [copy.copy, copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_a_copy_for_another_memory(copied):
    "A copy of a sampler begins with the rows of its own memory, and the first one goes on with its own"
    memory = in_turn(ExperienceReplay(8, 50, 1, sampler=HER('final', reward=reward, seed=0)), 3, 3)
    want = goals_of(memory)
    assert goals_of(in_turn(ExperienceReplay(8, 50, 1, sampler=copied(memory.sampler)), 2, 3, 1))==other_rows
    assert goals_of(memory)==want=={(i, 3 if i<4 else 6) for i in range(1, 7)}

def test_rows_that_another_sampler_draws():
    "`read` alone knows whose rows these are"
    her = HER('final', k=10**9, reward=reward, seed=0)
    for lengths,want in (((3,3), [3]*3+[6]*3), ((2,3,1), [2]*2+[5]*3+[6])):
        memory = in_turn(ExperienceReplay(8, 50, 1), *lengths)
        batch,idxs = memory.ring.draw(Uniform(seed=0), 50, read=her.read)
        assert batch['state']['desired_goal'][:,0].tolist()==[want[i] for i in idxs]
        del memory
        gc.collect()

@pytest.mark.parametrize('stored,gives', [(np.array([-1]), torch.float32), (np.array([True]), torch.float32), (np.array([True]), torch.int64), (np.array([-1]), torch.complex64), (np.zeros(2), torch.float32)])
def test_rewards_that_do_not_fit(stored, gives):
    "A column of ints would cut a distance off, and one number is none for a column of two"
    er = ExperienceReplay(8, 50, 1, sampler=HER(reward=lambda a, g, i: ((a-g)[:,0]+.25).to(gives), k=10**9, seed=0))
    for i in range(9): er.add(state=goal_obs(i, 9), next_state=goal_obs(i+1, 9), reward=stored, terminated=False, truncated=False)
    with pytest.raises(ExperienceReplayException, match='column `reward` is .*: store one float per row'): er.sample()
    if stored.shape==(1,):
        for fits in (lambda a, g, i: a[:,0]==g[:,0], lambda a, g, i: (a[:,0]==g[:,0]).float()): # whole numbers, in whatever form
            er.sampler.reward = fits
            assert er.sample()[0]['reward'].dtype==torch.from_numpy(stored).dtype

@pytest.mark.parametrize('names', [('desired_goal','goal'), ('goal','desired_goal')])
def test_goals_of_another_name_on_one_side(names):
    "The other observation would keep its old goal"
    er = ExperienceReplay(8, 50, 1, sampler=HER(reward=reward, k=10**9, seed=0))
    a,b = ({'achieved_goal':[float(i)], names[i]:[9.]} for i in range(2))
    er.add(state=a, next_state=b, reward=0., terminated=False, truncated=False)
    with pytest.raises(ExperienceReplayException, match='`state` and `next_state` with the same names'): er.sample()

def test_a_goal_that_stands_once():
    "Beside both observations, or in one of them"
    for more in (dict(desired_goal=[9.]), dict(state=dict(achieved_goal=[0.], desired_goal=[9.])), dict(state=dict(desired_goal=[9.]))):
        er = ExperienceReplay(8, 50, 1, sampler=HER(reward=reward, k=10**9, seed=0))
        er.add(**{'state':dict(achieved_goal=[0.]), **more}, next_state=dict(achieved_goal=[1.]), reward=0., terminated=False, truncated=False)
        batch,_ = er.sample()
        assert ((batch if 'desired_goal' in more else batch['state'])['desired_goal']==1).all()

def test_a_vector_whose_dicts_come_in_another_order():
    "An episode continues where the observation is the same, in whatever order its fields come"
    er = ExperienceReplay(200, 50, 1, sampler=HER('final', reward=reward, k=10**9, seed=0))
    def at(t): return dict(achieved_goal=np.full((2,1), t, np.float32), desired_goal=np.full((2,1), -1, np.float32))
    for t in range(5): er.add_vector(obs=at(t), actions=np.zeros(2, int), rewards=np.zeros(2), terminated=np.zeros(2, bool), truncated=np.zeros(2, bool), next_obs=dict(reversed(at(t+1).items())), infos={}, autoreset='next_step')
    assert (er.sample()[0]['state']['desired_goal']==5).all()

def test_goals_that_are_overwritten_again_and_again(monkeypatch):
    "In a small memory a quick process may overwrite them a hundred times in a row: that is no error of the request"
    number,flag,goal = ((), torch.float32),((), torch.bool),((1,), torch.float64)
    goals = dict(achieved_goal=goal, desired_goal=goal)
    schema = dict(state=goals, next_state=goals, reward=number, terminated=flag, truncated=flag, env_id=((), torch.int64))
    memory = ExperienceReplay(4, 20, 1, shared=True, schema=schema, sampler=HER(k=10**9, reward=lambda a, g, i: a-g, seed=0))
    add_walk(memory, 0, 20)
    lost,times = type(memory.ring.serials).lost,[]
    def often(self, idxs):
        times.append(1)
        return len(times)<150 or lost(self, idxs)
    monkeypatch.setattr(type(memory.ring.serials), 'lost', often)
    assert (memory.sample()[0]['state']['desired_goal']>0).all() and len(times)>150

@pytest.mark.parametrize('names', [dict(state='obs', next_state='next_obs'), dict(state='observation', next_state='observation_next'), {}])
def test_observations_of_other_names(names):
    "`obs` and `next_obs` are relabelled as `state` and `next_state` are, and so are flat columns"
    def added(renamed):
        er = ExperienceReplay(32, 40, 1, sampler=HER(reward=reward, k=3, seed=0))
        h = History(1, 3, 40)
        for _ in range(60): er.add(**renamed(h.step()))
        return h,er.sample()[0]
    h,want = added(lambda row: row)
    check(h, want, 'future')
    if names: got = {o: added(lambda row: {names.get(k, k): o for k,o in row.items()})[1][names.get(o, o)] for o in want}
    else: # each field in a column of its own
        flat = added(lambda row: {**{k: o for k,o in row.items() if 'state' not in k}, **{p+k: o for p,s in (('','state'),('next_','next_state')) for k,o in row[s].items()}})[1]
        got = {**{k: o for k,o in flat.items() if k in want}, 'state':{k: flat[k] for k in want['state']}, 'next_state':{k: flat['next_'+k] for k in want['state']}}
    assert want['relabelled'].any() and all(torch.equal(v, dict(leaves(got))[p]) for p,v in leaves(want))

def test_other_columns_with_a_goal():
    "`next_state` says what was achieved, wherever else a field has its name"
    er = ExperienceReplay(32, 40, 1, sampler=HER(reward=lambda a, g, i: (a-g)[:,0], k=3, seed=0))
    def goals(o): return dict(achieved_goal=[o], desired_goal=[99.])
    for i in range(20):
        er.add(next_meta=dict(achieved_goal=[-1.]), meta=dict(achieved_goal=[-1.]), state=goals(i), next_state=goals(i+1.), reward=0.,
               terminated=False, truncated=i==19)
    batch,idxs = er.sample()
    assert batch['relabelled'].any() and (batch['state']['desired_goal']>idxs[:,None]).all()

class OneByOne(HER):
    "Its `draw` knows nothing of several batches"
    def draw(self, ring, bs): return super().draw(ring, bs)

class ByHalves(HER):
    "Draws twice for one batch"
    def draw(self, ring, bs):
        idxs = [super(ByHalves, self).draw(ring, bs//2)[0] for _ in range(2)]
        return torch.cat(idxs),{}

@pytest.mark.parametrize('cls', [HER, OneByOne, ByHalves])
def test_no_number_decides_twice(cls):
    "Which rows get another goal does not follow from an earlier batch, however a subclass draws"
    er = filled()
    er.sampler = cls(k=1, reward=reward, seed=0)
    new = [b['relabelled'].flatten() for _ in range(20) for b,_ in [*er.sample(n_batches=3), er.sample()]]
    bits = torch.cat(new).numpy()
    assert len({bits[i:i+32].tobytes() for i in range(len(bits)-31)})==len(bits)-31
