# SPDX-License-Identifier: GPL-2.0-or-later
"""Exceptions of the lab; `blame` and `retry` decide in one place what happens next."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from kernels.printable import shown, shown_line

if TYPE_CHECKING:
    from django.db.models import QuerySet

Blame = Literal["submission", "kernel", "lab"]
Row = TypeVar("Row", bound=Any)


class LabError(Exception):
    """Base of this package's errors: `str()` is one clear line, `detail` the long part.

    Both may hold strangers' text: characters that a terminal obeys, or no database holds, are shown as escapes.
    """

    blame: ClassVar[Blame] = "lab"
    retry: ClassVar[bool] = False

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(shown_line(message))
        self.detail = shown(detail)


class SettingWrong(LabError):
    """An environment variable with a wrong value: the message names the variable, never the secret in it."""


class SpecError(LabError):
    """The experiment description is wrong: names the field, the value given and the valid ones."""

    blame: ClassVar[Blame] = "submission"


class SubmissionRejected(LabError):
    """A well-formed description that cannot be carried out, such as one without its tree.

    place: the field at fault as a description writes it, such as `patches[0].text`; "" for no single one.
    others: what else is wrong with the same description.
    """

    blame: ClassVar[Blame] = "submission"

    def __init__(
        self, message: str, detail: str = "", place: str = "", others: Sequence["SubmissionRejected"] = ()
    ) -> None:
        super().__init__(message, detail)
        self.place = place
        self.others = tuple(others)

    def alone(self) -> "SubmissionRejected":
        """Return this refusal without the others."""
        return SubmissionRejected(str(self), self.detail, self.place)

    def lines(self) -> list[str]:
        """Return a line for each fault, which begins with the field at fault."""
        return [
            str(refusal) if str(refusal).startswith(refusal.place) else f"{refusal.place}: {refusal}"
            for refusal in (self, *self.others)
        ]


class Refusals:
    """Collects what is wrong with a description, so that all of it is reported at once."""

    def __init__(self) -> None:
        self.refused: list[SubmissionRejected] = []

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Keep a SubmissionRejected of the block for `check`."""
        try:
            yield
        except SubmissionRejected as exc:
            self.refused.append(exc)

    def together(self) -> SubmissionRejected | None:
        """Return the first refusal with the others, each once; None where there is none."""
        if not self.refused:
            return None
        whole = {
            (every.place, str(every)): every.alone()
            for refusal in self.refused
            for every in (refusal, *refusal.others)
        }
        first, *others = whole.values()
        details = dict.fromkeys(refusal.detail for refusal in self.refused if refusal.detail)
        detail = "\n\n".join(
            text for text in details if not any(text in more for more in details.keys() - {text})
        )
        return SubmissionRejected(str(first), detail, first.place, others)

    def check(self) -> None:
        """Raise the first refusal with the others, where there is one."""
        if refusal := self.together():
            raise refusal from self.refused[0]


class LabUnable(LabError):
    """A submission that the lab could not even look at, for a reason of its own such as a full disk."""


class NeedsWorker(LabError):
    """A preview or submission that this process must leave to a worker; says why. Nothing was done yet."""

    retry: ClassVar[bool] = True


class FetchLost(LabError):
    """A fetch that was cancelled or given to another worker in the meantime: this process may not write its result."""


class TooManyFetches(LabError):
    """More previews and submissions at once than one person, or the whole lab, may have waiting."""

    blame: ClassVar[Blame] = "submission"
    retry: ClassVar[bool] = True


class IllegalMove(LabError):
    """Our own code asked for a change of state that the tables in states.py do not know."""


class UnknownRow(LabError):
    """No row has that number."""

    blame: ClassVar[Blame] = "submission"


def one_row(rows: "QuerySet[Row]", what: str) -> Row:
    """Return the first row. what: its noun and number. Raises UnknownRow where there is none."""
    row = rows.first()
    if row is None:
        raise UnknownRow(f"there is no {what}")
    return row


class FieldRefused(LabError):
    """A wrong value of one field of a form or a request, not of a description, and what it may be instead.

    within: the fields and positions inside of it that lead to the value.
    """

    blame: ClassVar[Blame] = "submission"

    def __init__(self, field: str, message: str, within: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.path = (field, *map(str, within))
        self.field = ".".join(self.path)


class NotAllowed(LabError):
    """Somebody's role or ownership does not allow it: says whose it is, or who could."""

    blame: ClassVar[Blame] = "submission"


class Outdated(LabError):
    """The row has changed since the decision was made: somebody else was faster."""

    blame: ClassVar[Blame] = "submission"


class AddressRefused(LabError):
    """An address that the lab does not talk to, such as one of its own network."""

    blame: ClassVar[Blame] = "submission"


class NotReached(LabError):
    """Nobody answered at an address, or not in time."""

    blame: ClassVar[Blame] = "submission"
    retry: ClassVar[bool] = True


class KeyReused(LabError):
    """A submission under a key that was sent with another body before."""

    blame: ClassVar[Blame] = "submission"


class KeyBusy(LabError):
    """A submission under a key whose first request has not been answered yet."""

    blame: ClassVar[Blame] = "submission"
    retry: ClassVar[bool] = True


class NetbootClosed(LabError):
    """A token that belongs to no open boot."""

    blame: ClassVar[Blame] = "submission"


class PieceRefused(LabError):
    """A piece that a machine may not post. too_much: it, or what came before, is too large."""

    blame: ClassVar[Blame] = "submission"

    def __init__(self, message: str, *, too_much: bool) -> None:
        super().__init__(message)
        self.too_much = too_much


class StoreRefused(LabUnable):
    """There is no store, or it denies access: a wrong address, bucket, permission or name. Retrying does not help."""


class StoreUnreachable(LabUnable):
    """The store does not answer, or cannot do its work now, for example because its disk is full."""

    retry: ClassVar[bool] = True


class StoreLacks(LabError):
    """The store has no file of that name."""

    retry: ClassVar[bool] = True


class FileGone(LabError):
    """A file of a build or a run that is neither here nor in the store, and why. removed: by the retention policy."""

    def __init__(self, message: str, *, removed: bool = False) -> None:
        super().__init__(message)
        self.removed = removed


class BackupRefused(LabError):
    """A backup that cannot be written, read or put in place; says what to do instead. Nothing was changed."""

    blame: ClassVar[Blame] = "submission"
