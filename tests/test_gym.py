"Sources of gymnasium environments: every row against an oracle, through breaks, vectors of all kinds and odd environments"
import itertools, os, pickle, random, subprocess, sys, warnings
from collections import Counter
from pathlib import Path
import gymnasium as gym, numpy as np, pytest, torch
from fastcore.test import expect_fail, test_eq as eq, test_fail as fails
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from fastrl.core import BD, test_same as same
from fastrl.data.envs import CopyObs, SyncEnvs, autoreset_modes as modes, open_envs
from fastrl.data.gym import FirstLast, GymLoop, LoopCallback, Source
from fastrl.data.steps import StepRows, space_form

long,root = pytest.mark.long,Path(__file__).parents[1]

class Toy(gym.Env):
    "Observation 10·episode+step in one buffer; the reward is the step; a time limit cuts the second episode"
    observation_space,action_space = spaces.Box(-1e9, 1e9, (1,)),spaces.Discrete(5)
    def __init__(self, length=3): self.length,self.episode,self.buffer = length,-1,np.zeros(1, np.float32)
    def see(self):
        self.buffer[:] = 10*self.episode+self.t
        return self.buffer
    def reset(self, *, seed=None, options=None):
        self.episode,self.t = self.episode+1,0
        return self.see(),{}
    def step(self, action):
        self.t += 1
        over = self.t==self.length
        return self.see(), float(self.t), over and self.episode!=1, over and self.episode==1, {}

def toys(lengths, mode): return SyncVectorEnv([lambda n=n: Toy(n) for n in lengths], autoreset_mode=modes[mode])

# %% Rows of several steps
def folded(lengths, n, delta, gamma, episodes=4):
    "The rows of toys with episodes of these lengths, worked out by hand"
    for env,L in enumerate(lengths):
        for e in range(episodes):
            starts = [t for t in range(L) if t%delta==0 or t==L-1 and t%delta>=n]
            for t in starts:
                m = min(n, L-t)
                end,reward = t+m==L, sum(gamma**k*(t+k+1) for k in range(m))
                yield (env, 10*e+t, 10*e+t+m, round(reward, 4), m, end and e!=1, end and e==1, t==starts[-1], t+1,
                       (t+1)*(t+2)/2)
cols = ('env_id','state','next_state','reward','n_steps','terminated','truncated','all_done','step','accum_rewards')

def check_folds(lengths, mode, n, delta):
    env = toys(lengths, mode) if mode else Toy(*lengths)
    # with an agent, blocks are as small as what is taken
    s = Source([GymLoop(env, agent=lambda s: np.zeros(len(s), int), steps_count=n, steps_delta=delta), FirstLast(.9)])
    rows = sum(s.take(bs) for bs in (1,2,3,5,1,8,30,60))
    got = Counter((*o[:3], round(o[3], 4), *o[4:]) for o in zip(*(rows[k][:,0].tolist() for k in cols)))
    expected = set(folded(lengths, n, delta, .9))
    # the first two episodes of each environment are over by then, the others may be under way
    eq({o: got[o] for o in expected if o[1]<20}, {o: 1 for o in expected if o[1]<20})
    eq({o for o in got if o[1]<40}-expected, set())
    torch.testing.assert_close(rows['discount'], .9**rows['n_steps'].float())

few = {(1,1),(2,1),(2,3),(3,2),(4,2),(5,3)} # the other folds are checked by `make test-long`
@pytest.mark.parametrize('n,delta', [pytest.param(*o, marks=() if o in few else long)
                                     for o in itertools.product(range(1,6), (1,2,3))])
def test_folds(n, delta):
    for length in range(1,8): check_folds((length,), None, n, delta)

@pytest.mark.parametrize('lengths,mode', itertools.product([(1,3),(6,5),(4,2,7)], modes))
def test_folds_of_vectors(lengths, mode):
    for n,delta in itertools.product((1,2,3), (1,2)): check_folds(lengths, mode, n, delta)

class Rich(Toy):
    "The first episode's rewards are infinite"
    def step(self, a):
        obs,r,*o = super().step(a)
        return obs, float('inf') if self.episode==0 else r, *o

