"Environments that collect on a Dask cluster, and here: one that fails takes nothing along with it, and nothing is counted twice"
import asyncio, itertools, json, os, shutil, signal, socket, subprocess, sys, time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
import cloudpickle, numpy as np, pytest
from fastrl.memory.bank import ExperienceBank, bank_about, create_experience, merge_banks
from fastrl.memory.bankfile import write_folder
from fastrl.memory.files import LoadError
from fastrl.parallel import *
from fastrl.run_state import read_run

root = Path(__file__).parent.parent
me = f'.{os.getpid():07d}' # processes of other runs are not taken for ours

def in_time(done, secs=60.):
    "Is `done()` true within `secs`?"
    until = time.monotonic()+secs
    while not (res := done()) and time.monotonic()<until: time.sleep(.02)
    return res

def gone(what, secs=5.):
    "Does no process with `what` in its command line run any more?"
    return in_time(lambda: subprocess.run(['pgrep', '-fc', what+me], capture_output=True, text=True).stdout.strip()=='0', secs)

@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    "A scheduler and two worker processes, each in a folder of its own"
    from distributed import Client, LocalCluster
    with LocalCluster(n_workers=2, threads_per_worker=4, processes=True, dashboard_address=':0', local_directory=tmp_path_factory.mktemp('dask')) as cluster:
        with Client(cluster) as client:
            for i,worker in enumerate(client.scheduler_info()['workers']): client.run(os.chdir, str(tmp_path_factory.mktemp(f'worker{i}')), workers=[worker])
        yield cluster

@pytest.fixture
def client(cluster):
    from distributed import Client
    with Client(cluster) as client: yield client

@asynccontextmanager
async def an_engine(kind, address, folder):
    "What `ParallelExperience` takes to run its tasks; imports what it needs, as drivers of their own use it, too"
    if kind=='embedded': yield None
    elif kind in ('dask','executor'):
        from distributed import Client
        with Client(address) as client: yield client if kind=='dask' else client.get_executor(pure=False)
    elif kind in ('threads','processes'):
        with (ThreadPoolExecutor if kind=='threads' else ProcessPoolExecutor)(2) as pool: yield pool
    else:
        from radical.asyncflow import WorkflowEngine
        engine = await WorkflowEngine.create(await a_backend(kind, address), work_dir=str(folder))
        try: yield engine
        finally: await engine.shutdown()

async def a_backend(kind, address):
    "What a `WorkflowEngine` runs its tasks on"
    from radical.asyncflow import LocalExecutionBackend
    class RadicalExecutionBackend(LocalExecutionBackend):
        "Runs commands here; its name says that it takes nothing else, as RADICAL-Pilot without Raptor"
        async def _execute_function(self, task): raise NotImplementedError('no functions')
    if kind=='asyncflow': return await LocalExecutionBackend()
    if kind=='asyncflow by commands': return await RadicalExecutionBackend()
    from rhapsody.backends import DaskExecutionBackend
    return await DaskExecutionBackend(dict(address=address))

def states(fill, kind, cluster, folder, max_iter, **kwargs):
    "What `fill` puts into a `ParallelExperience`, run on an engine"
    async def go():
        async with an_engine(kind, cluster and cluster.scheduler_address, folder) as engine:
            pe = ParallelExperience(engine, work_dir=folder, **kwargs)
            fill(pe)
            return [o async for o in pe.start(max_iter)],pe
    return asyncio.run(go())

# %% What fails
def seven(pe):
    "Three that are good; one raises, one exits, one is killed, one hangs"
    def good(ctx): return [create_experience(float(ctx.iteration), 0, 1., 1., True, {'seed':ctx.seed})]*3
    def raises(ctx): raise ValueError('on purpose')
    def exits(ctx): os._exit(3)
    def killed(ctx): os.kill(os.getpid(), signal.SIGKILL)
    def hangs(ctx): subprocess.Popen(['sleep', '300'+me]); time.sleep(300)
    for i in range(3): pe.environment_task(good, name=f'good {i}')
    for f in (raises, exits, killed): pe.environment_task(f)
    pe.environment_task(hangs, timeout=.7)

def a_bank(n, first=0, max_size=None, name=None):
    b = ExperienceBank(max_size, name)
    b.add_batch([create_experience(float(first+i), 0, 0., 0., False) for i in range(n)])
    return b

def raw(bank, folder):
    "The bytes of its file"
    res = Path(bank.save(folder, 'raw.pkl'))
    try: return res.read_bytes()
    finally: res.unlink()

@pytest.fixture
def copied(tmp_path):
    "The command that brings a bank of `n` experiences: it copies one, as a Python that writes it takes seconds to start"
    count = itertools.count()
    def command(n):
        path = Path(a_bank(n).save(tmp_path/'made', f'{next(count)}.safetensors'))
        return f'cp "{path}" .'
    return command

def seven_commands(pe, copied):
    "The same as commands"
    def command(name, text, **kwargs):
        async def f(*args): return text
        pe.environment_task(f, name=name, **kwargs)
    for i in range(3): command(f'good {i}', copied(3))
    for k,text in (('raises','echo on purpose >&2; exit 1'), ('exits','exit 3'), ('killed','kill -9 $$'), ('hangs',f'sleep 300{me} & sleep 300{me}')):
        command(k, text, timeout=.7 if k=='hangs' else None)

def check_seven(state, size):
    "The good ones count, each of the others fails with its reason"
    assert (state.collected, state.size) == ({f'good {i}':3 for i in range(3)}, size)
    assert {o.name: o.code for o in state.failures} == dict(raises=1, exits=3, killed=-9, hangs='late')
    why = {o.name: o.why for o in state.failures}
    for k,says in dict(raises='on purpose', exits='exit code 3', killed='signal 9', hangs='took longer than').items(): assert says in why[k]

def long(*args): return pytest.param(*args, marks=pytest.mark.long)
def slow(*args): return pytest.param(*args, marks=pytest.mark.slow)

@pytest.mark.parametrize('kind,n', [slow('embedded',2), slow('dask',2), ('asyncflow',1), slow('asyncflow on dask',1), *(
    long(o, 2) for o in ('executor','asyncflow','asyncflow by commands','asyncflow on dask'))])
def test_seven(kind, n, cluster, tmp_path):
    got,pe = states(seven, kind, cluster, tmp_path, n, timeout=200, min_envs=3)
    for i,state in enumerate(got): check_seven(state, 9*(i+1))
    assert len(got)==n and len({e.info['seed'] for e in pe.memory})==3*n
    assert not [o for o in (tmp_path/'experience').iterdir() if o.name[0]=='.']
    assert gone('sleep 300')

def test_seven_commands(copied, tmp_path):
    (state,),pe = states(lambda pe: seven_commands(pe, copied), 'embedded', None, tmp_path, 1, timeout=200, min_envs=3)
    check_seven(state, 9)
    assert gone('sleep 300', 0)
    pe.min_envs = 4
    with pytest.raises(RuntimeError, match='3 of 7 environments brought something'): asyncio.run(pe.learn(2))

@pytest.mark.slow
def test_by_commands(tmp_path):
    "Functions on an engine that takes commands only: each is a Python of its own there"
    def fill(pe):
        def good(ctx): return [create_experience(1., 0, 1., 1., True)]*3
        def raises(ctx): raise ValueError('on purpose')
        for f in (good, raises): pe.environment_task(f)
    (state,),_ = states(fill, 'asyncflow by commands', None, tmp_path, 1, timeout=200)
    assert (state.collected, {o.name: o.code for o in state.failures}) == ({'good':3}, {'raises':1})
    assert 'on purpose' in state.failures[0].why
    assert not [o for o in (tmp_path/'experience').iterdir() if o.name[0]=='.']

