"""What the text of a view reads: it comes from a catalogue, is parsed, and never run."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from sqldeid.sql.guard import tables_of

_NO_QUERY = {TokenType.COMMAND, TokenType.PIVOT, TokenType.UNPIVOT, TokenType.SUMMARIZE, TokenType.DESCRIBE}
"""Words of what sqlglot takes for a command: it would log the text."""

_MADE = ("range", "generate_series", "unnest", "explode")
"""Functions in the place of a table that read none."""


@dataclass(frozen=True, slots=True)
class Viewed:
    """What a view reads: the names of tables and views by their parts, and files by what the text calls them."""

    names: tuple[tuple[str, ...], ...]
    files: tuple[str, ...]


def view_reads(text: str, dialect: str) -> Viewed | None:
    """What a view reads, by its query or by the statement that makes it; None where that is not understood.

    So it is where a function stands in the place of a table that may read any.
    """
    spoken = Dialect.get_or_raise(dialect)
    try:
        tokens = spoken.tokenize(text)
        trees = [] if any(t.token_type in _NO_QUERY for t in tokens) else spoken.parser().parse(tokens, text)
    except (SqlglotError, RecursionError, ValueError):
        return None
    tree = trees[0] if len(trees) == 1 else None
    query = tree.expression if isinstance(tree, exp.Create) else tree
    if not isinstance(query, exp.Query):
        return None
    files: list[str] = []
    for table in query.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier):
            continue
        called = (table.this.name if isinstance(table.this, exp.Anonymous) else table.this.sql_name()).casefold()
        if called.startswith("read_"):
            named = _files(table.this)
            if named is None:
                return None
            files += named
        elif called not in _MADE:
            return None
    return Viewed(tuple(parts for parts in tables_of(query) if any(parts)), tuple(files))


def _files(function: exp.Expr) -> list[str] | None:
    """The files that are the first argument of a function; None where they are not written there."""
    first = function.this if isinstance(function.this, exp.Expr) else next(iter(function.expressions), None)
    if isinstance(first, list):
        first = next(iter(first), None)
    written = first.expressions if isinstance(first, exp.Array) else [first]
    names = [one.name for one in written if isinstance(one, exp.Literal) and one.is_string]
    return names if len(names) == len(written) else None
