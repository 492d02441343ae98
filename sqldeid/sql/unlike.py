"""Refuse, by name, what other engines read differently from DuckDB in a job's SQL, or not at all.

Source: engines.md, *SQL that survives three engines*: many such statements return wrong rows in silence.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sqldeid.errors import JobError

_PATTERN = "patterns are read otherwise there; write LIKE, SUBSTR or STARTS_WITH"
_FORMAT = "formats of dates are others there; write EXTRACT, CAST or DATE_TRUNC"


def _not_days(node: exp.Expr) -> bool:
    return str(node.args.get("unit") or "").upper().rstrip("S") != "DAY"


def _negative(node: exp.Expr) -> bool:
    return any(isinstance(part, exp.Neg) for part in (node.args.get("start"), node.args.get("length")))


def _date_part(node: exp.Expr) -> bool:
    return node.name.upper() in ("DATE_PART", "DATEPART")


def _far(node: exp.Expr) -> bool:
    name = node.name.upper()
    return _date_part(node) or name.startswith(("LIST_", "ARRAY_")) or name in ("ELEMENT_AT", "CARDINALITY")


def _always(node: exp.Expr) -> bool:
    return True


_UNLIKE: dict[type[exp.Expr], tuple[str, str, Callable[[exp.Expr], bool]]] = {
    exp.TryCast: ("TRY_CAST", "a cast fails or does not; choose the rows with CASE first", _always),
    exp.Round: ("ROUND", "halves of floats go another way; write FLOOR(x + 0.5)", _always),
    exp.DateDiff: ("DATE_DIFF", "it counts in days alone there; write DATE_DIFF('day', a, b), or EXTRACT", _not_days),
    exp.Substring: ("SUBSTRING", "a negative place means another one there; write RIGHT", _negative),
    exp.Anonymous: ("this function", "it gives a float there, or is none; write EXTRACT(… FROM …), or columns", _far),
    exp.RegexpLike: ("REGEXP_MATCHES", _PATTERN, _always),
    exp.RegexpFullMatch: ("REGEXP_FULL_MATCH", _PATTERN, _always),
    exp.RegexpExtract: ("REGEXP_EXTRACT", _PATTERN, _always),
    exp.RegexpReplace: ("REGEXP_REPLACE", _PATTERN, _always),
    exp.SimilarTo: ("SIMILAR TO", _PATTERN, _always),
    exp.Glob: ("GLOB", _PATTERN, _always),
    exp.StrToTime: ("STRPTIME", _FORMAT, _always),
    exp.TimeToStr: ("STRFTIME", _FORMAT, _always),
    exp.Pivot: (
        "PIVOT or UNPIVOT",
        "its columns are named otherwise there; write CASE and GROUP BY, or UNION ALL",
        _always,
    ),
    exp.Bracket: ("an index in brackets", "it counts otherwise there; write SPLIT_PART, SUBSTR or a column", _always),
    exp.Split: ("STRING_SPLIT", "lists are others there; write SPLIT_PART", _always),
    exp.Window: ("a named window", "write it out in OVER ( … )", lambda node: bool(node.args.get("alias"))),
    **dict.fromkeys(
        (
            *(exp.Array, exp.Struct, exp.Map, exp.ToMap, exp.MapKeys, exp.Dot, exp.Slice, exp.StructExtract),
            *(exp.ArrayAgg, exp.ArrayContains, exp.ArrayToString, exp.ArraySize, exp.ArrayDistinct, exp.ArraySort),
            *(exp.ArrayMax, exp.ArrayMin, exp.Explode),
        ),
        ("a list, struct or map", "they are others there; write columns", _always),
    ),
}
"""Node type → its name, what to do instead, and when."""


_TRIED = "it was not tried there"
_WHOLE_NUMBERS = frozenset("TINYINT SMALLINT INT BIGINT INT128 UTINYINT USMALLINT UINT UBIGINT".split())
_PARTS = frozenset("YEAR QUARTER MONTH WEEK DAY ISODOW DOY HOUR MINUTE SECOND".split())
_BITS = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseLeftShift, exp.BitwiseRightShift)
_ROUNDED = (exp.Floor, exp.Ceil, exp.Extract, exp.Year, exp.Month, exp.Day, exp.Count, exp.DateDiff, exp.Length, exp.If)


def _rounds(node: exp.Expr) -> bool:
    """Whether a cast could have to round (Spark cuts), or makes what Spark has not."""
    kind = node.args["to"].this.name if isinstance(node.args["to"].this, exp.DType) else ""
    inner = node.this.unnest()
    return kind in ("TIME", "UUID", "INTERVAL") or (kind in _WHOLE_NUMBERS and not isinstance(inner, _ROUNDED))


def _not_of_quotient(node: exp.Expr) -> bool:
    """Whether FLOOR or CEIL may be of other than floats: Spark gives a whole number for each, DuckDB what it was."""
    return node.find(exp.Div) is None or isinstance(node.parent, exp.Cast) is False


def _in_bits(node: exp.Expr) -> bool:
    return isinstance(node.parent, _BITS)


def _escaping(node: exp.Expr) -> bool:
    pattern = node.expression.this if isinstance(node.expression, exp.Escape) else node.expression
    return not pattern.is_string or "\\" in pattern.name


def _uncast(node: exp.Expr) -> bool:
    return not isinstance(node.parent, exp.Cast)


def _weekday(node: exp.Expr) -> bool:
    return node.name.upper() not in _PARTS


def _from_the_end(node: exp.Expr) -> bool:
    return not (isinstance(node.expression, exp.Literal) and node.expression.is_int)


def _from_before(node: exp.Expr) -> bool:
    start = node.args.get("start")
    return not (isinstance(start, exp.Literal) and start.is_int and int(start.name) > 0)


_CUTS = "Spark cuts where DuckDB rounds; cast FLOOR(x / 1 + 0.5)"
_SPARK: dict[type[exp.Expr], tuple[str, str, Callable[[exp.Expr], bool]]] = {
    exp.Cast: ("a cast to whole numbers or times", _CUTS, _rounds),
    exp.IntDiv: ("//", "of decimals it is another; write FLOOR(a / b)", _always),
    exp.Trunc: ("TRUNC", "its type is another; write CAST(FLOOR(a / b) AS BIGINT)", _always),
    exp.Floor: ("FLOOR", "its type is another; write CAST(FLOOR(a / b) AS BIGINT)", _not_of_quotient),
    exp.Ceil: ("CEIL", "its type is another; write CAST(CEIL(a / b) AS BIGINT)", _not_of_quotient),
    exp.Qualify: ("QUALIFY", "it adds a column there; filter in an outer query", _always),
    exp.Substring: ("SUBSTRING", "a place below 1 means another one there; write a whole number", _from_before),
    exp.Like: ("LIKE", "a backslash escapes there; write a literal pattern without any", _escaping),
    exp.ILike: ("ILIKE", "a backslash escapes there; write a literal pattern without any", _escaping),
    exp.Extract: ("EXTRACT", "this part is another number there; write ISODOW, or another part", _weekday),
    exp.TimestampTrunc: ("DATE_TRUNC", "its type is another; cast it to DATE or TIMESTAMP", _uncast),
    exp.DateTrunc: ("DATE_TRUNC", "its type is another; cast it to DATE or TIMESTAMP", _uncast),
    exp.Left: ("LEFT", "a negative length means another there; write a whole number", _from_the_end),
    exp.Right: ("RIGHT", "a negative length means another there; write a whole number", _from_the_end),
    exp.Star: ("EXCLUDE and REPLACE", "name the columns", lambda node: any(node.args.values())),
    exp.Anonymous: ("a function", _TRIED, _always),
    **dict.fromkeys(_BITS, ("bits within bits", "their order is another; put parentheses", _in_bits)),
    **{
        kind: (name, instead, _always)
        for name, instead, kinds in (
            ("a median or quantile", "of decimals it is another", (exp.Median, exp.PercentileCont, exp.PercentileDisc)),
            ("the day of the week", "write EXTRACT(ISODOW FROM x)", (exp.DayOfWeek, exp.DayOfWeekIso)),
            ("the name of a day or month", "write EXTRACT", (exp.Dayname, exp.Monthname)),
            ("this function", "its last bits are others", (exp.Log, exp.Ln, exp.Exp, exp.Pow)),
            ("SIGN", "its type is another; write CASE", (exp.Sign,)),
            ("EPOCH", "fractions are lost; write DATE_DIFF('day', a, b)", (exp.TimeToUnix,)),
            ("adding an interval", "to a date it gives another type", (exp.Interval, exp.DateAdd, exp.ToDays)),
            ("this function", _TRIED, (exp.SplitPart, exp.Translate, exp.Trim, exp.Pad, exp.Week, exp.WeekOfYear)),
            ("this function", _TRIED, (exp.GroupConcat, exp.ConcatWs, exp.StrPosition, exp.NthValue, exp.LastDay)),
        )
        for kind in kinds
    },
}
"""The same for Spark alone: each was tried, or is refused because it was not."""


_DECIMAL = "of whole numbers it gives decimals of no stated scale there"
_POSTGRES_PARTS = _PARTS | {"DOW", "ISOYEAR", "DECADE", "CENTURY"}


def _decimal_part(node: exp.Expr) -> bool:
    return node.name.upper() not in _POSTGRES_PARTS


def _of_doubles(node: exp.Expr) -> bool:
    return isinstance(node.this, exp.Cast) and node.this.to.is_type("double")


_POSTGRES: dict[type[exp.Expr], tuple[str, str, Callable[[exp.Expr], bool]]] = {
    exp.IntDiv: ("//", f"{_DECIMAL}; write FLOOR(a / b)", _always),
    exp.Sign: ("SIGN", "its type is another; write CASE", _always),
    exp.Extract: ("EXTRACT", "this part is a decimal there; write another part", _decimal_part),
    exp.TimestampTrunc: ("DATE_TRUNC", "its type is another; cast it to DATE or TIMESTAMP", _uncast),
    exp.DateTrunc: ("DATE_TRUNC", "its type is another; cast it to DATE or TIMESTAMP", _uncast),
    **dict.fromkeys(
        (exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop),
        ("this function", f"{_DECIMAL}; give it CAST(x AS DOUBLE)", lambda node: not _of_doubles(node)),
    ),
    **{
        kind: (name, f"there is none there; write {instead}", _always)
        for kind, name, instead in (
            *((kind, kind.__name__.upper(), "EXTRACT") for kind in (exp.Quarter, exp.Hour, exp.Minute, exp.Second)),
            *((kind, "a part of a date", "EXTRACT") for kind in (exp.Week, exp.WeekOfYear, exp.DayOfMonth)),
            *((kind, "a part of a date", "EXTRACT") for kind in (exp.DayOfWeek, exp.DayOfWeekIso, exp.DayOfYear)),
            *((kind, "the name of a day or month", "EXTRACT") for kind in (exp.Dayname, exp.Monthname)),
            (exp.Contains, "CONTAINS", "STRPOS(text, part) > 0"),
            (exp.DateFromParts, "MAKE_DATE", "CAST(text AS DATE)"),
            (exp.ToDays, "TO_DAYS", "an INTERVAL"),
        )
    },
}
"""The same for Postgres alone: types that would be others, and functions that it does not have."""


def refuse_unlike(tree: exp.Expr, engine: str, *, key: str) -> None:
    """Refuse what an engine other than DuckDB reads otherwise.

    Parameters
    ----------
    tree
        A relation with a job's SQL in it.
    engine
        Its name in messages.

    Raises
    ------
    JobError
        Naming the first such part.
    """
    unlike = _UNLIKE | (_SPARK if engine == "Spark" else _POSTGRES)
    for node in tree.walk():
        name, instead, when = unlike.get(type(node), ("", "", None))
        if when is not None and when(node):
            raise JobError.at(key, f"{name} is not the same on {engine} as in DuckDB: {instead}")
