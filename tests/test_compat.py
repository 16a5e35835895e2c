"""cleanrl's buffer and ours, for one stream of steps

`python tests/test_compat.py`, with cleanrl on the path, records what its buffer gives; the tests need neither it nor SB3."""
import copy, json, math, pickle, sys
from pathlib import Path
import gymnasium as gym, numpy as np, torch
from fastrl.compat import ReplayBuffer
from fastrl.core import BD, leaves
from fastrl.memory.sample import Prioritized

recorded = Path(__file__).parent/'cleanrl_draws.json'

def stream(n=30):
    "What cleanrl's loop passes to `add`: two environments, whose time runs out now and then"
    rng = np.random.default_rng(0)
    obs = rng.integers(100, size=(2,3)).astype(np.float32)
    for _ in range(n):
        nxt,ended,late = rng.integers(100, size=(2,3)).astype(np.float32),rng.random(2)<.1,rng.random(2)<.1
        infos = dict(final_observation=nxt, final_info=[None]*2) if (ended|late).any() else {}
        yield obs,nxt,rng.integers(4, size=2),rng.random(2).round(3),ended,infos
        obs = np.where((ended|late)[:,None], rng.integers(100, size=(2,3)), nxt).astype(np.float32)

def draws(cls):
    "Batches at fixed positions along the stream, as lists"
    b,res = cls(24, gym.spaces.Box(0, 100, (3,)), gym.spaces.Discrete(4), 'cpu', n_envs=2, handle_timeout_termination=False),[]
    np.random.seed(0)
    for i,args in enumerate(stream()):
        b.add(*args)
        if i%3: continue
        batch = b._get_samples(np.random.randint(0, b.size(), size=4))
        res.append([b.pos, b.full, *([str(o.dtype), o.tolist()] for o in batch[:5])])
    return res

def test_as_cleanrl():
    assert json.loads(json.dumps(draws(ReplayBuffer)))==json.loads(recorded.read_text())

def test_priorities_and_steps():
    "What cleanrl's lacks: n steps stop where time ran out, which its flags do not say"
    b = ReplayBuffer(24, gym.spaces.Box(0, 100, (3,)), gym.spaces.Discrete(4), 'cpu', 2, handle_timeout_termination=False,
                     n_steps=3, gamma=.5, sampler=Prioritized(seed=0))
    steps = [*stream()]
    for o in steps: b.add(*o)
    batch = b.sample(200)
    at = {tuple(o[0][e].tolist()): (i,e) for i,o in enumerate(steps) for e in range(2)}
    for o,r,d in zip(batch.observations.tolist(), batch.rewards[:,0].tolist(), batch.discounts[:,0].tolist()):
        i,e = at[tuple(o)]
        want,k = 0,0
        while k<3:
            want,k = want+.5**k*steps[i+k][3][e],k+1
            if i+k==len(steps) or steps[i+k-1][4][e] or not (steps[i+k][0][e]==steps[i+k-1][1][e]).all(): break
        assert math.isclose(r, want, abs_tol=1e-5) and d==.5**k
    b.update_td(torch.rand(200, 1))

