"""Stacks resolved against the catalogue: what a child table gives to one row per person. Nothing is read.

Source: Mazzone 2019, §4.2 (joining tables of individuals, of what they have, and of what that has) and §3.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sqlglot import exp

from sqldeid import job as jobfile
from sqldeid.catalogue.columns import Find, finder, with_one_zero
from sqldeid.catalogue.relations import filtered, resolve_expression
from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError
from sqldeid.sql import column, identifier, literal, parse_table
from sqldeid.sql.guard import outward, parse_expression

_FAMILY = {"integer": "number", "float": "number", "number": "number"}


@dataclass(frozen=True, slots=True)
class Through:
    """The table between: what is read of each of its rows, which statements call `t`.

    Parameters
    ----------
    relation
        Its rows, after its own filter.
    joins
        Its keys to the child table.
    extra
        Its columns by which the child's rows are ordered.
    order
        What one row of each person is picked by, first to last; empty where all count.
    """

    relation: exp.Expr
    label: str
    joins: tuple[str, ...]
    extra: tuple[str, ...]
    order: tuple[exp.Expr, ...]


@dataclass(frozen=True, slots=True)
class StackPlan:
    """One stack: rows of a child table, which statements call `c`, as columns of their person's row.

    Parameters
    ----------
    name, key
        The stack, and its place in the job file (``tables.patients.stack.proc``).
    relation
        The child's rows, after its own filter.
    on
        Pairs of keys: the source's column, and that of `through`, or of the child where there is none.
    joins
        The child's keys to `through`, in its order.
    order
        (whose, column) that order the rows of a person, ties broken; whose is "c" or "t".
    columns
        What the stack makes.
    """

    name: str
    key: str
    part: jobfile.Stack
    relation: exp.Expr
    label: str
    on: tuple[tuple[str, str], ...]
    through: Through | None
    joins: tuple[str, ...]
    value: Column | None
    order: tuple[tuple[str, str], ...]
    columns: tuple[Column, ...]

    @property
    def stacked_value(self) -> exp.Expr:
        """The value of a child's row; both zeros of a float are one value."""
        if self.value is None:
            return literal(None)
        return with_one_zero(column(self.value.name, "c"), self.value)

    @property
    def places(self) -> list[int]:
        """The rows that are taken, 1 being the first; of an ordered aggregate the first from its end."""
        return self.part.places or [1]

    @property
    def ordered(self) -> bool:
        """Whether single rows are taken by their order."""
        return self.part.order is not None

    @property
    def telling(self) -> list[tuple[int, int]]:
        """Neighbouring places whose rows may not be equal in order: their change of places would show."""
        taken = set(self.places)
        among = pairwise(range(1, max(taken) + 2))
        if self.part.unordered:
            return [(a, b) for a, b in among if (a in taken) != (b in taken)]
        return [(a, b) for a, b in among if a in taken or b in taken]

    @property
    def text(self) -> str:
        """The stack in words, for a plan."""
        part = self.part
        value = part.value or "rows"
        if part.aggregate is not None:
            taken = f"{part.aggregate} of {value}"
        elif part.first is not None:
            taken = f"first {part.first} {value}"
        else:
            taken = f"{value} number {', '.join(map(str, self.places))}"
        taken += " as a set" if part.unordered else ""
        by = f" by {', '.join([*(part.order or ()), *(part.then or ())])}" if part.order else ""
        dropped = "; persons without are dropped" if part.empty == "drop" else ""
        return f"{taken} of {self.label}{by}{self._between()}{dropped}"

    def _between(self) -> str:
        if self.through is None:
            return ""
        pick = f" ({self.part.pick} by {self.part.pick_order})" if self.part.pick else ""
        return f", through {self.through.label}{pick}"


@dataclass(frozen=True, slots=True)
class Stacked:
    """All stacks of a release, and the filter, which may speak of their columns.

    Parameters
    ----------
    alias
        The name under which the filter knows the source.
    """

    stacks: tuple[StackPlan, ...]
    alias: exp.Identifier
    condition: exp.Expr | None

    @property
    def columns(self) -> tuple[Column, ...]:
        """What the stacks make."""
        return tuple(c for s in self.stacks for c in s.columns)


