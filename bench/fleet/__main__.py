# SPDX-License-Identifier: GPL-2.0-or-later
"""`make bench-fleet`: a service with simulated targets, and a day of submissions replayed at many times its speed.

    python -m bench.fleet day    [--targets 1000] [--hours 24] [--speed 60] [--load 0.5 | --trees 1] [--seed 1]
    python -m bench.fleet growth [--targets 1,10,100,1000] [--hours 4] …       the cost of a run as the fleet grows, and its picture

Pages, API, beat, upkeep, Redis and PostgreSQL are those of `make up`; only workers are simulated (farm.py). A part of a day begins at nine.
Everything is on this machine's loopback address and its sockets, and ends by itself. What the lab itself measures in seconds
(leases, wake-ups, reports) keeps its pace: at 60 times the speed a wake-up's second is a minute of the day.
"""

import json
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from bench.fleet.day import trees_for
from bench.fleet.picture import draw_growth
from bench.fleet.report import Day, Growth, Scenario, print_day, print_growth

cli = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
_RESULTS = Path("build/fleet")
_PICTURE = Path("docs/fleet-cost.svg")


@cli.command()
def day(
    targets: int = 1000,
    hours: float = 24.0,
    speed: float = 60.0,
    load: Annotated[float, typer.Option(help="share of a day that the targets are kept busy")] = 0.5,
    trees: Annotated[
        float, typer.Option(help="submissions of so many busy trees, whatever load that is")
    ] = 0.0,
    seed: int = 1,
    keep: Annotated[bool, typer.Option(help="keep the state root with its logs")] = False,
) -> None:
    """Replay a day; ends with 1 where anything was lost, doubled or illegal."""

    if trees:
        load = trees / trees_for(targets, 1.0, seed)
    (replayed,) = _replay([Scenario(targets, hours, speed, load, seed)], keep)
    sys.exit(1 if replayed.wrong else 0)


@cli.command()
def growth(
    targets: str = "1,10,100,1000",
    hours: float = 4.0,
    speed: float = 60.0,
    load: float = 0.5,
    seed: int = 1,
) -> None:
    """Replay a part of a day for a fleet that grows; draw docs/fleet-cost.svg."""
    counts = sorted(int(word) for word in targets.split(","))
    days = _replay([Scenario(count, hours, speed, load, seed) for count in counts], keep=False)
    for day in days:
        if not day.spent.runs:
            raise SystemExit(
                f"no boot of {day.scenario.targets} targets was over in time, so there is no cost of one: give more --hours, or a lower --speed"
            )
    rows = [Growth.of(asdict(day)) for day in days]
    print_growth(rows)
    _PICTURE.write_text(draw_growth(rows))
    sys.exit(1 if any(day.wrong for day in days) else 0)


def _replay(scenarios: list[Scenario], keep: bool) -> list[Day]:
    from bench.faults.lab import free_ports
    from bench.fleet.carry import carry_out

    home = Path(tempfile.mkdtemp(prefix="kperflab-fleet-", dir="/var/tmp"))
    # PostgreSQL's user passes through.
    home.chmod(0o755)
    _RESULTS.mkdir(parents=True, exist_ok=True)
    days = []
    try:
        for day in carry_out(scenarios, home, free_ports(1)[0]):
            print_day(day)
            print(flush=True)
            days.append(day)
            (_RESULTS / f"{day.scenario.targets}.json").write_text(json.dumps(asdict(day), indent=1))
    except BaseException:
        keep = True
        print(f"bench: the state root with its logs is kept: {home}", file=sys.stderr)
        raise
    finally:
        if not keep:
            shutil.rmtree(home, ignore_errors=True)
    return days


if __name__ == "__main__":
    cli()
