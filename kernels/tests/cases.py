# SPDX-License-Identifier: GPL-2.0-or-later
"""The cases of a test: some of them in each run, the others in `make test-all`."""

from collections.abc import Collection

import pytest


def cases(every: Collection[str], quick: Collection[str]) -> list[object]:
    """Return the cases for pytest's parametrize, all but the quick ones marked thorough.

    Raises ValueError if a quick one is not among them, as after it was renamed.
    """
    if missing := [case for case in quick if case not in every]:
        raise ValueError(f"none of the test's cases: {missing[0]!r}")
    return [case if case in quick else pytest.param(case, marks=pytest.mark.thorough) for case in every]
