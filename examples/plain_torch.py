"A DQN in plain PyTorch: the replay buffer needs no fastai"
import gymnasium as gym, numpy as np, torch
from torch import nn
from torch.nn.functional import smooth_l1_loss
from fastrl.memory.replay import ExperienceReplay
from fastrl.memory.sample import Prioritized

def train(steps=30_000, seed=0, gamma=.99):
    "Train on CartPole; gives the return of each episode"
    torch.manual_seed(seed)
    rng,env = np.random.default_rng(seed),gym.make('CartPole-v1')
    q,target = (nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2)) for _ in range(2))
    target.load_state_dict(q.state_dict())
    opt = torch.optim.Adam(q.parameters(), lr=5e-4)
    memory = ExperienceReplay(bs=128, max_sz=50_000, warmup_sz=1000, sampler=Prioritized(seed=seed), n_step=3, gamma=gamma)
    state,_ = env.reset(seed=seed)
    total,returns = 0.,[]
    for step in range(steps):
        explore = rng.random()<max(.05, 1-step/10_000)
        with torch.no_grad(): action = rng.integers(2) if explore else q(torch.from_numpy(state)).argmax().numpy()
        after,reward,terminated,truncated,_ = env.step(action)
        memory.add(state=state, action=action, reward=reward, next_state=after, terminated=terminated, truncated=truncated)
        state,total = after,total+reward
        if terminated or truncated:
            returns.append(total)
            (state,_),total = env.reset(),0.
        if step<1000 or step%2: continue
        batch,_ = memory.sample()
        with torch.no_grad():
            best = q(batch['next_state']).argmax(1, keepdim=True)
            y = batch['reward']+batch['discount']*~batch['terminated']*target(batch['next_state']).gather(1, best)
        value = q(batch['state']).gather(1, batch['action'])
        loss = (batch['weight']*smooth_l1_loss(value, y, reduction='none')).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        memory.update_td(y-value, batch)
        if step%500==0: target.load_state_dict(q.state_dict())
        if step%5000==0: print(f'{step:,} steps, {len(returns)} episodes, the last ten returned {np.mean(returns[-10:]):.0f}')
    return returns

if __name__=='__main__':
    torch.set_num_threads(1)
    train()
