# SPDX-License-Identifier: GPL-2.0-or-later
# The two commands of the README are `make demo` and `make test`; each sets up what it needs first.

PYTHON := .venv/bin/python
STORY ?= kernfs
CLOCK ?= contention
SERVE ?= 1
PORT ?= 8000
COUNT ?= 100
TARGET ?= all
SECONDS ?= 60
JOBS ?= 1
SEED ?= 1
CPUS ?= 8

.PHONY: help demo up down status test test-all check fast process thorough kernel guests pages faults campaign fleet test-fleet sbom audit lint docs setup setup-dev setup-all bench bench-build bench-boot bench-console bench-stats bench-trends bench-instructions bench-profiles bench-service bench-fleet test-hostile fuzz test-faults postgres test-postgres bench-sandbox bench-microscope bench-contention bench-front fuzz-front bench-repeat

help:  ## what can be made here
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup:
	@./bootstrap run

setup-dev:
	@./bootstrap dev

setup-all:
	@./bootstrap all

demo: setup  ## replay a mail on real kernels: STORY=kernfs|inode|buffer|factorial|all, CLOCK=wall, SERVE=0 to end without serving
	@$(PYTHON) -m workers.demo --story $(STORY) --clock $(CLOCK) --serve $(SERVE) --port $(PORT)

up: setup  ## the whole service on this machine: PostgreSQL, Redis, pages, workers; PORT=8000
	@$(PYTHON) -m workers.service.control up --port $(PORT)

down:  ## stop it; everything is kept
	@$(PYTHON) -m workers.service.control down

status:  ## what of it runs
	@$(PYTHON) -m workers.service.control status

test: setup-dev  ## check, tests that start processes, and one of each real thing: kernel, browser, PostgreSQL, API, faults
	$(call parts,lint+fast process+faults.postgres+kernel.guests.pages)

test-all: setup-all  ## all of it: campaigns, whole services, hosts by ansible, containers; hours, and a machine of its own
	$(call parts,lint+fast audit process+faults.postgres+kernel.guests.pages thorough campaign fleet)

check: setup-dev  ## the fast loop: linters, types, and the tests that start no process
	$(call parts,lint+fast)

# Parts joined by "+" run beside each other, parts joined by "." one after the other. Each part runs even where one before it
# failed; ends with a table, and badly if one did.
define parts
@mkdir -p build; : > build/parts; failed=0; for stage in $(1); do \
	$(MAKE) --no-print-directory --keep-going -j $$(echo "row-$$stage" | sed 's/+/ row-/g') || failed=1; \
done; echo; cat build/parts; exit $$failed
endef

row-%:
	@failed=0; for part in $$(echo $* | tr . ' '); do $(MAKE) --no-print-directory timed-$$part || failed=1; done; exit $$failed

# The second line of `times` has the minutes and seconds of what the shell started, user and system, and waited for: not guests, which libvirt runs.
timed-%:
	@begun=$$(date +%s); how=passed; $(MAKE) --no-print-directory $* || how=FAILED; times > build/times-$*; \
	cpu=$$(awk -F '[ms ]+' 'NR == 2 { printf "%d", 60 * ($$1 + $$3) + $$2 + $$4 }' build/times-$*); \
	printf '%-9s %-7s %5d s %5d CPU s\n' $* $$how $$(($$(date +%s) - begun)) $$cpu >> build/parts; [ $$how = passed ]

# The tests start Python some hundred times: let it keep what it compiled.
unexport PYTHONDONTWRITEBYTECODE

# What shares a machine's libvirt or a browser, and what brings up services, hosts and containers of its own.
ALONE := real or browser or api or service or provision or containers or faults or campaign or thorough
FLEET := service or provision or containers
# A file's tests stay in one process, in order, for those that empty the tables come last there. Files are in the order of their
# folders: by the number of their tests, as xdist would sort them, the longest of all come last.
PARALLEL := --timeout 300 --dist loadfile --no-loadscope-reorder
# Whose tests have one mark throughout, and import what takes a tenth of a part's start.
APART := --ignore web/tests/browser --ignore web/api/tests/test_contract.py

