# SPDX-License-Identifier: GPL-2.0-or-later
"""A worker for each target, as targets are added, renamed and removed: a program of the service, beside those it looks after.

Adding a target writes a row and nothing else, over REST or by labctl, on this machine or another.
"""

import logging
from collections.abc import Callable, Iterable
from time import sleep

from django.db import close_old_connections

import workers.app  # noqa: F401  makes Django ready before lab is imported
from lab.environment import read_variable, state_root
from lab.models import Target
from lab.one_line import error_line
from lab.operations.logs import set_up
from workers.service import programs
from workers.service.place import ServicePlace, write
from workers.service.supervising import Supervisor

log = logging.getLogger(__name__)

# Somebody who added a machine submits to it by hand.
LOOK_S = 2.0
# After a look that failed, as while the database restarts.
FAULT_S = 10.0
ALL = "*"


def targets_here() -> list[str]:
    """Names of the targets whose workers run on this machine: those of KPERFLAB_TARGETS, or all."""
    there = list(Target.objects.order_by("name").values_list("name", flat=True))
    wanted = {name.strip() for name in read_variable("KPERFLAB_TARGETS", ALL).split(",")}
    return [name for name in there if ALL in wanted or name in wanted]


def fit(place: ServicePlace, names: Callable[[], Iterable[str]]) -> list[str]:
    """Give each target its worker, and no other; returns the workers that came or went. Raises ServiceDown, ServiceFailed.

    names: called once more when no other process changes what runs: the wait for that may take minutes.
    """
    supervisor = Supervisor(place)
    if not _otherwise(supervisor, names()):
        return []
    with place.alone():
        wanted = list(names())
        difference = _otherwise(supervisor, wanted)
        if difference:
            workers = programs.for_targets(wanted)
            write(place.targets, programs.sections(place, workers))
            supervisor.apply()
            supervisor.begin(worker.name for worker in workers)
        return sorted(difference)


def _otherwise(supervisor: Supervisor, names: Iterable[str]) -> set[str]:
    """Return the missing workers, and the workers of targets that are gone."""
    running = {program.name for program in supervisor.states() if program.name.startswith(programs.TARGET)}
    return running ^ {worker.name for worker in programs.for_targets(names)}


def look_on(place: ServicePlace) -> None:
    """Fit workers to targets until a signal comes."""
    begun = False
    while True:
        try:
            if not begun:
                # An earlier process may have been killed between adding a worker and starting it.
                Supervisor(place).begin(worker.name for worker in programs.for_targets(targets_here()))
                begun = True
            for name in fit(place, targets_here):
                log.info("%s came or went with its target", name)
        except Exception as exc:
            reason = error_line(exc)
            log.warning("targets could not be looked at, retried in %g s: %s", FAULT_S, reason)
            close_old_connections()
            sleep(FAULT_S)
        else:
            sleep(LOOK_S)


if __name__ == "__main__":
    set_up()
    look_on(ServicePlace(state_root()))
