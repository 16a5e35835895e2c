"""A buffer of Velora's form that stores each frame once draws what one that stores states whole draws"""
import copy, pickle, subprocess, sys, zlib
from pathlib import Path
from types import SimpleNamespace
import gymnasium as gym, numpy as np, pytest, torch
from fastcore.test import expect_fail
from fastrl.memory.buffer import ReplayBuffer
from fastrl.memory.sample import Prioritized

names = 'states','actions','rewards','next_states','dones','hiddens','terminateds','truncateds','weights','idxs'

def same(once, whole, n=6):
    "The same steps in the same rows, and the same draws"
    assert (len(once), once.capacity)==(len(whole), whole.capacity)
    for k,v in whole.state_dict().items(): assert once.state_dict()[k].tolist()==v.tolist(), k
    assert once.position==whole.position
    if len(whole)<n: return
    a,b = once.sample(n),whole.sample(n)
    for k in names: assert (getattr(a, k) is None)==(getattr(b, k) is None) and (getattr(a, k) is None or getattr(a, k).tolist()==getattr(b, k).tolist()), k
    return a,b

class Envs:
    "Environments of stacks, of which some look alike"
    def __init__(self, rng, n, stack, shape, dtype):
        self.rng,self.stack,self.shape,self.dtype,self.now = rng,stack,shape,dtype,[None]*n
    def frame(self): return torch.from_numpy(self.rng.integers(0, 2 if self.rng.random()<.3 else 99, self.shape)).to(self.dtype)
    def shown(self, frames): return torch.stack(frames) if self.stack else frames[0]
    def step(self, e, action=0):
        rng,S = self.rng,self.stack or 1
        if self.now[e] is not None and rng.random()<.05: self.now[e] = None # it is abandoned
        was = self.now[e] or [*[torch.zeros(self.shape, dtype=self.dtype)]*(S-1), self.frame()]
        now,over = [*was[1:], self.frame()],bool(rng.random()<.2)
        self.now[e] = None if over else now
        cut = over and bool(rng.random()<.5)
        return self.shown(was), int(rng.integers(3)), float(rng.integers(9)), self.shown(now), over, torch.tensor([float(e)]), cut

@pytest.mark.halved
@pytest.mark.parametrize('prioritized', [False, True])
@pytest.mark.parametrize('stack,shape,dtype', [(4,(3,2),torch.uint8), (0,(5,),torch.float32), (1,(2,2),torch.float32), (3,(2,),torch.bfloat16), (2,(4,2),torch.bool)])
def test_random_histories(stack, shape, dtype, prioritized, tmp_path):
    for seed in range(2):
        rng = np.random.default_rng([seed, stack, prioritized])
        n_envs,cap = int(rng.integers(1, 5)),int(rng.choice([1, 5, 12, 40]))
        envs = Envs(rng, n_envs, stack, shape, dtype)
        whole_shape = (stack, *shape) if stack else shape
        def make(frames):
            sampler = dict(sampler=Prioritized(seed=1)) if prioritized else dict(seed=1)
            return ReplayBuffer(cap, whole_shape, 1, 1, state_dtype=dtype, frame_stack=frames, frame_margin=400, **sampler)
        pair = [make(stack), make(None)]
        for t in range(60):
            op = rng.choice(['one']*5+['many']*3+['update','pickle','copy','files','folder'])
            if op=='one':
                step = envs.step(int(rng.integers(n_envs)))
                for b in pair: b.add(*step)
            elif op=='many': # one step of each, in any order
                steps = [envs.step(int(e)) for e in rng.permutation(n_envs) for _ in range(rng.integers(1, 3))]
                cols = [torch.stack([torch.as_tensor(o) for o in c]) for c in zip(*steps)]
                for b in pair: b.add_multi(*[c.float() if i in (2, 4, 6) else c for i,c in enumerate(cols)])
            elif op=='update' and len(pair[0])>5:
                a,b = same(*pair)
                td = torch.from_numpy(rng.random((6,1)))
                pair[0].update_td(td, a); pair[1].update_td(td, b)
            elif op=='pickle': pair = [pickle.loads(pickle.dumps(b)) for b in pair]
            elif op=='copy': pair = [copy.deepcopy(b) for b in pair]
            elif op=='files' and not prioritized:
                pair[0].save(tmp_path/f'{seed}')
                loaded = [ReplayBuffer.load(tmp_path/f'{seed}'/'buffer_state', seed=t, **kw) for kw in (dict(frame_stack=stack, frame_margin=400), {})]
                assert {k: v.tolist() for k,v in loaded[1].state_dict().items()}=={k: v.tolist() for k,v in pair[1].state_dict().items()}
                at,pair = pair[1].position,[loaded[0], make(None)] # the rows are in the order of their age now
                if len(loaded[1])<cap: at = 0
                pair[1].ring.extend({k: v.roll(-at, 0)[:len(loaded[1])] for k,v in loaded[1].state_dict().items()})
                pair[1].sampler = copy.deepcopy(pair[0].sampler)
            elif op=='folder' and rng.random()<.5:
                for i,b in enumerate(pair): b.checkpoint(tmp_path/f'c{seed}{i}')
                pair = [ReplayBuffer.load(tmp_path/f'c{seed}{i}') for i in range(2)]
                assert (pair[0].frame_stack, pair[1].frame_stack)==(stack, None)
            same(*pair)

