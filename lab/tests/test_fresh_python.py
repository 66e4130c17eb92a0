# SPDX-License-Identifier: GPL-2.0-or-later
"""A forked Python is as fresh as a new one: its own environment, folder, streams and status, and nothing of the lab imported."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lab.tests.fresh_python import OURS, run_python

pytestmark = pytest.mark.process


def test_nothing_of_the_lab_is_imported_and_django_is_not_configured(tmp_path: Path) -> None:
    code = (
        "import json, os, sys; from django.conf import settings; modules = {name.split('.')[0] for name in sys.modules}\n"
        "print(json.dumps([sorted(modules), settings.configured, os.getcwd(), sys.argv, dict(os.environ), sys.stdin.read()]))"
    )
    done = run_python(["-c", code, "one"], {"KPERFLAB_X": "y"}, tmp_path)
    modules, configured, folder, argv, environment, received = json.loads(done.stdout)
    assert not OURS & set(modules)
    assert (configured, folder, argv, received) == (False, str(tmp_path), ["-c", "one"], "")
    assert environment == {"KPERFLAB_X": "y"}


def test_settings_are_read_anew_by_each(tmp_path: Path) -> None:
    for days in ("5", "6"):
        environment = {"KPERFLAB_HOME": str(tmp_path), "KPERFLAB_KEEP_DAYS": days}
        done = run_python(["-c", "import lab.settings as s; print(s.KEEP_DAYS)"], os.environ | environment)
        assert done.stdout == f"{days}.0\n", done.stderr


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("pass", 0),
        ("raise SystemExit(3)", 3),
        ("raise OSError", 1),
        ("import os; os.kill(os.getpid(), 9)", -9),
    ],
)
def test_its_status_is_a_processs_own(code: str, status: int) -> None:
    assert run_python(["-c", code], os.environ).returncode == status


def test_what_it_writes_arrives_however_much() -> None:
    code = "import sys; print('a' * 300_000); print('b' * 300_000, file=sys.stderr)"
    done = run_python(["-c", code], os.environ)
    assert (len(done.stdout), len(done.stderr)) == (300_001, 300_001)
