# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest under QEMU's TCG that fails as it is asked to, from a snapshot taken when its kernel was up."""

import json
import select
import socket
import subprocess
import time
from pathlib import Path

DEADLINE_S = 400
BOOTS_TWICE = {"reset", "fail-triple"}
READY = b"guest: ready for a name"
MONITOR = {
    "reset": "system_reset",
    "monitor-nmi": "nmi",
    # Uncorrected, in bank 1: mce CPU BANK STATUS MCG_STATUS ADDRESS MISC.
    "monitor-mce-panic": "mce 0 1 0xbe00000000000134 0x7 0x1000 0x86",
}
ASKS_MONITOR = b"guest: ready for the monitor"


class Machine:
    """One kernel with its initrd; scratch holds the snapshot, the sockets and the console.

    words: for the kernel's command line, besides those that every guest has.
    """

    def __init__(self, vmlinux: Path, initrd: Path, scratch: Path, words: str) -> None:
        self._words = words
        self._kernel = ["-kernel", str(vmlinux), "-initrd", str(initrd)]
        self._disk = scratch / "snapshot.qcow2"
        self._console = scratch / "console"
        self._serial = scratch / "serial"
        self._monitor = scratch / "monitor"

    def console_of(self, name: str, wait_s: int) -> bytes:
        """Return what the guest printed until it powered off, panicked or ran out of time.

        name: as in failures.tsv. The kernel boots again only where its command line or its first lines matter.
        """
        setting = name.partition("@")[2]
        needs_boot = name in BOOTS_TWICE or name.startswith("clean-") or _is_of_command_line(setting)
        if needs_boot:
            words = [f"crash={name}", f"wait={wait_s}"]
            guest = self._start(words + ([setting] if _is_of_command_line(setting) else []), name)
        else:
            if not self._disk.exists():
                self._take_snapshot()
            guest = self._start(["crash=ask"], name, "-loadvm", "ready")
        try:
            if needs_boot:
                self._watch(guest, name)
            else:
                # QEMU doubles bytes in the console when the connection closes while the guest prints, and stops
                # when there is no reader.
                with _connected(self._serial) as client:
                    client.sendall(f"{name} {wait_s}\n".encode())
                    self._watch(guest, name, client)
        finally:
            guest.kill()
            guest.wait()
        return self._console.read_bytes()

    def _take_snapshot(self) -> None:
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", self._disk, "1G"], check=True)
        guest = self._start(["crash=ask"], "")
        try:
            self._wait_for(guest, READY)
            self._command("savevm ready")
        finally:
            guest.kill()
            guest.wait()

    def _start(self, words: list[str], name: str, *more: str) -> subprocess.Popen[bytes]:
        self._console.unlink(missing_ok=True)
        machine = [
            "qemu-system-x86_64",
            "-accel",
            "tcg,thread=multi",
            "-cpu",
            "max",
            "-smp",
            "2",
            "-m",
            "768",
        ]
        machine += ["-nodefaults", "-display", "none", "-qmp", f"unix:{self._monitor},server=on,wait=off"]
        machine += [
            "-chardev",
            f"socket,id=serial,path={self._serial},server=on,wait=off,logfile={self._console}",
        ]
        machine += ["-serial", "chardev:serial", *self._kernel, *more]
        if self._disk.exists():
            machine += ["-drive", f"if=none,id=snapshot,format=qcow2,file={self._disk}"]
        line = " ".join(["console=ttyS0 panic=-1 watchdog_thresh=2 nokaslr", self._words, *words])
        machine += ["-append", line] + ([] if name in BOOTS_TWICE else ["-no-reboot"])
        return subprocess.Popen(machine, stdin=subprocess.DEVNULL)

    def _watch(self, guest: subprocess.Popen[bytes], name: str, serial: socket.socket | None = None) -> None:
        end = time.monotonic() + DEADLINE_S
        asked = False
        while guest.poll() is None and time.monotonic() < end:
            if serial is None or not select.select([serial], [], [], 0.2)[0]:
                time.sleep(0.2)
            elif not serial.recv(65536):
                serial = None
            text = self._printed()
            if name in BOOTS_TWICE and text.count(b"guest: carrying out") > 1:
                break
            if not asked and ASKS_MONITOR in text:
                self._command(MONITOR[name.partition("@")[0]])
                asked = True

    def _wait_for(self, guest: subprocess.Popen[bytes], words: bytes) -> None:
        end = time.monotonic() + DEADLINE_S
        while words not in self._printed():
            if guest.poll() is not None or time.monotonic() > end:
                raise SystemExit(
                    f"the guest did not print {words.decode()!r}: see its console, {self._console}"
                )
            time.sleep(0.2)

    def _printed(self) -> bytes:
        return self._console.read_bytes() if self._console.exists() else b""

    def _command(self, command: str) -> None:
        orders = (
            {"execute": "qmp_capabilities"},
            {"execute": "human-monitor-command", "arguments": {"command-line": command}},
        )
        with _connected(self._monitor) as client, client.makefile("rw") as lines:
            for order in orders:
                lines.write(json.dumps(order) + "\n")
                lines.flush()
                # Events come in between.
                answer = next((line for line in lines if '"return"' in line or '"error"' in line), "")
        if command.startswith("savevm") and '"return": ""' not in answer:
            raise SystemExit(f"QEMU took no snapshot: {answer.strip()}")


def _is_of_command_line(setting: str) -> bool:
    """Return whether a setting is a word of the command line, not a sysctl, which is named with its folder."""
    return bool(setting) and not setting.startswith(("kernel.", "vm."))


def _connected(path: Path) -> socket.socket:
    """Return a connection to a socket that QEMU is about to make."""
    end = time.monotonic() + DEADLINE_S
    while True:
        client = socket.socket(socket.AF_UNIX)
        try:
            client.connect(str(path))
            return client
        except OSError:
            client.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
