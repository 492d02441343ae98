"""What the text of a view names: it comes from the catalogue, is parsed, and never run."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from sqldeid.sql.guard import tables_of


def names_read(definition: str, dialect: str) -> list[tuple[str, ...]] | None:
    """The tables that a view's text names, by their parts; None where the text is not understood, or none is there.

    A function in the place of a table is no name.
    """
    spoken = Dialect.get_or_raise(dialect)
    try:
        tokens = spoken.tokenize(definition)
        if any(t.token_type in _NO_QUERY for t in tokens):  # sqlglot would log the text, and read nothing in it
            return None
        trees = spoken.parser().parse(tokens, definition)
    except (SqlglotError, RecursionError, ValueError):
        return None
    tree = trees[0] if len(trees) == 1 else None
    query = tree.expression if isinstance(tree, exp.Create) else tree
    if not isinstance(query, exp.Query):
        return None
    return [parts for parts in tables_of(query) if any(parts)]


_NO_QUERY = {TokenType.COMMAND, TokenType.PIVOT, TokenType.UNPIVOT, TokenType.SUMMARIZE, TokenType.DESCRIBE}
"""Words of statements that sqlglot takes for a command."""
