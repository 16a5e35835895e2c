"Measure all cases, or those of the topics that are named: `python -m bench.run add sample`"
import gc, sys, warnings
from importlib import import_module
import torch
from . import device, scaling
from .measure import measure, reason
from .report import Results, line

topics = ['add','vectors','sample','frames','ahead','growth','collect','priority','hindsight','episodes','bank','parallel','disk','train','device','scaling']

def draw(results):
    if not results.cases: return
    try: print(f'Written: {results.path.with_suffix(".md")} {results.plot() or ""}')
    except Exception as e: print(f'Written: {results.path.with_suffix(".md")}; no picture: {reason(e)}')

def main(names=()):
    from tqdm import tqdm
    if unknown := set(names)-set(topics): sys.exit(f'there are the topics {topics}, not {sorted(unknown)}')
    torch.set_num_threads(1)
    cases = {t: import_module(f'.{t}', __package__).cases for t in topics if t not in ('device','scaling')}
    results = Results([c.name for cs in cases.values() for c in cs])
    todo = [c for t in names or topics for c in cases.get(t, [])]
    try:
        with tqdm(todo, unit='case', desc='bench') as bar:
            for c in bar:
                bar.set_postfix_str(c.name)
                warnings.simplefilter('ignore') # what libraries say about one another is not ours to mend
                res = measure(c, each=lambda it: tqdm(it, desc='  turns', leave=False))
                gc.collect() # one case's memories go before the next one's come
                results.add(res)
                tqdm.write(' | '.join(filter(None, line(res))))
                for p,why in res['failed'].items(): tqdm.write(f'  no figure for {p}: {why}')
        if 'device' in (names or topics): device.run(lambda it: tqdm(it, desc='a GPU'))
        if 'scaling' in (names or topics): scaling.run()
    except KeyboardInterrupt: sys.exit('\nStopped. What was finished is kept, and the next run completes the curves.')
    finally:
        if todo: draw(results)

if __name__=='__main__': main(sys.argv[1:])
