# SPDX-License-Identifier: GPL-2.0-or-later
"""The schema of Target.access, which says how a machine is reached; that of Target.tuning is workloads.guest.tuning.Tuning.

It never holds passwords, only the names of files with them, on the worker that uses them.
"""

import ipaddress
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from kernels.configs.request import fragment_names
from lab.errors import FieldRefused
from lab.validation_messages import fault_line, nearest
from workloads.guest.tuning import Tuning

IPMI_PORT = 623
# Tags of the unions below: pydantic puts them into its paths, where they are not fields.
_TAGS = frozenset({"redfish", "ipmi", "sol", "netconsole", "none"})

Word = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x20\x7f]+$")]
User = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]
Port = Annotated[StrictInt, Field(ge=1, le=65535)]


def _absolute(path: str) -> str:
    if not re.fullmatch(r"/[^\x00-\x1f\x7f]{1,500}", path):
        raise ValueError(f'"{path[:80]}" is not the absolute path of a file')
    return path


def _mac(address: str) -> str:
    if not re.fullmatch(r"([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}", address):
        raise ValueError(f'"{address[:80]}" is not the address of a network card; write 52:54:00:12:34:56')
    return address.lower()


AbsolutePath = Annotated[str, AfterValidator(_absolute)]
Mac = Annotated[str, AfterValidator(_mac)]
Shape = TypeVar("Shape", bound=BaseModel)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RedfishPower(_Part):
    """A BMC that speaks Redfish. address: https://host[:port]. system: its Id or path, "" for the only one.

    verify: whether its certificate is checked, or by which CA's file.
    """

    kind: Literal["redfish"]
    address: Word
    user: User
    password_file: AbsolutePath
    system: Annotated[str, StringConstraints(max_length=200, pattern=r"^[A-Za-z0-9._/:-]*$")] = ""
    verify: StrictBool | str = True

    @field_validator("verify", mode="before")
    @classmethod
    def _is_a_choice_or_a_file(cls, verify: object) -> object:
        if isinstance(verify, bool):
            return verify
        if not isinstance(verify, str) or not verify.startswith("/"):
            raise ValueError(
                f"{verify!r:.80} is not valid; write true, false or the absolute path of a CA's file"
            )
        return _absolute(verify)

    @model_validator(mode="after")
    def _keeps_its_password_secret(self) -> Self:
        url = _url(self.address)
        if url.scheme == "http" and self.verify is not False:
            raise ValueError(
                "http:// sends the password in the clear; write https://, or verify = false to accept that"
            )
        return self

    @field_validator("address")
    @classmethod
    def _is_an_address(cls, address: str) -> str:
        url = _url(address)
        if url.scheme not in {"http", "https"} or not url.hostname:
            raise ValueError(
                f'"{address}" is not the address of a BMC; write https://host or https://host:port'
            )
        if url.username or url.password:
            raise ValueError("an address must not contain a user or a password; give user and password_file")
        if url.path.strip("/") or url.query or url.fragment:
            raise ValueError(f'"{address}" continues after the host; put the path of the machine into system')
        return address.rstrip("/")


class IpmiPower(_Part):
    """A BMC that speaks IPMI 2.0 over LAN. address: host or host:port."""

    kind: Literal["ipmi"]
    address: Word
    user: User
    password_file: AbsolutePath

    @field_validator("address")
    @classmethod
    def _is_an_address(cls, address: str) -> str:
        host_and_port(address)
        return address


class SolConsole(_Part):
    """The serial line that the BMC passes on (IPMI Serial over LAN), and what the kernel calls it.

    address, user, password_file: of the BMC; without them, those of power, which is IPMI then.
    """

    kind: Literal["sol"]
    line: Annotated[str, StringConstraints(pattern=r"^ttyS[0-9](,[0-9]{4,7}[noe]?[78]?)?$")] = (
        "ttyS0,115200n8"
    )
    address: Word | None = None
    user: User | None = None
    password_file: AbsolutePath | None = None

    @field_validator("address")
    @classmethod
    def _is_an_address(cls, address: str | None) -> str | None:
        if address is not None:
            host_and_port(address)
        return address


class NetConsole(_Part):
    """The kernel's own messages as datagrams. address: the machine's; device: its card, as the kernel numbers them.

    to, port: where the lab listens, and the machine sends to.
    """

    kind: Literal["netconsole"]
    address: Word
    to: Word
    port: Port = 6666
    device: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]{1,15}$")] = "eth0"

    @field_validator("address", "to")
    @classmethod
    def _is_ipv4(cls, address: str) -> str:
        try:
            return str(ipaddress.IPv4Address(address))
        except ValueError:
            raise ValueError(f'"{address}" is not an IPv4 address; the kernel looks up no names') from None


