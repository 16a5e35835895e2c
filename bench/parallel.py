"What it costs to run a task in a process of its own, here and on a Dask cluster, beside executors that promise less"
import multiprocessing as mp, os, subprocess, sys, tempfile, weakref
from itertools import count
from pathlib import Path
import cloudpickle
from fastrl.bank_folder import BankFolder
from fastrl.memory.bank import ExperienceBank, create_experience
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

class Grown:
    "A folder after `n` iterations of four environments; a call is the next one's part of the driver: commit, merge, save, read"
    def __init__(self, n, rows):
        self.tmp,self.i = tempfile.TemporaryDirectory(),count()
        self.banks = BankFolder(f'{self.tmp.name}/run')
        bank = ExperienceBank()
        bank.add_batch([create_experience([1.]*4, 0, 1., [1.]*4, False) for _ in range(rows)])
        self.bank = bank
        for _ in range(n): self()

    def __call__(self):
        i = next(self.i)
        for j in range(4):
            self.bank.id = f'{i}.{j}' # each has experiences of its own
            raw = Path(self.bank.save(self.tmp.name, 'bank.safetensors')).read_bytes()
            self.banks.commit(Ctx(i, f'env {j}'), {'bank.safetensors': raw})
        self.banks.gather()
        self.banks.save_memory()
        self.banks.reader(0).sample_batch(32)

def written():
    "Bytes that this process wrote so far, on Linux"
    return int(dict(o.split(': ') for o in Path('/proc/self/io').read_text().splitlines())['wchar'])

def loads(rows=100, ns=(500,50)):
    def load(n):
        grown = Grown(n, rows)
        return lambda: len(ExperienceBank.load(grown.banks.folder/'memory.json'))
    return {f'after {n} iterations': load(n) for n in ns}

def iterations(rows=100, ns=(500,50,5)): return {f'after {n} iterations': Grown(n, rows) for n in ns}

brought = 'four environments bring 100 experiences each; they are committed, merged, `memory.json` is written, and a batch is drawn'
runs = dict(goal=1.5, growth=True, beside=('after 50 iterations',), turns=21, toy=dict(rows=3, ns=(4,3,2)))
cases = [
    Case('Runs: the driver\'s part of an iteration after 500, against after 5', iterations, unit='ms', note=brought, **runs),
    Case('Runs: what the driver writes in an iteration after 500, against after 5', iterations, unit='kB', clock=written, note=brought, **runs),
    Case('Runs: load the memory of 500 iterations, against 50', loads, goal=15, growth=True, unit='ms', turns=7, toy=dict(rows=3, ns=(4,2)), note='the time follows the banks: 2,000 and 200, of 100 experiences each'),
    Case('Tasks: one in a process of its own', embedded, beside=('fastrl, a command','forkserver'), unit='ms', turns=11, note='ours sends a function, keeps a deadline, kills leftover processes, and brings a bank back as a file; the forkserver of `multiprocessing` only forks and ends, with the same modules imported'),
    Case('Tasks: one on a Dask cluster', on_dask, beside=('Dask',), unit='ms', turns=31, note='ours runs the task in a process of its own on the worker, Dask in a thread of the worker'),
]
