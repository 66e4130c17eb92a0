# SPDX-License-Identifier: GPL-2.0-or-later
"""A diff as a database keeps it: unchanged if it is plain text, else a mail in quoted-printable that contains its bytes."""

from kernels.mails.letters import MBOX_LINE, Letter, Title, is_plain, read_letters, write_letter
from kernels.printable import shown

_MARK = "---\n"


def stored_diff(diff: str) -> str:
    """Return a diff as plain text, from which `diff_of` makes the same diff."""
    return diff if is_plain(diff) else write_letter(Letter(Title(""), "", "", "", "", _MARK + diff))


def diff_of(stored: str) -> str:
    """Return the diff that `stored_diff` stored; bytes that are not UTF-8 are lone surrogates in it."""
    if not stored.startswith(MBOX_LINE):
        return stored
    (letter,) = read_letters(stored.encode())
    return letter.rest.removeprefix(_MARK).removesuffix("\n")


def shown_diff(stored: str) -> str:
    r"""Return a stored diff for people: bytes that are not UTF-8 and invisible characters become escapes such as `\xe9`."""
    return shown(diff_of(stored))
