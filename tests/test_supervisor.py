"Whatever a child does, nothing of it is left: it forks, leaves its group, kills its supervisor, closes its files"
import multiprocessing as mp, os, random, shutil, signal, subprocess, sys, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import pytest
from fastrl.supervisor import fork_server, run_command, run_function

root = Path(__file__).parent.parent
me = f'.{os.getpid():07d}' # processes of other runs are not taken for ours
def gone(what, secs=5.):
    "Does no process with `what` in its command line run any more?"
    until = time.monotonic()+secs
    while (found := subprocess.run(['pgrep', '-fc', what+me], capture_output=True, text=True).stdout.strip()!='0') and time.monotonic()<until: time.sleep(.02)
    return not found

def wait_for(path, secs=60):
    until = time.monotonic()+secs
    while not path.exists():
        assert time.monotonic()<until, f'{path} does not come'
        time.sleep(.02)

def driver(folder, code, *args, **kwargs):
    "What a program prints that runs in `folder`"
    (folder/'driver.py').write_text(code)
    return subprocess.run([sys.executable, folder/'driver.py', *args], capture_output=True, text=True, timeout=100, env={**os.environ, 'PYTHONPATH':str(root)}, **kwargs)

# %% What a function may do
@pytest.mark.parametrize('code,want', [(0,0), (5,5), (None,0), ('bye',1), (True,1), (2**40,255)])
def test_exits(code, want):
    res = run_function(sys.exit, code)
    assert (res[0], res[2]) == (want, 'bye\n' if code=='bye' else '')

def test_closes():
    "stdout and stderr that it closes or replaces"
    def closes(): sys.stdout.close(); sys.stderr.close(); raise ValueError('on purpose')
    def nowhere(): sys.stdout = None; sys.exit(3)
    assert [run_function(o)[0] for o in (closes,nowhere)]==[1,3]

def test_removes(tmp_path):
    "The folder where it runs"
    (d := tmp_path/'d').mkdir()
    def removes(): shutil.rmtree(os.getcwd()); sys.stderr.write('hello\n'); sys.stderr.flush(); os._exit(3)
    assert run_function(removes, cwd=d)==(3, '', 'hello\n')

def test_surroundings(tmp_path, monkeypatch):
    "It has the variables and the path of now, not those of when the fork server began; stdin is empty"
    assert run_function(print)[0]==0 # the server runs
    (tmp_path/'beside.py').write_text('def collect(): import os, sys; print(os.environ["FASTRL_TRIAL"], repr(sys.stdin.read()))')
    monkeypatch.setenv('FASTRL_TRIAL', 'new')
    with monkeypatch.context() as m:
        m.syspath_prepend(str(tmp_path))
        import beside
        assert run_function(beside.collect)==(0, "new ''\n", '')
    assert "No module named 'beside'" in run_function(beside.collect)[2]

def test_pool(tmp_path):
    "A pool in a task finds what a script defines"
    out = driver(tmp_path, '''
import multiprocessing as mp
from fastrl.supervisor import run_function
def twice(x): return 2*x
def pooled():
    with mp.get_context('fork').Pool(2) as pool: print(sum(pool.map(twice, range(3))))
if __name__=='__main__': print(run_function(pooled))
''')
    assert out.stdout=="(0, '6\\n', '')\n", out.stderr

# %% What a child leaves
def test_children(tmp_path):
    "In its group, by fork and by exec"
    def lasting():
        mp.get_context('fork').Process(target=time.sleep, args=(300,)).start()
        subprocess.Popen(['sleep', '299'+me])
        Path('pid').write_text(str(os.getpid()))
    assert run_function(lasting, cwd=tmp_path)[0]==0 and gone('sleep 299', 0)
    assert subprocess.run(['pgrep', '-g', (tmp_path/'pid').read_text(), '-r', 'R,S,D']).returncode==1 # a zombie may be

def test_leaves_group():
    "In a session of its own, and as an orphan of an orphan"
    def leaves():
        subprocess.Popen(['sleep', '297'+me], start_new_session=True)
        subprocess.Popen(['/bin/sh', '-c', f'(setsid sleep 297{me} &)'])
        while subprocess.run(['pgrep', '-fc', '^sleep 297'+me], capture_output=True, text=True).stdout!='2\n': time.sleep(.02)
    assert run_function(leaves)[0]==0 and gone('sleep 297')

def test_many():
    "The dead do not pile up"
    def many():
        [subprocess.run(['/bin/sh', '-c', 'sleep 0 &']) for _ in range(50)]
        time.sleep(.2)
        print(subprocess.run(['ps', '-o', 'stat=', '--ppid', str(os.getppid())], capture_output=True, text=True).stdout)
    assert run_function(many)[1].count('Z')<20

def test_kills_supervisor():
    def kills(): os.kill(os.getppid(), signal.SIGKILL); os.execvp('sleep', ['sleep','296'+me])
    assert run_function(kills)[0]==-9 and gone('sleep 296')

def test_hangs():
    "With a background process"
    def hangs(): subprocess.Popen(['sleep', '300'+me]); time.sleep(300)
    assert run_function(hangs, timeout=.5)[0]=='late'
    assert run_command(['sh', '-c', f'sleep 300{me} & sleep 300{me}'], '.', timeout=.5)[0]=='late'
    assert gone('sleep 300', 0)

