# SPDX-License-Identifier: GPL-2.0-or-later
"""The address for a forge's pushes. They are signed, and only make a standing experiment look at its branch."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from lab.standing.changes import take_push
from web.api.limits import LoginLimit

_PLAIN = "text/plain; charset=utf-8"


class PushLimit(LoginLimit):
    """Pushes from one address, genuine or not."""

    scope = "push"


@csrf_exempt  # a forge has no cookie of ours; its signature is checked instead
@login_not_required
@require_POST
def push(request: HttpRequest, name: str) -> HttpResponse:
    """Take a push's webhook of GitHub, GitLab, Gitea or Forgejo."""
    limit = PushLimit()
    if not limit.allow_request(request, None):  # type: ignore[arg-type]
        wait = str(round(limit.wait() or 60))
        return HttpResponse(
            "too many at once\n", status=429, content_type=_PLAIN, headers={"Retry-After": wait}
        )
    if not take_push(name=name, headers=request.headers, body=request.body):
        said = f"there is no standing experiment {name} with that secret\n"
        return HttpResponse(said, status=403, content_type=_PLAIN)
    return HttpResponse("its branch is checked next\n", status=202, content_type=_PLAIN)
