# SPDX-License-Identifier: GPL-2.0-or-later
"""Turn options of `submit` and `preview` into a description: the given options, then the preferences' defaults."""

import inspect
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from lab.errors import SpecError
from lab.experiments.measure import BY_NAME, QUESTIONS
from lab.experiments.questions import FieldQuestion
from workers.ctl import complete
from workers.ctl.clients.base import Json
from workers.ctl.clients.client import Client
from workers.ctl.preferences import PROJECT_FILE, Preferences, config_file, git_top, read_preferences


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    """Options that make a description of a series, or change one that a file gives."""

    branch: Annotated[
        str,
        typer.Option(
            help="take the commits of this branch of the current git tree", autocompletion=complete.branches
        ),
    ] = ""
    base: Annotated[
        str,
        typer.Option(help="revision that the patches apply to", autocompletion=complete.branches),
    ] = ""
    tree: Annotated[
        str, typer.Option(help="a registered tree, or a git URL or path", autocompletion=complete.trees)
    ] = ""
    workload: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:PRESET]", help="workload to run; repeatable", autocompletion=complete.workloads
        ),
    ] = None
    preset: Annotated[
        str, typer.Option(help="default preset of the workloads: smoke, small, large, seed")
    ] = ""
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[WORKLOAD:]NAME=VALUE", help="NAME=VALUE, a parameter of the workloads; repeatable"
        ),
    ] = None
    alternative: Annotated[
        int | None, typer.Option(help="number of the diff to use if a mail offers alternatives")
    ] = None
    each: Annotated[
        bool, typer.Option("--each", help="make each patch a switch, added one after the other")
    ] = False
    partial: Annotated[
        bool,
        typer.Option("--partial", help="accept a series with missing patches or mixed versions"),
    ] = False
    design: Annotated[
        str,
        typer.Option(
            help="combinations: full, one-at-a-time, leave-one-out, cumulative",
            autocompletion=complete.one_of("full", "one-at-a-time", "leave-one-out", "cumulative"),
        ),
    ] = ""
    target: Annotated[str, typer.Option(help="the machine to boot on", autocompletion=complete.targets)] = ""
    priority: Annotated[
        str,
        typer.Option(
            help="low, normal or high (operators only)",
            autocompletion=complete.one_of("low", "normal", "high"),
        ),
    ] = ""
    name: Annotated[str, typer.Option(help="name of the experiment")] = ""
    profile: Annotated[bool | None, typer.Option("--profile/--no-profile", help="also boot for profiles")] = (
        None
    )
    exact: Annotated[
        bool, typer.Option("--exact", help="profile every instruction; needs --clock instructions")
    ] = False
    # What the options of MEASURE_OPTIONS say, by field.
    measure: Mapping[str, Any] = field(default_factory=dict)


def _measure_options() -> Iterator[inspect.Parameter]:
    """Yield an option for each question about the measurement, except `profile`: `--profile` and `--exact` cover it."""
    for question in QUESTIONS:
        if question.name == "profile":
            continue
        yield inspect.Parameter(
            question.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_option(question)
        )


def _option(question: FieldQuestion) -> Any:
    dashed = question.name.replace("_", "-")
    text = question.help[0].lower() + question.help[1:].rstrip(".")
    if question.kind == "tick":
        return Annotated[bool | None, typer.Option(f"--{dashed}/--no-{dashed}", help=text)]
    if question.kind == "number" and not question.choices:
        return Annotated[int | None, typer.Option(help=text)]
    words = tuple(question.choices)
    metavar = "|".join(("N", *words) if question.kind == "number" else words)
    return Annotated[
        str | None,
        typer.Option(metavar=metavar or None, help=text, autocompletion=complete.one_of(*words)),
    ]


MEASURE_OPTIONS = tuple(_measure_options())


def description(source: Path | None, options: SubmitOptions, client: Client) -> Json:
    """Return the description that a file or a branch and the options make. Raises SpecError, SettingsWrong."""
    # Imported here: `--help` and completion do not need it.
    from workers.ctl.submitted_files import (
        branch_series,
        handed_series,
        is_series,
        newest_release,
        read_handed,
    )

    if (source is None) == (not options.branch):
        raise SpecError(
            "give either a file (a description in TOML, an mbox, - for standard input) or --branch NAME"
        )
    preferences = read_preferences()
    if source is None:
        base = options.base or str(preferences.defaults.get("base", "")) or newest_release(options.branch)
        if not base:
            raise SpecError(f"{options.branch} has no v… tag to start from: give --base REVISION")
        return of_series(branch_series(options.branch, base), options, preferences, client, base)
    data = read_handed(source)
    if is_series(data):
        return of_series(
            handed_series(data, source, partial=options.partial), options, preferences, client, options.base
        )
    return of_file(data, source, options)


