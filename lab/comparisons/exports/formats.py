# SPDX-License-Identifier: GPL-2.0-or-later
"""The formats of a comparison's export: one table for labctl, pages and API.

Written by an experiment's number, where the tables are at hand. Those of lab/comparisons/exports/texts.py can also be written
from plain data as the API answers it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lab.comparisons.exports.data import comparison_data
from lab.comparisons.exports.kcidb import ORIGIN, write_kcidb
from lab.comparisons.exports.matrix import write_matrix
from lab.comparisons.exports.reproducer import write_reproducer
from lab.comparisons.exports.texts import RENDERED
from lab.comparisons.reply.reply import ReplyOptions, write_reply


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """The options of a report. link: the lab's own address; origin: who reports, as KCIDB knows it.

    patch: speak of this switch alone; signer: "Name <address>" of who gives a Tested-by. Both are the reply's.
    """

    link: str = ""
    origin: str = ORIGIN
    patch: str = ""
    signer: str = ""


@dataclass(frozen=True, slots=True)
class ReportForm:
    """One form: what it is sent as, how its file's name ends, who writes it.

    write: by an experiment's number; raises UnknownRow, SpecError for wishes that cannot be.
    """

    media_type: str
    suffix: str
    write: Callable[[int, ReportOptions], str | bytes]

    def file_name(self, experiment_id: int) -> str:
        """Return the name of the downloaded file: experiment-17.junit.xml."""
        return f"experiment-{experiment_id}{self.suffix}"


def _of_data(media_type: str, suffix: str, name: str) -> ReportForm:
    render = RENDERED[name]
    return ReportForm(
        media_type, suffix, lambda number, wishes: render(comparison_data(number, link=wishes.link))
    )


def _reply(experiment_id: int, wishes: ReportOptions) -> str:
    asked = ReplyOptions(patch=wishes.patch, signer=wishes.signer)
    return write_reply(comparison_data(experiment_id, link=wishes.link), asked).text


REPORT_FORMS: Mapping[str, ReportForm] = {
    "json": _of_data("application/json", ".json", "json"),
    "csv": _of_data("text/csv; charset=utf-8", ".csv", "csv"),
    "markdown": _of_data("text/markdown; charset=utf-8", ".md", "markdown"),
    "junit": _of_data("application/xml", ".junit.xml", "junit"),
    "ktap": _of_data("text/plain; charset=utf-8", ".ktap", "ktap"),
    "reply": ReportForm("text/plain; charset=utf-8", ".reply.txt", _reply),
    "kcidb": ReportForm(
        "application/json",
        ".kcidb.json",
        lambda number, wishes: write_kcidb(number, link=wishes.link, origin=wishes.origin),
    ),
    "matrix": ReportForm("application/x-tar", ".matrix.tar", lambda number, _: write_matrix(number)),
    "reproducer": ReportForm(
        "application/toml",
        ".reproducer.toml",
        lambda number, wishes: write_reproducer(number, link=wishes.link),
    ),
}
