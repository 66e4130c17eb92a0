# SPDX-License-Identifier: GPL-2.0-or-later
"""Make a kernel fail in every way it has a report for, and keep its consoles with labels.

A guest boots for each entry of failures.tsv under QEMU's TCG; the console goes into DIRECTORY with a header that says
what a detector must find. The kernel is built by hand from guest.config, or from both fragments for its checks:

    make O=BUILD KCONFIG_ALLCONFIG=guest.config allnoconfig && make O=BUILD vmlinux modules
    mkdir BUILD/fail; cp fail.c BUILD/fail; echo "obj-m := fail.o" >BUILD/fail/Kbuild; make -C BUILD M=BUILD/fail
    python -m bench.crashes BUILD DIRECTORY [--checks] [--only NAME]
"""

from __future__ import annotations

import argparse
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
BUSYBOX = Path("/bin/busybox")
DEADLINE_S = 60
BOOTS_TWICE = {"reset", "fail-triple"}
KEPT_LINES = 160
MODULE_DIRECTORIES = ("lib", "mm", "kernel", "samples", "fail")


@dataclass(frozen=True, slots=True)
class Failure:
    """One way to fail: its name in init.sh, the kind of the first report without and with the checks, seconds to wait."""

    name: str
    plain: str
    checked: str
    wait_s: int


def read_failures() -> list[Failure]:
    """Return the table of failures."""
    rows = [line.split("\t") for line in (HERE / "failures.tsv").read_text().splitlines() if line[:1] != "#"]
    return [Failure(name, plain, checked, int(wait)) for name, plain, checked, wait in rows]


def main() -> int:
    """Boot a guest for each failure and write its console."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", type=Path)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--checks", action="store_true", help="the kernel has the fragment sanitizers.config")
    parser.add_argument("--only", metavar="PATTERN", help="a regular expression that the names match")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    suffix = "checks" if options.checks else "plain"
    with tempfile.TemporaryDirectory() as scratch:
        initrd = build_initrd(options.build, Path(scratch))
        for failure in read_failures():
            kind = failure.checked if options.checks else failure.plain
            if kind == "skip" or (options.only and not re.fullmatch(options.only, failure.name)):
                continue
            console = boot(options.build / "vmlinux", initrd, failure, Path(scratch))
            name = re.sub(r"[^\w=-]+", "-", failure.name)
            (options.directory / f"{name}-{suffix}.txt").write_bytes(labelled(failure, kind, console))
            print(failure.name, kind, len(console), flush=True)
    return 0


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


def boot(vmlinux: Path, initrd: Path, failure: Failure, scratch: Path) -> bytes:
    """Return what the guest printed until it powered off, panicked or ran out of time."""
    console, monitor = scratch / "console", scratch / "monitor"
    console.unlink(missing_ok=True)
    arguments = f"console=ttyS0 panic=-1 watchdog_thresh=2 nokaslr crash={failure.name} wait={failure.wait_s}"
    machine = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "768"]
    machine += ["-nodefaults", "-display", "none", "-serial", f"file:{console}"]
    machine += ["-monitor", f"unix:{monitor},server,nowait", "-kernel", str(vmlinux), "-initrd", str(initrd)]
    machine += ["-append", arguments] + ([] if failure.name in BOOTS_TWICE else ["-no-reboot"])
    guest = subprocess.Popen(machine, stderr=subprocess.DEVNULL)
    end = time.monotonic() + DEADLINE_S
    reset = False
    try:
        while guest.poll() is None and time.monotonic() < end:
            time.sleep(0.2)
            text = console.read_bytes() if console.exists() else b""
            if failure.name in BOOTS_TWICE and text.count(b"guest: carrying out") > 1:
                break
            if b"ready for a reset" in text and not reset:
                _command(monitor, b"system_reset\n")
                reset = True
    finally:
        guest.kill()
        guest.wait()
    return console.read_bytes()


def _command(monitor: Path, command: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(monitor))
        client.recv(4096)
        client.sendall(command)
        time.sleep(1)


def labelled(failure: Failure, kind: str, console: bytes) -> bytes:
    """Return a console of bounded length with its header; without a TITLE nothing is wrong."""
    title = "" if kind == "-" else f"{kind} by {failure.name}"
    lines = console.split(b"\n")
    begin = next((at for at, line in enumerate(lines) if b"guest: carrying out" in line), 0)
    # The beginning of a boot is alike in all of them.
    low = 0 if failure.name.startswith("clean-") or failure.name in BOOTS_TWICE else max(0, begin - 4)
    text = b"\n".join(lines[low : low + (900 if failure.name in BOOTS_TWICE else KEPT_LINES)])
    return f"TITLE: {title}\nTYPE: {kind}\n\n".encode() + text + b"\n"


if __name__ == "__main__":
    sys.exit(main())
