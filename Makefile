# Two commands: `make demo` shows a first result, `make test` does everything CI does.
# Both need only Python 3.11+, make and git; they build their own environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Processes times BLAS threads must not exceed the cores.
WORKERS ?= 2
COMPILE := uv pip compile -q --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --no-annotate pyproject.toml

.PHONY: demo test lint types unit bench dist try-wheel lowest docs check-docs lock clean

demo: $(VENV)/.core
	$(BIN)/prevalens demo

test: lint types unit

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.dev
	$(BIN)/mypy

unit: $(VENV)/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --dist worksteal

bench: $(VENV)/.dev
	$(BIN)/pytest benchmarks --benchmark-enable --benchmark-only -p no:xdist

# The wheel and the source archive in dist/, checked.
dist: $(VENV)/.dev
	rm -rf dist
	$(BIN)/python -m build -q
	$(BIN)/python release/repack.py dist/*.whl
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl

# The wheel in fresh environments of every supported Python on the path, alone and with [all];
# name others: make try-wheel PYTHONS="--python /opt/python3.12/bin/python3".
PYTHONS ?=
try-wheel: dist
	$(BIN)/python release/try_wheel.py $(PYTHONS) dist

# The same with the lowest versions that pyproject.toml allows; needs uv on the path.
lowest: dist
	$(BIN)/python release/try_wheel.py --lowest $(PYTHONS) dist

# The site in site/, without a request to anywhere; a warning is an error.
docs: $(VENV)/.dev
	$(BIN)/python docs/site/assemble.py build/docs
	$(BIN)/sphinx-build -q -W --keep-going -c docs/site -d build/doctrees build/docs site

# The built pages: HTML, links, requests, search and accessibility; the last three need Chromium.
check-docs: $(VENV)/.dev
	$(BIN)/python docs/site/check.py site

# The locked environments; a change of the lock or of the build set-up makes them anew.
$(VENV)/.python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else \
	"prevalens needs Python 3.11 or newer; %s is %d.%d. Name another one: make PYTHON=python3.12 ..." \
	% (sys.executable, v[0], v[1]))'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.core: requirements/core.txt pyproject.toml $(VENV)/.python
	$(BIN)/python -m pip install -q --require-hashes -r requirements/core.txt
	$(BIN)/python -m pip install -q --no-deps -e .
	@touch $@

$(VENV)/.dev: requirements/dev.txt pyproject.toml $(VENV)/.python
	$(BIN)/python -m pip install -q --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install -q --no-deps -e .
	@touch $@ $(VENV)/.core

# Needs uv on the path; run it after a change of the dependencies.
lock:
	$(COMPILE) -o requirements/core.txt
	$(COMPILE) --extra all --group dev --group dist --group docs -o requirements/dev.txt
	$(COMPILE) --extra serve --extra fast --extra frames --extra excel -o requirements/serve.txt

clean:
	rm -rf $(VENV) dist build site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
