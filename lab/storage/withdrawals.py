# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the last withdrawal of trust: no build uses what the compiler front stored before it (docs/design/origins.md)."""

from lab.models import Withdrawal


def last_withdrawal() -> str:
    """Return the token of the lab's last withdrawal, "" before the first."""
    return Withdrawal.objects.values_list("token", flat=True).first() or ""
