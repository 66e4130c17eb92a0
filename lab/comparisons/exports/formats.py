# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of the forms in which a comparison leaves the lab, for pages, API and labctl.

To add a form, write its module and add a line here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pkgutil import resolve_name

from lab.comparisons.shape import ComparisonData


@dataclass(frozen=True, slots=True)
class ReportForm:
    """One form. description: its purpose; empty for the reply, which has a page of its own.

    media_type, suffix: of the file. writer: "module:function" below lab.comparisons, imported when it is needed: labctl
    starts fast, and needs no Django for most forms. A writer takes a comparison's plain data; if from_tables, an
    experiment's number and the options named here.
    """

    description: str
    media_type: str
    suffix: str
    writer: str
    from_tables: bool = False
    options: tuple[str, ...] = ()

    def render(self, data: ComparisonData) -> str:
        """Write a comparison from its plain data; works only for forms that need no tables."""
        text: str = resolve_name(f"lab.comparisons.{self.writer}")(data)
        return text

    def write(self, experiment_id: int, **options: str) -> str | bytes:
        """Write the comparison of an experiment. link: the lab's own address; origin: of the report, for KCIDB.

        Raises UnknownRow, and SpecError for options with impossible values.
        """
        from lab.comparisons.page import comparison_data

        if not self.from_tables:
            return self.render(comparison_data(experiment_id, link=options.get("link", "")))
        accepted = {name: value for name, value in options.items() if name in self.options}
        body: str | bytes = resolve_name(f"lab.comparisons.{self.writer}")(experiment_id, **accepted)
        return body

    def file_name(self, experiment_id: int) -> str:
        """Return the name of the downloaded file: experiment-17.junit.xml."""
        return f"experiment-{experiment_id}{self.suffix}"


REPORT_FORMS: Mapping[str, ReportForm] = {
    "json": ReportForm(
        "everything, for scripts", "application/json", ".json", "exports.texts:write_comparison"
    ),
    "csv": ReportForm(
        "a line per metric and variant, for spreadsheets",
        "text/csv; charset=utf-8",
        ".csv",
        "exports.texts:write_csv",
    ),
    "markdown": ReportForm(
        "for a comment on GitHub or GitLab",
        "text/markdown; charset=utf-8",
        ".md",
        "exports.markdown:write_markdown",
    ),
    "junit": ReportForm(
        "for tools that show the outcome of a pipeline",
        "application/xml",
        ".junit.xml",
        "exports.junit:write_junit",
    ),
    "ktap": ReportForm(
        "for tools that read the kernel's own tests",
        "text/plain; charset=utf-8",
        ".ktap",
        "exports.ktap:write_ktap",
    ),
    "reply": ReportForm("", "text/plain; charset=utf-8", ".reply.txt", "reply.reply:reply_text"),
    "kcidb": ReportForm(
        "for KernelCI",
        "application/json",
        ".kcidb.json",
        "exports.kcidb:write_kcidb",
        from_tables=True,
        options=("link", "origin"),
    ),
    "matrix": ReportForm(
        "every boot's number, in the layout of lkp-tests",
        "application/x-tar",
        ".matrix.tar",
        "exports.matrix:write_matrix",
        from_tables=True,
    ),
    "reproducer": ReportForm(
        "repeats the experiment: pass it to labctl submit",
        "application/toml",
        ".reproducer.toml",
        "exports.reproducer:write_reproducer",
        from_tables=True,
        options=("link",),
    ),
}
OF_DATA = tuple(name for name, form in REPORT_FORMS.items() if not form.from_tables)
"""The forms that labctl can write from the API's answer."""
