"Environments that collect on a Dask cluster, and here: one that fails takes nothing along with it, and nothing is counted twice"
import asyncio, os, signal, subprocess, sys, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import pytest
from distributed import Client, LocalCluster
from fastrl.memory.bank import create_experience
from fastrl.parallel import ParallelExperience

root = Path(__file__).parent.parent

@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    "A scheduler and two worker processes, each in a folder of its own"
    with LocalCluster(n_workers=2, threads_per_worker=4, processes=True, dashboard_address=None, local_directory=tmp_path_factory.mktemp('dask')) as cluster:
        with Client(cluster) as client:
            for i,worker in enumerate(client.scheduler_info()['workers']): client.run(os.chdir, str(tmp_path_factory.mktemp(f'worker{i}')), workers=[worker])
        yield cluster

@pytest.fixture
def client(cluster):
    with Client(cluster) as client: yield client

def states(pe, max_iter):
    async def go(): return [o async for o in pe.start(max_iter)]
    return asyncio.run(go())

def seven(pe):
    "Three that are good; one raises, one exits, one is killed, one hangs"
    def good(ctx): return [create_experience(float(ctx.iteration), 0, 1., 1., True, {'seed':ctx.seed})]*3
    def raises(ctx): raise ValueError('on purpose')
    def exits(ctx): os._exit(3)
    def killed(ctx): os.kill(os.getpid(), signal.SIGKILL)
    def hangs(ctx): time.sleep(300)
    for i in range(3): pe.environment_task(good, name=f'good {i}')
    for f in (raises, exits, killed): pe.environment_task(f)
    pe.environment_task(hangs, timeout=4)

@pytest.mark.parametrize('where', ['embedded','dask'])
def test_seven(where, client, tmp_path):
    pe = ParallelExperience(client.get_executor(pure=False) if where=='dask' else None, work_dir=tmp_path, timeout=200, min_envs=3)
    seven(pe)
    for i,state in enumerate(states(pe, 2)):
        assert (state.collected, state.size) == ({f'good {i}':3 for i in range(3)}, 9*(i+1))
        assert {o.name: o.code for o in state.failures} == dict(raises=1, exits=3, killed=-9, hangs='late')
        assert 'on purpose' in next(o.why for o in state.failures if o.name=='raises')
    assert len({e.info['seed'] for e in pe.memory})==6
    assert not list(tmp_path.glob('experience/.new-*'))

def test_dead_worker(client, tmp_path):
    "A task whose worker dies is run again, and counts once"
    begun = tmp_path/'begun'
    def slow(ctx):
        with open(begun, 'a') as f: f.write('x')
        time.sleep(4)
        return [create_experience(1., 0, 1., 1., True)]*5
    pe = ParallelExperience(client.get_executor(pure=False), work_dir=tmp_path/'run', timeout=200)
    pe.environment_task(slow)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(states, pe, 1)
        while not begun.exists(): time.sleep(.05)
        busy = next(k for k,v in client.processing().items() if v)
        pid = client.run(os.getpid, workers=[busy])[busy]
        os.kill(pid, signal.SIGKILL)
        state, = run.result()
    assert (state.size, state.failures, begun.read_text())==(5, [], 'xx')

def test_two_drivers(cluster, tmp_path):
    "Two that use one scheduler at one time get what is theirs"
    driver = tmp_path/'driver.py'
    driver.write_text('''
import asyncio, sys
from distributed import Client
from fastrl.memory.bank import create_experience
from fastrl.parallel import ParallelExperience
address,work,me = sys.argv[1:]
with Client(address) as client:
    pe = ParallelExperience(client.get_executor(pure=False), work_dir=work, timeout=200)
    for i in range(2):
        def env(ctx, me=me): return [create_experience(me=='b' and 1. or 0., i, 1., 1., True)]*2
        pe.environment_task(env, name=f'env {i}')
    asyncio.run(pe.learn(3))
print(sorted({e.state for e in pe.memory}), len(pe.memory))
''')
    runs = [subprocess.Popen([sys.executable, driver, cluster.scheduler_address, tmp_path/me, me], cwd=root, stdout=subprocess.PIPE, text=True) for me in 'ab']
    assert [o.communicate(timeout=300)[0] for o in runs]==['[0.0] 12\n', '[1.0] 12\n']
