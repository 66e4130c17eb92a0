# SPDX-License-Identifier: GPL-2.0-or-later
"""Query BMCs in a separate process for each question, which is killed at its deadline.

Run as a program it reads one question from its standard input and answers with one line. The password is read
there, and is nowhere else: not in an argument, not in the environment, not in our process. Only PATH of our
environment is passed on, so no proxy named in it is used for the BMC.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from lab.targets.access_schema import Access, IpmiPower, PowerAccess, RedfishPower
from workers.errors import BmcFailed, BmcRefused
from workers.power.base import SETTLE_S, STATE_DEADLINE_S, Power
from workers.power.ipmi import Ipmi
from workers.power.redfish import Redfish

ASK_DEADLINE_S = 60.0
CHANGE_DEADLINE_S = ASK_DEADLINE_S + STATE_DEADLINE_S + SETTLE_S
DEADLINES = {
    "is_on": ASK_DEADLINE_S,
    "turn_on": CHANGE_DEADLINE_S,
    "turn_off": CHANGE_DEADLINE_S,
    "boot_from_network": ASK_DEADLINE_S,
}
_TOP = Path(__file__).resolve().parents[2]


def power_of(access: Access) -> Power:
    """Return the power switch of a machine."""
    return Apart(access.power)


@dataclass(frozen=True, slots=True)
class Apart:
    """A Power whose BMC is asked in a process of its own."""

    access: RedfishPower | IpmiPower

    def is_on(self) -> bool:
        """See Power."""
        return bool(self._ask("is_on"))

    def turn_on(self) -> None:
        """See Power."""
        self._ask("turn_on")

    def turn_off(self) -> None:
        """See Power."""
        self._ask("turn_off")

    def boot_from_network(self) -> None:
        """See Power."""
        self._ask("boot_from_network")

    def _ask(self, what: str) -> Any:
        who = f"the BMC at {self.access.address}"
        question = json.dumps({"ask": what, "access": self.access.model_dump()})
        try:
            done = subprocess.run(
                [sys.executable, "-m", "workers.power.apart"],
                input=question,
                capture_output=True,
                text=True,
                timeout=DEADLINES[what],
                cwd="/",
                env=bare_environment(),
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise BmcFailed(f"{who} has not answered within {DEADLINES[what]:g} s") from None
        try:
            answer = json.loads(done.stdout.strip().rpartition("\n")[2])
        except ValueError:
            raise BmcFailed(
                f"{who} could not be asked: the process that asks it ended with {done.returncode}",
                done.stderr[-4000:],
            ) from None
        if "error" in answer:
            raise (BmcRefused if answer["error"] == "BmcRefused" else BmcFailed)(answer["message"])
        return answer["answer"]


def bare_environment() -> dict[str, str]:
    """Return the environment of a separate process: where programs and our code are."""
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "PYTHONPATH": str(_TOP), "LC_ALL": "C.UTF-8"}


def backend(access: RedfishPower | IpmiPower) -> Power:
    """Return the client for a BMC's protocol, in this process."""
    return Ipmi(access) if isinstance(access, IpmiPower) else Redfish(access)


def main() -> None:
    """Answer the question on standard input."""
    question = json.loads(sys.stdin.read())
    # A union is not a class: whether the type checker accepts it depends on its cache.
    spoken: Any = PowerAccess
    access: RedfishPower | IpmiPower = TypeAdapter(spoken).validate_python(question["access"])
    try:
        answer = {"answer": getattr(backend(access), question["ask"])()}
    except (BmcFailed, BmcRefused) as error:
        answer = {"error": type(error).__name__, "message": str(error)}
    print(json.dumps(answer), flush=True)
    # The libraries' threads are of no use any more, and one of them waits 300 s.
    os._exit(0)


if __name__ == "__main__":
    main()
