# SPDX-License-Identifier: GPL-2.0-or-later
"""Mails that would take long to read, and letters that are written and read back."""

import contextlib
import time
from dataclasses import replace

import pytest

from kernels.errors import PatchRejected
from kernels.mails.letters import Letter, Title, read_letters, write_letter
from kernels.patches.series import read_series
from kernels.patches.tests.test_series import DIFF, FROM


@pytest.mark.parametrize(
    "text",
    [
        "Subject: " + "[PATCH " * 50_000 + "\nFrom: a\n\n" + DIFF,
        "Subject: a\nFrom: " + "=?utf-8?q?a?= " * 50_000 + "\n\n" + DIFF,
        FROM * 50_000,
        "From: a\nSubject: b\n" + "X: y\n" * 200_000,
        "From " * 200_000,
        '--- "' + "\\" * 200_000 + "\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
        "From: a\nSubject: b\n\n" + "base-commit: " * 100_000 + DIFF,
        "From: a\nSubject: b\nContent-Type: text/plain; format=flowed\n\n" + "x \n" * 300_000,
        "From: a\nSubject: b\nContent-Type: text/plain; " + ";" * 200_000 + "\n\n" + DIFF,
    ],
    ids=[
        "brackets",
        "encoded words",
        "from lines",
        "headers",
        "froms",
        "backslashes",
        "trailers",
        "flow",
        "parameters",
    ],
)
def test_hostile_mails_are_read_in_no_time(text: str) -> None:
    began = time.process_time()
    with contextlib.suppress(PatchRejected):
        read_series(text.encode())
    assert time.process_time() - began < 3


def test_headers_of_plain_utf_8_are_read() -> None:
    (letter,) = read_letters("From: Añe <a@example.org>\nSubject: [PATCH] größer\n\nwhy\n".encode())
    assert (letter.author, letter.title.text) == ("Añe <a@example.org>", "größer")


def test_a_letter_that_was_written_is_read_back_as_it_was() -> None:
    rest = "---\ndiff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"
    title = Title("größer: From now on", 3, 2, 5)
    written = Letter(
        title, "Añe <a@example.org>", "2024-01-01T00:00:00+00:00", "1@x", "From here\n\nwhy", rest
    )
    text = write_letter(written) + write_letter(written)
    assert [
        replace(letter, rest=letter.rest.rstrip("\n") + "\n") for letter in read_letters(text.encode())
    ] == [written] * 2
