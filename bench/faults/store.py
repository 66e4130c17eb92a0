# SPDX-License-Identifier: GPL-2.0-or-later
"""The store of a lab under test: an S3 server that answers badly for a while, and the fault that makes it do so."""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.faults.machine import kill
from lab.tests.bad_store import Behaviour, behave, spoilt

_START_S = 300.0
_BUCKET = "kperflab"


class StoreStandIn:
    """The server of a folder, in a process that outlives this one: a later piece's check still needs what is in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, listen: str) -> None:
        """Start it and wait for it."""
        self.folder.mkdir(parents=True)
        with (self.folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "lab.tests.bad_store", listen, str(self.folder)],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        (self.folder / "pid").write_text(str(process.pid))
        end = time.monotonic() + _START_S
        while not (self.folder / "address").exists():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the store does not start: {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.1)

    def stop(self) -> None:
        """End it; nothing happens where it does not run."""
        with suppress(FileNotFoundError):
            kill(int((self.folder / "pid").read_text()))

    @property
    def variables(self) -> Mapping[str, str]:
        """Return the environment of a lab that uses it."""
        address = (self.folder / "address").read_text()
        return {
            "KPERFLAB_STORE": f"s3://{_BUCKET}?endpoint={address}",
            "AWS_ACCESS_KEY_ID": "AKIATEST",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }

    @contextmanager
    def behaving(self, how: Behaviour) -> Iterator[None]:
        """Have it answer so for the block."""
        behave(self.folder, how)
        try:
            yield
        finally:
            behave(self.folder, "well")

    @property
    def spoilt(self) -> int:
        """Return how many answers were not the server's own so far."""
        return spoilt(self.folder)
