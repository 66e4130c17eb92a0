# SPDX-License-Identifier: GPL-2.0-or-later
"""Detect the compiler and linker: part of every build's identity."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from dataclasses import dataclass

from kernels.errors import HostUnfit
from kernels.processes.environment import minimal

# Every program whose version can reach the bytes of a kernel, and the Debian package it comes from.
# pahole only takes part when it is installed (it makes BTF).
_PROGRAMS = {
    "ld": "binutils",
    "make": "make",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
}
_OPTIONAL = ("pahole",)
_DEADLINE_S = 20


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler by name, with the first line of its --version and of its linker's.

    identity: 16 hex digits over the versions of every program that can change the bytes built.
    """

    cc: str
    cc_version: str
    ld_version: str
    identity: str


def detect_toolchain(cc: str = "gcc") -> Toolchain:
    """Ask the installed programs for their versions.

    cc: a bare program name found in /usr/bin, such as "gcc" or "gcc-12"; the sandbox knows only /usr.
    Raises HostUnfit.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9.+-]*", cc):
        raise HostUnfit(f'compiler "{cc}" is not a program name; give one such as "gcc" or "gcc-12"')
    versions = {"cc": _version(cc, "gcc")}
    versions |= {name: _version(name, package) for name, package in _PROGRAMS.items()}
    versions |= {name: _version(name, name) for name in _OPTIONAL if shutil.which(name, path="/usr/bin")}
    listing = "\n".join(f"{name}={version}" for name, version in sorted(versions.items()))
    identity = hashlib.sha256(f"{cc}\n{listing}".encode()).hexdigest()[:16]
    return Toolchain(cc=cc, cc_version=versions["cc"], ld_version=versions["ld"], identity=identity)


def _version(program: str, package: str) -> str:
    path = shutil.which(program, path="/usr/bin")
    if path is None:
        raise HostUnfit(f'program "{program}" is missing; run: apt-get install {package}')
    try:
        answer = subprocess.run(
            [path, "--version"],
            capture_output=True,
            text=True,
            check=True,
            timeout=_DEADLINE_S,
            env=minimal(),
        )
    except (subprocess.SubprocessError, OSError) as exc:
        raise HostUnfit(f"{path} --version does not answer; reinstall: apt-get install {package}") from exc
    return answer.stdout.splitlines()[0].strip() if answer.stdout else "unknown"
