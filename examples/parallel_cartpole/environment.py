"Collect the experience of an agent that explores: `environment.py eps=0.1`"
import os, sys
import gymnasium as gym, numpy as np
from fastrl.memory.bank import ExperienceBank, create_experience
from model import greedy, learnt

eps = float(sys.argv[1].removeprefix('eps='))
net,bank = learnt(),ExperienceBank()
seed = int(os.environ.get('FASTRL_SEED', 0))
env,rng = gym.make('CartPole-v1'),np.random.default_rng(seed)
state,_ = env.reset(seed=seed)
for _ in range(600):
    action = int(rng.integers(2)) if rng.random()<eps else int(greedy(net, state))
    next_state,reward,terminated,truncated,_ = env.step(action)
    bank.add(create_experience(state, action, reward, next_state, terminated)) # not at a time limit: the episode would have continued
    state = env.reset()[0] if terminated or truncated else next_state
bank.save()
