# SPDX-License-Identifier: GPL-2.0-or-later
from pathlib import Path

import pytest

from kernels.errors import PatchRejected
from kernels.repair.intake import take_in
from kernels.tests.damaging import (
    AFTER,
    BEFORE,
    HEAD,
    TAIL,
    applied,
    diff_of,
    in_one_line,
    quoted_in_one_line,
    reader,
    stripped,
    without_blanks,
    wrapped,
)

DIFF = diff_of(BEFORE, AFTER)
MAIL = HEAD + DIFF + TAIL
POOL_C, POOL_H = BEFORE["lib/pool.c"], BEFORE["lib/pool.h"]


def damage_one(path: str, after: str, context: int = 3, before: str = "") -> str:
    """The stripped diff of a change to one file."""
    return stripped(diff_of({path: before or BEFORE[path]}, {path: after}, context))


@pytest.mark.process
def test_a_diff_whose_leading_blanks_are_lost_comes_out_byte_for_byte(tmp_path: Path) -> None:
    intake = take_in(stripped(MAIL).encode(), reader(BEFORE))
    (patch,) = intake.series.patches
    assert applied(patch.diff, BEFORE, tmp_path) == AFTER
    assert intake.refused == ()
    assert patch.title == "pool: look before taking"
    assert patch.author == "Ada Lovelace"
    assert patch.date == "2024-06-11T13:41:17-05:00"
    assert "looking at one should not." in patch.message
    assert intake.series.version == 4


def test_the_report_says_what_was_repaired() -> None:
    intake = take_in(stripped(MAIL).encode(), reader(BEFORE))
    first, second = intake.repaired
    assert first.startswith("lib/pool.c: ")
    assert "blanks taken from the tree" in first
    assert "added lines indented again" in first
    assert second.startswith("lib/pool.h: ")


@pytest.mark.process
def test_a_quoted_reply_in_one_line_comes_out_as_the_diff_itself(tmp_path: Path) -> None:
    mail = "Headers | show |\nOn Tue 11-06-24 19:38:22, Ada Lovelace wrote: " + quoted_in_one_line(
        MAIL + "x\n" * 1500
    )
    intake = take_in(mail.encode(), reader(BEFORE))
    assert applied(intake.series.patches[0].diff, BEFORE, tmp_path) == AFTER
    assert intake.series.patches[0].author == "Ada Lovelace"


@pytest.mark.process
def test_a_quote_mark_that_is_a_greater_than_does_not_break_a_line(tmp_path: Path) -> None:
    # "if (number > POOL_SIZE &&" is in the diff
    assert " > POOL_SIZE" in DIFF
    intake = take_in(quoted_in_one_line(MAIL).encode(), reader(BEFORE))
    assert "number > POOL_SIZE" in applied(intake.series.patches[0].diff, BEFORE, tmp_path)["lib/pool.c"]


def test_the_same_diff_once_more_without_line_ends_is_passed_over() -> None:
    mail = quoted_in_one_line(MAIL) + "\n" + in_one_line(DIFF) + "\n"
    intake = take_in(mail.encode(), reader(BEFORE))
    assert intake.refused == ()
    assert len(intake.series.patches) == 1


def test_a_diff_in_one_line_with_nothing_to_part_it_is_refused() -> None:
    with pytest.raises(PatchRejected, match="line ends are lost"):
        take_in(in_one_line(MAIL).encode(), reader(BEFORE))


@pytest.mark.process
def test_a_reply_with_its_lines_whole_is_unquoted(tmp_path: Path) -> None:
    quoted = "".join(f"> {line}\n" for line in stripped(MAIL).split("\n")[:-1])
    mail = "Ada Lovelace wrote:\n" + quoted.replace("> @@ -47", "This part I like less.\n> @@ -47")
    assert applied(take_in(mail.encode(), reader(BEFORE)).series.patches[0].diff, BEFORE, tmp_path) == AFTER


