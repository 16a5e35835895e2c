"Batches and sequences from several memories: exact shares, TD errors in the memory that they belong to, and a resume that draws on"
import itertools
from pathlib import Path
import numpy as np, pytest, torch
from fastrl import ExperienceReplayCallback, Prioritized, Uniform
from fastrl.core import test_same as same
from fastrl.memory.disk import Saved
from fastrl.memory.replay import ExperienceReplay, MemoryNotWarm
from fastrl.memory.sample import Mixture

root = Path(__file__).parent.parent
number = itertools.count()

def steps(rng, who, n):
    "`n` rows that say by themselves whose they are: `[memory, number, episode, step]`"
    rows,ep,t = [],next(number),0
    for _ in range(n):
        over = rng.random()<.3
        rows.append((who, next(number), ep, t, over))
        ep,t = (next(number),0) if over else (ep,t+1)
    a = np.array(rows, np.float32)
    return dict(state=a[:,:4], next_state=a[:,:4]+[[0,1,0,1]], reward=np.ones(n, np.float32), terminated=a[:,4]>0,
                truncated=np.zeros(n, bool), episode_id=a[:,2].astype(int))

def a_mixture(rng, n_step=None, k=2):
    kinds = [lambda: Uniform(seed=int(rng.integers(99))), lambda: Prioritized(alpha=1., seed=int(rng.integers(99)))]
    memories = [ExperienceReplay(max_sz=int(rng.integers(20, 60)), warmup_sz=1, sampler=kinds[rng.integers(2)](), n_step=n_step, gamma=1.) for _ in range(k)]
    cuts = np.sort(rng.integers(1, 20, k-1))/20
    return Mixture(dict(zip(memories, np.diff([0,*cuts,1]).tolist())), bs=64) if len(set(cuts))==k-1 else a_mixture(rng, n_step, k)

@pytest.mark.parametrize('seed', range(8))
def test_histories(seed):
    "Rows are added, drawn, updated late: each batch has the stated counts of stored rows, each error lands on its row or nowhere"
    rng = np.random.default_rng(seed)
    mix,td,drawn = a_mixture(rng, k=2+seed%2),{},[]
    stored = [[] for _ in mix.memories]
    def add(k, n):
        rows = steps(rng, k, n)
        mix.memories[k] + rows
        stored[k] = [*stored[k], *rows['state'][:,1].tolist()][-mix.memories[k].max_sz:]
    for k in range(len(stored)): add(k, 5)
    for _ in range(40):
        add(rng.integers(len(stored)), int(rng.integers(1, 15)))
        bs = int(rng.integers(40, 90))
        batch,idxs = mix.sample(bs)
        of = batch['memory'][:,0].tolist()
        assert of==sorted(of)==batch['state'][:,0].tolist() and [of.count(k) for k in range(len(stored))]==mix.counts(bs)
        edges = np.cumsum([0,*mix.shares])*bs
        assert np.abs(np.cumsum(mix.counts(bs))-edges[1:]).max()<=.5 # rounded shares
        assert all(n in stored[int(k)] for k,n in batch['state'][:,:2].tolist())
        assert ('weight' in batch)==any(isinstance(m.sampler, Prioritized) for m in mix.memories)
        drawn.append((batch, idxs))
        late,idxs = drawn.pop(rng.integers(len(drawn)))
        new = torch.from_numpy(rng.integers(1, 99, (len(idxs),1))).float()
        mix.update_td(new, idxs, late['serial'])
        td.update(zip(late['state'][:,1].tolist(), new[:,0].tolist())) # of a row that came twice the last one counts
        for k,m in enumerate(mix.memories):
            for n,e in zip(m['state'][:,1].tolist(), m['td_error'][:,0].tolist()): assert e==td.get(n, 0), (k, n)
            if isinstance(m.sampler, Prioritized):
                m.sampler.follow(m.ring)
                noted = torch.tensor([n in td for n in m['state'][:,1].tolist()])
                assert torch.allclose(m.sampler.tree[:len(m)][noted].float(), m['td_error'][:,0][noted], atol=1e-4)

