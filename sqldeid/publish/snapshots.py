"""Whether a release that is a view shows all of its snapshot, and nothing else: whoever has the file reads both.

Guarantee
    In DuckDB and Postgres a release's view reads its snapshot and nothing else, so that it does not change with its
    source. In DuckDB it shows every column and row of it, and a release that is a table has no snapshot; so what was
    checked of the view holds of the snapshot, and its text says nothing more.

Does not protect
    In Postgres views have their own rights, and nobody looks what else a snapshot holds; on Spark, where each run's
    snapshot has a name of its own, nobody looks at all. The text of a computed view, where the job asks for one, is not
    compared.

Source: soundness.md 5, 26.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from sqldeid.engine.base import Engine, Relation
from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.errors import VerificationError
from sqldeid.publish.existing import relations_at
from sqldeid.publish.notes import ours
from sqldeid.publish.places import SNAPSHOT, Destination
from sqldeid.sql import table_name


def refuse_other_snapshots(
    engine: Engine, target: Destination, names: Collection[str], computed: Collection[str]
) -> None:
    """Refuse releases of which a view shows something else than its snapshot.

    Parameters
    ----------
    computed
        The releases that the job wants computed from their source at each reading.

    Raises
    ------
    VerificationError
        Naming the release.

    Cost: the catalogue; in Postgres a statement for each view.
    """
    reader = engine if target.into is None else engine.bench
    if target.kind == "parquet" or reader.capabilities.dialect == "spark":
        return
    there = relations_at(reader, target)
    for name in names:
        found = {r.parts[-1].casefold(): r for r in ours(there, target.schema, name)}
        shown, snapshot = found[name.casefold()], found.get(f"{name}{SNAPSHOT}".casefold())
        live = target.into is None and snapshot is None and name in computed
        if live or _stands_alone(shown, snapshot, reader):
            continue
        raise VerificationError.at(
            target.key(name),
            f"{target.shown(name)} and {name}{SNAPSHOT} are not a view and all that it shows: somebody changed one, "
            "and whoever is given the release reads both; make the release anew with --replace",
        )


def _stands_alone(shown: Relation, snapshot: Relation | None, reader: Engine) -> bool:
    """Whether a release is a table, or a view on its snapshot alone."""
    if isinstance(reader, DuckDBEngine):
        return _is_plain(shown, snapshot, reader) if shown.is_view else snapshot is None
    if not shown.is_view:
        return True
    return snapshot is not None and not snapshot.is_view and _reads_alone(shown, snapshot, reader)


def _reads_alone(view: Relation, snapshot: Relation, reader: Engine) -> bool:
    """Whether a view in Postgres reads no table but its snapshot; not where that cannot be told."""
    own = {".".join(r.parts[-2:]).casefold() for r in (view, snapshot)}
    read = reader.beneath(view.parts)
    return read is not None and all(name in own or name.partition(".")[2] in own for name in read)


def _is_plain(view: Relation, snapshot: Relation | None, reader: DuckDBEngine) -> bool:
    """Whether a view's text is that of its run: the columns of the snapshot, in their order, from the snapshot."""
    if snapshot is None or snapshot.is_view:
        return False
    columns = [c.name for c in reader.columns(table_name(*snapshot.parts))]
    listed = [word for name in columns for word in (",", name)][1:]
    return _query(view.definition) == ["SELECT", *listed, "FROM", snapshot.parts[-2], ".", snapshot.parts[-1]]


def _query(text: str) -> list[str]:
    """The words of a view's query; none where one is a text, or is not understood."""
    try:
        tokens = Dialect.get_or_raise("duckdb").tokenize(text)
    except SqlglotError:
        return []
    start = next((i + 1 for i, t in enumerate(tokens) if t.token_type == TokenType.ALIAS), len(tokens))
    found = tokens[start:]
    if any(t.token_type in (TokenType.STRING, TokenType.NATIONAL_STRING) for t in found):
        return []
    return [t.text for t in found if t.token_type != TokenType.SEMICOLON]
