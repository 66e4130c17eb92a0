# SPDX-License-Identifier: GPL-2.0-or-later
"""The rules that all parts of a description share."""

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

from lab.harmful_characters import check_lines, refusal_of


class Part(BaseModel):
    """A table of a description: it cannot change, and a field that it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*", mode="after")
    @classmethod
    def _reads_as_it_is(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse characters that drive terminals or turn a line around, in every text of one line; in patches only NUL.

        PostgreSQL stores no text with NUL.
        """
        if info.field_name != "text":
            check_lines(value)
        elif value and "\0" in value:
            raise ValueError(refusal_of("it", "U+0000"))
        return value
