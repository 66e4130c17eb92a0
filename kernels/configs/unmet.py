# SPDX-License-Identifier: GPL-2.0-or-later
"""Explain why a resolved .config lacks what was requested, in terms of the tree's Kconfig files."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from kernels.configs.kconfig import ConfigDefinition, Kconfig, off_parts, read_kconfig
from kernels.configs.request import Assignment
from kernels.errors import ConfigRejected

_NAMED = 6
# Requests for which the nearest symbols are looked up: a kernel has 20,000, and each look-up compares all of them.
_SUGGESTED = 5


def explain(missing: Sequence[Assignment], config: Mapping[str, str], sources: Sequence[Path]) -> None:
    """Raise ConfigRejected for the first request that was not met; detail holds the reasons of all.

    Requests marked optional pass when the tree does not define their symbol. sources: the directories
    of the tree, a variant's changed files before its base.
    """
    kconfig = read_kconfig(sources)
    counted = [line for line in missing if line.symbol in kconfig.symbols or not line.optional]
    reasons = [
        _reason(line, kconfig, config, suggest=number < _SUGGESTED) for number, line in enumerate(counted)
    ]
    if reasons:
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        raise ConfigRejected(reasons[0] + more, "\n".join(reasons))


def _reason(line: Assignment, kconfig: Kconfig, config: Mapping[str, str], *, suggest: bool) -> str:
    where = f'{line} (fragment "{line.fragment}" line {line.line})'
    definitions = kconfig.symbols.get(line.symbol)
    if not definitions:
        nearest = _nearest(line.symbol, kconfig) if suggest else ""
        return f"{where}: the tree has no such symbol{nearest}"
    got = config.get(line.symbol, "n")
    reason = _why_on(line, kconfig, config) if line.value == "n" else ""
    if not reason and (got == "n" or (got == "m" and line.value == "y")):
        reason = _why_off(line, definitions, kconfig, config)
    return f"{where} came out as {got}: {reason or 'the tree decides this value by itself'}"


def _nearest(symbol: str, kconfig: Kconfig) -> str:
    near = get_close_matches(symbol, kconfig.symbols, n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(f'CONFIG_{name}' for name in near)}?" if near else ""


def _why_on(line: Assignment, kconfig: Kconfig, config: Mapping[str, str]) -> str:
    by = [name for name, condition in kconfig.selected.get(line.symbol, []) if _on(name, condition, config)]
    return f"{_listed(by)} {'selects' if len(by) == 1 else 'select'} it" if by else ""


def _on(name: str, condition: str, config: Mapping[str, str]) -> bool:
    return config.get(name, "n") != "n" and not off_parts(condition or "y", config)


def _why_off(
    line: Assignment, definitions: Sequence[ConfigDefinition], kconfig: Kconfig, config: Mapping[str, str]
) -> str:
    """Return the reason why a symbol is off, from the definition with the fewest unmet dependencies."""
    off = min(
        ([part for text in each.depends for part in off_parts(text, config)] for each in definitions), key=len
    )
    if off:
        return f"it needs {' and '.join(_part(part) for part in dict.fromkeys(off))}"
    prompts = [prompt for each in definitions for prompt in each.prompts]
    if not prompts:
        by = [name for name, _ in kconfig.selected.get(line.symbol, [])]
        return (
            f"it cannot be set by hand; {_listed(by)} would select it" if by else "it cannot be set by hand"
        )
    closed = [part for prompt in prompts if prompt for part in off_parts(prompt, config)]
    if closed and "" not in prompts:
        return f"it can only be set with {' and '.join(_part(part) for part in closed)}"
    rival = _rival(line.symbol, definitions, kconfig, config)
    return (
        f'it is one of a choice in which {rival} is set; add "# CONFIG_{rival} is not set"' if rival else ""
    )


def _rival(
    symbol: str, definitions: Sequence[ConfigDefinition], kconfig: Kconfig, config: Mapping[str, str]
) -> str:
    choices = {each.choice for each in definitions if each.choice}
    for other, entries in kconfig.symbols.items():
        if other != symbol and config.get(other) == "y" and any(each.choice in choices for each in entries):
            return other
    return ""


def _part(text: str) -> str:
    plain = text.removeprefix("!")
    if plain.replace("_", "").isalnum():
        return f"CONFIG_{plain} off" if text.startswith("!") else f"CONFIG_{plain}"
    return f"({text})" if not text.startswith("(") else text


def _listed(names: Sequence[str]) -> str:
    unique = list(dict.fromkeys(names))
    shown = ", ".join(f"CONFIG_{name}" for name in unique[:_NAMED])
    return shown + (f" and {len(unique) - _NAMED} more" if len(unique) > _NAMED else "")