def one(folder, f, n=1, **kwargs):
    "A run of one environment"
    pe = ParallelExperience(work_dir=folder, **kwargs)
    pe.environment_task(f, name='one')
    return asyncio.run(pe.learn(n)),pe

def columns(ctx): # copied into each task, as it is of a test
    import torch
    return dict(state=torch.ones(2), action=[0,1], reward=[1.,1.], next_state=torch.ones(2), done=[False,True])
cloudpickle.register_pickle_by_value(sys.modules[__name__])

def rubbish(pe, copied):
    "Environments that bring what is no bank, or none; files that do not fit; two files; one that fails at first"
    def rubbish(ctx): return 5
    def truncated(ctx): ctx.path.write_bytes(b'rubbish')
    def nothing(ctx): pass
    def both(ctx):
        for k in ('a.pkl','b.safetensors'): a_bank(1).save('.', k)
        Path('c.pkl').write_bytes(b'')
    def wide(ctx): return dict(state=np.zeros((2,3)), action=[0,1], reward=[1.,1.], next_state=np.zeros((2,3)), done=[False,True])
    async def silent(*args): return 'true'
    tries = []
    async def late(*args):
        tries.append(1)
        return 'exit 1' if len(tries)<3 else copied(4)
    for f in (rubbish, truncated, nothing, both, columns, wide, silent): pe.environment_task(f)
    pe.environment_task(late, name='zz late')

def test_rubbish(copied, tmp_path):
    one(tmp_path/'run', columns) # says what the fields are
    (state,),pe = states(lambda pe: rubbish(pe, copied), 'embedded', None, tmp_path/'run', 2, timeout=200, retries=2)
    # the first iteration had one bank of another name
    assert state.collected=={'both':2, 'columns':2, 'zz late':4}
    why = {o.name: o.why for o in state.failures}
    assert sorted(why)==['both','nothing','rubbish','silent','truncated','wide']
    for k,says in dict(rubbish='got int', nothing='got NoneType', silent='left no bank', truncated='in quarantine', both='c.pkl', wide='`state` is').items():
        assert says in why[k]
    assert {o.name.split('.')[1] for o in (pe.banks.folder/'quarantine').iterdir()}=={'both','truncated','wide'}

def saves(ctx, *banks):
    for i,o in enumerate(banks):
        b = ExperienceBank()
        b.add_batch([create_experience(s, 0, 0., s, True) for s in o])
        b.save('.', f'{i}.pkl')

def test_odd(tmp_path):
    "Banks of one task that share no columns, none, and rubbish in each of three tries"
    def fill(pe):
        pe.environment_task(lambda ctx: saves(ctx, [np.zeros(1)], [np.zeros(2)], []), name='several')
        pe.environment_task(lambda ctx: [], name='a none')
        pe.environment_task(lambda ctx: (ctx.path.write_bytes(b'rubbish'), None)[1], name='rubbish')
    (state,),pe = states(fill, 'embedded', None, tmp_path, 1, retries=2)
    assert (state.collected, sorted(o.name for o in state.failures))==({'several':2, 'a none':0}, ['rubbish'])
    assert len(list((pe.banks.folder/'quarantine').glob('*rubbish*')))==3

def test_meet(tmp_path, monkeypatch):
    "Banks that share no columns are merged all the same"
    monkeypatch.setattr(BankFolder, '_check_same', lambda self, bank: None)
    def fill(pe):
        for o,s in (('a',1.),('b',np.zeros(2))): pe.environment_task(lambda ctx, s=s: [create_experience(s, 0, 0., s, True)], name=o)
    (state,),pe = states(fill, 'embedded', None, tmp_path, 1)
    assert (state.collected, state.size, [np.shape(o) for o in held(pe.memory)])==({'a':1, 'b':1}, 2, [(), (2,)])

def test_deterministic(tmp_path):
    "A script that leaves the same file in each iteration brings new experiences each time"
    path = a_bank(4).save(tmp_path, 'same.pkl')
    pe = ParallelExperience(work_dir=tmp_path/'run')
    @pe.environment_task
    async def same(*args): return f'cp {path} "$FASTRL_BANK"'
    assert asyncio.run(pe.learn(3)).size==12

def commands(*texts):
    "An `async def` for each"
    def made(text):
        async def f(*args): return text
        return f
    return map(made, texts)
fails,words,silent,number = commands('echo broken >&2; exit 7', 'echo no number', 'true', 5)

@pytest.mark.parametrize('test,update,exc,says', [
    (lambda ctx: float('nan'), None, ValueError, 'is NaN'), (lambda ctx: None, None, ValueError, 'should give a number; got None'),
    (words, None, ValueError, "as the last line that it prints; got 'no number'"), (silent, None, ValueError, "got ''"),
    (fails, None, RuntimeError, 'the test of iteration 0 ended with exit code 7: broken'), (number, None, TypeError, 'should give a command'),
    (None, fails, RuntimeError, 'the update of iteration 0 ended with exit code 7'), (None, lambda ctx: 1/0, ZeroDivisionError, 'division')])
def test_update_and_test_fail(test, update, exc, says, tmp_path):
    pe = ParallelExperience(work_dir=tmp_path)
    pe.environment_task(columns)
    if update: pe.update_task(update)
    if test: pe.as_stop_criterion('m', 1)(test)
    with pytest.raises(exc, match=says): asyncio.run(pe.learn(1))

def test_too_few():
    with pytest.raises(ValueError, match='2 environments should succeed, and there are 1'): one('.', columns, min_envs=2)

# %% Commands and policies
def test_told(copied, tmp_path):
    "What a command finds in its variables, and where it runs"
    banks = {n: copied(int(n)) for n in ('3','14')}
    pe = ParallelExperience(work_dir=tmp_path/'told')
    @pe.environment_task(n=3, b='x y')
    async def told(*args, n):
        return f'test "$FASTRL_PARAMS" = \'{{"n": {n}, "b": "x y"}}\' && test "$FASTRL_WORK_DIR" = "{tmp_path}/told" && ' + \
               f'test "$FASTRL_ENV" = told && case ${{FASTRL_ITERATION}}{n} in 03) {banks["3"]};; 14) {banks["14"]};; esac'
    @pe.update_task(k=2)
    async def update(*args, k, **kwargs): return f'test "$FASTRL_PARAMS" = \'{{"k": {k}}}\' && test "$PWD" = "{tmp_path}/told"'
    @pe.as_stop_criterion('m', 1, w=5)
    def test(ctx, w): return w
    state = asyncio.run(pe.learn())
    assert (state.metric, state.collected)==(5, {'told':3})
    pe.set_params('told', n=4)
    pe.update = None
    assert asyncio.run(pe.learn(2)).collected=={'told':14}

# %% The policy that an iteration begins with
def counts(folder, fails=(), kept=True, in_place=False):
    "A driver whose policy counts the updates it went through, and whose test gives that number; `fails` has errors that the test raises once each"
    pe = ParallelExperience(work_dir=folder)
    def policy(n): return dict(updates=n) if kept else (lambda: n) # a function cannot be saved
    def count(policy): return 0 if policy is None else policy['updates'] if isinstance(policy, dict) else policy()
    @pe.environment_task(name='e')
    def env(ctx): return [create_experience(float(ctx.iteration), 0, 0., 0., True)]
    @pe.update_task
    def update(ctx):
        if not in_place or ctx.policy is None: return policy(count(ctx.policy)+1)
        ctx.policy['updates'] += 1
        return ctx.policy
    @pe.as_stop_criterion('UPDATES', 1e9)
    def test(ctx):
        assert count(pe.policy)==count(ctx.policy) # the driver shows what is being tested
        if ctx.iteration==1 and fails: raise fails.pop()
        return count(ctx.policy)
    return pe

