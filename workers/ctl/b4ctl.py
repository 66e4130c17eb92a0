# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl b4-check`: an external check of `b4 review`, for a patch or a cover letter on standard input.

b4 reads a JSON list of {tool, status, summary, url, details}; status is "pass", "warn" or "fail", an empty list is nothing
to say, and a non-zero exit status without JSON is an error of the command.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from lab.figures import change, duration
from lab.statistics.verdict_words import shown_verdict
from workers.ctl import submit_options
from workers.ctl.clients.base import Json
from workers.ctl.clients.client import Client
from workers.ctl.clients.errors import NotLetIn, SettingsWrong
from workers.ctl.options import (
    EXIT_LAB,
    EXIT_OK,
    EXIT_REGRESSION,
    err,
    through_client,
    with_options,
    write_out,
)
from workers.ctl.plaintext import plain_line, plain_text
from workers.ctl.preferences import git_top, read_preferences
from workers.ctl.submit_options import MEASURE_OPTIONS, SubmitOptions
from workers.ctl.terminal import stalled_line

TOOL = "kperflab"
STATUS = {EXIT_OK: "pass", EXIT_REGRESSION: "fail"}
OURS = ("submission", "kernel")
MOST_TRACKING = 16 << 20
_ENCODING = re.compile(rb"^Content-Transfer-Encoding:.*\n(?:[ \t].*\n)*", re.IGNORECASE | re.MULTILINE)
# What a person has to set right before any patch can be checked.
_SETUP = (NotLetIn, SettingsWrong)


@through_client
@with_options(SubmitOptions, measure=MEASURE_OPTIONS)
def b4_check(
    client: Client,
    options: SubmitOptions,
    wait: Annotated[bool, typer.Option("--wait", help="stay until the experiment is compared")] = False,
) -> None:
    """Check a patch or cover letter on standard input for b4 review; print the result for b4.

    It finds the experiment of the same patch or submits one. An experiment that is unfinished or inconclusive is a warning.
    """
    write_out(json.dumps(list(_checked(client, options, wait=wait)), ensure_ascii=False) + "\n")


def _checked(client: Client, options: SubmitOptions, *, wait: bool) -> Iterator[Json]:
    """Yield the result; nothing if the lab is at fault. Raises errors that the reader of the message has to set right."""
    # An experiment is looked up and submitted below; both fail alike.
    try:
        asked = _description(options, client)
        if asked is None:
            _say("it has no diff, and b4 names no branch with a base: nothing to check")
            return
        experiment = _experiment(client, asked)
        if wait:
            experiment = _awaited(client, int(experiment["id"]))
        yield from _result(client, experiment)
    except Exception as exc:
        blame = getattr(exc, "blame", None)
        if blame is None or isinstance(exc, _SETUP):
            raise
        if blame == "lab":
            _say(str(exc))
            return
        yield _line("warn", f"not measured: {exc}", details=plain_text(str(getattr(exc, "detail", ""))))


def _say(line: str) -> None:
    err.print(Text(f"labctl b4-check: {plain_line(line)}"), soft_wrap=True)


def _line(status: str, summary: str, url: str = "", details: str = "") -> Json:
    shown = {
        "tool": TOOL,
        "status": status,
        "summary": plain_line(summary)[:300],
        "url": url,
        "details": details,
    }
    return {key: value for key, value in shown.items() if value}


def _description(options: SubmitOptions, client: Client) -> Json | None:
    """Return the description for the message on standard input; for a cover letter that of b4's branch, None without a branch."""
    from workers.ctl.submitted_files import STDIN, branch_series, handed_series, newest_release, read_handed

    data, source = _without_encoding(read_handed(Path(STDIN))), Path(STDIN)
    preferences = read_preferences()
    # One patch of a series comes alone.
    handed = handed_series(data, source, partial=True) if b"\n@@ -" in data.replace(b"\r\n", b"\n") else None
    if handed is not None:
        _check_setup(options, preferences.defaults)
        return submit_options.of_series(
            handed, replace(options, partial=True), preferences, client, options.base
        )
    branch = _tracked_branch()
    if branch is None or git_top() is None:
        return None
    _check_setup(options, preferences.defaults)
    base = options.base or str(preferences.defaults.get("base", "")) or newest_release(branch)
    if not base:
        return None
    return submit_options.of_series(branch_series(branch, base), options, preferences, client, base)


def _without_encoding(mail: bytes) -> bytes:
    """Return b4's mail without the header that names its transfer encoding: b4 has decoded the body already."""
    head, blank, body = mail.partition(b"\n\n")
    return _ENCODING.sub(b"", head + b"\n") + blank[1:] + body


def _check_setup(options: SubmitOptions, defaults: Any) -> None:
    """Refuse a call that lacks a tree or a workload: that is the caller's fault, not the patch's."""
    missing = [
        f"{option} (or {name} under [defaults] in .labctl.toml)"
        for name, option, value in (
            ("tree", "--tree", options.tree or defaults.get("tree") or defaults.get("git")),
            ("workload", "--workload", options.workload or defaults.get("workload")),
        )
        if not value
    ]
    if missing:
        raise SettingsWrong(f"b4-check needs {' and '.join(missing)}")


