# SPDX-License-Identifier: GPL-2.0-or-later
"""The entry of the main navigation for each page, so that no view has to name it."""

from __future__ import annotations

from django.http import HttpRequest

# The first part of an address, and the entry above it; what is not named here has none.
_SECTIONS = {
    "experiments": ("experiments", "runs", "builds", "notes", "views"),
    "regressions": ("regressions",),
    "trends": ("trends", "bisections", "standing", "alerts"),
    "account": ("account", "people", "lab", "limits", "targets", "hooks"),
    "sign-in": ("sign-in",),
}
_ABOVE = {part: section for section, parts in _SECTIONS.items() for part in parts}
_FORM = "/experiments/new"


def section(request: HttpRequest) -> dict[str, str]:
    """Context of every template: section, the entry's name or "" where a page has none."""
    if request.path == _FORM:
        return {"section": "submit"}
    return {"section": _ABOVE.get(request.path.split("/")[1], "")}
