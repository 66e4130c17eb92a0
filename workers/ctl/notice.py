# SPDX-License-Identifier: GPL-2.0-or-later
"""A notification on the user's desktop: notify-send, else the terminal's own notification and its bell."""

import shutil
import subprocess
import sys

from kernels.processes.environment import passing
from workers.ctl.plaintext import plain_line

# A notification server that does not answer must not withhold the exit code from a pipeline.
WAIT_S = 5.0
LONGEST = 300
# Variables that lead to the user's desktop session.
_OF_THE_DESKTOP = ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "HOME")


def show(title: str, text: str) -> None:
    """Show a notice by the desktop; where there is none, by the terminal on standard error; never fails."""
    title, text = plain_line(title)[:LONGEST], plain_line(text)[:LONGEST]
    if not _by_the_desktop(title, text) and sys.stderr.isatty():
        sys.stderr.write(terminal_notice(title, text))
        sys.stderr.flush()


def terminal_notice(title: str, text: str) -> str:
    """Return the control sequences of a notice: OSC 777, OSC 9 for other terminals, and the bell.

    A semicolon would end a field of OSC 777.
    """
    head, body = title.replace(";", ","), text.replace(";", ",")
    return f"\x1b]777;notify;{head};{body}\x1b\\\x1b]9;{head}: {body}\x1b\\\a"


def _by_the_desktop(title: str, text: str) -> bool:
    program = shutil.which("notify-send")
    if program is None:
        return False
    # Desktops read the text as markup.
    body = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    command = [program, "--app-name=labctl", "--", title, body]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, timeout=WAIT_S, env=passing(*_OF_THE_DESKTOP)
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
