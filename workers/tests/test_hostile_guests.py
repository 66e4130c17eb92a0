# SPDX-License-Identifier: GPL-2.0-or-later
"""Whatever a guest sends is an outcome of its kernel: no retry, no fault of its target, one clear line."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from lab.models import AuditEntry, Run, Sample, Target
from lab.runs.order import next_run
from lab.targets.netboot.boots import NetbootProgress
from workers import local
from workers.collect import transcript
from workers.drivers import streams
from workers.drivers.fake_guest import showgids_line
from workers.drivers.netboot_streams import check_uncontested
from workers.errors import BootDiscarded
from workers.tests.conftest import FakeLab
from workers.tests.rawguest import RawDriver, RawGuest
from workloads.guest.records import Record, encode_record

pytestmark = [pytest.mark.hostile, pytest.mark.process]

GOOD = showgids_line(0, 1000.0, warmup=True)
Act = Callable[[RawGuest], None]


def attacked(fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch, act: Act) -> tuple[Run, RawDriver]:
    """One boot of the base, whose guest does what `act` says."""
    driver = RawDriver(act)
    monkeypatch.setattr("workers.drivers.guest_session.STACKS_S", 0.05)
    monkeypatch.setattr("workers.run.SLACK_S", 0.0)
    bench = type("Bench", (), {"home": fake_lab.home, "drivers": {"libvirt": driver}})()
    monkeypatch.setattr("workers.loop.make_bench", lambda home: bench)
    experiment_id = local.take_up(fake_lab.spec({}), say=lambda line: None)
    local.build_all(experiment_id)
    run_id = next_run(experiment_id)
    assert run_id is not None
    local.boot_next(experiment_id)
    return Run.objects.get(pk=run_id), driver


def is_the_guests_fault(run: Run, driver: RawDriver, says: str, outcome: str = "workload-failed") -> None:
    """The run failed once and for good, its target has nothing to do with it, and a line says why."""
    assert (run.outcome, run.state, run.blame) == (outcome, "failed", "kernel")
    assert says in run.problem
    assert "\n" not in run.problem
    assert run.problem.isprintable()
    assert run.target is not None
    assert (run.target.faults, run.target.quarantined_at, run.attempt) == (0, None, 1)
    assert driver.boots == 1
    assert not Sample.objects.filter(run=run).exists()


def framed(header: bytes, payload: bytes = b"") -> bytes:
    return header + b"\n" + payload + b"\n"


def flipped(seq: int, kind: str, name: str, payload: bytes) -> bytes:
    """A record whose content does not have the checksum in its header."""
    return encode_record(Record(seq, kind, name, payload)).replace(payload, payload.swapcase())


STREAMS: dict[str, tuple[Act, str]] = {
    "nothing but noise": (lambda guest: guest.raw(b"\xff\x00" * 2000), "record 1 from the guest is damaged"),
    "a header without an end": (lambda guest: guest.raw(b"KPL1 " + b"9" * 5000), "its header has no end"),
    "a header of no record": (lambda guest: guest.raw(b"KPL1 1 hello\n"), "its header cannot be read"),
    "an escape in a name": (
        lambda guest: guest.raw(framed(b"KPL1 1 out \x1b[2J 0 00000000")), "its header cannot be read",
    ),
    "an unknown kind": (lambda guest: guest.raw(framed(b"KPL1 1 root - 0 00000000")), "its header makes no sense"),
    "a frame of a gigabyte": (
        lambda guest: guest.raw(framed(b"KPL1 1 hello - 10737418 00000000")), "its header makes no sense",
    ),
    "a length below zero": (
        lambda guest: guest.raw(framed(b"KPL1 1 hello - -1 00000000")), "its header cannot be read",
    ),
    "a number in other digits": (
        lambda guest: guest.raw(framed("KPL1 \u0661 hello - 0 00000000".encode())), "its header cannot be read",
    ),
    "a number with underscores": (
        lambda guest: guest.raw(framed(b"KPL1 1_0 hello - 0 00000000")), "its header cannot be read",
    ),
    "the wrong checksum": (
        lambda guest: guest.raw(flipped(1, "hello", "-", b'{"release":"x"}')), "its checksum does not match",
    ),
    "a payload longer than it says": (
        lambda guest: guest.raw(b"KPL1 1 hello - 2 00000000\nabcdef\n"), "does not end where its length says",
    ),
    "a first record that is not a hello": (
        lambda guest: guest.says("out", "open", b"{}"), 'the first record is not a hello, but "out"',
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", STREAMS)
def test_damaged_records_are_the_guests_own_doing(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    act, says = STREAMS[case]
    run, driver = attacked(fake_lab, monkeypatch, act)
    is_the_guests_fault(run, driver, says)
    (entry,) = AuditEntry.objects.filter(method="worker", route="guest")
    assert (entry.rule.split()[0], entry.path, entry.count) == ("record", "", 1)


HELLOS: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"release 6.1", "is not JSON"),
    "a list": (b"[1]", "not a JSON object"),
    "NaN": (b'{"release":"a","uptime_s":NaN}', "NaN is not a number of JSON"),
    "Infinity": (b'{"release":"a","uptime_s":-Infinity}', "-Infinity is not a number of JSON"),
    "a float beyond floats": (b'{"release":"a","uptime_s":1e999}', "a number too large"),
    "a key twice": (b'{"release":"a","release":"b"}', "a key twice"),
    "depth 10,000": (b'{"release":' + b"[" * 10_000 + b"]" * 10_000 + b"}", "nested deeper than 16 levels"),
    "depth 100": (b'{"release":' + b"[" * 100 + b"]" * 100 + b"}", "nested deeper than 16 levels"),
    "100,000 digits": (b'{"release":"a","cpus":' + b"9" * 100_000 + b"}", "a whole number of 100000 digits"),
    "half a character": (b'{"release":"a","cmdline":"\\ud800"}', "it is not UTF-8"),
    "a NUL in a key": (b'{"release":"a","\\u0000":1}', "a key that is too long or cannot be printed"),
    "300,000 values": (b'{"release":"a","x":[' + b"1," * 300_000 + b"1]}", "more than 262144 values"),
    "no release": (b'{"cpus":1}', "it names no release"),
    "a release that is a list": (b'{"release":["a"]}', "its release makes no sense"),
    "a release of a megabyte": (b'{"release":"' + b"a" * 1_000_000 + b'"}', "its release makes no sense"),
    "a release with an escape": (b'{"release":"\\u001b[2J"}', "its release makes no sense"),
    "CPUs that are a text": (b'{"release":"a","cpus":"two"}', "its cpus makes no sense"),
    "a clock source that is an object": (
        b'{"release":"a","clocksource":{}}',
        "its clocksource makes no sense",
    ),
    "tuning that is a list": (b'{"release":"a","tuning":[1]}', "its tuning makes no sense"),
    "mitigations of numbers": (b'{"release":"a","mitigations":{"x":1}}', "its mitigations makes no sense"),
    "a megabyte of command line": (
        b'{"release":"a","cmdline":"' + b"x" * 999_000 + b'"}',
        "its cmdline makes no",
    ),
}


@pytest.mark.parametrize("case", HELLOS)
def test_an_odd_hello_is_the_guests_own_doing(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    hello, says = HELLOS[case]
    run, driver = attacked(fake_lab, monkeypatch, lambda guest: guest.says("hello", "-", hello))
    is_the_guests_fault(run, driver, says)


def _prints(lines: str) -> Act:
    def act(guest: RawGuest) -> None:
        guest.greets()
        guest.measures(lines.encode(errors="surrogatepass"))
        guest.leaves()

    return act


def _then(*records: tuple[str, str, object]) -> Act:
    def act(guest: RawGuest) -> None:
        guest.greets()
        for record in records:
            guest.says(*record)
        guest.leaves()

    return act


def _floods(kind: str, name: str, size: int, count: int, *first: tuple[str, str, object]) -> Act:
    def act(guest: RawGuest) -> None:
        guest.greets()
        for record in first:
            guest.says(*record)
        for _ in range(count):
            guest.says(kind, name, bytes(size))

    return act


def _of_another_kernel(guest: RawGuest) -> None:
    guest.greets(release="0.0.0-another")


def _twice(guest: RawGuest) -> None:
    guest.greets()
    guest.raw(encode_record(Record(1, "hello", "-", b"{}")))


def _skips(guest: RawGuest) -> None:
    guest.greets()
    guest.raw(encode_record(Record(7, "beat", "-", b"")))


def _restarts(guest: RawGuest) -> None:
    guest.greets()
    guest.says("step", "open", {})
    guest.raw(encode_record(Record(1, "hello", "-", b'{"release":"x"}')))


def _hangs_up(guest: RawGuest) -> None:
    guest.greets()
    guest.says(*STEP)


STEP: tuple[str, str, object] = ("step", "open", {"kind": "measure"})
VALUES = json.loads(GOOD)["values"]
PLANS: dict[str, tuple[Act, str, str]] = {
    "another kernel answers": (_of_another_kernel, "the guest runs kernel", "wrong-kernel"),
    "a record twice": (_twice, "record 1 came in its place", ""),
    "records out of order": (_skips, "record 7 came in its place", ""),
    "a guest that starts again": (_restarts, "record 1 came in its place", ""),
    "hello in the middle": (_then(("hello", "-", {})), "said hello in the middle of its plan", ""),
    "a step of another plan": (_then(("step", "rm", {})), 'a step "rm" that its plan does not have', ""),
    "a step before the one that ran": (
        _then(STEP, ("step", "soft-roce", {})), 'began step "soft-roce" after "open"', "",
    ),
    "a step again": (_then(STEP, STEP), 'began step "open" after "open"', ""),
    "output of a step that does not run": (_then(("out", "open", b"{}")), "that does not run", ""),
    "an end of a step that does not run": (_then(("exit", "open", {})), "that does not run", ""),
    "a step that ends twice": (_then(STEP, ("exit", "open", {}), ("exit", "open", {})), "ended step", ""),
    "a file that nobody asked for": (_then(STEP, ("file", "/etc/shadow", b"x")), "its plan does not name", ""),
    "a file before any step": (_then(("file", "/tmp/perf.data", b"x")), "its plan does not name", ""),
    "a bye at once": (_then(), "printed no iteration", ""),
    "silence after hello": (lambda guest: guest.greets(), "reset or switched itself off", "panicked"),
    "a hang-up in a step": (_hangs_up, "itself off in step", "panicked"),
    "an exit that is not JSON": (_then(STEP, ("exit", "open", b"0")), "is not a JSON object", ""),
    "an exit status that is a text": (_then(STEP, ("exit", "open", {"status": "0"})), "status unknown", ""),
    "a deadline that is a text": (
        _then(STEP, ("exit", "open", {"timed_out": True, "wall_s": "x" * 999})), "within its deadline (0 s)", "",
    ),
    "no JSON": (_prints("Segmentation fault\n"), "is not JSON", ""),
    "a list": (_prints("[1]\n"), "is not a JSON object", ""),
    "an iteration of NaN": (_prints(GOOD.replace("1000.0", "NaN", 1)), "NaN is not a number of JSON", ""),
    "an iteration beyond floats": (_prints(GOOD.replace("1000.0", "9e999", 1)), "a number too large", ""),
    "values that are a text": (_prints('{"iteration":0,"warmup":true,"values":"x"}'), "not in our form", ""),
    "a value that is a list": (
        _prints(json.dumps({"iteration": 1, "warmup": False, "values": {**VALUES, "cpu": []}})), "not a metric with", "",
    ),
    "a value that is true": (
        _prints(json.dumps({"iteration": 1, "warmup": False, "values": {**VALUES, "cpu": True}})), "not a metric with", "",
    ),
    "a metric with a NUL": (
        _prints('{"iteration":1,"warmup":false,"values":{"a\\u0000":1}}'), "cannot be printed", "",
    ),
    "a metric nobody knows": (
        _prints(json.dumps({"iteration": 1, "warmup": False, "values": {**VALUES, "x": 1}})), "x is not a metric", "",
    ),
    "an iteration that is a text": (_prints('{"iteration":"1","warmup":false,"values":{}}'), "not among the 3", ""),
    "an iteration below zero": (_prints(GOOD.replace('"iteration": 0', '"iteration": -1')), "not among the 3", ""),
    "an iteration beyond the plan": (_prints(GOOD.replace('"iteration": 0', '"iteration": 3')), "not among the 3", ""),
    "an iteration twice": (_prints(GOOD * 2), "printed an iteration twice", ""),
    "four iterations of three": (
        _prints("".join(showgids_line(index, 1.0, warmup=False) for index in range(4))), "its plan has 3", "",
    ),
    "9,000 iterations of three": (
        _prints("".join(showgids_line(index, 1.0, warmup=False) for index in range(9000))), "its plan has 3", "",
    ),
    "20,000 lines": (_prints("{}\n" * 20_000), "printed 20000 lines, at most 10000 are read", ""),
    "depth 5,000": (_prints('{"iteration":' + "[" * 5000 + "]" * 5000 + "}"), "nested deeper than 16", ""),
    "half a character": (_prints('{"iteration":0,"x":"\\udfff"}'), "it is not UTF-8", ""),
    "bytes that are not UTF-8": (_prints('{"a":"\udc80"}'), "it is not UTF-8", ""),
    "a text of 15 MB beside a million keys": (
        _prints('{"x":"' + "a" * 9_000_000 + '",' + ",".join(map('"{}":0'.format, range(300_000))) + "}"),
        "more than 262144 values", "",
    ),
    "17 MiB of output": (_floods("out", "open", 1 << 20, 17, STEP), "is larger than 16 MiB", ""),
    "17 MiB of complaints": (_floods("err", "open", 1 << 20, 17, STEP), "is larger than 16 MiB", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", PLANS)
def test_what_no_plan_asks_for_is_the_guests_own_doing(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    act, says, outcome = PLANS[case]
    run, driver = attacked(fake_lab, monkeypatch, act)
    is_the_guests_fault(run, driver, says, outcome or "workload-failed")


def test_records_without_an_end_are_the_guests_own_doing(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "RECORDS_LIMIT", 1 << 20)
    run, driver = attacked(fake_lab, monkeypatch, _floods("beat", "-", 1000, 2000))
    is_the_guests_fault(run, driver, "the guest sent more than 1 MiB of records")


def test_heartbeats_without_an_end_are_the_guests_own_doing(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript, "MOST_RECORDS", 500)
    run, driver = attacked(fake_lab, monkeypatch, _floods("beat", "-", 0, 2000))
    is_the_guests_fault(run, driver, "the guest sent more than 500 records")


def test_what_follows_the_bye_is_not_heard(fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch) -> None:
    def act(guest: RawGuest) -> None:
        guest.greets()
        guest.measures()
        guest.leaves()
        guest.says("out", "open", showgids_line(9, 1.0, warmup=False).encode())
        guest.raw(b"\xff" * 5000)

    run, _ = attacked(fake_lab, monkeypatch, act)
    assert (run.outcome, run.state) == ("finished", "done")
    assert run.samples.filter(metric="ns_per_open").count() == 3


def test_texts_that_no_database_takes_are_kept_as_signs(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = json.loads(GOOD) | {"glob": "a\0b", "deep": {"nul": ["\0"]}}

    def act(guest: RawGuest) -> None:
        guest.greets(cmdline="quiet\0\x1b[2J", mitigations={"meltdown": "\0"})
        lines = [{**said, "iteration": index, "warmup": index == 0} for index in range(3)]
        guest.measures("\n".join(map(json.dumps, lines)).encode())
        guest.leaves()

    run, _ = attacked(fake_lab, monkeypatch, act)
    assert run.outcome == "finished", run.problem
    assert "\0" not in json.dumps(run.extras, ensure_ascii=False)
    assert run.environment["guest"]["cmdline"] == "quiet??[2J"


def test_a_lost_libvirt_is_still_the_labs_fault(fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.tests.rawguest._Remote.how_it_ended", lambda self: "outside")
    run, _ = attacked(fake_lab, monkeypatch, lambda guest: guest.greets())
    assert (run.state, run.blame) == ("queued", "lab")
    assert run.target is None or run.target.faults == 1


def test_a_reader_that_cannot_be_started_is_the_labs_fault(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kernels.sandbox import reader as apart

    apart._readers.stop()
    monkeypatch.setattr("kernels.sandbox.reader.sys.executable", "/nowhere/python")

    def act(guest: RawGuest) -> None:
        guest.greets()
        guest.measures()
        guest.leaves()

    run, _ = attacked(fake_lab, monkeypatch, act)
    assert (run.state, run.blame) == ("queued", "lab")
    assert "no process can be started to read apart" in run.problem


def test_a_contested_boot_is_discarded_and_its_target_spared(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    contested = netboot_progress_of("its script concerned two addresses, 10.0.2.15 and 10.0.2.99")
    with pytest.raises(BootDiscarded, match="this boot is discarded: its script concerned") as caught:
        check_uncontested(contested)

    def act(guest: RawGuest) -> None:
        guest.greets()

    monkeypatch.setattr(RawDriver, "boot", lambda self, request: (_ for _ in ()).throw(caught.value))
    run, _ = attacked(fake_lab, monkeypatch, act)
    assert (run.state, run.blame, run.outcome) == ("queued", "lab", "lost")
    assert not Target.objects.filter(faults__gt=0).exists()


def netboot_progress_of(alarm: str) -> NetbootProgress:
    return NetbootProgress(2, "10.0.2.15", True, 0, alarm)
