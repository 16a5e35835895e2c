"stable-baselines3's buffers over our memory: random histories against an oracle, and against SB3's own buffers"
import copy, json, pickle, random, subprocess, sys, numpy as np, pytest, torch
from pathlib import Path
sb3 = pytest.importorskip('stable_baselines3')
import gymnasium as gym
from gymnasium import spaces
from stable_baselines3 import DQN, SAC, TD3, HerReplayBuffer as TheirHer
from stable_baselines3.common import buffers as theirs
from stable_baselines3.common.envs import BitFlippingEnv
from stable_baselines3.common.type_aliases import DictReplayBufferSamples
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecNormalize
from fastrl.memory.replay import ExperienceReplay, ExperienceReplayException, MemoryNotWarm
from fastrl.memory.sample import Prioritized
from fastrl.sb3 import DictReplayBuffer, HerReplayBuffer, NStepReplayBuffer, Priorities, ReplayBuffer

line,either = spaces.Box(-np.inf, np.inf, (2,)),spaces.Discrete(3)
many = spaces.Dict(eye=spaces.Box(0, 255, (2,2), np.uint8), arm=line)

class Stream:
    "Steps of `n` environments, whose observations come only once; each row's truth by its observation"
    def __init__(self, seed, n, resets=.05):
        self.resets,self.rng,self.n,self.count,self.truth,self.order = resets,np.random.default_rng(seed),n,0,{},[]
        self.obs = self.new(range(n))
        self.last = [None]*n # the observation before, while its episode goes on

    def new(self, envs):
        self.count += len(envs)
        return np.array([[self.count-i, e] for i,e in enumerate(envs)], np.float32)

    def step(self):
        "The arguments of `add`; now and then all environments were reset before"
        rng,n = self.rng,self.n
        if rng.random()<self.resets: self.obs,self.last = self.new(range(n)),[None]*n
        nxt,reward = self.new(range(n)),rng.standard_normal(n).astype(np.float32)
        late = rng.random(n)<.1
        over = late|(rng.random(n)<.1)
        for e in range(n):
            key = float(self.obs[e,0])
            self.truth[key] = dict(next=float(nxt[e,0]), reward=float(reward[e]), over=bool(over[e]), late=bool(late[e]), then=None)
            if self.last[e] is not None: self.truth[self.last[e]]['then'] = key
            self.last[e] = None if over[e] else key
        self.order.append([float(o) for o in self.obs[:,0]])
        args = self.obs,nxt,rng.integers(3, size=(n,1)),reward,over,[{'TimeLimit.truncated':bool(o)} if o else {} for o in late]
        self.obs = np.where(over[:,None], self.new(range(n)), nxt).astype(np.float32)
        return args

def check(stream, buffer, batch, steps=1, gamma=1., handle=True):
    "Every row of `batch` is one that is stored, with the outcome of up to `steps` steps of its episode"
    stored = {k for o in stream.order[-buffer.buffer_size:] for k in o}
    obs,nxt = batch.observations,batch.next_observations
    if isinstance(obs, dict): obs,nxt = obs['arm'],nxt['arm']
    for i,key in enumerate(obs[:,0].tolist()):
        assert key in stored
        o,total,g,k = stream.truth[key],0.,1.,1
        total = o['reward']
        while k<steps and o['then'] in stored:
            o,g,k = stream.truth[o['then']],g*gamma,k+1
            total += g*o['reward']
        assert nxt[i,0].item()==o['next']
        assert batch.dones[i,0].item()==(o['over'] and not (o['late'] and handle))
        assert abs(batch.rewards[i,0].item()-total)<1e-4
        assert steps==1 or abs(batch.discounts[i,0].item()-g*gamma)<1e-6

def dict_of(obs): return dict(eye=np.repeat(obs[:,:1], 4, 1).reshape(-1,2,2)%256, arm=obs)

