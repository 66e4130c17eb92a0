# SPDX-License-Identifier: GPL-2.0-or-later
"""Texts written from a comparison's plain data, read back by the readers of those texts."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from junitparser import Error, Failure, JUnitXml, Skipped

from lab.comparisons.exports.figures import doubt
from lab.comparisons.exports.formats import OF_DATA, REPORT_FORMS
from lab.comparisons.exports.junit import write_junit
from lab.comparisons.exports.ktap import write_ktap
from lab.comparisons.exports.markdown import code, write_markdown
from lab.comparisons.exports.texts import COLUMNS, write_csv
from lab.comparisons.shape import ComparisonData
from lab.statistics.verdict_words import CHANGES
from lab.tests.comparisons import (
    HOSTILE,
    any_data,
    hostile,
    make_case,
    make_cell,
    make_data,
    make_metric,
    make_variant,
    two_patches,
)

GOLDEN = Path(__file__).parent / "golden"
SUFFIXES = {
    "json": "json",
    "csv": "csv",
    "markdown": "md",
    "junit": "junit.xml",
    "ktap": "ktap",
    "reply": "reply.txt",
}


def matches_golden(name: str, text: str) -> bool:
    """Return whether a text is the stored one; KPERFLAB_GOLDEN=1 stores it again, to be read before it is committed."""
    place = GOLDEN / name
    if os.environ.get("KPERFLAB_GOLDEN") == "1":
        place.write_text(text)
    return place.read_text() == text


@pytest.mark.parametrize("form", OF_DATA)
def test_every_form_of_a_comparison_is_as_it_was_last_read_by_a_person(form: str) -> None:
    text = REPORT_FORMS[form].render(two_patches())
    assert matches_golden(f"two-patches.{SUFFIXES.get(form, 'txt')}", text)


@given(data=any_data())
def test_any_comparison_can_be_written_in_any_form(data: ComparisonData) -> None:
    """All properties of one comparison: drawing it takes longer than writing it."""
    texts = {form: REPORT_FORMS[form].render(data) for form in OF_DATA}
    assert all(text.endswith("\n") for text in texts.values()), texts
    keeps_its_plan_and_a_parent_fails_with_its_children(texts["ktap"])
    has_rows_with_as_many_fields_as_their_head(texts["markdown"])


@pytest.mark.process
def test_texts_are_written_without_django_and_its_tables() -> None:
    program = (
        "import sys; from pkgutil import resolve_name; from lab.comparisons.exports.formats import *; "
        "[resolve_name(f'lab.comparisons.{REPORT_FORMS[form].writer}') for form in OF_DATA]; "
        "print('django' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("reason", "low", "said"),
    [
        # As after an early look, whose level is stricter than 5 %.
        ("could be faster or slower; about 9 boots needed", 0.98, ""),
        (
            "smaller than the effect of code layout alone here (±6.00%)",
            1.01,
            "within the floor of 6.0%",
        ),
        (
            "significant alone (p = 0.03), not among 4 metrics (q = 0.06): the interval, of 97.5 %, allows for them",
            0.99,
            "q 0.06 over all metrics",
        ),
    ],
)
def test_other_metrics_are_named_only_where_they_hold_a_verdict_back(
    reason: str, low: float, said: str
) -> None:
    numbers: dict[str, Any] = {"ratio": 1.03, "low": low, "high": 1.05, "floor": 0.06, "p": 0.03, "q": 0.06}
    assert doubt(make_cell("p", "inconclusive", reason=reason, **numbers)) == said


def results(data: ComparisonData) -> dict[str, str]:
    """By the name of a test case: what JUnit's reader makes of it, with the message."""
    outcomes = {}
    for suite in JUnitXml.fromstring(write_junit(data).encode()):
        for entry in suite:
            kinds = [f"{type(result).__name__}: {result.message}" for result in entry.result]
            outcomes[entry.name] = " ".join(kinds) or "passed"
    return outcomes


def test_in_junit_a_regression_fails_and_what_cannot_be_told_is_skipped_with_its_reason() -> None:
    cells = [
        make_cell("worse", "regression", ratio=1.2, low=1.1, high=1.3),
        make_cell("better", "improvement", ratio=0.8, low=0.7, high=0.9),
        make_cell("same", "unchanged"),
        make_cell("unclear", "inconclusive", reason="about 26 boots needed"),
        make_cell("base-again", "regression", "a/a"),
    ]
    data = make_data([make_case([make_metric("m", cells), make_metric("n", cells[:1], primary=False)])], [])
    outcomes = results(data)
    assert outcomes["worse: m"] == "Failure: regression: +20.0% [+10.0%, +30.0%]"
    assert (outcomes["better: m"], outcomes["same: m"]) == ("passed", "passed")
    assert outcomes["unclear: m"] == "Skipped: inconclusive: about 26 boots needed"
    assert outcomes["worse: n"].startswith("Skipped: regression of a secondary metric")
    assert not any(name.startswith("base-again") for name in outcomes)


