# SPDX-License-Identifier: GPL-2.0-or-later
"""A comparison as JSON and as CSV, from its plain data, without Django."""

import csv
import io
import json

from lab.comparisons.shape import ComparisonData, cells_of
from lab.figures import medians_ratio
from lab.one_line import as_cell

COLUMNS = (
    *("workload", "preset", "metric", "unit", "better", "primary", "variant", "role", "boots", "base_median"),
    *("median", "ratio", "low", "high", "verdict", "boots_needed", "p", "q", "effect", "floor", "margin"),
    *("partial", "reason", "notes", "medians_ratio", "title"),
)


def write_comparison(data: ComparisonData) -> str:
    """Return the JSON text. Raises ValueError for NaN, which JSON does not have."""
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_csv(data: ComparisonData) -> str:
    """Return a line for each case, metric and variant; columns COLUMNS, named as in the JSON, empty where it has null."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for case, metric, cell in cells_of(data):
        row = {**case, **metric, **cell, "metric": metric["name"], "notes": "; ".join(cell["notes"])}
        # Computed here: a lab of an older version does not send it.
        row["medians_ratio"] = medians_ratio(cell["base_median"], cell["median"])
        writer.writerow(_csv(row[column]) for column in COLUMNS)
    return text.getvalue()


def _csv(value: object) -> object:
    if isinstance(value, str):
        return as_cell(value)
    return str(value).lower() if isinstance(value, bool) else value
