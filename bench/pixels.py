"The games of MinAtar as grey pictures: one of them does not say where things are going, so that an agent needs several"
import logging
import gymnasium as gym, numpy as np
from gymnasium.wrappers import FrameStackObservation

class Pixels(gym.Env):
    "A game as a picture of 40×40 bytes, 4×4 for each cell; what tells directions is left out"
    metadata = dict(render_modes=[])
    def __init__(self, game, limit=2500):
        logging.getLogger().setLevel(logging.ERROR) # it warns that no window can be opened
        from minatar import Environment
        self.game,self.limit = Environment(game),limit
        hidden = ('trail','left','right')
        self.grey = np.array([0 if any(o in k for o in hidden) else 255-25*i for k,i in self.game.env.channels.items()], np.uint8)
        self.actions = self.game.minimal_action_set()
        self.action_space,self.observation_space = gym.spaces.Discrete(len(self.actions)),gym.spaces.Box(0, 255, (40,40), np.uint8)

    def _picture(self): return np.kron((self.game.state()*self.grey).max(2), np.ones((4,4))).astype(np.uint8)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None: self.game.seed(seed)
        self.game.reset()
        self.steps = 0
        return self._picture(),{}

    def step(self, action):
        reward,over = self.game.act(self.actions[action])
        self.steps += 1
        return self._picture(),float(reward),bool(over),self.steps>=self.limit,{}

def invaders(): return FrameStackObservation(Pixels('space_invaders'), 4)
