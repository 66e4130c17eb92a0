# SPDX-License-Identifier: GPL-2.0-or-later
"""Prepares the compiler front (front/*.cc): compiles it once, and puts it where a build finds it in the compiler's place."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kernels.builds.front_sources import SOURCES, source_files
from kernels.builds.request import front_recipe
from kernels.errors import DiskFull, HostUnfit
from kernels.files.scratch import place_synced
from kernels.processes.environment import minimal

FLAGS = ("-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-g0", "-Wl,--build-id=none")
# Started by this name, the program goes through the objects of a finished build.
SWEEP = "sweep"
_DEADLINE_S = 300


@dataclass(frozen=True, slots=True)
class FrontSettings:
    """The settings of the front, as it reads them beside its program.

    cc: the compiler's name; identity: see front_identity(). read, write: folders of compiled files as the build sees them; write
    may be "", then nothing is kept. prove: one answer in this many is compiled all the same and compared, none if 0. release_placeholder: files
    that name the kernel's release are answered too, with the release's digits put in.
    """

    cc: str
    identity: str
    read: Sequence[str] = ()
    write: str = ""
    prove: int = 0
    release_placeholder: bool = False


def compile_front(root: Path, main: Path = SOURCES / "main.cc") -> Path:
    """Return the front's program, kept below root under the hash of its sources. Raises HostUnfit, DiskFull.

    main: the source with main(); another one makes another program of the same parts.
    """
    files = [main, *(path for path in source_files() if path.name != "main.cc")]
    key = hashlib.sha256(_run("g++", "--version").encode())
    for path in files:
        key.update(f"\0{path.name}\0".encode() + path.read_bytes())
    kept = root / key.hexdigest()[:16] / "front"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root) as place:
            made = Path(place, "front")
            sources = [path for path in files if path.suffix == ".cc"]
            with ThreadPoolExecutor(os.cpu_count()) as compilers:
                objects = list(compilers.map(partial(_compile, Path(place)), sources))
            _run("g++", *FLAGS, "-o", str(made), *objects, "-lz")
            made.chmod(0o755)
            place_synced(made, kept)
    return kept


def _compile(place: Path, source: Path) -> str:
    made = str(place / f"{source.stem}.o")
    _run("g++", *FLAGS, f"-I{SOURCES}", "-c", "-o", made, str(source))
    return made


def front_identity(cc: str) -> str:
    """Return 64 hex digits over the front's recipe and a compiler's bytes, with which each sum of the front begins. Raises HostUnfit.

    The bytes are those of the driver, of cc1 and of the assembler.
    """
    digest = hashlib.sha256(front_recipe("").encode())
    for name in (cc, _program(cc, "cc1"), _program(cc, "as")):
        path = shutil.which(name, path="/usr/bin")
        if path is None:
            raise HostUnfit(f'program "{name}" is missing; run: apt-get install gcc binutils')
        with Path(path).open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def place_front(program: Path, folder: Path, settings: FrontSettings) -> Path:
    """Put the front into a folder, under the compiler's name and as SWEEP; return the path under the compiler's name."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"compiler /usr/bin/{settings.cc}", f"identity {settings.identity}"]
    lines += [f"read {path}" for path in settings.read]
    lines += [f"write {settings.write}"] if settings.write else []
    lines += [f"prove {settings.prove}"] if settings.prove else []
    lines += ["release placeholder"] if settings.release_placeholder else []
    (folder / "front.conf").write_text("\n".join(lines) + "\n")
    for name in (settings.cc, SWEEP):
        shutil.copyfile(program, folder / name)
        (folder / name).chmod(0o755)
    return folder / settings.cc


def _program(cc: str, name: str) -> str:
    return _run(cc, f"-print-prog-name={name}").strip()


def _run(program: str, *arguments: str) -> str:
    # The caller's environment must not change which files the compiler finds.
    environment = {**minimal(), "LC_ALL": "C", "TMPDIR": os.environ.get("TMPDIR", tempfile.gettempdir())}
    try:
        done = subprocess.run(
            [program, *arguments], capture_output=True, text=True, timeout=_DEADLINE_S, env=environment
        )
    except (FileNotFoundError, subprocess.TimeoutExpired) as exc:
        raise HostUnfit(
            f'program "{program}" does not answer; run: apt-get install gcc g++ zlib1g-dev'
        ) from exc
    if "No space left on device" in done.stderr:
        raise DiskFull(
            "the disk filled up while the compiler front was compiled; free some space", done.stderr
        )
    if done.returncode:
        raise HostUnfit(f'program "{program}" fails; run: apt-get install gcc g++ zlib1g-dev', done.stderr)
    return done.stdout
