"`EpisodeReplay.add_vector` against what each environment did by itself: every mode, one-step episodes, resets by hand, saves, evictions"
import gc
import gymnasium as gym, numpy as np, pytest, torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch import tensor
from fastrl.memory.episodes import *
from test_episodes import Longest, Model, raises

modes = dict(next_step=AutoresetMode.NEXT_STEP, same_step=AutoresetMode.SAME_STEP, disabled=AutoresetMode.DISABLED)
forms = dict(number=lambda i: np.array(i), image=lambda i: np.full((2,3), i), nested=lambda i: dict(a=np.array([i,i]), b=dict(c=np.array(i/2))))
spaces = dict(number=gym.spaces.Box(0, 2**40, (), np.int64), image=gym.spaces.Box(0, 2**40, (2,3), np.int64),
              nested=gym.spaces.Dict(a=gym.spaces.Box(0, 2**40, (2,), np.int64), b=gym.spaces.Dict(c=gym.spaces.Box(0, 2.**40, (), np.float64))))

class Diary(gym.Env):
    "Each observation is a number of its own; `pages` are the episodes as they were: observations and `(action, reward, terminated, truncated)`"
    action_space = gym.spaces.Discrete(5)
    def __init__(self, first, rng, p, form): self.next,self.rng,self.p,self.form,self.pages,self.observation_space = first,rng,p,form,[],spaces[form]
    def show(self):
        self.next += 1
        self.pages[-1][0].append(self.next)
        return forms[self.form](self.next)
    def reset(self, *, seed=None, options=None):
        self.pages.append(([],[]))
        return self.show(),{}
    def step(self, action):
        te,tr = bool(self.rng.random()<self.p),bool(self.rng.random()<self.p)
        self.pages[-1][1].append((int(action), float(self.rng.integers(9)), te, tr))
        return self.show(),*self.pages[-1][1][-1][1:],{}

class Vector:
    "A vector that is stepped by hand"
    def __init__(self, at, n, rng, mode, form):
        self.n,self.mode,self.form,self.rng = n,mode,form,rng
        p = rng.choice((.05,.3,.7))
        self.diaries = [Diary(1_000_000*at+10_000*i, rng, p, form) for i in range(n)]
        self.envs = SyncVectorEnv([lambda o=o: o for o in self.diaries], autoreset_mode=modes[mode])
        self.told = self.envs if rng.random()<.7 or at else rng.choice((mode, modes[mode])) # one vector has no name
        self.reset()
    def reset(self): self.obs,self.due = self.envs.reset()[0],np.zeros(self.n, bool)
    def running(self):
        "Episodes that have not ended, and have a step"
        return [o.pages[-1] for o in self.diaries if o.pages[-1][1] and not any(o.pages[-1][1][-1][2:])]
    def step(self):
        "What to give to `add_vector`, and the episodes that are over"
        actions,seen = self.rng.integers(5, size=self.n),len(self.diaries[0].pages)
        now = [len(o.pages[-1][1]) for o in self.diaries]
        nxt,r,te,tr,infos = self.envs.step(actions)
        over = te|tr
        pages = [o.pages[-2 if self.mode=='same_step' else -1] for o,e in zip(self.diaries, over) if e]
        given = dict(obs=self.obs, actions=actions, rewards=r, terminated=te, truncated=tr, next_obs=nxt, infos=infos, autoreset=self.told)
        self.obs = self.envs.reset(options=dict(reset_mask=over))[0] if self.mode=='disabled' and over.any() else nxt
        return given,pages,[o.pages[-1] for o in self.diaries]

def number_of(obs): return obs['a'][...,0] if isinstance(obs, dict) else obs.reshape(len(obs), -1)[:,0]

def check_episode(e, page, form):
    "A stored episode is the one that an environment had: its steps, and one more with the last observation"
    seen,did = page
    n = len(did)
    assert number_of(e['obs']).tolist()==seen and len(seen)==n+1
    if form=='image': assert (e['obs']==e['obs'][:,:1,:1]).all()
    if form=='nested': assert (e['obs']['b']['c']==tensor(seen)/2).all() and (e['obs']['a'][:,1]==tensor(seen)).all()
    rows = [*zip(*(e[k].tolist() for k in ('action','reward','terminated','truncated')))]
    assert rows==[*did, (0,0.,False,False)]
    assert e['extra'].tolist()==[2*o for o in seen[:-1]]+[0]

