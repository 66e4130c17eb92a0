# SPDX-License-Identifier: GPL-2.0-or-later
import importlib
import inspect
import pkgutil

import kernels
from kernels.errors import KernelsError, PatchDoesNotApply, PatchRejected, suggest


def exceptions_of_the_package() -> list[type[Exception]]:
    exceptions = set()
    for module in pkgutil.iter_modules(kernels.__path__):
        if module.name == "tests":
            continue
        members = vars(importlib.import_module(f"kernels.{module.name}")).values()
        exceptions |= {
            member
            for member in members
            if inspect.isclass(member)
            and issubclass(member, Exception)
            and member.__module__.startswith("kernels.")
        }
    return sorted(exceptions, key=lambda member: member.__name__)


def test_every_exception_says_whom_to_blame_and_whether_to_retry() -> None:
    classes = exceptions_of_the_package()
    assert len(classes) > 10
    for member in classes:
        assert issubclass(member, KernelsError), member
        assert member.blame in ("submission", "kernel", "lab"), member
        assert isinstance(member.retry, bool), member
        assert not (member.retry and member.blame != "lab"), member


def test_a_message_is_one_line_that_a_terminal_can_show() -> None:
    error = KernelsError("a\n  b\x1b[2J \ud800", "the long\npart")
    assert str(error) == "a b\\x1b[2J \\ud800"
    assert error.detail == "the long\npart"


def test_a_patch_that_is_refused_names_file_and_hunk() -> None:
    assert (
        str(PatchRejected("too odd", file="fs/inode.c", hunk="@@ -1,2 +1,2 @@"))
        == "fs/inode.c, @@ -1,2 +1,2 @@: too odd"
    )
    assert str(PatchRejected("too odd")) == "too odd"


def test_a_patch_that_does_not_apply_names_patch_file_and_hunk() -> None:
    error = PatchDoesNotApply("vfs: x", file="fs/inode.c", hunk="@@ -1 +1 @@", reason="no such line")
    assert str(error) == '"vfs: x" does not apply: fs/inode.c, @@ -1 +1 @@: no such line'


def test_a_wrong_name_gets_the_nearest_right_ones() -> None:
    assert suggest("v6.1.191", ["v5.10", "v6.1.192"]).startswith(
        'Did you mean "v6.1.192"? There are v6.1.192'
    )
    assert suggest("x", []) == "There are none yet."
    assert "and 88 more" in suggest("zzz", [f"name-{number}" for number in range(100)])
