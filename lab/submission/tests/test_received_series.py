# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from kernels.errors import SourceUnreachable
from kernels.mails.tests.test_uploads import DIFF, archive, mail
from kernels.patches.series import claimed_commit, read_series
from kernels.tests.pretend import PretendKernel
from lab.errors import FieldRefused, SubmissionRejected
from lab.experiments.switch_names import switch_name
from lab.models import User
from lab.submission.fetches.series import WantedSeries, with_series
from lab.submission.git_addresses import checked_location
from lab.submission.received_series import (
    BranchRequest,
    Received,
    Upload,
    count_patches,
    each_patch,
    receive_branch,
    receive_files,
    receive_message,
)
from lab.tests.factories import make_user

DEEP = b"".join(b"From: a\nContent-Type: multipart/mixed; boundary=%d\n\n--%d\n" % (n, n) for n in range(12))


@pytest.fixture
def alice(db: None) -> User:
    return make_user("alice", User.Role.SUBMITTER)


@pytest.fixture
def charlie(db: None) -> User:
    return make_user("charlie", User.Role.OPERATOR)


def test_the_files_of_one_series_become_one_switch() -> None:
    files = [Upload("0002-b.patch", mail(2)), Upload("0001-a.patch", mail(1))]
    (series,) = receive_files(files)
    assert (series.patches, series.name, series.source) == (2, "fs-part-1", "2 uploaded files")


def test_files_of_their_own_become_switches_of_their_own() -> None:
    files = [Upload(f"{name}.diff", DIFF.format(name=name).encode()) for name in ("one", "two")]
    assert [receive_file.name for receive_file in receive_files(files)] == ["one", "two"]


def test_an_archive_is_one_series_named_after_its_file() -> None:
    packed = archive({"0001-a.patch": mail(1), "0002-b.patch": mail(2)}, "w:gz")
    (series,) = receive_files([Upload("my series.tar.gz", packed)])
    assert (series.name, series.patches, series.version) == ("my-series", 2, 1)


def test_a_damaged_patch_is_received_to_be_repaired_later() -> None:
    (series,) = receive_files([Upload("x.patch", b"--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n a\n")])
    assert (series.name, series.patches) == ("x", 0)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("bomb.gz", gzip.compress(bytes(17 << 20), mtime=0), r"bomb\.gz: unpacked it is larger than 16 MiB"),
        (
            "deep.eml",
            DEEP,
            "uploaded deep.eml: mail 1: its parts are nested more than 8 deep",
        ),
    ],
    ids=["a bomb", "nested parts"],
)
def test_what_cannot_be_taken_is_told_of_the_files(name: str, data: bytes, said: str) -> None:
    with pytest.raises(FieldRefused, match=said) as refused:
        receive_files([Upload(name, data)])
    assert refused.value.field == "files"


def test_files_that_are_too_much_together_are_refused() -> None:
    large = gzip.compress(b"x" * (9 << 20))
    with pytest.raises(FieldRefused, match="all files together are larger than 16 MiB"):
        receive_files([Upload("a.gz", large), Upload("b.gz", large)])
    with pytest.raises(FieldRefused, match="pack them into one"):
        receive_files([Upload("a", b"x")] * 202)


def test_each_patch_of_a_series_can_be_a_switch_of_its_own() -> None:
    series = Received("s", (mail(1) + mail(2)).decode(), "pasted")
    first, second = each_patch(series, others={"1-fs-part-1"})
    assert (first.name, second.name) == ("1-fs-part-1-2", "2-fs-part-2")
    read = read_series(second.text.encode())
    assert [(patch.title, patch.files, patch.message) for patch in read.patches] == [
        ("fs: part 2", ("f2.c",), "why")
    ]


def test_each_patch_of_two_versions_of_a_series_has_a_name_of_its_own() -> None:
    text = (mail(1) + mail(2)).decode()
    wanted = WantedSeries({"patches": [{"name": "v1", "text": text}]}, each=True)
    names = [patch["name"] for patch in with_series(wanted, [Received("v2", text, "")])["patches"]]
    assert names == ["1-fs-part-1", "2-fs-part-2", "1-fs-part-1-2", "2-fs-part-2-2"]


