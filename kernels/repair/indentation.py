# SPDX-License-Identifier: GPL-2.0-or-later
"""Compute where a line of C begins: the indentation of added lines whose blanks are lost, in the kernel's style.

The layout is fed with the lines before (which have their blanks) and tracks open braces, open parentheses, control
statements without braces, and an unclosed comment. From these follows where the next line begins.
Where the style leaves a choice (how a statement continues on the next line) the file's own habit so far decides.
Checked by predicting every line of kernel sources from the lines before it (see tests and `bench`).
"""

import re
from dataclasses import dataclass, field

TAB = 8
# Characters and brackets; real code stays far below. Longer or deeper code is laid out badly, but fast.
LONGEST_STATEMENT = 4_000
DEEPEST = 100
_CONTROL = re.compile(r"(?:\}\s*)?(?:else\s+)?(?:if|while|for|switch|[a-z_0-9]*for_each[a-z_0-9]*)\s*\(.*\)$")
_ELSE = re.compile(r"(?:\}\s*)?else$")
_ELSE_START = re.compile(r"else\b")
_LABEL = re.compile(r"(?!default\b)[A-Za-z_][A-Za-z0-9_]*\s*:$")
_CASE = re.compile(r"(?:case\b.*|default\s*):$")
_CASE_START = re.compile(r"(?:case\b|default\s*:)")
_OPENERS, _CLOSERS = {"(": ")", "[": "]", "{": "}"}, {")": "(", "]": "[", "}": "{"}


@dataclass(slots=True)
class _Bracket:
    """An open bracket: the indentation of its statement, the column behind it, and how its lines continue."""

    kind: str
    indent: str
    column: int = 0
    hanging: bool = False
    data: bool = False
    inner: str | None = None
    pending: list[tuple[str, bool]] = field(default_factory=list)


@dataclass(slots=True)
class _Style:
    """The indentation of continued lines in this file.

    votes: by number of extra tabs; 0 stands for "aligned with the bracket". same: the choice at the last similar place.
    """

    votes: dict[int, int] = field(default_factory=lambda: {0: 0})
    same: dict[str, int] = field(default_factory=dict)

    def vote(self, tabs: int, likeness: str) -> None:
        self.same[likeness] = tabs
        self.votes[tabs] = self.votes.get(tabs, 0) + 1

    @property
    def tabs(self) -> int:
        return max(self.votes, key=lambda tabs: self.votes[tabs])


