# SPDX-License-Identifier: GPL-2.0-or-later
import pytest

from lab.errors import FieldRefused, NotAllowed, UnknownRow
from lab.models import Note, Revision, User
from lab.notes.changes import LONGEST, delete_note, edit_note, write_note
from lab.tests.factories import make_experiment, make_user

pytestmark = pytest.mark.django_db


def test_a_note_keeps_its_text_as_lines_without_what_no_table_holds() -> None:
    note = write_note(author=make_user("alice"), experiment=make_experiment(), text=" a\r\nb\0 <b>\n")
    assert note.text == "a\nb <b>"


def test_a_note_on_a_revision_may_be_about_one_trend() -> None:
    experiment = make_experiment()
    revision = Revision.objects.create(tree=experiment.tree, commit="c" * 40, position=1, subject="s")
    note = write_note(author=make_user("alice"), revision=revision, trend="abc", text="a new compiler")
    assert revision.notes.get() == note
    with pytest.raises(FieldRefused, match="only a note on a revision"):
        write_note(author=make_user("dora"), experiment=experiment, trend="abc", text="x")


def test_a_note_is_on_exactly_one_thing() -> None:
    with pytest.raises(FieldRefused, match="exactly one"):
        write_note(author=make_user("alice"), text="on nothing")


@pytest.mark.parametrize(("text", "said"), [("  \n", "the note is empty"), ("x" * (LONGEST + 1), "at most")])
def test_a_note_says_something_and_ends(text: str, said: str) -> None:
    with pytest.raises(FieldRefused, match=said):
        write_note(author=make_user("alice"), experiment=make_experiment(), text=text)


def test_a_viewer_writes_no_note() -> None:
    with pytest.raises(NotAllowed, match="bob is a viewer"):
        write_note(author=make_user("bob", User.Role.VIEWER), experiment=make_experiment(), text="x")


def test_the_author_and_operators_change_a_note_and_nobody_else_does() -> None:
    alice, dora = make_user("alice"), make_user("dora")
    note = write_note(author=alice, experiment=make_experiment(), text="first")
    for change in (
        lambda: edit_note(note_id=note.pk, by=dora, text="mine now"),
        lambda: delete_note(note_id=note.pk, by=dora),
    ):
        with pytest.raises(NotAllowed, match="alice's"):
            change()
    edited = edit_note(note_id=note.pk, by=alice, text="second")
    assert (edited.text, edited.edited_at is None) == ("second", False)
    delete_note(note_id=note.pk, by=make_user("charlie", User.Role.OPERATOR))
    assert not Note.objects.exists()


def test_an_author_who_lost_the_role_changes_nothing() -> None:
    alice = make_user("alice")
    note = write_note(author=alice, experiment=make_experiment(), text="first")
    alice.role = User.Role.VIEWER
    with pytest.raises(NotAllowed):
        edit_note(note_id=note.pk, by=alice, text="second")


def test_a_note_that_is_not_there_is_named() -> None:
    with pytest.raises(UnknownRow, match="no note 7"):
        delete_note(note_id=7, by=make_user("alice"))
