# SPDX-License-Identifier: GPL-2.0-or-later
"""Made-up guests and builds: their durations and results, drawn by a seed, so that equal days have equal outcomes.

A build takes five minutes in the middle of the distribution. A value is log-normal round the kernel's own: 1 % from boot to boot, and one patch in ten changes it by 5 %.
"""

import hashlib
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.fleet.day import BOOT_S, BOOT_SPREAD
from lab.models.states import Outcome
from lab.runs.record import RunRecord, SampleValue
from lab.runs.work_orders import BuildOrder, RunOrder

BUILD_S, BUILD_SPREAD = 300.0, 0.5
# Kernels that do not compile, and that crash in every boot; boots that the lab loses, and workers that die with their boot.
BROKEN, CRASHING, LOST, DYING = 0.04, 0.02, 0.003, 0.003
NOISE, CHANGED, CHANGE = 0.01, 0.1, 0.05
# What a run leaves beside its numbers: bytes of its console and of its records.
CONSOLE_BYTES, RECORDS_BYTES = 40_000, 8_000
METRICS: Mapping[str, float] = {
    "ns_per_open": 5200.0,
    "opens_per_second": 190_000.0,
    "elapsed": 12.0,
    "user": 2.0,
    "system": 9.5,
    "cpu": 198.0,
}


@dataclass(frozen=True, slots=True)
class Boot:
    """The fate of one boot. seconds: of the day; dies: its worker does, at once, and says nothing more."""

    seconds: float
    dies: bool
    record: RunRecord


@dataclass(frozen=True, slots=True)
class Making:
    """The fate of one build."""

    seconds: float
    works: bool


def boot_of(order: RunOrder, seed: int) -> Boot:
    """Return what becomes of an attempt at a run."""
    draw = random.Random(f"{seed}/run/{order.id}/{order.attempt}")
    kernel = random.Random(f"{seed}/kernel/{order.artifact_key}")
    length = draw.lognormvariate(math.log(BOOT_S), BOOT_SPREAD)
    dies = draw.random() < DYING
    candidate = not order.variant.startswith("base")
    if candidate and kernel.random() < CRASHING:
        return Boot(0.2 * length, dies, _crashed())
    if draw.random() < LOST:
        return Boot(0.1 * length, dies, _lost())
    change = 1 + CHANGE if candidate and kernel.random() < CHANGED else 1.0
    return Boot(length, dies, _finished(order, change, draw, length))


def making_of(order: BuildOrder, seed: int) -> Making:
    """Return what becomes of a build; a base always compiles."""
    draw = random.Random(f"{seed}/build/{order.commit}")
    length = draw.lognormvariate(math.log(BUILD_S), BUILD_SPREAD)
    base = order.commit == order.request["base_commit"]
    return Making(length, base or draw.random() >= BROKEN)


def artifact_key(order: BuildOrder) -> str:
    """Return 64 hex digits for a kernel that nobody compiled."""
    return hashlib.sha256(f"{order.id}/{order.commit}".encode()).hexdigest()


def _crashed() -> RunRecord:
    problem = "Kernel panic - not syncing: Fatal exception"
    return RunRecord(Outcome.PANICKED, blame="kernel", problem=problem, environment=_environment("", 0.0))


def _lost() -> RunRecord:
    return RunRecord(
        Outcome.LOST, blame="lab", problem="the machine did not power on", retry=True, spares_target=True
    )


def _finished(order: RunOrder, change: float, draw: random.Random, length: float) -> RunRecord:
    samples = []
    boot = draw.lognormvariate(0, NOISE)
    for iteration in range(order.warmup + order.iterations):
        for metric, usual in METRICS.items():
            value = usual * boot * draw.lognormvariate(0, NOISE / 3)
            samples.append(SampleValue(metric, iteration, iteration < order.warmup, value * change))
    steps = {"boot": 0.1 * length, "workload": 0.9 * length, "collect": 1.0}
    return RunRecord(
        Outcome.FINISHED,
        samples=tuple(samples),
        environment=_environment(order.release, 0.1),
        steps=steps,
    )


def _environment(release: str, load: float) -> dict[str, Any]:
    return {
        "guest": {
            "release": release,
            "machine": "x86_64",
            "cpus": 16,
            "clocksource": "tsc",
            "memory_kib": 1 << 26,
        },
        "host": {"machine": "simulated", "host_cpus": 16, "load_before": load, "load_after": load},
        "machine": {"vcpus": 16, "memory_mib": 65536, "accelerator": "none", "clock": "wall"},
    }
