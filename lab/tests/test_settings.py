# SPDX-License-Identifier: GPL-2.0-or-later
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from lab.operations.headers import POLICY, content_security_policy
from lab.settings import _secret
from lab.tests.fresh_python import run_python

pytestmark = pytest.mark.process


def secret_in(home: Path) -> str:
    code = "from lab.settings import SECRET_KEY; print(SECRET_KEY)"
    environment = os.environ | {"KPERFLAB_HOME": str(home)}
    return run_python(["-c", code], environment).stdout.strip()


def test_an_installation_makes_its_own_secret_once(tmp_path: Path) -> None:
    first = secret_in(tmp_path / "a")
    assert len(first) >= 50
    assert secret_in(tmp_path / "a") == first
    assert secret_in(tmp_path / "b") != first


def test_the_secret_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    secret_in(tmp_path)
    assert stat.S_IMODE((tmp_path / "secret.key").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secret.key"]


def test_processes_that_start_at_once_share_one_secret(tmp_path: Path) -> None:
    code = "from lab.settings import SECRET_KEY; print(SECRET_KEY)"
    environment = os.environ | {"KPERFLAB_HOME": str(tmp_path)}
    started = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    assert len({process.communicate()[0] for process in started}) == 1


def test_a_power_cut_leaves_no_empty_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing would start with it, nor make another."""
    synced, sync = [], os.fsync

    def note(descriptor: int) -> None:
        status = os.fstat(descriptor)
        synced.append((status.st_ino, status.st_size))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    assert len(_secret(tmp_path / "secret.key")) >= 50
    status = (tmp_path / "secret.key").stat()
    assert synced == [(status.st_ino, status.st_size)]


def test_tests_do_not_touch_an_installations_tables() -> None:
    name = str(settings.DATABASES["default"]["NAME"])
    assert "kperflab" in name or name.startswith("test_")
    assert not name.startswith("/var/lib/")


def test_every_page_is_sent_with_the_policy() -> None:
    middleware = content_security_policy(lambda _: HttpResponse("x"))
    answer = middleware(HttpRequest())
    assert answer.headers["Content-Security-Policy"] == POLICY
    assert "unsafe" not in POLICY
    assert "default-src 'none'" in POLICY


def test_a_page_may_set_a_stricter_policy_of_its_own() -> None:
    own = {"Content-Security-Policy": "default-src 'none'"}
    answer = content_security_policy(lambda _: HttpResponse("x", headers=own))(HttpRequest())
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'"


def test_a_process_whose_environment_names_a_store_keeps_artifacts_there(tmp_path: Path) -> None:
    code = (
        "import django; django.setup()\n"
        "from lab.storage.store import lab_store\n"
        "store = lab_store(); store.put('artifacts/x', b'kernel'); print(store.address)"
    )
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "lab.settings",
        "KPERFLAB_HOME": str(tmp_path / "home"),
        "KPERFLAB_STORE": str(tmp_path / "store"),
    }
    (tmp_path / "store").mkdir()
    done = run_python(["-c", code], environment)
    assert (done.returncode, done.stdout.strip()) == (0, str(tmp_path / "store")), done.stderr
    assert [path.read_bytes() for path in (tmp_path / "store").rglob("x")] == [b"kernel"]
