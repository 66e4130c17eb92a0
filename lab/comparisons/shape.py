# SPDX-License-Identifier: GPL-2.0-or-later
"""The shape of a comparison as plain data: what `compare --format json` prints and what the API answers.

It is a contract: fields may be added; `format` grows if a field changes its meaning or is removed. Writers of other
forms read only this shape, so that a client that got it over HTTP can write them, too. docs/formats.md describes it
to people. Ratios are a variant's over the base's: 0.47 is 53 % less. None where there is no such number.
"""

from collections.abc import Iterator
from typing import Any, Literal, TypedDict

FORMAT = 1


class ExperimentData(TypedDict):
    """The description and the end of an experiment. Times are ISO 8601, empty until they are known.

    measure: every field of the description's `[measure]`, by name.
    """

    id: int
    name: str
    state: str
    problem: str
    clock: str
    design: str
    boots: int
    sequential: bool
    iterations: int
    warmup: int
    placebo: bool
    profile: bool | Literal["exact"]
    profile_boots: int
    off_cpu: bool
    verify: bool
    seed: int
    measure: dict[str, Any]
    submitted: str
    finished: str


class BaseData(TypedDict):
    """The base of the patches. name: of the variant; location: of a git tree, empty for an archive."""

    name: str
    tree: str
    location: str
    revision: str
    commit: str
    tree_id: str


class EnvironmentData(TypedDict):
    """The environment of the boots, as one boot of the base recorded it, and the toolchain; empty if unknown."""

    target: str
    driver: str
    vcpus: int
    memory_mib: int
    lab: str
    cpu: str
    accelerator: str
    host_cpu: str
    host_cpus: int
    host_kernel: str
    emulator: str
    cmdline: str
    config_sha256: str
    toolchain: str


class SwitchData(TypedDict):
    """A patch or config change that is switched on and off."""

    name: str
    kind: str
    title: str
    author: str
    link: str


class VariantData(TypedDict):
    """One kernel. role: base, candidate, a/a, placebo. blame: of a build that failed (submission, kernel, lab)."""

    id: int
    name: str
    role: str
    switches: list[str]
    state: str
    problem: str
    blame: str
    note: str
    release: str
    code_hash: str


class SpreadData(TypedDict):
    """The median over boots with an interval of order statistics, of confidence `level`."""

    variant: str
    boots: int
    median: float
    low: float
    high: float
    level: float


class CellData(TypedDict):
    """One metric of one variant against the base. p: of no change; q: p adjusted for all metrics of the variant.

    ratio: estimated within blocks of boots. medians_ratio: median / base_median, over all blocks.
    """

    id: int
    variant: str
    role: str
    base_median: float | None
    median: float | None
    medians_ratio: float | None
    ratio: float | None
    low: float | None
    high: float | None
    verdict: str
    boots: int
    boots_needed: int | None
    reason: str
    method: str
    margin: float
    floor: float
    p: float | None
    q: float | None
    effect: float | None
    partial: bool
    notes: list[str]


class EffectData(TypedDict):
    """The effect of one switch over all combinations, or the interaction of two."""

    switches: list[str]
    ratio: float | None
    low: float | None
    high: float | None
    q: float | None
    reason: str


class AlarmsData(TypedDict):
    """Differences called between the base and itself on this target, and all such comparisons."""

    called: int
    compared: int


class MetricData(TypedDict):
    """One metric; cells in the order of the variants. better: lower or higher. Only primary ones decide."""

    name: str
    unit: str
    better: str
    primary: bool
    base_median: float | None
    alarms: AlarmsData
    spreads: list[SpreadData]
    cells: list[CellData]
    effects: list[EffectData]


class FailureData(TypedDict):
    """Boots of one variant that ended alike and badly. outcome: as a run's; blame: submission, kernel, lab."""

    variant: str
    outcome: str
    blame: str
    problem: str
    boots: int


class InvalidData(TypedDict):
    """A boot that ran outside its validity gates and does not count; block from 0."""

    run: int
    variant: str
    block: int
    reasons: list[str]


class LineData(TypedDict):
    """The median boot of a variant by the primary metric, and the line the workload's mail would print of it."""

    run: int
    variant: str
    line: str


class ProofData(TypedDict):
    """The counts of a verified boot, and whether they prove the claimed state; None if unknown."""

    run: int
    variant: str
    statement: str
    holds: bool | None


class ShiftData(TypedDict):
    """A change from the base with its interval, and its verdict under its own clock."""

    ratio: float | None
    low: float | None
    high: float | None
    verdict: str


class SideData(TypedDict):
    """The experiment behind the model's or the machine's side. machine: the model's name, or the processor."""

    experiment: int
    name: str
    target: str
    machine: str
    metric: str


class ModelAndMachineRow(TypedDict):
    """One patch in both; variant: its name in the model's experiment."""

    variant: str
    model: ShiftData
    machine: ShiftData


class ModelAndMachineData(TypedDict):
    """The contention clock's model beside hardware, on as many CPUs. different: parameters in which the cases differ."""

    cpus: int
    model: SideData
    machine: SideData
    rows: list[ModelAndMachineRow]
    different: list[str]


class CaseData(TypedDict):
    """One workload with its parameters, its metrics with the primary ones first, and boots that went wrong."""

    id: int
    workload: str
    preset: str
    title: str
    params: dict[str, Any]
    metrics: list[MetricData]
    lines: list[LineData]
    proofs: list[ProofData]
    failures: list[FailureData]
    invalid: list[InvalidData]
    models_and_machines: list[ModelAndMachineData]


class OutcomeData(TypedDict):
    """The outcome of one variant in one case, and the metric that decides. cpus: under the contention clock.

    outcome: regression, mixed, in-doubt, improvement, inconclusive, no-base, not-booted, unchanged, same-kernel, not-built, not-measured.
    """

    case: int
    variant: str
    outcome: str
    metric: str
    cpus: int | None
    ratio: float | None
    low: float | None
    high: float | None


class CaseConclusionData(TypedDict):
    """One sentence of what every variant does to one case."""

    case: int
    title: str
    text: str


class NextStepData(TypedDict):
    """The next step. boots: of each kernel; minutes: the time of the further boots.

    action: nothing, wait, fix, repeat, boots, target, contention-clock, instruction-clock, compare.
    """

    action: str
    text: str
    boots: int | None
    minutes: int | None


class ConclusionData(TypedDict):
    """The conclusion in words. headline: at most 140 characters. text: one paragraph of at most 600 that begins with it.

    control: by how much the base differed from itself; lacking: boots that did not count; both empty where there is nothing to say.
    patches: where several patches were tested, the paragraph about the kernels with one of them, by its switch.
    """

    headline: str
    text: str
    control: str
    lacking: str
    cases: list[CaseConclusionData]
    outcomes: list[OutcomeData]
    next: NextStepData
    patches: dict[str, str]


class ComparisonData(TypedDict):
    """The whole comparison. verdicts: the number of primary metrics of candidates by verdict. exit_code: labctl's."""

    format: int
    experiment: ExperimentData
    base: BaseData
    environment: EnvironmentData
    switches: list[SwitchData]
    variants: list[VariantData]
    cases: list[CaseData]
    conclusion: ConclusionData
    verdicts: dict[str, int]
    exit_code: int
    permalink: str


def cells_of(data: ComparisonData) -> Iterator[tuple[CaseData, MetricData, CellData]]:
    """Yield every cell of a comparison with its case and its metric."""
    for case in data["cases"]:
        for metric in case["metrics"]:
            for cell in metric["cells"]:
                yield case, metric, cell
