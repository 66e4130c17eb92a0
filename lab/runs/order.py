# SPDX-License-Identifier: GPL-2.0-or-later
"""Order the queue: priority first, then the submitter who used the lab least, then the oldest experiment.

Of submitters who used it equally, builds are first made for the one whose open experiment is the oldest. One SELECT orders the
work for pages, for pollers and for claims (claiming.py), on SQLite and PostgreSQL alike. Its cost depends on the
number of open experiments, not on that of their waiting builds and boots.
"""

from datetime import timedelta
from functools import cache
from typing import Any

from django.db import connection

from lab.models.states import BuildState

OPEN_BUILD = (BuildState.QUEUED, BuildState.BUILDING)

# "Lately" means the last LAST pieces of the hour. A fixed number keeps a claim's cost constant.
LATELY = timedelta(hours=1)
LAST = 200
# Work under way counts as at least this long, so that two pieces that have just begun count more than one.
BEGUN_S = 60.0
# How long a block that a target lost is left to the others of its group.
ELSEWHERE_S = 60.0

# The few words in which the two databases differ.
_WORDS = {
    "postgresql": {
        "now": "now()",
        "hour_ago": f"now() - interval '{LATELY.total_seconds():.0f} seconds'",
        "lost_lately": f"now() - interval '{ELSEWHERE_S:.0f} seconds'",
        "seconds": "date_part('epoch', {until} - {since})",
        "most": "greatest",
    },
    "sqlite": {
        "now": "datetime('now')",
        "hour_ago": f"datetime('now', '-{LATELY.total_seconds():.0f} seconds')",
        "lost_lately": f"datetime('now', '-{ELSEWHERE_S:.0f} seconds')",
        "seconds": "(julianday({until}) - julianday({since})) * 86400",
        "most": "max",
    },
}
# Seconds of the last pieces, and of those under way, by experiment (runs) or submitter (builds). None where one submitter waits alone.
# The hour is checked last: a plan that began with it would read and sort all work that ended in that hour.
_SPENT = """
  SELECT owner, sum(seconds) AS seconds FROM (
    SELECT w.{owner} AS owner, {most}({begun}, coalesce({so_far}, 0)) AS seconds FROM {work} w
    WHERE w.state = '{active}' AND (SELECT several FROM rivals)
    UNION ALL SELECT owner, seconds FROM (
      SELECT w.{owner} AS owner, w.finished_at, {most}(0, {in_all}) AS seconds FROM {work} w
      WHERE w.finished_at IS NOT NULL AND w.started_at IS NOT NULL AND (SELECT several FROM rivals)
      ORDER BY w.finished_at DESC LIMIT {last}) a WHERE finished_at > {hour_ago}) b
  GROUP BY owner"""
# Seconds by submitter. A build names the submitter whose turn it was when it was claimed: a shared build is charged to nobody else.
_USED = {
    "lab_build": "SELECT owner AS who, seconds FROM spent",
    "lab_run": "SELECT coalesce(e.submitter_id, 0) AS who, sum(s.seconds) AS seconds FROM spent s"
    " JOIN lab_experiment e ON e.id = s.owner GROUP BY who",
}
# Targets that may boot. The target of a claim is locked, so that a health check or a second claim waits for this one.
_PLACES = """
  SELECT p.id, p.name, p."group" FROM lab_target p WHERE p.enabled AND p.quarantined_at IS NULL"""
_FREE_PLACE = """
    AND (p.checked_until IS NULL OR p.checked_until <= now())
    AND (SELECT 1 FROM lab_run w WHERE w.target_id = p.id AND w.state = 'running' LIMIT 1) IS NULL
  FOR NO KEY UPDATE"""
# Two branches, for each has an index.
_BOOTING = """
  SELECT e.id, e.state, e.priority, coalesce(e.submitter_id, 0) AS who, p.id AS place, p.name, e."group" <> '' AS shared
  FROM place p JOIN lab_experiment e ON e."group" = '' AND e.target_id = p.id
  WHERE e.state IN ('queued', 'running')
  UNION ALL
  SELECT e.id, e.state, e.priority, coalesce(e.submitter_id, 0), p.id, p.name, TRUE
  FROM place p JOIN lab_experiment e ON e."group" = p."group"
  WHERE p."group" <> '' AND e.state IN ('queued', 'running')"""
