# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import time
from pathlib import Path

import pytest

from kernels.configs.kconfig import MAX_ALL_BYTES, off_parts, read_kconfig
from kernels.configs.request import Fragment, read_fragment
from kernels.configs.unmet import explain
from kernels.errors import ConfigRejected

CONFIG = {"A": "y", "M": "m", "HZ": "250", "NAME": '"x"'}


@pytest.mark.parametrize(
    ("expression", "off"),
    [
        ("A", []),
        ("B", ["B"]),
        ("!A", ["!A"]),
        ("A && B && C", ["B", "C"]),
        ("A || B", []),
        ("B || C && A", ["B || C && A"]),
        ("(B || M) && A", []),
        ("M=m && !B", []),
        ('NAME = "x"', []),
        ("NAME != x", ["NAME != x"]),
        ("HZ >= 100 && HZ < 250", ["HZ < 250"]),
        ("$(cc-option,-foo && (bar)) && B", ["B"]),
        ("$(success,test $(ARCH) = x86)", []),
        ("B if A", ["B"]),
        ("B && C if M", ["B", "C"]),
        ("B if C", []),
        ("A &&", []),
        ("(" * 5000, []),
    ],
)
def test_the_parts_of_a_dependency_that_are_off(expression: str, off: list[str]) -> None:
    assert off_parts(expression, CONFIG) == off


def write(folder: Path, **files: str) -> list[Path]:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [folder]


def why(sources: list[Path], line: str, config: dict[str, str]) -> str:
    with pytest.raises(ConfigRejected) as caught:
        explain(read_fragment(Fragment("mine", line)), config, sources)
    return str(caught.value)


def test_conditions_of_the_blocks_around_a_symbol_count(tmp_path: Path) -> None:
    text = (
        'menu "a"\n\tdepends on NET\nif INET\nsource "sub/Kconfig"\nendif\nendmenu\nconfig FREE\n\tbool "f"\n'
    )
    sources = write(tmp_path, Kconfig=text, sub__Kconfig='config DEEP\n\tbool "d"\n\tdepends on A\n')
    assert why(sources, "CONFIG_DEEP=y", {"A": "y"}).endswith("it needs CONFIG_NET and CONFIG_INET")
    assert read_kconfig(sources).symbols["FREE"][0].depends == []


def test_what_a_comment_depends_on_is_not_the_condition_of_its_menu(tmp_path: Path) -> None:
    text = 'menu "a"\ncomment "X needs OLD off"\n\tdepends on OLD\nconfig X\n\tbool "x"\n\tdepends on !OLD\nendmenu\n'
    sources = write(tmp_path, Kconfig=text)
    assert read_kconfig(sources).symbols["X"][0].depends == ["!OLD"]
    assert why(sources, "CONFIG_X=y", {"OLD": "y"}).endswith("it needs CONFIG_OLD off")


def test_the_definition_nearest_to_being_met_is_told(tmp_path: Path) -> None:
    text = 'config X\n\tbool "x"\n\tdepends on ARM && SOC\nconfig X\n\tbool "x"\n\tdepends on X86\n'
    assert why(write(tmp_path, Kconfig=text), "CONFIG_X=y", {}).endswith("it needs CONFIG_X86")


def test_a_rival_in_a_choice_is_named(tmp_path: Path) -> None:
    text = 'choice\n\tprompt "c"\nconfig SLUB\n\tbool "u"\nconfig SLAB\n\tbool "a"\nendchoice\n'
    reason = why(write(tmp_path, Kconfig=text), "CONFIG_SLAB=y", {"SLUB": "y"})
    assert reason.endswith('it is one of a choice in which SLUB is set; add "# CONFIG_SLUB is not set"')


def test_what_selects_a_symbol_is_named(tmp_path: Path) -> None:
    text = "config LIB\n\tbool\nconfig A\n\tselect LIB if B\nconfig C\n\tselect LIB\nconfig D\n\tselect LIB\n"
    reason = why(write(tmp_path, Kconfig=text), "# CONFIG_LIB is not set", {"LIB": "y", "A": "y", "C": "y"})
    assert reason.endswith("came out as y: CONFIG_C selects it")


def test_a_prompt_that_is_closed_names_what_opens_it(tmp_path: Path) -> None:
    text = 'config X\n\tbool "x" if EXPERT\n\tdefault n\n'
    assert why(write(tmp_path, Kconfig=text), "CONFIG_X=y", {}).endswith(
        "it can only be set with CONFIG_EXPERT"
    )


def test_sources_outside_the_tree_and_circles_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("config SECRET\n\tbool\n")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "link").symlink_to("../secret")
    text = 'source "../secret"\nsource "link"\nsource "Kconfig"\nrsource "Kconfig"\nconfig X\n\tbool\n'
    assert set(read_kconfig(write(tmp_path / "tree", Kconfig=text)).symbols) == {"X"}


def test_a_changed_file_counts_before_the_bases(tmp_path: Path) -> None:
    base, changed = tmp_path / "base", tmp_path / "changed"
    write(base, Kconfig='source "a/Kconfig"\n', a__Kconfig="config OLD\n\tbool\n")
    write(changed, a__Kconfig="config NEW\n\tbool\n")
    assert set(read_kconfig([changed, base]).symbols) == {"NEW"}


@pytest.mark.parametrize("name", ["n" * 300, "a\0b", "$(shell,echo " + "x" * 300 + ")/Kconfig", "n/" * 3000])
def test_a_name_that_no_file_can_have_is_no_file(tmp_path: Path, name: str) -> None:
    sources = write(tmp_path / "tree", Kconfig=f'source "{name}"\nconfig X\n')
    assert set(read_kconfig(sources).symbols) == {"X"}


@pytest.mark.parametrize(
    "line",
    [
        "select Y" + " " * 200_000 + "z",
        "source" + " " * 200_000 + '"x"y',
        "depends on " + "$(a) && " * 100_000 + "B",
    ],
    ids=["blanks of a select", "blanks of a source", "calls"],
)
def test_a_long_line_costs_linear_time(tmp_path: Path, line: str) -> None:
    sources = write(tmp_path, Kconfig=f'config X\n\tbool "x" if Z\n\t{line}\n')
    began = time.process_time()
    assert why(sources, "CONFIG_X=y", {}).endswith("it can only be set with CONFIG_Z")
    assert time.process_time() - began < 2


def test_many_symbols_in_many_blocks_take_bounded_memory(tmp_path: Path) -> None:
    text = 'if A\nconfig FIRST\n\tbool "f"\n' + "if A\n" * 4_000 + "config B\n" * 4_000
    symbols = read_kconfig(write(tmp_path, Kconfig=text)).symbols
    assert symbols["FIRST"][0].depends == ["A"]
    assert sum(len(each.depends) for each in symbols["B"]) <= MAX_ALL_BYTES // 8


def test_many_unknown_symbols_are_told_in_no_time(tmp_path: Path) -> None:
    symbols = "".join(f'config DRIVER_OF_A_CHIP_{number}\n\tbool "x"\n' for number in range(4_000))
    lines = "".join(f"CONFIG_DRIVERS_OF_CHIP_{number}=y\n" for number in range(300))
    sources = write(tmp_path, Kconfig=symbols)
    began = time.process_time()
    assert "did you mean CONFIG_DRIVER_OF_A_CHIP_" in why(sources, lines, {})
    assert time.process_time() - began < 10
