# SPDX-License-Identifier: GPL-2.0-or-later
"""Send the deliveries that are due: one process claims each; after a failure it is retried with growing pauses.

A try is claimed by writing when the next one would be, so that a process that dies in the middle costs one try and no
delivery. A receiver may therefore receive an event twice, with the same number.
"""

import asyncio
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeAlias

from django.conf import settings
from django.core.mail import EmailMessage
from django.utils import timezone

from lab.errors import AddressRefused, LabError, NotReached
from lab.hooks.finish_mails import MailAccepted, mail_of, send_mails
from lab.hooks.outgoing_http import HttpAnswer, Outgoing, send
from lab.hooks.request import Event, lookup_of, request_for, status_of
from lab.models import Delivery, Hook
from lab.models.states import DeliveryState, move

# Sent side by side: one slow receiver does not keep the others waiting.
AT_ONCE = 16
MOST_TRIES = 8
FIRST_PAUSE_S, LONGEST_PAUSE_S = 10.0, 3600.0
# Answers after which another try may help; all other refusals are final.
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
# Patchwork sends much about a patch; only its number is used.
LOOKUP_BYTES = 256 * 1024
KEPT = timedelta(days=30)

_Answer: TypeAlias = HttpAnswer | MailAccepted | LabError


@dataclass(frozen=True, slots=True)
class DeliveryAttempt:
    """The result of one attempt. to: such as "hook ci"; status: of an HTTP answer, None if there was none."""

    to: str
    event: str
    subject: str
    status: int | None
    answer: str
    state: DeliveryState

    def __str__(self) -> str:
        how = f"HTTP {self.status}" if self.status else self.answer
        return f"{self.to}: {self.event} of {self.subject}: {self.state.value} ({how})"


def pause_s(tries: int) -> float:
    """Return how long to wait after this many tries, in seconds: four times as long each time, give or take a quarter."""
    plain = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 4.0 ** (tries - 1))
    return plain * (0.75 + secrets.randbelow(501) / 1000)


def deliver_due() -> list[DeliveryAttempt]:
    """Try the deliveries that are due, at most AT_ONCE; returns the result of each."""
    now = timezone.now()
    waiting = Delivery.objects.filter(state=DeliveryState.WAITING, next_at__lte=now)
    deliveries = list(waiting.select_related("hook__owner", "user").order_by("next_at", "pk")[:AT_ONCE])
    ours = [delivery for delivery in deliveries if _claim(delivery, now)]
    if not ours:
        return []
    plans = [
        _plan(delivery, delivery.hook, int(now.timestamp())) if delivery.hook else _mail(delivery)
        for delivery in ours
    ]
    answers = asyncio.run(_try_all(plans))
    return [_record(delivery, answer) for delivery, answer in zip(ours, answers, strict=True)]


def forget_old() -> int:
    """Remove finished deliveries that were created more than KEPT ago; returns how many."""
    over = Delivery.objects.exclude(state=DeliveryState.WAITING)
    return over.filter(created_at__lt=timezone.now() - KEPT).delete()[0]


def _claim(delivery: Delivery, now: datetime) -> bool:
    tries = delivery.attempts + 1
    mine = Delivery.objects.filter(
        pk=delivery.pk, state=DeliveryState.WAITING, attempts=delivery.attempts, next_at=delivery.next_at
    )
    claimed = mine.update(attempts=tries, next_at=now + timedelta(seconds=pause_s(tries))) == 1
    delivery.attempts = tries
    return claimed


@dataclass(frozen=True, slots=True)
class _Plan:
    """The request to send; lookup: the URL that gives the patch's number first; refused: the reason why nothing is sent."""

    request: Outgoing | None = None
    lookup: Outgoing | None = None
    refused: str = ""


def _mail(delivery: Delivery) -> EmailMessage | _Plan:
    try:
        return mail_of(delivery)
    except AddressRefused as exc:
        return _Plan(refused=str(exc))