@pytest.mark.parametrize('seed', range(8))
def test_histories_of_sequences(seed):
    "Each sequence is a run of one memory's rows, as many of each as stated; each error lands on its row or nowhere"
    rng = np.random.default_rng(seed)
    mix,drawn = a_mixture(rng, k=2+seed%2),[]
    td = {}
    def add(k, n): mix.memories[k] + steps(rng, k, n)
    for k in range(len(mix.memories)): add(k, 20)
    for _ in range(20):
        add(rng.integers(len(mix.memories)), int(rng.integers(1, 15)))
        bs,T,burn = int(rng.integers(40, 90)),int(rng.integers(1, 4)),int(rng.integers(3))
        batch,idxs = mix.sample_sequences(bs, T, pad=True, burn_in=burn)
        there,of = idxs>=0,batch['memory'][:,0,0].tolist()
        assert idxs.shape==(bs,burn+T) and (there==batch['mask']).all() and of==sorted(of)
        assert [of.count(k) for k in range(len(mix.memories))]==mix.counts(bs)
        for i,run in zip(idxs, batch['state']):
            run = run[i>=0]
            assert len(set(run[:,0].tolist()))==len(set(run[:,2].tolist()))==1 and (run[1:,3]==run[:-1,3]+1).all()
        assert batch['state'][...,0][there].tolist()==batch['memory'][...,0][there].tolist()
        assert batch['weight'].shape==(bs,1) if any(isinstance(m.sampler, Prioritized) for m in mix.memories) else 'weight' not in batch
        drawn.append((batch, idxs))
        late,idxs = drawn.pop(rng.integers(len(drawn)))
        new = torch.from_numpy(rng.integers(1, 99, idxs.shape)).float()
        new[idxs<0] = torch.nan # nobody's error
        mix.update_td(new if seed%2 else new[...,None], idxs, late['serial'])
        td.update(zip(late['state'][...,1][idxs>=0].tolist(), new[idxs>=0].tolist()))
        for m in mix.memories:
            for n,e in zip(m['state'][:,1].tolist(), m['td_error'][:,0].tolist()): assert e==td.get(n, 0), n
    before = [m['td_error'].clone() for m in mix.memories]
    for i in (torch.tensor([[0,mix.memories[0].max_sz]]), torch.tensor([[-2,0]]), torch.tensor([[0,10**6]]), torch.full((1,2), 10**6), torch.zeros(1, 1, 1, dtype=int)):
        with pytest.raises(ValueError): mix.update_td(torch.ones(i.shape), i)
    same([m['td_error'].clone() for m in mix.memories], before)

@pytest.mark.parametrize('other', [Uniform, Prioritized])
def test_sequences_resume(other):
    "With the state of the mixture, the memories but the last draw the sequences that they would have drawn"
    rows = steps(np.random.default_rng(0), 0, 100)
    def made(): return Mixture({ExperienceReplay(max_sz=100, sampler=other(seed=1), seed=3)+rows: .5,
                                ExperienceReplay(max_sz=100, warmup_sz=1, seed=2)+rows: .5}, bs=8)
    a,b = made(),made()
    for m in (a,b): m.memories[0].runs = Uniform(seed=next(number)) # nobody knows the seed
    for _ in range(3): batch,idxs = a.sample_sequences(T=2); a.update_td(torch.ones(8, 2), idxs, batch['serial'])
    b.load_state_dict(a.state_dict())
    want,got = a.sample_sequences(T=2),b.sample_sequences(T=2)
    same((got[0][:4], got[1][:4]), (want[0][:4], want[1][:4]))

def test_whole_episodes_of_several_memories():
    m = ExperienceReplay(warmup_sz=1, seed=0)+steps(np.random.default_rng(0), 0, 9)
    with pytest.raises(ValueError, match='give `T`'): Mixture({m: 1}).sample_sequences(4)

def test_n_step():
    "Folded rows of each memory stay in their episodes"
    mix = a_mixture(np.random.default_rng(1), n_step=3)
    rng = np.random.default_rng(2)
    for k,m in enumerate(mix.memories): m + steps(rng, k, 50)
    batch,_ = mix.sample(500)
    assert (batch['state'][:,:3:2]==batch['next_state'][:,:3:2]).all() and (batch['reward']==batch['n_steps']).all() and batch['n_steps'].max()==3
    assert (batch['next_state'][:,3:]==batch['state'][:,3:]+batch['n_steps']).all()

def test_not_warm():
    "A memory that is not warm raises before another one has drawn"
    rng = np.random.default_rng(0)
    warm,cold = ExperienceReplay(warmup_sz=1, seed=0)+steps(rng, 0, 9),ExperienceReplay(warmup_sz=9, seed=0)
    before = warm.sampler.state_dict()
    with pytest.raises(MemoryNotWarm, match='^memory 2 of 2: 0 rows'): Mixture({warm: .5, cold: .5}).sample()
    others = {ExperienceReplay(max_sz=100, bs=4, seed=1, warmup_sz=1)+steps(rng, 0, 9): .2 for _ in range(3)}
    with pytest.raises(MemoryNotWarm, match='^memory 4 of 5: 0 rows'): Mixture({**others, cold: .2, warm: .2}, 10).sample_sequences(T=1)
    same(warm.sampler.state_dict(), before)
    assert Mixture({warm: 1, cold: 0}).sample()[0].bs()==16