def metrics(pe, max_iter): return asyncio.run(pe.learn(max_iter)).metric_history

@pytest.mark.parametrize('error', [KeyboardInterrupt, ValueError])
@pytest.mark.parametrize('anew,kept,in_place', [(False,True,False), (True,True,False), (False,False,False), (False,True,True)])
@pytest.mark.halved
def test_update_counts_once(error, anew, kept, in_place, tmp_path):
    "A test that is interrupted, or fails: the iteration is done again with the policy it began with, by the same object and by a new one"
    fails = [error()]
    pe = counts(tmp_path, fails, kept, in_place)
    with pytest.raises(error): metrics(pe, 3)
    assert metrics(counts(tmp_path) if anew else pe, 3)==[1,2,3]

@pytest.mark.parametrize('kept', [True,False])
def test_update_counts_once_if_unsaved(kept, tmp_path, monkeypatch):
    "An iteration whose end could not be written is done again, too; of one whose end was written, nothing is lost"
    import fastrl.parallel
    finish,when = fastrl.parallel.finish,[]
    def fails(*args):
        if when.pop()=='after': finish(*args)
        raise OSError('the disk is full')
    for o,want in (('before',[1,2,3]), ('after',[1,2,3])):
        pe = counts(tmp_path/o, kept=kept)
        assert metrics(pe, 1)==[1]
        when.append(o)
        with monkeypatch.context() as m:
            m.setattr(fastrl.parallel, 'finish', fails)
            with pytest.raises(OSError): metrics(pe, 3)
        assert metrics(pe, 3)==want

def test_cancelled_while_testing(tmp_path):
    "A cancelled test takes its update back, too"
    pe = counts(tmp_path)
    begun,test = [],pe.criterion.f
    @pe.as_stop_criterion('UPDATES', 1e9)
    def slow(ctx):
        if ctx.iteration==1 and not begun:
            begun.append(1)
            time.sleep(.5)
        return test(ctx)
    async def cancelled():
        task = asyncio.create_task(pe.learn(3))
        while not begun: await asyncio.sleep(.01)
        task.cancel()
        with suppress(asyncio.CancelledError): await task
    asyncio.run(cancelled())
    assert metrics(pe, 3)==[1,2,3]

def test_policy_set_in_a_failing_test(tmp_path):
    "A policy that you set meanwhile is kept"
    pe = counts(tmp_path)
    test = pe.criterion.f
    @pe.as_stop_criterion('UPDATES', 1e9)
    def sets(ctx):
        if ctx.iteration!=1 or ctx.policy['updates']>9: return test(ctx)
        pe.policy = dict(updates=40)
        raise ValueError
    with pytest.raises(ValueError): metrics(pe, 3)
    assert metrics(pe, 3)==[1,41,42]

def in_turns(steps, *pes, then=lambda i: None):
    "The metrics of drivers that do one iteration each, by turns; `then(i)` comes before step `i`"
    async def go():
        runs,res = [o.start(99) for o in pes],[]
        for i,it in zip(range(steps), itertools.cycle(runs)):
            then(i)
            res.append((await anext(it)).metric)
        for o in runs: await o.aclose()
        return res
    return asyncio.run(go())

def test_locked_before_it_looks(tmp_path, monkeypatch):
    "A driver looks at the run of its folder only once it has the lock: another one may be writing there"
    import fastrl.parallel as parallel
    from fastrl.memory.files import FileLock
    assert in_turns(2, counts(tmp_path))==[1,2]
    folder,looks = counts(tmp_path).banks.folder,[]
    def locked():
        try: FileLock(folder).let_go()
        except ValueError: return True
        return False
    def look(of, was=parallel.read_run): looks.append(locked()); return was(of)
    monkeypatch.setattr(parallel, 'read_run', look)
    with FileLock(folder), pytest.raises(ValueError, match='only one may write at a time'): in_turns(1, counts(tmp_path))
    assert not looks
    assert in_turns(1, counts(tmp_path))==[3]
    assert looks and looks[0] is True

def test_drivers_in_turns(tmp_path):
    "Each driver of a folder resumes with the policy of the last iteration, whoever did it"
    assert in_turns(6, counts(tmp_path), counts(tmp_path))==[1,2,3,4,5,6]
    a,b = counts(tmp_path/'b'),counts(tmp_path/'b')
    assert (metrics(a, 1), metrics(b, 3), metrics(a, 4))==([1], [1,2,3], [1,2,3,4])
    assert (asyncio.run(b.learn(4)), b.policy)==(None, dict(updates=4)) # nothing left to do

def test_set_policy_wins(tmp_path):
    "A policy that you set is the one that the next iteration begins with, whatever was saved; `None` takes the saved one"
    a,b = counts(tmp_path),counts(tmp_path)
    a.policy = dict(updates=10)
    def then(i):
        if i==3: b.policy = dict(updates=50)
        if i==6: a.policy = None
    assert in_turns(8, a, b, then=then)==[11,12,13,51,52,53,54,55]
    held = a.policy
    metrics(b, 10)
    a.policy = held # also if it was the last one
    assert metrics(a, 11)[-1]==held['updates']+1

def test_set_policy_stays_without_an_update(tmp_path):
    "A policy that you set and no update replaces is not exchanged for that of another driver"
    a,b = counts(tmp_path),counts(tmp_path)
    for o,n in ((a,3), (b,7)): o.update,o.policy = None,dict(updates=n)
    assert in_turns(6, a, b)==[3,7]*3

def test_policies_that_cannot_be_saved_stay(tmp_path):
    "Each driver keeps its own, as there is no other one"
    assert in_turns(6, counts(tmp_path, kept=False), counts(tmp_path, kept=False))==[1,1,2,2,3,3]

def test_policy_of_another_folder(tmp_path):
    "A driver that moves to the folder of another run resumes that run; to a new folder it takes its policy along"
    a = counts(tmp_path/'a')
    metrics(a, 2)
    metrics(b := counts(tmp_path/'b'), 5)
    b.work_dir = a.work_dir
    assert metrics(b, 3)==[1,2,3]
    b.work_dir = tmp_path/'c'
    assert metrics(b, 1)==[4]
    same = counts(tmp_path/'d')
    same.policy = dict(updates=20)
    metrics(same, 1)
    same.work_dir = tmp_path/'c' # as many iterations
    assert metrics(same, 2)==[4,5]

def test_policy_is_read_once(tmp_path, monkeypatch):
    "A driver alone reads the saved policy when it begins, and not in each iteration"
    import fastrl.parallel
    read,reads = fastrl.parallel.read_policy,[]
    monkeypatch.setattr(fastrl.parallel, 'read_policy', lambda *args: reads.append(args) or read(*args))
    metrics(counts(tmp_path), 2)
    reads.clear()
    assert (metrics(counts(tmp_path), 5), len(reads))==([1,2,3,4,5], 1)

# %% What an iteration costs
def counted(monkeypatch, folder, n, size=3, **kwargs):
    "What each iteration of four environments loads, and how many bytes it leaves"
    from fastrl.memory import bank as of_bank
    reads,read = [],of_bank.read_bank
    monkeypatch.setattr(of_bank, 'read_bank', lambda path: reads.append(path) or read(path))
    pe,res = ParallelExperience(work_dir=folder, **kwargs),[]
    for i in range(4): pe.environment_task(lambda ctx: [create_experience([1.]*99, 0, float(ctx.iteration), [1.]*99, True)]*size, name=f'env {i}')
    @pe.update_task
    def update(ctx): return {'n': len(ctx.bank)}
    @pe.as_stop_criterion('N', threshold=1e9)
    def test(ctx): return len(ctx.bank)
    def bytes_of(): return sum(o.stat().st_size for o in pe.banks.folder.iterdir())
    async def go():
        seen = 0
        async for state in pe.start(n):
            res.append((len(reads), bytes_of()-seen, state.metric))
            reads.clear()
            seen = bytes_of()
    asyncio.run(go())
    return res,pe

