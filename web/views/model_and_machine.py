# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of a case in which the contention clock's model stands beside what hardware measured."""

from __future__ import annotations

from dataclasses import dataclass

from lab.comparisons.shape import CaseData, ShiftData, SideData
from web.words import change


@dataclass(frozen=True, slots=True)
class BesideTable:
    """Changes from the base on so many CPUs. rows: a patch's name, then change and interval of model and machine."""

    cpus: int
    model: SideData
    machine: SideData
    rows: tuple[tuple[str, tuple[tuple[str, str], tuple[str, str]]], ...]
    different: str


def beside_tables(case: CaseData) -> tuple[BesideTable, ...]:
    """Return a table for each number of CPUs that both a model and a machine ran the case on."""
    return tuple(
        BesideTable(
            one["cpus"],
            one["model"],
            one["machine"],
            tuple((row["variant"], (_shift(row["model"]), _shift(row["machine"]))) for row in one["rows"]),
            "; ".join(one["different"]),
        )
        for one in case["models_and_machines"]
    )


def _shift(shift: ShiftData) -> tuple[str, str]:
    if shift["low"] is None or shift["high"] is None:
        return change(shift["ratio"]), ""
    return change(shift["ratio"]), f"{change(shift['low'])} to {change(shift['high'])}"
