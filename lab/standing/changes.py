# SPDX-License-Identifier: GPL-2.0-or-later
"""Create and change standing experiments, for people and for forges. lab/standing/new_revisions.py does the rest."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils import timezone

from lab.errors import FieldRefused, NotAllowed, one_row
from lab.experiments.spec import ExperimentSpec, spec_from_mapping
from lab.experiments.stored_spec import without_defaults
from lab.from_attributes import attributes
from lab.models import Standing, Tree, User
from lab.people.permissions import check_may, may_change
from lab.standing.quiet_hours import is_quiet, quiet_until
from lab.submission.git_addresses import check_address
from lab.submission.parts import find_target
from lab.submission.sources import find_source, registered_sources, tree_row

POLL_S = range(60, 7 * 24 * 3600 + 1)
MOST_ADDRESSES = 20
LEAST_SECRET, LONGEST_SECRET = 16, 100
# The fields that are stored as they are given, and the columns that a form writes.
_PLAIN_FIELDS = (
    *("name", "branch", "enabled", "quiet_from", "quiet_until", "poll_every_s", "backfill", "mail_to"),
)
_FORM_COLUMNS = (*_PLAIN_FIELDS, "spec", "tree", "secret", "refused")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_BRANCH = re.compile(r"(?!.*(?:\.\.|//|@\{))[\w][\w./+-]{0,199}")


@dataclass(frozen=True, slots=True)
class StandingFields:
    """The fields of a standing experiment's form. spec: a description without a base: the base is each new revision.

    branch: "" for the tree's default. secret: the key with which a forge signs its pushes; "" keeps it, or makes one.
    """

    name: str
    spec: Mapping[str, Any]
    branch: str = ""
    enabled: bool = True
    quiet_from: int = 0
    quiet_until: int = 0
    poll_every_s: int = 300
    backfill: bool = False
    secret: str = ""
    mail_to: Sequence[str] = field(default_factory=tuple)


def make_standing(*, by: User, fields: StandingFields, scopes: Sequence[str] | None = None) -> Standing:
    """Save a description to be submitted for each new revision of a branch.

    Raises NotAllowed, FieldRefused with the field's name, and for the description SpecError and SubmissionRejected.
    """
    check_may(by, "submit", "create standing experiments", scopes=scopes)
    return _save(Standing(owner=by), fields, by)


def change_standing(
    *, name: str, by: User, changes: Mapping[str, Any], scopes: Sequence[str] | None = None
) -> Standing:
    """Change some of StandingFields. Raises the errors of `make_standing`, and UnknownRow."""
    with transaction.atomic():
        # Locked before it is read: of two changes at once, the second is made to what the first one wrote.
        Standing.objects.select_for_update().filter(name=name).first()
        standing = own_standing(name=name, by=by, scopes=scopes)
        now = attributes(standing, _PLAIN_FIELDS) | {"spec": without_defaults(standing.spec)}
        return _save(standing, StandingFields(**{**now, **changes}), by)


def remove_standing(*, name: str, by: User, scopes: Sequence[str] | None = None) -> None:
    """Delete a standing experiment and its alerts; its experiments stay. Raises UnknownRow, NotAllowed."""
    own_standing(name=name, by=by, scopes=scopes).delete()


def enable_standing(*, name: str, by: User, enabled: bool) -> None:
    """Enable or disable the search for new revisions. Raises UnknownRow, NotAllowed."""
    standing = own_standing(name=name, by=by)
    standing.enabled = enabled
    standing.save(update_fields=["enabled"])


def run_standing(*, name: str, by: User, scopes: Sequence[str] | None = None) -> Standing:
    """Check its branch now, and measure it even if it has not changed. Raises UnknownRow, NotAllowed, FieldRefused."""
    standing = own_standing(name=name, by=by, scopes=scopes)
    if not standing.enabled:
        raise FieldRefused("enabled", f'"{name}" is disabled: enable it first')
    _mark_due(standing, last_commit="", refused=[])
    standing.refresh_from_db()
    return standing


def own_standing(*, name: str, by: User, scopes: Sequence[str] | None = None) -> Standing:
    """Return a standing experiment that this person may change. Raises UnknownRow, NotAllowed."""
    standing = find_standing(name)
    if not may_change(by, standing.owner, scopes=scopes):
        whose = f"is {standing.owner.username}'s" if standing.owner else "has lost its owner"
        raise NotAllowed(f'"{name}" {whose}: only its owner and operators can change it')
    return standing


def find_standing(name: str) -> Standing:
    """Return the standing experiment of that name. Raises UnknownRow."""
    return one_row(
        Standing.objects.select_related("owner", "tree").filter(name=name),
        f'standing experiment "{name[:100]}"',
    )


def take_push(*, name: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Check the branch at once because a forge reports a push. Return False if the signature is wrong.

    headers: names in any case. An unknown name takes as long as a wrong signature.
    """
    standing = Standing.objects.filter(name=name, enabled=True).first()
    secret = standing.secret if standing else ""
    genuine = is_genuine(secret or secrets.token_hex(16), headers, body)
    if standing is None or not secret or not genuine:
        return False
    _mark_due(standing)
    return True