class RichEnd(Toy):
    "The last reward of each episode is infinite"
    def step(self, a):
        obs,r,te,tr,info = super().step(a)
        return obs, float('inf') if te or tr else r, te, tr, info

def test_infinite_rewards():
    "An infinite reward stays in its episode"
    inf = float('inf')
    eq(Source(GymLoop(Rich())).take(6)['accum_rewards'][:,0].tolist(), [inf]*3+[1,3,6])
    eq(Source([GymLoop(RichEnd(), steps_count=2), FirstLast(0.)]).take(3)['reward'][:,0].tolist(), [1,2,inf])

@pytest.mark.parametrize('n,gamma', itertools.product((1,2,3,4), (0.,.5,1.)))
def test_infinite_rewards_folded(n, gamma):
    "And it is in the rows that it is a part of, and in no other"
    b = Source([GymLoop(Rich(), steps_count=n), FirstLast(gamma)]).take(8)
    r,over = [float('inf')]*3+[1.,2,3,1,2],[3,3,3,6,6,6,9,9]
    eq(b['reward'][:6,0].tolist(),
       [r[i] if gamma==0 else sum(gamma**k*r[i+k] for k in range(min(n, over[i]-i))) for i in range(6)])

# %% Random histories: breaks at random places
class Coded(gym.Env):
    "Observations show environment, episode and step; episodes end in both ways; after `fuse` calls there is an error"
    observation_space,action_space = spaces.Box(-1e9, 1e9, (3,)),spaces.Discrete(2)
    fuse,error = 10**9,None
    def __init__(self, e): self.e,self.p,self.buffer = e,-1,np.zeros(3, np.float32)
    def see(self):
        self.buffer[:] = self.e,self.p,self.t
        return self.buffer
    def burn(self):
        Coded.fuse -= 1
        if Coded.fuse==0: raise self.error('the fuse')
    def reset(self, *, seed=None, options=None):
        self.burn()
        self.p,self.t = self.p+1,0
        return self.see(),{}
    def step(self, action):
        early = self.p%2
        if early: self.burn()
        self.t += 1
        obs = self.see()
        if not early: self.burn()
        over = self.t==length(self.e, self.p)
        return obs, gain(self.e, self.p, self.t), over and self.p%3>0, over and self.p%3==0, {}

def length(e, p): return 1+(7*e+5*p+p*p)%6
def gain(e, p, t): return float(1+(3*e+p+2*t)%5)

class Witness(LoopCallback):
    "What a callback sees becomes columns"
    def after_step(self): self.source.now.extra.update(was=self.source.now.obs, saw=self.source.now.next_obs)

def coded_rows(e, p, n, delta, gamma):
    "The rows of an episode, from its length alone"
    L = length(e, p)
    starts = [t for t in range(L) if t%delta==0 or t==L-1 and t%delta>=n]
    for t in starts:
        m = min(n, L-t)
        end = t+m==L
        yield dict(state=[e,p,t], next_state=[e,p,t+m], was=[e,p,t], saw=[e,p,t+1], step=t+1, n_steps=m, env_id=e,
                   all_done=t==starts[-1], reward=sum(gamma**k*gain(e, p, t+k+1) for k in range(m)),
                   terminated=end and p%3>0, truncated=end and p%3==0,
                   accum_rewards=sum(gain(e, p, k+1) for k in range(t+1)))

def verify(openings, n, delta, gamma):
    "`openings`: the rows between two interruptions, for each"
    ids,episodes = {},{}
    for k,rows in enumerate(openings):
        for i in range(rows.bs()):
            o = {c: v[i].tolist() for c,v in rows.items()}
            o = {c: v[0] if len(v)==1 else v for c,v in o.items()}
            e,p = map(int, o['state'][:2])
            eq(ids.setdefault(o['episode_id'], (k,e,p)), (k,e,p)) # a number never comes twice
            episodes.setdefault((k,e), {}).setdefault(p, []).append(o)
    eq(len(set(ids.values())), len(ids))
    for (k,e),ps in episodes.items():
        for p,got in ps.items():
            expected = list(coded_rows(e, p, n, delta, gamma))
            eq([{c: o[c] for c in expected[0]} for o in got], expected[:len(got)])
            if p<max(ps): eq(len(got), len(expected)) # all but the last are whole

