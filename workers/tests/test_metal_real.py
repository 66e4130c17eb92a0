# SPDX-License-Identifier: GPL-2.0-or-later
"""Metal, whole: a domain with a BMC and a ROM that boots from the network, our web server, a real kernel.

What machines that misbehave are called is tried without them: test_metal.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.test import Client

from kernels.artifacts.store import Artifact
from lab.models import Netboot, NetbootPiece, Run, Sample, Target
from lab.runs.claim import MOST_ATTEMPTS
from lab.targets.netboot.boots import close_netboot
from lab.tests.factories import make_build, make_case, make_experiment, make_run, make_variant
from workers.drivers.metal import CMDLINE
from workers.loop import Scope, take_one
from workers.tests.machines import StandIn, await_true
from workloads.catalog import load_catalog

pytestmark = [pytest.mark.real, pytest.mark.campaign, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def machine(tmp_path: Path, live_server: Any, settings: Any) -> Iterator[StandIn]:
    """A machine whose DHCP sends it to the live server."""
    settings.NETBOOT_URL = f"http://10.0.2.2:{live_server.url.rpartition(':')[2]}"
    settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, "10.0.2.2"]
    address = f"{settings.NETBOOT_URL}/netboot/${{mac}}.ipxe"
    with StandIn(tmp_path, bootfile=address, memory_mib=512, vcpus=2) as stand_in:
        yield stand_in


def queued(machine: StandIn, access: dict[str, Any], artifact: Artifact, workload: str, **run: Any) -> Run:
    """A run of a workload's smallest preset that waits for the machine."""
    target = Target.objects.create(name="metal-1", driver="metal", vcpus=2, memory_mib=512, access=access)
    experiment = make_experiment(name="metal", target=target, iterations=2, warmup=1)
    release = artifact.metadata.release
    build = make_build("metal", state="built", artifact_key=artifact.key, release=release)
    variant = make_variant(experiment, build=build, state="ready")
    params = dict(load_catalog()[workload].resolve("smoke", {}))
    return make_run(variant, make_case(experiment, workload=workload, params=params), **run)


def queued_next(run: Run, artifact: Artifact) -> Run:
    """A further boot of the same experiment with another kernel, in a block of its own."""
    release, number = artifact.metadata.release, run.block + 1
    build = make_build(f"metal {number}", state="built", artifact_key=artifact.key, release=release)
    variant = make_variant(run.experiment, f"p{number}", build=build, state="ready")
    return make_run(variant, run.case, block=number)


def carried_out(run: Run) -> Run:
    """The run after the very task that workers run; again where a BMC was too busy to answer, as the lab does."""
    for _ in range(MOST_ATTEMPTS):
        asked = run.experiment.target.name
        assert take_one(Scope(builds=False, target=asked, experiment_id=run.experiment_id))
        run.refresh_from_db()
        if run.state != "queued":
            break
    return run


def nothing_is_left(machine: StandIn) -> None:
    assert not machine.is_on()
    assert Netboot.objects.exists()
    assert not Netboot.objects.filter(closed_at=None).exists()
    assert not NetbootPiece.objects.exists()


def test_a_machine_behind_ipmi_runs_a_workload_and_its_samples_are_in_the_tables(
    machine: StandIn, artifact: Artifact, client: Client
) -> None:
    access = machine.access(machine.ipmi(), fragments=[]).model_dump()
    run = carried_out(queued(machine, access, artifact, "showgids"))
    assert (run.state, run.outcome, run.problem) == ("done", "finished", "")
    assert Sample.objects.filter(run=run, metric="ns_per_open", warmup=False).count() == 2
    guest, host = run.environment["guest"], run.environment["host"]
    assert guest["release"] == artifact.metadata.release
    assert re.search(r"ip=dhcp.*/netboot/…", guest["cmdline"])
    assert (host["machine"], host["power"], host["accelerator"]) == ("metal", "ipmi", "none")
    assert 0 < host["firmware_s"] < host["boot_s"]
    nothing_is_left(machine)
    assert client.get(f"/runs/{run.pk}/").status_code == 200


def test_a_machine_behind_redfish_brings_its_disk_along_and_hands_in_its_console(
    machine: StandIn, artifact: Artifact
) -> None:
    access = machine.access(machine.redfish(), fragments=[]).model_dump()
    run = carried_out(queued(machine, access, artifact, "stat-walk"))
    assert (run.state, run.outcome, run.problem) == ("done", "finished", "")
    assert Sample.objects.filter(run=run, metric="elapsed", warmup=False).count() == 2
    console = (Path(django_settings.HOME) / run.console).read_text(errors="replace")
    assert f"Linux version {artifact.metadata.release}" in console
    assert "EXT4-fs (ram0): mounted" in console
    nothing_is_left(machine)


def test_a_machine_whose_kernel_panics_starts_again_and_that_is_seen_without_a_console(
    machine: StandIn, artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.drivers.metal.CMDLINE", (*CMDLINE, "rdinit=/bin/false"))
    access = machine.access(machine.redfish(), fragments=[]).model_dump()
    run = carried_out(queued(machine, access, artifact, "showgids"))
    assert (run.state, run.outcome, run.blame) == ("failed", "boot-failed", "kernel")
    assert run.problem == "the machine reset or switched itself off while it booted"
    assert Netboot.objects.latest("pk").fetches >= 2
    nothing_is_left(machine)


def test_a_machine_goes_from_kernel_to_kernel_by_kexec_and_by_power_where_a_kernel_refuses(
    machine: StandIn,
    artifact: Artifact,
    other_artifact: Artifact,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    access = machine.access(machine.ipmi(), fragments=[], kexec=True).model_dump()
    first = queued(machine, access, artifact, "showgids")
    second = queued_next(first, other_artifact)
    third = queued_next(second, artifact)

    def went(run: Run) -> tuple[str, str, str]:
        host = carried_out(run).environment["host"]
        print(f"boot {run.block} by {host['way']}: its first record after {host['boot_s']:.1f} s")
        assert machine.is_on()
        return run.outcome, host["way"], run.environment["guest"]["release"]

    assert went(first) == ("finished", "power", artifact.metadata.release)
    # As a kernel does that is locked down.
    locked = (*CMDLINE, "sysctl.kernel.kexec_load_disabled=1")
    with monkeypatch.context() as patched:
        patched.setattr("workers.drivers.metal.CMDLINE", locked)
        assert went(second) == ("finished", "kexec", other_artifact.metadata.release)
    assert Sample.objects.filter(run=second, metric="ns_per_open", warmup=False).count() == 2
    assert "firmware_s" not in second.environment["host"]
    assert went(third) == ("finished", "power", artifact.metadata.release)
    assert third.environment["host"]["kexec_failed"].startswith("this kernel cannot load another: ")
    assert "Operation not permitted" in third.environment["host"]["kexec_failed"]
    assert "kexec failed" in client.get(f"/runs/{third.pk}/").content.decode()
    # Nothing more for it: it switches itself off.
    close_netboot(Netboot.objects.get(closed_at=None).pk)
    await_true(lambda: not machine.is_on(), "the machine is off after the answer that nothing follows")
    nothing_is_left(machine)
