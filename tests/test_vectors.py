"Vector environments as people make them, stepped by hand: `gymnasium.make_vec` and ALE's own, in each autoreset mode"
import gymnasium as gym, numpy as np, pytest, torch
from functools import partial
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode
from fastrl.memory.episodes import EpisodeReplay, RingBufferDataset
from fastrl.memory.replay import ExperienceReplay, ExperienceReplayException

def fill(envs, memory, steps, seed=0):
    "What a user writes; and how often each environment was over"
    envs.action_space.seed(seed)
    (obs,_),overs = envs.reset(seed=seed),np.zeros(envs.num_envs, int)
    for _ in range(steps):
        actions = envs.action_space.sample()
        nxt,rewards,terminated,truncated,infos = envs.step(actions)
        memory.add_vector(obs=obs, actions=actions, rewards=rewards, terminated=terminated, truncated=truncated,
                          next_obs=nxt, infos=infos, autoreset=envs)
        over = terminated|truncated
        overs += over
        if envs.metadata['autoreset_mode']==AutoresetMode.DISABLED and over.any(): nxt,_ = envs.reset(options=dict(reset_mask=over))
        obs = nxt
    envs.close()
    return overs

def in_order(memory):
    "The columns, each environment's rows together, in the order of its steps"
    m = {k: memory[k] for k in ('state','next_state','action','terminated','truncated','env_id','episode_id','step')}
    m = {k: v.squeeze(1) if v.shape[1:]==(1,) else v for k,v in m.items()}
    at = np.lexsort([m[k].numpy() for k in ('step','episode_id','env_id')])
    return {k: v[at] for k,v in m.items()}

def check_episodes(m):
    "Rows follow one another within an episode, each of which begins at 1 and ends as its last row says"
    same = m['episode_id'][1:]==m['episode_id'][:-1]
    assert (m['step'][1:][same]==m['step'][:-1][same]+1).all() and (m['step'][1:][~same]==1).all()
    assert (m['state'][1:][same]==m['next_state'][:-1][same]).all()
    over = m['terminated']|m['truncated']
    assert not over[:-1][same].any()
    new_env = m['env_id'][1:]!=m['env_id'][:-1]
    assert over[:-1][~same&~new_env].all()

by_vector = [('sync', o) for o in AutoresetMode]+[('async', o) for o in AutoresetMode]+[('vector_entry_point', None)]

def cartpoles(kind, mode, n, limit):
    kwargs = {} if mode is None else dict(vector_kwargs=dict(autoreset_mode=mode))
    return gym.make_vec('CartPole-v1', n, vectorization_mode=kind, **(kwargs or dict(max_episode_steps=limit)),
                        **({} if mode is None else dict(wrappers=[lambda e: gym.wrappers.TimeLimit(e, limit)])))

def check_physics(m):
    alone = gym.make('CartPole-v1').unwrapped
    alone.reset()
    for s,a,nxt,te in zip(m['state'], m['action'], m['next_state'], m['terminated']):
        alone.state,alone.steps_beyond_terminated = tuple(s.double().tolist()),None
        got,_,terminated,*_ = alone.step(int(a))
        assert np.allclose(got, nxt, atol=1e-4) and terminated==bool(te)

@pytest.mark.parametrize('frame_stack', (None,0), ids=('twice','once'))
@pytest.mark.parametrize('kind,mode', by_vector, ids=lambda o: getattr(o, 'value', o))
@pytest.mark.halved
def test_make_vec(kind, mode, frame_stack):
    "Each stored row is a transition of CartPole's own physics, also at its ends, and none is missing"
    n,steps,limit = 3,60,15
    envs = cartpoles(kind, mode, n, limit)
    memory = ExperienceReplay(bs=8, max_sz=1000, warmup_sz=1, seed=0, frame_stack=frame_stack)
    overs = fill(envs, memory, steps)
    resets = overs.sum() if mode in (None, AutoresetMode.NEXT_STEP) else 0 # of which a step may still be to come
    assert n*steps-resets <= len(memory) <= n*steps-resets+n
    m = in_order(memory)
    check_episodes(m)
    assert m['truncated'].any() and m['terminated'].any() and m['step'].max()==limit
    check_physics(m)

