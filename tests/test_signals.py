"A Ctrl-C while something is compiled for the first time waits until it is compiled"
import copy, os, signal, threading
from contextlib import contextmanager
import numpy as np, pytest, torch
from numba.core import event
from fastrl import ExperienceReplay
from fastrl.core import compiled, signals_held

@pytest.fixture(autouse=True)
def ctrl_c():
    "Ctrl-C raises, also where the tests run in the background of a shell, which lets it be ignored"
    was = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, was)

class Press(event.Listener):
    "Press Ctrl-C whenever numba begins to compile something"
    def on_start(self, e): signal.raise_signal(signal.SIGINT)
    def on_end(self, e): pass

@contextmanager
def pressing(handler=signal.default_int_handler):
    was = signal.signal(signal.SIGINT, handler)
    try:
        with event.install_listener('numba:compile', Press()): yield
        assert signal.getsignal(signal.SIGINT) is handler
    finally: signal.signal(signal.SIGINT, was)

def loops():
    "A loop, and one that calls it; without a file numba keeps none of it for the next process"
    env = dict(compiled=compiled)
    exec('inner = compiled(lambda n: n+1); outer = compiled(lambda n: inner(n)*2)', env)
    return env['inner'],env['outer']

def test_interrupted_while_compiling():
    "Both are whole when the interrupt comes, and run the next time"
    inner,outer = loops()
    with pressing():
        with pytest.raises(KeyboardInterrupt): outer(3)
        assert (len(inner.loop.signatures), len(outer.loop.signatures), outer(3))==(1, 1, 8)

def busy(n):
    "Two arrays, after a while"
    x = 1
    for i in range(n): x = (x*6364136223846793005+i)%2147483647
    return np.full(2, x),np.arange(3)

def test_interrupted_in_a_loop():
    "Numba loses an exception between two arrays: a `SystemError` came, which nobody catches who waits for Ctrl-C"
    f = compiled(busy)
    f(1)
    for _ in range(3):
        pressed = threading.Timer(.02, os.kill, (os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            pressed.start()
            while True: f(3*10**7)
        pressed.join()

def test_handlers():
    "A handler that raises nothing runs once per signal, after what was compiled; other signals wait, too"
    came,f = [],loops()[1]
    with pressing(lambda n,_: came.append((n, len(f.loop.signatures)))): assert f(3)==8
    assert came==[(signal.SIGINT,1)]*2
    was = signal.signal(signal.SIGTERM, lambda n,_: came.append(n))
    try:
        with signals_held():
            signal.raise_signal(signal.SIGTERM)
            assert len(came)==2
        assert came[2:]==[signal.SIGTERM]
    finally: signal.signal(signal.SIGTERM, was)

def test_errors():
    "What cannot be compiled is an error, and leaves the handlers as they were"
    was = signal.getsignal(signal.SIGINT)
    with pytest.raises(Exception, match='TypingError|No implementation'): compiled(lambda n: n+'a')(3)
    assert signal.getsignal(signal.SIGINT) is was
    with pytest.raises(ZeroDivisionError), signals_held(): 1/0
    assert signal.getsignal(signal.SIGINT) is was

def test_other_threads():
    "Only the main thread runs handlers; others compile as they are"
    res = []
    t = threading.Thread(target=lambda: res.append(loops()[1](3)))
    t.start(); t.join()
    assert res==[8]

@pytest.mark.parametrize('closed', [True,False])
@pytest.mark.parametrize('exc', [KeyboardInterrupt,RuntimeError])
def test_thread_of_a_loader_does_not_start(exc, closed, monkeypatch):
    "A Ctrl-C meanwhile, or a system that starts no thread, comes out as it is, and the next batch as if nothing was"
    memory = ExperienceReplay(bs=4, max_sz=50, warmup_sz=1, seed=0)+dict(x=torch.arange(50.))
    plain,start = copy.deepcopy(memory),threading.Thread.start
    def interrupted(thread):
        if exc is RuntimeError: raise RuntimeError("can't start new thread")
        signal.raise_signal(signal.SIGINT)
        start(thread)
    loader = memory.loader()
    with monkeypatch.context() as m, pytest.raises(exc):
        m.setattr(threading.Thread, 'start', interrupted)
        next(loader)
    if closed:
        loader.close()
        loader = memory.loader()
    with loader: assert torch.equal(next(loader)[1], plain.sample()[1])
