"""Transpile one statement for another engine: sqlglot, and the few rewrites that it does not do by itself.

Source: engines.md, *SQL that survives three engines*. Parsing is not proof: every template also runs on the engines.
"""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel


def transpile(sql: str, dialect: str) -> str:
    """Rewrite one statement of DuckDB's dialect for another engine.

    Parameters
    ----------
    sql
        One statement in the portable style that `sqldeid.sql.lint` holds.
    dialect
        ``duckdb`` (the text stays as it is), ``postgres`` or ``spark``.

    Raises
    ------
    sqlglot.errors.SqlglotError
        If sqlglot cannot read the statement, or says that the engine has no such thing: a bug of the template.
    """
    if dialect == "duckdb":
        return sql
    return _rewritten(sqlglot.parse_one(sql, read="duckdb"), dialect)


def write(tree: exp.Expr, dialect: str) -> str:
    """The text of an expression of DuckDB's dialect for an engine.

    Raises
    ------
    sqlglot.errors.UnsupportedError
        If sqlglot says that the engine has no such thing.
    """
    if dialect == "duckdb":
        return _plain(tree) or tree.sql(dialect=dialect)
    return (_plain(tree) if dialect == "postgres" else None) or _rewritten(tree.copy(), dialect)


def _rewritten(tree: exp.Expr, dialect: str) -> str:
    """The text of a tree that nobody else holds: it is changed in its place, not copied for each rewrite."""
    for rewrite in _REWRITES[dialect]:
        tree = tree.transform(rewrite, copy=False)
    if tree.find(exp.With) is not None:  # sqlglot moves it to a root for Spark: before a subquery's parenthesis
        exp.Tuple(expressions=[tree])
    return tree.sql(dialect=dialect, unsupported_level=ErrorLevel.RAISE, copy=False)


_UNESCAPED = re.compile(r"""[^"'\\\x00-\x1f\x7f]*""")
"""Texts that stand between quotes as they are."""

_PARTS = frozenset({"catalog", "db", "table", "this"})


def _plain(tree: exp.Expr | None) -> str | None:
    """A quoted name, a column, a table or a literal as sqlglot writes them for DuckDB and Postgres; None for others.

    Hundreds of them are written for a release, and to make sqlglot's generator takes ten times as long as to write one.
    """
    if tree is None or tree.comments:
        return None
    kind, given = type(tree), {name: part for name, part in tree.args.items() if part}
    if kind is exp.Identifier or kind is exp.Literal:
        text = given.get("this", "")
        mark = '"' if kind is exp.Identifier else "'" if given.get("is_string") else ""
        bare = kind is exp.Identifier and not given.get("quoted")
        return f"{mark}{text}{mark}" if not bare and _UNESCAPED.fullmatch(text) else None
    if (kind is exp.Table or kind is exp.Column) and given.keys() <= _PARTS:
        parts = [_plain(given[part]) for part in ("catalog", "db", "table", "this") if part in given]
        named = all(type(part) is exp.Identifier for part in given.values())
        return ".".join(filter(None, parts)) if named and all(parts) else None
    return None


def _series_as_lateral(node: exp.Expr) -> exp.Expr:
    """``UNNEST(GENERATE_SERIES(a, b)) AS g(h)`` as ``[LATERAL] GENERATE_SERIES(a, b) AS g(h)``.

    Postgres' GENERATE_SERIES gives rows, not a list, and UNNEST does not take rows.
    """
    if not (isinstance(node, exp.Unnest) and isinstance(node.expressions[0], exp.GenerateSeries)):
        return node
    kind = exp.Lateral if isinstance(node.parent, exp.Join) else exp.Table
    return kind(this=node.expressions[0], alias=node.args.get("alias"))


def _quantile_within_group(node: exp.Expr) -> exp.Expr:
    """``QUANTILE_CONT(x, q)`` as ``PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x)``, and the same for DISC.

    sqlglot writes ``PERCENTILE_CONT(x, q)``, which Spark does not have, and turns WITHIN GROUP of its own
    PERCENTILE_CONT into an approximation; so the function goes under its bare name.
    """
    if not (isinstance(node, exp.PercentileCont | exp.PercentileDisc) and node.expression):
        return node
    order = exp.Order(expressions=[exp.Ordered(this=node.this, nulls_first=True)])
    name = "PERCENTILE_CONT" if isinstance(node, exp.PercentileCont) else "PERCENTILE_DISC"
    return exp.WithinGroup(this=exp.Anonymous(this=name, expressions=[node.expression]), expression=order)


def _iso_weekday(node: exp.Expr) -> exp.Expr:
    """``EXTRACT(ISODOW FROM x)`` as ``EXTRACT(DAYOFWEEK_ISO FROM x)``: Spark has the day, but not its short name."""
    if isinstance(node, exp.Extract) and node.name.upper() == "ISODOW":
        return exp.Extract(this=exp.var("DAYOFWEEK_ISO"), expression=node.expression)
    return node