def run(seed):
    rng = np.random.default_rng(seed)
    n,handle,steps,optimize,nested = int(rng.integers(1, 4)),*(int(rng.integers(2)), int(rng.integers(1, 5)), *map(int, rng.integers(0, 2, 2)))
    s,cls = Stream(seed, n),DictReplayBuffer if nested else ReplayBuffer
    b = cls(int(rng.integers(n, 30)), many if nested else line, either, 'cpu', n, optimize, handle, n_steps=steps, gamma=.9, seed=seed)
    for j in range(60):
        o,nxt,*rest = s.step()
        b.add(*((dict_of(o), dict_of(nxt)) if nested else (o, nxt)), *rest)
        if j%7==3: b = pickle.loads(pickle.dumps(b)) if j%2 else copy.deepcopy(b)
        if j%5==0: check(s, b, b.sample(16), steps, .9, handle)
    assert b.pos==60%b.buffer_size and b.full==(60>=b.buffer_size)

def test_histories():
    for seed in range(40): run(seed)

@pytest.mark.long
def test_many_histories():
    for seed in range(1000, 3000): run(seed)

@pytest.mark.parametrize('kind', ['plain','dict','steps'])
@pytest.mark.parametrize('handle', [False,True])
def test_same_batches_as_theirs(kind, handle):
    "One stream in both buffers: the same arrays, and the same batches of the same rows, normalized too"
    space = many if kind=='dict' else line
    kw = dict(n_steps=10, gamma=.97) if kind=='steps' else {}
    a,b = (c(20, space, either, 'cpu', 2, handle_timeout_termination=handle, **kw) for c in dict(
        plain=(ReplayBuffer, theirs.ReplayBuffer), dict=(DictReplayBuffer, theirs.DictReplayBuffer),
        steps=(NStepReplayBuffer, theirs.NStepReplayBuffer))[kind])
    class Env(gym.Env):
        observation_space,action_space = space,either
        def reset(self, **_): return space.sample(), {}
    norm = VecNormalize(DummyVecEnv([Env, Env]), norm_obs_keys=['arm'] if kind=='dict' else None)
    s = Stream(5, 2, resets=0) # over which their returns would run
    for _ in range(27):
        o,nxt,*rest = s.step()
        for x in (a, b): x.add(*((dict_of(o), dict_of(nxt)) if kind=='dict' else (o, nxt)), *rest)
        norm.obs_rms['arm'].update(o) if kind=='dict' else norm.obs_rms.update(o)
        norm.ret_rms.update(rest[1]*30)
        for k in ('pos','full','actions','rewards','dones','timeouts'): np.testing.assert_array_equal(getattr(a, k), getattr(b, k))
        for env in (None, norm):
            rows = np.random.default_rng(s.count).integers(a.size(), size=16)
            np.random.seed(3); x = a._get_samples(rows, env)
            np.random.seed(3); y = b._get_samples(rows, env)
            for k,p,q in zip(x._fields, x, y):
                if kind=='dict' and isinstance(p, dict): p,q = p['arm'],q['arm']
                if p is None and q is None: continue
                assert p.dtype==q.dtype and torch.equal(p, q), k

class Arm(gym.Env):
    "A Dict observation, episodes that fail and such that run out of time"
    observation_space,action_space,n = many,spaces.Box(-1, 1, (1,)),0
    def seen(self): return dict(eye=np.full((2,2), self.n%256, np.uint8), arm=np.array([self.x, self.t], np.float32))
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t,self.n,self.x = 0,self.n+1,self.np_random.uniform(-1, 1)
        return self.seen(), {}
    def step(self, action):
        self.t,self.x = self.t+1,self.x+float(action[0])
        return self.seen(), -self.x**2, abs(self.x)>3, self.t==17, {}

class Line(Arm):
    "The same without Dict, for two actions"
    observation_space,action_space = line,spaces.Discrete(2)
    def seen(self): return super().seen()['arm']
    def step(self, action): return super().step([action-.5])

