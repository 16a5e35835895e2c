"Memories that are handed to other processes, as arguments or through a queue: a copy is a copy, and what is shared is shared"
import multiprocessing as mp
import pytest, torch
from torch import tensor
from fastrl.core import test_same as same
from fastrl.memory.episodes import EpisodeReplay, RingBufferDataset

def whole(replay): return [replay.dataset[i]['obs'].tolist() for i in range(replay.num_episodes)]
def begin(dataset, **kwargs):
    "A whole episode, and one that runs"
    res = EpisodeReplay(dataset, 4, 2, **kwargs)
    for i in range(5): res.add_step(dict(obs=tensor(i), x=torch.ones(2, dtype=torch.bfloat16)), done=i==1)
    return res

def test_copies_of_running_episodes():
    "A memory and its copy from a queue go on with the episode that was running, each with its own steps"
    q = mp.Queue()
    ours = begin(RingBufferDataset(50))
    q.put(ours)
    theirs = q.get()
    for i in range(3):
        for o,n in ((ours,10), (theirs,20)): o.add_step(dict(obs=tensor(n+i), x=torch.zeros(2, dtype=torch.bfloat16)), done=i==2)
    same(whole(ours), [[0,1],[2,3,4,10,11,12]])
    same(whole(theirs), [[0,1],[2,3,4,20,21,22]])

def add_and_draw(replay, told):
    "In a process of its own"
    for i in (5,6): replay.add_step(dict(obs=tensor(i), x=torch.ones(2, dtype=torch.bfloat16)), done=i==6)
    told.put((whole(replay), sorted({tuple(o) for _ in range(20) for o in replay.sample()['obs'].tolist()})))

@pytest.mark.slow
def test_spawned_writer_of_episodes():
    "It gets the running episode, ends it, and draws; this process sees its episodes"
    replay,ctx = begin(RingBufferDataset(50, shared=True), seed=0),mp.get_context('spawn')
    told = ctx.Queue()
    p = ctx.Process(target=add_and_draw, args=(replay, told))
    p.start()
    episodes,drawn = told.get(timeout=60)
    p.join()
    same(episodes, [[0,1],[2,3,4,5,6]])
    same(drawn, [(0,1),(2,3),(3,4),(4,5),(5,6)])
    same(whole(replay), episodes)
