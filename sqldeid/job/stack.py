"""`[tables.X.stack.Y]` of a job: rows of a child table as columns of one row per person (Mazzone 2019, §4.2)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from sqldeid.job import rules, stack_rules
from sqldeid.job.fields import Hierarchy, Section, Text, listed, or_one
from sqldeid.job.rules import Role

_ONE_OR_MORE = Field(min_length=1, json_schema_extra=or_one)
Names = Annotated[list[Text], BeforeValidator(listed), _ONE_OR_MORE]
Place = Annotated[int, Field(ge=1, le=stack_rules.MAX_PLACES)]


class Stack(Section):
    """Columns made of the rows that a person has in another table: the first n, given ones, or an aggregate."""

    check = rules.stack_problems
    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": [key]} for key in ("first", "items", "aggregate")],
            "if": {"properties": {"role": {"const": "quasi-identifying"}}},
            "then": {"required": ["hierarchy"]},
        }
    )

    from_table: Text = Field(alias="from", description='The child table ("schema.table").')
    on: Names = Field(
        description="The key, or list of keys, by which the source is joined with from (or with through). Rows without "
        "a key belong to nobody."
    )
    on_as: Names | None = Field(
        default=None, description="The names that the keys of on have in from (or in through), where others: in order."
    )
    value: Text | None = Field(
        default=None, description="The column of from that is stacked; with count, rows where it is NULL do not count."
    )
    where: Text | None = Field(
        default=None, description="One SQL expression over columns of from; other rows are left out."
    )
    order: Names | None = Field(
        default=None,
        description="What orders a person's rows: columns of from, else of through. NULL comes last. Rows that are "
        "equal in order and then are refused where it matters which is first.",
    )
    then: Names | None = Field(default=None, description="Columns that break ties of order, such as a row number.")
    first: Place | None = Field(default=None, description="That many rows from the first on, as columns Y_1, Y_2 …")
    items: list[Place] | None = Field(
        default=None, min_length=1, description="The rows in these places, from 1 on: [1, 5] makes Y_1 and Y_5."
    )
    unordered: bool = Field(
        default=False,
        description="With first or items: the different values among these rows as a set, in the order of the values, "
        "without NULL; the columns are Y_1, Y_2 …",
    )
    aggregate: Literal["count", "first", "last", "min", "max", "mean"] | None = Field(
        default=None,
        description="One column Y: the number of rows, the value of the first or last row in order, the least, the "
        "greatest, or the mean of the values (counted to ten decimals).",
    )
    empty: Literal["keep", "drop"] = Field(
        default="keep",
        description="Persons who have no such row: keep them with NULL (count: 0), or drop them.",
    )
    through: Text | None = Field(default=None, description="A table between source and from (patient → admission → …).")
    through_on: Names | None = Field(
        default=None, description="The key, or list of keys, by which through and from are joined."
    )
    through_on_as: Names | None = Field(
        default=None, description="The names that the keys of through_on have in from, where others: in order."
    )
    through_where: Text | None = Field(
        default=None, description="One SQL expression over columns of through; other rows are left out before the pick."
    )
    pick: Literal["first", "last", "longest"] | None = Field(
        default=None,
        description="Which one of a person's rows of through counts; absent: all of them. The pick does not look "
        "whether it has rows in from.",
    )
    pick_order: Text | None = Field(
        default=None,
        description="With pick: the column of through by which rows are first or last; with longest a length, or where "
        "one begins. NULL is picked last.",
    )
    pick_until: Text | None = Field(
        default=None, description="With longest: where a length ends that begins at pick_order."
    )
    pick_then: Names | None = Field(default=None, description="Columns of through that break ties of the pick.")
    role: Role = Field(
        description="Of the columns made, as in columns. `columns` may name one of them and say otherwise."
    )
    hierarchy: Hierarchy | None = Field(default=None, description="Of the columns made, as in columns.")
    uncovered: Literal["refuse", "prefix", "top"] = Field(
        default="refuse", description="Of the columns made, as in columns."
    )
    version: Text | None = Field(default=None, description="A column of the child table, as in columns.")

    def names(self, name: str) -> list[str]:
        """The columns that this stack makes, called `name` in the job."""
        return stack_rules.stack_names(name, self.model_dump(exclude_none=True))

    @property
    def places(self) -> list[int]:
        """Which rows of a person are taken, from 1 up; none for an aggregate."""
        return stack_rules.stack_places(self.model_dump(exclude_none=True))

    def settings(self) -> dict[str, object]:
        """What is said of each column that this stack makes."""
        return self.model_dump(include={"role", "hierarchy", "uncovered"}, exclude_unset=True)