def plan_stacks(
    part: jobfile.Table, base: exp.Expr, there: Sequence[Column], label: str, engine: Engine, key: str
) -> Stacked | None:
    """Resolve the stacks of a release; None where it has none.

    Parameters
    ----------
    base, there, label
        The source before its filter, its columns, and its name in messages.

    Raises
    ------
    JobError
        If a table or column is not there or not fit, or a name is taken.
    """
    if not part.stack:
        return None
    stacks = tuple(_stack(n, s, finder(there, label), engine, f"{key}.stack.{n}") for n, s in part.stack.items())
    taken = {c.name.casefold() for c in there}
    for stack in stacks:
        if clash := [c.name for c in stack.columns if c.name.casefold() in taken]:
            raise JobError.at(stack.key, f'{label} has a column "{clash[0]}" already; give the stack another name')
    stacked = Stacked(stacks, identifier(base.name or "source"), None)
    if part.where is None:
        return stacked
    condition = resolve_expression(part.where, engine, f"{key}.where")
    bound = exp.Subquery(this=_typed(base, stacks), alias=exp.TableAlias(this=stacked.alias))
    engine.columns(exp.Subquery(this=exp.select("*").from_(bound).where(condition)), key=f"{key}.where")
    return replace(stacked, condition=condition)


def stacked_keys(stacked: Stacked | None, person: str) -> frozenset[str]:
    """Columns that hold the person key, which a child table has by its own name or by that of the join."""
    found: set[str] = set()
    for stack in stacked.stacks if stacked is not None else ():
        known = {person.casefold(), *(b.casefold() for a, b in stack.on if a == person)}
        if stack.value is not None and stack.value.name.casefold() in known and stack.part.aggregate != "count":
            found |= {c.name for c in stack.columns}
    return frozenset(found)


def outward_stacks(part: jobfile.Table) -> list[str]:
    """What in stacks looks across persons (soundness.md 4): subqueries in filters, and keys that persons may share."""
    found: list[str] = []
    for name, stack in part.stack.items():
        for condition in (stack.where, stack.through_where):
            found += outward(parse_expression(condition, key=name)) if condition is not None else []
        if part.person is None or part.person.casefold() not in {k.casefold() for k in stack.on}:
            found.append(f"stack {name}, whose key is not the person's")
    return found


def _stack(name: str, part: jobfile.Stack, source: Find, engine: Engine, key: str) -> StackPlan:
    relation, child = _relation(part.from_table, part.where, engine, key, "from", "where")
    value = child(part.value, f"{key}.value") if part.value is not None else None
    order = (*(part.order or ()), *(part.then or ()))
    through, owner = None, child
    if part.through is not None:
        through, owner = _through(part, engine, key)
    on = _pairs(part.on, part.on_as, source, owner, f"{key}.on")
    joins = _pairs(part.through_on or (), part.through_on_as, owner, child, f"{key}.through_on")
    ordering = tuple(_order_column(o, child, owner if through else None, f"{key}.order") for o in order)
    if through is not None:
        through = replace(through, extra=tuple(dict.fromkeys(n for whose, n in ordering if whose == "t")))
    return StackPlan(
        name=name,
        key=key,
        part=part,
        relation=relation,
        label=part.from_table,
        on=tuple((s.name, o.name) for s, o in on),
        through=through,
        joins=tuple(c.name for _, c in joins),
        value=value,
        order=ordering,
        columns=tuple(_made(n, part, value, key) for n in part.names(name)),
    )


def _pairs(
    names: Sequence[str], others: Sequence[str] | None, left: Find, right: Find, key: str
) -> tuple[tuple[Column, Column], ...]:
    """The columns of a join's keys, which have other names on its right side where `others` says so."""
    named = key if others is None else f"{key}_as"
    pairs = tuple((left(a, key), right(b, named)) for a, b in zip(names, others or names, strict=True))
    _refuse_unlike(pairs, key)
    return pairs


def _through(part: jobfile.Stack, engine: Engine, key: str) -> tuple[Through, Find]:
    relation, find = _relation(part.through or "", part.through_where, engine, key, "through", "through_where")
    joins = tuple(find(k, f"{key}.through_on").name for k in part.through_on or ())
    order: tuple[exp.Expr, ...] = ()
    if part.pick is not None and part.pick_order is not None:
        begin = find(part.pick_order, f"{key}.pick_order")
        end = find(part.pick_until, f"{key}.pick_until") if part.pick_until is not None else None
        broken = [column(find(k, f"{key}.pick_then").name, "t") for k in part.pick_then or ()]
        order = (_length(begin, end, key) if part.pick == "longest" else column(begin.name, "t"), *broken)
    return Through(relation, part.through or "", joins, (), order), find


