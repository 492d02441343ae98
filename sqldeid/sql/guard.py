"""User SQL of a job: parsed, checked against an allow-list, bound to the catalogue, written anew.

The user's text never reaches a database. It is parsed to one tree (`parse_expression`, `parse_query`); every node,
argument, function, word and type in it must be on the list in `sqldeid.sql.allowed`; every table in it is replaced by
one that the engine found in its catalogue (`bind`); and only the text written from that tree is run. So a file, a
DataFrame of the calling program, a setting or the clock can be reached by no spelling: what the list does not name is
refused, and what the parser misunderstands is what gets written.

Source: engines.md, *Opening DuckDB*; the names that DuckDB answers by itself (``"current_date"``) are in `allowed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import Token, TokenType

from sqldeid.errors import JobError
from sqldeid.sql.rules import Refused, check, check_scalar, function_name

MAX_CHARACTERS = 50_000
MAX_DEPTH = 100
_DUCKDB = Dialect.get_or_raise("duckdb")
_PARSE_ERRORS = (ParseError, TokenError, RecursionError, ValueError)

Resolve = Callable[[tuple[str, ...]], exp.Table]
"""From a table's parts as the user wrote them to the catalogue's table; raises JobError where there is none."""


class _Parser(DuckDBParser):
    """DuckDB's parser, which says that it cannot read a statement instead of logging the user's text."""

    def _warn_unsupported(self) -> None:
        self.raise_error("not a query")


def parse_expression(text: str, *, key: str) -> exp.Expr:
    """Parse `text` as exactly one scalar expression, such as a ``where``.

    Parameters
    ----------
    text
        SQL in DuckDB's dialect. Subqueries are allowed; aggregates and windows only inside them.
    key
        The job-file key, for the message.

    Returns
    -------
    exp.Expr
        The checked tree, in parentheses; give it to `bind` before it is run.

    Raises
    ------
    JobError
        If the text does not parse or holds anything that is not on the allow-list. Literals are never repeated.
    """
    try:
        tree = _one(text, ())
        check(tree, text)
        check_scalar(tree)
    except Refused as refused:
        raise JobError.at(key, str(refused)) from None
    return tree if isinstance(tree, exp.Paren) else exp.Paren(this=tree)


def parse_query(text: str, *, key: str) -> exp.Query:
    """Parse `text` as exactly one SELECT; WITH, UNION, joins, windows and subqueries included.

    Parameters
    ----------
    text
        SQL in DuckDB's dialect, at most 50,000 characters; ``FROM t`` alone is a query, too.
    key
        The job-file key, for the message.

    Returns
    -------
    exp.Query
        The checked tree; give it to `bind` before it is run.

    Raises
    ------
    JobError
        If the text does not parse or holds anything that is not on the allow-list. Literals are never repeated.
    """
    try:
        tree = _one(text, ("SELECT", "WITH", "FROM", "TABLE", "("))
        if not (isinstance(tree, exp.Query) and isinstance(tree.unnest(), exp.Select | exp.SetOperation)):
            raise Refused("only a query is allowed here; write one SELECT")
        check(tree, text)
    except Refused as refused:
        raise JobError.at(key, str(refused)) from None
    return tree


def tables_of(tree: exp.Expr) -> list[tuple[str, ...]]:
    """The tables `tree` reads, as the user wrote their parts, in order, each once; names of WITH left out.

    A name counts as one of WITH only where that WITH can be seen; in doubt it is a table.
    """
    found = [_parts(table) for table, common in _references(tree) if common is None]
    return list(dict.fromkeys(found))


def bind(tree: exp.Expr, resolve: Resolve) -> exp.Expr:
    """A copy of `tree` that can be run: tables from the catalogue, all names quoted, no comments.

    Every table becomes what `resolve` answers, under its alias or its bare name, so that ``patients.age`` still
    resolves. Names of WITH are replaced by names of our own: should the database not see one where we do, it finds
    nothing, rather than a file or a DataFrame.

    Parameters
    ----------
    tree
        From `parse_expression` or `parse_query`.
    resolve
        Finds a table in the catalogue by its parts; raises JobError where there is none.

    Raises
    ------
    JobError
        What `resolve` raises; or if the written text would not read exactly the tables found (a bug: fails closed).
    """
    bound = tree.copy()
    ours = {id(cte): f"sqldeid with {n}" for n, cte in enumerate(bound.find_all(exp.CTE))}
    found: set[tuple[str, ...]] = set()
    for table, common in list(_references(bound)):
        if not table.args.get("alias"):
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
        if common is not None:
            table.set("this", exp.to_identifier(ours[id(common)]))
        else:
            real = resolve(_parts(table))
            found.add(_parts(real))
            for part in ("this", "db", "catalog"):
                table.set(part, real.args[part].copy() if real.args.get(part) else None)
    for cte in bound.find_all(exp.CTE):
        cte.args["alias"].set("this", exp.to_identifier(ours[id(cte)]))
    for node in bound.walk():
        node.pop_comments()
        if isinstance(node, exp.Identifier):
            node.set("quoted", True)
    _confirm(bound, found)
    return bound


def outward(tree: exp.Expr) -> list[str]:
    """Names of what in `tree` looks across rows (soundness.md 4), each once; empty for a row-wise tree."""
    named: dict[type[exp.Expr], str] = {
        exp.Distinct: "DISTINCT",
        exp.Limit: "LIMIT",
        exp.Offset: "OFFSET",
        exp.Group: "GROUP BY",
        exp.Join: "join",
        exp.Window: "window function",
        exp.Explode: "UNNEST",
        exp.Pivot: "PIVOT",
        exp.Except: "EXCEPT",
        exp.Intersect: "INTERSECT",
        exp.Union: "UNION",
    }
    sources = (exp.From, exp.Join, exp.CTE, exp.Subquery, exp.SetOperation)
    found: dict[str, None] = {}
    for node in tree.walk():
        if isinstance(node, exp.AggFunc):
            found[f"function {function_name(node)}"] = None
        elif type(node) in named and not (isinstance(node, exp.Union) and not node.args.get("distinct")):
            found[f"UN{named[exp.Pivot]}" if node.args.get("unpivot") else named[type(node)]] = None
        elif isinstance(node, exp.Query) and node.parent and not isinstance(node.parent, sources):
            found["subquery"] = None
    return list(found)


def _one(text: str, starts: tuple[str, ...]) -> exp.Expr:
    """The one query of `text`, which begins with one of `starts`; without `starts`, its one expression."""
    if len(text) > MAX_CHARACTERS:
        raise Refused(f"the SQL has {len(text)} characters, and {MAX_CHARACTERS} are allowed; make it a view")
    if "\0" in text:
        raise Refused("the SQL holds a NUL character; remove it")
    try:
        tokens = list(_DUCKDB.tokenize(text))
        _check_tokens(tokens, starts)
        trees = _parse(tokens, text, query=bool(starts))
    except _PARSE_ERRORS as error:
        raise Refused(_where(error)) from None
    if len(trees) != 1:
        raise Refused(f"exactly one {'query' if starts else 'expression'} is allowed, and there are {len(trees)}")
    if _depth(trees[0]) > MAX_DEPTH:
        raise Refused("the SQL is nested too deeply; make parts of it views")
    return trees[0]


def _parse(tokens: list[Token], text: str, *, query: bool) -> list[exp.Expr]:
    parser = _Parser(dialect=_DUCKDB)
    trees = parser.parse(tokens, text) if query else parser.parse_into(exp.Condition, tokens, text)
    return [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]


def _depth(tree: exp.Expr) -> int:
    """Levels of nesting; a chain of ANDs or of ORs counts as one, for it is written without recursion."""
    deepest, open_nodes = 0, [(tree, 1)]
    while open_nodes:
        node, depth = open_nodes.pop()
        deepest = max(deepest, depth)
        for child in node.iter_expressions():
            chain = isinstance(child, exp.Connector) and isinstance(node, exp.Connector)
            open_nodes.append((child, depth if chain else depth + 1))
    return deepest


def _check_tokens(tokens: list[Token], starts: tuple[str, ...]) -> None:
    """Refuse what the parser would read otherwise than DuckDB, or would print in a log."""
    if starts and tokens and tokens[0].text.upper() not in starts:
        known = tokens[0].token_type is not TokenType.STRING and tokens[0].text.isalpha()
        word = tokens[0].text.upper() if known else "this"
        if word in ("PIVOT", "UNPIVOT"):
            raise Refused(f"the statement {word} is refused; write it behind a table: FROM t {word} (… FOR … IN (…))")
        raise Refused(f"{word} is refused; only one SELECT is allowed here")
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            continue
        if token.token_type in _DUCKDB.tokenizer_class.COMMANDS:
            raise Refused(f"{token.text.upper()} is refused; if it is a column's name, put it in double quotes")
        if "~" in token.text:
            raise Refused("the operator ~ is refused; use regexp_matches (a part) or regexp_full_match (the whole)")
        glued = after is not None and after.start == token.end + 1 and after.token_type == TokenType.VAR
        if token.token_type == TokenType.NUMBER and glued:
            raise Refused("a number is not written in decimal digits; write it so")


def _where(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "the SQL is nested too deeply; make parts of it views"
    first = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    place = f" near line {first['line']}, column {first['col']}" if first.get("line") else ""
    return f"the SQL cannot be read{place}; check it (DuckDB's dialect, without parameters)"


def _parts(table: exp.Table) -> tuple[str, ...]:
    return tuple(part for part in (table.catalog, table.db, table.name) if part)


def _references(tree: exp.Expr) -> Iterator[tuple[exp.Table, exp.CTE | None]]:
    """Every table in `tree`, with the part of WITH it means, or None where it means a table."""
    nothing: dict[str, exp.CTE] = {}
    open_nodes = [(tree, nothing)]
    while open_nodes:
        node, seen = open_nodes.pop()
        if isinstance(node, exp.Table):
            yield node, None if node.args.get("db") or node.args.get("catalog") else seen.get(node.name.lower())
        common = node.args.get("with_")
        inside = []
        for part in common.expressions if common else ():
            inside.append((part.this, seen))  # a part sees those before it, never itself
            seen = {**seen, part.alias.lower(): part}
        inside += [(child, seen) for child in node.iter_expressions() if child is not common]
        open_nodes += reversed(inside)


def _confirm(bound: exp.Expr, found: set[tuple[str, ...]]) -> None:
    """Parse what would be run once more: it must pass the same list and read exactly the tables found."""
    text = bound.sql(dialect="duckdb")
    try:
        trees = _parse(list(_DUCKDB.tokenize(text)), text, query=isinstance(bound, exp.Query))
        for tree in trees:
            check(tree)
        same = len(trees) == 1 and set(tables_of(trees[0])) == found
    except (*_PARSE_ERRORS, Refused):
        same = False
    if not same:
        raise JobError("the SQL cannot be written anew safely; simplify it, or make it a view")
