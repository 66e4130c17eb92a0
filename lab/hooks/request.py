# SPDX-License-Identifier: GPL-2.0-or-later
"""Build the request that each kind of hook gets for an event: a signed body, a commit status, a check of patchwork. Pure.

Commit statuses and checks know green, red and yellow; an experiment has a fourth answer, inconclusive. docs/design/hooks.md
says why it is neither green nor red wherever there is another word.
"""

import base64
import binascii
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import quote

from lab.experiments.counts import EXIT_LAB, EXIT_OK, EXIT_REGRESSION
from lab.hooks.outgoing_http import Outgoing
from lab.models import Hook
from lab.statistics.verdict_words import counted_verdicts

State = Literal["pending", "success", "failure", "untold"]

SECRET_PREFIX: Final = "whsec_"  # noqa: S105  of every secret, not one
_KEY_BYTES = range(24, 65)
_SLUG = re.compile(r"[^a-z0-9]+")
# GitHub refuses longer descriptions instead of cutting them.
_DESCRIPTION = 140


@dataclass(frozen=True, slots=True)
class Event:
    """One event on its way. number: of the delivery, the same each time it is tried; sent_at: Unix seconds."""

    number: str
    name: str
    payload: Mapping[str, Any]
    sent_at: int


@dataclass(frozen=True, slots=True)
class Status:
    """The status that a forge shows beside a commit or patch."""

    state: State
    name: str
    description: str
    url: str
    commit: str
    message_ids: tuple[str, ...]


def request_for(kind: str, url: str, secret: str, event: Event) -> Outgoing | None:
    """Return the request to send, None where this kind has nothing to say of the event.

    An address with "{patch}" needs `lookup_of` first.
    """
    if kind == Hook.Kind.WEBHOOK:
        return _webhook(url, secret, event)
    status = status_of(event.payload)
    if status is None:
        return None
    return _STATUSES[kind](url, secret, status)


def status_of(payload: Mapping[str, Any]) -> Status | None:
    """Return what an event means for the commit or patch it is about, None if nothing, as for a new improvement."""
    if "alert" in payload:
        alert = payload["alert"]
        if not alert["worse"]:
            return None
        return Status(
            "failure", f"{alert['standing']} trend", alert["text"], alert["url"], alert["commit"], ()
        )
    if "experiment" not in payload:
        return None
    experiment = payload["experiment"]
    state, description = _answer(experiment)
    return Status(
        state,
        experiment["standing"] or experiment["name"],
        description,
        experiment["url"],
        experiment["commit"],
        tuple(experiment["message_ids"]),
    )


def _answer(experiment: Mapping[str, Any]) -> tuple[State, str]:
    verdicts: Mapping[str, int] = experiment["verdicts"]
    # A delivery that was queued by an older version has no conclusion.
    headline = (experiment.get("conclusion") or {}).get("headline")
    words = headline or ", ".join(count for _, count in counted_verdicts(verdicts))
    if experiment["exit_code"] is None:
        return "pending", experiment["state"]
    if experiment["exit_code"] == EXIT_LAB:
        return "untold", f"{experiment['state']}: {experiment['problem']}".removesuffix(": ")
    if experiment["exit_code"] == EXIT_REGRESSION:
        return "failure", words
    if not experiment["compared"]:
        return "success", "measured for its trends; a step would raise an alert"
    if experiment["exit_code"] != EXIT_OK:
        return "untold", words or "there was nothing to compare"
    return "success", words


def lookup_of(url: str, status: Status) -> str | None:
    """Return the URL that gives the patch's number for "{patch}": that patchwork's list by message id."""
    head, mark, _ = url.partition("/patches/{patch}")
    if not mark or not status.message_ids:
        return None
    return f"{head}/patches/?msgid={quote(status.message_ids[-1], safe='@')}"


def new_secret() -> str:
    """Return a secret for a plain webhook, as the Standard Webhooks libraries read it."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def key_of(secret: str) -> bytes:
    """Return the key that a webhook's secret stands for. Raises ValueError."""
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error as exc:
        raise ValueError("a webhook's secret is whsec_ and base64") from exc
    if not secret.startswith(SECRET_PREFIX) or len(key) not in _KEY_BYTES:
        raise ValueError("a webhook's secret is whsec_ and base64 of 24 to 64 bytes")
    return key


def signature(secret: str, number: str, sent_at: int, body: bytes) -> str:
    """Return the webhook-signature header. Source: the Standard Webhooks specification, v1."""
    digest = hmac.new(key_of(secret), f"{number}.{sent_at}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def _webhook(url: str, secret: str, event: Event) -> Outgoing:
    body = json.dumps(event.payload, separators=(",", ":")).encode()
    headers = {
        "content-type": "application/json",
        "kperflab-event": event.name,
        "webhook-id": event.number,
        "webhook-timestamp": str(event.sent_at),
        "webhook-signature": signature(secret, event.number, event.sent_at, body),
    }
    return Outgoing("POST", url, headers, body)


def _github(url: str, secret: str, status: Status) -> Outgoing | None:
    words = {"pending": "pending", "success": "success", "failure": "failure", "untold": "error"}
    headers = {"authorization": f"Bearer {secret}", "accept": "application/vnd.github+json"}
    return _of_commit(
        url, headers, status, {"state": words[status.state], "context": f"kperflab/{status.name}"[:100]}
    )


def _gitlab(url: str, secret: str, status: Status) -> Outgoing | None:
    words = {"pending": "pending", "success": "success", "failure": "failed", "untold": "canceled"}
    named = {"state": words[status.state], "name": f"kperflab/{status.name}"[:100]}
    return _of_commit(url, {"private-token": secret}, status, named)


def _patchwork(url: str, secret: str, status: Status) -> Outgoing | None:
    words = {"pending": "pending", "success": "success", "failure": "fail", "untold": "warning"}
    # A slug: patchwork refuses anything else.
    context = f"kperflab-{_SLUG.sub('-', status.name.lower()).strip('-')}"[:100]
    if not status.message_ids:
        return None
    return _posted(
        url, {"authorization": f"Token {secret}"}, status, {"state": words[status.state], "context": context}
    )


def _of_commit(
    url: str, headers: Mapping[str, str], status: Status, named: Mapping[str, str]
) -> Outgoing | None:
    return _posted(url.replace("{commit}", status.commit), headers, status, named) if status.commit else None


def _posted(url: str, headers: Mapping[str, str], status: Status, named: Mapping[str, str]) -> Outgoing:
    """Return the request that sets a status. named: its state and name, in the words of the forge."""
    body = {**named, "description": status.description[:_DESCRIPTION], "target_url": status.url}
    json_headers = {"content-type": "application/json", **headers}
    return Outgoing("POST", url, json_headers, json.dumps(body).encode())


_STATUSES: Final[Mapping[str, Callable[[str, str, Status], Outgoing | None]]] = {
    Hook.Kind.GITHUB: _github,
    Hook.Kind.GITLAB: _gitlab,
    Hook.Kind.PATCHWORK: _patchwork,
}
