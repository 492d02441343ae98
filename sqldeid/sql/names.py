"""Names and values as sqlglot expressions: always quoted, never text pasted into a statement."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from sqldeid.errors import JobError

_HALF = re.compile("[\ud800-\udfff]")


def identifier(name: str) -> exp.Identifier:
    """A quoted identifier. A name that is empty or holds NUL is refused: no engine keeps it."""
    if not name or "\0" in name or _broken(name):
        raise JobError("a name is empty, holds a NUL character, or is not Unicode; no database can hold it")
    return exp.to_identifier(name, quoted=True)


def _broken(text: str) -> bool:
    """Whether a text holds half a character, as a path does that is not UTF-8."""
    return _HALF.search(text) is not None


def table_name(*parts: str) -> exp.Table:
    """A table by its parts, e.g. ``table_name("main", "patients")``; the last part is the table."""
    quoted = [identifier(p) for p in parts]
    table, schema, catalog = ([None, None, *quoted])[-1:-4:-1]
    return exp.Table(this=table, db=schema, catalog=catalog)


def column(name: str, table: str | None = None) -> exp.Column:
    """A column reference, its table's alias before it where given."""
    return exp.Column(this=identifier(name), table=identifier(table) if table else None)


def literal(value: str | int | float | bool | None) -> exp.Expr:
    """A literal by sqlglot. Non-finite floats and strings with NUL are refused."""
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, str):
        if "\0" in value or _broken(value):
            raise JobError("a text value holds a NUL character, or is not Unicode, which SQL text cannot carry")
        return exp.Literal.string(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise JobError("a number is not finite")
    return exp.Literal.number(str(Decimal(repr(value))) if isinstance(value, float) else str(value))


def refuse_same_names(names: Iterable[str], *, what: str, key: str = "") -> None:
    """Refuse names that are equal, or equal but for case: DuckDB would rename one of them in silence."""
    seen: dict[str, str] = {}
    for name in names:
        folded = name.casefold()
        if folded in seen and seen[folded] == name:
            raise JobError(f'{what}: two columns are called "{name}"; rename one of them', key=key)
        if folded in seen:
            raise JobError(f'{what}: "{seen[folded]}" and "{name}" differ only in case; rename one of them', key=key)
        seen[folded] = name


def parse_table(text: str, *, key: str = "") -> tuple[str, ...]:
    """Split a table name as a user writes it (``schema.table``, quoted parts allowed) into its parts.

    Raises
    ------
    JobError
        If the text is not one to three names with dots between.
    """
    words = _words(text)
    names = [word.text for word in words[::2]]
    dots_between = all(word.token_type == TokenType.DOT for word in words[1::2])
    all_names = all(_is_name(word, text) for word in words[::2])
    if not (1 <= len(names) <= 3 and len(words) % 2 == 1 and dots_between and all_names):
        raise JobError(
            f"{key or 'source'}: this is not a table name; write table, schema.table or catalog.schema.table, "
            'each part in double quotes if it holds anything but letters, digits and "_"',
            key=key,
        )
    return tuple(names)


def _words(text: str) -> list[Token]:
    try:
        return list(Dialect.get_or_raise("duckdb").tokenize(text))
    except TokenError:
        return []


def _is_name(word: Token, text: str) -> bool:
    """Whether `word` is in double quotes, or bare; a text in any other quotes (``'a'``, ``$$a$$``) is no name."""
    bare = text[word.start : word.end + 1] == word.text and word.text.isidentifier()
    return word.token_type == TokenType.IDENTIFIER or bare
