# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign as a table, faults × outcomes, and the promises that were broken in it."""

from __future__ import annotations

from collections import defaultdict

from rich.console import Console
from rich.table import Table

from bench.faults.campaign import Account, Injected


def wrong(account: Account) -> list[str]:
    """Each line is a promise that was broken."""
    lines = [f"{breach.kind}: {breach.what}" for breach in account.breaches if breach.kind != "failed"]
    lines += [f"left: {line}" for line in account.left]
    lines += [
        f"late: fault {one.number}, {one.fault} while {one.stage}" for one in account.injected if one.late
    ]
    return lines


def print_table(account: Account, console: Console) -> None:
    """Faults × outcomes."""
    rows: dict[str, list[Injected]] = defaultdict(list)
    for one in account.injected:
        rows[one.fault].append(one)
    shown = Table(
        "fault", "injected", "hit", "claims held", "what became of them", "takeover, s (worst)", "late"
    )
    for name in sorted(rows):
        ones = rows[name]
        ended: dict[str, int] = defaultdict(int)
        for one in ones:
            for state, number in one.ended.items():
                ended[state] += number
        took = [one.takeover_s for one in ones if one.takeover_s is not None]
        shown.add_row(
            name,
            str(len(ones)),
            str(sum(one.hit for one in ones)),
            str(sum(one.held for one in ones)),
            ", ".join(f"{number} {state}" for state, number in sorted(ended.items())),
            f"{max(took):.1f}" if took else "",
            str(sum(one.late for one in ones)),
        )
    console.print(shown)
    kinds = [breach.kind for breach in account.breaches]
    console.print(
        f"{sum(one.hit for one in account.injected)} faults hit, seed {account.seed}, lease {account.lease_s:g} s: "
        f"{kinds.count('lost')} lost, {kinds.count('doubled')} doubled, {kinds.count('open')} without an end, "
        f"{kinds.count('illegal')} illegal moves, {len(account.left)} left behind; "
        f"{account.experiments}, {account.runs} runs with {account.samples} samples; "
        f"{kinds.count('failed')} failed for the lab's reasons, {account.quarantined} times a target was released"
    )
    for line in wrong(account):
        console.print(line, style="red")
