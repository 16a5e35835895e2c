"TD-MPC2's update on the CPU, with its own buffer and with the adapter of our page on world models"
from ._page import cells

url = 'https://github.com/nicklashansen/tdmpc2'
commit = 'e9f5932'
files = ['tdmpc2']
needs = ['tensordict==0.15.3', 'torchrl==0.14.1', 'pyvers', 'importlib_metadata', 'orjson', # pip requirements, complete
         'gymnasium==0.29.1', 'farama-notifications', 'hydra-core==1.3.8', 'omegaconf==2.4.0', 'antlr4-python3-runtime==4.9.3',
         'pyyaml', 'termcolor', 'dm_control==1.0.50', 'mujoco==3.17.0', # and what these need
         'absl-py', 'cloudpickle', 'dm-env', 'dm-tree', 'etils', 'fsspec', 'glfw', 'importlib_resources', 'labmaze', 'lxml',
         'protobuf', 'pyopengl', 'pyparsing', 'requests', 'scipy', 'tqdm', 'zipp']
tests = ['test_updates.py']
differs = {} # test: why

updates = '''"Four random episodes, and then 300 updates"
import os, sys
from pathlib import Path
os.environ['MUJOCO_GL'] = 'disable' # nothing is drawn
sys.path.insert(0, str(here := Path(__file__).parent/'tdmpc2'))
import hydra.utils, pytest, torch
from omegaconf import OmegaConf
from common import buffer, ours
from common.parser import parse_cfg
from common.seed import set_seed
from envs import make_env
from tdmpc2 import TDMPC2
from trainer.online_trainer import OnlineTrainer

def episode(trainer, env):
    obs,done = env.reset(),False
    tds = [trainer.to_td(obs)]
    while not done:
        action = env.rand_act()
        obs,reward,done,info = env.step(action)
        tds.append(trainer.to_td(obs, action, reward, info['terminated']))
    return torch.cat(tds)

@pytest.mark.parametrize('kind', ['theirs','ours'])
def test_losses_fall(kind, monkeypatch):
    torch.set_num_threads(1)
    monkeypatch.setattr(hydra.utils, 'get_original_cwd', os.getcwd) # hydra did not start this
    cfg = OmegaConf.load(here/'config.yaml')
    del cfg['defaults']
    cfg.update(dict(task='cartpole-balance', model_size=1, steps=10_000, batch_size=64, compile=False, enable_wandb=False))
    cfg = parse_cfg(cfg)
    set_seed(0)
    env = make_env(cfg)
    memory,agent = dict(theirs=buffer, ours=ours)[kind].Buffer(cfg),TDMPC2(cfg)
    trainer = OnlineTrainer(cfg=cfg, env=env, agent=agent, buffer=memory, logger=None)
    for _ in range(4): memory.add(episode(trainer, env))
    assert memory.num_eps==4
    losses = [{k: float(v) for k,v in agent.update(memory).items()} for _ in range(300)]
    def mean(name, where): return sum(o[name] for o in losses[where])/20
    for name in ('consistency_loss','reward_loss','value_loss','total_loss'):
        first,last = mean(name, slice(20)),mean(name, slice(-20, None))
        print(f'{name}: {first:.3g} in the first 20 updates, {last:.3g} in the last')
        assert last<first/2
    assert agent.act(env.reset(), t0=True).abs().max()<=1 # it plans
'''

def prepare(src):
    "Move it to the CPU, and put our buffer beside its own"
    code = src/'tdmpc2'
    for f,*changes in (('tdmpc2.py', ("'cuda:0'", "'cpu'"), (', capturable=True', ''), ('.to(self.device)\n\t\tself.optim', '\n\t\tself.optim')),
                       ('common/scale.py', ("'cuda:0'", "'cpu'")),
                       ('common/buffer.py', ("'cuda:0'", "'cpu'"), ('mem_free, _ = torch.cuda.mem_get_info()', 'mem_free = 0'))):
        text = (code/f).read_text()
        for old,new in changes:
            assert old in text, f'{f} has no {old!r} any more'
            text = text.replace(old, new)
        (code/f).write_text(text)
    (code/'common'/'ours.py').write_text(cells('howto/world_models.ipynb', 'Buffer'))
    (src/'test_updates.py').write_text(updates)