_OPEN = "FROM lab_experiment e WHERE e.state IN ('queued', 'running')"
_ALL_OPEN = f"SELECT e.id, e.state, e.priority, coalesce(e.submitter_id, 0) AS who {_OPEN}"
# Experiments without builds left are not in the order of builds, however many they are: settle.py marks them.
_OPEN_TO_BUILD = f"{_OPEN} AND e.builds_left"
_BUILDING = f"{_ALL_OPEN} AND e.builds_left"
# A claim of a build looks at each pair of priority and submitter by the index `unbuilt_experiment_in_order`, not at each experiment.
_LAST_PAIR = "ORDER BY e.priority DESC, coalesce(e.submitter_id, 0) DESC LIMIT 1"
_PAIRS = f"""
  (SELECT e.priority, coalesce(e.submitter_id, 0) AS who {_OPEN_TO_BUILD} {_LAST_PAIR})
  UNION ALL
  SELECT n.priority, n.who FROM waiting p CROSS JOIN LATERAL (
    SELECT e.priority, coalesce(e.submitter_id, 0) AS who {_OPEN_TO_BUILD}
      AND (e.priority, coalesce(e.submitter_id, 0)) < (p.priority, p.who) {_LAST_PAIR}) n"""  # noqa: S608  our names
_OF_PAIR = (
    f"{_OPEN_TO_BUILD} AND e.priority = {{pair}}.priority AND coalesce(e.submitter_id, 0) = {{pair}}.who"
)
# The first boot q of an experiment o. Scalar SELECTs are looked up row by row, so that no plan reads all waiting rows to join
# them. An unassigned block is taken by its first boot, whose lock is thus the block's. A target leaves a block that it lost a
# moment ago to the others of its group.
_FIRST_BOOT = """(
  SELECT {columns} FROM lab_run q
  WHERE (SELECT 1 FROM lab_variant v WHERE v.experiment_id = o.id AND (
      SELECT b.state IN ('queued', 'building') FROM lab_build b WHERE b.id = v.build_id) LIMIT 1) IS NULL
    AND q.experiment_id = o.id AND q.state = 'queued'
    AND (q.target_id IS NULL AND NOT o.shared OR q.target_id = o.place OR q.target_id IS NULL
      AND (SELECT 1 FROM lab_run x WHERE x.experiment_id = q.experiment_id AND x.block = q.block
        AND x.purpose = q.purpose AND x.state = 'queued' AND x.target_id IS NULL
        AND x.position < q.position LIMIT 1) IS NULL
      AND (q.lost_on_id IS NULL OR q.lost_on_id <> o.place OR q.lost_at <= {lost_lately}
        OR (SELECT 1 FROM lab_target t WHERE t.enabled AND t.quarantined_at IS NULL AND t.id <> o.place
          AND t."group" = (SELECT i."group" FROM lab_target i WHERE i.id = o.place) LIMIT 1) IS NULL))
    AND (SELECT v.state = 'ready' AND (SELECT b.state = 'built' FROM lab_build b WHERE b.id = v.build_id)
      FROM lab_variant v WHERE v.id = q.variant_id)
  ORDER BY q.position LIMIT 1 {lock})"""
_FIRST_BUILD = """(
  SELECT b.id FROM lab_variant v JOIN lab_build b ON b.id = v.build_id
  WHERE v.experiment_id = o.id AND b.state = 'queued' {queue}
  ORDER BY v.position LIMIT 1 {lock})"""
_ORDER = "o.priority DESC, o.share, o.id"
_BUILD_ORDER = "o.priority DESC, o.share, o.first, o.id"
_FIRST_OF_PAIR = "min(w.id) OVER (PARTITION BY w.priority, w.who)"


def next_build(experiment_id: int | None = None, *, queue: str | None = None) -> int | None:
    """Return the build to make next, None if none waits; queue: of one queue alone. Within an experiment its base first."""
    pair = next_build_and_submitter(experiment_id, queue=queue)
    return pair[0] if pair else None


def next_build_and_submitter(
    experiment_id: int | None = None, *, queue: str | None = None
) -> tuple[int, int] | None:
    """Return the build to make next and the submitter whose turn it is, 0 for nobody; None if none waits."""
    text = best_build(connection.vendor, queue is not None, experiment_id is not None) + " LIMIT 1"
    rows = _rows(text, {"queue": queue, "experiment": experiment_id})
    return rows[0] if rows else None


def next_run(experiment_id: int | None = None, *, target: str | None = None) -> int | None:
    """Return the next run to boot, or None. target: only runs for this target.

    A run is ready when its variant is, nothing of its experiment is left to build, and its target may boot. A target that
    boots already still has a next run.
    """
    text = best_boot(connection.vendor, target is not None, experiment_id is not None)
    rows = _rows(text + " LIMIT 1", {"target": target, "experiment": experiment_id})
    return rows[0][0] if rows else None


def ready_targets(experiment_id: int | None = None) -> list[str]:
    """Return the names of targets that have a boot ready, the target of the best boot first."""
    text = best_boot(connection.vendor, False, experiment_id is not None)
    return list(dict.fromkeys(name for _, _, name, *_ in _rows(text, {"experiment": experiment_id})))


