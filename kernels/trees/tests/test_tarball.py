# SPDX-License-Identifier: GPL-2.0-or-later
"""Trees made of tarballs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from threading import Thread

import pytest

from kernels.errors import (
    DiskFull,
    TreeUnreadable,
    UnknownTree,
)
from kernels.tests.sources import FILES, LINK, MAKEFILE, SCRIPT, make_archive
from kernels.trees.extract import extract_tree
from kernels.trees.tarball import Progress, import_tar
from kernels.trees.tree import SourceTree, import_archive, open_tree, read_file, resolve

pytestmark = pytest.mark.process

# The id of FILES as a commit. If this changes, every machine's stored builds and experiments lose their base.
COMMIT = "359fe02a8496fffb3a89b2a97fdc33dd67ebee73"


class TestArchive:
    def test_a_tarball_becomes_a_commit_whose_id_is_the_same_everywhere(self, tree: SourceTree) -> None:
        assert resolve(tree, "v6.1.192").commit == COMMIT

    @pytest.mark.parametrize(
        ("mode", "top"), [("w:gz", "other/"), ("w:bz2", ""), ("w", "./x-1/"), ("w:xz", "y/")]
    )
    def test_compression_top_folder_and_dates_do_not_change_the_id(
        self, tmp_path: Path, mode: str, top: str
    ) -> None:
        archive = make_archive(tmp_path / "a.tar", mode=mode, top=top, mtime=1_700_000_000)
        assert resolve(import_archive("t", archive, tmp_path / "trees"), "").commit == COMMIT

    def test_the_version_in_the_makefile_becomes_the_tag_and_the_default(self, tree: SourceTree) -> None:
        assert tree.default_revision == "v6.1.192"
        assert resolve(tree, "").name == "v6.1.192"
        assert resolve(tree, "main") == resolve(tree, "main~0").__class__(
            COMMIT, resolve(tree, "").tree_id, "main"
        )

    def test_a_release_candidate_keeps_its_suffix(self, tmp_path: Path) -> None:
        makefile = b"VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 0\nEXTRAVERSION = -rc1\n"
        archive = make_archive(tmp_path / "a.tar", {"Makefile": makefile})
        assert import_archive("t", archive, tmp_path).default_revision == "v6.12.0-rc1"

    def test_every_file_is_kept_with_its_bytes_whatever_gitignore_and_gitattributes_say(
        self, tree: SourceTree, tmp_path: Path
    ) -> None:
        extract_tree(tree, resolve(tree, "").tree_id, tmp_path / "out")
        for path, data in FILES.items():
            assert (tmp_path / "out" / path).read_bytes() == data
        assert os.access(tmp_path / "out" / SCRIPT, os.X_OK)
        assert not os.access(tmp_path / "out" / "Makefile", os.X_OK)
        assert (tmp_path / "out" / LINK).readlink() == Path("../arch/x86")

    def test_a_second_import_does_nothing(self, tree: SourceTree, trees: Path) -> None:
        reported: list[float] = []
        assert (
            import_archive("fake-6.1", trees / "a.tar", trees / "trees", on_progress=reported.append) == tree
        )
        assert reported == []

    def test_progress_rises_to_one(self, tmp_path: Path) -> None:
        reported: list[float] = []
        import_archive("t", make_archive(tmp_path / "a.tar"), tmp_path, on_progress=reported.append)
        assert reported == sorted(reported)
        assert reported[-1] == 1.0

    def test_an_archive_that_changed_is_imported_beside_the_old_one(self, tmp_path: Path) -> None:
        import_archive("fake-6.1", make_archive(tmp_path / "a.tar"), tmp_path / "trees")
        newer = MAKEFILE.replace(b"192", b"193")
        archive = make_archive(tmp_path / "a.tar", {**FILES, "Makefile": newer})
        again = import_archive("fake-6.1", archive, tmp_path / "trees")
        assert again.default_revision == "v6.1.193"
        assert resolve(again, "v6.1.192").commit == COMMIT
        assert resolve(again, "").commit != COMMIT

    def test_a_hard_link_is_the_file_it_points_at(self, tmp_path: Path) -> None:
        link = tarfile.TarInfo("linux-6.1/fs/twin.c")
        link.type, link.linkname = tarfile.LNKTYPE, "linux-6.1/fs/inode.c"
        tree = import_archive("t", make_archive(tmp_path / "a.tar", extra=(link,)), tmp_path)
        assert read_file(tree, resolve(tree, "").tree_id, "fs/twin.c") == FILES["fs/inode.c"]

    @pytest.mark.parametrize(
        "name", ["../etc/passwd", "/etc/passwd", "linux-6.1/.git/config", "linux-6.1/.GIT/x", "a//b"]
    )
    def test_a_file_that_would_leave_the_tree_is_refused(self, tmp_path: Path, name: str) -> None:
        archive = make_archive(tmp_path / "a.tar", extra=(tarfile.TarInfo(name),))
        with pytest.raises(TreeUnreadable, match="leave the tree"):
            import_archive("t", archive, tmp_path / "trees")
        assert not (tmp_path / "trees" / "t.git").exists()

    def test_a_device_is_refused(self, tmp_path: Path) -> None:
        device = tarfile.TarInfo("linux-6.1/dev/null")
        device.type = tarfile.CHRTYPE
        with pytest.raises(TreeUnreadable, match="devices"):
            import_archive("t", make_archive(tmp_path / "a.tar", extra=(device,)), tmp_path)

    @pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
    @pytest.mark.parametrize("kept", [0.5, 0.8])
    def test_an_archive_cut_short_is_refused_and_leaves_nothing(
        self, tmp_path: Path, mode: str, kept: float
    ) -> None:
        archive = make_archive(tmp_path / "a.tar", mode=mode)
        whole = archive.read_bytes().rstrip(b"\0") if mode == "w" else archive.read_bytes()
        archive.write_bytes(whole[: int(len(whole) * kept)])
        with pytest.raises(TreeUnreadable):
            import_archive("t", archive, tmp_path / "trees")
        assert [path.name for path in (tmp_path / "trees").iterdir()] == [".t.lock"]

    def test_an_archive_cut_between_two_files_is_refused(self, tmp_path: Path) -> None:
        archive = make_archive(tmp_path / "a.tar")
        archive.write_bytes(archive.read_bytes()[:1024])  # the first header and its file
        with pytest.raises(TreeUnreadable, match="cut short or damaged"):
            import_archive("t", archive, tmp_path)

    def test_a_broken_header_is_not_taken_for_the_end(self, tmp_path: Path) -> None:
        archive = make_archive(tmp_path / "a.tar")
        data = archive.read_bytes()
        archive.write_bytes(data.replace(b"linux-6.1/scripts/run.sh", b"linux-6.1/scripts/xxx.sh"))
        with pytest.raises(TreeUnreadable, match="cut short or damaged"):
            import_archive("t", archive, tmp_path)

    def test_something_that_is_no_kernel_is_refused(self, tmp_path: Path) -> None:
        archive = make_archive(tmp_path / "a.tar", {"Makefile": b"all:\n", "sub/Makefile": MAKEFILE})
        with pytest.raises(TreeUnreadable, match="VERSION"):
            import_archive("t", archive, tmp_path)

    def test_no_tar_at_all_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "a.tar").write_bytes(b"not a tar" * 200)
        with pytest.raises(TreeUnreadable, match="tar"):
            import_archive("t", tmp_path / "a.tar", tmp_path)

    def test_a_missing_archive_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(UnknownTree, match=r"nowhere.tar.xz"):
            import_archive("t", tmp_path / "nowhere.tar.xz", tmp_path)

    def test_a_full_disk_is_noticed_before_the_import(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kernels.trees.tree.REPOSITORY_PER_ARCHIVE", 1 << 50)
        with pytest.raises(DiskFull, match="MiB free"):
            import_archive("t", make_archive(tmp_path / "a.tar"), tmp_path)

    def test_two_at_once_import_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        archive, calls = make_archive(tmp_path / "a.tar"), list[Path]()

        def slowly(archive: Path, repository: Path, on_progress: Progress) -> str:
            calls.append(archive)
            time.sleep(0.1)
            return import_tar(archive, repository, on_progress)

        monkeypatch.setattr("kernels.trees.tarball.import_tar", slowly)
        threads = [Thread(target=import_archive, args=("t", archive, tmp_path)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert calls == [archive]
        assert resolve(open_tree("t", tmp_path), "").commit == COMMIT

    def test_a_killed_import_leaves_no_tree_and_the_next_one_cleans_up(self, tmp_path: Path) -> None:
        archive = make_archive(tmp_path / "a.tar")
        code = (
            "import sys, time; from pathlib import Path; from kernels.trees.tree import import_archive\n"
            "import_archive('t', Path(sys.argv[1]), Path(sys.argv[2]), on_progress=lambda _: time.sleep(60))"
        )
        child = subprocess.Popen([sys.executable, "-c", code, str(archive), str(tmp_path / "trees")])
        ends = time.monotonic() + 60
        while not list((tmp_path / "trees").glob(".t=*.partial/HEAD")):
            assert time.monotonic() < ends
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        child.wait(20)
        assert not (tmp_path / "trees" / "t.git").exists()
        tree = import_archive("t", archive, tmp_path / "trees")
        assert resolve(tree, "").commit == COMMIT
        assert sorted(path.name for path in (tmp_path / "trees").iterdir()) == [".t.lock", "t.git"]
