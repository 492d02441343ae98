"""The source as one row per person: what statements read, and the check that nobody is in it twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError, VerificationError
from sqldeid.sql import column, identifier, render, table_name
from sqldeid.tables.plan.columns import LINKED
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.rows import stacking


def keep(plan: TablePlan, engine: Engine) -> exp.Expr:
    """The relation that statements read; a query's rows, and stacks, are kept first, so that joins run once.

    Raises
    ------
    JobError
        If the release is of a sample, and it was not drawn: by whoever has no key.
    """
    if plan.sample is not None and not plan.drawn:
        raise JobError.at(
            f"{plan.key}.sample",
            "is drawn by anonymize and verify, which take the key; this reads the whole source and would not tell of "
            "the sample: leave sample out in a copy of the job",
        )
    if plan.stacked is not None:
        return _stack(plan, engine, stacking.DRAWN if plan.sampled else stacking.MAIN)
    if not plan.joined:
        return plan.source
    kept = engine.workbench(f"{plan.name}_source")
    with naming(plan.key, filtered=plan.filtered, joined=plan.joined):
        engine.run("tables/rows/keep_source", kept=kept, columns=kept_columns(plan), source=plan.source)
    return kept


def check_stacks(plan: TablePlan, engine: Engine, source: exp.Expr) -> None:
    """Stack once more, by SQL that shares nothing with the run's, and compare with what was kept, row by row.

    Raises
    ------
    VerificationError
        If a row differs.
    """
    if plan.stacked is None:
        return
    again = make_again(plan, engine)
    kinds = {c.source.name: c.source.kind for c in plan.released}
    columns = [comparable(exp.Column(this=n), kinds.get(n.name, ""), engine) for n in kept_columns(plan)]
    row = engine.row("tables/rows/compare_stacks", kept=source, again=again, columns=columns)
    engine.drop(again)
    if row["different"]:
        raise VerificationError.at(
            f"{plan.key}.stack",
            f"the release failed its re-check: {row['different']} rows differ where stacks are made once more",
        )


def comparable(value: exp.Expr, kind: str, engine: Engine) -> exp.Expr:
    """A column as rows are compared by it: in another engine the text of what it cannot compare, such as JSON."""
    if kind != "other" or engine.bench is engine:
        return value
    return exp.cast(value, exp.DataType.build("varchar", dialect="duckdb"))


def kept_columns(plan: TablePlan) -> list[exp.Identifier]:
    """The columns of the source that a run needs."""
    names = dict.fromkeys(c.source.name for c in plan.released if getattr(c, "role", None) != LINKED)
    if plan.person is not None:
        names.setdefault(plan.person)
    for v in plan.versions:
        if v.relation is None:
            names.setdefault(v.version)
    return [identifier(n) for n in names]


def make_again(plan: TablePlan, engine: Engine) -> exp.Table:
    """The stacked rows once more, by the SQL of verification, which shares nothing with the run's."""
    return _stack(plan, engine, stacking.AGAIN)


def _stack(plan: TablePlan, engine: Engine, recipe: stacking.Recipe) -> exp.Table:
    if plan.stacked is None:
        raise ValueError("there is nothing to stack")
    kept = engine.workbench(f"{plan.name}_source")
    with naming(plan.key, filtered=plan.filtered, joined=plan.joined):
        stacking.stack(plan.stacked, plan.source, kept_columns(plan), kept, engine, recipe)
    return kept


@dataclass(frozen=True, slots=True)
class Persons:
    """Rows of a source, one for each person.

    Parameters
    ----------
    rows, persons
        Their number, and that of the persons who have them.
    keys
        Sums of the hashes of their keys, where the engine has no snapshot to read them from; (0, 0) without a key.
    """

    rows: int
    keys: tuple[int, int] | None = None
    persons: int = 0