@pytest.mark.parametrize('other', [Uniform, Prioritized])
def test_seeds_and_resume(other, tmp_path):
    "Equal seeds draw equal batches; what was checkpointed draws on as the unbroken one does, bit for bit"
    rng = np.random.default_rng(0)
    data,more = steps(rng, 0, 100),[steps(rng, 1, 7) for _ in range(25)]
    def made(online=None):
        offline = ExperienceReplay(max_sz=100, sampler=other(seed=1), n_step=2)+data
        online = online or ExperienceReplay(max_sz=40, warmup_sz=1, sampler=Prioritized(seed=2), n_step=2)
        return Mixture({offline: .25, online: .75}, bs=32)
    def train(mix, added):
        for rows in added:
            mix.memories[-1] + rows
            batch,idxs = mix.sample()
            mix.update_td(batch['state'][:,1:2]%7+1, idxs, batch['serial'])
            yield batch,idxs
    a,b = made(),made()
    same([*train(a, more[:20])], [*train(b, more[:20])])
    a.memories[-1].checkpoint(tmp_path, extra=dict(mix=a.state_dict()))
    want = [*train(a, more[20:])]
    def resumed(with_state):
        mix = made(ExperienceReplay.load(tmp_path, env_restored=True))
        if with_state: mix.load_state_dict(Saved(tmp_path).extra['mix'])
        return [*train(mix, more[20:])]
    same(resumed(True), want)
    assert not all(torch.equal(i, j) for (_,i),(_,j) in zip(resumed(False), want))

def test_in_fastai(tmp_path):
    "The callback of the tutorial learns from both, and `Resume` saves and resumes both"
    from fastcore.nbio import read_nb
    from fastrl.data.block import Source
    code = next(o.source for o in read_nb(root/'nbs/tutorials/offline_online.ipynb').cells if 'class MixedReplay' in o.source)
    from fastrl.agents.dqn import DQN, QNet, mlp, huber
    from fastrl.data.gym import GymLoop
    from fastrl.memory.experience_replay import Resume
    from fastai.basics import Adam, Learner
    space = dict(ExperienceReplayCallback=ExperienceReplayCallback)
    exec(code, space)
    offline_rows = Source([GymLoop('CartPole-v1', seed=5)]).take(400)
    def fit(epochs, folder):
        torch.manual_seed(0)
        offline = ExperienceReplay(max_sz=400, sampler=Prioritized(seed=3))+offline_rows
        online = ExperienceReplay(bs=32, max_sz=500, warmup_sz=50, seed=4)
        model = QNet(mlp(4, 2))
        replay = space['MixedReplay'](Mixture({offline: .5, online: .5}))
        learn = Learner(Source([GymLoop('CartPole-v1', seed=0)]).dataloaders(n=200, bs=10), model, loss_func=huber, opt_func=Adam,
                        cbs=[replay, DQN(), Resume(folder, every=7)])
        with learn.no_bar(), learn.no_logging(): learn.fit(epochs, 1e-3)
        return learn,offline
    learn,offline = fit(1, tmp_path/'a')
    assert (learn.experience_replay.drawn<400).tolist()==[True]*16+[False]*16
    learnt = (offline['td_error']!=0).sum()
    assert learnt>50 and (learn.experience_replay.experience_replay['td_error']!=0).any()
    _,again = fit(1, tmp_path/'a') # nothing left to do: it loads
    same(again['td_error'].clone(), offline['td_error'].clone())
    same(again.sampler.state_dict(), offline.sampler.state_dict())

def test_forgotten_rows():
    "Where the frames of rows are gone, TD errors still belong to the rows that were drawn, also after loading"
    def frames(n, margin):
        er = ExperienceReplay(8, 20, 1, frame_stack=4, frame_margin=margin, seed=0)
        for e in range(n):
            def f(t): return np.full((5,5), e*3+t, np.uint8)
            for t in range(2): er.add(state=f(t), next_state=f(t+1), reward=0., terminated=t==1, truncated=False)
        return er
    def two(): return frames(40, 2),frames(10, 40)
    with pytest.warns(UserWarning, match='rows are kept'): (a,b),(c,d) = two(),two()
    assert len(a)<len(a.ring)==20
    mix,other = Mixture({a:.5, b:.5}),Mixture({c:.5, d:.5})
    for k in range(5):
        batch,idxs = mix.sample()
        td = torch.arange(1., 9)[:,None]+10*k
        mix.update_td(td, idxs, batch['serial'] if k%2 else None)
        want = dict(zip(idxs[:4].tolist(), td[:4,0].tolist()))
        assert want=={i: a.ring.place.columns['td_error',][i,0].item() for i in want}
    other.load_state_dict(mix.state_dict())
    assert a['td_error'].tolist()==c['td_error'].tolist() and a['td_error'].any()
