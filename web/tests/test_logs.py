# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

from pathlib import Path

from lab.storage.files import KeptFile
from web.logs import LogPart, printable, read_end, read_part


def test_a_short_log_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("one\ntwo\n")
    log = read_end(KeptFile(str(path)))
    assert (log.text, log.left_out, log.missing) == ("one\ntwo\n", 0, "")


def test_of_a_long_log_the_end_is_read_from_a_whole_line_on(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"line {number}\n" for number in range(1000)))
    log = read_end(KeptFile(str(path)), limit=25)
    assert log.text == "line 998\nline 999\n"
    assert log.left_out == log.size - len(log.text)


def test_one_endless_line_is_shown_in_part(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 1000)
    assert read_end(KeptFile(str(path)), limit=100).text == "x" * 100


def test_a_log_that_is_gone_says_so(tmp_path: Path) -> None:
    assert "No such file" in read_end(KeptFile(str(tmp_path / "gone"))).missing
    assert read_end(None).missing
    assert "directory" in read_end(KeptFile(str(tmp_path))).missing


def test_terminal_escapes_and_control_characters_are_removed() -> None:
    assert (
        printable("\x1b[31mred\x1b[0m\x00 \x1b]0;title\x07plain\r\nnext\ttab\x1b(B")
        == "red plain\nnext\ttab(B"
    )


def test_bytes_that_are_not_text_do_not_break_the_page(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"caf\xe9 \xff\xfe ok\n")
    assert "ok" in read_end(KeptFile(str(path))).text


def test_a_log_is_read_on_from_where_one_was(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\ntwo\nthr")
    first = read_part(KeptFile(str(log)), 0, over=False)
    assert (first.text, first.offset, first.more) == ("one\ntwo\n", 8, False)
    log.write_text("one\ntwo\nthree\n\x1b[31mred\n")
    assert read_part(KeptFile(str(log)), first.offset, over=False).text == "three\nred\n"
    assert read_part(KeptFile(str(log)), 0, over=False, limit=5) == LogPart("one\n", 4, True)


def test_the_last_line_of_a_log_that_is_over_needs_no_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\ntw")
    assert read_part(KeptFile(str(log)), 4, over=True) == LogPart("tw", 6, False)


def test_a_line_longer_than_a_part_does_not_stop_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("x" * 10)
    assert read_part(KeptFile(str(log)), 0, over=False, limit=4) == LogPart("xxxx", 4, True)


def test_a_log_begun_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("new\n")
    assert read_part(KeptFile(str(log)), 900, over=False).text == "new\n"
    assert read_part(KeptFile(str(tmp_path / "none")), 0, over=False) == LogPart("", 0, False)
