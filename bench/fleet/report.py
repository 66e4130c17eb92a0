# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints what a replay measured, and the cost of a run for fleets of several sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.fleet.measures import Moment, Statement, Waits

# A replay that falls behind by more measures this machine's other work: its times say nothing, its counts and CPU seconds do.
MOST_BEHIND_S = 5.0
# The programs of the lab itself, whose cost is that of the service; the fleet's own are of the targets' hosts.
SERVICE = ("postgres", "redis", "web", "beat", "upkeep")


@dataclass(frozen=True, slots=True)
class Scenario:
    """A replay to come. hours: of the day; speed: seconds of the day a second; load: share of the day the targets are busy."""

    targets: int
    hours: float
    speed: float
    load: float
    seed: int


@dataclass(frozen=True, slots=True)
class Idle:
    """The cost of a fleet that has nothing to do, over so many seconds."""

    seconds: float
    spent: Moment


@dataclass(slots=True)
class Day:
    """All that one replay measured. seconds: it took; left_open: experiments that were cancelled at its end."""

    scenario: Scenario
    trees: float
    seconds: float
    idle: Idle
    spent: Moment
    waits: list[Waits]
    slowest: list[Statement] = field(default_factory=list)
    longest: list[Statement] = field(default_factory=list)
    answers: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    late_s: float = 0.0
    submit_s: list[float] = field(default_factory=list)
    busy_s: float = 0.0
    left_open: int = 0
    tallies: list[dict[str, Any]] = field(default_factory=list)
    takeovers: list[float] = field(default_factory=list)
    breaches: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> bool:
        """Return whether anything was lost, doubled or illegal, or a submission was refused."""
        return bool(self.breaches or self.refused)

    @property
    def counts(self) -> Counter[str]:
        """Return what the fleet's processes counted, together."""
        return sum((Counter(tally["counts"]) for tally in self.tallies), Counter())


def print_day(day: Day) -> None:
    """Print one replay."""
    # Django is set up once a lab has run.
    from lab.experiments.priority import priority_name

    scenario, spent = day.scenario, day.spent
    print(
        f"{scenario.targets} targets, {scenario.hours:g} hours at {scenario.speed:g} times their speed in {day.seconds:.0f} s, seed {scenario.seed}; {day.trees} trees:"
        f" {spent.experiments} experiments, {spent.runs} boots recorded, {day.left_open} experiments still open at the end"
    )
    print(
        f"utilisation of the targets: {day.busy_s / (scenario.targets * day.seconds):.1%} (offered on a whole day: {scenario.load:.0%})"
    )
    print("\nminutes of the day until the first boot once built, and until the whole was done")
    print(
        f"{'priority':>10}{'experiments':>13}{'p50':>9}{'p95':>9}{'worst':>9}{'whole p50':>12}{'p95':>9}{'worst':>9}"
    )
    for wait in day.waits:
        cells = "".join(
            f"{seconds * scenario.speed / 60:>{width}.1f}"
            for seconds, width in zip((*wait.boot, *wait.whole), (9, 9, 9, 12, 9, 9), strict=True)
        )
        print(f"{priority_name(wait.priority):>10}{wait.experiments:>13}{cells}")
    _print_faults(day)
    _print_costs(day)
    for title, rows in (("costliest statements", day.slowest), ("slowest single ones", day.longest)):
        print(f"\n{title}: calls, s in all, ms in the mean, ms at most")
        for row in rows:
            print(f"{row.calls:>9}{row.seconds:>9.1f}{row.mean_ms:>9.2f}{row.max_ms:>9.0f}  {row.text[:150]}")


def _print_faults(day: Day) -> None:
    held = day.takeovers
    kinds = Counter(line.partition(":")[0] for line in day.breaches)
    worst = f", held for {held[len(held) // 2]:.1f} s in the middle, {held[-1]:.1f} s at most" if held else ""
    print(
        f"\ntakeovers: {len(held)}{worst}; late answers refused: {day.counts['refused']}; claims lost: {day.counts['lost claims']}"
    )
    print(
        f"lost {kinds['lost']}, doubled {kinds['doubled']}, illegal {kinds['illegal']}, open for ever {kinds['open']}"
    )
    for line in day.breaches[:10]:
        print(f"  {line}")
    for text, count in list(day.refused.items())[:5]:
        print(f"  {count} submissions refused: {text}")
    behind = max((tally["behind_s"] for tally in day.tallies), default=0.0)
    submit = day.submit_s
    p95 = submit[int(0.95 * len(submit))] if submit else 0.0
    print(
        f"API: {day.answers}; a submission took {submit[len(submit) // 2] if submit else 0:.2f} s in the middle, p95 {p95:.2f}, and was sent at most {day.late_s:.1f} s late"
    )
    if max(behind, day.late_s) > MOST_BEHIND_S:
        print(
            "THIS MACHINE DID NOT KEEP UP: waits and utilisation say nothing; try a lower --speed, fewer targets or a quiet machine"
        )
    print(
        f"the simulated workers were at most {behind:.1f} s behind; {day.counts['nothing']} wake-ups found nothing"
    )


