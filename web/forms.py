# SPDX-License-Identifier: GPL-2.0-or-later
"""The submission form: what was typed, and the description it stands for. Pure.

`read_form` keeps everything as typed, so that a refused form comes back as it was. `describe`
turns it into the mapping that lab.experiments.spec validates, with a map from that mapping's places back to
the form's fields, so that each error is shown beside its field.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.experiments.measure import BY_NAME, QUESTIONS
from lab.experiments.questions import FieldQuestion, read_number
from lab.experiments.spec import LINE_SWITCHES

SLOTS = 16
# A value of a parameter; tomllib takes quadratic time for a key of many dotted parts.
LONGEST_VALUE, MOST_DOTS = 2000, 300
# The parts of a switch, beside its text.
PARTS = ("name", "requires", "excludes", "alternative", "range", "catalog")


@dataclass(frozen=True, slots=True)
class TypedSwitch:
    """One pasted patch or config fragment."""

    name: str = ""
    text: str = ""
    requires: str = ""
    excludes: str = ""
    alternative: str = ""
    partial: bool = False
    # In place of a text: commits of the tree, or an entry of the catalogue under a name and rules of its own.
    range: str = ""
    catalog: str = ""

    @property
    def filled(self) -> bool:
        """Return whether anything was typed."""
        parts = (self.name, self.text.strip(), self.requires, self.excludes, self.range, self.catalog)
        return any(parts)


@dataclass(frozen=True, slots=True)
class TypedCase:
    """One workload's row: whether it is ticked, which preset, and what overrides it.

    profile: "yes", "no" or "exact" for this workload alone, "" as for all of them.
    """

    chosen: bool = False
    preset: str = ""
    params: str = ""
    profile: str = ""


@dataclass(frozen=True, slots=True)
class TypedSource:
    """The source of a fetched series: a branch of a git repository, or the lists' archive."""

    location: str = ""
    branch: str = ""
    since: str = ""
    message: str = ""


# The answers of an untouched form.
USUAL = {question.name: question.typed(question.default) for question in QUESTIONS} | {"profile": "yes"}


@dataclass(frozen=True, slots=True)
class TypedForm:
    """The whole form as typed; numbers are still text."""

    name: str = ""
    tree: str = ""
    git: str = ""
    base: str = ""
    design: str = "full"
    target: str = ""
    catalog: tuple[str, ...] = ()
    patches: tuple[TypedSwitch, ...] = ()
    source: TypedSource = TypedSource()
    each: bool = False
    # Switches that are given as lines, by the field of the description.
    lines: Mapping[str, tuple[TypedSwitch, ...]] = field(default_factory=dict)
    cases: Mapping[str, TypedCase] = field(default_factory=dict)
    # An answer to each question of lab.experiments.measure; a tick's is "yes" or "no".
    measure: Mapping[str, str] = field(default_factory=lambda: USUAL)
    priority: str = "normal"
    # The number of the experiment this was cloned from, and the form's own key, so that it is submitted once.
    origin: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Description:
    """The description that the form stands for; `fields` leads from a place such as "cases[0]" to a field's id."""

    mapping: dict[str, Any]
    fields: dict[str, str]
    errors: dict[str, str]


def read_form(received: Mapping[str, Any], lists: Mapping[str, Sequence[str]]) -> TypedForm:
    """Read what was typed."""

    def text(key: str) -> str:
        return str(received.get(key, "")).replace("\0", "").strip()

    workloads = [key.removeprefix("preset-") for key in received if key.startswith("preset-")]
    ticked = set(lists.get("case", ()))
    return TypedForm(
        name=text("name"),
        tree=text("tree"),
        git=text("git"),
        base=text("base"),
        design=text("design"),
        target=text("target"),
        catalog=tuple(lists.get("catalog", ())),
        patches=_filled(received, "patch"),
        source=TypedSource(text("branch_git"), text("branch"), text("since"), text("lore")),
        each=text("each") == "patch",
        lines={name: _filled(received, name.removesuffix("s")) for name in LINE_SWITCHES},
        cases={
            name: TypedCase(
                name in ticked, text(f"preset-{name}"), text(f"params-{name}"), text(f"profile-{name}")
            )
            for name in workloads
        },
        measure={question.name: _answer(received, question) for question in QUESTIONS},
        priority=text("priority") or "normal",
        origin=text("origin"),
        key=text("key"),
    )


