# SPDX-License-Identifier: GPL-2.0-or-later
"""The files that boots were given, when the worker that would have removed them was killed."""

import re
from pathlib import Path

from lab.runs.pages import runs_under_way

_ATTEMPT = re.compile(r"\d{1,18}-\d{1,6}")


def remove_initrds(home: Path) -> list[str]:
    """Remove initrds of attempts that are over; returns their runs' folders. Each is some 13 MB, and of no use."""
    # Looked for first, asked about then: one that is made meanwhile belongs to an attempt that we do not see.
    initrds = [path for path in (home / "runs").glob("*/initrd") if _ATTEMPT.fullmatch(path.parent.name)]
    alive = runs_under_way([int(path.parent.name.partition("-")[0]) for path in initrds])
    left = [path for path in initrds if path.parent.name not in alive]
    for path in left:
        path.unlink(missing_ok=True)
    return [path.parent.name for path in left]
