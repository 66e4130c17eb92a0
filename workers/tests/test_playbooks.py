# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of the playbooks on this machine: what remains of a playbook that ended half way, and who else can touch its files."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from workers.drivers.leftovers import BootId, Traces
from workers.tests.debianbase import ROOT
from workers.tests.provisioned import ANSIBLE, ansible, git

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.geteuid() != 0, reason="the roles give their files to root"),
]


# Files of tasks run alone here: a role would also run those that it depends on.
DEFAULTS = [str(ANSIBLE / f"roles/{role}/defaults/main.yml") for role in ("lab", "lab_code")]
RESTART = {"name": "Restart the lab's services", "ansible.builtin.debug": {"msg": "restarted"}}


def play(folder: Path, tasks: list[dict[str, Any]], *options: str, **variables: str) -> str:
    """Run tasks on this machine; return all output."""
    book = folder / "book.yml"
    start = {"hosts": "localhost", "connection": "local", "gather_facts": False, "vars_files": DEFAULTS}
    book.write_text(json.dumps([{**start, "tasks": tasks, "handlers": [RESTART]}]))
    own = {"lab_code_checkout": str(ROOT), "ansible_python_interpreter": sys.executable}
    given = json.dumps({**own, **variables})
    done = ansible("ansible-playbook", "-i", "localhost,", "--extra-vars", given, *options, str(book))
    return done.stdout + done.stderr


def part(name: str) -> dict[str, Any]:
    """Return a file of tasks of a role, such as lab/settings."""
    role, _, file = name.partition("/")
    return {"ansible.builtin.import_tasks": str(ANSIBLE / f"roles/{role}/tasks/{file}.yml")}


def bring(folder: Path) -> str:
    """Bring the code at HEAD to a folder as the playbook does."""
    commit = git(folder, "rev-parse", "HEAD")
    release = str(folder / "release")
    return play(folder, [part("lab_code/bring")], lab_code_commit=commit, lab_code_release=release)


def test_a_release_that_was_unpacked_half_way_is_made_whole(tmp_path: Path) -> None:
    (tmp_path / "release").mkdir()
    # The connection ended here: what comes later in the archive is missing.
    shutil.copy(ROOT / "manage.py", tmp_path / "release")
    output = bring(tmp_path)
    assert (tmp_path / "release/workers/labctl.py").is_file(), output
    (tmp_path / "release/manage.py").write_text("running")
    bring(tmp_path)
    assert (tmp_path / "release/manage.py").read_text() == "running"


def test_what_another_user_of_this_machine_laid_down_is_not_the_code(tmp_path: Path) -> None:
    """Every user can write to /tmp, and the commit that comes next is no secret."""
    laid = Path("/tmp", f"kperflab-{git(tmp_path, 'rev-parse', 'HEAD')}.tar.gz")
    (tmp_path / "manage.py").write_text("a stranger's")
    try:
        with tarfile.open(laid, "w:gz") as archive:
            archive.add(tmp_path / "manage.py", "manage.py")
        (tmp_path / "release").mkdir()
        bring(tmp_path)
    finally:
        laid.unlink()
    assert (tmp_path / "release/manage.py").read_text() == (ROOT / "manage.py").read_text()


def test_services_are_restarted_though_a_later_task_fails(tmp_path: Path) -> None:
    """The next playbook finds nothing changed, so it would never restart them."""
    settings = {"ansible.builtin.copy": {"content": "new", "dest": str(tmp_path / "environment")}}
    fails = {"ansible.builtin.command": {"argv": ["false"]}}
    output = play(tmp_path, [{**settings, "notify": RESTART["name"]}, fails])
    assert "failed=1" in output
    assert "msg: restarted" in output, output


@pytest.mark.parametrize(
    ("runs", "changed", "restarted"),
    [
        ("before", "", True),
        ("now", "", False),
        ("now", "environment", True),
        ("now", "kperflab-web.service", True),
    ],
)
def test_a_program_of_the_release_settings_or_unit_before_is_restarted_by_the_next_playbook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: str, changed: str, restarted: bool
) -> None:
    """Its worker would take no work, and the playbook that changed code, settings or unit may have been interrupted."""
    for name in ("before", "now", "secrets"):
        (tmp_path / name).mkdir()
    for name in ("environment", "kperflab-web.service"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() + (60 if name == changed else -60),) * 2)
    with subprocess.Popen(["sleep", "600"], cwd=tmp_path / runs) as program:
        # A unit that is stopped has the number 0.
        systemctl = tmp_path / "systemctl"
        systemctl.write_text(f"#!/bin/sh\necho {program.pid}; echo; echo 0\n")
        systemctl.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        places = dict.fromkeys(("lab_code_settings", "lab_code_units"), str(tmp_path))
        places["lab_code_release"] = str(tmp_path / "now")
        try:
            output = play(tmp_path, [part("lab_code/outdated")], **places)
        finally:
            program.kill()
    assert ("msg: restarted" in output) is restarted, output
    assert "failed=0" in output