def test_a_patch_from_a_quotation_is_told_to_be_one() -> None:
    head = "From: Bob <bob@example.org>\nSubject: Re: [PATCH] pool: look\n\nAda wrote:\n"
    first = MAIL.partition("diff --git a/lib/pool.h")[0]
    quoted = "".join(f"> {line}\n" for line in first.split("\n")[:-1])
    series = take_in((head + quoted).encode(), reader(BEFORE)).series
    assert series.patches[0].files == ("lib/pool.c",)
    assert series.notes == (
        '"pool: look" is taken from a quotation; parts that its author left out are missing',
    )
    assert take_in(stripped(MAIL).encode(), reader(BEFORE)).series.notes == ()


@pytest.mark.process
@pytest.mark.parametrize("width", [35, 40, 50, 60, 72])
def test_wrapped_lines_are_rejoined(width: int, tmp_path: Path) -> None:
    intake = take_in(stripped(HEAD + wrapped(DIFF, width) + TAIL).encode(), reader(BEFORE))
    assert intake.refused == ()
    assert any("wrapped" in line for line in intake.repaired)
    got = applied(intake.series.patches[0].diff, BEFORE, tmp_path)
    assert without_blanks(got) == without_blanks(AFTER)


@pytest.mark.process
def test_a_backslash_that_was_wrapped_is_no_missing_newline(tmp_path: Path) -> None:
    after = POOL_H.replace(
        "#endif\n", "#define POOL_EACH(ticket, pool) \\\n\tlist_for_each(ticket, pool)\n\n#endif\n"
    )
    mail = damage_one("lib/pool.h", after).replace("(ticket, pool) \\", "(ticket, pool)\n\\")
    intake = take_in(mail.encode(), reader(BEFORE))
    assert intake.refused == ()
    assert applied(intake.series.patches[0].diff, BEFORE, tmp_path)["lib/pool.h"] == after


@pytest.mark.process
def test_blank_context_lines_that_are_lost_altogether_come_back(tmp_path: Path) -> None:
    lines = stripped(DIFF).split("\n")
    mail = "\n".join(line for line in lines if line)
    intake = take_in(mail.encode(), reader(BEFORE))
    assert intake.refused == ()
    assert applied(intake.series.patches[0].diff, BEFORE, tmp_path) == AFTER


def test_a_whole_patch_is_left_alone() -> None:
    intake = take_in(MAIL.encode(), reader(BEFORE))
    assert intake.repaired == ()
    assert intake.series.patches[0].diff == DIFF


def test_a_patch_that_is_whole_and_does_not_fit_is_left_to_git() -> None:
    other = {path: text.replace("ticket", "token") for path, text in BEFORE.items()}
    assert take_in(MAIL.encode(), reader(other)).series.patches[0].diff == DIFF


@pytest.mark.process
def test_tabs_that_a_mailer_made_spaces_become_tabs_again(tmp_path: Path) -> None:
    intake = take_in(MAIL.replace("\t", " " * 8).encode(), reader(BEFORE))
    assert without_blanks(applied(intake.series.patches[0].diff, BEFORE, tmp_path)) == without_blanks(AFTER)
    assert "\n+\tif (locked)\n" in intake.series.patches[0].diff


@pytest.mark.process
def test_added_lines_whose_blanks_survived_stay_as_they_are(tmp_path: Path) -> None:
    # format=flowed eats the blank before context lines and nothing else
    mail = "\n".join(line.removeprefix(" ") for line in MAIL.split("\n"))
    assert applied(take_in(mail.encode(), reader(BEFORE)).series.patches[0].diff, BEFORE, tmp_path) == AFTER


def test_a_line_that_moves_into_a_condition_is_indented_for_it() -> None:
    diff = take_in(stripped(MAIL).encode(), reader(BEFORE)).series.patches[0].diff
    assert "-\tspin_lock(&pool_lock);\n+\tif (ticket->number)\n+\t\tspin_lock(&pool_lock);\n" in diff


