# SPDX-License-Identifier: GPL-2.0-or-later
"""Make a kernel fail in every way it has a report for, and keep its consoles with labels.

A guest carries out each entry of failures.tsv under QEMU's TCG; the console goes into DIRECTORY with a header that
says what a detector must find. The kernel is built by hand from guest.config, or from both fragments for its checks:

    make O=BUILD KCONFIG_ALLCONFIG=guest.config allnoconfig && make O=BUILD vmlinux modules
    mkdir BUILD/fail; cp fail.c checks.c Kbuild BUILD/fail; make -C BUILD M=BUILD/fail
    python -m bench.crashes BUILD DIRECTORY [--checks] [--only NAME] [--suffix NAME] [--words WORDS]
"""

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bench.command import run
from bench.crashes.machine import BOOTS_TWICE, Machine

HERE = Path(__file__).parent
BUSYBOX = Path("/bin/busybox")
KEPT_LINES = 160
MODULE_DIRECTORIES = ("lib", "mm", "kernel", "samples", "fail")


@dataclass(frozen=True, slots=True)
class Failure:
    """One way to fail: its name in init.sh, the kind of the first report without and with the checks, seconds to wait.

    name: "NAME@SETTING=VALUE" sets a sysctl, or a word of the command line. function: the function at fault, "-" if there is none.
    """

    name: str
    plain: str
    checked: str
    wait_s: int
    function: str


def read_failures() -> list[Failure]:
    """Return the table of failures."""
    rows = [line.split("\t") for line in (HERE / "failures.tsv").read_text().splitlines() if line[:1] != "#"]
    return [
        Failure(name, plain, checked, int(wait), function) for name, plain, checked, wait, function in rows
    ]


def main(
    build: Path,
    directory: Path,
    checks: Annotated[
        bool, typer.Option("--checks", help="the kernel has the fragment sanitizers.config")
    ] = False,
    suffix: Annotated[
        str, typer.Option(help="what the names of the consoles end with; default: plain or checks")
    ] = "",
    only: Annotated[
        str, typer.Option(metavar="PATTERN", help="a regular expression that the names match")
    ] = "",
    words: Annotated[str, typer.Option(help="for the kernel's command line")] = "",
) -> None:
    """Make a guest fail in each way and write its consoles."""
    directory.mkdir(parents=True, exist_ok=True)
    suffix = suffix or ("checks" if checks else "plain")
    with tempfile.TemporaryDirectory() as scratch:
        initrd = build_initrd(build, Path(scratch))
        machine = Machine(build / "vmlinux", initrd, Path(scratch), words)
        for failure in read_failures():
            kind = failure.checked if checks else failure.plain
            if kind == "skip" or (only and not re.fullmatch(only, failure.name)):
                continue
            console = machine.console_of(failure.name, failure.wait_s)
            name = re.sub(r"[^\w=-]+", "-", failure.name)
            (directory / f"{name}-{suffix}.txt").write_bytes(labelled(failure, kind, console))
            print(failure.name, kind, len(console), flush=True)


def build_initrd(build: Path, scratch: Path) -> Path:
    """Return an archive of busybox, init.sh and the kernel's modules."""
    root = scratch / "root"
    for name in ("bin", "lib", "proc", "sys", "tmp", "dev"):
        (root / name).mkdir(parents=True)
    shutil.copy(BUSYBOX, root / "bin" / "busybox")
    shutil.copy(HERE / "init.sh", root / "init")
    (root / "init").chmod(0o755)
    for directory in MODULE_DIRECTORIES:
        for module in (build / directory).rglob("*.ko"):
            shutil.copy(module, root / "lib")
    archive = scratch / "initrd.cpio"
    names = subprocess.run(["find", "."], cwd=root, check=True, capture_output=True).stdout
    with archive.open("wb") as output:
        subprocess.run(
            ["cpio", "--quiet", "-o", "-H", "newc"], cwd=root, input=names, stdout=output, check=True
        )
    return archive


def labelled(failure: Failure, kind: str, console: bytes) -> bytes:
    """Return a console of bounded length with its header; without a TITLE nothing is wrong."""
    function = "" if failure.function == "-" else f" in {failure.function}"
    title = "" if kind == "-" else f"{kind} by {failure.name}{function}"
    lines = console.split(b"\n")
    begin = next((at for at, line in enumerate(lines) if b"guest: carrying out" in line), 0)
    # The beginning of a boot is alike in all of them.
    low = 0 if failure.name.startswith("clean-") or failure.name in BOOTS_TWICE else max(0, begin - 4)
    text = b"\n".join(lines[low : low + (900 if failure.name in BOOTS_TWICE else KEPT_LINES)])
    return f"TITLE: {title}\nTYPE: {kind}\n\n".encode() + text + b"\n"


if __name__ == "__main__":
    run(main)
