# SPDX-License-Identifier: GPL-2.0-or-later
"""The whole lab for one person: the pages on the loopback address, and a worker beside them."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.urls import reverse

from lab.environment import for_own_processes
from lab.people.sign_in import LASTS_S, issue_secret
from workers.local import Say
from workers.processes import end_at_sigterm

# The worker returns its work to the queue; a guest takes some seconds to end.
STOP_S = 30.0
# Exit codes of a server that was ended by a signal.
STOPPED = (0, -signal.SIGINT, -signal.SIGTERM)


def sign_in_line(port: int) -> str:
    """Return a line with a link that signs in the user of this terminal, once."""
    link = f"http://127.0.0.1:{port}{reverse('sign_in_here', args=[issue_secret()])}"
    return f"sign in within {LASTS_S // 60} minutes: {link}"


def serve(port: int, *, say: Say) -> int:
    """Serve until interrupted, with a worker; returns the exit code: 0, or that of a server that could not start.

    The pages stay up if the worker cannot work, as without libvirt: the worker prints why.
    """
    gunicorn = Path(sys.executable).with_name("gunicorn")
    web = [str(gunicorn), "--bind", f"127.0.0.1:{port}", "--threads", "4", "--log-level", "warning"]
    # gunicorn's own 2 s are shorter than a user's pause between two clicks: the next request would meet a closing connection.
    web += ["--keep-alive", "75", "--worker-class", "web.slowclients.PatientWorker"]
    end_at_sigterm()
    say(sign_in_line(port))
    try:
        with _beside([sys.executable, "-m", "workers.labctl", "work", "--local"]):
            with _beside([*web, "web.wsgi"]) as server:
                code = server.wait()
            return 0 if code in STOPPED else code
    except (KeyboardInterrupt, SystemExit):
        return 0


@contextmanager
def _beside(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program as long as the block lasts; then terminate it, and kill it if it does not end."""
    process = subprocess.Popen(command, env=for_own_processes() | {"PYTHONUNBUFFERED": "1"})
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
