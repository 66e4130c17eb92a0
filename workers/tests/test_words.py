# SPDX-License-Identifier: GPL-2.0-or-later
"""Plain words: docstrings begin with a verb or a noun, and no text uses the idioms that strangers stumble over."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from workers.tests.test_house import ROOT, nodes_of, tracked

pytestmark = pytest.mark.process  # git lists the files

# A docstring says what a function does or what a class is: "Return the boots that count", "The state of a store".
QUESTION = re.compile(r"(What|Who|Whom|Whose|Whether|How|Where|Why|Which|When)\b")

# Idioms with the words to use instead. A sentence of its own is often better.
IDIOMS = {
    r"\bA/A: \d": "control",
    r"\bso manieth\b": "every Nth",
    r"\bcannot be had\b": "is not available",
    r"\btwo humps\b": "two clusters",
    r"\bwho waits\b": "a caller that waits",
    r"\basks again\b": "retries",
    r"\basked again\b": "retried",
    r"\bwas told\b": "name what was reported, and to whom",
    r"\bis told\b": "receives, is notified, is reported",
    r"\bare told\b": "receive, are notified, are reported",
    r"\bnobody takes\b": "no worker takes",
    r"\bnone for certain\b": "no significant change",
    r"\bfor certain\b": "significantly",
    r"\bboots would tell\b": "boots needed",
    r"\bholds both better and worse\b": "could be faster or slower",
    r"\bcounts? as equal\b": "is ignored below",
    r"\bin the mail's form\b": "in `time` format",
    r"\bby git address\b": "git URL",
    r"\bafter its end\b": "after it finished",
    r"\bWhom to tell\b": "notifications",
    r"\bWho is (in|on|at|a)\b": "a caller that is",
    r"\bhas run out\b": "has expired",
    r"\bthe one that is there\b": "the existing one, by its noun",
    r"\bwhoever\b": "name the person or the program",
    r"\bwho asks\b": "the client, the user",
    r"\bwhat waits\b": "queued work, waiting boots",
    r"\bwhat (came|comes) of\b|\bcomes of it\b": "the result",
    r"\b(came|comes?) home\b": "was sent, is received",
    r"\b(hands|to hand) in\b": "posts, sends",
    r"\bup to and with\b": "up to and including",
    r"\btried again\b": "retried",
    r"\banew\b": "again",
    r"\b(is|are) away\b": "does not answer, is down",
    r"\bheard of\b": "reported",
    r"\bgoes on (where|from)\b": "continues",
    r"\bcan(not)? be told\b": "is inconclusive, is recognised",
    r"\bnobody reads\b": "is not read",
    r"\bnot over yet\b": "unfinished",
    r"\bbrought it\b": "caused it",
    r"\bis to be\b": "must be",
    r"\bmade (noise|pages)\b": "simulated",
}
WORDS = re.compile("|".join(IDIOMS), re.IGNORECASE)

# Texts for people, and the sources that hold them. Migrations and recorded files do not change any more.
TEXTS = (".py", ".html", ".md")


def questions(path: Path) -> Iterator[str]:
    """Yield the docstrings of a file that begin with a question word."""
    for item in nodes_of(path):
        if isinstance(item, ast.Module | ast.ClassDef | ast.FunctionDef):
            docstring = ast.get_docstring(item) or ""
            if QUESTION.match(docstring):
                yield f"{path.relative_to(ROOT)}: {docstring.splitlines()[0]}"


def idioms(path: Path) -> Iterator[str]:
    """Yield the lines of a file that use an idiom of the list."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if match := WORDS.search(line):
            yield f"{path.relative_to(ROOT)}:{number}: {match[0]}"


def watched(*suffixes: str) -> list[Path]:
    return [
        path
        for path in tracked(*suffixes)
        if "migrations" not in path.parts and "golden" not in path.parts and path.name != Path(__file__).name
    ]


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    assert [line for path in watched(".py") for line in questions(path)] == []


def test_no_text_uses_an_idiom_of_the_list() -> None:
    assert [line for path in watched(*TEXTS) for line in idioms(path)] == []


@pytest.mark.parametrize(
    ("source", "habit"),
    [
        ('"""What a boot is."""\n', "What a boot is."),
        ('def f():\n    """Whether it boots."""\n', "Whether it boots."),
        ('class A:\n    """How it went."""\n', "How it went."),
    ],
)
def test_a_docstring_that_asks_a_question_is_seen(
    source: str, habit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.tests.test_words.ROOT", tmp_path)
    culprit = tmp_path / "culprit.py"
    culprit.write_text(source)
    nodes_of.cache_clear()
    assert list(questions(culprit)) == [f"culprit.py: {habit}"]


def test_an_idiom_is_seen_in_any_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.tests.test_words.ROOT", tmp_path)
    culprit = tmp_path / "page.html"
    culprit.write_text("<p>Fine.</p>\n<p>None for certain.</p>\n")
    assert list(idioms(culprit)) == ["page.html:2: None for certain"]


# Modules of other projects that documents name.
PEERS = {"analysis.py", "messages.py", "configkernel.py", "v05_03.py"}
# Names that documents advise against; no module has them.
WARNED_OF = {"parse.py", "patch.py"}


def test_modules_that_comments_and_documents_name_exist() -> None:
    ours = {path.name for path in tracked(".py")} | PEERS | WARNED_OF
    gone = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in tracked(".py", ".md", ".cc", ".c", ".h", ".sh", ".toml")
        if "tests" not in path.parts and path.name != "CHANGELOG.md"
        for name in re.findall(r"\b[a-z][a-z_0-9]*\.py\b", path.read_text())
        if name not in ours
    ]
    assert not gone, gone
