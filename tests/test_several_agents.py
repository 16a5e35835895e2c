"Several agents in one environment: a row for all of them, or a row for each"
from itertools import count, islice
import numpy as np, pytest, torch
from torch import tensor
from fastrl.core import test_same as same
from fastrl.memory.place import Place
from fastrl.memory.replay import ExperienceReplay, ExperienceReplayException
from fastrl.memory.sample import Prioritized

step = dict(state=torch.zeros(3), reward=1., next_state=torch.zeros(3), terminated=False, truncated=False, env_id=0)

# %% A row for all of them
@pytest.mark.parametrize('how', [{}, dict(frame_stack=0)])
@pytest.mark.parametrize('name', ['terminated','truncated'])
def test_flags_of_several_agents(how, name):
    "Which of them ends the episode is not for the memory to guess: the first agent that was out ended it"
    two = tensor([True,False])
    er = ExperienceReplay(max_sz=9, warmup_sz=1, seed=0, **how)
    with pytest.raises(ExperienceReplayException, match=f'`{name}` should be one flag per row'):
        for _ in range(4): er.add(**{**step, name:two})
        er.sample_sequences(2, T=2)
    er = ExperienceReplay(max_sz=9, warmup_sz=1, seed=0, **how)
    for _ in range(4): er.add(**step, dead=two)
    assert {*map(tuple, er.sample_sequences(50, T=3)[1].tolist())}=={(0,1,2), (1,2,3)}

# %% n steps, and a reward for each of them
def joint(rng, n_agents, dtype):
    "Steps of random episodes without end: agents are out early, the episode when all are, or by a time limit"
    for episode in count():
        ends,limit = rng.integers(1, 7, n_agents),rng.integers(1, 9)
        for t in range(1, 1+min(ends.max(), limit)):
            yield dict(
                state={f'a{i}': np.full(16, 100*episode+10*i+t, np.float32) for i in range(n_agents)}, t=np.int64(t),
                next_state={f'a{i}': np.full(16, 100*episode+10*i+t+1, np.float32) for i in range(n_agents)},
                reward=((t<=ends)*rng.integers(1, 9, n_agents)).astype(dtype), dead=ends<t, next_dead=ends<=t,
                terminated=bool(t==ends.max()), truncated=bool(t==limit<ends.max()), env_id=0)

@pytest.mark.parametrize('seed', [*range(4), *(pytest.param(o, marks=pytest.mark.slow) for o in range(4, 30))])
@pytest.mark.halved
def test_a_reward_for_each(seed, monkeypatch):
    "Every drawn row against the rows that followed it"
    rng = np.random.default_rng(seed)
    n_agents,cap,n = (int(rng.integers(*o)) for o in ((2,5), (3,40), (1,5)))
    how = [{}, dict(sampler=Prioritized(seed=seed)), dict(frame_stack=0, frame_margin=40)][seed%3]
    dtype = [np.float32, np.float64, np.int64, np.float16][seed%4]
    if seed%5==4 and 'frame_stack' not in how: monkeypatch.setattr(Place, 'loops', False) # as on a GPU
    er,rows = ExperienceReplay(max_sz=cap, warmup_sz=1, n_step=n, gamma=.5, seed=seed, **how),[]
    for row in islice(joint(rng, n_agents, dtype), 100):
        rows.append(row)
        er.add(**row)
        if rng.random()<.8: continue
        batch,idxs = er.sample(20)
        for j,s in enumerate(batch['serial'][:,0].tolist()):
            run = [s]
            while len(run)<n and run[-1]+1<len(rows) and not (rows[run[-1]]['terminated'] or rows[run[-1]]['truncated']):
                run.append(run[-1]+1)
            first,last = rows[run[0]],rows[run[-1]]
            want = sum(.5**k*rows[o]['reward'].astype(float) for k,o in enumerate(run))
            assert batch['reward'][j].tolist()==want.tolist() and batch['n_steps'][j]==len(run)
            assert batch['discount'][j]==.5**len(run)
            for k in ('state','t','dead'): same(batch[j:j+1][k], er.ring[idxs[j:j+1]][k])
            for k in ('next_dead','terminated','truncated'): assert (batch[k][j].numpy()==last[k]).all()
            for a in first['state']:
                assert (batch['state'][a][j].numpy()==first['state'][a]).all()
                assert (batch['next_state'][a][j].numpy()==last['next_state'][a]).all()
        td = torch.rand(20, n_agents, generator=torch.Generator().manual_seed(seed))
        er.update_td(td.amax(1, keepdim=True), idxs, batch['serial'])

def test_rewards_by_name():
    "A dict of rewards is refused, and the error says so"
    er = ExperienceReplay(max_sz=9, warmup_sz=1, n_step=2).add(**{**step, 'reward': dict(red=1., blue=2.)})
    with pytest.raises(ExperienceReplayException, match="a column 'reward', and no dict"): er.sample()

# %% The actions of several agents in a list
@pytest.mark.parametrize('actions', [[1,0], [np.int64(1),np.int64(0)], [tensor(1),tensor(0)]])
def test_a_list_of_actions(actions):
    "Ints stay ints, as one of them does, whatever they are in"
    for er in (ExperienceReplay().add(action=actions), ExperienceReplay()+dict(action=[np.array(actions)])):
        for _ in range(2): er.add(action=actions)
        same(er['action'], tensor([[1,0]]*3))

def test_a_list_of_numbers():
    "NumPy's ints and arrays keep their dtype in a list, Python's numbers beside them make float32"
    for v,dtype in (([np.int8(1),np.int8(0)], torch.int8), ([np.zeros(2),np.zeros(2)], torch.float64), ([1,0], torch.float32),
                    ([np.float32(1),2.], torch.float32), ([1.,np.float64(2)], torch.float32)):
        assert ExperienceReplay().add(x=v)['x'].dtype==(ExperienceReplay()+dict(x=[v]))['x'].dtype==dtype
