# SPDX-License-Identifier: GPL-2.0-or-later
"""`make bench-service`: what the service costs, each figure beside its peer's or its goal.

    python -m bench.service [pages|data|claims|idle|overhead]

pages: a list's rows beside those that DRF makes of instances, and /metrics. claims: a second, beside a bare SKIP LOCKED.
idle: workers that wait. overhead: of the lab beside each boot. data: every page and list on ten million samples and 1,000 targets,
beside the same at a hundredth; not run without its name. Without a name the others run, each in its own process.
"""

import subprocess
import sys

import typer

from bench.service import claims, idle, overhead, pages, scale

PARTS = {"pages": pages, "data": scale, "claims": claims, "idle": idle, "overhead": overhead}

cli = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
for name, part in PARTS.items():
    cli.command(name)(part.main)


@cli.callback(invoke_without_command=True)
def run_all(context: typer.Context) -> None:
    """Run all parts but data, each with its own settings of Django."""
    if context.invoked_subcommand is None:
        for name in [name for name in PARTS if name != "data"]:
            print(f"\n== {name}", flush=True)
            subprocess.run([sys.executable, "-m", "bench.service", name], check=True)


if __name__ == "__main__":
    cli()
