# SPDX-License-Identifier: GPL-2.0-or-later
"""Carries out health checks: the same way as a run, from artifact to readings, for a row of its own."""

import logging
import statistics
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from kernels.artifacts.store import Artifact
from kernels.files.scratch import remove_leftovers, scratch
from lab.models import HealthCheck, Target
from lab.one_line import error_line
from lab.targets.access_schema import read_tuning
from lab.targets.drivers import is_guest
from lab.targets.health_checks import (
    HELD_S,
    ITERATIONS,
    PRESET,
    WARMUP,
    WORKLOAD,
    Checked,
    claim_check,
    due_checks,
    hold_check,
    known_kernel,
    leave_check,
    record_check,
)
from workers.accelerator import choose_accelerator, is_trusted
from workers.artifact_transfer import at_hand
from workers.bench import make_bench
from workers.boot_request import Job, boot_request
from workers.collect.dmesg import FATAL, scan_console
from workers.collect.fromguest import Sent, read_guest
from workers.drivers.base import Machine
from workers.lease import SILENT_S
from workers.machine_turns import turn
from workers.repeating import repeating
from workers.run import OURS, Bench, boot, tuned_as_asked
from workloads.catalog import load_catalog

log = logging.getLogger(__name__)


def check_due(name: str) -> bool:
    """Check a target if it is due and not booting; return False otherwise."""
    return bool(due_checks(name=name)) and check_target(name) is not None


def check_target(name: str, *, force: bool = False) -> HealthCheck | None:
    """Check a target; None if it is not due, or boots. force: due or not, in quarantine too."""
    driver = Target.objects.filter(name=name).values_list("driver", flat=True).first() or ""
    with turn(settings.HOME, "alone" if is_guest(driver) else "free"):
        target = claim_check(name, force=force)
        if target is None:
            return None
        try:
            checked = _checked(target, make_bench(settings.HOME))
        except OURS as exc:
            checked = Checked(False, str(exc))
        except Exception as exc:
            log.exception("the check of %s failed, by the lab's fault", name)
            said = error_line(exc)
            checked = Checked(False, f"the lab failed here: {type(exc).__name__}: {said}")
        except BaseException:
            # As when a worker is restarted. Without an answer of the database the reservation ends by itself.
            with suppress(DatabaseError, InterfaceError):
                leave_check(target.pk)
            raise
        row = record_check(target.pk, checked)
    log.info("target %s was checked: %s", name, checked.problem or f"{checked.metric} {checked.value}")
    return row


class _Reservation:
    """A target reserved for a check, renewed while the check gives signs of life."""

    def __init__(self, target_id: int) -> None:
        self._target_id = target_id
        self._beaten_at = monotonic()
        self._stuck = False

    def beat(self) -> None:
        """Take a sign of life. A check without one for SILENT_S is stuck, and loses its target."""
        self._beaten_at = monotonic()

    def hold(self) -> None:
        """Renew the reservation."""
        self._stuck = self._stuck or monotonic() - self._beaten_at >= SILENT_S
        if not self._stuck:
            hold_check(self._target_id)


@contextmanager
def _reserved(target_id: int) -> Iterator[_Reservation]:
    """Renew a target's reservation in a thread, because a machine's firmware may take longer than it lasts."""
    reservation = _Reservation(target_id)
    with ExitStack() as stack:
        # Nobody else would see what is written in a transaction.
        if not connection.in_atomic_block:
            stack.enter_context(repeating("holding a target", reservation.hold, every_s=HELD_S / 6))
        yield reservation


def _checked(target: Target, bench: Bench) -> Checked:
    checks = bench.home / "checks"
    remove_leftovers(checks)
    key = known_kernel(target)
    with (
        _reserved(target.pk) as reservation,
        at_hand(bench.home, key, reservation.beat) as artifact,
        scratch(checks) as directory,
    ):
        job = _job(target, artifact, bench)
        request = boot_request(job, artifact, bench.home, directory)
        answers = boot(request, job.plan, bench.drivers[target.driver], reservation)
        sent = Sent(directory, WORKLOAD, iterations=ITERATIONS, warmup=WARMUP)
        readings = read_guest(sent, artifact, bench.home).readings
        tuned = tuned_as_asked(job.tuning, answers.environment)
        problem = _problem(request.console, tuned)
    metric = next(candidate for candidate in job.workload.metrics.values() if candidate.primary)
    values = [
        iteration.values[metric.name]
        for iteration in readings.iterations
        if not iteration.warmup and metric.name in iteration.values
    ]
    known = {"artifact_key": key, "release": artifact.metadata.release, "unit": metric.unit}
    return Checked(
        ok=not problem,
        problem=problem,
        metric=f"{WORKLOAD} {metric.name}",
        value=statistics.median(values) if values else None,
        environment={**answers.environment, **tuned, **known},
    )


def _job(target: Target, artifact: Artifact, bench: Bench) -> Job:
    workload = load_catalog()[WORKLOAD]
    plan = workload.plan(workload.resolve(PRESET, {}), iterations=ITERATIONS, warmup=WARMUP)
    guest, trusted = is_guest(target.driver), is_trusted(artifact.metadata)
    accelerator = choose_accelerator(bench.home, artifact.boot_vmlinux, trusted=trusted) if guest else "none"
    machine = Machine(target.vcpus, target.memory_mib, accelerator)
    tuning = read_tuning(target.tuning)
    # Its figure is compared over months, so it always boots the way that every machine has.
    return Job(
        f"check of {target.name}", workload, plan, machine, target.name, target.access, tuning, "power"
    )


def _problem(console: Path, tuned: Mapping[str, Any]) -> str:
    """Return what was wrong with a boot that ended well."""
    untuned = tuned.get("tuning", {}).get("untuned", [])
    if untuned:
        return f"the machine was not tuned: {untuned[0]}"
    with suppress(FileNotFoundError):
        bad = [finding.title for finding in scan_console(console.read_bytes()) if finding.kind in FATAL]
        return f"its known-good kernel complained: {bad[0]}" if bad else ""
    return ""