def check_all(replay, m, pages, form, where):
    ds = replay.dataset
    assert ds.episode_lengths==[len(o) for o in m.eps], f'{where}: episodes of {ds.episode_lengths} steps, not of {[len(o) for o in m.eps]}'
    for i,o in enumerate(m.eps): check_episode(ds[i], pages[o[0]], form)

def check_draw(replay, m, pages, form, T, stack, where):
    "Sequences are parts of episodes, and stacks of images never reach into another"
    if replay.is_empty: return
    batch = replay.sample()
    for b in range(len(batch['is_last'])):
        now = batch['obs'][b][:,-1] if stack and form=='image' else {k: v[b] for k,v in batch['obs'].items()} if form=='nested' else batch['obs'][b]
        xs = number_of(now).tolist()
        seen = next(o for o in m.eps if xs[0] in o)
        at = seen.index(xs[0])
        xs = xs[:len(seen)-at] # behind them is padding
        assert xs==seen[at:at+len(xs)], f'{where}: {xs} is no part of an episode'
        assert batch['is_last'][b].tolist()[:len(xs)]==[at+t==len(seen)-1 for t in range(len(xs))]
        if stack and form=='image':
            want = [[seen[max(0, at+t+k)] for k in range(1-stack, 1)] for t in range(len(xs))]
            assert batch['obs'][b][:len(xs),:,0,0].tolist()==want, f'{where}: stacks {batch["obs"][b]}'

def a_dataset(how, cap, scored, d):
    ev = Longest() if scored=='own' else ScoreEvictor(lambda e: number_of(e['obs'])[0]%7) if scored else None
    ds = RingBufferDataset(cap, evictor=ev) if how=='ring' else IndividualFileDataset(cap, d/'files', ev)
    if scored=='own': ev.dataset = ds
    return ds

