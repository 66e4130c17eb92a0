# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks as JUnit XML: a suite for each case, a test for each metric of a variant."""

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from lab.comparisons.conclusion.conclude import PARAGRAPH
from lab.comparisons.exports.checks import ReportCheck, checks
from lab.comparisons.shape import ComparisonData
from lab.one_line import plain

_KIND = {"failed": Failure, "error": Error, "skipped": Skipped}


def write_junit(data: ComparisonData) -> str:
    """The XML text; names stand in attributes, escaped and on one line."""
    suites: dict[str, TestSuite] = {}
    for check in checks(data):
        if check.group not in suites:
            suites[check.group] = _suite(data, check.group)
        suites[check.group].add_testcase(_entry(check))
    whole = JUnitXml(plain(data["experiment"]["name"]))
    for suite in suites.values():
        whole.add_testsuite(suite)
    text: bytes = whole.tostring()  # type: ignore[no-untyped-call]  # of the library
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text.decode()}\n'


def _suite(data: ComparisonData, group: str) -> TestSuite:
    suite = TestSuite(group)
    suite.hostname = plain(data["environment"]["target"])
    suite.timestamp = data["experiment"]["finished"] or data["experiment"]["submitted"]
    for name, value in (
        ("base", f"{data['base']['tree']} {data['base']['revision']} ({data['base']['commit']})"),
        ("clock", data["experiment"]["clock"]),
        ("conclusion", data["conclusion"]["text"]),
        ("permalink", data["permalink"]),
    ):
        suite.add_property(name, plain(value, PARAGRAPH))
    return suite


def _entry(check: ReportCheck) -> TestCase:
    # Readers split a class name at its dots.
    entry = TestCase(check.name, classname=f"kperflab.{check.group.replace('.', '_')}")
    if check.outcome in _KIND:
        entry.result = _KIND[check.outcome](check.message, "kperflab")
    if output := "\n".join(filter(None, (check.figures, check.message))):
        entry.system_out = output
    return entry