def test_costs(tmp_path, monkeypatch):
    "Each iteration loads the banks that came, and no others; what it adds to the folder does not grow"
    res,pe = counted(monkeypatch, tmp_path, 6)
    assert [o for o,*_ in res]==[4]*6 and [n for *_,n in res]==[12.*(i+1) for i in range(6)]
    assert max(n for _,n,_ in res[1:])<1.1*min(n for _,n,_ in res[1:])
    assert held_rewards(ExperienceBank.load(pe.banks.folder/'memory.json'))==held_rewards(pe.memory)==[float(i) for i in range(6) for _ in range(12)]

def held_rewards(b): return [e.reward for e in b]

@pytest.mark.parametrize('limit', [20, slow(None)])
def test_saved_memory(limit, tmp_path):
    "The file of the memory is the memory: also after it was damaged or removed, for another driver, and while others commit"
    folder,rng,sizes = BankFolder(tmp_path),np.random.default_rng(0),[]
    def commit(i, n): folder.commit(Ctx(i, 'one'), {'a.safetensors': raw(a_bank(n, 100*i), tmp_path)})
    (tmp_path/'memory.safetensors').write_bytes(b'of an earlier version')
    for i in range(40):
        commit(i, int(rng.integers(1, 5)))
        bank,_ = folder.gather(limit)
        path = folder.save_memory()
        sizes.append(path.stat().st_size)
        if i%10==0:
            commit(10**6+i, 1) # is there, and does not count yet
            assert held(ExperienceBank.load(path))==held(bank)
            folder.files[-1].unlink()
            assert held(bank)==held(folder.merged(limit))
        if i==20: path.write_bytes(b'rubbish')
        if i==25: path.unlink()
        if i==30: folder = BankFolder(tmp_path) # another driver
        if i==35: commit(i, 2); folder.files[3].write_bytes(b'damaged'); folder = BankFolder(tmp_path)
    assert max(sizes)<200 and not (tmp_path/'memory.safetensors').exists()

def test_old_link(tmp_path):
    "A run that an earlier version left, with all of it in one file and a link to that: the next one turns the link"
    pe = ParallelExperience(work_dir=tmp_path)
    pe.environment_task(lambda ctx: a_bank(2, 10*ctx.iteration), name='one')
    asyncio.run(pe.learn(1))
    pe.memory.save(tmp_path/'experience', 'memory.safetensors')
    (tmp_path/'experience/memory.json').unlink()
    (tmp_path/'experience_bank.pkl').symlink_to('experience/memory.safetensors')
    asyncio.run(pe.learn(2))
    assert held(ExperienceBank.load(tmp_path/'experience_bank.pkl'))==[0.,1.,10.,11.]
    assert not (tmp_path/'experience/memory.safetensors').exists() and not (tmp_path/'experience/quarantine').exists()

@pytest.mark.parametrize('said', [dict(last='../other/000000.a.safetensors'), dict(last='/etc/000000.a.safetensors'), dict(last='..'), dict(last=['x']),
                                  dict(last='run.json'), dict(max_size=0), dict(max_size='all'), dict(max_size=True)])
def test_hostile_memory(said, tmp_path):
    "What stands in the file leads nowhere else"
    for o in ('run','other'): a_bank(1).save(tmp_path/o, '000000.a.safetensors')
    at = tmp_path/'run'/'memory.json'
    at.write_text(json.dumps({'format':'fastrl bank folder', 'max_size':None, 'last':'000000.a.safetensors', **said}))
    with pytest.raises(LoadError, match='should be'): ExperienceBank.load(at)
    with pytest.raises(LoadError, match='should be'): merge_banks([at])
    assert bank_about(at) is None

def test_damaged_memory(tmp_path):
    "A byte that changed leads to an error, and to no other rows"
    for k in range(3): a_bank(k+1).save(tmp_path, f'00000{k}.a.safetensors')
    raw = (at := write_folder(tmp_path, '000002.a.safetensors', 5)).read_bytes()
    want,refused = held(ExperienceBank.load(at)),0
    for i,o in itertools.product(range(len(raw)), b'01 '):
        at.write_bytes(raw[:i]+bytes([o])+raw[i+1:])
        try: assert held(ExperienceBank.load(at))==want, (i, chr(o))
        except LoadError: refused += 1
    assert refused>len(raw)

def test_a_count_that_grows_meanwhile(tmp_path, monkeypatch):
    "A run that writes its file anew while somebody looks for banks that are gone has lost none"
    from fastrl.memory import bankfile
    for k in range(2): a_bank(1).save(tmp_path, f'00000{k}.a.safetensors')
    at,listed = bankfile.write_folder(tmp_path, '000000.a.safetensors', banks=1),bankfile.bank_files
    def while_it_grows(*args):
        res = listed(*args)
        bankfile.write_folder(tmp_path, '000001.a.safetensors', banks=2)
        return res
    monkeypatch.setattr(bankfile, 'bank_files', while_it_grows)
    assert bankfile.banks_gone(at)==0

def test_continued_bank(tmp_path):
    "A bank that continues one of the memory adds its new experiences only, in the file, too"
    folder = BankFolder(tmp_path)
    folder.commit(Ctx(0, 'a'), {'a.safetensors': raw(a_bank(3), tmp_path)}, new=False)
    for i in (1,2):
        folder.gather(), folder.save_memory()
        b = ExperienceBank.load(folder.files[-1])
        b.add(create_experience(10.*i, 0, 0., 0., True))
        folder.commit(Ctx(i, 'a'), {'a.safetensors': raw(b, tmp_path)}, new=False)
    assert held(folder.gather()[0])==[0.,1.,2.,10.,20.]==held(ExperienceBank.load(folder.save_memory()))

def test_one_bank(tmp_path):
    "A task's bank is one object: a loop draws another batch each time, its own rows stay its own, and one that is kept stays as it was"
    pe,kept = ParallelExperience(work_dir=tmp_path),[]
    pe.environment_task(lambda ctx: a_bank(50, 100*ctx.iteration), name='one')
    @pe.update_task
    def update(ctx):
        assert ctx.bank is ctx.bank
        assert len({tuple(ctx.bank.sample_batch(5)['state'].tolist()) for _ in range(5)})==5
        kept.append(ctx.bank)
    @pe.as_stop_criterion('m', 1e9)
    def test(ctx):
        drawn = held(ctx.bank.sample(9))
        elsewhere = cloudpickle.loads(cloudpickle.dumps(ctx))
        assert len(elsewhere.bank)==len(ctx.bank) and held(elsewhere.bank.sample(9))==drawn
        ctx.bank.add(create_experience(-1., 0, 0., 0., True))
        return len(ctx.bank)
    states = asyncio.run(all_of(pe.start(3)))
    assert [(o.size, o.metric) for o in states]==[(50,51), (100,101), (150,151)]
    assert [len(o) for o in kept]==[50,100,150] and held(kept[0])==[float(i) for i in range(50)]
    assert len(pe.memory)==150 and -1. not in held(ExperienceBank.load(pe.banks.folder/'memory.json'))