def _tracked_branch() -> str | None:
    """Return the newest commit of the branch that b4 tracks for this series, None where it names none."""
    name = os.environ.get("B4_TRACKING_FILE", "")
    if not name:
        return None
    try:
        path = Path(name)
        if path.stat().st_size > MOST_TRACKING:
            return None
        tips = json.loads(path.read_text())["series"]["branch-tips"]
        newest = max(tips, key=lambda tip: str(tip.get("date", "")))
        sha = str(newest["sha"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
        _say(f"{name} names no branch ({type(exc).__name__})")
        return None
    return sha if len(sha) >= 12 and all(char in "0123456789abcdef" for char in sha) else None


def _experiment(client: Client, asked: Json) -> Json:
    """Return the newest experiment of the same description that neither failed nor was cancelled; else submit one."""
    from lab.experiments.spec import spec_digest, spec_from_mapping

    digest = spec_digest(spec_from_mapping(asked))
    for row in client.experiments({"digest": digest}, 10):
        if row["state"] not in ("failed", "cancelled"):
            return client.experiment(int(row["id"]))
    return client.experiment(int(client.submit(asked, _say)["id"]))


def _awaited(client: Client, number: int) -> Json:
    """Follow an experiment to its end; with --local this process carries it out."""
    from workers.ctl import progressbar

    if not client.local:
        return progressbar.follow(err, client, number)
    from workers import local

    local.work_through(number)
    return client.experiment(number)


def _result(client: Client, experiment: Json) -> Iterator[Json]:
    number, url = int(experiment["id"]), str(experiment.get("page") or "")
    code = experiment.get("exit_code")
    if code is None:
        yield _line("warn", f"experiment {number} is {_progress(experiment)}", url)
        return
    compared = client.comparison(number)
    if broken := _broken(compared):
        yield _line("fail", broken[0], url, "\n".join(broken))
        return
    if code == EXIT_LAB:
        _say(f"experiment {number} {experiment['state']}: {experiment.get('problem') or 'the lab failed'}")
        return
    headline = str(compared["conclusion"]["headline"])
    yield _line(STATUS.get(code, "warn"), headline, url, "\n".join(_verdicts(compared)))


def _progress(experiment: Json) -> str:
    """Return the progress, such as "running: 12 of 30 boots, about 3 min left", or why it is stalled."""
    now = experiment["progress"]
    if stalled := stalled_line(now):
        return stalled
    parts = []
    for what in ("builds", "boots"):
        over = sum(int(now[f"{what}_{how}"]) for how in ("done", "failed", "cancelled"))
        parts.append(f"{over} of {now[f'{what}_total']} {what}")
    left = f", about {duration(now['eta_s'])} left" if now.get("eta_s") else ""
    return f"{experiment['state']}: {', '.join(parts)}{left}"


def _broken(compared: Json) -> list[str]:
    """Return a line for each kernel of a patch that does not build, boot or survive."""
    candidates = {variant["name"] for variant in compared["variants"] if variant["role"] == "candidate"}
    lines = [
        f"{variant['name']} does not build: {variant['problem']}"
        for variant in compared["variants"]
        if variant["name"] in candidates and variant["state"] == "failed" and variant["blame"] in OURS
    ]
    lines += [
        f"{failure['variant']} on {case['title']}: {failure['outcome']}, {failure['problem']}"
        for case in compared["cases"]
        for failure in case["failures"]
        if failure["variant"] in candidates and failure["blame"] in OURS
    ]
    return [plain_line(line) for line in lines]


def _verdicts(compared: Json) -> list[str]:
    """Return a line for each primary metric of each patch, those that decide the status first."""
    cells = [
        (cell, f"{case['workload']} {metric['name']}")
        for case in compared["cases"]
        for metric in case["metrics"]
        if metric["primary"]
        for cell in metric["cells"]
        if cell["role"] == "candidate"
    ]
    fine = compared["experiment"]["clock"] == "instructions"
    cells.sort(key=lambda pair: _weight(pair[0]["verdict"]))
    return [
        plain_line(f"{cell['verdict']}: {cell['variant']}, {name} {_change(cell, fine=fine)}").rstrip()
        for cell, name in cells
    ]


def _weight(verdict: str) -> tuple[int, str]:
    """Return the place of a verdict: failed before skipped before passed."""
    outcome = shown_verdict(verdict).outcome
    return ("failed", "skipped", "passed").index(outcome), verdict


def _change(cell: Json, *, fine: bool) -> str:
    if cell["ratio"] is None:
        return str(cell["reason"])
    low, high = cell["low"], cell["high"]
    interval = (
        f" ({change(low, fine=fine)} to {change(high, fine=fine)})"
        if low is not None and high is not None
        else ""
    )
    return f"{change(cell['ratio'], fine=fine)}{interval}"
