# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import random
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from kernels.errors import BundleRefused, KernelsError
from kernels.tests.pretend import PretendKernel
from kernels.tests.synced import inodes_synced
from kernels.trees.extract import extract_tree
from kernels.trees.git import run_git
from kernels.trees.git_bundle import has_commit, take_bundle, tree_from_bundle, tree_of, write_bundle
from kernels.trees.tree import NamedRevision, open_tree

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> PretendKernel:
    return PretendKernel(tmp_path_factory.mktemp("pretend"))


@pytest.fixture(scope="module")
def patched(kernel: PretendKernel) -> NamedRevision:
    return kernel.variant({"fs/inode.c": "int changed;\n"})


@pytest.fixture
def bundles(kernel: PretendKernel, patched: NamedRevision, tmp_path: Path) -> tuple[Path, Path]:
    """The base alone, and the patched revision over it."""
    whole, thin = tmp_path / "whole.bundle", tmp_path / "thin.bundle"
    write_bundle(kernel.tree.repository, kernel.base.commit, "", whole)
    write_bundle(kernel.tree.repository, patched.commit, kernel.base.commit, thin)
    return whole, thin


@pytest.fixture
def there(kernel: PretendKernel, bundles: tuple[Path, Path], tmp_path: Path) -> Path:
    """A repository that has the base alone."""
    tree_from_bundle("pretend", tmp_path / "trees", bundles[0], kernel.base.commit)
    return tmp_path / "trees" / "pretend.git"


def objects(repository: Path) -> set[str]:
    return {str(path) for path in (repository / "objects").rglob("*") if path.is_file()}


def test_what_a_killed_worker_unpacked_is_removed(
    kernel: PretendKernel, patched: NamedRevision, bundles: tuple[Path, Path], there: Path
) -> None:
    """Each would keep the size of a kernel's sources for ever."""
    take = (
        "import sys; from pathlib import Path; import kernels.trees.git_bundle as bundles\n"
        "bundles._must_be_whole = lambda *_: __import__('os').kill(__import__('os').getpid(), 9)\n"
        "bundles.take_bundle(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])"
    )
    arguments = [str(there), str(bundles[1]), patched.commit, kernel.base.commit]
    killed = subprocess.run([sys.executable, "-c", take, *arguments], timeout=60)
    assert killed.returncode == -9
    assert len(list((there / "objects").rglob("*.pack"))) == 2
    take_bundle(there, bundles[1], patched.commit, kernel.base.commit)
    take_bundle(there, bundles[1], patched.commit, kernel.base.commit)
    assert [path.parent.name for path in (there / "objects").rglob("*.pack")] == ["pack", "pack"]