def experiments_in_order(work: str) -> list[int]:
    """Return the numbers of open experiments, best first. work: "lab_build" (those with builds left) or "lab_run", whose use counts."""
    waiting, order = (_BUILDING, _BUILD_ORDER) if work == "lab_build" else (_ALL_OPEN, _ORDER)
    text = f"""WITH {_ordered(connection.vendor, work, waiting)}
SELECT o.id FROM (SELECT w.*, {_FIRST_OF_PAIR} AS first FROM ordered w) o ORDER BY {order}"""  # noqa: S608  our names
    return [row[0] for row in _rows(text, {})]


def _rows(text: str, values: dict[str, Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(text, values)
        return list(cursor.fetchall())


@cache
def best_boot(vendor: str, one_target: bool, one_experiment: bool) -> str:
    """Return the SELECT of the first run of each experiment that has one for a target, in order: run, place (target), name."""
    places = _PLACES + " AND p.name = %(target)s" * one_target
    first = _FIRST_BOOT.format(columns="q.id", lock="", **_WORDS[vendor])
    return f"""WITH place AS ({places}), {_ordered(vendor, "lab_run", _BOOTING)}
SELECT r.id, o.place, o.name FROM ordered o JOIN lab_run r ON r.id = {first}
{_of_one(one_experiment)} ORDER BY {_ORDER}, o.name"""  # noqa: S608  our names


@cache
def best_build(vendor: str, one_queue: bool, one_experiment: bool) -> str:
    """Return the SELECT of the first build that waits of each experiment, in order, and of its submitter."""
    first = _FIRST_BUILD.format(queue=_of_queue(one_queue), lock="")
    return f"""WITH {_ordered(vendor, "lab_build", _BUILDING)}
SELECT x.id, o.who FROM (SELECT w.*, {_FIRST_OF_PAIR} AS first FROM ordered w) o
JOIN lab_build x ON x.id = {first} {_of_one(one_experiment)} ORDER BY {_BUILD_ORDER}"""  # noqa: S608  our names


@cache
def boot_to_claim(one_experiment: bool) -> str:
    """Return the tables of a claim on PostgreSQL, the last of them `best`: the run to claim, locked, as its target is.

    Its place is the target. Rows that another process is claiming are skipped.
    """
    first = _FIRST_BOOT.format(
        columns="q.id, q.experiment_id, q.block, q.purpose, q.target_id",
        lock="FOR UPDATE OF q SKIP LOCKED",
        **_WORDS["postgresql"],
    )
    return f"""place AS ({_PLACES} AND p.name = %(target)s {_FREE_PLACE}),
{_ordered("postgresql", "lab_run", _BOOTING)},
best AS (SELECT r.*, o.place, o.shared, o.state FROM ({_in_order(one_experiment)}) o CROSS JOIN LATERAL {first} r LIMIT 1)"""  # noqa: S608  our names


@cache
def build_to_claim(one_queue: bool, one_experiment: bool) -> str:
    """Return the tables of a claim on PostgreSQL, the last of them `best`: the build to claim, locked. After WITH RECURSIVE."""
    first = _FIRST_BUILD.format(queue=_of_queue(one_queue), lock="FOR UPDATE OF b SKIP LOCKED")
    return f"""{_ordered("postgresql", "lab_build", _PAIRS)},
best AS (SELECT r.id, w.who FROM (
    SELECT w.*, (SELECT min(e.id) {_OF_PAIR.format(pair="w")}) AS first FROM ordered w ORDER BY w.priority DESC, w.share, first) w
  CROSS JOIN LATERAL (SELECT e.id {_OF_PAIR.format(pair="w")} ORDER BY e.id) o
  CROSS JOIN LATERAL {first} r {_of_one(one_experiment)} LIMIT 1)"""  # noqa: S608  our names


def _in_order(one_experiment: bool) -> str:
    return f"SELECT * FROM ordered o {_of_one(one_experiment)} ORDER BY {_ORDER}"  # noqa: S608  our names


def _of_one(one_experiment: bool) -> str:
    return "WHERE o.id = %(experiment)s" if one_experiment else ""


def _of_queue(one_queue: bool) -> str:
    return "AND b.queue = %(queue)s" if one_queue else ""


def _ordered(vendor: str, work: str, waiting: str) -> str:
    """Return the table `ordered` of open experiments, and the tables it needs. work: the table that counts a submitter's use."""
    words, boots = _WORDS[vendor], work == "lab_run"
    spent = _SPENT.format(
        owner="experiment_id" if boots else "charged_to",
        work=work,
        active="running" if boots else "building",
        begun=BEGUN_S,
        last=LAST,
        so_far=words["seconds"].format(since="w.started_at", until=words["now"]),
        in_all=words["seconds"].format(since="w.started_at", until="w.finished_at"),
        **words,
    )
    return f"""waiting AS ({waiting}), rivals AS (SELECT min(who) <> max(who) AS several FROM waiting),
spent AS ({spent}),
used AS ({_USED[work]}),
ordered AS (SELECT w.*, coalesce(u.seconds, 0) AS share FROM waiting w LEFT JOIN used u ON u.who = w.who)"""  # noqa: S608  our names
