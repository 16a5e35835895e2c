"The rows that everyone stores"
import numpy as np

names = ['state','action','reward','next_state','done']
# What a state and an action are: shape, dtype
forms = dict(small=(((4,), 'float32'), ((), 'int64')), wide=(((376,), 'float32'), ((17,), 'float32')), frames=(((4,84,84), 'uint8'), ((), 'int64')))

def make_rows(
    kind:str, # One of `forms`
    n:int, # How many
    seed:int=0,
): # -> {column: array}
    "Rows whose `next_state` is `state`+1, so that a batch shows whether its columns belong together"
    rng = np.random.default_rng(seed)
    (sshape,sdtype),(ashape,adtype) = forms[kind]
    state = rng.integers(0, 255, (n,*sshape), 'uint8').astype(sdtype, copy=False)
    return dict(state=state, action=rng.integers(0, 2, (n,*ashape)).astype(adtype), reward=rng.random(n, 'float32'), next_state=state+1, done=rng.random(n)<.01)

def nbytes(rows): return sum(a.nbytes for a in rows.values())//len(rows['reward'])