class History:
    def __init__(self, seed, mode, how, d):
        self.rng = rng = np.random.default_rng([seed, [*modes].index(mode), how=='ring'])
        self.mode,self.how,self.d,self.form = mode,how,d,str(rng.choice([*forms]))
        self.scored,self.cap = (False,False,True,'own')[rng.integers(4)],int(rng.choice((2,5,15,60)))
        self.T,self.stack = (1,2,4,None)[rng.integers(4)],3 if rng.random()<.5 else None
        self.m,self.pages = Model(self.cap, None, self.scored),{}
        self.left,self.gone = [],[] # episodes that end when their vector is stepped, or when a new one of its size is
        self.vectors = [self.a_vector(0)]
        if rng.random()<.3: self.vectors.append(self.a_vector(1))
        self.made,self.new,self.stepped = len(self.vectors),None,set() # since they were made or reset by hand
        self.alike = set() # vectors of one size that were not stepped since a load: reset by hand, either could be the other
        n = None if len(self.vectors)==2 or rng.random()<.5 else self.vectors[0].n
        self.replay = EpisodeReplay(a_dataset(how, self.cap, self.scored, d), 3, self.T, frame_stack=self.stack, num_envs=n, seed=seed)
        self.where = f'seed {seed}, {mode}, {how}, {self.form}, capacity {self.cap}, {self.scored=}, T={self.T}, {[o.n for o in self.vectors]} environments'

    def a_vector(self, at, n=None): return Vector(at, n or int(self.rng.integers(1, 6)), self.rng, self.mode, self.form)

    def end(self, page):
        seen,did = page
        if len(seen)>self.cap: return
        self.pages[seen[0]] = seen[:],did[:]
        self.m.add(seen[:])

    def step(self):
        "One step of one of the vectors"
        v = self.vectors[self.rng.integers(len(self.vectors))]
        given,over,now = v.step()
        self.stepped.add(v)
        self.alike.discard(v)
        for o in [o for w,o in self.left if w is v]+[o for n,o in self.gone if n==v.n and v is self.new]: self.end(o)
        self.left,self.gone = [o for o in self.left if o[0] is not v],[o for o in self.gone if o[0]!=v.n or v is not self.new]
        self.new = None
        long = any(len(did)==self.cap for _,did in {id(o): o for o in over+now}.values())
        try: self.replay.add_vector(**given, extra=2*number_of(given['obs'])); refused = False
        except ValueError as e: refused = True; assert 'with its last observation' in str(e)
        assert refused==long, f'{self.where}: refused={refused}, and too long is {long}'
        for o in over: self.end(o)

    def save(self):
        "Save and load; the environments resume, or there are new ones"
        replay,ev,d = self.replay,self.replay.dataset.evictor,self.d/'saved'
        [replay.save, replay.checkpoint][self.rng.integers(2)](d)
        replay = self.replay = None; gc.collect() # one at a time may write
        anew,keep = len(self.vectors)==1 and self.rng.random()<.4,bool(self.rng.random()<.6)
        self.replay = EpisodeReplay.load(d, evictor=ev, env_restored=keep or not anew)
        if self.scored=='own': ev.dataset = self.replay.dataset
        self.alike = {*self.vectors} if len({v.n for v in self.vectors})<len(self.vectors) else set()
        if not anew: return
        (old,),self.made = self.vectors,self.made+1
        self.gone = self.gone+[(old.n,o) for o in [o for _,o in self.left]+old.running()] if keep else []
        self.new = self.a_vector(self.made, self.replay.num_envs)
        self.new.told = self.new.envs # a mode's name would be that of the old vector
        self.vectors,self.left = [self.new],[]

    def run(self, steps):
        for t in range(steps):
            if self.rng.random()<.05:
                v = self.vectors[self.rng.integers(len(self.vectors))]
                if len(self.alike)<2:
                    self.left += [(v,o) for o in v.running()]
                    v.reset()
                    self.stepped.discard(v)
            self.step()
            if self.rng.random()<.06 and (len(self.vectors)==1 or self.stepped>={*self.vectors} and not self.left): self.save()
            if t%3==0:
                check_all(self.replay, self.m, self.pages, self.form, self.where)
                check_draw(self.replay, self.m, self.pages, self.form, self.T, self.stack, self.where)
        check_all(self.replay, self.m, self.pages, self.form, self.where)

cases = [pytest.param(range(1), id='few'), pytest.param(range(1, 4), id='more', marks=pytest.mark.slow), pytest.param(range(4, 300), id='many', marks=pytest.mark.long)]

@pytest.mark.filterwarnings('ignore:in three steps no environment continued')
@pytest.mark.parametrize('seeds', cases)
@pytest.mark.parametrize('how', ('ring', pytest.param('files', marks=pytest.mark.slow)))
@pytest.mark.parametrize('mode', ('next_step', *(pytest.param(o, marks=pytest.mark.slow) for o in modes if o!='next_step')))
def test_episodes_as_they_were(mode, how, seeds, tmp_path):
    "Each episode that is held is one that an environment had, in the order in which they ended"
    for seed in seeds: History(seed, mode, how, tmp_path/str(seed)).run(60 if how=='ring' else 40)

# %% One thing at a time: numbers count the steps, and 100 begins another episode
def give(replay, obs, nxt, over=(), **kw):
    n = len(obs)
    kw = dict(actions=np.zeros(n, int), rewards=np.ones(n), terminated=np.isin(range(n), over), truncated=np.zeros(n, bool), autoreset='next_step')|kw
    replay.add_vector(obs=np.array(obs), next_obs=np.array(nxt), **kw)

def held(replay): return [replay.dataset[i]['obs'].tolist() for i in range(replay.num_episodes)]
def a_replay(ds=None): return EpisodeReplay(RingBufferDataset(99) if ds is None else ds, 2)

class Named:
    def __init__(self, mode='NextStep'): self.metadata = dict(autoreset_mode=mode)

