"Collect each notebook as one test, which runs the cells that `nbdev-test` would"
import gc, logging, multiprocessing, os, pkgutil, pytest, re, sys, traceback
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from unittest.mock import patch
from execnb.shell import CaptureShell
from fastcore.xtras import working_directory
from nbdev.config import get_config
from nbdev.test import nb_test_cells

cfg = get_config(__file__)
skip_flags = cfg.tst_flags.split()
# IN_TEST, as `nbdev-test` has it: `nbdev_export()` in a notebook does nothing. SDL would take SIGTERM for itself, and pools
# of processes end their workers with it
env = dict(IN_TEST='1', PLOTLY_RENDERER='plotly_mimetype', MPLBACKEND='agg', SDL_NO_SIGNAL_HANDLERS='1')

# pages and modules by their last part, and what they need of what not every installation has
optional = dict(sb3='stable_baselines3')
def lacks(name): return (need := optional.get(re.split(r'[./_]', name)[-1])) and not find_spec(need)

@cache
def library_classes():
    "Those of all modules: a later import changes none of them"
    import fastrl
    modules = [import_module(o.name) for o in pkgutil.walk_packages(fastrl.__path__, 'fastrl.') if not lacks(o.name)]
    return {o for m in modules for o in vars(m).values() if isinstance(o, type) and o.__module__.startswith('fastrl.')}

def our_loggers():
    "Those of the library, and of the functions that notebooks define"
    names = [o for o in logging.root.manager.loggerDict if o=='__main__' or o.partition('.')[0]=='fastrl']
    return [logging.root, *map(logging.getLogger, names)]

@contextmanager
def unpatched():
    "A notebook may patch classes of other modules, and quieten their logs: the next one gets the library as it is"
    before = {c: dict(vars(c)) for c in library_classes()}
    levels = {o: o.level for o in our_loggers()}
    try: yield
    finally:
        for o in our_loggers(): o.setLevel(levels.get(o, logging.NOTSET))
        for c,was in before.items():
            for k in [k for k,v in vars(c).items() if v is not was.get(k)]: setattr(c, k, was[k]) if k in was else delattr(c, k)

class NbItem(pytest.Item):
    "One notebook; its `#| long` cells too, if `force` says so"
    def __init__(self, *, force=(), **kw):
        super().__init__(**kw)
        self.force = force

    def runtest(self):
        cells = nb_test_cells(self.path, skip_flags, self.force)
        if not cells: pytest.skip('no cells to run')
        if lacks(self.path.stem): pytest.skip(f'{optional[self.path.stem.split("_")[-1]]} is not installed')
        main = sys.modules['__main__']  # the shell takes its place
        # A notebook may change the folder, the environment and the path: the next one starts without its changes
        with (unpatched(), working_directory(self.path.parent), patch.dict(os.environ, env),
              patch.object(sys, 'path', sys.path[:])):
            k = CaptureShell(self.path)
            try:
                for self.cell in cells:
                    k.cell(self.cell, timeout=cfg.cell_timeout)
                    if k.exc: raise k.exc
            finally:
                for p in multiprocessing.active_children(): p.kill()  # else a cell that hangs keeps this process from ending
                k.close()
                sys.modules['__main__'] = main
                if 'matplotlib.pyplot' in sys.modules: sys.modules['matplotlib.pyplot'].close('all')
                del k
                # The threads of ALE's vector end here: a worker that a later test forks would abort where it frees them
                if 'ale_py.vector_env' in sys.modules: gc.collect()

    def repr_failure(self, excinfo):
        e,c = excinfo.value,getattr(self, 'cell', None)
        if c is None: return super().repr_failure(excinfo)
        tb = e.__traceback__
        while tb and '<ipython' not in tb.tb_frame.f_code.co_filename: tb = tb.tb_next  # drop the runner's frames
        return f"{self.path.name}, cell {c.idx_} (id {c.id}):\n\n{c.source}\n\n{''.join(traceback.format_exception(type(e), e, tb))}"

    def reportinfo(self): return self.path, None, self.name

class NbFile(pytest.File):
    def collect(self):
        item = NbItem.from_parent(self, name=self.path.stem)
        named = [self.config.invocation_params.dir/o.partition('::')[0] for o in self.config.args]
        # many of these pages train, or start processes: `make test-slow` runs them, and so does whoever names one
        if self.path.parent.name in ('howto','tutorials') and self.path not in named: item.add_marker('slow')
        yield item
        if any('long' in c.directives_ for c in nb_test_cells(self.path, skip_flags, ['long'])):
            item = NbItem.from_parent(self, name=f'{self.path.stem}-long', force=['long'])
            item.add_marker('long')
            yield item

def pytest_collect_file(file_path, parent):
    if file_path.suffix=='.ipynb' and file_path.name[0] not in '_.': return NbFile.from_parent(parent, path=file_path)