def _answer(received: Mapping[str, Any], question: FieldQuestion) -> str:
    """Return what was typed; a tick that is not set is not sent, and neither is a field that the form did not have."""
    if question.kind == "tick":
        return question.typed(question.name in received)
    return str(received.get(question.name, question.typed(question.default))).strip()


def _filled(received: Mapping[str, Any], kind: str) -> tuple[TypedSwitch, ...]:
    """Return the filled slots of a kind; after an upload there may be more than an empty form has, to be refused by number."""
    slots = {int(match[1]) for key in received if (match := re.match(rf"{kind}-(\d{{1,4}})-", key))}
    return tuple(switch for slot in sorted(slots) if (switch := _switch(received, f"{kind}-{slot}")).filled)


def _switch(received: Mapping[str, Any], key: str) -> TypedSwitch:
    # Browsers send \r\n; a patch is compared byte for byte with a tree of \n.
    words = {part: str(received.get(f"{key}-{part}", "")).strip() for part in PARTS}
    text = str(received.get(f"{key}-text", "")).replace("\r\n", "\n")
    return TypedSwitch(text=text, partial=f"{key}-partial" in received, **words)


def describe(typed: TypedForm) -> Description:
    """Turn the form into a description; errors are those that only the form can have."""
    made = Description(
        mapping={**_named(typed.name), "base": typed.base, "design": typed.design},
        fields={name: name for name in ("name", "tree", "git", "base", "design", "target", "priority")},
        errors={},
    )
    if typed.git:
        made.mapping["git"] = typed.git
    elif typed.tree:
        made.mapping["tree"] = typed.tree
    if typed.priority != "normal":
        made.mapping["priority"] = typed.priority
    if typed.target:
        made.mapping["target"] = typed.target
    _describe_patches(typed, made)
    for name in LINE_SWITCHES:
        _describe_lines(name, typed.lines.get(name, ()), made)
    _describe_cases(typed, made)
    _describe_measure(typed, made)
    return made


def _describe_patches(typed: TypedForm, made: Description) -> None:
    patches: list[dict[str, Any]] = [{"catalog": name} for name in typed.catalog]
    made.fields["patches"] = "switches"
    for place, name in enumerate(typed.catalog):
        made.fields[f"patches[{place}]"] = made.fields[f'switch "{name}"'] = f"catalog-{name}"
    for slot, patch in enumerate(typed.patches):
        key = f"patch-{slot}"
        made.fields.update(_places(f"patches[{len(patches)}]", key, patch))
        chosen: dict[str, Any] = {}
        if patch.alternative:
            try:
                chosen["alternative"] = read_number(patch.alternative)
            except ValueError as exc:
                made.errors[f"{key}-alternative"] = str(exc)
        if patch.partial:
            chosen["partial"] = True
        patches.append({**_partners(patch), **chosen, **_sources(patch)})
    made.mapping["patches"] = patches


def _describe_lines(field: str, switches: Sequence[TypedSwitch], made: Description) -> None:
    made.mapping[field] = []
    made.fields[field] = "switches"
    for slot, switch in enumerate(switches):
        made.fields.update(_places(f"{field}[{slot}]", f"{field.removesuffix('s')}-{slot}", switch))
        lines = [line.strip() for line in switch.text.splitlines() if line.strip()]
        made.mapping[field].append({**_partners(switch), "lines": lines})


def _describe_cases(typed: TypedForm, made: Description) -> None:
    cases: list[dict[str, Any]] = []
    made.fields["cases"] = "cases"
    for name, case in typed.cases.items():
        if not case.chosen:
            continue
        made.fields[f"cases[{len(cases)}]"] = f"case-{name}"
        params, wrong = read_params(case.params)
        if wrong:
            made.errors[f"case-{name}"] = wrong
        cases.append({"workload": name, "preset": case.preset, "params": params})
        if case.profile:
            try:
                cases[-1]["profile"] = BY_NAME["profile"].read(case.profile)
            except ValueError as exc:
                made.errors[f"case-{name}"] = str(exc)
    if not cases:
        made.errors["cases"] = "Tick at least one workload."
    made.mapping["cases"] = cases


