# SPDX-License-Identifier: GPL-2.0-or-later
"""The two lines of a reply that say how its numbers were measured, the clock's limits, and the environment."""

import re

from lab.comparisons.exports.figures import CLOCK_WORDS, is_fine, own_medians, told_change
from lab.comparisons.reply.mail_text import fold, name
from lab.comparisons.shape import ComparisonData, cells_of
from lab.figures import counted

_COUNTED = (
    "Instructions were counted in an emulated guest of one CPU. Caches, branch prediction, contention between CPUs "
    "and time itself do not show in them; boots agree to the last instruction, and changes below the floor are not "
    "reported."
)
_EMULATED = (
    "The guest was emulated (TCG), without hardware virtualization: times depend more on the number of instructions than "
    "on caches and pipelines, so changes will have other sizes on hardware."
)

_MODELLED = (
    "Memory accesses of emulated CPUs were replayed on a model of a machine. Its cycles compare kernels and do not predict "
    "times on hardware."
)

# Longer lists would make the mail too long; the page has all.
_MOST_CONTROLS, _MOST_METHODS = 6, 3


def method(data: ComparisonData) -> list[str]:
    """Return the lines on boots, clock and interval, on the control, and on the clock's limits."""
    asked = data["experiment"]
    boots = f"Up to {asked['boots']}" if asked["sequential"] else f"{asked['boots']}"
    clock = CLOCK_WORDS.get(asked["clock"], "wall clock")
    warmup = f" after {asked['warmup']} to warm up" if asked["warmup"] else ""
    text = (
        f"Method: {boots} boots of each kernel in random order within blocks, {asked['iterations']} "
        f"iteration{'s' if asked['iterations'] != 1 else ''} a boot{warmup}, median; {clock}."
    )
    methods = {
        cell["method"]
        for _, metric, cell in cells_of(data)
        if cell["method"] and metric["primary"] and cell["role"] == "candidate"
    }
    if methods:
        # Where boots stop early, patches differ in their number and with it in the method.
        ways = [name(way, 120) for way in sorted(methods)]
        more = [f"and {len(ways) - _MOST_METHODS} more"] if len(ways) > _MOST_METHODS else []
        text += f" Comparison: {'; '.join(ways[:_MOST_METHODS] + more)}. {_sides(data)}"
    if any(own_medians(cell) for _, _, cell in cells_of(data)):
        text += " Changes are estimated within blocks, medians are over all blocks."
    lines = fold(text, rest="  ") + _control(data)
    if asked["clock"] == "instructions":
        lines += fold(_COUNTED)
    elif asked["clock"] == "contention":
        lines += fold(_MODELLED)
    elif data["environment"]["accelerator"] == "tcg":
        lines += fold(_EMULATED)
    return lines


def _sides(data: ComparisonData) -> str:
    """Return the meaning of a side's ± in the table; empty where boots agree."""
    spreads = [spread for case in data["cases"] for metric in case["metrics"] for spread in metric["spreads"]]
    if all(spread["low"] == spread["high"] for spread in spreads):
        return ""
    sure = min(spread["level"] for spread in spreads)
    if sure >= 0.95:
        return "± of a side is half the 95% interval of its own median over boots."
    return "± of a side is half the range of its boots, which are too few for an interval."


def _control(data: ComparisonData) -> list[str]:
    """Return the base's difference from itself by metric, and how often one was called, over all these metrics."""
    fine = is_fine(data)
    controls = [
        (case, metric, cell)
        for case, metric, cell in cells_of(data)
        if metric["primary"] and cell["role"] == "a/a"
    ]
    if not controls:
        return []
    changes = [
        f"{name(metric['name'], 30)} {name(told_change(cell, fine=fine), 200)}"
        for _, metric, cell in controls[:_MOST_CONTROLS]
    ]
    # The record of a metric is that of its workload, on one machine model: cases of one workload have the same.
    records = {
        (case["workload"], case["params"].get("machine"), metric["name"]): metric["alarms"]
        for case, metric, _ in controls
    }.values()
    called = sum(record["called"] for record in records)
    compared = sum(record["compared"] for record in records)
    flagged = f"wrongly flagged so far: {called:,} of {compared:,}"
    return fold(f"Control, the base against itself: {'; '.join(changes)}, {flagged}.", rest="  ")


def environment(data: ComparisonData) -> list[str]:
    """Return the lines on target, host, kernel, config and toolchain, and the permalink."""
    where, base = data["environment"], data["base"]
    cpus = counted(where["vcpus"], "vCPU")
    emulator = ", ".join(filter(None, (where["accelerator"], where["emulator"])))
    host = (
        f"{where['host_cpus']} x {where['host_cpu']}, Linux {where['host_kernel']}"
        if where["host_cpu"]
        else ""
    )
    processor = " ".join(filter(None, (where["cpu"], emulator and f"({emulator})")))
    machine = (where["target"], cpus, f"{where['memory_mib']} MiB", processor)
    rows = [
        ("Target", ", ".join(filter(None, machine))),
        ("Host", host),
        (
            "Base",
            f"{base['tree']} {base['revision']}, commit {base['commit'][:12]}, tree {base['tree_id'][:12]}",
        ),
        ("Config", f"sha256 {where['config_sha256'][:16]}" if where["config_sha256"] else ""),
        ("Compiler", where["toolchain"]),
        ("Lab", f"kperflab {where['lab']}, experiment {data['experiment']['id']}"),
    ]
    lines = []
    for head, text in rows:
        if text:
            lines += fold(name(text, 300), f"{head + ':':<10}", " " * 10)
    if re.fullmatch(r"https?://[!-~]+", data["permalink"]):
        # Alone on its line: a folded address does not work.
        lines.append(data["permalink"])
    return lines
