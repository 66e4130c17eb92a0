# SPDX-License-Identifier: GPL-2.0-or-later
"""A real kernel for a lab under faults that needs no compiling.

The pretend kernel's `make` hands out a real kernel that some lab on this machine built before, with the release that this build is to
have in place of its own, which is as long. So everything is as with any kernel: build, signature, store, boot, `uname -r`.
"""

import json
import shutil
import subprocess
from pathlib import Path

from kernels.tests.pretend import FAKELINUX, PretendKernel

_WANTED = ("CONFIG_PVH=y", "CONFIG_RDMA_RXE=y")


def real_kernel(home: Path) -> Path | None:
    """Return the folder of an artifact below a state root whose kernel boots as a guest and has what showgids opens."""
    for path in sorted((home / "artifacts").glob("*/config")):
        if all(f"\n{line}\n" in path.read_text() for line in _WANTED):
            return path.parent
    return None


def guests_unable(kernel: Path | None, home: Path) -> str:
    """Return why there are no guests under libvirt here; empty if there are."""
    if kernel is None:
        return (
            f"no kernel with {' and '.join(_WANTED)} under {home}/artifacts: build one, as `make demo` does"
        )
    asked = subprocess.run(
        ["virsh", "-c", "qemu:///system", "version"], capture_output=True, text=True, check=False
    )
    return "" if asked.returncode == 0 else f"libvirt does not answer: {asked.stderr.strip()[:200]}"


class RealKernel(PretendKernel):
    """A tree that is built within seconds and boots."""

    def __init__(self, folder: Path, artifact: Path) -> None:
        super().__init__(folder)
        release = str(json.loads((artifact / "metadata.json").read_text())["metadata"]["release"])
        sublevel = release.partition("-")[0].split(".")[2]
        makefile = (FAKELINUX / "Makefile").read_text()
        linked = "\t@$(LD) -e start -Ttext=0xffffffff81000000 --build-id -o $@ $(objects)\n"
        assert linked in makefile
        handed = f"\t@sed 's/{release}/$(KERNELRELEASE)/g' $(srctree)/real/vmlinux > $@\n"
        makefile = makefile.replace("SUBLEVEL = 7\n", f"SUBLEVEL = {sublevel}\n").replace(linked, handed)
        (self.work / "Makefile").write_text(makefile)
        (self.work / "real").mkdir()
        shutil.copyfile(artifact / "vmlinux", self.work / "real" / "vmlinux")
        self.base = self._commit(f"v{release.partition('-')[0]}")
