"""DQN of stable-baselines3 with uniform and with prioritized replay, on a corridor that is rewarded at its end only:

    python -m bench.sb3 [--seeds 10] [--rooms 12]

Both learn from random steps, as many updates as steps; what counts is the number of updates until the network goes through."""
import argparse, json, statistics, sys
import gymnasium as gym, numpy as np
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from fastrl.memory.sample import Prioritized, Uniform
from fastrl.sb3 import Priorities, ReplayBuffer

class Rooms(gym.Env):
    "Each room has one right door, other in each; a wrong one ends the episode"
    def __init__(self, n):
        self.n,self.right = n,np.random.default_rng(n).integers(2, size=n)
        self.observation_space,self.action_space = gym.spaces.Box(0, 1, (n+1,)),gym.spaces.Discrete(2)
    def seen(self): return np.eye(self.n+1, dtype=np.float32)[self.at]
    def reset(self, *, seed=None, options=None): super().reset(seed=seed); self.at = 0; return self.seen(), {}
    def step(self, action):
        right = action==self.right[self.at]
        self.at += int(right)
        return self.seen(), float(self.at==self.n), bool(not right or self.at==self.n), False, {}

class UntilThrough(BaseCallback):
    "Stops when the greedy network goes through all rooms"
    def _on_step(self):
        env,updates = self.training_env.envs[0].unwrapped,self.model._n_updates
        if not updates or updates%20: return True
        action,_ = self.model.predict(np.eye(env.n+1, dtype=np.float32)[:env.n], deterministic=True)
        return bool((action!=env.right).any())

class PrioritizedDQN(Priorities, DQN): pass

def updates_needed(sampler, n, seed, most=30_000):
    "Updates until the network goes through `n` rooms"
    model = PrioritizedDQN('MlpPolicy', Rooms(n), seed=seed, buffer_size=100_000, learning_starts=2**(n+2), train_freq=1, gamma=.9,
        learning_rate=1e-3, target_update_interval=100, exploration_initial_eps=1., exploration_final_eps=1.,
        policy_kwargs=dict(net_arch=[64]), replay_buffer_class=ReplayBuffer, replay_buffer_kwargs=dict(sampler=sampler))
    model.learn(2**(n+2)+most, callback=UntilThrough())
    return model._n_updates

def main():
    p = argparse.ArgumentParser(prog='python -m bench.sb3', description=__doc__)
    p.add_argument('--seeds', type=int, default=10)
    p.add_argument('--rooms', type=int, default=12)
    args = p.parse_args()
    res = dict(uniform=[], prioritized=[])
    for seed in range(args.seeds):
        for k,sampler in dict(uniform=Uniform(), prioritized=Prioritized(alpha=.6, beta_steps=30_000)).items():
            res[k].append(updates_needed(sampler, args.rooms, seed))
        print(seed, *(f'{k} {v[-1]:,}' for k,v in res.items()), file=sys.stderr, flush=True)
    print(json.dumps({**res, **{f'median {k}': statistics.median(v) for k,v in res.items()}}))

if __name__=='__main__': main()
