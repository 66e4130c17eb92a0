# SPDX-License-Identifier: GPL-2.0-or-later
"""A claim: the exclusive right of one worker process to one build or run."""

from dataclasses import dataclass, field
from typing import Any, Final, Literal

# Work that failed by the lab's fault, or took its worker down, this often is given up.
MOST_ATTEMPTS = 3
Kind = Literal["build", "run"]
# The columns of a row that nobody holds.
UNCLAIMED: Final[dict[str, Any]] = {"claimed_by": "", "token": "", "lease_until": None}


@dataclass(frozen=True, slots=True)
class Claim:
    """The exclusive right to one build or run; `token` proves it to record.py. target: where a run boots."""

    kind: Kind
    id: int
    token: str
    target: str = field(default="", compare=False)
