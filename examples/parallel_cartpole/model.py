"The network, and the weights it has learnt so far"
import os
from pathlib import Path
import torch
from torch import nn

torch.set_num_threads(1) # the network is small: more threads would only wait for each other
path = Path(os.environ.get('FASTRL_WORK_DIR', '.'))/'dqn.pt'

def network(): return nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))

def learnt():
    "The network, with the weights of the last update"
    torch.manual_seed(0) # before the first one, too, all environments play with the same weights
    net = network()
    if path.exists(): net.load_state_dict(torch.load(path, weights_only=True)['online'])
    return net

@torch.no_grad()
def greedy(net, state): return net(torch.from_numpy(state)).argmax(-1).numpy()
