"Each value of a manifest is replaced by others: the memory loads and works, or an error of the library says what is wrong"
import contextlib, copy, shutil
import numpy as np, pytest
from fastrl.memory.files import LoadError, read_tensors, write_tensors
from fastrl.memory.manifest import pieces_of, read_manifest, write_manifest
from fastrl.memory.replay import ExperienceReplay, ExperienceReplayException
from fastrl.memory.sample import Prioritized

def add(er, first, n):
    "Steps of two environments, whose observations are frames that continue one another"
    for i in range(first, first+n):
        s,nxt = (np.full((4,4), o, np.uint8) for o in (i, i+2))
        er.add(state=s, reward=0., next_state=nxt, terminated=i//2%7==6, truncated=False, env_id=i%2)

@pytest.fixture(scope='module')
def saved(tmp_path_factory):
    er = ExperienceReplay(bs=4, max_sz=30, warmup_sz=1, frame_stack=3, n_step=2, sampler=Prioritized(seed=0))
    add(er, 0, 40)
    no = np.zeros(2, bool)
    vec = ExperienceReplay(bs=4, max_sz=30, warmup_sz=1, seed=0)
    for i in range(20):
        vec.add_vector(obs=np.full((2,1), i), actions=[0,0], rewards=[0.,0.], terminated=no, truncated=no,
                       next_obs=np.full((2,1), i+1), autoreset='next_step')
    res = {}
    for k,o in dict(frames=er, vectors=vec).items():
        o.sample(), o.walk.follow(o.ring)
        o.save(folder := tmp_path_factory.mktemp(k))
        res[k] = folder,read_manifest(folder)
    return res

def places(o, at=()):
    "The paths of all values in nested lists and dicts"
    yield at
    for k in o if isinstance(o, dict) else range(len(o)) if isinstance(o, list) else (): yield from places(o[k], (*at, k))

def changed(o, at, v):
    if not at: return v
    o = copy.copy(o)
    o[at[0]] = changed(o[at[0]], at[1:], v)
    return o

@pytest.mark.parametrize('kind', ['frames','vectors'])
@pytest.mark.parametrize('value', [None, [], ['x'], 'x', -1, 2**70, 1.5, dict(a=1)], ids=str)
def test_each_value(saved, kind, value):
    folder,good = saved[kind]
    refused = 0
    try:
        for at in places(good):
            if (bad := changed(good, at, value))==good: continue
            write_manifest(folder, bad)
            try: er = ExperienceReplay.load(folder)
            except LoadError: refused += 1
            else: # settings may have changed, and names of columns
                with contextlib.suppress(ExperienceReplayException): er.sample(3)
                assert len(er)==len(er.ring) and repr(er)
    finally: write_manifest(folder, good)
    assert refused>100

@pytest.mark.parametrize('mapped', [False, True])
@pytest.mark.parametrize('column', ['state','next_state'])
@pytest.mark.parametrize('number', [2**31-1, 10**4, -2, -2**31])
def test_frames_outside(saved, tmp_path, column, number, mapped):
    "Rows that name frames which the memory has no room for"
    folder,m = saved['frames']
    piece, = pieces_of(m, 'rows')
    cols = {k: v.clone() for k,v in read_tensors(folder/piece['file']).items()}
    cols[column][5,0] = number
    shutil.copytree(folder, bad := tmp_path/'bad')
    (bad/piece['file']).unlink()
    new = {**piece, **write_tensors(bad/piece['file'], cols)}
    write_manifest(bad, {**m, 'pieces':[new if o is piece else o for o in m['pieces']]})
    with pytest.raises(LoadError, match='need frames outside'): ExperienceReplay.load(bad, mapped=mapped)
