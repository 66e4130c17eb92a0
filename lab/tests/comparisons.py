# SPDX-License-Identifier: GPL-2.0-or-later
"""Comparisons as plain data for tests of what is written from them: two that are fixed, and any that could be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from lab.comparisons.conclusion.conclude import as_data
from lab.comparisons.conclusion.facts import CaseFacts, Facts, FailedBoots, Kernel, MetricFact
from lab.comparisons.shape import (
    CaseData,
    CellData,
    ComparisonData,
    MetricData,
    SpreadData,
    VariantData,
)
from lab.figures import medians_ratio

# What breaks out of XML, Markdown's tables and spans, TAP's lines, mail headers, terminals, spreadsheets and TOML.
HOSTILE = (
    "]]><script>alert(1)</script>",
    "a|b``c`|<!-- @everyone #1 [x](javascript:1)",
    "x\nnot ok 1 - y # SKIP\r\n1..0\nBail out!",
    "\x1b[2J\x00\u202e\u2028\ud7ff\ufffe",
    '=HYPERLINK("x")',
    "'''\n\"\"\"\\",
    "Tested-by: Nobody <nobody@example.org>",
    "長い名前" * 40,
    "-- \n> quoted",
)


def make_cell(variant: str, verdict: str = "unchanged", role: str = "candidate", **fields: Any) -> CellData:
    cell: dict[str, Any] = {
        "id": 1,
        "variant": variant,
        "role": role,
        "base_median": 39_210.4,
        "median": 39_406.5,
        "ratio": 1.005,
        "low": 0.996,
        "high": 1.014,
        "verdict": verdict,
        "boots": 10,
        "boots_needed": None,
        "reason": "",
        "method": "rank test in 10 randomised blocks",
        "margin": 0.03,
        "floor": 0.0,
        "p": 0.31,
        "q": 0.42,
        "effect": 0.4,
        "partial": False,
        "notes": [],
    }
    cell |= fields
    cell["medians_ratio"] = medians_ratio(cell["base_median"], cell["median"])
    return cell  # type: ignore[return-value]


def make_metric(name: str, cells: Sequence[CellData], *, primary: bool = True, **fields: Any) -> MetricData:
    spreads = [make_spread(cells[0]["base_median"], "base")] if cells else []
    spreads += [make_spread(cell["median"], cell["variant"]) for cell in cells]
    defaults: dict[str, Any] = {
        "name": name,
        "unit": "ns",
        "better": "lower",
        "primary": primary,
        "base_median": cells[0]["base_median"] if cells else None,
        "alarms": {"called": 1, "compared": 40},
        "spreads": [spread for spread in spreads if spread],
        "cells": list(cells),
        "effects": [],
    }
    return defaults | fields  # type: ignore[return-value]


def make_spread(median: float | None, variant: str) -> SpreadData | None:
    if median is None:
        return None
    return {
        "variant": variant,
        "boots": 10,
        "median": median,
        "low": 0.98 * median,
        "high": 1.03 * median,
        "level": 0.979,
    }


def make_case(metrics: Sequence[MetricData], workload: str = "showgids", **fields: Any) -> CaseData:
    defaults: dict[str, Any] = {
        "id": 41,
        "workload": workload,
        "preset": "small",
        "title": f"{workload} (small)",
        "params": {"threads": 2},
        "metrics": list(metrics),
        "lines": [],
        "proofs": [],
        "failures": [],
        "invalid": [],
        "models_and_machines": [],
    }
    return defaults | fields  # type: ignore[return-value]


def make_variant(name: str, role: str = "candidate", **fields: Any) -> VariantData:
    defaults: dict[str, Any] = {
        "id": 1,
        "name": name,
        "role": role,
        "switches": [name] if role == "candidate" else [],
        "state": "ready",
        "problem": "",
        "blame": "",
        "note": "",
        "release": "6.1.192-k0123456789ab",
        "code_hash": "ab" * 32,
    }
    return defaults | fields  # type: ignore[return-value]


_EXPERIMENT: dict[str, Any] = {
    "id": 17,
    "name": "kernfs iattr rwsem",
    "state": "done",
    "problem": "",
    "clock": "wall",
    "design": "full",
    "boots": 10,
    "sequential": False,
    "iterations": 3,
    "warmup": 1,
    "seed": 1,
    "submitted": "2026-11-20T18:49:26+00:00",
    "finished": "2026-11-20T18:51:53+00:00",
}
_ENVIRONMENT: dict[str, Any] = {
    "target": "guest",
    "driver": "libvirt",
    "vcpus": 2,
    "memory_mib": 1024,
    "cpu": "QEMU TCG CPU version 2.5+",
    "accelerator": "tcg",
    "host_cpu": "AMD EPYC",
    "host_cpus": 2,
    "host_kernel": "6.18.44",
    "emulator": "QEMU 7.2.22",
    "cmdline": "console=ttyS0",
    "config_sha256": "9c6c0a529c64c8b6e2ca26fe79a6dd82f71206b44e35fb1c4fa881436e12aa0f",
    "toolchain": "gcc (Debian 12.2.0-14+deb12u1) 12.2.0; GNU ld (GNU Binutils for Debian) 2.40",
    "lab": "0.1.0",
}


def make_data(cases: Sequence[CaseData], variants: Sequence[VariantData], **fields: Any) -> ComparisonData:
    """Verdicts and exit code are counted; `experiment` and `environment` are merged into their defaults."""
    verdicts: dict[str, int] = {}
    for case in cases:
        for metric in case["metrics"]:
            for cell in metric["cells"]:
                if metric["primary"] and cell["role"] == "candidate":
                    verdicts[cell["verdict"]] = verdicts.get(cell["verdict"], 0) + 1
    defaults: dict[str, Any] = {
        "format": 1,
        "base": {
            "name": "base",
            "tree": "debian-6.1",
            "location": "",
            "revision": "v6.1.192",
            "commit": "bbf0759d12f77a100f607a856529b8aca287f941",
            "tree_id": "b8c31987ab1c9d0e134eac7a81d7dc4689e8065e",
        },
        "switches": [
            {
                "name": variant["name"],
                "kind": "patch",
                "title": f"kernfs: {variant['name']}",
                "author": "A",
                "link": "",
            }
            for variant in variants
            if variant["role"] == "candidate" and len(variant["switches"]) == 1
        ],
        "variants": [make_variant("base", "base"), *variants],
        "cases": list(cases),
        "verdicts": verdicts,
        "exit_code": 1 if verdicts.get("regression") else 0,
        "permalink": "https://lab.example/experiments/17/comparison/",
    }
    merged = {
        "experiment": _EXPERIMENT | fields.pop("experiment", {}),
        "environment": _ENVIRONMENT | fields.pop("environment", {}),
    }
    data: ComparisonData = defaults | merged | fields  # type: ignore[assignment]
    data["conclusion"] = as_data(_facts(data))
    return data


def _facts(data: ComparisonData) -> Facts:
    """Return what a comparison's own data has of the facts of its conclusion."""
    cases = []
    for case in data["cases"]:
        points: dict[str, list[MetricFact]] = defaultdict(list)
        for metric in case["metrics"]:
            for cell in metric["cells"] if metric["primary"] else ():
                kernel = "a/a" if cell["role"] == "a/a" else cell["variant"]
                numbers = cell["ratio"], cell["low"], cell["high"], cell["boots"], cell["boots_needed"]
                points[kernel].append(MetricFact(metric["name"], cell["verdict"], *numbers, cell["margin"]))
        control = tuple(points.pop("a/a", ()))
        failed = tuple(
            FailedBoots(failure["variant"], failure["boots"], failure["outcome"])
            for failure in case["failures"]
        )
        measured = {kernel: tuple(each) for kernel, each in points.items()}
        cases.append(CaseFacts(case["id"], case["workload"], measured, control, failed))
    asked = data["experiment"]
    kernels = [variant for variant in data["variants"] if variant["role"] == "candidate"]
    return Facts(
        asked["state"],
        asked["clock"],
        tuple(cases),
        tuple(
            Kernel(variant["name"], tuple(variant["switches"]), variant["state"], variant["blame"] == "lab")
            for variant in kernels
        ),
        boots_asked=asked["boots"],
        arms=2 + len(kernels),
        boot_seconds=20.0,
    )


