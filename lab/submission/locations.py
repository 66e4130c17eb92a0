# SPDX-License-Identifier: GPL-2.0-or-later
"""Which git addresses somebody may send this machine to."""

from django.conf import settings

from kernels.address import Address, public_address
from kernels.errors import KernelsError
from kernels.remote import transport
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


def checked_location(location: str, by: User | None) -> tuple[Address, str]:
    """The address as git may be given it, and the one protocol for it; by: None at this machine's own terminal.

    Operators, and everybody where the site says so, may also name a folder of this machine; others a plain public
    address. Raises SubmissionRejected.
    """
    try:
        if by is None or may(by, "operate") or settings.LOCAL_PATHS:
            source, protocol = transport(location)
            if protocol in ("file", "ssh"):
                return Address(source), protocol
        elif "://" not in location:
            raise SubmissionRejected(
                f'"{location[:200]}": only operators may name a folder of the lab\'s machine; give a URL, or upload the patches'
            )
        if by is None:
            return Address(location), location.partition(":")[0]
        found = public_address(location, private=settings.PRIVATE_ADDRESSES)
    except KernelsError as exc:
        if exc.blame != "submission":
            raise
        raise SubmissionRejected(str(exc), exc.detail) from exc
    return found, found.location.partition(":")[0]
