# Every target does its own set-up: a virtual environment in .venv with the versions of constraints.txt.
# Nothing else is needed but Python 3.11+ and make.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
TORCH := $(shell grep '^torch==' constraints.txt)
SOURCES := src tests examples benchmarks
PAGE := src/attendo/inspection/static/look.html
APP := src/attendo/serving/static/index.html
FRONT := $(wildcard frontend/*.*) $(shell find frontend/src frontend/plugins -type f)
export NO_MKDOCS_2_WARNING := 1

.DEFAULT_GOAL := help
.PHONY: help quickstart test check format docs web bench clean

help: ## Show the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F '\t' '{printf "  make %-11s %s\n", $$1, $$2}'

quickstart: .venv/.ready-serve ## Set up, train a translator on the embedded corpus (two minutes), score it, look inside
	@$(MAKE) --no-print-directory web || echo "the page could not be built (see above); going on without it"
	@$(BIN)/attendo quickstart

test: .venv/.ready-dev,docs,formats,interop,metrics,plots,serve web browser ## Run every test
	@$(BIN)/python -m pytest --cov --cov-report=term

check: .venv/.ready-dev,docs,formats,interop,metrics,plots,serve frontend/node_modules/.ready ## Run the static checks: format, lint, types, imports, docs, front end
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m attendo.lessons.site docs/lessons
	@$(BIN)/mkdocs build --strict --quiet
	@frontend/with_node.sh npm run --silent check

format: .venv/.ready-dev,docs,formats,interop,metrics,plots,serve ## Format the code and mend what can be mended
	@$(BIN)/ruff format $(SOURCES)
	@$(BIN)/ruff check --fix $(SOURCES)

docs: .venv/.ready-docs,plots ## Build the documentation into site/
	@$(BIN)/python -m attendo.lessons.site docs/lessons
	@$(BIN)/mkdocs build --strict
	@echo "open site/index.html, or run: $(BIN)/mkdocs serve"

web: $(PAGE) $(APP) ## Build the page that shows the inside of a model, and the web application

$(PAGE): $(FRONT) frontend/node_modules/.ready
	@echo "building the pages"
	@frontend/with_node.sh npm run --silent build
	@touch $(PAGE) $(APP)

$(APP): $(PAGE)
	@test -f $@ || frontend/with_node.sh npm run --silent build
	@touch $@

frontend/node_modules/.ready: frontend/package-lock.json | $(BIN)/python
	@echo "installing the front end's packages, once"
	@frontend/with_node.sh npm ci --silent --no-audit --no-fund
	@touch $@

# Browser tests want a Chromium: the system's, Debian's where this machine may install it, or Playwright's own.
.PHONY: browser
browser: frontend/node_modules/.ready
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || { \
		echo "installing Chromium for the browser tests, once"; \
		{ apt-get install -y -qq chromium || { apt-get update -qq && apt-get install -y -qq chromium; }; } >/dev/null 2>&1 \
		|| frontend/with_node.sh npx playwright install chromium >/dev/null 2>&1 \
		|| echo "no Chromium could be installed: the browser tests will be skipped by name"; }

bench: .venv/.ready-base ## Measure: start-up, the model beside torch.nn.Transformer, looking inside, memory of preparing
	@$(BIN)/python benchmarks/startup.py
	@$(BIN)/python benchmarks/model_speed.py
	@$(BIN)/python benchmarks/capture_speed.py
	@$(BIN)/python benchmarks/prepare_memory.py --small 40000 --large 400000
	@$(BIN)/python -m benchmarks.why_self_attention --max-n 1024 --budget 60 --replace

clean: ## Remove the environment and everything that was built
	rm -rf .venv site build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage htmlcov

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "error: $(PYTHON) is older than 3.11"; echo "  remedy: make PYTHON=python3.11 (or newer)"; exit 2; }
	@echo "setting up .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv .venv \
		|| { echo "error: no virtual environment could be made"; echo "  remedy: install venv (Debian: apt-get install python3-venv)"; exit 2; }

# .ready-base: what users have; .ready-dev and others: with these extras. PyTorch comes first and exactly pinned,
# so that no other package asks for another build of it.
.venv/.ready-%: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing the pinned packages ($*), once"
	@$(PIP) install -c constraints.txt $(TORCH)
	@$(PIP) install -c constraints.txt hatchling editables setuptools
	@$(PIP) install -c constraints.txt --no-build-isolation -e '.$(if $(filter-out base,$*),[$*])'
	@touch '$@'
