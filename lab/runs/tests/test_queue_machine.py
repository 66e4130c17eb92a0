# SPDX-License-Identifier: GPL-2.0-or-later
"""Claims, renewals, expiries, answers and cancels in any order: nothing is recorded twice, and everything comes to an end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from hypothesis.strategies import booleans, integers, sampled_from

from lab.models import Experiment, LateAnswer, Run, Sample, Target
from lab.models.states import Outcome
from lab.runs.claim import MOST_ATTEMPTS, Claim
from lab.runs.claiming import claim_next_run, is_held, renew
from lab.runs.expired_claims import return_dead_claims
from lab.runs.hand_back import release
from lab.runs.record import RunRecord, record_run
from lab.runs.settle import cancel_experiment, settle_open
from lab.targets.quarantine import release_target
from lab.tests.factories import finish_builds, make_grid, quarantine_target, samples

pytestmark = pytest.mark.django_db

TARGETS = ("one", "two")


class QueueMachine(RuleBasedStateMachine):
    """Two experiments on two targets; holders that may be slow, dead, or answer twice."""

    def __init__(self) -> None:
        super().__init__()
        self.block: Any = transaction.atomic()
        self.block.__enter__()
        rack = [Target.objects.create(name=name, group="rack") for name in TARGETS]
        self.experiments = [make_grid(blocks=2).pk for _ in range(2)]
        # The first on the group, the second on one of its targets alone.
        Experiment.objects.filter(pk=self.experiments[0]).update(target=rack[0], group="rack")
        Experiment.objects.filter(pk=self.experiments[1]).update(target=rack[1])
        for pk in self.experiments:
            finish_builds(Experiment.objects.get(pk=pk))
        self.claims: list[Claim] = []
        self.recorded: set[str] = set()
        self.refused = 0

    def teardown(self) -> None:
        """Everything can be brought to its end from here."""
        try:
            self.come_to_an_end()
        finally:
            transaction.set_rollback(True)
            self.block.__exit__(None, None, None)

    @rule(where=sampled_from(TARGETS))
    def claim(self, where: str) -> None:
        claim = claim_next_run(target=where, by=f"host:{len(self.claims)}:1")
        if claim is not None:
            assert claim.token not in {earlier.token for earlier in self.claims}
            self.claims.append(claim)

    @rule(pick=integers(0, 20))
    def renewed(self, pick: int) -> None:
        if self.claims:
            claim = self.claims[pick % len(self.claims)]
            assert renew(claim) == is_held(claim)

    @rule(pick=integers(0, 20))
    def expires(self, pick: int) -> None:
        if self.claims:
            token = self.claims[pick % len(self.claims)].token
            Run.objects.filter(token=token).update(lease_until=timezone.now() - timedelta(seconds=1))
            return_dead_claims(alive=lambda _: True)

    @rule(pick=integers(0, 20), how=sampled_from(("finished", "panicked", "lost", "lost for good")))
    def answers(self, pick: int, how: str) -> None:
        if self.claims:
            self.answer(self.claims[pick % len(self.claims)], how)

    @rule(pick=integers(0, 20))
    def gives_back(self, pick: int) -> None:
        if self.claims:
            claim = self.claims[pick % len(self.claims)]
            held = is_held(claim)
            assert release(claim) == held

    @rule(pick=integers(0, 1))
    def cancelled(self, pick: int) -> None:
        cancel_experiment(self.experiments[pick])

    @rule(name=sampled_from(TARGETS), out=booleans())
    def looked_after(self, name: str, out: bool) -> None:
        target = Target.objects.get(name=name)
        if out:
            quarantine_target(target.pk, "it smells")
        else:
            release_target(target_id=target.pk, by=None)

    def answer(self, claim: Claim, how: str) -> None:
        """Record an outcome, which must be taken exactly while the claim is held."""
        held = is_held(claim)
        record = {
            "finished": RunRecord(Outcome.FINISHED, samples=samples({"ns_per_open": [1.0, 2.0]})),
            "panicked": RunRecord(Outcome.PANICKED, blame="kernel", problem="Oops"),
            "lost": RunRecord(Outcome.LOST, blame="lab", problem="gone", retry=True),
            "lost for good": RunRecord(Outcome.LOST, blame="lab", problem="gone"),
        }[how]
        assert record_run(claim, record) == held
        if held and how == "finished":
            assert claim.token not in self.recorded
            self.recorded.add(claim.token)
        self.refused += not held

    def come_to_an_end(self) -> None:
        """Good workers and an operator finish whatever is left, within a bounded number of steps."""
        for _ in range(200):
            if not Experiment.objects.filter(state__in=("queued", "running")).exists():
                break
            for name in TARGETS:
                release_target(target_id=Target.objects.get(name=name).pk, by=None)
                claim = claim_next_run(target=name, by="good:1:1")
                if claim is not None:
                    self.answer(claim, "finished")
            Run.objects.filter(state="running").update(lease_until=timezone.now() - timedelta(seconds=1))
            Run.objects.update(lost_at=timezone.now() - timedelta(hours=1))
            return_dead_claims(alive=lambda _: True)
            settle_open()
        assert set(Experiment.objects.values_list("state", flat=True)) <= {"done", "failed", "cancelled"}
        assert not Run.objects.filter(state__in=("queued", "running")).exists()

    @invariant()
    def what_was_measured_is_there_once(self) -> None:
        assert Run.objects.filter(state="done").count() == len(self.recorded)
        assert Sample.objects.count() == 2 * len(self.recorded)

    @invariant()
    def a_target_boots_one_kernel(self) -> None:
        running = list(Run.objects.filter(state="running").values_list("target", flat=True))
        assert None not in running
        assert len(running) == len(set(running))

    @invariant()
    def tokens_are_with_who_works_alone(self) -> None:
        assert not Run.objects.exclude(state="running").exclude(token="").exists()
        assert not Run.objects.filter(state="running", token="").exists()

    @invariant()
    def nothing_is_tried_for_ever(self) -> None:
        assert not Run.objects.filter(attempt__gt=MOST_ATTEMPTS).exists()

    @invariant()
    def what_came_too_late_is_in_sight(self) -> None:
        assert LateAnswer.objects.count() == self.refused

    @invariant()
    def a_block_counts_on_one_target(self) -> None:
        counting = Run.objects.filter(state="done", invalid=[], experiment=self.experiments[0])
        for block in set(counting.values_list("block", flat=True)):
            assert counting.filter(block=block).values("target").distinct().count() == 1


@pytest.mark.thorough
def test_no_order_of_events_loses_or_doubles_anything() -> None:
    checks = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
    limits = settings(max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=checks)
    run_state_machine_as_test(QueueMachine, settings=limits)
