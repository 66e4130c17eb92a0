# SPDX-License-Identifier: GPL-2.0-or-later
"""Note which open experiments have builds left: claims of builds look at no others.

An experiment begins with the note that it has. Taking it away is never urgent, so upkeep does what a killed process left;
putting it back is in the transaction that queues a build again.
"""

from django.db import transaction
from django.db.models import Exists, OuterRef

from lab.models import Build, Experiment
from lab.models.states import OPEN_EXPERIMENT
from lab.runs.order import OPEN_BUILD


def note_queued_again(build_id: int) -> None:
    """Note that all open experiments that use a build have one left. In the transaction that has queued it."""
    # Those that have the note as well: somebody may be taking it away.
    wanting = Experiment.objects.filter(variants__build=build_id, state__in=OPEN_EXPERIMENT)
    wanting.update(builds_left=True)


def note_builds_over(build_id: int | None = None) -> None:
    """Note of each open experiment, or of those that use a build, that no build of it is open any more."""
    open_builds = Build.objects.filter(variants__experiment=OuterRef("pk"), state__in=OPEN_BUILD)
    over = Experiment.objects.filter(~Exists(open_builds), state__in=OPEN_EXPERIMENT, builds_left=True)
    if build_id is not None:
        over = over.filter(variants__build=build_id)
    for pk in list(over.order_by("pk").values_list("pk", flat=True).distinct()):
        with transaction.atomic():
            # The lock first: what queues a build again is then either over, and seen, or waits and puts the note back.
            Experiment.objects.select_for_update(no_key=True).only("pk").get(pk=pk)
            if not Build.objects.filter(variants__experiment=pk, state__in=OPEN_BUILD).exists():
                Experiment.objects.filter(pk=pk).update(builds_left=False)
