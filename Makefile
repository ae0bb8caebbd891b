# Everything here needs Python 3.11 (or newer), pip and make; each target sets up what it needs in .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow faults test-sdist lint format bench docs docs-serve clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.demo  ## Compare GCAPS-CNN with three others on MUTAG, honestly, with a report (about 2 minutes)
	$(BIN)/gcaps demo

test: $(VENV)/.dev  ## Run all tests but the slow ones
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal

test-slow: $(VENV)/.dev  ## Run the slow tests: killed processes, faults, larger comparisons
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow

faults: $(VENV)/.dev  ## Broken inputs, mutants, kills, signals, full disks: one table (about an hour)
	OMP_NUM_THREADS=1 PYTHONPATH=. $(BIN)/python -m tests.faults

# every test module must import from the unpacked sdist, and those that read files of the package must pass there
test-sdist: $(VENV)/.dev  ## Build the sdist, unpack it and test it
	rm -rf build/sdist
	$(BIN)/python -m build --sdist --no-isolation --outdir build/sdist
	tar -xzf build/sdist/gcaps-*.tar.gz -C build/sdist --strip-components 1
	cd build/sdist && PYTHONPATH=src ../../$(BIN)/python -m pytest --collect-only --quiet > collected.txt
	cd build/sdist && OMP_NUM_THREADS=1 PYTHONPATH=src ../../$(BIN)/python -m pytest --numprocesses 2 \
		tests/data tests/report tests/docs tests/test_persistence.py tests/evaluation/test_experiments.py

lint: $(VENV)/.dev  ## Formatting, lint, types and the layers' contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev  ## Put the code into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev  ## Speed and memory against peers, short form
	$(BIN)/python benchmarks/start.py --short
	$(BIN)/python benchmarks/reading.py
	$(BIN)/python benchmarks/featurization.py --short
	$(BIN)/python benchmarks/capsules.py --short
	$(BIN)/python benchmarks/training.py --short
	$(BIN)/python benchmarks/merging.py --short
	$(BIN)/python benchmarks/compiled.py --short
	$(BIN)/python benchmarks/scaling.py --short
	$(BIN)/python benchmarks/memory.py --short
	$(BIN)/python benchmarks/prediction.py --short
	$(BIN)/python benchmarks/fgsd.py --short
	$(BIN)/python benchmarks/kernels.py --short
	$(BIN)/python benchmarks/svm.py
	$(BIN)/python benchmarks/distances.py
	$(BIN)/python benchmarks/compare.py kill --short
	$(BIN)/python benchmarks/tasks_nodes.py --short
	$(BIN)/python benchmarks/tasks_links.py --short

docs: $(VENV)/.docs  ## Build the documentation into site/ (open site/index.html)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: $(VENV)/.docs  ## Serve the documentation and rebuild it when a page changes
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

clean:  ## Remove the environment, the documentation's pages and what the demo made
	rm -rf $(VENV) demo site

# torch first and pinned: left to another package's requirement, pip may fetch gigabytes of another build
$(VENV)/.demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (torch first; this takes a few minutes once)"
	$(PIP) $$(grep '^torch==' constraints.txt)
	$(PIP) --editable '.[demo]'
	$(BIN)/python -m gcaps.compile
	touch $@

$(VENV)/.docs: $(VENV)/.demo
	$(PIP) --editable '.[docs]'
	touch $@

$(VENV)/.dev: $(VENV)/.demo
	$(PIP) --editable '.[dev]'
	touch $@
