# SPDX-License-Identifier: GPL-2.0-or-later
"""The walk from `labctl submit` to a verdict on the page stays short; docs/design/path.md lists it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from django.test import Client

from lab.models import Experiment
from workers import labctl
from workers.tests.conftest import FakeLab
from workers.tests.test_house import ROOT

pytestmark = pytest.mark.process

# By step, the functions in which its work is done. Our functions above them on the stack are the walk.
ENDS = {
    "submission": ("lab.submission.submit.submit_experiment", "lab.submission.submit._write_experiment"),
    "expand": ("lab.experiments.expand.expand", "lab.submission.submit._write_runs"),
    "build": ("kernels.builds.builder.Builder._compile", "lab.runs.record.record_build_success"),
    "boot": ("workers.drivers.fake.FakeDriver.boot",),
    "workload": ("workers.collect.transcript.Transcript.take",),
    "collect": ("workers.collect.fromguest.read_guest", "lab.runs.record.record_run"),
    "compare": ("lab.statistics.verdict.judge",),
    "page": ("lab.comparisons.page.cell_data", "web.views.comparison.drawn_shift"),
}

AROUND_EVERY_COMMAND = "workers.ctl.program.run_program"

# It had 52 functions when this was first counted. Shorten it before you raise this.
LONGEST = 35


@cache
def name_of(code: CodeType) -> str:
    """Return the full name of a function of ours; "" for others, those of tests, and wrappers around every command or request."""
    path = Path(code.co_filename)
    name = code.co_qualname if sys.version_info >= (3, 11) else code.co_name
    if not path.is_relative_to(ROOT) or {"tests", ".venv"} & set(path.parts) or "<" in name:
        return ""
    return f"{'.'.join(path.relative_to(ROOT).with_suffix('').parts)}.{name}"


@contextmanager
def walked(functions: dict[str, list[str]]) -> Iterator[None]:
    """Collect by step the functions on the stack where its work is done, each once, in the order of the walk."""
    steps = {end: step for step, ends in ENDS.items() for end in ends}

    def look(frame: FrameType, event: str, arg: Any) -> None:
        if event != "call" or not (step := steps.pop(name_of(frame.f_code), "")):
            return
        stack: list[str] = []
        above: FrameType | None = frame
        while above is not None:
            stack.insert(0, name_of(above.f_code))
            above = above.f_back
        known = {name for names in functions.values() for name in names}
        functions.setdefault(step, []).extend(
            name for name in dict.fromkeys(stack) if name and name not in {*known, AROUND_EVERY_COMMAND}
        )

    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(None)


def test_the_walk_from_a_submission_to_a_verdict_on_the_page_stays_short(
    fake_lab: FakeLab, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "faster.patch").write_text(fake_lab.diff("fs/inode.c", "\tWARN_HERE();\n", ""))
    description = tmp_path / "walk.toml"
    description.write_text(
        f'name = "walk"\ngit = "{fake_lab.kernel.work}"\nbase = "{fake_lab.kernel.base.commit}"\n'
        '[[patches]]\nname = "faster"\nfile = "faster.patch"\n'
        '[[cases]]\nworkload = "showgids"\npreset = "smoke"\n'
        "[measure]\nboots = 3\niterations = 2\nwarmup = 1\n"
    )
    monkeypatch.setattr("sys.argv", ["labctl", "submit", str(description), "--local"])
    monkeypatch.setattr("workers.local.prepare", lambda: None)
    # The table that labctl itself prints in the end is not on the way to the page.
    monkeypatch.setattr("workers.ctl.watchctl.show_end", lambda *args: None)
    steps: dict[str, list[str]] = {}
    with walked(steps):
        with pytest.raises(SystemExit):
            labctl.main()
        page = client.get(f"/experiments/{Experiment.objects.get().pk}/comparison/")
    assert page.status_code == 200
    names = [f"{step}: {name}" for step, functions in steps.items() for name in functions]
    assert set(steps) == set(ENDS), names
    assert len(names) <= LONGEST, "\n".join(names)
