# SPDX-License-Identifier: GPL-2.0-or-later
"""Three hosts as one lab: the playbook sets them up, a kernel that one builds is booted by guests of the two others and by a machine
with a BMC, all through one store, and a host whose power is cut in the middle of a boot costs time alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.faults.real_kernel import RealKernel
from kernels.artifacts.store import Artifact
from lab.tests.stores import moto as moto
from workers.tests import smoke
from workers.tests.debianbase import ROOT, caches_held
from workers.tests.libvirtd import start_libvirtd
from workers.tests.machines import await_true
from workers.tests.provisioned import LAB, commit_after
from workers.tests.threehosts import BENCHES, GROUP, LEASE_S, MACHINE, STORE, Client, ThreeHosts, three_hosts
from workers.tests.watching import watched

pytestmark = pytest.mark.provision

# Of each kernel: minutes of two benches, and of a machine, so that the upgrade meets them at work.
MANY_BOOTS = {GROUP: 40, MACHINE: 3}
# Some of an emulated machine's boots end so where the processors are taken; the lab says so and goes on.
RESET = "the machine reset or switched itself off while it booted"
LAST_COLUMN = '    remark = models.TextField(blank=True, default="", db_default="")\n'
NEW_COLUMN = 'shelf = models.TextField(blank=True, default="", db_default="")'
MIGRATION = """from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("lab", "{newest}")]
    operations = [
        migrations.AddField("target", "shelf", models.TextField(blank=True, default="", db_default=""))
    ]
"""


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory, moto: str) -> Iterator[ThreeHosts]:
    if os.geteuid() != 0:
        pytest.skip("an empty machine is made of mounts: run as root")
    start_libvirtd()
    with caches_held(), three_hosts(tmp_path_factory.mktemp("fleet"), moto) as hosts:
        yield hosts


@pytest.fixture(scope="module")
def fleet(empty: ThreeHosts) -> ThreeHosts:
    """The three after their first playbook."""
    counts = empty.fleet.play("site.yml")
    assert counts["failed"] == counts["unreachable"] == 0
    return empty


@pytest.fixture(scope="module")
def client(
    fleet: ThreeHosts, artifact: Artifact, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    """An operator who submits kernels of a repository that the server alone has; its make hands out a real kernel."""
    with fleet.client(RealKernel(tmp_path_factory.mktemp("kernel"), artifact.directory)) as client:
        yield client


def answered(experiment: dict[str, Any]) -> bool:
    """Return whether an experiment ended with a verdict."""
    return experiment["state"] == "done" and experiment["exit_code"] in (0, 1, 2)


def recorded_once(runs: list[dict[str, Any]]) -> bool:
    """Return whether every boot is done, each place of a block by one of them, and all have equally many samples."""
    places = [tuple(run["place"]) for run in runs]
    recorded = booted(runs)
    return (
        {run["state"] for run in recorded} == {"done"}
        and len(set(places)) == len(places)
        and len({run["samples"] for run in recorded}) == 1
    )


def booted(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the boots but those of a machine that started again."""
    return [run for run in runs if (run["target"], run["problem"]) != (MACHINE, RESET)]


def read_back(client: Client, runs: list[dict[str, Any]]) -> bool:
    """Return whether the kernel that was built said its name in each boot, and the server has what it said of the workload's card."""
    return all(
        run["environment"]["guest"]["release"] == run["release"]
        and "infiniband rxe0: added d0" in client.console(run["id"])
        for run in booted(runs)
    )


def failed_units(fleet: ThreeHosts) -> dict[str, str]:
    """Return what systemd calls failed, by host."""
    return {
        name: host.run("systemctl --failed --no-legend --plain").strip() for name, host in fleet.hosts.items()
    }


def test_a_kernel_built_on_one_host_is_booted_by_guests_of_the_two_others(
    fleet: ThreeHosts, client: Client
) -> None:
    number = client.submit("three hosts")
    assert answered(client.ended(number))
    runs = fleet.runs(number)
    assert recorded_once(runs), runs
    assert {run["target"] for run in runs} == set(BENCHES)
    assert {run["environment"]["host"]["accelerator"] for run in runs} == {"tcg"}
    # Two kernels, and pages read on the server what the two others wrote.
    assert len({run["release"] for run in runs}) == 2
    assert read_back(client, runs)
    assert fleet.lab.run("ls /var/lib/kperflab/lab/runs 2>/dev/null; true").split() == []
    assert failed_units(fleet) == dict.fromkeys(fleet.hosts, "")


def test_a_machine_with_a_bmc_boots_it_from_the_server(fleet: ThreeHosts, client: Client) -> None:
    number = client.submit("a machine", boots=2, target=MACHINE)
    assert answered(client.ended(number))
    runs = fleet.runs(number)
    assert recorded_once(runs), runs
    hosts = [run["environment"]["host"] for run in booted(runs)]
    assert {(host["machine"], host["power"]) for host in hosts} == {("metal", "redfish")}
    assert {run["target"] for run in runs} == {MACHINE}
    assert read_back(client, runs)
    assert not fleet.machine.is_on()