# %% What ROSE's programs do
def saves_to(pe, data, *names):
    "Environments that save banks of 1, 2, … experiences into a folder of their own choice, in every iteration"
    for i,name in enumerate(names):
        def env(ctx, i=i, name=name): a_bank(i+1, 10*i+100*ctx.iteration).save(data, name)
        pe.environment_task(name=f'env_{i}')(env)

def test_saved_elsewhere(tmp_path):
    "Banks count wherever they are saved, each once, also two of one name; the update finds the merged one under ROSE's name"
    data,pe = tmp_path/'data',ParallelExperience()
    pe.work_dir = data
    data.mkdir()
    (data/'experience_bank.pkl').write_text('of another program')
    saves_to(pe, data, 'experience_bank_0.pkl', 'experience_bank_1.pkl', 'experience_bank_1.pkl')
    @pe.update_task
    async def update(*args): return f'test "$PWD" = "{data}" && cp experience_bank.pkl experience/seen.$FASTRL_ITERATION'
    assert [o.collected for o in asyncio.run(all_of(pe.start(2)))]==[{'env_0':1, 'env_1':2, 'env_2':3}]*2
    assert [len(ExperienceBank.load(data/f'experience/seen.{i}')) for i in (0,1)]==[6,12]
    assert (pe.banks.folder/'quarantine'/'experience_bank.pkl').read_text()=='of another program'
    assert sorted(o.name for o in data.glob('experience_bank_*'))==['experience_bank_0.pkl','experience_bank_1.pkl'] # they stay

async def all_of(it): return [o async for o in it]

def test_own_file(copied, tmp_path):
    "A single environment's update loads what it saved itself, and a bank in the scratch folder counts before those elsewhere"
    rl = SequentialReinforcementLearner(work_dir=tmp_path/'run')
    @rl.environment_task
    def env(ctx):
        a_bank(3).save(ctx.work_dir, 'experience_bank.pkl')
        a_bank(2).save()
    @rl.update_task
    async def update(*args): return 'cp experience_bank.pkl seen'
    assert (asyncio.run(rl.learn(2)).size, len(ExperienceBank.load(rl.work_dir/'seen')))==(4, 3)

def plain(rl, threshold=20, **kw):
    "Functions as ROSE has them: each gets what the one before it returned"
    @rl.environment_task(as_executable=False)
    async def environment(*args, n=4): return [len(args), *range(1, n+1)]
    @rl.update_task(as_executable=False)
    async def update(data, *args):
        rl.register_state('n', len(data))
        return {'mean': sum(data[1:])/len(data[1:]), 'before': data[0]}
    @rl.as_stop_criterion(metric_name='MEAN', threshold=threshold, operator='>', as_executable=False, **kw)
    async def check(val, *args): return val['mean']

@pytest.mark.parametrize('kind', ['embedded','asyncflow'])
def test_plain(kind, tmp_path):
    async def go():
        async with an_engine(kind, None, tmp_path) as engine:
            rl = SequentialReinforcementLearner(engine)
            rl.work_dir = tmp_path/'run'
            plain(rl)
            states = await all_of(rl.start(max_iter=2))
            await rl.shutdown()
            return rl,states
    rl,states = asyncio.run(go())
    assert [(o.metric_value, o.n, o.before, o.collected, o.size) for o in states]==[(2.5, 5, i, {'environment':0}, 0) for i in (0,1)]
    assert states[1].metric_history==[2.5,2.5] and rl.get_metric_results()=={0:2.5, 1:2.5}
    assert states[0].metric_threshold==20 and states[0].to_dict()['mean']==2.5

def test_plain_collects(tmp_path, monkeypatch):
    "A plain function whose result is experience adds to the memory; it runs where the driver does, and may fail"
    monkeypatch.chdir(tmp_path)
    pe = ParallelExperience(work_dir='run')
    @pe.environment_task(name='listed', as_executable=False)
    def listed(): Path('note').write_text('here'); return [create_experience(1., 0, 0., 0., True)]*2
    @pe.environment_task(name='saved', as_executable=False)
    def saved(): a_bank(3).save('.', 'mine.pkl')
    @pe.environment_task(name='bad', as_executable=False)
    async def bad(): raise ValueError('on purpose')
    state = asyncio.run(pe.learn(1))
    assert (state.collected, [o.name for o in state.failures], (tmp_path/'note').read_text())==({'listed':2, 'saved':3}, ['bad'], 'here')

def test_configured(tmp_path):
    "Arguments for each iteration and learner; what the first iteration skips; metrics survive a resume"
    rl = SequentialReinforcementLearner(work_dir=tmp_path)
    plain(rl)
    config = LearnerConfig(environment={1: TaskConfig(kwargs={'n':2}), -1: TaskConfig(args=('more',), kwargs={'n':6})})
    states = asyncio.run(all_of(rl.start(max_iter=3, initial_config=config)))
    assert [(o.metric, o.before) for o in states]==[(3.5,1), (1.5,1), (3.5,2)] and states[0].current_config is config
    rl = SequentialReinforcementLearner(work_dir=tmp_path)
    plain(rl)
    assert asyncio.run(rl.learn(4, learner_config=dict(environment=dict(n=8)))).metric==4.5
    assert rl.get_metric_results()=={0:3.5, 1:1.5, 2:3.5, 3:4.5}

def test_skips(tmp_path):
    "The first iteration only tests; or none collects"
    did = []
    def rl():
        res = SequentialReinforcementLearner(work_dir=tmp_path)
        res.update_task(lambda ctx: did.append('update'))
        res.as_stop_criterion('M', 9, '=')(lambda ctx: did.append('test') or 1)
        return res
    one = rl()
    one.environment_task(lambda ctx: [create_experience(1., 0, 0., 0., True)])
    assert [(o.collected, o.size) for o in asyncio.run(all_of(one.start(2, skip_pre_loop=True)))]==[({}, 0), ({'<lambda>':1}, 1)]
    assert did==['test','update','test']
    assert [(o.collected, o.size) for o in asyncio.run(all_of(rl().start(3, skip_environment_step=True)))]==[({}, 1)]
    assert did[3:]==['update','test']

def test_several_plain(tmp_path):
    "Learners side by side, with ROSE's arguments in ROSE's order"
    rl = ParallelReinforcementLearner(work_dir=tmp_path)
    plain(rl)
    states = asyncio.run(all_of(rl.start(2, 2, False, [None, LearnerConfig(environment=TaskConfig(kwargs=dict(n=6)))])))
    assert {o.learner_id for o in states}=={0,1}
    assert rl.get_metric_results()=={'learner-0':{0:2.5, 1:2.5}, 'learner-1':{0:3.5, 1:3.5}}
    with pytest.raises(ValueError, match='each learner has its own memory'): rl.merge_banks()

def test_moved(tmp_path):
    "`work_dir` is applied wholly: between two iterations, and not in the middle of one"
    pe = ParallelExperience(work_dir=tmp_path/'a')
    pe.environment_task(columns)
    @pe.update_task
    def update(ctx):
        with pytest.raises(ValueError, match='an iteration is running'): pe.work_dir = tmp_path/'b'
    async def go():
        async for state in pe.start(2):
            if pe.work_dir==tmp_path/'a': pe.work_dir = tmp_path/'b'
            yield state
    assert [(o.iteration, o.size) for o in asyncio.run(all_of(go()))]==[(0,2), (0,2), (1,4)]
    assert [read_run(tmp_path/o/'experience')['iterations'] for o in 'ab']==[1,2] and not (tmp_path/'b'/'a').exists()

