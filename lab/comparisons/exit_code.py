# SPDX-License-Identifier: GPL-2.0-or-later
"""The exit code of an experiment for pipelines: labctl exits with it, reports contain it."""

from lab.experiments.counts import ExperimentCounts
from lab.statistics.verdict_words import VERDICTS

EXIT_OK, EXIT_REGRESSION, EXIT_UNKNOWN, EXIT_LAB = 0, 1, 2, 3


def exit_code(state: str, counts: ExperimentCounts) -> int:
    """Return 0: no regression. 1: one. 2: the data cannot tell, or a candidate has no verdict at all. 3: the lab failed.

    counts: with the verdicts on candidates' primary metrics.
    """
    if state in {"failed", "cancelled"}:
        return EXIT_LAB
    codes = {VERDICTS[word].exit_code for word, count in counts.verdicts.items() if count}
    if EXIT_REGRESSION in codes:
        return EXIT_REGRESSION
    return EXIT_UNKNOWN if EXIT_UNKNOWN in codes or not codes or counts.unjudged else EXIT_OK