courses = dict(plain=(ReplayBuffer, theirs.ReplayBuffer, DQN, Line, {}), steps=(NStepReplayBuffer, theirs.NStepReplayBuffer, DQN, Line, dict(n_steps=3, gamma=.97)),
               dict=(DictReplayBuffer, theirs.DictReplayBuffer, SAC, Arm, {}), once=(ReplayBuffer, theirs.ReplayBuffer, DQN, Line, dict(handle_timeout_termination=False)), her=(HerReplayBuffer, TheirHer, DQN, lambda: BitFlippingEnv(n_bits=4), {}))

@pytest.mark.parametrize('n_envs', (1, pytest.param(3, marks=pytest.mark.slow)))
@pytest.mark.parametrize('kind', courses)
def test_same_course_as_theirs(kind, n_envs):
    "With `seed=np.random` a training ends with the weights that SB3's own buffer gives, bit for bit, around the ring"
    ours,their,model,env,kw = courses[kind]
    def weights(cls, **more):
        policy = 'MultiInputPolicy' if kind in ('dict','her') else 'MlpPolicy'
        m = model(policy, DummyVecEnv([env]*n_envs), learning_starts=50, train_freq=2, seed=0, buffer_size=130, policy_kwargs=dict(net_arch=[16]), optimize_memory_usage=kind=='once',
                  replay_buffer_class=cls, replay_buffer_kwargs={**kw, **more})
        m.learn(300)
        return torch.cat([o.flatten() for o in m.policy.state_dict().values()])
    assert torch.equal(weights(ours, seed=np.random), weights(their))

@pytest.mark.parametrize('n_envs,channels', ((1,1), (3,1), (1,3)))
def test_same_course_with_frames(n_envs, channels):
    "With each frame stored once a training ends with the same weights: around the ring, through ends, time limits and `learn` again"
    class Screen(Line):
        observation_space = spaces.Box(0, 255, (channels,16,16), np.uint8)
        def seen(self): return np.full((channels,16,16), 10*self.t+self.n%10, np.uint8)
    def trained(**kw):
        m = DQN('MlpPolicy', VecFrameStack(DummyVecEnv([Screen]*n_envs), 4), learning_starts=50, train_freq=2, seed=0, buffer_size=130,
                policy_kwargs=dict(net_arch=[16]), replay_buffer_class=ReplayBuffer, replay_buffer_kwargs=kw)
        for _ in range(2): m.learn(200)
        return torch.cat([o.flatten() for o in m.policy.state_dict().values()]),m.replay_buffer
    (a,whole),(b,once) = trained(),trained(frame_stack=4)
    assert torch.equal(a, b) and once.size()==whole.size()==130//n_envs
    assert whole.observations.shape[2:]==(4*channels,16,16) and not hasattr(once, 'observations')

def test_normalized_frames():
    "`VecNormalize` has the last frames of an episode rounded: refused in its words, and vectors may be normalized"
    class Screen(Line):
        observation_space = spaces.Dict(eye=spaces.Box(0, 1, (1,8,8)), arm=spaces.Box(0, 9, (2,)))
        def seen(self): return dict(eye=self.np_random.random((1,8,8), np.float32), arm=np.full(2, self.t, np.float32))
    def trained(key, **kw):
        env = VecNormalize(VecFrameStack(DummyVecEnv([Screen]), 4, channels_order='first'), norm_obs_keys=[key])
        m = DQN('MultiInputPolicy', env, learning_starts=50, seed=0, policy_kwargs=dict(net_arch=[16]), buffer_size=130,
                replay_buffer_class=DictReplayBuffer, replay_buffer_kwargs=kw).learn(200)
        return torch.cat([o.flatten() for o in m.policy.state_dict().values()])
    assert torch.equal(trained('arm'), trained('arm', frame_stack=4))
    with pytest.raises(ValueError, match='let it leave them as they are, by `norm_obs=False`'): trained('eye', frame_stack=4)

