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
        f"late: fault {one.number}, {one.fault} while {one.stage}" for one in campaign.injected if one.late
    ]
    lines += [f"fault {one.number}, {one.fault}: {one.broken}" for one in campaign.injected if one.broken]
    return lines


def print_table(campaign: Campaign, console: Console) -> None:
    """Print faults × outcomes over all pieces, and the sums."""
    rows: dict[str, list[Injected]] = defaultdict(list)
    for one in campaign.injected:
        rows[one.fault].append(one)
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
    stages = Counter(one.stage for one in ones if one.hit)
    ended: Counter[str] = Counter()
    for one in ones:
        ended.update(one.ended)
    took = [one.takeover_s for one in ones if one.takeover_s is not None]
    return [
        str(len(ones)),
        str(sum(one.hit for one in ones)),
        _listed(stages),
        str(sum(one.held for one in ones)),
        _listed(ended),
        f"{max(took):.1f}" if took else "",
        str(sum(one.late for one in ones)),
    ]


def _listed(numbers: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in sorted(numbers.items()))


def _unable(campaign: Campaign) -> dict[str, set[str]]:
    """Return the faults that were drawn where the machine cannot have them, by the reason."""
    found: dict[str, set[str]] = defaultdict(set)
    for one in campaign.injected:
        if one.unable:
            found[one.unable].add(one.fault)
    return found
