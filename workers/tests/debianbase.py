# SPDX-License-Identifier: GPL-2.0-or-later
"""An empty Debian 12 as an archive, kept between runs: what the tests of setting up machines and containers begin with."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(f"/var/tmp/kperflab-debian-{os.getuid()}")
# python3 and sshd are all that a machine needs before Ansible comes.
INCLUDED = "ca-certificates,python3,openssh-server,systemd"
# It is thrown away soon: nothing waits for the disk, and its manuals are not needed.
OPTIONS = (
    '--aptopt=Acquire::Languages "none"',
    "--dpkgopt=force-unsafe-io",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
)
# What this machine trusts beyond Debian's own list, such as a proxy.
OWN_CERTIFICATES = Path("/usr/local/share/ca-certificates")


def base_archive() -> Path:
    """The archive; made by mmdebstrap when it is missing or made otherwise."""
    CACHE.mkdir(mode=0o755, exist_ok=True)
    certificates = sorted(OWN_CERTIFICATES.glob("*.crt"))
    made_of = " ".join((INCLUDED, *OPTIONS)).encode() + b"".join(file.read_bytes() for file in certificates)
    archive = CACHE / f"base-{hashlib.sha256(made_of).hexdigest()[:12]}.tar"
    with (CACHE / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            draft = archive.with_suffix(".draft.tar")
            hooks = [f"--customize-hook=copy-in {file} {OWN_CERTIFICATES}" for file in certificates]
            # No service starts because it was installed, as in the images of container registries.
            refuse = 'printf \'#!/bin/sh\\nexit 101\\n\' >"$1/usr/sbin/policy-rc.d"; chmod +x "$1/usr/sbin/policy-rc.d"'
            subprocess.run(
                [
                    "mmdebstrap",
                    "--quiet",
                    "--variant=minbase",
                    f"--include={INCLUDED}",
                    *OPTIONS,
                    *hooks,
                    '--customize-hook=chroot "$1" update-ca-certificates',
                    f"--customize-hook={refuse}",
                    "bookworm",
                    str(draft),
                ],
                check=True,
                timeout=900,
            )
            draft.rename(archive)
    return archive


@contextmanager
def caches_held() -> Iterator[None]:
    """For one at a time: apt locks what it fetched."""
    CACHE.mkdir(mode=0o755, exist_ok=True)
    with (CACHE / "use.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def package_caches() -> dict[Path, Path]:
    """Return the caches of package clients for an empty machine, so that nothing is fetched twice: folder there → folder here."""
    apt, npm = CACHE / "apt", CACHE / "npm"
    (apt / "partial").mkdir(parents=True, exist_ok=True)
    npm.mkdir(exist_ok=True)
    wheels = _wheels()
    settings = CACHE / "pip.conf"
    settings.write_text("[global]\nno-index = true\nfind-links = /wheels\n[install]\nno-compile = true\n")
    return {
        Path("/var/cache/apt/archives"): apt,
        Path("/root/.npm"): npm,
        Path("/wheels"): wheels,
        Path("/etc/pip.conf"): settings,
    }


def _wheels() -> Path:
    """The Python packages of requirements.lock as files, fetched once by pip: its own cache keeps what the index allows it to."""
    lock = ROOT / "requirements.lock"
    folder = CACHE / f"wheels-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    with (CACHE / "lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not folder.exists():
            draft = folder.with_suffix(".draft")
            subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "pip",
                    "download",
                    "--quiet",
                    "--disable-pip-version-check",
                    "--require-hashes",
                    "--no-deps",
                    "--no-build-isolation",
                    f"--requirement={lock}",
                    f"--dest={draft}",
                ],
                check=True,
                timeout=1800,
            )
            draft.rename(folder)
    return folder
