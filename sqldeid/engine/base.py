"""What every engine can do: a small protocol, and capabilities without optional fields.

An engine is the *source engine* of one run: it holds the table, folds it, stages, publishes and is verified. The search
always runs in DuckDB, on the folded classes: `Engine.bench`. For a DuckDB source that is the engine itself; for another
one it is an in-memory DuckDB of this run (`sqldeid.engine.remote`), and classes and labels go between the two by
`to_bench` and `from_bench`. Rows of the source never do; of series, what was made of them does, by number, to be
perturbed (`sqldeid.series.transfer`), and of child tables the pairs of person and item, as numbers
(`sqldeid.tables.itemset`).

How an engine gets its own SQL
    Callers write ``engine.rows("area/verb_noun", …)`` (`Asked` has the forms) without knowing the engine. It renders a
    `sqldeid.sql.Statement`: DuckDB's text, and the template and parameters that it was made from. An engine calls
    ``statement.written_for(dialect)``: ``verb_noun.<dialect>.sql.jinja`` or ``verb_noun.each.sql.jinja`` where there is
    one, else the portable ``verb_noun.sql.jinja`` through sqlglot and the rewrites of `sqldeid.sql.dialects` (short
    ones stand together in ``statements[.<dialect>].sql.jinja`` of their room). A template that is
    ``.duckdb`` only is for the bench: give those that reach the source or the release a portable form or a twin.

Which statement runs where
    ========================================================== =======================================================
    source engine (`engine`)                                   bench (`engine.bench`)
    ========================================================== =======================================================
    keep_source, check_person (without a snapshot check_keys,  everything on `Folded.table`, `.cells`, `.sensitive`:
    sum_keys), count_values, read_values, code_values (of a    merge_classes, spread_classes, total_classes,
    remote engine combine_rows, *_every, pick_coded),
    fold_classes, label_values, keep_classes, stage_*,         check_nodes, roll_up, list_failing, judge_*, …;
    group_source, group_release, flag_source, expect_release,  fail_classes and measure_classes on cells that
    compare_release, split_*, rank_values, label_rows;         verification split in the source engine
    of linked tables join_linked, match_linked, compare_linked;
    of Mondrian fold_points, label_parts, expect_parts,        list_points, list_parts, mark_points, average_parts, …;
    compare_parts, spread_labels;                              all of mondrian/
    all of events: its parts are persons', and stay;
    roll_up, histogram_nodes and count_rows on classes that
    are too many to travel (`sqldeid.tables.check.bases`)
    ========================================================== =======================================================
    What a temporary table is (`CREATE TEMPORARY TABLE … AS` in templates) is the engine's business; where it is a view,
    ``statement.kept_on(dialect)`` says how its rows are kept. It must be gone after `close`.

What a further engine adds
    1. ``engine/<name>.py``: a class derived from `sqldeid.engine.remote.Remote`, and its row in
       `sqldeid.engine.choosing` (which URL or object is its, how it is shown without credentials); the module has
       ``open_source(database, bench) -> Remote``.
    2. ``publish/<name>.py``: its `Staging`, by ``open_staging(engine, destination, names, replace)``, which
       `sqldeid.run.foreign` calls.
    3. Its name in the lines of `sqldeid.engine.offers`, the one place that says which parts of a job run where: what is
       not offered is refused before anything runs.
    4. A fixture in ``tests/support/foreign.py``.

Types
    `Column.type` is spelt as DuckDB spells it (INTEGER, DECIMAL(10,2), ``ENUM()`` for any enumeration, TIMESTAMP WITH
    TIME ZONE, …), since expressions are written for DuckDB first; what DuckDB does not have keeps its own name and has
    kind "other". `query` returns BIGINT, DOUBLE, VARCHAR, BOOLEAN, DATE and TIMESTAMP only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Protocol, Self

import pyarrow as pa
from sqlglot import exp

from sqldeid.errors import SqldeidError
from sqldeid.sql import made_by, render

Kind = Literal["integer", "float", "number", "boolean", "date", "timestamp", "text", "other"]
"""How values reach Python: BIGINT, DOUBLE, exact number as text, BOOLEAN, DATE, TIMESTAMP, text, or not at all."""


COMPOSED = "composite "
"""How the spelling of such a type begins."""

_ENUM = re.compile(r"ENUM\((?:'(?:[^']|'')*'(?:, )?)*\)")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table or query: its name and type as the engine spells them, and how its values travel.

    `named` is false where the name may be a value: the first line of a file of text without a header.
    """

    name: str
    type: str
    kind: Kind
    named: bool = True

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

    @property
    def is_composed(self) -> bool:
        """Whether the type is a user's own, made of others, any of which may list values (Postgres)."""
        return self.type.startswith(COMPOSED)


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view of the catalogue; `comment` is what was noted on it, empty if nothing.

    `definition` is the text of a view in DuckDB; other engines are asked by `Engine.beneath`. `hides` says that
    row-level security applies to who reads it now (Postgres).
    """

    parts: tuple[str, ...]
    is_view: bool
    comment: str
    definition: str = ""
    hides: bool = False


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


class Asked(Protocol):
    """How every engine runs a template, once it can run a statement, and how it ends."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        failed = self.close()
        if failed is not None and error is None:
            raise failed

    def close(self) -> SqldeidError | None:
        """Roll back what is open, and drop what is ours; the first error of that."""

    def workbench(self, name: str) -> exp.Table:
        """A name for a temporary table of this run, unique to this call; it is dropped when the engine is closed."""

    def execute(self, sql: str) -> None:
        """Run a statement for its effect."""

    def query(self, sql: str) -> pa.Table:
        """Run a statement for its rows."""

    def run(self, template: str, /, **parameters: object) -> None:
        """Run a template for its effect."""
        self.execute(render(template, **parameters))

    def make(self, template: str, name: str, /, **parameters: object) -> exp.Table:
        """Make a temporary table of this run by a template, whose parameter for the table's name is not given."""
        made = self.workbench(name)
        self.run(template, **{made_by(template): made}, **parameters)
        return made

    def ask(self, template: str, /, **parameters: object) -> pa.Table:
        """Run a template for its rows."""
        return self.query(render(template, **parameters))

    def rows(self, template: str, /, **parameters: object) -> list[dict[str, Any]]:
        """The same, of few rows: a dictionary each."""
        found: list[dict[str, Any]] = self.ask(template, **parameters).to_pylist()
        return found

    def row(self, template: str, /, **parameters: object) -> dict[str, Any]:
        """The same, of one row."""
        return self.rows(template, **parameters)[0]


