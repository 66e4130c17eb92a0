# SPDX-License-Identifier: GPL-2.0-or-later
"""Adjust the p-values of many comparisons after Benjamini and Hochberg.

Of an experiment's metrics that are called changed, at most 5 % are expected to be called wrongly, however many
there are. Holm's adjustment would keep even one wrong call below 5 %, at a price in boots that
grows with every metric one looks at. Source: Benjamini & Hochberg, J. R. Stat. Soc. B 57(1), 1995.
"""

from collections.abc import Sequence
from math import isfinite

import scipy


def adjust(p_values: Sequence[float | None]) -> list[float | None]:
    """Return q-values in the same order; None (or not a number) stays None and does not count.

    A family is what one reads together: the metrics of all cases of one variant.
    """
    known = [p for p in p_values if p is not None and isfinite(p)]
    adjusted = iter(scipy.stats.false_discovery_control(known, method="bh").tolist() if known else [])
    return [float(next(adjusted)) if p is not None and isfinite(p) else None for p in p_values]
