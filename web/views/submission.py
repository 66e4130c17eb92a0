# SPDX-License-Identifier: GPL-2.0-or-later
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
def submit(request: HttpRequest) -> HttpResponse:
    return render(request, "web/submission.html", {"here": "submit"})
