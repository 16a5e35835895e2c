# `make` alone lists the targets. Each makes the environment that it needs, so each can be the first on a fresh machine.
PYTHON ?= python3
BIN := .venv/bin
# What to hold the versions to; `CONSTRAINTS=/dev/null` takes the newest that settings.ini allows
CONSTRAINTS ?= constraints.txt
PROCS ?= 2
setting = $(shell sed -n 's/^$(1) *= *//p' settings.ini)
list = $(shell sed -n "/^$(1) *=/,/^[^ ]/s/^  *\(.*\)/'\1'/p" settings.ini)
BENCH_PIP = .venv-bench/bin/python -m pip install -q -c $(CONSTRAINTS)
# Figures are stored as JSON, not each with 5 MB of plotly.js, and pictures are drawn without a screen
export PLOTLY_RENDERER := plotly_mimetype
export MPLBACKEND := agg
export SDL_VIDEODRIVER := dummy
# Images for containers set it; then each process that a test starts would compile all that it imports
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help install test test-slow test-long demo learn bench docs dist export readme save check clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-10s %s\n", $$1, $$2}' Makefile

install: .venv/.installed ## make .venv, with what developing needs
# The stamp is written last: an install that was cut short starts again
.venv/.installed: settings.ini setup.py pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; need = "$(call setting,min_python)"; sys.exit(sys.version_info[:2] < tuple(map(int, need.split("."))) and \
	  "fastrl needs Python %s or newer, and $(PYTHON) is %s. Name another: make PYTHON=..." % (need, sys.version.split()[0]))'
	@echo 'Installing into .venv: a minute or two, once'
	rm -f $@
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --no-compile -c $(CONSTRAINTS) -e '.[dev]' # half of the files are never imported
	@touch $@

test: export OMP_NUM_THREADS = 1
test: install ## run the library's notebooks and the repository's tests, side by side in `PROCS=2` processes
	$(BIN)/python -m pytest -n $(PROCS) --maxschedchunk=1

test-slow: export OMP_NUM_THREADS = 1
test-slow: install ## run the tutorials and recipes, and what takes seconds each: trainings, clusters, kills, a browser
	$(BIN)/python -m pytest -m 'slow and not long' -n $(PROCS) --maxschedchunk=1

test-long: export OMP_NUM_THREADS = 1
test-long: install ## run the checks that take minutes each
	$(BIN)/python -m pytest -m long -n $(PROCS) --maxschedchunk=1

demo: install ## run examples/demo.py
	$(BIN)/python examples/demo.py

learn: install ## train the agents on ten seeds, some hours: bench/results/learn.md and r2d2.md
	$(BIN)/python -m pip install -q --no-deps 'MinAtar>=1.0.15' # what it requires is for its window
	$(BIN)/python -m bench.learn
	$(BIN)/python -m bench.r2d2

bench: .venv-bench/.installed $(if $(filter priority scaling,$(or $(TOPICS),scaling)),.venv-torchrl/.installed) ## measure the library beside its peers, all topics or `TOPICS='add sample'`
	.venv-bench/bin/python -m bench.run $(TOPICS)
# An environment of its own, since the peers ask for older packages. One that cannot be installed keeps nobody else from being
# measured; torchrl is tried last, as its wheels fit one torch only: what is compiled in it needs the next environment.
.venv-bench/.installed: settings.ini setup.py pyproject.toml constraints.txt
	@echo 'Installing what we are measured beside into .venv-bench: some minutes, once'
	rm -f $@
	$(PYTHON) -m venv .venv-bench
	@$(BENCH_PIP) -e '.[bench]' || { $(BENCH_PIP) -e . && \
	  for o in $(call list,bench_requirements); do $(BENCH_PIP) "$$o" || echo "$$o cannot be installed here"; done; }
	@$(BENCH_PIP) torchrl || echo 'torchrl cannot be installed here'
	@touch $@

# torchrl with the torch that its wheels are built for. On Linux that is the one for CUDA, some 3 GB
.venv-torchrl/.installed: settings.ini
	@echo 'Installing torchrl with its own torch into .venv-torchrl: some minutes and 6 GB, once'
	rm -f $@
	$(PYTHON) -m venv .venv-torchrl
	@.venv-torchrl/bin/python -m pip install -q $(call list,torchrl_requirements) $(call list,requirements) && \
	  .venv-torchrl/bin/python -W ignore -c 'import torchrl._torchrl' || \
	  { echo 'no figures for what is compiled in torchrl'; rm -rf .venv-torchrl; mkdir .venv-torchrl; }
	@touch $@

docs: install ## build the site into build/docs/
	$(BIN)/python docs/stage.py
	rm -rf build/docs build/doctrees
	$(BIN)/python -m sphinx -q -W --keep-going -d build/doctrees -c docs build/nbs build/docs
	$(BIN)/python docs/check.py build/docs

dist: export PYTHONPATH :=
dist: install ## build sdist and wheel into dist/, and use the wheel in an empty environment
	rm -rf dist build/empty
	$(BIN)/python -m build -o dist . > /dev/null
	$(PYTHON) -m venv build/empty
	build/empty/bin/python -m pip install -q --no-compile -c $(CONSTRAINTS) dist/*.whl # most files are never imported there
	cd build/empty && bin/python ../../tests/installed.py
	build/empty/bin/python -m pip install -q pytest # which finds our plugin
	cd tests && ../build/empty/bin/python -m pytest -q -p no:cacheprovider -c /dev/null --fastrl-memory broken:Right

export: install ## write fastrl/ from the notebooks, with stubs, and its version from settings.ini
	$(BIN)/python -c "from nbdev.config import set_version; set_version('fastrl', '$(call setting,version)')"
	$(BIN)/nbdev-export
	$(BIN)/python docs/library.py

readme: install ## write README.md from nbs/index.ipynb
	$(BIN)/python docs/stage.py readme

save: export ## export, re-run the notebooks, store their outputs, write README.md
	$(BIN)/nbdev-test --save
	$(BIN)/nbdev-clean
	$(BIN)/python docs/stage.py readme

check: export ## fail unless what is committed is what the notebooks give
	$(BIN)/nbdev-clean
	$(BIN)/python docs/stage.py readme
	git diff --exit-code -- nbs fastrl README.md
	test -z "$$(git status --porcelain -- nbs fastrl README.md)"
	$(BIN)/python -m pytest -q tests/test_repo.py

clean: ## remove what was built (.venv and .venv-bench stay)
	rm -rf build dist *.egg-info demo .pytest_cache .ruff_cache
	find . -path './.venv*' -prune -o -name __pycache__ -prune -exec rm -rf {} +