@pytest.mark.parametrize('kind,mode', by_vector, ids=lambda o: getattr(o, 'value', o))
def test_episodes_of_make_vec(kind, mode):
    "Each step of an episode leads to the next one by CartPole's own physics, up to its last observation, and no episode is missing"
    replay,limit = EpisodeReplay(RingBufferDataset(1000), 8),15
    overs = fill(cartpoles(kind, mode, 3, limit), replay, 60)
    episodes = [replay.dataset[i] for i in range(replay.num_episodes)]
    assert len(episodes)==overs.sum() and max(replay.dataset.episode_lengths)==limit+1
    for e in episodes:
        check_physics(dict(state=e['obs'][:-1], action=e['action'], next_state=e['obs'][1:], terminated=e['terminated']))
        assert (e['terminated']|e['truncated']).tolist()==[False]*(len(e['obs'])-2)+[True,False]
    assert any(e['truncated'].any() for e in episodes) and any(e['terminated'].any() for e in episodes)

@pytest.mark.parametrize('frame_stack', (None,4))
@pytest.mark.parametrize('mode', (AutoresetMode.NEXT_STEP,AutoresetMode.SAME_STEP), ids=lambda o: o.value) # it has no third one
@pytest.mark.halved
def test_ale(mode, frame_stack):
    "ALE's vector: each next stack continues the stack before it, at time limits too, and none begins an episode"
    n,limit,steps = 3,25,60
    envs = AtariVectorEnv('breakout', n, autoreset_mode=mode, max_num_frames_per_episode=4*limit, img_height=20, img_width=16, noop_max=5)
    memory = ExperienceReplay(bs=8, max_sz=1000, warmup_sz=1, seed=0, frame_stack=frame_stack)
    overs = fill(envs, memory, steps)
    assert overs.sum()>=n and len(memory)==n*steps-(overs.sum() if mode==AutoresetMode.NEXT_STEP else 0)
    m = in_order(memory)
    check_episodes(m)
    assert m['state'].dtype==torch.uint8 and tuple(m['state'].shape[1:])==(4,20,16)
    assert (m['next_state'][:,:-1]==m['state'][:,1:]).all() and m['truncated'].any()

@pytest.mark.filterwarnings('error')
def test_no_word_without_reason():
    "Environments that are reset as they should be are no reason to warn, even if they begin where the last episode ended"
    envs = gym.vector.SyncVectorEnv([lambda: gym.make('FrozenLake-v1', max_episode_steps=4)]*4, autoreset_mode=AutoresetMode.DISABLED)
    er,(obs,_) = ExperienceReplay(4, max_sz=2000, warmup_sz=1),envs.reset(seed=0)
    envs.action_space.seed(0)
    for _ in range(200):
        actions = envs.action_space.sample()
        after,rewards,te,tr,infos = envs.step(actions)
        er.add_vector(obs=obs, actions=actions, rewards=rewards, terminated=te, truncated=tr, next_obs=after, infos=infos, autoreset=envs)
        obs = envs.reset(options=dict(reset_mask=te|tr))[0] if (te|tr).any() else after
    same = np.zeros(3) # a bandit of one state
    for t in range(20): er2 = ExperienceReplay(4, max_sz=99, warmup_sz=1) if not t else er2.add_vector(obs=same, actions=[0]*3, rewards=[1.]*3,
        terminated=[True]*3, truncated=[False]*3, next_obs=same, infos=[{}]*3, autoreset='disabled')
    assert len(er)==800 and len(er2)==57

def test_rewards_of_several_kinds():
    er = ExperienceReplay(4, max_sz=99, warmup_sz=1)
    for t in range(3): er.add_vector(obs=np.full(2, t), actions=[0,1], rewards=np.ones((2,3)), terminated=[False]*2, truncated=[False]*2, next_obs=np.full(2, t+1), autoreset='next_step')
    assert er['reward'].shape==(6,3)

def test_tensors_with_a_gradient():
    "Whatever an agent made stays with it: rows have no gradient, and `add_vector` takes what `add` takes"
    def grown(v): return torch.tensor(v, requires_grad=True)*1
    er = ExperienceReplay(4, max_sz=99, warmup_sz=1)
    for t in range(3): er.add_vector(obs=dict(a=grown([[t+0.],[t]])), actions=grown([.5,.25]), rewards=grown([1.,2.]), terminated=torch.tensor([t==2,False]),
        truncated=torch.zeros(2, dtype=torch.bool), next_obs=dict(a=grown([[t+1.],[t+1]])), logp=grown([-1.,-2.]), infos=[dict(final_obs=dict(a=grown([9.]))),{}], autoreset='same_step')
    m = er.memory
    assert not any(o.requires_grad for o in m.values() if isinstance(o, torch.Tensor)) and m['logp'][:,0].tolist()==[-1,-2]*3
    assert m['next_state']['a'][:,0].tolist()==[1,1,2,2,9,3] and m['reward'][:,0].tolist()==[1,2]*3

