"Environments that collect on a Dask cluster, and here: one that fails takes nothing along with it, and nothing is counted twice"
import asyncio, json, os, signal, socket, subprocess, sys, time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
import numpy as np, pytest
from distributed import Client, LocalCluster
from radical.asyncflow import LocalExecutionBackend, WorkflowEngine
from rhapsody.backends import DaskExecutionBackend
from fastrl.memory.bank import ExperienceBank, create_experience
from fastrl.parallel import BankFolder, ParallelExperience, _read_run

root = Path(__file__).parent.parent

@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    "A scheduler and two worker processes, each in a folder of its own"
    with LocalCluster(n_workers=2, threads_per_worker=4, processes=True, dashboard_address=':0', local_directory=tmp_path_factory.mktemp('dask')) as cluster:
        with Client(cluster) as client:
            for i,worker in enumerate(client.scheduler_info()['workers']): client.run(os.chdir, str(tmp_path_factory.mktemp(f'worker{i}')), workers=[worker])
        yield cluster

@pytest.fixture
def client(cluster):
    with Client(cluster) as client: yield client

class RadicalExecutionBackend(LocalExecutionBackend):
    "Runs commands here; its name says that it takes nothing else, as RADICAL-Pilot without Raptor"
    async def _execute_function(self, task): raise NotImplementedError('no functions')

@asynccontextmanager
async def an_engine(kind, address, folder):
    "What `ParallelExperience` takes to run its tasks"
    if kind=='embedded': yield None
    elif kind=='dask':
        with Client(address) as client: yield client
    elif kind in ('threads','processes'):
        with (ThreadPoolExecutor if kind=='threads' else ProcessPoolExecutor)(2) as pool: yield pool
    elif kind=='executor':
        with Client(address) as client: yield client.get_executor(pure=False)
    else:
        backend = await {'asyncflow':LocalExecutionBackend, 'asyncflow by commands':RadicalExecutionBackend, 'asyncflow on dask':partial(DaskExecutionBackend, dict(address=address))}[kind]()
        engine = await WorkflowEngine.create(backend, work_dir=str(folder))
        try: yield engine
        finally: await engine.shutdown()

def states(fill, kind, cluster, folder, max_iter, **kwargs):
    "What `fill` puts into a `ParallelExperience`, run on an engine"
    async def go():
        async with an_engine(kind, cluster and cluster.scheduler_address, folder) as engine:
            pe = ParallelExperience(engine, work_dir=folder, **kwargs)
            fill(pe)
            return [o async for o in pe.start(max_iter)],pe
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

@pytest.mark.parametrize('kind', ['embedded','dask','executor','asyncflow','asyncflow by commands','asyncflow on dask'])
def test_seven(kind, cluster, tmp_path):
    got,pe = states(seven, kind, cluster, tmp_path, 2, timeout=200, min_envs=3)
    for i,state in enumerate(got):
        assert (state.collected, state.size) == ({f'good {i}':3 for i in range(3)}, 9*(i+1))
        assert {o.name: o.code for o in state.failures} == dict(raises=1, exits=3, killed=-9, hangs='late')
        assert 'on purpose' in next(o.why for o in state.failures if o.name=='raises')
    assert len({e.info['seed'] for e in pe.memory})==6
    assert not [o for o in (tmp_path/'experience').iterdir() if o.name[0]=='.']

def test_dead_worker(cluster, client, tmp_path):
    "A task whose worker dies is run again, and counts once"
    begun = tmp_path/'begun'
    def slow(ctx):
        with open(begun, 'a') as f: f.write('x')
        time.sleep(4)
        return [create_experience(1., 0, 1., 1., True)]*5
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(states, lambda pe: pe.environment_task(slow), 'dask', cluster, tmp_path/'run', 1, timeout=200)
        while not begun.exists(): time.sleep(.05)
        busy = next(k for k,v in client.processing().items() if v)
        pid = client.run(os.getpid, workers=[busy])[busy]
        os.kill(pid, signal.SIGKILL)
        (state,),_ = run.result()
    assert (state.size, state.failures, begun.read_text())==(5, [], 'xx')

