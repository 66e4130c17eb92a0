# SPDX-License-Identifier: GPL-2.0-or-later
"""The headline where counts are 0, so that there is a verdict but no ratio."""

from __future__ import annotations

from lab.comparisons.conclusion.conclude import conclude
from lab.comparisons.conclusion.facts import MetricFact
from lab.comparisons.tests.test_conclusion import P, Q, case, facts


def test_kernels_that_are_worse_without_a_ratio() -> None:
    zeros = MetricFact("ns_per_open", "regression", None, None, None, 10)
    evidence = facts(case({"p": (zeros,), "q": (zeros,)}), kernels=(P, Q))
    assert conclude(evidence).headline == "Regression: p and q make stat-walk worse, ns_per_open no ratio."