def test_two_diffs_for_the_same_places_are_alternatives() -> None:
    first = diff_of(BEFORE, AFTER)
    second = diff_of(
        BEFORE,
        {**BEFORE, "lib/pool.c": POOL_C.replace("count++", "count += 2").replace("users++", "users += 1")},
    )
    mail = f"Re: [PATCH] pool: be quick\n\nEither this:\n\n{first}\n\nor that:\n\n{second}\n\nWhich one?\n"
    intake = take_in(stripped(mail).encode(), reader(BEFORE))
    assert len(intake.alternatives) == 2
    assert intake.series == intake.alternatives[0]
    assert [series.title for series in intake.alternatives] == [
        "pool: be quick (alternative 1 of 2)",
        "pool: be quick (alternative 2 of 2)",
    ]
    assert "count += 2" in intake.alternatives[1].patches[0].diff
    assert "pool_peek" not in intake.alternatives[1].patches[0].diff


def test_an_alternative_of_which_nothing_fits_is_told_apart_from_the_rest() -> None:
    first = diff_of(
        {"lib/pool.h": POOL_H.replace("large", "small")},
        {"lib/pool.h": AFTER["lib/pool.h"].replace("large", "small")},
    )
    second = diff_of(BEFORE, {**BEFORE, "lib/pool.h": POOL_H.replace("large", "huge")})
    intake = take_in(stripped(f"[PATCH] pool\n\n{first}\nor\n\n{second}").encode(), reader(BEFORE))
    assert [series.title for series in intake.alternatives] == ["pool (alternative 2 of 2)"]
    assert {refused.patch for refused in intake.refused} == {"pool (alternative 1 of 2)"}


def test_diffs_for_different_places_with_text_between_them_are_one_patch() -> None:
    first = damage_one("lib/pool.c", AFTER["lib/pool.c"])
    two = damage_one("lib/pool.h", AFTER["lib/pool.h"])
    intake = take_in(f"{first}\n\nand the header:\n\n{two}".encode(), reader(BEFORE))
    assert intake.alternatives == ()
    assert intake.series.patches[0].files == ("lib/pool.c", "lib/pool.h")


def test_a_hunk_that_is_nowhere_is_refused_and_the_others_are_kept() -> None:
    base = {**BEFORE, "lib/pool.c": POOL_C.replace("--ticket->users", "--ticket->owners")}
    intake = take_in(stripped(MAIL).encode(), reader(base))
    (refused,) = intake.refused
    assert refused.file == "lib/pool.c"
    assert refused.hunk.startswith("@@ -")
    assert "no place" in refused.reason
    assert 'the hunk has "if (!--ticket->users)", the base has "if (!--ticket->owners)"' in refused.reason
    assert "pool_peek" in intake.series.patches[0].diff


def test_a_hunk_whose_header_is_lost_is_refused_by_name() -> None:
    mail = stripped(MAIL).replace("@@ -39", "@@ -thirty-nine")
    (refused,) = take_in(mail.encode(), reader(BEFORE)).refused
    assert str(refused).startswith("lib/pool.c, @@ -thirty-nine")
    assert refused.reason == "its header cannot be read"


def test_a_file_whose_hunks_are_lost_is_refused() -> None:
    mail = stripped(diff_of({"lib/pool.c": POOL_C}, {"lib/pool.c": AFTER["lib/pool.c"]}))
    mail += "diff --git a/lib/pool.h b/lib/pool.h\nindex 1111111..2222222 100644\n"
    (refused,) = take_in(mail.encode(), reader(BEFORE)).refused
    assert str(refused).startswith("lib/pool.h: its diff has no hunk")


def test_a_hunk_whose_counts_are_wrong_is_refused() -> None:
    mail = stripped(MAIL).replace("+ rcu_read_lock();\n", "")
    (refused,) = take_in(mail.encode(), reader(BEFORE)).refused
    assert "counts disagree: the header says" in refused.reason


def test_a_file_that_the_base_lacks_is_refused() -> None:
    intake = take_in(stripped(MAIL).encode(), reader({"lib/pool.c": POOL_C}))
    assert [str(refused) for refused in intake.refused] == [
        f"lib/pool.h, {refused.hunk}: the base has no such file" for refused in intake.refused
    ]
    assert intake.series.patches[0].files == ("lib/pool.c",)


