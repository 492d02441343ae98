"""Stacks computed: a statement for each, then one that puts them beside the rows of the source.

The least rows of each person are held, never the whole child table, so that memory grows with persons alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.sql import column, identifier, render, table_name
from sqldeid.tables.plan.stack import Stacked, StackPlan

Values = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The templates that make a stack.

    Parameters
    ----------
    pick, stack, summarise
        For the rows of a table between, for single rows, and for all rows of a person.
    refuse_doubt
        Whether rows that are equal in order are refused where it matters which comes first; else values break the tie.
    """

    pick: str
    stack: str
    summarise: str
    refuse_doubt: bool = False


MAIN = Recipe("tables/rows/pick_rows", "tables/rows/stack_rows", "tables/rows/summarise_rows", refuse_doubt=True)
DRAWN = replace(MAIN, refuse_doubt=False)
"""Under `epsilon-safe` no refusal may depend on the rows."""
AGAIN = Recipe("tables/rows/repick_rows", "tables/rows/restack_rows", "tables/rows/resummarise_rows")
"""For verification: it numbers all rows, or groups them by value, and shares no text with `MAIN`."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a stack."""

    template: str
    values: Values

    @property
    def sql(self) -> str:
        """Its text."""
        return render(self.template, **self.values)


def stack(
    stacked: Stacked,
    source: exp.Expr,
    columns: Sequence[exp.Identifier],
    kept: exp.Table,
    engine: Engine,
    recipe: Recipe,
) -> None:
    """Write the source's rows with the columns of its stacks, after the job's filter, to `kept`.

    Parameters
    ----------
    source
        The source before its filter.
    columns
        What is kept.

    Raises
    ------
    JobError
        If rows are equal in order, or a table between has rows of the same keys.

    Cost: one scan of each child table, in the memory of the rows that are taken.
    """
    tables = []
    for plan in stacked.stacks:
        with naming(plan):
            tables.append(_stack(plan, engine, recipe))
    engine.execute(joined(stacked, source, columns, kept, tables).sql)
    for table in tables:
        engine.drop(table)


def _stack(plan: StackPlan, engine: Engine, recipe: Recipe) -> exp.Table:
    picked = None
    if plan.through is not None:
        picked = engine.workbench(f"{plan.name}_picked")
        engine.execute(picking(plan, picked, recipe).sql)
        if recipe.refuse_doubt:
            _refuse_doubt(plan, picked, engine, between=True)
    table = engine.workbench(f"{plan.name}_stacked")
    engine.execute(stacking(plan, table, picked, recipe).sql)
    if recipe.refuse_doubt and plan.ordered:
        _refuse_doubt(plan, table, engine, between=False)
    return table


def statements(stacked: Stacked, source: exp.Expr, columns: Sequence[exp.Identifier], name: str) -> Iterator[Statement]:
    """What `stack` would run, with names of its own for the tables between."""
    tables = []
    for plan in stacked.stacks:
        picked = table_name(f"{name}_{plan.name}_picked") if plan.through is not None else None
        if picked is not None:
            yield picking(plan, picked, MAIN)
            yield Statement("tables/rows/count_doubtful", {"stacked": picked})
        tables.append(table_name(f"{name}_{plan.name}_stacked"))
        yield stacking(plan, tables[-1], picked, MAIN)
        if plan.ordered:
            yield Statement("tables/rows/count_doubtful", {"stacked": tables[-1]})
    yield joined(stacked, source, columns, table_name(f"{name}_source"), tables)


def picking(plan: StackPlan, picked: exp.Table, recipe: Recipe) -> Statement:
    """The statement that picks rows of the table between."""
    through = plan.through
    if through is None:
        raise ValueError("there is no table between")
    return Statement(
        recipe.pick,
        {
            "picked": picked,
            "relation": through.relation,
            "keys": _names("k", [column(right, "t") for _, right in plan.on]),
            "joins": _names("j", [column(name, "t") for name in through.joins]),
            "extra": _names("x", [column(name, "t") for name in through.extra]),
            "order": _order(through.order),
            "pick": plan.part.pick is not None,
            "last": plan.part.pick == "last",
        },
    )


