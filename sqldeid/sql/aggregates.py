"""A job's own features: one SQL aggregate over named columns, checked against the same allow-list as other user SQL."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sqldeid.errors import JobError
from sqldeid.sql.guard import _one, bind
from sqldeid.sql.rules import Refused, check


def parse_aggregate(text: str, columns: Sequence[str], *, order: str, key: str) -> exp.Expr:
    """Parse `text` as one aggregate over `columns`, such as ``max(value) - min(value)``.

    Parameters
    ----------
    text
        SQL in DuckDB's dialect; every column stands inside an aggregate function.
    columns
        The columns that it may name.
    order
        The column by which sums are taken, so that they repeat bit by bit.
    key
        The job-file key, for the message.

    Returns
    -------
    exp.Expr
        The checked tree with all names quoted; ready to be run.

    Raises
    ------
    JobError
        If the text does not parse, is not an aggregate, or holds anything that is not on the allow-list.
    """
    try:
        tree = _one(text, ())
        check(tree, text)
        _check_aggregate(tree, columns)
    except Refused as refused:
        raise JobError.at(key, str(refused)) from None
    ordered = bind(_ordered(tree, order), lambda parts: _no_table(key))
    return ordered if isinstance(ordered, exp.Paren) else exp.Paren(this=ordered)


def _check_aggregate(tree: exp.Expr, columns: Sequence[str]) -> None:
    offered = " and ".join(columns)
    for node in tree.walk():
        if isinstance(node, exp.Query | exp.Window | exp.GroupConcat | exp.ArrayAgg | exp.Explode):
            raise Refused(f"an aggregate over {offered} is wanted here, without windows, subqueries or text")
        if isinstance(node, exp.AggFunc) and node.find_ancestor(exp.AggFunc):
            raise Refused("an aggregate inside an aggregate is refused; simplify it")
        if isinstance(node, exp.Column):
            if node.table or node.name.lower() not in columns:
                raise Refused(f"names a column that is not there; it has {offered}")
            if node.find_ancestor(exp.AggFunc, exp.Filter) is None:
                raise Refused("is not an aggregate: a column stands outside an aggregate function such as avg or max")
    if tree.find(exp.AggFunc) is None:
        raise Refused(f"is not an aggregate; write one over {offered}, such as max(value) - min(value)")


_SUMS = (exp.Sum, exp.Avg, exp.Stddev, exp.StddevSamp, exp.StddevPop, exp.Variance, exp.VariancePop)


def _ordered(tree: exp.Expr, order: str) -> exp.Expr:
    """Sums of floats depend on their order; ours is stated."""
    found = tree.copy()
    for node in list(found.find_all(*_SUMS)):
        if not isinstance(node.this, exp.Order | exp.Distinct):
            by = exp.Ordered(this=exp.Column(this=exp.to_identifier(order)), nulls_first=False)
            node.set("this", exp.Order(this=node.this, expressions=[by]))
    return found


def _no_table(key: str) -> exp.Table:
    raise JobError.at(key, "a feature reads no table")
