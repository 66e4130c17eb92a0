# SPDX-License-Identifier: GPL-2.0-or-later
"""System calls that a build has no use for do not exist for it; those of compilers, shells and interpreters work."""

from __future__ import annotations

import errno
import importlib
import subprocess
from pathlib import Path
from typing import Any

import pyseccomp
import pytest

from kernels.errors import SandboxFailed
from kernels.sandbox import syscalls
from kernels.sandbox.command import run
from kernels.tests.inside import ENVIRONMENT, LIMITS, attempt, new_place

pytestmark = pytest.mark.process

SOURCE = Path(__file__).with_name("calls.c")
NATIVE, X32 = 0xC000003E, 0x40000000
OLD = 0x800000  # marks the 32-bit entry for calls.c

# What gives capabilities, looks into other processes, programs the kernel, or speaks to somebody outside.
FORBIDDEN = """
bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register io_setup io_submit ptrace
process_vm_readv process_vm_writev kcmp process_madvise pidfd_open pidfd_getfd pidfd_send_signal keyctl add_key
request_key unshare setns clone3 chroot pivot_root mount umount2 fsopen fsconfig fsmount fspick open_tree move_mount
mount_setattr name_to_handle_at open_by_handle_at fanotify_init fanotify_mark quotactl quotactl_fd swapon swapoff acct
init_module finit_module delete_module kexec_load kexec_file_load reboot syslog iopl ioperm modify_ldt adjtimex
clock_adjtime clock_settime settimeofday sethostname setdomainname vhangup lookup_dcookie nfsservctl uselib ustat sysfs
_sysctl mbind set_mempolicy migrate_pages move_pages get_mempolicy mincore memfd_secret setgroups setfsuid setfsgid
capset sched_setaffinity sched_setscheduler sched_setparam sched_setattr ioprio_set shmget shmat msgget semget mq_open
inotify_init inotify_init1 sync syncfs sync_file_range seccomp landlock_create_ruleset landlock_restrict_self
personality vmsplice remap_file_pages
"""
NEW = {
    "ns": 0x00020000,
    "cgroup": 0x02000000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
}
FAMILIES = {
    "inet": 2,
    "inet6": 10,
    "netlink": 16,
    "packet": 17,
    "key": 15,
    "alg": 38,
    "bluetooth": 31,
    "vsock": 40,
    "xdp": 44,
    "can": 29,
    "rds": 21,
    "tipc": 30,
    "nfc": 39,
    "llc": 26,
    "qipcrtr": 42,
    "inet-with-high-bits": 0x100000002,
    "inet-as-a-negative-word": 0xFFFFFFFF00000002,
}
IOCTLS = {
    "TIOCSTI": 0x5412,
    "TIOCLINUX": 0x541C,
    "TIOCSTI-with-high-bits": 0x500005412,
    "TIOCSCTTY": 0x540E,
    "TIOCSETD": 0x5423,
    "TIOCCONS": 0x541D,
    "NS_GET_PARENT": 0xB702,
    "KVM_CREATE_VM": 0xAE01,
    "FS_IOC_SETFLAGS": 0x40086602,
    "FS_IOC_FSSETXATTR": 0x401C5820,
    "UFFDIO_API": 0xC018AA3F,
    "SIOCGIFADDR": 0x8915,
}
WORK = {
    "getpid": "",
    "getuid": "",
    "uname": ":@",
    "sysinfo": ":@",
    "getrandom": ":@:16:0",
    "sched_getaffinity": ":0:128:@",
    "prlimit64": ":0:7:0:@",
    "eventfd2": ":0:0",
    "memfd_create": ":@:0",
    "pipe2": ":@:0",
    "epoll_create1": ":0",
    "mlock": ":@:4096",
    "clock_gettime": ":0:@",
    "getpriority": ":0:0",
    "capget": ":@:0",
}


def number(name: str) -> int:
    resolved: Any = pyseccomp.resolve_syscall(NATIVE, name)
    return int(resolved)


