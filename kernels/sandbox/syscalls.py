# SPDX-License-Identifier: GPL-2.0-or-later
"""The system calls a build may make: an allow list, as a filter program for bwrap's --seccomp.

Compilers, shells, make and interpreters need files, memory, processes, time and pipes. A call that is not listed does not exist for a
build (ENOSYS, upon which libraries fall back); this includes calls that future kernels add. docs/design/sandbox.md argues the choice.
"""

import errno
import functools
import importlib
import os
import stat
import tempfile
from types import ModuleType

from kernels.errors import SandboxFailed

_ALLOWED = {
    "contents of files": """
        read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek sendfile copy_file_range splice
        tee open openat openat2 creat close close_range dup dup2 dup3 fcntl flock fsync fdatasync pipe pipe2 truncate
        ftruncate fallocate fadvise64 readahead""",
    "names and attributes of files": """
        stat fstat lstat newfstatat statx access faccessat faccessat2 readlink readlinkat statfs fstatfs getdents
        getdents64 getcwd chdir fchdir rename renameat renameat2 mkdir mkdirat rmdir unlink unlinkat link linkat symlink
        symlinkat chmod fchmod fchmodat chown fchown lchown fchownat umask utime utimes utimensat futimesat getxattr
        lgetxattr fgetxattr listxattr llistxattr flistxattr""",
    "waiting": """
        poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd
        eventfd2 signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime pause alarm setitimer getitimer
        nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time times timer_create timer_settime
        timer_gettime timer_getoverrun timer_delete restart_syscall""",
    "memory": "mmap munmap mremap mprotect madvise brk msync mlock munlock membarrier memfd_create",
    "processes and threads": """
        fork vfork execve execveat exit exit_group wait4 waitid prctl arch_prctl set_tid_address set_robust_list
        get_robust_list rseq futex sched_yield getcpu sched_getaffinity sched_getparam sched_getscheduler
        sched_get_priority_max sched_get_priority_min getpriority setpriority getrlimit setrlimit prlimit64 getrusage""",
    # Signals do not leave the PID namespace; without capabilities, a process can only switch to its own user.
    "signals and who one is": """
        kill tkill tgkill rt_sigaction rt_sigprocmask rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigpending
        rt_sigqueueinfo sigaltstack getpid getppid gettid getuid geteuid getgid getegid getresuid getresgid getgroups
        getsid getpgid getpgrp setsid setpgid setuid setgid setreuid setregid setresuid setresgid capget""",
    "the machine": "sysinfo uname getrandom",
    "sockets that were let through": """
        connect bind listen accept accept4 getsockname getpeername getsockopt setsockopt shutdown sendto recvfrom
        sendmsg recvmsg sendmmsg recvmmsg""",
}

# Refused like on file systems and kernels that lack the feature: programs expect these errors.
_REFUSED = {
    "setxattr": errno.EOPNOTSUPP,
    "lsetxattr": errno.EOPNOTSUPP,
    "fsetxattr": errno.EOPNOTSUPP,
    "removexattr": errno.EOPNOTSUPP,
    "lremovexattr": errno.EOPNOTSUPP,
    "fremovexattr": errno.EOPNOTSUPP,
}

# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. clone3 takes its flags in memory, where no filter sees
# them: it does not exist, and libraries use clone.
_CLONE_NEW = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_WORD = 0xFFFFFFFF
# The requests of isatty, ls, shells and cp. Not TIOCSTI and TIOCLINUX, which type into a terminal.
_IOCTLS = {
    "TCGETS": 0x5401,
    "TIOCGPGRP": 0x540F,
    "TIOCGWINSZ": 0x5413,
    "FIONREAD": 0x541B,
    "FIONBIO": 0x5421,
    "FIONCLEX": 0x5450,
    "FIOCLEX": 0x5451,
    "FICLONE": 0x40049409,
    "FICLONERANGE": 0x4020940D,
    "FS_IOC_FIEMAP": 0xC020660B,
}
_AF_UNIX = 1
_PER_LINUX, _PER_ASK = 0, 0xFFFFFFFF


@functools.cache
def filter_program() -> bytes:
    """Return the filter as the kernel's BPF. Raises SandboxFailed where libseccomp is missing or too old."""
    library = _library()
    allow = library.ALLOW
    rules = library.SyscallFilter(library.ERRNO(errno.ENOSYS))
    rules.set_attr(library.Attr.ACT_BADARCH, library.ERRNO(errno.ENOSYS))
    # A binary tree instead of a chain of comparisons; libseccomp 2.5 and later.
    rules.set_attr(library.Attr.CTL_OPTIMIZE, 2)
    for name in " ".join(_ALLOWED.values()).split():
        rules.add_rule(allow, name)
    for name, answer in _REFUSED.items():
        rules.add_rule(library.ERRNO(answer), name)
    rules.add_rule(allow, "clone", library.Arg(0, library.MASKED_EQ, _CLONE_NEW, 0))
    for request in _IOCTLS.values():
        # The kernel looks at 32 bits of it, so the filter must not compare 64.
        rules.add_rule(allow, "ioctl", library.Arg(1, library.MASKED_EQ, _WORD, request))
    for call in ("socket", "socketpair"):
        rules.add_rule(allow, call, library.Arg(0, library.MASKED_EQ, _WORD, _AF_UNIX))
    for persona in (_PER_LINUX, _PER_ASK):
        rules.add_rule(allow, "personality", library.Arg(0, library.MASKED_EQ, _WORD, persona))
    for call, position in (("mknod", 1), ("mknodat", 2)):
        for kind in (0, stat.S_IFREG, stat.S_IFIFO):
            rules.add_rule(allow, call, library.Arg(position, library.MASKED_EQ, 0o170000, kind))
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()


def filter_file() -> int:
    """Return a descriptor of a new file in memory that holds the filter, positioned at its start. Raises SandboxFailed."""
    program = filter_program()
    descriptor = os.memfd_create("kperflab-filter")
    os.write(descriptor, program)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _library() -> ModuleType:
    """Import the binding, which looks for the library when it is imported."""
    try:
        return importlib.import_module("pyseccomp")
    except (ImportError, RuntimeError, OSError, AttributeError) as exc:
        raise SandboxFailed(
            "the build sandbox filters system calls with libseccomp, which is missing; run: apt-get install libseccomp2",
            str(exc),
        ) from exc