def count_persons(plan: TablePlan, engine: Engine, source: exp.Expr) -> Persons:
    """Rows of the source; the person key must be there on each, and on no two unless a person may have many rows."""
    still = engine.capabilities.snapshot_reads
    with naming(plan.key, filtered=plan.filtered, joined=plan.joined):
        check, dialect = "tables/rows/check_person" if still else "tables/rows/check_keys", engine.capabilities.dialect
        asked = render(check, dialect, source=source, person=plan.person_column, numbered=plan.numbered)
        row = engine.query(asked).to_pylist()[0]
    rows, keyed, persons = int(row["rows"]), int(row["keyed"]), int(row["persons"])
    key = f"{plan.key}.person"
    if rows == 0 and plan.drawn:
        raise JobError.at(
            f"{plan.key}.sample",
            f"no person of {plan.source_label} was drawn; there is nothing to release: state a greater share",
        )
    if rows == 0:
        after = " (after `where`)" if plan.filtered else ""
        raise JobError(f"{plan.key}: {plan.source_label} has no rows{after}; there is nothing to release")
    if keyed < rows:
        raise _no_key(plan, key, rows - keyed)
    if plan.person is not None and persons < rows and not plan.many:
        raise JobError.at(
            key,
            f"{plan.source_label} has {rows} rows but {persons} values of {plan.person}; k counts persons, so "
            f'say rows = "many" beside it, or give one row per person (a query that picks one). {_repeated(plan)}',
        )
    refuse_more(plan, rows)
    return Persons(rows, None if still else (int(row["high"]), int(row["low"])), persons)


def _no_key(plan: TablePlan, key: str, lost: int) -> JobError:
    """Rows of nobody: how they are left out."""
    shown = "1 row" if lost == 1 else f"{lost} rows"
    there = exp.Is(this=column(str(plan.person)), expression=exp.Null()).not_().sql("duckdb")
    quote = "'''" if "'" in there else "'"
    left_out = f"where = {quote}{'… AND ' if plan.filtered else ''}{there}{quote}"
    told = f"{plan.person} is NULL in {shown} of {plan.source_label}"
    return JobError.at(key, f"{told}; write the keys there, or leave such rows out: {left_out}")


def _repeated(plan: TablePlan) -> str:
    """How whoever holds the source sees the keys of several rows: a query, and no value."""
    names = [plan.source.db, plan.source.name] if isinstance(plan.source, exp.Table) else ["source_query"]
    source = table_name(*(name for name in names if name))
    asked = str(render("run/list_repeated", person=column(str(plan.person), "s"), source=source)).strip()
    return f"To see which{'' if len(names) > 1 else ', with (the source query) in the place of source_query'}: {asked}"


def refuse_more(plan: TablePlan, rows: int) -> None:
    """Refuse more rows than the share of the population for which k-map is estimated.

    Raises
    ------
    JobError
        If there are more.
    """
    estimated = plan.demands.estimated
    if estimated is not None and rows > estimated.most_rows:
        raise JobError.at(
            f"{plan.key}.privacy.population.fraction",
            f"{plan.source_label} has more rows than {float(estimated.fraction):g} of the population's "
            f"{estimated.size:,} persons; raise fraction to the greatest share that it may have, or correct size",
        )


def persons_now(plan: TablePlan, engine: Engine, source: exp.Expr) -> Persons:
    """Rows and keys of a source as they are by now, on an engine without a snapshot; they are not checked.

    Two sources with other keys have the same sums by chance alone: of hashes of 60 bits.
    """
    statement = render("tables/rows/sum_keys", engine.capabilities.dialect, source=source, person=plan.person_column)
    row = engine.query(statement).to_pylist()[0]
    return Persons(int(row["rows"]), (int(row["high"] or 0), int(row["low"] or 0)))


@contextmanager
def naming(key: str, *, filtered: bool, joined: bool) -> Iterator[None]:
    """Name the job's SQL in what its first run meets, such as a division by zero.

    Parameters
    ----------
    key
        The release in the job.
    filtered
        Whether the job filters its source.
    joined
        Whether its source is a query.
    """
    try:
        yield
    except JobError as error:
        if error.key:
            raise
        source = "source.query" if joined else "source"
        named = f"{key}.{'where' if filtered else source}"
        also = f" or {source}" if joined and filtered else ""
        raise JobError(f"{named}{also}: {error.message}", key=named) from None
