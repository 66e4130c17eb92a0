# SPDX-License-Identifier: GPL-2.0-or-later
"""The whole path on a real kernel: debian-6.1 is built and booted, all workloads run, pages show it.

Kernels stay under the tests' state root, so that only the first `make test` compiles them.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from django.conf import settings
from django.test import Client

import workers.app  # noqa: F401
from lab.experiments.spec import spec_from_mapping
from lab.models import Comparison, Experiment, Profile, Run, Sample
from lab.runs import validity
from workers import local
from workers.bench import make_bench
from workers.drivers.leftovers import BootId
from workers.drivers.libvirt import LibvirtDriver
from workloads.catalog import load_catalog

pytestmark = [pytest.mark.real, pytest.mark.django_db]

DESCRIPTION = {
    "name": "all workloads, with and without the buffer head cache",
    "tree": "debian-6.1",
    "patches": [{"name": "no-bh-lru", "catalog": "buffer-no-bh-lru"}],
    "cases": [
        {"workload": "stat-walk", "preset": "smoke", "profile": False},
        {"workload": "showgids", "preset": "smoke", "profile": True},
        {"workload": "cyclictest-bh", "preset": "smoke", "profile": False},
        {"workload": "bh-lookup", "preset": "smoke", "profile": False},
    ],
    "measure": {
        "boots": 2,
        "iterations": 2,
        "warmup": 1,
        "verify": True,
        "profile_boots": 1,
        "off_cpu": True,
        "seed": 7,
    },
}


@pytest.fixture
def experiment(db: None, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    # A virtual host may lose a tenth of its CPU time to its own host, minutes long. Whether such boots count is for
    # lab/runs/tests/test_validity.py; here all count, so that what is asserted does not depend on the host's neighbours.
    monkeypatch.setattr(validity, "MOST_STEAL", 1.0)
    monkeypatch.setattr(validity, "MOST_LOAD", float("inf"))
    experiment_id = local.take_up(spec_from_mapping(DESCRIPTION), say=print)
    local.work_through(experiment_id)
    return Experiment.objects.get(pk=experiment_id)


def test_a_patch_becomes_verdicts_on_a_real_kernel(experiment: Experiment, client: Client) -> None:
    troubles = list(
        experiment.runs.exclude(state="done").values_list("case__workload", "problem", "problem_detail")
    )
    builds = list(experiment.variants.values_list("name", "build__problem", "build__problem_detail"))
    assert (experiment.state, troubles) == ("done", []), (experiment.problem, builds)
    _each_kernel_was_the_right_one(experiment)
    _each_metric_has_its_samples(experiment)
    _the_walk_was_cold(experiment)
    _the_profile_names_the_path_of_the_mail(experiment)
    _the_pages_show_it(experiment, client)
    assert _own_guests() == []


def _own_guests() -> list[str]:
    """Domains of this process that are still there once the driver says that it is done."""
    driver = make_bench(settings.HOME).drivers["libvirt"]
    assert isinstance(driver, LibvirtDriver)
    driver.close()
    names = driver.hypervisor.domains(driver.traces.prefix)
    return [name for name in names if BootId.read(name).pid == os.getpid()]


def _each_kernel_was_the_right_one(experiment: Experiment) -> None:
    for run in experiment.runs.select_related("variant__build"):
        assert run.variant.build is not None
        assert run.environment["guest"]["release"] == run.variant.build.release
        assert run.environment["host"]["accelerator"] in {"kvm", "tcg"}
    assert len({v.build.code_hash for v in experiment.variants.all() if v.build}) == 2


def _each_metric_has_its_samples(experiment: Experiment) -> None:
    for case in experiment.cases.all():
        wanted = set(load_catalog()[case.workload].metrics_of(case.params))
        for run in Run.objects.filter(case=case, purpose="measured"):
            counts = Counter(Sample.objects.filter(run=run, warmup=False).values_list("metric", flat=True))
            assert counts == dict.fromkeys(wanted, 2), run.pk
        compared = set(Comparison.objects.filter(case=case).values_list("metric", flat=True))
        assert compared == wanted, list(Run.objects.exclude(invalid=[]).values_list("pk", "invalid"))


def _the_walk_was_cold(experiment: Experiment) -> None:
    run = experiment.runs.filter(purpose="verified", case__workload="stat-walk").first()
    assert run is not None
    counted = run.extras["find_inode_fast"]
    params = run.case.params
    files = params["threads"] * params["dirs"] * params["files"]
    missed = sum(row["count"] for row in counted if row["null"])
    # Each file's inode is looked for, not found, made, and looked for once more before it is hashed.
    assert missed >= 2 * files


def _the_profile_names_the_path_of_the_mail(experiment: Experiment) -> None:
    profiles = Profile.objects.filter(run__experiment=experiment).select_related("run__variant__build")
    for profile in profiles.filter(kind="cpu"):
        assert profile.samples > 200
        assert profile.kernel_build_id
        assert profile.overhead is not None
    kinds = Counter(profiles.values_list("kind", flat=True))
    assert kinds == {"cpu": 3, "lock": 3, "off-cpu": 3}
    # Of waits off the CPU a sample is a nanosecond; a thread that reads sysfs in parallel with others waits at least once.
    assert all(profile.samples > 0 for profile in profiles.filter(kind="off-cpu"))
    for run in experiment.runs.filter(purpose="profiled"):
        assert run.counters["perf stat"]["context-switches"] > 0
        assert set(run.counters) == {"perf stat", "vmstat", "slab"}
        assert any("PMU" in row["why"] for row in run.unavailable)


def _the_pages_show_it(experiment: Experiment, client: Client) -> None:
    page = client.get(f"/experiments/{experiment.pk}/comparison/")
    assert page.status_code == 200
    text = page.content.decode()
    for word in ("ns_per_open", "p99", "user", "system", "no-bh-lru", "ns per __find_get_block"):
        assert word in text
    case = experiment.cases.get(workload="showgids")
    flames = client.get(f"/experiments/{experiment.pk}/profile/{case.pk}/")
    assert flames.status_code == 200
    assert "kernfs" in flames.content.decode()
