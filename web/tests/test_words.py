# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import pytest

from web import words


def plain(text: str) -> str:
    return text.replace("\u202f", " ").replace("\xa0", " ").replace("\u2212", "-")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.037714, "0.03771"),
        (46.118, "46.12"),
        (890.94, "890.9"),
        (12345.6, "12 346"),
        (0, "0"),
        (-2, "-2"),
        (None, "–"),
    ],
)
def test_numbers_have_four_digits_that_matter(value: float | None, text: str) -> None:
    assert plain(words.number(value)) == text


def test_a_number_that_is_none_is_a_dash() -> None:
    assert words.number(float("nan")) == words.number(float("inf")) == words.change(None) == "–"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1_234_567, "ns", "1.235 ms"),
        (39_120, "ns", "39.12 µs"),
        (9_999, "ns", "9,999 ns".replace(",", " ")),
        (24.1, "us", "24.1 µs"),
        (46.118, "s", "46.12 s"),
        (3.2e9, "ns", "3.2 s"),
        (0.01136, "s", "11.36 ms"),
        (0.25, "s", "0.25 s"),
        (12_345, "s", "12 345 s"),
        (0.05, "ns", "0.05 ns"),
        (0, "s", "0 s"),
        (5, "", "5"),
    ],
)
def test_times_are_told_in_the_unit_in_which_they_are_short(value: float, unit: str, text: str) -> None:
    assert plain(words.quantity(value, unit)) == text


@pytest.mark.parametrize(
    ("low", "high", "unit", "text"),
    [
        (219_481, 249_995, "cycles", "219 481 to 249 995 cycles"),
        (1_200_000, 3_400_000, "ns", "1.2 to 3.4 ms"),
        (980_000, 1_020_000, "ns", "980 µs to 1.02 ms"),
        (3, 4, "", "3 to 4"),
    ],
)
def test_an_interval_says_its_unit_once(low: float, high: float, unit: str, text: str) -> None:
    assert plain(words.between(low, high, unit)) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.47, "-53.0 %"), (1.0004, "+0.04 %"), (1.02, "+2.0 %"), (3.5, "+250.0 %"), (1.0, "0.00 %")],
)
def test_ratios_are_told_as_signed_changes(ratio: float, text: str) -> None:
    assert plain(words.change(ratio)) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.72, "0.72 s"),
        (9.96, "10 s"),
        (46.12, "46 s"),
        (59.6, "1 min"),
        (725, "12 min 5 s"),
        (3599.7, "1 h"),
        (7380, "2 h 3 min"),
        (86_400, "1 d"),
        (200_000, "2 d 8 h"),
        (float("nan"), "–"),
        (None, "–"),
    ],
)
def test_durations_are_told_as_one_would_say_them(seconds: float | None, text: str) -> None:
    assert plain(words.duration(seconds)) == text


def test_amounts_have_their_noun_in_the_right_number() -> None:
    assert words.count(1, "boot") == "1 boot"
    assert words.count(5, "boot") == "5 boots"
    assert words.count(2, "body", "bodies") == "2 bodies"


def test_the_end_of_a_log_leaves_out_its_blank_lines() -> None:
    assert words.last_lines("a\nb\nc\n\n\n", 2) == "b\nc"


def test_parameters_read_as_one_would_type_them() -> None:
    parameters = {"threads": 2, "reading": False, "blocks": [1, 4], "glob": "/sys/*"}
    assert words.settings(parameters) == "threads=2  reading=false  blocks=1,4  glob=/sys/*"
