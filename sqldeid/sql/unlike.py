"""What of a job's SQL other engines read otherwise than DuckDB, or not at all: refused by name, never run as it is.

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


def _always(node: exp.Expr) -> bool:
    return True


_UNLIKE: dict[type[exp.Expr], tuple[str, str, Callable[[exp.Expr], bool]]] = {
    exp.TryCast: ("TRY_CAST", "a cast fails or does not; choose the rows with CASE first", _always),
    exp.Round: ("ROUND", "halves of floats go another way; write FLOOR(x + 0.5)", _always),
    exp.DateDiff: ("DATE_DIFF", "it counts in days alone there; write DATE_DIFF('day', a, b), or EXTRACT", _not_days),
    exp.Substring: ("SUBSTRING", "a negative place means another one there; write RIGHT", _negative),
    exp.Anonymous: ("DATE_PART", "it gives a float there; write EXTRACT(… FROM …)", _date_part),
    exp.RegexpLike: ("REGEXP_MATCHES", _PATTERN, _always),
    exp.RegexpFullMatch: ("REGEXP_FULL_MATCH", _PATTERN, _always),
    exp.RegexpExtract: ("REGEXP_EXTRACT", _PATTERN, _always),
    exp.RegexpReplace: ("REGEXP_REPLACE", _PATTERN, _always),
    exp.SimilarTo: ("SIMILAR TO", _PATTERN, _always),
    exp.Glob: ("GLOB", _PATTERN, _always),
    exp.StrToTime: ("STRPTIME", _FORMAT, _always),
    exp.TimeToStr: ("STRFTIME", _FORMAT, _always),
}
"""Node type → its name, what to do instead, and when."""


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
    for node in tree.walk():
        name, instead, when = _UNLIKE.get(type(node), ("", "", None))
        if when is not None and when(node):
            raise JobError(f"{key}: {name} is not the same on {engine} as in DuckDB: {instead}", key=key)