# A process a core.
fast:
	@.venv/bin/pytest $(PARALLEL) $(APART) -n auto -m 'not process and not ($(ALONE))'

# Five at a time, for they wait for other programs half of the time.
process:
	@.venv/bin/pytest $(PARALLEL) $(APART) -n 5 -m 'process and not ($(ALONE))'

# Where the lab's data is in a fleet: the queue's tests, its races among them, and what pages and lists read.
QUEUE := $(addprefix lab/runs/tests/test_,queue.py queue_races.py settle_races.py queue_machine.py groups.py record.py claim_statements.py queue_places.py) $(addprefix workers/tests/test_,lease.py presence.py) lab/trends/tests/test_stale_races.py lab/submission/tests/test_build_races.py web/tests/test_whole_tables.py web/tests/test_odd_input.py lab/tests/test_postgres_moments.py lab/targets/tests/test_waiting_boots.py lab/targets/tests/test_far_clocks.py

postgres:
	@KPERFLAB_TEST_DATABASE=postgres .venv/bin/pytest $(QUEUE)

test-postgres: setup-dev  ## the fast tests of the tables and pages on a PostgreSQL of their own
	@KPERFLAB_TEST_DATABASE=postgres .venv/bin/pytest -m 'not ($(ALONE))' lab web

# Real kernels are compiled as users' are; other tests do without the compiler front (lab/tests/state_root.py).
kernel guests campaign: export KPERFLAB_FRONT := 1

# Its first run compiles kernels on all cores, which takes longer beside the other rows.
KERNEL := workers/tests/test_real_kernel.py

kernel:
	@.venv/bin/pytest --durations 3 -m 'real and not campaign' $(KERNEL)

# The files that name a mark: a part of few tests imports only theirs.
MARKED = $(shell grep -rlE --include='test_*.py' 'mark\.($(1))\b' kernels workloads lab workers web | sort)

# Libvirt's guests, one after the other; beside them what needs no libvirt.
guests:
	@.venv/bin/pytest --durations 8 -m 'real and not campaign' $(filter-out $(KERNEL),$(call MARKED,real))

# Waits for stages of experiments most of the time, so it runs beside the tests that start processes.
faults:
	@.venv/bin/pytest --durations 3 -m 'faults and not campaign' $(call MARKED,faults)

pages:
	@.venv/bin/pytest --durations 8 -m '(browser or api) and not (real or faults or campaign)' web/tests/browser $(call MARKED,browser|api)

# Further cases of what quicker tests show, and simulations of thousands of experiments.
thorough:
	@.venv/bin/pytest $(PARALLEL) -n auto -m 'thorough and not campaign'

campaign:
	@.venv/bin/pytest -m 'campaign and not ($(FLEET))'

fleet:
	@.venv/bin/pytest -m '$(FLEET)'

test-fleet: setup-dev fleet  ## whole services, hosts by ansible, containers: takes long, and a machine of its own

test-hostile: setup-dev  ## everything a stranger may send: git, patches, archives, builds, guests, records, requests
	@.venv/bin/pytest -m hostile

fuzz: setup-dev  ## fuzz the readers of what strangers send: TARGET=mail|…|all SECONDS=60 (each) JOBS=1; finds go to build/fuzz
	@$(PYTHON) -m bench.fuzz $(TARGET) --seconds $(SECONDS) --jobs $(JOBS)

test-faults: setup-dev  ## a live service under injected faults: COUNT=1000 SEED=1; LANES=3 labs side by side; MINUTES=30 ends a piece, the same command goes on; CAMPAIGN=FILE
	@$(PYTHON) -m bench.faults --count $(COUNT) --seed $(SEED) --lanes $(or $(LANES),1) $(if $(MINUTES),--seconds $$(($(MINUTES) * 60))) $(if $(CAMPAIGN),--campaign $(CAMPAIGN))

sbom: setup-dev  ## a bill of materials of this machine's lab, CycloneDX, in build/sbom.json
	@$(PYTHON) -m containers.sbom build/sbom.json