def test_errors_of_their_draws():
    "The errors belong to the rows that were drawn last, also by number"
    b,s = ReplayBuffer(40, line, either, 'cpu', 2, seed=np.random),Stream(0, 2)
    with pytest.raises(ValueError, match='draw one first'): b.update_td(torch.ones(1,1))
    for _ in range(20): b.add(*s.step())
    for draw in (lambda: b.sample(6), lambda: b._get_samples(np.arange(6))):
        obs = draw().observations
        b.update_td(obs[:,:1]*1000)
        i = b.drawn['idxs']
        torch.testing.assert_close(b.memory.ring['td_error'][i,0], b.memory.ring['state'][i,0]*1000)
        assert torch.equal(b.memory.ring['state'][i], obs)

def test_their_draws_are_even():
    with pytest.raises(ValueError, match='drawn evenly'): ReplayBuffer(6, line, either, sampler=Prioritized(), seed=np.random)
    with pytest.raises(MemoryNotWarm, match='0 rows are stored'): ReplayBuffer(6, line, either, seed=np.random).sample(3)

def test_arrays_are_views():
    b = ReplayBuffer(6, line, either, 'cpu', 2)
    s = Stream(0, 2)
    for _ in range(4): b.add(*s.step())
    for k in ('observations','next_observations','actions','rewards','dones','timeouts'):
        a = getattr(b, k)
        a[:] = 1
        assert a.shape[:2]==(3,2) and (getattr(b, k)==1).all()
    batch = b.sample(9)
    assert (batch.rewards==1).all() and (batch.observations==1).all() and (batch.dones==0).all()

def test_reset_and_cursor():
    b = ReplayBuffer(6, line, either, 'cpu', 2, n_steps=3)
    s = Stream(0, 2)
    for _ in range(4): b.add(*s.step())
    b.reset()
    assert (b.pos, b.full, b.size())==(0, False, 0)
    s.order.clear()
    for _ in range(2): b.add(*s.step())
    check(s, b, b.sample(20), 3, .99)
    b.full = True
    assert (b.pos, b.size())==(2, 3)
    b.pos = 0
    assert (b.pos, b.full)==(0, True)

def test_refused_step_changes_nothing():
    b = ReplayBuffer(6, line, either, 'cpu', 2)
    s = Stream(0, 2)
    b.add(*s.step())
    before = str(b.memory.ring[:])
    obs,nxt,*rest = s.step()
    with pytest.raises(ValueError, match=r'`next_state` should be float32\[2, 2\], got float32\[2, 3\]'): b.add(obs, np.zeros((2,3), np.float32), *rest)
    assert str(b.memory.ring[:])==before and b.pos==1
    for bad in (dict(r=['much','little']), dict(infos=[{}])): # nor the step after it, which ends no episode
        a,r,_,_ = rest
        with pytest.raises(ValueError): b.add(obs, nxt, a, bad.get('r', r), np.ones(2), bad.get('infos', [{'TimeLimit.truncated':True}]*2))
        assert str(b.memory.ring[:])==before
    b.add(obs, nxt, a, r, np.zeros(2), [{}]*2)
    assert not b.dones[1].any() and not b.timeouts[1].any() and (b.observations[1]==obs).all()

def test_flags_are_each_step_s_own():
    "Of many steps only a few end an episode; the rows between them say nothing of an ending, also in a copy of the buffer"
    b,rng = ReplayBuffer(400, line, either, 'cpu', 2),np.random.default_rng(0)
    s,want = Stream(1, 2, resets=0),[]
    for i in range(150):
        obs,nxt,a,r,_,_ = s.step()
        over,late = rng.random((2,2))<.05
        b.add(obs, nxt, a, r, over|late, [{'TimeLimit.truncated':o} for o in late])
        want.append([over|late, late, (over|late)&~late])
        if i%10==0: b = pickle.loads(pickle.dumps(b))
    for k,w in zip(('dones','truncated','terminated'), np.array(want, dtype=bool).transpose(1,0,2)):
        assert (b.memory.ring[k].numpy().reshape(-1,2)==w).all(), k
    assert (b.memory.ring['env_id'].numpy().reshape(-1,2)==[0,1]).all() and not b.memory.ring['td_error'].any()

