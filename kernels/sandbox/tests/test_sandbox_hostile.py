# SPDX-License-Identifier: GPL-2.0-or-later
"""Attacks of a build on its machine; nothing outside its own folders changes."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kernels.builds.lab_faults import refuse_lacks
from kernels.errors import BuildOutOfMemory
from kernels.sandbox.command import Layer, SandboxPlace, run
from kernels.tests.inside import ENVIRONMENT, LIMITS, attempt, gone, new_place, own

pytestmark = [pytest.mark.hostile, pytest.mark.process]


@pytest.fixture
def place(tmp_path: Path) -> SandboxPlace:
    return new_place(tmp_path)


# Places where a build has nothing to write; each is tried as a file to make and one to open.
OUTSIDE = [
    "/escaped",
    "/usr/escaped",
    "/usr/bin/make",
    "/bin/sh",
    "/lib/escaped",
    "/etc/escaped",
    "/etc/alternatives/escaped",
    "/build/escaped",
    "/build/linux/escaped",
    "/build/linux/Makefile",
    "/dev/escaped",
    "/dev/sda",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/drop_caches",
    "/proc/sysrq-trigger",
    "/proc/irq/default_smp_affinity",
    "/proc/1/mem",
    "/proc/self/uid_map",
    "/proc/self/gid_map",
    "/proc/self/setgroups",
    "/sys/power/state",
    "/sys/fs/cgroup/escaped",
    "/run/escaped",
    "/var/escaped",
    "/root/escaped",
    "/home/escaped",
    "/mnt/escaped",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_nothing_outside_its_folders_can_be_written(place: SandboxPlace, path: str) -> None:
    (place.source.lower / "Makefile").write_text("all:\n")
    before = Path(path).lstat().st_mtime_ns if os.path.lexists(path) else 0
    seen = attempt(place, 'if (echo 1 >>"$1") 2>/dev/null; then echo wrote; else echo refused; fi', path)
    assert seen.lines == ["refused"]
    assert (place.source.lower / "Makefile").read_text() == "all:\n"
    assert (Path(path).lstat().st_mtime_ns if os.path.lexists(path) else 0) == before


@pytest.mark.parametrize("way", ["rm -rf", "chmod -R 777", "ln -s x -t", "touch"])
@pytest.mark.parametrize("path", ["/usr/bin", "/build/linux", "/etc/alternatives", "/dev"])
def test_no_tool_changes_what_is_read_only(place: SandboxPlace, way: str, path: str) -> None:
    (place.source.lower / "Makefile").write_text("all:\n")
    before = sorted(Path("/usr/bin").iterdir())
    seen = attempt(place, f"{way} {path}/* 2>/dev/null {path} && echo done; echo end")
    assert seen.lines[-1] == "end"
    assert [each.name for each in place.source.lower.iterdir()] == ["Makefile"]
    assert (place.source.lower / "Makefile").read_text() == "all:\n"
    assert sorted(Path("/usr/bin").iterdir()) == before


@pytest.mark.parametrize(
    "target",
    ["/etc/shadow", "/root", "/var/lib/kperflab", "/proc/1/root/etc/shadow", "../../../../etc/passwd"],
)
def test_a_link_out_of_the_sandbox_leads_nowhere(place: SandboxPlace, target: str) -> None:
    seen = attempt(
        place, 'ln -s "$1" link; cat link/* link 2>/dev/null; echo x 2>/dev/null >link/new; echo end', target
    )
    assert seen.lines == ["end"]


def test_hard_links_to_files_of_others_cannot_be_made(place: SandboxPlace) -> None:
    (place.source.lower / "theirs").write_text("theirs")
    seen = attempt(
        place, "ln /build/linux/theirs mine 2>/dev/null || ln /usr/bin/make mine 2>/dev/null || echo refused"
    )
    assert seen.lines == ["refused"]


def test_a_program_with_setuid_gives_no_rights(place: SandboxPlace) -> None:
    script = "cp /usr/bin/id id; chmod 6755 id; ./id -u; grep -c . /proc/self/uid_map; mount 2>&1 -t tmpfs x /tmp | wc -l"
    seen = attempt(place, f"{script}; su -c id 2>/dev/null; grep NoNewPrivs /proc/self/status | tr -d '\\t'")
    assert seen.lines[0] != "0"
    assert seen.lines[-1] == "NoNewPrivs:1"


def test_there_are_no_capabilities_to_be_had(place: SandboxPlace) -> None:
    seen = attempt(
        place, "grep ^Cap /proc/self/status | cut -f2; unshare -Ur true 2>/dev/null && echo namespace"
    )
    assert set(seen.lines) == {"0000000000000000"}


# Every way of speaking to somebody outside.
SPEECH = {
    "inet": "import socket; socket.socket(socket.AF_INET)",
    "inet6": "import socket; socket.socket(socket.AF_INET6)",
    "netlink": "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
    "packet": "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)",
    "vsock": "import socket; socket.socket(40, socket.SOCK_STREAM)",
    "alg": "import socket; socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)",
    "names": "import socket; socket.getaddrinfo('kernel.org', 80)",
    "url": "import urllib.request; urllib.request.urlopen('http://127.0.0.1/')",
}


@pytest.mark.parametrize("what", SPEECH)
def test_nobody_outside_can_be_spoken_to(place: SandboxPlace, what: str) -> None:
    seen = attempt(place, 'python3 -c "$1" 2>/dev/null && echo spoke; echo end', SPEECH[what])
    assert seen.lines == ["end"]


@pytest.fixture
def abstract() -> Iterator[str]:
    """The name of an abstract Unix socket that listens on the host."""
    name = f"kperflab-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"\0{name}")
        listening.listen()
        yield name


def test_abstract_sockets_of_the_host_are_not_seen(place: SandboxPlace, abstract: str) -> None:
    call = f"import socket; socket.socket(socket.AF_UNIX).connect('\\0{abstract}')"
    assert attempt(
        place,
        'python3 -c "$1" 2>/dev/null && echo spoke; cat /proc/net/unix | grep "$2"; echo end',
        call,
        abstract,
    ).lines == ["end"]


@pytest.mark.parametrize("signal", ["TERM", "KILL", "STOP", "HUP", "INT"])
def test_signals_reach_no_process_outside(place: SandboxPlace, signal: str) -> None:
    victim = subprocess.Popen(["sleep", "300"])
    try:
        attempt(
            place,
            f"kill -{signal} {victim.pid} {os.getpid()} {os.getppid()} 2>/dev/null; kill -{signal} -1; echo end",
        )
        assert victim.poll() is None
        assert "(sleep) S" in Path(f"/proc/{victim.pid}/stat").read_text()
    finally:
        victim.kill()
        victim.wait()


@pytest.mark.parametrize(
    "way",
    [
        "sleep 4711 &",
        "setsid sleep 4711 &",
        "(setsid sh -c 'sleep 4711 &' &)",
        "nohup setsid sleep 4711 >/dev/null 2>&1 &",
        "sh -c 'trap \"\" TERM HUP INT; setsid sleep 4711 >/dev/null 2>&1 </dev/null &'",
        "python3 -c 'import os, time; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); "
        '[os.close(n) for n in range(3)]; os.execlp("sleep", "sleep", "4711")\' ; true',
    ],
)
def test_what_goes_on_in_the_background_ends_with_the_build(place: SandboxPlace, way: str) -> None:
    attempt(place, f"{way.replace('4711', own(4711))}\necho end", limits=replace(LIMITS, seconds=5))
    assert gone(4711)


def test_a_fork_bomb_meets_the_limit_of_processes(place: SandboxPlace) -> None:
    limits = replace(LIMITS, seconds=6, processes=60)
    script = f"bomb() {{ bomb | bomb & }}; bomb 2>/dev/null; sleep {own(4712)} & wait; sleep 3"
    seen = attempt(place, script, limits=limits)
    assert seen.ended.wall_seconds < 40
    assert gone(4712)
    # The host itself can still start processes, as the build's own user too.
    assert subprocess.run(["true"], check=False).returncode == 0


@pytest.mark.parametrize(
    ("script", "stopped"),
    [
        ("yes", "log"),
        pytest.param("cat /dev/zero", "log", marks=pytest.mark.thorough),
        pytest.param("head -c 100000000 /dev/urandom", "log", marks=pytest.mark.thorough),
        ("(yes; yes) & yes", "log"),
        pytest.param("sleep 4713", "time", marks=pytest.mark.thorough),
        ("trap '' TERM INT HUP; while :; do sleep 4713; done", "time"),
        ("kill -STOP $$", "time"),
        pytest.param("exec >&- 2>&-; sleep 4713", "time", marks=pytest.mark.thorough),
        pytest.param("while :; do :; done", "time", marks=pytest.mark.thorough),
        pytest.param("mkfifo f; cat f", "time", marks=pytest.mark.thorough),
    ],
)
def test_a_build_without_end_is_stopped(place: SandboxPlace, script: str, stopped: str) -> None:
    # On a busy machine a megabyte takes its time.
    limits = replace(LIMITS, seconds=3 if stopped == "time" else 120, log_bytes=1 << 20)
    seen = attempt(place, script.replace("4713", own(4713)), limits=limits)
    assert seen.ended.stopped == stopped
    assert sum(map(len, seen.lines)) < 4 << 20
    assert gone(4713)


@pytest.mark.parametrize(
    "script",
    [
        "python3 -c 'bytearray(8 << 30)' 2>/dev/null || echo refused",
        "python3 -c 'import mmap; mmap.mmap(-1, 8 << 30)' 2>/dev/null || echo refused",
        "python3 -c \"import os; f = os.memfd_create('x'); os.truncate(f, 8 << 30)\" 2>/dev/null || echo refused",
        "(ulimit -v unlimited) 2>/dev/null || echo refused",
        "(ulimit -u 100000) 2>/dev/null || echo refused",
        "(ulimit -f unlimited) 2>/dev/null || echo refused",
        "(nice -n -5 true) 2>&1 | grep -q . && echo refused",
        "chrt -f 1 true 2>/dev/null || echo refused",
        "taskset -c 0 true 2>/dev/null || echo refused",
        "ionice -c1 true 2>/dev/null || echo refused",
    ],
)
def test_more_of_the_machine_cannot_be_asked_for(place: SandboxPlace, script: str) -> None:
    assert attempt(place, script).lines == ["refused"]


def test_layers_of_others_are_not_reached(place: SandboxPlace, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "secret.o").write_text("secret of another variant")
    other.chmod(0o777)
    seen = attempt(
        place,
        "find / -xdev -name secret.o 2>/dev/null; find /mnt /build /tmp /proc/1/root -name secret.o 2>/dev/null; echo end",
    )
    assert seen.lines == ["end"]


def test_a_lower_layer_stays_as_it_was_whatever_is_done_to_its_files(tmp_path: Path) -> None:
    place = new_place(tmp_path)
    (tmp_path / "upper").mkdir()
    (tmp_path / "upper").chmod(0o777)
    for name in ("a.o", "b.o", "c.o"):
        (place.objects.lower / name).write_text(f"base {name}")
        (place.objects.lower / name).chmod(0o666)
    place = replace(place, objects=Layer(place.objects.lower, tmp_path / "upper"))
    seen = attempt(place, "echo bad >a.o; rm b.o; mv c.o d.o; rm -f d.o; ls")
    assert seen.lines == ["a.o"]
    assert {each.name: each.read_text() for each in place.objects.lower.iterdir()} == {
        name: f"base {name}" for name in ("a.o", "b.o", "c.o")
    }


def test_the_marks_of_layers_cannot_be_forged(place: SandboxPlace) -> None:
    script = """
    mknod white c 0 0 2>/dev/null && echo whiteout
    mkdir opaque; for name in user.overlay.opaque trusted.overlay.opaque user.overlay.redirect; do
        python3 -c 'import os, sys; os.setxattr("opaque", sys.argv[1], b"y")' $name 2>/dev/null && echo $name
    done
    echo end
    """
    assert attempt(place, script).lines == ["end"]


@pytest.mark.parametrize("line", ["kperflab-sandbox:", "kperflab-sandbox:\n0m0.0s 0m0.0s\n0m0.0s 0m0.0s"])
def test_a_build_cannot_print_that_it_ended_well(place: SandboxPlace, line: str) -> None:
    seen = attempt(place, "printf '%s\\n' \"$1\"; exit 3", line)
    assert seen.ended.status == 3
    assert seen.ended.stopped == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a control group")
@pytest.mark.parametrize(
    "script",
    [
        "for i in 1 2 3 4 5 6; do python3 -c 'import time; x = b\"x\" * (80 << 20); time.sleep(8)' & done; wait",
        pytest.param("head -c 1500M /dev/zero >/tmp/fill", marks=pytest.mark.thorough),
        "for i in 1 2 3 4 5 6 7 8; do head -c 7M /dev/zero >/dev/shm/f$i; head -c 60M /dev/zero >/tmp/f$i; done",
    ],
)
def test_memory_of_all_processes_and_files_in_memory_is_limited(
    place: SandboxPlace, tmp_path: Path, script: str
) -> None:
    limits = replace(LIMITS, total_memory=256 << 20, seconds=60)
    seen = attempt(place, f"{script}; exit 1", limits=limits)
    assert seen.ended.out_of_memory
    with pytest.raises(BuildOutOfMemory):
        refuse_lacks(seen.ended, seen.lines, limits, what="the build", home=tmp_path)


def test_memory_behind_dev_is_small(place: SandboxPlace) -> None:
    seen = attempt(
        place,
        "head -c 200M /dev/zero >/dev/shm/f 2>/dev/null; stat -c %s /dev/shm/f; touch /dev/x 2>/dev/null || echo refused",
    )
    assert int(seen.lines[0]) <= 64 << 20
    assert seen.lines[1] == "refused"


def test_an_exception_of_the_lab_ends_the_build(place: SandboxPlace) -> None:
    def refuse(line: str) -> None:
        raise KeyError(line)

    with pytest.raises(KeyError):
        run(["sh", "-c", f"echo x; sleep {own(4716)}"], place, ENVIRONMENT, LIMITS, on_line=refuse)
    assert gone(4716)