def test_ended_by_the_infos_of_a_vector():
    "Observations that never change, in both forms of gymnasium's infos and in envpool's: no return crosses an ending"
    class Still(gym.Env):
        observation_space,action_space = gym.spaces.Discrete(1),gym.spaces.Discrete(2)
        def reset(self, **_): self.t = 0; return 0, {}
        def step(self, a): self.t += 1; return 0, float(self.t), False, self.t==4+self.k, {}
    def make(k):
        env = Still()
        env.k = k
        return env
    envs = gym.vector.SyncVectorEnv([lambda: make(0), lambda: make(1)], autoreset_mode='SameStep')
    def old(o): return {k.replace('final_obs','final_observation'): v for k,v in o.items()}
    def without_masks(o): return {k: v for k,v in o.items() if k=='final_obs'}
    for form in (dict, old, without_masks, lambda o: {'TimeLimit.truncated': o['_final_obs']} if o else {}):
        b = ReplayBuffer(80, envs.single_observation_space, envs.single_action_space, 'cpu', 2, handle_timeout_termination=False, n_steps=3, gamma=1.)
        obs,_ = envs.reset()
        for _ in range(40):
            nxt,reward,over,late,infos = envs.step(np.zeros(2, int))
            b.add(obs, nxt, np.zeros(2), reward, over, form(infos))
            obs = nxt
        at = torch.arange(40)[None,:]%torch.tensor([[4],[5]])
        left = torch.minimum(torch.tensor([[4],[5]])-at, torch.tensor(3)).clamp(max=40-torch.arange(40))
        want = (left*(at+1)+left*(left-1)//2).float()
        _,sums,_ = b._n_step(torch.arange(80), None)
        assert torch.equal(sums[:,0].view(40, 2).T, want) and not b.dones.any()
    try: b.add(obs, nxt, np.zeros(2), reward, over, {'_final_obs':[True]})
    except ValueError as e: assert 'a dict for each of 2 environments, got 1' in str(e)
    else: raise AssertionError

def test_steps_that_only_reset(recwarn):
    "cleanrl's loop with gymnasium's vectors: a warning for those that reset in the next step, and for no others"
    for mode,words in (('NextStep',1), ('SameStep',0)):
        envs = gym.make_vec('CartPole-v1', num_envs=2, vectorization_mode='sync', vector_kwargs=dict(autoreset_mode=mode), max_episode_steps=9)
        b = ReplayBuffer(300, envs.single_observation_space, envs.single_action_space, 'cpu', 2, handle_timeout_termination=False)
        recwarn.clear()
        obs,_ = envs.reset(seed=0)
        for _ in range(100):
            actions = np.ones(2, int)
            nxt,rewards,over,late,infos = envs.step(actions)
            b.add(obs, nxt, actions, rewards, over|late, infos)
            obs = nxt
        ours = [o for o in recwarn if 'did nothing but reset' in str(o.message)]
        assert len(ours)==words and all(o.filename==__file__ for o in ours), mode

def test_once():
    "Stored once or twice: the same batches, Dict observations too"
    for nested in (False, True):
        space = gym.spaces.Box(0, 100, (3,))
        space.dtype = np.float32 # as cleanrl does
        space = gym.spaces.Dict(a=space, b=gym.spaces.Discrete(100)) if nested else space
        def form(o): return dict(a=o, b=o[:,0].astype(int)) if nested else o
        two,one = (ReplayBuffer(24, space, gym.spaces.Discrete(4), 'cpu', 2, optimize_memory_usage=o, seed=3) for o in (False,True))
        for o,nxt,*rest in stream():
            for b in (two, one): b.add(form(o), form(nxt), *rest)
            assert str(two.sample(32))==str(one.sample(32))
        assert ['next_state' in {p[0] for p in b.memory.ring.place.columns} for b in (two, one)]==[True, False]

def stacked_steps(rng, n, steps, nested, colours):
    "Stacks of three frames; an episode begins with zeros, a repeated frame, or any stack, and some are abandoned"
    def frame(): return rng.integers(0, 256, size=(*[3][:colours],2,2), dtype=np.uint8)
    def begin():
        f,kind = frame(),rng.integers(3)
        return [[f*0,f*0,f], [f,f,f], [frame(), frame(), f]][kind]
    def form(stacks):
        o = np.array(stacks).reshape(n, -1, 2, 2)
        return dict(eye=o, arm=o.reshape(n, -1)[:,-2:].astype(np.float32)) if nested else o
    now = [begin() for _ in range(n)]
    for _ in range(steps):
        if rng.random()<.05: now = [begin() for _ in range(n)] # all were reset
        nxt = [[*o[1:], frame()] for o in now]
        ended,late = rng.random(n)<.1,rng.random(n)<.1
        yield form(now),form(nxt),rng.integers(4, size=n),rng.random(n).round(3),ended|late,[{'TimeLimit.truncated':bool(o)} for o in late]
        now = [begin() if e else o for o,e in zip(nxt, ended|late)]

def frame_history(seed):
    "Stored once or whole: the same rows in the same slots, and the same batches of them"
    rng = np.random.default_rng(seed)
    n,nested,steps,colours = (int(rng.integers(a, b)) for a,b in ((1,5), (0,2), (1,4), (0,2)))
    eye = gym.spaces.Box(0, 255, (9 if colours else 3,2,2), np.uint8)
    space = gym.spaces.Dict(eye=eye, arm=gym.spaces.Box(0, 255, (2,))) if nested else eye
    size,how = int(rng.integers(n, 40)),dict(frame_stack=3, frame_margin=[.05, 1., 8][rng.integers(3)], optimize_memory_usage=bool(seed%2))
    sampler = Prioritized(seed=0) if rng.random()<.5 else None
    once,whole = (ReplayBuffer(size, space, gym.spaces.Discrete(4), 'cpu', n, n_steps=steps, gamma=.5, sampler=sampler, **o) for o in (how, {}))
    def rows(b, i):
        "A batch of the rows `i`, as lists"
        return [o.tolist() for part in b._batch(BD(b.memory.ring.gather(i), serial=b.memory.ring.serial(i)[:,None]), i, None) if part is not None
                for _,o in leaves({'part':part})]
    fewer = False
    for j,args in enumerate(stacked_steps(rng, n, 60, nested, colours)):
        for b in (once, whole): b.add(*args)
        if j%20==19: once = copy.deepcopy(once) if seed%2 else pickle.loads(pickle.dumps(once))
        assert (once.pos, once.full)==(whole.pos, whole.full)
        if j%5: continue
        ring,held = whole.memory.ring,once.memory.ring.held
        assert held.tolist()==[o%ring.capacity for o in range(ring.total-len(held), ring.total)] and once.size()==len(held)//n
        fewer |= len(held)<len(ring)
        assert rows(once, held)==rows(whole, held)
        drawn,i = once.sample(8),once.drawn['idxs']
        assert set(i.tolist())<={*held.tolist()} and [o.tolist() for _,o in leaves({'o':drawn.observations})]==rows(whole, i)[:1+nested]
        once.update_td(torch.rand(8, 1))
    once.reset()
    assert (once.pos, once.size(), once.full)==(0, 0, False)
    once.add(*args)
    held = once.memory.ring.held # fewer than `n`, if the pool has not even room for these stacks
    assert rows(once, held)[:1+nested]==[o[-len(held):].tolist() for _,o in leaves({'o':args[0]})]
    return fewer

def test_frames_once(recwarn):
    fewer = sum(frame_history(o) for o in range(40))
    assert 0<fewer<40 # in some a pool of frames kept fewer rows

def test_frames_of_cleanrl():
    "Its scripts give the true last observation at a time limit only; at another ending the first one of the next episode, which no target reads"
    class Screen(gym.Env):
        observation_space,action_space = gym.spaces.Box(0, 255, (2,2), np.uint8),gym.spaces.Discrete(2)
        def reset(self, *, seed=None, options=None): super().reset(seed=seed); self.t = 0; return self.seen(), {}
        def seen(self): return self.np_random.integers(0, 256, (2,2), np.uint8)
        def step(self, a):
            self.t += 1
            over = self.t>3 and self.np_random.random()<.2
            return self.seen(), float(self.t), over, self.t==9 and not over, {}
    envs = gym.vector.SyncVectorEnv([lambda: gym.wrappers.FrameStackObservation(Screen(), 3)]*2, autoreset_mode='SameStep')
    once,whole = (ReplayBuffer(60, envs.single_observation_space, envs.single_action_space, 'cpu', 2, optimize_memory_usage=True,
                               handle_timeout_termination=False, n_steps=2, seed=0, frame_stack=o) for o in (3, None))
    obs,_ = envs.reset(seed=0)
    ends = 0
    for _ in range(100):
        nxt,rewards,over,late,infos = envs.step(np.zeros(2, int))
        real = nxt.copy()
        for e in np.flatnonzero(late): real[e] = infos['final_obs'][e]
        for b in (once, whole): b.add(obs, real, np.zeros(2), rewards, over, infos)
        obs = nxt
        a,b = once.sample(16),whole.sample(16)
        on = ~a.dones[:,0].bool()
        ends += int((~on).sum())
        assert all(x.tolist()==y.tolist() for x,y in zip(a, b) if x is not a.next_observations)
        assert a.next_observations[on].tolist()==b.next_observations[on].tolist()
        i = once.memory.ring.held
        rows = once.memory.ring.gather(i)
        assert (rows['state'][:,1:]==rows['next_state'][:,:-1]).all()
        done = rows['terminated'][:,0]&~(rows['next_state'][:,-1]==rows['state'][:,-1]).flatten(1).all(1)
        assert not done.any() # no frame of another episode
    assert ends>20

def test_frames_of_floats():
    "A zero that lost its sign is the same observation for the episode, and stays another one in the row"
    b = ReplayBuffer(9, gym.spaces.Box(-1, 1, (2,3)), gym.spaces.Discrete(4), 'cpu', frame_stack=2, n_steps=3, gamma=1.)
    zero,one = np.zeros((1,3), np.float32),np.ones((1,3), np.float32)
    for frames in ((one, one, zero), (one, -zero, one), (-zero, one, one)):
        b.add(*(np.stack(frames[i:i+2], 1) for i in range(2)), np.zeros(1), np.ones(1), np.zeros(1), [{}])
    assert b.memory['state'].signbit().any(2).tolist()==[[False,False],[False,True],[True,False]]
    assert set(b.sample(50).rewards[:,0].tolist())=={3, 2, 1}

def test_one_environment():
    "Its steps may come without an axis for it, as SB3 takes them, too"
    a,b = (ReplayBuffer(24, gym.spaces.Box(0, 100, (3,)), gym.spaces.Discrete(4), 'cpu', seed=3) for _ in range(2))
    for obs,nxt,action,reward,over,_ in stream():
        a.add(obs[:1], nxt[:1], action[:1], reward[:1], over[:1], [{}])
        b.add(obs[0], nxt[0], action[0], reward[0], over[0], [{}])
    assert str(a.sample(32))==str(b.sample(32)) and (a.observations[3]==b.observations[3]).all()

def test_one_reward_for_all():
    "SQIL of the library imitation gives each step of the agent the reward 0, for several environments, too, as a number"
    b = ReplayBuffer(24, gym.spaces.Box(0, 100, (3,)), gym.spaces.Discrete(4), 'cpu', n_envs=2)
    for reward,over,infos in ((np.array(2.), False, [{},{}]), (3., True, {}), (np.float32(4), False, {})):
        b.add(np.zeros((2,3)), np.ones((2,3)), np.zeros(2), reward, np.full(2, over), infos)
    assert b.rewards[:3].tolist()==[[2,2],[3,3],[4,4]]

def test_copies_draw_each_their_own():
    "rl_zoo3's ParallelTrainCallback learns from a deep copy for each round, and never draws from the original"
    def copies(**kwargs):
        np.random.seed(0)
        b = ReplayBuffer(60, gym.spaces.Box(0, 100, (3,)), gym.spaces.Discrete(4), 'cpu', 2, handle_timeout_termination=False, **kwargs)
        for o in stream(): b.add(*o)
        first,*others = (copy.deepcopy(b) for _ in range(3))
        assert all(o.rewards.tolist()==b.rewards.tolist() and o.memory is not b.memory for o in (first, *others))
        return [o.memory.sample(20)[1].tolist() for o in (first, *others, pickle.loads(pickle.dumps(b)), b)]
    for kwargs in ({}, dict(sampler=Prioritized())):
        one,two,three,pickled,original = copies(**kwargs)
        assert one!=two!=three!=one and pickled==original not in (one, two, three)
        assert copies(**kwargs)==[one, two, three, pickled, original] # as NumPy was seeded
    for kwargs in (dict(seed=1), dict(sampler=Prioritized(seed=1))): # you said which
        one,*others = copies(**kwargs)
        assert all(o==one for o in others)

def test_five_things():
    "cleanrl's batch is five tensors, and programs take it apart; with several steps comes what a value after them is worth"
    for n in (1, 3):
        b = ReplayBuffer(24, gym.spaces.Box(0, 100, (3,)), gym.spaces.Discrete(4), 'cpu', 2, n_steps=n)
        b.add(np.zeros((2,3)), np.ones((2,3)), np.zeros(2), np.zeros(2), np.zeros(2, bool), [{},{}])
        observations,actions,nexts,dones,rewards,*discounts = batch = b.sample(4)
        assert len(discounts)==(n>1) and (batch.discounts is None)==(n==1) and all(torch.is_tensor(o) for o in batch)

if __name__=='__main__':
    from cleanrl_utils.buffers import ReplayBuffer as Theirs
    recorded.write_text(json.dumps(draws(Theirs))+'\n')

def test_interrupted_add(recwarn):
    "A Ctrl-C at any line of `add` leaves no row that shows the next observation of another episode"
    def run(k, n_steps, n, rows, how):
        box = gym.spaces.Box(-1e6, 1e6, (2,), np.float32)
        rb = ReplayBuffer(rows*n, box, gym.spaces.Discrete(3), 'cpu', n, handle_timeout_termination=False, n_steps=n_steps, seed=0, **how)
        left = k
        def add(v): rb.add(*(np.full((n,2), o, np.float32) for o in (v, v+1)), np.zeros((n,1), int), np.ones(n, np.float32), np.zeros(n, bool), [{}]*n)
        def trace(frame, event, arg):
            nonlocal left
            if 'fastrl' not in frame.f_code.co_filename: return
            if event=='line': left -= 1
            if not left: raise KeyboardInterrupt
            return trace
        for v in range(5): add(float(v))
        sys.settrace(trace)
        try: add(5.)
        except KeyboardInterrupt: pass
        finally: sys.settrace(None)
        for v in range(1000, 1005): add(float(v)) # the environment was reset
        batch = rb.sample(200)
        assert set((batch.next_observations-batch.observations)[:,0].tolist())<={*map(float, range(1, n_steps+1))}, k
        assert rb.memory.ring.total in (10*n, 11*n), k
        return left<=0
    for n_steps in (1, 3):
        for how in ((1, 20, dict(optimize_memory_usage=True)), (2, 20, dict(frame_stack=0)),
                    (8, 2, dict(frame_stack=0, frame_margin=0))): # a pool so small that a step is written in parts
            k = 1
            while run(k, n_steps, *how): k += 1 if how[1]==20 else 17
            assert k>40
