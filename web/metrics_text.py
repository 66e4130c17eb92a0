# SPDX-License-Identifier: GPL-2.0-or-later
"""Write figures in Prometheus' text format: some twenty thousand lines of a large lab, so no object is made for a line.

https://prometheus.io/docs/instrumenting/exposition_formats/. The client library makes two objects a line, which took
half of a scrape; what it counts itself, it writes itself.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from prometheus_client.utils import floatToGoString

from lab.operations.last_hour import BOUNDS, DurationHistogram

# The key has the values of the labels, in the order of their names: a tuple with one text per label.
Values = Mapping[Any, float]
Rows = Mapping[Any, Sequence[float | None]]
Histograms = Mapping[Any, DurationHistogram]
_number: Callable[[float], str] = floatToGoString
_BOUNDS = [*map(_number, BOUNDS), "+Inf"]


def gauge(name: str, about: str, labels: Sequence[str], values: Values) -> Iterator[str]:
    """Write one family of gauges."""
    yield from gauges([(name, about)], labels, {key: (value,) for key, value in values.items()})


def gauges(families: Sequence[tuple[str, str]], labels: Sequence[str], rows: Rows) -> Iterator[str]:
    """Write several families with the same labels; a row has a value for each family, None for none."""
    marked = [(f"{{{_pairs(labels, key)}}}" if labels else "", rows[key]) for key in sorted(rows)]
    for place, (name, about) in enumerate(families):
        yield _head(name, about, "gauge")
        for braces, values in marked:
            if (value := values[place]) is not None:
                yield f"{name}{braces} {_number(value)}\n"


def counter(name: str, about: str, value: float) -> Iterator[str]:
    """Write a counter without labels."""
    yield f"{_head(f'{name}_total', about, 'counter')}{name}_total {_number(value)}\n"


def histogram(name: str, about: str, labels: Sequence[str], values: Histograms) -> Iterator[str]:
    """Write histograms of a time window. Their counts also fall: take quantiles of the buckets as they are, without a rate."""
    rows = [(_pairs(labels, key), values[key]) for key in sorted(values)]
    yield _head(name, about, "histogram")
    for pairs, durations in rows:
        for bound, below in zip(_BOUNDS, accumulate(durations.buckets), strict=True):
            yield f'{name}_bucket{{le="{bound}",{pairs}}} {below}.0\n'
    yield _head(f"{name}_gcount", about, "gauge")
    yield from (f"{name}_gcount{{{pairs}}} {sum(durations.buckets)}.0\n" for pairs, durations in rows)
    yield _head(f"{name}_gsum", about, "gauge")
    yield from (f"{name}_gsum{{{pairs}}} {_number(durations.sum_s)}\n" for pairs, durations in rows)


def _head(name: str, about: str, kind: str) -> str:
    return f"# HELP {name} {about}\n# TYPE {name} {kind}\n"


def _pairs(labels: Sequence[str], key: tuple[str, ...]) -> str:
    return ",".join(f'{label}="{_escaped(value)}"' for label, value in zip(labels, key, strict=True))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
