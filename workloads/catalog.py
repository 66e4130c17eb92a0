# SPDX-License-Identifier: GPL-2.0-or-later
"""The catalogue of workloads: one folder of `programs/` each."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from workloads import contention
from workloads.definition import Definition, ModuleSource, read_definition
from workloads.errors import (
    BadParam,
    BadWorkloadFile,
    CaseRejected,
    UnknownParam,
)
from workloads.guest.plan import DiskShape, Plan
from workloads.guest.records import Record
from workloads.instruction_clock import CLOCKS, Clock
from workloads.interpret import read_run
from workloads.metric import Metric
from workloads.param import Param, ParamValue
from workloads.readings import Readings
from workloads.step import Purpose, Round, steps_of

PROGRAMS = Path(__file__).parent / "programs"
Stamp = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload. Everything about it comes from its folder."""

    definition: Definition

    @property
    def name(self) -> str:
        """Its folder's name."""
        return self.definition.name

    @property
    def summary(self) -> str:
        """Return a summary in one line."""
        return self.definition.summary

    @property
    def params(self) -> Mapping[str, Param]:
        """Its parameters by name."""
        return self.definition.params

    @property
    def presets(self) -> Mapping[str, Mapping[str, object]]:
        """Return the parameters of each preset; others keep their defaults."""
        return self.definition.presets

    @property
    def metrics(self) -> dict[str, Metric]:
        """The metrics of a case with default parameters."""
        return self.metrics_of({})

    @property
    def config(self) -> tuple[str, ...]:
        """Return the lines of a kernel configuration that it needs to run."""
        return self.definition.config

    @property
    def modules(self) -> tuple[ModuleSource, ...]:
        """Kernel modules to build against each variant's tree."""
        return self.definition.modules

    @property
    def verifies(self) -> str:
        """Return the claim that a verified run checks, in words; empty if there is nothing to count."""
        return self.definition.verifies

    @property
    def watch(self) -> tuple[str, ...]:
        """Return the kernel's symbols whose share by caller says most about this workload."""
        return self.definition.watch

    @property
    def clocks(self) -> tuple[str, ...]:
        """The clocks it can be measured with."""
        unfit = {"instructions"} if self.definition.counted.unfit else set()
        unfit |= set() if self.definition.contending else {"contention"}
        return tuple(clock for clock in CLOCKS if clock not in unfit)

    def params_on(self, clock: Clock) -> Mapping[str, Param]:
        """Return its parameters by name, with those that the clock adds."""
        return {**self.params, **contention.PARAMS} if clock == "contention" else self.params

    def metrics_of(self, params: Mapping[str, object], clock: Clock = "wall") -> dict[str, Metric]:
        """The metrics of a case under a clock: a metric may exist once per member of a list parameter.

        Raises CaseRejected.
        """
        self._check_clock(clock)
        metrics: dict[str, Metric] = {}
        meeting = self.definition.contending if clock == "contention" else None
        known = contention.metrics(meeting.operation) if meeting else self.definition.metrics
        for metric in filter(None, (metric.on(clock) for metric in known)):
            members: ParamValue = ()
            if metric.each:
                param = self.params_on(clock)[metric.each]
                members = param.read(params.get(metric.each, param.default))
            metrics |= {
                expanded.name: expanded
                for expanded in metric.expand(members if isinstance(members, tuple) else ())
            }
        return metrics

    def resolve(
        self, preset: str, params: Mapping[str, object], clock: Clock = "wall"
    ) -> dict[str, ParamValue]:
        """Return all parameters of a case: defaults, overridden by the preset, then the clock, then the given ones.

        Raises CaseRejected, UnknownParam, BadParam (also if the clock fixes another value), each of which names
        the valid ones.
        """
        self._check_clock(clock)
        if preset not in self.presets:
            raise CaseRejected(_unknown(f"preset of {self.name}", preset, self.presets))
        if clock == "contention":
            return self._contending(preset, params)
        fixed = self.definition.counted.params if clock == "instructions" else {}
        resolved = self._filled({**self.presets[preset], **fixed, **params}, clock)
        for name, must in fixed.items():
            if resolved[name] != must:
                raise BadParam(
                    f"{self.name}: {name} = {resolved[name]} cannot be used with the instruction clock, "
                    f"which needs {name} = {must}"
                )
        return resolved

    def _contending(self, preset: str, params: Mapping[str, object]) -> dict[str, ParamValue]:
        meeting = self.definition.contending
        own = meeting.params if meeting else {}
        merged = {**self.presets[preset], **own, **params}
        try:
            if contention.THREADS in self.params and contention.THREADS not in params:
                merged = contention.filled(merged)
            resolved = self._filled(merged, "contention")
            contention.check_threads(resolved)
            contention.check_machine(resolved)
        except BadParam as exc:
            said = str(exc).removeprefix(f"{self.name}: ")
            raise BadParam(f"{self.name}: {said}") from exc
        return resolved

    def _check_clock(self, clock: Clock) -> None:
        if clock == "contention" and self.definition.contending is None:
            raise CaseRejected(
                f"{self.name} does not run under the contention clock: its workload.toml does not say how"
            )
        if clock == "instructions" and (unfit := self.definition.counted.unfit):
            raise CaseRejected(f"{self.name} does not run under the instruction clock: {unfit}")

    def _filled(self, values: Mapping[str, object], clock: Clock) -> dict[str, ParamValue]:
        params = self.params_on(clock)
        for name in values:
            if name not in params:
                raise UnknownParam(_unknown(f"parameter of {self.name}", name, params))
        try:
            return {name: param.read(values.get(name, param.default)) for name, param in params.items()}
        except BadParam as exc:
            raise BadParam(f"{self.name}: {exc}") from exc

    def plan(
        self,
        params: Mapping[str, object],
        *,
        iterations: int,
        warmup: int,
        purpose: Purpose = "measured",
        clock: Clock = "wall",
        off_cpu: bool = False,
    ) -> Plan:
        """Return the guest's plan. params: as `resolve` gives them, or read back from JSON.

        A verified run has one iteration, and so has a profiled one if the program knows no iterations. A profiled run under
        the instruction clock is an exact one, with the steps of a measured run. Verified runs always use the wall clock.
        off_cpu: a profiled run also records waits off the CPUs. Raises CaseRejected, UnknownParam, BadParam.
        """
        self._check_clock(clock)
        resolved = self._filled(params, clock)
        templates = self.definition.steps
        if purpose == "verified" and not self.verifies:
            raise CaseRejected(f"{self.name} claims nothing that a verified run could count")
        exact = is_exact(purpose, clock)
        if exact:
            purpose = "measured"
        if purpose == "verified" or (purpose == "profiled" and any(step.repeat for step in templates)):
            iterations = 1
        clock = clock if purpose == "measured" else "wall"
        this = Round(resolved, iterations, warmup, purpose, clock, off_cpu, exact)
        steps = tuple(step for template in templates for step in steps_of(template, this))
        words = [f"{name}={resolved[own]}" for name, own in self.definition.kernel.items() if resolved[own]]
        return Plan(steps, self._disk(resolved), " ".join(words))

    def read(
        self,
        records: Iterable[Record],
        *,
        purpose: Purpose = "measured",
        clock: Clock = "wall",
        most: int | None = None,
    ) -> Readings:
        """Return the samples and extras of a run's records. most: the iterations of its plan, warm-ups included.

        Raises WorkloadFailed (a step that did not end well), OutputUnreadable.
        """
        if is_exact(purpose, clock):
            purpose = "measured"
        return read_run(self.definition, list(records), purpose, clock, most)

    def _disk(self, params: Mapping[str, ParamValue]) -> DiskShape | None:
        shape = dict(self.definition.disk)
        if not shape:
            return None
        kind = shape.pop("kind")
        if kind != "stat-tree":
            raise BadWorkloadFile(f"{self.name}: no disk is of kind {kind!r}")
        sizes = {field: params[name] for field, name in shape.items()}
        return DiskShape(
            "stat-tree", **{field: int(size) for field, size in sizes.items() if isinstance(size, int)}
        )


