# SPDX-License-Identifier: GPL-2.0-or-later
"""The line numbers of BUG and WARN sites are no part of a kernel's code, in either form of their table; all else of it is."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kernels.artifacts.elf import code_hash

pytestmark = pytest.mark.process

# Three sites, so that the table's size is a multiple of both sizes of an entry.
SITE = '1: ud2; .pushsection __bug_table, "aw"; 2: .long 1b - 2b; %(format)s .long %(file)d; .word %(line)d, 9; .popsection;'
FORMS = {"before 6.19": "", "since 6.19": ".long %(text)d;"}
USUAL = {"text": 0, "file": 0, "line": 7}

Hash = Callable[..., str]


@pytest.fixture(params=FORMS)
def hashed(request: pytest.FixtureRequest, tmp_path: Path) -> Hash:
    """Return the hash of a kernel with these values in its second site."""

    def link(**changes: int) -> str:
        sites = [
            SITE % {**values, "format": FORMS[request.param] % values}
            for values in (USUAL, USUAL | changes, USUAL)
        ]
        source, linked = tmp_path / "kernel.s", tmp_path / "vmlinux"
        source.write_text(f".text; .globl _start; _start: {' '.join(sites)} ret\n")
        subprocess.run(
            ["gcc", "-nostdlib", "-static", "-no-pie", "-o", linked, source], check=True, timeout=60
        )
        return code_hash(linked, [], "6.1")

    return link


def test_a_line_number_does_not_count(hashed: Hash) -> None:
    assert hashed(line=8) == hashed(line=0x1234) == hashed()


@pytest.mark.parametrize("value", [1, 0x10000])
def test_other_values_count(hashed: Hash, value: int, request: pytest.FixtureRequest) -> None:
    assert hashed(file=value) != hashed()
    if "since" in request.node.name:
        assert hashed(text=value) != hashed()
