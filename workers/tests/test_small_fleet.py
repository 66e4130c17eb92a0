# SPDX-License-Identifier: GPL-2.0-or-later
"""Three hosts as one lab: the playbook sets them up, the kernels of one are booted by the others through one store, and a host whose
power is cut in the middle of a boot costs time alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.tests.stores import moto as moto
from workers.tests import smoke
from workers.tests.debianbase import ROOT, caches_held
from workers.tests.live import LiveKernel
from workers.tests.provisioned import LAB, commit_after
from workers.tests.threehosts import BENCHES, LEASE_S, STORE, Client, ThreeHosts, three_hosts
from workers.tests.watching import watched

pytestmark = pytest.mark.provision

# Of each kernel: nine minutes of two benches, longer than an upgrade takes.
MANY_BOOTS = 40
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
    with caches_held(), three_hosts(tmp_path_factory.mktemp("fleet"), moto) as hosts:
        yield hosts


@pytest.fixture(scope="module")
def fleet(empty: ThreeHosts) -> ThreeHosts:
    """The three after their first playbook."""
    counts = empty.fleet.play("site.yml")
    assert counts["failed"] == counts["unreachable"] == 0
    return empty


@pytest.fixture(scope="module")
def client(fleet: ThreeHosts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """An operator who submits kernels of a repository that the server alone has."""
    with fleet.client(LiveKernel(tmp_path_factory.mktemp("kernel"))) as client:
        yield client


def answered(experiment: dict[str, Any]) -> bool:
    """Tell whether an experiment ended with a verdict."""
    return experiment["state"] == "done" and experiment["exit_code"] in (0, 1, 2)


def recorded_once(runs: list[dict[str, Any]]) -> bool:
    """Tell whether every boot is done, each place of a block by one of them, and all have equally many samples."""
    places = [tuple(run["place"]) for run in runs]
    return (
        {run["state"] for run in runs} == {"done"}
        and len(set(places)) == len(places)
        and len({run["samples"] for run in runs}) == 1
    )


def failed_units(fleet: ThreeHosts) -> dict[str, str]:
    """Return what systemd calls failed, by host."""
    return {
        name: host.run("systemctl --failed --no-legend --plain").strip() for name, host in fleet.hosts.items()
    }


def test_a_kernel_built_on_one_host_is_booted_by_the_two_others(fleet: ThreeHosts, client: Client) -> None:
    number = client.submit("three hosts")
    assert answered(client.ended(number))
    runs = fleet.runs(number)
    assert recorded_once(runs), runs
    assert {run["target"] for run in runs} == set(BENCHES)
    # Pages read on the server what the two others wrote.
    assert fleet.lab.run("ls /var/lib/kperflab/lab/runs 2>/dev/null; true").split() == []
    for run in runs:
        assert "Linux version (a fake one)" in client.console(run["id"])
    assert failed_units(fleet) == dict.fromkeys(fleet.hosts, "")


def test_a_boot_whose_host_loses_power_is_done_by_the_other(fleet: ThreeHosts, client: Client) -> None:
    number = client.submit("a host is taken away")
    lost = client.boot_on("bench2")
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
    assert failed_units(fleet) == dict.fromkeys(fleet.hosts, "")


def test_a_directory_that_all_mount_is_a_store_as_well(fleet: ThreeHosts, client: Client) -> None:
    fleet.lab.run(f"chown kperflab: {STORE}")
    counts = fleet.fleet.play("site.yml", "-e", f"lab_store={STORE}")
    assert counts["failed"] == 0
    number = client.submit("a directory")
    assert answered(client.ended(number))
    runs = fleet.runs(number)
    assert recorded_once(runs), runs
    kept = fleet.lab.run(f"ls {STORE} {STORE}/runs").split()
    assert {"artifacts", *(f"{run['id']}-{run['attempt']}" for run in runs)} <= set(kept)
    for run in runs:
        assert "Linux version (a fake one)" in client.console(run["id"])


def test_an_experiment_goes_on_where_the_server_itself_loses_power(fleet: ThreeHosts, client: Client) -> None:
    number = client.submit("the server is taken away")
    client.boot_on("bench1")
    fleet.lab.cut_power()
    fleet.lab.power_on()
    smoke.wait_for_page(f"{fleet.fleet.url}/health/", seconds=300)
    assert answered(client.ended(number))
    assert recorded_once(fleet.runs(number))
    assert failed_units(fleet) == dict.fromkeys(fleet.hosts, "")


def test_an_upgrade_with_a_migration_while_both_benches_boot(
    fleet: ThreeHosts, client: Client, tmp_path: Path
) -> None:
    number = client.submit("an upgrade meanwhile", boots=MANY_BOOTS)
    client.boot_on("bench1")
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
    assert answered(client.ended(number))
    assert recorded_once(fleet.runs(number))
