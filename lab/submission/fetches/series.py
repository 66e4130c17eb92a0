# SPDX-License-Identifier: GPL-2.0-or-later
"""Fetch the series that a request names, and add them to its description."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab.errors import FieldRefused
from lab.experiments.switch_names import free_name
from lab.models import User
from lab.submission.received_series import (
    BranchRequest,
    Received,
    count_patches,
    each_patch,
    receive_branch,
    receive_message,
)

# The field of the description, and the line that people read.
OnStage = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class WantedSeries:
    """A description and the series to fetch for it. each: make a switch of each patch of a series.

    form_key: of the page that sent it, "" for none: one page makes one experiment.
    """

    description: Mapping[str, Any]
    branch: BranchRequest | None = None
    message: str = ""
    each: bool = False
    form_key: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return it as the table keeps it."""
        return asdict(self)


def wanted_of(request: Mapping[str, Any]) -> WantedSeries:
    """Return what WantedSeries.as_json wrote."""
    branch = request["branch"]
    return WantedSeries(**{**request, "branch": None if branch is None else BranchRequest(**branch)})


def fetch_series(
    wanted: WantedSeries, by: User, home: Path | None, on_stage: OnStage
) -> tuple[Received, ...]:
    """Fetch the series that are wanted. Raises FieldRefused, LabUnable."""
    series = []
    if wanted.branch is not None:
        on_stage(
            "branch_git" if wanted.branch.location else "branch", f"fetching branch {wanted.branch.name}"
        )
        series.append(
            receive_branch(
                asked=wanted.branch,
                by=by,
                home=home,
                on_progress=lambda line: on_stage("branch_git", line),
            )
        )
    if wanted.message:
        on_stage("lore", f"fetching message {wanted.message}")
        series.append(receive_message(message=wanted.message, home=home))
    return tuple(series)


def with_series(wanted: WantedSeries, series: Sequence[Received]) -> dict[str, Any]:
    """Return the description with the series as further switches. Raises FieldRefused of the field "each"."""
    description = dict(wanted.description)
    own_patches = description.get("patches") or []
    patches: list[Any] = list(own_patches) if isinstance(own_patches, list) else []
    for received in series:
        patches.append({"name": free_name(received.name, _names(patches)), "text": received.text})
    if not wanted.each:
        return description | {"patches": patches} if series else description
    parts: list[Any] = []
    for patch in patches:
        # Two series, such as two versions of one, have patches of the same names.
        parts += _divided(patch, [*patches, *parts])
    if len(parts) > len(patches) and description.get("design", "full") == "full":
        # Patches of a series depend on one another: all combinations of them say little.
        description["design"] = "cumulative"
    return description | {"patches": parts}


def _names(patches: Sequence[Any]) -> set[str]:
    return {str(patch.get("name", "")) for patch in patches if isinstance(patch, Mapping)}


def _divided(patch: Any, patches: Sequence[Any]) -> list[Any]:
    """A switch for each patch of a series; a switch that others refer to, or that is one patch, stays as it is."""
    text = patch.get("text") if isinstance(patch, Mapping) else None
    tied = isinstance(patch, Mapping) and any(
        patch.get(field) for field in ("requires", "excludes", "alternative")
    )
    if not isinstance(text, str) or tied or count_patches(text) < 2:
        return [patch]
    name = str(patch.get("name", ""))
    others = _names([other for other in patches if other is not patch])
    try:
        whole = Received(name, text, f"switch {name}")
        parts = each_patch(whole, others=others, partial=patch.get("partial") is True)
    except FieldRefused as exc:
        raise FieldRefused("each", str(exc)) from exc
    return [{"name": part.name, "text": part.text} for part in parts]