def history(rng):
    "Any autoreset mode, number of environments, fold and sizes; errors, Ctrl-C and `close` at random places"
    n_envs,n,delta = (int(rng.integers(1, o)) for o in (4,4,5))
    mode = [None,*modes.values()][rng.integers(4)]
    env = (SyncVectorEnv([lambda e=e: Coded(e) for e in range(n_envs)], autoreset_mode=mode, copy=bool(rng.integers(2)))
           if mode else Coded(0))
    agent = (lambda s: np.zeros(len(s), int)) if rng.integers(2) else None
    s = Source([GymLoop(env, agent=agent, seed=3, steps_count=n, steps_delta=delta), Witness, FirstLast(.5)])
    openings,breaks = [[]],0
    for _ in range(12):
        Coded.fuse,Coded.error = (int(rng.integers(1, 60)) if rng.random()<.4 else 10**9,
                                  (RuntimeError,KeyboardInterrupt)[rng.integers(2)])
        try: openings[-1].append(s.take(int(rng.integers(1, 30))))
        except (RuntimeError, KeyboardInterrupt):
            openings.append([])
            breaks += 1
        if rng.random()<.1:
            s.close()
            openings.append([])
    Coded.fuse = 10**9
    verify([sum(o[1:], o[0]) for o in openings if o], n, delta, .5)
    return breaks

@pytest.mark.parametrize('mode', modes)
def test_rewards_of_a_callback(mode):
    "Rewards in the place of a vector's: one for all or one for each, also as a network gives them; of another shape an error"
    def rows(reward):
        class Own(LoopCallback):
            def after_step(self): self.source.now.reward = reward
        return Source([GymLoop('CartPole-v1', seed=0, n_envs=2, autoreset=mode), Own]).take(60)
    for each in ([1.,2.], np.array([1,2]), torch.tensor([[1.],[2.]], requires_grad=True)):
        b = rows(each)
        same(b['reward'], b['env_id'].float()+1)
    same(rows(3)['reward'], torch.full((60,1), 3.))
    for bad in (np.ones(3), np.ones(1), np.ones((2,2))):
        fails(lambda: rows(bad), exc=ValueError, contains='rewards should be one number for each of 2 environments, got shape')

def test_histories():
    rng = np.random.default_rng(0)
    assert sum(history(rng) for _ in range(12))>12

@long
def test_many_histories():
    rng = np.random.default_rng(1)
    assert sum(history(rng) for _ in range(300))>300

def unfolded(e, p, n, delta):
    "The steps of each window of an episode, from its length alone: what `coded_rows` folds"
    return [list(range(o['step'], o['step']+o['n_steps'])) for o in coded_rows(e, p, n, delta, 1.)]

@pytest.mark.parametrize('mode,n,delta', itertools.product((None,*modes), (1,2,3), (1,2,4)))
@pytest.mark.halved
def test_unfolded(mode, n, delta):
    "Without a `FirstLast`: the same windows, step by step; each row is the step it was, and an episode has one last row"
    if n==delta==1: return
    env = SyncVectorEnv([lambda e=e: Coded(e) for e in range(3)], autoreset_mode=modes[mode]) if mode else Coded(0)
    source,rng = Source([GymLoop(env, seed=3, steps_count=n, steps_delta=delta), Witness]),np.random.default_rng(n)
    parts = [source.take(int(rng.integers(1, 40))) for _ in range(12)]
    b = parts[0]
    for o in parts[1:]: b = b+o
    same(b['was'], b['state'])
    same(b['saw'], b['next_state'])
    same(b['next_state'][:,2:], b['state'][:,2:]+1)
    got = {}
    for i,(e,p,t) in enumerate(b['state'].int().tolist()):
        eq((b['step'][i].item(), b['reward'][i].item()), (t+1, gain(e, p, t+1)))
        key = b['window'][i].item() if n>1 else i
        at = got.setdefault((e,p), {}).setdefault(key, [])
        at.append(t+1)
        last = at==unfolded(e, p, n, delta)[-1] and len(got[e,p])==len(unfolded(e, p, n, delta))
        eq((b['done'][i].item(), b['all_done'][i].item()), (t+1==length(e, p), last))
    for e in {e for e,_ in got}:
        last = max(p for o,p in got if o==e)
        for p in range(last): eq(list(got[e,p].values()), unfolded(e, p, n, delta))
        assert last>3
    if n==1: return
    source.close()
    for _,o in zip(range(20), source): # a window at a time
        (e,p,_),*_ = o['state'].int().tolist()
        assert o['step'][:,0].tolist() in unfolded(e, p, n, delta)

