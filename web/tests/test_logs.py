# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

from pathlib import Path

from web.logs import printable, read_end


def test_a_short_log_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("one\ntwo\n")
    log = read_end(path)
    assert (log.text, log.left_out, log.missing) == ("one\ntwo\n", 0, "")


def test_of_a_long_log_the_end_is_read_from_a_whole_line_on(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"line {number}\n" for number in range(1000)))
    log = read_end(path, limit=25)
    assert log.text == "line 998\nline 999\n"
    assert log.left_out == log.size - len(log.text)


def test_one_endless_line_is_shown_in_part(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 1000)
    assert read_end(path, limit=100).text == "x" * 100


def test_a_log_that_is_gone_says_so(tmp_path: Path) -> None:
    assert "No such file" in read_end(tmp_path / "gone").missing
    assert read_end(None).missing
    assert "directory" in read_end(tmp_path).missing


def test_terminal_escapes_and_control_characters_are_removed() -> None:
    assert (
        printable("\x1b[31mred\x1b[0m\x00 \x1b]0;title\x07plain\r\nnext\ttab\x1b(B")
        == "red plain\nnext\ttab(B"
    )


def test_bytes_that_are_not_text_do_not_break_the_page(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"caf\xe9 \xff\xfe ok\n")
    assert "ok" in read_end(path).text
