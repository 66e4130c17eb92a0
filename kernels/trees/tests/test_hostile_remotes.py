# SPDX-License-Identifier: GPL-2.0-or-later
"""Servers that redirect, change their address, send too much or send by another way: tried with git itself on the loopback address."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from kernels.errors import (
    KernelsError,
    SourceUnreachable,
    TreeTooLarge,
    TreeUnreadable,
)
from kernels.patches.branch import Branch, read_branch
from kernels.tests.serving import Inside, internal_server, redirecting, running, served
from kernels.tests.stranger import FILE, Stranger
from kernels.trees import address
from kernels.trees.address import Address, own_address, public_address
from kernels.trees.remote import FetchLimits, _plain, _tell, branches
from kernels.trees.tree import SourceTree, open_git, resolve

pytestmark = [pytest.mark.hostile, pytest.mark.process]


@pytest.fixture
def inside() -> Iterator[Inside]:
    with internal_server() as server:
        yield server


@pytest.fixture
def stranger(tmp_path: Path) -> Stranger:
    stranger = Stranger(tmp_path / "srv" / "linux.git")
    stranger.commit(stranger.plain())
    stranger.git("tag", "v6.1", "main")
    return stranger


def _open(where: Address, tmp_path: Path) -> object:
    return open_git("theirs", where, tmp_path / "trees")


def _look(where: Address, tmp_path: Path) -> object:
    return branches(where)


def _branch(where: Address, tmp_path: Path) -> object:
    stranger = Stranger(tmp_path / "ours")
    commit = stranger.commit(stranger.plain())
    tree = SourceTree("ours", stranger.path, "main")
    return read_branch(Branch(where, "main"), tree, resolve(tree, commit))


WAYS: dict[str, Callable[[Address, Path], object]] = {"clone": _open, "look": _look, "branch": _branch}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(way: str, status: int, inside: Inside, tmp_path: Path) -> None:
    with redirecting(inside.url, status) as url:
        where = public_address(f"{url}/linux.git", private=True)
        with pytest.raises(TreeUnreadable, match=r"redirects to another address: give that address instead"):
            WAYS[way](where, tmp_path)
    assert inside.asked == []
    assert not (tmp_path / "trees" / "theirs.git").exists()


def test_a_fetch_into_a_tree_that_is_here_follows_no_redirect(
    stranger: Stranger, inside: Inside, tmp_path: Path
) -> None:
    with served(stranger.path.parent) as url:
        where = public_address(f"{url}/linux.git", private=True)
        tree = open_git("theirs", where, tmp_path / "trees")
        before = resolve(tree, "main")
    with redirecting(inside.url, 302) as url:
        moved = Address(where.location, f"{url}/linux.git", "http", where.settings, public=True)
        with pytest.raises(TreeUnreadable, match="redirects to another address"):
            open_git("theirs", moved, tmp_path / "trees")
    assert inside.asked == []
    assert resolve(tree, "main") == before


@pytest.mark.parametrize("way", WAYS)
def test_a_name_that_points_inside_at_the_second_look_up_leads_nowhere(
    way: str, stranger: Stranger, inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer is the server, every later one the inside; git reaches the server although no resolver knows the name."""
    answers = iter([["127.0.0.1"]])
    monkeypatch.setattr(address, "_addresses", lambda host, port: next(answers))
    with served(stranger.path.parent) as url:
        where = public_address(f"http://rebinding.invalid:{url.rpartition(':')[2]}/linux.git", private=True)
        if way == "branch":
            with pytest.raises(KernelsError, match=r"shares no commit|no commits"):
                WAYS[way](where, tmp_path)
        else:
            assert WAYS[way](where, tmp_path)
    assert inside.asked == []
    with pytest.raises(StopIteration):
        next(answers)


def test_files_served_plainly_are_refused_and_their_alternates_not_asked(
    stranger: Stranger, inside: Inside, tmp_path: Path
) -> None:
    """The old protocol checks no object, and fetches from wherever objects/info/http-alternates says."""
    stranger.git("update-server-info")
    (stranger.path / "objects" / "info" / "http-alternates").write_text(f"{inside.url}/objects\n")
    top = stranger.path.parent

    class Plain(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object, **more: object) -> None:
            super().__init__(*arguments, directory=str(top), **more)  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None:
            pass

    with running(Plain) as url:
        where = public_address(f"{url}/linux.git", private=True)
        with pytest.raises(TreeUnreadable, match="served as plain files, whose objects cannot be checked"):
            open_git("theirs", where, tmp_path / "trees")
    assert inside.asked == []


