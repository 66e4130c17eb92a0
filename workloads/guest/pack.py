# SPDX-License-Identifier: GPL-2.0-or-later
"""Packs a plan into the second cpio, which the kernel unpacks over the initramfs.

/plan/plan, read by `agent/plan.c`; every string is framed by its length, so nothing is quoted:

    KPLAN 1
    step <deadline in ms> <arguments> <files to send>
    <length> <kind>, <length> <name>, then arguments and files to send, one string a line
    end
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

from workloads.errors import CaseRejected
from workloads.guest.cpio import Archive
from workloads.guest.plan import GUEST_FILES, Plan, Step

_MAGIC = b"KPLAN 1\n"
# A line of numbers is shorter.
_MAX_HEAD = 200
MAX_NAME = 200
"""The agent's record header has room for so many bytes of a name."""


def pack_plan(plan: Plan, files: Mapping[str, bytes]) -> bytes:
    """The cpio with the plan and, in /plan/files, the files that its steps use.

    Files are executable. Raises CaseRejected.
    """
    archive = Archive()
    steps = b"".join(_step(step) for step in plan.steps)
    archive.file("/plan/plan", _MAGIC + steps + b"end\n", 0o444)
    for name, content in files.items():
        if not name or "/" in name or name in {".", ".."}:
            raise CaseRejected(f'a plan\'s file needs a plain name, not "{name}"')
        archive.file(str(GUEST_FILES / name), content, 0o555)
    return archive.pack()


def append_plan(initramfs: Path, plan: bytes, to: Path, between: bytes = b"") -> None:
    """Write initramfs and plan in a row to one file, the initrd of a run. between: a further archive."""
    # Forty megabytes a boot: the kernel copies them.
    shutil.copyfile(initramfs, to)
    with to.open("ab") as file:
        file.write(bytes(-file.tell() % 4) + between + bytes(-len(between) % 4) + plan)


def read_steps(initrd: Path) -> tuple[Step, ...]:
    """The steps that an initrd's plan tells, as the agent reads them. Raises CaseRejected where there is none."""
    data = initrd.read_bytes()
    start = data.rfind(_MAGIC)
    if start < 0:
        raise CaseRejected(f"{initrd} holds no plan")
    rest = memoryview(data)[start + len(_MAGIC) :]
    steps = []
    while bytes(rest[:4]) != b"end\n":
        head, rest = _line(rest)
        word, deadline_ms, arguments, sent = head.split()
        if word != b"step":
            raise CaseRejected(f"{initrd} holds a damaged plan")
        texts = []
        for _ in range(2 + int(arguments) + int(sent)):
            text, rest = _framed(rest)
            texts.append(text)
        kind, name, *others = texts
        argv, send = others[: int(arguments)], others[int(arguments) :]
        steps.append(Step(name, tuple(argv), int(deadline_ms) / 1000, kind, tuple(send)))  # type: ignore[arg-type]
    return tuple(steps)


def _line(data: memoryview) -> tuple[bytes, memoryview]:
    end = bytes(data[:_MAX_HEAD]).index(b"\n")
    return bytes(data[:end]), data[end + 1 :]


def _framed(data: memoryview) -> tuple[str, memoryview]:
    length, blank, _ = bytes(data[:_MAX_HEAD]).partition(b" ")
    start = len(length) + len(blank)
    end = start + int(length)
    return bytes(data[start:end]).decode(), data[end + 1 :]


def _step(step: Step) -> bytes:
    if not step.argv or not step.argv[0]:
        raise CaseRejected(f'step "{step.name}" runs no program')
    if step.deadline_s <= 0:
        raise CaseRejected(f'step "{step.name}" has no time: its deadline is {step.deadline_s} s')
    for name in (step.name, *step.send):
        _check_name(name)
    head = f"step {max(1, round(step.deadline_s * 1000))} {len(step.argv)} {len(step.send)}\n"
    return head.encode() + b"".join(map(_string, (step.kind, step.name, *step.argv, *step.send)))


def _check_name(name: str) -> None:
    """Names stand in record headers, between blanks."""
    if not name or len(name.encode()) > MAX_NAME or not name.isprintable() or " " in name:
        raise CaseRejected(f'"{name}" cannot name a step or file: 1 to {MAX_NAME} bytes without blanks')


def _string(text: str) -> bytes:
    encoded = text.encode()
    if b"\0" in encoded:
        raise CaseRejected(f"a plan's arguments cannot hold a zero byte: {text!r}")
    return b"%d %s\n" % (len(encoded), encoded)