@pytest.mark.parametrize('task', ['env','update'])
def test_moved_meanwhile(task, tmp_path):
    "An iteration whose folder is moved is no part of a folder that another run makes in its place; moved back, the run resumes"
    run,away,once = (tmp_path/o for o in ('run','away','once'))
    def replace(ctx):
        if ctx.iteration!=1 or once.exists(): return
        once.touch()
        run.rename(away)
        (run/'experience').mkdir(parents=True)
    pe = ParallelExperience(work_dir=run)
    @pe.environment_task
    def env(ctx):
        if task=='env': replace(ctx)
        return [create_experience(float(ctx.iteration), 0, 0., 0., True)]
    @pe.update_task
    def update(ctx):
        if task=='update': replace(ctx)
        return dict(n=len(ctx.bank))
    with pytest.raises(RuntimeError, match='experience was moved or removed.*resumes'): asyncio.run(pe.learn(3))
    assert [*(run/'experience').iterdir()]==[]
    shutil.rmtree(run), away.rename(run)
    assert (asyncio.run(pe.learn(3)).size, held(pe.memory), pe.policy)==(3, [0.,1.,2.], dict(n=3))

def test_merge_by_hand(tmp_path):
    "`merge_banks` moves banks into the memory, whole files of rubbish into the quarantine, and counts nothing twice"
    pe = ParallelExperience(work_dir=tmp_path)
    for _ in range(2):
        for i in (1,2): a_bank(i).save(tmp_path, f'experience_bank_{i}.pkl')
        (tmp_path/'experience_bank_3.pkl').write_text('rubbish')
        b = ExperienceBank.load(tmp_path/'experience_bank_1.pkl')
        assert len(pe.merge_banks())==3*(1+_)
        b.save(tmp_path, 'experience_bank_again.pkl')
        assert len(pe.merge_banks())==3*(1+_)
    assert sorted(o.name for o in tmp_path.iterdir())==['experience','experience_bank.pkl']
    assert len(ExperienceBank.load(tmp_path/'experience_bank.pkl'))==6
    assert len(list((pe.banks.folder/'quarantine').iterdir()))==2

# %% What ROSE loses
def held(b): return [e.state for e in b]

def test_banks(tmp_path):
    "Merging two full banks keeps both; the limit and the id survive a save; a missing file is an error; ids of one's own never merge"
    x,y = a_bank(9, 0, 5, 'first'),a_bank(9, 100, 5, 'second')
    assert (held(x.merge(y)), x.merge(y).max_size)==([4.,5.,6.,7.,8.,104.,105.,106.,107.,108.], 10)
    for k in ('a.pkl','a.safetensors'):
        z = ExperienceBank.load(x.save(tmp_path, k))
        assert (z.max_size, z.session_id, held(z))==(5, 'first', held(x))
    with pytest.raises(FileNotFoundError, match='none.pkl'): ExperienceBank.load(tmp_path/'none.pkl')
    for i in (2,0,1): a_bank(2, 10*i, name=f'mine {i}').save(tmp_path/'custom')
    found = ExperienceBank.list_saved_banks(tmp_path/'custom')
    assert len(found)==3 and sorted(held(merge_banks(found)))==[0.,1.,10.,11.,20.,21.]

@pytest.mark.slow
def test_full_disk(tmp_path):
    "Sources are never deleted, no bank is half written, and whatever fits is there afterwards"
    full = tmp_path/'full.py'
    full.write_text(f"""
import asyncio, resource
from fastrl.memory.bank import *
from fastrl.parallel import *
pe = ParallelExperience(work_dir={str(tmp_path/'run')!r})
for i in range(5):
    def env(ctx, i=i): return [create_experience([float(j)]*50, i, 0., [0.]*50, False) for j in range(50)]
    pe.environment_task(env, name=str(i))
run_command(['true'], '.') # the fork server is started now and has no limit
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
print(asyncio.run(pe.learn(1)).size) # each bank is small enough, and all of them together are written nowhere
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(len(pe.memory), len(ExperienceBank.load(pe.banks.folder/'memory.json')))
pe.environment_task(lambda ctx: [create_experience([1.]*50, i, 0., [0.]*50, False)]*2000, name='large')
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
pe.min_envs = 6
try: asyncio.run(pe.learn(2))
except OSError as e: print(e.strerror)
print(len(pe.memory)>=250, [o.name for o in pe.banks.folder.iterdir() if o.name[0]=='.'])
""")
    out = subprocess.run([sys.executable, full], capture_output=True, text=True, timeout=300, env={**os.environ, 'PYTHONPATH':str(root)})
    assert (out.stdout.splitlines(), out.stderr)==(['250', '250 250', 'File too large', 'True []'], '')

# %% Who dies
@pytest.mark.parametrize('where', ['environment','update'])
def test_cancelled(where, copied, tmp_path):
    "Whatever is cancelled is killed at once, and what was committed stays"
    pe,begun = ParallelExperience(work_dir=tmp_path/'run'),tmp_path/'begun'
    async def quick(*args): return copied(2)
    async def hangs(*args):
        return f'while ! ls "{tmp_path}"/run/experience/*.quick.* >/dev/null; do sleep .02; done; touch "{begun}"; sleep 298{me}'
    pe.environment_task(quick)
    if where=='update': pe.update_task(hangs)
    else: pe.environment_task(hangs, name='slow')
    async def go():
        task = asyncio.create_task(pe.learn(9))
        while not begun.exists(): await asyncio.sleep(.02)
        assert not task.done()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
    asyncio.run(go())
    assert gone('sleep 298')
    assert (len(pe.memory), read_run(pe.banks.folder))==(2, {'iterations':0})

@pytest.mark.slow
def test_dead_worker(cluster, client, tmp_path):
    "A task whose worker dies is run again, and counts once"
    begun = tmp_path/'begun'
    def slow(ctx):
        with open(begun, 'a') as f: f.write('x')
        if begun.stat().st_size==1: time.sleep(300) # until it is killed
        return [create_experience(1., 0, 1., 1., True)]*5
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(states, lambda pe: pe.environment_task(slow), 'dask', cluster, tmp_path/'run', 1, timeout=200)
        while not begun.exists(): time.sleep(.05)
        busy = next(k for k,v in client.processing().items() if v)
        pid = client.run(os.getpid, workers=[busy])[busy]
        os.kill(pid, signal.SIGKILL)
        (state,),_ = run.result()
    assert (state.size, state.failures, begun.read_text())==(5, [], 'xx')

@pytest.mark.slow
@pytest.mark.parametrize('kind', ['asyncflow on dask',long('dask')])
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
_,pe = states(fill, kind, SimpleNamespace(scheduler_address=address), work, 2, timeout=200)
print(sorted({e.state for e in pe.memory}), len(pe.memory))
''')
    env = {**os.environ, 'PYTHONPATH':str(root)}
    runs = [subprocess.Popen([sys.executable, driver, kind, cluster.scheduler_address, tmp_path/me, me], env=env, stdout=subprocess.PIPE, text=True) for me in 'ab']
    assert [o.communicate(timeout=300)[0] for o in runs]==['[0.0] 8\n', '[1.0] 8\n']

def asleep(kind, address, folder):
    "Start a driver whose task sleeps; its process, and the file where the task writes its id"
    driver,pid = folder/'driver.py',folder/'pid'
    driver.write_text(f'''
from types import SimpleNamespace
from tests.test_parallel import states
async def command(*args): return 'echo $$ > "{pid}.new"; mv "{pid}.new" "{pid}"; exec sleep 300'
def function(ctx):
    import os, time
    open({f'{pid}.new'!r}, 'w').write(str(os.getpid()))
    os.rename({f'{pid}.new'!r}, {str(pid)!r})
    time.sleep(300)
