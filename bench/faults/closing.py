# SPDX-License-Identifier: GPL-2.0-or-later
"""Close a campaign's piece that was cut short: bring its lab up again, let it finish, check it, and remove it.

python -m bench.faults.closing build/faults-61.json HOME
"""

import sys
from pathlib import Path

from bench.faults.campaign_file import changing
from bench.faults.lab import LabSetup, left_behind


def main(path: Path, home: str) -> None:
    """Do so for the piece of a campaign's file whose lab is there."""
    with changing(path) as campaign:
        piece = campaign.piece(home)
    setup = LabSetup(Path(home), campaign.seed, lease_s=campaign.lease_s, machine=False)
    with left_behind(setup, piece.port) as lab:
        # Django is set up by now, with the lab's environment.
        from bench.faults.campaign import Lane, close_piece

        close_piece(Lane(lab, path, print))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
