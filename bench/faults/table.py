# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign as a table, faults × outcomes, and the promises that were broken in it."""

from collections import Counter, defaultdict

from rich.console import Console
from rich.table import Table

from bench.faults.campaign_file import Campaign, Injected


def wrong(campaign: Campaign) -> list[str]:
    """Return a line for each promise that was broken."""
    lines = [f"{breach.kind}: {breach.what}" for breach in campaign.breaches if breach.kind != "failed"]
    lines += [f"left: {line}" for line in campaign.left]
    lines += [
        f"late: fault {injection.number}, {injection.fault} while {injection.stage}"
        for injection in campaign.injected
        if injection.late
    ]
    lines += [
        f"fault {injection.number}, {injection.fault}: {injection.broken}"
        for injection in campaign.injected
        if injection.broken
    ]
    return lines


def print_table(campaign: Campaign, console: Console) -> None:
    """Print faults × outcomes over all pieces, and the sums."""
    rows: dict[str, list[Injected]] = defaultdict(list)
    for injection in campaign.injected:
        rows[injection.fault].append(injection)
    shown = Table(
        "fault", "drawn", "hit", "by stage", "claims held", "what became of them", "takeover, s", "late"
    )
    for name in sorted(campaign.kinds):
        shown.add_row(name, *_cells(rows[name]))
    console.print(shown)
    sums = campaign.sums()
    console.print(
        f"{sums['hit']} faults hit of {sums['injected']} drawn, in {sums['pieces']} pieces, "
        f"{sums['lanes']} lanes at most, seed {campaign.seed}, "
        f"lease {campaign.lease_s:g} s: {sums['lost']} lost, {sums['doubled']} doubled, {sums['illegal']} illegal moves, "
        f"{sums['open']} without an end, {sums['left']} left behind, {sums['late']} late, "
        f"worst takeover {sums['worst_takeover_s']:.1f} s; {sums['experiments']}, {sums['runs']} runs with "
        f"{sums['samples']} samples; {sums['failed']} failed for the lab's reasons, "
        f"{sums['quarantined']} times a target was released"
    )
    for reason, names in sorted(_unable(campaign).items()):
        console.print(f"never injected here: {', '.join(sorted(names))}: {reason}", style="yellow")
    for line in wrong(campaign):
        console.print(line, style="red")


def _cells(ones: list[Injected]) -> list[str]:
    stages = Counter(injection.stage for injection in ones if injection.hit)
    ended: Counter[str] = Counter()
    for injection in ones:
        ended.update(injection.ended)
    took = [injection.takeover_s for injection in ones if injection.takeover_s is not None]
    return [
        str(len(ones)),
        str(sum(injection.hit for injection in ones)),
        _listed(stages),
        str(sum(injection.held for injection in ones)),
        _listed(ended),
        f"{max(took):.1f}" if took else "",
        str(sum(injection.late for injection in ones)),
    ]


def _listed(numbers: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in sorted(numbers.items()))


def _unable(campaign: Campaign) -> dict[str, set[str]]:
    """Return the faults that were drawn where the machine cannot have them and never landed, by the reason."""
    faults: dict[str, set[str]] = defaultdict(set)
    landed = {injection.fault for injection in campaign.injected if injection.hit}
    for injection in campaign.injected:
        if injection.unable and injection.fault not in landed:
            faults[injection.unable].add(injection.fault)
    return faults
