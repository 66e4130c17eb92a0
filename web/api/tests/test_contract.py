# SPDX-License-Identifier: GPL-2.0-or-later
"""schemathesis over the whole schema: what the API answers is what the schema says, whatever is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from django.core.cache import cache
from django.db import connection, connections
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from schemathesis.engine.context import EngineContext

from lab.models import Tree, User
from lab.people.tokens import issue_token, scopes_of
from lab.tests.tiny_tree import make_tiny_tree
from web.api.tests.store import counts, fill
from web.wsgi import application

pytestmark = [pytest.mark.api, pytest.mark.django_db(transaction=True)]

# The same examples each time. A description may be well formed and still refused: 422 says so.
CONFIG = """
seed = 7
[generation]
deterministic = true
max-examples = {examples}
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", "401", "403", "404", "409", "422", "429", "5xx"]
"""
# The limits of a description's fields take some seven hundred requests an operation. Each of these reads by the serializer of
# another, whose limits are tried: a new experiment's, a new standing experiment's.
READ_ELSEWHERE = """
[[operations]]
include-name = ["POST /api/v1/experiments/preview/", "PATCH /api/v1/standing/{name}/"]
phases.coverage.enabled = false
"""


@pytest.fixture
def lab(people: dict[str, User], tmp_path: Path, settings: Any) -> dict[str, User]:
    settings.HOME = tmp_path
    (tmp_path / "trees").mkdir()
    fill(people, tmp_path)
    source = make_tiny_tree(tmp_path / "linux")
    # What the schema's example names.
    Tree.objects.create(name="debian-6.1", kind="git", location=str(source), default_revision="v6.1")
    settings.LOCAL_PATHS = True
    return people


@pytest.fixture(autouse=True)
def _no_socket_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """schemathesis 4.32 hands its in-process client a setting of sockets, which that does not take."""
    whole = EngineContext.get_transport_kwargs

    def without(self: EngineContext, operation: Any = None) -> dict[str, Any]:
        arguments = whole(self, operation)
        return {name: value for name, value in arguments.items() if name not in SOCKET_SETTINGS}

    monkeypatch.setattr(EngineContext, "get_transport_kwargs", without)


@pytest.fixture(autouse=True)
def _kept_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening the database for each request took a sixth of the time; in a fleet connections are kept, too."""
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", None)


SOCKET_SETTINGS = {"max_redirects", "verify", "cert"}


def run(token: str, examples: int) -> tuple[Counter[str], list[str]]:
    """Everything schemathesis knows to do; returns how often each operation was asked, and what failed.

    With one example each, the limits of fields that another operation shares are left to it.
    """
    config = SchemathesisConfig.from_str(
        CONFIG.format(examples=examples) + (READ_ELSEWHERE if examples == 1 else "")
    )
    schema: Any = schemathesis.openapi.from_wsgi("/api/v1/schema/", application, config=config)
    if token:
        schema.config.update(headers={"Authorization": f"Token {token}"})
        # It would find and end the very token it asks with.
        schema = schema.exclude(path="/api/v1/tokens/{id}/")
    asked: Counter[str] = Counter()
    failed: dict[str, str] = {}
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            asked[event.label or ""] += len(event.recorder.interactions)
            failed |= dict(_failures(event))
        elif isinstance(event, events.NonFatalError | events.FatalError):
            failed[str(event)] = str(getattr(event, "value", event))
    return asked, list(failed.values())


def _failures(event: events.ScenarioFinished) -> Iterator[tuple[str, str]]:
    for case_id, checks in event.recorder.checks.items():
        for check in checks:
            if check.failure_info is None:
                continue
            failure = check.failure_info.failure
            case = event.recorder.cases[case_id].value
            response = event.recorder.interactions[case_id].response
            content = response.content[:300] if response else b""
            yield (
                f"{event.label} {check.name} {failure.title}",
                f"{event.label}: {failure.title}: {failure.message}\n{case.as_curl_command()}\n{content!r}",
            )


@pytest.mark.parametrize(
    ("name", "examples", "least"),
    [
        ("charlie", 1, 300),
        pytest.param("charlie", 10, 1000, marks=pytest.mark.campaign),
        pytest.param("", 3, 500, marks=pytest.mark.campaign),
    ],
)
def test_what_is_answered_is_what_the_schema_says(
    lab: dict[str, User], name: str, examples: int, least: int
) -> None:
    cache.clear()
    before = counts()
    user = lab.get(name)
    token = issue_token(user=user, name="t", scopes=scopes_of(user))[1] if user else ""
    asked, failed = run(token, examples)
    connections.close_all()
    print(f"{asked.total():,} requests of {len(asked)} operations by {name or 'a stranger'}")
    assert not failed, f"{len(failed)} failures:\n\n" + "\n\n".join(failed)
    assert asked.total() >= least
    if not user:
        assert counts() == before, "a stranger changed something"
