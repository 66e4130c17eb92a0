# SPDX-License-Identifier: GPL-2.0-or-later
"""Fields of request bodies that accept only the types of the schema, without converting similar values."""

from collections.abc import Mapping
from itertools import islice
from typing import Any, TypeVar

from drf_spectacular.extensions import OpenApiSerializerExtension, OpenApiSerializerFieldExtension
from rest_framework import serializers
from rest_framework.request import Request

from lab.validation_messages import nearest

NO_NUL = r"^[^\u0000]*$"
# Each unknown field is compared with every known one.
MOST_FAULTS = 20
T = TypeVar("T", bound="Body")


class Body(serializers.Serializer[Any]):
    """A JSON object; an unknown field is refused with the nearest known name."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the validated value. Raises ValidationError."""
        if isinstance(data, Mapping):
            unknown = {
                name: [f"there is no such field; {nearest(name[:40], self.fields)}"]
                for name in islice((name for name in data if name not in self.fields), MOST_FAULTS)
            }
            if unknown:
                raise serializers.ValidationError(unknown)
        return super().to_internal_value(data)


class BodySchema(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Tells the schema that a body has no other fields."""

    target_class = Body
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        """Return the body's schema, closed to other fields."""
        schema: dict[str, Any] = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        return schema | {"additionalProperties": False}


class Text(serializers.CharField):
    """A string; blanks at its ends are kept: the code that uses it decides about them."""

    def __init__(self, **arguments: Any) -> None:
        arguments = {"trim_whitespace": False, "allow_blank": not arguments.get("min_length")} | arguments
        super().__init__(**arguments)

    def to_internal_value(self, data: Any) -> str:
        """The string. Raises ValidationError."""
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


class TextSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    """Tells the schema that a text has no NUL."""

    target_class = Text

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        """Its type and limits."""
        limits = {"minLength": self.target.min_length, "maxLength": self.target.max_length}
        schema = {"type": "string", "pattern": NO_NUL}
        return schema | {name: limit for name, limit in limits.items() if limit is not None}


class Whole(serializers.IntegerField):
    """A whole number that is one in JSON too."""

    def to_internal_value(self, data: Any) -> int:
        """The number. Raises ValidationError."""
        if isinstance(data, bool) or not isinstance(data, int | float) or data != int(data):
            self.fail("invalid")
        return int(super().to_internal_value(int(data)))


class Truth(serializers.BooleanField):
    """true or false; a text such as "true" is refused."""

    def to_internal_value(self, data: Any) -> bool:
        """The value. Raises ValidationError."""
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Word(serializers.ChoiceField):
    """One of a few strings."""

    def to_internal_value(self, data: Any) -> str:
        """The string. Raises ValidationError."""
        if not isinstance(data, str) or data not in self.choices:
            shown = str(data)[:40]
            raise serializers.ValidationError(
                f'"{shown}" is not valid; {nearest(shown, map(str, self.choices))}'
            )
        return data


def taken(shape: type[Body], request: Request, *, partial: bool = False) -> dict[str, Any]:
    """Return the validated body of a request. Raises ValidationError."""
    body = shape(data=request.data, partial=partial)
    body.is_valid(raise_exception=True)
    return dict(body.validated_data)
