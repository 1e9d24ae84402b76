# Every target does its own set-up: a virtual environment in .venv with the versions of constraints.txt.
# Nothing else is needed but Python 3.11+ and make.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
TORCH := $(shell grep '^torch==' constraints.txt)
SOURCES := src tests examples benchmarks tools
PAGE := src/attendo/inspection/static/look.html
APP := src/attendo/serving/static/index.html
SITE := src/attendo/interop/web/static/index.html
FRONT := $(wildcard frontend/*.*) $(shell find frontend/src frontend/plugins frontend/packages -type f)
export NO_MKDOCS_2_WARNING := 1
# One process per core, each with one thread; long tests start first (tests/conftest.py).
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder
BROWSER_TESTS := PYTHONPATH=tests OMP_NUM_THREADS=1 $(BIN)/python -m web
TEST_EXTRAS := .venv/.ready-cluster,dev,docs,documents,formats,interop,metrics,plots,series,serve
# In CI a failed test runs once more, alone: other work on the machine can make one fail.
RETRY := { [ -n "$$CI" ] && OMP_NUM_THREADS=1 $(BIN)/python tools/retry_failed.py; }
BROWSER_LOG := frontend/node_modules/.browser-tests.log

# Messages are Korean if ATTENDO_LANG or else the locale is, as those of attendo itself.
ifneq ($(filter ko%,$(firstword $(ATTENDO_LANG) $(LC_ALL) $(LC_MESSAGES) $(LANG))),)
MSG_NO_PAGE := 화면을 빌드하지 못했습니다(위를 보세요). 화면 없이 계속합니다
MSG_DOCS := site/index.html을 열거나 다음을 실행하세요:
MSG_BUILDING := 화면을 빌드하는 중
MSG_FRONT := 화면에 필요한 패키지를 설치하는 중(한 번만)
MSG_CHROMIUM := 브라우저 테스트에 쓸 Chromium을 설치하는 중(한 번만)
MSG_NO_CHROMIUM := Chromium을 설치하지 못했습니다. 브라우저 테스트는 이름을 밝히고 건너뜁니다
MSG_OLD := 오류: $(PYTHON)의 버전이 3.11보다 낮습니다
MSG_OLD_HINT := 해결 방법: make PYTHON=python3.11처럼 새 Python을 알려 주세요
MSG_SETTING_UP := .venv를 만드는 중:
MSG_NO_VENV := 오류: 가상 환경을 만들지 못했습니다
MSG_NO_VENV_HINT := 해결 방법: venv를 설치하세요(Debian: apt-get install python3-venv)
MSG_INSTALLING = 버전이 정해진 패키지를 설치하는 중($*, 한 번만)
HELP_COLUMN := 3
else
MSG_NO_PAGE := the web pages could not be built (see above); continuing without them
MSG_DOCS := open site/index.html, or run:
MSG_BUILDING := building the web pages
MSG_FRONT := installing the packages of the front end (once)
MSG_CHROMIUM := installing Chromium for the browser tests (once)
MSG_NO_CHROMIUM := Chromium could not be installed: the browser tests will be skipped by name
MSG_OLD := error: $(PYTHON) is older than 3.11
MSG_OLD_HINT := hint: make PYTHON=python3.11 (or newer)
MSG_SETTING_UP := setting up .venv with
MSG_NO_VENV := error: the virtual environment could not be created
MSG_NO_VENV_HINT := hint: install venv (Debian: apt-get install python3-venv)
MSG_INSTALLING = installing the pinned packages ($*) (once)
HELP_COLUMN := 2
endif

.DEFAULT_GOAL := help
.PHONY: help quickstart test test-python test-browser test-slow coverage check format docs web bench clean

help: ## Show the targets ## 할 수 있는 일을 보여 줍니다
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/; s/ ## /\t/' \
		| awk -F '\t' '{printf "  make %-12s %s\n", $$1, $$$(HELP_COLUMN) ? $$$(HELP_COLUMN) : $$2}'

quickstart: .venv/.ready-plots,serve ## Set up, train a translator on the built-in corpus (two minutes), score it, inspect it ## 준비를 마치고, 내장 말뭉치로 번역기를 학습하고(2분), 점수를 매기고, 안을 들여다봅니다
	@$(MAKE) --silent --no-print-directory web || echo "$(MSG_NO_PAGE)"
	@$(BIN)/attendo quickstart

# The browser tests run next to pytest, because a browser mostly waits; their output follows pytest's.
test: $(TEST_EXTRAS) web browser ## Run every test, in Python and in a browser ## 모든 테스트를 실행합니다(Python, 브라우저)
	@$(BROWSER_TESTS) >$(BROWSER_LOG) 2>&1 & browser=$$!; \
	$(PYTEST) --durations=15; status=$$?; \
	wait $$browser; browser_status=$$?; \
	[ $$status -ne 1 ] || { $(RETRY) && status=0; }; \
	cat $(BROWSER_LOG); [ $$status -eq 0 ] && exit $$browser_status; exit $$status

test-python: $(TEST_EXTRAS) web ## Run only the tests in Python ## Python 테스트만 실행합니다
	@$(PYTEST)

test-browser: $(TEST_EXTRAS) web browser ## Run only the tests in a browser ## 브라우저 테스트만 실행합니다
	@$(BROWSER_TESTS)

test-slow: $(TEST_EXTRAS) web browser ## Run what `make test` leaves out: greater sizes, more examples ## `make test`가 빼놓은 큰 테스트를 실행합니다
	@export HYPOTHESIS_PROFILE=thorough; $(PYTEST) -m 'slow or hypothesis' --durations=15 || { [ $$? -eq 1 ] && $(RETRY); }
	@$(BROWSER_TESTS) --slow

coverage: $(TEST_EXTRAS) web browser ## Run every test and list the lines that no test runs (slower) ## 모든 테스트를 실행하고, 한 번도 실행되지 않은 줄을 보여 줍니다(더 느립니다)
	@$(PYTEST) -m 'slow or not slow' --cov --cov-report=term

check: $(TEST_EXTRAS) frontend/node_modules/.ready ## Run the static checks: format, lint, types, imports, vocabulary, docs, front end ## 정적 검사를 합니다: 서식, 린트, 타입, 임포트, 문서, 화면
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python tools/check_vocabulary.py
	@$(BIN)/python -m attendo.lessons.render.site docs/lessons
	@$(BIN)/mkdocs build --strict 2>&1 | { ! grep -vE '^INFO'; }
	@frontend/with_node.sh npm run --silent check

format: $(TEST_EXTRAS) ## Format the code and fix what can be fixed ## 코드의 서식을 맞추고 고칠 수 있는 것을 고칩니다
	@$(BIN)/ruff format $(SOURCES)
	@$(BIN)/ruff check --fix $(SOURCES)

docs: .venv/.ready-docs,interop,plots ## Build the documentation into site/ ## 문서를 site/에 빌드합니다
	@$(MAKE) --silent --no-print-directory web || echo "$(MSG_NO_PAGE)"
	@$(BIN)/python -m attendo.lessons.render.site docs/lessons $(addprefix --model ,$(dir $(firstword $(wildcard runs/quickstart/ko-en/model runs/quickstart/en-ko/model))))
	@$(BIN)/mkdocs build --strict
	@echo "$(MSG_DOCS) $(BIN)/mkdocs serve"

web: $(PAGE) $(APP) $(SITE) ## Build the inspector page and the web application ## 모델의 안을 보여 주는 화면과 웹 화면을 빌드합니다

$(PAGE): $(FRONT) frontend/node_modules/.ready
	@echo "$(MSG_BUILDING)"
	@frontend/with_node.sh npm run --silent build
	@touch $(PAGE) $(APP) $(SITE)

$(APP) $(SITE): $(PAGE)
	@test -f $@ || frontend/with_node.sh npm run --silent build
	@touch $@

frontend/node_modules/.ready: frontend/package-lock.json | $(BIN)/python
	@echo "$(MSG_FRONT)"
	@frontend/with_node.sh npm ci --silent --no-audit --no-fund
	@touch $@

# Browser tests want a Chromium: the system's, Debian's where this machine may install it, or Playwright's own.
.PHONY: browser
browser: frontend/node_modules/.ready
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || { \
		echo "$(MSG_CHROMIUM)"; \
		{ apt-get install -y -qq chromium || { apt-get update -qq && apt-get install -y -qq chromium; }; } >/dev/null 2>&1 \
		|| frontend/with_node.sh npx playwright install chromium >/dev/null 2>&1 \
		|| echo "$(MSG_NO_CHROMIUM)"; }

bench: .venv/.ready-base ## Measure start-up, model speed (compared with torch.nn.Transformer), inspection, memory of data preparation ## 잽니다: 시작 시간, torch.nn.Transformer와 견준 모델의 속도, 들여다보는 시간, 준비할 때의 메모리
	@$(BIN)/python benchmarks/startup.py
	@$(BIN)/python benchmarks/model_speed.py
	@$(BIN)/python benchmarks/capture_speed.py
	@$(BIN)/python benchmarks/prepare_memory.py --small 40000 --large 400000
	@$(BIN)/python -m benchmarks.why_self_attention --max-n 1024 --budget 60 --replace

clean: ## Remove the environment and everything that was built ## 가상 환경과 빌드한 것을 모두 지웁니다
	rm -rf .venv site build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage htmlcov

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "$(MSG_OLD)"; echo "  $(MSG_OLD_HINT)"; exit 2; }
	@echo "$(MSG_SETTING_UP) $$($(PYTHON) --version)"
	@$(PYTHON) -m venv .venv \
		|| { echo "$(MSG_NO_VENV)"; echo "  $(MSG_NO_VENV_HINT)"; exit 2; }

# .ready-base: what users have; .ready-dev and others: with these extras. PyTorch comes first and exactly pinned,
# so that no other package asks for another build of it.
.venv/.ready-%: pyproject.toml constraints.txt | $(BIN)/python
	@echo "$(MSG_INSTALLING)"
	@$(PIP) install -c constraints.txt $(TORCH)
	@$(PIP) install -c constraints.txt hatchling editables setuptools
	@$(PIP) install -c constraints.txt --no-build-isolation -e '.$(if $(filter-out base,$*),[$*])'
	@touch '$@'
