# SPDX-License-Identifier: GPL-2.0-or-later
"""Interpret a run's records for its workload: parse them, check them against its metrics, and write the mail's line."""

import importlib.util
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from workloads.contention import counted
from workloads.definition import Definition
from workloads.errors import BadWorkloadFile, OutputUnreadable
from workloads.guest.records import Record
from workloads.instruction_clock import Clock, instructions
from workloads.metric import Metric
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
from workloads.step import Purpose

Parser = Callable[[list[Object], Mapping[str, bytes]], tuple[list[Object], dict[str, Any]]]
# Printed by the harness for every program; kept only if workload.toml has a metric of that name.
_OF_THE_HARNESS = {"elapsed", "user", "system", "cpu"}


def read_run(
    definition: Definition,
    records: Sequence[Record],
    purpose: Purpose,
    clock: Clock = "wall",
    most: int | None = None,
) -> Readings:
    """Return the readings of one run. most: the iterations of its plan, if known. Raises WorkloadFailed, OutputUnreadable."""
    raise_failed_step(records)
    measuring = [step.name for step in definition.steps if step.kind == "measure"]
    files = files_of(records)
    printed = objects_of(records, measuring)
    if most is not None:
        _check_count(definition.name, printed, most)
    if clock == "contention":
        # The replay computes the rest.
        return Readings(counted(printed), extras_of(printed))
    objects, extras = _parsed(definition, printed, files)
    if purpose == "verified" and "verified" not in extras:
        raise OutputUnreadable(f"{definition.name}: the guest did not return the counts of the verified run")
    # Times measured under kprobes or perf are not the kernel's alone.
    iterations = _checked(definition, iterations_of(objects)) if purpose == "measured" else ()
    if clock == "instructions":
        # The mail's line is about seconds, which were not measured.
        return Readings(
            tuple(_counted(definition, iteration) for iteration in iterations), extras_of(objects) | extras
        )
    return Readings(iterations, extras_of(objects) | extras, _line(definition, iterations, objects))


def load_parser(definition: Definition) -> Parser | None:
    """Return the parse() of a workload's folder, None where it has none. Raises BadWorkloadFile."""
    return _load(definition.parser) if definition.parser else None


@cache
def _load(path: Path) -> Parser:
    # By path, because a folder's name ("stat-walk") is not a valid module name.
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise BadWorkloadFile(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    parse: Parser = module.parse
    return parse


def _check_count(name: str, printed: Sequence[Object], most: int) -> None:
    """Raise OutputUnreadable unless each printed iteration is in the plan and occurs only once."""
    if len(printed) > most:
        raise OutputUnreadable(f"{name} printed {len(printed)} iterations, its plan has {most}")
    numbers = [item.get("iteration") for item in printed]
    if any(type(number) is not int or not 0 <= number < most for number in numbers):
        raise OutputUnreadable(f"{name} printed an iteration that is not among the {most} of its plan")
    if len(set(numbers)) != len(numbers):
        raise OutputUnreadable(f"{name} printed an iteration twice")


def _parsed(
    definition: Definition, objects: list[Object], files: Mapping[str, bytes]
) -> tuple[list[Object], dict[str, Any]]:
    parse = load_parser(definition)
    if parse is None:
        return objects, {}
    try:
        return parse(objects, files)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError) as exc:
        reason = type(exc).__name__
        raise OutputUnreadable(
            f"{definition.name}: what the guest sent is not in our form ({reason})"
        ) from exc


def _checked(definition: Definition, iterations: Sequence[Iteration]) -> tuple[Iteration, ...]:
    """Return the iterations with the metrics of workload.toml. Raises OutputUnreadable if one is missing or unknown."""
    if all(iteration.warmup for iteration in iterations):
        raise OutputUnreadable(f"{definition.name} printed no iteration")
    stems = tuple(f"{metric.name}_" for metric in definition.metrics if metric.each)
    fixed = {metric.name for metric in definition.metrics if not metric.each}
    kept = []
    for iteration in iterations:
        known = {
            name: value for name, value in iteration.values.items() if name in fixed or name.startswith(stems)
        }
        where = f"{definition.name}: iteration {iteration.index}"
        if missing := fixed - known.keys():
            raise OutputUnreadable(f"{where} lacks {', '.join(sorted(missing))}")
        if strange := iteration.values.keys() - known.keys() - _OF_THE_HARNESS:
            raise OutputUnreadable(f"{where}: {', '.join(sorted(strange))} is not a metric of workload.toml")
        kept.append(replace(iteration, values=known))
    return tuple(kept)


def _counted(definition: Definition, iteration: Iteration) -> Iteration:
    """Return an iteration under the instruction clock: times become instructions, other metrics are dropped."""
    values: dict[str, float] = {}
    for metric in definition.metrics:
        if metric.instructions:
            values |= {
                metric.instructions + name.removeprefix(metric.name): instructions(value, metric.unit)
                for name, value in iteration.values.items()
                if _is_of(name, metric)
            }
    return replace(iteration, values=values)


def _is_of(name: str, metric: Metric) -> bool:
    return name.startswith(f"{metric.name}_") if metric.each else name == metric.name


def _line(definition: Definition, iterations: Sequence[Iteration], objects: Sequence[Object]) -> str:
    """Return the mail's own line, for the iteration with the median of the line's metric."""
    timed = [iteration for iteration in iterations if not iteration.warmup]
    by = definition.line_by
    if not by or not timed or any(by not in iteration.values for iteration in timed):
        return ""  # no such line, or this case has no such metric
    middle = statistics.median_low(iteration.values[by] for iteration in timed)
    chosen = next(iteration for iteration in timed if iteration.values[by] == middle)
    said = next(item for item in objects if item["iteration"] == chosen.index)
    # zsh's time truncates the percentage instead of rounding it: so does <metric>_whole.
    whole = {f"{name}_whole": int(value) for name, value in chosen.values.items()}
    return definition.line.format_map({**said, **whole, **chosen.values})
