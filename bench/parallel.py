"What it costs to run a task in a process of its own, here and on a Dask cluster, beside executors that promise less"
import multiprocessing as mp, os, subprocess, sys, weakref
import cloudpickle
from fastrl.memory.bank import create_experience
from fastrl.parallel import Ctx, run_task
from .measure import Case

def collect(ctx): return [create_experience(0., 0, 0., 0., True)]
def nothing(): os._exit(0)
def one(): return [create_experience(0., 0, 0., 0., True)]

def asked():
    "As `ParallelExperience` sends it"
    ctx = Ctx(0, 'env')
    return cloudpickle.dumps((collect, ctx)),ctx

def embedded():
    server = mp.get_context('forkserver')
    server.set_forkserver_preload(['fastrl.parallel','bench.run'])
    task,ctx = asked()
    def ours(): assert run_task(task, ctx)['code']==0
    def command(): assert run_task('true', ctx)['code']==0
    def bare():
        p = server.Process(target=nothing)
        p.start()
        p.join()
    def python(): subprocess.run([sys.executable, '-c', 'import fastrl.parallel'], check=True)
    return {'fastrl':ours, 'fastrl, a command':command, 'forkserver':bare, 'python that imports torch':python}

def on_dask():
    from distributed import Client, LocalCluster
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=':0')
    client = Client(cluster)
    engine,(task,ctx) = client.get_executor(pure=False),asked()
    def ours(): assert engine.submit(run_task, task, ctx).result()['code']==0
    def bare(): client.submit(one, pure=False).result()
    def close(): client.close(); cluster.close()
    weakref.finalize(ours, close) # when nobody measures any more
    return {'fastrl':ours, 'Dask':bare}

cases = [
    Case('Tasks: one in a process of its own', embedded, beside=('fastrl, a command','forkserver'), unit='ms', turns=11, note='ours sends a function, keeps a deadline, kills leftover processes, and brings a bank back as a file; the forkserver of `multiprocessing` only forks and ends, with the same modules imported'),
    Case('Tasks: one on a Dask cluster', on_dask, beside=('Dask',), unit='ms', turns=31, note='ours runs the task in a process of its own on the worker, Dask in a thread of the worker'),
]