def test_guests_of_a_target_with_the_longest_name_have_paths_that_sockets_can_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = {"name": "target-" + "n" * 63, "kind": "guests", "description": "", "command": []}
    unit = {"src": str(ANSIBLE / "roles/lab/templates/unit.service.j2"), "dest": str(tmp_path / "unit")}
    output = play(tmp_path, [{"ansible.builtin.template": unit, "vars": {"lab_service": service}}])
    assert "failed=0" in output, output
    told = re.findall(r"^Environment=XDG_RUNTIME_DIR=(.*)$", (tmp_path / "unit").read_text(), re.MULTILINE)
    monkeypatch.setenv("XDG_RUNTIME_DIR", *told)
    # On a fleet's machines the lab is an ordinary user.
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    boot = BootId(pid=1 << 22, started=10**10, token="0" * 8)
    longest = Traces(Path("/var/lib/kperflab")).sockets / str(boot) / "records"
    assert len(str(longest)) <= 107


@pytest.mark.parametrize("name", ["HEAD", "main", "v1", "commit"])
def test_a_revision_of_a_repository_elsewhere_is_found_by_any_name(tmp_path: Path, name: str) -> None:
    """Not the commit of another branch whose name ends in the same way, nor the object of a tag."""

    def there(*arguments: str) -> str:
        return git(tmp_path, "-C", str(tmp_path / "there"), *arguments)

    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", tmp_path / "there"], check=True)
    there("commit", "--quiet", "--allow-empty", "-m", "one")
    commit = there("rev-parse", "HEAD")
    there("tag", "-a", "-m", "the first", "v1")
    there("checkout", "--quiet", "-b", "another/main")
    there("commit", "--quiet", "--allow-empty", "-m", "two")
    there("checkout", "--quiet", "main")
    found = {"ansible.builtin.debug": {"msg": "at {{ lab_code_release }} now"}}
    asked = commit if name == "commit" else name
    output = play(
        tmp_path,
        [part("lab_code/find"), found],
        lab_git_url=str(tmp_path / "there"),
        lab_revision=asked,
    )
    assert f"at /opt/kperflab/{commit} now" in output, output


def test_what_the_example_says_to_put_beside_it_is_in_no_commit_and_no_image(tmp_path: Path) -> None:
    """Keys and passwords lie there, where `git add` and `COPY . .` would take them."""
    example = (ROOT / "ansible/inventory.example.yml").read_text()
    secret = set(re.findall(r"lookup\('ansible\.builtin\.file', '([^']+)'\)", example))
    assert secret == {"store-key", "machines/bench1.password"}
    for name in ("inventory.yml", *secret):
        assert git(tmp_path, "check-ignore", f"ansible/{name}") == f"ansible/{name}"
    assert "ansible" in (ROOT / ".dockerignore").read_text().splitlines()


@pytest.mark.parametrize(
    ("value", "accepted"),
    [
        ("smtp://lab:opens@mail.example.org", False),
        ("smtps://lab:o%3Apens@mail:465", False),
        ("smtp://mail.example.org", True),
        ("https://git.example.org/linux.git refs/heads/master", True),
    ],
)
def test_a_setting_with_a_password_is_refused_since_everybody_could_read_it(
    tmp_path: Path, value: str, accepted: bool
) -> None:
    server = {"ansible.builtin.add_host": {"name": "localhost", "groups": "lab_server"}}
    settings = {"lab_settings": {"KPERFLAB_SMTP": value}}
    (tmp_path / "templates").symlink_to(ANSIBLE / "roles/lab/templates")
    output = play(tmp_path, [server, {**part("lab/settings"), "vars": settings}], "--check")
    assert ("name it by KPERFLAB_SMTP_FILE" in output) is not accepted, output
    assert ("failed=0" in output) is accepted, output
