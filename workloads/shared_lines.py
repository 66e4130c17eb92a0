# SPDX-License-Identifier: GPL-2.0-or-later
"""`perf c2c` after the other passes of a profiled run: which cache lines the CPUs took from each other.

Only some PMUs sample memory accesses with their addresses, and guests seldom have one. The guest asks perf; if perf
cannot do it, the run only gets a note.
"""

from collections.abc import Sequence
from dataclasses import replace

from workloads.guest.plan import Step
from workloads.guest.records import Record
from workloads.readings import RECORDER_MARK, files_of

C2C = "c2c"
REPORT = "/tmp/perf.c2c.txt"  # noqa: S108 a path in the guest, which has one user
WHY = "/tmp/perf.c2c.why"  # noqa: S108
_DATA = "/tmp/perf.c2c.data"  # noqa: S108
_REPORT_SECONDS = 120
MOST_TEXT = 32_768
"""Characters of the report that are kept: the summary and the lines with the most transfers come first."""
_LONGEST_REASON = 1000

_SCRIPT = f"""why=$1; report=$2; data=$3; shift 3
: >$report
# Files that were already sent need not take the guest's memory any longer.
rm -f ${{data%/*}}/perf*.data
if ! perf mem record -e list >/dev/null 2>$why; then
    [ -s $why ] || echo "perf mem does not list memory events" >$why
    exit 0
fi
: >$why
"$@" >/dev/null || {{ echo "perf c2c record ended with status $?" >$why; exit 0; }}
timeout {_REPORT_SECONDS} perf c2c report --stdio -i $data 2>/dev/null | head -c {MOST_TEXT} >$report
[ -s $report ] || echo "perf c2c report printed nothing" >$why
rm -f $data"""


def shared_lines_step(step: Step, options: tuple[str, ...], control: tuple[str, ...]) -> Step:
    """Return a measured step under `perf c2c`. options: further ones of perf record; control: arguments of the program.

    The step sends its report, and the reason if there is none; one of them is empty.
    """
    record = ("perf", "c2c", "record", "-a", *options, "-o", _DATA, "--", *step.argv, *control)
    return replace(
        step,
        name=f"{step.name}{RECORDER_MARK}{C2C}",
        argv=("sh", "-c", _SCRIPT, C2C, WHY, REPORT, _DATA, *record),
        deadline_s=step.deadline_s + 2 * _REPORT_SECONDS,
        send=(REPORT, WHY),
    )


def read_shared_lines(records: Sequence[Record]) -> tuple[str, str]:
    """Return perf's report, at most MOST_TEXT characters, and the reason if there is none; one of them is "".

    Both are "" for a run without this pass.
    """
    files = files_of(records)
    if REPORT not in files and WHY not in files:
        return "", ""
    text, why = (files.get(name, b"").decode(errors="replace") for name in (REPORT, WHY))
    if why := " ".join(why.split())[:_LONGEST_REASON]:
        return "", why
    return (text[:MOST_TEXT], "") if text.strip() else ("", "it left no report")
