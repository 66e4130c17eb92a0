# SPDX-License-Identifier: GPL-2.0-or-later
"""The files for containers, without an engine: variables that reach the services, and passwords that others cannot read."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from lab.tests.fresh_python import run_python

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/howto/containers.md").read_text()
VISIT = """
import workers.app
from django.test import Client
answer = Client().get("/health/there-is-none", HTTP_HOST="lab.example.org", HTTP_X_FORWARDED_PROTO="https")
print(answer.status_code)
"""


def environment(variables: dict[str, str]) -> dict[str, str]:
    """Return the environment of the lab's services, for variables as a user sets them."""
    text = (ROOT / "docker-compose.yml").read_text()
    filled = re.sub(r"\$\{(\w+):-([^}]*)\}", lambda match: variables.get(match[1]) or match[2], text)
    (block,) = re.findall(r"environment: &environment\n((?: {4}.*\n)+)", filled)
    return dict(re.findall(r"^ {4}(\w+): ?(.*)$", block, re.MULTILINE))


def test_pages_behind_the_https_proxy_that_the_page_describes_are_not_sent_to_https_again(
    tmp_path: Path,
) -> None:
    described = dict(re.findall(r"`((?:LAB|KPERFLAB)_[A-Z]+)=([^`]+)`", PAGE))
    variables = {name: value.replace("…", "lab.example.org") for name, value in described.items()}
    assert variables["LAB_URL"] == "https://lab.example.org"
    given = environment(variables)
    own = {"KPERFLAB_HOME": str(tmp_path), "KPERFLAB_DATABASE_FILE": "", "KPERFLAB_REDIS_FILE": ""}
    done = run_python(["-c", VISIT], os.environ | given | own, ROOT)
    assert done.stdout.split()[-1:] == ["404"], done.stdout + done.stderr


@pytest.mark.parametrize(("mode", "accepted"), [(0o755, False), (0o701, False), (0o700, True)])
def test_passwords_are_put_into_no_folder_that_others_can_enter(
    tmp_path: Path, mode: int, accepted: bool
) -> None:
    """The files themselves are open, since in the containers others than their owner read them."""
    folder = tmp_path / "kept"
    folder.mkdir()
    folder.chmod(mode)
    done = subprocess.run(
        [ROOT / "containers/secrets-once", folder], capture_output=True, text=True, timeout=30
    )
    assert (done.returncode == 0) is accepted
    assert any(folder.iterdir()) is accepted
    assert accepted or done.stderr == (
        f"secrets-once: other users can enter {folder}: chmod 700 it, or name another folder\n"
    )