def _describe_measure(typed: TypedForm, made: Description) -> None:
    measure = made.mapping["measure"] = {}
    made.fields["measure"] = "boots"
    for question in QUESTIONS:
        made.fields[f"measure.{question.name}"] = question.name
        try:
            measure[question.name] = question.read(typed.measure.get(question.name, USUAL[question.name]))
        except ValueError as exc:
            made.errors[question.name] = str(exc)


def _places(place: str, key: str, switch: TypedSwitch) -> dict[str, str]:
    parts = {f"{place}.{part}": f"{key}-{part}" for part in (*PARTS, "text")}
    whole = {place: f"{key}-text", f"{place}.lines": f"{key}-text"}
    return {**whole, **parts, f'switch "{switch.name}"': f"{key}-text"}


def _sources(switch: TypedSwitch) -> dict[str, str]:
    """Return the sources of a patch: the typed text, range and catalogue entry; a blank text only without the others."""
    named = {name: value for name in ("range", "catalog") if (value := getattr(switch, name))}
    return {**named, "text": switch.text} if switch.text.strip() or not named else named


def _partners(switch: TypedSwitch) -> dict[str, Any]:
    return {
        **_named(switch.name),
        "requires": re.split(r"[\s,]+", switch.requires) if switch.requires else [],
        "excludes": re.split(r"[\s,]+", switch.excludes) if switch.excludes else [],
    }


def _named(name: str) -> dict[str, str]:
    """Return the name as a description has it; without one the lab takes it from a patch's subject."""
    return {"name": name} if name else {}


# One parameter: up to the end of its line or a semicolon, but not one within double quotes.
_PARAM = re.compile(r'(?:"(?:[^"\\\n]|\\.)*"?|[^\n;])+')


def read_params(text: str) -> tuple[dict[str, Any], str]:
    """Read `key = value` lines, values as in TOML or else plain text; also what is wrong, if anything."""
    params: dict[str, Any] = {}
    for line in filter(None, (part.strip() for part in _PARAM.findall(text))):
        key, equals, value = (part.strip() for part in line.partition("="))
        if not (key and equals and value):
            return params, f"“{line[:60]}” is not of the form parameter = value."
        try:
            params[key] = _toml_value(value)
        except (ValueError, RecursionError):
            params[key] = value
    return params, ""


def _toml_value(text: str) -> Any:
    """Read one TOML value. Raises ValueError if it is not one, or would be expensive to read."""
    if len(text) > LONGEST_VALUE or text.count(".") > MOST_DOTS:
        raise ValueError("no value of a parameter is so long")
    return tomllib.loads(f"value = {text}")["value"]


_PLACE = re.compile(r"^([A-Za-z_]+(?:\[\d+\])?(?:\.[A-Za-z_]+(?:\[\d+\])?)*)(?::\s*| is missing$)")
# Messages without a place: about a switch by its name, about the tree and its revisions.
_NAMED = re.compile(r"^switch \"[^\"]*\"")
_WORDED = ((re.compile(r"^there is no tree "), "tree"), (re.compile(r" has no revision \""), "base"))


def sort_errors(lines: Sequence[str], fields: Mapping[str, str]) -> dict[str, str]:
    """Assign each fault to its field; a fault without a field goes to "form"."""
    errors: dict[str, str] = {}
    for line in lines:
        key, message = _locate(line, fields)
        errors.setdefault(key, message)
    return errors


def _locate(line: str, fields: Mapping[str, str]) -> tuple[str, str]:
    if (named := _NAMED.match(line)) and named[0] in fields:
        return fields[named[0]], line
    for pattern, key in _WORDED:
        if pattern.search(line):
            return key, line
    match = _PLACE.match(line)
    place = match[1] if match else ""
    message = line[match.end() :] if match else line
    while place and place not in fields:
        # From cases[0].params.threads to cases[0].params, cases[0], cases: the nearest that is a field.
        place = re.sub(r"(\.[A-Za-z_]+|\[\d+\]|^[A-Za-z_]+)$", "", place)
    if not place:
        return "form", line
    return fields[place], message or "This is missing."
