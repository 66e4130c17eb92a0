# SPDX-License-Identifier: GPL-2.0-or-later
"""The questions that the form and labctl ask about a part of a description, read off its fields."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

YES_OR_NO: Mapping[bool, str] = {False: "no", True: "yes"}


@dataclass(frozen=True, slots=True)
class ChoiceWords:
    """The words of the form for each choice of a field; an annotation of the field."""

    of: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FieldQuestion:
    """A field as people are asked for it.

    kind: a tick, one of some choices, a whole number, or a line of text. A number may have choices, too, such as "auto".
    choices: from each word that is typed or chosen to the field's value.
    """

    name: str
    kind: Literal["tick", "choice", "number", "text"]
    label: str
    help: str
    default: Any
    choices: Mapping[str, Any] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def options(self) -> list[tuple[str, str]]:
        """Each choice with what the form says of it."""
        return [(word, self.words.get(word, word)) for word in self.choices]

    def typed(self, value: Any) -> str:
        """Return a value as it is typed or chosen."""
        return next(
            (word for word, choice in self.choices.items() if choice is value or choice == value), str(value)
        )

    def read(self, typed: str) -> Any:
        """Return the value that was typed or chosen. Raises ValueError, whose text says what to type."""
        if typed in self.choices:
            return self.choices[typed]
        if self.kind == "text":
            return typed
        if self.kind != "number":
            raise ValueError(f"{self.label}: choose one of {', '.join(self.choices)}.")
        return read_number(typed)


def read_number(typed: str) -> int:
    """Return the whole number that was typed. Raises ValueError, whose text says what to type."""
    if typed.isascii() and typed.isdecimal() and len(typed) < 20:
        return int(typed)
    if not typed:
        raise ValueError("Give a whole number.")
    negative = typed.startswith("-") and typed[1:].isascii() and typed[1:].isdecimal()
    raise ValueError(f"“{typed[:40]}” is {'below 0' if negative else 'not a whole number'}.")


def questions(part: type[BaseModel]) -> Iterator[FieldQuestion]:
    """Yield a question for each field of a part of a description."""
    for name, declared in part.model_fields.items():
        values = list(_values(declared.annotation))
        words = next((note.of for note in declared.metadata if isinstance(note, ChoiceWords)), {})
        choices = {value if isinstance(value, str) else YES_OR_NO[value]: value for value in values
                   if not isinstance(value, type)}  # fmt: skip
        yield FieldQuestion(
            name=name,
            kind=_kind(values),
            label=declared.title or name,
            help=declared.description or "",
            default=declared.default,
            choices=choices,
            words=words,
        )


def _kind(values: list[Any]) -> Literal["tick", "choice", "number", "text"]:
    if int in values:
        return "number"
    if str in values:
        return "text"
    return "tick" if values == list(YES_OR_NO) else "choice"


def _values(annotation: Any) -> Iterator[Any]:
    """Yield the values that an annotation allows; of numbers and of text their type."""
    if annotation is bool:
        yield from YES_OR_NO
    elif get_origin(annotation) is Literal:
        yield from get_args(annotation)
    elif get_origin(annotation) is Annotated:
        yield from _values(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for member in get_args(annotation):
            yield from _values(member)
    elif annotation in (int, str):
        yield annotation
    else:
        raise TypeError(f"no question is known for a field of the type {annotation}")
