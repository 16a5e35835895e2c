"""Run SB3's DQN and SAC with our buffers, go on where `folder` stands, and tell what came of it.

`python tests/resume_sb3.py '["folder", 130, 0]' '["folder", 0, 0]'`: DQN kills itself by SIGKILL at step 130, and is resumed.
Each run is a process of its own, forked when all is imported; the recipe is that of the how-to page."""
import hashlib, json, os, signal, sys
from pathlib import Path
import torch
from stable_baselines3 import DQN, SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
from fastrl.memory.sample import Prioritized
from fastrl.sb3 import Priorities, ReplayBuffer

page = json.loads((Path(__file__).parents[1]/'nbs/howto/sb3.ipynb').read_text())
cells = {o['id']: ''.join(o['source']) for o in page['cells']}
exec(cells['e6826ba9']); exec(cells['7be14a30'])

class ByPriority(Priorities, DQN): pass

steps = 240
common = dict(device='cpu', buffer_size=250, learning_starts=40, seed=0, batch_size=32, policy_kwargs=dict(net_arch=[16]), replay_buffer_class=ReplayBuffer)
def new(name):
    if name=='dqn':
        return ByPriority('MlpPolicy', 'CartPole-v1', exploration_fraction=.5, target_update_interval=60, **common,
                          replay_buffer_kwargs=dict(sampler=Prioritized(), n_steps=3, gamma=.99))
    return SAC('MlpPolicy', VecNormalize(make_vec_env('Pendulum-v1', 2, env_kwargs=dict(max_episode_steps=30))), **common)

class Die(BaseCallback):
    def __init__(self, at): super().__init__(); self.at = at
    def _on_step(self):
        if self.at and self.num_timesteps>=self.at: os.kill(os.getpid(), signal.SIGKILL)
        return True

def outcome(model):
    "What the run is now: weights, optimizers, rows, results, and the next draws"
    b,weights = model.replay_buffer,model.get_parameters()
    draws = [b.sample(32) for _ in range(3)]
    parts = dict(weights=weights, rows=b.memory.ring.place.array, draws=draws, beside=b.memory.sampler.beside(b.memory.ring),
                 results=[(o['r'], o['l']) for o in model.ep_info_buffer], steps=model.num_timesteps, obs=model._last_obs)
    torch.set_printoptions(threshold=10**9, precision=20); np.set_printoptions(threshold=10**9, precision=20)
    return {k: hashlib.sha256(repr(v).encode()).hexdigest() for k,v in parts.items()}

def main(folder, *kills):
    torch.set_num_threads(1)
    res = {}
    for name,kill in zip(('dqn','sac'), kills):
        path = Path(folder)/name
        model = resumed(ByPriority if name=='dqn' else SAC, path) if path.exists() else new(name)
        model.learn(steps-model.num_timesteps, reset_num_timesteps=False, callback=[Resumable(path, 50), Die(kill)])
        res[name] = outcome(model)
    print(json.dumps(res), flush=True)

if __name__=='__main__':
    for o in sys.argv[1:]:
        if pid := os.fork(): print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
        else:
            main(*json.loads(o))
            break