def test_each_patch_of_a_series_names_the_base_of_all() -> None:
    commit = "a" * 40
    text = f"{mail(1, 2).decode()}{mail(2, 2).decode()}\nbase-commit: {commit}\n"
    parts = each_patch(Received("s", text, ""))
    assert [claimed_commit(part.text.encode()) for part in parts] == [commit, commit]
    assert [count_patches(part.text) for part in parts] == [1, 1]


def test_a_series_too_long_or_damaged_for_that_is_refused() -> None:
    long = "".join(mail(number, 17).decode() for number in range(1, 18))
    with pytest.raises(FieldRefused, match="17 patches, at most 16"):
        each_patch(Received("s", long, ""))
    damaged = Received("s", "--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n a\n", "")
    with pytest.raises(FieldRefused, match="as one switch only"):
        each_patch(damaged)
    assert count_patches(damaged.text) == 0


@pytest.mark.parametrize(
    ("text", "name"),
    [("fs: add größe!", "fs-add-gr-e"), ("base", "base-patch"), ("--", "patch"), ("a" * 99, "a" * 60)],
)
def test_a_switch_is_named_after_what_people_call_it(text: str, name: str) -> None:
    assert switch_name(text) == name


@pytest.fixture
def kernel(tmp_path: Path, settings: Any) -> PretendKernel:
    settings.HOME = tmp_path / "home"
    return PretendKernel(tmp_path)


def asked(kernel: PretendKernel, name: str = "work", **more: str) -> BranchRequest:
    return BranchRequest(str(kernel.work), name, git=str(kernel.work), base=kernel.base.commit, **more)


@pytest.mark.process
def test_a_branch_becomes_the_series_of_its_commits(kernel: PretendKernel, charlie: User) -> None:
    kernel._git("branch", "base-branch", kernel.base.commit)
    kernel.edited("fs/inode.c", "\tWARN_HERE();\n", "")
    kernel._git("branch", "-f", "work", "HEAD")
    received = receive_branch(asked=asked(kernel), by=charlie)
    assert (received.name, received.patches, received.title) == ("work", 1, "variant")
    assert read_series(received.text.encode()).patches[0].files == ("fs/inode.c",)


@pytest.mark.process
def test_a_submitter_cannot_name_a_folder_of_the_machine(
    kernel: PretendKernel, alice: User, charlie: User, settings: Any
) -> None:
    with pytest.raises(FieldRefused, match="only operators may name a folder") as refused:
        receive_branch(asked=asked(kernel), by=alice)
    assert refused.value.field == "git"
    assert checked_location(str(kernel.work), charlie).protocol == "file"
    settings.LOCAL_PATHS = True
    assert checked_location(str(kernel.work), alice).protocol == "file"


@pytest.mark.parametrize(
    "location", ["ext::sh", "file:///etc", "--upload-pack=x", "ssh://git@host/x", "git@host:x"]
)
def test_no_trick_of_an_address_gets_past_a_submitter(alice: User, location: str) -> None:
    with pytest.raises(SubmissionRejected):
        checked_location(location, alice)


def test_closed_networks_are_open_only_where_the_site_says_so(charlie: User, settings: Any) -> None:
    with pytest.raises(SubmissionRejected, match="closed network"):
        checked_location("http://127.0.0.1:1/x", charlie)
    settings.PRIVATE_ADDRESSES = True
    address = checked_location("http://127.0.0.1:1/x", charlie)
    assert (address.source, address.protocol) == ("http://127.0.0.1:1/x", "http")


@pytest.mark.process
def test_an_unknown_branch_is_told_beside_the_branch(kernel: PretendKernel, charlie: User) -> None:
    with pytest.raises(FieldRefused, match='no branch "nope"') as refused:
        receive_branch(asked=asked(kernel, "nope"), by=charlie)
    assert refused.value.field == "branch"


def test_a_site_without_network_says_that_it_cannot_reach_lore(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FieldRefused, match="not a message-id"):
        receive_message(message="kernfs", home=tmp_path)

    def unreachable(*_: object, **__: object) -> bytes:
        raise SourceUnreachable("this site cannot reach lore.kernel.org; upload it")

    monkeypatch.setattr("lab.submission.received_series.read_thread", unreachable)
    with pytest.raises(FieldRefused, match="cannot reach lore") as refused:
        receive_message(message="1@example.org", home=tmp_path)
    assert refused.value.field == "lore"
    settings.LORE = ""
    with pytest.raises(FieldRefused, match="cannot reach lore"):
        receive_message(message="1@example.org", home=tmp_path)