def of_file(data: bytes, source: Path, chosen: SubmitOptions) -> Json:
    """Return a TOML file's description with its patches' texts in it, changed by the options. Raises SpecError."""
    from lab.experiments.spec import inline_files, toml_mapping, tree_field

    if chosen.workload or chosen.each or chosen.param or chosen.preset or chosen.alternative is not None:
        options = "--workload, --preset, --param, --alternative and --each"
        raise SpecError(
            f"{options} are for a series; {source} is a complete description: change the file instead"
        )
    if chosen.partial:
        raise SpecError(f"--partial is for a series; in {source} write partial = true beside the patch")
    mapping = inline_files(toml_mapping(data), source.parent)
    if chosen.tree:
        mapping = {key: value for key, value in mapping.items() if key not in {"tree", "git"}} | tree_field(
            chosen.tree
        )
    fields = {"base": chosen.base, "design": chosen.design, "target": chosen.target, "name": chosen.name}
    fields["priority"] = chosen.priority
    mapping |= {key: value for key, value in fields.items() if value}
    measure = measured(chosen, {})
    if measure and isinstance(mapping.get("measure", {}), dict):
        mapping["measure"] = mapping.get("measure", {}) | measure
    return mapping


def of_series(
    handed: Any, options: SubmitOptions, preferences: Preferences, client: Client, base: str
) -> Json:
    """Return the description of a series. Raises SpecError where neither options nor preferences name a tree and a workload."""
    defaults = preferences.defaults
    # Where neither names a base, the lab takes the one that the series names, if its tree has that.
    start = base or str(defaults.get("base", ""))
    design = options.design or ("cumulative" if options.each else "") or str(defaults.get("design", ""))
    fields = {
        "name": options.name or handed.name[:200],
        **_tree(options, defaults, client),
        "base": start,
        "design": design,
        "target": options.target or str(defaults.get("target", "")),
        "priority": options.priority,
    }
    measure = measured(options, defaults)
    return {
        **{key: value for key, value in fields.items() if value},
        "patches": _switches(handed, options),
        "cases": _with_params(_cases(options, defaults, client), options.param or []),
        **({"measure": measure} if measure else {}),
    }


def measured(options: SubmitOptions, defaults: Mapping[str, Any]) -> Json:
    """Return the fields of [measure] that options or defaults give."""
    fields = {name: defaults[name] for name in BY_NAME if name in defaults}
    fields |= {name: value for name, value in options.measure.items() if value not in ("", None)}
    if options.exact or options.profile is not None:
        fields["profile"] = "exact" if options.exact else options.profile
    return {name: int(value) if _is_number(name, value) else value for name, value in fields.items()}


def _is_number(name: str, value: Any) -> bool:
    return BY_NAME[name].kind == "number" and str(value).isdecimal()


def _tree(options: SubmitOptions, defaults: Mapping[str, Any], client: Client) -> dict[str, str]:
    from lab.experiments.spec import tree_field

    if options.tree:
        return tree_field(options.tree)
    for name in ("tree", "git"):
        if name in defaults:
            return {name: str(defaults[name])}
    top = git_top()
    if options.branch and client.local and top:
        return {"git": str(top)}
    names = ", ".join(str(row["name"]) for row in client.names("trees"))
    raise SpecError(
        f"no tree given: use --tree NAME ({names or 'no tree is registered yet'}), "
        f"or set tree under [defaults] in {PROJECT_FILE} or {config_file()}"
    )


def _cases(options: SubmitOptions, defaults: Mapping[str, Any], client: Client) -> list[Json]:
    wanted = (
        options.workload or [str(defaults["workload"])] if options.workload or "workload" in defaults else []
    )
    if not wanted:
        names = ", ".join(str(row["name"]) for row in client.names("workloads"))
        raise SpecError(f"choose a workload: --workload NAME ({names})")
    cases = []
    for choice in wanted:
        workload, _, preset = choice.partition(":")
        preset = preset or options.preset or str(defaults.get("preset", ""))
        cases.append({"workload": workload, **({"preset": preset} if preset else {})})
    return cases


def _with_params(cases: list[Json], params: list[str]) -> list[Json]:
    """Give each case the parameters that are for its workload, or for all. Raises SpecError."""
    names = [str(case["workload"]) for case in cases]
    for text in params:
        key, equals, value = (part.strip() for part in text.partition("="))
        workload, colon, name = key.rpartition(":")
        if not (equals and name and value):
            raise SpecError(f'--param "{text[:60]}" is not of the form [WORKLOAD:]NAME=VALUE')
        if colon and workload not in names:
            raise SpecError(
                f'--param "{text[:60]}": no --workload is "{workload}"; there are {", ".join(names)}'
            )
        for case in cases:
            if not colon or case["workload"] == workload:
                case.setdefault("params", {})[name] = _param(value)
    return cases


def _param(text: str) -> Any:
    """Read a value as TOML; if it is not TOML, it is a text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def _switches(handed: Any, options: SubmitOptions) -> list[Json]:
    from lab.experiments.switch_names import switch_name
    from workers.ctl.submitted_files import NAME_LENGTH, as_mail

    if not options.each:
        origin = {"origin": handed.origin} if handed.origin else {}
        allowed: Json = {"partial": True} if options.partial else {}
        if options.alternative is not None:
            allowed["alternative"] = options.alternative
        return [{"name": handed.switch, "text": handed.text, **origin, **allowed}]
    if options.alternative is not None:
        raise SpecError("--alternative is for a mail that is one switch; leave out --each")
    if handed.series is None:
        raise SpecError(f"{handed.name} cannot be split before it is repaired: submit it without --each")
    patches = handed.series.patches
    return [
        {"name": switch_name(f"{number}-{patch.title}", NAME_LENGTH), "text": as_mail(patch)}
        for number, patch in enumerate(patches, 1)
    ]
