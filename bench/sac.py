"""The soft actor-critic of nbs/tutorials/sac.ipynb with other seeds and for longer: bench/results/sac.json, which the page shows

    python -m bench.sac [--seeds 2] [--steps 8000]

What runs is the page's own code, from its imports to `sac_learner`."""
import argparse, json
from time import perf_counter
from fastcore.nbio import read_nb
from .report import folder, machine, write

page = folder.parents[1]/'nbs'/'tutorials'/'sac.ipynb'

def page_names():
    "What the page defines, up to `sac_learner`, and imports"
    names = {'__name__':'sac'}
    for c in read_nb(page).cells:
        if c.cell_type!='code': continue
        defines = 'def sac_learner' in c.source
        exec(compile(c.source.split('\nlearn = ')[0] if defines else c.source, page.name, 'exec'), names)
        if defines: return names

def main():
    p = argparse.ArgumentParser(prog='python -m bench.sac', description=__doc__)
    p.add_argument('--seeds', type=int, default=2)
    p.add_argument('--steps', type=int, default=8000)
    args = p.parse_args()
    make,runs = page_names()['sac_learner'],[]
    for seed in range(1, 1+args.seeds): # 0 is the page's
        learn,start = make(seed=seed),perf_counter()
        with learn.no_bar(), learn.no_logging(): learn.fit(args.steps//1000)
        returns = [round(float(o[2]), 1) for o in learn.recorder.values]
        runs.append(dict(seed=seed, steps=[1000*(i+1) for i in range(len(returns))], returns=returns, seconds=round(perf_counter()-start)))
        print(runs[-1], flush=True)
        write(folder/'sac.json', json.dumps(dict(machine=machine(), runs=runs), indent=1)+'\n')

if __name__=='__main__': main()
