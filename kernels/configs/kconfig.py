# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads a tree's Kconfig files far enough to say why a symbol does not have the requested value.

The kernel's own tools drop such a symbol silently. Syntax: Documentation/kbuild/kconfig-language.rst.
Preprocessor calls such as $(cc-option,…) are taken as true: they are about the toolchain, and blaming
them without evaluating them would mislead.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from kernels.architecture import BUILT

# The kernel has 1,700 files with 6 MB.
MAX_FILE_BYTES = 1 << 20
MAX_ALL_BYTES = 64 << 20
# A longer line is ignored.
MAX_LINE = 4096
MAX_DEPTH = 60
# Each symbol looks at the blocks around it, and refers to all of their conditions: bytes of a reference.
_REFERENCE = 8
# The variables of the kernel's Makefile that Kconfig's source lines use.
_VARIABLES = {**BUILT.kconfig, "KBUILD_EXTMOD": ""}
_ENTRY = re.compile(r"(config|menuconfig|choice|menu|if|comment)(?:\s+(.*))?")
_END = re.compile(r"(endchoice|endmenu|endif)(?:\s|$)")
_SOURCE = re.compile(r'([or]{0,2})source\s+"?([^"]+)"?')
_ATTRIBUTE = re.compile(
    r"(depends on|visible if|select|imply|bool|tristate|string|int|hex|prompt|def_bool|def_tristate|default|range)\b\s*(.*)"
)
_PROMPT = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*(?:if\s+(.*))?""")
_CONDITION = re.compile(r"(.*?)\s+if\s+(.*)")
_HELP = re.compile(r"(?:---\s*)?help(?:\s*---)?\s*")
_TYPES = {"bool", "tristate", "string", "int", "hex", "prompt"}


@dataclass(slots=True)
class ConfigDefinition:
    """One `config` entry of a symbol, with the dependencies of the entry and of the blocks around it.

    prompts: the condition of each prompt, "" for none. choice: identifies the choice it belongs to.
    """

    where: str
    depends: list[str]
    prompts: list[str] = field(default_factory=list)
    choice: str = ""


@dataclass(slots=True)
class Kconfig:
    """Every symbol of a tree with its definitions, and the symbols that select it, each with its condition."""

    symbols: dict[str, list[ConfigDefinition]] = field(default_factory=dict)
    selected: dict[str, list[tuple[str, str]]] = field(default_factory=dict)


@dataclass(slots=True)
class _Block:
    kind: str
    depends: list[str]
    name: str = ""


def read_kconfig(sources: Sequence[Path]) -> Kconfig:
    """Parse the Kconfig files of a tree; if several directories have a file, the first one's is read."""
    reader = _Reader(sources)
    reader.read("Kconfig")
    return reader.found


