# SPDX-License-Identifier: GPL-2.0-or-later
"""Which git addresses somebody may send this machine to.

A location is text; what talks to a repository takes an Address, which only these functions make of it. Each call looks the name up
and holds git to the answer, so that a name that points elsewhere a moment later leads nowhere.
"""

from django.conf import settings

from kernels.address import Address, is_local, own_address, public_address
from kernels.errors import KernelsError
from lab.access import may
from lab.errors import SubmissionRejected
from lab.models import User
from lab.spec import ExperimentSpec


def check_tree_location(spec: ExperimentSpec, by: User | None) -> None:
    """Refuse a description whose tree is somewhere its submitter may not send us. Raises SubmissionRejected."""
    if spec.git is None:
        return
    try:
        checked_location(spec.git, by)
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
    try:
        return tree_address(location) if own else _site_address(location)
    except KernelsError as exc:
        if exc.blame != "submission":
            raise
        raise SubmissionRejected(str(exc), exc.detail) from exc


def tree_address(location: str) -> Address:
    """Return the address of a location that `checked_location` has allowed somebody to name before, such as a registered tree's.

    A URL is looked up anew, and refused where it leads to a closed network now. Raises UnknownTree.
    """
    return own_address(location) if is_local(location) else _site_address(location)


def _site_address(location: str) -> Address:
    return public_address(location, private=settings.PRIVATE_ADDRESSES)
