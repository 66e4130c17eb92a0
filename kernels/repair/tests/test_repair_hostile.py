# SPDX-License-Identifier: GPL-2.0-or-later
"""Patches from archives and attackers are repaired, or refused at a bounded cost."""

import contextlib
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.diffs.unified import NO_NEWLINE, parse_diff
from kernels.errors import PatchRejected
from kernels.repair import alignment as aligning
from kernels.repair.base_text import BaseText
from kernels.repair.intake import take_in
from kernels.repair.patched_files import apply_exactly
from kernels.tests.damaging import (
    AFTER,
    BEFORE,
    HEAD,
    TAIL,
    diff_of,
    quoted_in_one_line,
    reader,
    stripped,
    wrapped,
)

DIFF = diff_of(BEFORE, AFTER)
MAIL = HEAD + DIFF + TAIL


X_C = "diff --git a/x.c b/x.c\n--- a/x.c\n+++ b/x.c\n"
HOSTILE = {
    "blank lines": X_C + "@@ -1,5000 +1,5001 @@\n" + "\n" * 5_000 + "+ x\n",
    "equal lines": X_C + "@@ -1,900 +1,900 @@\n" + "x\n- x\n+ x\n" * 400,
    "quote marks": "> " * 200_000 + "> diff --git a/x b/x > @@ -1 +1 @@ " + "> + " * 100_000,
    "file headers": "diff --git a/x.c b/x.c\n" * 100_000,
    "equal hunks": X_C + "@@ -1,3 +1,4 @@ f\n\n\n+ y\n\n" * 300,
    "broken hunks": X_C + "@@ -1,6 +1,7 @@ f\nx\nx\n+ y\nx\nx\nz\n\n" * 300,
    "equal files": (X_C + "@@ -8000,2 +8000,3 @@\n\nx\n+ y\n") * 300,
    "brackets": "Re: [" * 50_000 + "PATCH] x\n" + "On a 1, " * 20_000 + "\n" + X_C + "@@ -1 +1 @@\ny\n",
    "open brackets": X_C + "@@ -1,1 +1,30001 @@\n" + "+ a(\n" * 30_000 + "x\n",
    "brackets in a line": "--- /dev/null\n+++ b/n.c\n@@ -0,0 +1,2 @@\n+x\ny\n+"
    + "struct " * 3_000
    + "{" * 300
    + "\n",
    "unclosed comment": X_C + "@@ -1,1 +1,9001 @@\n" + "+ /*((((((((((((((((((((\n" * 9_000 + "x\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_damage_costs_what_it_is_allowed_to(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # a twentieth of the real bound; a search without one would take hours
    monkeypatch.setattr(aligning, "MAX_STEPS", aligning.MAX_STEPS // 20)
    base = {"x.c": "x\n" * 2_000 + "\n" * 6_000 + "x\n" * 2_000}
    began = time.process_time()
    with contextlib.suppress(PatchRejected):
        take_in(HOSTILE[name].encode(), reader(base))
    assert time.process_time() - began < 5


def test_the_hunks_of_all_letters_together_are_bounded() -> None:
    diff = X_C + "@@ -1,1 +1,2 @@\nx\n+ y\n" * 400
    letter = "From a b Mon Sep 17 00:00:00 2001\nFrom: a@b\nSubject: [PATCH {number}/3] x\n\n{diff}"
    mbox = "".join(letter.format(number=number, diff=diff) for number in (1, 2, 3))
    with pytest.raises(PatchRejected, match="more than 1000 files and hunks"):
        take_in(mbox.encode(), reader({"x.c": "x\n"}))


@pytest.mark.parametrize(
    ("mail", "lines"),
    [
        ("--- /dev/null\n+++ b/n.c\n@@ -0,0 +1,{count} @@\n+x\n" + "x\n" * 400_000, 0),
        (X_C + "@@ -1,1 +1,{count} @@\n+x\n" + "x\n" * 200_000, 1),
        (X_C + "@@ -1,1 +1,{count} @@\n" + ("+" + "x" * 90_000 + "\n") * 40, 5_000),
    ],
    ids=["pieces of a new file", "pieces of a hunk", "long pieces"],
)
def test_very_long_lines_cost_linear_time(mail: str, lines: int) -> None:
    began = time.process_time()
    with pytest.raises(PatchRejected):
        take_in(mail.format(count=1_000_000).encode(), reader({"x.c": "y\n" * lines}))
    assert time.process_time() - began < 5


def test_a_long_hunk_of_a_piece_that_is_everywhere_costs_linear_time() -> None:
    count = 20_000
    mail = f"{X_C}@@ -1,{count} +1,{count} @@\n" + "#define\n" * count
    began = time.process_time()
    with pytest.raises(PatchRejected, match="the base has none of its lines"):
        take_in(mail.encode(), reader({"x.c": "#define A 1\n" * (2 * count)}))
    assert time.process_time() - began < 10


def test_a_line_without_a_newline_in_the_middle_of_a_damaged_hunk_is_refused() -> None:
    damaged = stripped(MAIL).replace("spin_lock(&pool_lock);\n", f"spin_lock(&pool_lock);\n{NO_NEWLINE}\n", 1)
    intake = take_in(damaged.encode(), reader(BEFORE))
    assert any("missing newline" in refused.reason for refused in intake.refused)
    for patch in intake.series.patches:
        parse_diff(patch.diff)


CODE = st.sampled_from(
    [
        "spin_lock(&a);",
        "if (a > b)",
        "return 0;",
        "}",
        "{",
        "out:",
        "",
        "/* note */",
        "int *p = NULL;",
        "else",
        "- 1,",
        "+ 2;",
    ]
)
EDITS = st.lists(
    st.tuples(st.integers(0, 59), st.sampled_from(["drop", "add", "swap"]), CODE), min_size=1, max_size=12
)
DAMAGES: st.SearchStrategy[Callable[[str], str]] = st.sampled_from([stripped, quoted_in_one_line])


@settings(max_examples=60, deadline=None)
@given(EDITS, DAMAGES, st.integers(1, 4))
def test_what_archives_do_to_a_diff_is_undone(
    edits: list[tuple[int, str, str]], damage: Callable[[str], str], context: int
) -> None:
    before = [f"\tline_{number}(a,  b);" if number % 5 else "" for number in range(60)]
    after: list[str | None] = list(before)
    extra: dict[int, list[str]] = {}
    for at, kind, code in edits:
        if kind == "add":
            extra.setdefault(at, []).append("\t" + code if code else "")
        else:
            after[at] = None if kind == "drop" else f"\tswapped_{at}();"
    new = [
        part for at, line in enumerate(after) for part in ([] if line is None else [line]) + extra.get(at, [])
    ]
    old_text, new_text = "".join(f"{line}\n" for line in before), "".join(f"{line}\n" for line in new)
    diff = diff_of({"x.c": old_text}, {"x.c": new_text}, context)
    if not diff:
        return
    intake = take_in((damage(HEAD + diff + TAIL) + "\n").encode(), reader({"x.c": old_text}))
    assert intake.refused == ()
    (file,) = parse_diff(intake.series.patches[0].diff)
    # it applies, so every line of the base that it names has the base's blanks
    got = apply_exactly(file, BaseText(before))
    assert got is not None
    assert ["".join(line.split()) for line in got] == ["".join(line.split()) for line in new]


SNIPPETS = st.sampled_from(
    ["@@ -1,3 +1,4 @@", "diff --git a/x.c b/x.c\n", "--- a/lib/pool.c\n", "+++ b/lib/pool.c\n", "> ", "\n", "\n\n", "+", "-", "\\ No newline at end of file\n",
     "From a b Mon Sep 17 00:00:00 2001\n", "Subject: [PATCH 2/3] x\n", "/*", "{", "(", "\"", "\r", "\x0c", "\u2028", "rename from x\n", "Binary files a/x and b/x differ\n"]
)  # fmt: skip
CUTS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), SNIPPETS), max_size=6)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([MAIL, stripped(MAIL), quoted_in_one_line(MAIL), stripped(wrapped(MAIL, 60))]), CUTS)
def test_whatever_is_sent_is_a_patch_that_applies_or_a_refusal(
    text: str, cuts: list[tuple[float, int, str]]
) -> None:
    for where, length, snippet in cuts:
        at = int(where * len(text))
        text = text[:at] + snippet + text[at + length :]
    try:
        intake = take_in(text.encode(), reader(BEFORE))
    except PatchRejected:
        return
    if not intake.repaired:
        return
    for series in intake.alternatives or (intake.series,):
        files = {path: BaseText(text.split("\n")[:-1]) for path, text in BEFORE.items()}
        for patch in series.patches:
            for file in parse_diff(patch.diff):
                if file.kind == "modified" and file.hunks:
                    after = apply_exactly(file, files[file.path])
                    assert after is not None
                    files[file.path] = BaseText(after)