def is_genuine(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether one of a forge's headers proves that it knows the secret: all are compared, in constant time.

    GitHub, Gitea and Forgejo sign the body by HMAC-SHA256; GitLab sends the secret itself.
    """
    received = {name.lower(): value for name, value in headers.items()}
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    wanted = {
        "x-hub-signature-256": f"sha256={digest}",
        "x-gitea-signature": digest,
        "x-forgejo-signature": digest,
        "x-gitlab-token": secret,
    }
    right = [
        hmac.compare_digest(received.get(name, "").encode(), value.encode()) for name, value in wanted.items()
    ]
    return any(right)


def _mark_due(standing: Standing, **fields: Any) -> None:
    if is_quiet(standing, timezone.now()):
        fields["problem"] = f"requested in {quiet_until(standing)}; it starts then"
    Standing.objects.filter(pk=standing.pk).update(due=True, **fields)


def _save(standing: Standing, fields: StandingFields, by: User) -> Standing:
    written = list(_FORM_COLUMNS)
    spec, tree = _described(fields.spec, by)
    branch = _branch(fields.branch, tree)
    if standing.pk and (standing.tree_id, standing.branch) != (tree.pk, branch):
        # The last measured revision belongs to another branch.
        standing.last_commit = ""
        written.append("last_commit")
    standing.name = _name(fields.name)
    standing.spec, standing.tree, standing.branch = spec.model_dump(mode="json"), tree, branch
    standing.enabled, standing.backfill = fields.enabled, fields.backfill
    standing.quiet_from, standing.quiet_until = _hour("quiet_from", fields), _hour("quiet_until", fields)
    standing.poll_every_s = _poll(fields.poll_every_s)
    standing.secret = _secret(fields.secret, standing.secret)
    standing.mail_to = _addresses(fields.mail_to)
    standing.refused = []
    try:
        with transaction.atomic():
            # Workers may write the other columns of an existing row at this moment.
            standing.save(update_fields=written if standing.pk else None)
    except IntegrityError:
        raise FieldRefused(
            "name", f'there is a standing experiment "{standing.name}" already: choose another name'
        ) from None
    return standing


def _described(description: Mapping[str, Any], by: User) -> tuple[ExperimentSpec, Tree]:
    """The description with its base left open, and the row of its tree."""
    spec = spec_from_mapping({**description, "base": ""})
    find_target(spec.target)
    if spec.git is not None:
        check_address(spec.git, by)
    return spec, tree_row(find_source(spec, registered_sources()))


def _name(name: str) -> str:
    if not _NAME.fullmatch(name) or name == "new":
        raise FieldRefused("name", "a name has 1 to 100 letters, digits, dashes and underscores")
    return name


def _branch(branch: str, tree: Tree) -> str:
    kept = branch.strip().removeprefix("refs/heads/")
    if kept and tree.kind == Tree.Kind.ARCHIVE:
        raise FieldRefused(
            "branch", f"{tree.name} is a source archive, which has no branches: leave it empty"
        )
    if kept and not _BRANCH.fullmatch(kept):
        raise FieldRefused("branch", f'"{kept[:100]}" cannot be a branch')
    return kept


def _hour(name: str, fields: StandingFields) -> int:
    hour: int = getattr(fields, name)
    if hour not in range(24):
        raise FieldRefused(name, f"{hour} is not an hour of the day: give 0 to 23")
    return hour


def _poll(seconds: int) -> int:
    if seconds not in POLL_S:
        raise FieldRefused("poll_every_s", f"give {POLL_S[0]:,} to {POLL_S[-1]:,} seconds")
    return seconds


def _secret(text: str, old: str) -> str:
    secret = text.strip() or old or secrets.token_urlsafe(32)
    if not LEAST_SECRET <= len(secret) <= LONGEST_SECRET or not (secret.isascii() and secret.isprintable()):
        raise FieldRefused(
            "secret",
            f"a secret has {LEAST_SECRET} to {LONGEST_SECRET} printable characters, or none for a new one",
        )
    return secret


def _addresses(addresses: Sequence[str]) -> list[str]:
    kept = list(dict.fromkeys(address.strip() for address in addresses if address.strip()))
    if len(kept) > MOST_ADDRESSES:
        raise FieldRefused("mail_to", f"at most {MOST_ADDRESSES} addresses get a mail, these are {len(kept)}")
    for address in kept:
        try:
            validate_email(address)
        except ValidationError:
            raise FieldRefused("mail_to", f'"{address[:100]}" is not a mail address') from None
    return kept
