"The command `fastrl`: stopped, killed and started again as a process, in this one where that makes no difference"
import io, json, os, re, signal, subprocess, sys, threading, time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from unittest.mock import patch
import numpy as np, pytest
from fastcore.xtras import working_directory
from fastrl import ExperienceReplay, Prioritized, Uniform
from fastrl.cli import main
from fastrl.memory.disk import Saved, verify

root = Path(__file__).parent.parent
command = [sys.executable, '-m', 'fastrl.cli']

def fastrl(*args, cwd): return subprocess.run([*command, *map(str, args)], cwd=cwd, capture_output=True, text=True)
def here(*args, cwd):
    "The same in this process, which has imported all of it"
    out,err = io.StringIO(),io.StringIO()
    with working_directory(cwd), redirect_stdout(out), redirect_stderr(err):
        try: code = main(map(str, args))
        except SystemExit as e:
            code = e.code
            if isinstance(code, str): code = print(code, file=err) or 1 # as Python ends with it
    return CompletedProcess(args, code or 0, out.getvalue(), err.getvalue())

def training(folder): return Saved(folder/'memory').extra['cbs']
def train(out, steps): return ['train','CartPole-v1','--out',str(out),'--steps',str(steps),'--every','50']

def stopped_after(folder, steps, sig, cwd):
    "Start a long training, send `sig` to it when `steps` steps are checkpointed, and give what it said and its exit code"
    p = subprocess.Popen([*command, *train(folder, 10**6)], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until = time.monotonic()+600
    while True:
        assert p.poll() is None and time.monotonic()<until, p.communicate()[0][-2000:] if p.poll() is not None else 'it takes too long'
        try:
            if training(folder)['score']['steps']>=steps: break
        except (OSError, ValueError): pass # not there yet, or just being replaced
        time.sleep(.05)
    p.send_signal(sig)
    return p.communicate(timeout=60)[0], p.returncode

@pytest.mark.slow
def test_killed_and_resumed(tmp_path):
    run = tmp_path/'run'
    _,code = stopped_after(run, 2400, signal.SIGKILL, tmp_path)
    assert code==-signal.SIGKILL and not verify(run/'memory')
    before = training(run)
    done = fastrl(*train(run, before['score']['steps']+1600), cwd=tmp_path)
    assert done.returncode==0 and 'Resuming' in done.stdout, done.stderr
    after = training(run)
    n = before['score']['steps']
    assert 0<=after['score']['steps']-n-1600<16 # a batch
    assert after['agent']['steps']==after['score']['steps']==Saved(run/'memory').total # epsilon and memory resumed, too
    assert after['score']['episodes']>before['score']['episodes'] and after['dqn']['updates']>before['dqn']['updates']
    assert after['score']['curve'][:len(before['score']['curve'])].tolist()==before['score']['curve'].tolist()
    assert 'How it learnt' in (run/'report.html').read_text()

@pytest.mark.slow
@pytest.mark.skipif(os.name=='nt', reason='there are other signals')
def test_stopped(tmp_path):
    "Ctrl-C: it ends by itself, keeps everything, and says how to resume"
    said,code = stopped_after(tmp_path/'run', 1600, signal.SIGINT, tmp_path)
    assert code==0 and 'The same command resumes' in said and 'Traceback' not in said
    steps = training(tmp_path/'run')['score']['steps']
    assert f'Stopped after {steps:,} of 1,000,000 steps' in said # to the last batch, not to the last checkpoint
    assert 'a training' in here('info', tmp_path/'run', cwd=tmp_path).stdout

def test_info_of_a_memory_that_was_cleared(tmp_path):
    "Saved or in a file: the numbers that `clear` skipped are no rows"
    er = ExperienceReplay(max_sz=4, warmup_sz=1, path=tmp_path/'rows')
    for n in (5,3):
        er.clear()
        for i in range(n): er.add(reward=1., terminated=False, truncated=False)
    er.save(tmp_path/'run')
    for o in ('rows','run'): assert '3 rows of 4, 3 written in all' in here('info', o, cwd=tmp_path).stdout

@pytest.mark.slow
def test_info_and_verify(tmp_path):
    "What `info --json` prints is JSON and nothing else, and a failure leaves the output empty; `verify` finds one wrong bit"
    settings = '--n-envs', 2, '--max-sz', 1000, '--lr', .002
    here(*train(tmp_path/'run', 1100), *settings, cwd=tmp_path)
    said = json.loads(fastrl('info', tmp_path/'run', '--json', cwd=tmp_path).stdout)
    assert (said['rows'], said['capacity'], said['kind']) == (1000, 1000, 'ExperienceReplay') and said['training']['steps']>=1100
    other = here(*train(tmp_path/'run', 2000), cwd=tmp_path)
    assert other.returncode==1 and 'begun with lr 0.002, not 0.001, n_envs 2, not 1, max_sz 1000, not 50000' in other.stderr
    none = fastrl('info', tmp_path/'none', '--json', cwd=tmp_path)
    assert none.returncode==1 and none.stdout=='' and len(none.stderr.splitlines())==1
    whole = here('verify', tmp_path/'run', cwd=tmp_path)
    assert whole.returncode==0 and 'as they were written' in whole.stdout
    piece = max((tmp_path/'run'/'memory').glob('rows-*'), key=lambda o: o.stat().st_size)
    raw = bytearray(piece.read_bytes())
    raw[-1] ^= 1
    piece.write_bytes(raw)
    broken = here('verify', tmp_path/'run', cwd=tmp_path)
    assert broken.returncode==1 and f'{piece.name} is damaged' in broken.stdout
    refused = here('explore', tmp_path/'run', cwd=tmp_path)
    assert refused.returncode==1 and refused.stderr.startswith('fastrl: ') and len(refused.stderr.splitlines())==1
    refused = here(*train(tmp_path/'run', 2000), *settings, cwd=tmp_path) # nor does it resume
    assert refused.returncode==1 and f'{piece.name} is damaged' in refused.stderr and 'Traceback' not in refused.stderr

def test_words():
    "Options are spelled with `-` or `_`, and counts may be written as `2e4`"
    from fastrl import cli
    def trained(*args):
        seen = []
        def train(env:str, steps:int=1, n_step:int=3, gamma:float=.9, name:str='a_b'): seen.append((steps, n_step, gamma, name))
        with patch.dict(cli.commands, train=train): said = here('train', 'E_1', *args, cwd='.')
        return seen[0] if seen else said.stderr
    assert trained('--steps', '2e4', '--n_step', 5, '--gamma', .5)==(20_000, 5, .5, 'a_b')
    assert trained('--n_step=5', '--name=c_d', '--steps=1_000')==(1000, 5, .9, 'c_d') and trained('--n-step', 5)[1]==5
    for o in ('2.5','many','inf','nan'): assert 'argument --steps: invalid int value' in trained('--steps', o)

@pytest.mark.slow
def test_log(tmp_path):
    "In a file: names once, then lines of the same columns with rounded numbers, also where an epoch is resumed in its middle"
    for steps,epochs in ((2000,[]), (5100,['0']), (10100,['1'])):
        said = here(*train(tmp_path/'run', steps), cwd=tmp_path)
        assert not said.returncode, said.stderr
        names,*rows = [o.split() for o in said.stdout.splitlines() if re.search(r'\b\d\d:\d\d$|^ *epoch', o)] or [[]]
        assert [o[0] for o in rows]==epochs and {len(o) for o in rows}<={len(names)}, said.stdout
    assert names[:4]==['epoch','train_loss','valid_loss','steps'] and 10_000<=int(rows[0][3])<10_032
    assert all(len(v)<=9 and float(v)>0 for v in rows[0][1:-1])

def test_stopped_at_once(tmp_path):
    "Ctrl-C before the first step: it says so, shows no page of an empty memory, and the same command resumes"
    from fastrl import cli
    was = signal.getsignal(signal.SIGINT)
    with patch('fastrl.agents.dqn.Score.before_fit', lambda self: os.kill(os.getpid(), signal.SIGINT), create=True):
        said = here(*train(tmp_path/'run', 2000), cwd=tmp_path)
    assert (said.returncode, said.stderr)==(0, '') and said.stdout=='Stopped after 0 of 2,000 steps. The same command resumes.\n'
    assert signal.getsignal(signal.SIGINT) is was and not (tmp_path/'run/report.html').exists()
    assert '2,000 steps. 100 fresh' in here(*train(tmp_path/'run', 2000), cwd=tmp_path).stdout

@pytest.mark.slow
def test_installed():
    "The command is there by its name, and says its version"
    def said(*args): return subprocess.run([Path(sys.executable).parent/'fastrl', *args], capture_output=True, text=True).stdout
    assert 'train' in said('--help')
    from fastrl import __version__
    assert said('--version')==f'fastrl {__version__}\n'

def test_ascii(monkeypatch):
    "A terminal or a log without the letters of a text gets escapes"
    out = io.TextIOWrapper(io.BytesIO(), 'ascii')
    monkeypatch.setattr(sys, 'stdout', out)
    monkeypatch.setattr(sys, 'argv', ['fastrl', '--help'])
    main()
    out.flush()
    assert out.buffer.getvalue().startswith(b'Usage: fastrl COMMAND \\u2026')

def test_title(tmp_path):
    "A report is called after its folder"
    from fastrl.memory.replay import ExperienceReplay
    er = ExperienceReplay(warmup_sz=1)
    er.add(x=1.)
    for folder,title in (('run','run'), ('run/memory','run/memory')):
        er.save(tmp_path/'run'/'memory')
        here('explore', tmp_path/folder, '--out', 'r.html', cwd=tmp_path)
        assert f'<h1>What is in {title}</h1>' in (tmp_path/'r.html').read_text(encoding='utf-8')

def _rows(n, state=None, **settings):
    from fastrl.memory.replay import ExperienceReplay
    er = ExperienceReplay(max_sz=max(n, 1), warmup_sz=0, **settings)
    for o in range(n): er.add(**(state(o) if state else dict(state=[float(o)])), reward=o, terminated=o==n-1, truncated=False)
    return er

def test_merge_keeps_inputs(tmp_path):
    "The result replaces none of those to merge, by whatever name, and is not hidden beside the memory of a training"
    _rows(3).save(tmp_path/'run/memory', extra={'cbs': {}})
    _rows(2).save(tmp_path/'b')
    (tmp_path/'link').symlink_to('run')
    (tmp_path/'b2').symlink_to('b')
    for files,out in ((('run','b'),'run'), (('run','b'),'run/memory'), (('run/memory','b'),'run'), (('link','b'),'run/memory'),
                      (('run','b'),'link/memory'), (('run','b'),'b/../run/memory'), (('b2','run'),'b'), (('b','run'),'b2')):
        said = here('merge', *files, '--out', out, cwd=tmp_path)
        assert said.returncode==1 and f'{out} is one of those to merge' in said.stderr, (files, out)
        assert Saved(tmp_path/'run/memory').extra=={'cbs': {}} and len(Saved(tmp_path/'b'))==2
    assert not here('merge', 'run', 'b', '--out', 'run/both', cwd=tmp_path).returncode and len(Saved(tmp_path/'run/both'))==5

def _frame_rows(folder, base=0, episodes=4, names=('state','next_state'), **settings):
    "Save a memory of frames in stacks of four"
    import torch
    from fastrl.memory.replay import ExperienceReplay
    er = ExperienceReplay(**{**dict(max_sz=200, warmup_sz=0, frame_stack=4), **settings})
    for e in range(episodes):
        def stack(i): return torch.stack([torch.full((8,8), (base+e*10+max(0, i-j))%256, dtype=torch.uint8) for j in (3,2,1,0)])
        for i in range(5):
            er.add(**dict(zip(names, (stack(i), stack(i+1)))), reward=i, terminated=i==4, truncated=False)
    er.save(folder)
    return er

@pytest.mark.parametrize('names', (('state','next_state'), ('obs','next_obs')))
def test_merge_keeps_settings(names, tmp_path):
    "Frames stay stored once, and settings on which all agree stay"
    import torch
    from fastrl.memory.replay import ExperienceReplay
    settings = dict(n_step=3, gamma=.9, frame_pad='zeros', frame_margin=.2)
    a,b = _frame_rows(tmp_path/'a', names=names, **settings),_frame_rows(tmp_path/'b', 100, 40, names, **settings)
    assert not here('merge', 'a', 'b', '--out', 'both', cwd=tmp_path).returncode
    er = ExperienceReplay.load(tmp_path/'both')
    assert er.frame_stack==4 and len(er)==220 and {k: getattr(er, k) for k in settings}==settings
    for k in names: assert torch.equal(er.ring[k], torch.cat([a.ring[k], b.ring[k]]))
    def size(k): return sum(o.stat().st_size for o in (tmp_path/k).iterdir())
    assert size('both')<1.2*(size('a')+size('b'))
    _frame_rows(tmp_path/'c', 200, 3, names, n_step=1, gamma=.9)
    assert not here('merge', 'a', 'c', '--out', 'some', '--max-size', 20, cwd=tmp_path).returncode
    er = ExperienceReplay.load(tmp_path/'some')
    assert (er.frame_stack, er.n_step, er.gamma, er.frame_pad, len(er))==(4, None, .9, 'repeat', 20)
    said = here('merge', 'a', 'c', '--out', 'none', '--max-size', 0, cwd=tmp_path)
    assert said.returncode==1 and '`--max-size` should be' in said.stderr and not (tmp_path/'none').exists()

def test_merge_says_what_differs(tmp_path):
    "Settings on which the memories disagree are named, with what the result has instead; the others are not"
    for k,gamma,n_step,sampler in (('a',.9,3,None), ('b',.95,3,Prioritized(seed=0)), ('c',.9,3,Uniform())):
        _rows(2, gamma=gamma, n_step=n_step, sampler=sampler).save(tmp_path/k)
    said = here('merge', 'a', 'b', '--out', 'both', cwd=tmp_path).stdout
    assert '`gamma` is 0.99 in the result, as the memories differ: 0.9, 0.95' in said, said
    assert '`sampler` is Uniform() in the result, as the memories differ: Uniform(), Prioritized(' in said
    assert '`n_step`' not in said and 'both: 4 rows from 2 folders' in said
    er = ExperienceReplay.load(tmp_path/'both')
    assert (er.gamma, er.n_step)==(.99, 3)
    assert here('merge', 'a', 'c', '--out', 'same', cwd=tmp_path).stdout=='same: 4 rows from 2 folders\n'
    assert ExperienceReplay.load(tmp_path/'same').gamma==.9

def test_merge_loses_no_rows(tmp_path):
    "Where episodes are short, there is room for the frames of all rows"
    from fastrl.memory.replay import ExperienceReplay
    for k in 'ab':
        er = ExperienceReplay(max_sz=200, warmup_sz=0, frame_stack=4, frame_margin=250)
        for o in range(200):
            er.add(state=[[float(o), 0.]], next_state=[[o+.5, 1.]], reward=o, terminated=True, truncated=False)
        assert len(er)==200
        er.save(tmp_path/k)
    assert not here('merge', 'a', 'b', '--out', 'both', cwd=tmp_path).returncode
    assert len(ExperienceReplay.load(tmp_path/'both'))==400

def test_merge_of_other_stacks(tmp_path):
    "Memories that store their frames otherwise are refused, with what to do"
    from fastrl.memory.replay import ExperienceReplay
    _frame_rows(tmp_path/'a')
    _frame_rows(tmp_path/'plain', frame_stack=None)
    said = here('merge', 'a', 'plain', '--out', 'both', cwd=tmp_path)
    assert said.returncode==1 and 'a has `frame_stack` 4' in said.stderr and 'plain None' in said.stderr
    assert 'merge only' in said.stderr and not (tmp_path/'both').exists()
    er = ExperienceReplay(max_sz=40, warmup_sz=0, frame_stack=4) # as it says
    for k in ('a','plain'): er.extend(ExperienceReplay.load(tmp_path/k))
    assert len(er)==40

def test_merge_keeps_later(tmp_path):
    "Columns for later are for later in the result, too, with zeros where a memory lacked them"
    import torch
    from fastrl.memory.replay import ExperienceReplay
    _rows(2).save(tmp_path/'a')
    er = _rows(3, schema=dict(state=((1,), torch.float32), reward=((1,), torch.float32), terminated=((1,), torch.bool),
                              truncated=((1,), torch.bool), ret=((1,), torch.float32, 'later')))
    er.put('ret', [0,1,2], torch.ones(3, 1))
    er.save(tmp_path/'b')
    assert not here('merge', 'a', 'b', '--out', 'both', cwd=tmp_path).returncode
    er = ExperienceReplay.load(tmp_path/'both')
    assert [*er.later]==['ret'] and er.ring['ret'].view(-1).tolist()==[0, 0, 1, 1, 1]

def test_merge_keeps_schema(tmp_path):
    "If all memories have one schema, so has the result"
    import torch
    from fastrl.memory.replay import ExperienceReplay
    schema = dict(state=((1,), torch.float32), reward=((1,), torch.float32), terminated=((1,), torch.bool),
                  truncated=((1,), torch.bool), ret=((1,), torch.float32, 'later'))
    for k in 'abc': _rows(2, **(dict(schema=schema) if k<'c' else {})).save(tmp_path/k)
    for names,expected in (('ab', schema), ('abc', None)):
        assert not here('merge', *names, '--out', names, cwd=tmp_path).returncode
        assert ExperienceReplay.load(tmp_path/names).schema==expected

def test_merge_keeps_sampler(tmp_path):
    "If all memories have one sampler, so has the result, with their priorities"
    import torch
    from fastrl.memory.replay import ExperienceReplay
    from fastrl.memory.sample import Prioritized
    for k in 'abc':
        er = _rows(2, sampler=Prioritized(alpha=1., eps=1e-9, seed=0) if k<'c' else None)
        er.update_td(torch.tensor([[3.],[ord(k)]]), torch.arange(2))
        er.save(tmp_path/k)
    for names in ('ab','abc'):
        assert not here('merge', *names, '--out', names, cwd=tmp_path).returncode
        s = (er := ExperienceReplay.load(tmp_path/names)).sampler
        assert repr(s)==('Uniform()' if 'c' in names else "Prioritized(alpha=1.0, beta=0.4, beta_steps=100000, eps=1e-09, normalize='batch')")
        if 'c' not in names: assert s.beside(er.ring)['priority'].tolist()==pytest.approx([3, ord('a'), 3, ord('b')])

def test_merge_keeps_other_memories(tmp_path):
    "The result replaces no memory that is nobody's result of `merge`: a training's, one of one's own, a ring, a damaged one"
    from fastrl.memory.ring import Ring
    for k in 'ab': _rows(2).save(tmp_path/k)
    _rows(9).save(tmp_path/'run/memory', extra={'cbs': {}})
    _rows(7).save(tmp_path/'mine', extra='merged')
    r = Ring(5)
    r.add(x=1.)
    r.save(tmp_path/'ring')
    (tmp_path/'bad').mkdir()
    (tmp_path/'bad/manifest.json').write_text('x')
    def files(): return {o: o.is_file() and o.read_bytes() for o in tmp_path.rglob('*')}
    before = files()
    for out in ('run/memory','mine','ring','bad'):
        said = here('merge', 'a', 'b', '--out', out, cwd=tmp_path)
        assert said.returncode==1 and f'{out} holds another memory, which would be lost: name another folder, `--out FOLDER`' in said.stderr, said
        assert files()==before
    for k in ('a','b'): # again to the same place, in which all is made anew
        assert not here('merge', 'a', 'b', k, '--out', 'both', cwd=tmp_path).returncode
        assert len(ExperienceReplay.load(tmp_path/'both'))==4
    er = ExperienceReplay.load(tmp_path/'both')
    er.save(tmp_path/'both') # from now on it is one's own
    assert 'would be lost' in here('merge', 'a', 'b', '--out', 'both', cwd=tmp_path).stderr

def test_merge_counts_each_once(tmp_path):
    "A folder or a file that is named twice, also by another name, counts once"
    from fastrl.memory.bank import ExperienceBank, create_experience
    for k in 'ab':
        bank = ExperienceBank(session_id=k)
        bank.add(create_experience(0., 0, 1., 1., True))
        bank.save(tmp_path, f'{k}.pkl')
        _rows(2).save(tmp_path/k)
    (tmp_path/'link').symlink_to('a')
    for files,what in ((('b','a','./a','link'), 'rows from 2 folders'), (('b.pkl','a.pkl','./b.pkl'), 'experiences from 2 files'),
                         (('a','none','none'), 'rows from 1 folder\n'), (('a.pkl','none','none'), 'experiences from 1 file\n')):
        said = here('merge', *files, '--out', f'o{len(files)}.{files[0]}', '--on-error', 'skip', cwd=tmp_path)
        assert what in said.stdout and said.stdout.count('left out')==('none' in files), said

def test_train_loses_nothing(tmp_path):
    "A training does not begin where it would hide a memory, or end with an error as a page would replace something else"
    _rows(5).save(tmp_path/'mem')
    (tmp_path/'run').mkdir()
    (tmp_path/'run/report.html').write_text('mine')
    (tmp_path/'folder/report.html').mkdir(parents=True)
    def files(): return {o: o.is_file() and o.read_bytes() for o in tmp_path.rglob('*')}
    before = files()
    for out,says in (('mem', 'a training in it would hide'), ('run', 'is no page'), ('folder', 'is no page')):
        said = here(*train(out, 1000), cwd=tmp_path)
        assert said.returncode==1 and says in said.stderr and '`--out FOLDER`' in said.stderr, said
        assert files()==before

@pytest.mark.skipif(not hasattr(os, 'mkfifo'), reason='there are no pipes')
def test_settings_are_a_pipe(tmp_path):
    "They are an error, for which nobody waits"
    (tmp_path/'run').mkdir()
    os.mkfifo(tmp_path/'run/settings.json')
    opened = os.open(tmp_path/'run/settings.json', os.O_RDWR|os.O_NONBLOCK)
    os.write(opened, b'{"env": 1}') # so that who reads it all the same gets something
    timer = threading.Timer(5, os.close, [opened])
    timer.start()
    said = here(*train('run', 1000), cwd=tmp_path)
    timer.cancel()
    assert said.returncode==1 and 'settings.json is damaged (it is a pipe' in said.stderr, said

@pytest.mark.parametrize('args,says', [(('--n-step',0), '`n_step` should be a whole number of at least 1'), (('--lr','inf'), 'finite'),
                                       (('--seed',-1), '`seed` should be a whole number from 0'), (('--seed','1e20'), '`seed` should be')])
def test_settings_out_of_range(args, says, tmp_path):
    said = here(*train('run', 1000), *args, cwd=tmp_path)
    assert said.returncode==1 and says in said.stderr and not (tmp_path/'run').exists(), said

def test_own_environment(tmp_path, monkeypatch):
    "`MODULE:NAME` finds a module in the current folder, as the installed command does not by itself"
    (tmp_path/'my_own_envs.py').write_text("import gymnasium as gym\n"
        "gym.register('My/Own-v0', entry_point='gymnasium.envs.classic_control:PendulumEnv')\n")
    monkeypatch.setattr(sys, 'path', [o for o in sys.path if o])
    assert 'needs a `Discrete` action space' in here('train', 'my_own_envs:My/Own-v0', '--out', 'run', cwd=tmp_path).stderr

def test_nothing_else_is_written_over(tmp_path):
    "A page replaces pages only, a merged bank banks only; a merged memory is not hidden beside another one"
    from fastrl.memory.bank import ExperienceBank, create_experience
    for k in 'ab':
        bank = ExperienceBank(session_id=k)
        bank.add(create_experience(0., 0, 1., 1., True))
        for ext in ('pkl','safetensors'): bank.save(tmp_path, f'{k}.{ext}')
        _rows(2).save(tmp_path/k)
    (tmp_path/'bank.html').write_bytes((tmp_path/'a.pkl').read_bytes())
    _rows(3).save(tmp_path/'run/memory', extra={'cbs': {}})
    _rows(3, path=tmp_path/'rows')
    (tmp_path/'notes.txt').write_text('mine')
    os.mkfifo(tmp_path/'pipe') if hasattr(os, 'mkfifo') else (tmp_path/'pipe').write_text('x')
    os.symlink('rows', tmp_path/'link')
    def files(): return {o: o.is_file() and o.read_bytes() for o in tmp_path.rglob('*')}
    before = files()
    for args,says in [*[(('explore',k,'--out',o), 'is no page') for k in ('a','b.pkl','rows') for o in
                        ('a/manifest.json','b.pkl','a.safetensors','rows','link','notes.txt','pipe')],
                      (('explore','bank.html'), 'is no page'), (('explore','a','--out','run'), 'is a folder: name a file'),
                      *[(('merge','a.pkl','b.pkl','--out',o), 'is no bank') for o in ('a/manifest.json','rows','link','notes.txt','pipe')],
                      *[(('merge','a.pkl','b.pkl','--out',o), 'is a folder: name a file') for o in ('run','a','.')],
                      (('merge','a','b','--out','run'), 'would hide what is saved to run')]:
        said = here(*args, cwd=tmp_path)
        assert said.returncode==1 and says in said.stderr and '--out F' in said.stderr, (args, said)
        assert files()==before, args
    for args in (('explore','a'), ('explore','a'), ('explore','bank.html','--out','a/report.html'), ('merge','a.pkl','b.pkl','--out','a.safetensors')):
        assert not here(*args, cwd=tmp_path).returncode, args
    assert len(ExperienceBank.load(tmp_path/'a.safetensors'))==2

@pytest.mark.parametrize('args', [('info','run'), ('verify','run'), ('explore','run'), ('merge','run','--out','out')])
def test_saved_anew_while_it_is_looked_at(args, tmp_path, monkeypatch):
    "A training that checkpoints while its memory is looked at has no missing files"
    import torch
    run,init = tmp_path/'run/memory',Saved.__init__
    cbs = dict(score=dict(steps=1, episodes=1, curve=torch.zeros(2, 2)), evaluate=dict(history=torch.zeros(0, 3)))
    def save(n): _rows(n).save(run, extra=dict(cbs=cbs, large=torch.zeros(100_000)))
    def late(self, folder):
        init(self, folder)
        if len(self)==3: save(5)
    save(3)
    monkeypatch.setattr(Saved, '__init__', late)
    said = here(*args, cwd=tmp_path)
    assert not said.returncode, said
    assert len(Saved(tmp_path/'out' if args[0]=='merge' else run))==5
    for o in run.glob('state-*'): o.unlink()
    said = here('verify', 'run', cwd=tmp_path)
    assert said.returncode==1 and 'is missing' in said.stdout

def test_verify_ring(tmp_path):
    "A mapped file is known as one; a file that was cut short, rows half written, and other files are told"
    from fastrl.memory.replay import ExperienceReplay
    er = _rows(3, path=tmp_path/'rows')
    def said():
        o = here('verify', 'rows', cwd=tmp_path)
        return o.returncode,o.stdout+o.stderr
    assert said()==(0, 'rows: its size fits 3 rows, all of them whole; rows in use have no checksums\n')
    _rows(40, path=tmp_path/'full').ring.place.head[1] += 2 # as a writer leaves it that was killed
    (tmp_path/'full').rename(tmp_path/'rows')
    code,text = said()
    assert code==1 and 'rows: 2 of 40 rows are half written' in text
    for cut,says in ((10**4, 'rows should have'), (100, 'rows has 100 bytes, fewer than its head'), (30, 'no bank')):
        with open(tmp_path/'rows', 'r+b') as f: f.truncate(cut)
        code,text = said()
        assert code==1 and says in text and len(text.splitlines())==1, text

def test_verify_episode_files(tmp_path):
    "The episodes that a saved replay has in files are checked, too: damaged and missing ones are named"
    from fastrl.memory.episodes import EpisodeReplay, IndividualFileDataset, RingBufferDataset
    def episodes(er, n):
        for e in range(n):
            for i in range(4): er.add_step(dict(obs=float(i)), done=i==3)
    er = EpisodeReplay(IndividualFileDataset(40, tmp_path/'files'), 2)
    episodes(er, 3)
    er.save(tmp_path/'m')
    def said(command='verify', folder='m'):
        o = here(command, folder, cwd=tmp_path)
        assert not o.stderr
        return o.returncode,o.stdout
    code,text = said()
    assert code==0 and f'3 episodes of 12 steps in {tmp_path/"files"}, as they were written' in text
    assert 'EpisodeReplay: 12 rows of 40\n  obs float32\n' in said('info')[1] and f'3 episodes in {tmp_path/"files"}' in said('info')[1]
    about = json.loads(said_json := here('info', 'm', '--json', cwd=tmp_path).stdout)
    assert (about['rows'], about['capacity'], about['episodes']['n'])==(12, 40, 3), said_json
    first,second,third = sorted((tmp_path/'files').glob('*.safetensors'))
    raw = bytearray(second.read_bytes())
    raw[-1] ^= 1
    second.write_bytes(raw)
    code,text = said()
    assert code==1 and f'{second} is damaged' in text and '2 of 3 episodes' in text and 'as they were' not in text
    first.unlink()
    second.rename(f'{second}.damaged') # as an opened dataset sets it aside
    code,text = said()
    assert code==2 and f'{first} is missing' in text and f'{second} is missing: it was set aside as damaged' in text
    third.rename(tmp_path/'third')
    assert said()[0]==3
    for o in (tmp_path/'files').iterdir(): o.unlink()
    (tmp_path/'files').rmdir()
    code,text = said()
    assert code==1 and f'the folder of its episodes is gone: {tmp_path/"files"}' in text and 'sound' not in text
    ring = EpisodeReplay(RingBufferDataset(40), 2) # its rows are in the folder
    episodes(ring, 3)
    ring.save(tmp_path/'ring')
    assert said(folder='ring')[0]==0 and '12 rows of 40' in said('info', 'ring')[1]

@pytest.mark.parametrize('now,after', (('state','next_state'), ('obs','obs_next')))
@pytest.mark.parametrize('stack', (4,0))
def test_frames_shown(stack, now, after, tmp_path):
    "Of a memory of frames, in a file or a folder, the stacks are shown, not the numbers of their frames; `verify` reads the frames"
    from fastrl.memory.replay import ExperienceReplay
    er,shape = ExperienceReplay(4, 30, 1, frame_stack=stack, path=tmp_path/'rows.ring'),[4,6,5] if stack else [6,5]
    for i in range(12):
        def seen(i): return dict(cam=np.full((6,5), i, np.uint8), arm=float(i))
        er.add(**{now:seen(i), after:seen(i+1)}, reward=1., terminated=False, truncated=False)
    er.save(tmp_path/'m')
    for o in ('rows.ring','m'):
        text = here('info', o, cwd=tmp_path).stdout
        assert f'{now}.cam uint8{shape}' in text and f'{after}.cam uint8{shape}' in text and 'int32' not in text
        assert ('stacks of 4 frames: 13 frames of ' if stack else 'observations: 13 of ') in text
        about = json.loads(here('info', o, '--json', cwd=tmp_path).stdout)
        assert about['columns'][0]==dict(name=f'{now}.cam', shape=shape, dtype='uint8') and about['frames']['stored']==13
        page = Path(here('explore', o, '--out', 'page.html', cwd=tmp_path).stdout.strip())
        page = (tmp_path/page).read_text()
        assert f'{now}.cam uint8{shape}' in page and 'bytes per row and 32 per frame' in page
    assert here('verify', 'm', cwd=tmp_path).returncode==0
    frames, = (tmp_path/'m').glob('frames-*')
    raw = bytearray(frames.read_bytes())
    raw[-5] ^= 1
    frames.write_bytes(raw)
    code = here('verify', 'm', cwd=tmp_path)
    assert code.returncode==1 and f'{frames} is damaged' in code.stdout
    (tmp_path/'rows.ring.frames').unlink()
    code = here('info', 'rows.ring', cwd=tmp_path)
    assert code.returncode==1 and 'rows.ring.frames is missing' in code.stderr

def test_explore_episode_files(tmp_path):
    "`explore` shows the steps of episodes in files, and names those that cannot be read, which stay where they are"
    from fastrl.memory.episodes import EpisodeReplay, IndividualFileDataset
    er = EpisodeReplay(IndividualFileDataset(40, tmp_path/'files'), 2)
    for i in range(12): er.add_step(dict(obs=np.full(3, i, np.float32), reward=float(i)), done=i%4==3)
    er.save(tmp_path/'m')
    said = here('explore', 'm', cwd=tmp_path)
    assert said.returncode==0, said.stderr
    page = (tmp_path/'m/report.html').read_text()
    assert '12 written in all' in page and 'obs float32[3]' in page
    files = sorted((tmp_path/'files').glob('*.safetensors'))
    files[0].write_bytes(files[0].read_bytes()[:-1])
    said = here('explore', 'm', cwd=tmp_path)
    assert said.returncode==0 and f'left out: {files[0]}' in said.stdout
    assert '8 written in all' in (tmp_path/'m/report.html').read_text() and sorted((tmp_path/'files').iterdir())==files
    for o in files: o.unlink()
    said = here('explore', 'm', cwd=tmp_path)
    assert said.returncode==1 and 'none of its 3 episodes can be read' in said.stderr

def test_verify_evicted_episodes(tmp_path):
    "An episode that has gone may have made room for those that came since, and `verify` says so"
    from fastrl.memory.episodes import EpisodeReplay, IndividualFileDataset
    er = EpisodeReplay(IndividualFileDataset(12, tmp_path/'files'), 2)
    for e in range(4):
        for i in range(4): er.add_step(dict(obs=float(i)), done=i==3)
        if e==2: er.save(tmp_path/'m')
    code = here('verify', 'm', cwd=tmp_path)
    assert code.returncode==1 and 'may have made room for the 1 that came since' in code.stdout
    er.save(tmp_path/'m')
    assert here('verify', 'm', cwd=tmp_path).returncode==0

def test_verify_other_datasets(tmp_path):
    "Episodes in a dataset of the user's own are not checked, and `verify` says that instead of calling them sound"
    from fastrl.memory.episodes import EpisodeReplay, IndividualFileDataset
    er = EpisodeReplay(IndividualFileDataset(12, tmp_path/'files'), 2)
    er.save(tmp_path/'m')
    with patch.object(Saved, '__init__', lambda self, folder, was=Saved.__init__: (
            was(self, folder), self.config.update(dataset='Mine'))[0]):
        assert 'in a Mine, and were not checked' in here('verify', 'm', cwd=tmp_path).stdout

def test_a_bank_that_is_gone(tmp_path):
    "`verify` counts it as a problem, and says what is there"
    from fastrl.bank_folder import BankFolder, Ctx
    from fastrl.memory.bank import ExperienceBank, create_experience
    folder = BankFolder(tmp_path/'run')
    for i in range(3):
        bank = ExperienceBank()
        bank.add(create_experience([float(i)], i, 1., [float(i)], False))
        folder.commit(Ctx(i, 'a'), {'a.safetensors': Path(bank.save(tmp_path/'own', f'{i}.safetensors')).read_bytes()})
    folder.gather()
    folder.save_memory()
    assert 'all 3 experiences' in here('verify', 'run', cwd=tmp_path).stdout
    folder.files[1].unlink()
    said = here('verify', 'run', cwd=tmp_path)
    assert said.returncode==1 and '1 bank(s) that it counts are gone; the 2 experiences are as they were written' in said.stdout
