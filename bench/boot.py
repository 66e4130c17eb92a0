# SPDX-License-Identifier: GPL-2.0-or-later
"""From power-on to the first step of a plan: our driver, raw QEMU on the same machine type, and virtme-ng.

All boot the same kernel with as many CPUs and as much memory under the same accelerator, in random order within each
round; what counts are the ratios within rounds. Ours and QEMU also have initramfs, command line and devices in common,
so that their difference is libvirt's. virtme-ng boots its bzImage its own way, the host's files as root over 9p.

    python -m bench.boot [--rounds N] [--home DIR] [--seed N]
"""

import os
import random
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated

import typer

import workers.app  # noqa: F401  makes Django ready before lab is imported
from bench.command import installed, run
from kernels.architecture import BUILT
from kernels.artifacts.store import Artifact
from kernels.builds.builder import Builder, BuildRequest
from kernels.builds.toolchain import detect_toolchain
from kernels.configs.request import ConfigRequest, Fragment
from kernels.trees.tree import DEFAULT_ARCHIVES, import_archive, resolve
from lab.submission.prepare import CONFIG_BASE, _base_fragments
from workers.accelerator import choose_accelerator
from workers.drivers.base import BootRequest, Machine
from workers.drivers.domain_xml import PORT_NAME, kernel_cmdline
from workers.drivers.libvirt import LibvirtDriver
from workers.drivers.streams import LocalStreams, accept, listen
from workloads.guest.initramfs import build_initramfs
from workloads.guest.pack import append_plan, pack_plan
from workloads.guest.plan import Plan, Step

VNG = "virtme-ng==1.42"
# What virtme-ng needs of a kernel beyond our guests' config: its list is in virtme/commands/configkernel.py, and udev,
# which it starts, locks files.
VNG_NEEDS = Fragment(
    "virtme-ng",
    """
CONFIG_NET_9P=y
CONFIG_NET_9P_VIRTIO=y
CONFIG_9P_FS=y
CONFIG_OVERLAY_FS=y
CONFIG_UNIX98_PTYS=y
CONFIG_INOTIFY_USER=y
CONFIG_FILE_LOCKING=y
""",
)
VCPUS, MEMORY_MIB = 2, 512
DEADLINE_S = 120.0
MARK = b"workload starts"
PLAN = Plan((Step("start", ("/bin/echo", MARK.decode()), 10, "measure"),))

Boot = Callable[[], float]
HOME = Path(tempfile.gettempdir()) / "kperflab-bench-boot"
Home = Annotated[Path, typer.Option(help="a state root; its kernels are used if they fit")]


def main(rounds: int = 10, home: Home = HOME, seed: int = 1) -> None:
    """Race them and print the table."""
    generator = random.Random(seed)
    artifact = _kernel(home)
    vng = _vng(home / "peers")
    with tempfile.TemporaryDirectory(dir=home) as scratch:
        directory = Path(scratch)
        directory.chmod(0o711)
        request = _request(home, directory, artifact)
        driver = LibvirtDriver(home)
        boots: Mapping[str, Boot] = {
            "ours": lambda: ours(driver, request),
            "QEMU": lambda: raw_qemu(request),
            "vng": lambda: virtme_ng(vng, artifact, request),
        }
        took = [_round(boots, generator, number, rounds) for number in range(rounds + 1)]
        driver.close()
    _print_table(took[1:], request)


def _kernel(home: Path) -> Artifact:
    """Our guests' kernel with what virtme-ng needs, built over the base that experiments use."""
    tree = import_archive("debian-6.1", DEFAULT_ARCHIVES["debian-6.1"], home / "trees")
    base = resolve(tree, "")
    own = tuple(_base_fragments())
    request = BuildRequest(
        tree=tree,
        base=base,
        revision=base,
        config=ConfigRequest(CONFIG_BASE, (*own, VNG_NEEDS)),
        base_config=ConfigRequest(CONFIG_BASE, own),
        toolchain=detect_toolchain(),
    )
    print("the kernel: built unless it is there", file=sys.stderr)
    return Builder(home).build(request)


def _vng(place: Path) -> Path:
    """Return virtme-ng's command, in an environment of its own."""
    return installed(VNG, place) / "vng"


def _request(home: Path, directory: Path, artifact: Artifact) -> BootRequest:
    initrd = directory / "initrd"
    append_plan(build_initramfs(home / "initramfs", {}).for_plan(PLAN), pack_plan(PLAN, {}), initrd)
    return BootRequest(
        name="bench",
        kernel=artifact.boot_vmlinux,
        initrd=initrd,
        cmdline="",
        machine=Machine(VCPUS, MEMORY_MIB, choose_accelerator(home, artifact.boot_vmlinux, trusted=True)),
        disks=(),
        release=artifact.metadata.release,
        directory=directory,
        boot_deadline_s=DEADLINE_S,
        silence_deadline_s=DEADLINE_S,
        hz=int(artifact.config.read_text().partition("CONFIG_HZ=")[2].split()[0]),
    )


def ours(driver: LibvirtDriver, request: BootRequest) -> float:
    """Seconds from asking the driver to the output of the plan's step."""
    started = time.monotonic()
    with driver.boot(request) as session:
        for record in session.records(DEADLINE_S):
            if record.kind == "out" and MARK in record.payload:
                return time.monotonic() - started
    raise RuntimeError("the plan ended without its output")


