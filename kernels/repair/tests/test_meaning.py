# SPDX-License-Identifier: GPL-2.0-or-later
"""A repair changes what a mailer changed, and never what a patch means."""

import pytest

from kernels.errors import PatchRejected
from kernels.repair.intake import take_in
from kernels.tests.damaging import AFTER, BEFORE, diff_of, reader, stripped

POOL_H = {"lib/pool.h": BEFORE["lib/pool.h"]}
LETTER = "From: Ada <ada@example.org>\nSubject: [PATCH] pool: look\n\nPlease apply.\n\n"


def plain_diff(diff: str) -> str:
    """As diff(1) writes it, and as an archive shows it."""
    lines = stripped(diff).split("\n")[:-1]
    return "".join(f"{line}\n" for line in lines if not line.startswith(("diff --git ", "index ")))


def test_the_first_file_right_behind_a_mails_prose_is_not_lost() -> None:
    intake = take_in((LETTER + plain_diff(diff_of(BEFORE, AFTER))).encode(), reader(BEFORE))
    assert intake.refused == ()
    assert intake.series.patches[0].files == ("lib/pool.c", "lib/pool.h")


def test_a_blank_that_a_patch_adds_or_removes_inside_a_line_stays_so() -> None:
    before = {"x.c": '#define HALF (x)\n\nint f(int x)\n{\n\tpr_info("x:%d", x);\n\treturn x;\n}\n'}
    after = {"x.c": before["x.c"].replace("HALF (x)", "HALF(x)").replace("x:%d", "x: %d")}
    (patch,) = take_in(stripped(diff_of(before, after)).encode(), reader(before)).series.patches
    assert "-#define HALF (x)\n+#define HALF(x)\n" in patch.diff
    assert '-\tpr_info("x:%d", x);\n+\tpr_info("x: %d", x);\n' in patch.diff


def test_a_footer_right_behind_an_added_line_does_not_become_part_of_it() -> None:
    before = {"x.h": "int a;\n\tint b;\nint c;\n"}
    mail = LETTER + stripped(diff_of(before, {"x.h": before["x.h"] + "int d;\n"}))
    assert "+int d;\n" in take_in(mail.encode(), reader(before)).series.patches[0].diff
    with pytest.raises(PatchRejected, match="1 more follow"):
        take_in(f"{mail}______\n".encode(), reader(before))


@pytest.mark.parametrize(
    "between", ["diff -urN a/x b/x\n", f"Index: b/x\n{'=' * 67}\n", "Only in a: x\ndiff -ur a b\n"]
)
def test_lines_that_diff_writes_between_files_are_not_part_of_a_file(between: str) -> None:
    new = "--- /dev/null\n+++ b/lib/new.h\n@@ -0,0 +1,2 @@\n+int a;\n+int b;\n"
    pool_c, pool_h = (plain_diff(diff_of({path: BEFORE[path]}, AFTER)) for path in BEFORE)
    mail = between + new + between + pool_c + between + pool_h
    intake = take_in(mail.encode(), reader(BEFORE))
    assert intake.refused == ()
    assert intake.series.patches[0].files == ("lib/new.h", "lib/pool.c", "lib/pool.h")
    assert "+int a;\n+int b;\ndiff --git " in intake.series.patches[0].diff


def test_a_help_text_does_not_end_at_a_line_that_begins_like_an_option() -> None:
    before = {"Kconfig": 'config POOL\n\tbool "Pool"\n\thelp\n\t  Tickets.\n'}
    new = '\nconfig PEEK\n\tbool "Peek"\n\thelp\n\t  default and\n\t  select are words.\n\nconfig LAST\n\tbool\n'
    after = {"Kconfig": before["Kconfig"] + new}
    (patch,) = take_in(stripped(diff_of(before, after)).encode(), reader(before)).series.patches
    assert patch.diff.endswith("".join(f"+{line}\n" for line in new.split("\n")[:-1]))


