"Update a double DQN from everything collected so far"
import os
import numpy as np, torch
from torch.nn import functional as F
from fastrl.memory.bank import ExperienceBank
from model import network, path

bank,gamma,seed = ExperienceBank.load(os.environ['FASTRL_BANK']),.99,int(os.environ['FASTRL_SEED'])
torch.manual_seed(seed)
bank.rng = np.random.default_rng(seed)
online,target = network(),network()
opt = torch.optim.Adam(online.parameters(), lr=1e-3)
if path.exists():
    kept = torch.load(path, weights_only=True)
    for k,o in (('online',online), ('target',target), ('opt',opt)): o.load_state_dict(kept[k])

for i in range(1200):
    b = bank.sample_batch(128)
    with torch.no_grad():
        best = online(b['next_state']).argmax(1, keepdim=True)
        goal = b['reward']+gamma*~b['done']*target(b['next_state']).gather(1, best)[:,0]
    value = online(b['state']).gather(1, b['action'][:,None].long())[:,0]
    loss = F.smooth_l1_loss(value, goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i%200==0: target.load_state_dict(online.state_dict())
new = path.with_name('dqn.pt.new')
torch.save(dict(online=online.state_dict(), target=target.state_dict(), opt=opt.state_dict()), new)
new.replace(path) # all of the new file, or still the old one
