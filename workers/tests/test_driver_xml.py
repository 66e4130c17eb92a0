# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from workers.drivers import domain_xml as module
from workers.drivers.base import BootRequest, Disk, Machine
from workers.drivers.domain_xml import Wiring, domain_xml, kernel_cmdline

REQUEST = BootRequest(
    name='<base> & "friends"',
    kernel=Path("/a/vmlinux"),
    initrd=Path("/r/initrd"),
    cmdline="mitigations=off",
    machine=Machine(2, 768, "tcg"),
    disks=(Disk(Path("/i/golden.raw"), "raw", "kperflab0"),),
    release="",
    directory=Path("/r"),
    boot_deadline_s=60,
    silence_deadline_s=5,
)
WIRING = Wiring("kperflab-1", Path("/s/console"), Path("/s/records"), (Path("/o/kperflab0.qcow2"),))


@pytest.fixture
def domain(monkeypatch: pytest.MonkeyPatch) -> ET.Element:
    monkeypatch.setattr(module, "tsc_khz", lambda: 2_000_000)
    return ET.fromstring(domain_xml(REQUEST, WIRING))


def test_the_machine_has_the_targets_size(domain: ET.Element) -> None:
    assert (domain.findtext("vcpu"), domain.findtext("memory")) == ("2", "768")
    assert domain.get("type") == "qemu"


def test_the_kernel_boots_directly(domain: ET.Element) -> None:
    assert domain.findtext("os/kernel") == "/a/vmlinux"
    assert domain.findtext("os/initrd") == "/r/initrd"
    assert (domain.findtext("os/cmdline") or "").endswith(" mitigations=off")


def test_the_guest_has_no_network_and_no_device_it_does_not_need(domain: ET.Element) -> None:
    devices = domain.find("devices")
    assert devices is not None
    assert {device.tag for device in devices} == {
        "disk", "serial", "controller", "channel", "memballoon", "video",
    }  # fmt: skip
    assert domain.find("devices/memballoon[@model='none']") is not None
    assert domain.find("devices/controller[@type='usb'][@model='none']") is not None


def test_a_guest_that_resets_ends(domain: ET.Element) -> None:
    assert {domain.findtext(event) for event in ("on_poweroff", "on_reboot", "on_crash")} == {"destroy"}


def test_the_guest_writes_to_an_overlay_and_finds_it_by_its_serial(domain: ET.Element) -> None:
    disk = domain.find("devices/disk")
    assert disk is not None
    source, backing = disk.find("source"), disk.find("backingStore/source")
    assert source is not None
    assert backing is not None
    assert (source.get("file"), backing.get("file")) == ("/o/kperflab0.qcow2", "/i/golden.raw")
    assert disk.findtext("serial") == "kperflab0"


def test_names_are_quoted_not_pasted(domain: ET.Element) -> None:
    assert domain.findtext("title") == '<base> & "friends"'


def test_an_emulated_guest_is_told_its_clock_and_a_virtual_one_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "tsc_khz", lambda: 2_000_000)
    words = kernel_cmdline(replace(REQUEST, hz=250)).split()
    assert {"tsc=reliable", "tsc_early_khz=2000000", "lpj=8000000"} <= set(words)
    kvm = replace(REQUEST, machine=Machine(2, 768, "kvm"), hz=250)
    assert not [word for word in kernel_cmdline(kvm).split() if word.startswith(("tsc", "lpj"))]
    assert domain_xml(kvm, WIRING).startswith(
        '<domain xmlns:qemu="http://libvirt.org/schemas/domain/qemu/1.0" type="kvm"'
    )


def test_without_its_hz_a_kernel_measures_its_own_delay_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "tsc_khz", lambda: 2_000_000)
    assert "lpj=" not in kernel_cmdline(REQUEST)
    monkeypatch.setattr(module, "tsc_khz", lambda: 0)
    assert "khz" not in kernel_cmdline(replace(REQUEST, hz=250))


COUNTED = replace(REQUEST, machine=Machine(1, 768, "tcg", "instructions"), disks=(), hz=250)


@pytest.fixture
def counted() -> ET.Element:
    return ET.fromstring(domain_xml(COUNTED, replace(WIRING, overlays=())))


def test_nothing_of_the_hosts_time_reaches_a_guest_that_counts_instructions(counted: ET.Element) -> None:
    devices = counted.find("devices")
    assert devices is not None
    assert {device.tag for device in devices} == {"serial", "controller", "memballoon", "video"}
    assert [item.get("model") for item in devices.findall("controller")] == ["none"]
    assert "virtio" not in ET.tostring(devices, encoding="unicode")
    rtc, hpet = counted.findall("clock/timer")
    assert (rtc.get("name"), rtc.get("track")) == ("rtc", "guest")
    assert (hpet.get("name"), hpet.get("present")) == ("hpet", "no")
    assert {item.get("name") for item in counted.findall("cpu/feature")} >= {"rdrand", "rdseed"}


def test_its_records_take_the_second_serial_line(counted: ET.Element) -> None:
    lines = counted.findall("devices/serial")
    # Pipes, not sockets: see streams.Fifo.
    assert {line.get("type") for line in lines} == {"pipe"}
    assert [(line.find("source").get("path"), line.find("target").get("port")) for line in lines] == [  # type: ignore[union-attr]
        ("/s/console", "0"),
        ("/s/records", "1"),
    ]
    assert "kperflab.records=ttyS1" in kernel_cmdline(COUNTED).split()
    assert "kperflab.records" not in kernel_cmdline(REQUEST)


def test_its_clock_is_the_count_and_the_kernel_knows_the_rate(counted: ET.Element) -> None:
    arguments = counted.findall(f"{{{module.QEMU_NAMESPACE}}}commandline/{{{module.QEMU_NAMESPACE}}}arg")
    assert [item.get("value") for item in arguments][:2] == ["-icount", "shift=4,sleep=off"]
    words = set(kernel_cmdline(COUNTED).split())
    assert {"tsc=reliable", "tsc_early_khz=1000000", "lpj=4000000", "norandmaps"} <= words
    assert "random.trust_cpu=on" not in words
