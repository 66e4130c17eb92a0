# SPDX-License-Identifier: GPL-2.0-or-later
"""Step templates of a workload.toml, and the steps of one run that they become."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

from workloads.contention import THREADS, most_cpus
from workloads.guest.plan import Step, StepKind
from workloads.instruction_clock import Clock
from workloads.param import ParamValue, written
from workloads.passes import passes_of, symbols_of

Purpose = Literal["measured", "profiled", "verified"]
PURPOSES: tuple[Purpose, ...] = ("measured", "profiled", "verified")

COUNTED = "kperflab-timed"
"""The name of a verified run's threads in timed iterations, for the kernel's filters."""


@dataclass(frozen=True, slots=True)
class StepTemplate:
    """One step as workload.toml defines it; {names} in argv are parameters and facts of the run.

    repeat: the step runs once per iteration, for programs without iterations of their own.
    clocks: the clocks that it belongs to.
    control: the program takes the harness's control=, counted= and clock= arguments.
    deadline_s + deadline_us × (product of the parameters in deadline_work) × iterations is its deadline.
    """

    name: str
    kind: StepKind
    argv: tuple[str, ...]
    purposes: tuple[Purpose, ...]
    clocks: tuple[Clock, ...]
    send: tuple[str, ...]
    repeat: bool
    control: bool
    deadline_s: float
    deadline_us: float
    deadline_work: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Round:
    """The settings that the steps of one run share. off_cpu: a profiled run also records waits off the CPUs.

    exact: an exact profile, with the steps of a measured run; the guest is asked for its modules' symbols afterwards.
    """

    params: Mapping[str, ParamValue]
    iterations: int
    warmup: int
    purpose: Purpose
    clock: Clock = "wall"
    off_cpu: bool = False
    exact: bool = False


def steps_of(template: StepTemplate, this: Round) -> list[Step]:
    """Return the steps that a template becomes; none if it is not for the run's purpose and clock."""
    if this.purpose not in template.purposes or this.clock not in template.clocks:
        return []
    if not template.repeat:
        return _wrapped(template, this, _step(template, this, template.name, {}))
    steps = []
    for index in range(this.warmup + this.iterations):
        facts = {"iteration": str(index), "is_warmup": written(index < this.warmup)}
        step = _step(template, this, f"{template.name}-{index}", facts)
        steps += _wrapped(template, this, step) if index >= this.warmup else [step]
    return steps


def _step(template: StepTemplate, this: Round, name: str, facts: Mapping[str, str]) -> Step:
    names = {key: written(value) for key, value in this.params.items()}
    names |= {
        "iterations": str(this.iterations),
        "warmup": str(this.warmup),
        "purpose": this.purpose,
        **facts,
    }
    argv = [part.format_map(names) for part in template.argv]
    if template.control and this.purpose == "verified":
        argv.append(f"counted={COUNTED}")
    if template.control and this.clock != "wall":
        argv.append(f"clock={this.clock}")
    if template.control and this.clock == "contention":
        # If an argument occurs twice, programs use the last.
        argv.append(f"{THREADS}={most_cpus(this.params)}")
    return Step(
        name=name,
        argv=tuple(argv),
        deadline_s=_deadline(template, this),
        kind=template.kind,
        send=tuple(path.format_map(names) for path in template.send),
    )


def _deadline(template: StepTemplate, this: Round) -> float:
    # A profiled run repeats each timed iteration, unrecorded.
    timed = 2 * this.iterations if this.purpose == "profiled" else this.iterations
    times = 1 if template.repeat or template.kind != "measure" else timed + this.warmup + 1
    sizes = [this.params[name] for name in template.deadline_work]
    work = prod(size for size in sizes if isinstance(size, int)) if sizes else 0
    return template.deadline_s + times * work * template.deadline_us / 1e6


def _wrapped(template: StepTemplate, this: Round, step: Step) -> list[Step]:
    """Return a measured step as the passes of a profiled run; unchanged for other runs."""
    if template.kind == "measure" and (this.exact or this.clock == "contention"):
        return [step, symbols_of(step)]
    if template.kind != "measure" or this.purpose != "profiled":
        return [step]
    hz = written(this.params["profile_hz"])
    return passes_of(step, harness=template.control, hz=hz, off_cpu=this.off_cpu)
