# SPDX-License-Identifier: GPL-2.0-or-later
"""Store an error of a submission as JSON, so that a page or an answer can show it later."""

from collections.abc import Mapping
from typing import Any

from lab.errors import (
    FieldRefused,
    KeyBusy,
    KeyReused,
    LabError,
    LabUnable,
    NotAllowed,
    Outdated,
    SpecError,
    SubmissionRejected,
)
from lab.models.storable import storable_text

_PLAIN: tuple[type[LabError], ...] = (SpecError, KeyBusy, KeyReused, NotAllowed, Outdated, LabUnable)
_KINDS = {kind.__name__: kind for kind in _PLAIN}
# Diagnostics of git and of pydantic can be long; the first part says what is wrong.
MOST_DETAIL = 20_000


def problem_of(error: LabError) -> dict[str, Any]:
    """Return an error as JSON; kinds that submitters do not see are reported as the lab's."""
    problem = {
        "message": storable_text(str(error), 2000),
        "detail": storable_text(error.detail, MOST_DETAIL),
    }
    if isinstance(error, FieldRefused):
        return problem | {"kind": "FieldRefused", "path": list(error.path)}
    if isinstance(error, SubmissionRejected):
        others = [problem_of(other) for other in error.others]
        return problem | {"kind": "SubmissionRejected", "place": error.place, "others": others}
    kind = next((name for name, kind in _KINDS.items() if isinstance(error, kind)), "LabUnable")
    return problem | {"kind": kind}


def error_of(problem: Mapping[str, Any]) -> LabError:
    """Return the error that `problem_of` wrote."""
    message, detail = str(problem["message"]), str(problem["detail"])
    if problem["kind"] == "FieldRefused":
        first, *within = problem["path"]
        return FieldRefused(first, message, tuple(within))
    if problem["kind"] == "SubmissionRejected":
        others = [
            SubmissionRejected(other["message"], "", other["place"]) for other in problem.get("others", ())
        ]
        return SubmissionRejected(message, detail, problem["place"], others)
    return _KINDS[problem["kind"]](message, detail)
