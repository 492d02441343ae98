SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
# Without --quiet, under which mkdocs counts no warning and --strict refuses nothing.
# mkdocs-material 9 is kept up until May 2027; its note about what comes then is for whoever maintains this.
SITE = NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --config-file docs/site/mkdocs.yml
PYTEST = python -m pytest -n auto --maxprocesses 4 --dist loadgroup
# Where one DuckDB differs from another most: statements, files, types. test-deep runs the others on both.
FIRST14 = tests/templates tests/demo tests/end_to_end/publish tests/end_to_end/tables/test_types.py tests/end_to_end/tables/test_real_data.py
# A container may forbid compiled modules: each of the hundreds of programs that tests start would compile ours again.
export PYTHONDONTWRITEBYTECODE :=
.PHONY: help demo test test-duckdb14 test-main test-deep test-rest test-rest14 test-deep14 test-fuzz lint docs bench clean

PYTHON ?= python3
BIN := .venv/bin
BIN14 := .venv-duckdb14/bin
PYTEST_ARGS ?=
FUZZ_MINUTES ?= 1

# Debian may lack python3-venv (ensurepip) and guards its own pip: then that pip furnishes the environment from outside.
define new_environment
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sqldeid needs Python 3.11 or later (set PYTHON=)")'
@test -x $(1)/bin/python || $(PYTHON) -m venv $(1) >/dev/null 2>&1 || $(PYTHON) -m venv --without-pip $(1)
@$(1)/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m pip --python $(1)/bin/python install --quiet pip
endef

help: ## This list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | expand -t 16

.venv/installed: pyproject.toml
	@echo "Making .venv (once; a minute)"
	$(call new_environment,.venv)
	@$(BIN)/python -m pip install --quiet --editable '.[dev,docs]'
	@touch $@

# Half a gigabyte that the demo does not need.
.venv/spark: .venv/installed
	@echo "Fetching Spark into .venv (once; some minutes)"
	@$(BIN)/python -m pip install --quiet --editable '.[dev,docs,spark]'
	@touch $@

# The oldest of every library that pyproject.toml allows, DuckDB 1.4 LTS among them: a bound that nobody tries is a guess.
.venv-duckdb14/installed: .venv/installed tests/support/oldest.py
	@echo "Making .venv-duckdb14 (once; a minute)"
	$(call new_environment,.venv-duckdb14)
	@$(BIN)/python tests/support/oldest.py > .venv-duckdb14/constraints.txt
	@$(BIN14)/python -m pip install --quiet --no-compile --constraint .venv-duckdb14/constraints.txt --editable '.[test]'
	@touch $@

demo: .venv/installed ## Make a database of invented people, de-identify it, and show the result
	@rm -rf demo && mkdir demo
	$(BIN)/sqldeid demo adult demo/adult.duckdb
	$(BIN)/sqldeid anonymize demo/adult.duckdb --job demo/adult.job.toml --json demo/result.json
	@printf '%s\n' '' 'Where to look next' \
	  '  demo/adult.job.toml    what was asked for: change k or a hierarchy, then run the second line above again with --replace' \
	  '  demo/result.json       everything about the result' \
	  '  $(BIN)/sqldeid verify demo/adult.duckdb --job demo/adult.job.toml     check the release again, independently' \
	  '  $(BIN)/sqldeid assess demo/adult.duckdb --job demo/adult.job.toml     the risk in the source' \
	  '  docs/tutorial/first-run.md   how to read it, and where to go on'

test: test-duckdb14 test-main ## Run the tests of every change; what cannot run here is listed at the end (with CI=true that fails)

test-duckdb14: .venv-duckdb14/installed ## Only templates, files and types, on DuckDB 1.4 LTS (the rest in test-deep)
	$(BIN14)/$(PYTEST) -m "duckdb14 and not deep" $(FIRST14) $(PYTEST_ARGS)

test-main: .venv/spark ## Only the tests on the current DuckDB
	$(BIN)/$(PYTEST) $(PYTEST_ARGS)

lint: .venv/spark ## Style, types, the rooms' contract, and a site without a dead link
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict sqldeid
	$(BIN)/lint-imports --no-cache
	$(SITE)

# With SQLDEID_DEEP_UNTIL set, the later parts leave out what they have no time for, and list it.
test-deep: test-fuzz test-rest14 test-rest test-deep14 ## Fuzz; then what test leaves out: every case on every engine, many examples

test-rest14: .venv-duckdb14/installed ## Only what test runs on the current DuckDB alone, on DuckDB 1.4 LTS
	SQLDEID_DEEP=1 $(BIN14)/$(PYTEST) -m "duckdb14 and not deep" $(FIRST14:%=--ignore=%) $(PYTEST_ARGS)

test-rest: .venv/spark ## Only the cases that test leaves out, and all examples of Hypothesis
	SQLDEID_DEEP=1 $(BIN)/$(PYTEST) -m "deep or hypothesis" --ignore tests/deep $(PYTEST_ARGS)

test-deep14: .venv-duckdb14/installed ## Only those cases on DuckDB 1.4 LTS
	SQLDEID_DEEP=1 $(BIN14)/$(PYTEST) -m "duckdb14 and deep" --ignore tests/deep $(PYTEST_ARGS)

test-fuzz: .venv/spark ## Fuzz for a minute each, or FUZZ_MINUTES=60: hostile jobs, kills, full disks, brute force
	SQLDEID_FUZZ_MINUTES=$(FUZZ_MINUTES) $(BIN)/python -m pytest -m deep -s -n 0 tests/deep

docs: .venv/installed ## Build the site of docs/ into build/site, strictly; it is read from files
	$(SITE)
	@echo 'Open build/site/index.html'

bench: .venv/installed ## Measure; not part of the tests
	$(BIN)/python benchmarks/run.py

clean: ## Remove what was made, but for the environments
	rm -rf demo dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find sqldeid sql tests benchmarks -name __pycache__ -prune -exec rm -rf {} +
