"""Whether a release that is a view shows all of its snapshot, and nothing else: whoever has the file reads both.

Guarantee
    In DuckDB, what a release's view reads is its snapshot, of which it shows every column and row; and a release that
    is a table has no snapshot. So what was checked of the view holds of the snapshot, and its text says nothing more.

Does not protect
    In Postgres and on Spark, where views have their own rights, nobody looks. A computed view, which a database alone
    can have, has no snapshot, and its text is not compared.

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
from sqldeid.publish.notes import ours
from sqldeid.publish.places import SNAPSHOT, TARGET, Destination
from sqldeid.sql import table_name


def refuse_other_snapshots(engine: Engine, target: Destination, names: Collection[str]) -> None:
    """Refuse releases of which a view shows something else than its snapshot.

    Raises
    ------
    VerificationError
        Naming the release.
    """
    reader = engine if target.into is None else engine.bench
    if target.kind == "parquet" or not isinstance(reader, DuckDBEngine):
        return
    there = reader.relations_in(TARGET if target.into is not None else reader.catalog)
    for name in names:
        found = {r.parts[-1].casefold(): r for r in ours(there, target.schema, name)}
        shown, snapshot = found[name.casefold()], found.get(f"{name}{SNAPSHOT}".casefold())
        computed = target.into is None and snapshot is None
        plain = snapshot is None if not shown.is_view else computed or _is_plain(shown, snapshot, reader)
        if not plain:
            raise VerificationError.at(
                target.key(name),
                f"{target.shown(name)} and {name}{SNAPSHOT} are not a view and all that it shows: somebody changed "
                "one, and whoever is given the release reads both; make the release anew with --replace",
            )


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
