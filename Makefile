# Everything starts here: each command does its own set-up.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.skewless-installed

# Hands `make setup PYTHON=...` on to scripts/find-python.sh.
export PYTHON

.DEFAULT_GOAL := help
# The Java check comes before anything slow, also under `make -j`.
.NOTPARALLEL:
.PHONY: help setup java test lint bench demo soak clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-6s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv and install everything
	@echo "$(VENV) is ready"

test: java $(STAMP) lint ## lint and run the tests, as CI does
	@$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(STAMP) ## ruff and mypy
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet . || { echo "To format: $(BIN)/ruff format ." >&2; exit 1; }
	@$(BIN)/mypy

bench: java $(STAMP) ## measure the join against Spark's own
	@$(BIN)/skewless bench join

demo: java $(STAMP) ## a city joined live, by plain hashing and by Skewless
	@$(BIN)/skewless demo

soak: java $(STAMP) ## the long crash tests
	@$(BIN)/python -m pytest -m soak

clean: ## remove caches and build output; keeps .venv
	@rm -rf build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@rm -rf artifacts derby.log metastore_db spark-warehouse
	@find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

java:
	@sh scripts/check-java.sh

# A virtual environment that lacks pip (a set-up cut short) or whose Python has gone is made anew.
$(STAMP): pyproject.toml
	@$(BIN)/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    python=$$(sh scripts/find-python.sh) && \
	    echo "Creating $(VENV) with $$python" && \
	    "$$python" -m venv --clear $(VENV); }
	@echo "Installing Skewless and what it needs into $(VENV) (about 1.5 GB, a few minutes the first time)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[dev,plots]'
	@touch $@
