# SPDX-License-Identifier: GPL-2.0-or-later
"""Count the boots that wait by the place that may take them, in one statement of the database."""

from dataclasses import dataclass

from django.db import connection

# The few words in which the two databases differ. Seconds since a moment; the later of two moments.
_WORDS = {
    "postgresql": {"since": "date_part('epoch', now() - {at})", "later": "greatest"},
    "sqlite": {"since": "(julianday('now') - julianday({at})) * 86400", "later": "max"},
}
# Look-ups for a row are scalar SELECTs, so that no plan reads all variants or builds to join them to some hundreds.
_WAITING = """
WITH asking AS MATERIALIZED (
  SELECT e.id, e.target_id, e."group", e.builds_left AND (SELECT 1 FROM lab_variant v WHERE v.experiment_id = e.id
    AND (SELECT b.state IN ('queued', 'building') FROM lab_build b WHERE b.id = v.build_id) LIMIT 1) IS NOT NULL AS building
  FROM lab_experiment e WHERE e.state IN ('queued', 'running')),
boots AS (
  SELECT q.experiment_id, q.variant_id, q.target_id, count(*) AS number, min(q.created_at) AS queued_at
  FROM asking e JOIN lab_run q ON q.experiment_id = e.id
  WHERE q.state = 'queued'
  GROUP BY q.experiment_id, q.variant_id, q.target_id),
kernels AS MATERIALIZED (
  SELECT w.*, (SELECT v.build_id FROM lab_variant v WHERE v.id = w.variant_id AND v.state = 'ready') AS build
  FROM boots w),
moments AS MATERIALIZED (
  SELECT k.target_id, e.target_id AS asked, e."group" AS place_group, e.building, k.number, k.queued_at,
    (SELECT coalesce(b.finished_at, b.created_at) FROM lab_build b WHERE b.id = k.build AND b.state = 'built') AS built_at
  FROM kernels k JOIN asking e ON e.id = k.experiment_id)
SELECT m.target_id, m.asked, m.place_group, CAST(sum(m.number) AS integer),
  CAST(sum(CASE WHEN m.built_at IS NOT NULL AND NOT m.building THEN m.number ELSE 0 END) AS integer),
  {queued}, {ready}
FROM moments m GROUP BY m.target_id, m.asked, m.place_group"""


@dataclass(frozen=True, slots=True)
class WaitingBoots:
    """Boots that wait at one place. target: where their blocks began, None where they have not; asked, group: what the experiments asked for.

    number: all of them; ready: those that could be taken now. queued_s: seconds since the first with all kernels built
    was queued; ready_s: seconds since the first could have been taken, its kernel being built. None where there is no such boot.
    """

    target: int | None
    asked: int
    group: str
    number: int
    ready: int
    queued_s: float | None
    ready_s: float | None


def waiting_boots() -> tuple[WaitingBoots, ...]:
    """Return all boots that wait, in one statement. A caller that needs several lists of them reads them once and passes them on."""
    words = _WORDS[connection.vendor]
    ready = f"min(CASE WHEN m.built_at IS NOT NULL AND NOT m.building THEN {words['later']}(m.queued_at, m.built_at) END)"
    text = _WAITING.format(
        queued=words["since"].format(at="min(CASE WHEN NOT m.building THEN m.queued_at END)"),
        ready=words["since"].format(at=ready),
    )
    with connection.cursor() as cursor:
        cursor.execute(text)
        return tuple(WaitingBoots(*row) for row in cursor.fetchall())