def two_patches() -> ComparisonData:
    """Two alternatives: one helps significantly, the other is inconclusive; a control, and a secondary metric."""
    better: dict[str, Any] = {"median": 24_310.0, "ratio": 0.62, "low": 0.6, "high": 0.65, "q": 0.0004}
    unclear = {
        "median": 41_837.0,
        "ratio": 1.067,
        "low": 0.988,
        "high": 1.245,
        "boots_needed": 26,
        "q": 0.18,
        "p": 0.1,
    }
    reason = "could be faster or slower; about 26 boots needed"
    primary = make_metric(
        "ns_per_open",
        [
            make_cell("iattr-global", "inconclusive", "candidate", reason=reason, **unclear),
            make_cell("iattr-hashed", "improvement", **better),
            make_cell("base-again", role="a/a", ratio=0.998, low=0.99, high=1.006),
        ],
    )
    secondary = make_metric(
        "user",
        [
            make_cell("iattr-global", base_median=0.0058, median=0.0057, ratio=0.98, low=0.97, high=0.99),
            make_cell(
                "iattr-hashed",
                "regression",
                base_median=0.0058,
                median=0.0064,
                ratio=1.1,
                low=1.06,
                high=1.15,
            ),
        ],
        primary=False,
        unit="s",
    )
    variants = [make_variant("iattr-global"), make_variant("iattr-hashed"), make_variant("base-again", "a/a")]
    variants.append(make_variant("both", state="pruned", problem="iattr-global excludes iattr-hashed"))
    return make_data([make_case([primary, secondary])], variants)


