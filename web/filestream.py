# SPDX-License-Identifier: GPL-2.0-or-later
"""Large files as answers: streamed, whole or the one range that was asked for (RFC 9110, chapter 14)."""

import re
from collections.abc import Callable, Iterator

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

CHUNK = 256 << 10
Read = Callable[[int, int], bytes]
"""At most so many bytes (the second) from a place on (the first); fewer only at the end."""
# Numbers of more digits are no places in a file, and Python is slow at reading them.
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


def stream_file(size: int, read: Read, asked: str) -> HttpResponseBase:
    """A file. asked: the request's Range header, "" without one; what it means otherwise than one range is ignored."""
    match = _RANGE.fullmatch(asked.strip())
    ranged = match is not None and bool(match[1] or match[2])
    start, end = 0, size - 1
    if match and ranged:
        start = int(match[1]) if match[1] else max(0, size - int(match[2]))
        end = min(int(match[2]), size - 1) if match[1] and match[2] else size - 1
        if start >= size or end < start:
            return HttpResponse(status=416, headers={"Content-Range": f"bytes */{size}"})
    answer = StreamingHttpResponse(
        _read(read, start, end + 1), status=206 if ranged else 200, content_type="application/octet-stream"
    )
    answer.headers["Content-Length"] = str(end + 1 - start)
    answer.headers["Accept-Ranges"] = "bytes"
    if ranged:
        answer.headers["Content-Range"] = f"bytes {start}-{end}/{size}"
    return answer


def _read(read: Read, start: int, stop: int) -> Iterator[bytes]:
    while start < stop and (chunk := read(start, min(CHUNK, stop - start))):
        yield chunk
        start += len(chunk)
