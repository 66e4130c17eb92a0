# SPDX-License-Identifier: GPL-2.0-or-later
"""Tell which withdrawal of trust counts: what the compiler front kept before it answers no build any more (docs/design/origins.md)."""

from lab.models import Withdrawal


def last_withdrawal() -> str:
    """Return the token of the lab's last withdrawal, "" before the first."""
    return Withdrawal.objects.values_list("token", flat=True).first() or ""
