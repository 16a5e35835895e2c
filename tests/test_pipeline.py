"Parts that meet: random histories against an oracle that keeps everything and knows nothing of the inside"
import itertools, mmap, os, random, re, signal, statistics, time, warnings
from contextlib import contextmanager
import numpy as np, pytest, torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from fastrl.core import BD
from fastrl.data.gym import FirstLast, GymLoop, LoopCallback, Source
from fastrl.memory.buffer import ReplayBuffer
from fastrl.memory.disk import LoadError, Saved
from fastrl.memory.episodes import EpisodeReplay, RingBufferDataset
from fastrl.memory.replay import ExperienceReplay, ExperienceReplayException
from fastrl.memory.sample import Prioritized, Uniform
from oracle import *

modes = dict(next_step=AutoresetMode.NEXT_STEP, same_step=AutoresetMode.SAME_STEP, disabled=AutoresetMode.DISABLED)
long,by_mode = pytest.mark.long,pytest.mark.parametrize('mode', modes)
def seeds(few, many):
    "Half of the few by default, all of them in `make test-slow`, the many in `make test-long`"
    cases = pytest.param(range(few//2), id='half'),pytest.param(range(few//2, few), id='few', marks=pytest.mark.slow),pytest.param(range(few, many), id='many', marks=long)
    return pytest.mark.parametrize('seeds', cases)

# %% source → memory → draw
def a_source(rng, mode, most=4, **kwargs):
    "A source of 1 to `most` toys, made by name or ready, with an agent or at random"
    n,seed = rng.randint(1, most),rng.randrange(1000)
    agent = rng.choice([None, lambda s: np.random.default_rng(int(s.sum())).integers(0, 5, len(s))])
    if rng.random()<.3:
        ready = SyncVectorEnv([Toy]*n, autoreset_mode=modes[mode])
        return Source([GymLoop(ready, agent, seed=seed, **kwargs)]), f'{n} ready'
    return Source([GymLoop('Toy-v0', agent, n_envs=n, autoreset=mode, seed=seed, **kwargs)]), f'{n}'

def a_memory(rng, **kwargs):
    settings = {**dict(bs=rng.randint(1, 9), max_sz=rng.randint(7, 60), warmup_sz=rng.randint(0, 1),
                       n_step=rng.choice((None,1,3)), gamma=rng.choice((.5,.9,1.,'reward','action')), seed=rng.randrange(1000)), **kwargs}
    sampler = rng.choice((Uniform, Prioritized))
    if rng.random()<.3: settings = dict(frame_stack=0, frame_margin=3*settings['max_sz'], **settings) # as many rows, should each need two
    return ExperienceReplay(sampler=sampler(), **settings), f'{sampler.__name__} {settings}'

def take(source, rng, n, broken):
    "`n` rows, or `None` where an error or Ctrl-C came instead"
    if broken and rng.random()<.3:
        fuse.left,fuse.error = rng.randint(0, 60),rng.choice((RuntimeError, KeyboardInterrupt))
    try: return source.take(n)
    except (RuntimeError, KeyboardInterrupt) as e:
        if 'the fuse' not in str(e): raise
    finally: fuse.left = None

def draw_all(er, o, rng):
    "Draw in all ways, and look at each row"
    check_rows(o, *er.sample(), er.n_step, er.gamma)
    for T,pad in ((rng.randint(1, 5),False), (rng.randint(1, 7),True), (None,False)):
        there = T is None and has_whole(o) or T and (pad or has_run(o, T))
        try: batch,idxs = er.sample_sequences(rng.randint(1, 6), T, pad=pad)
        except ExperienceReplayException as e:
            assert not there, f'{o.where}: T={T}, pad={pad} gave {e!r}, and there is one among {stored(o)}'
        else: check_runs(o, batch, idxs, T, pad)

def late(er, o, rng, drawn):
    "A TD error for rows that were drawn some time ago"
    batch,idxs = drawn.pop(rng.randrange(len(drawn)))
    keys,by = list(map(tuple, batch['state'].tolist())),rng.randint(1, 9)
    td = torch.tensor([[float(k[0]%7+by)] for k in keys])
    er.update_td(td, idxs, batch['serial'])
    o.td.update({k: v.item() for k,v in zip(keys, td) if held(o, k)})

def history(seed, mode, broken, rounds=14):
    "Take from a source, add, draw, update late; look at the memory after each few rows"
    rng = random.Random(f'{seed}{mode}{broken}')
    (source,envs),(er,how) = a_source(rng, mode),a_memory(rng)
    o,drawn = oracle(er.max_sz, f'seed {seed}, {mode}, {envs} environments, broken={broken}, {how}'),[]
    for _ in range(rounds):
        if (batch := take(source, rng, rng.choice((1,2,3,7,20)), broken)) is not None:
            learn(o, batch)
            er+batch
        if broken and rng.random()<.3: source.close()
        if not len(er): continue
        draw_all(er, o, rng)
        drawn.append(er.sample())
        if rng.random()<.5: late(er, o, rng, drawn)
        check_memory(o, er.memory)
    source.close()

@seeds(12, 300)
@by_mode
def test_source(mode, seeds):
    for o in seeds: history(o, mode, False)

@seeds(12, 300)
@by_mode
def test_source_broken(mode, seeds):
    "Errors and Ctrl-C in `step`, a source that is closed and taken from again"
    for o in seeds: history(o, mode, True)

@seeds(8, 200)
@by_mode
def test_reopened(mode, seeds):
    "A source that was closed has other episodes than before when it is opened again, the same ones each time"
    def story(seed, n):
        loop = GymLoop('Toy-v0', seed=seed, n_envs=n, autoreset=mode)
        source,parts = Source([loop]),[]
        for _ in range(3):
            b = source.take(60)
            parts.append(list(zip(b['reward'].tolist(), b['action'].tolist())))
            source.close()
        return parts
    for seed in seeds:
        a,b = (story(seed, seed%3+1) for _ in 'ab')
        assert a==b, f'seed {seed}, {mode}: another source of this seed gave other steps'
        assert a[0]!=a[1]!=a[2]!=a[0], f'seed {seed}, {mode}: the episodes came again after `close`'

class Witness(LoopCallback):
    "Notes what `after_step` sees"
    def __init__(self): self.saw = []
    def after_step(self):
        obs,nxt = (np.reshape(getattr(self.source.now, k), (-1,2)).tolist() for k in ('obs','next_obs'))
        self.saw += zip(map(tuple, obs), map(tuple, nxt))

@seeds(6, 100)
@by_mode
def test_after_step(mode, seeds):
    "A callback sees what the action led to, not how the next episode begins"
    for seed in seeds:
        rng = random.Random(f'after {seed}')
        (source,envs),witness = a_source(rng, mode),Witness()
        Source([source.cbs[0], witness]).take(100)
        wrong = [(o, nxt) for o,nxt in witness.saw if o in did and nxt!=(o[0],o[1]+1)] # in other steps vectors reset
        assert len(witness.saw)>=100 and not wrong, f'seed {seed}, {mode}, {envs} environments: {wrong[:5]}'

# %% Slices, and a memory made of another one's rows
single = ('state','action','next_state','reward','terminated','truncated')
plain = (*single,'env_id')
parts_of_rows = pytest.mark.parametrize('only', (None,plain,single), ids=('all','plain','single'))

def filled(seed, only=None, **kwargs):
    "A memory, what it should hold, and the source of it"
    rng = random.Random(f'filled {seed}')
    (source,envs),(er,how) = a_source(rng, rng.choice(list(modes)), 1 if only==single else 4),a_memory(rng, **kwargs)
    o = oracle(er.max_sz, f'seed {seed}, {envs} environments, {only or "all columns"}, {how}')
    for _ in range(rng.randint(1, 8)): give(er, o, source, rng.randint(1, 15), only)
    return rng, er, o, source

def give(er, o, source, n, only=None):
    "`n` more rows into the memory and its oracle"
    batch = source.take(n)
    learn(o, batch)
    if only: batch = BD({k: batch[k] for k in only})
    er+batch
    return batch

def in_ring(o):
    "The keys in the order of the ring"
    k = len(o.keys)%o.max_sz if len(o.keys)>o.max_sz else 0
    return stored(o)[-k:]+stored(o)[:-k] if k else stored(o)

def part(o, keys, what):
    "An oracle for these rows only"
    return SimpleNamespace(**{**vars(o), 'max_sz':len(keys), 'keys':list(keys), 'at':{k:i for i,k in enumerate(keys)},
                              'where':f'{o.where}, {what}'})

def some_rows(rng, n):
    "Ways to name some of `n` rows"
    a,b = sorted((rng.randint(0, n), rng.randint(1, n)))
    return [slice(a, b), slice(None), slice(a, None), slice(None, None, 2), slice(None, None, -1), list(range(b))[::-1],
            [o for o in (0,3,7) if o<n], rng.choices(range(n), k=5), [rng.random()<.5 for _ in range(n)]]

def look_loosely(er, o, rng):
    "Draw in all ways: fewer steps may be folded than there are, but none that were not adjacent"
    er.n_step,er.warmup_sz = 3,0
    check_rows(o, *er.sample(20), 3, er.gamma, exact=False)
    for T,pad in ((2,False), (3,True), (None,False)):
        try: check_runs(o, *er.sample_sequences(10, T, pad=pad), T, pad, exact=False)
        except ExperienceReplayException: pass

@seeds(20, 500)
@parts_of_rows
def test_slices(only, seeds):
    "Rows join in a slice only if they were adjacent in their episode, also with those that are added to it"
    for seed in seeds:
        rng,er,o,source = filled(seed, only)
        n = len(o.keys)
        for way in range(9):
            rows = some_rows(rng, len(er))[way]
            keys = [in_ring(o)[i] for i in np.arange(len(er))[rows]]
            if not keys: continue
            s,p = er[rows],part(o, keys, f'er[{rows}]')
            look_loosely(s, p, rng)
            s + give(er, o, source, rng.randint(1, 5), only)
            p.keys += o.keys[n:]
            p.at,n = {k:i for i,k in enumerate(p.keys)},len(o.keys)
            look_loosely(s, p, rng)
        source.close()

def check_merged(er, rows, at, exact, begun):
    """Draw in all ways: rows are joined if one goes on with the other in `rows`, pairs of a key and its part of the history;
    episodes begin at those that have `begun`"""
    place = {k:i for i,(k,_) in enumerate(rows)}
    def run(key, n):
        res = [key]
        while len(res)<n and not did[res[-1]]['over']:
            key,after = res[-1],(res[-1][0], res[-1][1]+1)
            if place.get(after, -1)<place[key] or rows[place[after]][1]!=rows[place[key]][1]: break
            res.append(after)
        return res
    batch = er.sample(60)[0]
    for key,nxt,(k,),(r,) in zip(*(map(tuple, batch[o].tolist()) for o in ('state','next_state','n_steps','reward'))):
        want = run(key, 3)
        assert k==len(want) if exact else k<=len(want), f'{at}: {key} has {k} steps folded, and should have {want}'
        got = folded(want[:k], er.gamma)
        assert list(nxt)==got['next_state'] and near([r], got['reward']), f'{at}: {key} has {nxt}, {r}, not {got}'
    for T,pad in ((2,False), (3,True), (None,False)):
        try: batch,idxs = er.sample_sequences(20, T, pad=pad)
        except ExperienceReplayException: continue
        for states,first,on in zip(*(o.tolist() for o in (batch['state'], batch['is_first'], idxs>=0))):
            keys = [tuple(o) for o,is_on in zip(states, on) if is_on]
            assert keys==run(keys[0], len(keys)), f'{at}, T={T}: {keys} should be {run(keys[0], len(keys))}'
            assert not any(f and k[1] for f,k in zip(first, keys)), f'{at}, T={T}: {keys} begin an episode at {first}'
            assert not any(k in begun and not f for f,k in zip(first, keys)), f'{at}, T={T}: {keys} begin none at {first}'
            assert T or not keys[0][1] and did[keys[-1]]['over'], f'{at}: {keys} is no whole episode'

@seeds(40, 1000)
@pytest.mark.parametrize('way', ('plus','extend'))
@parts_of_rows
@pytest.mark.halved
def test_merged(only, way, seeds):
    "Rows of another memory are joined as they were there; what comes later, from either source, follows none of them"
    for seed in seeds:
        rng,er,o,source = filled(seed, only, max_sz=random.Random(seed).choice((30,400)), warmup_sz=0, n_step=3)
        _,b,other,others = filled(f'other {seed}', only, max_sz=random.Random(seed+1).choice((9,400)), warmup_sz=0)
        parts = [(k, 0) for k in other.keys]
        if rng.random()<.7: # an episode was abandoned
            b.cut()
            others.close() # what comes next begins an episode, as `cut` says
            if rng.random()<.8: give(b, other, others, rng.randint(1, 9), only)
            parts += [(k, 1) for k in other.keys[len(parts):]]
        part = dict(parts)
        there = [(k, part[k]) for k in (in_ring if way=='plus' and b.frame_stack is None else stored)(other)] # frames come oldest first
        if fresh := rng.random()<.3: er = ExperienceReplay(max_sz=er.max_sz, warmup_sz=0, n_step=3, gamma=er.gamma)
        rows = ([] if fresh else [(k, 'before') for k in o.keys])+there
        at = f'{o.where}, {way}, {len(other.keys)} rows of another of {b.max_sz}, fresh={fresh}'
        exact = way=='extend' or len(other.keys)<=b.max_sz
        begun = {k for k,p in there if len(other.keys)<=b.max_sz and len(rows)<=er.max_sz and not k[1]}
        if way=='plus': er + b.memory
        else: er.extend(b)
        check_merged(er, rows[-er.max_sz:], at, exact, begun)
        who,src = rng.choice(((o,source), (other,others)))
        n = len(who.keys)
        for _ in range(3):
            give(er, who, src, rng.randint(1, 9), only)
            check_merged(er, (rows+[(k, 'after') for k in who.keys[n:]])[-er.max_sz:], at, exact, begun)
        source.close()
        others.close()

@seeds(40, 1000)
@parts_of_rows
def test_wrapped(only, seeds):
    "The columns of a memory that went round, as the first rows of another"
    for seed in seeds:
        rng,er,o,source = filled(seed, only)
        s = ExperienceReplay(memory=er.memory, max_sz=len(er), warmup_sz=0, n_step=3, gamma=.9)
        look_loosely(s, part(o, in_ring(o), 'ExperienceReplay(memory=er.memory)'), rng)
        source.close()

@pytest.mark.parametrize('rows', (slice(5,25), [7,3,12,12], torch.arange(40)%4==3), ids=('slice','list','mask'))
def test_slice_keeps(rows):
    "`n_step`, `gamma`, `bs`, the kind of sampler and its settings, TD errors and priorities"
    er = ExperienceReplay(5, 40, 1, n_step=3, gamma=.7, sampler=Prioritized(1., .6, 500, 1e-4, 'memory', seed=0))
    er + flow_rows(np.arange(57))
    er.update_td(torch.zeros(40, 1), torch.arange(40))
    er.update_td(torch.tensor([[9.]]), [7])
    s = er[rows]
    assert (s.bs,s.n_step,s.gamma)==(5,3,.7), f'{s.bs}, {s.n_step}, {s.gamma}'
    assert type(s.sampler) is Prioritized and s.sampler.settings==er.sampler.settings, f'{s.sampler}'
    assert s.memory['td_error'].tolist()==er.memory['td_error'][torch.arange(40)[rows]].tolist()
    drawn = s.sample(200)[0]['a'][:,0]
    assert (drawn==47).float().mean()>.9, f'the row with the priority 9 is drawn {(drawn==47).sum()} times of 200'
    assert er[5:9].sampler is not er.sampler, 'a slice draws from a stream of its own'

# %% Steps between the rows of a source
@seeds(30, 500)
def test_steps_delta(seeds):
    "The ending of each episode is in some row; rows that are steps apart are not folded as if they were adjacent"
    for seed in seeds:
        rng = random.Random(f'delta {seed}')
        count,delta,gamma = rng.randint(1, 3),rng.randint(1, 4),rng.choice((.5,.9))
        source,envs = a_source(rng, rng.choice(list(modes)), steps_count=count, steps_delta=delta)
        source = Source([source.cbs[0], FirstLast(gamma)])
        where = f'seed {seed}, {envs} environments, steps_count={count}, steps_delta={delta}, gamma={gamma}'
        batch,ends,last = source.take(rng.randint(20, 120)),set(),{}
        source.close()
        cols = {k: v.tolist() for k,v in batch.items()}
        for j,(ep,t) in enumerate(cols['state']):
            k,at = cols['n_steps'][j][0],f'{where}: the row {(ep,t)} with {cols["n_steps"][j][0]} steps'
            keys = [(ep,t+i) for i in range(k)]
            assert 1<=k<=count and all(o in did for o in keys), f'{at} is none'
            assert not any(did[o]['over'] for o in keys[:-1]), f'{at} spans two episodes'
            assert k==count or did[keys[-1]]['over'], f'{at} is not complete'
            for c,v in {**folded(keys, gamma), 'step':[t+1]}.items():
                assert near(cols[c][j], v), f'{at} has the {c} {cols[c][j]}, not {v}'
            if cols['done'][j][0]: ends.add(ep)
            last.setdefault(cols['env_id'][j][0], []).append(ep)
        for e,eps in last.items():
            lost = sorted(set(eps)-{eps[-1]}-ends)
            assert not lost, f'{where}: no row has the ending of {len(lost)} of {len(set(eps))} episodes of {e}'
        keys = list(map(tuple, cols['state']))
        o = part(oracle(0, where), keys, 'in a memory')
        o.env = {k[0]: e[0] for k,e in zip(keys, cols['env_id'])}
        er = ExperienceReplay(20, len(keys), 1, batch, n_step=3, gamma=gamma, seed=seed)
        if count==1: look_loosely(er, o, rng)
        else: # rows of several steps already: refused, if not right
            try: batch = er.sample()[0]
            except ExperienceReplayException: continue
            for (ep,t),(_,end),r,g in zip(*(batch[k].tolist() for k in ('state','next_state','reward','discount'))):
                want = folded([(ep,i) for i in range(t, end)], gamma)
                right = near(r+g, want['reward']+want['discount'])
                assert right, f'{where}: the row {(ep,t)} folded up to {end} has the reward {r} and discount {g}'

@seeds(30, 500)
def test_looked_at_late(seeds):
    "Rows that came and went before anybody looked: no episode begins where its beginning may be overwritten"
    for seed in seeds:
        rng,er,o,source = filled(seed, plain, warmup_sz=0, n_step=3)
        for _ in range(6):
            for _ in range(rng.choice((1,1,4))): give(er, o, source, rng.randint(1, 40), plain)
            look_loosely(er, o, rng)
        source.close()

# %% Loops of one's own
def toys(rng, n, steps):
    "The rows of `n` toys at each step, and where they belong"
    envs = [Toy(reuse=False) for _ in range(n)]
    obs = [o.reset(seed=rng.randrange(1000))[0] for o in envs]
    for _ in range(steps):
        rows = []
        for i,e in enumerate(envs):
            nxt,r,te,tr,_ = e.step(rng.randrange(5))
            rows.append(dict(state=obs[i], reward=r, next_state=nxt, terminated=te, truncated=tr))
            obs[i] = e.reset()[0] if te or tr else nxt
        yield rows

def columns(rows, **more): return {**{k: np.stack([np.asarray(o[k]) for o in rows]) for k in rows[0]}, **more}

def note(o, rows):
    for e,row in enumerate(rows):
        key = tuple(row['state'].tolist())
        o.at[key],o.env[key[0]] = len(o.keys),e
        o.keys.append(key)

def unlike(o):
    "Are there two rows, one after the other, of which the second does not go on with the first, and no episode ended?"
    return any(not did[a]['over'] and b!=(a[0],a[1]+1) for a,b in zip(stored(o), stored(o)[1:]))

ways = {'n_step': lambda er, o: check_rows(o, *er.sample(), 3, er.gamma),
        'T': lambda er, o: check_runs(o, *er.sample_sequences(4, 2), 2),
        'pad': lambda er, o: check_runs(o, *er.sample_sequences(4, 3, pad=True), 3, True),
        'whole': lambda er, o: check_runs(o, *er.sample_sequences(4))}
there = dict(n_step=stored, T=lambda o: has_run(o, 2), pad=stored, whole=has_whole) # is there one to draw?

def refused(er, o, way, known):
    "Draw one way: right rows, or the error that says that `env_id` is missing, if it is not `known`"
    try: ways[way](er, o)
    except ExperienceReplayException as e:
        if not known and 'env_id' in str(e): return True
        assert not there[way](o), f'{o.where}: {e!r}, and there is one among {stored(o)}'

@seeds(6, 100)
@pytest.mark.parametrize('way', ways)
@pytest.mark.parametrize('how', ('rows','calls'))
@pytest.mark.parametrize('say', (True,False), ids=('env_id','none'))
def test_natural_loop(say, how, way, seeds):
    "Eight environments, all rows of a step at once or one after the other, with `env_id` and without"
    for seed in seeds:
        rng = random.Random(f'loop {seed}')
        er = ExperienceReplay(6, rng.randint(20, 60), 1, n_step=3, gamma=.9, seed=seed)
        o = oracle(er.max_sz, f'seed {seed}, {how}, env_id={say}, {way}, max_sz={er.max_sz}')
        for rows in toys(rng, 8, 10):
            if how=='rows': er+columns(rows, **(dict(env_id=np.arange(8)) if say else {}))
            else:
                for i,row in enumerate(rows): er.add(**row, **(dict(env_id=i) if say else {}))
            note(o, rows)
            er.n_step = None
            check_rows(o, *er.sample())
            er.n_step = 3
            silent = not refused(er, o, way, say) and not say and unlike(o)
            assert not silent, f'{o.where}: after {len(o.keys)} rows no error says that `env_id` is missing'

said = dict(all=('env_id','episode_id','step'), alone=('episode_id','step'), episode=('env_id','episode_id'),
            step=('env_id','step'))

@seeds(6, 100)
@pytest.mark.parametrize('say', said)
def test_left_off(say, seeds):
    "Rows that were not added: what the others say of their episode and step keeps them apart"
    for seed in seeds:
        rng = random.Random(f'left off {seed}')
        er = ExperienceReplay(8, rng.randint(3, 30), 1, n_step=3, gamma=.9, seed=seed)
        o,off,any_ = oracle(er.max_sz, f'seed {seed}, {said[say]}, max_sz={er.max_sz}'),set(),say in ('all','alone')
        for e,row in [o for step in toys(rng, 4, 40) for o in enumerate(step)]:
            ep,t = key = tuple(row['state'].tolist())
            # any row but the first (a `step` may count on from the last episode); if not all is said, those after it
            if rng.random()<.2 and t: off |= {key} if any_ else {(ep,t+i) for i in range(9)}
            if key in off: continue
            names = dict(env_id=e, episode_id=ep, step=t+1)
            er.add(**row, **{k: names[k] for k in said[say]})
            o.at[key],o.env[ep] = len(o.keys),e
            o.keys.append(key)
            if rng.random()<.05: draw_all(er, o, rng) if any_ else look_closely(er, o, rng)

def look_closely(er, o, rng):
    "As `look_loosely`, but single rows with all the steps that there are"
    check_rows(o, *er.sample(20), er.n_step, er.gamma)
    look_loosely(er, o, rng)

@seeds(10, 200)
@pytest.mark.parametrize('bare', (False,True), ids=('states','bare'))
def test_one_environment(bare, seeds):
    "One row a call needs no `env_id`"
    for seed in seeds:
        rng = random.Random(f'one {seed}')
        er = ExperienceReplay(6, rng.randint(5, 30), 1, n_step=3, gamma=.9, seed=seed)
        o = oracle(er.max_sz, f'seed {seed}, max_sz={er.max_sz}')
        for rows in toys(rng, 1, 40):
            er.add(**{k:v for k,v in rows[0].items() if not bare or k!='next_state'})
            note(o, rows)
            for way in ways: refused(er, o, way, known=True)

@pytest.mark.parametrize('way', ways)
def test_nothing_to_compare(way):
    "Several rows in one call, of which nobody can say whether they are of one environment"
    o,all_rows = oracle(100, way),[]
    for rows in toys(random.Random(0), 1, 30):
        note(o, rows)
        all_rows += [{k:v for k,v in rows[0].items() if k!='next_state'}]
    er = ExperienceReplay(6, 100, 1, n_step=3, gamma=.9, seed=0)+columns(all_rows)
    with pytest.raises(ExperienceReplayException, match='env_id'): ways[way](er, o)
    er.n_step = None
    check_rows(o, *er.sample())
    er = ExperienceReplay(6, 100, 1, n_step=3, gamma=.9, seed=0)+columns(all_rows, env_id=np.zeros(30, int))
    ways[way](er, o)

# %% What `step` of a vector environment gave
@seeds(8, 200)
@pytest.mark.parametrize('form', ('enum','name','env'))
@by_mode
@pytest.mark.halved
def test_add_vector(mode, form, seeds):
    "True rows in each autoreset mode: no row for a reset, the final observation as `next_state`"
    for seed in seeds:
        rng = random.Random(f'vector {seed}')
        n = rng.randint(1, 5)
        env = SyncVectorEnv([lambda: Toy(reuse=False)]*n, autoreset_mode=modes[mode])
        max_sz = rng.choice((n, rng.randint(7, 60))) # of `n` rows each is written over the one before it
        er = ExperienceReplay(8, max_sz, 1, n_step=rng.choice((None,3)), gamma=.9, seed=seed)
        o = oracle(er.max_sz, f'seed {seed}, {mode} as {form}, {n} environments, {er.max_sz} rows, n_step={er.n_step}')
        (obs,_),was = env.reset(seed=seed),np.zeros(n, bool)
        for _ in range(25):
            actions = env.action_space.sample()
            nxt,r,te,tr,infos = env.step(actions)
            er.add_vector(obs=obs, actions=actions, rewards=r, terminated=te, truncated=tr, next_obs=nxt, infos=infos,
                          autoreset=dict(enum=modes[mode], name=mode, env=env)[form])
            for i in range(n):
                if mode=='next_step' and was[i]: continue
                key = tuple(obs[i].tolist())
                o.at[key],o.env[key[0]] = len(o.keys),i
                o.keys.append(key)
            was,obs = te|tr,nxt
            if mode=='disabled' and was.any(): obs,_ = env.reset(options=dict(reset_mask=was))
            check_memory(o, er.memory)
            draw_all(er, o, rng)

# %% What comes late
def put_late(er, rng, mark, drawn, where):
    "Write the column `mark` of rows drawn some time ago, as one row each or as sequences"
    batch,idxs = drawn.pop(rng.randrange(len(drawn)))
    n,on = batch['a'][...,:1],idxs>=0
    values = rng.choice((n, n.double()))*10.+rng.randint(0, 9) # of another dtype than the column, or of the same
    alive = (n[...,0]>=len(mark)-er.max_sz)&on
    dropped = er.put('mark', idxs, values, batch['serial'])
    assert dropped==(on&~alive).sum(), f'{where}: {dropped} of {on.sum()} values were dropped, not {(on&~alive).sum()}'
    for k,v in zip(n[alive].flatten().tolist(), values[alive].flatten().tolist()): mark[k] = v

def same_marks(er, mark, where):
    n,have = (er.memory[k][:,0].tolist() for k in ('a','mark'))
    assert sorted(n)==list(range(len(mark)))[-er.max_sz:], f'{where}: stored are the rows {n}'
    wrong = [(k,v,mark[k]) for k,v in zip(n, have) if v!=mark[k]]
    assert not wrong, f'{where}: (row, its mark, what it should be) {wrong}'

@seeds(12, 300)
@pytest.mark.parametrize('what', ('td','put'))
def test_late(what, seeds, tmp_path):
    "What comes for a row that was overwritten meanwhile never lands on its successor, also after a checkpoint"
    for seed in seeds:
        rng,folder = random.Random(f'late {seed}'),tmp_path/str(seed)
        er = ExperienceReplay(8, rng.randint(4, 40), 1, n_step=rng.choice((None,3)), seed=seed,
                              sampler=rng.choice((Uniform,Prioritized))())
        mark,drawn,gone,where = [],[],0,f'seed {seed}, {er.sampler}, max_sz={er.max_sz}, n_step={er.n_step}'
        for k in range(30):
            n = np.arange(len(mark), len(mark)+rng.choice((1,2,3,10)))
            er+dict(flow_rows(n, wide=1), mark=np.zeros((len(n),1)))
            mark += [0.]*len(n)
            drawn.append(er.sample())
            if what=='put': drawn.append(er.sample_sequences(4, 3, pad=True))
            if what=='put' and rng.random()<.6: put_late(er, rng, mark, drawn, where)
            if what=='td' and rng.random()<.6:
                batch,idxs = drawn.pop(rng.randrange(len(drawn)))
                ids = batch['a'][:,0]
                gone += (ids<len(mark)-er.max_sz).sum().item()
                td = batch['a']+k/64 # each row gets numbers of its own
                er.update_td(rng.choice((td, td.double())), idxs, rng.choice((batch['serial'], batch['serial'][:,0])))
                for i,td in zip(er.memory['a'][:,0].tolist(), er.memory['td_error'][:,0].tolist()):
                    assert td==0 or int(td)==i, f'{where}: the row {i} has the TD error {td}'
                assert er.dropped_updates==gone, f'{where}: {er.dropped_updates} updates were dropped, not {gone}'
            if what=='put': same_marks(er, mark, where)
            if rng.random()<.3: er.checkpoint(folder)
        er.checkpoint(folder)
        again = ExperienceReplay.load(folder)
        if what=='put': same_marks(again, mark, f'{where}, loaded')
        for c,v in er.memory.items(): assert torch.equal(v, again.memory[c]), f'{where}: {c} differs when loaded'

# %% A process that writes, and one that reads
needs_fork = pytest.mark.skipif(not hasattr(os, 'fork'), reason='writers are forked, which this system cannot')

@contextmanager
def child(f, *args):
    "`f(*args)` in a forked process, ended by SIGKILL; gives its id"
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', DeprecationWarning) # of forking beside threads, which torch has
        pid = os.fork()
    if not pid:
        try:
            torch.set_num_threads(1) # threads do not come along
            f(*args)
        except BaseException as e: os.write(2, f'the writer: {e!r}\n'.encode())
        finally: os._exit(0)
    try: yield pid
    finally:
        try: os.kill(pid, signal.SIGKILL)
        except ProcessLookupError: pass
        os.waitpid(pid, 0)

def counter():
    "A number that both processes see"
    return np.frombuffer(mmap.mmap(-1, 8), np.int64)

def write_on(er, first, count, seed):
    rng,n = random.Random(seed),first
    while True:
        k = rng.randint(1, 50)
        er+flow_rows(np.arange(n, n+k), wide=32)
        n += k
        count[0] = n
        time.sleep(rng.choice((0,.0005,.001)))

@needs_fork
@pytest.mark.parametrize('sampler', (Uniform,Prioritized))
@pytest.mark.parametrize('where', ('shared','path'))
@pytest.mark.parametrize('secs', (1.5, pytest.param(20, marks=long)))
@pytest.mark.halved
def test_writer_beside(secs, where, sampler, tmp_path):
    "While another process adds, each row that is drawn is whole, and each sequence one of a single episode"
    er = ExperienceReplay(16, cap := 2000, 1, sampler=sampler(seed=0), seed=0,
                          **(dict(shared=True) if where=='shared' else dict(path=tmp_path/'rows')))
    er + flow_rows(np.arange(first := 300), wide=32)
    count,draws,what = counter(),0,f'{where}, {sampler.__name__}'
    count[0] = first
    with child(write_on, er, first, count, 0):
        until = time.monotonic()+secs
        while time.monotonic()<until:
            for n_step in (None,3):
                er.n_step,known = n_step,int(count[0])
                batch,_ = er.sample(64)
                check_flow(batch, f'{what}, n_step={n_step}', n_step, known=known, oldest=known-cap, wide=32)
            for T,pad in ((4,False), (5,True), (None,False)):
                known = int(count[0])
                batch,idxs = er.sample_sequences(32, T, pad=pad)
                check_flow_runs(batch, idxs, f'{what}, T={T}, pad={pad}', T, pad, oldest=known-cap, wide=32)
            if known>first: draws += 1
    assert draws>5 and count[0]>cap, f'{what}: {draws} draws, and {count[0]} rows written: too few to say anything'

# %% A writer that is killed, and one that is interrupted
def whole(memory, where, **kwargs):
    "No row of these columns is half one and half another"
    same_flow(memory, memory['state'][:,0].numpy(), where, **kwargs)

def written(path, n, wide):
    "How much of the wide fields of the rows `n` is in the file, from 0 to 1?"
    x = np.fromfile(path, np.int64)
    return ((x>=n[0])&(x<=n[-1])).sum()/(2*wide*len(n))

def add_torn(path, rng, cap, wide, region):
    "Kill a child while it adds half of all rows, until one was in the midst of them; gives the `region` of its rows"
    wait = .004
    for region in range(region, region+300):
        n = region*M+np.arange(cap//2)
        rows,(read,told) = flow_rows(n, wide=wide),os.pipe()
        def write(told):
            er = ExperienceReplay(path=path, max_sz=cap)
            os.write(told, b'<')
            er+rows
            time.sleep(60)
        with child(write, told):
            os.close(told)
            assert os.read(read, 1)==b'<', 'the writer could not open the file'
            time.sleep(rng.random()*wait)
        os.close(read)
        if 0<(done := written(path, n, wide))<1: return region
        wait *= .8 if done else 1.2
    pytest.skip('no writer could be killed in the midst')

@contextmanager
def within(secs, where):
    "An error if it takes longer, also if it never ends"
    def stop(*_): raise AssertionError(f'{where}: not done after {secs} s')
    old = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, secs)
    try: yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)

def look_at_torn(er, where, wide):
    "All that can be read is whole, at once"
    for n_step in (None,3):
        er.n_step = n_step
        with within(15, where):
            for _ in range(5):
                batch,idxs = er.sample(64)
                check_flow(batch, where, n_step, wide=wide)
                for k in ('a','b','state'):
                    assert torch.equal(er.memory[k][idxs], batch[k]), f'{where}: `memory[{k!r}][idxs]` is not the batch'
            for T,pad in ((3,False), (4,True), (None,False)):
                check_flow_runs(*er.sample_sequences(16, T, pad=pad), where, T, pad, wide=wide)
    whole(er.memory, where, wide=wide)

@needs_fork
@pytest.mark.parametrize('opened', ('before','after'))
@pytest.mark.parametrize('times', (2, pytest.param(40, marks=long)))
@pytest.mark.halved
def test_killed_writer(times, opened, tmp_path, caplog):
    "A writer was killed in the midst: its torn rows are left out, at once, with a warning that counts them"
    rng,path,cap,wide,region = random.Random(opened),tmp_path/'rows',2000,512,0
    def open_(): return ExperienceReplay(64, cap, 1, gamma=.99, seed=0, path=path)
    open_()+flow_rows(np.arange(cap+100), wide=wide)
    for i in range(times):
        er = open_() if opened=='before' else None
        if er: er.sample()
        region,where = add_torn(path, rng, cap, wide, region+1),f'opened {opened}, time {i}'
        caplog.clear()
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter('always')
            er = er or open_()
            look_at_torn(er, where, wide)
        said = [str(o.message) for o in warned]+[o.getMessage() for o in caplog.records]
        counts = [int(k.replace(',', '')) for o in said for k in re.findall(r'(?<![\w/.])[0-9][0-9,]*', o)]
        assert any(1<=k<=cap//2 for k in counts), f'{where}: no warning gives the number of torn rows, but {said}'
        region += 1
        er+flow_rows(region*M+np.arange(700), wide=wide)
        look_at_torn(er, f'{where}, added to', wide)
        assert (er.memory['state'][:,0]>=region*M).sum()==700, f'{where}: rows that were added afterwards are missing'
        look_at_torn(er := open_(), f'{where}, added to and opened again', wide)
        del er # one process writes at a time

def interrupted(f, secs):
    "Was `f()` interrupted after `secs`, as by Ctrl-C?"
    def stop(*_): raise KeyboardInterrupt
    old = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, secs)
        try: f()
        finally: signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt: return True
    finally: signal.signal(signal.SIGALRM, old)
    return False

@pytest.mark.skipif(not hasattr(signal, 'setitimer'), reason='this system has no timer')
@pytest.mark.parametrize('where', ('here','shared','path'))
@pytest.mark.parametrize('times', (80, pytest.param(3000, marks=long)))
def test_interrupted(times, where, tmp_path):
    "Ctrl-C while rows are added: no row is half one and half another, and none joins what it does not follow"
    rng,cap,wide = random.Random(where),256,256
    place = dict(here={}, shared=dict(shared=True), path=dict(path=tmp_path/'rows'))[where]
    er = ExperienceReplay(32, cap, 1, gamma=.99, seed=0, **place)
    took,stopped = [],0
    for i in range(20):
        rows,start = flow_rows(np.arange(cap//2)+i*M, wide=wide),time.perf_counter()
        er+rows
        took.append(time.perf_counter()-start)
    secs = statistics.median(took) # in the loop below it takes three times as long, as caches are cold
    for i in range(20, 20+times):
        n,old = rng.randint(1, cap),len(er)
        rows = flow_rows(np.arange(n)+i*M, wide=wide)
        stopped += (stop := interrupted(lambda: er+rows, 1e-5+rng.random()*5*secs))
        what = f'{where}, after {i-19} batches, {stopped} of them interrupted'
        if not len(er): # what was to replace all rows was interrupted
            assert stop and n==cap, what
            continue
        whole(er.memory, what, wide=wide)
        new = (er.memory['a'][:,0]>=i*M).sum().item()
        kept = len(er)-new
        assert (stop or new==n) and kept>=min(old, cap-n), f'{what}: {new} of {n} new rows, {kept} of {old} old ones'
        for n_step in (None,3):
            er.n_step = n_step
            check_flow(er.sample()[0], what, n_step, wide=wide)
        for T,pad in ((3,False), (4,True), (None,False)):
            try: check_flow_runs(*er.sample_sequences(8, T, pad=pad), what, T, pad, wide=wide)
            except ExperienceReplayException: assert pad is False, what
    assert stopped>times/10, f'{where}: {stopped} of {times} were interrupted: too few to say anything'

# %% save → kill → load → go on
def life(er, k, seed):
    "The `k`-th step of a life that is the same each time: new rows, draws, TD errors"
    rng = random.Random(f'{seed} {k}')
    total = 0 if er.memory is None else er.memory['state'][:,0].max().item()+1
    er+flow_rows(np.arange(total, total+rng.choice((1,2,7,20))), wide=1)
    drawn = [er.sample(), er.sample_sequences(3, 3, pad=True)]
    er.update_td(drawn[0][0]['a'].float()%5, drawn[0][1], drawn[0][0]['serial'])
    return drawn

def a_life(seed):
    rng = random.Random(f'life {seed}')
    return ExperienceReplay(4, rng.randint(10, 60), 1, n_step=rng.choice((None,3)), gamma=.9, seed=seed,
                            sampler=rng.choice((Uniform, Prioritized))())

def same_draws(a, b, where):
    for (x,i),(y,j) in zip(a, b):
        assert torch.equal(i, j), f'{where}: the rows {i.tolist()} and {j.tolist()} were drawn'
        for k in x: assert torch.equal(x[k], y[k]), f'{where}: {k} is {x[k].tolist()} and {y[k].tolist()}'

def follows_nothing(er, where, total):
    "Add what would go on with what is stored: after a load it does not"
    if total>2: er.n_step = 3
    er+flow_rows(np.arange(total, total+6), wide=1)
    for _ in range(5):
        batch,idxs = er.sample(20)
        check_flow(batch, where, er.n_step, .9, wide=1)
        if er.n_step:
            n,k = batch['state'][:,0],batch['n_steps'][:,0]
            bad = (n<total)&(n+(k-1)*3>=total)
            assert not bad.any(), f'{where}: rows {n[bad]} were joined with what came after the load'
        batch,_ = er.sample_sequences(10, 2, pad=True)
        n,mask = batch['state'][:,:,0],batch['mask']
        bad = (n[:,0]<total)&(n[:,1]>=total)&mask[:,1]
        assert not bad.any(), f'{where}: a sequence joins rows {n[bad].tolist()} over the load at {total}'

@seeds(15, 300)
@pytest.mark.parametrize('how', ('save','checkpoint'))
@pytest.mark.parametrize('to', ('here','path'))
@pytest.mark.halved
def test_resume(to, how, seeds, tmp_path):
    "A memory that was loaded draws what the one draws that was not interrupted, as long as it lives"
    for seed in seeds:
        rng,er,others,folder = random.Random(f'resume {seed}'),a_life(seed),[],tmp_path/str(seed)
        where = f'seed {seed}, {how}, {er.sampler}, max_sz={er.max_sz}, n_step={er.n_step}'
        for k in range(20):
            drawn = life(er, k, seed)
            for at,o in others: same_draws(drawn, life(o, k, seed), f'{where}, loaded at {at}, step {k}')
            if rng.random()<.3:
                getattr(er, how)(folder)
                place = dict(path=tmp_path/f'{seed}-{k}') if to=='path' else {}
                new = ExperienceReplay.load(folder, env_restored=True, **place)
                others = [*others[-1:], (k, new)]
                for c,v in er.memory.items(): assert torch.equal(v, new.memory[c]), f'{where}: {c}, loaded at {k}'
                total = er.memory['state'][:,0].max().item()+1
                follows_nothing(ExperienceReplay.load(folder), f'{where}, loaded at {k}', total)

def same_segment(n, after, cuts): return np.searchsorted(cuts, n, 'right')==np.searchsorted(cuts, after, 'right')

@seeds(10, 200)
@pytest.mark.parametrize('how', ('save','checkpoint'))
@pytest.mark.parametrize('say', (True,False), ids=('all','plain'))
@pytest.mark.halved
def test_cuts(say, how, seeds, tmp_path):
    "No row joins one from before a cut, a gap or a load, also after further loads; all others are joined"
    for seed in seeds:
        rng,folder,total,cuts = random.Random(f'cuts {seed}'),tmp_path/str(seed),0,[]
        er = ExperienceReplay(20, rng.randint(10, 80), 1, n_step=3, gamma=.9, seed=seed)
        for k in range(25):
            where = f'seed {seed}, max_sz={er.max_sz}, step {k}, cut at {cuts}'
            er+flow_rows(np.arange(total, total := total+rng.choice((1,4,15))), wide=1, say=say)
            batch,_ = er.sample()
            check_flow(batch, where, 3, .9, wide=1, say=say, oldest=total-er.max_sz)
            n,steps = batch['state'][:,0].numpy(),batch['n_steps'][:,0].numpy()
            on = (flow(n)[3]>steps)&(steps<3) # there would be a further step
            held_ = (n+steps*3<total)&same_segment(n, n+steps*3, cuts)
            assert same_segment(n, n+(steps-1)*3, cuts).all(), f'{where}: {n} with {steps} steps reach over a cut'
            assert not (on&held_).any(), f'{where}: {n} have {steps} steps, and more of their episodes are there'
            batch,_ = er.sample_sequences(20, 2, pad=True)
            n,mask = batch['state'][:,:,0].numpy(),batch['mask'].numpy()[:,1]
            assert same_segment(n[:,0], n[:,1], cuts)[mask].all(), f'{where}: {n[mask].tolist()} reach over a cut'
            if (do := rng.random())<.2: er.ring.cut(gap=do<.1); cuts.append(total)
            elif do<.5:
                getattr(er, how)(folder)
                er = ExperienceReplay.load(folder, env_restored=(on := rng.random()<.5))
                if not on: cuts.append(total)

def steps_saved(folder):
    "How far the last checkpoint is; -1 if it is replaced while we look"
    try: return Saved(folder).extra
    except LoadError: return -1

@needs_fork
@pytest.mark.parametrize('times', (4, pytest.param(6, marks=pytest.mark.slow), pytest.param(100, marks=long)))
def test_killed_and_resumed(times, tmp_path):
    "A life that is killed again and again goes on as one that is not"
    def live(er, k, seed, folder):
        for k in itertools.count(k):
            life(er, k, seed)
            er.checkpoint(folder, extra=k+1)
    rng = random.Random(0)
    for seed in range(2):
        folder,er,lived,k = tmp_path/str(seed),a_life(seed),a_life(seed),0
        where = f'seed {seed}, {er.sampler}, max_sz={er.max_sz}, n_step={er.n_step}'
        er.checkpoint(folder, extra=0)
        for i in range(times//2):
            with child(live, ExperienceReplay.load(folder, env_restored=True), k, seed, folder):
                until = time.monotonic()+60
                while steps_saved(folder)<k+3 and time.monotonic()<until: time.sleep(.01)
                time.sleep(rng.random()*.05) # and it is killed somewhere in the middle
            er,done = ExperienceReplay.load(folder, env_restored=True),Saved(folder).extra
            for k in range(k, done): life(lived, k, seed)
            k = done
            if not k: continue
            for c,v in lived.memory.items():
                assert torch.equal(v, er.memory[c]), f'{where}: {c} differs after {k} steps'
        for j in range(k, k+5): same_draws(life(lived, j, seed), life(er, j, seed), f'{where}, killed, step {j}')
        assert k>times, f'{where}: {k} steps were lived'

# %% The other faces
def columns_of(n, over):
    "Steps of a `ReplayBuffer` that say by their numbers which they are"
    n = np.asarray(n, np.float32)[:,None]
    done,cut = (over>0)[:,None]*1.,(over==2)[:,None]*1.
    return n+[0,.5], n, n*2, n+[1,1.5], done, n+[0,0,.25], cut

@seeds(20, 300)
def test_replay_buffer(seeds):
    "The last steps as columns, in batches and one by one"
    for seed in seeds:
        rng = random.Random(f'buffer {seed}')
        cap = rng.randint(1, 30)
        buf,over = ReplayBuffer(cap, 2, 1, 3, sampler=rng.choice((Uniform,Prioritized))(seed=seed)),np.zeros(0, int)
        for _ in range(25):
            k = rng.choice((1,1,2,5,40))
            n,over = np.arange(len(over), len(over)+k),np.concatenate([over, [rng.choice((0,0,1,2)) for _ in range(k)]])
            *rows,cut = (torch.tensor(o, dtype=torch.float32) for o in columns_of(n, over[n]))
            if rng.random()<.5: buf.add_multi(*rows, truncateds=cut)
            else:
                for *row,c in zip(*rows, cut): buf.add(*row, truncated=c)
            where,size = f'seed {seed}, capacity {cap}, after {len(over)} steps',min(cap, len(over))
            assert (len(buf),buf.size,buf.position)==(size,size,len(over)%cap), f'{where}: {buf.size} at {buf.position}'
            held_ = sorted(buf.states[:size,0].tolist())
            assert held_==list(range(len(over)))[-cap:], f'{where}: stored are {held_}'
            b = buf.sample(rng.randint(1, size))
            i = b.states[:,0].numpy().astype(int)
            right = (i>=len(over)-cap)&(b.serials[:,0].numpy()==i)&(b.idxs.numpy()==i%cap)
            assert right.all(), f'{where}: the steps {i} have the serials {b.serials[:,0]} and numbers {b.idxs}'
            names = 'states','actions','rewards','next_states','dones','hiddens','truncateds'
            for name,want in zip(names, columns_of(i, over[i])):
                have = getattr(b, name).numpy()
                assert np.array_equal(have, np.float32(want)), f'{where}: {name} of the steps {i}: {have}'
            buf.update_td(b.rewards.abs(), b.idxs, b.serials)

def check_sequences(batch, kept, T, where):
    "Does each sequence stay in one of the episodes `kept`, and say where it begins and ends?"
    for b,rows in enumerate(batch['obs'].tolist()):
        ep,at = map(int, rows[0])
        assert ep in kept, f'{where}: the episode {ep} should be gone'
        k = T or kept[ep]
        part = rows[:k]==[[ep,at+t] for t in range(k)] and at+k<=kept[ep]
        assert part, f'{where}: {rows} is no part of an episode of {kept[ep]} steps'
        if T is None: assert batch['mask'][b].tolist()==[t<k for t in range(len(rows))], f'{where}: the mask of {rows}'
        for name,want in (('is_first',[at+t==0 for t in range(k)]), ('is_last',[at+t+1==kept[ep] for t in range(k)])):
            assert batch[name][b].tolist()[:k]==want, f'{where}: {name} of {rows} is {batch[name][b].tolist()}'
        assert batch['reward'][b].tolist()[:k]==[ep+(at+t)/8 for t in range(k)], f'{where}: rewards of {rows}'

@seeds(20, 300)
@pytest.mark.parametrize('envs', (None,1,4))
def test_episode_replay(envs, seeds):
    "Steps of one environment (`done` comes with the last one) or of several (with the one after) become whole episodes"
    for seed in seeds:
        rng = random.Random(f'episodes {seed}')
        cap,T,bs,n = rng.randint(9, 60),rng.choice((1,2,4,None)),rng.randint(2, 5),envs or 1
        replay = EpisodeReplay(RingBufferDataset(cap), bs, T, num_envs=envs, seed=seed)
        where = f'seed {seed}, capacity {cap}, T={T}, {envs} environments'
        kept,ids = {},itertools.count()
        now = [[next(ids),0,rng.randint(1, 9)] for _ in range(n)] # episode, step, length
        def end(e):
            while sum(kept.values())+now[e][2]>cap: del kept[next(iter(kept))]
            kept[now[e][0]] = now[e][2]
            now[e][:] = next(ids),0,rng.randint(1, 9)
        for _ in range(60):
            done = [t==length for _,t,length in now]
            if envs:
                for e in np.flatnonzero(done): end(e)
            obs = [o[:2] for o in now]
            rows = dict(obs=torch.tensor(obs, dtype=torch.float32), reward=torch.tensor([ep+t/8 for ep,t in obs]))
            for o in now: o[1] += 1
            if envs:
                if len(set(done))==1 and rng.random()<.5: replay.add_step(rows, was_done=done[0])
                else: replay.add_step(rows, torch.tensor(done))
            else:
                over = now[0][1]==now[0][2]
                replay.add_step({k: v[0] for k,v in rows.items()}, over)
                if over: end(0)
            have = replay.num_episodes,replay.num_timesteps
            assert have==(len(kept),sum(kept.values())), f'{where}: (episodes, steps) are {have}, not of {kept}'
            if not kept or T and max(kept.values())<T: continue
            check_sequences(replay.sample(), kept, T, where)
            i = rng.randrange(len(kept))
            ep = list(kept)[i]
            steps = replay.dataset[i]['obs'].tolist()
            assert steps==[[ep,t] for t in range(kept[ep])], f'{where}: episode {i} is {steps}'
