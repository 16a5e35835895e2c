"""What a memory should give, by plain lists that know nothing of its inside

Observations are `[episode, step]`, and episodes are numbered over all environments: each row says by itself where it
belongs, and `did` says what the environment did there."""
import itertools, math
from types import SimpleNamespace
import gymnasium as gym, numpy as np

# %% An environment that keeps a record
did,number = {},itertools.count()
fuse = SimpleNamespace(left=None, error=RuntimeError) # after so many steps, `step` raises

class Toy(gym.Env):
    "Episodes of 1 to 6 steps that end in all ways; observations come in one buffer, if not in two"
    observation_space,action_space = gym.spaces.Box(0, 2**40, (2,), np.int64),gym.spaces.Discrete(5)
    def __init__(self, reuse=True, render_mode=None): self.reuse,self.buffer = reuse,np.zeros(2, np.int64)

    def _obs(self):
        self.buffer[:] = self.ep,self.t
        return self.buffer if self.reuse else self.buffer.copy()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.ep,self.t,self.length,self.how = next(number),0,*map(int, self.np_random.integers((1,0), (7,3)))
        return self._obs(),{}

    def step(self, action):
        if fuse.left is not None:
            fuse.left -= 1
            if fuse.left<0: fuse.left = None; raise fuse.error('the fuse')
        over,reward = self.t+1==self.length, float(self.np_random.integers(-8, 9))
        did[self.ep,self.t] = dict(action=int(action), reward=reward, over=over,
                                   terminated=over and self.how!=1, truncated=over and self.how!=0)
        self.t += 1
        return self._obs(), reward, over and self.how!=1, over and self.how!=0, {}

gym.register('Toy-v0', Toy, disable_env_checker=True)

# %% What should be held, and follow
def oracle(max_sz, where=''):
    "An empty one: keys `(episode, step)` in the order in which they were added, and where each stands"
    return SimpleNamespace(max_sz=max_sz, where=where, keys=[], at={}, td={}, env={}, names={})

def check_name(o, ep, name, at):
    "One `episode_id` for each episode, and one episode for each"
    assert o.names.setdefault(ep, name)==name, f'{at} has the episode_id {name}, and its episode had {o.names[ep]}'
    was = o.names.setdefault(('of', name), ep)
    assert was==ep, f'{at} has the episode_id {name}, as the episode {was}'

def learn(o, batch):
    "Note rows that go into the memory, and look whether they are what the environments did"
    cols = {k: v.tolist() for k,v in batch.items()}
    for j,key in enumerate(map(tuple, cols['state'])):
        at,d = f'{o.where}: the row {key} of the source',did.get(key)
        assert d, f'{at} is no step that an environment did'
        assert key not in o.at, f'{at} came twice'
        assert key[1]==0 or (key[0],key[1]-1) in o.at, f'{at} came without the one before'
        env = cols['env_id'][j][0]
        assert o.env.setdefault(key[0], env)==env, f'{at} has the env_id {env}, its episode {o.env[key[0]]}'
        want = dict(next_state=[key[0],key[1]+1], step=[key[1]+1], action=[d['action']], reward=[d['reward']],
                    terminated=[d['terminated']], truncated=[d['truncated']], done=[d['over']])
        for k,v in want.items(): assert k not in cols or cols[k][j]==v, f'{at} has the {k} {cols[k][j]}, not {v}'
        if 'episode_id' in cols: check_name(o, key[0], cols['episode_id'][j][0], at)
        o.at[key] = len(o.keys)
        o.keys.append(key)

def held(o, key): return key in o.at and o.at[key]>=len(o.keys)-o.max_sz
def stored(o): return o.keys[-o.max_sz:]

def following(o, key, n):
    "The up to `n` keys from `key` on that are held, up to the end of the episode"
    res,(ep,t) = [key],key
    while len(res)<n and not did[res[-1]]['over'] and held(o, (ep, t := t+1)): res.append((ep,t))
    return res

def folded(keys, gamma):
    "The outcome of these steps; `gamma` is a number, or the name of a column"
    last = did[keys[-1]]
    worth = [did[k][gamma] if isinstance(gamma, str) else gamma for k in keys]
    return dict(next_state=[keys[0][0],keys[-1][1]+1], terminated=[last['terminated']], truncated=[last['truncated']],
                done=[last['over']], n_steps=[len(keys)], discount=[math.prod(worth)], action=[did[keys[0]]['action']],
                reward=[sum(math.prod(worth[:i])*did[k]['reward'] for i,k in enumerate(keys))])

def near(a, b): return all(abs(x-y)<=1e-5*(1+abs(y)) for x,y in zip(a, b)) and len(a)==len(b)

