# SPDX-License-Identifier: GPL-2.0-or-later
"""The mail that a submitter gets when an experiment finishes: its recipient, its text, and its delivery to the mail server."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parseaddr
from smtplib import SMTPDataError, SMTPException, SMTPRecipientsRefused
from time import monotonic
from typing import Any, Final

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.urls import reverse

from lab.errors import AddressRefused, LabError, NotReached
from lab.models import BisectionStep, Delivery, Experiment, User
from lab.one_line import plain
from lab.people.accounts import gets_mails, has_mail_server, stop_secret

# Of each step of the conversation with the mail server, and of all mails that are sent together.
DEADLINE_S: Final = 10.0
_WIDTH: Final = 72
_SUBJECT: Final = 200


@dataclass(frozen=True, slots=True)
class MailAccepted:
    """The mail server took the mail. text: which server."""

    text: str


def mailed_user(experiment: Experiment) -> User | None:
    """Return who gets a mail when this experiment finishes, None if nobody does.

    What the lab submits by itself is left out: standing experiments have alerts, bisections their own page.
    """
    user = experiment.submitter
    if user is None or not gets_mails(user) or experiment.standing_id is not None:
        return None
    return None if BisectionStep.objects.filter(experiment=experiment).exists() else user


def mail_of(delivery: Delivery) -> EmailMessage:
    """Return the mail for a delivery to a user. Raises AddressRefused if the user no longer gets mails."""
    user = delivery.user
    if user is None or not gets_mails(user):
        raise AddressRefused("its recipient has turned mails off")
    if not has_mail_server():
        raise AddressRefused("this lab has no mail server: KPERFLAB_SMTP is not set")
    experiment: Mapping[str, Any] = delivery.payload["experiment"]
    stop = settings.PUBLIC_URL + reverse("stop_mails", args=[stop_secret(user)])
    sender = settings.DEFAULT_FROM_EMAIL
    host = parseaddr(sender)[1].rpartition("@")[2] or "kperflab"
    subject = f"[kperflab] {plain(experiment['name'], 100)}: {plain(experiment['conclusion']['headline'])}"
    return EmailMessage(
        # Mail programs would decode "=?…?=" of a stranger's name, to any character.
        plain(subject.replace("=?", "= ?"), _SUBJECT),
        _body(experiment, stop),
        sender,
        [user.email],
        headers={
            # The same each time it is tried, so that a mail that was taken twice is shown once.
            "Message-ID": f"<delivery.{delivery.pk}.{int(delivery.created_at.timestamp())}@{host}>",
            "List-Unsubscribe": f"<{stop}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
            "Auto-Submitted": "auto-generated",
        },
    )


def _body(experiment: Mapping[str, Any], stop: str) -> str:
    lines = [
        *_wrapped(f"Experiment {experiment['id']}, {plain(experiment['name'])}, is {experiment['state']}."),
        "",
    ]
    lines += [*_wrapped(experiment["conclusion"]["text"]), ""]
    if experiment["problem"]:
        lines += [*_wrapped(f"Problem: {experiment['problem']}"), ""]
    lines += [
        experiment["url"],
        "",
        "-- ",
        f"Sent because you submitted this experiment to {settings.PUBLIC_URL}.",
    ]
    return "\n".join([*lines, f"No more of these mails: {stop}", ""])


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(plain(text, 2000), _WIDTH, break_long_words=False, break_on_hyphens=False)


def send_mails(mails: Sequence[EmailMessage]) -> list[MailAccepted | LabError]:
    """Hand mails to the mail server in one conversation; return how each went.

    A server that is down costs DEADLINE_S once, not for each mail: what is not sent by then is due again later.
    """
    if not mails:
        return []
    end = monotonic() + DEADLINE_S
    connection = get_connection(timeout=DEADLINE_S)
    try:
        connection.open()
    except (SMTPException, OSError, ValueError) as exc:
        away = NotReached(f"the mail server {_place()} does not answer: {type(exc).__name__}: {exc}")
        return [away] * len(mails)
    try:
        return [_send(connection, mail, late=monotonic() > end) for mail in mails]
    finally:
        # Closing says goodbye, to which a server may not answer; the mails are out all the same.
        connection.fail_silently = True
        connection.close()


def _send(connection: Any, mail: EmailMessage, *, late: bool) -> MailAccepted | LabError:
    if late:
        return NotReached(f"the mail server {_place()} took longer than {DEADLINE_S:g} s")
    try:
        connection.send_messages([mail])
    except SMTPRecipientsRefused as exc:
        code, said = next(iter(exc.recipients.values()))
        return _refused(code, said)
    except SMTPDataError as exc:
        return _refused(exc.smtp_code, exc.smtp_error)
    except ValueError as exc:
        return AddressRefused(f"the mail cannot be written: {exc}")
    except (SMTPException, OSError) as exc:
        return NotReached(f"the mail server {_place()} failed: {type(exc).__name__}: {exc}")
    return MailAccepted(f"accepted by {_place()}")


def _refused(code: int, said: bytes | str) -> LabError:
    """Return the refusal of one mail: codes from 500 on are final, lower ones may pass."""
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    refusal = plain(f"the mail server {_place()} refused the mail: {code} {text}", 2000)
    return AddressRefused(refusal) if code >= 500 else NotReached(refusal)


def _place() -> str:
    return f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