@pytest.mark.parametrize('merge', ['+','extend'])
def test_numbers_after_a_merge(merge):
    "An episode that begins after a merge has a number that no episode of either memory has"
    def new(): return ExperienceReplay(bs=4, max_sz=500, warmup_sz=1)
    envs,ours,other = cartpoles('sync', AutoresetMode.SAME_STEP, 2, 7),new(),new()
    fill(cartpoles('sync', AutoresetMode.SAME_STEP, 3, 7), other, 40)
    obs,_ = envs.reset(seed=0)
    for t in range(40):
        if t==10: ours = ours+other.memory if merge=='+' else ours.extend(other)
        nxt,rewards,terminated,truncated,infos = envs.step(np.array([0,1]))
        ours.add_vector(obs=obs, actions=[0,1], rewards=rewards, terminated=terminated, truncated=truncated, next_obs=nxt, infos=infos, autoreset=envs)
        obs = nxt
    ids = ours['episode_id'][:,0]
    later,before = {*ids[20+len(other):][ours['step'][20+len(other):,0]==1].tolist()},{*ids[:20+len(other)].tolist()}
    assert len(later)>=8 and not later&before, (later, before)

@pytest.mark.filterwarnings('error')
@pytest.mark.parametrize('mode', ('next_step','same_step','disabled'))
def test_tensors_without_a_warning(mode):
    "A simulator on a GPU answers with tensors: NumPy has nothing to say about them, and no step is stored without being counted"
    def seen(t): return torch.tensor([[t+0.],[t+.5]])
    for memory in (ExperienceReplay(4, max_sz=99, warmup_sz=1), EpisodeReplay(RingBufferDataset(99), 4)):
        for t in range(4): memory.add_vector(obs=seen(t), actions=torch.zeros(2), rewards=torch.tensor([t!=3,1.]), terminated=torch.tensor([t==2,False]),
            truncated=torch.zeros(2, dtype=torch.bool), next_obs=seen(t+1), autoreset=mode, infos=dict(final_obs=seen(7)) if mode=='same_step' and t==2 else {})
    assert memory.num_episodes==1

@pytest.mark.parametrize('mode', ('next_step','same_step','disabled'))
def test_bfloat16(mode, tmp_path):
    "A state, an action, a reward and observations in bfloat16, which NumPy lacks, are stored as they came, also after a restart"
    for memory in (ExperienceReplay(4, max_sz=99, warmup_sz=1), EpisodeReplay(RingBufferDataset(99), 4)):
        t,over,limit = torch.zeros(3, 1, dtype=torch.bfloat16),torch.zeros(3, 1, dtype=torch.bool),torch.tensor([[3],[4],[5]])
        for k in range(20):
            nxt = torch.where(over, 0, t+1) if mode=='next_step' else t+1
            over = nxt>=limit
            show = torch.where(over, 0, nxt) if mode=='same_step' else nxt
            memory.add_vector(obs=t, actions=t+2, rewards=t[:,0]+.5, terminated=over, truncated=over&False, next_obs=show, hidden=t.expand(3, 4),
                autoreset=mode, infos=dict(final_obs=nxt) if mode=='same_step' and over.any() else {})
            t = torch.where(over, 0, show) if mode=='disabled' else show
            if k==9: memory.checkpoint(tmp_path/memory.kind); memory = type(memory).load(tmp_path/memory.kind, env_restored=True)
        if memory.kind=='EpisodeReplay':
            for e in (memory.dataset[i] for i in range(memory.num_episodes)):
                n = len(e['obs'])
                assert n in (4,5,6) and torch.equal(e['obs'], torch.arange(n, dtype=torch.bfloat16)[:,None]) and e['hidden'].dtype==torch.bfloat16
            assert memory.num_episodes>=11
            continue
        m = memory.memory
        assert len(memory)==(48 if mode=='next_step' else 60) # three environments, less 5+4+3 steps that only reset one
        assert torch.equal(m['next_state'], m['state']+1) and torch.equal(m['hidden'], m['state'].expand(-1, 4))
        assert torch.equal(m['reward'], m['state']+.5) and torch.equal(m['action'], m['state']+2) and m['action'].dtype==torch.bfloat16

