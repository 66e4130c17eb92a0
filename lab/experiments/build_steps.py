# SPDX-License-Identifier: GPL-2.0-or-later
"""Compute the share of a build that is done, and the time that the rest takes, from its objects. Pure."""

# make's own start and the last links make a guess from fewer worthless.
LEAST_SHARE, LEAST_S = 0.05, 5.0


def steps_percent(done: int, expected: int) -> int | None:
    """Return the share of steps that are done, None while nothing is known; 100 is only said by a build that ended."""
    return min(99, 100 * done // expected) if expected > 0 else None


def steps_left_s(done: int, expected: int, elapsed_s: float) -> float | None:
    """Return the seconds a build still takes at the pace of its steps so far, None while that says nothing."""
    if expected <= 0 or done < LEAST_SHARE * expected or elapsed_s < LEAST_S:
        return None
    return elapsed_s * max(0, expected - done) / done
