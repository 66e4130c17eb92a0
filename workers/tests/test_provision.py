# SPDX-License-Identifier: GPL-2.0-or-later
"""The playbooks: an empty Debian becomes a lab, a second time changes nothing, and the lab then carries out an experiment.

No systemd runs on that machine, so supervisor looks after the programs there; the units are written too, and judged by
systemd's own tools.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from workers.tests import smoke
from workers.tests.debianbase import ROOT, caches_held
from workers.tests.emptymachine import Machine, empty_machine, free_port
from workers.tests.live import LiveKernel

pytestmark = pytest.mark.provision

ANSIBLE = ROOT / "ansible"
PROGRAMS = Path(sys.executable).parent
UNITS = ("web", "beat", "upkeep", "builds", "target-guest")
# Of systemd-analyze security: 0 is closed, 10 is open. Builds make namespaces and mounts of their own.
EXPOSURE = {"builds": 50}
MOST_EXPOSED = 30


@dataclass(frozen=True)
class Fleet:
    """A fleet of one machine, and how Ansible is told of it."""

    machine: Machine
    inventory: Path
    url: str

    def play(self, book: str, *arguments: str) -> dict[str, int]:
        """Run a playbook; how many tasks were ok, changed, failed, unreachable."""
        done = ansible("ansible-playbook", "-i", str(self.inventory), str(ANSIBLE / book), *arguments)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        recap = re.search(r"^lab\s*: (.*)$", done.stdout, re.MULTILINE)
        assert recap, done.stdout[-2000:]
        counts = {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", recap[1])}
        changed = re.findall(r"^TASK \[(.*?)\].*\n(?:.*\n)*?changed:", done.stdout, re.MULTILINE)
        print(book, counts, changed if counts["changed"] < 10 else "")
        return counts


def ansible(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"),
        "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
    }
    return subprocess.run(
        [str(PROGRAMS / program), *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )


def commit_of_what_is_here(scratch: Path) -> str:
    """The tree as it is edited now, as a commit that no branch names."""

    def git(*arguments: str) -> str:
        environment = os.environ | {"GIT_INDEX_FILE": str(scratch / "index")}
        command = ["git", "-c", "user.name=test", "-c", "user.email=test@example.org", *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True, timeout=120
        ).stdout.strip()

    git("read-tree", "HEAD")
    git("add", "--all")
    return git("commit-tree", git("write-tree"), "-p", "HEAD", "-m", "what is here")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    if os.geteuid() != 0:
        pytest.skip("an empty machine is made of mounts: run as root")
    folder = tmp_path_factory.mktemp("fleet")
    with caches_held(), empty_machine() as machine:
        port = free_port()
        host = {
            "ansible_host": "127.0.0.1",
            "ansible_port": machine.port,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(machine.key),
            "ansible_ssh_common_args": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null",
        }
        variables = {
            "lab_service_manager": "supervisor",
            "lab_server_address": "127.0.0.1",
            "lab_revision": commit_of_what_is_here(folder),
            "lab_port": port,
            "lab_bind": "127.0.0.1",
            "lab_postgres_port": free_port(),
            "lab_redis_port": free_port(),
            "lab_targets": ["guest", smoke.TARGET],
            "lab_settings": {"KPERFLAB_LOCAL_PATHS": "1"},
        }
        groups: dict[str, Any] = {
            name: {"hosts": {"lab": {}}} for name in ("lab_server", "build_workers", "libvirt_hosts")
        }
        groups |= {"all": {"vars": variables, "hosts": {"lab": host}}}
        inventory = folder / "inventory.json"
        inventory.write_text(json.dumps(groups))
        yield Fleet(machine, inventory, f"http://127.0.0.1:{port}")


@pytest.fixture(scope="module")
def lab(fleet: Fleet) -> Fleet:
    """The machine after its first playbook."""
    counts = fleet.play("site.yml")
    assert counts["failed"] == counts["unreachable"] == 0
    assert counts["changed"] > 20
    return fleet


def test_the_playbooks_have_no_lint() -> None:
    done = ansible(
        "ansible-lint", "--offline", "--profile=production", "--strict", "-c", ".ansible-lint", "ansible"
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_second_playbook_changes_nothing(lab: Fleet) -> None:
    counts = lab.play("site.yml")
    assert counts["changed"] == 0


def test_the_installed_lab_answers_and_its_command_works(lab: Fleet) -> None:
    assert smoke.wait_for_page(f"{lab.url}/health/").status_code == 200
    assert "guest" in lab.machine.run("labctl targets --local")


def test_kvm_was_opened_to_its_group_and_the_labs_user_is_in_it(lab: Fleet) -> None:
    assert lab.machine.run("stat -c '%G %a' /dev/kvm").split() == ["kvm", "660"]
    assert "kvm" in lab.machine.run("id -nG kperflab").split()


def test_secrets_are_files_of_the_lab_and_in_no_arguments(lab: Fleet) -> None:
    names = lab.machine.run("stat -c '%n %U %G %a' /etc/kperflab/secrets/*").splitlines()
    assert {line.split(maxsplit=1)[1] for line in names} == {"root kperflab 640"}
    password = lab.machine.run("cat /etc/kperflab/secrets/redis_password").strip()
    assert len(password) == 40
    assert password not in lab.machine.run("cat /proc/*/cmdline | tr '\\0' ' '")


def test_units_are_sound_and_closed(lab: Fleet) -> None:
    lab.play("site.yml", "-e", "lab_service_manager=systemd", "-e", "lab_units_only=true")
    files = [f"/etc/systemd/system/kperflab-{name}.service" for name in UNITS]
    assert lab.machine.run(f"systemd-analyze verify {' '.join(files)} 2>&1; true").strip() == ""
    for name, file in zip(UNITS, files, strict=True):
        most = EXPOSURE.get(name, MOST_EXPOSED)
        lab.machine.run(f"systemd-analyze security --offline=true --no-pager --threshold={most} {file}")


def test_an_experiment_goes_through_the_installed_lab(lab: Fleet, tmp_path: Path) -> None:
    kernel = LiveKernel(tmp_path)
    body = smoke.description(kernel)
    bundle = subprocess.run(
        ["tar", "-c", "-C", str(kernel.work), ".git"], check=True, capture_output=True, timeout=60
    ).stdout
    subprocess.run(
        [
            *lab.machine.ssh,
            "mkdir -p /srv/pretend && tar -x -C /srv/pretend && chown -R kperflab: /srv/pretend",
        ],
        input=bundle,
        check=True,
        timeout=60,
    )
    program = smoke.seed(kernel, "/srv/pretend/.git")
    token = lab.machine.run("/opt/kperflab/lab python3 manage.py shell", program).split()[-1]
    found = smoke.carried_out(lab.url, token, body)
    assert (found["state"], found["exit_code"]) == ("done", found["exit_code"])
    assert found["exit_code"] in (0, 1, 2), found
