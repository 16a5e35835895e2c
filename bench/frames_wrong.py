"""What memories that store frames once give back: `python -m bench.frames_wrong`

Five episodes of three steps each, stacks of two frames, a memory of eight rows. The last step of an episode is a truncation, so
that its next state is what a learner bootstraps from. Frames are numbers: episode 2 shows 20, 21, 22 and 23. Each transition that
a memory can draw should be one that happened."""
import importlib.metadata, sys
import numpy as np, torch

capacity,stack,n_steps = 8,2,3
space = dict(low=0, high=255, shape=(stack,1,1), dtype=np.uint8)

def steps():
    "Rows of state, next state, and is it the last of its episode?"
    for e in range(1, 6):
        w = [10*e]*stack
        for t in range(n_steps):
            new = [*w[1:], 10*e+t+1]
            yield w,new,t==n_steps-1
            w = new

def array(w): return np.array(w, np.uint8).reshape(stack, 1, 1)
def pairs(states, nexts, axis=0):
    "Each distinct transition, as numbers"
    def numbers(o): return tuple(np.asarray(o).reshape(stack).tolist())
    return {(numbers(a), numbers(b)) for a,b in zip(states, nexts)}

def fastrl():
    from fastrl.memory.replay import ExperienceReplay
    er = ExperienceReplay(bs=64, max_sz=capacity, warmup_sz=1, seed=0, frame_stack=stack)
    for s,n,over in steps(): er.add(state=array(s), next_state=array(n), terminated=False, truncated=over)
    return lambda: (lambda b: pairs(b['state'], b['next_state']))(er.sample()[0])

def sb3():
    from gymnasium.spaces import Box, Discrete
    from stable_baselines3.common.buffers import ReplayBuffer
    rb = ReplayBuffer(capacity, Box(**space), Discrete(2), device='cpu', optimize_memory_usage=True, handle_timeout_termination=False)
    for s,n,over in steps(): rb.add(array(s)[None], array(n)[None], np.zeros(1), np.zeros(1), np.array([over]), [{'TimeLimit.truncated':over}])
    return lambda: (lambda b: pairs(b.observations, b.next_observations))(rb.sample(64))

def tianshou():
    from tianshou.data import Batch, ReplayBuffer
    rb = ReplayBuffer(capacity, stack_num=stack, ignore_obs_next=True, save_only_last_obs=True)
    for s,n,over in steps(): rb.add(Batch(obs=array(s), act=0, rew=0., terminated=False, truncated=over, obs_next=array(n)))
    return lambda: (lambda b: pairs(b.obs, b.obs_next))(rb.sample(64)[0])

def cpprb():
    from cpprb import ReplayBuffer
    rb = ReplayBuffer(capacity, dict(obs=dict(shape=(1,1,stack), dtype=np.uint8), done={}), next_of='obs', stack_compress='obs')
    for s,n,over in steps():
        rb.add(obs=array(s).transpose(1, 2, 0), next_obs=array(n).transpose(1, 2, 0), done=0.)
        if over: rb.on_episode_end()
    return lambda: (lambda b: pairs(b['obs'], b['next_obs']))(rb.sample(64))

def torchrl():
    import logging
    from tensordict import TensorDict
    from torchrl.data import LazyTensorStorage, ReplayBuffer
    from torchrl.envs import CatFrames
    logging.getLogger('torchrl').setLevel(logging.WARNING)
    frames = CatFrames(N=stack, dim=-3, in_keys=['obs'], out_keys=['stack'], reset_key='_reset') # which an environment would tell it
    transform,sampler = frames.make_rb_transform_and_sampler(batch_size=64)
    rb,begins = ReplayBuffer(storage=LazyTensorStorage(capacity), sampler=sampler, batch_size=64, transform=transform),True
    def flag(o): return torch.tensor([o])
    def newest(w): return torch.from_numpy(array(w)[-1:])
    for s,n,over in steps():
        nxt = dict(obs=newest(n), done=flag(over), terminated=flag(False), truncated=flag(over))
        rb.add(TensorDict(dict(obs=newest(s), is_init=flag(begins), next=nxt)))
        begins = over
    return lambda: (lambda b: pairs(b['stack'], b['next','stack']))(rb.sample())

ways = {'fastrl, frame_stack=2': ('fastrl', fastrl), 'SB3, optimize_memory_usage=True': ('stable-baselines3', sb3),
        'tianshou, stack_num=2, ignore_obs_next, save_only_last_obs': ('tianshou', tianshou), "cpprb, next_of='obs', stack_compress='obs'": ('cpprb', cpprb),
        'torchrl, CatFrames.make_rb_transform_and_sampler': ('torchrl', torchrl)}

def wrong(make):
    "The transitions that are drawn and never happened, and how many others are drawn"
    draw,drawn = make(),set()
    for _ in range(50): drawn |= draw()
    true = {(tuple(s), tuple(n)) for s,n,_ in steps()}
    return sorted(drawn-true),len(drawn&true)

def main():
    for name,(package,make) in ways.items():
        try: bad,good = wrong(make)
        except ModuleNotFoundError as e: print(f'{name}: not installed ({e.name})'); continue
        print(f'{name} ({importlib.metadata.version(package)}): {good} transitions as they happened, {len(bad)} that never did')
        for s,n in bad: print(f'    {list(s)} → {list(n)}')

if __name__=='__main__': sys.exit(main())