def raw_qemu(request: BootRequest) -> float:
    """Seconds from starting QEMU by hand, with the devices of our domain, to the same output."""
    with ExitStack() as stack:
        sockets = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        console, records = (stack.enter_context(listen(sockets / name)) for name in ("console", "records"))
        started = time.monotonic()
        qemu = subprocess.Popen(_qemu_command(request, sockets), stdin=subprocess.DEVNULL)
        stack.callback(qemu.wait)
        stack.callback(qemu.kill)
        streams = LocalStreams(
            accept(console, DEADLINE_S),
            accept(records, DEADLINE_S),
            request.console.open("wb"),
            request.raw_records.open("wb"),
        )
        stack.callback(streams.close)
        while record := streams.next(started + DEADLINE_S):
            if record.kind == "out" and MARK in record.payload:
                return time.monotonic() - started
    raise RuntimeError("raw QEMU's guest did not reach the plan")


def _qemu_command(request: BootRequest, sockets: Path) -> list[str]:
    machine = request.machine
    accelerator = "tcg" if machine.accelerator == "tcg" else "kvm"
    return [
        BUILT.qemu,
        *("-machine", f"{BUILT.machine},usb=off,dump-guest-core=off"),
        *("-accel", accelerator),
        *("-cpu", "max" if accelerator == "tcg" else "host"),
        *("-smp", str(machine.vcpus)),
        *("-m", str(machine.memory_mib)),
        *("-nodefaults", "-no-user-config", "-no-reboot"),
        *("-display", "none"),
        *("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"),
        *("-kernel", str(request.kernel)),
        *("-initrd", str(request.initrd)),
        *("-append", kernel_cmdline(request)),
        *("-chardev", f"socket,id=console,path={sockets / 'console'}"),
        *("-device", "isa-serial,chardev=console"),
        *("-device", "virtio-serial-pci,id=serial,addr=2,max_ports=2"),
        *("-chardev", f"socket,id=records,path={sockets / 'records'}"),
        *("-device", f"virtserialport,bus=serial.0,chardev=records,name={PORT_NAME}"),
    ]


def virtme_ng(command: Path, artifact: Artifact, request: BootRequest) -> float:
    """Seconds from starting vng to the output of the command it runs."""
    arguments = [
        *(str(command), "--run", str(artifact.image)),
        *("--force-9p", "--cpus", str(VCPUS), "--memory", f"{MEMORY_MIB}M"),
        *(() if request.machine.accelerator == "kvm" else ("--disable-kvm",)),
        *("--exec", f"echo {MARK.decode()}"),
    ]
    # vng looks for its own virtme-run there.
    environment = os.environ | {"PATH": f"{command.parent}:{os.environ['PATH']}"}
    with tempfile.TemporaryFile() as errors:
        started = time.monotonic()
        # A pipe: vng's QEMU opens it again by name, which a socket does not allow.
        guest = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            process_group=0,
        )
        try:
            return _seconds_to_mark(guest, started)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(guest.pid, signal.SIGKILL)
            guest.wait()


def _seconds_to_mark(guest: subprocess.Popen[bytes], started: float) -> float:
    assert guest.stdout
    output = b""
    while MARK not in output:
        ready, _, _ = select.select([guest.stdout], [], [], DEADLINE_S)
        data = os.read(guest.stdout.fileno(), 4096) if ready else b""
        if not data:
            raise RuntimeError(f"vng did not come to its command: {output!r}")
        output += data
    return time.monotonic() - started


def _round(boots: Mapping[str, Boot], generator: random.Random, number: int, of: int) -> dict[str, float]:
    order = list(boots)
    generator.shuffle(order)
    took = {name: boots[name]() for name in order}
    label = f"round {number} of {of}" if number else "warm-up"
    print(f"{label}: " + ", ".join(f"{name} {took[name]:.2f} s" for name in boots), file=sys.stderr)
    return took


def _print_table(rounds: list[dict[str, float]], request: BootRequest) -> None:
    machine = request.machine
    print(
        f"\npower-on to workload start, {machine.accelerator}, {machine.vcpus} CPUs, {machine.memory_mib} MiB, "
        f"medians of {len(rounds)} rounds\n"
    )
    print(f"{'':8}{'seconds':>9}{'min':>8}{'max':>8}{'ours beside it':>20}{'both at their best':>24}")
    best = {name: min(took[name] for took in rounds) for name in rounds[0]}
    for name in rounds[0]:
        seconds = [took[name] for took in rounds]
        beside = statistics.median(took["ours"] / took[name] for took in rounds)
        comparisons = (
            ("", "") if name == "ours" else (_ratio_words(beside), _ratio_words(best["ours"] / best[name]))
        )
        print(
            f"{name:8}{statistics.median(seconds):9.2f}{best[name]:8.2f}{max(seconds):8.2f}{comparisons[0]:>20}{comparisons[1]:>24}"
        )


def _ratio_words(ratio: float) -> str:
    return f"{1 / ratio:.1f} times faster" if ratio < 0.5 else f"{ratio - 1:+.1%}"


if __name__ == "__main__":
    run(main)