slow = function if 'dask' in {kind!r} else command # there the fork servers run already; `test_killed` has functions here
if __name__=='__main__': states(lambda pe: pe.environment_task(slow), {kind!r}, SimpleNamespace(scheduler_address={address!r}), {str(folder)!r}, 1)
''')
    return subprocess.Popen([sys.executable, driver], env={**os.environ, 'PYTHONPATH':str(root)}, stderr=subprocess.DEVNULL, start_new_session=True),pid

@pytest.fixture(scope='module')
def drivers(request, tmp_path_factory):
    "A driver for each test that wants one, all started at once"
    wants = [o.callspec for o in request.session.items if 'drivers' in getattr(o, 'fixturenames', ())]
    cluster = request.getfixturevalue('cluster').scheduler_address if any('dask' in o.params['kind'] for o in wants) else None
    res = {o.id: asleep(o.params['kind'], cluster, tmp_path_factory.mktemp('asleep')) for o in wants}
    yield res
    for p,_ in res.values():
        with suppress(ProcessLookupError): os.killpg(p.pid, signal.SIGKILL) # workers of a pool outlive a killed driver
        p.wait()

def ends(pid, secs):
    "Does a process end?"
    return in_time(lambda: subprocess.run(['ps', '-o', 'stat=', '-p', str(pid)], capture_output=True, text=True).stdout[:1] in ('','Z'), secs)

@pytest.mark.slow
@pytest.mark.parametrize('kind,sig,group', [
    ('dask','SIGKILL',False), ('asyncflow on dask','SIGKILL',False), # on the workers, too
    ('embedded','SIGINT',True), ('embedded','SIGTERM',True), long('embedded','SIGHUP',True), ('threads','SIGINT',True), long('processes','SIGINT',True),
    ('processes','SIGKILL',False), ('asyncflow','SIGINT',True), long('asyncflow','SIGKILL',False)])
def test_signals(kind, sig, group, drivers, request):
    "Stopped by the keyboard, a closed terminal or a kill, on any engine: the driver ends, and so does what it runs"
    p,pid = drivers[request.node.callspec.id]
    assert in_time(pid.exists, 120)
    task = int(pid.read_text())
    (os.killpg if group else os.kill)(p.pid, getattr(signal, sig))
    assert p.wait(30) and ends(task, 30)

@pytest.mark.slow
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
        from distributed import Client
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

@pytest.mark.slow
@pytest.mark.parametrize('kind', ['embedded',long('dask'),long('asyncflow')])
def test_example(kind, tmp_path):
    "The DQN on four environments learns to balance the pole, on each engine"
    p = subprocess.run([sys.executable, root/'examples'/'parallel_cartpole'/'run_me.py', kind, tmp_path/'run'], cwd=tmp_path, capture_output=True, text=True, timeout=900)
    assert p.returncode==0, p.stderr
    n = read_run(tmp_path/'run'/'experience')
    assert n['metric']>200 and len(BankFolder(tmp_path/'run'/'experience').merged())==n['iterations']*2400
    assert f'After {n["iterations"]} iterations' in p.stdout

def started(folder, body, name='driver.py', **env):
    "A program that has a `ParallelExperience` called `pe`, and what it prints"
    (folder/name).write_text(f"""
import asyncio, os, sys, time
from pathlib import Path
from concurrent.futures import ProcessPoolExecutor
from fastrl.memory.bank import create_experience
from fastrl.parallel import ParallelExperience
def env(ctx): return [create_experience(float(ctx.iteration), 0, 0., 0., True)]*3
def hangs(ctx):
    Path({str(folder/'begun')!r}).write_text(str(os.getpid()))
    time.sleep(300)
def run(pe, n=1): print(asyncio.run(pe.learn(n)).size, flush=True)
{body}
""")
    return subprocess.Popen([sys.executable, folder/name], env={**os.environ, 'PYTHONPATH':str(root), 'TMPDIR':str(folder), **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

endless = dict(python="""
    begin()
    while True: sum(range(1000))""", c="""
    begin()
    time.sleep(300)""", caught="""
    try:
        begin() # in here: the interrupt may come before `begin` has returned
        for _ in iter(int, 1): sum(range(1000)) # Python 3.11 may jump back to before a `try` that begins with `while`
    except KeyboardInterrupt: print('cleaned up', flush=True)""")

@pytest.mark.slow
@pytest.mark.parametrize('what,times', [('python',1), ('c',2), long('python',2), long('c',1), ('caught',1)])
@pytest.mark.parametrize('task', ['update_task',long("as_stop_criterion('m', 1)")])
def test_interrupted(what, times, task, tmp_path):
    "Ctrl-C in an update or a test ends the program within seconds; what was committed stays, and nothing else does"
    p = started(tmp_path, f"""
pe = ParallelExperience(work_dir={str(tmp_path/'run')!r})
pe.environment_task(env)
begin = Path({str(tmp_path/'begun')!r}).touch
@pe.{task}
def busy(ctx): {endless[what]}
run(pe)""")
    assert in_time((tmp_path/'begun').exists)
    if what=='c': time.sleep(.5) # it is asleep
    for _ in range(times):
        os.killpg(p.pid, signal.SIGINT)
        time.sleep(.3)
    try: out,err = p.communicate(timeout=60) # it would take 300 s
    finally: p.kill()
    assert p.returncode and 'KeyboardInterrupt' in err and out==('cleaned up\n' if what=='caught' else '')
    assert ('cannot be interrupted where it is now' in err)==(what=='c') or times==2
    assert sorted(o.name for o in (tmp_path/'run'/'experience').iterdir())==['000000.env.safetensors','memory.json']
    assert not [*tmp_path.glob('fastrl-*')]
    state,pe = one(tmp_path/'run', columns)
    assert state.iteration==0 and len(pe.memory)==5

@pytest.mark.slow
@pytest.mark.parametrize('task', ['environment_task','update_task'])
def test_unheard_interrupt(task, tmp_path):
    "Ctrl-C that does not wake the loop, as when it comes just before that falls asleep; here another thread takes the signal"
    p = started(tmp_path, f"""
import signal, threading
threading.Thread(target=time.sleep, args=(300,), daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]) # this thread, and those that it starts
pe = ParallelExperience(work_dir={str(tmp_path/'run')!r})
if {task=='update_task'}: pe.environment_task(env)
@pe.{task}
def busy(ctx):
    Path({str(tmp_path/'begun')!r}).touch()
    while True: sum(range(1000))
run(pe)""")
    assert in_time((tmp_path/'begun').exists)
    time.sleep(.5) # the loop is asleep
    p.send_signal(signal.SIGINT)
    try: assert 'KeyboardInterrupt' in p.communicate(timeout=60)[1] and p.returncode
    finally: p.kill()

@pytest.mark.slow
@pytest.mark.parametrize('method', ['fork',long('spawn'),long('forkserver')])
def test_orphans(method, tmp_path):
    "A driver that is killed while a pool of processes works for it: the next one resumes at once, and the pool ends"
    p = started(tmp_path, f"""
import multiprocessing
if __name__=='__main__':
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context({method!r})) as pool:
        pe = ParallelExperience(pool, work_dir={str(tmp_path/'run')!r})
        pe.environment_task(env)
        pe.environment_task(hangs)
        run(pe)""")
    assert in_time((tmp_path/'begun').exists)
    assert in_time((tmp_path/'run'/'experience'/'000000.env.safetensors').exists)
    workers = subprocess.run(['pgrep', '-g', str(p.pid)], capture_output=True, text=True).stdout.split()
    assert len(workers)>2
    p.kill()
    p.communicate(timeout=20)
    state,pe = one(tmp_path/'run', columns) # the folder's lock is free
    assert (state.collected, state.size)==({'one':2}, 5)
    assert in_time(lambda: len(subprocess.run(['pgrep', '-g', str(p.pid)], capture_output=True, text=True).stdout.split())==0, 10)
    assert ends((tmp_path/'begun').read_text(), 10)

@pytest.mark.slow
@pytest.mark.parametrize('method,runs', [('forkserver',1), *(long(o, 3) for o in ('forkserver','spawn','fork'))])
def test_start_methods(method, runs, tmp_path):
    "However processes begin, by the pool's choice or as Python's default: tasks run, their functions may be of the program itself, and it resumes"
    p = started(tmp_path, f"""
import multiprocessing
def own(ctx): return env(ctx)+[create_experience(-1., 0, 0., 0., True)]
if __name__=='__main__':
    multiprocessing.set_start_method({method!r})
    for at,n in [('run',1), ('run',2), ('other',1)][:{runs}]:
        context = multiprocessing.get_context({method!r}) if n==1 else None
        pool = ProcessPoolExecutor({min(runs, 2)}, mp_context=context) if at=='run' else None # else the engine of `ParallelExperience`
        pe = ParallelExperience(pool, work_dir=f'{tmp_path}/{{at}}')
        pe.environment_task(env)
        pe.environment_task(own)
        @pe.update_task
        def update(ctx): return {{'n':len(ctx.bank)}}
        run(pe, n)
        if pool: print(pool._mp_context.get_start_method()), pool.shutdown()
""")
    out,err = p.communicate(timeout=120)
    assert (out.split(), err)==(['7',method,'14',method,'7'][:2*runs], '')

@pytest.mark.slow
@pytest.mark.parametrize('method', ['forkserver',long('spawn'),long('fork')])
def test_driver_in_a_new_process(method, tmp_path):
    "A program may have its driver in another process, which calls the script `__mp_main__` if it was not forked: functions and classes of the script still reach the tasks"
    p = started(tmp_path, f"""
import multiprocessing, pickle
class Reward:
    def __init__(self, of): self.of = of
def reward(x): return pickle.loads(pickle.dumps(Reward(x))).of
def own(ctx, add): return [create_experience(0., 0, reward(2.)+add.of, 0., True)]
def drive():
    pe = ParallelExperience(work_dir={str(tmp_path/'run')!r})
    pe.environment_task(own, add=Reward(1.))
    @pe.update_task
    def update(ctx): print(ctx.bank[0].reward, flush=True)
    run(pe)
if __name__=='__main__':
    p = multiprocessing.get_context({method!r}).Process(target=drive)
    p.start()
    p.join()""")
    assert p.communicate(timeout=120)==('3.0\n1\n', '')

@pytest.mark.long
def test_swept(tmp_path):
    "What stopped and killed drivers leave is removed by the next one, also by a driver whose work is not in the same place"
    (tmp_path/'fastrl-notes').mkdir() # of somebody else
    for n,sig in ((9,signal.SIGKILL), (18,signal.SIGTERM)):
        p = started(tmp_path, f"pe = ParallelExperience(work_dir={str(tmp_path/'run')!r})\npe.environment_task(hangs)\nrun(pe, {n})")
        assert in_time((tmp_path/'begun').exists)
        for o in ('.new-x','quarantine'): (tmp_path/'run'/'experience'/o).mkdir(exist_ok=True)
        for o in ('a.1.2.new','quarantine/b.1.2.new'): (tmp_path/'run'/'experience'/o).touch()
        p.send_signal(sig)
        p.communicate(timeout=20)
        (tmp_path/'begun').unlink()
        assert len([*tmp_path.glob('fastrl-*')])==3
        for at in ('elsewhere','run') if sig==signal.SIGKILL else ['run']:
            p = started(tmp_path, f"pe = ParallelExperience(work_dir={str(tmp_path/at)!r})\npe.environment_task(env)\nrun(pe, {n})")
            assert p.communicate(timeout=60)[1]==''
            assert [o.name for o in tmp_path.glob('fastrl-*')]==['fastrl-notes']
        assert not [*(tmp_path/'run').rglob('*new*')]

@pytest.mark.long
def test_scheduler_killed(tmp_path):
    "The error says what happened and where to resume; the next run does"
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    dask = str(Path(sys.executable).parent/'dask')
    parts = [subprocess.Popen([dask, *o.split(), '--no-dashboard'], cwd=tmp_path, stderr=subprocess.DEVNULL)
             for o in (f'scheduler --port {port}', f'worker tcp://127.0.0.1:{port} --nworkers 1 --nthreads 4')]
    try:
        from distributed import Client
        with Client(f'tcp://127.0.0.1:{port}', timeout=60) as client:
            pe = ParallelExperience(client, work_dir=tmp_path/'run')
            def env(ctx):
                if ctx.iteration: time.sleep(60)
                return [create_experience(0., 0, 0., 0., True)]
            pe.environment_task(env)
            @pe.update_task
            def update(ctx): parts[0].kill()
            with pytest.raises(RuntimeError, match='the engine dropped a task.*start the engine again.*resumes'): asyncio.run(pe.learn(3))
    finally:
        for o in parts: o.kill(), o.wait()
    state,pe = one(tmp_path/'run', columns, 2)
    assert (state.iteration, len(pe.memory))==(1, 3)

def killed(times, seed, folder):
    "A driver that is killed at any moment loses no committed bank, leaves no child, and resumes"
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
        first = p.stdout.readline() # of the iteration that it resumed with
        time.sleep(rng.random())
        p.kill()
        told = [tuple(map(int, o.split())) for o in (first+p.stdout.read()).splitlines(True) if o[-1]=='\n']
        p.wait()
        p.stdout.close()
        n = told[-1][0]+1
        assert told==[(i, 6*(i+1), 3*(i+1)*(i+2)) for i in range(told[0][0], n)] # the memory grows by all that came, and the policy by each update once
        assert n<=read_run(banks.folder)['iterations']<=n+1
        assert [o.name for o in banks.files if int(o.name[:6])<n]==[f'{i:06d}.env_{j}.safetensors' for i in range(n) for j in (1,2,3)]
        for o in banks.files:
            i,j = int(o.name[:6]),int(o.name.split('_')[1].split('.')[0])
            assert [(e.state, e.action) for e in ExperienceBank.load(o)]==[(i, j)]*j
        memory = ExperienceBank.load(banks.folder/'memory.json')
        assert len(memory)>=6*n and held(memory)==held(banks.merged())[:len(memory)]
        def runs(o): return subprocess.run(['pgrep', '-g', o.name, '-r', 'R,S,D'], stdout=subprocess.DEVNULL).returncode==0
        assert in_time(lambda: not any(map(runs, pids.iterdir())), 20), 'a child still runs'
        for o in pids.iterdir(): o.unlink()
    assert told[0][0]>times-2 # each resumed

@pytest.mark.slow
def test_killed(tmp_path): killed(2, 0, tmp_path)

@pytest.mark.long
def test_killed_often(tmp_path): killed(60, 1, tmp_path)

@pytest.mark.slow
def test_results_run_code(tmp_path):
    "What a worker of Dask sends back can run code on the driver: the documentation says so beside the other direction"
    protocol = pytest.importorskip('distributed.protocol')
    class Sent:
        def __reduce__(self): return os.mkdir, (str(tmp_path/'made'),)
    protocol.deserialize(*protocol.serialize(Sent()))
    assert (tmp_path/'made').is_dir()
    text = (Path(__file__).parent.parent/'nbs/12_parallel.ipynb').read_text()
    assert 'run code on its workers, and a worker can run code on the driver, which unpickles the results' in text
