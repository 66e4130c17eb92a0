# SPDX-License-Identifier: GPL-2.0-or-later
"""The playbooks: an empty Debian becomes a lab under systemd, a second time changes nothing, the lab carries out an experiment,
and another revision takes its place while the pages answer.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from workers.tests import smoke
from workers.tests.debianbase import ROOT, caches_held
from workers.tests.emptymachine import empty_machine
from workers.tests.live import LiveKernel
from workers.tests.provisioned import MAC, MACHINE, Fleet, ansible, commit_after, fleet_on
from workers.tests.watching import asked, watched

pytestmark = pytest.mark.provision

LAB = "/opt/kperflab/lab"
UNITS = ("web", "beat", "upkeep", "builds", "target-guest", f"target-{smoke.TARGET}", f"target-{MACHINE}")
# Of systemd-analyze security: 0 is closed, 10 is open. Builds make namespaces and mounts of their own.
EXPOSURE = {"builds": 50}
MOST_EXPOSED = 30
# A line that each source file has once (workers/tests/test_house.py).
LICENCE = "# SPDX-License-Identifier: GPL-2.0-or-later"
# Who works, and with which code: the units' names are not told, so how many of each version.
VERSIONS = """
import json
from lab.models import Worker
from lab.leases.version import lab_version
print(json.dumps([lab_version(), sorted(Worker.objects.values_list("version", flat=True))]))
"""


def versions(lab: Fleet) -> tuple[str, list[str]]:
    """The lab's version, and those of its workers."""
    output = lab.machine.run(f"{LAB} python3 manage.py shell", VERSIONS).splitlines()[-1]
    wanted, running = json.loads(output)
    return wanted, running


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    if os.geteuid() != 0:
        pytest.skip("an empty machine is made of mounts: run as root")
    with caches_held(), empty_machine() as machine:
        yield fleet_on(machine, tmp_path_factory.mktemp("fleet"))


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


def test_a_unit_really_shuts_its_program_in(lab: Fleet) -> None:
    pid = lab.machine.run("systemctl show --property=MainPID --value kperflab-web.service").strip()
    status = dict(
        line.split(":\t", 1)
        for line in lab.machine.run(f"cat /proc/{pid}/status").splitlines()
        if ":\t" in line
    )
    assert status["Uid"].split()[0] == lab.machine.run("id -u kperflab").strip()
    assert (status["NoNewPrivs"], status["Seccomp"], int(status["CapBnd"], 16)) == ("1", "2", 0)
    inside = f"nsenter --target {pid} --mount"
    assert (
        lab.machine.run(f"{inside} touch /etc/written 2>&1; true").strip().endswith("Read-only file system")
    )
    assert lab.machine.run(f"{inside} ls /home /root").split() == ["/home:", "/root:"]


def test_the_installed_lab_answers_and_its_command_works(lab: Fleet) -> None:
    assert smoke.wait_for_page(f"http://127.0.0.1:{lab.port}/health/").status_code == 200
    assert "guest" in lab.machine.run("labctl targets --local")


def test_pages_come_by_https_and_who_asks_without_is_sent_there(lab: Fleet) -> None:
    page = asked(lab.trust, f"{lab.url}/sign-in/")
    assert page.status_code == 200
    assert "max-age" in page.headers["Strict-Transport-Security"]
    sent = asked(lab.trust, f"{lab.plain_url}/sign-in/?next=/trends/")
    assert (sent.status_code, sent.headers["Location"]) == (301, f"{lab.url}/sign-in/?next=/trends/")


def test_machines_boot_without_certificates(lab: Fleet) -> None:
    script = asked(lab.trust, f"{lab.plain_url}/netboot/{MAC.replace(':', '-')}.ipxe")
    assert not script.is_redirect
    assert "#!ipxe" in script.text, (script.status_code, script.text)


def test_dnsmasq_tells_the_labs_machines_alone_where_to_boot_from(lab: Fleet) -> None:
    assert "syntax check OK" in lab.machine.run("dnsmasq --test 2>&1")
    program = (ROOT / "workers/tests/dhcp.py").read_text()

    def offer(mac: str, *more: str) -> str:
        words = ["nsenter", "--net=/run/netns/bench", "python3", "-", "bench0", mac, *more]
        return lab.machine.run(" ".join(words), program).strip()

    assert offer(MAC) == "a menu"
    assert offer(MAC, "ipxe") == "http://198.51.100.1:8000/netboot/${net0/mac:hexhyp}.ipxe"
    assert offer("52:54:00:65:43:21", "ipxe") == ""


