"Several agents in one environment: a row for all of them, or a row for each"
import pytest, torch
from torch import tensor
from fastrl.memory.replay import ExperienceReplay, ExperienceReplayException

step = dict(state=torch.zeros(3), reward=1., next_state=torch.zeros(3), terminated=False, truncated=False, env_id=0)

# %% A row for all of them
@pytest.mark.parametrize('how', [{}, dict(frame_stack=0)])
@pytest.mark.parametrize('name', ['terminated','truncated'])
def test_flags_of_several_agents(how, name):
    "Which of them ends the episode is not for the memory to guess: the first agent that was out ended it"
    two = tensor([True,False])
    er = ExperienceReplay(max_sz=9, warmup_sz=1, seed=0, **how)
    with pytest.raises(ExperienceReplayException, match=f'`{name}` should be one flag per row'):
        for _ in range(4): er.add(**{**step, name:two})
        er.sample_sequences(2, T=2)
    er = ExperienceReplay(max_sz=9, warmup_sz=1, seed=0, **how)
    for _ in range(4): er.add(**step, dead=two)
    assert {*map(tuple, er.sample_sequences(50, T=3)[1].tolist())}=={(0,1,2), (1,2,3)}
