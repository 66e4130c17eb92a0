# SPDX-License-Identifier: GPL-2.0-or-later
"""A reply to a kernel mailing list: plain text of at most 72 columns with the conclusion, the tables and how it was measured.

Only the permalink and a Tested-by may be longer. A Tested-by is written for a person who requests it in their own name, and
only where the kernels built and booted and nothing got worse.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from lab.comparisons.exports.figures import is_fine, told_change
from lab.comparisons.reply.mail_text import fold, harmless, name
from lab.comparisons.reply.method import environment, method
from lab.comparisons.reply.table import case_lines, shown_metrics
from lab.comparisons.shape import CellData, ComparisonData, EffectData, MetricData, VariantData
from lab.errors import SpecError
from lab.figures import counted

# More would make the mail too long: the page has all of it.
_MOST_VARIANTS, _MOST_LINES = 16, 12
_SIGNER = re.compile(r'[^\s<>"@:][^<>"@:\x00-\x1f\x7f]*<([^\s<>@,;:"]+@[A-Za-z0-9.-]+)>')


@dataclass(frozen=True, slots=True)
class ReplyOptions:
    """patch: cover only the variants with this switch. signer: "Name <address>" of the person who gives a Tested-by."""

    patch: str = ""
    signer: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """The text. unsigned: why a requested Tested-by is missing, or ""."""

    text: str
    unsigned: str


def reply_text(data: ComparisonData) -> str:
    """Return the text of the reply about all patches, signed by nobody."""
    return write_reply(data).text


def write_reply(data: ComparisonData, options: ReplyOptions | None = None) -> Reply:
    """Write the reply. Raises SpecError if the patch does not exist, or the signer is not a name with a mail address."""
    asked = options or ReplyOptions()
    chosen = _chosen(data, asked.patch)
    signer = _signer(asked.signer)
    refused = why_unsigned(data, chosen) if signer else ""
    parts = [
        ["Hi,"],
        _opening(data, asked.patch),
        _conclusion(data, asked.patch),
        *_tables(data, chosen),
        _headed("Not measured:", _failures(data, chosen)),
        _effects(data) if not asked.patch else [],
        method(data),
        environment(data),
        [f"Tested-by: {signer}"] if signer and not refused else [],
    ]
    return Reply("\n\n".join("\n".join(lines) for lines in parts if lines) + "\n", refused)


def why_unsigned(data: ComparisonData, variants: Sequence[VariantData]) -> str:
    """Return why a Tested-by is refused, or ""."""
    if data["experiment"]["state"] != "done":
        return f"no Tested-by: the experiment is {data['experiment']['state']}"
    if not variants:
        return "no Tested-by: no patch was tested"
    names = [variant["name"] for variant in variants]
    for variant in variants:
        if variant["state"] != "ready":
            return f"no Tested-by: {name(variant['name'])} was not built"
    for case, metric, cell in _cells(data, names):
        if cell["verdict"] == "regression":
            return f"no Tested-by: {name(cell['variant'])} makes {metric['name']} of {name(case)} worse"
    failed = next((f for case in data["cases"] for f in case["failures"] if f["variant"] in names), None)
    if failed:
        return f"no Tested-by: a boot of {name(failed['variant'])} ended as {failed['outcome']}"
    judged = {
        (cell["variant"], case)
        for case, metric, cell in _cells(data, names)
        if metric["primary"] and cell["boots"]
    }
    for variant_name, case in product(names, (case["title"] for case in data["cases"])):
        if (variant_name, case) not in judged:
            return f"no Tested-by: {name(variant_name)} has no verdict for {name(case)}"
    return "" if judged else f"no Tested-by: {name(names[0])} has no verdict"


def _signer(asked: str) -> str:
    if not asked:
        return ""
    text = asked.strip()
    if not _SIGNER.fullmatch(text) or not text.isprintable() or len(text) > 200:
        raise SpecError(
            f'sign: "{name(asked, 60)}" is not a name with an address: "Ada Lovelace <ada@example.org>"'
        )
    return " ".join(text.split())


def _chosen(data: ComparisonData, patch: str) -> list[VariantData]:
    """Return the candidates to cover: all that are not pruned, or those with one switch."""
    candidates = [
        variant
        for variant in data["variants"]
        if variant["role"] == "candidate" and variant["state"] != "pruned"
    ]
    if not patch:
        return candidates
    names = [switch["name"] for switch in data["switches"]]
    if patch not in names:
        # Imported here, since it loads pydantic: labctl, which must start fast, writes replies, too.
        from lab.validation_messages import nearest

        raise SpecError(
            f'for: there is no switch "{name(patch, 60)}" in this experiment; {nearest(patch, names)}'
        )
    return [candidate for candidate in candidates if patch in candidate["switches"]]


def _opening(data: ComparisonData, patch: str) -> list[str]:
    asked, base = data["experiment"], data["base"]
    what = (
        next((switch["title"] for switch in data["switches"] if switch["name"] == patch), "")
        or patch
        or asked["name"]
    )
    opening = (
        f'I measured "{name(what, 120)}" on {name(base["tree"])} {name(base["revision"])}, with and without.'
    )
    if not data["switches"]:
        opening = (
            f'I compared {name(base["tree"])} {name(base["revision"])} with itself ("{name(what, 120)}").'
        )
    elif len(data["switches"]) > 1 and not patch:
        opening = f'I measured "{name(what, 120)}" on {name(base["tree"])} {name(base["revision"])}, each patch on and off.'
    lines = fold(opening, rest="" if harmless(what) else "  ")
    if asked["state"] == "failed":
        lines += fold(f"The experiment failed: {name(asked['problem'], 300)}", rest="  ")
    elif asked["state"] == "cancelled":
        lines += fold("The experiment was cancelled: the results below are from the boots until then.")
    elif asked["state"] != "done":
        lines += fold("The experiment is not finished yet: results may still change.")
    return lines


def _conclusion(data: ComparisonData, patch: str) -> list[str]:
    """Return the conclusion; in a reply about one of several patches, the one about kernels with that patch."""
    conclusion = data["conclusion"]
    one_of_several = patch and len(data["switches"]) > 1
    text = conclusion["patches"].get(patch, "") if one_of_several else conclusion["text"]
    return fold(name(text, 1000), rest="  ")


def _tables(data: ComparisonData, chosen: Sequence[VariantData]) -> Iterator[list[str]]:
    names = [variant["name"] for variant in chosen[:_MOST_VARIANTS]]
    if not data["switches"]:
        names = [variant["name"] for variant in data["variants"] if variant["role"] == "a/a"]
    for case in data["cases"]:
        yield case_lines(data, case, names)
    if len(chosen) > _MOST_VARIANTS:
        yield [f"{len(chosen) - _MOST_VARIANTS} more variants are on the page below."]


def _cells(data: ComparisonData, names: Sequence[str]) -> Iterator[tuple[str, MetricData, CellData]]:
    for case in data["cases"]:
        for metric in shown_metrics(case, names):
            for cell in metric["cells"]:
                if cell["variant"] in names:
                    yield case["title"], metric, cell


def _headed(head: str, bullets: Sequence[str]) -> list[str]:
    """Return a list with a heading, cut after _MOST_LINES bullets."""
    if not bullets:
        return []
    lines = [head]
    for bullet in bullets[:_MOST_LINES]:
        lines += fold(bullet, "- ", "  ")
    if len(bullets) > _MOST_LINES:
        lines.append(f"- and {len(bullets) - _MOST_LINES} more")
    return lines


def _failures(data: ComparisonData, chosen: Sequence[VariantData]) -> list[str]:
    """Return kernels that did not build, boots that ended badly, and kernels without numbers."""
    names = [variant["name"] for variant in chosen]
    lines = [
        f"{name(variant['name'], 60)} was not built, which is the lab's fault"
        if variant["blame"] == "lab"
        else f"{name(variant['name'], 60)} does not build: {name(variant['problem'], 200)}"
        for variant in chosen
        if variant["state"] == "failed"
    ]
    failures = [
        (case, failure)
        for case in data["cases"]
        for failure in case["failures"]
        if failure["variant"] in names
    ]
    lines += [
        f"{name(failure['variant'], 60)}, {name(case['title'])}: {counted(failure['boots'], 'boot')} ended as {failure['outcome']}: {name(failure['problem'], 200)}"
        for case, failure in failures
        if failure["blame"] != "lab"
    ]
    judged = {cell["variant"] for _, _, cell in _cells(data, names)} | {
        failure["variant"] for _, failure in failures
    }
    lines += [
        f"{name(variant['name'], 60)} was not measured"
        for variant in chosen
        if variant["name"] not in judged and variant["state"] == "ready"
    ]
    return lines


def _effects(data: ComparisonData) -> list[str]:
    """Return the effect of each switch over all combinations, and interacting pairs."""
    combined = any(
        len(variant["switches"]) > 1 and variant["state"] == "ready" for variant in data["variants"]
    )
    lines = [
        _effect(data, metric, effect)
        for case in data["cases"]
        for metric in case["metrics"]
        if metric["primary"] and combined
        for effect in metric["effects"]
        if effect["ratio"] is not None and (len(effect["switches"]) == 1 or _holds(effect))
    ]
    return _headed("Over all combinations:", lines)


def _holds(effect: EffectData) -> bool:
    low, high = effect["low"], effect["high"]
    apart = low is not None and high is not None and not low <= 1 <= high
    return apart and (effect["q"] is None or effect["q"] <= 0.05)


def _effect(data: ComparisonData, metric: MetricData, effect: EffectData) -> str:
    fine = is_fine(data)
    what = " x ".join(name(switch, 60) for switch in effect["switches"])
    shift = name(told_change(effect, fine=fine), 200)
    doubt = "" if _holds(effect) else " (may be none)"
    beyond = " beyond each alone" if len(effect["switches"]) > 1 else ""
    return f"{what}: {name(metric['name'], 30)} {shift}{beyond}{doubt}"
