# SPDX-License-Identifier: GPL-2.0-or-later
"""A corpus of hostile patches: each is refused before anything touches a tree, in one line that can be shown."""

import subprocess
from pathlib import Path

import pytest

from kernels.diffs import safety
from kernels.errors import KernelsError, PatchRejected, UnknownPath
from kernels.patches.series import read_series
from kernels.repair.intake import take_in

HUNK = "@@ -1 +1 @@\n-a\n+b\n"


def plain(path: str, hunk: str = HUNK) -> str:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n{hunk}"


def new(mode: str, path: str = "x") -> str:
    return f"diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+b\n"


HOSTILE = {
    "parent": plain("../etc/passwd"),
    "parent inside": plain("fs/../../etc/passwd"),
    "parent at the end": plain("fs/.."),
    "here": plain("./fs/inode.c"),
    "double slash": plain("fs//inode.c"),
    "absolute": "--- /etc/passwd\n+++ /etc/passwd\n" + HUNK,
    "absolute behind the prefix": plain("/etc/passwd"),
    "new and absolute": new("100644", "/etc/cron.d/x"),
    "backslash": plain("..\\etc\\passwd"),
    "backslash, quoted": '--- "a/..\\\\etc"\n+++ "b/..\\\\etc"\n' + HUNK,
    "octal dots": '--- "a/\\056\\056/etc"\n+++ "b/\\056\\056/etc"\n' + HUNK,
    "octal slash": '--- "a/\\057etc/passwd"\n+++ "b/\\057etc/passwd"\n' + HUNK,
    "octal git": '--- "a/\\056git/config"\n+++ "b/\\056git/config"\n' + HUNK,
    "newline in a name": '--- "a/x\\ny"\n+++ "b/x\\ny"\n' + HUNK,
    "bell in a name": plain("x\a.c"),
    "escape in a name": plain("x\x1b[2J.c"),
    "git": plain(".git/hooks/pre-commit"),
    "git in capitals": plain(".GIT/config"),
    "git mixed": plain("fs/.gIt/config"),
    "git with dots": plain(".git./config"),
    "git with blanks": plain(".git  /config"),
    "git as a stream": plain(".git::$INDEX_ALLOCATION/config"),
    "git by its short name": plain("git~1/config"),
    "git by another short name": plain("GIT~2/config"),
    "git with an ignorable": plain(".g\u200cit/config"),
    "git with a bom": plain(".git\ufeff/config"),
    "git attributes": plain(".gitattributes"),
    "git modules": plain("fs/.GitModules"),
    "new symlink": new("120000"),
    "submodule": new("160000"),
    "directory": new("040000"),
    "device": new("060000"),
    "set-user-id": new("104755"),
    "group writable": new("100664"),
    "mode of many digits": new("1006440"),
    "mode that is a word": new("evil"),
    "symlink patched": "diff --git a/l b/l\nindex 1111111..2222222 120000\n--- a/l\n+++ b/l\n" + HUNK,
    "symlink deleted": "diff --git a/l b/l\ndeleted file mode 120000\n--- a/l\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n",
    "file made a symlink": "diff --git a/l b/l\nold mode 100644\nnew mode 120000\n",
    "one mode only": "diff --git a/l b/l\nnew mode 100755\n",
    "binary": "diff --git a/x b/x\nindex 1111111..2222222\nGIT binary patch\nliteral 1\nIcmZPo0001Z\n\n",
    "binary told": "diff --git a/x b/x\nBinary files a/x and b/x differ\n",
    "a NUL byte": plain("x", "@@ -1 +1 @@\n-a\n+\0\n"),
    "rename out": "diff --git a/x b/x\nrename from x\nrename to ../x\n",
    "rename into git": "diff --git a/x b/x\nrename from x\nrename to .git/config\n",
    "copy from git": "diff --git a/x b/x\ncopy from .git/config\ncopy to x\n",
    "copy from outside": "diff --git a/x b/x\ncopy from /etc/shadow\ncopy to x\n",
    "header and hunk disagree": "diff --git a/x b/x\n--- a/x\n+++ b/.git/config\n" + HUNK,
    "two names": "--- a/x\n+++ b/y\n" + HUNK,
    "a name of blanks": plain(" "),
    "a long name": plain("x/" * 600 + "y"),
    "a long line": plain("x", "@@ -1 +1 @@\n-a\n+" + "b" * (safety.MAX_LINE + 1) + "\n"),
    "too many files": "".join(plain(f"f{number}") for number in range(safety.MAX_FILES + 1)),
    "too many hunks": plain("x", HUNK * (safety.MAX_HUNKS + 1)),
    "new file with context": "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n" + HUNK,
}


@pytest.mark.parametrize("name", [name for name in HOSTILE if name != "a name of blanks"])
def test_a_hostile_patch_is_refused_in_one_line(name: str) -> None:
    data = HOSTILE[name].encode("utf-8", "surrogateescape")
    with pytest.raises(PatchRejected) as caught:
        read_series(data)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 600
    assert caught.value.blame == "submission"
    assert not caught.value.retry


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_patch_is_not_repaired_into_a_working_one(name: str) -> None:
    asked: list[str] = []

    def read(path: str) -> bytes:
        asked.append(path)
        if path != "x":
            raise UnknownPath(f"no {path}")
        return b"a\n"

    # damage: one line more than the header counts
    data = (HOSTILE[name] + "\ntext\n@@ -1 +1 @@\ntext\n").encode("utf-8", "surrogateescape")
    with pytest.raises(KernelsError):
        take_in(data, read)
    assert set(asked) <= {"x", " "}


def test_a_path_that_escapes_the_tree_is_named_with_the_way_out() -> None:
    with pytest.raises(
        PatchRejected, match=r'^\.\./etc/passwd: the path has a part "\.\." .*write it plainly$'
    ):
        read_series(HOSTILE["parent"].encode())


def test_too_much_is_refused_unread() -> None:
    with pytest.raises(PatchRejected, match="name a git range instead"):
        read_series(b"x" * (safety.MAX_INPUT_BYTES + 1))


@pytest.mark.parametrize("data", [b"", b" \n\n\t"])
def test_nothing_is_refused(data: bytes) -> None:
    with pytest.raises(PatchRejected, match="there is nothing in it"):
        read_series(data)


@pytest.mark.parametrize(
    "path",
    ["fs/ext4/inode.c", ".gitignore", "a.git/x", "gitweb/.github/x", "Documentation/a b,c+d@e~f.rst", "x..y"],
)
def test_ordinary_names_are_allowed(path: str) -> None:
    assert read_series(plain(path).encode()).patches[0].files == (path,)


def test_a_script_may_become_executable() -> None:
    diff = "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"
    assert read_series(diff.encode()).patches[0].diff == diff


@pytest.mark.process
def test_the_target_of_a_symlink_in_the_tree_cannot_be_patched(tmp_path: Path) -> None:
    def git(*arguments: str, data: str = "") -> subprocess.CompletedProcess[str]:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.run(
            ["git", *identity, *arguments],
            cwd=tmp_path,
            input=data,
            text=True,
            capture_output=True,
            timeout=30,
            check=False,
        )

    git("init", "-q")
    (tmp_path / "link").symlink_to("inside")
    git("add", "link")
    # the diff does not say that link is one
    hunk = "@@ -1 +1 @@\n-inside\n\\ No newline at end of file\n+/etc\n\\ No newline at end of file\n"
    diff = read_series(plain("link", hunk).encode()).patches[0].diff
    done = git("apply", "--cached", "-", data=diff)
    assert done.returncode != 0
    assert "wrong type" in done.stderr