class Indentation:
    """The open brackets and blocks at the end of the lines fed so far."""

    def __init__(self) -> None:
        self._brackets: list[_Bracket] = [_Bracket("", "")]
        self._styles = {True: _Style(), False: _Style()}
        self._comment: str | None = None
        self._previous = ""
        self._start: str | None = None
        self._start_code = ""
        self._continued: str | None = None
        self._closed_if: str | None = None
        self._macro = False

    def indent_for(self, text: str) -> str:
        """Return the blanks before a line of which only the rest is known."""
        code = _code(text.strip(), in_comment=self._comment is not None)[0]
        text = text.strip()
        if self._macro:
            return self._in_macro(text)
        if self._comment is not None:
            return self._in_comment(text)
        if text.startswith("#") or not text:
            return ""
        top = self._brackets[-1]
        if top.kind in ("(", "["):
            return self._in_parentheses(text, top)
        if text.startswith("}"):
            return top.indent
        if _CASE_START.match(text) and top.kind == "{":
            return top.indent
        if _LABEL.fullmatch(code) and not top.data:
            return ""
        return self._statement(text, top)

    def feed(self, line: str) -> None:
        """Take in the next line, with its blanks."""
        was_comment = self._comment is not None
        code, in_comment = _code(line.strip(), in_comment=was_comment)
        indent = line[: len(line) - len(line.lstrip())]
        macro = line.endswith("\\")
        directive = self._macro or line.startswith("#")
        if not in_comment:
            self._comment = None
        elif not was_comment:
            self._comment = _blanks(_width(line[: line.rindex("/*")]))
        self._previous = line
        self._macro = macro and directive
        if code and not directive:
            self._feed_code(code[:LONGEST_STATEMENT], indent, line)

    def replaced(self, line: str) -> None:
        """Take a line that the next ones replace: if it continued in a parenthesis, they get its indentation."""
        top = self._brackets[-1]
        if top.kind in ("(", "[") and top.inner is None and line.strip():
            top.inner = line[: len(line) - len(line.lstrip())]

    # the answers

    def _in_macro(self, text: str) -> str:
        indent = self._previous[: len(self._previous) - len(self._previous.lstrip())]
        if self._previous.startswith("#"):
            return "\t"
        body = self._previous.rstrip("\\").rstrip()
        if body.endswith("{"):
            indent += "\t"
        return indent.removesuffix("\t") if text.startswith("}") else indent

    def _in_comment(self, text: str) -> str:
        if text.startswith("*"):
            return f"{self._comment} "
        if self._previous.strip().startswith("/*"):
            return f"{self._comment}   "
        return self._previous[: len(self._previous) - len(self._previous.lstrip())]

    def _in_parentheses(self, text: str, top: _Bracket) -> str:
        if top.inner is not None:
            return top.inner
        style = self._styles[self._outside()]
        tabs = style.same.get(self._likeness(text), style.tabs)
        if top.hanging:
            return top.indent + "\t" * (tabs or 1 + self._outside())
        if tabs:
            return top.indent + "\t" * tabs
        return _blanks(top.column)

    def _statement(self, text: str, top: _Bracket) -> str:
        if self._start is not None:
            return self._continuation(text)
        if top.pending:
            indent = top.pending[-1][0]
            return indent if text.startswith("{") else indent + "\t"
        if self._closed_if is not None and _ELSE_START.match(text):
            return self._closed_if
        if top.inner is not None:
            return top.inner
        return top.indent + "\t" if top.kind else ""

    def _continuation(self, text: str) -> str:
        """Return the indentation of a statement that continues without an open parenthesis."""
        start = self._start or ""
        if text.startswith("{"):
            return start
        if text.startswith(("__acquires(", "__releases(", "__must_hold(")):
            return start + "\t"
        if (
            self._outside()
            and not self._start_code.endswith(("=", ",", "\\"))
            and "=" not in self._start_code
        ):
            return ""
        if self._continued is not None:
            return self._continued
        match = re.match(r"return\s+", self._start_code)
        if match and not self._start_code.endswith("("):
            return start + " " * 7
        return start + "\t"

    def _outside(self) -> bool:
        """Return whether the next line is outside all functions and other blocks."""
        return not any(bracket.kind == "{" for bracket in self._brackets)

    # the memory

    def _feed_code(self, code: str, indent: str, line: str) -> None:
        top = self._brackets[-1]
        inside = top.kind in ("(", "[")
        if inside and top.inner is None:
            self._learn(top, indent, line.strip())
            top.inner = indent
        fresh = self._start is None and not inside
        if fresh:
            self._start, self._start_code, self._continued = indent, code, None
            self._note_statement(code, indent, top)
        elif not inside and not code.startswith("{"):
            self._continued = indent
        self._scan("" if fresh else self._start_code, code, line)
        if not fresh and len(self._start_code) < LONGEST_STATEMENT:
            self._start_code = f"{self._start_code} {code}"
        if self._brackets[-1].kind in ("(", "["):
            return
        self._finish(code)

    def _learn(self, bracket: _Bracket, indent: str, text: str) -> None:
        """Remember how a bracket's lines continue."""
        width = _width(indent) - _width(bracket.indent)
        style = self._styles[self._outside()]
        if not bracket.hanging and _width(indent) == bracket.column:
            style.vote(0, self._likeness(text))
        elif width > 0 and width % TAB == 0 and not bracket.hanging:
            style.vote(width // TAB, self._likeness(text))

    def _likeness(self, text: str) -> str:
        """Return a key that continued lines with the same indentation are likely to share."""
        return f"{self._start_code.partition(' ')[0]} {text}"

    def _note_statement(self, code: str, indent: str, top: _Bracket) -> None:
        """Learn the block's indentation from a statement that begins, unless it is a label or a body without braces."""
        if _LABEL.fullmatch(code) and not top.data:
            return
        if code.startswith("}") or top.pending or _ELSE_START.match(code):
            return
        if _CASE_START.match(code) and not top.data:
            top.inner = indent + "\t"
            return
        top.inner = indent

    def _scan(self, head: str, code: str, line: str) -> None:
        """Open and close brackets; head is the part of the statement before this line."""
        column = _width(line[: len(line) - len(line.lstrip())])
        text = line.strip()
        positions = _columns(text, column)
        for at, char in enumerate(code):
            if len(self._brackets) > DEEPEST:
                del self._brackets[1:]
            if char in _OPENERS:
                rest = code[at + 1 :].strip()
                where = positions[at + 1] if at + 1 < len(positions) else column
                data = char == "{" and self._is_data(f"{head} {code[:at]}".strip(), code[:at])
                self._brackets.append(_Bracket(char, self._start or "", where, not rest, data))
            elif char in _CLOSERS and len(self._brackets) > 1:
                self._close(_CLOSERS[char])

    def _close(self, opener: str) -> None:
        """Close the innermost bracket of this kind, and any unbalanced ones inside it."""
        for depth in range(len(self._brackets) - 1, 0, -1):
            if self._brackets[depth].kind == opener:
                closed = self._brackets[depth]
                del self._brackets[depth:]
                if opener == "{":
                    self._start = closed.indent
                return

    def _is_data(self, head: str, before: str) -> bool:
        """Return whether the next brace holds data (members, initialisers) rather than statements."""
        if head.endswith(("=", ",", "{")) or (not before.strip() and self._brackets[-1].data):
            return True
        behind = head[max(head.rfind("("), head.rfind(")")) + 1 :]
        return re.search(r"\b(?:struct|union|enum)\b", behind) is not None

    def _finish(self, code: str) -> None:
        """End the statement if it is complete with this line."""
        top = self._brackets[-1]
        start = self._start or ""
        head = self._start_code
        if code.endswith("{"):
            self._start, self._closed_if = None, None
        elif code.endswith((";", "}")) or (code.endswith(",") and top.data):
            self._complete(top, start, head)
        elif _CASE.fullmatch(code) or _LABEL.fullmatch(code):
            self._start = None
        elif not top.data and (_CONTROL.fullmatch(head) or _ELSE.fullmatch(head) or head == "do"):
            top.pending.append((start, re.search(r"\bif\b", head) is not None))
            self._start, self._closed_if = None, None
        elif self._outside() and code.endswith(")"):
            # a macro such as EXPORT_SYMBOL(x), or a function's head; both are followed by column 0
            self._start = start if not re.match(r"[A-Z_0-9]+\(", head) else None

    def _complete(self, top: _Bracket, start: str, head: str) -> None:
        """Complete a statement, and with it the control statements whose only body it was."""
        ifs = [indent for indent, is_if in top.pending if is_if]
        if re.match(r"(?:\}\s*)?(?:else\s+)?if\b", head):
            ifs.append(start)
        self._closed_if = ifs[-1] if ifs else None
        top.pending.clear()
        self._start = None


def _width(text: str) -> int:
    return len(text.expandtabs(TAB))


def _blanks(width: int) -> str:
    return "\t" * (width // TAB) + " " * (width % TAB)


def _columns(text: str, first: int) -> list[int]:
    """The column of every character of a line that begins at column `first`, and of its end."""
    columns = [first]
    for char in text:
        columns.append((columns[-1] // TAB + 1) * TAB if char == "\t" else columns[-1] + 1)
    return columns


def _code(text: str, *, in_comment: bool) -> tuple[str, bool]:
    """Return a line with its comments and strings blanked out, and whether a comment continues behind it."""
    out: list[str] = []
    at = 0
    quote = ""
    while at < len(text):
        pair = text[at : at + 2]
        if in_comment:
            in_comment = pair != "*/"
            step = 1 if in_comment else 2
            out.append(" " * step)
        elif quote:
            step = 2 if text[at] == "\\" else 1
            quote = "" if text[at] == quote else quote
            out.append("_" * min(step, len(text) - at))
        elif pair == "//":
            break
        elif pair == "/*":
            in_comment, step = True, 2
            out.append("  ")
        else:
            step = 1
            quote = text[at] if text[at] in "\"'" else ""
            out.append("_" if quote else text[at])
        at += step
    return "".join(out).rstrip(), in_comment
