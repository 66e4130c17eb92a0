# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines in the audit log about data from builds and guests that no kernel and no agent of ours sends."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from kernels.builds.front_build import FAULTS
from kernels.errors import ArtifactRefused, BuildTooLarge, ReadingStopped
from lab.audit.log import note_refusal, rule_of
from lab.models import Run
from lab.runs import guest_limits
from workers.errors import GuestEndless, ProfileUnreadable
from workloads.errors import OutputUnreadable, RecordCorrupt, RecordUnexpected

OF_GUESTS = (
    RecordCorrupt,
    RecordUnexpected,
    GuestEndless,
    OutputUnreadable,
    ProfileUnreadable,
    ReadingStopped,
)
OF_BUILDS = (ArtifactRefused, BuildTooLarge)


def note_refused_guest(exc: Exception, run_id: int) -> None:
    """Note in the audit log that a guest's records or files were refused; ignore other errors."""
    if isinstance(exc, OF_GUESTS):
        _note(run_id, rule_of(exc))


def note_cut_console(console: Path, run_id: int) -> None:
    """Note in the audit log that a console was longer than what is kept of it."""
    with suppress(OSError):
        if console.stat().st_size >= guest_limits.CONSOLE_BYTES:
            _note(run_id, "console cut")


def note_refused_build(exc: Exception) -> None:
    """Note in the audit log that what a build handed out, or how much it wrote, was refused."""
    if isinstance(exc, OF_BUILDS):
        note_refusal("build", rule_of(exc))


def note_front(events: Mapping[str, int]) -> None:
    """Note faults of the stores of compiled files in the audit log: such files were compiled. events: by kind, see Builder."""
    for name in sorted(FAULTS & events.keys()):
        note_refusal("build", f"compiled files {name}")


def _note(run_id: int, rule: str) -> None:
    run = Run.objects.select_related("experiment__submitter").get(pk=run_id)
    note_refusal("guest", rule, person=run.experiment.submitter)
