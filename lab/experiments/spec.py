# SPDX-License-Identifier: GPL-2.0-or-later
"""The description of an experiment: one model for file, form and API.

`read_spec` reads TOML, `spec_from_mapping` what a form or an API sends. Both raise SpecError:
one line that names the field, the value given and the valid ones.
"""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import (
    BaseModel,
    Field,
    StrictBool,
    StrictInt,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from kernels.configs.request import Fragment, read_fragment
from kernels.errors import KernelsError
from kernels.mails.letters import as_text
from lab.errors import SpecError
from lab.experiments.description_faults import description_faults
from lab.experiments.measure import FIRST_FIELDS, MeasureSpec, Profiling
from lab.experiments.spec_part import Part
from lab.experiments.spec_size import check_toml, check_values
from lab.experiments.switch_names import OWN_VARIANTS, SWITCH_FIELDS, with_names
from lab.validation_messages import MOST_FAULTS, as_error, fault_lines

DESIGNS = ("full", "one-at-a-time", "leave-one-out", "cumulative")
# A switch's text; the finer limits of a patch are kernels.patches.series's.
TEXT_LIMIT = 8 * 1024 * 1024
MOST_PATCHES = 16
FIELD_SOURCES = ("file", "text", "catalog", "range")

Line = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]*$")]
# `+` joins the names of a variant, "base" is the variant without switches.
SwitchName = Annotated[
    str, StringConstraints(min_length=1, max_length=60, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
]
Digest = Annotated[str, StringConstraints(max_length=64, pattern=r"^[0-9a-f]*$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=TEXT_LIMIT)]


Number = StrictInt | float | str
Param = StrictBool | Number | tuple[Number, ...] | Annotated[dict[str, Number], Field(max_length=64)]


class _Switch(Part):
    name: SwitchName
    requires: Annotated[tuple[SwitchName, ...], Field(max_length=2 * MOST_PATCHES)] = ()
    excludes: Annotated[tuple[SwitchName, ...], Field(max_length=2 * MOST_PATCHES)] = ()

    @field_validator("name")
    @classmethod
    def _is_no_variant_of_ours(cls, name: str) -> str:
        if name in OWN_VARIANTS:
            raise ValueError(f'"{name}" is reserved for a variant; choose another name')
        return name


class PatchSpec(_Switch):
    """A patch or series as one switch: given as text, from the catalogue, or as a git range.

    text: mbox or unified diff; origin: the file it was read from, if any. range: `base..tip`.
    alternative: which of several diffs that one mail offers for the same places, from 1. partial: accept a series with
    missing patches, or of several versions, as far as it is given.
    """

    text: Text | None = None
    origin: str = ""
    catalog: SwitchName | None = None
    range: (
        Annotated[
            str,
            StringConstraints(
                pattern=r"^[^\s\x00-\x1f.-][^\s\x00-\x1f]*\.\.[^\s\x00-\x1f.-][^\s\x00-\x1f]*$"
            ),
        ]
        | None
    ) = None

    alternative: Annotated[StrictInt, Field(ge=1, le=16)] | None = None
    partial: StrictBool = False

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        sources = [field for field in ("text", "catalog", "range") if getattr(self, field) is not None]
        if len(sources) != 1:
            raise ValueError(f"give one of {', '.join(FIELD_SOURCES)}, not {' and '.join(sources) or 'none'}")
        return self


class LineSwitch(_Switch):
    """A switch that is given as lines. kind: as the database has it."""

    kind: ClassVar[str]
    lines: Annotated[tuple[Line, ...], Field(min_length=1, max_length=1000)]

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "".join(f"{line}\n" for line in self.lines)

    def fragment(self) -> Fragment | None:
        """Return what it adds to the kernel's config, None if nothing. Raises KernelsError for wrong lines."""
        return None


class ConfigSpec(LineSwitch):
    """A change of the kernel config as one switch: Kconfig lines."""

    kind = "config"

    def fragment(self) -> Fragment:
        """See LineSwitch."""
        fragment = Fragment(self.name, self.text)
        read_fragment(fragment)
        return fragment


class CaseSpec(Part):
    """A workload with a preset, whose parameters `params` overrides.

    profile: whether this case is profiled, and how; by default as `measure` says.
    """

    workload: str
    preset: str = "small"
    params: dict[str, Param] = Field(default_factory=dict)
    profile: Profiling | None = None


class ReproducedFragment(Part):
    """A fragment of the configuration, for people to compare; builds use this lab's own."""

    name: Line
    text: Text


class ReproducedKernel(Part):
    """The kernel of one variant. config, vmlinux: SHA-256 of the resolved config and of the whole ELF file."""

    variant: Annotated[str, StringConstraints(max_length=500)]
    tree_id: Digest
    release: Annotated[str, StringConstraints(max_length=200)] = ""
    artifact: Digest = ""
    code_hash: Digest = ""
    config: Digest = ""
    vmlinux: Digest = ""
    toolchain: Annotated[str, StringConstraints(max_length=500)] = ""
    toolchain_identity: Digest = ""


class Reproduces(Part):
    """A reproducer's record of the original experiment: its new kernels are compared with these."""

    experiment: StrictInt
    permalink: Annotated[str, StringConstraints(max_length=1000)] = ""
    lab: Annotated[str, StringConstraints(max_length=50)] = ""
    submitted: Annotated[str, StringConstraints(max_length=50)] = ""
    command: Annotated[str, StringConstraints(max_length=1000)] = ""
    base_name: Annotated[str, StringConstraints(max_length=200)] = ""
    base_tree_id: Digest = ""
    archive: Annotated[str, StringConstraints(max_length=500)] = ""
    kernels: Annotated[tuple[ReproducedKernel, ...], Field(max_length=300)] = ()
    fragments: Annotated[tuple[ReproducedFragment, ...], Field(max_length=100)] = ()


class ExperimentSpec(Part):
    """A whole experiment. base: any revision of the tree, its default one when empty. target: one, or a group of them.

    reproduces: given by a reproducer alone; it changes nothing of what is built and measured.
    """

    name: Line
    tree: Line | None = None
    git: Line | None = None
    base: Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\s\x00-\x1f-]?[^\s\x00-\x1f]*$")] = ""
    design: Literal["full", "one-at-a-time", "leave-one-out", "cumulative"] = "full"
    target: Line = "guest"
    priority: Literal["low", "normal", "high"] = "normal"
    patches: Annotated[tuple[PatchSpec, ...], Field(max_length=MOST_PATCHES)] = ()
    configs: Annotated[
        tuple[ConfigSpec, ...],
        Field(
            max_length=MOST_PATCHES,
            title="Changes of the config",
            description="Kconfig lines, such as CONFIG_DEBUG_LIST=y",
        ),
    ] = ()
    cases: Annotated[tuple[CaseSpec, ...], Field(min_length=1, max_length=20)]
    measure: MeasureSpec = MeasureSpec()
    reproduces: Reproduces | None = None

    @property
    def switches(self) -> tuple[PatchSpec | LineSwitch, ...]:
        """All switches in the order they are applied: patches first."""
        return tuple(switch for field in SWITCH_FIELDS for switch in getattr(self, field))

    @model_validator(mode="after")
    def _has_one_tree(self) -> Self:
        if (self.tree is None) == (self.git is None):
            raise ValueError("give one of tree (a registered tree) and git (a URL or path)")
        return self

    def profile_of(self, case: int) -> bool | Literal["exact"]:
        """Return how a case, by its position, is profiled: as it says itself, else as `measure` says."""
        own = self.cases[case].profile
        return self.measure.profile if own is None else own

    @model_validator(mode="after")
    def _waits_are_recorded_in_profiled_boots(self) -> Self:
        sampled = any(self.profile_of(case) is True for case in range(len(self.cases)))
        if self.measure.off_cpu and not sampled:
            raise ValueError(
                "measure.off_cpu: waits are recorded in profiled boots, and no case is profiled by samples; "
                "set measure.profile = true"
            )
        return self

    @model_validator(mode="after")
    def _recorded_boots_are_not_looked_into_otherwise(self) -> Self:
        if self.measure.clock != "contention":
            return self
        measure = self.measure
        asked: dict[str, object] = {"measure.profile": measure.profile, "measure.verify": measure.verify}
        asked |= {f"cases[{at}].profile": case.profile for at, case in enumerate(self.cases)}
        for field, value in asked.items():
            if value:
                raise ValueError(
                    f"{field}: the contention clock records every access in separate boots, and allows no others; "
                    f"leave {field} out, or choose another clock"
                )
        return self

    @model_validator(mode="after")
    def _exact_profiles_take_the_instruction_clock(self) -> Self:
        if self.measure.clock == "instructions":
            return self
        own = next((case for case in self.cases if case.profile == "exact"), None)
        if self.measure.profile == "exact" or own:
            field = f"cases[{self.cases.index(own)}].profile" if own else "measure.profile"
            raise ValueError(
                f"{field}: an exact profile counts instructions, so it needs the instruction clock; "
                'set measure.clock = "instructions", or profile = true for a sampled profile'
            )
        return self


LINE_SWITCHES = tuple(field for field in SWITCH_FIELDS if field != "patches")
"""The fields of switches that are given as lines."""
SWITCH_MODELS: Mapping[str, type[BaseModel]] = {
    field: get_args(ExperimentSpec.model_fields[field].annotation)[0] for field in SWITCH_FIELDS
}
"""The model of each field of switches."""


def read_spec(data: bytes, directory: Path | None) -> ExperimentSpec:
    """Read a TOML description; files it names are looked up from `directory`, none if that is None.

    Raises SpecError.
    """
    return spec_from_mapping(toml_mapping(data), directory)


def toml_mapping(data: bytes) -> dict[str, Any]:
    """Read a TOML description without validating it. Raises SpecError."""
    try:
        text = data.decode()
        check_toml(text)
        return tomllib.loads(text)
    except (ValueError, RecursionError) as exc:
        raise SpecError(f"the description is not valid TOML: {exc}") from exc


def spec_from_mapping(mapping: Mapping[str, Any], directory: Path | None = None) -> ExperimentSpec:
    """Validate a description that a form or an API sends; what has no name gets one. Raises SpecError with every fault."""
    check_values(mapping)
    named = with_names(inline_files(mapping, directory))
    lines = list(islice(description_faults(named), MOST_FAULTS))
    try:
        spec = ExperimentSpec.model_validate(named)
    except ValidationError as exc:
        raise as_error([*fault_lines(exc, ExperimentSpec), *lines]) from exc
    if lines:
        raise as_error(lines)
    return spec


def tree_field(tree: str) -> dict[str, str]:
    """Return a description's field for a tree: a location has a slash, a name has none."""
    return {"git" if "/" in tree else "tree": tree}


def spec_digest(spec: ExperimentSpec) -> str:
    """Return the SHA-256 of all that the description says, patch texts included.

    A field that was added later counts only if it differs from its default, so that older descriptions keep their digest.
    """
    said = spec.model_dump(mode="json")
    # The priority changes nothing that is built or measured.
    del said["priority"]
    for name in MeasureSpec.model_fields.keys() - FIRST_FIELDS:
        if said["measure"][name] == MeasureSpec.model_fields[name].default:
            del said["measure"][name]
    if spec.reproduces is None:
        del said["reproduces"]
    for patch in said["patches"]:
        if not patch["partial"]:
            del patch["partial"]
    canonical = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def inline_files(mapping: Mapping[str, Any], directory: Path | None) -> dict[str, Any]:
    """Replace each patch's `file` by its text, so that a description stands on its own. Raises SpecError with every fault."""
    patches = mapping.get("patches")
    if not isinstance(patches, list):
        return dict(mapping)
    inlined, faults = [], []
    for index, patch in enumerate(patches):
        if not (isinstance(patch, Mapping) and "file" in patch):
            inlined.append(patch)
            continue
        rest = {key: value for key, value in patch.items() if key != "file"}
        try:
            text, origin = _read_patch(f"patches[{index}].file", patch["file"], directory)
        except SpecError as exc:
            faults.append(str(exc))
            continue
        if "text" in rest:
            faults.append(f"patches[{index}]: give one of {', '.join(FIELD_SOURCES)}, not file and text")
        inlined.append({**rest, "text": text, "origin": origin})
    if faults:
        raise as_error(faults)
    return {**mapping, "patches": inlined}


def _read_patch(field: str, name: Any, directory: Path | None) -> tuple[str, str]:
    if directory is None:
        raise SpecError(f"{field}: files are read by labctl only; send the patch itself as text")
    if not isinstance(name, str) or not name:
        raise SpecError(f"{field}: {name!r} is not the name of a file")
    path = directory / name
    try:
        if path.stat().st_size > TEXT_LIMIT:
            raise SpecError(f"{field}: {name} is larger than {TEXT_LIMIT >> 20} MiB")
        data = path.read_bytes()
    except OSError as exc:
        raise SpecError(f'{field}: cannot read "{name}" in {directory}: {exc.strerror}') from exc
    try:
        return as_text(data), path.name
    except KernelsError as exc:
        raise SpecError(f"{field}: {name}: {exc}") from exc
