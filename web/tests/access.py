# SPDX-License-Identifier: GPL-2.0-or-later
"""Access rules: each route and method, requested by each kind of person and token."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest
from django.db import transaction
from django.test import Client
from pytest_django import DjangoDbBlocker

from lab.models import (
    Alert,
    Build,
    Case,
    Comparison,
    Delivery,
    Experiment,
    Fetch,
    Hook,
    LateAnswer,
    Note,
    Profile,
    Run,
    Sample,
    Standing,
    Target,
    Tree,
    Triage,
    User,
    Worker,
)
from lab.people.tokens import issue_token
from lab.tests.factories import make_bisection, make_user
from lab.tests.file_rows import rows_of_a_file
from web.api.tests.store import TREND, fill
from web.tests.routes import Route, routes

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# From who may least to who may most; each may what those before it may.
PEOPLE = ("anybody", "viewer", "submitter", "owner", "operator")
SCOPES = ("read", "submit", "operate")
NOBODY = "nobody"
# Requests from this machine may read more, such as /metrics.
ELSEWHERE = "192.0.2.1"
# Another host, and what a git says that talks to one.
STRANGE = "https://tarpit.example.org/linux.git"
NETWORK = {"clone", "fetch", "ls-remote", "remote-https", "pull"}


@dataclass(frozen=True, slots=True)
class Access:
    """The least role that is let in, and the least scope of an operator's token."""

    person: str
    token: str


@dataclass(frozen=True, slots=True)
class Lab:
    """A filled lab, its people's clients and an operator's tokens, and values for the parameters of addresses."""

    clients: Mapping[str, Client]
    headers: Mapping[str, Mapping[str, str]]
    values: Mapping[str, object]

    def asks(self, route: Route, method: str) -> Access | None:
        """Return who is let in, or None where the route has no such method. Nothing stays changed."""
        if self.status_of("operator", route, method) == 405:
            return None
        people = {who: self.status_of(who, route, method) for who in PEOPLE}
        tokens = {scope: self.status_with(scope, route, method) for scope in SCOPES}
        return Access(_least(PEOPLE, people), _least(SCOPES, tokens))

    def keeps(self, route: Route, method: str, wanted: Access | None) -> bool:
        """Check the operator, the person of the lowest role that may, and the one of the role below."""
        operators = self.status_of("operator", route, method)
        if wanted is None or operators == 405:
            return wanted is None and operators == 405
        return (
            (operators != 403) == (wanted.person != NOBODY)
            and all(
                (self.status_of(who, route, method) != 403) == let_in
                for who, let_in in _border(PEOPLE, wanted.person).items()
                if who != "operator"
            )
            and all(
                (self.status_with(scope, route, method) != 403) == let_in
                for scope, let_in in _border(SCOPES, wanted.token).items()
            )
        )

    def status_of(self, person: str, route: Route, method: str) -> int:
        """Return the status of one request, 403 for every way of being sent away: 404 for what an operator finds is one."""
        body = _BODIES.get((route.name, method), {})
        status = _status(self.clients[person], method, route.example(self.values), body)
        hidden = status == 404 and person != "operator" and self.status_of("operator", route, method) != 404
        return 403 if hidden else status

    def status_with(self, scope: str, route: Route, method: str) -> int:
        """Return the status of one request with an operator's token."""
        body = _BODIES.get((route.name, method), {})
        stranger = self.clients["token"]
        stranger.cookies.clear()
        status = _status(stranger, method, route.example(self.values), body, self.headers[scope])
        hidden = status == 404 and self.status_of("operator", route, method) != 404
        return 403 if hidden else status


