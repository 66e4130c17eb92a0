# SPDX-License-Identifier: GPL-2.0-or-later
"""Addresses at which `make up` offers the pages: for others only behind TLS."""

from __future__ import annotations

import pytest

from lab.errors import SettingWrong
from workers.service import up


@pytest.mark.hostile
@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "10.0.0.7", "lab.example", "192.168.1.1", "fe80::1"])
def test_pages_for_others_without_a_certificate_are_refused(
    bind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KPERFLAB_URL", "KPERFLAB_PLAIN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KPERFLAB_BIND", bind)
    with pytest.raises(SettingWrong, match="lets others reach the pages without TLS"):
        up.service_options(8000)
    monkeypatch.setenv("KPERFLAB_URL", "http://lab.example")
    with pytest.raises(SettingWrong, match="KPERFLAB_PLAIN=1"):
        up.service_options(8000)


@pytest.mark.parametrize(
    ("bind", "name", "value"),
    [
        ("0.0.0.0", "KPERFLAB_URL", "https://lab.example"),
        ("0.0.0.0", "KPERFLAB_PLAIN", "1"),
        ("127.0.0.1", "KPERFLAB_PLAIN", ""),
        ("::1", "KPERFLAB_PLAIN", ""),
        ("localhost", "KPERFLAB_PLAIN", ""),
    ],
)
def test_pages_are_bound_where_a_proxy_or_a_word_makes_that_safe(
    bind: str, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KPERFLAB_BIND", bind)
    monkeypatch.setenv(name, value)
    assert up.service_options(8000).bind == bind