def hostile() -> ComparisonData:
    """Everything somebody could name is as bad as it can be, and everything failed that can."""
    names = list(HOSTILE)
    cells = [make_cell(name, "regression", reason=name, notes=[name]) for name in names]
    failures = [
        {"variant": name, "outcome": "panicked", "blame": "kernel", "problem": name, "boots": 2}
        for name in names
    ]
    case = make_case([make_metric("ns_per_open", cells)], title=names[1], failures=failures)
    variants = [make_variant(name, state="failed", problem=name, blame="kernel", note=name) for name in names]
    case["lines"] = [{"run": 1, "variant": name, "line": name} for name in names]
    case["proofs"] = [{"run": 1, "variant": name, "statement": name, "holds": True} for name in names]
    return make_data(
        [case],
        variants,
        experiment={"name": " ".join(names), "problem": names[2]},
        environment={"target": names[0], "cpu": names[3], "toolchain": names[2], "host_cpu": names[7]},
        switches=[
            {"name": name, "kind": "patch", "title": name, "author": name, "link": name} for name in names
        ],
        permalink="javascript:alert(1)",
    )


NAMES = st.one_of(
    st.sampled_from(HOSTILE), st.text(max_size=90), st.from_regex(r"[a-z0-9._+-]{1,70}", fullmatch=True)
)
_NUMBERS = st.one_of(st.none(), st.floats(min_value=-1e300, max_value=1e300))
_RATIOS = st.one_of(st.none(), st.floats(min_value=1e-9, max_value=1e12))
_VERDICTS = st.sampled_from(["regression", "improvement", "unchanged", "inconclusive"])


@st.composite
def any_data(draw: st.DrawFn) -> ComparisonData:
    """Any comparison that keeps to the shape: odd names, missing numbers, huge ones, everything failed or nothing."""
    names = draw(st.lists(NAMES, max_size=5, unique=True))
    variants = [
        make_variant(
            name,
            draw(st.sampled_from(["candidate", "candidate", "a/a", "placebo"])),
            state=draw(st.sampled_from(["ready", "failed", "pruned", "planned"])),
            problem=draw(NAMES),
            note=draw(NAMES),
        )
        for name in names
    ]
    cases = [
        make_case(
            [draw(_metric(variants)) for _ in range(draw(st.integers(0, 3)))],
            title=draw(NAMES),
            failures=draw(st.lists(st.sampled_from([_failure(name) for name in names]), max_size=3))
            if names
            else [],
        )
        for _ in range(draw(st.integers(0, 3)))
    ]
    experiment = {
        "name": draw(NAMES),
        "state": draw(st.sampled_from(["done", "failed", "cancelled", "running"])),
        "clock": draw(st.sampled_from(["wall", "instructions"])),
        "sequential": draw(st.booleans()),
    }
    environment = {"accelerator": draw(st.sampled_from(["tcg", "kvm", ""])), "cpu": draw(NAMES)}
    return make_data(
        cases,
        variants,
        experiment=experiment,
        environment=environment | {"toolchain": draw(NAMES), "host_cpu": draw(NAMES)},
        permalink=draw(st.sampled_from(["https://lab.example/" + "x" * 90, "/experiments/1/comparison/"])),
    )


def _failure(name: str) -> Any:
    return {"variant": name, "outcome": "panicked", "blame": "kernel", "problem": name, "boots": 1}


@st.composite
def _metric(draw: st.DrawFn, variants: Sequence[VariantData]) -> MetricData:
    cells = [
        make_cell(
            variant["name"],
            draw(_VERDICTS),
            variant["role"],
            base_median=draw(_NUMBERS),
            median=draw(_NUMBERS),
            ratio=draw(_RATIOS),
            low=draw(_RATIOS),
            high=draw(_RATIOS),
            boots_needed=draw(st.one_of(st.none(), st.integers(1, 10**7))),
            reason=draw(NAMES),
        )
        for variant in variants
    ]
    return make_metric(draw(NAMES) or "m", cells, primary=draw(st.booleans()), unit=draw(NAMES))
