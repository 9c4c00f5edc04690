# What a newcomer needs: `make run`, `make test`. What a change needs: `make gates test`, which is all that .ci/run does.
# Plain python3 with venv and pip is enough; where uv is at hand it installs the same hashes faster.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
UV := $(shell uv --version >/dev/null 2>&1 && echo uv)
INSTALL = $(if $(UV),uv pip install --quiet --python $(BIN)/python,$(BIN)/python -m pip install -qq --disable-pip-version-check)
LOCK = uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command "make lock"
# Directories are listed too: their time changes when a file goes away.
SOURCES := $(shell find proxy policies -name __pycache__ -prune -o -print)
# Branch coverage of the shell, in per cent. It only ever rises.
PROXY_FLOOR := 97

.PHONY: help run test gates style types layers sizes containers audit format e2e bench lock clean
help: ## this list
	@grep -hE '^[a-z0-9]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: $(VENV)/.wheel ## install once, then serve on loopback (EDGEWISE_UPSTREAM, or an embedded upstream)
	@exec $(BIN)/edgewise serve $(ARGS)

test: $(VENV)/.dev $(VENV)/.wheel ## the tests, on the built and installed wheel, with the coverage floors
	@rm -f .coverage .coverage.*
	EDGEWISE_WHEEL=1 $(BIN)/pytest --cov --cov-report= $(ARGS)
	@echo "coverage of policies/: every branch"
	@$(BIN)/coverage report --include='policies/*' --fail-under=100
	@echo "coverage of proxy/: at least $(PROXY_FLOOR) %"
	@$(BIN)/coverage report --include='proxy/*' --fail-under=$(PROXY_FLOOR)

gates: style types layers sizes containers audit ## everything that is checked without running the product

style: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy
	MYPYPATH=bench:tests $(BIN)/mypy bench/*.py
	MYPYPATH=e2e:tests $(BIN)/mypy e2e/*.py
	$(BIN)/pyright --pythonpath $(BIN)/python

layers: $(VENV)/.dev
	$(BIN)/lint-imports

sizes: $(VENV)/.dev
	$(BIN)/python tools/sizes.py

containers: $(VENV)/.dev
	$(BIN)/python tools/containers.py

audit: $(VENV)/.dev
	$(BIN)/python tools/audit.py requirements-build.lock requirements-dev.lock

format: $(VENV)/.dev ## lay the code out
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

e2e: $(VENV)/.dev $(VENV)/.wheel ## a real model, real clients and the image; needs ../shared/kit
	bash e2e/run.sh

bench: $(VENV)/.dev $(VENV)/.wheel ## the bars of cost, size and fit, each with its method
	bash bench/run.sh

lock: ## resolve the hash-locked requirements again (needs uv)
	$(LOCK) pyproject.toml -o requirements.lock
	$(LOCK) --group pyproject.toml:build -c requirements.lock -o requirements-build.lock
	$(LOCK) pyproject.toml --extra sealed --extra valkey -c requirements.lock -o requirements-image.lock
	$(LOCK) pyproject.toml --all-extras --group dev -c requirements.lock -o requirements-dev.lock

clean: ## remove what was built and installed
	rm -rf $(VENV) build dist .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/.python:
	@bash tools/venv.sh $(VENV)
	@touch $@

$(VENV)/.runtime: requirements.lock requirements-build.lock | $(VENV)/.python
	@echo "installing what requirements.lock names"
	@$(INSTALL) --require-hashes -r requirements.lock -r requirements-build.lock
	@touch $@

$(VENV)/.dev: requirements-dev.lock | $(VENV)/.runtime
	@echo "installing what requirements-dev.lock names"
	@$(INSTALL) --require-hashes -r requirements-dev.lock
	@touch $@

$(VENV)/.wheel: $(SOURCES) pyproject.toml README.md LICENSE NOTICE | $(VENV)/.runtime
	@rm -rf dist
	@$(BIN)/hatchling build -t wheel -d dist
	@$(INSTALL) --no-deps --force-reinstall dist/*.whl
	@touch $@
