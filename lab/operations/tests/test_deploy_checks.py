# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from lab.tests.fresh_python import run_python

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[3]
# Whatever this test's own environment says.
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("KPERFLAB_", "DJANGO_"))}
SERVICE = {
    "KPERFLAB_URL": "https://lab.example",
    "KPERFLAB_PROXIES": "1",
    "KPERFLAB_SMTP": "smtps://lab:pw@mail.example",
    "KPERFLAB_DATABASE": "postgres://lab:pw@127.0.0.1:1/lab",
    "KPERFLAB_REDIS": "redis://127.0.0.1:1/0",
}


def checked(home: Path, **settings: str) -> tuple[int, str]:
    """Return the exit status and output of `manage.py check --deploy` with warnings as failures."""
    environment = CLEAN | {"KPERFLAB_HOME": str(home), "PYTHONPATH": str(ROOT)} | settings
    done = run_python(["manage.py", "check", "--deploy", "--fail-level", "WARNING"], environment, ROOT)
    return done.returncode, done.stdout + done.stderr


def test_a_service_as_documented_has_nothing_to_be_said_against_it(tmp_path: Path) -> None:
    assert checked(tmp_path, **SERVICE)[0] == 0


def test_one_machine_for_one_person_has_neither(tmp_path: Path) -> None:
    assert checked(tmp_path)[0] == 0


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"KPERFLAB_URL": "http://lab.example"}, "lab.W001"),
        ({"KPERFLAB_SMTP": ""}, "lab.W005"),
        ({"KPERFLAB_PROXIES": "0"}, "lab.W006"),
        ({"KPERFLAB_DATABASE": ""}, "lab.W007"),
        ({"KPERFLAB_METRICS_FROM": "10.1.2.0/24, 0.0.0.0/0"}, "lets 0.0.0.0/0 read"),
        ({"KPERFLAB_DEBUG": "1"}, "security.W018"),
    ],
)
def test_each_thing_left_out_is_told(tmp_path: Path, given: dict[str, str], said: str) -> None:
    code, text = checked(tmp_path, **(SERVICE | given))
    assert code == 1
    assert said in text
    assert "pw@" not in text


@pytest.mark.thorough
def test_a_home_that_others_write_and_a_key_that_they_read_are_told(tmp_path: Path) -> None:
    checked(tmp_path, **SERVICE)
    (tmp_path / "secret.key").chmod(0o644)
    tmp_path.chmod(0o777)
    code, text = checked(tmp_path, **SERVICE)
    assert code == 1
    assert f"chmod 0755 {tmp_path}" in text
    assert f"chmod 0600 {tmp_path}/secret.key" in text
    assert stat.S_IMODE((tmp_path / "secret.key").stat().st_mode) == 0o644, "a check mends nothing"


def test_a_network_that_is_none_is_refused_by_its_name(tmp_path: Path) -> None:
    code, text = checked(tmp_path, KPERFLAB_METRICS_FROM="10.0.0.1/8")
    assert code != 0
    assert "KPERFLAB_METRICS_FROM: 10.0.0.1/8 has host bits set; give networks such as 10.1.0.0/16" in text
