# make demo   set up, count the words of the standard library's code, compare boxed and unboxed sends
# make test   set up, check style and types, run the tests on PYTHON and on the newest Python
#             found, and those of what runs on every kind of event loop
# make loops  the tests of what runs, in asyncio's debug mode, on uvloop, and with eager tasks
# make lint   style and types only
# make docs   build the documentation into site/, with every warning an error
# make bench  the full benchmarks on the same two Pythons, written to benchmarks/results/
# make clean  remove the environments and everything that was built

SHELL := /bin/sh
.DELETE_ON_ERROR:

ifndef PYTHON
PYTHON := $(shell scripts/find-python first)
endif
ifndef NEWEST
NEWEST := $(shell scripts/find-python newest)
endif
ifeq ($(strip $(PYTHON)),)
$(error no CPython of 3.11 or later with its venv module; install one or give PYTHON=/path/to/python)
endif

version_of = $(shell $(1) -c 'import sys; print("%d.%d" % sys.version_info[:2])')

PYTHON_VERSION := $(call version_of,$(PYTHON))
NEWEST_VERSION := $(if $(NEWEST),$(call version_of,$(NEWEST)))

VENV := .venv
NEWEST_VENV := .venv$(subst .,,$(NEWEST_VERSION))
BIN := $(VENV)/bin
PIP_FLAGS := -qq --disable-pip-version-check
EXTRAS := cli,bench,retry,zenoh
RUNNING_TESTS := tests/runtime tests/testing tests/wrapping tests/wrappers

.PHONY: demo test lint pytest pytest-newest loops docs bench bench-newest env env-newest clean
.DEFAULT_GOAL := test

# With NAMED=1 each line of the tests begins with what runs, since two run at a time.
named = $(if $(NAMED),scripts/named $(1))

# An environment is made anew when it was made by another Python than the one asked for now.
define make_environment
	@if [ "$$($(1)/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" != "$(3)" ]; then \
		echo "making $(1) with $(2) ($(3))"; $(2) -m venv --clear $(1); fi
	$(1)/bin/python -m pip install $(PIP_FLAGS) --upgrade 'pip>=25.1'
endef

$(VENV)/.ready-$(PYTHON_VERSION): pyproject.toml
	$(call make_environment,$(VENV),$(PYTHON),$(PYTHON_VERSION))
	$(BIN)/python -m pip install $(PIP_FLAGS) --editable '.[$(EXTRAS)]'
	@touch $@

$(VENV)/.ready-dev-$(PYTHON_VERSION): $(VENV)/.ready-$(PYTHON_VERSION)
	$(BIN)/python -m pip install $(PIP_FLAGS) --group dev
	@touch $@

$(VENV)/.ready-docs-$(PYTHON_VERSION): $(VENV)/.ready-$(PYTHON_VERSION)
	$(BIN)/python -m pip install $(PIP_FLAGS) --editable '.[$(EXTRAS),docs]'
	@touch $@

env: $(VENV)/.ready-dev-$(PYTHON_VERSION)

demo: $(VENV)/.ready-$(PYTHON_VERSION)
	$(BIN)/python -m examples.census
	$(BIN)/python -m benchmarks send --quick

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/basedpyright

pytest: env
	$(call named,$(PYTHON_VERSION)) $(BIN)/python -m pytest

ifeq ($(filter-out $(PYTHON_VERSION),$(NEWEST_VERSION)),)
env-newest pytest-newest bench-newest:
	@echo "no Python newer than $(PYTHON_VERSION) found: the tests run on it alone"
else
$(NEWEST_VENV)/.ready-test-$(NEWEST_VERSION): pyproject.toml
	$(call make_environment,$(NEWEST_VENV),$(NEWEST),$(NEWEST_VERSION))
	$(NEWEST_VENV)/bin/python -m pip install $(PIP_FLAGS) --editable '.[$(EXTRAS)]' --group test
	@touch $@

env-newest: $(NEWEST_VENV)/.ready-test-$(NEWEST_VERSION)

pytest-newest: env-newest
	@echo "tests on the newest Python found: $(NEWEST) ($(NEWEST_VERSION))"
	$(call named,$(NEWEST_VERSION)) $(NEWEST_VENV)/bin/python -m pytest

bench-newest: env-newest
	$(NEWEST_VENV)/bin/python -m pip install $(PIP_FLAGS) --editable '.[$(EXTRAS),peers]'
	$(NEWEST_VENV)/bin/python -m benchmarks
endif

# The newest environment, or the first one where there is no other. Eager tasks came with 3.12.
LOOPS_VENV = $(if $(wildcard $(NEWEST_VENV)/bin/python),$(NEWEST_VENV),$(VENV))

loops: loop-debug loop-uvloop loop-eager

loop-%: env env-newest
	@echo "tests with --loop $*"
	$(call named,$*) $(LOOPS_VENV)/bin/python -m pytest -q $(RUNNING_TESTS) --loop $*

# Two at a time: what the tests say of time has wide margins.
test:
	$(MAKE) env env-newest
	$(MAKE) lint
	$(MAKE) -j2 NAMED=1 pytest pytest-newest loops
	@echo "tested on Python $(PYTHON_VERSION)$(if $(filter-out $(PYTHON_VERSION),$(NEWEST_VERSION)), and $(NEWEST_VERSION))"

docs: $(VENV)/.ready-docs-$(PYTHON_VERSION)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "built site/index.html"

bench: $(VENV)/.ready-$(PYTHON_VERSION)
	$(BIN)/python -m pip install $(PIP_FLAGS) --editable '.[$(EXTRAS),peers]'
	$(BIN)/python -m benchmarks
	$(MAKE) bench-newest
	$(BIN)/python -m benchmarks.figures

clean:
	rm -rf .venv* build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
