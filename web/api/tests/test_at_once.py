# SPDX-License-Identifier: GPL-2.0-or-later
"""Two changes of one row at once: neither undoes the other. On SQLite, and with KPERFLAB_TEST_DATABASE=postgres."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from lab.models import Hook, Standing, User
from lab.tests.at_once import at_once
from web.api.tests.conftest import As
from web.api.tests.store import fill
from web.api.tests.test_writes import STANDING

pytestmark = pytest.mark.django_db(transaction=True)
HOOK = {"name": "mine", "url": "https://hooks.example.org/x"}


@pytest.mark.parametrize(
    ("rows", "body", "checked", "first", "second"),
    [
        (
            "hooks",
            HOOK,
            "hooks.changes.check_url",
            {"url": "https://hooks.example.org/y"},
            {"enabled": False},
        ),
        ("standing", STANDING, "standing.changes.find_target", {"poll_every_s": 600}, {"enabled": False}),
    ],
)
def test_two_changes_of_one_row_at_once_are_both_made(
    rows: str,
    body: dict[str, Any],
    checked: str,
    first: dict[str, Any],
    second: dict[str, Any],
    ask: As,
    people: dict[str, User],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fill(people, tmp_path)
    made = ask("alice").post(f"{rows}/", body).json()
    path = f"{rows}/{made['id'] if rows == 'hooks' else made['name']}/"
    begun = Event()

    def take_a_while(*_: object, **__: object) -> None:
        begun.set()
        time.sleep(0.5)

    monkeypatch.setattr(f"lab.{checked}", take_a_while)

    def change_meanwhile() -> Any:
        assert begun.wait(30)
        return ask("alice")("PATCH", path, second)

    answers = at_once(lambda: ask("alice")("PATCH", path, first), change_meanwhile)
    assert [answer.status_code for answer in answers] == [200, 200]
    row = (Hook if rows == "hooks" else Standing).objects.get(name=body["name"])
    assert {name: getattr(row, name) for name in first | second} == first | second


def test_a_hook_that_is_removed_while_it_is_changed_stays_removed(
    ask: As, people: dict[str, User], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"hooks/{ask('alice').post('hooks/', HOOK).json()['id']}/"
    begun = Event()

    def take_a_while(*_: object, **__: object) -> None:
        begun.set()
        time.sleep(0.5)

    def remove_meanwhile() -> Any:
        assert begun.wait(30)
        return ask("alice")("DELETE", path)

    monkeypatch.setattr("lab.hooks.changes.check_url", take_a_while)
    at_once(lambda: ask("alice")("PATCH", path, {"enabled": False}), remove_meanwhile)
    assert not Hook.objects.exists()
