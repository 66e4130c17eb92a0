# SPDX-License-Identifier: GPL-2.0-or-later
"""Close a campaign's last piece, which was cut short: bring its lab up again, let it finish, check it, and remove it.

python -m bench.faults.closing build/faults-61.json
"""

import json
import sys
from pathlib import Path

from bench.faults.campaign_file import open_campaign
from bench.faults.kinds import stages_of
from bench.faults.lab import Wishes, left_behind


def main(path: Path) -> None:
    """Do so for one campaign's file."""
    content = json.loads(path.read_text())
    campaign = open_campaign(path, content["seed"], content["lease_s"], stages_of())
    piece = campaign.pieces[-1]
    wishes = Wishes(Path(piece.home), campaign.seed, lease_s=campaign.lease_s, machine=False)
    with left_behind(wishes, piece.port) as lab:
        # Django is set up by now, with the lab's environment.
        from bench.faults.campaign import close_piece

        close_piece(lab, campaign, print)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
