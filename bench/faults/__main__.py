# SPDX-License-Identifier: GPL-2.0-or-later
"""`make test-faults`: a live service on this machine, hit by one fault after the other; a table of what came of it.

A campaign is a file. Each call is a piece of it: a fresh service, on which the faults that the seed draws next are injected.
Ends with 1 where something was lost, recorded twice, stuck or left behind, or where a dead worker's claim was not
taken over within two lease periods; with 2 where the file is of another campaign.
"""

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from bench.faults.campaign_file import Campaign, CampaignMismatch, Piece, open_campaign
from bench.faults.kinds import stages_of
from bench.faults.lab import Wishes, remove, running
from bench.faults.machine import is_able
from bench.faults.real_kernel import guests_unable, real_kernel
from bench.faults.table import print_table, wrong
from lab.environment import state_root

# The table is read in logs, too, where nobody says how wide they are.
console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 180)


def main(
    count: Annotated[int, typer.Option(help="go on until so many faults of the campaign have landed")] = 100,
    seed: Annotated[int, typer.Option(help="equal seeds draw equal faults in equal order")] = 1,
    seconds: Annotated[float, typer.Option(help="begin no new fault in this piece after so long")] = 36_000.0,
    only: Annotated[str, typer.Option(help="faults whose name holds one of these, separated by commas")] = "",
    lease: Annotated[float, typer.Option(help="lease period, seconds")] = 8.0,
    campaign: Annotated[
        Path | None, typer.Option(help="its file; build/faults-SEED.json if left out")
    ] = None,
    keep: Annotated[bool, typer.Option(help="keep the logs")] = False,
) -> None:
    """Hit a lab; a campaign whose file exists goes on where it ended."""
    path = campaign or Path(f"build/faults-{seed}.json")
    try:
        found = open_campaign(path, seed, lease, stages_of(only))
        if _close_last(found):
            found = open_campaign(path, seed, lease, stages_of(only))
    except CampaignMismatch as exc:
        console.print(str(exc), style="red")
        sys.exit(2)
    if found.hit < count:
        # Both end the piece in good order.
        signal.signal(signal.SIGTERM, _interrupt)
        _carry_on(found, count, seconds, keep)
    print_table(found, console)
    console.print(f"{path}: {found.hit} of {count} faults landed; the same command goes on")
    sys.exit(1 if wrong(found) else 0)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _close_last(campaign: Campaign) -> bool:
    """Check and remove the lab of a piece that was cut short; returns whether the file was changed.

    Where that lab is gone, nobody can tell any more what its faults did: they are injected again.
    """
    if not campaign.pieces or campaign.pieces[-1].over:
        return False
    home = Path(campaign.pieces[-1].home)
    console.print(f"the last piece was cut short: its lab under {home} is checked first")
    if (home / "service" / "postgres" / "PG_VERSION").exists():
        # A process of its own: Django is set up for one lab only.
        command = [sys.executable, "-m", "bench.faults.closing", str(campaign.path)]
        if subprocess.run(command, check=False).returncode == 0:
            return True
    remove(home)
    again = campaign.forget_piece()
    campaign.save()
    console.print(f"that lab cannot be checked any more: {again} faults are injected again")
    return True


def _carry_on(campaign: Campaign, count: int, seconds: float, keep: bool) -> None:
    """Inject on a fresh lab what the seed draws next."""
    place = Path(tempfile.mkdtemp(prefix="kperflab-faults-", dir="/var/tmp"))
    # PostgreSQL's user passes through.
    place.chmod(0o755)
    unable = _unable(kernel := real_kernel(state_root()))
    for need, reason in unable.items():
        console.print(f"without {need}: {reason}")
    port = _free_port()
    campaign.pieces.append(Piece(len(campaign.injected) + 1, str(place), port))
    campaign.save()
    console.print(f"seed {campaign.seed}, fault {len(campaign.injected) + 1} and later, state root {place}")
    wishes = Wishes(
        place,
        campaign.seed,
        lease_s=campaign.lease_s,
        machine="machine" not in unable,
        kernel=None if "guests" in unable else kernel,
    )
    with running(wishes, port) as lab:
        # Django is set up by now, with the lab's environment.
        from bench.faults.campaign import Plan, carry_out

        lab.unable |= unable
        try:
            carry_out(lab, campaign, Plan(count, seconds=seconds), console.print)
        finally:
            if keep:
                shutil.copytree(place / "service" / "logs", place.with_name(f"{place.name}-logs"))
    shutil.rmtree(place, ignore_errors=True)


def _unable(kernel: Path | None) -> dict[str, str]:
    """Return what faults need and this machine does not have, with the reason."""
    found = {"machine": is_able(), "guests": guests_unable(kernel, state_root())}
    return {need: reason for need, reason in found.items() if reason}


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


if __name__ == "__main__":
    cli = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    cli.command()(main)
    cli()
