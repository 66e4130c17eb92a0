# SPDX-License-Identifier: GPL-2.0-or-later
"""One strike against a lab: what every fault is handed, what it reports, and the processes that it may hit."""

import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from bench.faults.lab import Lab
from bench.faults.stages import Moment, look
from workers.service.place import ServicePlace
from workers.service.supervising import Supervisor


@dataclass(slots=True)
class Blow:
    """One strike. victims: processes that are gone or cut off, by their number. landed: set by a fault that met what it aims at.

    prepared: what the fault's preparation made. broken: a promise that was seen broken by the fault itself.
    """

    lab: Lab
    moment: Moment
    draw: random.Random
    victims: set[int] = field(default_factory=set)
    landed: bool = False
    prepared: object = None
    broken: str = ""


Fault = Callable[[Blow], AbstractContextManager[None]]
# What takes long and comes before the stage is waited for.
Preparation = Callable[[Lab], AbstractContextManager[object]]


def pid_of(lab: Lab, program: str) -> int:
    """The process of one of the service's programs; 0 while there is none."""
    return next(
        (state.pid for state in Supervisor(ServicePlace(lab.home)).states() if state.name == program), 0
    )


def holder(blow: Blow, program: str) -> int:
    """Return the process that holds the work that was aimed at, else the program's own; 0 while there is none."""
    work = blow.moment.work
    kind = "build" if program == "builds" else "run" if program.startswith("target") else ""
    if work is not None and work.kind == kind:
        return int(work.holder.rsplit(":", 2)[1])
    return pid_of(blow.lab, program)


def holders_of(victims: set[int]) -> dict[tuple[str, int], str]:
    """Claims that these processes hold now: kind and row, with the token."""
    return {
        (held.kind, held.id): held.token
        for held in look().held
        if int(held.holder.rsplit(":", 2)[1]) in victims
    }
