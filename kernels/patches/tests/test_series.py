# SPDX-License-Identifier: GPL-2.0-or-later
import base64
import os
import quopri
import subprocess
from pathlib import Path

import pytest

from kernels.errors import PatchRejected, SeriesIncomplete, UnknownRevision
from kernels.mails.letters import Letter, Title, read_letters, write_letter
from kernels.patches.series import Series, read_range, read_series
from kernels.tests.damaging import AFTER, BEFORE, diff_of
from kernels.trees.tree import SourceTree

DIFF = diff_of({"lib/pool.h": BEFORE["lib/pool.h"]}, {"lib/pool.h": AFTER["lib/pool.h"]})
FROM = f"From {'1' * 40} Mon Sep 17 00:00:00 2001\n"
IDENTITY = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in (
    ("NAME", "Zoë Łukasz"), ("EMAIL", "zoe@example.org"), ("DATE", "2024-06-11T19:38:22 +0200"))}  # fmt: skip


class Repository:
    """A small git repository, with three commits on top of a tag."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.git("init", "-q", "-b", "main")
        self.commit("base", "one\ntwo\nthree\n")
        self.git("tag", "v1")
        self.commit(
            "count in words\n\nFrom here on, numbers are words.\nFrom 1 to 3 that is.", "one\nTWO\nthree\n"
        )
        self.commit(
            "lib: größer, and a title that is so long that git has to fold its header line",
            "ONE\nTWO\nthree\n",
        )
        self.commit("third", "ONE\nTWO\nTHREE\n")

    def git(self, *arguments: str) -> str:
        clean = {"PATH": os.environ["PATH"], "HOME": str(self.path), "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            env=clean | IDENTITY,
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
        return done.stdout

    def commit(self, message: str, text: str) -> None:
        (self.path / "lib.c").write_text(text)
        self.git("add", ".")
        self.git("commit", "-q", "-m", message)

    def mbox(self, *options: str) -> bytes:
        return self.git("format-patch", "--stdout", *options, "v1..main").encode()

    @property
    def tree(self) -> SourceTree:
        return SourceTree("small", self.path / ".git", "main")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository(tmp_path_factory.mktemp("repository"))


def titles(series: Series) -> list[str]:
    return [patch.title for patch in series.patches]


ALL = [
    "count in words",
    "lib: größer, and a title that is so long that git has to fold its header line",
    "third",
]


@pytest.mark.process
def test_a_series_with_its_cover_letter(repository: Repository) -> None:
    mbox = repository.mbox("--cover-letter", "-v4", "--base=v1", "--thread")
    mbox = mbox.replace(b"*** SUBJECT HERE ***", b"lib: words").replace(
        b"*** BLURB HERE ***", b"Why words are better."
    )
    series = read_series(mbox)
    assert series.title == "lib: words"
    assert series.version == 4
    assert series.cover.startswith("Why words are better.")
    assert titles(series) == ALL
    assert series.base_commit == repository.git("rev-parse", "v1").strip()


@pytest.mark.process
def test_a_patch_keeps_author_date_and_message(repository: Repository) -> None:
    first = read_series(repository.mbox()).patches[0]
    assert first.author == "Zoë Łukasz <zoe@example.org>"
    assert first.date == "2024-06-11T19:38:22+02:00"
    assert first.message == "From here on, numbers are words.\nFrom 1 to 3 that is."
    assert first.files == ("lib.c",)
    assert first.diff.startswith("diff --git a/lib.c b/lib.c\nindex ")
    assert first.diff.endswith("\n-two\n+TWO\n three\n")


@pytest.mark.process
def test_mails_are_put_in_the_order_of_their_numbers(repository: Repository, tmp_path: Path) -> None:
    repository.git("format-patch", "-o", str(tmp_path), "v1..main")
    mboxes = [path.read_bytes() for path in sorted(tmp_path.iterdir())]
    assert len(mboxes) == 3
    assert titles(read_series(b"\n".join(reversed(mboxes)))) == ALL


@pytest.mark.process
def test_a_missing_patch_is_named(repository: Repository, tmp_path: Path) -> None:
    repository.git("format-patch", "-o", str(tmp_path), "v1..main")
    mboxes = [path.read_bytes() for path in sorted(tmp_path.iterdir())]
    with pytest.raises(
        PatchRejected,
        match=r"^it has patches 1, 3 of 3; missing: 2; send the whole series .*, or set partial = true",
    ):
        read_series(mboxes[0] + b"\n" + mboxes[2])


@pytest.mark.process
def test_one_patch_of_a_series_comes_alone_on_the_submitters_word(
    repository: Repository, tmp_path: Path
) -> None:
    repository.git("format-patch", "-o", str(tmp_path), "v1..main")
    data = min(tmp_path.iterdir()).read_bytes()
    with pytest.raises(SeriesIncomplete, match=r"^it has patch 1 of 3; missing: 2, 3"):
        read_series(data)
    series = read_series(data, partial=True)
    assert titles(series) == ALL[:1]
    assert series.notes == ("missing of 3 patches, as the submitter allows: 2, 3",)


@pytest.mark.process
def test_the_newest_of_several_versions_is_taken(repository: Repository) -> None:
    mbox = repository.mbox("-v3").replace(b"+TWO", b"+Two") + b"\n" + repository.mbox("-v10")
    series = read_series(mbox)
    assert series.version == 10
    assert "+TWO" in series.patches[0].diff


@pytest.mark.process
def test_the_same_patch_twice_counts_once_and_two_that_differ_are_refused(repository: Repository) -> None:
    assert titles(read_series(repository.mbox() + b"\n" + repository.mbox())) == ALL
    with pytest.raises(PatchRejected, match='two different patches are both 1/3: "count in words" and'):
        read_series(repository.mbox() + b"\n" + repository.mbox().replace(b"+TWO", b"+Two"))


def mail(body: str, subject: str = "[PATCH] pool: peek", extra: str = "") -> str:
    return f"{FROM}From: Ada <ada@example.org>\nSubject: {subject}\nMessage-ID: <1@example.org>\n{extra}\n{body}\n"


def test_replies_without_a_diff_are_passed_over() -> None:
    thread = mail("Why.\n---\n" + DIFF) + "\n" + mail("> +int kind;\nNice.\n", "Re: [PATCH] pool: peek")
    series = read_series(thread.encode())
    assert titles(series) == ["pool: peek"]
    assert series.title == "pool: peek"
    assert series.cover == ""
    assert series.patches[0].message_id == "1@example.org"


@pytest.mark.parametrize("subject", ["pool: really peek", "pool:\n really\n\tpeek"])
def test_the_author_in_the_body_counts_more_than_the_sender(subject: str) -> None:
    body = f"From: Grace <grace@example.org>\nSubject: {subject}\n\nWhy.\n---\n{DIFF}"
    (patch,) = read_series(mail(body).encode()).patches
    assert (patch.author, patch.title, patch.message) == (
        "Grace <grace@example.org>",
        "pool: really peek",
        "Why.",
    )


@pytest.mark.parametrize("encoding", ["quoted-printable", "base64"])
def test_encoded_mails_are_decoded(encoding: str) -> None:
    text = f"Größer.\n---\n{DIFF}".encode()
    body = quopri.encodestring(text) if encoding == "quoted-printable" else base64.encodebytes(text)
    extra = f"Content-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: {encoding}\n"
    subject = "=?UTF-8?q?=5BPATCH_v2=5D_gr=C3=B6=C3=9Fer?="
    series = read_series(mail(body.decode(), subject, extra).encode())
    assert series.patches[0].message == "Größer."
    assert series.title == "größer"
    assert series.version == 2
    assert series.patches[0].diff == DIFF


def test_a_patch_may_be_attached() -> None:
    body = (
        "--frontier\nContent-Type: text/plain\n\nSee the patch.\n"
        f"--frontier\nContent-Type: text/x-patch; name=a.patch\nContent-Disposition: attachment\n\n{DIFF}\n--frontier--\n"
    )
    extra = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="frontier"\n'
    (patch,) = read_series(mail(body, extra=extra).encode()).patches
    assert patch.diff == DIFF
    assert patch.message == "See the patch."


def test_a_mail_with_windows_line_ends_is_read_as_if_it_had_none() -> None:
    text = mail("Why.\n---\n" + DIFF).replace("\n", "\r\n")
    assert read_series(text.encode()).patches[0].diff == DIFF
    assert read_series(DIFF.replace("\n", "\r\n").encode()).patches[0].diff == DIFF


@pytest.mark.parametrize(
    "text", [DIFF, mail("Why.\n---\n" + DIFF), mail("Why.\n---\n" + DIFF + "-- \n2.43.0\n")]
)
def test_windows_line_ends_are_recognised_without_one_at_the_end(text: str) -> None:
    """An editor, or what is copied from a page, leaves out the last line end."""
    sent = text.rstrip("\n").replace("\n", "\r\n")
    assert read_series(sent.encode()).patches[0].diff == DIFF


def test_a_bare_mail_needs_no_from_line() -> None:
    text = mail("Why.\n---\n" + DIFF).removeprefix(FROM)
    assert titles(read_series(text.encode())) == ["pool: peek"]


def test_a_plain_diff_is_named_after_its_file() -> None:
    series = read_series(DIFF.encode())
    assert series.title == "changes lib/pool.h"
    assert series.patches[0].author == ""
    two = diff_of(BEFORE, AFTER)
    assert read_series(two.encode()).title == "changes lib/pool.c and 1 more"


def test_a_mail_without_a_diff_is_refused_with_the_way_out() -> None:
    with pytest.raises(PatchRejected, match="there is no diff in it; send what git format-patch wrote"):
        read_series(mail("Hello.").encode())


def test_a_diff_that_is_not_utf_8_keeps_its_bytes() -> None:
    (patch,) = read_series("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+\u00e4\n".encode("latin-1")).patches
    assert b"\n+\xe4\n" in patch.diff.encode("utf-8", "surrogateescape")


def test_a_declared_charset_is_believed() -> None:
    extra = "Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: 8bit\n"
    data = mail("Größer.\n---\n" + DIFF, extra=extra).encode("latin-1")
    assert read_series(data).patches[0].message == "Größer."


@pytest.mark.parametrize(
    ("subject", "text", "version", "number", "total"),
    [
        ("[PATCH] a: b", "a: b", 1, 0, 0),
        ("[PATCH v4 1/2] a: b", "a: b", 4, 1, 2),
        ("Re: [RESEND PATCH 4/5] a: b", "a: b", 1, 4, 5),
        ("[PATCH,v2,03/10] a", "a", 2, 3, 10),
        ("[PATCHv3 0/2] a", "a", 3, 0, 2),
        ("[RFC PATCH net-next] [v2] a", "a", 2, 0, 0),
        ("[RFC][PATCHv2] a", "a", 2, 0, 0),
        ("[PATCH/RFC-v2 1/3] a", "a", 2, 1, 3),
        ("SV: [list] Re: [PATCH v2 1/2] a", "a", 2, 1, 2),
        ("[PATCH] [media] a", "[media] a", 1, 0, 0),
        ("a: [b] c", "a: [b] c", 1, 0, 0),
        ("Re: a", "a", 1, 0, 0),
    ],
)
def test_subjects_are_taken_apart(subject: str, text: str, version: int, number: int, total: int) -> None:
    from kernels.mails.letters import read_title

    title = read_title(subject)
    assert (title.text, title.version, title.number, title.total) == (text, version, number, total)


@pytest.mark.process
def test_a_range_of_commits_becomes_a_series(repository: Repository) -> None:
    series = read_range(repository.tree, "v1", "main")
    assert titles(series) == ALL
    assert series.base_commit == repository.git("rev-parse", "v1").strip()
    assert [patch.diff for patch in series.patches] == [
        patch.diff for patch in read_series(repository.mbox("--full-index")).patches
    ]


@pytest.mark.process
def test_a_commit_of_a_range_that_changes_nothing_is_no_patch(tmp_path: Path) -> None:
    """b4 keeps a series' cover letter in such a commit, below the patches."""
    repository = Repository(tmp_path)
    repository.git("checkout", "-q", "-b", "b4/words", "v1")
    repository.git("commit", "-q", "--allow-empty", "-m", "EDITME: cover title for words")
    with pytest.raises(PatchRejected, match=r"v1\.\.b4/words change no file"):
        read_range(repository.tree, "v1", "b4/words")
    for commit in ("main~2", "main~1"):
        repository.git("cherry-pick", commit)
    series = read_range(repository.tree, "v1", "b4/words")
    assert titles(series) == ALL[:2]
    assert [(patch.number, patch.total) for patch in series.patches] == [(1, 2), (2, 2)]


