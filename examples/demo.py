"Fill a replay memory in a real fit, learn from it how long the pole will stay up, and write the memory's pictures to a page"
import torch
from fastai.basics import Callback, Learner, nn
from torch.nn.functional import mse_loss
from fastrl.data.gym import *
from fastrl.memory.experience_replay import *

GAMMA = .95

class Value(nn.Module):
    "How much reward is still to come from a state, when acting at random"
    def __init__(self, n_in=4):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_in, 64), nn.ReLU(), nn.Linear(64, 1))
    def forward(self, batch): return self.net(batch['state'])

class ValueTarget(Callback):
    "TD(0): the target is the reward, and what the network itself expects afterwards unless the episode terminated"
    run_valid = False
    def after_pred(self):
        batch = self.xb[0]
        with torch.no_grad(): after = self.model(dict(state=batch['next_state']))
        self.learn.yb = (batch['reward']+batch['discount']*~batch['terminated']*after,)
    def after_loss(self):
        self.learn.experience_replay.update_td(self.yb[0]-self.pred)

def main():
    torch.manual_seed(0)
    torch.set_num_threads(1) # the network is small: more threads would wait for one another
    source = Source([GymLoop('CartPole-v1', mode='rgb_array', seed=0), ResReduce(4), FirstLast(GAMMA)])
    replay = ExperienceReplayCallback(bs=64, max_sz=1000, warmup_sz=200, seed=0)
    learn = Learner(source.dataloaders(n=900, bs=4), Value(), loss_func=mse_loss, lr=1e-2, cbs=[replay, ValueTarget, NoValidation])
    print('CartPole with random actions: three epochs of 900 steps go through a memory of 1,000 rows')
    learn.fit(3)
    memory = replay.experience_replay.memory
    upright,leaning = (learn.model(dict(state=torch.tensor([[0.,0,angle,5*angle]]))).item() for angle in (0,.2))
    print(f'Reward still to come, as learnt from the memory: {upright:.1f} from upright, {leaning:.1f} when about to fall')
    print(f"{len(memory['step'])} rows of {memory['episode_id'].unique().numel()} episodes are pictured in {replay_report(replay, 'demo/report.html')}")

if __name__=='__main__': main()