class Engine(Asked, Protocol):
    """A database that holds the source, in one snapshot, for one run."""

    @property
    def capabilities(self) -> Capabilities:
        """What the engine offers."""

    @property
    def bench(self) -> Engine:
        """The DuckDB workbench of the run, where classes are searched; a DuckDB engine is its own."""

    @property
    def statements(self) -> int:
        """Statements run so far."""

    @property
    def moved(self) -> tuple[int, int]:
        """Rows and bytes (as Arrow) that came out of the engine so far; of a remote engine also what was sent to it."""

    def to_bench(self, table: exp.Table) -> exp.Table:
        """A temporary table of classes of this run, on the bench; the table itself where the engine is the bench."""

    def from_bench(self, table: exp.Table) -> exp.Table:
        """The way back, for classes and labels that the source engine is to join."""

    def relations(self) -> Sequence[Relation]:
        """Tables and views of the source."""

    def resolve(self, parts: tuple[str, ...], *, key: str = "") -> exp.Table:
        """The catalogue's table or view of that name, fully qualified; JobError if there is none."""

    def beneath(self, parts: tuple[str, ...]) -> frozenset[str] | None:
        """The tables whose rows a resolved table or view shows, itself among them; None where that is not known."""

    def columns(self, relation: exp.Expr, *, key: str = "") -> tuple[Column, ...]:
        """The columns of a table or subquery, without running it."""

    def spells_alike(self, relation: exp.Expr, column: Column) -> bool:
        """Whether two spellings of a text may be one value there, though their bytes, which some compare, differ."""

    def output_names(self, query: exp.Query, *, key: str = "") -> tuple[str, ...]:
        """The names that a query gives its columns, equal ones included, without running it."""

    def drop(self, table: exp.Table) -> None:
        """Drop a temporary table of this run early, once: its name is not given again."""

    def put(self, name: str, rows: pa.Table | pa.RecordBatchReader) -> exp.Table:
        """A temporary table of this run with these rows; a reader is read batch by batch, once."""
