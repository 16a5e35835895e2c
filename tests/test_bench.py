"The benchmarks run, without peers and at the size of toys; what they measure is no test"
import json, os, subprocess, sys
import pytest
from bench import add, ahead, bank, before, collect, disk, episodes, frames, growth, hindsight, parallel, priority, r2d2, report, sample, scaling, stores, train, vectors
from bench.measure import Case, measure, ratios
from bench.rows import make_rows

quick = [*add.cases, *vectors.cases[:1], *sample.cases[:2]]
others = [*vectors.cases[1:], *sample.cases[2:], *(c for topic in (frames, ahead, growth, priority, hindsight, episodes, bank, collect, parallel, disk, train) for c in topic.cases)]
def mark(c): return pytest.param(c, marks=pytest.mark.long if c.name.startswith(('Tasks','Train')) else pytest.mark.slow)

@pytest.mark.parametrize('case', [*quick, *map(mark, others)], ids=lambda c: c.name)
def test_toy(case):
    res = measure(case, toy=True)
    assert not res['failed'] and res['us'][res['ours']]>0

@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists('/proc/self/smaps_rollup'), reason='what a process holds in memory is known on Linux')
@pytest.mark.parametrize('steps', (20,3))
def test_resident(steps):
    "A memory of frames takes what `nbytes_when_full` says within 2%, as the system counts it, also where short episodes leave it with fewer rows"
    n,code = 200_000,'import sys; from bench.frames import fill; print(*fill(*map(int, sys.argv[1:])))'
    res = subprocess.run([sys.executable, '-W', 'ignore', '-c', code, str(n), str(steps)], capture_output=True, text=True, check=True)
    held,took,said = map(int, res.stdout.split())
    assert abs(said/took-1)<.02 and .7*n<held<=n and (held==n)==(steps==20)

@pytest.mark.slow
@pytest.mark.parametrize('curve', [c for c in scaling.curves if c.toy], ids=lambda c: c.name)
def test_curve(curve):
    f = curve.make('fastrl', *curve.toy)
    f()
    assert getattr(f, 'nbytes', 0)>=0
    getattr(f, 'close', int)()

@pytest.mark.slow
def test_points(tmp_path):
    "Points of a run that was stopped are kept; a full set is measured anew. Each store is alone in its process, and one that is missing has no figure"
    few = [scaling.Curve('rows', 'capacity', (1000, 100_000, 10**6), scaling.sampled, ('fastrl','absent'), tiny=256, nbytes=lambda n: 10**14*(n==10**6))]
    points = scaling.Points(few, folder=tmp_path)
    workers = scaling.Workers()
    for c,x in points.todo()[:2]: points.add(scaling.point(c, x, workers, turns=2, secs=.001))
    again = scaling.Points(few, folder=tmp_path)
    assert [x for _,x in again.todo()]==[10**6] and again.run==points.run
    again.add(scaling.point(*again.todo()[0]))
    small,large,huge = again.points.values()
    assert 'GB' in huge['left_out'] and not huge['us'] and list(small['us'])==['fastrl'] and 'absent' in small['failed']['absent']
    assert 4<large['nbytes']['fastrl']/1e6<12 and not again.todo() # 56 bytes a row
    table = (tmp_path/'growth.md').read_text()
    assert table.count('\n| 10')==2 and 'left out' in table and 'No figure for absent' in table
    assert again.plot().stat().st_size>1000
    assert len(scaling.Points(few, folder=tmp_path).todo())==3

def test_ratios():
    "Each turn is compared with the same turn of ours, so that a slow moment counts for both"
    assert ratios(dict(fastrl=[1,2,30], peer=[2,4,60]), 'fastrl')==dict(peer=2)

class Absent:
    name,package = 'absent','absent'
    def __init__(self, *args): raise ModuleNotFoundError("No module named 'absent'", name='absent')

class Wrong(stores.RingOnly):
    name = 'wrong'
    def sample(self): return {k: v.roll(1, 0) if k=='state' else v for k,v in self.ring[:8].items()}

def test_no_figure():
    "A peer that is missing, or gives columns that do not belong together, has no figure; the others have"
    rows = make_rows('small', 64)
    fs = stores.open_all([stores.Fastrl, Absent, Wrong], rows, 64, 8, sample.sampler(8))
    assert callable(fs['fastrl']) and fs['absent']=='not installed (absent)' and 'different rows' in fs['wrong']

def test_results(tmp_path):
    "Every case is written as soon as it is there, and measuring it again replaces it"
    def run(name, ours, peer): return measure(Case(name, lambda: dict(fastrl=ours, cpprb=peer, SB3='not installed'), goal=2), reps=1, secs=1e-4)
    def slow(): sum(range(1000))
    for quick in (int, float):
        res = report.Results(['a','b'], folder=tmp_path)
        res.add(run('b', slow, quick))
        res.add(run('a', quick, slow))
    stored = json.loads((tmp_path/'foundation.json').read_text())
    assert [(c['name'], c['reached']) for c in stored['cases']]==[('a', True), ('b', False)]
    table = (tmp_path/'foundation.md').read_text()
    assert table.count('\n| ')==4 and 'No figure for SB3: not installed.' in table and '**no**' in table

@pytest.mark.slow
def test_recurrent(monkeypatch):
    "The code of the tutorial trains, also without one of its ingredients, and the table counts what it solved"
    monkeypatch.setattr(r2d2, 'tasks', {'toy': ('TMaze', dict(n=1200, T=8, burn_in=4, updates=1, eval_every=400), .95)})
    plan = list(r2d2.planned(7, 2))
    assert len(plan)==len(set(plan)) and plan[0]==('toy','R2D2',7)
    rows = [r2d2.run('toy', v, 7) for v in ('R2D2','no burn-in')]
    assert all((r['steps'], r['updates'], len(r['curve']))==(1200, 13, 3) for r in rows)
    table = r2d2.table(rows+[{**rows[0], 'seed':8, 'last':1., 'best':.9}])
    assert '| R2D2 | 2 | 1 | 0 |' in table and '| no burn-in | 1 | 0 | 0 |' in table

def test_before(capsys, tmp_path):
    "It says how it is called, which commit is missing, and keeps each commit by what it is now, not by a name that moves on"
    before.main('--help')
    assert 'python -m bench.before [COMMIT]' in capsys.readouterr().out
    with pytest.raises(SystemExit, match="there is no commit '--all'"): before.earlier('--all', tmp_path)
    assert not [*tmp_path.iterdir()]
    assert before.full_name('HEAD')==before.full_name(before.full_name('HEAD')[:12])!='HEAD'