def _plan(delivery: Delivery, hook: Hook, sent_at: int) -> _Plan:
    if not hook.enabled:
        return _Plan(refused="the hook is disabled")
    if hook.owner is not None and not hook.owner.is_active:
        return _Plan(refused="the hook's owner is shut out")
    number = f"kperflab_{delivery.pk}_{int(delivery.created_at.timestamp())}"
    event = Event(number, delivery.event, delivery.payload, sent_at)
    try:
        request = request_for(hook.kind, hook.url, hook.secret, event)
    except ValueError as exc:
        return _Plan(refused=str(exc))
    status = status_of(delivery.payload) if hook.kind != Hook.Kind.WEBHOOK else None
    if request is None:
        return _Plan(refused="the experiment has no commit or patch that this hook could mark")
    if status is not None and _overtaken(delivery):
        return _Plan(refused="superseded by a later event")
    url = lookup_of(hook.url, status) if status else None
    if url is None:
        return _Plan(request)
    return _Plan(request, Outgoing("GET", url, answer_bytes=LOOKUP_BYTES))


def _overtaken(delivery: Delivery) -> bool:
    """Return whether a later event of the same object was written: only the last status is true."""
    later = Delivery.objects.filter(hook=delivery.hook_id, subject=delivery.subject, pk__gt=delivery.pk)
    return later.exists()


async def _try_all(plans: Sequence[_Plan | EmailMessage]) -> list[_Answer]:
    """Send requests side by side, and beside them the mails in one conversation; returns the answers in order."""
    requests = [plan for plan in plans if isinstance(plan, _Plan)]
    mails = [plan for plan in plans if isinstance(plan, EmailMessage)]
    taken, answered = await asyncio.gather(
        asyncio.to_thread(send_mails, mails), asyncio.gather(*(_try(plan) for plan in requests))
    )
    of_mails, of_requests = iter(taken), iter(answered)
    return [next(of_requests if isinstance(plan, _Plan) else of_mails) for plan in plans]


async def _try(plan: _Plan) -> HttpAnswer | LabError:
    if plan.request is None:
        return AddressRefused(plan.refused)
    request, private = plan.request, settings.HOOKS_PRIVATE
    try:
        if plan.lookup is not None:
            answer = await send(plan.lookup, private=private)
            request = replace(request, url=request.url.replace("{patch}", _patch_number(answer)))
        return await send(request, private=private)
    except LabError as exc:
        return exc
    except Exception as exc:
        # Whatever a hostile answer does to the library is that delivery's failure alone.
        return NotReached(f"{type(exc).__name__}: {exc}")


def _patch_number(answer: HttpAnswer) -> str:
    """Read a patch's number from patchwork's list. Raises NotReached: a mail may take a while to arrive there."""
    try:
        if answer.status == 200:
            return str(int(json.loads(answer.text)[0]["id"]))
    except (ValueError, LookupError, TypeError):
        pass
    raise NotReached(f"patchwork does not know the patch (HTTP {answer.status}): {answer.text[:200]}")


def _record(delivery: Delivery, answer: _Answer) -> DeliveryAttempt:
    if isinstance(answer, HttpAnswer):
        status, text = answer.status, answer.text
        again = status in PASSING
        delivered = 200 <= status < 300
    elif isinstance(answer, MailAccepted):
        status, text = None, answer.text
        again, delivered = False, True
    else:
        status, text = None, str(answer)
        again, delivered = answer.retry, False
    state = DeliveryState.WAITING
    if delivered:
        state = DeliveryState.DELIVERED
    elif not again or delivery.attempts >= MOST_TRIES:
        state = DeliveryState.GIVEN_UP
    if state == DeliveryState.WAITING:
        Delivery.objects.filter(pk=delivery.pk, state=state).update(status=status, answer=text)
    else:
        at = timezone.now() if delivered else None
        move(
            Delivery,
            delivery.pk,
            DeliveryState.WAITING,
            state,
            delivered_at=at,
            status=status,
            answer=text,
        )
    to = f"hook {delivery.hook.name}" if delivery.hook else f"mail to {delivery.user}"
    return DeliveryAttempt(to, delivery.event, delivery.subject, status, text, state)
