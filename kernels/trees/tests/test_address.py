# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import ipaddress
import os

import pytest

from kernels.errors import UnknownTree
from kernels.trees import address
from kernels.trees.address import is_local, own_address, public_address
from kernels.trees.public_network import is_public

pytestmark = pytest.mark.hostile

PUBLIC = [
    "1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.1",
    "198.17.255.255", "198.20.0.0", "223.255.255.255", "2001:200::1", "2001:4860:4860::8888", "2606:4700::1111", "2a00::1", "2400::1",
]  # fmt: skip
CLOSED = {
    "this network": ["0.0.0.0", "0.1.2.3"],
    "private": ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1"],
    "loopback": ["127.0.0.1", "127.255.255.254", "::1"],
    "link-local": ["169.254.169.254", "fe80::1", "fe80::1%eth0", "febf::1"],
    "shared by customers": ["100.64.0.1", "100.127.255.255"],
    "protocols": ["192.0.0.1", "192.0.0.170", "192.88.99.1", "192.31.196.1", "192.52.193.1", "192.175.48.1"],
    "documentation": ["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1", "3fff:fff::1"],
    "benchmarks": ["198.18.0.1", "198.19.255.255", "2001:2::1"],
    "multicast": ["224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"],
    "reserved": ["240.0.0.1", "255.255.255.255", "4000::1", "8000::1", "e000::1", "5f00::1", "1::1"],
    "unspecified": ["::"],
    "IPv4-compatible": ["::7f00:1", "::10.0.0.1", "::8.8.8.8"],
    "mapped": ["::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:8.8.8.8"],
    "IPv4-translated": ["::ffff:0:127.0.0.1"],
    "translated": ["64:ff9b::7f00:1", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "64:ff9b:1:ffff::10.0.0.1"],
    "discarded": ["100::1", "100:0:0:1::1"],
    "Teredo": ["2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"],
    "ORCHID": ["2001:10::1", "2001:1f:ffff::1", "2001:20::1", "2001:2f:ffff::1"],
    "6to4": ["2002:7f00:1::", "2002:a00:1::1", "2002:808:808::1"],
    "unique local": ["fc00::1", "fd12:3456:789a::1"],
    "site-local": ["fec0::1", "feff::1"],
    "6bone": ["3ffe::1"],
}


@pytest.mark.parametrize("text", PUBLIC)
def test_a_public_address_is_public(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", [text for texts in CLOSED.values() for text in texts])
def test_an_address_of_a_closed_network_is_not_public(text: str) -> None:
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", [texts[0] for texts in CLOSED.values()])
def test_a_name_that_stands_for_one_closed_address_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(address, "_addresses", lambda host, port: ["93.184.216.34", text])
    for scheme in ("http", "https", "git"):
        with pytest.raises(UnknownTree, match=r"^innocent\.example is an address of a closed network"):
            public_address(f"{scheme}://innocent.example/linux.git")


@pytest.mark.parametrize(
    "location",
    [
        "http://93.184.216.34\\@127.0.0.1/x",
        "http://93.184.216.34#@127.0.0.1/x",
        "http://93.184.216.34?@127.0.0.1/x",
        "http://93.184.216.34 127.0.0.1/x",
        "http://93.184.216.34\t/x",
        "http://93.184.216.34\n.evil/x",
        "http://127.0.0.1\x00.example/x",
        "http://user@127.0.0.1/x",
        "http://@127.0.0.1/x",
        "http://:@127.0.0.1/x",
        "http://127.1/x",
        "http://0x7f000001/x",
        "http://0177.0.0.1/x",
        "http://017700000001/x",
        "http://127.0.0.1./x",
        "http://%31%32%37.0.0.1/x",
        "http://\u2460\u2461\u2466.0.0.1/x",
        "http://localhost/x",
        "http://[::1]:80/x",
        "http://[::1%25lo]/x",
        "http://[fe80::1%lo]/x",
        "http://[::ffff:7f00:1]/x",
        "http://127.0.0.1:80:80/x",
        "http://127.0.0.1:-1/x",
        "http:///x",
        "http:/127.0.0.1/x",
        "HTTP://127.0.0.1/x",
        "https://127.0.0.1/x",
        "git://127.0.0.1/x",
        "ftp://93.184.216.34/x",
        "file://93.184.216.34/x",
        "ssh://93.184.216.34/x",
        "ext::sh -c x",
        "http::http://127.0.0.1/x",
        f"http://93.184.216.34/{'x' * 1000}",
    ],
)
def test_no_spelling_of_an_address_leads_into_a_closed_network(location: str) -> None:
    with pytest.raises(UnknownTree) as refused:
        public_address(location)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


def test_git_goes_to_every_address_that_was_looked_up_and_to_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(address, "_addresses", lambda host, port: ["93.184.216.34", "2606:2800:220::1"])
    checked = public_address("https://Example.org:8443/linux.git")
    assert checked.settings == {"http.curloptResolve": "example.org:8443:93.184.216.34,[2606:2800:220::1]"}
    assert checked.source == "https://Example.org:8443/linux.git"


def test_a_public_address_gets_no_password_and_no_other_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "_addresses", lambda host, port: ["93.184.216.34"])
    environment = public_address("https://example.org/linux.git").environment
    assert environment == {"GIT_ALLOW_PROTOCOL": "https", "GIT_SSH_COMMAND": "false", "HOME": os.devnull}


def test_a_name_that_only_a_proxy_knows_is_asked_of_the_proxy_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "invalid")
    environment = public_address("https://nowhere.invalid/linux.git").environment
    assert (environment["no_proxy"], environment["NO_PROXY"]) == ("", "")
    with pytest.raises(UnknownTree, match="a proxy is asked for https:// and http:// only"):
        public_address("git://nowhere.invalid/linux.git")


@pytest.mark.parametrize(
    ("location", "local"),
    [
        ("https://a/b", False), ("http://a/b", False), ("git://a/b", False), ("ssh://a/b", True), ("git@host:x", True),
        ("/srv/linux", True), ("https", True), ("file:///x", True), ("ext::x", True), ("HTTPS://a/b", True),
    ],
)  # fmt: skip
def test_what_is_no_web_address_is_for_people_of_the_lab_only(location: str, local: bool) -> None:
    assert is_local(location) is local


def test_an_address_of_our_own_may_speak_one_protocol() -> None:
    assert own_address("git@example.org:linux.git").environment == {"GIT_ALLOW_PROTOCOL": "ssh"}
    assert own_address("https://a/b").environment["GIT_ALLOW_PROTOCOL"] == "https"
