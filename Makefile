# pyidem: two commands matter, `make demo` and `make test`. Everything runs in .venv, made on demand.
# Paths are relative throughout, so that the checkout may lie in a path with spaces.

PYTHON ?= python3
ARGS ?=
LANGUAGES ?=
MINUTES ?= 10
SEED ?= 1
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --quiet --disable-pip-version-check --no-input

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test conformance soak mutants broken surroundings versions check format sql freeze revision wheel bench clean

help: ## show this list
	@echo "Usage: make TARGET [ARGS=\"...\"] [PYTHON=python3]"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/demo.stamp ## run the demonstration on an embedded server, e.g. ARGS="--operations 5000 --seed 7"
	@$(PY) -m pyidem.demo $(ARGS)

test: $(VENV)/dev.stamp ## run every test on a throwaway server, e.g. ARGS="-k reserve"
	@$(PY) -m tests.support.provision
	@$(PY) -m tests.conformance.provision
	@$(PY) -m pytest -n auto --maxprocesses 4 $(ARGS)

conformance: $(VENV)/dev.stamp ## play the scenarios in every language and race them, or in some: LANGUAGES="go ruby"
	@$(PY) -m tests.support.provision
	@LANGUAGES="$(LANGUAGES)" $(PY) -m tests.conformance.provision
	@LANGUAGES="$(LANGUAGES)" $(PY) -m tests.conformance.run $(ARGS)

soak: $(VENV)/dev.stamp ## search for a broken promise: model, storms, failovers, load, each MINUTES=10, from SEED=1 on
	@$(PY) -m tests.support.provision
	@PYIDEM_SOAK_MINUTES="$(MINUTES)" PYIDEM_SOAK_SEED="$(SEED)" $(PY) -m pytest -s \
	  tests/model/test_model.py tests/history/test_history.py tests/failover/test_failover.py \
	  tests/resources/test_load.py $(ARGS)

mutants: $(VENV)/dev.stamp ## break the SQL line by line and see a test fail each time, e.g. ARGS="takeover"
	@$(PY) -m tests.support.provision
	@$(PY) -m tests.mutants.run $(ARGS)

broken: $(VENV)/dev.stamp ## break pyidem as a whole and see the model or the history check notice, e.g. ARGS="no-token"
	@$(PY) -m tests.support.provision
	@$(PY) -m tests.mutants.broken $(ARGS)

surroundings: $(VENV)/dev.stamp ## run the client's tests behind PgBouncer, in other encodings and so on, e.g. ARGS="pgbouncer"
	@$(PY) -m tests.support.provision
	@$(PY) -m tests.surroundings.run $(ARGS)

versions: $(VENV)/dev.stamp ## run the SQL tests on PostgreSQL 14 to 18, downloaded once, e.g. ARGS="--major 14"
	@$(PY) -m tests.support.provision
	@$(PY) -m tests.versions.run $(ARGS)

check: $(VENV)/dev.stamp ## format, lint, types, SQL analysis, and whether generated files are current
	@$(PY) -m ruff format --check --quiet . || { echo "Run: make format" >&2; exit 1; }
	@$(PY) -m ruff check --quiet .
	@$(PY) -m mypy
	@$(PY) -m sqlfluff lint --disable-progress-bar sql
	@$(PY) migrations/freeze.py freeze --check
	@$(PY) -m tests.support.provision
	@$(PY) -m pytest tests/check

format: $(VENV)/dev.stamp ## put Python files into their standard form
	@$(PY) -m ruff check --fix-only --quiet .
	@$(PY) -m ruff format .

sql: $(VENV)/dev.stamp ## build one plain SQL file for other migration tools
	@$(PY) migrations/freeze.py sql $(ARGS)

freeze: $(VENV)/dev.stamp ## write sql/ into the frozen text of the newest migration
	@$(PY) migrations/freeze.py freeze $(ARGS)

revision: $(VENV)/dev.stamp ## begin a migration from a released one to what is in sql/: m="what it changes"
	@$(PY) migrations/freeze.py revision --message "$(m)"

wheel: $(VENV)/dev.stamp ## build the wheel and the source archive in dist/
	@$(PY) -m build --outdir dist .

bench: $(VENV)/dev.stamp $(VENV)/bench.stamp ## measure speed and growth, as tables and plots, e.g. ARGS="floors peers"
	@$(PY) -m tests.support.provision
	@$(PY) -m tests.bench $(ARGS)

clean: ## remove .venv, dist, caches and downloaded servers
	@rm -rf $(VENV) .conformance dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .postgres

# One stamp for each set of extras; a changed pyproject.toml installs again.
$(VENV)/demo.stamp $(VENV)/dev.stamp $(VENV)/bench.stamp: $(VENV)/%.stamp: pyproject.toml | $(PY)
	@echo "Installing the $* packages into $(VENV) (the first time takes a minute)"
	@$(PIP) install --editable '.[$*]'
	@touch $@

$(PY):
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "pyidem needs Python 3.11 or newer as $(PYTHON); name another one with PYTHON=..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments. On Debian: apt-get install python3-venv" >&2; exit 1; }
	@"$(PYTHON)" -m venv $(VENV)
