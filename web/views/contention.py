# SPDX-License-Identifier: GPL-2.0-or-later
"""A case under the contention clock: how each variant scales, and what its CPUs wait for."""

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from lab.comparisons.model_and_machine import cycles_by_latency
from lab.comparisons.page import ShownBoot
from lab.comparisons.shape import CaseData, ComparisonData
from lab.profiles.case_profiles import WAITING, profiled_variants
from lab.statistics.verdict_words import CONTROLS
from web.charts import PLOT_HEIGHT, PLOT_WIDTH, PlotFrame, pen, tick
from web.words import change, number, share

# As workloads/contention.py names the metric of each number of CPUs.
CYCLES = re.compile(r"cycles_per_(\w+)_(\d{1,2})")
_MOST_FUNCTIONS, _MOST_PLACES = 12, 6
# The margin of every metric in workloads/contention.py.
_MARGIN = 0.02


def contention(data: ComparisonData, case: CaseData, medians: Sequence[ShownBoot]) -> dict[str, Any] | None:
    """Return the curves and the waiting of a case, None under another clock or without a boot that was replayed.

    plot: cycles per operation, as a multiple of the base's on the fewest CPUs. variants, functions and places are of the
    variants' median boots, on the most CPUs.
    """
    boots = [boot for boot in medians if isinstance(boot.extras.get("contention"), Mapping)]
    if data["experiment"]["clock"] != "contention" or not boots:
        return None
    controls = {variant["name"] for variant in data["variants"] if variant["role"] in CONTROLS}
    boots = [boot for boot in boots if boot.variant not in controls]
    operation, curves = _curves(data["base"]["name"], case)
    reports = [boot.extras["contention"] for boot in boots]
    return {
        "operation": operation,
        "machine": str(reports[0]["machine"]) if reports else "",
        "cpus": int(reports[0]["cpus"]) if reports else 0,
        "plot": scaling_plot(curves),
        "variants": [boot.variant for boot in boots],
        "waiting": [share(each["waiting"], each["cycles"]) for each in reports],
        "functions": _functions(reports),
        "places": [(boot.variant, _places(boot)) for boot in boots],
        "graphs": _graphs(data, case, [boot.variant for boot in boots]),
        "sensitivity": _sensitivity(data, case),
    }


def _graphs(data: ComparisonData, case: CaseData, variants: Sequence[str]) -> list[dict[str, str]]:
    """Return the addresses of the flame graphs of waiting: of a variant, and of its difference to the base."""
    base = data["base"]["name"]
    profiled = profiled_variants(case["id"], kind=WAITING)
    at = reverse("profile", args=(data["experiment"]["id"], case["id"]))

    def address(**asked: str) -> str:
        return f"{at}?{urlencode({'kind': WAITING} | asked)}"

    return [
        {
            "variant": name,
            "own": address(variant=name),
            "difference": address(variant=name, against=base) if name != base and base in profiled else "",
        }
        for name in variants
        if name in profiled
    ]


def _curves(base: str, case: CaseData) -> tuple[str, dict[str, dict[int, float]]]:
    """Return the operation's name, and the cycles by variant and CPUs, relative to the base on the fewest CPUs."""
    cycles: dict[str, dict[int, float]] = defaultdict(dict)
    operation = ""
    for metric in case["metrics"]:
        if not (name := CYCLES.fullmatch(metric["name"])):
            continue
        operation, cpus = name[1], int(name[2])
        values = {base: metric["base_median"]}
        values |= {
            cell["variant"]: cell["median"] for cell in metric["cells"] if cell["role"] not in CONTROLS
        }
        for variant, value in values.items():
            if value is not None:
                cycles[variant][cpus] = value
    alone = cycles[base][min(cycles[base])] if cycles[base] else 0.0
    if not alone:
        return operation, {}
    return operation, {
        variant: {cpus: value / alone for cpus, value in values.items()} for variant, values in cycles.items()
    }