# %% The fork server
def test_server_killed(tmp_path):
    "Between two tasks, or during one, which ends as if nothing had happened"
    assert run_function(sys.exit, 5)[0]==5
    fork_server.process.kill()
    fork_server.process.wait()
    assert run_function(sys.exit, 5)[0]==5
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(run_command, ['/bin/sh', '-c', 'touch begun; while ! test -e killed; do sleep .02; done; exit 6'], tmp_path)
        wait_for(tmp_path/'begun')
        fork_server.process.kill()
        fork_server.process.wait()
        (tmp_path/'killed').touch()
        assert late.result()[0]==6

def test_no_server(monkeypatch):
    "A Python that does not start"
    monkeypatch.setattr(sys, 'executable', '/bin/false')
    monkeypatch.setattr(fork_server, 'socket', None)
    with pytest.raises((OSError,RuntimeError), match='start'): run_command(['true'], '.')
    fork_server.socket = None

def test_server_is_light():
    "It imports what a task asks for, and nothing else of ours"
    def loaded(): print([o for o in ('torch','fastrl.memory','fastrl.engines') if o in sys.modules])
    fork_server.socket = None # of other tests
    assert run_function(loaded)[1]=='[]\n'
    assert run_function(loaded, preload=['fastrl.memory'])[1]=="['fastrl.memory']\n"

# %% Programs
def test_forks(tmp_path):
    "A program that forks while a task runs, and blocks signals: the task is killed when nobody wants it, and the next one runs"
    out = driver(tmp_path, '''
import multiprocessing as mp, os, signal, sys, threading, time
from fastrl.supervisor import run_command
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
forked = threading.Event()
def later():
    while not os.path.exists('begun'): time.sleep(.02)
    mp.get_context('fork').Process(target=time.sleep, args=(60,), daemon=True).start()
    forked.set()
threading.Thread(target=later).start()
print(run_command(['sh', '-c', 'touch begun; exec sleep 295'+sys.argv[1]], '.', wanted=lambda: not forked.is_set())[0], run_command(['true'], '.')[0])
''', me, cwd=tmp_path)
    assert out.stdout=='unwanted 0\n', out.stderr
    assert gone('sleep 295')

@pytest.mark.skipif(sys.version_info<(3,11), reason='-P is of 3.11')
@pytest.mark.parametrize('closed', ['', '>&-', '>&- 2>&-', '<&- >&- 2>&-'])
def test_closed(closed, tmp_path):
    "A program without stdin, stdout or stderr, in a folder with a file called json.py"
    (tmp_path/'json.py').write_text('1/0')
    plain = 'from fastrl.supervisor import run_command; import sys; open(sys.argv[1], "w").write(str(run_command(["sh", "-c", "echo a; echo b >&2"], ".")))'
    subprocess.run(f'"{sys.executable}" -P -c \'{plain}\' out.txt {closed}', shell=True, cwd=tmp_path, timeout=100, env={**os.environ, 'PYTHONPATH':str(root)})
    assert (tmp_path/'out.txt').read_text()==str((0,'a\n','b\n'))

@pytest.mark.parametrize('sig', ['SIGTERM','SIGKILL'])
def test_driver_dies(sig, tmp_path):
    "Its tasks and the fork server die, too"
    code = '''
import sys, threading
from fastrl.supervisor import fork_server, run_command
def told():
    while not fork_server.process: pass
    print(fork_server.process.pid, flush=True)
threading.Thread(target=told).start()
run_command(['sh', '-c', 'touch begun; exec sleep 294'+sys.argv[1]], '.')
'''
    p = subprocess.Popen([sys.executable, '-c', code, me], stdout=subprocess.PIPE, text=True, cwd=tmp_path, env={**os.environ, 'PYTHONPATH':str(root)})
    server = int(p.stdout.readline())
    wait_for(tmp_path/'begun')
    p.send_signal(getattr(signal, sig))
    p.wait()
    p.stdout.close()
    assert gone('sleep 294')
    until = time.monotonic()+30
    def runs(): return subprocess.run(['ps', '-o', 'stat=', '-p', str(server)], capture_output=True, text=True).stdout[:1] not in ('','Z')
    while runs():
        assert time.monotonic()<until, 'the fork server still runs'
        time.sleep(.02)

def killed(times, seed, folder):
    "A driver that is killed at any moment leaves no child"
    code = f'''
import sys
from fastrl.supervisor import run_command
print('begins', flush=True)
while True: run_command(['sh', '-c', 'sleep 293{me} & setsid sleep 293{me} & sleep .05'], '.')
'''
    rng = random.Random(seed)
    for _ in range(times):
        p = subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE, cwd=folder, env={**os.environ, 'PYTHONPATH':str(root)})
        p.stdout.readline()
        time.sleep(rng.random()/2)
        p.kill()
        p.wait()
        p.stdout.close()
        assert gone('sleep 293', 20)

def test_killed(tmp_path): killed(3, 0, tmp_path)

@pytest.mark.long
def test_killed_often(tmp_path): killed(100, 1, tmp_path)
