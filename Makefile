# Two commands on a fresh clone: `make demo` and `make test`. They need Python 3.11+, make and pip.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test test-slow test-all faults bench lint layers types check clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/attnlab demo

test: $(VENV)/.dev
	$(BIN)/pytest -n auto --dist loadfile -m "not slow"

test-slow: $(VENV)/.dev
	$(BIN)/pytest -n auto --dist loadfile -m slow

test-all: $(VENV)/.dev
	$(BIN)/pytest -n auto --dist loadfile

# Fifteen minutes of faults, and the table of docs/reliability.md: make faults FAULTS="--minutes 1 --seed 7"
faults: $(VENV)/.dev
	PYTHONPATH=src OMP_NUM_THREADS=1 $(BIN)/python -m tools.faults --out docs/reliability.md $(FAULTS)

# All benchmarks, in under half an hour on a quiet machine, and docs/performance.md: make bench BENCH="--only sampling"
bench: $(VENV)/.dev
	$(BIN)/python benchmarks/performance.py --out docs/performance.md $(BENCH)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

layers: $(VENV)/.dev
	$(BIN)/lint-imports

types: $(VENV)/.dev
	$(BIN)/mypy

check: lint layers types test

# A stamp file per set of extras: installed again only when the requirements change.
$(VENV)/.demo $(VENV)/.dev: $(VENV)/.%: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt --editable '.[$*]'
	touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "attnlab needs Python 3.11 or newer: make PYTHON=python3.11 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache build src/*.egg-info