@pytest.mark.parametrize('kind', ['dask','asyncflow on dask'])
def test_two_drivers(kind, cluster, tmp_path):
    "Two that use one scheduler at one time get what is theirs"
    driver = tmp_path/'driver.py'
    driver.write_text('''
import sys
from types import SimpleNamespace
from fastrl.memory.bank import create_experience
from tests.test_parallel import states
kind,address,work,me = sys.argv[1:]
def fill(pe):
    for i in range(2):
        def env(ctx, me=me): return [create_experience(me=='b' and 1. or 0., i, 1., 1., True)]*2
        pe.environment_task(env, name=f'env {i}')
_,pe = states(fill, kind, SimpleNamespace(scheduler_address=address), work, 3, timeout=200)
print(sorted({e.state for e in pe.memory}), len(pe.memory))
''')
    env = {**os.environ, 'PYTHONPATH':str(root)}
    runs = [subprocess.Popen([sys.executable, driver, kind, cluster.scheduler_address, tmp_path/me, me], env=env, stdout=subprocess.PIPE, text=True) for me in 'ab']
    assert [o.communicate(timeout=300)[0] for o in runs]==['[0.0] 12\n', '[1.0] 12\n']

def asleep(kind, address, folder):
    "A driver whose task sleeps, and the process of the task"
    driver,pid = folder/'driver.py',folder/'pid'
    driver.write_text(f'''
from types import SimpleNamespace
from tests.test_parallel import states
def slow(ctx):
    import os, time
    open({str(pid)!r}, 'w').write(str(os.getpid()))
    time.sleep(300)
if __name__=='__main__': states(lambda pe: pe.environment_task(slow), {kind!r}, SimpleNamespace(scheduler_address={address!r}), {str(folder)!r}, 1)
''')
    p = subprocess.Popen([sys.executable, driver], env={**os.environ, 'PYTHONPATH':str(root)}, stderr=subprocess.DEVNULL, start_new_session=True)
    while not (pid.exists() and pid.read_text()): time.sleep(.05)
    return p,int(pid.read_text())

def ends(pid, secs):
    until = time.monotonic()+secs
    while time.monotonic()<until:
        try: os.kill(pid, 0)
        except ProcessLookupError: return True
        time.sleep(.05)

@pytest.mark.parametrize('kind', ['dask','asyncflow on dask'])
def test_unwanted(kind, cluster, client, tmp_path):
    "What a driver that is gone has asked for ends on the workers, too"
    p,task = asleep(kind, cluster.scheduler_address, tmp_path)
    p.kill()
    p.wait()
    assert ends(task, 30)

@pytest.mark.parametrize('kind,sig,group', [
    ('embedded','SIGINT',True), ('embedded','SIGTERM',True), ('embedded','SIGHUP',True), ('threads','SIGINT',True), ('processes','SIGINT',True),
    ('processes','SIGKILL',False), ('asyncflow','SIGINT',True), ('asyncflow','SIGKILL',False)])
def test_signals(kind, sig, group, tmp_path):
    "Stopped by the keyboard, a closed terminal or a kill, on any engine: the driver ends, and so does what it runs"
    p,task = asleep(kind, None, tmp_path)
    try:
        (os.killpg if group else os.kill)(p.pid, getattr(signal, sig))
        assert p.wait(30) and ends(task, 10)
    finally:
        with suppress(ProcessLookupError): os.killpg(p.pid, signal.SIGKILL) # workers of a pool outlive a killed driver

def test_two_machines(tmp_path):
    "The documentation's lines for a scheduler and a worker, and a driver that finds the scheduler by its address"
    text = ''.join(o for c in json.loads((root/'nbs'/'12_parallel.ipynb').read_text())['cells'] for o in c['source']+['\n'])
    lines = text.split('```sh\ndask ')[1].split('```')[0].splitlines()
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    started,dask = [],str(Path(sys.executable).parent/'dask')
    try:
        for i,line in enumerate(lines):
            (tmp_path/str(i)).mkdir()
            args = line.removeprefix('dask ').replace('SCHEDULER', '127.0.0.1').replace('8786', str(port)).split()
            started.append(subprocess.Popen([dask, *args, '--no-dashboard'], cwd=tmp_path/str(i), env={k:v for k,v in os.environ.items() if k!='PYTHONPATH'}, stderr=subprocess.DEVNULL))
        with Client(f'tcp://127.0.0.1:{port}', timeout=60) as client:
            pe = ParallelExperience(client, work_dir=tmp_path/'driver', timeout=200)
            for i in range(4):
                @pe.environment_task(name=str(i), k=i)
                def env(ctx, k): return [create_experience(float((ctx.policy or {}).get('it', 7)), k, 0., 0., True, {'cwd':os.getcwd()})]
            @pe.update_task
            def update(ctx): return {'it':ctx.iteration}
            assert asyncio.run(pe.learn(2)).size==8
        assert [(e.state, e.action) for e in pe.memory]==[(s, k) for s in (7,0) for k in range(4)]
    finally:
        for p in reversed(started): p.terminate()
        for p in started: p.wait(30)

