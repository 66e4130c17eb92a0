# SPDX-License-Identifier: GPL-2.0-or-later
"""Adds file and line to the addresses of an oops, from the line tables of the kernel that printed it."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kernels.artifacts.elf_sections import Readable, is_relocatable, sections
from kernels.artifacts.store import Artifact
from kernels.builds.kbuild import EXTERNAL
from kernels.errors import ArtifactCorrupt, ReaderUnavailable, ReadingStopped, SandboxFailed
from kernels.processes.environment import minimal
from kernels.sandbox.command import OUT, SOURCE
from kernels.sandbox.reader import ReaderLimits, opened, read_apart
from kernels.sandbox.syscalls import filter_file

# find_inode_fast+0x1a/0x60 or rxe_open+0x12/0x30 [rdma_rxe]
_PLACE = re.compile(r"\b([A-Za-z_][\w.]{0,200})\+0x([0-9a-f]{1,8})/0x([0-9a-f]{1,8})(?: \[([\w-]{1,60})\])?")
_ADDRESS = re.compile(r"0x[0-9a-f]{8,16}")
_SYMBOL = struct.Struct("<IBBHQQ")
READER = "kernels.builds.decode_oops:prepare"
LIMITS = ReaderLimits(seconds=30, memory=3 << 30, answer=8 << 20)
MOST_OF_A_NAME = 50
# include/linux/kallsyms.h: KSYM_NAME_LEN, and the 0 behind it.
_LONGEST_NAME = 513
Symbol = tuple[str, int, int]
_MAX_PLACES = 2000
_DEADLINE_S = 60
_BATCH = 1000


@dataclass(frozen=True, slots=True)
class _Place:
    """A place as the kernel prints it. is_return: whether it is the address after a call, rather than that of a fault."""

    symbol: str
    offset: int
    size: int
    module: str
    is_return: bool


class CodeAddress(NamedTuple):
    """A place in a file. value: the offset from the section's beginning."""

    section: str  # "" in vmlinux, whose addresses are absolute
    value: int


def decode_oops(lines: Sequence[str], artifact: Artifact) -> list[str]:
    """Return the lines with " (file:line)" after each `symbol+0xoffset/0xsize` that the artifact can place.

    Paths are those of the source tree. A frame of a call trace is resolved at its call, a RIP as it is.
    Lines without such a place, and places of unknown symbols, stay as they are.
    """
    matches = [(number, match) for number, line in enumerate(lines) for match in _PLACE.finditer(line)]
    matches = matches[:_MAX_PLACES]
    locations = _locate({_place(lines[number], match) for number, match in matches}, artifact)
    decoded = list(lines)
    for number, match in reversed(matches):
        where = locations.get(_place(lines[number], match))
        if where:
            line = decoded[number]
            decoded[number] = f"{line[: match.end()]} ({where}){line[match.end() :]}"
    return decoded


def _place(line: str, match: re.Match[str]) -> _Place:
    fault = any(mark in line for mark in ("RIP:", "WARNING:", "BUG:", "PC is at"))
    return _Place(match[1], int(match[2], 16), int(match[3], 16), match[4] or "", not fault)


def _locate(places: Iterable[_Place], artifact: Artifact) -> dict[_Place, str]:
    by_file: dict[Path, list[_Place]] = {}
    for place in places:
        file = file_of(place.module, artifact)
        if file.is_file():
            by_file.setdefault(file, []).append(place)
    locations: dict[_Place, str] = {}
    for file, inside in by_file.items():
        addresses = _addresses(file, inside)
        lines = source_lines(file, sorted(set(addresses.values())))
        locations |= {place: lines[address] for place, address in addresses.items() if address in lines}
    return locations


def file_of(module: str, artifact: Artifact) -> Path:
    """Return the file of a module, or the kernel's for none; it may be missing."""
    if not module:
        return artifact.vmlinux
    names = (f"{module}.ko", f"{module.replace('_', '-')}.ko")
    paths = [artifact.modules / name for name in names]
    return next((path for path in paths if path.is_file()), paths[0])


def _addresses(file: Path, places: Iterable[_Place]) -> dict[_Place, CodeAddress]:
    symbols = symbols_of(file, {place.symbol for place in places})
    addresses = {}
    for place in places:
        candidates = symbols.get(place.symbol, [])
        if candidates:
            # Static functions share names. The kernel includes the padding after a function in its size.
            section, value, _ = min(candidates, key=lambda each: (each[2] > place.size, place.size - each[2]))
            addresses[place] = CodeAddress(section, value + place.offset - int(place.is_return))
    return addresses


