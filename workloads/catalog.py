# SPDX-License-Identifier: GPL-2.0-or-later
"""The catalogue of workloads: one folder of `programs/` each."""

from __future__ import annotations

import difflib
import importlib.util
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workloads.definition import Definition, ModuleSource, read_definition
from workloads.errors import (
    BadParam,
    BadWorkloadFile,
    NotVerifiable,
    OutputUnreadable,
    UnknownParam,
    UnknownPreset,
    UnknownWorkload,
)
from workloads.guest.plan import DiskShape, Plan
from workloads.guest.records import Record
from workloads.metric import Metric
from workloads.param import Param, ParamValue
from workloads.readings import (
    Iteration,
    Object,
    Readings,
    extras_of,
    files_of,
    iterations_of,
    objects_of,
    raise_failed_step,
)
from workloads.step import Purpose, Round, steps_of

PROGRAMS = Path(__file__).parent / "programs"
# Printed by the harness for every program; kept where workload.toml makes metrics of them.
_OF_THE_HARNESS = {"elapsed", "user", "system", "cpu"}


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
        """What it does, in one line."""
        return self.definition.summary

    @property
    def params(self) -> Mapping[str, Param]:
        """Its parameters by name."""
        return self.definition.params

    @property
    def presets(self) -> Mapping[str, Mapping[str, object]]:
        """What each preset sets; what it does not name keeps its default."""
        return self.definition.presets

    @property
    def metrics(self) -> dict[str, Metric]:
        """The metrics of a case with default parameters."""
        return self.metrics_of({})

    @property
    def config(self) -> tuple[str, ...]:
        """The lines of a kernel configuration without which it cannot run."""
        return self.definition.config

    @property
    def modules(self) -> tuple[ModuleSource, ...]:
        """Kernel modules to build against each variant's tree."""
        return self.definition.modules

    @property
    def verifies(self) -> str:
        """What a verified run proves, in words; empty if there is nothing to count."""
        return self.definition.verifies

    def metrics_of(self, params: Mapping[str, object]) -> dict[str, Metric]:
        """The metrics of a case: a metric may exist once per member of a list parameter."""
        found: dict[str, Metric] = {}
        for metric in self.definition.metrics:
            members: ParamValue = ()
            if metric.each:
                param = self.params[metric.each]
                members = param.read(params.get(metric.each, param.default))
            found |= {one.name: one for one in metric.expand(members if isinstance(members, tuple) else ())}
        return found

    def resolve(self, preset: str, params: Mapping[str, object]) -> dict[str, ParamValue]:
        """All parameters of a case: defaults, then the preset's, then those given.

        Raises UnknownPreset, UnknownParam, BadParam; each names what is valid.
        """
        if preset not in self.presets:
            raise UnknownPreset(_unknown(f"preset of {self.name}", preset, self.presets))
        return self._filled({**self.presets[preset], **params})

    def _filled(self, given: Mapping[str, object]) -> dict[str, ParamValue]:
        for name in given:
            if name not in self.params:
                raise UnknownParam(_unknown(f"parameter of {self.name}", name, self.params))
        try:
            return {name: param.read(given.get(name, param.default)) for name, param in self.params.items()}
        except BadParam as exc:
            raise BadParam(f"{self.name}: {exc}") from exc

    def plan(
        self, params: Mapping[str, object], *, iterations: int, warmup: int, purpose: Purpose = "measured"
    ) -> Plan:
        """What the guest is to do. params: as `resolve` gives them, or read back from JSON.

        A verified run has one iteration, and a profiled one too if the program knows no iterations.
        Raises NotVerifiable, UnknownParam, BadParam.
        """
        resolved = self._filled(params)
        templates = self.definition.steps
        if purpose == "verified" and not self.verifies:
            raise NotVerifiable(f"{self.name} claims nothing that a verified run could count")
        if purpose == "verified" or (purpose == "profiled" and any(step.repeat for step in templates)):
            iterations = 1
        this = Round(resolved, iterations, warmup, purpose)
        steps = tuple(step for template in templates for step in steps_of(template, this))
        return Plan(steps, self._disk(resolved))

    def read(self, records: Iterable[Record], *, purpose: Purpose = "measured") -> Readings:
        """The samples and extras of a run's records.

        Raises WorkloadFailed (a step that did not end well), OutputUnreadable.
        """
        kept = list(records)
        raise_failed_step(kept)
        objects = objects_of(kept, [step.name for step in self.definition.steps if step.kind == "measure"])
        objects, extras = self._parse(objects, files_of(kept))
        # Timing beside kprobes or perf says nothing of the kernel alone.
        iterations = self._checked(iterations_of(objects)) if purpose == "measured" else ()
        return Readings(iterations, extras_of(objects) | extras, self._line(iterations, objects))

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

    def _parse(
        self, objects: list[Object], files: Mapping[str, bytes]
    ) -> tuple[list[Object], dict[str, Any]]:
        if self.definition.parser is None:
            return objects, {}
        # By path, for a folder's name ("stat-walk") is no module's name.
        spec = importlib.util.spec_from_file_location(self.definition.parser.stem, self.definition.parser)
        if spec is None or spec.loader is None:
            raise BadWorkloadFile(f"{self.definition.parser} cannot be loaded")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        parsed: tuple[list[Object], dict[str, Any]] = module.parse(objects, files)
        return parsed

    def _checked(self, iterations: Sequence[Iteration]) -> tuple[Iteration, ...]:
        """The iterations with the metrics of workload.toml: none missing, none unknown."""
        if all(iteration.warmup for iteration in iterations):
            raise OutputUnreadable(f"{self.name} printed no iteration")
        stems = tuple(f"{metric.name}_" for metric in self.definition.metrics if metric.each)
        fixed = {metric.name for metric in self.definition.metrics if not metric.each}
        kept = []
        for iteration in iterations:
            known = {
                name: value
                for name, value in iteration.values.items()
                if name in fixed or (stems and name.startswith(stems))
            }
            where = f"{self.name}: iteration {iteration.index}"
            if missing := fixed - known.keys():
                raise OutputUnreadable(f"{where} lacks {', '.join(sorted(missing))}")
            if strange := iteration.values.keys() - known.keys() - _OF_THE_HARNESS:
                raise OutputUnreadable(f"{where}: {', '.join(sorted(strange))} is no metric of workload.toml")
            kept.append(replace(iteration, values=known))
        return tuple(kept)

    def _line(self, iterations: Sequence[Iteration], objects: Sequence[Object]) -> str:
        timed = [iteration for iteration in iterations if not iteration.warmup]
        if not self.definition.line or not timed:
            return ""
        primary = next(name for name, metric in self.metrics.items() if metric.primary)
        at = statistics.median_low(iteration.values.get(primary, 0.0) for iteration in timed)
        chosen = next(iteration for iteration in timed if iteration.values.get(primary, 0.0) == at)
        said = {
            name: value
            for item in objects
            if item["iteration"] == chosen.index
            for name, value in item.items()
        }
        # zsh's time cuts the percentage off, it does not round: <metric>_whole does as it does.
        whole = {f"{name}_whole": int(value) for name, value in chosen.values.items()}
        try:
            return self.definition.line.format_map({**said, **whole, **chosen.values})
        except KeyError:
            return ""  # the line speaks of a metric that this case does not have


def load_catalog(programs: Path = PROGRAMS) -> dict[str, Workload]:
    """All workloads by name. Raises BadWorkloadFile."""
    folders = sorted(file.parent for file in programs.glob("*/workload.toml"))
    found = {folder.name: Workload(read_definition(folder)) for folder in folders}
    for workload in found.values():
        for preset in workload.presets:
            try:
                workload.resolve(preset, {})
            except (BadParam, UnknownParam) as exc:
                raise BadWorkloadFile(f"{workload.name}, preset {preset}: {exc}") from exc
    return found


def find_workload(name: str, catalog: Mapping[str, Workload]) -> Workload:
    """A workload by name. Raises UnknownWorkload, which names the nearest and all valid ones."""
    if name not in catalog:
        raise UnknownWorkload(_unknown("workload", name, catalog))
    return catalog[name]


def _unknown(what: str, name: str, valid: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(name, valid, n=1)
    meant = f', did you mean "{near[0]}"?' if near else ";"
    return f'no {what} is called "{name}"{meant} valid: {", ".join(valid)}'