class Interrupt(LoopCallback):
    "Ctrl-C after the `at`-th step"
    def __init__(self, at=0): self.at,self.n = at,0
    def after_step(self):
        self.n += 1
        if self.n==self.at: raise KeyboardInterrupt

@pytest.mark.parametrize('mode,n,at', itertools.product((None,*modes), (1,3), (3,5,7)))
def test_interrupted_in_a_block(mode, n, at):
    "Afterwards no row reaches over the gap, single steps or several, one environment or a vector"
    env = toys((1,3,4), mode) if mode else Toy(10)
    s = Source([GymLoop(env, steps_count=n), FirstLast(1.), Interrupt(at)])
    if at>6: s.take(2)
    with expect_fail(KeyboardInterrupt): s.take(40)
    for rows in (s.take(20), s.take(20)): same(rows['next_state'], rows['state']+rows['n_steps'])

# %% Openings
def names(rows): return torch.cat([rows[k] for k in ('env_id','worker_id','episode_id','step')], 1)

def story(seed, n_envs=1):
    "A close, an interruption and `go_on`, one after the other"
    loop,fuse = GymLoop('CartPole-v1', seed=seed, n_envs=n_envs),Interrupt()
    s,rows = Source([loop, fuse, FirstLast]),[]
    for k in range(4):
        rows.append(s.take(50))
        if k%2:
            fuse.at = fuse.n+5*k
            with expect_fail(KeyboardInterrupt): s.take(100)
        else: s.close()
        if k==2: loop.go_on(150)
    return sum(rows)

@pytest.mark.parametrize('seed,n_envs', itertools.product((0,None), (1,2)))
def test_openings(seed, n_envs):
    "No number and no episode comes twice, and the same seed gives the same rows"
    rows = story(seed, n_envs)
    eq(len(set(map(tuple, names(rows).tolist()))), 200)
    eq(len(rows['state'].unique(dim=0)), 200)
    assert seed is None or torch.equal(story(seed, n_envs)['state'], rows['state'])

def test_first_opening():
    "The first opening has the seed itself"
    x = Source(GymLoop('CartPole-v1', seed=0)).take(1)['state'][0]
    eq(x.numpy(), gym.make('CartPole-v1').reset(seed=0)[0])

def test_copies():
    "A copy of an open source begins closed, with other episodes; a copy of a fresh one gives the same rows"
    fresh = Source([GymLoop('CartPole-v1', seed=0, n_envs=2), FirstLast])
    copy = pickle.loads(pickle.dumps(fresh))
    same(copy.take(20), a := fresh.take(20))
    copy = pickle.loads(pickle.dumps(fresh))
    b = copy.take(20)
    fresh.take(20)
    assert b['episode_id'].min()>a['episode_id'].max() and b['state'][0].tolist() not in a['state'].tolist()
    fresh.close()
    same(fresh.take(20), b)

class Stream(torch.utils.data.IterableDataset):
    def __init__(self, source): self.source = source
    def __iter__(self): return (self.source.take(10) for _ in range(3))

def epoch(source, seed):
    return list(torch.utils.data.DataLoader(Stream(source), batch_size=None, num_workers=2, multiprocessing_context='fork',
                                            generator=torch.Generator().manual_seed(seed)))

@pytest.mark.parametrize('n_envs', (2,3))
def test_workers(n_envs):
    "Workers of several environments, forked from an open source, play episodes of their own"
    s = Source(GymLoop('CartPole-v1', seed=0, n_envs=n_envs))
    s.take(10)
    rows = sum([*epoch(s, 1), s.take(10), *epoch(s, 2)])
    eq((len(rows['state'].unique(dim=0)), len(names(rows).unique(dim=0))), (130,130))
    same(s.take(10)['worker_id'].unique(), torch.tensor([0]))

def test_workers_of_a_seed(): same(*(epoch(Source(GymLoop('CartPole-v1', seed=0)), 5) for _ in range(2)))

