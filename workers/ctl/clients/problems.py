# SPDX-License-Identifier: GPL-2.0-or-later
"""Problem documents (RFC 9457) as one line each, with the field they point to written as in the TOML file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workers.ctl.clients.errors import NotLetIn, Refused
from workers.ctl.plaintext import plain_line

if TYPE_CHECKING:
    import httpx


def refusal(answer: httpx.Response, url: str) -> Refused:
    """Return the error that a 4xx answer means: the first fault in its line, the others in its detail."""
    status = answer.status_code
    document = _document(answer)
    kind = NotLetIn if status == 401 else Refused
    faults = [fault(item) for item in document.get("errors") or [] if isinstance(item, dict)]
    said = plain_line(document.get("detail") or document.get("title") or "")
    if status == 401:
        reason = f" ({said})" if said else ""
        return kind(
            f"{url} does not let you in{reason}: run labctl login, or set LABCTL_TOKEN to a valid token"
        )
    if status == 404 and not document:
        return kind(f"{url} has no {answer.request.url.path}: is it a kperflab of this version?")
    return _refused(kind, said or f"HTTP {status} {answer.reason_phrase}", faults)


def refusal_of(document: dict[str, Any]) -> Refused:
    """Return the error for a problem document inside an answer, such as a fetch's."""
    faults = [fault(item) for item in document.get("errors") or [] if isinstance(item, dict)]
    said = plain_line(document.get("detail") or document.get("title") or "the server refused it")
    return _refused(Refused, said, faults)


def _refused(kind: type[Refused], line: str, faults: list[str]) -> Refused:
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        line = f"{faults[0]}{more}"
    return kind(line, "\n".join(faults[1:] if len(faults) > 1 else []))


def fault(item: dict[str, Any]) -> str:
    """`/patches/0/text` with its fault → patches[0].text: fault; the place is not repeated if the server named it."""
    where = field(str(item.get("pointer", ""))) or plain_line(item.get("parameter", ""))
    said = plain_line(item.get("detail", ""))
    return said if not where or said.startswith(where) else f"{where}: {said}"


def field(pointer: str) -> str:
    """Return a JSON pointer as a description's field: /patches/0/text → patches[0].text."""
    path = ""
    for part in pointer.lstrip("#").split("/")[1:]:
        name = plain_line(part.replace("~1", "/").replace("~0", "~"))
        path += f"[{name}]" if name.isdecimal() else f".{name}" if path else name
    return path


def _document(answer: httpx.Response) -> dict[str, Any]:
    if "json" not in answer.headers.get("content-type", ""):
        return {}
    try:
        document = answer.json()
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
