# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the output of `git show` and `git log -p -1`: one commit's header and message before its diff."""

import re

from kernels.mails.letters import MAX_AUTHOR, MAX_TITLE, Letter, Title, diff_text, split_message
from kernels.printable import clean_line, clean_text

_COMMIT = re.compile(r"\s*commit [0-9a-f]{40,64}(?: \([^\n]*\))?\n")
_FIELD = re.compile(r"^(Author|Date|AuthorDate): +(.*)$", re.MULTILINE)
# A line of the message; git indents it by four blanks.
_LINE = re.compile(r"^(?: {4}(.*)|[ \t]*)$")


def read_shown_commit(data: bytes) -> Letter | None:
    """Return the only commit of the text as a mail; None unless the text begins with a commit and holds no other."""
    text = diff_text(data)
    if not _COMMIT.match(text) or len(re.findall(r"^commit [0-9a-f]{40,64}\b", text, re.MULTILINE)) > 1:
        return None
    before, rest = split_message(text.encode("utf-8", "surrogateescape"))
    head, _, message = before.decode("utf-8", "replace").partition("\n\n")
    fields = {name.removeprefix("Author") or "Author": value for name, value in _FIELD.findall(head)}
    lines = [match[1] or "" for line in message.split("\n") if (match := _LINE.match(line))]
    subject, _, body = "\n".join(lines).strip().partition("\n\n")
    return Letter(
        Title(clean_line(subject)[:MAX_TITLE].strip()),
        clean_line(fields.get("Author", ""))[:MAX_AUTHOR],
        clean_line(fields.get("Date", "")),
        "",
        clean_text(body).strip(),
        rest.decode("utf-8", "surrogateescape"),
    )
