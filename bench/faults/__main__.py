# SPDX-License-Identifier: GPL-2.0-or-later
"""`make test-faults`: a live service on this machine, hit by one fault after the other; a table of what came of it.

Ends with 1 where something was lost, recorded twice, stuck or left behind, or where a dead worker's claim was not
taken over within two lease periods.
"""

from __future__ import annotations

import json
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bench.faults.lab import Wishes, running
from bench.faults.machine import is_able

# The table is read in logs, too, where nobody says how wide they are.
console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 140)


def main(
    count: Annotated[int, typer.Option(help="how many faults")] = 100,
    seed: Annotated[int, typer.Option(help="equal seeds draw equal faults")] = 1,
    seconds: Annotated[float, typer.Option(help="begin no new fault after so long")] = 36_000.0,
    only: Annotated[str, typer.Option(help="faults whose name holds this")] = "",
    lease: Annotated[float, typer.Option(help="lease period, seconds")] = 5.0,
    write: Annotated[Path | None, typer.Option(help="the table as JSON")] = None,
    keep: Annotated[bool, typer.Option(help="keep the logs")] = False,
) -> None:
    """Hit a lab."""
    place = Path(tempfile.mkdtemp(prefix="kperflab-faults-", dir="/var/tmp"))
    # PostgreSQL's user passes through.
    place.chmod(0o755)
    unable = is_able()
    if unable:
        console.print(f"without full disks and a second host: {unable}")
    console.print(f"seed {seed}, state root {place}")
    with running(Wishes(place, seed, lease_s=lease, machine=not unable), _free_port()) as lab:
        # Django is set up by now, with the lab's environment.
        from bench.faults.campaign import Plan, carry_out
        from bench.faults.table import print_table, wrong

        try:
            account = carry_out(lab, Plan(count, seed, only=only, seconds=seconds), console.print)
        finally:
            if keep:
                shutil.copytree(place / "service" / "logs", place.with_name(f"{place.name}-logs"))
    shutil.rmtree(place, ignore_errors=True)
    print_table(account, console)
    if write:
        write.parent.mkdir(parents=True, exist_ok=True)
        write.write_text(json.dumps(account.as_json(), indent=1))
    sys.exit(1 if wrong(account) else 0)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


if __name__ == "__main__":
    cli = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    cli.command()(main)
    cli()
