# SPDX-License-Identifier: GPL-2.0-or-later
"""A perf.data of this machine's own kernel under a mixed load, and the symbols to read it with.

The lab's guests run one workload each, and their profiles have some hundred nodes; a tree of tens of thousands needs files,
pipes, sockets, mappings, processes and threads at once. `-e cpu-clock:k` takes samples of kernel code alone: each has a callchain.
"""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

LEAST_SAMPLES = 150_000
HERTZ = 20_000
DEADLINE_S = 600.0
LOAD = r"""
set -u
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
tar cf - /usr/include 2>/dev/null | tar xf - -C "$d"
find "$d" -type f -exec stat -c %s {} + >/dev/null
for i in 1 2 3; do find /usr /etc -xdev >/dev/null 2>&1; ls -lR /usr/share/doc >/dev/null; done
for i in $(seq 150); do /bin/true; /bin/cat /proc/self/maps /proc/meminfo /proc/stat >/dev/null; done
dd if=/dev/zero of="$d/big" bs=64k count=3000 2>/dev/null; sync "$d/big"; dd if="$d/big" bs=512 of=/dev/null 2>/dev/null
grep -r zzzz /usr/include >/dev/null
"$1" - "$d" <<'END'
import mmap, os, select, socket, sys, threading
directory = sys.argv[1]
one, other = socket.socketpair()
for _ in range(20000):
    one.send(b"x" * 100), other.recv(100)
server = socket.create_server(("127.0.0.1", 0))
for _ in range(1500):
    with socket.create_connection(server.getsockname()) as near, server.accept()[0] as far:
        near.sendall(b"y" * 3000), far.recv(4096)
for number in range(6000):
    name = f"{directory}/f{number}"
    open(name, "w").close(), os.rename(name, name + "x"), os.stat(name + "x"), os.unlink(name + "x")
end, start = os.pipe()
for _ in range(30000):
    os.write(start, b"z"), os.read(end, 1)
for _ in range(200):
    with mmap.mmap(-1, 1 << 20) as memory:
        for at in range(0, 1 << 20, 4096):
            memory[at] = 1
for _ in range(60):
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
threads = [threading.Thread(target=lambda: [os.sched_yield() for _ in range(20000)]) for _ in range(4)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
poll = select.epoll()
poll.register(end)
for _ in range(10000):
    poll.poll(0)
END
"""


@dataclass(frozen=True, slots=True)
class Recording:
    """A perf.data and the symbols of its kernel, in the form of a System.map."""

    perf_data: Path
    system_map: Path


def record(home: Path, *, times: int = 1) -> Recording:
    """Record the load on this machine, so many times over. Raises CalledProcessError where perf may not record."""
    home.mkdir(parents=True, exist_ok=True)
    made = Recording(home / "perf.data", home / "System.map")
    load = home / "load.sh"
    load.write_text(LOAD)
    print(f"recording {HERTZ} samples a second of a mixed load on this machine", file=sys.stderr)
    perf = ["perf", "record", "-q", "-a", "-g", "-F", str(HERTZ), "-e", "cpu-clock:k", "--kernel-callchains"]
    perf += ["--no-buildid", "--no-buildid-cache", "-o", str(made.perf_data), "--"]
    rounds = ["sh", "-c", f'for i in $(seq {times}); do sh "$0" "$1"; done', str(load), sys.executable]
    subprocess.run(
        [*perf, *rounds], check=True, timeout=DEADLINE_S, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    # The names of modules' symbols are followed by their module's.
    symbols = Path("/proc/kallsyms").read_text().splitlines()
    made.system_map.write_text("".join(" ".join(line.split()[:3]) + "\n" for line in symbols))
    return made