def test_in_junit_the_lab_errs_where_a_kernel_fails() -> None:
    failures = [
        {"variant": "p", "outcome": "lost", "blame": "lab", "problem": "no answer", "boots": 2},
        {"variant": "q", "outcome": "panicked", "blame": "kernel", "problem": "Oops", "boots": 1},
        {"variant": "base", "outcome": "panicked", "blame": "kernel", "problem": "Oops", "boots": 1},
    ]
    variants = [
        make_variant("p", state="failed", problem="disk full", blame="lab"),
        make_variant("q", state="failed", problem="fs/inode.c:1: error", blame="kernel"),
    ]
    data = make_data(
        [make_case([], failures=failures)], variants, experiment={"state": "failed", "problem": "x"}
    )
    outcomes = results(data)
    assert outcomes["p: kernel"] == "Error: not built: disk full"
    assert outcomes["q: kernel"] == "Failure: not built: fs/inode.c:1: error"
    assert outcomes["p: boots"] == "Error: 2 boots ended as lost: no answer"
    assert outcomes["q: boots"] == "Failure: 1 boot ended as panicked: Oops"
    assert outcomes["base: boots"].startswith("Error: ")
    assert outcomes["experiment"] == "Error: x"


def test_junit_counts_what_it_holds() -> None:
    suite = next(
        iter(s for s in JUnitXml.fromstring(write_junit(two_patches()).encode()) if "show" in s.name)
    )
    kinds = [type(result) for entry in suite for result in entry.result]
    assert (suite.failures, suite.errors, suite.skipped) == tuple(
        kinds.count(kind) for kind in (Failure, Error, Skipped)
    )
    assert (suite.tests, suite.hostname) == (4, "guest")


def test_a_hostile_name_stays_one_attribute_of_the_xml() -> None:
    read = JUnitXml.fromstring(write_junit(hostile()).encode())
    names = {entry.name for suite in read for entry in suite}
    # A kernel, boots and a metric each.
    assert len(names) == 1 + 3 * len(HOSTILE)
    assert all("\n" not in name and "\x1b" not in name for name in names)


KTAP_LINE = re.compile(r"( *)(KTAP version 1|1\.\.\d+|(not )?ok (\d+) [^#]*( # .*)?|# .*)")


def ktap_levels(text: str) -> dict[int, list[str]]:
    """Lines by the depth of their indent; fails at a line that KTAP does not know."""
    levels: dict[int, list[str]] = {}
    for line in text.removesuffix("\n").split("\n"):
        match = KTAP_LINE.fullmatch(line)
        assert match, line
        levels.setdefault(len(match[1]) // 2, []).append(line.strip())
    return levels


def keeps_its_plan_and_a_parent_fails_with_its_children(ktap: str) -> None:
    lines = ktap.split("\n")
    assert lines[0] == "KTAP version 1"
    outer = [line for line in lines if re.match(r"(not )?ok ", line)]
    assert lines[1] == f"1..{len(outer)}"
    assert [int(line.split("ok ")[1].split()[0]) for line in outer] == list(range(1, len(outer) + 1))
    ktap_levels("\n".join(lines))
    for block, parent in zip(ktap.split("  KTAP version 1\n")[1:], outer, strict=True):
        own = [line.strip() for line in block.split("\n") if line.startswith("  ") and "ok " in line[:9]]
        assert block.startswith(f"  1..{len(own)}\n")
        assert parent.startswith("not ok") == any(line.startswith("not ok") for line in own)


def test_ktap_gives_the_figures_before_the_line_they_are_about() -> None:
    inner = ktap_levels(write_ktap(two_patches()))[1]
    at = next(n for n, line in enumerate(inner) if line.startswith("ok 1 iattr-global: ns_per_open"))
    assert inner[at].endswith("# SKIP inconclusive: could be faster or slower; about 26 boots needed")
    assert inner[at - 1].startswith("# iattr-global: ns_per_open: 39,210 -> 41,837 ns, +6.7%")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_in_markdown_is_a_code_span_that_nothing_leaves(name: str) -> None:
    span = code(name)
    fence = re.match("`+", span)
    assert fence
    assert "\n" not in span
    # The fence does not occur inside, so a reader takes all of it for the name.
    assert not re.search(f"(?<!`){fence[0]}(?!`)", span[len(fence[0]) : -len(fence[0])])
    assert span.endswith(fence[0])


def has_rows_with_as_many_fields_as_their_head(markdown: str) -> None:
    rows = [line for line in markdown.split("\n") if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} <= {9}


def test_markdown_links_only_to_an_address() -> None:
    assert "](https://lab.example/" in write_markdown(two_patches())
    assert "javascript:alert" not in write_markdown(hostile())


def test_a_csv_has_a_line_a_metric_and_variant_and_no_formula() -> None:
    rows = list(csv.DictReader(io.StringIO(write_csv(hostile()))))
    assert len(rows) == len(HOSTILE)
    assert all(tuple(row) == COLUMNS for row in rows)
    assert not any(value.startswith(("=", "+", "@")) for row in rows for value in row.values())
    assert {row["verdict"] for row in rows} == {"regression"}


def test_the_json_is_the_data_itself() -> None:
    data = two_patches()
    assert json.loads(REPORT_FORMS["json"].render(data)) == data


class Uncompared(dict[str, Any]):
    """A cell that must not be compared with others: the time would grow with the square of the rows."""

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        raise AssertionError("two rows were compared")


def test_markdown_does_not_compare_each_row_with_all_others() -> None:
    cells: Any = [Uncompared(make_cell(name, verdict)) for name in "pq" for verdict in CHANGES]
    data = make_data([make_case([make_metric("m", cells, primary=False)])], [make_variant("p")])
    assert "| showgids" not in write_markdown(data).partition("<details>")[2]
