# SPDX-License-Identifier: GPL-2.0-or-later
"""The drivers of this machine, by the names that targets use."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from workers.drivers.base import Driver
from workers.drivers.fake import FakeDriver
from workers.drivers.fake_guest import play
from workers.drivers.libvirt import LibvirtDriver
from workers.drivers.metal import MetalDriver
from workers.run import Bench

# One for each of lab.targets.drivers.DRIVERS.
MAKERS: Mapping[str, Callable[[Path], Driver]] = {
    "libvirt": LibvirtDriver,
    "metal": MetalDriver,
    "fake": lambda home: FakeDriver(play),
}


class Drivers(dict[str, Driver]):
    """Drivers by name, made when first asked for: a machine that only builds needs no libvirt."""

    def __init__(self, home: Path) -> None:
        super().__init__()
        self._home = home

    def __missing__(self, name: str) -> Driver:
        self[name] = MAKERS[name](self._home)
        return self[name]


@cache
def make_bench(home: Path) -> Bench:
    """Return the state that all runs on this machine share, made once a process."""
    return Bench(home, Drivers(home))
