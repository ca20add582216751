PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help venv run test format messages settings bench lock
.DEFAULT_GOAL := help

help: ## show these targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Sabio needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + ". Name another: make PYTHON=python3.12 run")' </dev/null
	@$(PYTHON) -m venv $(VENV) </dev/null >&2

$(VENV)/.runtime: requirements.lock | $(BIN)/python
	@echo "Installing what Sabio needs into $(VENV) …" >&2
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements.lock </dev/null >&2
	@touch $@

$(VENV)/.development: requirements-dev.lock $(VENV)/.runtime
	@echo "Installing what the tests need into $(VENV) …" >&2
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements-dev.lock </dev/null >&2
	@touch $@

venv: $(VENV)/.runtime ## set up .venv from the lock file

run: $(VENV)/.runtime ## set up and start the bot: a terminal chat when nothing is configured
	@$(BIN)/python -m bot run

test: $(VENV)/.development ## set up and run everything that guards the code
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n auto

format: $(VENV)/.development ## let ruff format and mend what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

messages: $(VENV)/.runtime ## find every text in the code and bring the catalogs up to date
	$(BIN)/python locales/update.py

settings: $(VENV)/.runtime ## write .env.example from the settings there are
	$(BIN)/python -c "from bot.registry import load; from bot.settings import example; print(example(load(installed=False).sections), end='')" > .env.example

BENCHES := turn memory retrieval speed chunking pdf faulty telegram

bench: $(VENV)/.development ## measure everything, and print the figures; one alone: make bench BENCHES=turn
	@for name in $(BENCHES); do echo "== bench.$$name"; $(BIN)/python -m bench.$$name || exit 1; done

lock: ## pin the newest versions that pyproject.toml allows (needs uv)
	uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links --upgrade -q -o requirements.lock
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links --upgrade -q -o requirements-dev.lock
