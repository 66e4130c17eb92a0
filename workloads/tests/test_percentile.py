# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from workloads.percentile import percentile


def test_a_percentile_lies_within_a_bucket_of_the_samples_own() -> None:
    samples = np.random.default_rng(1).lognormal(3, 1, 20_000)
    counts = Counter(int(sample) for sample in samples)
    for share in (0.5, 0.9, 0.99, 0.999):
        assert percentile(counts, share) == pytest.approx(float(np.quantile(samples, share)), abs=1.0)


def test_a_percentile_is_interpolated_within_its_bucket() -> None:
    assert percentile({40: 4}, 0.5) == 40.5
    assert percentile({40: 1, 50: 3}, 0.25) == 41.0


def test_a_percentile_never_exceeds_the_maximum() -> None:
    assert percentile({7: 10}, 0.9999, top=7.0) == 7.0


def test_a_percentile_beyond_the_histogram_is_the_maximum() -> None:
    assert percentile({1: 90}, 0.99, overflow=10, top=900.0) == 900.0
    assert percentile({1: 90}, 0.5, overflow=10, top=900.0) < 2
