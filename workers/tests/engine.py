# SPDX-License-Identifier: GPL-2.0-or-later
"""podman with storage, settings and networks of its own: what a test builds and runs is nobody else's."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from workers.tests.debianbase import CACHE, ROOT, base_archive, package_caches

# Builds are given 1,024 processes at most, which must not be more than the engine's own limit. runc and cgroupfs: crun refuses hybrid control groups, and no systemd looks after ours.
SETTINGS = """
[containers]
default_ulimits = ["nofile=8000:8000", "nproc=8000:8000"]
init_path = "/usr/bin/catatonit"
[network]
network_backend = "netavark"
network_config_dir = "{folder}/networks"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
helper_binaries_dir = ["/usr/lib/podman", "/usr/bin"]
"""
STORAGE = '[storage]\ndriver = "overlay"\ngraphroot = "{folder}/storage"\nrunroot = "{folder}/run"\n'


@dataclass(frozen=True)
class Engine:
    """project: the name of what is brought up. environment: what the compose file's variables are."""

    project: str
    environment: dict[str, str]

    def podman(self, *arguments: str, stdin: bytes = b"", check: bool = True) -> str:
        """Run podman and return its output."""
        return self._run(["podman", *arguments], stdin, check)

    def log(self, container: str) -> str:
        """The end of what a container said, both streams."""
        command = f"podman logs --tail=40 {container} 2>&1"
        return self._run(["sh", "-c", command], b"", check=False)

    def compose(self, *arguments: str, check: bool = True) -> str:
        """Run podman-compose over docker-compose.yml and return its output."""
        program = str(Path(sys.executable).with_name("podman-compose"))
        caches = [f"--volume={here}:{there}" for there, here in package_caches().items()]
        build = " ".join(["--isolation=chroot", "--network=host", "--layers", *caches])
        return self._run(
            [program, "-p", self.project, f"--podman-build-args={build}", *arguments], b"", check
        )

    def base(self) -> str:
        """An image of an empty Debian."""
        archive = base_archive()
        name = f"localhost/debian:{archive.stem}"
        if name not in self.podman("images", "--format={{.Repository}}:{{.Tag}}").split():
            self.podman("import", str(archive), name)
        return name

    def build(self, name: str, folder: str, base: str) -> str:
        """An image of one Dockerfile."""
        caches = [f"--volume={here}:{there}" for there, here in package_caches().items()]
        arguments = ["--isolation=chroot", "--network=host", "--layers", f"--build-arg=BASE={base}", *caches]
        self.podman("build", *arguments, "-t", f"localhost/{name}", folder)
        return f"localhost/{name}"

    def left(self) -> list[str]:
        """Containers, volumes and networks that are there."""
        containers = self.podman("ps", "--all", "--format={{.Names}}").split()
        volumes = self.podman("volume", "ls", "--format={{.Name}}").split()
        networks = self.podman("network", "ls", "--format={{.Name}}").split()
        return sorted(name for name in (*containers, *volumes, *networks) if self.project in name)

    def _run(self, command: list[str], stdin: bytes, check: bool) -> str:
        done = subprocess.run(
            command,
            input=stdin,
            env=os.environ | self.environment,
            cwd=ROOT,
            capture_output=True,
            timeout=1500,
            check=False,
        )
        out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        if check:
            assert done.returncode == 0, f"{' '.join(command)}\n{out[-4000:]}\n{err[-4000:]}"
        return out


def engine(project: str, **variables: str) -> Engine:
    """podman as these tests use it; images are kept between runs, nothing else."""
    folder = CACHE / "podman"
    (folder / "networks").mkdir(parents=True, exist_ok=True)
    settings, storage = folder / "containers.conf", folder / "storage.conf"
    settings.write_text(SETTINGS.format(folder=folder))
    storage.write_text(STORAGE.format(folder=folder))
    own = {"CONTAINERS_CONF": str(settings), "CONTAINERS_STORAGE_CONF": str(storage)}
    return Engine(project, own | variables)
