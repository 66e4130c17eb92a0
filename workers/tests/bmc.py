# SPDX-License-Identifier: GPL-2.0-or-later
"""A BMC for a libvirt domain: virtualbmc's, and Serial over LAN, which virtualbmc leaves out.

    python -m workers.tests.bmc DOMAIN URI PORT USER PASSWORD_FILE SERIAL_SOCKET

SERIAL_SOCKET is where QEMU listens with the domain's serial line.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

from virtualbmc.vbmc import VirtualBMC


class Bmc(VirtualBMC):  # type: ignore[misc]
    """One session at a time gets what the domain writes on its serial line."""

    activated: bool
    sol: Any

    def __init__(self, serial: str, **more: Any) -> None:
        super().__init__(**more)
        self.serial = serial
        self.iohandler = lambda _typed: None
        self.number = 0
        self.acknowledged = threading.Event()
        threading.Thread(target=self.pass_on, daemon=True).start()

    def is_active(self) -> bool:
        """A real BMC has its console whether the machine is on or not."""
        return True

    def activate_payload(self, request: Any, session: Any) -> None:
        """A session that ended without a word holds the console no longer."""
        if self.activated and not self.sol.ipmi_session.logged:
            self.activated, self.sol = False, None
        super().activate_payload(request, session)

    def pass_on(self) -> None:
        """Send the line's output to the listener; without one it is lost, as on real machines."""
        while True:
            try:
                with socket.socket(socket.AF_UNIX) as line:
                    line.connect(self.serial)
                    while data := line.recv(200):
                        if self.sol is not None:
                            self.send(data)
            except OSError:
                pass
            time.sleep(0.05)

    def send(self, data: bytes) -> None:
        """One packet after the other, each until it is acknowledged.

        The library's own way waits for acknowledgements within the one before, and gives up where much is printed.
        """
        self.number = self.number % 15 + 1
        self.acknowledged.clear()
        self.sol.ipmi_session.sol_handler = self.answered
        for _ in range(10):
            self.sol.send_payload(bytearray((self.number, 0, 0, 0)) + data, retry=False)
            if self.acknowledged.wait(0.5):
                break

    def answered(self, payload: Any) -> None:
        """Check the answer, which holds the packet's number."""
        if not isinstance(payload, dict) and payload[1] & 15 == self.number:
            self.acknowledged.set()


def main() -> None:
    """Serve until killed."""
    domain, uri, port, user, password_file, serial = sys.argv[1:]
    bmc = Bmc(
        serial,
        username=user,
        password=Path(password_file).read_text().strip(),
        port=int(port),
        address="127.0.0.1",
        domain_name=domain,
        libvirt_uri=uri,
    )
    print("ready", flush=True)
    bmc.listen(timeout=1)


if __name__ == "__main__":
    main()
