# SPDX-License-Identifier: GPL-2.0-or-later
"""Open experiments of a made lab: boots that run on most targets, and a long queue behind them."""

from __future__ import annotations

from django.db import connection

from lab.models import Experiment
from lab.tests.large_lab.copies import PLANNED, Copying

# Every fourth open experiment runs, every tenth still waits for its kernels.
_OPENED = """
UPDATE lab_experiment SET state = CASE WHEN id % 4 = 0 THEN 'running' ELSE 'queued' END, finished_at = NULL,
  created_at = now() - make_interval(secs => 20 * ({last} - id)), priority = CASE WHEN id % 20 = 0 THEN 10 ELSE 0 END,
  started_at = CASE WHEN id % 4 = 0 THEN now() - interval '10 min' END WHERE id > {first}
"""
# Of what runs, the first blocks are over.
_QUEUED = """
UPDATE lab_run r SET state = 'queued', outcome = '', blame = '', problem = '', target_id = NULL, started_at = NULL,
  finished_at = NULL, steps = NULL, created_at = e.created_at FROM lab_experiment e
WHERE e.id = r.experiment_id AND e.id > {first} AND (e.state = 'queued' OR r.block >= 3)
"""
_ENDED = """
UPDATE lab_run r SET started_at = now() - interval '9 min', finished_at = now() - make_interval(secs => r.id % 500)
FROM lab_experiment e WHERE e.id = r.experiment_id AND e.id > {first} AND r.state = 'done'
"""
# One boot a target: the first waiting boots of what runs on the group, in turn.
_STARTED = """
WITH places AS (SELECT id, CASE WHEN "group" = '' THEN name ELSE "group" END AS kind, row_number() OVER (PARTITION BY
    CASE WHEN "group" = '' THEN name ELSE "group" END ORDER BY id) AS turn, name FROM lab_target WHERE enabled AND quarantined_at IS NULL),
boots AS (SELECT r.id, CASE WHEN e."group" = '' THEN t.name ELSE e."group" END AS kind, row_number() OVER (PARTITION BY
    CASE WHEN e."group" = '' THEN t.name ELSE e."group" END ORDER BY r.block, e.id, r.position) AS turn
  FROM lab_run r JOIN lab_experiment e ON e.id = r.experiment_id JOIN lab_target t ON t.id = e.target_id
  WHERE e.id > {first} AND e.state = 'running' AND r.state = 'queued')
UPDATE lab_run r SET state = 'running', target_id = p.id, started_at = now() - interval '8 s', attempt = 1,
  lease_until = now() + interval '1 day', claimed_by = 'host:' || p.id || ':1', token = md5(r.id::text)
FROM boots b JOIN places p ON p.kind = b.kind AND p.turn = b.turn WHERE r.id = b.id
"""
_UNBUILT = """
UPDATE lab_build b SET state = 'queued', started_at = NULL, finished_at = NULL, created_at = now() - interval '5 min'
FROM lab_variant v WHERE v.build_id = b.id AND v.experiment_id > {first} AND v.experiment_id % 10 = 9
"""
_UNREADY = "UPDATE lab_variant SET state = 'planned' WHERE experiment_id > {first} AND experiment_id % 10 = 9"


def add_open_work(copying: Copying, first_copy: int, experiments: int) -> None:
    """Add so many open experiments behind those that are over."""
    first, each = first_copy * copying.greatest[Experiment], copying.greatest[Experiment]
    last = first + experiments
    for copy in range(first_copy, first_copy - (-experiments // each)):
        copying.copy(copy, PLANNED)
    Experiment.objects.filter(pk__gt=last).delete()
    with connection.cursor() as cursor:
        for statement in (_OPENED, _QUEUED, _ENDED, _STARTED, _UNBUILT, _UNREADY):
            cursor.execute(statement.format(first=first, last=last))