def test_newest_step_when_learn_is_called_again():
    "`learn` resets the environment and marks the newest step as done: it was no termination, and has its true next observation"
    class Walk(gym.Env):
        observation_space,action_space = spaces.Box(0, 1e9, (1,)),either
        t = 0
        def reset(self, **_): self.t += 1000; return np.float32([self.t]), {}
        def step(self, a): self.t += 1; return np.float32([self.t]), 1., False, False, {}
    model = DQN('MlpPolicy', Walk(), buffer_size=50, learning_starts=1000, optimize_memory_usage=True, replay_buffer_class=ReplayBuffer)
    for _ in range(2):
        with pytest.warns(UserWarning) if _ else copy.copy(pytest.MonkeyPatch.context()): model.learn(8)
    b = model.replay_buffer
    batch = b._get_samples(np.arange(16))
    assert (batch.next_observations==batch.observations+1).all() and (batch.dones==0).all()

@pytest.mark.parametrize('cls,env', [(DQN,'CartPole-v1'), (SAC,'Pendulum-v1'), (TD3,'Pendulum-v1')])
def test_saved_and_loaded(cls, env, tmp_path):
    "A saved buffer goes on with the same draws"
    def make(): return cls('MlpPolicy', env, seed=0, buffer_size=150, learning_starts=20, policy_kwargs=dict(net_arch=[8]),
                           replay_buffer_class=ReplayBuffer, replay_buffer_kwargs=dict(sampler=Prioritized()))
    m = make().learn(200)
    m.save_replay_buffer(tmp_path/'b.pkl')
    other = make()
    other.load_replay_buffer(tmp_path/'b.pkl')
    for x,y in zip(m.replay_buffer.sample(32), other.replay_buffer.sample(32)): assert x is y or torch.equal(x, y)
    assert isinstance(other.replay_buffer, theirs.ReplayBuffer) and other.replay_buffer.full

def test_models_share_no_sampler():
    kw = dict(buffer_size=50, replay_buffer_class=ReplayBuffer, replay_buffer_kwargs=dict(sampler=Prioritized()), policy_kwargs=dict(net_arch=[8]))
    a,b = DQN('MlpPolicy', 'CartPole-v1', **kw),DQN('MlpPolicy', 'CartPole-v1', **kw)
    assert a.replay_buffer.memory.sampler is not b.replay_buffer.memory.sampler

def test_seed_of_the_model_repeats_draws():
    def draws(seed):
        m = DQN('MlpPolicy', 'CartPole-v1', seed=seed, buffer_size=90, learning_starts=1000, replay_buffer_class=ReplayBuffer).learn(100)
        return [m.replay_buffer.sample(8).observations for _ in range(3)]
    assert all(map(torch.equal, draws(1), draws(1))) and not all(map(torch.equal, draws(1), draws(2)))

@pytest.mark.parametrize('base,env', [(DQN,'CartPole-v1'), (SAC,'Pendulum-v1')])
def test_priorities(base, env):
    "Losses are weighted by the draw, and errors come back; with equal weights training is SB3's own, bit for bit"
    class Ours(Priorities, base): pass
    def trained(cls, **kw):
        return cls('MlpPolicy', env, seed=0, buffer_size=200, learning_starts=20, policy_kwargs=dict(net_arch=[8]),
                   replay_buffer_class=ReplayBuffer, replay_buffer_kwargs=kw).learn(100)
    a,b = trained(base),trained(Ours)
    for x,y in zip(a.policy.parameters(), b.policy.parameters()): assert torch.equal(x, y)
    c = trained(Ours, sampler=Prioritized(beta=1., seed=0))
    td = c.replay_buffer.memory.ring['td_error']
    assert (td>0).float().mean()>.5
    p = c.replay_buffer.memory.sampler.tree[:100]
    assert len(set(p.tolist()))>20

