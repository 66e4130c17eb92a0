# SPDX-License-Identifier: GPL-2.0-or-later
"""Room for builds on a builder's disk: what nobody uses goes before a build is refused."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kernels.builds.builder import Builder, Limits
from kernels.builds.layers import VARIANT_BYTES, Layers, bytes_taken
from kernels.errors import DiskFull
from kernels.files.scratch import locked
from kernels.tests.pretend import PretendKernel

pytestmark = pytest.mark.process
MIB = 1 << 20


@pytest.fixture
def layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layers:
    """Two layers and a source of a MiB each, alone on a disk of 4 MiB; "old" was used before the source, "new" after it."""
    made = Layers(tmp_path)
    for age, name in ((300, "old"), (100, "new")):
        folder = made.objects_of(name)
        folder.mkdir(parents=True)
        (folder / "vmlinux").write_bytes(b"x" * MIB)
        _used(made.lock(f"layer-{name}"), age)
    (made.sources / "tree-1").mkdir(parents=True)
    (made.sources / "tree-1" / "main.c").write_bytes(b"x" * MIB)
    _used(made.lock("source-tree-1"), 200)
    monkeypatch.setattr("kernels.builds.layers.free_bytes", lambda _: 4 * MIB - MIB * len(left(made)))
    return made


def _used(lock: Path, age: int) -> None:
    with locked(lock):
        pass
    os.utime(lock, (1e9 - age, 1e9 - age))


def left(layers: Layers) -> list[str]:
    """Return the names of what is there."""
    places = [*layers.objects.glob("*/obj"), *layers.sources.glob("*")]
    return sorted(path.parent.name if path.name == "obj" else path.name for path in places)


def test_while_there_is_room_nothing_goes(layers: Layers) -> None:
    assert layers.make_room(MIB, "a build") == 0
    assert left(layers) == ["new", "old", "tree-1"]


def test_what_was_not_used_for_longest_goes_until_there_is_room(layers: Layers) -> None:
    assert layers.make_room(2 * MIB, "a build") == 1
    assert left(layers) == ["new", "tree-1"]
    assert layers.make_room(3 * MIB, "a build") == 1
    assert left(layers) == ["new"]
    assert list(layers.scratch.iterdir()) == []


def test_a_use_is_what_counts_not_the_age(layers: Layers) -> None:
    with locked(layers.lock("layer-old"), shared=True):
        pass
    layers.make_room(2 * MIB, "a build")
    assert left(layers) == ["new", "old"]


def test_what_a_build_uses_stays(layers: Layers) -> None:
    with locked(layers.lock("layer-old"), shared=True):
        assert layers.make_room(2 * MIB, "a build") == 1
    assert left(layers) == ["new", "old"]


def test_what_another_build_has_just_removed_ends_no_build(
    layers: Layers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def after_the_other(top: Path) -> int:
        shutil.rmtree(layers.objects / "old", ignore_errors=True)
        return bytes_taken(top)

    monkeypatch.setattr("kernels.builds.layers.bytes_taken", after_the_other)
    assert layers.make_room(3 * MIB, "a build") == 1
    assert left(layers) == ["new"]


def test_what_is_to_be_spare_is_made_where_that_can_be(layers: Layers) -> None:
    assert layers.make_room(MIB, "a build", spare=5 * MIB) == 0
    assert layers.make_room(MIB, "a build", spare=3 * MIB) == 2
    assert left(layers) == ["new"]


def test_where_all_of_it_would_not_do_nothing_goes_for_nothing(layers: Layers) -> None:
    with pytest.raises(DiskFull, match="a build need"):
        layers.make_room(5 * MIB, "a build")
    assert left(layers) == ["new", "old", "tree-1"]


def test_a_build_leaves_the_most_room_and_keeps_what_it_stands_on(
    pretend: PretendKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = Builder(tmp_path, Limits(seconds=120, cores=2))
    builder.build(pretend.request())
    other = pretend.edited("include/linux/fs.h", "struct inode {", "/* Other. */\nstruct inode {")
    request = replace(pretend.request(other), base=other)
    builder.build(request)
    monkeypatch.setattr("kernels.builds.layers.free_bytes", lambda _: VARIANT_BYTES)
    lines: list[str] = []
    greedy = Builder(tmp_path, builder.limits, spare=VARIANT_BYTES + 1)
    variant = greedy.build(replace(request, revision=pretend.base), on_line=lines.append)
    layer = builder.layer_of(request).parent.name
    assert variant.metadata.layer == layer
    assert left(Layers(tmp_path)) == sorted([layer, f"pretend-{other.tree_id}"])
    assert "kperflab: removed 2 of the layers and sources, those unused for longest, for room" in lines
