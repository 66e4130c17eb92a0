# SPDX-License-Identifier: GPL-2.0-or-later
import subprocess
from pathlib import Path

import pytest

from kernels.diffs.unified import parse_diff, render_diff
from kernels.errors import PatchDamaged, PatchRejected
from kernels.tests.damaging import AFTER, BEFORE, applied, diff_of

DIFF = diff_of(BEFORE, AFTER)
GIT_DIFF = """\
diff --git a/Makefile b/Makefile
old mode 100644
new mode 100755
index 1111111..2222222
--- a/Makefile
+++ b/Makefile
@@ -1,3 +1,3 @@
 a
-b
+B
 c
diff --git a/gone.c b/gone.c
deleted file mode 100644
index 1111111..0000000
--- a/gone.c
+++ /dev/null
@@ -1,1 +0,0 @@
-int gone;
diff --git a/new.c b/new.c
new file mode 100644
index 0000000..2222222
--- /dev/null
+++ b/new.c
@@ -0,0 +1,2 @@
+int new;
+int end;
\\ No newline at end of file
diff --git a/old name.c b/new name.c
rename from old name.c
rename to new name.c
index 1111111..2222222 100644
--- a/old name.c
+++ b/new name.c
@@ -1,2 +1,2 @@ int f(void)
 int x;
-int y;
+int z;
diff --git a/copied.c b/copy.c
copy from copied.c
copy to copy.c
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
"""


def test_what_git_writes_is_read_and_written_again_as_it_was() -> None:
    assert render_diff(parse_diff(GIT_DIFF)) == GIT_DIFF
    assert render_diff(parse_diff(DIFF)) == DIFF


def test_each_kind_of_change_is_told() -> None:
    kinds = {file.path: file.kind for file in parse_diff(GIT_DIFF)}
    assert kinds == {
        "Makefile": "modified",
        "gone.c": "deleted",
        "new.c": "added",
        "new name.c": "renamed",
        "copy.c": "copied",
        "run.sh": "modified",
    }


def test_an_empty_new_file_needs_no_hunk() -> None:
    (file,) = parse_diff("diff --git a/e.c b/e.c\nnew file mode 100644\nindex 0000000..e69de29\n")
    assert (file.kind, file.path, file.hunks) == ("added", "e.c", ())


def test_text_around_a_diff_is_passed_over() -> None:
    text = "Hello,\n\nhow about this?\n\n" + DIFF + "-- \n2.43.0\n\n-- a list\n"
    assert render_diff(parse_diff(text)) == DIFF


@pytest.mark.process
@pytest.mark.parametrize(
    ("minus", "plus"),
    [
        ("a/lib/pool.h", "b/lib/pool.h"),
        ("i/lib/pool.h", "w/lib/pool.h"),
        ("linux-6.1.orig/lib/pool.h", "linux-6.1/lib/pool.h"),
        (
            "lib/pool.h.orig\t2024-06-11 19:38:22.000000000 +0200",
            "lib/pool.h\t2024-06-11 19:39:00.000000000 +0200",
        ),
        ('"a/lib/p\\157ol.h"', "b/lib/pool.h"),
    ],
)
def test_plain_diffs_name_their_files_in_several_ways(minus: str, plus: str, tmp_path: Path) -> None:
    body = diff_of({"lib/pool.h": BEFORE["lib/pool.h"]}, {"lib/pool.h": AFTER["lib/pool.h"]})
    text = f"--- {minus}\n+++ {plus}\n" + body[body.index("@@") :]
    files = parse_diff(text)
    assert [file.path for file in files] == ["lib/pool.h"]
    assert applied(render_diff(files), BEFORE, tmp_path)["lib/pool.h"] == AFTER["lib/pool.h"]


@pytest.mark.parametrize("prefix", ["a", "b", "i", "w", "c", "o"])
def test_a_new_or_removed_file_has_any_prefix_that_git_writes(prefix: str) -> None:
    new = f"new file mode 100644\n--- /dev/null\n+++ {prefix}/lib/x.h\n@@ -0,0 +1 @@\n+int a;\n"
    old = f"deleted file mode 100644\n--- {prefix}/lib/y.h\n+++ /dev/null\n@@ -1 +0,0 @@\n-int a;\n"
    files = parse_diff(f"diff --git c/lib/x.h i/lib/x.h\n{new}diff --git c/lib/y.h i/lib/y.h\n{old}")
    assert [file.path for file in files] == ["lib/x.h", "lib/y.h"]


