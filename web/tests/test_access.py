# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/operations/access.md says who is let in where; a route that it does not name is not decided."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from pytest_django import DjangoDbBlocker

from lab.models import Tree
from web.tests.access import METHODS, STRANGE, Access, Lab, lab_of_a_file, refuse_other_hosts
from web.tests.routes import Route, routes

pytestmark = [pytest.mark.hostile, pytest.mark.django_db]
TABLE = Path(__file__).resolve().parents[2] / "docs" / "operations" / "access.md"
OPEN_TO_ALL = Access("anybody", "read")
_ROW = re.compile(r"\| `([^`]+)` \| ([A-Z]+) \| ([a-z]+) \| ([a-z]+) \|")


def decided() -> dict[tuple[str, str], Access]:
    """Return what the table says, by route and method."""
    rows = _ROW.findall(TABLE.read_text())
    return {(route, method): Access(person, token) for route, method, person, token in rows}


@pytest.fixture(scope="module")
def lab(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lab]:
    with lab_of_a_file(django_db_blocker, tmp_path_factory.mktemp("lab")) as filled:
        yield filled


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


def requests(of_api: bool, methods: Sequence[str] = METHODS) -> list[tuple[Route, str]]:
    return [(route, method) for route in routes() if is_api(route) == of_api for method in methods]


@pytest.fixture(autouse=True)
def trees_at_hand() -> None:
    """Here trees are what they are."""


@pytest.mark.parametrize("of_api", [False, True], ids=["pages", "api"])
def test_every_route_lets_in_whom_the_table_says_and_reaches_no_other_host(
    of_api: bool, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    Tree.objects.update(kind="git", location=STRANGE)
    reached, table = refuse_other_hosts(monkeypatch), decided()
    # A page that takes more than GET and POST takes anything; the thorough test below sends PUT and PATCH, too.
    asked = requests(of_api) if of_api else requests(of_api, ("GET", "POST", "DELETE"))
    assert len(asked) > 150
    undecided = [
        (route.name, method, lab.asks(route, method))
        for route, method in asked
        if not lab.keeps(route, method, table.get((route.name, method)))
    ]
    assert not undecided, "decide on these rows of docs/operations/access.md:\n" + rows(undecided)
    assert reached == []


@pytest.mark.thorough
@pytest.mark.parametrize("of_api", [False, True], ids=["pages", "api"])
def test_every_person_and_token_that_may_more_is_let_in_too(of_api: bool, lab: Lab) -> None:
    table = decided()
    asked = [(route.name, method, lab.asks(route, method)) for route, method in requests(of_api)]
    undecided = [row for row in asked if row[2] != table.get((row[0], row[1]))]
    assert not undecided, rows(undecided)


def rows(answers: list[tuple[str, str, Access | None]]) -> str:
    """Write answers as rows of the table."""
    return "\n".join(
        f"| `{name}` | {method} | {access.person} | {access.token} |" if access else f"{name} has no {method}"
        for name, method, access in answers
    )


def test_a_form_without_our_token_changes_nothing(lab: Lab) -> None:
    table = decided()
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
    method: str, lab: Lab, settings: Any
) -> None:
    settings.ANONYMOUS_MAY_READ = False
    statuses = {route.name: lab.status_of("anybody", route, method) for route in routes()}
    let_in = {name for name, status in statuses.items() if status not in {403, 404, 405}}
    assert {name for name in let_in if not name.startswith("netboot_")} <= OPEN