@pytest.mark.parametrize('kw', (dict(), dict(n_envs=3), dict(n_envs=2, autoreset='same_step'),
    dict(n_envs=2, autoreset='disabled'), dict(n_envs=2, vectorization='async'),
    dict(n_envs=2, vectorization='async', autoreset='same_step'), dict(n_envs=1, vectorization='async'),
    dict(env_kwargs=dict(max_episode_steps=5))), ids=str)
def test_names_and_seeds(kw):
    "The same seed gives the same steps, each state is the outcome of the step before, and no global generator moves"
    before = torch.get_rng_state(), np.random.get_state()[1], random.getstate()
    a,b = (Source([GymLoop('CartPole-v1', seed=3, **kw), FirstLast]) for _ in range(2))
    one,two = a.take(50),b.take(50)
    same(one, two)
    eq(sorted(one['env_id'].unique().tolist()), list(range(kw.get('n_envs', 1))))
    if 'env_kwargs' in kw:
        eq(one['step'].max().item(), 5)
        assert one['truncated'].any()
    for e in one['env_id'].unique():
        mine = one[one['env_id'][:,0]==e]
        same(mine['state'][1:][~mine['done'][:-1,0]], mine['next_state'][:-1][~mine['done'][:-1,0]])
    a.close()
    b.close()
    same((torch.get_rng_state(), np.random.get_state()[1], random.getstate()), before)

# %% The last observation in `SAME_STEP` mode
class Ints(Toy):
    observation_space = spaces.Box(0, 9999, (1,), np.uint16)
    def __init__(self):
        super().__init__()
        self.buffer = np.zeros(1, np.uint16)
class Constant(Toy):
    def see(self): return np.ones(1, np.float32)
class Nested(Toy):
    observation_space = spaces.Dict(a=Toy.observation_space, b=spaces.Discrete(3))
    def see(self): return dict(a=super().see(), b=0)

def copying(make):
    def copy(o): return {**o, 'a':o['a'].copy()} if isinstance(o, dict) else o.copy()
    return lambda: gym.wrappers.TransformObservation(make(), copy, None)

@pytest.mark.parametrize('make,says', ((Toy,ValueError), (Nested,ValueError), (Ints,UserWarning), (Constant,UserWarning)))
@pytest.mark.parametrize('shared,fine', itertools.product((True,False), (True,False)))
@pytest.mark.halved
def test_overwritten(make, says, shared, fine):
    "A ready `AsyncVectorEnv` whose environments reuse their buffer: floats raise, whole numbers and constants warn once"
    vec = AsyncVectorEnv([copying(make) if fine else make]*2, autoreset_mode='SameStep', shared_memory=shared)
    s = Source(GymLoop(vec))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter('always')
        if says is ValueError and not fine: fails(lambda: s.take(20), contains='reuses its observation buffer')
        else:
            s.take(20)
            s.take(200)
    ours = [o for o in seen if 'reuses its observation buffer' in str(o.message)]
    eq(len(ours), int(says is UserWarning and (make is Constant or not fine)))
    s.close()
    vec.close()

class Old(gym.vector.VectorWrapper):
    "The name before gymnasium 1.1"
    def step(self, a):
        *o,info = self.env.step(a)
        if 'final_obs' in info: info = {'final_observation': info['final_obs']}
        return *o,info

class Dense(gym.vector.VectorWrapper):
    "One array for all environments"
    def step(self, a):
        *o,info = self.env.step(a)
        if 'final_obs' in info:
            info = {'final_obs': np.stack([np.full(1, np.nan) if f is None else f for f in info['final_obs']])}
        return *o,info

@pytest.mark.parametrize('wrap', (Old, Dense, gym.wrappers.vector.DictInfoToList))
def test_forms_of_final_obs(wrap):
    same_step = [lambda n=n: CopyObs(Toy(n)) for n in (1,3,4)]
    b = Source(GymLoop(wrap(SyncVectorEnv(same_step, autoreset_mode='SameStep')))).take(60)
    assert (b['next_state']==b['state']+1).all()
    got = Counter(zip(*(b[k][:,0].tolist() for k in ('env_id','state','reward','terminated','truncated','step','accum_rewards'))))
    want = Counter((i, 10*e+t, t+1, t+1==n and e!=1, t+1==n and e==1, t+1, (t+1)*(t+2)/2)
                   for i,n in enumerate((1,3,4)) for e in range(3) for t in range(n))
    eq({k: got[k] for k in want}, want)

