# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/operations/access.md says who is let in where; a route that it does not name is not decided."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from web.tests.access import METHODS, Access, filled_lab
from web.tests.routes import Route, routes

pytestmark = [pytest.mark.hostile, pytest.mark.django_db]
TABLE = Path(__file__).resolve().parents[2] / "docs" / "operations" / "access.md"
OPEN_TO_ALL = Access("anybody", "read")
_ROW = re.compile(r"\| `([^`]+)` \| ([A-Z]+) \| ([a-z]+) \| ([a-z]+) \|")


def decided() -> dict[tuple[str, str], Access]:
    """Return what the table says, by route and method."""
    rows = _ROW.findall(TABLE.read_text())
    return {(route, method): Access(person, token) for route, method, person, token in rows}


@pytest.fixture(autouse=True)
def _unhurried(settings: Any, tmp_path: Path) -> None:
    settings.API_RATES = dict.fromkeys(settings.API_RATES, "1000000/min")
    settings.HOME = tmp_path
    cache.clear()


def test_the_table_names_no_route_twice_and_none_that_is_gone() -> None:
    rows = [(route, method) for route, method, _, _ in _ROW.findall(TABLE.read_text())]
    assert len(rows) == len(set(rows))
    assert {route for route, _ in rows} <= {route.name for route in routes()}


def is_api(route: Route) -> bool:
    return route.name.startswith(("api-", "unnamed"))


@pytest.mark.parametrize("of_api", [False, True], ids=["pages", "api"])
def test_every_route_lets_in_whom_the_table_says(of_api: bool, tmp_path: Path) -> None:
    lab, table = filled_lab(tmp_path), decided()
    names = {route.name for route in routes() if is_api(route) == of_api}
    asked = {
        (route.name, method): lab.asks(route, method)
        for route in routes()
        if route.name in names
        for method in METHODS
    }
    answered = {key: access for key, access in asked.items() if access is not None}
    wanted = {key: access for key, access in table.items() if key[0] in names}
    undecided = [
        f"| `{name}` | {method} | {access.person} | {access.token} |"
        for (name, method), access in answered.items()
        if wanted.get((name, method)) != access
    ]
    assert not undecided, "decide on these rows of docs/operations/access.md:\n" + "\n".join(undecided)
    assert answered.keys() == wanted.keys()


def test_a_form_without_our_token_changes_nothing(tmp_path: Path) -> None:
    lab, table = filled_lab(tmp_path), decided()
    client = Client(enforce_csrf_checks=True)
    client.cookies = lab.clients["operator"].cookies
    statuses = {
        route.name: client.post(route.example(lab.values)).status_code
        for route in routes()
        if not is_api(route) and table.get((route.name, "POST"), OPEN_TO_ALL) != OPEN_TO_ALL
    }
    assert statuses.pop("forge_push") == 403, "a forge signs what it sends"
    assert set(statuses.values()) == {403}, statuses
    assert len(statuses) > 20


OPEN = {
    "api-me",
    "api-problems",
    "api-schema",
    "choose_password",
    "health",
    "login",
    "logout",
    "pipeline_script",
    "ready",
    "unnamed ^api/",
    "unnamed api/v1/.*$",
}


@pytest.mark.parametrize("method", METHODS)
def test_a_private_lab_lets_strangers_in_nowhere_but_to_its_door(
    method: str, tmp_path: Path, settings: Any
) -> None:
    lab = filled_lab(tmp_path)
    settings.ANONYMOUS_MAY_READ = False
    statuses = {route.name: lab.status_of("anybody", route, method) for route in routes()}
    let_in = {name for name, status in statuses.items() if status not in {403, 404, 405}}
    assert {name for name in let_in if not name.startswith("netboot_")} <= OPEN