@pytest.mark.process
def test_a_number_in_a_commits_own_title_is_not_its_place_in_the_range(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    repository.commit("[PATCH v2 3/7] lib: fourth", "1\n2\n4\n")
    series = read_range(repository.tree, "v1", "main")
    assert titles(series) == [*ALL, "lib: fourth"]
    assert series.version == 1


QUOTED_DIFF = """\
The reviewer proposed:

---
diff --git a/other.c b/other.c
--- a/other.c
+++ b/other.c
@@ -1 +1 @@
-one
+two

which is not enough.

Signed-off-by: Zoë <zoe@example.org>"""


@pytest.mark.process
def test_a_diff_in_a_commits_message_is_no_part_of_the_commit(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    repository.commit(f"lib: größer\n\n{QUOTED_DIFF}", "1\n2\n3\n")
    repository.commit("fourth", "1\n2\n4\n")
    series = read_range(repository.tree, "v1", "main")
    assert titles(series) == [*ALL, "lib: größer", "fourth"]
    assert [patch.files for patch in series.patches] == [("lib.c",)] * 5
    assert "\n+two\n\nwhich is not enough.\n" in series.patches[3].message


def test_a_diff_in_a_letters_message_is_not_read_back_as_its_own() -> None:
    letter = Letter(Title("lib: bigger"), "Zoë", "", "", QUOTED_DIFF, DIFF)
    (read,) = read_letters(write_letter(letter).encode())
    assert read.rest == f"---\n{DIFF}\n"
    assert [line.strip() for line in read.message.splitlines()] == QUOTED_DIFF.splitlines()
    assert write_letter(read).rstrip() == write_letter(letter).rstrip()


@pytest.mark.process
def test_a_range_that_is_empty_or_unknown_is_refused(repository: Repository) -> None:
    with pytest.raises(PatchRejected, match="v1 adds no commits to main"):
        read_range(repository.tree, "main", "v1")
    for revision in ("nowhere", "--output=/tmp/x", "-h"):
        with pytest.raises(UnknownRevision):
            read_range(repository.tree, "v1", revision)


@pytest.mark.process
def test_a_range_with_a_merge_is_refused(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    repository.git("checkout", "-q", "-b", "side", "v1")
    repository.git("commit", "-q", "--allow-empty", "-m", "aside")
    repository.git("merge", "-q", "-m", "merge", "main")
    with pytest.raises(PatchRejected, match="holds the merge"):
        read_range(repository.tree, "v1", "side")
