# Everything starts here. On a machine with git, make and python3, `make demo` is enough: it sets up what it needs.
.DEFAULT_GOAL := help
SHELL := /bin/bash
BIN := .venv/bin

.PHONY: help setup web webtest demo test lint types fmt bench faults clean

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/.ready ## Install everything into .venv (the other targets do it by themselves)

# A second run is immediate: the stamp is only older than these when a dependency has changed.
.venv/.ready: pyproject.toml uv.lock scripts/setup.sh
	@scripts/setup.sh
	@touch $@

# As the wheel has them. Built again when a source is newer.
web: setup src/holdfast/pages/index.html ## Build the web pages into the package

src/holdfast/pages/index.html: $(shell find web -name node_modules -prune -o -name dist -prune -o -type f -print)
	@scripts/web.sh build
	@touch $@

webtest: setup ## Test the web pages, in a real browser too
	@scripts/web.sh test

demo: setup ## Run the demo: a theatre on sale, with simulated buyers
	@$(MAKE) --no-print-directory web || echo "The web pages could not be built; the demo goes on without them." >&2
	@$(BIN)/holdfast demo

lint: setup ## Check style and form
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: setup ## Check types
	$(BIN)/mypy --strict

# Races, faults and measurements want the machine for themselves; everything else shares it.
ALONE := tests/race tests/faults tests/test_bench.py

test: lint types ## Check style, form and types, then run every test
	$(BIN)/pytest -n 2 --dist loadfile $(ALONE:%=--ignore=%)
	$(BIN)/pytest $(ALONE)

fmt: setup ## Mend style and form where that can be done by itself
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format

bench: setup ## Measure
	$(BIN)/holdfast bench

faults: setup ## Kill, stop and poison servers under load, and check every promise
	$(BIN)/holdfast faults --seconds 60

clean: ## Remove what was installed and cached, but no data
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