def test_a_power_cut_leaves_no_tree_without_its_settings(
    kernel: PretendKernel, bundles: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git does not write these out itself; with an empty config the tree has to be removed and fetched again."""
    synced = inodes_synced(monkeypatch)
    tree_from_bundle("pretend", tmp_path / "trees", bundles[0], kernel.base.commit)
    repository = tmp_path / "trees" / "pretend.git"
    files = ("config", "info/attributes", "shallow")
    assert [name for name in files if repository.joinpath(name).stat().st_ino not in synced] == []


def test_a_base_and_what_is_over_it_arrive_with_their_ids(
    kernel: PretendKernel, patched: NamedRevision, bundles: tuple[Path, Path], there: Path, tmp_path: Path
) -> None:
    assert has_commit(there, kernel.base.commit)
    assert not has_commit(there, patched.commit)
    assert bundles[1].stat().st_size < bundles[0].stat().st_size / 4
    take_bundle(there, bundles[1], patched.commit, kernel.base.commit)
    assert tree_of(there, patched.commit) == patched.tree_id
    extract_tree(open_tree("pretend", there.parent), patched.tree_id, tmp_path / "out")
    assert (tmp_path / "out" / "fs" / "inode.c").read_text() == "int changed;\n"
    run_git(there, "fsck", "--strict", "--no-dangling")


def test_a_commit_without_its_history_is_whole(
    kernel: PretendKernel, patched: NamedRevision, tmp_path: Path
) -> None:
    file = tmp_path / "later.bundle"
    write_bundle(kernel.tree.repository, patched.commit, "", file)
    tree_from_bundle("other", tmp_path / "trees", file, patched.commit)
    repository = tmp_path / "trees" / "other.git"
    assert has_commit(repository, patched.commit)
    assert not has_commit(repository, kernel.base.commit)
    assert tree_of(repository, patched.commit) == patched.tree_id


def test_a_bundle_of_another_commit_ref_or_base_is_refused(
    kernel: PretendKernel, patched: NamedRevision, bundles: tuple[Path, Path], there: Path
) -> None:
    before, base = objects(there), kernel.base.commit
    whole, thin = bundles
    data = thin.read_bytes()
    heads = {
        "another ref": data.replace(b"refs/kperflab/", b"refs/heads/aaaaa/", 1),
        "two refs": data.replace(b"\n\n", f"\n{base} refs/heads/main\n\n".encode(), 1),
        "another format": data.replace(b"# v2", b"# v3", 1),
        "nothing": b"",
        "no end of the head": data.split(b"\n\n", 1)[0],
        "a long line": b"# v2 git bundle\n" + b"x" * 100_000,
    }
    for text in heads.values():
        thin.write_bytes(text)
        with pytest.raises(BundleRefused, match="is of another commit"):
            take_bundle(there, thin, patched.commit, base)
    with pytest.raises(BundleRefused):
        take_bundle(there, whole, patched.commit, base)
    thin.write_bytes(data)
    with pytest.raises(BundleRefused):
        take_bundle(there, thin, patched.commit, "")
    assert objects(there) == before
    assert not has_commit(there, patched.commit)


def test_a_damaged_bundle_leaves_nothing(
    kernel: PretendKernel, patched: NamedRevision, bundles: tuple[Path, Path], there: Path
) -> None:
    before, data, drawn = objects(there), bundles[1].read_bytes(), random.Random(1)
    start = data.index(b"PACK")
    spoilt = [data[:-5], data[: start + 20], data[:start]]
    for _ in range(8):
        changed = bytearray(data)
        changed[drawn.randrange(start, len(data))] ^= 1 << drawn.randrange(8)
        spoilt.append(bytes(changed))
    for text in spoilt:
        bundles[1].write_bytes(text)
        with pytest.raises(BundleRefused, match=r"is damaged|lacks a part"):
            take_bundle(there, bundles[1], patched.commit, kernel.base.commit)
    assert objects(there) == before
    assert list((there / "objects" / ".coming").iterdir()) == []


def test_a_bundle_that_lacks_a_file_is_refused(
    kernel: PretendKernel, patched: NamedRevision, bundles: tuple[Path, Path], there: Path, tmp_path: Path
) -> None:
    repository = kernel.tree.repository
    only = run_git(repository, "pack-objects", "--stdout", data=f"{patched.commit}\n".encode())
    head = bundles[1].read_bytes().split(b"PACK", 1)[0]
    bundles[1].write_bytes(head + only)
    with pytest.raises(BundleRefused):
        take_bundle(there, bundles[1], patched.commit, kernel.base.commit)
    assert not has_commit(there, patched.commit)


def test_a_tree_that_could_not_be_made_is_not_there(bundles: tuple[Path, Path], tmp_path: Path) -> None:
    bundles[0].write_bytes(bundles[0].read_bytes()[:-50])
    with pytest.raises(KernelsError):
        tree_from_bundle("pretend", tmp_path / "none", bundles[0], "1" * 40)
    assert not (tmp_path / "none" / "pretend.git").exists()


@pytest.mark.parametrize("commit", ["", "HEAD", "--all", "1" * 39, "g" * 40])
def test_what_is_no_commit_is_in_no_repository(kernel: PretendKernel, commit: str) -> None:
    assert not has_commit(kernel.tree.repository, commit)


def test_a_large_bundle_is_not_held_in_memory(kernel: PretendKernel, there: Path, tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(24 << 20).hex()
    large = kernel.variant({"fs/large.c": noise})
    bundle = tmp_path / "large.bundle"
    write_bundle(kernel.tree.repository, large.commit, kernel.base.commit, bundle)
    assert bundle.stat().st_size > 24 << 20
    tracemalloc.start()
    try:
        take_bundle(there, bundle, large.commit, kernel.base.commit)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert has_commit(there, large.commit)
