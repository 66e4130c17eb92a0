# SPDX-License-Identifier: GPL-2.0-or-later
"""`make test-faults`: a live service on this machine, hit by one fault after the other; a table of the results.

A campaign is a file. Each call adds a piece to it for each lane: a fresh service, on which the faults that the seed draws next are
injected. Lanes work side by side and draw from the same sequence.
Ends with 1 where something was lost, recorded twice, stuck or left behind, or where a dead worker's claim was not
taken over within two lease periods; with 2 where the file is of another campaign or this machine can have none of its faults; with 3 where a lane ended early.
"""

import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console

from bench.faults.campaign_file import Campaign, CampaignMismatch, Piece, alone, changing, open_campaign
from bench.faults.kinds import KINDS, stages_of
from bench.faults.lab import fresh_places, remove
from bench.faults.lane import unable_here
from bench.faults.real_kernel import real_kernel
from bench.faults.table import print_table, wrong
from lab.environment import state_root

# The table is read in logs, too, where nobody says how wide they are.
console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 180)


def main(  # noqa: PLR0913  an argument is an option
    count: Annotated[int, typer.Option(help="go on until so many faults of the campaign have landed")] = 100,
    seed: Annotated[int, typer.Option(help="equal seeds draw equal faults in equal order")] = 1,
    lanes: Annotated[int, typer.Option(min=1, max=16, help="labs that are hit side by side")] = 1,
    seconds: Annotated[float, typer.Option(help="begin no new fault in this piece after so long")] = 36_000.0,
    only: Annotated[str, typer.Option(help="faults whose name holds one of these, separated by commas")] = "",
    lease: Annotated[float, typer.Option(help="lease period, seconds")] = 8.0,
    campaign: Annotated[
        Path | None, typer.Option(help="its file; build/faults-SEED.json if left out")
    ] = None,
    keep: Annotated[bool, typer.Option(help="keep the logs")] = False,
) -> None:
    """Hit a lab; a campaign whose file exists continues where it ended."""
    path = campaign or Path(f"build/faults-{seed}.json")
    try:
        with alone(path) as right:
            opened = open_campaign(path, seed, lease, stages_of(only))
            opened.save()
            for piece in [piece for piece in opened.pieces if not piece.over]:
                _close(path, piece)
            unable = unable_here(real_kernel(state_root()))
            for need, reason in unable.items():
                console.print(f"without {need}: {reason}")
            if opened.hit < count and all(KINDS[fault].needs in unable for fault in opened.kinds):
                console.print("nothing to inject: this machine can have none of these faults", style="red")
                sys.exit(2)
            options = ["--count", str(count), "--seconds", str(seconds), *(["--keep"] if keep else [])]
            failed = _carry_on(path, lanes, options, right) if opened.hit < count else 0
            opened = open_campaign(path, seed, lease, stages_of(only))
    except CampaignMismatch as exc:
        console.print(str(exc), style="red")
        sys.exit(2)
    print_table(opened, console)
    console.print(f"{path}: {opened.hit} of {count} faults landed; the same command goes on")
    sys.exit(1 if wrong(opened) else 3 if failed else 0)


def _close(path: Path, piece: Piece) -> None:
    """Check and remove the lab of a piece that was cut short.

    Where that lab is gone, nobody can tell any more what its faults did: they are injected again.
    """
    home = Path(piece.home)
    console.print(f"a piece was cut short: its lab under {home} is checked first")
    if (home / "service" / "postgres" / "PG_VERSION").exists():
        # A process of its own: Django is set up for one lab only.
        command = [sys.executable, "-m", "bench.faults.closing", str(path), str(home)]
        if subprocess.run(command, check=False).returncode == 0:
            return
    remove(home)
    with changing(path) as campaign:
        again = campaign.forget_piece(piece.home)
    console.print(f"that lab cannot be checked any more: {again} faults are injected again")


def _carry_on(path: Path, lanes: int, options: list[str], right: int) -> int:
    """Inject what the seed draws next, each lane on a fresh lab; returns how many lanes ended early. right: what they inherit."""
    places = fresh_places(lanes)
    with changing(path) as campaign:
        for lane, (home, port) in enumerate(places, 1):
            campaign.begin_piece(str(home), port, lane)
    _say_begin(campaign, lanes)
    command = [sys.executable, "-m", "bench.faults.lane"]
    processes = [
        subprocess.Popen([*command, str(path), str(home), *options], pass_fds=[right]) for home, _ in places
    ]
    _pass_on(processes)
    ended = [_ended(process) for process in processes]
    for lane, code in enumerate(ended, 1):
        if code:
            console.print(f"lane {lane} ended with {code}: the next call checks its lab", style="red")
    return sum(code != 0 for code in ended)


def _say_begin(campaign: Campaign, lanes: int) -> None:
    for piece in campaign.pieces[-lanes:]:
        console.print(
            f"seed {campaign.seed}, fault {piece.first} and later, lane {piece.lane}, state root {piece.home}"
        )


def _pass_on(processes: list[subprocess.Popen[bytes]]) -> None:
    """Have a SIGTERM end every lane in good order; a Ctrl-C reaches them by itself."""

    def told(_number: int, _frame: FrameType | None) -> None:
        for process in processes:
            process.terminate()

    signal.signal(signal.SIGTERM, told)


def _ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for a lane, which checks its lab once more after a Ctrl-C; returns its code."""
    while True:
        with suppress(KeyboardInterrupt):
            return process.wait()


if __name__ == "__main__":
    cli = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    cli.command()(main)
    cli()
