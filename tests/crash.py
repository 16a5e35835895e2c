"""Kill what writes a memory, again and again, and look at what loads afterwards.

`python tests/crash.py 20 0`: 20 writers, one after the other, each forked from this warm process, each going on where the last
one's files stand, each killed by SIGKILL at a random moment; the seed is 0."""
import os, random, select, signal, sys, tempfile, time
from pathlib import Path
import numpy as np, torch
from fastrl.memory.disk import verify
from fastrl.memory.replay import ExperienceReplay
from fastrl.memory.sample import Prioritized

cap,per_step = 500,7

def step(er, k):
    "The `k`-th step of a life that is the same each time it is lived: new rows, and TD errors of old ones"
    new = torch.arange(k*per_step, (k+1)*per_step)[:,None]
    er+dict(obs=new.float().expand(-1, 30), n=new)
    idxs = torch.from_numpy(np.random.default_rng(k).integers(0, len(er), 20))
    er.update_td(torch.full((20,1), k%97+.5), idxs)
    er.sample()

def memory(): return ExperienceReplay(bs=4, max_sz=cap, warmup_sz=1, sampler=Prioritized(seed=0))

def write(folder, tell):
    "Go on from what is in `folder`, with a checkpoint after each step; `tell` is told before and after"
    er = ExperienceReplay.load(folder, env_restored=True)
    for k in range(er.ring.total//per_step, 10**9):
        step(er, k)
        os.write(tell, b'<')
        er.checkpoint(folder) if k%5 else er.save(folder)
        os.write(tell, b'>')

def same(a, b):
    "Do two memories hold the same, and draw the same?"
    if a.memory is None or b.memory is None: return a.memory is b.memory
    if not all(torch.equal(a.memory[k], b.memory[k]) for k in ('obs','n','td_error')): return False
    return torch.equal(a.sampler.tree[:], b.sampler.tree[:]) and all(torch.equal(a.sample()[1], b.sample()[1]) for _ in range(5))

def in_child(f, *args):
    "Call `f` in a forked process: its id, and a pipe that it writes to"
    read,tell = os.pipe()
    if not (pid := os.fork()):
        try: f(*args, tell)
        finally: os._exit(1)
    os.close(tell)
    return pid,read

def killed(f, folder, secs):
    "What `f`, in a process of its own, said until it was killed so many seconds after its first word"
    pid,read = in_child(f, folder)
    select.select([read], [], [], 60) # it has begun
    time.sleep(secs)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    told = b''
    while part := os.read(read, 2**16): told += part
    os.close(read)
    return told

def main(kills, seed):
    rng,lived,k,during = random.Random(seed),memory(),0,0 # `lived` is the life that was not interrupted
    with tempfile.TemporaryDirectory() as d:
        folder = Path(d)/'memory'
        lived.checkpoint(folder)
        for i in range(kills):
            told = killed(write, folder, rng.random()*.06)
            assert told, 'the writer wrote nothing'
            begun,done = k+told.count(b'<'),k+told.count(b'>')
            assert not verify(folder), verify(folder)
            er = ExperienceReplay.load(folder, env_restored=True)
            found = er.ring.total//per_step
            assert done<=found<=begun, f'kill {i}: {found} steps are there, {done} were saved and {begun} begun'
            for k in range(k, found): step(lived, k)
            k = found
            saved = tempfile.mkdtemp(dir=d)
            lived.save(saved) # what is compared draws, and `lived` must not
            assert same(er, ExperienceReplay.load(saved, env_restored=True)), f'kill {i}: step {k} is not as it was'
            during += begun>done
    print(f'{kills} kills, {during} of them in the middle of writing, {k} steps; each time the last state or the next was there, whole')
    return during

if __name__=='__main__':
    torch.set_num_threads(1)
    kills,seed = map(int, sys.argv[1:])
    if main(kills, seed)<kills//10: sys.exit('hardly any kill hit a writer in the middle: the check means nothing')
