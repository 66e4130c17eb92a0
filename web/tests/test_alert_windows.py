# SPDX-License-Identifier: GPL-2.0-or-later
"""The alerts over hours and days of figures, as Prometheus' own tool computes them (promtool test rules).

The runbooks' conditions were produced on a running lab, which shows that an expression becomes true. This shows when
an alert fires, for how long, and what does not make it fire.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

RULES = Path(__file__).resolve().parents[2] / "docs/operations/alerts.yml"

pytestmark = [pytest.mark.process, pytest.mark.thorough]


@dataclass(frozen=True, slots=True)
class Course:
    """Figures in promtool's notation (`0x3` is 0 four times), and when the alert fires.

    quiet, fires: times at which no alert fires, and at which this one alone does.
    scraped: each how long.
    """

    alert: str
    series: Mapping[str, str]
    quiet: tuple[str, ...]
    fires: tuple[str, ...] = ()
    scraped: str = "1m"


def metric(name: str, **labels: str) -> str:
    return f"kperflab_{name}{{" + ",".join(f'{label}="{value}"' for label, value in labels.items()) + "}"


def target(enabled: str = "1x9999", quarantined: str = "0x9999", up: str = "1x9999") -> dict[str, str]:
    return {
        metric("target_enabled", target="n1"): enabled,
        metric("target_quarantined", target="n1"): quarantined,
        metric("target_up", target="n1"): up,
    }


def requests(view: str) -> dict[str, str]:
    """Nine a minute, eight of which take more than a second."""
    counts = {"1": "0+1x99", "2.5": "0+9x99", "+Inf": "0+9x99"}
    name = "http_request_duration_seconds_bucket"
    return {metric(name, view=view, le=le): count for le, count in counts.items()}


COURSES = {
    "pages that do not answer two scrapes": Course(
        "LabDown", {'up{job="kperflab"}': "1x9 0x5 1x9"}, ("9m", "11m", "16m"), ("12m", "15m")
    ),
    "another job that is down": Course("LabDown", {'up{job="node"}': "0x99"}, ("90m",)),
    "a store away on all web servers": Course(
        "LabNotReady",
        {metric("ready", check="store"): "1x9 0x5 1x9", metric("ready", check="redis"): "1x99"},
        ("11m", "16m"),
        ("12m", "15m"),
    ),
    "a queue whose last worker is gone": Course(
        "QueueForsaken",
        {metric("queue_waiting", queue="build"): "3x99", metric("queue_workers", queue="build"): "1x9 0x89"},
        ("19m",),
        ("20m", "90m"),
    ),
    "a queue without work or workers": Course(
        "QueueForsaken",
        {metric("queue_waiting", queue="build"): "0x99", metric("queue_workers", queue="build"): "0x99"},
        ("90m",),
    ),
    "workers that restart within the time": Course(
        "QueueForsaken",
        {
            metric("queue_waiting", queue="build"): "3x99",
            metric("queue_workers", queue="build"): "1x9 0x8 1x80",
        },
        ("10m", "18m", "60m"),
    ),
    "work that waits for six hours": Course(
        "QueueSlow", {metric("queue_oldest_wait_seconds", queue="build"): "0+60x600"}, ("6h15m",), ("6h16m",)
    ),
    "a claim that stays overdue": Course(
        "LeaseNotTakenBack", {metric("lease_overdue_seconds", kind="run"): "0+60x99"}, ("3m",), ("4m", "60m")
    ),
    "a target in quarantine, until it is released": Course(
        "TargetQuarantined",
        target(quarantined="0x9 1x9 0x99", up="1x9 0x9 1x99"),
        ("10m", "20m"),
        ("11m", "19m"),
    ),
    "a target without a worker": Course("TargetNotServed", target(up="0x9999"), ("9m",), ("10m", "90m")),
    "a disabled target": Course("TargetNotServed", target(enabled="0x9999", up="0x9999"), ("90m",)),
    "a health check that failed": Course(
        "TargetUnchecked",
        {**target(), metric("target_check_ok", target="n1"): "1x9 0x99"},
        ("69m",),
        ("70m",),
    ),
    "a last check of three days ago": Course(
        "TargetUnchecked",
        {
            **target(),
            metric("target_check_ok", target="n1"): "1x9999",
            metric("target_last_check_timestamp_seconds", target="n1"): "0x9999",
        },
        ("72h", "73h"),
        ("73h1m",),
    ),
    "a target that was never checked": Course(
        "TargetUnchecked", target(enabled="1x6000"), ("72h", "72h59m"), ("73h", "90h")
    ),
    "a new target": Course("TargetUnchecked", target(enabled="_x5000 1x4000"), ("84h", "90h", "140h")),
    "a target that is disabled, whose last check failed": Course(
        "TargetUnchecked",
        {**target(enabled="0x6000"), metric("target_check_ok", target="n1"): "0x6000"},
        ("73h", "90h"),
    ),
    "a target that was disabled for days and never checked": Course(
        "TargetUnchecked", target(enabled="0x4500 1x4000"), ("76h", "100h")
    ),
    "a host that loses its claims": Course(
        "ClaimsLost",
        {metric("last_hour_lost_claims", host="n1"): "_x9 5x9 6x9 5x9"},
        ("15m", "19m", "32m"),
        ("20m", "28m"),
    ),
    "a machine that became slower": Course(
        "TargetDrifts", {metric("target_drift_ratio", target="n1"): "0.01x9 0.08x99"}, ("69m",), ("70m",)
    ),
    "a machine that became faster": Course(
        "TargetDrifts", {metric("target_drift_ratio", target="n1"): "-0.08x99"}, ("59m",), ("60m",)
    ),
    "a fifth of the hour's boots lost by the lab": Course(
        "LabFaults",
        {
            metric("last_hour_runs", target="n1", outcome="ok", blame=""): "80x99",
            metric("last_hour_runs", target="n1", outcome="lost", blame="lab"): "0x9 20x89",
        },
        ("24m",),
        ("25m",),
    ),
    "kernels that crash": Course(
        "LabFaults",
        {metric("last_hour_runs", target="n1", outcome="panic", blame="kernel"): "50x99"},
        ("90m",),
    ),
    "an hour without boots": Course(
        "LabFaults", {metric("last_hour_runs", target="n1", outcome="lost", blame="lab"): "0x99"}, ("90m",)
    ),
    "six late answers at once, for an hour": Course(
        "LateAnswers", {"kperflab_late_answers_total": "0x9 6x999"}, ("10m", "2h"), ("11m", "60m")
    ),
    "five late answers in an hour": Course(
        "LateAnswers", {"kperflab_late_answers_total": "0x9 5x999"}, ("11m", "30m", "2h")
    ),
    "five late answers in an hour, between two scrapes": Course(
        "LateAnswers",
        {"kperflab_late_answers_total": "812x99 817x999"},
        ("1h27m", "1h28m", "2h13m", "3h"),
        scraped="50s",
    ),
    "six late answers in six hours": Course(
        "LateAnswers",
        {"kperflab_late_answers_total": "0x59 1x59 2x59 3x59 4x59 5x59 6x59"},
        ("1h1m", "3h", "6h", "6h59m"),
    ),
    "a Prometheus that is new to an old lab": Course(
        "LateAnswers", {"kperflab_late_answers_total": "_x9 812x999"}, ("10m", "12m", "2h")
    ),
    "a kernel that was damaged, for a day": Course(
        "ArtifactsCorrupt", {"kperflab_corrupt_artifacts_total": "3x9 4x2000"}, ("9m", "25h"), ("11m", "23h")
    ),
    "no kernel damaged since": Course(
        "ArtifactsCorrupt", {"kperflab_corrupt_artifacts_total": "3x2000"}, ("12h",)
    ),
    "a host whose two workers are gone": Course(
        "WorkersGone",
        {
            metric("workers", host="h1", state="working"): "2x9 stale",
            metric("workers", host="h1", state="gone"): "_x9 2x99",
            metric("workers", host="h2", state="working"): "1x199",
        },
        ("19m",),
        ("20m", "60m"),
    ),
    "a host with one of two workers gone": Course(
        "WorkersGone",
        {
            metric("workers", host="h1", state="working"): "1x99",
            metric("workers", host="h1", state="gone"): "1x99",
        },
        ("60m",),
    ),
    "a host's disk that fills": Course(
        "DiskShort",
        {
            metric("disk_free_bytes", host="h1"): "200-10x20",
            metric("disk_size_bytes", host="h1"): "1000x99",
            metric("disk_free_bytes", host="h2"): "500x99",
            metric("disk_size_bytes", host="h2"): "1000x99",
        },
        ("11m", "20m"),
        ("21m",),
    ),
    "a store whose disk is full": Course(
        "StoreShort",
        {
            metric("storage_free_bytes", place="store", host=""): "50x99",
            metric("storage_used_bytes", place="store", host=""): "950x99",
            metric("storage_free_bytes", place="home", host="h1"): "500x99",
            metric("storage_used_bytes", place="home", host="h1"): "500x99",
        },
        ("9m",),
        ("10m",),
    ),
    "a policy that was not applied for two days": Course(
        "FilesNotExpired",
        {metric("chore_done_timestamp_seconds", chore="expire_files"): "0x9999"},
        ("48h", "49h"),
        ("49h1m",),
    ),
    "a policy that is applied daily": Course(
        "FilesNotExpired",
        {metric("chore_done_timestamp_seconds", chore="expire_files"): "0x1439 86400x1439 172800x1439"},
        ("24h", "47h", "71h"),
    ),
    "receivers that do not answer": Course(
        "HooksWait", {"kperflab_deliveries_waiting": "0x9 60x99"}, ("39m",), ("40m",)
    ),
    "pages of two seconds": Course("PagesSlow", requests("runs"), ("15m",), ("20m",)),
    "scrapes of two seconds": Course("PagesSlow", requests("metrics"), ("60m",)),
}


def run_promtool(course: Course, folder: Path) -> subprocess.CompletedProcess[str]:
    def look(time: str, *alerts: str) -> dict[str, object]:
        firing = [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in alerts]
        return {
            "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
            "eval_time": time,
            "exp_samples": firing,
        }

    looks = [look(time) for time in course.quiet] + [look(time, course.alert) for time in course.fires]
    test = {
        "interval": course.scraped,
        "input_series": [{"series": name, "values": values} for name, values in course.series.items()],
        "promql_expr_test": looks,
    }
    path = folder / "alerts_test.yml"
    path.write_text(
        yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]})
    )
    return subprocess.run(
        ["promtool", "test", "rules", str(path)], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", COURSES)
def test_an_alert_fires_when_its_condition_has_lasted_and_not_before(name: str, tmp_path: Path) -> None:
    done = run_promtool(COURSES[name], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_is_seen_firing() -> None:
    rules = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
    assert {course.alert for course in COURSES.values() if course.fires} == {rule["alert"] for rule in rules}