@pytest.mark.parametrize('vec', (SyncVectorEnv, AsyncVectorEnv))
def test_plain_number_as_final_obs(vec):
    lake = vec([lambda: gym.make('FrozenLake-v1')]*2, autoreset_mode='SameStep')
    assert Source(GymLoop(lake, seed=0)).take(60)['done'].any()
    lake.close()

class Tensors(gym.vector.VectorWrapper):
    "Tensors, as from gymnasium's `NumpyToTorch` and from simulators"
    def reset(self, *, seed=None, options=None):
        obs,info = self.env.reset(seed=seed, options=options and {k: v.numpy() for k,v in options.items()})
        return torch.tensor(obs),info
    def step(self, a):
        *o,info = self.env.step(a)
        return *map(torch.tensor, o),{k: [None if o is None else torch.tensor(o) for o in v] if k=='final_obs' else v for k,v in info.items()}

@pytest.mark.filterwarnings('error')
@pytest.mark.parametrize('agent', (None, lambda states: states[:,0].long()%5))
@pytest.mark.parametrize('mode', modes)
def test_vector_of_tensors(mode, agent):
    "The same rows as from arrays"
    def rows(wrap):
        env = wrap(SyncVectorEnv([lambda n=n: CopyObs(Toy(n)) for n in (1,3,4)], autoreset_mode=modes[mode]))
        return Source(GymLoop(env, agent, seed=0)).take(60)
    same(rows(Tensors), rows(gym.vector.VectorWrapper))

# %% The same rows through vectors of every kind
def hashed(states): return (states.double().abs().sum(1)*1e6).long()%2 # as good as random, and the same for the same state
seen = 'state','action','reward','next_state','terminated','truncated','done','step','accum_rewards'

def by_env(loop, n_envs, rows=90):
    "The first `rows` rows of each environment"
    s = Source(loop)
    b = s.take(rows*n_envs*2 if n_envs>1 else rows)
    s.close()
    return [BD({k: b[k] for k in seen})[b['env_id'][:,0]==e][:rows] for e in range(n_envs)]

@pytest.fixture(scope='module')
def alone():
    "Rows of three environments with a time limit, each by itself"
    res = [by_env(GymLoop('CartPole-v1', agent=hashed, seed=5+e, env_kwargs=dict(max_episode_steps=13)), 1)[0] for e in range(3)]
    assert all(o['truncated'].any() and o['terminated'].any() for o in res)
    return res

@pytest.mark.parametrize('mode', modes)
@pytest.mark.parametrize('vec', ('sync','async'))
def test_by_name(mode, vec, alone):
    same(by_env(GymLoop('CartPole-v1', agent=hashed, seed=5, n_envs=3, autoreset=mode, vectorization=vec,
                        env_kwargs=dict(max_episode_steps=13)), 3), alone)

@pytest.mark.parametrize('mode', modes)
@pytest.mark.parametrize('vec,kw', ((SyncVectorEnv,dict(copy=False)), (AsyncVectorEnv,dict(copy=False)),
                                    (AsyncVectorEnv,dict(shared_memory=False))), ids=('sync','async','async by pipe'))
@pytest.mark.halved
def test_ready(mode, vec, kw, alone):
    env = vec([lambda: gym.make('CartPole-v1', max_episode_steps=13)]*3, autoreset_mode=modes[mode], **kw)
    same(by_env(GymLoop(env, agent=hashed, seed=5), 3), alone)
    env.close()

# %% The parts beneath
class Told(Toy):
    "Infos at some steps and resets; ends at random"
    def __init__(self, seed): super().__init__(); self.rng = np.random.default_rng(seed)
    def reset(self, *, seed=None, options=None): return super().reset()[0],{'began':self.episode} if self.episode%2 else {}
    def step(self, a):
        obs,r,*_ = super().step(a)
        return obs,r,bool(self.rng.random()<.2),bool(self.rng.random()<.2),{'lucky':self.t} if self.rng.random()<.5 else {}
