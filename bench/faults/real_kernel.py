# SPDX-License-Identifier: GPL-2.0-or-later
"""A real kernel for a lab under faults that needs no compiling.

The pretend kernel's `make` hands out a real kernel that some lab on this machine built before, with the release that this build is to
have in place of its own, which is as long. So everything is as with any kernel: build, signature, store, boot, `uname -r`.
"""

import json
import shutil
import subprocess
from pathlib import Path

from workers.tests.live import LiveKernel

_WANTED = ("CONFIG_PVH=y", "CONFIG_RDMA_RXE=y")
# What the pretend tree makes its kernel with, by the file's name, and what makes it here.
_MADE = {
    "vmlinux": "\t@$(LD) -e start -Ttext=0xffffffff81000000 --build-id -o $@ $(objects)\n",
    "bzImage": '\t@echo "  BUILD   $@"; mkdir -p $(@D); gzip -n < vmlinux > $@\n',
}
# The kernel's own banner has eight letters of a user.
_HANDED = """\t@mkdir -p $(@D); python3 $(srctree)/real/hand_out.py $(srctree)/real/{name} \\
\t\t{release} $(KERNELRELEASE) kperflab@ $$(cat $(objects) | sha256sum | cut -c1-8)@ > $@
"""


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


class RealKernel(LiveKernel):
    """A tree that is built within seconds and boots. Patches of it make another kernel: its banner has another user in it."""

    def __init__(self, folder: Path, artifact: Path) -> None:
        super().__init__(folder)
        release = str(json.loads((artifact / "metadata.json").read_text())["metadata"]["release"])
        sublevel = release.partition("-")[0].split(".")[2]
        makefile = (self.work / "Makefile").read_text().replace("SUBLEVEL = 7\n", f"SUBLEVEL = {sublevel}\n")
        (self.work / "real").mkdir()
        shutil.copyfile(Path(__file__).with_name("hand_out.py"), self.work / "real" / "hand_out.py")
        for name, made in _MADE.items():
            # Guests boot the vmlinux; machines the bzImage, where the artifact has it.
            if (artifact / name).exists():
                assert made in makefile
                makefile = makefile.replace(made, _HANDED.format(name=name, release=release))
                shutil.copyfile(artifact / name, self.work / "real" / name)
        (self.work / "Makefile").write_text(makefile)
        self.base = self._commit(f"v{release.partition('-')[0]}")
