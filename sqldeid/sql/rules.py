"""The rules behind `sqldeid.sql.guard`: the first node of a tree that is not allowed is refused, with its mend."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from sqldeid.sql.allowed import (
    HINTS,
    NAMED_FUNCTIONS,
    NODES,
    ORDERED_FUNCTIONS,
    TYPES,
    UNITS,
    VALUE_NAMES,
    WORDS,
)

_NUMBER = re.compile(r"(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


class Refused(Exception):
    """What is refused, and what to do instead; `sqldeid.sql.guard` adds the job's key."""


def check(tree: exp.Expr, text: str = "") -> None:
    """Refuse the first node of `tree` that is not allowed."""
    for node in tree.walk():
        allowed = NODES.get(type(node))
        if allowed is None:
            raise _refusal(_label(node))
        for name, value in node.args.items():
            if value is None or value is False or (isinstance(value, list) and not value):
                continue
            if name not in allowed:
                raise _refusal(f"{_label(node)} ({name.strip('_').replace('_', ' ')})")
            for item in value if isinstance(value, list) else [value]:
                _check_text(node, item)
        if rule := _RULES.get(type(node)):
            rule(node)
        if isinstance(node, exp.Identifier) and text and text[node.meta.get("start", 0)] == "'" and node.meta:
            raise Refused("a text in single quotes stands where a name is expected; a file is no table")


def _check_text(node: exp.Expr, item: object) -> None:
    """Refuse text inside a node, which would be written as it is, unless it is a word we know."""
    if isinstance(item, exp.Expr | bool | exp.DType):
        return
    names = isinstance(node, exp.Identifier | exp.Literal | exp.Anonymous | exp.Var)
    if not (isinstance(item, str) and (names or item.upper() in WORDS.get(type(node), ()))):
        raise _refusal(f"this kind of {_label(node)}")


def check_scalar(tree: exp.Expr) -> None:
    """Refuse aggregates, windows and ``*`` outside a subquery: an expression looks at one row."""
    for node in tree.walk(prune=lambda n: isinstance(n, exp.Query)):
        if isinstance(node, exp.AggFunc | exp.Window | exp.Star | exp.Explode):
            raise Refused(f"{_label(node)} is refused in an expression; use it in a source query")


def _refusal(what: str) -> Refused:
    hint = HINTS.get(what.split(" ")[-1].strip("()"), "it is not on the list of what a job may use")
    return Refused(f"{what} is refused: {hint}")


def _label(node: exp.Expr) -> str:
    """A node as the user would name it; never a literal."""
    if isinstance(node, exp.Func):
        return f"function {function_name(node)}"
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__)
    return words.lower()


