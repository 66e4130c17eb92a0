# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors between an artifact and its samples, each with the party at fault.

`str(error)` is one line for people, `detail` the long part (a console's tail, a log). What a kernel does to itself is
an Outcome: a row of the lab with a word of its own, never a crash of ours.
"""

from typing import ClassVar, Literal

Blame = Literal["submission", "kernel", "lab"]


class WorkersError(Exception):
    """The base of this package's errors."""

    blame: ClassVar[Blame] = "lab"
    retry: ClassVar[bool] = False
    # A fault of the lab counts against its target, unless something other than the target can cause it.
    spares_target: ClassVar[bool] = False

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(" ".join(message.split()))
        self.detail = detail


# What the kernel did


class KernelOutcome(WorkersError):
    """A run that ended otherwise than by finishing, by the kernel's doing; `detail` has the console's last lines."""

    blame = "kernel"
    outcome: ClassVar[str] = "boot-failed"


class BootFailed(KernelOutcome):
    """No sign of life from the guest's user space within the boot deadline."""


class WrongKernel(KernelOutcome):
    """The guest runs, but `uname -r` is not that of the artifact it was given."""

    outcome = "wrong-kernel"


class GuestPanicked(KernelOutcome):
    """The console shows a panic, or the guest reset or ended itself; a machine that vanished in a run's last attempt counts as such."""

    outcome = "panicked"


class GuestHung(KernelOutcome):
    """The guest lives, but its plan did not end by the run's deadline."""

    outcome = "hung"


class GuestSilent(KernelOutcome):
    """The guest has missed its heartbeats."""

    outcome = "hung"


class GuestEndless(KernelOutcome):
    """The guest sent more records than any plan needs."""

    outcome = "workload-failed"


# What the lab lacks


class TargetLost(WorkersError):
    """The machine was not started, was not reached, or went away in the middle: how the run would have ended is not known.

    A machine that is on did not fetch what it is to boot, or stopped answering.
    """

    retry = True


class TargetVanished(TargetLost):
    """The machine has stopped, because of its kernel or for another reason: from outside this cannot be decided.

    A kernel can turn its machine off or crash its QEMU at will, so this never counts against the target. It is retried,
    since power is not lost in every boot; if the last attempt ends like this as well, the kernel did it.
    """

    spares_target = True


class TargetUnready(WorkersError):
    """Its target could boot nothing at all: no boot was begun, and the run waits as it did before.

    The target does not exist, its `access` makes no sense to its driver, or QEMU's user may not read a file of the guest.
    """


class LibvirtMissing(TargetUnready):
    """No libvirt daemon answers; names the command that starts it."""


class DomainRefused(TargetLost):
    """libvirt would not start the guest; the message is its own."""


class BootDiscarded(WorkersError):
    """Recordings that the full or failing disk of the state root lost, or records of a netboot with requests from two addresses."""

    retry = True
    spares_target = True


class MachineUnfit(WorkersError):
    """A machine that cannot do what is asked of it; the message names what is wrong or missing, and the way out.

    A program that is not installed, a port that is taken, too little room, no broker, or settings that make no boot possible.
    """


class ProfileUnreadable(WorkersError):
    """A perf.data that is damaged, or not what `perf record` writes: the guest wrote it; an outcome of the run."""

    blame = "kernel"


class PluginUnusable(WorkersError):
    """QEMU's plugin does not compile, or this QEMU takes no plugins: boots that need it fail, and no others."""

    spares_target = True


class TraceUnreadable(WorkersError):
    """Recorded accesses that are cut short, garbled or more than can be replayed; they follow from what a guest did."""

    blame = "kernel"


class ReplayFailed(WorkersError):
    """The replay program does not compile, or ended otherwise than with its result."""


class ReplayTooSlow(ReplayFailed):
    """The replay did not end by its deadline."""

    retry = True


class ClaimLost(WorkersError):
    """The build or run being worked on was cancelled, or given to another worker."""


class SourceMissing(WorkersError):
    """A build's commit that this machine can get from nowhere."""


class BmcFailed(WorkersError):
    """A BMC does not answer in time, asks to retry, or did not carry out what it accepted; the text omits its password."""

    retry = True


class BmcRefused(WorkersError):
    """A BMC refuses: a wrong user or password, no such machine, a certificate that is not trusted.

    Also raised if its password cannot be read on this worker.
    """


class ServiceFailed(WorkersError):
    """A program of the service that does not come up; `detail` has the end of its log."""


class ServiceDown(WorkersError):
    """The service is not up."""
