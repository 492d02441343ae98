"""What a catalogue of Spark's says of its tables and views."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from sqldeid.engine.base import Relation
from sqldeid.sql import identifier

Read = Callable[..., list[dict[str, Any]]]
"""Gives the rows of one of the engine's own questions, by its template and parameters."""

_COMMENT = re.compile(r"^Comment: (.*)$", re.MULTILINE)
_KIND = re.compile(r"^Type: (.*)$", re.MULTILINE)
_CREATED = re.compile(r"^Created Time: (.*)$", re.MULTILINE)
_LOOKS = 3
"""How often a catalogue is read in which tables go while it is read."""


class Catalogue:
    """The schemas that were looked in: a catalogue may hold thousands."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._schemas: list[str] = []
        self._made_at: dict[tuple[str, ...], str] = {}

    def look_in(self, schema: str) -> None:
        """Tell of a schema, too, where there is one of that name."""
        if schema.casefold() in {row["namespace"].casefold() for row in self._read("engine/list_schemas")}:
            self.tell_of(schema)

    def tell_of(self, schema: str) -> None:
        """Tell of a schema that is there, too."""
        if schema.casefold() not in {s.casefold() for s in self._schemas}:
            self._schemas.append(schema)

    def relations(self) -> list[Relation]:
        """Tables and views, as (schema, name), with what is noted on them."""
        found = []
        for row in (row for schema in self._schemas for row in self._listed(schema) if not row["isTemporary"]):
            head = row["information"].partition("\nView Text:")[0].partition("\nSchema:")[0]
            parts = (row["namespace"], row["tableName"])
            found.append(Relation(parts, _said(_KIND, head) == "VIEW", _said(_COMMENT, head)))
            self._made_at[parts] = _said(_CREATED, head)
        return found

    def made_at(self, relation: Relation) -> str:
        """When a table of `relations` was made, as the catalogue writes it; empty where it does not say."""
        return self._made_at.get(tuple(relation.parts), "")

    def _listed(self, schema: str) -> Sequence[dict[str, Any]]:
        """A schema's tables with what is told of each; Spark fails where one is dropped after it was listed."""
        from sqldeid.engine.spark_errors import NoTable

        for _ in range(_LOOKS - 1):
            with suppress(NoTable):
                return self._read("engine/list_relations", schema=identifier(schema))
        return self._read("engine/list_relations", schema=identifier(schema))


def _said(what: re.Pattern[str], head: str) -> str:
    found = what.search(head)
    return found[1] if found else ""