def symbols_of(file: Path, names: set[str]) -> dict[str, list[Symbol]]:
    """Return by name the section, address and size of each symbol of that name; nothing if the file cannot be read."""
    wanted = os.memfd_create("names")
    try:
        os.write(wanted, json.dumps(sorted(names)).encode())
        with opened(file) as files:
            request = {"files": [file.name, "names"]}
            answer = read_apart(
                READER, request, [*files, wanted], what=f"{file.name} of the build", limits=LIMITS
            )
        value = answer.value
        if not isinstance(value, dict):
            return {}
        return {
            name: [(str(section)[:256], int(address), int(size)) for section, address, size in value[name]]
            for name in names & value.keys()
        }
    except (ReadingStopped, ReaderUnavailable, ValueError, TypeError):
        return {}  # an oops without line numbers is still worth showing
    finally:
        os.close(wanted)


def prepare(_request: Mapping[str, Any]) -> Callable[[Sequence[Readable]], tuple[Any, Sequence[bytes]]]:
    """Return the reader of a symbol table (see kernels/sandbox/reader.py); its second file names the symbols, in JSON."""

    def read(files: Sequence[Readable]) -> tuple[Any, Sequence[bytes]]:
        try:
            return read_symbols(files[0], set(json.loads(files[1].read_bytes()))), ()
        except ArtifactCorrupt:
            return {}, ()

    return read


def read_symbols(file: Readable, names: set[str]) -> dict[str, list[Symbol]]:
    """Return the symbols of these names, at most MOST_OF_A_NAME of each. Raises ArtifactCorrupt."""
    parts = list(sections(file))
    table = next((part.data for part in parts if part.name == ".symtab"), None)
    strings = next((part.data for part in parts if part.name == ".strtab"), None)
    if table is None or strings is None:
        return {}
    text, relocatable, wanted = bytes(strings), is_relocatable(file), {name.encode(): name for name in names}
    symbols: dict[str, list[Symbol]] = {}
    for entry in _SYMBOL.iter_unpack(table[: len(table) // _SYMBOL.size * _SYMBOL.size]):
        end = text.find(b"\0", entry[0], entry[0] + _LONGEST_NAME)
        name = wanted.get(text[entry[0] : end]) if end > entry[0] else None
        if name is not None and 0 < entry[3] < len(parts) and len(symbols.get(name, ())) < MOST_OF_A_NAME:
            section = parts[entry[3]].name if relocatable else ""
            symbols.setdefault(name, []).append((section, entry[4], entry[5]))
    return symbols


def source_lines(
    file: Path, addresses: Sequence[CodeAddress], *, outermost: bool = False
) -> Mapping[CodeAddress, str]:
    """Return the file and line of addresses, as far as the line tables have them, such as "fs/inode.c:982".

    outermost: for inlined code, return the line of the function that it was inlined into.
    """
    locations = {}
    for section in sorted({address.section for address in addresses}):
        values = [address.value for address in addresses if address.section == section]
        for start in range(0, len(values), _BATCH):
            batch = values[start : start + _BATCH]
            for value, lines in zip(batch, _addr2line(file, section, batch), strict=False):
                line = lines[-1 if outermost else 0] if lines else "??"
                if not line.startswith("??") and not line.endswith((":?", ":0")):
                    locations[CodeAddress(section, value)] = line
    return locations


def _addr2line(file: Path, section: str, values: Sequence[int]) -> list[list[str]]:
    """Return for each address its line, followed by the lines that it was inlined into.

    Confined: the file comes from a build of untrusted code, and binutils have had vulnerabilities.
    """
    try:
        calls = filter_file()
    except SandboxFailed:  # an oops without line numbers is still worth showing
        return []
    confined = ["bwrap", "--unshare-all", "--unshare-user", "--uid", "65534", "--gid", "65534"]
    confined += ["--die-with-parent", "--cap-drop", "ALL", "--as-pid-1", "--clearenv"]
    confined += ["--disable-userns", "--seccomp", str(calls), "--ro-bind", "/usr", "/usr"]
    confined += ["--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"]
    confined += ["--ro-bind", str(file), "/file", "prlimit", "--as=4294967296", f"--cpu={_DEADLINE_S}", "--"]
    command = ["/usr/bin/addr2line", "-a", "-i", "-e", "/file", *(["-j", section] if section else [])]
    try:
        done = subprocess.run(
            [*confined, *command, *(f"{value:#x}" for value in values)],
            capture_output=True,
            text=True,
            errors="replace",
            check=True,
            timeout=_DEADLINE_S,
            env=minimal(),
            pass_fds=(calls,),
        )
    except (subprocess.SubprocessError, OSError):
        return []
    finally:
        os.close(calls)
    answers: list[list[str]] = []
    for line in done.stdout.splitlines():
        if _ADDRESS.fullmatch(line):
            answers.append([])
        elif answers:
            answers[-1].append(_relative(line))
    return answers


def _relative(line: str) -> str:
    path = line.split(" (discriminator")[0]
    return path.removeprefix(f"{SOURCE}/").removeprefix(f"{OUT}/{EXTERNAL}/")