def test_weights_count():
    "The loss of a batch is the weighted mean of what each row loses"
    import torch.nn.functional as F
    b = ReplayBuffer(20, line, either, 'cpu', sampler=Prioritized(alpha=1., beta=1., seed=0))
    s = Stream(0, 1)
    for _ in range(10): b.add(*s.step())
    b.sample(8)
    b.update_td(torch.arange(8.)[:,None])
    b.sample(8)
    w,values,goals = b.drawn['weight'],torch.arange(8.)[:,None],torch.full((8,1), 3.)
    found = []
    class Model:
        def train(self): found.extend([F.mse_loss(values, goals), F.mse_loss(goals+1, goals), F.mse_loss(torch.ones(3), torch.zeros(3))])
    def model(Model):
        res = type('Ours', (Priorities, Model), {})()
        res.replay_buffer = b
        return res
    model(Model).train()
    assert torch.isclose(found[0], ((values-goals)**2*w).mean()) and found[2]==1 and w.min()<.9
    assert F.mse_loss(values, goals)==((values-goals)**2).mean() # outside nothing is changed
    errors = {} # of each row, the larger ones of two losses
    for i,e in zip(b.drawn['idxs'].tolist(), (3.,2.,1.,1.,1.,2.,3.,4.)): errors.setdefault(i, set()).add(e)
    assert all(b.memory.ring['td_error'][i].item() in o for i,o in errors.items()) and len(errors)>3
    class Idle:
        def train(self): pass
    model(Idle).train() # which draws nothing
    class Other:
        def train(self): self.replay_buffer.sample(8)
    with pytest.raises(ValueError, match='Ours has neither'): model(Other).train()

def test_own_get_samples():
    "A subclass with a `_get_samples` of its own, as SB3's `sample` calls it, relabels every batch"
    class Relabelled(ReplayBuffer):
        def _get_samples(self, batch_inds, env=None):
            return super()._get_samples(batch_inds, env)._replace(rewards=torch.full((len(batch_inds),1), 5., device=self.device))
    for kwargs in ({}, dict(n_steps=3), dict(seed=1)):
        m = DQN('MlpPolicy', 'CartPole-v1', buffer_size=200, learning_starts=50, seed=0, replay_buffer_class=Relabelled,
                replay_buffer_kwargs=kwargs)
        m.learn(80)
        assert (m.replay_buffer.sample(9).rewards==5).all()
    b = Relabelled(9, line, either, sampler=Prioritized())
    b.add(*(np.zeros((1,2)),)*2, np.zeros(1), np.zeros(1), np.zeros(1), [{}])
    with pytest.raises(ValueError, match='`_get_samples` of your own'): b.sample(2)

def test_copies_of_her():
    "Deep copies draw each their own steps, unless a seed says which"
    for kwargs,alike in (({}, False), (dict(seed=1), True), (dict(seed=np.random), False)):
        m = DQN('MultiInputPolicy', BitFlippingEnv(n_bits=4), buffer_size=200, learning_starts=1000, seed=0,
                replay_buffer_class=HerReplayBuffer, replay_buffer_kwargs=kwargs)
        m.learn(100)
        was = np.random.get_state()[2]
        one,two = copy.deepcopy(m.replay_buffer),copy.deepcopy(m.replay_buffer)
        assert (np.random.get_state()[2]!=was)==(not kwargs) and one.pos==100
        for b in (one, two): b.set_env(m.env)
        assert all(torch.equal(a, b) for a,b in zip(one.sample(50).observations.values(), two.sample(50).observations.values()))==alike