def _microseconds_of_epoch(node: exp.Expr) -> exp.Expr:
    """``EPOCH_US(t)`` by Postgres' EXTRACT, whose seconds are exact decimals; NULL of an infinite t, as in DuckDB."""
    if not (isinstance(node, exp.Anonymous) and node.name.upper() == "EPOCH_US"):
        return node
    moment = node.expressions[0].transform(_microseconds_of_epoch)
    seconds = exp.Extract(this=exp.Var(this="EPOCH"), expression=moment)
    number = exp.cast(exp.Mul(this=seconds, expression=exp.Literal.number(1_000_000)), "BIGINT")
    finite = exp.Anonymous(this="ISFINITE", expressions=[moment.copy()])
    return exp.Case(ifs=[exp.If(this=finite, true=number)])


def _microseconds_by_zone(node: exp.Expr) -> exp.Expr:
    """``EPOCH_US(t)`` by Spark's function of moments with a zone: the session's is UTC."""
    if not (isinstance(node, exp.Anonymous) and node.name.upper() == "EPOCH_US"):
        return node
    zoned = exp.cast(node.expressions[0].transform(_microseconds_by_zone), exp.DataType.build("TIMESTAMPLTZ"))
    return exp.Anonymous(this="UNIX_MICROS", expressions=[zoned])


_SHORT = {"DAYOFWEEK": "DOW", "DAYOFYEAR": "DOY"}


def _parts_by_short_names(node: exp.Expr) -> exp.Expr:
    """``EXTRACT(DAYOFYEAR FROM x)``, as sqlglot writes DOY for DuckDB, by the name that every engine knows."""
    if isinstance(node, exp.Extract) and node.name.upper() in _SHORT:
        inner = node.expression.transform(_parts_by_short_names)
        return exp.Extract(this=exp.var(_SHORT[node.name.upper()]), expression=inner)
    return node


_WHOLE = frozenset("YEAR ISOYEAR QUARTER MONTH WEEK DAY DOW ISODOW DOY HOUR MINUTE DECADE CENTURY".split())
"""Parts of a date or time that are whole numbers everywhere."""


def _parts_as_integers(node: exp.Expr) -> exp.Expr:
    """``EXTRACT(YEAR FROM t)`` and the like as BIGINT, as in DuckDB: Postgres gives decimals of no stated scale."""
    if isinstance(node, exp.Year | exp.Month | exp.Day):
        return _parts_as_integers(exp.Extract(this=exp.Var(this=type(node).__name__.upper()), expression=node.this))
    if not isinstance(node, exp.Extract) or node.name.upper() not in _WHOLE | {"SECOND"}:
        return node
    made = node.copy()
    made.set("expression", made.expression.transform(_parts_as_integers))
    return exp.cast(made if node.name.upper() in _WHOLE else exp.Floor(this=made), "BIGINT")


def _mean_as_double(node: exp.Expr) -> exp.Expr:
    """``AVG(x)`` as DOUBLE, as in DuckDB: of whole numbers Postgres gives decimals of no stated scale."""
    inner = node
    while isinstance(inner, exp.Filter | exp.Window):
        inner = inner.this
    whole = isinstance(inner, exp.Avg) and not isinstance(node.parent, exp.Filter | exp.Window)
    return exp.cast(node.copy(), "DOUBLE") if whole else node


def _quotient_of_doubles(node: exp.Expr) -> exp.Expr:
    """``a / b`` as DOUBLE, as in DuckDB: of decimals Spark gives decimals."""
    if not isinstance(node, exp.Div) or (isinstance(node.this, exp.Cast) and node.this.to.is_type("double")):
        return node
    made = node.copy()
    made.set("this", exp.cast(made.this.transform(_quotient_of_doubles), "DOUBLE"))
    return made


def _mean_of_doubles(node: exp.Expr) -> exp.Expr:
    """``AVG(x)`` of doubles, as in DuckDB: of decimals Spark gives decimals, cut after four digits more."""
    if not isinstance(node, exp.Avg):
        return node
    made = node.copy()
    inner = made.this.expressions[0] if isinstance(made.this, exp.Distinct) else made.this
    inner.replace(exp.cast(inner.copy(), "DOUBLE"))
    return made


def _days_between_dates(node: exp.Expr) -> exp.Expr:
    """``DATE_DIFF('day', a, b)`` by dates: Spark counts whole days between times, DuckDB midnights."""
    if not isinstance(node, exp.DateDiff) or str(node.args.get("unit") or "").upper() != "DAY":
        return node
    made = node.copy()
    for part in ("this", "expression"):
        made.set(part, exp.cast(made.args[part].transform(_days_between_dates), "DATE"))
    return made


_REWRITES = {
    "postgres": (
        *(_series_as_lateral, _microseconds_of_epoch, _parts_by_short_names),
        *(_parts_as_integers, _mean_as_double),
    ),
    "spark": (
        _parts_by_short_names,
        *(_quantile_within_group, _days_between_dates, _quotient_of_doubles, _mean_of_doubles),
        _microseconds_by_zone,
        *(_parts_as_integers, _iso_weekday),  # in this order: the weekday loses its name that is known everywhere
    ),
}