def every_call() -> list[str]:
    calls = [f"{name}:{number(name)}" + (":8" if name == "personality" else "") for name in FORBIDDEN.split()]
    calls += [f"clone-{name}:{number('clone')}:{bit | 17}" for name, bit in NEW.items()]
    calls += [f"socket-{name}:{number('socket')}:{family}:3" for name, family in FAMILIES.items()]
    calls += [f"socketpair-{name}:{number('socketpair')}:{family}:1:0:@" for name, family in FAMILIES.items()]
    calls += [f"ioctl-{name}:{number('ioctl')}:1:{request}:@" for name, request in IOCTLS.items()]
    calls += [f"x32-{name}:{X32 | number(name)}" for name in ("getpid", "ptrace", "bpf", "mount")]
    calls += [f"x32-{nr}:{X32 | nr}" for nr in range(512, 548, 5)]
    calls += [
        f"old-{name}:{OLD + nr}"
        for name, nr in {"getpid": 20, "ptrace": 26, "socketcall": 102, "bpf": 357}.items()
    ]
    calls += [f"new-{nr}:{nr}" for nr in (451, 457, 458, 460, 462, 470, 600, 1000, 100000)]
    calls += [
        f"mknod-{kind}:{number('mknod')}:@:{mode}:259"
        for kind, mode in {"block": 0o60666, "char": 0o20666}.items()
    ]
    calls += [
        f"mknodat-{kind}:{number('mknodat')}:3:@:{mode}:259"
        for kind, mode in {"block": 0o60666, "char": 0o20666}.items()
    ]
    calls += [f"work-{name}:{number(name)}{rest}" for name, rest in WORK.items()]
    return [*calls, f"xattr:{number('setxattr')}:@:@:@:0", f"fork:{number('clone')}:17"]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the result of each call in a sandbox: the name of the error, "" without one, or by which signal it was killed."""
    place = new_place(tmp_path_factory.mktemp("calls"))
    program = place.source.lower / "calls"
    subprocess.run(["gcc", "-O1", "-static", "-o", str(program), str(SOURCE)], check=True, timeout=60)
    program.chmod(0o755)
    lines: list[str] = []
    run(["/build/linux/calls", *every_call()], place, ENVIRONMENT, LIMITS, on_line=lines.append)
    results = {}
    for line in lines:
        name, answer, signal = line.split()
        text = errno.errorcode.get(int(answer), "") if answer.isdecimal() else answer
        results[name] = f"signal {signal}" if signal != "0" else text
    return results


def names(prefix: str) -> list[str]:
    return [call.split(":")[0] for call in every_call() if call.startswith(prefix)]


@pytest.mark.hostile
@pytest.mark.parametrize("name", FORBIDDEN.split())
def test_a_call_that_no_compiler_needs_does_not_exist(answers: dict[str, str], name: str) -> None:
    assert answers[name] == "ENOSYS"


@pytest.mark.hostile
@pytest.mark.parametrize("name", names("clone-"))
def test_a_process_in_a_new_namespace_cannot_be_made(answers: dict[str, str], name: str) -> None:
    assert answers[name] == "ENOSYS"


@pytest.mark.hostile
@pytest.mark.parametrize("name", [*names("socket-"), *names("socketpair-")])
def test_there_are_only_unix_sockets(answers: dict[str, str], name: str) -> None:
    assert answers[name] == "ENOSYS"


@pytest.mark.hostile
@pytest.mark.parametrize("name", names("ioctl-"))
def test_devices_and_terminals_are_told_nothing(answers: dict[str, str], name: str) -> None:
    assert answers[name] == "ENOSYS"


@pytest.mark.hostile
@pytest.mark.parametrize("name", [*names("x32-"), *names("old-"), *names("new-")])
def test_other_entries_to_the_kernel_and_calls_of_newer_ones_do_not_exist(
    answers: dict[str, str], name: str
) -> None:
    assert answers[name] == "ENOSYS"


@pytest.mark.hostile
@pytest.mark.parametrize("name", names("mknod"))
def test_device_nodes_cannot_be_made(answers: dict[str, str], name: str) -> None:
    assert answers[name] == "ENOSYS"


@pytest.mark.hostile
def test_attributes_of_files_cannot_be_set(answers: dict[str, str]) -> None:
    """Else a build could write the marks by which overlayfs knows what a layer hides."""
    assert answers["xattr"] in ("EOPNOTSUPP", "ENOTSUP")  # one number, two names


@pytest.mark.parametrize("name", [*names("work-"), "fork"])
def test_what_programs_need_works(answers: dict[str, str], name: str) -> None:
    assert answers[name] == ""


USUAL = {
    "a compiler": "echo 'int main(void) { return 0; }' >a.c && gcc -O2 -pipe a.c -o a && ./a && echo well",
    "make with jobs": "printf 'all: a b c\\n%%:\\n\\t@true\\n' >Makefile && make -j4 all && echo well",
    "a fifo": "mkfifo pipe && (echo well >pipe &) && cat pipe",
    "perl": "perl -e 'if (my $p = fork) { waitpid $p, 0; print \"well\\n\" }'",
    "python": 'python3 -c \'import subprocess, threading; subprocess.run(["true"], check=True); '
    't = threading.Thread(target=print, args=("well",)); t.start(); t.join()\'',
    "xz with threads": "head -c 100000 /dev/zero | xz -T2 | xz -d | wc -c | grep -q 100000 && echo well",
    "zstd with threads": "head -c 100000 /dev/zero | zstd -T2 -q | zstd -d | wc -c | grep -q 100000 && echo well",
    "openssl": "openssl req -config /dev/null -new -nodes -utf8 -sha256 -days 9 -batch -x509 -subj /CN=x -newkey rsa:2048 "
    "-keyout k -out c 2>/dev/null && echo well",
    "cp and install": "echo x >a && cp -a a b && install -m 644 b c && cmp a c && echo well",
    "tar": "echo x >a && tar -cf t a && rm a && tar -xf t && cat a | sed s/x/well/",
    "awk, sed, sort": "printf 'b\\na\\n' | sort | awk '{print NR $1}' | sed -n 's/1a/well/p'",
    "find and xargs": "touch a1 a2 && find . -name 'a?' -print0 | xargs -0 -n1 -P2 ls | wc -l | sed s/2/well/",
    "locks": "flock lock echo well",
    "timeout": "timeout 5 echo well",
    "objcopy and ar": "echo 'int x;' | gcc -c -xc - -o a.o && objcopy a.o b.o && ar rcs l.a b.o && nm l.a | grep -q x && echo well",
}


@pytest.mark.parametrize("what", USUAL)
def test_usual_programs_run_behind_the_filter(tmp_path: Path, what: str) -> None:
    assert attempt(new_place(tmp_path), f"cd /tmp && {USUAL[what]}").lines == ["well"]


def test_a_machine_without_libseccomp_is_told_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise RuntimeError("Unable to find libseccomp")

    monkeypatch.setattr(importlib, "import_module", missing)
    syscalls.filter_program.cache_clear()
    with pytest.raises(SandboxFailed, match="apt-get install libseccomp2"):
        attempt(new_place(tmp_path), "true")
    monkeypatch.undo()
    syscalls.filter_program.cache_clear()
