# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks as KTAP version 1 (Documentation/dev-tools/ktap.rst of the kernel): a level for each case, a line for each metric.

The figures stand in diagnostic lines before the line they are about. A parent whose lines are all skipped is skipped.
"""

from collections.abc import Iterator

from lab.comparisons.exports.checks import ReportCheck, checks
from lab.comparisons.shape import ComparisonData

# Programs act on the directive after the sign #: SKIP and ERROR are the standard's own words.
_DIRECTIVES = {"passed": "", "failed": "", "error": "ERROR", "skipped": "SKIP"}


def write_ktap(data: ComparisonData) -> str:
    """Return the text; each name is on one line, without the # that begins a directive."""
    groups: dict[str, list[ReportCheck]] = {}
    for check in checks(data):
        groups.setdefault(check.group, []).append(check)
    lines = ["KTAP version 1", f"1..{len(groups)}", f"# {_diagnostic(data['conclusion']['text'])}"]
    for number, (title, group) in enumerate(groups.items(), 1):
        lines += [f"  {line}" for line in _group(group)]
        lines.append(_parent(number, title, group))
    if data["permalink"]:
        lines.append(f"# {_diagnostic(data['permalink'])}")
    return "".join(f"{line}\n" for line in lines)


def _group(group: list[ReportCheck]) -> Iterator[str]:
    yield "KTAP version 1"
    yield f"1..{len(group)}"
    for number, check in enumerate(group, 1):
        if check.figures:
            yield f"# {_name(check.name)}: {_diagnostic(check.figures)}"
        yield _line(number, check.name, check.outcome, check.message)


def _parent(number: int, title: str, group: list[ReportCheck]) -> str:
    outcomes = {check.outcome for check in group}
    if outcomes & {"failed", "error"}:
        return _line(number, title, "failed", "")
    if outcomes == {"skipped"}:
        return _line(number, title, "skipped", "nothing in it could be told")
    return _line(number, title, "passed", "")


def _line(number: int, name: str, outcome: str, message: str) -> str:
    held = "ok" if outcome in {"passed", "skipped"} else "not ok"
    directive = f"{_DIRECTIVES[outcome]} {_diagnostic(message)}".strip()
    return f"{held} {number} {_name(name)}" + (f" # {directive}" if directive else "")


def _name(name: str) -> str:
    """Return a description without the # that begins a directive."""
    return name.replace("#", "_")


def _diagnostic(text: str) -> str:
    return text.replace("#", "_")
