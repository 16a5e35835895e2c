"""Something to time in a process of its own, maybe of another environment

Each process says what its store takes of the memory, and several of them are timed in turns as if they were one process."""
import ctypes, gc, json, os, subprocess, sys, weakref
from importlib import import_module
from pathlib import Path
from .measure import calls_in, clocked, reason

root = Path(__file__).parents[1]
torchrl_python = root/'.venv-torchrl'/'bin'/'python' # its wheel fits one torch only

def resident():
    "Bytes of this process that are in memory: its own, and those that it may share. (0, 0) where nobody tells"
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0) # what was freed goes back
        kB = {k: int(v.split()[0]) for k,_,v in (o.partition(':') for o in Path('/proc/self/status').read_text().splitlines()) if k.startswith('Rss')}
    except (OSError, AttributeError): return 0,0
    return kB['RssAnon']*1024,(kB['RssFile']+kB['RssShmem'])*1024

def more(before):
    "Bytes since then"
    return tuple(a-b for a,b in zip(resident(), before))

class Apart:
    """A process of its own, maybe of another environment, that waits for its turns

    It imports what is needed once. Then it forks for each thing it times, so that the memory of each begins anew."""
    def __init__(self, python=sys.executable):
        env = {**os.environ, 'PYTHONPATH':str(root), 'OMP_NUM_THREADS':'1', 'PYTHONWARNINGS':'ignore'}
        self.p = subprocess.Popen([python, '-m', f'{__package__}.turns'], cwd=root, env=env, text=True, bufsize=1, start_new_session=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.close = weakref.finalize(self, close, self.p)

    def begin(self, module, make, args, tiny=None):
        "`make(*args)` of one of our modules, without waiting; `tiny` are arguments for a first try that loads and compiles"
        self.nbytes = None
        self.say(begin=(module, make, args, tiny))
        return self
    def ready(self):
        "Wait until it is made: bytes that it takes"
        if self.nbytes is None: self.nbytes = self.answer()
        return self.nbytes
    def calls_in(self, secs, warm):
        self.ready()
        self.say(secs=secs, warm=warm)
        return self.answer()
    def clocked(self, k):
        self.say(k=k)
        return self.answer()
    def end(self):
        "Drop what was made"
        if self.nbytes is None: # it did not come to it
            try: self.ready()
            except RuntimeError: return
        self.say(end=True)
        self.answer()

    def say(self, **what):
        try: print(json.dumps(what), file=self.p.stdin, flush=True)
        except BrokenPipeError: pass # the answer says why
    def answer(self):
        said = self.p.stdout.readline()
        if not said: raise RuntimeError(f'its process ended with {self.p.wait()}')
        said = json.loads(said)
        if 'failed' in said: raise RuntimeError(said['failed'])
        return said['ok']

def close(p):
    p.stdin.close()
    try: p.wait(5)
    except subprocess.TimeoutExpired: p.kill()
    p.wait()
    p.stdout.close()

def serve():
    import torch
    torch.set_num_threads(1)
    out,tried = os.fdopen(os.dup(1), 'w', buffering=1),set()
    os.dup2(2, 1) # what others print is no answer
    def answer(**said): print(json.dumps(said), file=out)
    for line in sys.stdin:
        if not (job := json.loads(line).get('begin')): continue # for one that failed
        try:
            module,make,args,tiny = job
            f = getattr(import_module(f'.{module}', __package__), make)
            if tiny is not None and (module, make) not in tried: drop(once(f(*tiny))); tried.add((module, make)) # loads, and compiles
        except Exception as e: answer(failed=reason(e)); continue
        if not (child := os.fork()):
            try: turns(f, args, tiny, answer)
            except BaseException as e: answer(failed=reason(e))
            finally: out.flush(); os._exit(0)
        if code := os.waitpid(child, 0)[1]: answer(failed=f'its process ended with {os.waitstatus_to_exitcode(code)}')

def turns(make, args, tiny, answer):
    "In a process of its own: make it, say what it takes, and run it as often as asked"
    if tiny is not None: drop(once(make(*tiny))) # a fork has not touched yet what others have loaded
    before = resident()
    f = once(make(*args))
    nbytes = sum(more(before))+getattr(f, 'nbytes', 0)
    gc.freeze() # a collection should not walk through all that was imported
    answer(ok=nbytes)
    for line in sys.stdin:
        o = json.loads(line)
        if 'end' in o: break
        answer(ok=clocked(f, o['k']) if 'k' in o else calls_in(f, **o))
    drop(f)
    answer(ok=None)

def once(f):
    "`f` that was called, and is no text that says why there is none"
    if isinstance(f, str): raise RuntimeError(f)
    f()
    return f

def drop(f): getattr(f, 'close', lambda: None)()

if __name__=='__main__': serve()
