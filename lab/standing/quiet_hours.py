# SPDX-License-Identifier: GPL-2.0-or-later
"""Quiet hours: whole hours (UTC) in which a standing experiment queues nothing and sends no alert."""

from datetime import datetime

from lab.models import Standing


def is_quiet(standing: Standing, now: datetime) -> bool:
    """Return whether the hours from `quiet_from` up to `quiet_until` hold `now`; they may span midnight; equal hours mean none."""
    start, end, hour = standing.quiet_from, standing.quiet_until, now.hour
    if start <= end:
        return start <= hour < end
    return hour >= start or hour < end


def quiet_until(standing: Standing) -> str:
    """Return the end of the quiet hours in words."""
    return f"quiet hours until {standing.quiet_until:02d}:00 UTC"
