# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that keeps a BMC's Serial over LAN session open: what the machine prints goes to standard output.

Standard input: a line that names the BMC; the end of input closes the session. Standard error: "connected", or why not.
It is a separate process for the reasons that ipmi.py gives.
"""

import os
import select
import sys
from typing import Any

from pydantic import TypeAdapter
from pyghmi.exceptions import IpmiException
from pyghmi.ipmi.console import Console

from lab.targets.access_schema import IpmiPower, host_and_port
from workers.errors import BmcRefused
from workers.power.base import read_password
from workers.power.ipmi import obey_the_bmcs_choice

TURN_S = 0.5
LOGIN_TURNS = 60


def main() -> None:
    """Keep the session open until our input ends or the BMC closes it."""
    access = TypeAdapter(IpmiPower).validate_json(sys.stdin.buffer.readline())
    who = f"the console of the BMC at {access.address}"
    try:
        said = hold(access)
    except (BmcRefused, IpmiException, NotImplementedError, OSError) as error:
        said = str(error)
    print(f"{who}: {said or 'ended'}", file=sys.stderr, flush=True)
    os._exit(0)


def hold(access: IpmiPower) -> str:
    """Pass the output on; returns why it ended, "" if our input ended."""
    host, port = host_and_port(access.address)
    ends: list[str] = []

    def take(data: Any) -> None:
        if isinstance(data, dict):
            ends.extend(str(data["error"]) for _ in range("error" in data))
        else:
            os.write(1, bytes(data))

    obey_the_bmcs_choice()
    # force: disconnect another client of the line, since the machine is ours while we boot it.
    console = Console(host, access.user, read_password(access.password_file), take, port=port, force=True)
    is_connected, turns = False, 0
    while not ends:
        Console.wait_for_rsp(TURN_S)
        if console.connected and not is_connected:
            is_connected = True
            print("connected", file=sys.stderr, flush=True)
        turns += 1
        if not is_connected and turns > LOGIN_TURNS:
            return "no login within its time"
        if select.select([sys.stdin], [], [], 0)[0] and not sys.stdin.buffer.read(1):
            console.close()
            return ""
    return ends[0]


if __name__ == "__main__":
    main()