class NoConsole(_Part):
    """No console: the kernel's output is not seen."""

    kind: Literal["none"] = "none"


PowerAccess = Annotated[RedfishPower | IpmiPower, Field(discriminator="kind")]
ConsoleAccess = Annotated[SolConsole | NetConsole | NoConsole, Field(discriminator="kind")]


class Access(_Part):
    """The access to a real machine. mac: of the card it boots from; fragments: additional config for its kernels.

    kexec: after a successful boot it stays on, and that boot's kernel starts the next one, without the firmware.
    address: the IPv4 address that DHCP reserves for it, "" if it reserves none; no other address is served or accepted.
    """

    mac: Mac
    power: PowerAccess
    console: ConsoleAccess = NoConsole()
    fragments: tuple[str, ...] = ("metal",)
    kexec: StrictBool = False
    address: Annotated[str, StringConstraints(max_length=15)] = ""

    @field_validator("address")
    @classmethod
    def _is_ipv4(cls, address: str) -> str:
        try:
            return str(ipaddress.IPv4Address(address)) if address else ""
        except ValueError:
            raise ValueError(f'"{address}" is not an IPv4 address') from None

    @field_validator("fragments")
    @classmethod
    def _are_ours(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        known = fragment_names()
        for name in names:
            if name not in known:
                raise ValueError(f'there is no config fragment "{name}"; {nearest(name, known)}')
        return names

    @model_validator(mode="after")
    def _knows_the_bmc_of_its_console(self) -> Self:
        console = self.console
        if isinstance(console, SolConsole):
            present = [field is not None for field in (console.address, console.user, console.password_file)]
            if any(present) and not all(present):
                raise ValueError("console: give address, user and password_file, or none of them")
            if not any(present) and self.power.kind != "ipmi":
                raise ValueError(
                    "console: its address, user and password_file are missing: power is not IPMI"
                )
        return self

    def sol(self) -> IpmiPower:
        """The BMC that passes on the serial line; only for a console of kind "sol"."""
        console, power = self.console, self.power
        if isinstance(console, SolConsole) and console.address and console.user and console.password_file:
            return IpmiPower(
                kind="ipmi", address=console.address, user=console.user, password_file=console.password_file
            )
        if not isinstance(power, IpmiPower):
            raise FieldRefused("access.console", "its address, user and password_file are missing")
        return power


def read_access(access: Mapping[str, Any]) -> Access:
    """Return how a metal machine is reached. Raises FieldRefused for the first wrong field, "access.power.address"."""
    return _read(Access, access, "access")


def read_tuning(tuning: Mapping[str, Any]) -> Tuning:
    """Return what a machine is tuned to; {} is nothing. Raises FieldRefused, as for "tuning.governor"."""
    return _read(Tuning, tuning, "tuning")


def host_and_port(address: str) -> tuple[str, int]:
    """Split "host", "host:port" and "[v6]:port". Raises ValueError."""
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):?([0-9]{1,5})?", address)
    if not match or not 0 < int(match[3] or IPMI_PORT) < 65536 or address.endswith(":"):
        raise ValueError(f'"{address}" is not the address of a BMC; write host, host:port or [v6]:port')
    return match[1] or match[2], int(match[3] or IPMI_PORT)


def _read(shape: type[Shape], values: Mapping[str, Any], name: str) -> Shape:
    try:
        return shape.model_validate(values)
    except ValidationError as error:
        fault = _plain_fault(dict(error.errors(include_url=False)[0]))
        inside = len(fault["loc"]) > (fault["type"] == "extra_forbidden")
        line = fault_line(fault, shape).removeprefix("the description: ")
        raise FieldRefused(name, f"{name}{'.' if inside else ': '}{line}", fault["loc"]) from None


def _plain_fault(fault: dict[str, Any]) -> dict[str, Any]:
    """Return a fault of pydantic's, those of its unions turned into faults of the field `kind`."""
    loc = tuple(part for part in fault["loc"] if part not in _TAGS)
    if fault["type"] == "union_tag_not_found":
        return fault | {"type": "missing", "loc": (*loc, "kind")}
    if fault["type"] == "union_tag_invalid":
        context = {"expected": fault["ctx"]["expected_tags"]}
        return fault | {
            "type": "literal_error",
            "loc": (*loc, "kind"),
            "input": fault["ctx"]["tag"],
            "ctx": context,
        }
    return fault | {"loc": loc}


def _url(address: str) -> Any:
    try:
        url = urlsplit(address)
        url.port  # noqa: B018  raises where it is none
    except ValueError as error:
        raise ValueError(f'"{address}" is not an address: {error}') from None
    return url