# %% What a memory gave
def check_rows(o, batch, idxs, n_step=None, gamma=.99, exact=True):
    "Each row that was drawn; without `exact` as many steps may be folded as `n_steps` says, all of them held"
    cols = {k: v.tolist() for k,v in batch.items()}
    for j,key in enumerate(map(tuple, cols['state'])):
        at = f'{o.where}: row {j} of a batch, {key}'
        assert key in o.at, f'{at}, was never added'
        assert held(o, key), f'{at}, should be overwritten: it is number {o.at[key]} of {len(o.keys)}'
        keys = following(o, key, n_step or 1)
        if not exact:
            k = cols['n_steps'][j][0] if n_step else 1
            assert k<=len(keys), f'{at}, has {k} steps folded, and is followed by {keys[1:]}'
            keys = keys[:k]
        want = {**folded(keys, gamma), 'step':[key[1]+1], 'env_id':[o.env[key[0]]], 'td_error':[o.td.get(key, 0.)]}
        if exact: want.update(serial=[o.at[key]])
        if 'episode_id' in cols: check_name(o, key[0], cols['episode_id'][j][0], at)
        for k,v in want.items():
            if k in cols: assert near(cols[k][j], v), f'{at}, has the {k} {cols[k][j]}, and should have {v}, of {keys}'
        if exact: assert idxs[j]==o.at[key]%o.max_sz, f'{at}, has the number {idxs[j]}, not {o.at[key]%o.max_sz}'

def check_runs(o, batch, idxs, T=None, pad=False, exact=True):
    "Each sequence that was drawn"
    cols = {k: v.tolist() for k,v in batch.items()}
    mask = cols.get('mask', [[True]*len(o) for o in cols['state']])
    assert 'mask' in cols or not (pad or T is None), f'{o.where}: columns {list(cols)}'
    assert any(m[-1] for m in mask) if T is None else len(mask[0])==T, f'{o.where}: {len(mask[0])} steps for T={T}'
    for b,m in enumerate(mask):
        n,keys = sum(m),[tuple(k) for k,on in zip(cols['state'][b], m) if on]
        at = f'{o.where}: sequence {b} of a batch (T={T}, pad={pad}), {keys}'
        assert m==[True]*n+[False]*(len(m)-n), f'{at}, has the mask {m}'
        assert keys[0] in o.at and held(o, keys[0]), f'{at}, begins where nothing is held'
        assert keys==following(o, keys[0], n), f'{at}, should be {following(o, keys[0], n)}'
        whole = keys[0][1]==0 and did[keys[-1]]['over']
        if T is None: assert whole, f'{at}, is no whole episode'
        if pad and n<T and exact:
            before = (keys[0][0], keys[0][1]-1)
            assert not held(o, before), f'{at}, begins in the middle: {before} is held'
            assert len(following(o, keys[0], n+1))==n, f'{at}, stops too early'
        first,last = (cols[k][b][:n] for k in ('is_first','is_last'))
        begins = [key[1]==0 for key in keys]
        assert last==[did[key]['over'] for key in keys], f'{at}, has is_last {last}'
        shown = first==begins if exact and 'step' in cols else all(y or not x for x,y in zip(first, begins))
        assert shown, f'{at}, has is_first {first}'
        for t,key in enumerate(keys):
            want = {**folded([key], 1.), 'step':[key[1]+1], 'env_id':[o.env[key[0]]], 'td_error':[o.td.get(key, 0.)],
                    **(dict(serial=[o.at[key]]) if exact else {})}
            for k in want.keys()&cols.keys()-{'n_steps','discount'}:
                assert near(cols[k][b][t], want[k]), f'{at}: step {t} has the {k} {cols[k][b][t]}, not {want[k]}'
        have,want = idxs[b].tolist(),[o.at[k]%o.max_sz for k in keys]+[-1]*(len(m)-n)
        assert have==want if exact else [i>=0 for i in have]==m, f'{at}: the row numbers are {have}'
        for k in ('state','reward','step'):
            assert k not in cols or not np.any(cols[k][b][n:]), f'{at}: padded with {cols[k][b][n:]}'

def has_run(o, T): return any(len(following(o, k, T))==T for k in stored(o))

def has_whole(o):
    "Is there an episode of which the rows show that it is whole: held, and what was before it, too, if anything?"
    last = {}
    for k in o.keys:
        e = o.env[k[0]]
        shown = k[1]==0 and held(o, k) and (e not in last or held(o, last[e]))
        if shown and did[following(o, k, 99)[-1]]['over']: return True
        last[e] = k
    return False

def check_memory(o, memory):
    "All columns, in the order of the ring"
    n,r = len(o.keys),stored(o)
    first = (n-len(r))%o.max_sz if n>o.max_sz else 0
    assert len(memory['state'])==len(r), f'{o.where}: {len(memory["state"])} rows, not {len(r)}'
    got = list(map(tuple, memory['state'].tolist()))
    assert got[first:]+got[:first]==r, f'{o.where}: stored are {got}, and should be {r} from {first} on'

# %% Rows that say all by their number: environments take turns, and do the same for ever
lengths,M = (3,1,5,2,6,4),10**7
ep_of,t_of = np.repeat(range(6), lengths),np.concatenate([np.arange(o) for o in lengths])
starts = np.array([0,4,11,3]) # where the environments stand at first, each at a beginning

