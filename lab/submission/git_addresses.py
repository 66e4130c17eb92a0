# SPDX-License-Identifier: GPL-2.0-or-later
"""Check the git addresses that a user may send this machine to.

A location is text; code that talks to a repository takes an Address, which only these functions make from it. Each call
looks the name up and binds git to the answer, so that a name that points elsewhere a moment later has no effect.
"""

import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from django.conf import settings

from kernels.trees.address import Address, check_form, is_local, own_address, public_address
from lab.errors import SubmissionRejected
from lab.experiments.spec import ExperimentSpec
from lab.models import User
from lab.people.permissions import may
from lab.submission.blame import submission_at_fault


def check_tree_location(spec: ExperimentSpec, by: User | None) -> None:
    """Refuse a description whose tree is at an address that its submitter may not use. Raises SubmissionRejected."""
    if spec.git is not None:
        with git_refused():
            checked_location(spec.git, by)


@contextmanager
def git_refused() -> Iterator[None]:
    """Mark a refusal as one of the description's `git`."""
    try:
        yield
    except SubmissionRejected as exc:
        raise SubmissionRejected(f"git: {exc}", exc.detail, place="git") from exc


def checked_location(location: str, by: User | None) -> Address:
    """Return the address that somebody names; by: None at this machine's own terminal.

    Operators, and everybody where the site says so, may also name a folder of this machine or a place that ssh reaches;
    others a plain public address. Raises SubmissionRejected.
    """
    own = by is None or may(by, "operate") or settings.LOCAL_PATHS
    if is_local(location) and not own and "://" not in location:
        raise SubmissionRejected(
            f'"{location[:200]}": only operators may name a folder of the lab\'s machine; give a URL, or upload the patches'
        )
    with submission_at_fault():
        return tree_address(location) if own else _site_address(location)


def tree_address(location: str) -> Address:
    """Return the address of a location that `checked_location` has allowed somebody to name before, such as a registered tree's.

    A URL is looked up again, and refused where it leads to a closed network now. Raises UnknownTree.
    """
    return own_address(location) if is_local(location) else _site_address(location)


def _site_address(location: str) -> Address:
    return public_address(location, private=settings.PRIVATE_ADDRESSES)


def check_address(location: str, by: User) -> None:
    """Refuse an address that is plainly wrong for this person, without a name look-up, which web processes must not do.

    A name server may be slow: `checked_location` looks the name up in a worker. Raises SubmissionRejected.
    """
    with submission_at_fault():
        if _is_number(location):
            _site_address(location)
        elif not is_local(location):
            check_form(location)
        elif may(by, "operate") or settings.LOCAL_PATHS:
            own_address(location)
        else:
            checked_location(location, by) if "://" not in location else check_form(location)


def _is_number(location: str) -> bool:
    """Return whether the address names its host by number, which needs no look-up."""
    try:
        ipaddress.ip_address(urlsplit(location).hostname or "")
    except ValueError:
        return False
    return not is_local(location)
