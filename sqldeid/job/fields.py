"""What parts of a job are made of: texts, numbers, hierarchies, sources; how a model holds itself to its rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    StringConstraints,
    Tag,
    WithJsonSchema,
    model_validator,
)

from sqldeid.job import rules
from sqldeid.job.rules import BrokenRules, Problem

MAX_WHOLE = 2**63 - 1
"""The greatest whole number that every engine's BIGINT holds."""

Check = Callable[[Mapping[str, object]], Iterable[Problem]]
"""Finds what is wrong with a section, given as it is written."""


class Section(BaseModel):
    """A section of a job: no key but its own, each of exactly its type, and rules that read two keys or more."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
    check: ClassVar[Check | None] = None

    @model_validator(mode="after")
    def _rules(self) -> Self:
        check = type(self).check
        if check and (problems := tuple(check(self.model_dump(by_alias=True, exclude_unset=True)))):
            raise BrokenRules(problems)
        return self


def listed(value: object) -> object:
    """One name or a list of names."""
    return [value] if isinstance(value, str) else value


def or_one(schema: dict[str, Any]) -> None:
    """The schema of a list, or of one of its items."""
    found = {name: schema.pop(name) for name in ("type", "items", "minItems", "maxItems") if name in schema}
    schema["anyOf"] = [dict(found["items"]), found]


def _number(value: object) -> int | float:
    """A whole number stays whole (bands are labelled with it); true and false are no numbers."""
    whole = type(value) is int and abs(value) <= MAX_WHOLE
    if not whole and not (type(value) is float and math.isfinite(value)):
        raise ValueError("not a finite number")
    return value  # type: ignore[return-value]  # narrowed by `type(...) is`, which keeps out booleans


TIMES = ("second", "minute", "hour", "day", "week")
"""Steps of grids of dates and times."""


def _positive(value: object) -> int | float:
    number = _number(value)
    if number <= 0:
        raise ValueError("not positive")
    return number


def _step(value: object) -> int | float | str:
    return value if isinstance(value, str) and value in TIMES else _positive(value)


def _shape(value: object) -> str | None:
    """Which branch of "text or section" a value takes."""
    return "text" if isinstance(value, str) else "section" if isinstance(value, (Mapping, BaseModel)) else None


Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]+$")]
Whole = Annotated[int, Field(ge=1, le=MAX_WHOLE)]
Number = Annotated[int | float, PlainValidator(_number), WithJsonSchema({"type": "number"})]
Positive = Annotated[int | float, PlainValidator(_positive), WithJsonSchema({"type": "number", "exclusiveMinimum": 0})]
Unit = Literal["day", "month", "quarter", "year", "decade"]
Step = Annotated[
    int | float | str,
    PlainValidator(_step),
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"enum": list(TIMES), "type": "string"}]}),
]


class HierarchyRule(Section):
    """A hierarchy that is built from the column's own values: exactly one rule."""

    check = rules.hierarchy_problems
    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [r]} for r in rules.HIERARCHY_RULES]})

    bands: list[Positive] | None = Field(
        default=None,
        min_length=1,
        description="Widths of numeric bands, one a level, in the column's unit; anchored at 0; each a multiple of "
        "the one before.",
    )
    edges: list[Annotated[list[Number], Field(min_length=1)]] | None = Field(
        default=None,
        min_length=1,
        description="Edges of numeric bands, one list a level, in the column's unit; a level's edges are among those "
        "of the level before.",
    )
    tails: bool | None = Field(
        default=None, description="With edges: true adds open bands below the first and above the last edge."
    )
    mask: list[Whole] | None = Field(
        default=None, min_length=1, description="Number of last characters that become *, one a level, rising."
    )
    keep_first: list[Whole] | None = Field(
        default=None, min_length=1, description="Number of first characters that stay, one a level, falling."
    )
    dates: list[Unit] | None = Field(
        default=None, min_length=1, description="Units that dates and timestamps are cut to, one a level, rising."
    )
    suppress: Literal[True] | None = Field(
        default=None, description="Two levels alone: the value, and * for every value."
    )

    median: Literal["range", "mean"] | None = Field(
        default=None,
        description='With search.method = "mondrian" alone: cut at medians; released as the range between cuts, or as '
        "the mean of the class.",
    )
    aggregate: Literal["mean", "median", "mode", "interval"] | None = Field(
        default=None,
        description="Of numbers, dates and times: the column tells no classes apart, and each row shows this statistic "
        "of its class. It rests on k persons at least and is missing where fewer have a value.",
    )
    grid: Step | None = Field(
        default=None,
        description="With median or aggregate: the step of the numbers that are shown; 5 gives 0, 5, 10 and so on. "
        "Absent: 1 for whole numbers, the last decimal of decimals, a day for dates and times. Floats need it.",
    )

    table: Text | None = Field(
        default=None,
        description="A table of the database with a row for each value: the value, then its label on each level, the "
        "top last.",
    )
    query: Text | None = Field(
        default=None, description="The same as one SELECT over tables of the database; it may not read files."
    )
    columns: Annotated[list[Text], Field(min_length=1)] | None = Field(
        default=None,
        description="With table or query: which columns, the value first, the top last; absent: all, in their order.",
    )
    parents: Text | None = Field(
        default=None,
        description="A table of the database that links each code to the code above it (OMOP's concept_ancestor, a "
        "vocabulary's relationships). Of several parents the one with the shortest way up counts, then the smallest.",
    )
    child: Text | None = Field(default=None, description="With parents, and always there: the column of the codes.")
    parent: Text | None = Field(
        default=None, description="With parents, and always there: the column of the codes above them."
    )
    separation: Text | None = Field(
        default=None,
        description="With parents: a column with the number of steps between the two "
        "(min_levels_of_separation); rows with 1 are links, those with more are not needed.",
    )
    depths: Annotated[list[Whole], Field(min_length=1)] | None = Field(
        default=None,
        description="With parents: how many steps from the beginning of the tree, that counts as 1, one a level, "
        "falling ([4, 3, 2, 1]). A code that is no deeper stays itself.",
    )

    @property
    def in_database(self) -> bool:
        """Whether the levels stand in the database."""
        return self.table is not None or self.query is not None or self.parents is not None

    def to_mapping(self) -> dict[str, object]:
        """The rule as written: ``{"bands": [5, 10]}``, ``{"edges": [[50, 60], [60]], "tails": True}``."""
        return self.model_dump(exclude_none=True)


class Query(Section):
    """A source that is not a table as it stands."""

    query: Text = Field(description="One SELECT over tables of the database; it may not read files.")


Hierarchy = Annotated[Annotated[Text, Tag("text")] | Annotated[HierarchyRule, Tag("section")], Discriminator(_shape)]
Source = Annotated[Annotated[Text, Tag("text")] | Annotated[Query, Tag("section")], Discriminator(_shape)]