def test_a_help_text_does_not_end_at_a_line_that_begins_like_an_entry() -> None:
    before = {"Kconfig": 'config POOL\n\tbool "Pool"\n\thelp\n\t  Tickets.\n'}
    help_text = ("if you have a pool,", "comment on it, or", "choice is hard: the", "source is open.")
    entries = ("if POOL=y && (!SMP || UML)", "comment 'Peeks'", 'menu "Pools"', "endmenu", "endif # POOL")
    new = "".join(f"\t  {line}\n" for line in help_text) + "\n" + "".join(f"{line}\n" for line in entries)
    after = {"Kconfig": before["Kconfig"] + new}
    (patch,) = take_in(stripped(diff_of(before, after)).encode(), reader(before)).series.patches
    assert patch.diff.endswith("".join(f"+{line}\n" for line in new.split("\n")[:-1]))


THREE = {"x.h": "int a;\n\tint b;\nint c;\n"}


@pytest.mark.parametrize(
    "body",
    ["+int x;\n+int y;\nint a;\nint b;\nint c;\n", "int a;\n+int x;\nint b;\nint c;\n+int y;\n"],
    ids=["before", "behind"],
)
def test_an_added_line_that_the_header_does_not_count_is_not_left_out(body: str) -> None:
    with pytest.raises(PatchRejected, match="counts disagree"):
        take_in(f"--- a/x.h\n+++ b/x.h\n@@ -1,3 +1,4 @@\n{body}".encode(), reader(THREE))


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("--- a/x.h\n+++ b/x.h\n@@ -1,3 +1,5 @@\n", "int a;\n+int x;\n{text}+int y;\nint b;\nint c;\n"),
        ("--- /dev/null\n+++ b/n.h\n@@ -0,0 +1,2 @@\n", "+int x;\n{text}+int y;\n"),
    ],
    ids=["in a file", "in a new file"],
)
def test_a_remark_between_added_lines_does_not_become_part_of_one(head: str, body: str) -> None:
    half = take_in((head + body.format(text="// half\n")).encode(), reader(THREE)).series.patches[0]
    assert "+int x; // half\n" in half.diff
    with pytest.raises(PatchRejected, match=r"counts disagree|other text stands between"):
        take_in((head + body.format(text="\nWhy here?\n\n")).encode(), reader(THREE))


def test_a_rule_of_dashes_behind_a_patch_is_none_of_its_lines() -> None:
    mail = "--- a/x.h\n+++ b/x.h\n@@ -1,3 +1,4 @@\nint a;\n+int x;\nint b;\nint c;\n-----\nAda\n"
    assert "+int x;\n" in take_in(mail.encode(), reader(THREE)).series.patches[0].diff


def test_a_hunk_that_lost_its_header_is_refused() -> None:
    lines = stripped(diff_of(BEFORE, AFTER)).split("\n")
    del lines[next(at for at, line in enumerate(lines) if line.startswith("@@ "))]
    (refused,) = take_in("\n".join(lines).encode(), reader(BEFORE)).refused
    assert (refused.file, refused.reason) == ("lib/pool.c", "its header cannot be read")


def test_a_line_of_names_that_is_wrapped_is_rejoined() -> None:
    diff = stripped(diff_of(BEFORE, AFTER)).replace(" b/lib/pool", "\nb/lib/pool")
    diff = diff.replace("+++\nb/", "+++ b/")
    intake = take_in((LETTER + diff).encode(), reader(BEFORE))
    assert intake.refused == ()
    assert intake.series.patches[0].files == ("lib/pool.c", "lib/pool.h")


def test_modes_right_behind_a_mails_prose_are_not_lost() -> None:
    diff = stripped(diff_of(POOL_H, {"lib/pool.h": AFTER["lib/pool.h"]}))
    diff = diff.replace("index 3a41f83a4ba5..8c57cea7bbbb 100644", "old mode 100644\nnew mode 100755")
    assert "new mode 100755" in take_in((LETTER + diff).encode(), reader(BEFORE)).series.patches[0].diff
