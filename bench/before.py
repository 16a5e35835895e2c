"""The library beside an earlier commit of itself, both in one process, in turns: `python -m bench.before [COMMIT]`

Prints the time of each as a share of what the earlier one took for the same, and that of each of several batches at once as a
share of what it took for one (for the prioritized ones, with its update)."""
import importlib.util, io, subprocess, sys, tarfile
from importlib import import_module
from pathlib import Path
from statistics import median
import torch
from .measure import time_turns
from .priority import ended
from .rows import make_rows

def full_name(commit):
    "The hash of `commit`, which may be a name that moves on"
    found = subprocess.run(['git','rev-parse','--verify','--quiet','--end-of-options',commit+'^{commit}'], capture_output=True, text=True)
    if found.returncode: sys.exit(f'there is no commit {commit!r}: `python -m bench.before [COMMIT]`')
    return found.stdout.strip()

def earlier(commit, folder='build/before'):
    "Import the package of `commit` as `fastrl_before`"
    commit = full_name(commit)
    folder = Path(folder)/commit
    if not folder.exists():
        packed = subprocess.run(['git','archive',commit,'fastrl'], check=True, capture_output=True).stdout
        tarfile.open(fileobj=io.BytesIO(packed)).extractall(folder, filter='data')
    spec = importlib.util.spec_from_file_location('fastrl_before', folder/'fastrl/__init__.py', submodule_search_locations=[str(folder/'fastrl')])
    sys.modules['fastrl_before'] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

def memory(package, rows, prioritized=False, **kwargs):
    if prioritized: kwargs['sampler'] = import_module(f'{package}.memory.sample').Prioritized(alpha=.6, beta=.4, seed=0)
    er = import_module(f'{package}.memory.replay').ExperienceReplay(256, len(rows['reward']), 1, seed=0, **kwargs)
    for i in range(0, len(rows['reward']), 4096): er+{k: v[i:i+4096] for k,v in rows.items()}
    return er

def dozen(er, k):
    def f():
        for _ in er.sample(n_batches=k): pass
    return f

def turn(er, td):
    def f():
        batch,idxs = er.sample()
        er.update_td(td, idxs, batch['serial'])
    for _ in range(5000): f()
    return f

kinds = {'one batch of 256': (lambda er: er.sample, False, {}), 'prioritized, with update': (lambda er: turn(er, torch.rand(256, 1)), True, {}),
         '3-step returns': (lambda er: er.sample, False, dict(n_step=3))}

dozens = 8,16,32

def main(commit='4c13446', n=10**6, reps=51):
    if commit in ('-h','--help'): return print(__doc__)
    torch.set_num_threads(1)
    earlier(commit)
    rows,fs = {k: ended(n) if k=='3-step returns' else make_rows('small', n) for k in kinds},{}
    for k,(make,*how) in kinds.items():
        for p in ('fastrl_before','fastrl'): fs[p,k] = make(er := memory(p, rows[k], how[0], **how[1]))
        for n in dozens: fs['fastrl',k,n] = dozen(er, n)
    times,failed = time_turns(fs, reps)
    assert not failed, failed
    for k in kinds:
        was,now = times['fastrl_before',k],times['fastrl',k]
        print(f'{k}: {median(was):.1f} µs → {median(now):.1f} µs, {median(b/a for a,b in zip(was, now)):.2f}')
        for n in dozens:
            each = [o/n for o in times['fastrl',k,n]]
            print(f'  each of {n} at once: {median(each):.1f} µs, {median(b/a for a,b in zip(was, each)):.2f}')

if __name__=='__main__': main(*sys.argv[1:])