@pytest.mark.parametrize("setting", ["url.{inside}/.insteadOf", "http.proxy", "remote.origin.proxy"])
def test_no_configuration_sends_git_elsewhere(
    setting: str, stranger: Stranger, inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a user's, nor the system's, nor that of the folder we stand in."""
    with served(stranger.path.parent) as url:
        name = setting.format(inside=inside.url)
        value = f"{url}/" if "insteadOf" in setting else inside.url
        for place in (tmp_path / "home", tmp_path / "here"):
            place.mkdir()
        subprocess.run(
            ["git", "config", "-f", str(tmp_path / "home" / ".gitconfig"), name, value], check=True
        )
        subprocess.run(["git", "init", "-q", str(tmp_path / "here")], check=True)
        subprocess.run(["git", "-C", str(tmp_path / "here"), "config", name, value], check=True)
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "home" / ".gitconfig"))
        monkeypatch.chdir(tmp_path / "here")
        where = own_address(f"{url}/linux.git")
        assert branches(where) == {"main": stranger.git("rev-parse", "main")}
        open_git("theirs", where, tmp_path / "trees")
    assert inside.asked == []


def test_a_partial_clone_of_somebody_runs_no_program_of_its_configuration(tmp_path: Path) -> None:
    stranger = Stranger(tmp_path / "srv")
    stranger.commit(stranger.tree([(FILE, b"gone", "12" * 20)]))
    trace = tmp_path / "trace"
    for name, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "evil",
        "remote.evil.url": str(tmp_path / "srv"),
        "remote.evil.promisor": "true",
        "remote.evil.uploadpack": f"touch {trace};false",
        "uploadpack.packObjectsHook": f"touch {trace};",
        "core.sshCommand": f"touch {trace};",
        "core.fsmonitor": f"touch {trace};",
    }.items():
        stranger.git("config", name, value)
    with pytest.raises((TreeUnreadable, SourceUnreachable)):
        open_git("theirs", own_address(str(stranger.path)), tmp_path / "trees")
    assert not trace.exists()


def test_filters_of_a_tree_are_never_run(stranger: Stranger, tmp_path: Path) -> None:
    """An LFS pointer stays a pointer, and no .gitattributes changes a byte."""
    from kernels.trees.extract import extract_tree

    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"
    attributes = stranger.object("blob", b"* filter=lfs diff=lfs merge=lfs text eol=crlf ident\n")
    evil = stranger.tree(
        [(FILE, b".gitattributes", attributes), (FILE, b"big.bin", stranger.object("blob", pointer))]
    )
    stranger.commit(evil)
    tree = open_git("theirs", own_address(str(stranger.path)), tmp_path / "trees")
    trace = tmp_path / "trace"
    for step in ("smudge", "process"):
        subprocess.run(
            [
                "git",
                "config",
                "-f",
                str(tree.repository / "config"),
                f"filter.lfs.{step}",
                f"touch {trace}; cat",
            ],
            check=True,
        )
    extract_tree(tree, evil, tmp_path / "out")
    assert (tmp_path / "out" / "big.bin").read_bytes() == pointer
    assert not trace.exists()


class TestLimits:
    def test_a_pack_above_the_limit_is_refused_and_leaves_nothing(
        self, stranger: Stranger, tmp_path: Path
    ) -> None:
        tree = open_git("theirs", own_address(str(stranger.path)), tmp_path / "trees")
        noise = stranger.object("blob", (tmp_path / "noise").read_bytes() if _noise(tmp_path) else b"")
        stranger.commit(stranger.tree([(FILE, b"noise", noise)]), "main", stranger.git("rev-parse", "main"))
        before = resolve(tree, "main")
        with pytest.raises(
            TreeTooLarge, match=r"linux\.git is more than 1 MiB, which is the most that is fetched"
        ):
            open_git(
                "theirs", own_address(str(stranger.path)), tmp_path / "trees", FetchLimits(bytes=2 << 20)
            )
        assert resolve(tree, "main") == before
        assert not list((tree.repository / "objects" / "pack").glob("tmp_*"))

    def test_what_is_fetched_over_time_is_limited_too(self, stranger: Stranger, tmp_path: Path) -> None:
        open_git("theirs", own_address(str(stranger.path)), tmp_path / "trees")
        stranger.commit(stranger.plain(), "more")
        with pytest.raises(TreeTooLarge, match="at most 0 MiB are kept"):
            open_git("theirs", own_address(str(stranger.path)), tmp_path / "trees", FetchLimits(bytes=100))

    def test_a_delta_that_unpacks_to_more_than_git_may_allocate_is_refused(self, tmp_path: Path) -> None:
        """48 MiB of zeros compress to 48 KiB, and git holds objects below 64 MiB in memory."""
        stranger = Stranger(tmp_path / "srv")
        blobs = [stranger.object("blob", bytes(48 << 20) + b"%d" % number) for number in range(2)]
        stranger.commit(stranger.tree([(FILE, b"%d" % number, blob) for number, blob in enumerate(blobs)]))
        assert sum(path.stat().st_size for path in stranger.path.rglob("*") if path.is_file()) < 1 << 20
        with pytest.raises(TreeTooLarge, match=r"needs more than 40 MiB of memory to check"):
            open_git(
                "theirs", own_address(str(stranger.path)), tmp_path / "trees", FetchLimits(memory=40 << 20)
            )

    def test_more_branches_than_the_limit_are_refused(self, stranger: Stranger, tmp_path: Path) -> None:
        commit = stranger.git("rev-parse", "main")
        lines = "".join(f"create refs/heads/b{number} {commit}\n" for number in range(60))
        stranger.git("update-ref", "--stdin", data=lines.encode())
        with pytest.raises(TreeTooLarge, match=r"more than 50 branches and tags"):
            open_git("theirs", own_address(str(stranger.path)), tmp_path / "trees", FetchLimits(refs=50))

    def test_a_hundred_thousand_branches_end_at_the_limit_of_what_is_read(
        self, stranger: Stranger, tmp_path: Path
    ) -> None:
        commit = stranger.git("rev-parse", "main")
        packed = "".join(f"{commit} refs/heads/{'b' * 180}{number:06}\n" for number in range(100_000))
        (stranger.path / "packed-refs").write_text(f"# pack-refs with: peeled fully-peeled sorted \n{packed}")
        with pytest.raises(TreeTooLarge, match=r"more than 50,000 branches and tags"):
            open_git("theirs", own_address(str(stranger.path)), tmp_path / "trees")
        assert [path.name for path in (tmp_path / "trees").iterdir()] == [".theirs.lock"]

    def test_an_enormous_name_of_a_branch_is_refused(self, stranger: Stranger, tmp_path: Path) -> None:
        commit = stranger.git("rev-parse", "main")
        (stranger.path / "packed-refs").write_text(f"{commit} refs/heads/{'/'.join(['long'] * 500)}\n")
        with pytest.raises(TreeTooLarge, match="a name of more than 250 characters"):
            open_git("theirs", own_address(str(stranger.path)), tmp_path / "trees")

    @pytest.mark.parametrize("way", ["clone", "look"])
    def test_a_server_that_never_answers_ends_at_the_deadline(self, way: str, tmp_path: Path) -> None:
        short = FetchLimits(seconds=0.2)
        calls: dict[str, Callable[[Address], object]] = {
            "clone": lambda where: open_git("theirs", where, tmp_path / "trees", short),
            "look": lambda where: branches(where, short),
        }
        with socket.create_server(("127.0.0.1", 0)) as silent:
            where = own_address(f"http://127.0.0.1:{silent.getsockname()[1]}/x")
            with pytest.raises(SourceUnreachable, match="did not answer within 1 s") as refused:
                calls[way](where)
        assert refused.value.retry

    def test_what_a_server_writes_to_us_is_cut_and_harmless(self, tmp_path: Path) -> None:
        with running(_Chatty) as url, pytest.raises(SourceUnreachable) as refused:
            branches(own_address(f"{url}/linux.git"))
        assert "\x1b" not in str(refused.value) + refused.value.detail
        assert len(refused.value.detail) < 1 << 20


class _Chatty(BaseHTTPRequestHandler):
    """Answers with an error of the git protocol that holds escapes."""

    def do_GET(self) -> None:
        text = b"ERR \x1b[2J\x1b]0;owned\x07" + b"x" * 60_000
        body = b"001e# service=git-upload-pack\n0000%04x%s" % (len(text) + 4, text)
        self.send_response(200)
        self.send_header("Content-Type", "application/x-git-upload-pack-advertisement")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _noise(place: Path) -> bool:
    with Path("/dev/urandom").open("rb") as source:
        return bool((place / "noise").write_bytes(source.read(3 << 20)))


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        (b"remote: Receiving objects:  99% (99/100)\r", []),
        (
            b"remote: x Receiving objects:  99% (99/100)\nReceiving objects:   7% (7/100)   \r",
            [("receiving objects", 0.07)],
        ),
        (
            b"Receiving objects: 100% (9/9), done.\nResolving deltas:  50% (1/2)   \r",
            [("resolving deltas", 0.5)],
        ),
        (b"Receiving objects: 900% (9/1)   \r", [("receiving objects", 1.0)]),
        (b"Receiving objects: x% \xff", []),
    ],
)
def test_what_the_other_side_counts_is_not_taken_for_our_own_count(
    told: bytes, wanted: list[tuple[str, float]]
) -> None:
    reported: list[tuple[str, float]] = []
    _tell(lambda stage, done: reported.append((stage, done)), told)
    assert reported == wanted


def test_a_refusal_is_told_without_counts_and_moved_branches() -> None:
    output = (
        b"remote: Enumerating objects: 9, done.\nremote: Counting objects:  10% (1/10)\r"
        b"Receiving objects:   7% (7/100), 1.2 MiB | 3 MiB/s   \rerror: RPC failed\nFrom https://x.example/y\n"
        b" * [new branch]      a          -> a\n ! [rejected]        b          -> b\nfatal: early EOF\n"
    )
    lines = _plain(output, own_address("https://x.example/y")).splitlines()
    assert [line.split()[0] for line in lines] == ["error:", "!", "fatal:"]
