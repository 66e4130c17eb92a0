# SPDX-License-Identifier: GPL-2.0-or-later
"""A comparison as Markdown for a comment on GitHub or GitLab: verdicts first, all other metrics folded.

Names that people chose are code spans, so that none becomes markup, a mention of a person or a link.
"""

import re
from collections.abc import Iterator

from lab.comparisons.exports.figures import (
    CLOCK_WORDS,
    after_headline,
    doubt,
    interval,
    is_fine,
    model_and_machine_lines,
    own_medians,
)
from lab.comparisons.shape import CaseData, CellData, ComparisonData, MetricData, cells_of
from lab.figures import change, counted, number
from lab.one_line import plain
from lab.statistics.verdict_words import CHANGES, CONTROLS, shown_verdict

_HEAD = "| workload | metric | variant | before | after | change | interval | verdict |"
_RULE = "|---|---|---|--:|--:|--:|:-:|---|"
# Comments are cut or refused beyond 65,536 characters; failures and tables of rows are cut before that.
_MOST_ROWS, _MOST_FAILURES = 60, 20
Row = tuple[CaseData, MetricData, CellData]


def write_markdown(data: ComparisonData) -> str:
    """The text of the comment."""
    shown = [row for row in cells_of(data) if _is_shown(row)]
    rest = [row for row in cells_of(data) if not _is_shown(row)]
    fine = is_fine(data)
    lines = [f"### kperflab: {prose(data['conclusion']['headline'])}", ""]
    if rest_of_it := after_headline(data):
        lines += [prose(rest_of_it), ""]
    lines += [_what(data), ""]
    lines += _table(shown, fine=fine)
    beside = [line for case in data["cases"] for line in model_and_machine_lines(case)]
    lines += [f"- {prose(line)}" for line in beside[:_MOST_ROWS]]
    lines += [f"- {line}" for line in _failures(data)]
    if rest:
        lines += ["", "<details><summary>Other metrics, and the controls</summary>", ""]
        lines += [*_table(rest, fine=fine), "", "</details>"]
    lines += ["", _method(data)]
    return "".join(f"{line}\n" for line in lines)


def _is_shown(row: Row) -> bool:
    """Return whether a row is shown open: a candidate's primary metric, or one of its changes."""
    _, metric, cell = row
    return cell["role"] == "candidate" and (metric["primary"] or cell["verdict"] in CHANGES)


def code(name: str) -> str:
    """Return a code span that shows exactly this text on one line."""
    text = plain(name)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if len(fence) > 1 else ""
    return f"{fence}{pad}{text}{pad}{fence}" if text else ""


def prose(text: str) -> str:
    """Return a sentence with all Markdown signs escaped, in which no name becomes a link."""
    escaped = re.sub(r"([\\`*\[\]<>#|~@]|(?<!\w)_|_(?!\w))", r"\\\1", text)
    return re.sub(r"(?i)\b(www)\.", r"\1\\.", escaped).replace("://", "\\://")


def _in_table(name: str) -> str:
    return code(name).replace("|", "\\|")


def _what(data: ComparisonData) -> str:
    base, asked = data["base"], data["experiment"]
    subject = f"{code(asked['name'])} on {code(base['tree'])} {code(base['revision'])} ({code(base['commit'][:12])})"
    # Without the lab's own address there is only a path, which would lead into the reader's forge.
    link = data["permalink"]
    return f"{subject} · [all of it]({link})" if re.fullmatch(r"https?://[^\s()<>]+", link) else subject


def _table(rows: list[Row], *, fine: bool) -> list[str]:
    if not rows:
        return []
    lines = [_HEAD, _RULE]
    lines += [_row(*row, fine=fine) for row in rows[:_MOST_ROWS]]
    if len(rows) > _MOST_ROWS:
        lines += ["", f"and {len(rows) - _MOST_ROWS} more rows"]
    return lines


def _row(case: CaseData, metric: MetricData, cell: CellData, *, fine: bool) -> str:
    shown = shown_verdict(cell["verdict"], cell["role"])
    verdict = f"**{shown.word}**" if shown.change and metric["primary"] else shown.word
    if shown.change and cell["role"] in CONTROLS:
        verdict = f"\N{WARNING SIGN} **{shown.word}**"
    why = [doubt(cell, fine=fine)]
    if shown.kind == "inconclusive" and cell["boots_needed"]:
        why.append(f"about {cell['boots_needed']:,} boots needed")
    if any(why):
        verdict += f" ({'; '.join(filter(None, why))})"
    note = own_medians(cell, fine=fine)
    unit = f" [{plain(metric['unit'])}]" if metric["unit"] else ""
    fields = [
        _in_table(case["title"]),
        _in_table(f"{metric['name']}{unit}"),
        _in_table(cell["variant"]),
        number(cell["base_median"]),
        number(cell["median"]),
        change(cell["ratio"], fine=fine) + (f" ({note})" if note else ""),
        interval(cell, fine=fine) or "-",
        verdict,
    ]
    return f"| {' | '.join(fields)} |"


def _failures(data: ComparisonData) -> Iterator[str]:
    failures = [
        f"{code(variant['name'])} was not built: {code(variant['problem'])}"
        for variant in data["variants"]
        if variant["state"] == "failed"
    ]
    failures += [
        f"{code(failure['variant'])}, {code(case['title'])}: {counted(failure['boots'], 'boot')} ended as {failure['outcome']}: {code(failure['problem'])}"
        for case in data["cases"]
        for failure in case["failures"]
    ]
    yield from failures[:_MOST_FAILURES]
    if len(failures) > _MOST_FAILURES:
        yield f"and {len(failures) - _MOST_FAILURES} more failures"


def _method(data: ComparisonData) -> str:
    asked, where = data["experiment"], data["environment"]
    boots = f"{'up to ' if asked['sequential'] else ''}{asked['boots']} boots of each kernel in random order"
    clock = CLOCK_WORDS.get(asked["clock"], "wall clock")
    machine = counted(where["vcpus"], "vCPU")
    machine += f", {code(where['accelerator'])}" if where["accelerator"] else ""
    return f"<sub>{boots}, {clock}, {machine}. Medians of boots; a verdict depends on the interval of a change, not on its size.</sub>"
