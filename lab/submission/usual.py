# SPDX-License-Identifier: GPL-2.0-or-later
"""Read what a person measured last, so that the form starts with those choices."""

from dataclasses import dataclass

from lab.models import Experiment, User


@dataclass(frozen=True, slots=True)
class UsualChoices:
    """The choices of the last submission; empty without one. cases: workloads with their presets."""

    tree: str = ""
    target: str = ""
    cases: tuple[tuple[str, str], ...] = ()


def usual_choices(by: User | None) -> UsualChoices:
    """Return the choices of a person's newest experiment, or of the lab's newest one where they have none."""
    rows = Experiment.objects.order_by("-pk").select_related("target")
    newest = (by and rows.filter(submitter=by).first()) or rows.first()
    if newest is None:
        return UsualChoices()
    cases = [case for case in newest.spec.get("cases", ()) if isinstance(case, dict)]
    return UsualChoices(
        tree=str(newest.spec.get("tree") or ""),
        target=newest.group or newest.target.name,
        cases=tuple((str(case.get("workload")), str(case.get("preset", "small"))) for case in cases),
    )
