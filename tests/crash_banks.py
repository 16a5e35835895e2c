"""Kill what saves, commits and merges banks, again and again, and look at what loads afterwards.

`python tests/crash_banks.py 20 0 9`: 20 writers, one after the other, each forked from this warm process, each going on where the
last one's files stand, each killed by SIGKILL at a random moment, the seed is 0; then one that is killed at each 9th line of a commit."""
import itertools, logging, os, random, signal, sys, tempfile
from pathlib import Path
import fastrl, torch
from crash import in_child, killed
from fastrl.bank_folder import BankFolder
from fastrl.memory.bank import ExperienceBank, create_experience, merge_banks
from fastrl.parallel import Ctx

def experience(k): return create_experience([float(k)]*3, k, k/2, [0.]*3, k%4==3, {'k':k})
def rows(b): return [(e.action, e.info) for e in b]
def expected(ks): return [(k, {'k':k}) for k in ks]
def brought(n): return expected(j for k in range(n) for j in (k, 1000+k)) # by the first `n` tasks

def raw_of(*ks, at):
    "The file of a bank, as a task leaves it"
    b = ExperienceBank()
    b.add_batch([experience(k) for k in ks])
    return Path(b.save(at, 'task.pkl')).read_bytes()

def write(folder, tell):
    "Go on from what is in `folder`: save, commit, merge; `tell` is told before and after each"
    def told(what, f, *args): os.write(tell, what.encode()); f(*args); os.write(tell, what.upper().encode())
    run = BankFolder(folder/'run')
    run.sweep()
    banks = [ExperienceBank.load(folder/o) if (folder/o).exists() else ExperienceBank(session_id=o) for o in ('a.pkl','b.safetensors')]
    for k in itertools.count(len(run.files)):
        for b,name,of in zip(banks, ('a.pkl','b.safetensors'), 'ab'):
            if len(b)==k: b.add(experience(k))
            told(of, b.save, folder, name)
        told('c', run.commit, Ctx(k, 'env'), {'x.pkl': raw_of(k, 1000+k, at=folder)})
        told('g', lambda: (run.gather(), run.save_memory()))
        told('m', lambda: merge_banks(run.files).save(folder, 'merged.safetensors'))

def check(folder, least, most):
    "What was promised is there, whole, and nothing of it twice; how far each act has come"
    run,n = BankFolder(folder/'run'),{}
    for name,of in (('a.pkl','a'), ('b.safetensors','b')):
        b = ExperienceBank.load(folder/name) if (folder/name).exists() else ExperienceBank()
        n[of] = len(b)
        assert rows(b)==expected(range(len(b))), f'{name} lost rows or has some twice'
    n['c'] = len(run.files)
    assert [o.name for o in run.files]==[f'{k:06d}.env.safetensors' for k in range(n['c'])]
    assert rows(run.merged())==rows(BankFolder(folder/'run').gather()[0])==brought(n['c'])
    all = run.files
    for path,of in ((folder/'run'/'memory.json','g'), (folder/'merged.safetensors','m')):
        b = ExperienceBank.load(path) if path.exists() else ExperienceBank()
        n[of] = len(b)//2
        assert rows(b)==brought(n[of]), f'{path.name} is not what was committed'
        if path.exists(): all.append(path)
    if all: assert sorted(k for k,_ in rows(merge_banks(all)))==sorted(k for k,_ in brought(n['c'])) # merged again with its parts
    for k,o in n.items(): assert least[k]<=o<=most[k], f'{k}: {o} are there, {least[k]} were promised and {most[k]} begun'
    return n

def random_moments(kills, seed):
    rng,during = random.Random(seed),{}
    for i in range(kills):
        if i%20==0: d,n = tempfile.TemporaryDirectory(),dict.fromkeys('abcgm', 0)
        folder = Path(d.name)
        told = killed(write, folder, rng.random()*.15).decode()
        if told[-1:].islower(): during[told[-1]] = during.get(told[-1], 0)+1
        least,most = ({k: n['c']+told.count(o) if (o := case(k)) in told else n[k] for k in n} for case in (str.upper, str.lower))
        n = check(folder, least, most)
    return during

def commit_until(line, folder, _):
    "Commit, and be killed at this line of the library"
    count = itertools.count(1)
    def trace(frame, event, _):
        if not frame.f_code.co_filename.startswith(fastrl.__path__[0]+os.sep): return
        if event=='line' and next(count)==line: os.kill(os.getpid(), signal.SIGKILL)
        return trace
    run,files = BankFolder(folder/'run'),{'x.pkl': raw_of(1, 1001, at=folder), 'y.pkl': raw_of(2, 1002, at=folder)}
    sys.settrace(trace)
    run.commit(Ctx(1, 'env'), files)
    run.gather(), run.save_memory()
    os._exit(0)

def each_line(step):
    "A commit and a merge that are killed at any line leave the bank or none, and can be done again"
    for line in itertools.count(1, step):
        with tempfile.TemporaryDirectory() as d:
            folder = Path(d)
            BankFolder(folder/'run').commit(Ctx(0, 'env'), {'x.pkl': raw_of(0, 1000, at=folder)})
            (pid,read),whole = in_child(commit_until, line, folder),expected([0,1000,1,1001,2,1002])
            ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            os.close(read)
            run = BankFolder(folder/'run')
            there = run.has(Ctx(1, 'env'))
            assert rows(run.merged())==(whole if there else whole[:2]), line
            if (folder/'run'/'memory.json').exists(): assert there and rows(ExperienceBank.load(folder/'run'/'memory.json'))==whole, line
            run.sweep()
            assert {o.name for o in run.folder.iterdir()}<={'000000.env.safetensors','000001.env.safetensors','memory.json'}, line
            run.commit(Ctx(1, 'env'), {'x.pkl': raw_of(1, 1001, at=folder), 'y.pkl': raw_of(2, 1002, at=folder)})
            assert run.gather()[1]==[] and rows(run.gather()[0])==rows(ExperienceBank.load(run.save_memory()))==whole, line
            if ended==0: return line//step

if __name__=='__main__':
    torch.set_num_threads(1)
    logging.disable()
    kills,seed,step = map(int, sys.argv[1:])
    during,lines = random_moments(kills, seed),each_line(step)
    print(f'{kills} kills, in the middle of {during}, and {lines} at lines of a commit; each promise was kept')
    if sum(during.values())<kills//10 or lines<5: sys.exit('hardly any kill hit a writer in the middle: the check means nothing')
