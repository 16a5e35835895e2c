"""`pytest --fastrl-memory` on the replay buffers of other libraries: bench/results/check_peers.json and .md

    python -m bench.check_peers [library ...] [--python python3.11]

Each library, in its newest version, gets an environment of its own below build/peers, where of fastrl only the plugin runs; libraries that are not named keep their results. What is in `duties` is said by a library's documentation to be its
user's part, and is not called a mistake."""
import argparse, json, os, re, subprocess, sys
import xml.etree.ElementTree as ET
from pathlib import Path
from fastrl.memory.check import known_mistakes
from .report import folder, write

root = Path(__file__).resolve().parents[1]
peers = { # library: (pip requirements, buffers)
    'fastrl': ([], ['fastrl','fastrl_priorities']),
    'stable-baselines3': (['stable-baselines3'], ['sb3','sb3_once','sb3_nstep']),
    'tianshou': (['tianshou'], ['tianshou','tianshou_once','tianshou_nstep','tianshou_priorities']),
    'cpprb': (['cpprb'], ['cpprb','cpprb_once','cpprb_priorities','cpprb_checked']),
    'torchrl': (['torchrl'], ['torchrl','torchrl_generator','torchrl_priorities']),
    'flashbax': (['flashbax'], ['flashbax','flashbax_priorities','flashbax_pairs','flashbax_sequences']),
    'dm-reverb': (['dm-reverb[tensorflow]'], ['reverb','reverb_priorities']),
}
flashbax = 'its README: "the user is expected to handle the case of final to first timestep"'
duties = { # (buffer, case): what the documentation says
    ('sb3_once','time_limit'): '`optimize_memory_usage` "cannot be used in combination with `handle_timeout_termination`": a time limit counts as an end',
    ('cpprb_priorities','late_priorities'): 'its docstring names `check_for_update=True`, "to avoid mis-updating priorities of already overwritten values"',
    **{('flashbax_pairs',o): flashbax for o in ('time_limit','last_state')}, ('flashbax_sequences','episodes'): flashbax,
}

def environment(name, needs, python):
    "The Python of an environment that holds the library; ours is here"
    if not needs: return sys.executable
    home = root/'build'/'peers'/name
    if not (home/'.installed').exists():
        subprocess.run([python, '-m', 'venv', home], check=True)
        subprocess.run([home/'bin'/'pip', 'install', '-q', '-c', root/'constraints.txt', 'pytest', *needs], check=True)
        (home/'.installed').touch()
    return home/'bin'/'python'

def run(name, python):
    "What each case said of each buffer of a library: '' if all was right, what was missing, or what was wrong"
    needs,buffers = peers[name]
    bin,out = environment(name, needs, python),root/'build'/'peers'/f'{name}.xml'
    version = subprocess.run([bin, '-c', f'from importlib.metadata import version; print(version({name!r}))'], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    args = [a for o in buffers for a in ('--fastrl-memory', f'bench.peer_buffers:{o}')]
    subprocess.run([bin, '-m', 'pytest', '-q', '-p', 'fastrl.pytest_plugin', '-p', 'no:cacheprovider', '-c', os.devnull, '--rootdir', root, f'--junitxml={out}',
                    *args], cwd=root, env=os.environ | dict(PYTHONPATH=str(root)))
    res = {o: {} for o in buffers}
    for c in ET.parse(out).iter('testcase'):
        said = next(iter(c), None)
        res[c.get('classname').rpartition(':')[2].rpartition('.')[2]][c.get('name')] = dict(
            result='right' if said is None else 'skipped' if said.tag=='skipped' else said.tag, said='' if said is None else said.get('message') if said.tag=='skipped' else said.text.replace(f'{root}/', ''))
    return dict(version=version, buffers=res)

def table(res):
    "The results as markdown: a row per buffer, a column per case, and below it what each case said"
    lines = ['| buffer | '+' | '.join(o.replace('_', ' ') for o in known_mistakes)+' |', '| --- |'+' :---: |'*len(known_mistakes)]
    notes,marks = [],dict(right='✓', skipped='–')
    for lib,o in res.items():
        for name,cases in o['buffers'].items():
            cells = []
            for k in known_mistakes:
                c = cases[k]
                if (mark := marks.get(c['result'])) is None:
                    duty = duties.get((name, k))
                    notes.append((f'yours: {duty}. ' if duty else '')+said(c))
                    mark = f"{'yours' if duty else '✗'} <sup>{len(notes)}</sup>"
                cells.append(mark)
            lines.append(f"| {lib} {o['version']}: {about(name)} | {' | '.join(cells)} |")
    return '\n'.join([*lines, '', *(f'{i}. {o}' for i,o in enumerate(notes, 1)), ''])

def about(name):
    "What the function of a buffer says of it, up to the first colon"
    code = (root/'bench'/'peer_buffers.py').read_text()
    return re.search(rf'def {name}\(.*\n    "(.*)"', code)[1].partition(': ')[0]

def said(c): return c['said'].split('Not here:\n')[-1].split('\n\n')[0].strip().splitlines()[-1].removeprefix('E ').strip()

def main():
    p = argparse.ArgumentParser(prog='python -m bench.check_peers', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('library', nargs='*', help=f'of {", ".join(peers)}; all by default')
    p.add_argument('--python', default=sys.executable)
    args = p.parse_args()
    path = folder/'check_peers.json'
    res = json.loads(path.read_text()) if path.exists() else {}
    for o in args.library or peers:
        res[o] = run(o, args.python)
        write(path, json.dumps({k: res[k] for k in peers if k in res}, indent=1)+'\n')
    write(path.with_suffix('.md'), table({k: res[k] for k in peers if k in res}))

if __name__=='__main__': main()
