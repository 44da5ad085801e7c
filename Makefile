# Everything a newcomer needs. `make app` and `make test` set themselves up.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SIDE_BY_SIDE := -n 2 --dist loadfile

.PHONY: help setup app test test-slow test-boards lint format bench

help:  ## Say what there is.
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*##/ —/'

setup: $(VENV)/.installed  ## Make .venv and install everything in it.

$(VENV)/.installed: requirements.txt requirements-dev.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

app: setup  ## Open the explorer on the shipped digits checkpoint.
	$(BIN)/streamlit run app.py

test: setup  ## Run the tests.
	$(BIN)/python -m pytest $(SIDE_BY_SIDE)

test-slow: setup  ## Run the tests that kill workers and start database servers.
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m slow tests/jobs

test-boards: setup  ## Compare hundreds of boards in a browser with Python.
	$(BIN)/python -m pytest -m slow tests/ui

lint: setup  ## Check style and types.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup  ## Put every file into the house's format.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup  ## Measure against rivals, for a few minutes, and name the benchmarks that take longer.
	$(BIN)/python -m benchmarks