TWICE = """\
int first(void)
{
\tlock();
\twork();
\tunlock();
}

int second(void)
{
\tlock();
\twork();
\tunlock();
}
"""


def hunk_at(line: int, section: str = "") -> str:
    return (
        "diff --git a/x.c b/x.c\n--- a/x.c\n+++ b/x.c\n"
        f"@@ -{line},3 +{line},3 @@ {section}\nlock();\n- work();\n+ play();\nunlock();\n"
    )


def test_of_two_places_the_function_in_the_header_decides() -> None:
    intake = take_in(hunk_at(99, "int second(void)").encode(), reader({"x.c": TWICE}))
    assert "@@ -10,3 +10,3 @@" in intake.series.patches[0].diff


def test_of_two_places_the_exact_line_decides_if_nothing_else_does() -> None:
    intake = take_in(hunk_at(3).encode(), reader({"x.c": TWICE}))
    assert "@@ -3,3 +3,3 @@" in intake.series.patches[0].diff


def test_of_two_places_none_is_taken_if_nothing_decides() -> None:
    with pytest.raises(PatchRejected, match="2 places: lines 3, 10"):
        take_in(hunk_at(6).encode(), reader({"x.c": TWICE}))


def test_of_two_places_the_one_behind_its_sure_neighbour_is_taken() -> None:
    mail = (
        "diff --git a/x.c b/x.c\n--- a/x.c\n+++ b/x.c\n@@ -58,1 +58,1 @@\n-int second(void)\n+long second(void)\n"
        "@@ -60,3 +60,3 @@\nlock();\n- work();\n+ play();\nunlock();\n"
    )
    intake = take_in(mail.encode(), reader({"x.c": TWICE}))
    assert "@@ -10,3 +10,3 @@" in intake.series.patches[0].diff


@pytest.mark.process
def test_the_second_patch_of_a_series_is_read_on_top_of_the_first(tmp_path: Path) -> None:
    middle = {**BEFORE, "lib/pool.h": AFTER["lib/pool.h"].replace("\tint kind;\n", "")}
    last = {
        **middle,
        "lib/pool.h": middle["lib/pool.h"].replace(
            "pool_peek(struct pool *pool,", "pool_look(struct pool *p,"
        ),
    }
    mbox = "".join(
        f"From {'0' * 40} Mon Sep 17 00:00:00 2001\nFrom: Ada <ada@example.org>\nSubject: [PATCH {number}/2] step {number}\n\n"
        f"Because.\n---\n{stripped(diff_of(old, new))}\n"
        for number, (old, new) in enumerate([(BEFORE, middle), (middle, last)], 1)
    )
    intake = take_in(mbox.encode(), reader(BEFORE))
    assert intake.refused == ()
    assert [patch.title for patch in intake.series.patches] == ["step 1", "step 2"]
    diff = "".join(patch.diff for patch in intake.series.patches[:1])
    first = applied(diff, BEFORE, tmp_path)
    assert first == middle
    assert applied(intake.series.patches[1].diff, first, tmp_path) == last


@pytest.mark.process
def test_a_new_file_and_a_removed_one_are_repaired(tmp_path: Path) -> None:
    new = "".join(f"+{line}\n" for line in POOL_H.split("\n")[:-1])
    old = "".join(f"-{line}\n" for line in POOL_H.split("\n")[:-1])
    count = POOL_H.count("\n")
    diff = (
        f"diff --git a/lib/new.h b/lib/new.h\nnew file mode 100644\n--- /dev/null\n+++ b/lib/new.h\n@@ -0,0 +1,{count} @@\n{new}"
        f"diff --git a/lib/pool.h b/lib/pool.h\ndeleted file mode 100644\n--- a/lib/pool.h\n+++ /dev/null\n@@ -1,{count} +0,0 @@\n{old}"
    )
    mail = stripped(diff) + stripped(diff_of({"lib/pool.c": POOL_C}, {"lib/pool.c": AFTER["lib/pool.c"]}))
    intake = take_in(mail.encode(), reader(BEFORE))
    assert intake.refused == ()
    got = applied(intake.series.patches[0].diff, {**BEFORE}, tmp_path)
    assert got == {"lib/pool.c": AFTER["lib/pool.c"]}
    assert "\n\tstruct list_head tickets;\n" in (tmp_path / "lib/new.h").read_text()


