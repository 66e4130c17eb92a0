# SPDX-License-Identifier: GPL-2.0-or-later
"""Hostile files for the compiler front's stores, and the builds that must never read them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kernels.builds.compiled_files import CompiledFiles, is_whole
from kernels.builds.front_program import FrontSettings, place_front
from kernels.builds.tests.front_cases import HEADER, MAIN
from kernels.builds.tests.front_runs import IDENTITY, Bench

pytestmark = [pytest.mark.hostile, pytest.mark.process]

_KEY = "ab" * 31 + ".o"


@pytest.fixture
def stores(tmp_path: Path) -> CompiledFiles:
    """Stores with nothing in them."""
    return CompiledFiles(tmp_path / "stores")


def _whole(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=32).digest() + data


def _files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())


def _symlink(place: Path) -> None:
    (place / "ab").mkdir()
    (place / "ab" / _KEY).symlink_to("/etc/passwd")


def _folder_link(place: Path) -> None:
    (place / "ab").symlink_to("/etc")


def _pipe(place: Path) -> None:
    (place / "ab").mkdir()
    os.mkfifo(place / "ab" / _KEY)


def _forged(place: Path) -> None:
    (place / "ab").mkdir()
    (place / "ab" / _KEY).write_bytes(b"\0" * 64)


def _short(place: Path) -> None:
    (place / "ab").mkdir()
    (place / "ab" / _KEY).write_bytes(_whole(b"object")[:20])


def _sparse(place: Path) -> None:
    (place / "ab").mkdir()
    with (place / "ab" / _KEY).open("wb") as file:
        file.truncate(1 << 40)


def _folder(place: Path) -> None:
    (place / "ab" / _KEY).mkdir(parents=True)


def _named(name: str) -> Callable[[Path], None]:
    def put(place: Path) -> None:
        (place / "ab").mkdir()
        (place / "ab" / name).write_bytes(_whole(b"object"))

    return put


def _in_folder(name: str) -> Callable[[Path], None]:
    def put(place: Path) -> None:
        (place / name).mkdir()
        (place / name / _KEY).write_bytes(_whole(b"object"))

    return put


TRICKS: dict[str, Callable[[Path], None]] = {
    "a link": _symlink,
    "a link for a folder": _folder_link,
    "a pipe": _pipe,
    "a forged digest": _forged,
    "half a file": _short,
    "a huge sparse file": _sparse,
    "a folder for a file": _folder,
    "a short name": _named("ab.o"),
    "an unknown kind": _named("ab" * 31 + ".so"),
    "a hidden file": _named("." + _KEY),
    "a line end in a name": _named(_KEY + "\n"),
    "large letters": _named("AB" * 31 + ".o"),
    "a long folder": _in_folder("abc"),
    "another folder": _in_folder("trusted"),
    "a hidden folder": _in_folder(".ab"),
}


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS)
def test_anything_but_whole_files_by_their_names_is_refused(
    tmp_path: Path, stores: CompiledFiles, trick: Callable[[Path], None]
) -> None:
    written = tmp_path / "written"
    written.mkdir()
    trick(written)
    counts = stores.take("patch-1", written)
    assert counts["refused"] == (0 if trick is _folder_link else 1)
    assert not stores.root.exists()


@pytest.mark.parametrize(
    "origin", ["", "..", "../trusted", "a/b", "Trusted", "a\0b", ".", "a" * 64, "-a", "trusted\n"]
)
def test_an_origin_is_a_plain_name(tmp_path: Path, stores: CompiledFiles, origin: str) -> None:
    with pytest.raises(ValueError, match="names no origin"):
        stores.take(origin, tmp_path)
    with pytest.raises(ValueError, match="names no origin"):
        stores.readable(origin)


@pytest.mark.parametrize("origin", ["patch-2", "trusted", "tree-1"])
def test_what_one_origin_wrote_no_other_reads(tmp_path: Path, stores: CompiledFiles, origin: str) -> None:
    written = tmp_path / "written"
    (written / "ab").mkdir(parents=True)
    (written / "ab" / _KEY).write_bytes(_whole(b"poison"))
    assert stores.take("patch-1", written) == {}
    assert _files(stores.root) == [f"patch-1/ab/{_KEY}"]
    assert all(not (store / "ab" / _KEY).exists() for store in stores.readable(origin))


def test_a_poisoned_object_is_answered_to_its_own_origin_alone(tmp_path: Path, program: Path) -> None:
    bench = Bench(tmp_path / "bench", program)
    bench.write(h_h=HEADER, a_c=MAIN)
    good = bench.compile()
    stores = CompiledFiles(tmp_path / "stores")
    bench.write(a_c=MAIN.replace("calls++", "calls += 2"))
    evil = bench.compile()
    objects = sorted(bench.store.glob("*/*.o"), key=lambda path: path.stat().st_mtime_ns)
    objects[1].rename(objects[0])  # the evil object under the good one's key
    stores.take("patch-1", bench.store)
    bench.write(a_c=MAIN)
    for origin, expected in (("patch-1", evil), ("patch-2", good), ("trusted", good)):
        read = [str(path) for path in stores.readable(origin)]
        place_front(program, bench.folder / "front", FrontSettings("gcc", IDENTITY, read))
        assert bench.compile() == expected


def test_a_first_object_stays_when_a_second_comes_under_its_key(
    tmp_path: Path, stores: CompiledFiles
) -> None:
    for text in (b"first", b"second"):
        written = tmp_path / text.decode()
        (written / "ab").mkdir(parents=True)
        (written / "ab" / _KEY).write_bytes(_whole(text))
        stores.take("trusted", written)
    assert (stores.root / "trusted" / "ab" / _KEY).read_bytes() == _whole(b"first")


@pytest.mark.parametrize("at", [0, 31, 32, 39, 40, 100, -1])
def test_a_spoilt_object_is_compiled_again_and_removed(tmp_path: Path, program: Path, at: int) -> None:
    bench = Bench(tmp_path / "bench", program)
    bench.write(h_h=HEADER, a_c=MAIN)
    good = bench.compile()
    stores = CompiledFiles(tmp_path / "stores")
    stores.take("trusted", bench.store)
    (kept,) = stores.root.glob("trusted/*/*.o")
    data = bytearray(kept.read_bytes())
    data[at] ^= 1
    kept.write_bytes(data)
    written = tmp_path / "written"
    written.mkdir()
    read = [str(path) for path in stores.readable("patch-1")]
    place_front(program, bench.folder / "front", FrontSettings("gcc", IDENTITY, read, str(written)))
    assert bench.compile() == good
    assert stores.take("patch-1", written)["corrupt"] == 1
    assert not kept.exists()


def test_a_build_that_calls_a_good_object_corrupt_does_not_remove_it(
    tmp_path: Path, stores: CompiledFiles
) -> None:
    written = tmp_path / "written"
    (written / "ab").mkdir(parents=True)
    (written / "ab" / _KEY).write_bytes(_whole(b"object"))
    stores.take("trusted", written)
    (written / "counts").write_text(f"corrupt ab{_KEY}\ncorrupt ../../x\n\x1b[0m\n")
    assert stores.take("patch-1", written) == {}
    assert is_whole((stores.root / "trusted" / "ab" / _KEY).read_bytes())


def test_a_folder_that_is_a_link_to_a_store_hands_nothing_on(tmp_path: Path, stores: CompiledFiles) -> None:
    written = tmp_path / "written"
    (written / "ab").mkdir(parents=True)
    (written / "ab" / _KEY).write_bytes(_whole(b"object"))
    stores.take("patch-1", written)
    (stores.root / "patch-1" / "counts").write_text("miss\n")
    (tmp_path / "link").symlink_to(stores.root / "patch-1")
    assert stores.take("patch-2", tmp_path / "link") == {}
    assert _files(stores.root) == [f"patch-1/ab/{_KEY}", "patch-1/counts"]
