"n-step returns to the last bit, whatever the columns are: every draw against sums in plain Python"
import itertools, numpy as np, pytest, torch
from fastrl.memory.folds import folds_of
from fastrl.memory.replay import ExperienceReplay
from fastrl.memory.sample import Prioritized, Uniform

def slow(*os): return [pytest.param(o, marks=pytest.mark.slow) for o in os]
dtypes = [torch.float32, torch.int64, *slow(torch.float16, torch.float64, torch.bfloat16, torch.uint8, torch.bool),
          *(pytest.param(o, marks=pytest.mark.long) for o in (torch.int32, torch.int16))]
forms = [((), 'number'), ((), 'one'), ((3,), 'number'), ((3,), 'one'), ((3,), 'each')]

def history(n, reward, k, gammas, worth, rng):
    "Rows of three environments that take turns at random; their numbers are their states"
    def flags(p): return torch.from_numpy(rng.random(n)<p)
    values = torch.from_numpy(rng.normal(size=(n, *k))*(2 if reward.is_floating_point else 40)).abs()
    if reward.is_floating_point: values[flags(.05)] = float('inf') # times a discount of 0 it is 0
    rows = dict(state=torch.arange(n), next_state=torch.arange(n)+.5, reward=(values>20).to(reward) if reward is torch.bool else values.to(reward),
                terminated=flags(.1), truncated=flags(.1), env_id=torch.from_numpy(rng.integers(3, size=n)))
    if gammas!='number': # some are 0, and end what counts
        rows['worth'] = torch.from_numpy(rng.choice([0,.5,.9,1.], (n, *(k if gammas=='each' else ())))).to(worth)
    return rows

def folded(rows, i, n, c, gamma):
    "The last row of up to `n` from row `i`, how many they are, their rewards `c` and the product of their discounts"
    def worth(i): return float(rows['worth'].view(len(rows['state']), -1)[i,c if rows['worth'].ndim>1 else 0]) if gamma=='worth' else gamma
    def ends(i): return rows['terminated'][i] or rows['truncated'][i]
    rewards,env = rows['reward'].double().view(len(rows['state']), -1)[:,c].tolist(),rows['env_id'].tolist()
    total,g,k = rewards[i],worth(i),1
    while k<n and not ends(i):
        j = next((j for j in range(i+1, len(env)) if env[j]==env[i]), None)
        if j is None: break
        total,g,k,i = total+(g*rewards[j] if g else 0.),g*worth(j),k+1,j
    return i,k,total,g

def check(batch, rows, n, gamma):
    k,kind = rows['reward'].shape[1:],torch.float64 if rows['reward'].dtype is torch.float64 else torch.float32
    each = range(rows['reward'][0].numel())
    found = [[folded(rows, i, n, c, gamma) for c in each] for i in batch['state'].flatten().tolist()]
    last = [o[0][0] for o in found]
    for o in ('next_state','terminated','truncated'): assert batch[o].flatten().tolist()==rows[o][last].tolist()
    assert batch['n_steps'].tolist()==[[o[0][1]] for o in found]
    assert batch['reward'].dtype is kind and batch['reward'].shape[1:]==(k or (1,))
    assert batch['reward'].flatten().tolist()==torch.tensor([p[2] for o in found for p in o], dtype=torch.float64).to(kind).tolist()
    several = gamma=='worth' and rows['worth'].ndim>1
    assert batch['discount'].dtype is torch.float32 and batch['discount'].shape[1:]==(k if several else (1,))
    assert batch['discount'].flatten().tolist()==torch.tensor([p[3] for o in found for p in (o if several else o[:1])]).float().tolist()

@pytest.mark.parametrize('reward', dtypes, ids=str)
@pytest.mark.parametrize('form', [*forms, *slow(((2,2), 'number'), ((2,2), 'one'), ((2,2), 'each'))], ids=str)
def test_each_form(reward, form):
    "Even and by priority, one batch and two, as the memory fills and wraps"
    (k,gammas),rng = form,np.random.default_rng(0)
    gamma = .9 if gammas=='number' else 'worth'
    worth = torch.float64 if reward.is_floating_point else torch.float32
    if gammas=='one' and k: worth = torch.float16 if k==(3,) else torch.int64 # 0.5 and 0.9 are 0
    rows = history(90, reward, k, gammas, worth, rng)
    for n,sampler in itertools.product((1,2,3,5), (Uniform, Prioritized)):
        er,at = ExperienceReplay(40, 50, 1, sampler=sampler(seed=0), n_step=n, gamma=gamma),0
        for size in (7,30,25,28): # the memory wraps with the third
            er+{o: v[at:at+size] for o,v in rows.items()}; at += size
            so_far = {o: v[:at] for o,v in rows.items()}
            for batch,idxs in (er.sample(), *er.sample(n_batches=2)):
                check(batch, so_far, n, gamma)
                er.update_td(torch.from_numpy(rng.random((40,1))), idxs, batch['serial'])
        compiled = isinstance(folds_of(er)(er.ring, idxs)[0], np.ndarray)
        assert compiled==all(v.dtype not in (torch.float16, torch.bfloat16) for v in rows.values())
