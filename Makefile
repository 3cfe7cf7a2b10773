# Everything a developer runs; `make` alone lists the targets.
#
#   PYTHON=/path/to/python   the interpreter that .venv is made from (default: the first that is new enough)
#   ARGS="-k bounds -x"      more options for pytest, the fuzzer or uv
#   ONLY=name                one benchmark
#   SECONDS=3600 SEED=7      how long the fuzzer runs, and what all its randomness follows from
#   EXAMPLES=20000           how many random examples each differential test of `make test-slow` takes

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# Without bytecode every process that the tests start would rewrite their assertions and compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

VENV    := .venv
STAMP   := $(VENV)/.installed
CLASSES := $(VENV)/.classes
PINS    := requirements/constraints.txt
RUN     := $(VENV)/bin/python
PYTHON   ?=
ARGS     ?=
ONLY     ?=
SECONDS  ?= 600
SEED     ?=
EXAMPLES ?= 5000

CANDIDATES := $(if $(PYTHON),"$(PYTHON)",python3.13 python3.12 python3.11 python3)
# A name that starts with an underscore is a part of benchmarks, not a benchmark.
BENCHMARKS := $(filter-out _%,$(patsubst benchmarks/%.py,%,$(wildcard benchmarks/*.py)))

.PHONY: help
help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: java $(STAMP)  ## see it work on generated data (needs Java)
	@$(VENV)/bin/penstock demo

.PHONY: test
test: java $(CLASSES)  ## all tests but the slow ones (needs Java)
	@$(RUN) -m pytest -n 3 --dist loadfile -m "not slow" $(ARGS)

.PHONY: test-slow
test-slow: java $(CLASSES)  ## all that is marked slow, and the differential tests with EXAMPLES random examples each
	@HYPOTHESIS_PROFILE=slow EXAMPLES=$(EXAMPLES) $(RUN) -m pytest tests/differential -n 2 --dist worksteal \
	    --timeout 14400 $(ARGS)
	@HYPOTHESIS_PROFILE=more PENSTOCK_TESTS_COMPILED=1 $(RUN) -m pytest -m "slow or hypothesis" --ignore tests/differential -n 2 --dist loadfile \
	    --timeout 14400 $(ARGS) || [ $$? -eq 5 ]  # 5: there are none

.PHONY: test-matrix
test-matrix: java $(STAMP)  ## the Spark tests of tables on PySpark 4.0, 4.1, 4.2 and 4.3
	@$(RUN) tools/test_matrix.py $(if $(ARGS),-- $(ARGS))

.PHONY: fuzz
fuzz: java $(STAMP)  ## random tables and predicates, judged by plain Spark: make fuzz SECONDS=3600 SEED=7
	@$(RUN) -m tests.fuzz --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(ARGS)

.PHONY: lint
lint: $(STAMP)  ## ruff, mypy, and which package imports which
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m mypy
	@$(RUN) tools/check_imports.py

.PHONY: format
format: $(STAMP)  ## let ruff fix and format the code
	@$(RUN) -m ruff check --fix-only .
	@$(RUN) -m ruff format .

# Pins that still fit are kept; ARGS=--upgrade moves all of them to the newest versions. An environment that exists is
# used as it is: setting it up again fails where the old pins contradict pyproject.toml.
.PHONY: lock
lock:  ## pin the versions that .venv gets, after a change of dependencies in pyproject.toml
	@$(RUN) -m uv --version >/dev/null 2>&1 || $(MAKE) $(STAMP)
	@$(RUN) -m uv pip compile pyproject.toml --extra dev --extra docs --extra spark --output-file $(PINS) --quiet \
	    --universal --python-version 3.11 --fork-strategy fewest --strip-extras --no-annotate --no-emit-index-url \
	    --custom-compile-command "make lock" $(ARGS)

.PHONY: bench
bench: $(STAMP)  ## every benchmark, or one: make bench ONLY=name
	@$(if $(filter-out $(BENCHMARKS),$(ONLY)),echo "no benchmark '$(ONLY)'; there are: $(BENCHMARKS)" >&2; exit 2)
	@$(if $(BENCHMARKS),,echo "there are no benchmarks yet")
	@set -e; for name in $(or $(ONLY),$(BENCHMARKS)); do \
	    echo "== $$name"; $(RUN) -m "benchmarks.$$name"; \
	done

.PHONY: docs
docs: $(STAMP)  ## the site of docs/, into build/site
	@NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --quiet --strict
	@echo "open build/site/index.html"

.PHONY: dist
dist: $(STAMP)  ## the sdist and the wheel in dist/, tried out in an empty virtual environment
	@rm -rf dist
	@$(RUN) -m build --outdir dist .
	@$(RUN) tools/smoke_test.py dist

.PHONY: clean
clean:  ## remove .venv and everything else that make creates
	@rm -rf $(VENV) .matrix .jars build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find src tests tools benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The candidates are run, not only looked up: a pyenv shim exists also for versions that are switched off, and Debian's
# python3 has a venv module that fails until python3-venv is installed.
$(STAMP): pyproject.toml $(PINS)
	@echo "setting up $(VENV) (once, and again when pyproject.toml or the pins change) ..."
	@new_enough='import sys; sys.exit(sys.version_info < (3, 11))'; \
	if ! { $(RUN) -c "$$new_enough" && $(RUN) -m pip --version; } >/dev/null 2>&1; then \
	    found=; \
	    for candidate in $(CANDIDATES); do \
	        if { "$$candidate" -c "$$new_enough" && "$$candidate" -m venv --clear $(VENV); } >/dev/null 2>&1; then \
	            found=yes; break; \
	        fi; \
	    done; \
	    if [ -z "$$found" ]; then \
	        rm -rf $(VENV); \
	        echo "penstock needs Python 3.11 or newer with its venv module, and found none as" $(CANDIDATES)";" \
	            "install it with 'apt install python3 python3-venv', 'dnf install python3.12' or" \
	            "'brew install python@3.13', or name one: make PYTHON=/path/to/python" >&2; \
	        exit 1; \
	    fi; \
	fi
	@$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[dev,docs,spark]' --constraint $(PINS)
	@touch $@

# Spark starts in half of the time where the JVM has an archive of its classes.
$(CLASSES): $(STAMP) tools/archive_classes.py
	@$(RUN) tools/archive_classes.py
	@touch $@

# Spark's own rule: $JAVA_HOME/bin/java where it is set, else the java on the path. Java 8 calls itself 1.8.
.PHONY: java
java:
	@java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
	major=$$("$$java" -version 2>&1 | sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1); \
	if [ "$${major:-0}" -lt 17 ]; then \
	    echo "the tests need Java 17 or newer, and $$java is $${major:+Java }$${major:-missing};" \
	        "install it with 'apt install openjdk-17-jre-headless', 'dnf install java-17-openjdk-headless' or" \
	        "'brew install openjdk@17', or set JAVA_HOME" >&2; \
	    exit 1; \
	fi
