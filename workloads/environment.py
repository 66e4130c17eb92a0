# SPDX-License-Identifier: GPL-2.0-or-later
"""The environment in which compilers and tools of file systems are started: never our own, which may hold passwords and keys."""

import os

# Debian keeps some tools in sbin, which is not on an ordinary user's path.
_SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PASSED = ("TMPDIR",)


def minimal(**more: str) -> dict[str, str]:
    """Return PATH, TMPDIR and a locale for plain messages, overridden by `more`."""
    passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
    return {"PATH": f"{os.environ.get('PATH', '')}:{_SYSTEM}".lstrip(":"), "LC_ALL": "C", **passed, **more}