audit: setup-dev  ## its packages beside Debian's list and, ADVISORIES=FOLDER, a folder of OSV files
	@$(PYTHON) -m containers.audit $(if $(ADVISORIES),--advisories $(ADVISORIES))

# Where the tests keep what later runs need. What mypy found of a file is known by the file's content: a new clone uses it, too.
KEPT := $(or $(KPERFLAB_HOME),/var/tmp/kperflab-tests-$(shell id -u))

lint:
	@.venv/bin/ruff check --no-cache .
	@.venv/bin/ruff format --check --quiet .
	@.venv/bin/mypy --no-error-summary --cache-dir $(KEPT)/mypy .

docs: setup-dev  ## the documentation as pages, in build/docs
	@.venv/bin/sphinx-build -q -W --keep-going -b html docs build/docs
	@echo build/docs/index.html

bench: bench-boot bench-build bench-console bench-stats bench-trends bench-instructions bench-profiles bench-service bench-sandbox  ## every figure we claim, beside its peer's

bench-build: setup-dev  ## a variant's build: clean, hot ccache, ours and the front: EDITS=NAME,… WAYS=NAME,… COMMITS=10
	@$(PYTHON) -m bench.build $(if $(EDITS),--edits $(EDITS)) $(if $(WAYS),--ways $(WAYS)) $(if $(COMMITS),--commits $(COMMITS))

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

bench-microscope: setup-dev  ## the exact profile: what it costs, whether it repeats: KEYS="KEY …" of artifacts
	@$(PYTHON) -m bench.microscope $(KEYS)

bench-contention: setup-dev  ## the contention clock's model: known answers, speed; KEYS="KEY …" of built kernels, CPUS=8: scaling, sensitivity
	@$(PYTHON) -m bench.contention --cpus $(CPUS) $(KEYS)

bench-front: setup-dev  ## the compiler front on a kernel's files: objects beside a clean compile's, CPU time: BUILD=objects/…/obj SOURCE=sources/… COUNT=changes
	@$(PYTHON) -m bench.front $(if $(BUILD),--build $(BUILD)) $(if $(SOURCE),--source $(SOURCE)) --changes $(COUNT)

fuzz-front: setup-dev  ## how the compiler front splits a file, with gcc and clang: KERNELS="DIR …" left by make O=DIR CC=… prepare; SEED=1 MINUTES=30
	@$(PYTHON) -m bench.front_split $(KERNELS) --seed $(SEED) $(if $(MINUTES),--minutes $(MINUTES))

bench-repeat: setup-dev  ## how far boots of one kernel differ, and false alarms among them: EXPERIMENTS="1 2"
	@$(PYTHON) -m bench.repeat $(EXPERIMENTS)

bench-profiles: setup-dev  ## perf.data to stored tree beside perf script with inferno and Perl; differences; the viewer
	@$(PYTHON) -m bench.profiles
	@$(PYTHON) -m bench.profile_diff
	@$(PYTHON) -m bench.wait_noise
	@$(PYTHON) -m bench.profile_view

bench-service: setup-dev  ## lists and /metrics, claims a second, idle workers, what the lab costs beside each boot: PART=pages|data|claims|idle|overhead
	@$(PYTHON) -m bench.service $(PART)

bench-fleet: setup-dev  ## a service with simulated targets, a day of submissions at 60 times its speed: TARGETS=1000 HOURS=24 SPEED=60 TREES=1; GROWTH=1: the cost of a run for 1 to 1,000 targets
	@$(PYTHON) -m bench.fleet $(if $(GROWTH),growth,day --targets $(or $(TARGETS),1000)) --hours $(or $(HOURS),$(if $(GROWTH),4,24)) --speed $(or $(SPEED),60) $(if $(TREES),--trees $(TREES)) --seed $(SEED)

bench-sandbox: setup-dev  ## the CPU time of compiling a file in the build sandbox, beside the bare compiler
	@$(PYTHON) -m bench.sandbox

