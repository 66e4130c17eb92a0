# SPDX-License-Identifier: GPL-2.0-or-later
"""Read a workload's folder: workload.toml and the scripts it names. Errors name the file and the entry."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from workloads.contention import Contending
from workloads.errors import BadParam, BadWorkloadFile
from workloads.instruction_clock import CLOCKS, FLOOR, TIMES
from workloads.metric import Metric
from workloads.param import Param
from workloads.step import PURPOSES, StepTemplate

_KEYS = {
    "summary", "program", "line", "config", "module", "params", "presets", "metrics", "steps", "disk", "verifies", "watch",
    "instructions", "contention", "kernel",
}  # fmt: skip
_TYPES = {"int", "bool", "choice", "str", "int-list"}
_KINDS = {"setup", "measure", "collect"}
# Every workload can be profiled; the rate decides how large the data grows. 997 is prime: it keeps
# step neither with the tick (250 Hz) nor with code that runs every millisecond.
_PROFILE_HZ = Param("profile_hz", "int", 997, "samples per second and CPU of a profiled run", 1, 20000)


@dataclass(frozen=True, slots=True)
class ModuleSource:
    """A kernel module that is built against each variant's tree: file names and their content.

    The result, `<name>.ko`, must be among the files that are packed with the plan.
    """

    name: str
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Counted:
    """The settings of a workload under the instruction clock.

    params: the values that its parameters must have there. unfit: why it does not run there at all; "" if it does.
    """

    params: Mapping[str, object]
    unfit: str


@dataclass(frozen=True, slots=True)
class Definition:
    """A folder's content, checked. kernel: parameters of the kernel, each with the workload's parameter that sets it unless 0."""

    name: str
    summary: str
    program: str
    line: str
    line_by: str
    config: tuple[str, ...]
    modules: tuple[ModuleSource, ...]
    params: Mapping[str, Param]
    presets: Mapping[str, Mapping[str, object]]
    metrics: tuple[Metric, ...]
    steps: tuple[StepTemplate, ...]
    disk: Mapping[str, str]
    kernel: Mapping[str, str]
    verifies: str
    watch: tuple[str, ...]
    counted: Counted
    contending: Contending | None
    parser: Path | None


def read_definition(folder: Path) -> Definition:
    """Return the definition in a folder. Raises BadWorkloadFile, which names the file and the entry."""
    file = folder / "workload.toml"
    try:
        data = tomllib.loads(file.read_text())
        if unknown := data.keys() - _KEYS:
            raise BadWorkloadFile(f"{file}: unknown entry {', '.join(sorted(unknown))}")
        params = {name: _param(name, entry) for name, entry in data["params"].items()} | {
            _PROFILE_HZ.name: _PROFILE_HZ
        }
        return Definition(
            name=folder.name,
            summary=data["summary"],
            program=data.get("program", folder.name),
            line=data.get("line", {}).get("text", ""),
            line_by=data["line"]["by"] if "line" in data else "",
            config=tuple(data.get("config", ())),
            modules=_modules(folder, data.get("module")),
            params=MappingProxyType(params),
            presets=MappingProxyType(data["presets"]),
            metrics=tuple(_metric(name, entry) for name, entry in data["metrics"].items()),
            steps=tuple(_step(folder, entry) for entry in data["steps"]),
            disk=MappingProxyType(data.get("disk", {})),
            kernel=_kernel(params, data.get("kernel", {})),
            verifies=data.get("verifies", ""),
            watch=tuple(data.get("watch", ())),
            counted=_counted(params, data.get("instructions")),
            contending=_contending(params, data.get("contention")),
            parser=next(iter(sorted(folder.glob("parse_*.py"))), None),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OSError, BadParam) as exc:
        what = f"entry {exc} is missing" if isinstance(exc, KeyError) else str(exc)
        raise BadWorkloadFile(f"{file}: {what}") from exc


def _only(name: str, entry: Mapping[str, Any], allowed: set[str]) -> None:
    if unknown := entry.keys() - allowed:
        raise ValueError(f"{name} has an unknown entry: {', '.join(sorted(unknown))}")


def _one_of(what: str, value: str, valid: set[str]) -> None:
    if value not in valid:
        raise ValueError(f"{what} is {value!r}, not one of {', '.join(sorted(valid))}")


def _param(name: str, entry: Mapping[str, Any]) -> Param:
    _only(name, entry, {"type", "default", "help", "min", "max", "choices"})
    _one_of(f"type of {name}", entry["type"], _TYPES)
    limits = {"minimum": entry.get("min", 0), "maximum": entry.get("max", 1 << 62)}
    param = Param(
        name,
        entry["type"],
        entry["default"],
        entry["help"],
        choices=tuple(entry.get("choices", ())),
        **limits,
    )
    # The default is text as in a file ("4Gi"); convert it to a value.
    return Param(name, param.type, param.read(param.default), param.help, choices=param.choices, **limits)


def _metric(name: str, entry: Mapping[str, Any]) -> Metric:
    _only(name, entry, {
        "unit", "better", "margin", "primary", "help", "each", "instructions", "instructions_margin",
    })  # fmt: skip
    _one_of(f"better of {name}", entry["better"], {"lower", "higher"})
    if "instructions" in entry:
        _one_of(f"unit of {name}, a counted metric,", entry["unit"], set(TIMES))
    return Metric(
        name=name,
        unit=entry["unit"],
        better=entry["better"],
        margin=float(entry["margin"]),
        primary=bool(entry.get("primary", False)),
        help=entry.get("help", ""),
        each=entry.get("each", ""),
        instructions=entry.get("instructions", ""),
        instructions_margin=float(entry.get("instructions_margin", FLOOR)),
    )


def _counted(params: Mapping[str, Param], entry: Mapping[str, Any] | None) -> Counted:
    if entry is None:
        return Counted({}, "its workload.toml does not say how")
    _only("instructions", entry, {"params", "unfit"})
    fixed = {name: params[name].read(value) for name, value in entry.get("params", {}).items()}
    return Counted(MappingProxyType(fixed), entry.get("unfit", ""))


def _kernel(params: Mapping[str, Param], entry: Mapping[str, str]) -> Mapping[str, str]:
    for own in entry.values():
        if params[own].type != "int":
            raise ValueError(f"kernel: {own} must be a number")
    return MappingProxyType(dict(entry))


def _contending(params: Mapping[str, Param], entry: Mapping[str, Any] | None) -> Contending | None:
    if entry is None:
        return None
    _only("contention", entry, {"operation", "params"})
    own = {name: params[name].read(value) for name, value in entry.get("params", {}).items()}
    return Contending(entry["operation"], MappingProxyType(own))


def _step(folder: Path, entry: Mapping[str, Any]) -> StepTemplate:
    name = entry["name"]
    _only(
        name,
        entry,
        {
            "name", "kind", "argv", "script", "args", "purposes", "clocks", "send", "repeat",
            "control", "deadline_s", "deadline_us", "deadline_work",
        },
    )  # fmt: skip
    _one_of(f"kind of {name}", entry["kind"], _KINDS)
    for purpose in entry.get("purposes", ()):
        _one_of(f"purpose of {name}", purpose, set(PURPOSES))
    for clock in entry.get("clocks", ()):
        _one_of(f"clock of {name}", clock, set(CLOCKS))
    return StepTemplate(
        name=name,
        kind=entry["kind"],
        argv=_argv(folder, entry),
        purposes=tuple(entry.get("purposes", PURPOSES)),
        clocks=tuple(entry.get("clocks", CLOCKS)),
        send=tuple(entry.get("send", ())),
        repeat=bool(entry.get("repeat", False)),
        control=bool(entry.get("control", False)),
        deadline_s=float(entry["deadline_s"]),
        deadline_us=float(entry.get("deadline_us", 0)),
        deadline_work=tuple(entry.get("deadline_work", ())),
    )


def _argv(folder: Path, entry: Mapping[str, Any]) -> tuple[str, ...]:
    if "script" not in entry:
        return tuple(entry["argv"])
    # The script itself is the argument, so that nothing has to be packed for it.
    text = (folder / entry["script"]).read_text().replace("{", "{{").replace("}", "}}")
    return ("sh", "-euc", text, entry["script"], *entry.get("args", ()))


def _modules(folder: Path, entry: Mapping[str, Any] | None) -> tuple[ModuleSource, ...]:
    if entry is None:
        return ()
    _only("module", entry, {"name", "files"})
    files = {name: (folder / name).read_bytes() for name in entry["files"]}
    return (ModuleSource(entry["name"], MappingProxyType(files)),)
