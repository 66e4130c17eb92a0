# SPDX-License-Identifier: GPL-2.0-or-later
"""A comparison as a report of KCIDB's I/O schema 5.3: checkouts, builds, and a "test" for each metric of a variant.

    FAIL   a primary metric's regression; a kernel that does not compile, boot or survive
    PASS   improvement or unchanged; a variant that boots
    DONE   measured without a judgement: inconclusive metrics, the base's and the controls' own numbers, other metrics
    ERROR  the workload or the build failed for the lab's own reasons
    MISS   a boot lost by the lab
    SKIP   boots that were left out or cancelled

Source: kcidb_io/schema/v05_03.py; tests check reports against it. An id is the origin and the object's name in this
lab; a build's is the digest of its inputs, so that two experiments on one kernel name one build.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings

from kernels.architecture import BUILT
from kernels.mails.stored_diff import diff_of
from lab.comparisons.described import public_location
from lab.comparisons.exports.figures import doubt, told_change
from lab.comparisons.page import comparison_data
from lab.comparisons.shape import CaseData, CellData, ComparisonData, FailureData, MetricData
from lab.errors import SpecError
from lab.experiments.environment import stored_artifact
from lab.experiments.page import get_experiment
from lab.figures import counted
from lab.models import Build, Experiment, Run, Variant
from lab.models.states import BuildState, RunState
from lab.one_line import plain
from lab.statistics.verdict_words import shown_verdict

VERSION = {"major": 5, "minor": 3}
ORIGIN = "kperflab"
_EXCERPT = 16_000
_BUILD_STATUS = {BuildState.BUILT: "PASS", BuildState.FAILED: "FAIL", BuildState.CANCELLED: "SKIP"}
_OF_BOOTING = ("boot-failed", "wrong-kernel")
Item = dict[str, Any]


def write_kcidb(experiment_id: int, *, link: str = "", origin: str = ORIGIN) -> str:
    """Return the JSON text. origin: the reporter's name in KCIDB. Raises UnknownRow, SpecError for an invalid origin."""
    if not re.fullmatch(r"[a-z0-9_]+", origin):
        raise SpecError(
            f'origin: "{plain(origin)}" is not valid for KCIDB: use lower-case letters, digits and _'
        )
    experiment = get_experiment(experiment_id)
    data = comparison_data(experiment_id, link=link)
    variants = list(experiment.variants.select_related("build").exclude(build=None))
    checkouts, builds = {}, {}
    for variant in variants:
        checkout = _checkout(experiment, variant, origin)
        checkouts[checkout["id"]] = checkout
        build = _build(variant, checkout["id"], origin, link)
        builds[build["id"]] = build
    report = {
        "version": VERSION,
        "checkouts": list(checkouts.values()),
        "builds": list(builds.values()),
        "tests": list(_tests(experiment, data, {v.name: v for v in variants}, origin)),
    }
    return json.dumps(_without_nul(report), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def patchset_hash(texts: list[str]) -> str:
    """KCIDB's hash of patches in their order: SHA-256 over the lines of their SHA-256 sums; empty without patches."""
    sums = "".join(f"{hashlib.sha256(_bytes_of(text)).hexdigest()}\n" for text in texts)
    return hashlib.sha256(sums.encode()).hexdigest() if texts else ""


def _bytes_of(stored: str) -> bytes:
    return diff_of(stored).encode("utf-8", "surrogateescape")


def _checkout(experiment: Experiment, variant: Variant, origin: str) -> Item:
    switches = experiment.switches.filter(name__in=variant.switches, kind="patch")
    patchset = patchset_hash([switch.text for switch in switches])
    titles = "; ".join(plain(switch.title or switch.name) for switch in switches)
    return _present(
        id=f"{origin}:{experiment.base_commit}{'-' if patchset else ''}{patchset}",
        origin=origin,
        tree_name=experiment.tree.name,
        git_repository_url=_https(public_location(experiment)),
        git_commit_hash=experiment.base_commit,
        git_commit_name=experiment.base_name,
        patchset_hash=patchset,
        comment=titles or None,
        valid=True,
        misc={"tree_id": variant.tree_id, "archive": experiment.tree.kind == "archive"},
    )


def _https(location: str) -> str | None:
    return location if location.startswith("https://") else None


def _build(variant: Variant, checkout: str, origin: str, link: str) -> Item:
    build = variant.build
    if build is None:
        raise ValueError(f"variant {variant.pk} has no build")
    kernel = stored_artifact(build, settings.HOME)
    status = _BUILD_STATUS.get(BuildState(build.state))
    if status == "FAIL" and build.blame == "lab":
        status = "ERROR"
    return _present(
        id=_build_id(build, origin),
        origin=origin,
        checkout_id=checkout,
        architecture=BUILT.name,
        compiler=kernel.metadata.toolchain if kernel else build.request.get("cc"),
        config_name="+".join(name for name, _ in build.request.get("fragments", [])) or None,
        start_time=build.started_at.isoformat() if build.started_at else None,
        duration=build.wall_seconds,
        log_url=f"{link.rstrip('/')}/builds/{build.pk}/log.txt" if link else None,
        log_excerpt=f"{build.problem}\n{build.problem_detail}"[:_EXCERPT] if build.problem else None,
        comment=build.release or None,
        status=status,
        misc={"code_hash": build.code_hash, "artifact": build.artifact_key},
    )


def _build_id(build: Build, origin: str) -> str:
    return f"{origin}:{build.inputs}"


def _tests(
    experiment: Experiment, data: ComparisonData, variants: Mapping[str, Variant], origin: str
) -> Iterator[Item]:
    """Yield all tests: boots first, then for each case the failed, left-out and measured ones."""
    where = _environment(data)
    runs = Run.objects.filter(experiment=experiment)
    booted = set(runs.filter(state=RunState.DONE).values_list("variant__name", "case"))
    left_out = set(runs.filter(state=RunState.CANCELLED).values_list("variant__name", "case")) - booted
    for name, variant in variants.items():
        if any(name == variant_name for variant_name, _ in booted):
            yield _test(_Of(variant, origin, where), "boot", "PASS", f"boot-{experiment.pk}")
    for case in data["cases"]:
        for name, variant in variants.items():
            of = _Of(variant, origin, where)
            for number, failure in enumerate(f for f in case["failures"] if f["variant"] == name):
                yield _failed(of, case, failure, number)
            if (name, case["id"]) in left_out:
                yield _test(of, _path(case), "SKIP", f"case-{case['id']}-left-out")
            for metric in case["metrics"]:
                yield from _measured(of, data, case, metric)


class _Of:
    """The common fields of a variant's tests."""

    def __init__(self, variant: Variant, origin: str, where: Item) -> None:
        self.variant, self.origin, self.where = variant, origin, where


def _environment(data: ComparisonData) -> Item:
    where = data["environment"]
    comment = f"{where['target']}: {where['vcpus']} vCPUs, {where['memory_mib']} MiB, {where['accelerator']}"
    return {"comment": plain(comment), "misc": dict(where)}


def _test(of: _Of, path: str, status: str, name: str, **more: Any) -> Item:
    build = of.variant.build
    return _present(
        id=f"{of.origin}:{of.variant.pk}-{name}",
        origin=of.origin,
        build_id=_build_id(build, of.origin) if build else None,
        path=path,
        status=status,
        environment=of.where,
        **more,
    )


def _path(case: CaseData, metric: str = "") -> str:
    # The preset, and the parameters in which another case of it differs: two tests of one path are one for a reader.
    preset = case["title"].removeprefix(f"{case['workload']} (").removesuffix(")")
    parts = [part for part in ("kperflab", case["workload"], preset, metric) if part]
    return ".".join(re.sub(r"[^a-zA-Z0-9_-]", "_", part) for part in parts)


def _failed(of: _Of, case: CaseData, failure: FailureData, number: int) -> Item:
    status = "FAIL"
    if failure["blame"] == "lab":
        status = "MISS" if failure["outcome"] == "lost" else "ERROR"
    path = "boot" if failure["outcome"] in _OF_BOOTING else _path(case)
    comment = f"{counted(failure['boots'], 'boot')} of {of.variant.name} ended as {failure['outcome']}"
    return _test(
        of,
        path,
        status,
        f"case-{case['id']}-failed-{number}",
        comment=plain(comment),
        log_excerpt=failure["problem"][:_EXCERPT],
    )


def _measured(of: _Of, data: ComparisonData, case: CaseData, metric: MetricData) -> Iterator[Item]:
    name = of.variant.name
    cell = next((row for row in metric["cells"] if row["variant"] == name), None)
    spread = next((row for row in metric["spreads"] if row["variant"] == name), None)
    if cell is None and spread is None:
        return
    value = cell["median"] if cell and cell["median"] is not None else spread["median"] if spread else None
    misc: Item = {"experiment": data["experiment"]["id"], "clock": data["experiment"]["clock"]}
    misc |= {"better": metric["better"], "primary": metric["primary"], "permalink": data["permalink"]}
    misc["case"] = case["title"]
    if spread:
        misc["spread"] = dict(spread)
    if cell:
        misc["comparison"] = dict(cell)
    yield _test(
        of,
        _path(case, metric["name"]),
        _status(metric, cell),
        f"case-{case['id']}-{metric['name']}",
        number=None if value is None else _present(value=value, unit=metric["unit"] or None),
        comment=plain(f"{name}: {_verdict(cell)}, {told_change(cell)}") if cell else plain(name),
        misc=misc,
    )


def _verdict(cell: CellData) -> str:
    why = doubt(cell)
    return f"{cell['verdict']} ({why})" if why else cell["verdict"]


def _status(metric: MetricData, cell: CellData | None) -> str:
    if cell is None or cell["role"] != "candidate" or not metric["primary"]:
        return "DONE"
    return {"failed": "FAIL", "skipped": "DONE", "passed": "PASS"}[shown_verdict(cell["verdict"]).outcome]


def _present(**fields: Any) -> Item:
    """Return the fields that have a value: the schema has no null."""
    return {name: value for name, value in fields.items() if value is not None}


def _without_nul(value: Any) -> Any:
    """Replace NUL, which texts of guests may hold and the schema refuses."""
    if isinstance(value, str):
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if isinstance(value, dict):
        return {name: _without_nul(member) for name, member in value.items()}
    return [_without_nul(member) for member in value] if isinstance(value, list) else value
