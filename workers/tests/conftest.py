# SPDX-License-Identifier: GPL-2.0-or-later
"""A whole lab without a machine: the pretend kernel is really built, a fake driver plays the guests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings

import workers.app  # noqa: F401
from kernels.artifacts.store import Artifact, ArtifactStore
from kernels.builds.builder import Builder, BuildRequest
from kernels.builds.toolchain import detect_toolchain
from kernels.configs.request import ConfigRequest, Fragment
from kernels.tests.kept import begin_with_programs
from kernels.tests.pretend import CONFIG, PretendKernel
from kernels.trees.tree import DEFAULT_ARCHIVES, import_archive, resolve
from lab.experiments.spec import ExperimentSpec, spec_from_mapping
from lab.models import Experiment
from lab.submission.prepare import CONFIG_BASE, _base_fragments
from workers import local
from workers.drivers.base import BootRequest
from workers.drivers.fake import FakeDriver, Script, played
from workers.drivers.fake_guest import showgids_line
from workers.run import Bench
from workers.tests.machines import StandIn


def opens(ns_per_open: float, iterations: int = 3) -> Script:
    """A guest that runs showgids: one warm-up, then equal iterations."""
    lines = [
        showgids_line(index, ns_per_open * (1 + index / 1000), warmup=index == 0)
        for index in range(iterations)
    ]
    return Script(records=played("soft-roce", "") + played("open", "".join(lines)))


@dataclass
class FakeLab:
    """scripts: what the guests of a variant do, by its name; "" for all others."""

    home: Path
    kernel: PretendKernel
    driver: FakeDriver
    scripts: dict[str, Callable[[BootRequest], Script]] = field(default_factory=dict)

    def spec(self, patches: Mapping[str, str], **more: Any) -> ExperimentSpec:
        """A description over the pretend kernel: patches by name, as texts."""
        return spec_from_mapping(
            {
                "name": "pretend",
                "git": str(self.kernel.work),
                "base": self.kernel.base.commit,
                "patches": [{"name": name, "text": text} for name, text in patches.items()],
                "cases": [{"workload": "showgids", "preset": "smoke"}],
                "measure": {"boots": 3, "iterations": 2, "warmup": 1},
                **more,
            }
        )

    def run(self, spec: ExperimentSpec) -> Experiment:
        """Submit and work through."""
        experiment_id = local.take_up(spec, say=lambda line: None)
        local.work_through(experiment_id)
        return Experiment.objects.get(pk=experiment_id)

    def diff(self, name: str, old: str, new: str) -> str:
        """A patch that replaces one place of one file of the pretend kernel."""
        revision = self.kernel.edited(name, old, new)
        return self.kernel.diff(revision)


@pytest.fixture(scope="session")
def preferences_homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the names of folders, one for each test; only those that write preferences make it."""
    root = tmp_path_factory.mktemp("config")
    return (root / str(number) for number in count())


@pytest.fixture(autouse=True)
def nobodys_preferences(preferences_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The user who runs the tests may have their own lab."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(next(preferences_homes)))
    for name in ("LABCTL_SERVER", "LABCTL_TOKEN", "LABCTL_LOCAL"):
        monkeypatch.delenv(name, raising=False)


def kernels_here() -> list[Artifact]:
    """Real kernels that were built here before and boot over the network, the newest last."""
    store = ArtifactStore(django_settings.HOME / "artifacts")
    paths = sorted(store.root.glob("*/vmlinux.boot"), key=lambda path: path.stat().st_mtime)
    return [
        store.get(path.parent.name)
        for path in paths
        if store.has(path.parent.name) and "CONFIG_IP_PNP_DHCP=y" in path.with_name("config").read_text()
    ]


def built_base(*fragments: Fragment) -> Artifact:
    """The base that the whole path needs too, over whose objects one with further fragments is built."""
    tree = import_archive("debian-6.1", DEFAULT_ARCHIVES["debian-6.1"], django_settings.HOME / "trees")
    base = resolve(tree, "")
    plain = ConfigRequest(CONFIG_BASE, tuple(_base_fragments()))
    config = ConfigRequest(CONFIG_BASE, (*plain.fragments, *fragments))
    request = BuildRequest(tree, base, base, config, detect_toolchain(), base_config=plain)
    return Builder(django_settings.HOME, front=django_settings.FRONT).build(request)


@pytest.fixture(scope="session")
def artifact() -> Artifact:
    """Any kernel that has been built here before; else the base."""
    kept = kernels_here()
    return kept[-1] if kept else built_base()


@pytest.fixture(scope="session")
def other_artifact(artifact: Artifact) -> Artifact:
    """Another kernel than `artifact`, so of another release."""
    kept = [kernel for kernel in kernels_here() if kernel.metadata.release != artifact.metadata.release]
    return kept[-1] if kept else built_base(Fragment("other", 'CONFIG_DEFAULT_HOSTNAME="other"\n'))


@pytest.fixture(scope="session")
def pretend_kernel(tmp_path_factory: pytest.TempPathFactory) -> PretendKernel:
    return PretendKernel(tmp_path_factory.mktemp("pretend"))


@pytest.fixture(scope="session")
def fake_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return begin_with_programs(tmp_path_factory.mktemp("home"))


@pytest.fixture
def fake_lab(
    db: None,
    pretend_kernel: PretendKernel,
    fake_home: Path,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> FakeLab:
    settings.HOME = fake_home
    monkeypatch.setattr("lab.submission.prepare._base_fragments", lambda: list(CONFIG.fragments))
    monkeypatch.setattr("workers.run.choose_accelerator", lambda home, kernel, trusted: "tcg")
    lab = FakeLab(fake_home, pretend_kernel, FakeDriver(lambda request: Script()))

    def script_for(request: BootRequest) -> Script:
        variant = request.name.partition(":")[0]
        return lab.scripts.get(variant, lab.scripts[""])(request)

    lab.driver.script_for = script_for
    lab.scripts[""] = lambda request: opens(1000.0 + len(lab.driver.requests) % 3)
    monkeypatch.setattr("workers.loop.make_bench", lambda home: Bench(fake_home, {"libvirt": lab.driver}))
    return lab


@pytest.fixture
def stand_in(tmp_path: Path) -> Iterator[StandIn]:
    """A machine that is off, and boots only after a command to its BMC."""
    with StandIn(tmp_path) as machine:
        yield machine
