# SPDX-License-Identifier: GPL-2.0-or-later
"""`make bench-service`: what the service costs, each figure beside its peer's or its goal.

    python -m bench.service [pages|people|data|claims|idle|overhead]

pages: CPU time and queries of pages, lists and /metrics. people: fifty of them while a kernel builds. claims: a second,
beside a bare SKIP LOCKED. idle: workers that wait. overhead: of the lab beside each boot. data: every page and list
on ten million samples and 1,000 targets, beside the same at a hundredth; not run without its name. Without a name the others run, each in its own process.
"""

import subprocess
import sys
from typing import Annotated

import typer

from bench.service import claims, idle, overhead, pages, people, scale

cli = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
cli.command("idle")(idle.main)


@cli.command("claims")
def measure_claims(waiting: int = claims.WAITING[-1], kinds: str = ",".join(claims.KINDS)) -> None:
    """Measure claims a second, and the milliseconds of one as more waits."""
    claims.main(waiting, tuple(kinds.split(",")))


@cli.callback(invoke_without_command=True)
def run_all(context: typer.Context) -> None:
    """Run all parts, each with its own settings of Django."""
    if context.invoked_subcommand is None:
        for part in ("pages", "people", "claims", "idle", "overhead"):
            print(f"\n== {part}", flush=True)
            subprocess.run([sys.executable, "-m", "bench.service", part], check=True)


@cli.command("pages")
def measure_pages(experiments: int = 1000, rounds: int = 100) -> None:
    """Measure pages, lists and /metrics."""
    pages.main(experiments, rounds)


@cli.command("data")
def measure_data(rounds: int = 20, small: str = "", large: str = "", only: str = "") -> None:
    """Measure every page and list of a large lab. small, large: URLs of filled databases, which are created and filled if not given."""
    scale.main(rounds, small, large, only)


@cli.command("people")
def measure_people(
    users: int = 50,
    seconds: int = 120,
    build: Annotated[bool, typer.Option(help="build a kernel meanwhile")] = True,
) -> None:
    """Measure the pages of a busy server."""
    people.main(users, seconds, build)


@cli.command("overhead")
def measure_overhead(targets: str = "1,4,16", runs: int = 200, queue: int = 1000, boot: float = 2.0) -> None:
    """Measure what the lab costs beside each boot."""
    overhead.main(tuple(int(word) for word in targets.split(",")), runs, queue, boot)


if __name__ == "__main__":
    cli()
