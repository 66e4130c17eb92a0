# SPDX-License-Identifier: GPL-2.0-or-later
"""The main menu, and the entry of it that each page belongs to, so that no view has to name it."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse

from lab.people.permissions import may


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the menu. key: pressed after g, it opens the page; current: its aria-current, "" for others."""

    label: str
    address: str
    key: str
    current: str = ""


# Section, label, route, key. The lab's page is for operators; others are asked to sign in as one.
_MENU = (
    ("experiments", "Experiments", "experiments", "e"),
    ("trends", "Trends", "trends", "t"),
    ("regressions", "Regressions", "regressions", "r"),
    ("standing", "Standing", "standings", "s"),
    ("lab", "Lab", "lab", "l"),
    ("help", "Help", "help", "h"),
)
# The first part of an address, and the entry above it; pages not named here have none.
_SECTIONS = {
    "experiments": ("experiments", "runs", "builds", "notes", "views", "compare", "fetches"),
    "trends": ("trends", "bisections"),
    "regressions": ("regressions",),
    "standing": ("standing", "alerts"),
    "lab": ("lab", "targets", "people"),
    "help": ("help", "limits"),
    "mine": ("mine", "account", "hooks"),
    "sign-in": ("sign-in",),
}
_ABOVE = {part: section for section, parts in _SECTIONS.items() for part in parts}
_FORM = "/experiments/new"


def section(request: HttpRequest) -> dict[str, object]:
    """Context of every template: the menu, and section, the current entry's name or ""."""
    current = "submit" if request.path == _FORM else _ABOVE.get(request.path.split("/")[1], "")
    entries = [
        Entry(label, reverse(route), key, _marked(request, reverse(route)) if name == current else "")
        for name, label, route, key in _MENU
        if name != "lab" or not request.user.is_authenticated or may(request.user, "operate")
    ]
    return {"section": current, "menu": entries}


def _marked(request: HttpRequest, address: str) -> str:
    """Return the value of aria-current: "page" on the entry's own page, "true" below it."""
    return "page" if request.path == address else "true"
