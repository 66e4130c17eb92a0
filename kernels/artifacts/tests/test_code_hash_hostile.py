# SPDX-License-Identifier: GPL-2.0-or-later
"""Two kernels that load different bytes never count as the same code, whatever their symbols and sections say."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kernels.artifacts.elf import code_hash
from kernels.artifacts.elf_segments import loaded_hash, without_build_id
from kernels.artifacts.kernel_files import kernel_facts
from kernels.builds.builder import Builder
from kernels.errors import ReadingStopped
from kernels.tests.pretend import PretendKernel

pytestmark = [pytest.mark.hostile, pytest.mark.process]

# One kernel's code, and the tables that a hostile linker script would place anywhere.
SOURCE = """
__asm__(".section .rodata\\n"
  ".globl kallsyms_num_syms\\nkallsyms_num_syms: .long 3\\n"
  ".globl kallsyms_names\\nkallsyms_names: .ascii \\"%(names)s\\"\\n"
  ".globl kallsyms_markers\\nkallsyms_markers: .long 0\\n"
  ".globl kallsyms_token_table\\nkallsyms_token_table: .zero 16\\n"
  ".globl kallsyms_token_index\\nkallsyms_token_index: .zero 512\\n"
  ".globl table\\ntable: .long %(table)s\\n");
__asm__(".section .text\\n.globl _start\\n_start: mov $%(code)s, %%eax\\nret\\n.globl after\\nafter: ret\\n");
__asm__(".section .data\\n.globl data\\ndata: .long %(data)s\\n");
__asm__(".section .note.x,\\"a\\",@note\\n.long 4, 8, 18\\n.ascii \\"Xen\\\\0\\"\\n.quad %(note)s\\n");
"""
USUAL = {"names": "abcdefgh", "table": 1, "code": 1, "data": 1, "note": 1}


@pytest.fixture
def link(tmp_path: Path) -> Callable[..., Path]:
    """Link a kernel; symbols: where kallsyms' symbols are said to be instead."""

    def make(name: str, *options: str, **changes: object) -> Path:
        source, linked = tmp_path / f"{name}.c", tmp_path / name
        source.write_text(SOURCE % (USUAL | changes))
        command = [
            "gcc",
            "-nostdlib",
            "-static",
            "-no-pie",
            "-Wl,--build-id=sha1",
            *options,
            "-o",
            linked,
            source,
        ]
        subprocess.run([str(part) for part in command], check=True, capture_output=True, timeout=60)
        return linked

    return make


def moved(vmlinux: Path, **places: int) -> Path:
    """Say in the symbol table that kallsyms' symbols are elsewhere; the loaded bytes stay."""
    arguments = [f"--add-symbol={name}={place:#x}" for name, place in places.items()]
    strip = [f"--strip-symbol={name}" for name in places]
    target = vmlinux.with_name(f"{vmlinux.name}.moved")
    subprocess.run(["objcopy", *strip, vmlinux, target], check=True, timeout=60)
    subprocess.run(["objcopy", *arguments, target, target], check=True, timeout=60)
    return target


def symbols(vmlinux: Path) -> dict[str, int]:
    done = subprocess.run(["nm", vmlinux], check=True, capture_output=True, text=True, timeout=60)
    return {line.split()[2]: int(line.split()[0], 16) for line in done.stdout.splitlines()}


def hashed(vmlinux: Path) -> str:
    return code_hash(vmlinux, [], "6.1")


def test_names_alone_make_no_other_kernel(link: Callable[..., Path]) -> None:
    assert hashed(link("one")) == hashed(link("two", names="hgfedcba"))


@pytest.mark.parametrize("what", ["table", "code", "data", "note"])
def test_each_byte_that_is_no_name_counts(link: Callable[..., Path], what: str) -> None:
    assert hashed(link("one")) != hashed(link("two", **{what: 2}))