def _functions(reports: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the functions that CPUs wait in, with each variant's share; the largest share of any variant first."""
    cycles: dict[str, list[float]] = defaultdict(lambda: [0.0] * len(reports))
    for place, each in enumerate(reports):
        for row in each["functions"]:
            if row["chain"]:
                cycles[row["chain"][0]][place] += row["cycles"] / (each["cycles"] or 1)
    ordered = sorted(cycles.items(), key=lambda item: -max(item[1]))
    return [
        {"name": name, "shares": [share(part, 1) for part in parts]}
        for name, parts in ordered[:_MOST_FUNCTIONS]
    ]


def _places(boot: ShownBoot) -> list[dict[str, str]]:
    """Return the locks and lines that a boot's CPUs wait for longest, each with the function that waits most."""
    report = boot.extras["contention"]
    rows = [(row["cycles"], f"{row['kind']} lock", row) for row in report["locks"]]
    rows += [
        (row["cycles"], "false sharing" if row["false_sharing"] else "cache line", row)
        for row in report["lines"]
    ]
    rows.sort(key=lambda row: -row[0])
    return [
        {
            "name": str(row["name"]),
            "kind": kind,
            "share": share(cycles, report["cycles"]),
            "chain": _chain(row),
        }
        for cycles, kind, row in rows[:_MOST_PLACES]
    ]


def _chain(row: Mapping[str, Any]) -> str:
    """Return the chain of calls that waits most, the innermost function first, and the other functions that wait."""
    chains = [each["chain"] for each in row["callers"] if each["chain"]]
    if not chains:
        return ""
    others = {chain[0]: None for chain in chains[1:] if chain[0] != chains[0][0]}
    return "; ".join([" ← ".join(chains[0]), *(f"also {name}" for name in others)])


def _sensitivity(data: ComparisonData, case: CaseData) -> tuple[str, ...]:
    """Return for each variant whether its change stays the same if every latency of the machine is halved or doubled."""
    cycles = cycles_by_latency(case["id"])
    controls = {row["name"] for row in data["variants"] if row["role"] in CONTROLS}
    base = cycles.pop(data["base"]["name"], {})
    lines = []
    for variant, own in cycles.items():
        if variant in controls or not set(base) == set(own) == {"0.5", "1", "2"}:
            continue
        half, as_is, twice = (own[times] / base[times] for times in ("0.5", "1", "2"))
        numbers = f"{change(as_is)}; {change(half)} with every latency halved, {change(twice)} with every one doubled"
        alike = len({_kind(ratio) for ratio in (half, as_is, twice)}) == 1
        lines.append(
            f"{variant}: {numbers}; {'the same result in all three' if alike else 'the result depends on the latencies'}"
        )
    return tuple(lines)


def _kind(ratio: float) -> int:
    """Return 1 for a change upwards, -1 downwards, 0 for none that matters."""
    return 0 if abs(ratio - 1) < _MARGIN else 1 if ratio > 1 else -1


_FRAME = PlotFrame(58, PLOT_WIDTH - 16, 12, PLOT_HEIGHT - 40)
_LEAST_REACH = 2.0


def scaling_plot(variants: Mapping[str, Mapping[int, float]]) -> dict[str, Any] | None:
    """Place the curves of variants: name → CPUs → slowdown against the base on the fewest CPUs.

    Values that are not positive numbers are left out; None where nothing is left.
    rows: the same data, CPUs and then a value of each curve or "–".
    """
    kept = {name: dict(sorted(_drawable(values).items())) for name, values in variants.items()}
    counts = sorted({cpus for values in kept.values() for cpus in values})
    if not counts:
        return None
    highest = max(_LEAST_REACH, *(value for values in kept.values() for value in values.values()))
    lowest = min(1.0, *(value for values in kept.values() for value in values.values()))
    reach = math.log(max(2, counts[-1] / counts[0]))

    def across(cpus: int) -> float:
        return _FRAME.across(math.log(cpus / counts[0]) / reach)

    def up(value: float) -> float:
        return _FRAME.up(math.log(value / lowest) / math.log(highest / lowest))

    curves = []
    for index, (name, values) in enumerate(kept.items()):
        points = [
            {"x": across(cpus), "y": up(value), "title": f"{name}, {cpus} CPUs: {number(value)} times"}
            for cpus, value in values.items()
        ]
        path = "L".join(f"{point['x']} {point['y']}" for point in points)
        curves.append({"name": name, "d": f"M{path}" if path else "", "points": points, **pen(index)})
    return {
        "frame": _FRAME,
        "y_ticks": [tick(up(value), f"{value:g}×") for value in _steps(lowest, highest)],
        "x_ticks": [tick(across(cpus), str(cpus)) for cpus in counts],
        "curves": curves,
        "rows": [(cpus, [_figure(values.get(cpus)) for values in kept.values()]) for cpus in counts],
    }


def _drawable(values: Mapping[int, float]) -> dict[int, float]:
    return {cpus: value for cpus, value in values.items() if cpus >= 1 and math.isfinite(value) and value > 0}


def _steps(lowest: float, highest: float) -> Sequence[float]:
    """Powers of two from the lowest to the highest, never more than ten."""
    first, last = math.ceil(math.log2(lowest) - 1e-9), math.floor(math.log2(highest) + 1e-9)
    stride = max(1, math.ceil((last - first + 1) / 10))
    return [2.0**power for power in range(first, last + 1, stride)]


def _figure(value: float | None) -> str:
    return "–" if value is None else number(value)