def is_exact(purpose: Purpose, clock: Clock) -> bool:
    """Return whether such a run gives an exact profile."""
    return purpose == "profiled" and clock == "instructions"


def load_catalog(programs: Path = PROGRAMS) -> dict[str, Workload]:
    """Return all workloads by name. A folder is read again once a file in it changed. Raises BadWorkloadFile."""
    folders = sorted(file.parent for file in programs.glob("*/workload.toml"))
    return {folder.name: _read(folder, _stamps(folder)) for folder in folders}


@lru_cache(maxsize=64)
def _read(folder: Path, stamps: tuple[Stamp, ...]) -> Workload:
    workload = Workload(read_definition(folder))
    for preset in workload.presets:
        try:
            workload.resolve(preset, {})
        except (BadParam, UnknownParam) as exc:
            raise BadWorkloadFile(f"{workload.name}, preset {preset}: {exc}") from exc
    return workload


def _stamps(folder: Path) -> tuple[Stamp, ...]:
    """Return name, size and time of change of each file: they identify a state of the folder."""
    with os.scandir(folder) as files:
        statuses = ((file.name, file.stat()) for file in files)
        return tuple(sorted((name, status.st_size, status.st_mtime_ns) for name, status in statuses))


def _unknown(what: str, name: str, valid: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(name[:60], valid, n=1)
    meant = f', did you mean "{near[0]}"?' if near else ";"
    shown = name if len(name) <= 60 else f"{name[:59]}…"
    return f'no {what} is called "{shown}"{meant} valid: {", ".join(valid)}'