@pytest.mark.parametrize('kind', ['embedded','dask', pytest.param('asyncflow', marks=pytest.mark.long)])
def test_example(kind, tmp_path):
    "The DQN on four environments learns to balance the pole, on each engine"
    p = subprocess.run([sys.executable, root/'examples'/'parallel_cartpole'/'run_me.py', kind, tmp_path/'run'], cwd=tmp_path, capture_output=True, text=True, timeout=900)
    assert p.returncode==0, p.stderr
    n = _read_run(tmp_path/'run'/'experience')
    assert n['metric']>200 and len(BankFolder(tmp_path/'run'/'experience').merged())==n['iterations']*2400
    assert f'After {n["iterations"]} iterations' in p.stdout

def killed(times, seed, folder):
    "A driver that is killed at any moment loses no committed bank, leaves no child, and goes on"
    driver,pids = folder/'driver.py',folder/'pids'
    pids.mkdir()
    driver.write_text(f'''
import asyncio, os, subprocess
from pathlib import Path
from fastrl.memory.bank import create_experience
from fastrl.parallel import ParallelExperience
pe = ParallelExperience(work_dir={str(folder/'run')!r})
def env(ctx, n):
    Path(f'{pids}/{{os.getpid()}}').touch()
    if n==3: subprocess.Popen(['sleep', '300'])
    return [create_experience(float(ctx.iteration), n, 0., 0., False)]*n
for n in (1,2,3): pe.environment_task(env, name=f'env_{{n}}', n=n)
@pe.update_task
def update(ctx): return {{'seen': len(ctx.bank)+(ctx.policy or {{}}).get('seen', 0)}}
async def main():
    async for state in pe.start(10**6): print(state.iteration, state.size, pe.policy['seen'], flush=True)
asyncio.run(main())
''')
    rng,banks = np.random.default_rng(seed),BankFolder(folder/'run'/'experience')
    for _ in range(times):
        p = subprocess.Popen([sys.executable, driver], stdout=subprocess.PIPE, text=True)
        first = p.stdout.readline() # of the iteration that it went on with
        time.sleep(rng.random())
        p.kill()
        told = [tuple(map(int, o.split())) for o in (first+p.stdout.read()).splitlines(True) if o[-1]=='\n']
        p.wait()
        p.stdout.close()
        n = told[-1][0]+1
        assert told==[(i, 6*(i+1), 3*(i+1)*(i+2)) for i in range(told[0][0], n)] # the memory grows by all that came, and the policy by each update once
        assert n<=_read_run(banks.folder)['iterations']<=n+1
        assert [o.name for o in banks.files if int(o.name[:6])<n]==[f'{i:06d}.env_{j}.safetensors' for i in range(n) for j in (1,2,3)]
        for o in banks.files:
            i,j = int(o.name[:6]),int(o.name.split('_')[1].split('.')[0])
            assert [(e.state, e.action) for e in ExperienceBank.load(o)]==[(i, j)]*j
        until = time.monotonic()+20
        while any(subprocess.run(['pgrep', '-g', o.name, '-r', 'R,S,D'], stdout=subprocess.DEVNULL).returncode==0 for o in pids.iterdir()):
            assert time.monotonic()<until, 'a child goes on'
            time.sleep(.05)
        for o in pids.iterdir(): o.unlink()
    assert told[0][0]>times-2 # each went on

def test_killed(tmp_path): killed(3, 0, tmp_path)

@pytest.mark.long
def test_killed_often(tmp_path): killed(60, 1, tmp_path)