def test_interrupted_where_the_next_episode_has_begun(tmp_path):
    "Episodes that were over when Ctrl-C came get their own last observation, and not the first one of the next episode"
    class Stops(RingBufferDataset):
        def add_episode(self, episode):
            if self.num_episodes==1: raise KeyboardInterrupt
            super().add_episode(episode)
    for saved in (False,True):
        replay,all_over = a_replay(Stops(99)),dict(over=[0,1,2], autoreset='same_step', infos=dict(final_obs=np.array([2,12,22])))
        give(replay, [0,10,20], [1,11,21], autoreset='same_step')
        with pytest.raises(KeyboardInterrupt): give(replay, [1,11,21], [100,110,120], **all_over)
        RingBufferDataset.add_episode(replay.dataset, replay.dataset[0]) # so that it stops no more
        if saved: replay.save(tmp_path); replay = EpisodeReplay.load(tmp_path, env_restored=True)
        give(replay, [100,110,120], [101,111,121], autoreset='same_step')
        assert held(replay)==[[0,1,2], [0,1,2], [10,11,12], [20,21,22]]
        replay = a_replay(Stops(99))
        give(replay, [0,10,20], [1,11,21])
        with pytest.raises(KeyboardInterrupt): give(replay, [1,11,21], [2,12,22], over=[0,1,2])
        RingBufferDataset.add_episode(replay.dataset, replay.dataset[0])
        if saved: replay.save(tmp_path); replay = EpisodeReplay.load(tmp_path, env_restored=True)
        give(replay, [2,12,22], [100,110,120]) # which only resets
        give(replay, [100,110,120], [101,111,121], over=[1])
        assert held(replay)==[[0,1,2], [0,1,2], [10,11,12], [20,21,22], [110,111]]

def test_an_episode_that_is_not_taken():
    "An error of the dataset comes when all other environments have their step, and the next step continues them"
    def broken(e):
        if e['obs'][0]==0: raise OSError('the disk is full')
        return 0
    replay = a_replay(RingBufferDataset(99, evictor=ScoreEvictor(broken)))
    with raises('full', OSError): give(replay, [0,10], [1,11], over=[0])
    give(replay, [1,11], [100,12])
    give(replay, [100,12], [101,13], over=[0,1])
    assert held(replay)==[[100,101], [10,11,12,13]]

def test_a_new_vector_beside_a_loaded_one(tmp_path):
    "It ends the running episodes of the loaded one, which may come late: its step that only resets is none, and nothing is joined"
    old,new = Named(),Named()
    replay = a_replay()
    give(replay, [0,10], [1,11], over=[0], autoreset=old)
    replay.save(tmp_path)
    replay = EpisodeReplay.load(tmp_path, env_restored=True)
    give(replay, [50,60], [51,61], autoreset=new)
    assert held(replay)==[[0,1], [10,11]]
    give(replay, [1,11], [100,12], autoreset=old)
    give(replay, [100,12], [101,13], over=[0,1], autoreset=old)
    assert held(replay)==[[0,1], [10,11], [100,101], [11,12,13]]
    give(replay, [51,61], [52,62], over=[0,1], autoreset=new)
    assert held(replay)[4:]==[[50,51,52], [60,61,62]]

def test_vectors_that_come_and_go():
    "One that no longer exists leaves its numbers to the next one of its size; the episodes that it had begun end where they were"
    replay,vectors = a_replay(),[Named() for _ in range(4)]
    for t in (0,50,100): give(replay, [t,t+10], [t+1,t+11], autoreset=vectors.pop())
    assert held(replay)==[[0,1], [10,11], [50,51], [60,61]]
    assert len(replay.vectors)==1

def test_not_restored(tmp_path):
    "Unless environments resume, the steps that wait are left out"
    replay = a_replay()
    give(replay, [0,10], [1,11])
    replay.save(tmp_path)
    replay = EpisodeReplay.load(tmp_path)
    give(replay, [100,110], [101,111], over=[0,1])
    assert held(replay)==[[100,101], [110,111]]