def _length(begin: Column, end: Column | None, key: str) -> exp.Expr:
    """A length, negative, so that the longest is the first: a column, or from one to another (then in microseconds)."""
    kinds = {_FAMILY.get(c.kind, c.kind) for c in (begin, end or begin)}
    if end is None and kinds == {"number"}:
        return exp.Neg(this=column(begin.name, "t"))
    if end is not None and kinds == {"number"}:
        return exp.Paren(this=exp.Sub(this=column(begin.name, "t"), expression=column(end.name, "t")))
    if end is not None and kinds <= {"date", "timestamp"}:
        moment = exp.DataType.build("timestamp", dialect="duckdb")
        first, last = (exp.cast(column(c.name, "t"), moment) for c in (begin, end))
        return exp.DateDiff(this=first, expression=last, unit=exp.var("MICROSECOND"))
    types = " and ".join(c.shown_type for c in (begin, end) if c is not None)
    raise JobError.at(
        f"{key}.pick_until",
        f"the longest is asked for by columns of type {types}; give a number as pick_order, or two "
        "dates, timestamps or numbers as pick_order and pick_until",
    )


def _relation(
    table: str, where: str | None, engine: Engine, key: str, table_key: str, where_key: str
) -> tuple[exp.Expr, Find]:
    """A table after its own filter, and how its columns are found."""
    relation: exp.Expr = engine.resolve(parse_table(table, key=f"{key}.{table_key}"), key=f"{key}.{table_key}")
    there = engine.columns(relation, key=f"{key}.{table_key}")
    if where is not None:
        relation = filtered(relation, where, engine, f"{key}.{where_key}")
    return relation, finder(there, table)


def _order_column(name: str, child: Find, through: Find | None, key: str) -> tuple[str, str]:
    """A column of the child, else of the table between."""
    try:
        whose, found = "c", child(name, key)
    except JobError:
        if through is None:
            raise
        whose, found = "t", through(name, key)
    if found.kind == "other":
        raise JobError.at(key, f"{found.name} is of type {found.shown_type}, which has no order")
    return whose, found.name


def _refuse_unlike(pairs: Iterable[tuple[Column, Column]], key: str) -> None:
    """Numbers and texts are equal in ways that nobody expects."""
    for a, b in pairs:
        families = {_FAMILY.get(c.kind, c.kind) for c in (a, b)}
        if "other" in families or len(families) > 1:
            raise JobError.at(
                key,
                f"{a.name} is of type {a.shown_type} on one side and {b.shown_type} on the other; they cannot "
                "be joined: cast one of them in a view",
            )


def _made(name: str, part: jobfile.Stack, value: Column | None, key: str) -> Column:
    """A column that a stack makes."""
    if part.aggregate == "count" or value is None:
        return Column(name, "BIGINT", "integer")
    if value.kind == "other":
        raise JobError.at(
            f"{key}.value", f"a column of type {value.shown_type} cannot be stacked; cast it to text in a view"
        )
    if part.aggregate != "mean":
        return replace(value, name=name)
    if _FAMILY.get(value.kind) != "number":
        raise JobError.at(
            f"{key}.value", f"{value.name} is of type {value.shown_type}, which has no mean; take another aggregate"
        )
    return Column(name, "DOUBLE", "float")


def _typed(base: exp.Expr, stacks: Sequence[StackPlan]) -> exp.Select:
    """The source with the columns of its stacks, to be bound and never run."""
    made: list[exp.Expr] = []
    for stack in stacks:
        like: exp.Expr = exp.cast(exp.Null(), exp.DataType.build(stack.columns[0].type, dialect="duckdb"))
        if stack.value is not None and stack.columns[0].type == stack.value.type:
            child = stack.relation.copy()
            child.set("alias", exp.TableAlias(this=identifier("c")))
            like = exp.Subquery(this=exp.select(exp.Max(this=column(stack.value.name, "c"))).from_(child))
        made += [exp.alias_(like.copy(), identifier(c.name)) for c in stack.columns]
    source = base.copy()
    source.set("alias", exp.TableAlias(this=identifier("s")))
    return exp.select(exp.Column(this=exp.Star(), table=identifier("s")), *made).from_(source)
