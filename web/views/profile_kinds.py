# SPDX-License-Identifier: GPL-2.0-or-later
"""The words of each kind of profiles, and the overhead of recording it."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from urllib.parse import urlencode

from lab.profiles.analysis.weight_unit import Unit
from lab.profiles.case_profiles import ProfilingCost
from lab.profiles.shape import ProfileColumn, ProfilePage
from web.words import change, count, number, quantity, share


@dataclass(frozen=True, slots=True)
class KindWords:
    """label: its chip. graph: of its flame graph. head: over a table's rows. own, total: what the two columns count."""

    label: str
    graph: str
    head: str
    own: str
    total: str


WORDS: Mapping[str, KindWords] = {
    "cpu": KindWords(
        "On CPU",
        "flame graph",
        "Share of busy samples",
        "samples in the symbol itself",
        "samples in it or its callees, a share counted once",
    ),
    "lock": KindWords(
        "Lock waits",
        "flame graph of lock waits",
        "Wait for locks, per boot",
        "time waited for locks in the symbol itself, per boot; below it the share of all such waiting",
        "time waited in it or its callees",
    ),
    "off-cpu": KindWords(
        "Off CPU",
        "flame graph of time off the CPU",
        "Off the CPU, per boot",
        "time off the CPU with the symbol innermost, per boot; below it the share of all such time",
        "time off the CPU in it or its callees",
    ),
    "exact": KindWords(
        "Exact",
        "exact flame graph",
        "Instructions per boot",
        "instructions executed in the symbol itself",
        "instructions in it or its callees, each counted once",
    ),
    "waiting": KindWords(
        "Waiting",
        "flame graph of waiting",
        "Cycles waited per operation",
        "cycles waited in the symbol for another CPU's lock or cache line, per operation; below it the share of all waiting",
        "cycles waited in it or its callees",
    ),
}


@dataclass(frozen=True, slots=True)
class KindLink:
    """One kind to choose from; cost: the overhead of recording it, in words."""

    kind: str
    label: str
    query: str
    chosen: bool
    cost: str


def kind_links(page: ProfilePage, kept: Mapping[str, str]) -> list[KindLink]:
    """Return the kinds that the case has, and the current kind even if the case has none. kept: the rest of their queries."""
    there = {cost.kind: cost for cost in page.costs}
    return [
        KindLink(
            kind=kind,
            label=words.label,
            query=urlencode({"kind": kind, **kept}),
            chosen=kind == page.kind,
            cost=cost_of(there[kind]) if kind in there else "",
        )
        for kind, words in WORDS.items()
        if kind in there or kind == page.kind
    ]


def cost_of(cost: ProfilingCost) -> str:
    """Return the overhead of this kind: "+1.2 % of the time, from 0.9 to 1.5 over 6 boots; 12 lost"."""
    boots = count(cost.boots, "boot")
    text = f"not measured ({boots})"
    if cost.overhead is not None and cost.low is not None and cost.high is not None:
        low, high = change(1 + cost.low), change(1 + cost.high)
        text = f"{change(1 + cost.overhead)} of the time ({low} to {high} over {boots})"
    return f"{text}; {number(cost.lost)} lost" if cost.lost else text


def taken(column: ProfileColumn, unit: Unit) -> str:
    """Return the amount that a variant's boots hold: samples, instructions, cycles, or waits and their time."""
    if unit == "instructions":
        return f"{number(column.boots[0].samples)} instructions of each boot's timed iterations"
    if unit == "samples":
        return count(column.samples, "sample")
    if unit == "cycles":
        return f"{number(median(boot.samples for boot in column.boots))} cycles waited per operation"
    times = f"{count(column.waits, 'wait')}, " if column.waits else ""
    return f"{times}{quantity(column.samples, 'ns')} in all"


def idle_of(column: ProfileColumn, *, waits: bool) -> str:
    """Return the idle share of a variant's samples; "" for waits, which have none."""
    return "" if waits else share(column.idle, 1)