class Number(Told):
    observation_space = spaces.Discrete(10**6)
    def see(self): return int(super().see()[0])
class Pair(Told):
    observation_space = spaces.Tuple([Toy.observation_space, spaces.Discrete(2)])
    def see(self): return super().see(),self.t%2

def alike(a, b):
    if isinstance(a, (dict, tuple)):
        eq((type(a), len(a)), (type(b), len(b)))
        for k in a if isinstance(a, dict) else range(len(a)): alike(a[k], b[k])
    elif isinstance(a, np.ndarray) and a.dtype==object:
        for x,y in zip(a, b, strict=True): alike(x, y)
    else: eq((getattr(a, 'dtype', None), np.shape(a), np.asarray(a).tolist()), (getattr(b, 'dtype', None), np.shape(b), np.asarray(b).tolist()))

@pytest.mark.parametrize('mode,make', itertools.product(modes, (Told,Number,Pair)))
def test_sync_envs(mode, make):
    "`SyncEnvs` gives what gymnasium's own vector gives: observations, rewards, endings and infos, and keeps what it gave"
    ours,theirs = (V([lambda i=i: CopyObs(make(i)) for i in range(3)], autoreset_mode=modes[mode]) for V in (SyncEnvs,SyncVectorEnv))
    alike(ours.reset(seed=1), theirs.reset(seed=1))
    seen = []
    for _ in range(60):
        a = theirs.action_space.sample()
        seen.append((x := ours.step(a), y := theirs.step(a)))
        if mode=='disabled' and (over := x[2]|x[3]).any():
            if len(seen)==20: fails(lambda: ours.step(a))
            seen.append([o.reset(options=dict(reset_mask=over.copy())) for o in (ours,theirs)])
    for x,y in seen: alike(x, y)

def test_step_rows():
    "Any number of environments, rows written and taken, resets in between: numbers, returns and what was taken, by a list"
    rng = np.random.default_rng(0)
    for n,wide in itertools.product((1,3), (1,3000)):
        forms = space_form(spaces.Box(-1, 1, (wide,)), ''),space_form(spaces.Discrete(3), '')
        rows,oracle,taken = StepRows(*forms, n, episode=7, worker=2),[],[]
        new,now,due = 7,[None]*n,np.zeros(n, bool) # of each environment: episode, step, return
        for t in range(300):
            rows.make_room(n)
            here,spent = [e for e in range(n) if not due[e]],due if due.any() else None
            at = slice(rows.stop, rows.stop+len(here))
            values = rng.integers(0, 3, len(here))
            rows.column('state')[at] = values[:,None]+t*10
            rows.column('action')[at] = values
            rows.column('next_state')[at] = values[:,None]+t*10+1
            ends,gain = rng.random((2, len(here)))<.15,rng.integers(-3, 4, len(here)).astype(float)
            rows.cols['env_id'][at],rows.cols['terminated'][at],rows.cols['truncated'][at],rows.gain[at] = here,*ends,gain
            rows.stop = at.stop
            for i,e in enumerate(here):
                if now[e] is None: now[e],new = [new,0,0.],new+1
                now[e][1] += 1
                now[e][2] += gain[i]
                over = ends[:,i].any()
                oracle.append([t*10+values[i], values[i], gain[i], *ends[:,i], over, over, now[e][1], now[e][0], e, 2, now[e][2]])
                if over: now[e] = None
            for e in np.flatnonzero(due): now[e],new = [new,0,0.],new+1
            rows.count(spent)
            due = np.isin(np.arange(n), np.array(here)[ends.any(0)]) & (rng.random()<.5) # else as in the other modes
            if rng.random()<.4: taken.append(rows.take(int(rng.integers(0, len(rows)+1))))
        names = 'state action reward terminated truncated done all_done step episode_id env_id worker_id accum_rewards'.split()
        got = [list(o) for b in taken for o in zip(*(b[k][:,0].tolist() for k in names))]
        assert len(got)>100 and rows.episode==new
        eq(got, [[float(v) if isinstance(v, float) else v for v in o] for o in oracle[:len(got)]])
        assert all((b['next_state']==b['state']+1).all() for b in taken)