# %% Restarts: other environments come in the place of those that were saved
def restarted(make, load, folder, times=5):
    "A run that is started so often; after each, how many vectors its checkpoint knows, and what it holds"
    for i in range(times):
        memory = load(folder) if i else make()
        fill(gym.make_vec('CartPole-v1', num_envs=3, vectorization_mode='sync'), memory, 20, seed=i)
        memory.checkpoint(folder)
        yield len(load(folder).vectors),memory

def test_restarts_keep_the_numbers(tmp_path):
    "Three environments are numbers 0 to 2 after each restart, and a checkpoint does not remember all that ever were"
    for n,memory in restarted(lambda: ExperienceReplay(max_sz=200, warmup_sz=1, seed=0), ExperienceReplay.load, tmp_path):
        assert (n, memory['env_id'].unique().tolist())==(1, [0,1,2])
    runs,_ = memory.sample_sequences(500, T=2)
    assert torch.equal(runs['state'][:,1], runs['next_state'][:,0])

def test_vectors_that_come_and_go():
    "A run that makes one vector after the other remembers one; also without an `episode_id`, no episode runs from one into the next"
    class Vector: metadata = dict(autoreset_mode='next_step')
    zero,no = np.zeros((2,1), np.float32),np.zeros(2, bool) # each observation is the same
    row = dict(state=zero, action=no*1, reward=zero, next_state=zero.copy(), terminated=no, truncated=no, env_id=[8,9])
    er,vectors = ExperienceReplay(n_step=2, warmup_sz=1, memory=row),[Vector() for _ in range(5)]
    while vectors:
        envs = vectors.pop()
        for _ in range(2): er.add_vector(zero, no*1, zero, np.ones(2), no, no, {}, autoreset=envs)
    assert len(er.vectors)==1 and er['env_id'].unique().tolist()==[0,1,8,9]
    batch,idxs = er.sample(bs=300)
    assert {*zip(idxs.tolist(), batch['n_steps'].view(-1).tolist())}=={(i, 2 if i>=2 and i%4 in (2,3) else 1) for i in range(22)}

def test_restarts_forget_vectors_whose_episodes_ended(tmp_path):
    for n,_ in restarted(lambda: EpisodeReplay(RingBufferDataset(300), 4, 2), partial(EpisodeReplay.load, env_restored=True), tmp_path):
        assert n<=2

@pytest.mark.parametrize('bad', [.5, float('nan'), 2, -1])
def test_a_flag_is_0_or_1(bad):
    "NaN and 0.5 counted as an ending"
    step = dict(obs=np.zeros((2,3)), actions=[0,0], rewards=[0.,0.], next_obs=np.ones((2,3)), autoreset='next_step')
    for name in ('terminated','truncated'):
        er = ExperienceReplay(max_sz=100)
        with pytest.raises(ExperienceReplayException, match=f'`{name}` should be 0 or 1, or a bool, got .* in row 1'):
            er.add_vector(**step, **{'terminated':[0,1.], 'truncated':[0,0], name:[0,bad]})
        assert len(er)==0
        er.add_vector(**step, **{'terminated':[0,1], 'truncated':[False]*2, name:np.float32([1,0])})
        assert er[name][:,0].tolist()==[True,False]

@pytest.mark.parametrize('space', [gym.spaces.Text(5, seed=0), gym.spaces.Sequence(gym.spaces.Discrete(3), seed=0), gym.spaces.Graph(gym.spaces.Box(0, 1, (2,)), None, seed=0)],
                         ids=lambda o: type(o).__name__)
@pytest.mark.parametrize('make', [lambda: ExperienceReplay(4, max_sz=99, warmup_sz=1), lambda: EpisodeReplay(RingBufferDataset(99), 4)], ids=('replay','episodes'))
def test_spaces_without_a_fixed_shape(space, make):
    "Vectors put what their environments show into a tuple: the error is about `obs`, and not about a flag whose shape is right"
    shown = tuple(space.sample() for _ in range(3))
    step = dict(obs=shown, actions=[0]*3, rewards=[0.]*3, terminated=np.zeros(3, bool), truncated=[False]*3, next_obs=shown, autoreset='next_step')
    with pytest.raises((ValueError,ExperienceReplayException), match=r'`obs` is a tuple of what each of 3 environments shows.*\(Sequence, Text, Graph\)'): make().add_vector(**step)
