# SPDX-License-Identifier: GPL-2.0-or-later
"""One lane of a campaign: a lab of its own, on which it injects what the campaign's seed draws next and no other lane has.

`bench.faults` starts one for each lane; Django is set up for one lab only, so each is a process of its own.
"""

import argparse
import shutil
import signal
from pathlib import Path
from types import FrameType
from typing import NoReturn

from bench.faults.campaign_file import changing
from bench.faults.lab import LabSetup, running
from bench.faults.machine import is_able
from bench.faults.real_kernel import guests_unable, real_kernel
from lab.environment import state_root


def main() -> None:
    """Carry a piece out whose place is in the campaign's file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("path", type=Path)
    parser.add_argument("home", type=Path)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    # Both end the piece in good order.
    signal.signal(signal.SIGTERM, _interrupt)
    with changing(arguments.path) as campaign:
        piece = campaign.piece(str(arguments.home))
    kernel = real_kernel(state_root())
    unable = unable_here(kernel)
    setup = LabSetup(
        arguments.home,
        campaign.seed,
        lease_s=campaign.lease_s,
        machine="machine" not in unable,
        kernel=None if "guests" in unable else kernel,
    )
    with running(setup, piece.port) as lab:
        # Django is set up by now, with the lab's environment.
        from bench.faults.campaign import Lane, Plan, carry_out

        lab.unable |= unable
        lane = Lane(lab, arguments.path, lambda line: print(f"{piece.lane}: {line}", flush=True))
        try:
            carry_out(lane, Plan(arguments.count, seconds=arguments.seconds))
        finally:
            if arguments.keep:
                logs = arguments.home / "service" / "logs"
                shutil.copytree(logs, arguments.home.with_name(f"{arguments.home.name}-logs"))
    shutil.rmtree(arguments.home, ignore_errors=True)


def unable_here(kernel: Path | None) -> dict[str, str]:
    """Return what faults need and this machine does not have, with the reason."""
    reasons = {"machine": is_able(), "guests": guests_unable(kernel, state_root())}
    return {need: reason for need, reason in reasons.items() if reason}


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