@pytest.mark.parametrize("what", ["table", "code", "data"])
def test_a_span_of_names_over_something_else_hides_no_difference_from_a_plain_kernel(
    link: Callable[..., Path], what: str
) -> None:
    plain, changed = link("one"), link("two", **{what: 2})
    known = symbols(changed)
    covered = {"code": ("_start", "after"), "table": ("table", "table"), "data": ("data", "data")}[what]
    begin, end = known[covered[0]], known[covered[1]] + 8
    assert hashed(moved(changed, kallsyms_names=begin, kallsyms_markers=end)) != hashed(plain)


@pytest.mark.parametrize("what", ["code", "data"])
def test_a_span_of_names_outside_of_rodata_hides_nothing_even_from_its_like(
    link: Callable[..., Path], what: str
) -> None:
    original, two = link("one"), link("two", **{what: 2})
    begin = symbols(original)["_start" if what == "code" else "data"]
    places = {"kallsyms_names": begin, "kallsyms_markers": begin + 8}
    assert hashed(moved(original, **places)) != hashed(moved(two, **places))


def test_a_span_from_rodata_into_what_follows_hides_nothing(link: Callable[..., Path]) -> None:
    original, two = link("one"), link("two", data=2)
    places = {"kallsyms_markers": symbols(original)["data"] + 64}
    assert hashed(moved(original, **places)) != hashed(moved(two, **places))


def test_code_that_no_section_describes_counts(link: Callable[..., Path]) -> None:
    original, two = link("one"), link("two", code=2)
    for path in (original, two):
        data = bytearray(path.read_bytes())
        # No section headers at all: the loader needs none.
        data[40:48], data[60:64] = bytes(8), bytes(4)
        path.write_bytes(data)
    assert hashed(original) != hashed(two)


def test_sections_that_describe_other_bytes_than_are_loaded_do_not_help(link: Callable[..., Path]) -> None:
    original, two = link("one"), link("two", code=2)
    honest, data = original.read_bytes(), bytearray(two.read_bytes())
    # The section of the code points to a copy of the honest bytes at the end of the file.
    at, size, count = struct.unpack_from("<Q", data, 40)[0], 64, struct.unpack_from("<H", data, 60)[0]
    start = symbols(two)["_start"]
    for header in range(at, at + size * count, size):
        _, _, _, address, offset, length = struct.unpack_from("<IIQQQQ", data, header)
        if address == start:
            struct.pack_into("<Q", data, header + 24, len(data))
            data += honest[offset : offset + length]
    two.write_bytes(data)
    assert hashed(original) != hashed(two)


def test_a_note_is_kept_but_for_the_build_id() -> None:
    def note(name: bytes, kind: int, text: bytes) -> bytes:
        return struct.pack("<III", len(name), len(text), kind) + name + text

    build_id, entry = note(b"GNU\0", 3, b"a" * 20), note(b"Xen\0", 18, b"b" * 8)
    assert without_build_id(build_id + entry) == note(b"GNU\0", 3, bytes(20)) + entry
    for odd in (
        note(b"GNU\0", 3, b"c" * 400),
        note(b"GNU\0", 3, b"c" * 20)[:25],
        note(b"GNX\0", 3, b"d" * 20),
        b"\xff" * 40,
    ):
        assert without_build_id(odd + entry).endswith(entry[-8:])
    assert without_build_id(note(b"GNU\0", 3, b"c" * 400)) == note(b"GNU\0", 3, b"c" * 400)


def test_a_file_for_the_boot_that_loads_something_else_is_no_kernel(
    builder: Builder, pretend: PretendKernel, link: Callable[..., Path]
) -> None:
    artifact = builder.build(pretend.request())
    assert loaded_hash(artifact.boot_vmlinux) == loaded_hash(artifact.vmlinux)
    assert kernel_facts(artifact.vmlinux, artifact.boot_vmlinux, []).code_hash == artifact.metadata.code_hash
    with pytest.raises(ReadingStopped, match="evil does not load what vmlinux does"):
        kernel_facts(artifact.vmlinux, link("evil"), [])