def test_a_described_machine_is_a_target_whose_password_is_in_a_file(lab: Fleet) -> None:
    known = json.loads(lab.machine.run("labctl target list --format json"))
    assert [target["driver"] for target in known if target["name"] == MACHINE] == ["metal"]
    kept = lab.machine.run(f"cat /etc/kperflab/secrets/bmc-{MACHINE}").strip()
    assert kept == "opens-the-bmc"


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
    files = [f"/etc/systemd/system/kperflab-{name}.service" for name in UNITS]
    assert lab.machine.run(f"systemd-analyze verify {' '.join(files)} 2>&1; true").strip() == ""
    for name, file in zip(UNITS, files, strict=True):
        most = EXPOSURE.get(name, MOST_EXPOSED)
        lab.machine.run(f"systemd-analyze security --offline=true --no-pager --threshold={most} {file}")


def go_through(lab: Fleet, folder: Path) -> None:
    """Have the lab build a pretend kernel and compare it."""
    kernel = LiveKernel(folder)
    bundle = subprocess.run(
        ["tar", "-c", "-C", str(kernel.work), ".git"], check=True, capture_output=True, timeout=60
    ).stdout
    place = "mkdir -p /srv/pretend && tar -x -C /srv/pretend && chown -R kperflab: /srv/pretend"
    subprocess.run([*lab.machine.ssh, place], input=bundle, check=True, timeout=60)
    program = smoke.seed(kernel, "/srv/pretend/.git")
    token = lab.machine.run(f"{LAB} python3 manage.py shell", program).split()[-1]
    experiment = smoke.carried_out(lab.url, token, smoke.description(kernel), trust=lab.trust)
    assert (experiment["state"], experiment["exit_code"]) == ("done", experiment["exit_code"])
    assert experiment["exit_code"] in (0, 1, 2), experiment


def test_an_experiment_goes_through_the_installed_lab(lab: Fleet, tmp_path: Path) -> None:
    go_through(lab, tmp_path)


def test_every_program_runs_in_its_unit_and_none_failed(lab: Fleet) -> None:
    for name in UNITS:
        assert lab.machine.run(f"systemctl is-active kperflab-{name}.service").strip() == "active", name
    assert lab.machine.run("systemctl --failed --no-legend --plain").strip() == ""


def await_workers(lab: Fleet, old: str) -> None:
    """All of them have the lab's version, which is not the old one."""
    deadline = time.monotonic() + 120
    while True:
        wanted, running = versions(lab)
        if wanted != old and running and set(running) == {wanted}:
            return
        assert time.monotonic() < deadline, (old, wanted, running)
        time.sleep(1)


def test_an_upgrade_brings_the_next_revision_while_the_pages_answer(lab: Fleet, tmp_path: Path) -> None:
    old, _ = versions(lab)
    edits = {
        "web/views/health.py": ('"ok\\n"', '"ok, and newer\\n"'),
        "lab/models/states.py": (LICENCE, f"{LICENCE}\n# newer"),
    }
    upgraded = commit_after(lab.revision, tmp_path, edits)
    addresses = f"{lab.url}/health/", f"http://127.0.0.1:{lab.port}/health/", f"{lab.url}/sign-in/"
    with watched(lab.trust, *addresses) as watches:
        counts = lab.play("upgrade.yml", "-e", f"lab_revision={upgraded}")
        await_workers(lab, old)
    print([(watch.answers, f"slowest {watch.slowest:.1f} s") for watch in watches])
    assert counts["failed"] == 0
    assert lab.machine.run("readlink /opt/kperflab/current").strip() == f"/opt/kperflab/{upgraded}"
    for watch in watches[:2]:
        assert set(watch.answers) == {"200 ok", "200 ok, and newer"}
    assert {answer.split()[0] for answer in watches[2].answers} == {"200"}
    assert asked(lab.trust, addresses[0]).text == "ok, and newer\n"
    go_through(lab, tmp_path)