def test_her():
    "Goals through SB3's names: achieved later in the same episode, also where the buffer wraps; rewards by the environment"
    class Goals(gym.Env):
        observation_space = spaces.Dict({k: spaces.Box(-1e6, 1e6, (1,)) for k in ('observation','achieved_goal','desired_goal')})
        action_space,count = either,0
        def seen(self): return {k: np.float32([-self.count if k=='desired_goal' else self.count]) for k in self.observation_space}
        def reset(self, **_): self.count += 1000; self.t = 0; return self.seen(), {}
        def step(self, a): self.count += 1; self.t += 1; return self.seen(), 0., False, self.t==7, {'at':self.count}
        def compute_reward(self, achieved, goal, infos):
            assert [o['at'] for o in infos]==achieved[:,0].tolist()
            return achieved[:,0]*2+goal[:,0]
    m = DQN('MultiInputPolicy', Goals(), buffer_size=25, learning_starts=1000, seed=0, replay_buffer_class=HerReplayBuffer,
            replay_buffer_kwargs=dict(copy_info_dict=True))
    m.learn(60)
    b = m.replay_buffer.sample(400)
    assert type(b) is DictReplayBufferSamples
    achieved,goal = b.next_observations['achieved_goal'],b.next_observations['desired_goal']
    new = goal>0
    assert torch.equal(goal[new], b.observations['desired_goal'][new]) and .7<new.float().mean()<.9
    assert ((goal>=achieved)&(goal//1000==achieved//1000))[new].all() and torch.equal(b.rewards[new], (achieved*2+goal)[new])
    assert (b.rewards[~new]==0).all() and (b.dones==0).all()

def test_their_vectors_in_our_memory():
    "`add_vector` takes what an SB3 `VecEnv` gives: the last observation of an episode stands in a list of infos"
    envs,memory = DummyVecEnv([Line]*2),ExperienceReplay(warmup_sz=1, max_sz=500, n_step=3, seed=0)
    obs = envs.reset()
    for _ in range(60):
        actions = np.ones(2, int) # always to the right
        nxt,rewards,over,infos = envs.step(actions)
        late = np.array([o['TimeLimit.truncated'] for o in infos])
        step = dict(obs=obs, actions=actions, rewards=rewards, terminated=over&~late, truncated=late, next_obs=nxt, infos=infos)
        if over.any():
            with pytest.raises(ExperienceReplayException, match='pass the vector'): memory.add_vector(**step, autoreset='next_step')
        memory.add_vector(**step, autoreset='same_step')
        obs = nxt
    m = memory.memory
    assert torch.equal(m['next_state'][:,1], m['state'][:,1]+1) and m['terminated'].any()
    b,_ = memory.sample(200)
    assert torch.equal(b['next_state'][:,1:], b['state'][:,1:]+b['n_steps'])

@pytest.mark.slow
def test_killed_and_resumed(tmp_path):
    "DQN and SAC, killed at random steps and resumed as the how-to page says, end bit for bit as unbroken ones"
    rng,folders = random.Random(0),[tmp_path/o for o in ('once','often')]
    for o in folders: o.mkdir()
    kills = [(rng.randint(60, 240), 0), (0, rng.randint(1, 120)), (0, rng.randint(121, 240))]
    runs = [(folders[0], 0, 0), *((folders[1], *o) for o in kills), (folders[1], 0, 0)]
    p = subprocess.run([sys.executable, 'tests/resume_sb3.py', *(json.dumps(o, default=str) for o in runs)], cwd=Path(__file__).parent.parent, capture_output=True, text=True)
    unbroken,*codes,resumed,end = map(json.loads, p.stdout.splitlines())
    assert (codes, end, p.returncode)==([0,-9,-9,-9], 0, 0), p.stderr
    assert resumed==unbroken

def test_resumed_without_the_environment_s_state(tmp_path, capsys):
    "An environment that pickles without its state begins a new episode, which nothing is joined to"
    from resume_sb3 import Resumable, resumed
    class Walk(gym.Env, gym.utils.EzPickle):
        observation_space,action_space,lives = spaces.Box(0, 1e9, (1,)),either,[]
        def __init__(self): gym.utils.EzPickle.__init__(self); self.at = len(self.lives)*10_000; self.lives.append(0)
        def seen(self): return np.float32([self.at])
        def reset(self, **_): self.at = self.at//1000*1000+1000; return self.seen(), {}
        def step(self, a): self.at += 1; return self.seen(), 1., False, False, {}
    m = DQN('MlpPolicy', Walk(), seed=0, buffer_size=90, learning_starts=1000, replay_buffer_class=NStepReplayBuffer,
            replay_buffer_kwargs=dict(n_steps=3, gamma=1.))
    m.learn(20, callback=Resumable(tmp_path/'run', 20))
    m.learn(12, reset_num_timesteps=False, callback=Resumable(tmp_path/'run', 20)) # its file is of step 20
    m = resumed(DQN, tmp_path/'run')
    assert 'a new episode begins' in capsys.readouterr().out and m.num_timesteps==20
    m.learn(20, reset_num_timesteps=False)
    b = m.replay_buffer.sample(500)
    steps = (b.next_observations-b.observations)[:,0]
    assert len(b.observations.unique())==40 and steps.max()<=3 and torch.equal(b.rewards[:,0], steps)

@pytest.mark.parametrize('seed', [None, 0, np.random])
@pytest.mark.parametrize('handle', [True, False])
def test_her_needs_next_observations(seed, handle):
    "SB3 refuses `optimize_memory_usage` when it makes the buffer; here the first draw did, after `learning_starts` steps"
    env = DummyVecEnv([BitFlippingEnv])
    spaces = env.observation_space,env.action_space,env
    with pytest.raises(AssertionError): TheirHer(99, *spaces, 'auto', 1, True, handle)
    for args,kwargs in ((('auto', 1, True, handle), {}), ((), dict(optimize_memory_usage=True, handle_timeout_termination=handle))):
        with pytest.raises(ValueError, match='leave out `optimize_memory_usage`'): HerReplayBuffer(99, *spaces, *args, seed=seed, **kwargs)
    assert HerReplayBuffer(99, *spaces, 'auto', 1, False, handle, 4, 'future', False, seed=seed).size()==0

def test_what_the_comparison_says():
    "What the page says stable-baselines3 has is there, and what another package has is not"
    page = (Path(__file__).parent.parent/'nbs/start/comparison.ipynb').read_text(encoding='utf-8')
    assert hasattr(sb3, 'HerReplayBuffer') and hasattr(theirs, 'NStepReplayBuffer') and not hasattr(sb3, 'RecurrentPPO')
    assert 'only for recurrent PPO, in sb3-contrib' in page and page.count('recurrent PPO')==1

def test_advantages_are_theirs():
    "Of a rollout of several environments whose episodes end or are cut, whatever `gamma` and `lam` are"
    rng,n,steps = np.random.default_rng(0),3,40
    for gamma,lam in ((.99, .95), (.9, 1.), (1., 0.), (.8, .5)):
        buffer = theirs.RolloutBuffer(steps, line, either, gae_lambda=lam, gamma=gamma, n_envs=n)
        memory,over,later = ExperienceReplay(max_sz=n*steps, warmup_sz=1, gamma=gamma),np.ones(n, bool),[]
        values = rng.normal(size=(steps+1, n)).astype(np.float32) # of what each environment shows
        for t in range(steps):
            starts,ends,rewards = over.astype(np.float32),rng.random((2,n))<.1,rng.normal(size=n).astype(np.float32)
            terminated,truncated = ends[0],ends[1]&~ends[0]
            final,over = rng.normal(size=n).astype(np.float32),terminated|truncated # of the last observations
            buffer.add(np.zeros((n,2)), np.zeros((n,1)), rewards+gamma*final*truncated, starts, torch.from_numpy(values[t]), torch.zeros(n))
            memory + dict(reward=rewards, value=values[t], terminated=terminated, truncated=truncated, env_id=np.arange(n))
            later.append(np.where(over, final, values[t+1]))
        buffer.compute_returns_and_advantage(torch.from_numpy(values[-1]), over)
        got = memory.gae('value', np.concatenate(later), lam=lam)
        np.testing.assert_allclose(got.view(steps, n).numpy(), buffer.advantages, atol=1e-4)
        np.testing.assert_allclose((got+memory['value']).view(steps, n).numpy(), buffer.returns, atol=1e-4)
