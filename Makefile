# Every target sets up what it needs, in .venv and build/; a second run starts at once.
# ARGS= is passed on:  make demo ARGS=--check   make test ARGS="tests/assembly -k late"

ARGS ?=
SHELL := /bin/sh
BIN := .venv/bin
# Downloads stay in the tree, so that `make clean` leaves nothing behind on the machine.
export UV_CACHE_DIR ?= $(CURDIR)/build/cache/uv
# Chromium and vLLM write into the home directory: they get one in the tree.
RUN := mkdir -p build/home && HOME=$(CURDIR)/build/home $(BIN)/python
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python

.DEFAULT_GOAL := help
.PHONY: help demo test live bench lint format generate lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

demo: .venv/.run ## the sidecar fed with the recorded real run, and the explorer (ARGS=--check compares and exits)
	@$(BIN)/turnscope demo $(ARGS)

# Engines, Phoenix, the router and agents clash with our dependencies and get environments of their own in build/; their set-up
# scripts know when there is nothing to do. What cannot be set up does not keep the other tests from running: its own fail
# and say so.
test: .venv/.dev ## all set-up, then every test, the live pair's as well
	@sh scripts/system.sh
	@$(BIN)/python tests/outputs/phoenix_setup.py || echo "the tests that need Phoenix will fail" >&2
	@$(BIN)/python live/router_setup.py || echo "the tests that need vllm-router will fail" >&2
	@$(BIN)/python tests/node/setup.py || echo "the tests that need npm packages will fail" >&2
	@$(BIN)/python tests/agents/setup.py || echo "the tests with real agents will fail" >&2
	@$(BIN)/python live/setup.py || echo "the tests that need the live pair will fail" >&2
	@$(RUN) -m pytest $(ARGS)

live: .venv/.dev ## a real vLLM prefill/decode pair, reconciled with its own counters
	@$(BIN)/python live/router_setup.py
	@$(BIN)/python live/setup.py
	@$(RUN) -m live $(ARGS)

bench: .venv/.dev ## what the hook costs, how fast pages open; writes build/bench.json
	@sh scripts/system.sh
	@$(BIN)/python live/setup.py
	@$(RUN) -m bench.run $(ARGS)

lint: .venv/.dev ## ruff, mypy, import floors, generated files
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m docs.generate --check

format: .venv/.dev ## let ruff rewrite what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

generate: .venv/.dev ## rewrite the generated files
	@$(BIN)/python -m docs.generate

lock: .venv/.tools ## bring requirements.lock in step with pyproject.toml (ARGS=--upgrade takes newer versions)
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras --group dev $(ARGS) \
	    --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	    pyproject.toml -o requirements.lock

clean: ## remove everything that was set up or built here
	@rm -rf .venv build

# The locked versions, as much as each target needs.
.venv/.tools: scripts/venv.sh
	@echo "setting up .venv"
	@sh scripts/venv.sh
	@touch $@

.venv/.run: .venv/.tools pyproject.toml requirements.lock
	@echo "installing turnscope"
	@$(INSTALL) --constraint requirements.lock --editable '.[all]'
	@touch $@

.venv/.dev: .venv/.run
	@echo "installing what tests and checks use"
	@$(INSTALL) --requirement requirements.lock
	@touch $@
