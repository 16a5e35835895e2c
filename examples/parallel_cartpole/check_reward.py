"Play without exploring, and print how long the pole stands"
import gymnasium as gym, numpy as np
from model import greedy, learnt

net,envs = learnt(),gym.make_vec('CartPole-v1', 20, 'sync')
state,_ = envs.reset(seed=1_000_000)
steps,running = np.zeros(20),np.ones(20, bool)
while running.any():
    state,_,terminated,truncated,_ = envs.step(greedy(net, state))
    steps += running
    running &= ~(terminated|truncated)
print(steps.mean())