def test_a_boot_whose_host_loses_power_is_done_by_the_other(fleet: ThreeHosts, client: Client) -> None:
    number = client.submit("a host is taken away")
    lost = client.boot_on("bench2")
    await_true(lambda: bool(fleet.guests("bench2")), "a guest on bench2")
    fleet.hosts["bench2"].cut_power()
    cut = time.monotonic()
    client.await_end_of(lost)
    print(f"free {time.monotonic() - cut:.1f} s after the cut, with a lease of {LEASE_S} s")
    assert answered(client.ended(number))
    runs = fleet.runs(number)
    assert recorded_once(runs), runs
    again = next(run for run in runs if run["id"] == lost["id"])
    assert (again["target"], again["attempt"]) == ("bench1", lost["attempt"] + 1)


def test_a_host_that_comes_back_takes_work_again(fleet: ThreeHosts, client: Client) -> None:
    bench = fleet.hosts["bench2"]
    bench.cut_power()
    bench.power_on()
    number = client.submit("a host is back")
    assert client.boot_on("bench2")["claimed_by"].startswith("bench2:")
    assert answered(client.ended(number))
    assert recorded_once(fleet.runs(number))
    await_true(lambda: not fleet.left_of_guests(), "nothing is left of guests")
    assert failed_units(fleet) == dict.fromkeys(fleet.hosts, "")


def test_a_directory_that_all_mount_is_a_store_as_well(fleet: ThreeHosts, client: Client) -> None:
    fleet.lab.run(f"chown kperflab: {STORE}")
    counts = fleet.fleet.play("site.yml", "-e", f"lab_store={STORE}")
    assert counts["failed"] == 0
    numbers = client.submit("a directory"), client.submit("a directory", boots=2, target=MACHINE)
    for number in numbers:
        assert answered(client.ended(number))
        runs = fleet.runs(number)
        assert recorded_once(runs), runs
        kept = fleet.lab.run(f"ls {STORE} {STORE}/runs").split()
        assert {"artifacts", *(f"{run['id']}-{run['attempt']}" for run in runs)} <= set(kept)
        assert read_back(client, runs)


def test_an_experiment_goes_on_where_the_server_itself_loses_power(fleet: ThreeHosts, client: Client) -> None:
    # Of one kernel, so that all boot at the same time.
    name = "the server is taken away"
    numbers = client.submit(name, boots=6), client.submit(name, boots=2, target=MACHINE)
    client.boot_on("bench1")
    lost = client.boot_on(MACHINE)
    await_true(fleet.machine.is_on, "the machine is on")
    fleet.lab.cut_power()
    # A machine stays on where the host that drives it is gone.
    assert fleet.machine.is_on()
    fleet.lab.power_on()
    smoke.wait_for_page(f"{fleet.fleet.url}/health/", seconds=300)
    for number in numbers:
        assert answered(client.ended(number))
        assert recorded_once(fleet.runs(number))
    again = next(run for run in fleet.runs(numbers[1]) if run["id"] == lost["id"])
    # What the machine asks of a server that is down waits in its socket. Answered after the next power-on, it costs one more attempt.
    assert again["attempt"] > lost["attempt"]
    assert not fleet.machine.is_on()
    assert failed_units(fleet) == dict.fromkeys(fleet.hosts, "")


def test_an_upgrade_with_a_migration_while_all_targets_boot(
    fleet: ThreeHosts, client: Client, tmp_path: Path
) -> None:
    numbers = [
        client.submit("an upgrade meanwhile", boots=boots, target=target)
        for target, boots in MANY_BOOTS.items()
    ]
    for target in (*BENCHES, MACHINE):
        client.boot_on(target)
    newest = sorted(path.stem for path in (ROOT / "lab/migrations").glob("0*.py"))[-1]
    edits = {
        "lab/models/hardware.py": (LAST_COLUMN, f"{LAST_COLUMN}    {NEW_COLUMN}\n"),
        "lab/migrations/9999_shelf.py": ("", MIGRATION.format(newest=newest)),
    }
    upgraded = commit_after(fleet.fleet.revision, tmp_path, edits)
    url = fleet.fleet.url
    with watched(True, f"{url}/health/", f"{url}/sign-in/") as watches:
        counts = fleet.fleet.play("upgrade.yml", "-e", f"lab_revision={upgraded}", "-e", f"lab_store={STORE}")
    assert counts["failed"] == 0
    assert {answer.split()[0] for watch in watches for answer in watch.answers} == {"200"}
    for host in fleet.hosts.values():
        assert host.run("readlink /opt/kperflab/current").strip() == f"/opt/kperflab/{upgraded}"
    assert "[X] 9999_shelf" in fleet.lab.run(f"{LAB} python3 manage.py showmigrations lab")
    for number in numbers:
        assert answered(client.ended(number))
        assert recorded_once(fleet.runs(number))
    await_true(lambda: not fleet.left_of_guests(), "nothing is left of guests")
    assert not fleet.machine.is_on()