def test_what_other_tools_write_between_files_is_passed_over() -> None:
    hunk = "@@ -1 +1 @@\n-a\n+b\n"
    text = (
        f"diff -ruN a/x.c b/x.c\n--- a/x.c\n+++ b/x.c\n{hunk}Only in b: new.c\n"
        f"Index: linux/y.c\n=====\n--- linux.orig/y.c\n+++ linux/y.c\n{hunk}"
        f"diff -ruN a/z.c b/z.c\n--- a/z.c\n+++ b/z.c\n{hunk}"
    )
    assert [file.path for file in parse_diff(text)] == ["x.c", "y.c", "z.c"]


@pytest.mark.process
@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns", "Asia/Kolkata"])
def test_what_diff_says_is_missing_on_one_side_is_added_or_deleted(zone: str, tmp_path: Path) -> None:
    """`diff -N` writes no /dev/null: it gives a file that is not there the time 0."""
    for name in ("a/gone.h", "b/new.h"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("one\ntwo\n")
    clean = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": zone}
    done = subprocess.run(
        ["diff", "-ruN", "a", "b"],
        cwd=tmp_path,
        env=clean,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    files = parse_diff(done.stdout)
    assert [(file.path, file.kind) for file in files] == [("gone.h", "deleted"), ("new.h", "added")]
    assert applied(render_diff(files), {"gone.h": "one\ntwo\n"}, tmp_path / "tree") == {}
    assert (tmp_path / "tree/new.h").read_text() == "one\ntwo\n"


def test_a_file_of_the_time_0_that_is_changed_stays() -> None:
    epoch = "1970-01-01 00:00:00.000000000 +0000"
    (file,) = parse_diff(f"--- a/x\t{epoch}\n+++ b/x\t{epoch}\n@@ -1 +1 @@\n-a\n+b\n")
    assert file.kind == "modified"


def test_a_form_feed_or_a_line_separator_ends_no_line() -> None:
    text = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\x0cb\u2028c\x85d\n-e\n+f\x0b\n"
    assert parse_diff(text)[0].hunks[0].lines == (" a\x0cb\u2028c\x85d", "-e", "+f\x0b")


def test_a_blank_line_of_context_may_have_lost_its_blank() -> None:
    (file,) = parse_diff("--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n")
    assert file.hunks[0].lines == (" a", " ", "-b", "+c")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("@@ -1,3 +1,3 @@\n a\n-b\n+c\n", "counts 3 old and 3 new lines, there are 2 and 2"),
        ("@@ -1,1 +1,1 @@\n-b\n+c\n+d\n", "lines follow that its last hunk does not count"),
        ("@@ -1 +x @@\n-b\n+c\n", "header cannot be read"),
        ("@@ -\u0661 +1 @@\n-b\n+c\n", "header cannot be read"),
        ("@@ -1,9999999999 +1 @@\n-b\n+c\n", "header cannot be read"),
        ("", "has no hunk"),
        ("@@ -1,1 +1,1 @@\n-b\n+call(c,\nd);\n", "may be the other half"),
        (
            "@@ -1,1 +1,2 @@\n-b\n+c\n\\ No newline at end of file\n+d\n",
            "a line without a newline is not its last",
        ),
    ],
)
def test_a_damaged_hunk_is_named(body: str, reason: str) -> None:
    with pytest.raises(PatchDamaged, match=reason) as caught:
        parse_diff("diff --git a/x.c b/x.c\n--- a/x.c\n+++ b/x.c\n" + body)
    assert str(caught.value).startswith("x.c")


def test_a_hunk_without_a_file_is_damage() -> None:
    with pytest.raises(PatchDamaged, match="belongs to no file"):
        parse_diff("hello\n@@ -1 +1 @@\n-a\n+b\n")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("diff --cc x.c\n@@@ -1,1 -1,1 +1,1 @@@\n", "combined diff"),
        ("diff --git a/x b/x\nindex 1111111..2222222\nGIT binary patch\nliteral 3\n", "binary"),
        ("diff --git a/x b/x\nindex 1111111..2222222\nBinary files a/x and b/x differ\n", "binary"),
        (
            "diff --git a/x b/y\nrename from x\nrename to y\n--- a/x\n+++ b/z\n@@ -1 +1 @@\n-a\n+b\n",
            "different files",
        ),
        ("diff --git a/x b/y\nrename from x\n", "from where or to where"),
        ('--- "a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n', "begins with a quote"),
        ('--- "a/\\400"\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n', "quoted in a way"),
    ],
)
def test_what_is_no_ordinary_diff_is_refused(text: str, reason: str) -> None:
    with pytest.raises(PatchRejected, match=reason):
        parse_diff(text)
