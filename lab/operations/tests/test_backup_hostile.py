# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that are not backups of the lab are refused in one line, and nothing changes."""

from __future__ import annotations

import hashlib
import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.tests.labs import Lab, edited

# Each reads an archive in a command line of its own.
pytestmark = pytest.mark.service


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lab, Path]:
    """A small lab on SQLite, and its backup."""
    lab = Lab(tmp_path_factory.mktemp("plain"), "")
    lab.run("manage.py", "migrate", "--verbosity", "0")
    file = lab.home / "backup.zip"
    lab.labctl("backup", str(file))
    return lab, file


def with_member(file: Path, to: Path, name: str, *, mode: int = 0o100644, data: bytes = b"x") -> Path:
    """A copy with one more member, which its manifest knows."""

    entry = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    edited(file, to, lambda manifest: manifest["members"].update({name: entry}))
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    with zipfile.ZipFile(to, "a") as archive:
        archive.writestr(info, data)
    return to


def refused(lab: Lab, file: Path) -> str:
    before = sorted(str(path) for path in lab.home.rglob("*"))
    done = lab.labctl("restore", str(file), "--replace", ok=False)
    assert done.returncode == 64, done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2
    assert "Traceback" not in done.stderr
    assert sorted(str(path) for path in lab.home.rglob("*")) == before
    return done.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    "name",
    [
        "files/runs/../../../escaped",
        "../escaped",
        "/etc/cron.d/escaped",
        "files/runs/1-1/..",
        "files/secret/x",
        "files/runs/1-1/a\nb",
        "files/runs/1-1/.hidden",
        "tables/Lab",
        "C:\\escaped",
    ],
)
def test_a_member_that_is_to_be_somewhere_else_is_refused(
    plain: tuple[Lab, Path], tmp_path: Path, name: str
) -> None:
    message = refused(plain[0], with_member(plain[1], tmp_path / "x.zip", name))
    assert "is not a name of a file in a backup" in message or "is not a regular file" in message


def test_links_and_devices_are_refused(plain: tuple[Lab, Path], tmp_path: Path) -> None:
    for number, kind in enumerate((stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFBLK)):
        file = with_member(
            plain[1],
            tmp_path / f"{number}.zip",
            "files/runs/1-1/link",
            mode=kind | 0o777,
            data=b"/etc/passwd",
        )
        assert "is not a regular file" in refused(plain[0], file)


def test_a_bomb_is_stopped_before_it_fills_the_disk(plain: tuple[Lab, Path], tmp_path: Path) -> None:
    bomb = with_member(plain[1], tmp_path / "bomb.zip", "files/runs/1-1/zeros")

    def says(size: int) -> Path:
        return edited(
            bomb,
            tmp_path / f"{size}.zip",
            lambda manifest: manifest["members"]["files/runs/1-1/zeros"].update(size=size),
        )

    assert "make room first" in refused(plain[0], says(1 << 60))
    longer = with_member(plain[1], tmp_path / "longer.zip", "files/runs/1-1/zeros", data=bytes(50 << 20))
    lying = edited(
        longer,
        tmp_path / "lying.zip",
        lambda manifest: manifest["members"]["files/runs/1-1/zeros"].update(size=10),
    )
    assert "is longer than its manifest says" in refused(plain[0], lying)


def test_what_is_damaged_cut_off_or_something_else_is_refused(
    plain: tuple[Lab, Path], tmp_path: Path
) -> None:
    lab, good = plain
    whole = good.read_bytes()
    for number, data in enumerate((b"", b"PK", b"hello " * 100, whole[: len(whole) // 2], whole[:-30])):
        file = tmp_path / f"{number}.zip"
        file.write_bytes(data)
        assert "is not a complete backup" in refused(lab, file) or "cannot read" in refused(lab, file)
    flipped = edited(
        good, tmp_path / "f.zip", lambda manifest: manifest["members"]["secret.key"].update(sha256="0" * 64)
    )
    assert "secret.key is damaged" in refused(lab, flipped)
    assert "cannot read" in refused(lab, tmp_path / "none.zip")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda manifest: manifest.update(format=2), "has a newer format (2)"),
        (lambda manifest: manifest.update(vendor="postgresql"), "set KPERFLAB_DATABASE=postgres://"),
        (lambda manifest: manifest.update(more=1), "its manifest is not valid"),
        (
            lambda manifest: manifest["members"].pop("secret.key"),
            "is not both in the archive and in its manifest",
        ),
        (lambda manifest: manifest["tables"].pop("lab_user"), "its tables are not those of its manifest"),
        (
            lambda manifest: manifest["tables"]["lab_user"]["columns"].append("x); DROP TABLE lab_user"),
            "is not the one that",
        ),
        (lambda manifest: manifest.update(home=5), "its manifest is not valid"),
    ],
)
def test_a_manifest_that_lies_is_refused(
    plain: tuple[Lab, Path], tmp_path: Path, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    assert said in refused(plain[0], edited(plain[1], tmp_path / "x.zip", change))


def test_nothing_is_restored_beneath_workers_that_work(plain: tuple[Lab, Path], tmp_path: Path) -> None:
    lab = Lab(tmp_path / "busy", "")
    shutil.copytree(plain[0].home, lab.home)
    code = "import django; django.setup(); from lab.models import Worker; Worker.objects.create(name='host:1:1', host='host')"
    lab.run("-c", code)
    done = lab.labctl("restore", str(plain[1]), "--replace", ok=False)
    assert "host:1:1 is running for this lab: stop the workers" in done.stderr.replace("\n", " ")


def test_a_backup_that_cannot_be_written_leaves_nothing(plain: tuple[Lab, Path], tmp_path: Path) -> None:
    done = plain[0].labctl("backup", str(tmp_path / "no" / "such" / "x.zip"), ok=False)
    assert "cannot write" in done.stderr
    done = plain[0].labctl("backup", str(tmp_path), ok=False)
    assert "name of a file" in done.stderr
    assert list(tmp_path.iterdir()) == []
