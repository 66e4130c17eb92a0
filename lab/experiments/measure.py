# SPDX-License-Identifier: GPL-2.0-or-later
"""The `[measure]` table of a description: how an experiment measures.

A field is declared here and nowhere else: the form, labctl, clones, exports and the reference ask for it, show it and
document it from its title, its description and the words of its choices (lab/experiments/questions.py).
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, StrictBool, StrictInt, field_validator, model_validator

from lab.experiments.questions import ChoiceWords, questions
from lab.experiments.spec_part import Part
from lab.validation_messages import shown_value

# Where boots agree to the last instruction, more of them say nothing new.
LEAST_BOOTS, MOST_BOOTS = 2, 500
MOST_PROFILE_BOOTS = 50
DEFAULT_BOOTS = {"wall": 10, "instructions": 2, "contention": 5}


def _is_a_way_to_profile(value: Any) -> Any:
    if value is None or isinstance(value, bool) or value == "exact":
        return value
    shown = f'"{value}"' if isinstance(value, str) else value
    raise ValueError(f'{str(shown)[:80]} is neither true, false nor "exact"')


# Whether separate boots are profiled: sampled by perf, or under the microscope, which counts every instruction.
Profiling = Annotated[StrictBool | Literal["exact"], BeforeValidator(_is_a_way_to_profile)]


class MeasureSpec(Part):
    """The numbers of boots and iterations; a boot is the unit of replication."""

    # docs/contention.md and docs/instruction-clock.md say what each clock counts, and on which machine.
    clock: Annotated[
        Literal["wall", "instructions", "contention"],
        Field(title="Clock", description="What times are counted in."),
        ChoiceWords(
            {
                "wall": "wall: time, on this machine as it is",
                "instructions": "instructions: executed ones, the same in every boot",
                "contention": "contention: cycles on many CPUs at once, by a model of the machine",
            }
        ),
    ] = "wall"
    boots: Annotated[
        StrictInt | Literal["auto"],
        Field(
            title="Boots",
            description="Boots of each variant and case; auto adds boots while the result is inconclusive.",
        ),
    ] = DEFAULT_BOOTS["wall"]
    iterations: Annotated[
        StrictInt,
        Field(ge=1, le=1000, title="Iterations", description="Iterations of the workload in each boot."),
    ] = 5
    warmup: Annotated[
        StrictInt,
        Field(ge=0, le=100, title="Warm-up", description="Iterations to discard at the start of each boot."),
    ] = 1
    placebo: Annotated[
        StrictBool,
        Field(
            title="Layout placebo",
            description="Also builds the base with its functions aligned differently: changes this small are ignored "
            "as layout noise. One more full build.",
        ),
    ] = False
    profile: Annotated[
        Profiling,
        Field(title="Profile", description="In separate boots, which are never timed."),
        ChoiceWords({"yes": "sampled by perf", "exact": "exact (instruction clock)"}),
    ] = False
    # With one boot each, two profiles may differ only as boots do; the base gets this many boots a second time.
    profile_boots: Annotated[
        StrictInt,
        Field(
            ge=1, le=MOST_PROFILE_BOOTS, title="Profiled boots", description="Profiled boots of each variant."
        ),
    ] = 3
    off_cpu: Annotated[
        StrictBool,
        Field(title="Waits", description="Profiled boots also record where threads wait off the CPU."),
    ] = False
    verify: Annotated[
        StrictBool,
        Field(
            title="Verify",
            description="One more boot of each variant that checks that the test hit the claimed path, such as a cold cache. "
            "Never timed.",
        ),
    ] = False
    seed: Annotated[
        StrictInt, Field(ge=0, lt=2**63, title="Seed", description="Seed of the random order of boots.")
    ] = 1

    @model_validator(mode="before")
    @classmethod
    def _boots_suit_the_clock(cls, values: Any) -> Any:
        if (
            isinstance(values, Mapping)
            and "boots" not in values
            and values.get("clock") in tuple(DEFAULT_BOOTS)
        ):
            return {**values, "boots": DEFAULT_BOOTS[values["clock"]]}
        return values

    @field_validator("boots", mode="before")
    @classmethod
    def _boots_are_a_number_or_auto(cls, value: Any) -> Any:
        whole = isinstance(value, int) and not isinstance(value, bool)
        if value != "auto" and not (whole and LEAST_BOOTS <= value <= MOST_BOOTS):
            raise ValueError(
                f'{shown_value(value)} is neither a number from {LEAST_BOOTS} to {MOST_BOOTS} nor "auto"'
            )
        return value

    @model_validator(mode="after")
    def _only_noise_needs_more_boots(self) -> Self:
        if self.clock == "instructions" and self.boots == "auto":
            raise ValueError(
                "boots: under the instruction clock boots agree exactly; give a number, 2 are enough"
            )
        return self


QUESTIONS = tuple(questions(MeasureSpec))
BY_NAME = {question.name: question for question in QUESTIONS}
# Fields that every description had from the start: they count in its digest even at their defaults.
FIRST_FIELDS = frozenset(
    {"clock", "boots", "iterations", "warmup", "placebo", "profile", "profile_boots", "verify", "seed"}
)
