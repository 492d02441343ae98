"""What every engine can do: a small protocol, and capabilities without optional fields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import pyarrow as pa
from sqlglot import exp

Kind = Literal["integer", "float", "number", "boolean", "date", "timestamp", "text", "other"]
"""How values reach Python: BIGINT, DOUBLE, exact number as text, BOOLEAN, DATE, TIMESTAMP, text, or not at all."""


_ENUM = re.compile(r"ENUM\((?:'(?:[^']|'')*'(?:, )?)*\)")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table or query: its name and type as the engine spells them, and how its values travel."""

    name: str
    type: str
    kind: Kind

    @property
    def shown_type(self) -> str:
        """The type for messages: an ENUM lists data values, which are left out."""
        return _ENUM.sub("ENUM", self.type)

    @property
    def is_enum(self) -> bool:
        """Whether the type itself is an ENUM."""
        return _ENUM.fullmatch(self.type) is not None

    @property
    def holds_enum(self) -> bool:
        """Whether an ENUM is nested in the type."""
        return _ENUM.search(self.type) is not None and not self.is_enum


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view of the catalogue; `comment` is what was noted on it, empty if nothing."""

    parts: tuple[str, ...]
    is_view: bool
    comment: str


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine offers; every field is always stated (engines.md, *Protocol*)."""

    dialect: str
    transactional_ddl: bool
    snapshot_reads: bool
    persistent_catalog: bool
    max_identifier_bytes: int
    case_sensitive_names: bool
    temp_tables: bool
    view_comments: Literal["after", "inline"]
    secure_view: Literal["none", "barrier", "plan_only"]
    grants: bool


class Engine(Protocol):
    """A database that holds the source, in one snapshot, for one run."""

    @property
    def capabilities(self) -> Capabilities:
        """What the engine offers."""

    @property
    def statements(self) -> int:
        """Statements run so far."""

    @property
    def moved(self) -> tuple[int, int]:
        """Rows and bytes that came out of the engine so far."""

    def relations(self) -> Sequence[Relation]:
        """Tables and views of the source."""

    def resolve(self, parts: tuple[str, ...], *, key: str = "") -> exp.Table:
        """The catalogue's table or view of that name, fully qualified; JobError if there is none."""

    def columns(self, relation: exp.Expr, *, key: str = "") -> tuple[Column, ...]:
        """The columns of a table or subquery, without running it."""

    def output_names(self, query: exp.Query, *, key: str = "") -> tuple[str, ...]:
        """The names that a query gives its columns, equal ones included, without running it."""

    def workbench(self, name: str) -> exp.Table:
        """A name for a temporary table of this run; it is dropped when the engine is closed."""

    def put(self, name: str, rows: pa.Table | pa.RecordBatchReader) -> exp.Table:
        """A temporary table of this run with these rows; a reader is read batch by batch, once."""

    def execute(self, sql: str) -> None:
        """Run a statement for its effect."""

    def query(self, sql: str) -> pa.Table:
        """Run a statement for its rows."""
