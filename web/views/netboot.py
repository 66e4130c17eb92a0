# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests of machines that boot over the network. No cookie, no form: the tokens in the addresses are the keys."""

import logging
import re
import time
from collections.abc import Callable, Iterator
from functools import wraps
from threading import BoundedSemaphore
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from lab.errors import (
    NetbootClosed,
    PieceRefused,
    SettingWrong,
    StoreLacks,
    StoreRefused,
    StoreUnreachable,
)
from lab.targets.netboot.address import netboot_url
from lab.targets.netboot.machine import PIECE_BYTES, Handout, Part, boot_for, file_of, hand_out, keep_piece
from lab.targets.netboot.next_boot import Following, next_boot
from web.api.auth import LoginLimit

log = logging.getLogger(__name__)

_PLAIN = "text/plain; charset=utf-8"
LOCAL_DISK = """#!ipxe
echo kperflab: nothing to boot for this machine now; continuing with its next boot device
exit
"""
THIS_BOOT = """#!ipxe
chain {script} || exit 1
exit
"""
BOOT = """#!ipxe
echo kperflab: boot {boot}
kernel {files}/kernel initrd=initrd {cmdline} kperflab.report={report} || goto failed
initrd --name initrd {files}/initrd || goto failed
boot || goto failed
:failed
echo kperflab: this boot could not be loaded
exit 1
"""
FOLLOWING = """kernel {kernel_sha256} {place}/{files}/kernel
initrd {initrd_sha256} {place}/{files}/initrd
report {place}/{token}
cmdline {cmdline} kperflab.report={report}
"""
HOLD_S = 5.0
"""The time for which a machine's request for the next boot is held, before the machine retries."""
LOOK_S = 0.2
MOST_HELD = 2
"""The most threads of a server process that hold requests; further machines are answered at once."""
_holding = BoundedSemaphore(MOST_HELD)


class NetbootLimit(LoginLimit):
    """Limit the script requests and the invalid tokens from one address."""

    scope = "netboot"


def _answers_machines(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Report the refusal of a request as a status and one line."""

    @csrf_exempt
    @login_not_required
    @wraps(view)
    def answered(request: HttpRequest, **place: Any) -> HttpResponseBase:
        try:
            response = view(request, **place)
        except NetbootClosed as exc:
            response = _too_often(request) or _say(str(exc), 404)
        except PieceRefused as exc:
            response = _say(str(exc), 413 if exc.too_much else 409)
        except (StoreLacks, FileNotFoundError):
            response = _say("the lab no longer has this file", 404)
        except (SettingWrong, StoreRefused, StoreUnreachable) as exc:
            log.error("%s", exc)
            response = _say("the lab cannot do this now: see its log", 503)
        response.headers["Cache-Control"] = "no-store"
        return response

    return answered


@_answers_machines
@require_GET
def script(request: HttpRequest, mac: str) -> HttpResponseBase:
    """The iPXE script for the machine with this network card: the address of the boot that waits for it, or else its own disk."""
    if refused := _too_often(request):
        return refused
    url = netboot_url()
    boot = boot_for(mac, _caller(request))
    text = LOCAL_DISK if boot is None else THIS_BOOT.format(script=f"{url}/netboot/{mac}/{boot}.ipxe")
    return HttpResponse(text, content_type=_PLAIN)


@_answers_machines
@require_GET
def boot_script(request: HttpRequest, mac: str, number: int) -> HttpResponseBase:
    """Return the iPXE script of the waiting boot, once; else a script for the machine's own disk."""
    if refused := _too_often(request):
        return refused
    url = netboot_url()
    handout = hand_out(mac, number, _caller(request))
    return HttpResponse(LOCAL_DISK if handout is None else _boot_script(handout, url), content_type=_PLAIN)


@_answers_machines
@require_GET
def kernel(request: HttpRequest, token: str) -> HttpResponseBase:
    """The kernel's bzImage."""
    return _file(request, token, "kernel")


@_answers_machines
@require_GET
def initrd(request: HttpRequest, token: str) -> HttpResponseBase:
    """The initramfs with the plan behind it."""
    return _file(request, token, "initrd")


@_answers_machines
@require_GET
def following(request: HttpRequest, token: str) -> HttpResponseBase:
    """Return the next kernel for the machine of a token, to start by kexec; 204 while there is nothing yet, 404 once nothing will follow."""
    url = netboot_url()
    offer = _await_following(token, _caller(request))
    if offer is None:
        return HttpResponse(status=204)
    return HttpResponse(_script(offer, url), content_type=_PLAIN)


def _await_following(token: str, address: str) -> Following | None:
    """Look for a while whether something is offered. Raises NetbootClosed."""
    held = _holding.acquire(blocking=False)
    try:
        end = time.monotonic() + (HOLD_S if held else 0)
        while (offer := next_boot(token, address)) is None and time.monotonic() < end:
            time.sleep(LOOK_S)
        return offer
    finally:
        if held:
            _holding.release()


def _script(offer: Following, url: str) -> str:
    """Write it line by line, with paths for addresses: the machine contacts no other server."""
    return FOLLOWING.format(
        kernel_sha256=offer.kernel_sha256,
        initrd_sha256=offer.initrd_sha256,
        place=f"{urlsplit(url).path}/netboot",
        files=offer.handout.files_token,
        token=offer.handout.token,
        report=f"{url}/netboot/{offer.handout.token}",
        cmdline=offer.handout.cmdline,
    )


@_answers_machines
@require_POST
def piece(request: HttpRequest, token: str, stream: str, number: int) -> HttpResponseBase:
    """Take a piece of the records or the console; a repeated piece is acknowledged again."""
    length = request.headers.get("Content-Length", "")
    if not length.isdecimal() or len(length) > 9 or int(length) > PIECE_BYTES:
        return _say(f"a piece has a Content-Length of at most {PIECE_BYTES}", 413)
    kept = keep_piece(token, stream, number, request.body, _caller(request))
    return _say("kept", 201) if kept else _say("was there already", 200)


def _boot_script(handout: Handout, url: str) -> str:
    return BOOT.format(
        boot=handout.boot_id,
        files=f"{url}/netboot/{handout.files_token}",
        report=f"{url}/netboot/{handout.token}",
        cmdline=handout.cmdline,
    )


def _file(request: HttpRequest, token: str, part: Part) -> HttpResponseBase:
    file = file_of(token, part, _caller(request))
    return stream_file(file.size, file.read, request.headers.get("Range", ""))


def _caller(request: HttpRequest) -> str:
    """The address of a machine, as the limits see it behind a proxy."""
    return NetbootLimit().get_ident(request) or ""  # type: ignore[arg-type]


def _too_often(request: HttpRequest) -> HttpResponse | None:
    limit = NetbootLimit()
    if limit.allow_request(request, None):  # type: ignore[arg-type]
        return None
    response = _say("too many at once", 429)
    response.headers["Retry-After"] = str(round(limit.wait() or 60))
    return response


def _say(text: str, status: int) -> HttpResponse:
    return HttpResponse(f"{text}\n", status=status, content_type=_PLAIN)


CHUNK = 256 << 10
Read = Callable[[int, int], bytes]
"""Read at most a number of bytes (the second) from an offset on (the first); fewer only at the end."""
# Numbers of more digits are no places in a file, and Python is slow at reading them.
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


def stream_file(size: int, read: Read, asked: str) -> HttpResponseBase:
    """Return a file. asked: the request's Range header, "" without one; anything but a single range is ignored."""
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
