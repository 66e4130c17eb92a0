# SPDX-License-Identifier: GPL-2.0-or-later
"""Nothing is booted but what a machine of this lab signed, byte for byte; all else is built again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from django.utils import timezone

from kernels.artifacts.metadata import ArtifactRecord, write_record
from kernels.artifacts.signature import Seal
from kernels.artifacts.store import METADATA, Artifact, ArtifactStore
from kernels.tests.kept import begin_with_programs
from lab.models import Build, Experiment, Run, SigningKey
from lab.storage.artifacts import artifacts_of
from lab.submission.submit import submit_experiment
from workers import local
from workers.tests.conftest import FakeLab

pytestmark = [pytest.mark.hostile, pytest.mark.django_db, pytest.mark.process]


@pytest.fixture(scope="module")
def fake_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state root of these tests alone: what they spoil is built again over its layer."""
    return begin_with_programs(tmp_path_factory.mktemp("home"))


@pytest.fixture
def built(fake_lab: FakeLab) -> tuple[Experiment, Artifact]:
    """An experiment whose kernel is built, and nothing of it booted."""
    measure = {"boots": 2, "iterations": 2, "warmup": 1}
    experiment = submit_experiment(spec=fake_lab.spec({}, measure=measure), home=fake_lab.home)
    local.build_all(experiment.pk)
    key = Build.objects.get(variants__experiment=experiment, variants__name="base").artifact_key
    return experiment, artifacts_of(fake_lab.home).verify(key)


def _kernel(artifact: Artifact) -> None:
    data = bytearray(artifact.boot_vmlinux.read_bytes())
    data[len(data) // 2] ^= 1
    artifact.boot_vmlinux.write_bytes(data)


def _image(artifact: Artifact) -> None:
    data = artifact.image.read_bytes()
    artifact.image.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def _unsigned(artifact: Artifact) -> None:
    path = artifact.directory / METADATA
    said = json.loads(path.read_text())
    path.write_text(json.dumps({"format": 1, "metadata": said["metadata"], "files": said["files"]}))


def _no_signature(artifact: Artifact) -> None:
    path = artifact.directory / METADATA
    said = json.loads(path.read_text())
    del said["signature"]
    path.write_text(json.dumps(said))


def _signed_by_another(artifact: Artifact) -> None:
    """Another kernel, with hashes of its own and a signature of a key that nobody registered."""
    artifact.boot_vmlinux.write_bytes(b"another kernel")
    place = artifact.directory
    shutil.move(place, place.with_name("made"))
    theirs = ArtifactStore(place.parent, Seal(place.parent / "their-keys"))
    (place.with_name("made") / METADATA).unlink()
    theirs.add(artifact.key, place.with_name("made"), artifact.metadata)


def _of_another_key(artifact: Artifact) -> None:
    """A signed artifact under a key that it was not built for."""
    seal = artifacts_of(artifact.directory.parent.parent).seal
    files = artifacts_of(artifact.directory.parent.parent).record(artifact.key).files
    record = ArtifactRecord(artifact.metadata, files)
    (artifact.directory / METADATA).write_bytes(write_record("0" * 64, record, seal))


@pytest.mark.parametrize(
    "spoil",
    [_kernel, _image, _unsigned, _no_signature, _signed_by_another, _of_another_key],
    ids=lambda spoil: spoil.__name__.strip("_"),
)
def test_a_spoilt_kernel_is_built_again_and_never_booted(
    fake_lab: FakeLab, built: tuple[Experiment, Artifact], spoil: Callable[[Artifact], None]
) -> None:
    experiment, artifact = built
    honest = {path: path.read_bytes() for path in (artifact.boot_vmlinux, artifact.image)}
    spoil(artifact)
    spoilt = {path.read_bytes() for path in honest if path.is_file()} - set(honest.values())
    booted: list[bytes] = []
    script = fake_lab.scripts[""]

    def seen(request):  # type: ignore[no-untyped-def]
        booted.append(request.kernel.read_bytes())
        return script(request)

    fake_lab.scripts[""] = seen
    local.work_through(experiment.pk)
    experiment.refresh_from_db()
    assert experiment.state == "done"
    assert booted
    assert not spoilt & set(booted)
    assert set(booted) <= set(honest.values())
    assert artifacts_of(fake_lab.home).verify(artifact.key)
    assert not Run.objects.exclude(state="done").exists()


def test_the_first_build_of_a_machine_writes_its_key_down(
    fake_lab: FakeLab, built: tuple[Experiment, Artifact]
) -> None:
    key = SigningKey.objects.get()
    said = json.loads((built[1].directory / METADATA).read_text())
    assert said["signature"]["key"] == key.public
    assert Path(fake_lab.home / "keys" / "artifacts.pem").stat().st_mode & 0o777 == 0o600


def test_kernels_of_a_revoked_key_are_built_again_and_signed_anew(
    fake_lab: FakeLab, built: tuple[Experiment, Artifact]
) -> None:
    experiment, artifact = built
    SigningKey.objects.update(revoked_at=timezone.now())
    local.work_through(experiment.pk)
    experiment.refresh_from_db()
    assert experiment.state == "done"
    said = json.loads((artifact.directory / METADATA).read_text())
    assert said["signature"]["key"] == SigningKey.objects.get(revoked_at=None).public