def test_saved_by_add_step(tmp_path):
    "A replay takes both, each with steps of its own that wait"
    replay = a_replay()
    give(replay, [0,10], [1,11])
    own = dict(action=tensor([0,0]), reward=torch.ones(2), terminated=tensor([False]*2), truncated=tensor([False]*2))
    replay.add_step(dict(own, obs=tensor([70,80])), done=False)
    replay.save(tmp_path)
    replay = EpisodeReplay.load(tmp_path, env_restored=True)
    replay.add_step(dict(own, obs=tensor([71,81])), done=True)
    give(replay, [1,11], [2,12], over=[0,1])
    assert held(replay)==[[70,71], [80,81], [0,1,2], [10,11,12]]

def test_told_what_is_wrong():
    "The errors and warnings of `ExperienceReplay.add_vector`"
    with pytest.warns(UserWarning, match='in three steps no environment continued'):
        for t in range(5): give(replay := a_replay() if not t else replay, [t,t], [t+2,t+2])
    with pytest.warns(UserWarning, match='three episodes began with the last observation'):
        for t in range(9): give(replay := a_replay() if not t else replay, [t,t], [t+1,t+1], over=[t%2], autoreset='disabled')
    replay = a_replay()
    give(replay, [0,10], [1,11])
    final = dict(final_obs=np.array([2,13]))
    for kw,says in ((dict(infos=final), '`infos` has another last observation'), (dict(autoreset='same_step'), 'environment 0 has none there'),
                    (dict(autoreset=None), '`autoreset` should be the vector environment'), (dict(rewards=[1.]), '`rewards` should have a row'),
                    (dict(truncated=[True]), '`truncated` should be one for each'), (dict(actions=[0]), '`actions` should have a row'),
                    (dict(actions=[.5,.5]), '`action` should be int64'), (dict(more=[1,2]), 'unknown')):
        with raises(says): give(replay, [1,11], [2,12], **dict(dict(over=[0,1]), **kw))
    with raises('`next_obs` should be int64'): give(replay, [1,11], [[2],[12]], over=[0,1])
    assert held(replay)==[]
    give(replay, [1,11], [2,12], over=[0,1])
    assert held(replay)==[[0,1,2], [10,11,12]]

def test_nothing_is_the_environments():
    "A vector that writes over its observations changes nothing that is stored or waits"
    replay,obs,nxt = a_replay(),np.array([0,10]),np.array([1,11])
    for t in range(3):
        replay.add_vector(obs=obs, actions=np.zeros(2, int), rewards=np.ones(2), terminated=np.full(2, t==2), truncated=np.zeros(2, bool), next_obs=nxt, autoreset='next_step')
        obs += 1; nxt += 1
    nxt[:] = -1
    assert held(replay)==[[0,1,2,3], [10,11,12,13]]
    give(replay, [3,13], [100,110])
    nxt = np.array([101,111])
    kw = dict(actions=np.zeros(2, int), rewards=np.ones(2), terminated=np.zeros(2, bool), truncated=np.zeros(2, bool), autoreset='next_step')
    replay.add_vector(obs=np.array([100,110]), next_obs=nxt, **kw)
    nxt[:] = -1
    give(replay, [200,210], [201,211]) # reset by hand
    assert held(replay)[2:]==[[100,101], [110,111]]

@pytest.mark.parametrize('dtype', [torch.float32, torch.float64, torch.int64])
def test_rewards_keep_the_dtype_of_their_column(dtype):
    "They came rounded to float32"
    flag = (),torch.bool
    schema = dict(obs=((1,), torch.float32), action=((), torch.int64), reward=((), dtype), terminated=flag, truncated=flag)
    replay = EpisodeReplay(RingBufferDataset(50), 2, 2, schema=schema)
    obs,no = np.zeros((2,1), np.float32),np.zeros(2, bool)
    for over in (no, ~no):
        replay.add_vector(obs=obs, actions=[0,1], rewards=np.array([2**24+1,3]), terminated=over, truncated=no, next_obs=obs+1, autoreset='next_step')
        obs = obs+1
    assert [replay.dataset[i]['reward'].tolist() for i in (0,1)]==[[2**24+(dtype!=torch.float32)]*2+[0], [3,3,0]]
