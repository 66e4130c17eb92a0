# SPDX-License-Identifier: GPL-2.0-or-later
"""Repair the blanks of added lines, which the base does not have: at the line's start, and runs of blanks inside it.

If the diff's changed lines still have tabs or runs of blanks, the blanks are intact and stay as they are (tabs that became
eight spaces become tabs again). If every run has become a single blank, C is laid out again by kernels.repair.indentation; a
line without any blank behind its `+` then begins in column 0. If the base has the same line with longer
runs of blanks, the base's blanks inside the line are used.
"""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from kernels.errors import Unplaceable
from kernels.repair.indentation import Indentation

# With what must follow the word, for a help text may begin a line with it: "if you have such a card".
_KCONFIG_ENTRY = re.compile(
    r"(?:menu)?config \w+|choice|end(?:if|menu|choice)( ?#.*)?|(?:menu|mainmenu|comment|[or]*source) [\"'$].*"
    r"|if (?:[A-Z0-9_!&|()=<>\"$ ]|\b[ymn]\b)+"
)
_KCONFIG_OPTION = re.compile(
    r"(?:bool|tristate|int|hex|string|def_bool|def_tristate|default|depends on|select|imply|range|prompt|help|option|modules"
    r"|visible if)\b"
)
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*:")
_C = {".c", ".h", ".dts", ".dtsi", ".l", ".y", ".S", ".lds", ".cocci"}
_PROSE = {".rst", ".txt", ".md", ""}


class AddedLines:
    """Gives added lines their blanks, walking down the file's new side once."""

    def __init__(self, path: str, base: Sequence[str], changed: Sequence[str]) -> None:
        self._path, self._base, self._at = path, base, 0
        self._layout = Indentation()
        self._previous = ""
        self._spared = any(text.startswith(("\t", "  ")) for text in changed)
        self._spaces_only = self._spared and not any("\t" in text for text in changed)
        self._marks = any(text.startswith(" ") for text in changed)
        self._inner = _known_lines(base)
        self._indented = 0

    def summary(self) -> str:
        """Return the number of lines laid out, in words for the report; "" for none."""
        if not self._indented:
            return ""
        return f", {self._indented} added line{'s' if self._indented > 1 else ''} indented again"

    def skip_to(self, at: int) -> None:
        """Take the base's lines up to this one, which no hunk touches."""
        for line in self._base[self._at : at]:
            self.keep(line)
        self._at = at

    def resume_at(self, at: int) -> None:
        """Continue behind a hunk."""
        self._at = at

    def keep(self, line: str) -> None:
        """Take a line of the new side."""
        self._layout.feed(line)
        self._previous = line if line.strip() else self._previous

    def replace(self, line: str) -> None:
        """Take a line of the base that the patch removes."""
        self._layout.replaced(line)

    def indent(self, text: str) -> str:
        """Return the added line with its blanks. Raises Unplaceable if they have a meaning and cannot be reconstructed."""
        line = self._spare(text) if self._spared else self._lay_out(text)
        self.keep(line)
        return line

    def _spare(self, text: str) -> str:
        text = text.rstrip()
        if not self._spaces_only or not any(line.startswith("\t") for line in self._base):
            return text
        blanks = len(text) - len(text.lstrip(" "))
        return "\t" * (blanks // 8) + " " * (blanks % 8) + text.lstrip(" ")

    def _lay_out(self, text: str) -> str:
        bare = text.strip()
        if not bare:
            return ""
        self._indented += 1
        bare = self._inner.get(_with_single_blanks(bare)) or bare
        if self._marks and not text.startswith(" "):
            return bare
        return self._indent_for(bare) + bare

    def _indent_for(self, bare: str) -> str:
        suffix, name = PurePosixPath(self._path).suffix, PurePosixPath(self._path).name
        if suffix in _C:
            indent = self._layout.indent_for(bare)
        elif name.startswith("Kconfig"):
            indent = _in_kconfig(bare, self._previous)
        elif name in ("Makefile", "Kbuild") or suffix == ".mk":
            indent = "\t" if self._marks else ""
        elif suffix in _PROSE:
            indent = self._previous[: len(self._previous) - len(self._previous.lstrip())]
        else:
            raise Unplaceable(
                f"the blanks at the head of an added line of a {suffix or name} file cannot be known"
            )
        if self._marks and not indent:
            # a blank stood before it, so it does not begin in column 0
            return " " if _LABEL.fullmatch(bare) else "\t"
        return indent


def _in_kconfig(bare: str, previous: str) -> str:
    if _KCONFIG_ENTRY.fullmatch(_with_single_blanks(bare)):
        return ""
    # A help text is the last of an entry, and its lines may begin with any word.
    helps = previous.startswith("\t  ") or previous.strip() == "help"
    return "\t" if _KCONFIG_OPTION.match(bare) and not helps else "\t  "


def _known_lines(base: Sequence[str]) -> dict[str, str]:
    """Return lines of the base by their text with each run of blanks as one; "" if two lines differ only in those runs.

    A mailer does not add a blank where there was none, so such a blank is the patch's own: `#define X (y)` is not `#define X(y)`.
    """
    known: dict[str, str] = {}
    for line in base:
        bare = line.strip()
        key = _with_single_blanks(bare)
        if known.setdefault(key, bare) != bare:
            known[key] = ""
    return known


def _with_single_blanks(text: str) -> str:
    return " ".join(text.split())
