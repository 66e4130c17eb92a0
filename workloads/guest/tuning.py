# SPDX-License-Identifier: GPL-2.0-or-later
"""Tuning of a machine before it measures: the settings, and the words on its kernel's command line.

The agent (agent/tune.c) does the rest, and says in its hello what the machine is like then.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, StrictBool, StringConstraints, field_validator

MOST_CPU = 8191
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")
# Of what a machine says of one setting, so much is read.
LONGEST = 256


class Tuning(BaseModel):
    """The settings of a machine; an unset field keeps the machine's default.

    governor: of cpufreq, on every CPU. turbo: whether CPUs may go beyond their base frequency. smt: whether
    sibling threads are on. isolcpus: CPUs that the scheduler leaves alone, "1-3,5". irq_affinity: CPUs that
    serve interrupts. hugepages: transparent huge pages.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    governor: Annotated[str, StringConstraints(min_length=1, max_length=30, pattern=r"^[a-z_]+$")] | None = (
        None
    )
    turbo: StrictBool | None = None
    smt: StrictBool | None = None
    isolcpus: str | None = None
    irq_affinity: str | None = None
    hugepages: Literal["always", "madvise", "never"] | None = None

    @field_validator("isolcpus", "irq_affinity")
    @classmethod
    def _is_a_list_of_cpus(cls, text: str | None) -> str | None:
        for part in text.split(",") if text is not None else ():
            match = re.fullmatch(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", part)
            if not match or not int(match[1]) <= int(match[2] or match[1]) <= MOST_CPU:
                raise ValueError(f'"{text}" is not a list of CPUs; write 1-3,5')
        return text

    def asked(self) -> dict[str, str]:
        """Return the requested settings by name, as the kernel writes them."""
        words = {True: "on", False: "off"}
        settings = {name: value for name, value in self.model_dump().items() if value is not None}
        return {
            name: words[value] if isinstance(value, bool) else str(value) for name, value in settings.items()
        }

    def cmdline(self) -> str:
        """Words of the kernel's command line: what only it can ask for, and what the agent is asked for."""
        words = []
        if self.isolcpus:
            words.append(f"isolcpus=domain,managed_irq,{self.isolcpus}")
        if self.irq_affinity:
            # Interrupts that come into being after the agent has run obey this one alone.
            words.append(f"irqaffinity={self.irq_affinity}")
        agents = {name: value for name, value in self.asked().items() if name != "isolcpus"}
        return " ".join([*words, *(f"kperflab.{name}={value}" for name, value in agents.items())])


def untuned(asked: Mapping[str, str], state: Mapping[str, Any]) -> list[str]:
    """A line for each setting that is not as asked; state: what the agent's hello says under `tuning`."""
    lines = []
    for name, wanted in asked.items():
        actual = str(state.get(name, ""))[:LONGEST]
        if name in {"isolcpus", "irq_affinity"}:
            same = _cpus(actual) == _cpus(wanted)
        elif name == "smt" and wanted == "off":
            # A machine without siblings has nothing to say.
            same = actual in {"", "off"}
        else:
            same = actual == wanted
        if not same:
            lines.append(f"{name}: asked {wanted}, is {actual[:60] or 'unknown to its kernel'}")
    return lines


def _cpus(text: str) -> set[int] | None:
    """The CPUs of "0,2-3"; nothing if it is no such list."""
    cpus: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            return None
        low, high = match.groups()
        cpus |= set(range(int(low), min(int(high or low), 1 << 16) + 1))
    return cpus