def function_name(node: exp.Func) -> str:
    """A function's name in lower case, as standard SQL has it."""
    return (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()


def _select(node: exp.Expr) -> None:
    if not node.expressions:
        raise Refused("SELECT without columns is refused; name them")


def _column(node: exp.Expr) -> None:
    name = node.name.lower()
    if not node.args.get("table") and name in VALUE_NAMES and not isinstance(node.this, exp.Star):
        raise Refused(
            f"the name {name} alone is refused: {HINTS.get(name, 'it can mean a value of the session')}; "
            "if it is a column, write table.column"
        )
    if name == "rowid":
        raise Refused("rowid is refused: it tells a row's place in the source; use a key of the table")


def _star(node: exp.Expr) -> None:
    parent = node.parent
    if not (
        isinstance(parent, exp.Count | exp.Column) or (isinstance(parent, exp.Select) and node.arg_key == "expressions")
    ):
        raise Refused("* is refused here; name the columns")


def _literal(node: exp.Expr) -> None:
    if not (node.is_string or _NUMBER.fullmatch(node.this)):
        raise Refused("a number is not written in decimal digits; write it so")


def _anonymous(node: exp.Expr) -> None:
    name = node.name.lower()
    if NAMED_FUNCTIONS.get(name) != len(node.expressions):
        raise _refusal(f"function {name}")


def _var(node: exp.Expr) -> None:
    holder = isinstance(node.parent, exp.Extract | exp.Interval | exp.DateDiff | exp.TimestampTrunc | exp.DateTrunc)
    if isinstance(node.parent, exp.Ordered) and node.name.upper() == "ALL":
        raise Refused("ORDER BY ALL is refused; name the columns")
    if not (holder and node.name.upper() in UNITS):
        raise Refused("a word stands where it is not known; write a unit such as 'day', 'month' or 'year'")


def _extract(node: exp.Expr) -> None:
    if not (isinstance(node.this, exp.Var | exp.Literal) and node.this.name.upper() in UNITS):
        raise Refused("the part that EXTRACT names is not known; write year, month, day …")


def _data_type(node: exp.Expr) -> None:
    if node.this not in TYPES or not all(isinstance(e, exp.DataTypeParam) for e in node.expressions):
        raise Refused("a cast to this type is refused; cast to a number, text, BOOLEAN, DATE, TIME or TIMESTAMP")


def _data_type_param(node: exp.Expr) -> None:
    if not (isinstance(node.this, exp.Literal) and node.this.is_int):
        raise Refused("a type's size is not a number; write one")


def _window(node: exp.Expr) -> None:
    inner = node.this.this if isinstance(node.this, exp.IgnoreNulls | exp.Filter) else node.this
    if isinstance(inner, ORDERED_FUNCTIONS) and not _ordered(node):
        raise Refused(f"{_label(inner)} without ORDER BY in its window is refused: it would choose rows by accident")


def _ordered(window: exp.Expr) -> bool:
    """Whether a window, or the named one that it stands on, has an order."""
    if window.args.get("order"):
        return True
    name, query = window.args.get("alias"), window.find_ancestor(exp.Select)
    if query is None or not isinstance(name, exp.Identifier):
        return False
    return any(w.args.get("order") for w in query.args.get("windows") or [] if w.name.lower() == name.name.lower())


def _pivot(node: exp.Expr) -> None:
    """PIVOT and UNPIVOT name their columns themselves: names that come from rows would be values."""
    fields = node.args.get("fields") or []
    if not fields or not all(isinstance(f, exp.In) and f.expressions for f in fields):
        raise Refused("PIVOT and UNPIVOT take FOR … IN with a list: names that come from rows would be values")
    kinds = (exp.Column, exp.Tuple) if node.args.get("unpivot") else (exp.Literal,)
    for named in (n for f in fields for n in f.expressions):
        inner = named.this if isinstance(named, exp.Alias | exp.PivotAlias) else named
        if not isinstance(inner, kinds):
            raise Refused("the list of PIVOT holds literals, that of UNPIVOT columns; write them out")


def _dot(node: exp.Expr) -> None:
    if not isinstance(node.expression, exp.Identifier):
        raise Refused("a function after a dot is refused; write it as f(x)")


def _array_agg(node: exp.Expr) -> None:
    if not isinstance(node.this, exp.Order):
        raise Refused("array_agg without ORDER BY is refused: add it inside, as in array_agg(x ORDER BY x)")


def _explode(node: exp.Expr) -> None:
    parent = node.parent.parent if isinstance(node.parent, exp.Alias) else node.parent
    if not isinstance(parent, exp.Select) or node.arg_key not in ("expressions", "this"):
        raise _refusal("function unnest")


def _limit(node: exp.Expr) -> None:
    if not (isinstance(node.expression, exp.Literal) and node.expression.is_int):
        raise Refused("LIMIT and OFFSET take a plain number; write one")
    if not (node.parent and node.parent.args.get("order")):
        raise Refused("LIMIT without ORDER BY is refused: it would choose rows by accident; add ORDER BY with a key")


def _distinct(node: exp.Expr) -> None:
    if node.args.get("on") and not (node.parent and node.parent.args.get("order")):
        raise Refused("DISTINCT ON without ORDER BY is refused: it would choose rows by accident; add ORDER BY")


def _group_concat(node: exp.Expr) -> None:
    if not isinstance(node.this, exp.Order):
        raise Refused("string_agg without ORDER BY is refused: add it inside, as in string_agg(x, ',' ORDER BY x)")


def _join(node: exp.Expr) -> None:
    if str(node.args.get("method") or "").upper() not in ("", "ASOF"):
        raise Refused("this join is refused; join with ON or USING")


def _subquery_only(node: exp.Expr) -> None:
    if not isinstance(node.this, exp.Query):
        raise Refused("a subquery is expected here; write (SELECT …)")


def _in(node: exp.Expr) -> None:
    query = node.args.get("query")
    if query is not None and not isinstance(query, exp.Query):
        raise Refused("IN takes a list in parentheses or a subquery")


def _alias(node: exp.Expr) -> None:
    if not isinstance(node.parent, exp.Select | exp.Star | exp.Pivot | exp.In) or not isinstance(
        node.args["alias"], exp.Identifier
    ):
        raise Refused("a name is given to a value where none is expected; give names in the SELECT list")


def _table(node: exp.Expr) -> None:
    if not isinstance(node.this, exp.Identifier):
        raise _refusal(f"table {_label(node.this)}")
    if node.args.get("joins") and not isinstance(node.parent, exp.Subquery):
        raise Refused("this join is refused; join with ON or USING")


def _subquery(node: exp.Expr) -> None:
    if not isinstance(node.this, exp.Query | exp.Table):
        raise Refused("parentheses hold something else than a query; write (SELECT …)")


_RULES: dict[type[exp.Expr], Callable[[exp.Expr], None]] = {
    exp.Select: _select,
    exp.Column: _column,
    exp.Star: _star,
    exp.Literal: _literal,
    exp.Anonymous: _anonymous,
    exp.Var: _var,
    exp.Extract: _extract,
    exp.DataType: _data_type,
    exp.DataTypeParam: _data_type_param,
    exp.Window: _window,
    exp.Limit: _limit,
    exp.Offset: _limit,
    exp.Distinct: _distinct,
    exp.GroupConcat: _group_concat,
    exp.ArrayAgg: _array_agg,
    exp.Explode: _explode,
    exp.Pivot: _pivot,
    exp.Dot: _dot,
    exp.Join: _join,
    exp.Exists: _subquery_only,
    exp.Any: _subquery_only,
    exp.All: _subquery_only,
    exp.In: _in,
    exp.Alias: _alias,
    exp.Table: _table,
    exp.Subquery: _subquery,
}