def _print_costs(day: Day) -> None:
    spent, runs, idle = day.spent, max(1, day.spent.runs), day.idle
    print(f"\n{'':>24}{'a second':>11}{'a run':>10}{'idle, a second':>16}")
    rows = [("statements", spent.statements, idle.spent.statements)]
    rows += [("Redis operations", sum(spent.redis.values()), sum(idle.spent.redis.values()))]
    rows += [("kB of the database", spent.database / 1000, idle.spent.database / 1000)]  # type: ignore[list-item]
    for name, much, rest in rows:
        print(f"{name:>24}{much / day.seconds:>11.1f}{much / runs:>10.2f}{rest / idle.seconds:>16.1f}")
    for name in sorted(spent.cpu_s, key=lambda pair: -spent.cpu_s[pair]):
        print(
            f"{'ms of CPU: ' + name:>24}{1000 * spent.cpu_s[name] / day.seconds:>11.1f}{1000 * spent.cpu_s[name] / runs:>10.2f}{1000 * idle.spent.cpu_s.get(name, 0) / idle.seconds:>16.1f}"
        )
    tables = sorted(spent.tables.items(), key=lambda pair: -pair[1])[:5]
    print("grown most: " + ", ".join(f"{name} {size / runs / 1000:.2f} kB a run" for name, size in tables))
    most = sorted(spent.redis.items(), key=lambda pair: -pair[1])[:5]
    print("Redis: " + ", ".join(f"{name} {count / day.seconds:.1f}/s" for name, count in most))


@dataclass(frozen=True, slots=True)
class Growth:
    """The cost of a run for a fleet of so many targets: ms of CPU by program, statements, Redis operations, kB of the database."""

    targets: int
    runs: int
    utilisation: float
    cpu_ms: Mapping[str, float]
    statements: float
    redis: float
    kilobytes: float

    @classmethod
    def of(cls, day: Mapping[str, Any]) -> Growth:
        """Read it from a replay's JSON."""
        # Results of before the key was renamed have "wish".
        spent, scenario = day["spent"], day.get("scenario") or day["wish"]
        runs = max(1, spent["runs"])
        cpu = {name: 1000 * spent["cpu_s"].get(name, 0.0) / runs for name in SERVICE}
        hosts = sum(seconds for name, seconds in spent["cpu_s"].items() if name.startswith("fleet"))
        return cls(
            scenario["targets"],
            spent["runs"],
            day["busy_s"] / (scenario["targets"] * day["seconds"]),
            {**cpu, "hosts": 1000 * hosts / runs},
            spent["statements"] / runs,
            sum(spent["redis"].values()) / runs,
            spent["database"] / runs / 1000,
        )

    @property
    def service_ms(self) -> float:
        """Return the milliseconds of CPU that the service spends on a run."""
        return sum(self.cpu_ms[name] for name in SERVICE)


def print_growth(rows: Sequence[Growth]) -> None:
    """Print a line for each size."""
    names = (*SERVICE, "hosts")
    print("\nthe cost of a run: ms of CPU by program, statements, Redis operations, kB of the database")
    print(
        f"{'targets':>8}{'runs':>7}{'busy':>7}"
        + "".join(f"{name:>10}" for name in names)
        + f"{'statements':>12}{'Redis':>8}{'kB':>8}"
    )
    for row in rows:
        cells = "".join(f"{row.cpu_ms[name]:>10.1f}" for name in names)
        print(
            f"{row.targets:>8}{row.runs:>7}{row.utilisation:>7.0%}{cells}{row.statements:>12.0f}{row.redis:>8.0f}{row.kilobytes:>8.1f}"
        )
