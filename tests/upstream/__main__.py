"""The test suites of the systems that fastrl unites, with the import changed:

    python -m tests.upstream velora [--clone FOLDER] [pytest arguments]

fetches a suite at the version that `velora.py` beside this file names (or takes your clone), changes the import in a copy
below build/upstream, installs what the suite needs into a folder beside it, runs it, and fails unless exactly the tests
in `differs` fail."""
import argparse, importlib, io, os, re, shutil, subprocess, sys, tarfile
from pathlib import Path

here = Path(__file__).resolve().parent
root = here.parents[1]
names = sorted(o.stem for o in here.glob('[a-z]*.py'))

def git(*args): subprocess.run(['git', *map(str, args)], check=True)

def fetch(suite, clone, to):
    "The files of `suite.commit`, or those that `suite.files` names, without history, in the folder `to`"
    if clone is None:
        clone = to.parent/'clone'
        if not clone.exists(): git('clone', '-q', suite.url, clone)
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    files = subprocess.run(['git', '-C', clone, 'archive', suite.commit, '--', *getattr(suite, 'files', ['.'])],
                           check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=io.BytesIO(files)) as t: t.extractall(to, filter='data')

def install(suite, to):
    "What the suite imports and we do not, with neither the packages it pins nor another torch"
    if not suite.needs or (to/'.installed').exists(): return
    subprocess.run([sys.executable, '-m', 'pip', 'install', '-q', '--no-deps', '--target', to,
                    '-c', root/'constraints.txt', *suite.needs], check=True)
    (to/'.installed').touch()

def main():
    p = argparse.ArgumentParser(prog='python -m tests.upstream', description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('name', choices=names)
    p.add_argument('--clone', type=Path, help='take the suite from this clone')
    args,rest = p.parse_known_args()
    suite = importlib.import_module(f'tests.upstream.{args.name}')
    work = root/'build'/'upstream'/args.name
    fetch(suite, args.clone, work/'src')
    install(suite, work/'packages')
    suite.prepare(work/'src')
    env = os.environ | dict(PYTHONPATH=os.pathsep.join(map(str, [work/'src', root, work/'packages'])), MPLBACKEND='agg')
    out = subprocess.run([sys.executable, '-m', 'pytest', '-q', '-rA', '--tb=short', '-p', 'no:cacheprovider', '--rootdir', work/'src',
                          '-c', os.devnull, *suite.tests, *rest], cwd=work/'src', env=env, text=True, stdout=subprocess.PIPE).stdout
    print(out)
    lines = re.findall(r'^(PASSED|FAILED|ERROR) (\S+)', out, flags=re.M)
    failed = {o for how,o in lines if how!='PASSED'}
    wrong,passed = sorted(failed-set(suite.differs)),sorted(set(suite.differs)&{o for how,o in lines if how=='PASSED'})
    print(f'{len(lines)-len(failed)} pass, {len(failed)-len(wrong)} differ on purpose')
    for o in wrong: print(f'should pass: {o}')
    for o in passed: print(f'passes now, and should leave `differs`: {o}')
    sys.exit(bool(wrong or passed) or not lines)

if __name__=='__main__': main()
