# SPDX-License-Identifier: GPL-2.0-or-later
"""The architecture of the kernels that the lab builds, under each of its names."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Architecture:
    """One architecture.

    name: as uname, QEMU and queues of builds call it. srcarch: its directory in the kernel's arch/. image: the file that boot
    loaders start, in arch/<srcarch>/boot/. machine: the model that QEMU emulates. console: the serial line of that machine.
    """

    name: str
    srcarch: str
    image: str
    machine: str
    console: str

    @property
    def image_path(self) -> str:
        """Return the path of the image in the object directory of a kernel's build."""
        return f"arch/{self.srcarch}/boot/{self.image}"

    @property
    def qemu(self) -> str:
        """Return the name of QEMU's program."""
        return f"qemu-system-{self.name}"

    @property
    def kconfig(self) -> dict[str, str]:
        """Return the variables that the kernel's Makefile exports for Kconfig's source lines."""
        return {"SRCARCH": self.srcarch, "ARCH": self.srcarch, "HEADER_ARCH": self.srcarch}


X86_64: Final = Architecture("x86_64", "x86", "bzImage", machine="q35", console="ttyS0")
BUILT: Final = X86_64
"""The architecture that kernels are built for, and its machines."""
