"""Velora's documentation runs, its files and ours are the same, and our page names each of its tests. This goes into
the copy of its suite as `tests/test_docs.py`.

The blocks of a page share one namespace. Trainings are cut short. Where a page builds the agent for choices on an
environment without any, which Velora refuses, the other agent takes its place."""
import json, re, textwrap
from pathlib import Path
import fastrl, pytest, torch, velora.buffer, velora.models.nf.agent as agents
from fastrl.memory.buffer import ReplayBuffer

src = Path(__file__).resolve().parents[1]
pages = ('README.md docs/starting/index.md docs/learn/customize/buffers.md docs/learn/tutorial/agent.md '
         'docs/learn/tutorial/agents/nf.md docs/learn/tutorial/agents/nf-ct.md docs/learn/tutorial/callback.md '
         'docs/learn/tutorial/gym.md docs/learn/tutorial/save.md').split()
beside = 'agent.buffer.warm', 'NeuroFlow', 'callbacks', 'ReplayBuffer', 'add_core_env' # a block with one of these
fragments = '[algorithm]', '(...', '=...', '...,' # a block with one of these is for readers only

def blocks(page):
    found = re.findall(r'^ *```python[^\n]*\n(.*?)^ *```', (src/page).read_text(), flags=re.S|re.M)
    for o in map(textwrap.dedent, found):
        if any(b in o for b in beside) and not any(f in o for f in fragments): yield o

def fitting(block):
    block = block.replace('velora.buffer', 'fastrl.memory.buffer')
    return block if 'CartPole' in block else re.sub(r'NeuroFlow\b', 'NeuroFlowCT', block)

@pytest.fixture
def short(monkeypatch, tmp_path):
    "Trainings of three episodes, in a folder of their own"
    def cut(real):
        def train(self, batch_size, n_episodes=3, **kw):
            real(self, min(batch_size, 32), n_episodes=min(n_episodes, 3), **kw, max_steps=40)
        return train
    for o in (agents.NeuroFlow, agents.NeuroFlowCT): monkeypatch.setattr(o, 'train', cut(o.train))
    monkeypatch.setenv('COMET_API_KEY', 'none')
    monkeypatch.chdir(tmp_path)

@pytest.mark.parametrize('page', pages)
def test_page(page, short):
    ns,n = {},0
    for n,o in enumerate(blocks(page), 1): exec(compile(fitting(o), page, 'exec'), ns)
    assert n
    model = ns.get('model') or ns.get('agent')
    if model: assert type(model.buffer).__module__=='fastrl.memory.buffer'

own,ours = velora.buffer.ReplayBuffer,ReplayBuffer
columns = 'states actions rewards next_states dones hiddens'.split()
def rows(b): return b.position, b.size, [getattr(b, o) for o in columns]
def same(a, b): return a[:2]==b[:2] and all(map(torch.equal, a[2], b[2]))
ways = pytest.mark.parametrize('one,other', [(own, ours), (ours, own)], ids=['from_velora', 'to_velora'])

@ways
def test_files(one, other, tmp_path):
    "One reads what the other saved, a full buffer that has wrapped round"
    b = one(7, 2, 1, 3)
    def r(*shape): return torch.rand(shape)
    for n in (5,4): b.add_multi(r(n,2), r(n), r(n), r(n,2), r(n).round(), r(n,3))
    b.save(tmp_path)
    again = other.load(tmp_path/'buffer_state', json.loads((tmp_path/'buffer_metadata.json').read_text()))
    assert same(rows(again), rows(b)) and again.position==2

@ways
@pytest.mark.parametrize('cls,env', [(agents.NeuroFlow,'CartPole-v1'), (agents.NeuroFlowCT,'InvertedPendulum-v5')])
def test_agents(cls, env, one, other, short, monkeypatch):
    "An agent saved with one buffer trains on with the other"
    monkeypatch.setattr(agents, 'ReplayBuffer', one)
    a = cls(env, 8, 16, buffer_size=100, device=torch.device('cpu'))
    a.train(8)
    a.save('agent/saves', buffer=True, config=True)
    monkeypatch.setattr(agents, 'ReplayBuffer', other)
    b = cls.load('agent/saves', buffer=True)
    assert type(a.buffer) is one and type(b.buffer) is other and a.config.buffer==b.config.buffer
    assert same(rows(b.buffer), rows(a.buffer))
    b.train(8)

def test_named(request):
    "Our page names each test of Velora's suite that runs here"
    page = (Path(fastrl.__file__).parents[1]/'nbs'/'howto'/'from_velora.ipynb').read_text().splitlines()
    for o in request.session.items:
        file,*cls = o.nodeid.split('[')[0].removeprefix('tests/').split('::')[:-1]
        where = ' '.join(f'`{n}`' for n in (file, '::'.join(cls)) if n)
        assert file=='test_docs.py' or any(where in l and f'`{o.originalname}`' in l for l in page), o.nodeid
