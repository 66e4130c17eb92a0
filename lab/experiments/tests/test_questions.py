# SPDX-License-Identifier: GPL-2.0-or-later
"""A field of a description is declared once; the form and labctl read from there how to ask for it."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, StrictBool, StrictInt

from lab.experiments.measure import QUESTIONS, MeasureSpec
from lab.experiments.questions import ChoiceWords, FieldQuestion, questions
from lab.experiments.spec_part import Part


class Tried(Part):
    """A field of each kind."""

    tick: Annotated[StrictBool, Field(title="A tick", description="Does it.")] = False
    number: Annotated[StrictInt, Field(ge=1)] = 3
    often: StrictInt | Literal["auto"] = 2
    clock: Annotated[Literal["wall", "cycles"], ChoiceWords({"wall": "time that passes"})] = "wall"
    way: StrictBool | Literal["exact"] = False
    note: str = ""


BY_NAME = {question.name: question for question in questions(Tried)}


def test_a_question_says_what_its_field_declares() -> None:
    assert BY_NAME["tick"] == FieldQuestion(
        "tick", "tick", "A tick", "Does it.", default=False, choices={"no": False, "yes": True}
    )
    assert BY_NAME["number"] == FieldQuestion("number", "number", "number", "", default=3)
    assert BY_NAME["clock"].options == [("wall", "time that passes"), ("cycles", "cycles")]
    assert [question.kind for question in BY_NAME.values()] == [
        "tick",
        "number",
        "number",
        "choice",
        "choice",
        "text",
    ]


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("tick", "yes", True),
        ("tick", "no", False),
        ("number", "7", 7),
        ("often", "7", 7),
        ("often", "auto", "auto"),
        ("clock", "cycles", "cycles"),
        ("way", "exact", "exact"),
        ("way", "yes", True),
        ("note", "any words", "any words"),
    ],
)
def test_what_was_typed_becomes_the_value_and_is_shown_as_typed_again(
    name: str, typed: str, value: Any
) -> None:
    assert BY_NAME[name].read(typed) is value or BY_NAME[name].read(typed) == value
    assert BY_NAME[name].typed(value) == typed


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("name", "typed", "said"),
    [
        ("tick", "maybe", "A tick: choose one of no, yes."),
        ("tick", "", "A tick: choose one of no, yes."),
        ("clock", "Wall", "clock: choose one of wall, cycles."),
        ("way", "true", "way: choose one of no, yes, exact."),
        ("number", "", "Give a whole number."),
        ("number", "-1", "“-1” is below 0."),
        ("number", "--1", "“--1” is not a whole number."),
        ("number", "٣", "“٣” is not a whole number."),
        ("number", "9" * 30, f"“{'9' * 30}” is not a whole number."),
        ("number", "1e3" + "x" * 80, f"“1e3{'x' * 37}” is not a whole number."),
        ("often", "AUTO", "“AUTO” is not a whole number."),
    ],
)
def test_what_is_no_answer_is_refused_with_what_to_type(name: str, typed: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        BY_NAME[name].read(typed)


def test_a_field_that_no_question_can_ask_for_is_found_when_the_lab_starts() -> None:
    class Unaskable(Part):
        """A field of a type that has no place in a form."""

        parts: dict[str, int]

    with pytest.raises(TypeError, match="no question is known for a field of the type"):
        list(questions(Unaskable))


def test_each_field_of_how_to_measure_has_a_label_and_a_sentence_for_people() -> None:
    assert [question.name for question in QUESTIONS] == list(MeasureSpec.model_fields)
    for question in QUESTIONS:
        assert question.label != question.name
        assert question.help.endswith(".")
        assert set(question.words) <= set(question.choices)