# %% Odd environments
class Odd(gym.Env):
    "Nested, discrete and multi-valued spaces"
    observation_space = spaces.Dict(eye=spaces.Box(0, 255, (2,3), np.uint8),
                                    arm=spaces.Tuple([spaces.Discrete(9), spaces.MultiBinary(2)]))
    action_space = spaces.Tuple([spaces.Dict(a=spaces.Box(-1, 1, (2,)), b=spaces.MultiDiscrete([2,3])), spaces.Discrete(4)])
    def see(self): return dict(eye=np.full((2,3), self.t, np.uint8), arm=(self.t, np.array([self.t%2, 1], np.int8)))
    def reset(self, *, seed=None, options=None):
        self.t = 0
        return self.see(),{}
    def step(self, a):
        assert self.action_space.contains((dict(a[0]), a[1])), a
        self.t += 1
        return self.see(),0.,self.t==3,False,{}

def odd_agent(s):
    n = len(s['eye'])
    eq((s['eye'].shape, s['arm'][0].shape, s['arm'][1].shape), ((n,2,3),(n,1),(n,2)))
    return dict(a=torch.zeros(n,2), b=torch.ones(n,2).long()), s['arm'][0]%4

@pytest.mark.parametrize('mode,agent', itertools.product((None,*modes), (None,odd_agent)))
def test_odd_spaces(mode, agent):
    env = SyncVectorEnv([Odd]*2, autoreset_mode=modes[mode]) if mode else Odd()
    rows = Source([GymLoop(env, agent=agent, seed=1), FirstLast]).take(8)
    same(rows['next_state']['eye'][:,0,0], rows['state']['eye'][:,0,0]+1)
    same(rows['next_state']['arm'][0], rows['state']['arm'][0]+1)
    eq((rows['action'][0]['a'].shape, rows['action'][0]['b'].dtype, rows['action'][1].shape), ((8,2), torch.int64, (8,1)))
    if agent: same(rows['action'][1], rows['state']['arm'][0]%4)

class Broken(Toy):
    def step(self, a):
        if self.t==4: raise RuntimeError('broken')
        return super().step(a)
gym.register('FastrlBroken-v0', entry_point=Broken, kwargs=dict(length=9), order_enforce=False, disable_env_checker=True)

def test_error_in_a_process():
    "An error in a worker process is raised here, at each try, without a hang"
    s = Source(GymLoop('FastrlBroken-v0', n_envs=2, vectorization='async', seed=0))
    with warnings.catch_warnings():
        warnings.simplefilter('ignore') # those of gymnasium about its workers
        for _ in range(2): fails(lambda: s.take(40), contains='broken')
    s.close()

registers = """
import multiprocessing, sys
import gymnasium as gym, numpy as np
from fastrl.data.envs import open_envs
class Here(gym.Env):
    observation_space,action_space = gym.spaces.Box(-9, 9, (1,)),gym.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None): return np.ones(1, np.float32),{}
multiprocessing.set_start_method(sys.argv[1])
gym.register('FastrlHere-v0', entry_point=Here)
env = open_envs('FastrlHere-v0', n_envs=1, vectorization='async')
print(env.reset()[0].tolist())
env.close()
"""
@pytest.mark.slow
@pytest.mark.parametrize('method', ['forkserver','spawn'])
def test_registered_here(method):
    "A process that is not forked, as Python 3.14 begins them, makes an environment by the name that the program gave it"
    ended = subprocess.run([sys.executable, '-c', registers, method], capture_output=True, text=True, timeout=100, env={**os.environ, 'PYTHONPATH':str(root)})
    eq((ended.stdout, ended.returncode), ('[[1.0]]\n', 0))

def test_out_of_date(recwarn):
    "gymnasium warns of a name whose environment has a later version"
    open_envs('CartPole-v0').close()
    assert any('out of date' in str(o.message) for o in recwarn)

def test_no_play_in_a_wrapper_of_ones_own():
    "A ready environment in a wrapper that does not say how it was made cannot be made again, so nobody plays in it"
    class Doubled(gym.Wrapper): pass
    src = Source([GymLoop(Doubled(gym.make('CartPole-v1')), seed=0)])
    assert src.to_play(1) is None and len(src.take(3)['state'])==3
