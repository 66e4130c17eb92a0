# SPDX-License-Identifier: GPL-2.0-or-later
"""b4 itself, against an archive of our own."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kernels.errors import PatchRejected, SourceUnreachable
from kernels.mails.lore import message_id, read_thread
from kernels.patches.series import read_series

DIFF = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-{old}\n+{new}\n"


def mail(number: int, subject: str, body: str, refers: str = "") -> str:
    reply = f"In-Reply-To: <{refers}>\nReferences: <{refers}>\n" if refers else ""
    return (
        f"From mboxrd@z Thu Jan  1 00:00:00 1970\nFrom: Zoë <zoe@example.org>\nSubject: {subject}\n"
        f"Date: Mon, 1 Jan 2024 00:00:0{number} +0000\nMessage-Id: <{number}@example.org>\n{reply}"
        f"Content-Type: text/plain; charset=utf-8\n\n{body}\n"
    )


TALK = "404@example.net"
THREAD = "".join(
    [
        mail(0, "[PATCH v3 0/2] do: things", "The cover."),
        mail(1, "[PATCH v3 1/2] do: one", "why\n---\n" + DIFF.format(old="a", new="b"), "0@example.org"),
        mail(2, "[PATCH v3 2/2] do: two", "why\n---\n" + DIFF.format(old="b", new="c"), "0@example.org"),
        mail(3, "Re: [PATCH v3 2/2] do: two", "No.", "2@example.org"),
    ]
)


@pytest.fixture
def archive() -> Iterator[str]:
    class Lore(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            threads = {
                "1@example.org": THREAD,
                TALK: mail(4, "a question", "Why?").replace("4@example.org", TALK),
            }
            asked = self.path.replace("%40", "@")
            thread = next((text for message, text in threads.items() if message in asked), "")
            known = bool(thread)
            body = gzip.compress(thread.encode()) if known else b"nothing"
            self.send_response(200 if known else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Lore)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/all"
    server.shutdown()
    server.server_close()


@pytest.mark.process
def test_a_message_id_becomes_its_series_with_the_cover(archive: str, tmp_path: Path) -> None:
    series = read_series(read_thread("<1@example.org>", tmp_path, archive=archive))
    assert (series.title, series.version, series.cover) == ("do: things", 3, "The cover.")
    assert [(patch.title, patch.author) for patch in series.patches] == [
        ("do: one", "Zoë <zoe@example.org>"),
        ("do: two", "Zoë <zoe@example.org>"),
    ]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.process
def test_an_unknown_message_is_told_from_an_archive_out_of_reach(archive: str, tmp_path: Path) -> None:
    with pytest.raises(PatchRejected, match=r"the archive has no message 9@example.org"):
        read_thread("9@example.org", tmp_path, archive=archive)
    with pytest.raises(
        SourceUnreachable, match=r"cannot reach 127.0.0.1:9; run b4 am 1@example.org yourself"
    ):
        read_thread("1@example.org", tmp_path, archive="http://127.0.0.1:9/all")


@pytest.mark.process
def test_a_message_without_patches_is_not_told_as_missing(archive: str, tmp_path: Path) -> None:
    with pytest.raises(PatchRejected, match="b4 finds no series of patches at"):
        read_thread(TALK, tmp_path, archive=archive)


@pytest.mark.process
def test_an_archive_that_hangs_ends_at_the_deadline(archive: str, tmp_path: Path) -> None:
    with pytest.raises(SourceUnreachable, match="did not answer within"):
        read_thread("1@example.org", tmp_path, archive=archive, deadline_s=0.01)


@pytest.mark.parametrize(
    "text",
    [
        "20240101.1-zoe@example.org",
        " <20240101.1-zoe@example.org> ",
        "Message-ID: <20240101.1-zoe@example.org>",
        "https://lore.kernel.org/all/20240101.1-zoe@example.org/",
        "https://lore.kernel.org/linux-fsdevel/20240101.1-zoe%40example.org/T/#t",
        "https://patch.msgid.link/20240101.1-zoe@example.org",
    ],
)
def test_a_message_id_is_found_in_what_people_paste(text: str) -> None:
    assert message_id(text) == "20240101.1-zoe@example.org"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kernfs",
        "-c@x",
        "--config=x@y",
        "a b@c",
        "a@b; rm",
        "https://evil.example.org/",
        "../x@y",
        "a@b/c",
        "id:id:x@y",
    ],
)
def test_what_is_no_message_id_never_reaches_b4(text: str) -> None:
    with pytest.raises(PatchRejected, match="not a message-id"):
        message_id(text)
