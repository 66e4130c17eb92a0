# SPDX-License-Identifier: GPL-2.0-or-later
"""Refreshes the golden records: what real guests of this project sent.

    python -m workloads.tests.golden VMLINUX BH_LOOKUP_MODULE [NAME...]

VMLINUX is a kernel with our guest configuration, BH_LOOKUP_MODULE the module built against it.
Needs QEMU only. It is no test: it makes what tests read.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from workloads.catalog import load_catalog
from workloads.compile import compile_programs
from workloads.guest.initramfs import build_initramfs
from workloads.guest.pack import append_plan, pack_plan
from workloads.image import build_image
from workloads.step import Purpose

GOLDEN = Path(__file__).parent / "golden"
DEADLINE_S = 300
# file name: workload, purpose, parameters over the preset smoke
CASES: dict[str, tuple[str, Purpose, dict[str, object]]] = {
    "stat-walk": ("stat-walk", "measured", {}),
    "stat-walk-verified": ("stat-walk", "verified", {}),
    "stat-walk-verified-warm": ("stat-walk", "verified", {"cache": "warm"}),
    "stat-walk-refused": ("stat-walk", "measured", {"cache": "thrash"}),
    "showgids": ("showgids", "measured", {}),
    "showgids-fallback": ("showgids", "measured", {"glob": "/sys/class/nothing/*"}),
    "cyclictest-bh": ("cyclictest-bh", "measured", {}),
    "cyclictest-bh-off": ("cyclictest-bh", "measured", {"load": "off"}),
    "cyclictest-bh-verified": ("cyclictest-bh", "verified", {}),
    "bh-lookup": ("bh-lookup", "measured", {}),
}


def boot(name: str, kernel: Path, module: Path, place: Path) -> bytes:
    """The records of one guest. place: for images, programs and the like."""
    workload_name, purpose, params = CASES[name]
    catalog = load_catalog()
    workload = catalog[workload_name]
    plan = workload.plan(workload.resolve("smoke", params), iterations=2, warmup=1, purpose=purpose)
    files = {f"{source.name}.ko": module.read_bytes() for source in workload.modules}
    initrd, records = place / "initrd", place / "records"
    base = build_initramfs(place, compile_programs(place, catalog.values()))
    append_plan(base.path, pack_plan(plan, files), initrd)
    command = ["qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max"]
    command += [
        "-smp",
        "2",
        "-m",
        "1G",
        "-display",
        "none",
        "-monitor",
        "none",
        "-no-reboot",
        "-serial",
        "none",
    ]
    command += ["-kernel", str(kernel), "-initrd", str(initrd), "-append", "console=ttyS0 panic=-1"]
    command += ["-device", "virtio-serial-pci", "-chardev", f"file,id=records,path={records}"]
    command += ["-device", "virtserialport,chardev=records,name=kperflab.records"]
    if plan.disk:
        image = build_image(plan.disk, place)
        command += ["-drive", f"file={image},if=none,id=disk,format=raw,snapshot=on"]
        command += ["-device", "virtio-blk-pci,drive=disk,serial=kperflab0"]
    subprocess.run(command, stdin=subprocess.DEVNULL, check=True, timeout=DEADLINE_S)
    return records.read_bytes()


def main(kernel: Path, module: Path, names: list[str]) -> None:
    """Boot a guest per case and keep what it sent."""
    GOLDEN.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        for name in names or CASES:
            (GOLDEN / f"{name}.records").write_bytes(boot(name, kernel, module, Path(place)))
            print(name)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