def refuse_other_hosts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Refuse each attempt to reach another host, and return the list that they are recorded in."""
    tried: list[str] = []
    start = subprocess.Popen.__init__

    def popen(self: Any, command: Any, *rest: Any, **more: Any) -> None:
        words = [str(word) for word in command] if isinstance(command, list | tuple) else [str(command)]
        if NETWORK & set(words) or any(word.endswith("b4") for word in words):
            tried.append(" ".join(words))
            raise OSError("a web process starts no git that talks to others")
        start(self, command, *rest, **more)

    def look_up(host: object, *_: object, **__: object) -> NoReturn:
        tried.append(f"looked up {host!r}")
        raise OSError("a web process looks up no name")

    monkeypatch.setattr(subprocess.Popen, "__init__", popen)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return tried


def _border(names: tuple[str, ...], least: str) -> dict[str, bool]:
    """Return the least that is let in, and the last before it that is not."""
    if least == NOBODY:
        return {names[-1]: False}
    at = names.index(least)
    return {name: name == least for name in names[max(at - 1, 0) : at + 1]}


@contextmanager
def lab_of_a_file(blocker: DjangoDbBlocker, folder: Path) -> Iterator[Lab]:
    """Make a filled lab for all tests of a file; what they change is undone after each."""
    with rows_of_a_file(blocker):
        yield filled_lab(folder)


def filled_lab(folder: Path) -> Lab:
    """Make a lab with a row of everything, which `owner` (alice) made where it has an owner."""
    people = {
        "bob": make_user("bob", User.Role.VIEWER),
        "alice": make_user("alice", User.Role.SUBMITTER),
        "dora": make_user("dora", User.Role.SUBMITTER),
        "charlie": make_user("charlie", User.Role.OPERATOR),
    }
    experiment = fill(people, folder)
    names = ("bob", "dora", "alice", "charlie")
    clients = dict(
        zip(
            PEOPLE,
            [Client(REMOTE_ADDR=ELSEWHERE), *(_signed_in(people[name]) for name in names)],
            strict=True,
        )
    )
    headers = {
        scope: {
            "Authorization": f"Token {issue_token(user=people['charlie'], name=scope, scopes=SCOPES[: at + 1])[1]}"
        }
        for at, scope in enumerate(SCOPES)
    }
    clients["token"] = Client(REMOTE_ADDR=ELSEWHERE)
    return Lab(clients, headers, _values(experiment, people))


def _signed_in(user: User) -> Client:
    client = Client(REMOTE_ADDR=ELSEWHERE)
    client.force_login(user)
    return client


def _status(
    client: Client,
    method: str,
    address: str,
    body: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
) -> int:
    """Ask once, and undo what it did. 403 stands for every way of being sent away."""
    with transaction.atomic():
        session = dict(client.cookies)
        if address.startswith("/api/") or method in {"GET", "DELETE"}:
            response = client.generic(method, address, _json(body), "application/json", headers=headers)
        else:
            response = getattr(client, method.lower())(address, body, headers=headers)
        client.cookies.update(session)
        transaction.set_rollback(True)
    sent_away = response.status_code == 302 and response.headers["Location"].startswith("/sign-in/")
    return 403 if sent_away or response.status_code in {401, 403} else int(response.status_code)


def _json(body: Mapping[str, Any]) -> str:
    return json.dumps(dict(body)) if body else ""


def _least(names: tuple[str, ...], statuses: Mapping[str, int]) -> str:
    """Return the first name that is let in; all after it must be, too."""
    let_in = [name for name in names if statuses[name] != 403]
    assert let_in == list(names[len(names) - len(let_in) :]), f"one with more rights is refused: {statuses}"
    return let_in[0] if let_in else NOBODY


# What must be said for a request to get as far as its rights on an object.
_BODIES: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("api-notes-detail", "PATCH"): {"text": "changed"},
    ("edit_note", "POST"): {"text": "changed"},
    ("api-hooks-detail", "PATCH"): {"enabled": False},
    ("api-standing-detail", "PATCH"): {"enabled": False},
    ("api-targets-detail", "PATCH"): {"enabled": False},
    ("experiment_priority", "POST"): {"priority": "low"},
    ("api-experiments-priority", "POST"): {"priority": "low"},
    ("act_hook", "POST"): {"act": "remove"},
    ("act_standing", "POST"): {"act": "remove"},
    ("experiment_keep", "POST"): {"kept": "yes"},
    ("api-me", "PATCH"): {"finish_mails": False},
}


def _values(experiment: Experiment, people: Mapping[str, User]) -> dict[str, object]:
    """Return a row's number or name for each parameter of an address."""
    experiment.state = "queued"
    experiment.save(update_fields=["state"])
    alice = people["alice"]
    standing = Standing.objects.create(
        name="nightly", owner=alice, tree=Tree.objects.all()[0], spec=experiment.spec
    )
    alert = Alert.objects.create(
        standing=standing, trend=TREND, metric="ns_per_open", commit="0" * 40, ratio=1.2, worse=True, text="x"
    )
    numbers = _numbers(experiment, alice, alert)
    first = Target.objects.get(pk=numbers["targets"])
    return _by_route(numbers) | {
        "api-profiled.id": experiment.pk,
        "api-profiled-callers.id": experiment.pk,
        "api-profiled-file.id": experiment.pk,
        "api-token.id": "0" * 15,
        "api-trees-detail.name": "tiny",
        "api-workloads-detail.name": "showgids",
        "name": "nightly",
        "target.name": first.name,
        "act_on_target.name": first.name,
        "edit_target.name": first.name,
        "experiment_id": experiment.pk,
        "case_id": Case.objects.filter(experiment=experiment).values_list("pk", flat=True)[0],
        "comparison_id": numbers["comparisons"],
        "run_id": numbers["runs"],
        "build_id": numbers["builds"],
        "hook_id": numbers["hooks"],
        "delivery_id": numbers["deliveries"],
        "alert_id": alert.pk,
        "note_id": numbers["notes"],
        "target_id": numbers["targets"],
        "bisection_id": make_bisection(Tree.objects.all()[0], ["0" * 40, "1" * 40]).pk,
        "user_id": people["dora"].pk,
        "key": TREND,
        "kind": "run",
        "work": numbers["runs"],
        "form": "json",
        "mac": "52:54:00:12:34:56",
        "token": "0" * 43,
        "token_id": "0" * 15,
        "stream": "records",
        "number": 0,
        "secret": "wrong",
        "uidb64": "MQ",
        "id": 1,
    }


