# SPDX-License-Identifier: GPL-2.0-or-later
from datetime import timedelta

import pytest
from django.utils import timezone

from lab.errors import KeyBusy, KeyReused
from lab.models import Experiment, IdempotencyKey, User
from lab.submission.duplicates import KEPT, LONGEST_WORK, Note, submit_under_key
from lab.tests.factories import make_experiment, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> User:
    return make_user("alice")


def made(note: Note) -> Experiment:
    experiment = make_experiment()
    note(experiment)
    return experiment


def never(note: Note) -> Experiment:
    raise AssertionError("it was submitted again")


def send(user: User, submit: object = made, body: str = "b" * 64) -> tuple[Experiment, bool]:
    return submit_under_key(user=user, key="k", body_sha256=body, submit=submit)  # type: ignore[arg-type]


def test_the_same_key_is_the_same_experiment(alice: User) -> None:
    first, replayed = send(alice)
    assert not replayed
    assert send(alice, never) == (first, True)
    with pytest.raises(KeyReused):
        send(alice, never, body="c" * 64)


def test_a_submission_that_fails_frees_its_key(alice: User) -> None:
    with pytest.raises(AssertionError):
        send(alice, never)
    assert not IdempotencyKey.objects.exists()


def test_who_comes_while_the_first_is_worked_on_is_told_to_wait(alice: User) -> None:
    def meanwhile(note: Note) -> Experiment:
        with pytest.raises(KeyBusy):
            send(alice, never)
        return made(note)

    assert send(alice, meanwhile)[1] is False


def test_the_key_of_a_process_that_died_is_taken_over_once_that_is_sure(alice: User) -> None:
    IdempotencyKey.objects.create(user=alice, key="k", body_sha256="b" * 64)
    with pytest.raises(KeyBusy):
        send(alice, never)
    IdempotencyKey.objects.update(created_at=timezone.now() - LONGEST_WORK - timedelta(minutes=1))
    experiment, replayed = send(alice)
    assert not replayed
    assert send(alice, never) == (experiment, True)


def test_a_key_is_forgotten_after_its_time(alice: User) -> None:
    first, _ = send(alice)
    IdempotencyKey.objects.update(created_at=timezone.now() - KEPT - timedelta(minutes=1))
    again, replayed = send(alice)
    assert not replayed
    assert again != first