def flow(n, envs=3):
    "Of rows number `n`: environment, episode, step in it, steps until it is over. After `M` rows all begin anew"
    n = np.asarray(n)
    m,env = n%M//envs, n%M%envs
    at = m+starts[env]
    ep,t = (at//21*6+ep_of[at%21])*envs+env+n//M*M, t_of[at%21]
    return env,ep,t,np.array(lengths)[ep_of[at%21]]-t

def flow_rows(n, envs=3, wide=8, say=True):
    "The rows themselves, as a batch; `wide` fields in which all numbers are `n`"
    n = np.asarray(n)
    env,ep,t,left = flow(n, envs)
    over = (left==1)[:,None]
    res = dict(a=n[:,None].repeat(wide, 1), state=np.stack([n, env], 1), reward=(n%7.).astype(np.float32)[:,None],
               terminated=over&(ep%2==0)[:,None], truncated=over&(ep%2==1)[:,None], env_id=env[:,None],
               next_state=np.stack([np.where(left>1, n+envs, -n-1), env], 1), b=n[:,None].repeat(wide, 1))
    return {**res, 'step':t[:,None]+1, 'episode_id':ep[:,None]} if say else res

def same_flow(batch, n, where, but=(), **kwargs):
    "Are the columns of `batch` those of rows `n`?"
    want = flow_rows(n, **kwargs)
    for k in want:
        if k in but: continue
        got = np.asarray(batch[k]).reshape(len(n), -1)
        bad = (got!=want[k]).any(1)
        assert not bad.any(), (f'{where}: {k} of row {n[bad][0]} is {np.unique(got[bad][0])}, and should be '
                               f'{np.unique(want[k][bad][0])} ({bad.sum()} of {len(n)} rows)')

def check_flow(batch, where, n_step=None, gamma=.99, envs=3, known=None, oldest=0, **kwargs):
    "Rows that were drawn; with `known`, all rows before that number had been written before they were drawn"
    n = batch['state'][:,0].numpy()
    assert (n>=oldest).all(), f'{where}: the row {n.min()} should be overwritten: at least those before {oldest} are'
    if n_step is None: return same_flow(batch, n, where, envs=envs, **kwargs)
    same_flow(batch, n, where, ('reward','next_state','terminated','truncated'), envs=envs, **kwargs)
    k,left = batch['n_steps'][:,0].numpy(),flow(n, envs)[3]
    full = np.minimum(left, n_step)
    bad = (k<1)|(k>full)|((k<full)&(n+k*envs<known) if known is not None else False)
    assert not bad.any(), f'{where}: rows {n[bad]} have {k[bad]} steps folded of {full[bad]}, {known} rows were there'
    last = flow_rows(n+(k-1)*envs, envs)
    last['reward'] = sum(np.where(i<k, gamma**i*((n+i*envs)%7), 0) for i in range(n_step))[:,None]
    last['discount'] = (gamma**k)[:,None]
    for c in ('next_state','terminated','truncated','reward','discount'):
        bad = ~np.isclose(batch[c].numpy(), last[c], rtol=1e-5, atol=1e-5).all(1)
        assert not bad.any(), (f'{where}: {c} of row {n[bad][0]} with {k[bad][0]} steps folded is '
            f'{batch[c].numpy()[bad][0]}, and should be {last[c][bad][0]} ({bad.sum()} of {len(n)} rows)')

def check_flow_runs(batch, idxs, where, T=None, pad=False, envs=3, oldest=0, **kwargs):
    "Sequences that were drawn"
    mask = batch['mask'].numpy() if pad or T is None else np.ones(idxs.shape, bool)
    k,n = mask.sum(1),batch['state'][:,:,0].numpy()
    assert T is None or mask.shape[1]==T, f'{where}: {mask.shape} for T={T}'
    assert (mask==(np.arange(mask.shape[1])<k[:,None])).all(), f'{where}: the mask is {mask}'
    assert ((idxs.numpy()>=0)==mask).all(), f'{where}: {idxs} for the mask {mask}'
    assert (n[:,0]>=oldest).all(), f'{where}: {n[:,0].min()} is drawn, all before {oldest} are overwritten'
    run = n[:,:1]+envs*np.arange(n.shape[1])
    bad = ((n!=run)&mask).any(1)
    assert not bad.any(), f'{where}: the rows {n[bad][0][mask[bad][0]]} have a gap ({bad.sum()} of {len(n)} sequences)'
    _,_,t,left = flow(n[:,0], envs)
    bad = k>left if T else (k!=left)|(t>0)
    assert not bad.any(), f'{where}: rows {n[bad][0][mask[bad][0]]} {"span episodes" if T else "are no whole episode"}'
    same_flow({c: v.numpy()[mask] for c,v in batch.items() if c!='weight'}, n[mask], where, envs=envs, **kwargs)