class _Reader:
    def __init__(self, sources: Sequence[Path]) -> None:
        self.sources = [path.resolve() for path in sources]
        self.found = Kconfig()
        self.blocks: list[_Block] = []
        self.symbol = ""
        self.definition: ConfigDefinition | None = None
        self.left = MAX_ALL_BYTES
        self.reading: list[str] = []

    def read(self, name: str) -> None:
        if name in self.reading or len(self.reading) > MAX_DEPTH:
            return
        self.reading.append(name)
        self._parse(name, self._text(name))
        self.reading.pop()

    def _parse(self, name: str, text: str) -> None:
        for number, line in _logical_lines(text):
            if match := _SOURCE.fullmatch(line):
                self._close()
                folder = str(Path(name).parent) + "/" if "r" in match[1] else ""
                self.read(_expand(folder + match[2].strip()))
            elif match := _END.match(line):
                self._close()
                if self.blocks:
                    self.blocks.pop()
            elif match := _ENTRY.fullmatch(line):
                self._open(match[1], (match[2] or "").strip(), f"{name}:{number}")
            elif match := _ATTRIBUTE.fullmatch(line):
                self._attribute(match[1], match[2].strip())

    def _text(self, name: str) -> str:
        for source in self.sources if self.left > 0 else ():
            # A call that we do not evaluate may make a name that no file can have.
            with suppress(OSError, ValueError):
                path = (source / name).resolve()
                # A link of the tree must not lead us out of it.
                if path.is_relative_to(source) and path.is_file():
                    with path.open("rb") as file:
                        data = file.read(MAX_FILE_BYTES)
                    self.left -= len(data) + MAX_LINE
                    return data.decode("utf-8", "replace")
        return ""

    def _close(self) -> None:
        self.symbol, self.definition = "", None

    def _open(self, kind: str, rest: str, where: str) -> None:
        self._close()
        if kind in ("config", "menuconfig"):
            blocks = self.blocks if self.left > 0 else []
            around = [condition for block in blocks for condition in block.depends]
            self.left -= (len(blocks) + len(around)) * _REFERENCE
            choice = next((block.name for block in reversed(blocks) if block.kind == "choice"), "")
            self.symbol = rest.split()[0] if rest else ""
            self.definition = ConfigDefinition(where, around, choice=choice)
            self.found.symbols.setdefault(self.symbol, []).append(self.definition)
        elif kind == "if":
            self.blocks.append(_Block(kind, [rest]))
        elif kind == "comment":
            # What it depends on is its own, not that of the block around it.
            self.definition = ConfigDefinition(where, [])
        elif kind in ("menu", "choice"):
            self.blocks.append(_Block(kind, [], where))

    def _attribute(self, kind: str, rest: str) -> None:
        if kind == "depends on":
            if self.definition is not None:
                self.definition.depends.append(rest)
            elif self.blocks:
                self.blocks[-1].depends.append(rest)
        elif self.definition is None:
            return
        elif kind in ("select", "imply"):
            match = _CONDITION.fullmatch(rest)
            target, condition = (match[1], match[2]) if match else (rest, "")
            if kind == "select":
                self.found.selected.setdefault(target.strip(), []).append((self.symbol, condition))
        elif kind in _TYPES and (match := _PROMPT.fullmatch(rest)):
            self.definition.prompts.append((match[1] or "").strip())


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines by number, with continuations joined, without comments, help texts, blank and overlong lines.

    Each run of blanks becomes one, since a search in a long run takes quadratic time.
    """
    help_indent, in_help, joined = -1, False, ""
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.expandtabs()
        if in_help:
            indent = len(line) - len(line.lstrip())
            if not line.strip() or (help_indent < 0 and indent > 0) or indent >= help_indent > 0:
                help_indent = indent if help_indent < 0 and line.strip() else help_indent
                continue
            in_help, help_indent = False, -1
        if line.endswith("\\"):
            joined += line[:-1] + " "
            continue
        whole, joined = " ".join(_uncommented((joined + line).strip()).split()), ""
        if _HELP.fullmatch(whole):
            in_help = True
        elif 0 < len(whole) <= MAX_LINE:
            yield number, whole


def _uncommented(line: str) -> str:
    if "#" not in line:
        return line
    quote = ""
    for position, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char == "#":
            return line[:position].strip()
    return line


def _expand(text: str) -> str:
    return re.sub(r"\$\(([A-Za-z_]+)\)", lambda match: _VARIABLES.get(match[1], match[0]), text)


def off_parts(expression: str, config: Mapping[str, str]) -> list[str]:
    """Return the parts of `a && b && c` that are false under a config, as written."""
    text = _quoted_calls(expression)
    if match := _CONDITION.fullmatch(text):  # depends on X if Y, since Linux 7.0
        text = match[1] if _Expression(match[2], config).value() else "y"
    return [part for part in _conjuncts(text) if not _Expression(part, config).value()]


def _quoted_calls(expression: str) -> str:
    """Replace every preprocessor call by y."""
    text = _expand(expression)
    while (start := text.find("$(")) >= 0:
        depth, end = 0, start + 1
        for end in range(start + 1, len(text)):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            if depth == 0:
                break
        text = text[:start] + "y" + text[end + 1 :]
    return text


def _conjuncts(expression: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for position, char in enumerate(expression):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth == 0 and expression.startswith("&&", position):
            parts.append(expression[start:position].strip())
            start = position + 2
        elif depth == 0 and expression.startswith("||", position):
            return [expression.strip()]
    last = expression[start:].strip()
    return [*parts, last] if last else parts


class _Expression:
    """Evaluates one Kconfig expression: n, m, y are 0, 1, 2."""

    _TOKEN = re.compile(r'\s*(&&|\|\||!=|<=|>=|[!()=<>]|"(?:[^"\\]|\\.)*"|\'[^\']*\'|[^\s&|!()=<>"\']+)')

    def __init__(self, text: str, config: Mapping[str, str]) -> None:
        self.tokens = self._TOKEN.findall(text)
        self.config = config

    def value(self) -> int:
        """Return 0 if it is false; an unreadable expression counts as true."""
        try:
            return self._or()
        except (IndexError, RecursionError):
            return 2

    def _peek(self) -> str:
        return self.tokens[0] if self.tokens else ""

    def _or(self) -> int:
        value = self._and()
        while self._peek() == "||":
            self.tokens.pop(0)
            value = max(value, self._and())
        return value

    def _and(self) -> int:
        value = self._not()
        while self._peek() == "&&":
            self.tokens.pop(0)
            value = min(value, self._not())
        return value

    def _not(self) -> int:
        if self._peek() == "!":
            self.tokens.pop(0)
            return 2 - self._not()
        if self._peek() == "(":
            self.tokens.pop(0)
            value = self._or()
            self.tokens.pop(0)
            return value
        left = self._term()
        if self._peek() in ("=", "!=", "<", "<=", ">", ">="):
            return self._compare(left, self.tokens.pop(0), self._term())
        return {"y": 2, "m": 1}.get(left, 0)

    def _term(self) -> str:
        token = str(self.tokens.pop(0))
        if token[0] in "\"'":
            return token[1:-1]
        if token in ("y", "m", "n") or not re.fullmatch(r"[A-Za-z0-9_]+", token):
            return token
        if re.fullmatch(r"\d+|0[xX][0-9a-fA-F]+", token):
            return token
        # Kconfig: an undefined name stands for itself, and such names are in lower case.
        return self.config.get(token, token if token.islower() else "n").strip('"')

    def _compare(self, left: str, sign: str, right: str) -> int:
        try:
            low, high = int(left, 0), int(right, 0)
        except ValueError:
            return 2 * ((left == right) if sign == "=" else (left != right) if sign == "!=" else True)
        order = {"=": low == high, "!=": low != high, "<": low < high, "<=": low <= high, ">": low > high}
        return 2 * order.get(sign, low >= high)
