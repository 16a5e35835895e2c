"""Does the fast way learn as the plain one, and both as stable-baselines3's DQN? 50,000 steps of CartPole on several seeds: bench/results/curves.json, which a page shows

    python -m bench.curves [--seeds 5] [--steps 50000] [--ways fast plain SB3]

What is stored is the mean return of the episodes that ended in each tenth of a training. A run that is there already is not made again."""
import argparse, json
from time import perf_counter
import gymnasium as gym, numpy as np, torch
from .report import folder, machine, write
from .train import fastrl, sb3

class Returns(gym.Wrapper):
    "Notes when each episode ended, and its return"
    steps,ended = 0,()
    def reset(self, **kwargs):
        self.total = 0.
        return self.env.reset(**kwargs)
    def step(self, action):
        res = self.env.step(action)
        self.steps,self.total = self.steps+1,self.total+res[1]
        if res[2] or res[3]: self.ended = (*self.ended, (self.steps, self.total))
        return res

def run(way, seed, steps):
    "The curve of one training, and how long it took"
    made = []
    def env():
        made.append(Returns(gym.make('CartPole-v1')))
        return made[-1]
    train,start = ways[way](steps, env, seed),perf_counter()
    train()
    at,returns = np.array(max((o.ended for o in made), key=len)).T
    tenth = np.minimum((at-1)*10//steps, 9)
    return dict(way=way, seed=seed, steps=steps, returns=[round(float(returns[tenth==i].mean()), 1) for i in range(10)], seconds=round(perf_counter()-start))

ways = dict(fast=lambda n, env, seed: fastrl(n, True, env, seed), plain=lambda n, env, seed: fastrl(n, False, env, seed), SB3=lambda n, env, seed: sb3(n, env, seed))

def main():
    p = argparse.ArgumentParser(prog='python -m bench.curves', description=__doc__)
    p.add_argument('--seeds', type=int, default=5)
    p.add_argument('--steps', type=int, default=50_000)
    p.add_argument('--ways', nargs='+', choices=ways, default=[*ways])
    args = p.parse_args()
    torch.set_num_threads(1)
    path = folder/'curves.json'
    runs = json.loads(path.read_text())['runs'] if path.exists() else []
    for seed in range(args.seeds):
        for way in args.ways:
            if any((o['way'], o['seed'], o['steps'])==(way, seed, args.steps) for o in runs): continue
            runs.append(run(way, seed, args.steps))
            print(runs[-1], flush=True)
            write(path, json.dumps(dict(machine=machine(), runs=runs), indent=1)+'\n')

if __name__=='__main__': main()
