# SPDX-License-Identifier: GPL-2.0-or-later
# The two commands of the README are `make demo` and `make test`; each sets up what it needs first.

PYTHON := .venv/bin/python
STORY ?= kernfs
SERVE ?= 1
PORT ?= 8000

.PHONY: help demo test check lint setup setup-dev bench bench-build bench-boot bench-console bench-stats bench-trends bench-instructions bench-profiles

help:  ## what can be made here
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup:
	@./bootstrap run

setup-dev:
	@./bootstrap dev

demo: setup  ## replay a mail on real kernels: STORY=kernfs|inode|buffer|factorial|all, SERVE=0 to end without serving
	@$(PYTHON) -m workers.demo --story $(STORY) --serve $(SERVE) --port $(PORT)

test: setup-dev lint  ## everything: linters, types, fast tests, and the whole path on a real kernel
	@.venv/bin/pytest

check: setup-dev lint  ## the fast loop: linters, types, fast tests
	@.venv/bin/pytest -m 'not real and not browser'

lint:
	@.venv/bin/ruff check --no-cache .
	@.venv/bin/ruff format --check --quiet .
	@.venv/bin/mypy --no-error-summary .
	@$(PYTHON) manage.py makemigrations --check --dry-run --verbosity 0
	@$(PYTHON) manage.py check

bench: bench-boot bench-build bench-console bench-stats bench-trends bench-instructions bench-profiles  ## every figure we claim, beside its peer's

bench-build: setup-dev  ## a variant's build: clean, hot ccache and ours
	@$(PYTHON) -m bench.build

bench-boot: setup-dev  ## power-on to workload start: ours, raw QEMU and vng
	@$(PYTHON) -m bench.boot

bench-console: setup-dev  ## crash detection on a labelled corpus of consoles
	@$(PYTHON) -m bench.console

bench-stats: setup-dev  ## verdicts: false alarms, power and boots needed, beside the peers' rules
	@$(PYTHON) -m bench.stats

bench-trends: setup-dev  ## steps in trends: false ones, precision, recall and time, beside Otava
	@$(PYTHON) -m bench.trends

bench-instructions: setup-dev  ## the instruction clock: whether boots agree, and what it costs
	@$(PYTHON) -m bench.instructions

bench-profiles: setup-dev  ## perf.data to stored tree beside perf script with inferno and Perl; differences; the viewer
	@$(PYTHON) -m bench.profiles
	@$(PYTHON) -m bench.profile_diff
	@$(PYTHON) -m bench.profile_view