def see(t): return np.stack([np.full((4,4), t+j+1, np.uint8) for j in range(4)])

@pytest.mark.filterwarnings('ignore:.*rows are kept')
def test_each_frame_once():
    "Of eight environments that take turns, and of those that were abandoned long ago"
    buffer = ReplayBuffer(400, (4,4,4), 1, 0, state_dtype=torch.uint8, frame_stack=4)
    for t in range(40):
        for e in range(0, 200, 25): buffer.add(see(e+t%20), 0, 0., see(e+t%20+1), t%20==19)
    assert len(buffer)==320 and len(buffer.ring.pool)==8*2*24
    for i in range(3000): buffer.add(see(i*3%200), 0, 0., np.concatenate([see(i*3%200)[1:], np.full((1,4,4), 230+i//200, np.uint8)]), False)
    assert len(buffer._open)<=1024 and len(buffer.ring.newest.envs)<=1024

def test_few_are_kept():
    "Episodes so short that their frames fill the pool: the newest steps are there, drawn and saved, and one warning says so"
    buffer = ReplayBuffer(100, (4,4,4), 1, 0, state_dtype=torch.uint8, frame_stack=4, seed=0, frame_margin=8)
    with pytest.warns(UserWarning, match='rows are kept'):
        for t in range(240): buffer.add(see(t), 0, float(t), see(t+1), True)
    n = len(buffer)
    assert 0<n<100 and buffer.state_dict()['rewards'][:n].flatten().tolist()==[*range(240-n, 240)]
    batch = buffer.sample(n)
    assert all(batch.states[:,0,0,0]==(batch.rewards[:,0]+1).to(torch.uint8))

@pytest.mark.filterwarnings('ignore:.*rows are kept')
def test_files_of_few(tmp_path):
    buffer = ReplayBuffer(100, (4,4,4), 1, 0, state_dtype=torch.uint8, frame_stack=4, frame_margin=8)
    for t in range(240): buffer.add(see(t), 0, float(t), see(t+1), True)
    buffer.save(tmp_path)
    for kw in ({}, dict(frame_stack=4), dict(frame_stack=4, frame_margin=500)):
        again = ReplayBuffer.load(tmp_path/'buffer_state', **kw)
        k = min(len(again), len(buffer))
        assert k>10 and again.state_dict()['rewards'][:len(again)].flatten().tolist()[-k:]==[*range(240-k, 240)]

def test_refused():
    "What is no stack, a next state that does not follow, and columns that are not there"
    for o in (-1, '4', 4., True):
        with expect_fail(ValueError, contains='`frame_stack` should be a whole number of at least 0, got'): ReplayBuffer(10, (4,8,8), 1, 0, frame_stack=o)
    for dim in (4, (4,), (84,84), (3,84,84)): # a single frame of one environment could continue another one's
        with expect_fail(ValueError, contains='`state_dim` should be the shape of a stack, (4, …)'): ReplayBuffer(10, dim, 1, 0, frame_stack=4)
    buffer = ReplayBuffer(10, (4,4,4), 1, 0, state_dtype=torch.uint8, frame_stack=4)
    with expect_fail(ValueError, contains='should be its `states` without the first frame'): buffer.add(see(0), 0, 0., see(7), False)
    assert len(buffer)==0
    buffer.add(see(0), 0, 0., see(1), False)
    with expect_fail(AttributeError, contains="`buffer.ring['states']`"): buffer.states
    assert buffer.ring['states'].shape==(1,4,4,4) and buffer.dones.shape==(10,1) and buffer.truncateds.shape==(10,1)

class Camera(gym.Env):
    observation_space,action_space = gym.spaces.Box(0, 255, (4,4), np.uint8),gym.spaces.Discrete(2)
    def see(self): return np.full((4,4), self.first+self.t, np.uint8)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.first,self.t = int(self.np_random.integers(1, 100)),0
        return self.see(), {}
    def step(self, action):
        self.t += 1
        return self.see(), 1., self.t==5 and action==1, False, {}

def test_warm():
    "An agent that warms the buffer in copies of an environment with `FrameStackObservation`"
    gym.register('Camera-v0', Camera, max_episode_steps=7)
    try:
        env = gym.wrappers.FrameStackObservation(gym.make('Camera-v0'), 4)
        buffers = []
        for frames in (4, None):
            rng = np.random.default_rng(0)
            agent = SimpleNamespace(env=env, predict=lambda s, h, train_mode: (torch.from_numpy(rng.integers(2, size=len(s))), torch.ones(len(s), 2)))
            buffers.append(ReplayBuffer(300, (4,4,4), 1, 2, seed=0, state_dtype=torch.uint8, action_dtype=torch.int64, frame_stack=frames))
            buffers[-1].warm(agent, 200, num_envs=5, seed=3)
        same(*buffers)
        assert len(buffers[0].ring.pool)<2*200
    finally: del gym.registry['Camera-v0']

def test_warm_without_room():
    "Episodes so short that `n_samples` steps have no room: `warm` ends, with a warning"
    gym.register('Camera-v0', Camera, max_episode_steps=3)
    try:
        env = gym.wrappers.FrameStackObservation(gym.make('Camera-v0'), 4)
        left = iter(range(50)) # then `predict` ends in an error
        agent = SimpleNamespace(env=env, predict=lambda s, h, train_mode: (torch.full((len(s),), next(left)%2), None))
        buffer = ReplayBuffer(200, (4,4,4), 1, 0, state_dtype=torch.uint8, action_dtype=torch.int64, frame_stack=4, frame_margin=9)
        with pytest.warns(UserWarning, match='rows are kept, of 200'): buffer.warm(agent, 190, num_envs=5, seed=0)
        assert buffer.ring.total==200 and 100<len(buffer)<190 and len(buffer.sample(100).states)==100
    finally: del gym.registry['Camera-v0']

def test_resumed(tmp_path):
    "Once the environments are where they were, the next step of each continues its last one, in another process, too"
    buffer = ReplayBuffer(60, (4,4,4), 1, 0, state_dtype=torch.uint8, frame_stack=4)
    for t in range(5):
        for e in (0, 50): buffer.add(see(e+t), 0, 0., see(e+t+1), False)
    buffer.checkpoint(tmp_path)
    code = f"""if 1:
        import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_buffer_frames import *
        buffer = ReplayBuffer.load({str(tmp_path)!r}, env_restored=True)
        for e in (50, 0): buffer.add(see(e+5), 0, 0., see(e+6), False)
        print(len(buffer), len(buffer.ring.pool))"""
    said = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True).stdout
    assert said.split()==['12', str(2*(6+4))]

def test_after_a_refused_step():
    "The marks of environments are what they were: the right step continues, and the next state of the wrong one is no surprise"
    buffer = ReplayBuffer(60, (4,4,4), 1, 0, state_dtype=torch.uint8, frame_stack=4)
    for e in (0, 50): buffer.add(see(e), 0, 0., see(e+1), False)
    n = len(buffer.ring.pool)
    with expect_fail(ValueError, contains='without the first frame'): buffer.add(see(1), 0, 0., see(90), False)
    with expect_fail(ValueError, contains='without the first frame'):
        buffer.add_multi(np.stack([see(1), see(51)]), np.zeros(2), np.zeros(2), np.stack([see(2), see(90)]), np.zeros(2))
    for e in (0, 50): buffer.add(see(e+1), 0, 0., see(e+2), False)
    assert len(buffer.ring.pool)==n+2
    buffer.add(see(90), 0, 0., see(91), False)
    assert len(buffer)==5

@pytest.mark.parametrize('t0', [1, 5])
@pytest.mark.parametrize('at', range(1, 450, 18))
def test_interrupted(at, t0):
    "Ctrl-C in an `add`: its step is there or not, and the next ones are added"
    left,buffer = at,ReplayBuffer(60, (4,4,4), 1, 0, state_dtype=torch.uint8, frame_stack=4)
    def line(frame, event, arg):
        nonlocal left
        if not frame.f_globals.get('__name__', '').startswith('fastrl.'): return
        left -= event=='line'
        if not left and event=='line': raise KeyboardInterrupt
        return line
    was = sys.gettrace()
    for t in range(8):
        for e in (0, 50):
            try:
                if (t, e)==(t0, 50): sys.settrace(line)
                buffer.add(see(e+t), e, 0., see(e+t+1), False)
            except KeyboardInterrupt: pass
            finally: sys.settrace(was)
    n,state = len(buffer),buffer.state_dict()
    assert n in (15, 16)
    want = [(e, e+t+1) for t in range(8) for e in (0, 50) if (t, e)!=(t0, 50) or n==16]
    assert [(int(a), int(s[0,0,0])) for a,s in zip(state['actions'][:n], state['states'][:n])]==want

def test_one_checksum(monkeypatch):
    "States that differ may have the same checksum: their frames are compared, too"
    monkeypatch.setattr(zlib, 'crc32', lambda o, *_: 7)
    rng = np.random.default_rng(0)
    envs,pair = Envs(rng, 3, 4, (3,2), torch.uint8),[ReplayBuffer(40, (4,3,2), 1, 1, seed=1, state_dtype=torch.uint8, frame_stack=o, frame_margin=400) for o in (4, None)]
    for t in range(99):
        step = envs.step(int(rng.integers(3)))
        for b in pair: b.add(*step)
        same(*pair)

@pytest.mark.parametrize('many', [False, True])
def test_in_lockstep(many):
    "Environments that show the same for a while, as with one seed, are told apart by their number: each frame is stored once by each"
    buffer = ReplayBuffer(400, (4,4,4), 1, 0, state_dtype=torch.uint8, frame_stack=4)
    for t in range(20):
        after = [see(t+1)]*8 if t<15 else [np.concatenate([see(t)[1:] if t==15 else last[e][1:], np.full((1,4,4), 100+10*e+t-15, np.uint8)]) for e in range(8)]
        state,last = [see(t)]*8 if t<=15 else last,after
        if many: buffer.add_multi(np.stack(state), np.arange(8), np.zeros(8), np.stack(after), np.full(8, t==19))
        else:
            for e in range(8): buffer.add(state[e], e, 0., after[e], t==19)
    assert len(buffer)==160 and len(buffer.ring.pool)==8*(4+20) and not buffer._open

@pytest.mark.parametrize('mode', ['NEXT_STEP', 'SAME_STEP'])
def test_reset_by_themselves(mode):
    "Environments that reset themselves: the error says what their first state is not"
    envs = gym.vector.SyncVectorEnv([lambda: gym.wrappers.FrameStackObservation(Camera(), 4)]*2, autoreset_mode=gym.vector.AutoresetMode[mode])
    buffer = ReplayBuffer(100, (4,4,4), 1, 0, state_dtype=torch.uint8, frame_stack=4)
    state,_ = envs.reset(seed=0)
    with expect_fail(ValueError, contains='`final_obs`'):
        for t in range(9):
            after,reward,over,cut,_ = envs.step(np.ones(2, int))
            buffer.add_multi(state, np.ones(2), reward, after, over|cut, None, cut)
            state = after
    assert len(buffer)==2*(5 if mode=='NEXT_STEP' else 4)

def test_more_environments_than_are_awaited_one_by_one():
    "A batch of 1500 environments stores each frame once, too"
    n = 1500
    def frame(t): return np.stack([[e%256, e//256, t+1] for e in range(n)]).astype(np.uint8)
    def state(t): return np.stack([frame(t+k) for k in range(4)], 1)
    buffer = ReplayBuffer(20_000, (4,3), 1, 0, state_dtype=torch.uint8, frame_stack=4)
    for t in range(4): buffer.add_multi(state(t), np.zeros(n), np.zeros(n), state(t+1), np.full(n, t==3))
    assert len(buffer)==4*n and len(buffer.ring.pool)==n*(4+4)
