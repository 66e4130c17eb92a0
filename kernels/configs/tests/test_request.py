# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import pytest

from kernels.builds.builder import Builder
from kernels.configs.request import (
    ConfigRequest,
    Fragment,
    fragment_names,
    fragment_text,
    load_fragment,
    read_config,
    read_fragment,
    requested,
    unmet,
)
from kernels.errors import ConfigRejected
from kernels.tests.pretend import CONFIG, PretendKernel, with_lines


def test_our_fragments_give_a_reason_for_every_line() -> None:
    for name in fragment_names():
        lines = load_fragment(name).text.splitlines()
        bare = [line for line in lines if line.startswith("CONFIG_") and "#" not in line]
        assert bare == []
        symbols = [line.symbol for line in read_fragment(load_fragment(name))]
        assert len(symbols) == len(set(symbols))


def test_an_unknown_fragment_is_answered_with_those_there_are() -> None:
    with pytest.raises(ConfigRejected, match='Did you mean "guest"'):
        load_fragment("guset")
    with pytest.raises(ConfigRejected):
        load_fragment("../tests/fakelinux/trouble")


@pytest.mark.process
def test_an_unknown_base_is_answered_with_those_there_are(builder: Builder, pretend: PretendKernel) -> None:
    with pytest.raises(ConfigRejected, match="tiny, defconfig"):
        builder.key(pretend.request(config=ConfigRequest("huge", CONFIG.fragments)))


@pytest.mark.parametrize(
    "line",
    [
        "CONFIG_X=yes",
        "X=y",
        "CONFIG_X = y",
        'CONFIG_X="a\\n"',
        'CONFIG_X="unclosed',
        "CONFIG_X=y; rm -rf /",
        "CONFIG_X=$(shell id)",
        "CONFIG_X-Y=y",
        "CONFIG_=y",
    ],
)
def test_a_line_that_is_no_assignment_is_refused(line: str) -> None:
    with pytest.raises(ConfigRejected, match='config fragment "mine" line 2'):
        read_fragment(Fragment("mine", f"CONFIG_OK=y\n{line}\n"))


@pytest.mark.parametrize(
    "line", ["#CONFIG_X is not set", "#\tCONFIG_X is not set", "# CONFIG_X  is not set # why"]
)
def test_a_line_that_kconfig_would_take_for_a_comment_does_not_pass_for_one_that_turns_off(line: str) -> None:
    with pytest.raises(ConfigRejected, match=r'"mine" line 2: .* write "# CONFIG_X is not set"'):
        read_fragment(Fragment("mine", f"CONFIG_OK=y\n{line}\n"))
    assert len(read_fragment(Fragment("mine", f"CONFIG_OK=y\n#{line}\n# CONFIG_X is what is not set\n"))) == 1


def test_a_huge_fragment_is_refused() -> None:
    with pytest.raises(ConfigRejected, match="larger than 256 KiB"):
        read_fragment(Fragment("mine", "# comment\n" * 30_000))


def test_values_of_every_kind_are_read_and_written_back() -> None:
    text = (
        'CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=m\nCONFIG_D=0x1F\nCONFIG_E=-3\nCONFIG_F="a # \\"b\\""\n'
    )
    lines = read_fragment(Fragment("mine", text))
    assert fragment_text(lines) == text
    assert [line.value for line in lines] == ["y", "n", "m", "0x1F", "-3", '"a # \\"b\\""']


def test_the_last_fragment_wins() -> None:
    request = ConfigRequest(
        "tiny", (Fragment("a", "CONFIG_X=y"), Fragment("b", "# CONFIG_X is not set  why"))
    )
    assert requested(request)["X"].value == "n"
    assert requested(request)["X"].fragment == "b"


def test_a_number_is_met_however_it_is_written() -> None:
    wanted = requested(ConfigRequest("tiny", (Fragment("a", "CONFIG_X=0x10\nCONFIG_Y=n\nCONFIG_Z=y"),)))
    assert [line.symbol for line in unmet(wanted, read_config("CONFIG_X=0X10\nCONFIG_Z=m\n"))] == ["Z"]


@pytest.mark.process
@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["CONFIG_FAST_INODES=y"], "it needs CONFIG_EXPERT$"),
        (
            ["# CONFIG_BLOCK is not set"],
            r'CONFIG_INODES=y \(fragment "guest" line 2\) came out as n: it needs CONFIG_BLOCK',
        ),
        (["CONFIG_MODULES=y", "CONFIG_LIBDUMMY=y"], "it cannot be set by hand; CONFIG_DUMMY would select it"),
        (["CONFIG_DUMMY=m"], "it needs CONFIG_MODULES"),
        (["CONFIG_FAST_INODES=y", "CONFIG_DUMMY=m"], r"it needs CONFIG_EXPERT \(and 1 more\)"),
    ],
)
def test_a_symbol_that_is_lost_names_what_it_needs(
    builder: Builder, pretend: PretendKernel, lines: list[str], message: str
) -> None:
    with pytest.raises(ConfigRejected, match=message):
        builder.key(pretend.request(config=with_lines(*lines)))


@pytest.mark.process
def test_a_symbol_that_does_not_exist_names_the_nearest(builder: Builder, pretend: PretendKernel) -> None:
    with pytest.raises(ConfigRejected, match="did you mean CONFIG_FAST_INODES or CONFIG_INODES"):
        builder.key(pretend.request(config=with_lines("CONFIG_FASTINODES=y")))
    with pytest.raises(ConfigRejected):  # only the help text tells of it
        builder.key(pretend.request(config=with_lines("CONFIG_NOT_A_SYMBOL=y")))


@pytest.mark.process
def test_a_symbol_may_be_asked_for_only_where_it_exists(builder: Builder, pretend: PretendKernel) -> None:
    key = builder.key(pretend.request(config=with_lines("CONFIG_NEWER=y  # [if defined] since 7.0")))
    assert key == builder.key(pretend.request())
    with pytest.raises(ConfigRejected):
        builder.key(pretend.request(config=with_lines("CONFIG_DUMMY=m  # [if defined] since 5.0")))


@pytest.mark.process
def test_the_symbols_of_a_variants_own_kconfig_count(builder: Builder, pretend: PretendKernel) -> None:
    revision = pretend.edited(
        "fs/Kconfig", "config DUMMY", "config ADDED\n\tbool\n\tdepends on EXPERT\n\nconfig DUMMY"
    )
    with pytest.raises(ConfigRejected, match="it needs CONFIG_EXPERT"):
        builder.key(pretend.request(revision, with_lines("CONFIG_ADDED=y")))


@pytest.mark.process
def test_lines_that_change_nothing_share_the_build(builder: Builder, pretend: PretendKernel) -> None:
    assert builder.key(pretend.request(config=with_lines("CONFIG_BLOCK=y"))) == builder.key(pretend.request())
