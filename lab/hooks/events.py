# SPDX-License-Identifier: GPL-2.0-or-later
"""Write the events of hooks, and of mails to submitters, in the transaction of the change itself; lab/hooks/deliver.py sends them.

So an event is sent if and only if it happened, whenever the process dies. Called by the services that change things.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

from django.conf import settings
from django.urls import reverse
from django.utils import timezone

from lab.comparisons.conclusion.collect import conclusion_data
from lab.experiments.counts import count_experiments, exit_code
from lab.from_attributes import attributes
from lab.hooks.finish_mails import mailed_user
from lab.hooks.request import Event, request_for
from lab.models import Alert, Delivery, Experiment, Hook, Quarantine, User
from lab.models.states import OPEN_EXPERIMENT, ExperimentState, Role

QUEUED, DONE, FAILED, CANCELLED, ALERT, QUARANTINED, RELEASED = EVENTS = (
    *("experiment.queued", "experiment.done", "experiment.failed", "experiment.cancelled", "alert"),
    *("target.quarantined", "target.released"),
)
TEST: Final = "test"
_OF_STATE: Final[dict[str, str]] = {
    ExperimentState.QUEUED: QUEUED,
    ExperimentState.DONE: DONE,
    ExperimentState.FAILED: FAILED,
    ExperimentState.CANCELLED: CANCELLED,
}
_FULL_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_LORE = re.compile(r"https://lore\.kernel\.org/(?:r|all|[\w.-]+)/([^/\s]+@[^/\s]+)/?")


def tell_experiment(experiment_id: int, *, by: User | None = None) -> None:
    """Tell the hooks that an experiment was queued or has ended, and its submitter that it has ended.

    Call it in the same transaction. by: who cancelled it.
    """
    experiment = Experiment.objects.select_related("tree", "submitter", "standing").get(pk=experiment_id)
    event = _OF_STATE[experiment.state]
    subject, payload = f"experiment/{experiment.pk}", experiment_payload(experiment, event)
    _write(listening(event, experiment.tree_id), event, subject, payload)
    user = mailed_user(experiment)
    if user is not None and event != QUEUED and user != by:
        mail = Delivery(user=user, event=event, subject=subject, payload=payload, next_at=timezone.now())
        Delivery.objects.bulk_create([mail], ignore_conflicts=True)


def tell_alert(alert: Alert) -> None:
    """Tell the hooks about an alert."""
    _write(listening(ALERT, alert.standing.tree_id), ALERT, f"alert/{alert.pk}", alert_payload(alert))


def tell_quarantine(row: Quarantine) -> None:
    """Tell the hooks that a quarantine began or ended; call it in the same transaction."""
    event = QUARANTINED if row.ended_at is None else RELEASED
    _write(listening(event, None), event, f"target/{row.target_id}/{row.pk}", quarantine_payload(row, event))


def listening(event: str, tree_id: int | None) -> list[Hook]:
    """Return the hooks for this event on this tree; tree_id: None for events without a tree.

    The hooks of an account that may not sign in are not among them.
    """
    hooks = Hook.objects.filter(enabled=True).exclude(owner__is_active=False)
    return [hook for hook in hooks if event in hook.events and hook.tree_id in (None, tree_id)]


def experiment_payload(experiment: Experiment, event: str) -> dict[str, Any]:
    """The payload of an experiment's event. commit: which one of its tree it is about, "" if none.

    exit_code: as `labctl` ends with it, None while it is open; so is the conclusion.
    """
    counted = count_experiments([experiment.pk])[experiment.pk]
    is_open = experiment.state in OPEN_EXPERIMENT
    return {
        "event": event,
        "at": timezone.now().isoformat(timespec="seconds"),
        "experiment": {
            **attributes(experiment, ("id", "name", "state")),
            "url": settings.PUBLIC_URL + reverse("experiment", args=[experiment.pk]),
            "tree": experiment.tree.name,
            "base": experiment.base_name,
            "base_commit": experiment.base_commit,
            "commit": commit_of(experiment),
            "message_ids": _message_ids(experiment),
            "submitter": experiment.submitter.username if experiment.submitter else "",
            "standing": experiment.standing.name if experiment.standing else "",
            "compared": experiment.variants.filter(role=Role.CANDIDATE).exists(),
            "verdicts": counted.verdicts,
            "exit_code": None if is_open else exit_code(experiment.state, counted),
            "problem": experiment.problem,
            "conclusion": None if is_open else _conclusion(experiment),
        },
    }


def _conclusion(experiment: Experiment) -> dict[str, str]:
    """Return the conclusion in words; the API has it with its numbers."""
    conclusion = conclusion_data(experiment)
    return {
        "headline": conclusion["headline"],
        "text": conclusion["text"],
        "next": conclusion["next"]["text"],
    }


def alert_payload(alert: Alert) -> dict[str, Any]:
    """The payload of an alert's event."""
    return {
        "event": ALERT,
        "at": timezone.now().isoformat(timespec="seconds"),
        "alert": {
            "id": alert.pk,
            "text": alert.text,
            "url": settings.PUBLIC_URL + reverse("trend", args=[alert.trend]),
            "standing": alert.standing.name,
            **attributes(alert, ("trend", "metric", "commit", "ratio", "worse")),
        },
    }


def quarantine_payload(row: Quarantine, event: str) -> dict[str, Any]:
    """The payload of a quarantine's event. released_by: "" at the lab's own terminal, and while it lasts."""
    target = row.target
    return {
        "event": event,
        "at": timezone.now().isoformat(timespec="seconds"),
        "target": {
            **attributes(target, ("id", "name", "group", "driver")),
            "url": settings.PUBLIC_URL + reverse("target", args=[target.name]),
            "reason": row.reason,
            "since": row.began_at.isoformat(timespec="seconds"),
            "until": row.ended_at and row.ended_at.isoformat(timespec="seconds"),
            "released_by": row.ended_by.username if row.ended_by else "",
        },
    }


def commit_of(experiment: Experiment) -> str:
    """Return the commit an experiment is about: the tip of its last git range, or the base where there is no switch.

    Empty where there is none in the tree, as for a patch from a mail, or where a range was not given by full ids.
    """
    if not experiment.switches.exists():
        return experiment.base_commit
    patches = experiment.spec.get("patches") or [{}]
    tip = str(patches[-1].get("range") or "").rpartition("..")[2]
    return tip if _FULL_ID.fullmatch(tip) else ""


def _message_ids(experiment: Experiment) -> list[str]:
    links = experiment.switches.exclude(link="").values_list("link", flat=True)
    return [match[1] for link in links if (match := _LORE.fullmatch(link))]


def _write(hooks: Iterable[Hook], event: str, subject: str, payload: dict[str, Any]) -> None:
    now = timezone.now()
    Delivery.objects.bulk_create(
        [
            Delivery(hook=hook, event=event, subject=subject, payload=payload, next_at=now)
            for hook in hooks
            # Without a commit there is nothing to set a status on.
            if hook.kind == Hook.Kind.WEBHOOK or request_for(hook.kind, "", "", Event("", event, payload, 0))
        ],
        ignore_conflicts=True,
    )