def _numbers(experiment: Experiment, owner: User, alert: Alert) -> dict[str, int]:
    """Return the number of one row of each resource of the API."""
    worker = Worker.objects.create(name="h1:1:1", host="h1")
    rows = {
        "experiments": experiment,
        "variants": experiment.variants.first(),
        "builds": Build.objects.first(),
        "build-claim": Build.objects.first(),
        "run-claim": Run.objects.first(),
        "runs": Run.objects.exclude(console="").first(),
        "samples": Sample.objects.first(),
        "comparisons": Comparison.objects.filter(experiment=experiment).first(),
        "targets": Target.objects.first(),
        "workers": worker,
        "late-answers": LateAnswer.objects.first(),
        "profiles": Profile.objects.first(),
        "notes": Note.objects.filter(author=owner).first(),
        "triage": Triage.objects.first(),
        "hooks": Hook.objects.first(),
        "deliveries": Delivery.objects.first(),
        "alerts": alert,
        "fetches": Fetch.objects.create(user=owner, kind="preview", request={"description": {}}, digest="d"),
    }
    return {resource: row.pk if row else 0 for resource, row in rows.items()}


def _by_route(numbers: Mapping[str, int]) -> dict[str, object]:
    """Return numbers under the routes that the API's router and urls.py name after each resource."""
    actions = {route.name for route in routes()}
    ids: dict[str, object] = {
        f"{name}.id": number
        for resource, number in numbers.items()
        for name in actions
        if name == f"api-{resource}" or name.startswith(f"api-{resource}-")
    }
    return ids | {"fetch_id": numbers["fetches"]}
