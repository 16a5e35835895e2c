"""Pong from pixels, its memory on a GPU: `python -m bench.pong [SECONDS]` plays until the time is up, and stores the curve

Sixteen games run in ale-py's own vector. Each frame is stored once, on the GPU, and drawn by priority as 3-step transitions."""
import json, sys, time
from collections import deque
from pathlib import Path
import numpy as np, torch
from ale_py.vector_env import AtariVectorEnv
from torch.nn.functional import smooth_l1_loss
from fastrl import ExperienceReplay, Prioritized
from fastrl.agents.nets import nature_cnn
from .report import machine

out = Path('bench/results/pong.json')
bs,n_envs,lr,gamma,eps_steps,every,target_every = 256,16,2.5e-4,.99,100_000,4,1000

class Agent:
    "Double DQN with a dueling network, epsilon-greedy"
    def __init__(self, n_actions, device):
        make = lambda: nature_cnn((4,84,84), n_actions, dueling=True).to(device, memory_format=torch.channels_last)
        self.net,self.target,self.device,self.n_actions = make(),make(),device,n_actions
        self.target.load_state_dict(self.net.state_dict())
        self.opt = torch.optim.Adam(self.net.parameters(), lr=lr, eps=1.5e-4, fused=True, capturable=device=='cuda')
        self.update = None
        self.rng = np.random.default_rng(0)

    @torch.no_grad()
    def act(self, obs, eps):
        best = self.net(torch.from_numpy(obs).to(self.device)).argmax(1).cpu().numpy()
        return np.where(self.rng.random(len(obs))<eps, self.rng.integers(self.n_actions, size=len(obs)), best)

    def step(self, batch):
        "One update of the network: the TD errors"
        with torch.no_grad():
            nxt = batch['next_state']
            after = self.target(nxt).gather(1, self.net(nxt).argmax(1, keepdim=True))
            y = batch['reward']+batch['discount']*~batch['terminated']*after
        self.opt.zero_grad()
        q = self.net(batch['state']).gather(1, batch['action'])
        (batch['weight']*smooth_l1_loss(q, y, reduction='none')).mean().backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 10, foreach=True)
        self.opt.step()
        return (y-q).detach()

    def learn(self, memory):
        batch,rows = memory.sample(device=self.device)
        if self.update is None: self.update = OneGraph(self.step, batch) if self.device=='cuda' else self.step
        memory.update_td(self.update(batch), rows, batch['serial'])

class OneGraph:
    "`f(batch)` as one CUDA graph: its hundred kernels are launched in one call"
    def __init__(self, f, batch):
        self.batch = {k: batch[k].clone() for k in ('state','action','reward','next_state','terminated','discount','weight')}
        beside,now = torch.cuda.Stream(),torch.cuda.current_stream()
        beside.wait_stream(now)
        with torch.cuda.stream(beside):
            for _ in range(3): f(self.batch)
        now.wait_stream(beside)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph): self.res = f(self.batch)
    def __call__(self, batch):
        for k,v in self.batch.items(): v.copy_(batch[k])
        self.graph.replay()
        return self.res

def train(seconds, device='cuda', where='cuda', warmup=20_000, max_sz=400_000, report=15):
    "Rows of steps so far, seconds, updates, and the mean return of the last 20 games"
    envs = AtariVectorEnv('pong', num_envs=n_envs, noop_max=30, use_fire_reset=True)
    torch.manual_seed(0)
    agent = Agent(envs.single_action_space.n, device)
    memory = ExperienceReplay(bs, max_sz, warmup, sampler=Prioritized(alpha=.5, beta=.4, beta_steps=150_000), n_step=3,
                              gamma=gamma, seed=0, frame_stack=4, device=where)
    obs,_ = envs.reset(seed=0)
    returns,now,curve,steps,updates = deque(maxlen=20),np.zeros(n_envs),[],0,0
    begun = last = time.perf_counter()
    while time.perf_counter()-begun<seconds:
        actions = agent.act(obs, max(.01, 1-steps/eps_steps))
        nxt,rewards,terminated,truncated,infos = envs.step(actions)
        memory.add_vector(obs=obs, actions=actions, rewards=rewards, terminated=terminated, truncated=truncated, next_obs=nxt,
                          infos=infos, autoreset=envs)
        obs,now,over = nxt,now+rewards,terminated|truncated
        returns.extend(now[over].tolist())
        now[over] = 0
        steps += n_envs
        for _ in range(n_envs//every if len(memory)>=warmup else 0):
            agent.learn(memory)
            updates += 1
            if updates%target_every==0: agent.target.load_state_dict(agent.net.state_dict())
        if time.perf_counter()-last>report:
            last = time.perf_counter()
            curve.append((steps, round(last-begun, 1), updates, round(float(np.mean(returns)), 2) if returns else None))
            print(*curve[-1], flush=True)
    return curve

if __name__=='__main__':
    curve = train(float(sys.argv[1]) if len(sys.argv)>1 else 400)
    out.write_text(json.dumps(dict(curve=curve, machine=dict(machine(), gpu=torch.cuda.get_device_name())))+'\n')