def stacking(plan: StackPlan, table: exp.Table, picked: exp.Table | None, recipe: Recipe) -> Statement:
    """The statement that makes the columns of a stack, v0, v1 and so on, by the keys k0, k1 and so on."""
    through = plan.through
    keys = [column(f"k{i}", "t") if through else column(right, "c") for i, (_, right) in enumerate(plan.on)]
    values: dict[str, object] = {
        "stacked": table,
        "relation": plan.relation,
        "keys": _names("k", keys),
        "picked": picked,
        "joins": [{"left": column(f"j{i}", "t"), "right": column(name, "c")} for i, name in enumerate(plan.joins)],
        "value": plan.stacked_value,
    }
    if not plan.ordered:
        counted = plan.value is not None
        own = {"aggregate": plan.part.aggregate, "counted": counted, "result": identifier("v0")}
        return Statement(recipe.summarise, values | own)
    extra = {name: f"x{i}" for i, name in enumerate(through.extra)} if through else {}
    order = [column(extra[name], "t") if whose == "t" else column(name, "c") for whose, name in plan.order]
    shown = range(1, len(plan.places) + 1) if plan.part.unordered else plan.places
    return Statement(
        recipe.stack,
        values
        | {
            "order": _order(order),
            "last": plan.part.aggregate == "last",
            "most": max(plan.places) + 1,
            "places": plan.places,
            "values": [{"name": identifier(f"v{i}"), "place": place} for i, place in enumerate(shown)],
            "telling": [{"first": a, "second": b} for a, b in plan.telling],
            "unordered": plan.part.unordered,
        },
    )


def joined(
    stacked: Stacked,
    source: exp.Expr,
    columns: Sequence[exp.Identifier],
    kept: exp.Table,
    tables: Sequence[exp.Table],
) -> Statement:
    """The statement that puts stacks beside the source."""
    arms = []
    for i, (plan, table) in enumerate(zip(stacked.stacks, tables, strict=True)):
        count = plan.part.aggregate == "count"
        arms.append(
            {
                "table": table,
                "alias": identifier(f"y{i}"),
                "drop": plan.part.empty == "drop",
                "on": [
                    {"left": column(left, "s"), "right": column(f"k{j}", f"y{i}")}
                    for j, (left, _) in enumerate(plan.on)
                ],
                "made": [
                    {"name": identifier(c.name), "column": column(f"v{j}", f"y{i}"), "count": count}
                    for j, c in enumerate(plan.columns)
                ],
            }
        )
    return Statement(
        "tables/rows/join_stacks",
        {
            "kept": kept,
            "columns": list(columns),
            "source": source,
            "alias": stacked.alias,
            "stacks": arms,
            "condition": stacked.condition,
        },
    )


def _names(letter: str, columns: Sequence[exp.Expr]) -> list[dict[str, exp.Expr]]:
    return [{"name": identifier(f"{letter}{i}"), "column": c} for i, c in enumerate(columns)]


def _order(columns: Sequence[exp.Expr]) -> list[dict[str, exp.Expr]]:
    return [{"name": identifier(f"o{i}"), "there": identifier(f"n{i}"), "column": c} for i, c in enumerate(columns)]


def _refuse_doubt(plan: StackPlan, table: exp.Table, engine: Engine, *, between: bool) -> None:
    doubtful = int(engine.row("tables/rows/count_doubtful", stacked=table)["doubtful"])
    if not doubtful:
        return
    persons = "1 person has" if doubtful == 1 else f"{doubtful} persons have"
    part = plan.part
    if between and part.pick is None:
        key, through = f"{plan.key}.through_on", plan.through.label if plan.through else ""
        message = f"{through} has several rows for the same on and through_on ({doubtful} times); each needs its own"
    elif between:
        key = f"{plan.key}.pick_then"
        message = (
            f"{part.pick_order} leaves open which row is the {part.pick}: {persons} rows that are equal in it"
            f"{' and in pick_then' if part.pick_then else ''}; "
            f"{'add a column to' if part.pick_then else 'break ties with'} pick_then, such as a row number"
        )
    else:
        key = f"{plan.key}.{'then' if part.then else 'order'}"
        message = (
            f"{', '.join([*(part.order or ()), *(part.then or ())])} leaves open which row of {plan.label} comes "
            f"first: {persons} rows that are equal in it, in places that are taken; "
            f"{'add a column to' if part.then else 'break ties with'} then, such as a row number"
        )
    raise JobError.at(key, message)


@contextmanager
def naming(plan: StackPlan) -> Iterator[None]:
    """Name the stack in what its run meets, such as a number too large for a mean."""
    try:
        yield
    except JobError as error:
        if error.key:
            raise
        mean = "; a mean is of finite numbers of at most 28 digits" if plan.part.aggregate == "mean" else ""
        raise JobError.at(plan.key, f"{error.message}{mean}") from None
