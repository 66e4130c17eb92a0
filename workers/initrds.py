# SPDX-License-Identifier: GPL-2.0-or-later
"""Removal of the initrds of boots whose worker was killed before it removed them."""

import re
from pathlib import Path

from lab.runs.pages import runs_under_way

_ATTEMPT = re.compile(r"\d{1,18}-\d{1,6}")


def remove_initrds(home: Path) -> list[str]:
    """Remove initrds of attempts that are over; returns their runs' folders. Each is some 13 MB, and of no use."""
    # List the initrds before asking about their runs: so an initrd that is made meanwhile is not in the list.
    initrds = [path for path in (home / "runs").glob("*/initrd") if _ATTEMPT.fullmatch(path.parent.name)]
    alive = runs_under_way([int(path.parent.name.partition("-")[0]) for path in initrds])
    left = [path for path in initrds if path.parent.name not in alive]
    for path in left:
        path.unlink(missing_ok=True)
    return [path.parent.name for path in left]
