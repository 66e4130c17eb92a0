# SPDX-License-Identifier: GPL-2.0-or-later
"""A fleet of one machine or of three, and its Ansible inventory."""

from __future__ import annotations

import json
import os
import re
import ssl
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.tests import smoke
from workers.tests.debianbase import ROOT
from workers.tests.emptymachine import Machine, free_port

ANSIBLE = ROOT / "ansible"
PROGRAMS = Path(sys.executable).parent
MACHINE = "bench1"
MAC = "52:54:00:12:34:56"
DESCRIPTION = """driver = "metal"
[access]
mac = "{mac}"
[access.power]
kind = "redfish"
address = "https://198.51.100.9"
user = "lab"
password_file = "/etc/kperflab/secrets/bmc-{name}"
"""
# dnsmasq is alone on a cable, lest it answer this machine's network.
APART = "[Service]\nNetworkNamespacePath=/run/netns/bench\n"
LAB = "/opt/kperflab/lab"


@dataclass(frozen=True)
class Fleet:
    """A fleet and its Ansible inventory. machine: its server. url: the pages, by a certificate that trust knows where it is https."""

    machine: Machine
    inventory: Path
    url: str
    plain_url: str
    port: int
    trust: ssl.SSLContext | bool
    revision: str

    def play(self, book: str, *arguments: str) -> dict[str, int]:
        """Run a playbook; how many tasks were ok, changed, failed, unreachable on all machines."""
        done = ansible("ansible-playbook", "-i", str(self.inventory), str(ANSIBLE / book), *arguments)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        recap = done.stdout.partition("\nPLAY RECAP")[2]
        counts: Counter[str] = Counter()
        for name, count in re.findall(r"(\w+)=(\d+)", recap):
            counts[name] += int(count)
        assert counts["ok"], done.stdout[-2000:]
        changed = re.findall(r"^TASK \[(.*?)\].*\n(?:.*\n)*?changed:", done.stdout, re.MULTILINE)
        print(book, counts, changed if counts["changed"] < 10 else "")
        return counts


def ansible(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"),
        "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
    }
    return subprocess.run(
        [str(PROGRAMS / program), *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )


def git(scratch: Path, *arguments: str, stdin: str | None = None) -> str:
    """Run git with an index of its own; return its output."""
    environment = os.environ | {"GIT_INDEX_FILE": str(scratch / "index")}
    command = ["git", "-c", "user.name=test", "-c", "user.email=test@example.org", *arguments]
    return subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        input=stdin,
    ).stdout.strip()


def commit_of_what_is_here(scratch: Path) -> str:
    """The tree as it is edited now, as a commit that no branch names."""
    git(scratch, "read-tree", "HEAD")
    git(scratch, "add", "--all")
    return git(scratch, "commit-tree", git(scratch, "write-tree"), "-p", "HEAD", "-m", "what is here")


def commit_after(revision: str, scratch: Path, edits: dict[str, tuple[str, str]]) -> str:
    """A commit on a revision that replaces something once in each of these files; one where it replaces nothing is new."""
    git(scratch, "read-tree", revision)
    for name, (old, new) in edits.items():
        text = git(scratch, "show", f"{revision}:{name}") + "\n" if old else ""
        assert not old or text.count(old) == 1, name
        blob = git(scratch, "hash-object", "-w", "--stdin", stdin=text.replace(old, new))
        git(scratch, "update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
    return git(scratch, "commit-tree", git(scratch, "write-tree"), "-p", revision, "-m", "what comes next")


def certificate(folder: Path) -> tuple[Path, Path]:
    """One of the loopback address that it signed itself, and its key."""
    made, key = folder / "lab.pem", folder / "lab.key"
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=lab", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    subprocess.run(
        ["openssl", "req", "-x509", *curve, *names, "-keyout", str(key), "-out", str(made)],
        check=True,
        capture_output=True,
        timeout=60,
    )
    return made, key


def set_apart(machine: Machine, folder: Path) -> ssl.SSLContext:
    """Install the certificate and dnsmasq's network, as operators do. Return a context that trusts the lab."""
    made, key = certificate(folder)
    machine.run("mkdir -p /etc/systemd/system/dnsmasq.service.d /etc/kperflab-tls")
    machine.run("cat >/etc/systemd/system/dnsmasq.service.d/apart.conf", APART)
    machine.run("cat >/etc/kperflab-tls/lab.pem", made.read_text())
    machine.run("umask 077; cat >/etc/kperflab-tls/lab.key", key.read_text())
    return ssl.create_default_context(cafile=str(made))


def inventory(machine: Machine, folder: Path, variables: dict[str, Any]) -> Path:
    """One machine that is all of a fleet, and drives a described one."""
    description = folder / "bench1.toml"
    description.write_text(DESCRIPTION.format(mac=MAC, name=MACHINE))
    described = {"name": MACHINE, "file": str(description), "mac": MAC, "bmc_password": "opens-the-bmc"}
    metal = {
        "lab_netboot_interface": "lab0",
        "lab_netboot_network": "198.51.100.0",
        "lab_netboot_url": "http://198.51.100.1:8000",
        "lab_machines": [described],
    }
    names = ("lab_server", "build_workers", "libvirt_hosts", "metal_hosts")
    groups: dict[str, Any] = {name: {"hosts": {"lab": {}}} for name in names}
    groups |= {"all": {"vars": variables | metal, "hosts": {"lab": reached(machine)}}}
    return written(groups, folder)


def reached(machine: Machine) -> dict[str, Any]:
    """Ansible's variables of how it gets to a machine."""
    return {
        "ansible_host": machine.address,
        "ansible_port": machine.port,
        "ansible_user": "root",
        "ansible_ssh_private_key_file": str(machine.key),
        "ansible_ssh_common_args": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null",
    }


def written(groups: dict[str, Any], folder: Path) -> Path:
    """Write an inventory."""
    file = folder / "inventory.json"
    file.write_text(json.dumps(groups))
    return file


def fleet_on(machine: Machine, folder: Path) -> Fleet:
    """A fleet to be, of a machine that is empty yet; its ports are free ones, since others have the network too."""
    trust = set_apart(machine, folder)
    revision = commit_of_what_is_here(folder)
    port, plain, tls = free_port(), free_port(), free_port()
    variables = {
        "lab_server_address": "127.0.0.1",
        "lab_revision": revision,
        "lab_port": port,
        "lab_http_port": plain,
        "lab_https_port": tls,
        "lab_tls_certificate": "/etc/kperflab-tls/lab.pem",
        "lab_tls_key": "/etc/kperflab-tls/lab.key",
        "lab_postgres_port": free_port(),
        "lab_redis_port": free_port(),
        "lab_targets": ["guest", smoke.TARGET],
        "lab_settings": {"KPERFLAB_LOCAL_PATHS": "1"},
    }
    urls = f"https://127.0.0.1:{tls}", f"http://127.0.0.1:{plain}"
    return Fleet(machine, inventory(machine, folder, variables), *urls, port, trust, revision)