NEW = "diff --git a/n.c b/n.c\nnew file mode 100644\n--- /dev/null\n+++ b/n.c\n@@ -0,0 +1,{count} @@\n{body}"


@pytest.mark.process
def test_a_new_file_is_rejoined_and_keeps_its_missing_newline(tmp_path: Path) -> None:
    body = "+int f(int a,\nint b)\n+{\n+ return a;\n+}\n\\ No newline at end of file\n"
    (patch,) = take_in(NEW.format(count=4, body=body).encode(), reader({})).series.patches
    applied(patch.diff, {}, tmp_path)
    assert (tmp_path / "n.c").read_text() == "int f(int a, int b)\n{\n\treturn a;\n}"


@pytest.mark.parametrize(
    ("count", "body", "reason"),
    [
        (3, "+int a;\n+int b;\n", "the header says 3 new lines, there are 2"),
        (2, "+int a;\n+int b;\nint c;\n", "may be the other half"),
        (2, "+int a;\n\\ No newline at end of file\n+int b;\n", "counts disagree"),
        (1, "+int a;\n@@ -9,0 +9,1 @@\n+int b;\nx\n", "a new file is one hunk"),
    ],
)
def test_a_new_file_that_is_not_what_its_header_says_is_refused(count: int, body: str, reason: str) -> None:
    with pytest.raises(PatchRejected, match=reason):
        take_in(NEW.format(count=count, body=body).encode(), reader({}))


def test_indentation_that_means_something_is_not_guessed() -> None:
    before = "def f():\n    a()\n    b()\n    c()\n"
    mail = stripped(
        diff_of({"tool.py": before}, {"tool.py": before.replace("    b()\n", "    if x:\n        b()\n")})
    )
    with pytest.raises(
        PatchRejected, match=r"blanks at the head of an added line of a \.py file cannot be known"
    ):
        take_in(mail.encode(), reader({"tool.py": before}))


@pytest.mark.process
def test_kconfig_and_makefile_lines_get_their_tabs(tmp_path: Path) -> None:
    before = {
        "Kconfig": 'config POOL\n\tbool "Pool"\n\thelp\n\t  Tickets.\n',
        "Makefile": "obj-y := pool.o\n",
    }
    after = {
        "Kconfig": before["Kconfig"].replace("\thelp\n", "\tdepends on MMU\n\thelp\n\t  Many, and all\n"),
        "Makefile": "obj-y := pool.o\nobj-$(CONFIG_PEEK) += peek.o\n",
    }
    intake = take_in(stripped(diff_of(before, after)).encode(), reader(before))
    assert applied(intake.series.patches[0].diff, before, tmp_path) == after


def test_an_equal_line_in_the_base_gives_its_inner_blanks(tmp_path: Path) -> None:
    after = POOL_C.replace("#define POOL_SHIFT\t4\n", "#define POOL_SHIFT\t5\n").replace(
        '#include "pool.h"\n', '#include "pool.h"\n\n#define POOL_SIZE\t(1 << POOL_SHIFT)\n'
    )
    intake = take_in(damage_one("lib/pool.c", after).encode(), reader(BEFORE))
    assert "+#define POOL_SIZE\t(1 << POOL_SHIFT)\n" in intake.series.patches[0].diff


def test_a_refusal_is_one_printable_line() -> None:
    with pytest.raises(PatchRejected) as caught:
        take_in(stripped(MAIL).encode(), reader({}))
    assert str(caught.value).isprintable()
    assert "none of its hunks can be repaired" in str(caught.value)
    assert "lib/pool.h" in caught.value.detail
