"""Fold the source: read distinct values, give them prefix codes, and count combinations in one GROUP BY.

Source: search.md §1. Cost: one scan of a column for each quasi-identifier, one scan of the table for the fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.hierarchy import Hierarchy
from sqldeid.sql import identifier
from sqldeid.tables.fold.combined import Combined, Separate, held
from sqldeid.tables.fold.pairs import with_persons
from sqldeid.tables.fold.sensitive import Sensitive, code_sensitive
from sqldeid.tables.model.coding import Coding, Field, pack
from sqldeid.tables.model.evaluation import Marginal
from sqldeid.tables.plan.plan import QuasiIdentifier, TablePlan
from sqldeid.tables.plan.versions import check_versions
from sqldeid.tables.rows.bind import Bound, cover
from sqldeid.tables.rows.shape import count_persons, keep


@dataclass(frozen=True, slots=True)
class Coded:
    """One quasi-identifier, bound to the data.

    Parameters
    ----------
    hierarchy
        With all its leaves.
    codes
        Prefix code of every leaf, shifted to its place in the word; shape (leaves,).
    table
        original → code, for the values that are there.
    null_code
        Code of NULL, where the column has NULLs.
    """

    qi: QuasiIdentifier
    hierarchy: Hierarchy
    codes: Ints
    field: Field
    table: exp.Table
    null_code: int | None
    marginal: Marginal

    def prefixes(self, level: int) -> Ints:
        """The code prefix of every group of `level`, in the order of `hierarchy.labels[level]`; shape (groups,)."""
        groups = self.hierarchy.groups[level]
        first = np.zeros(len(self.hierarchy.labels[level]), dtype=np.int64)
        first[groups] = np.arange(len(groups))
        return self.codes[first] & np.int64(self.field.mask(level))


@dataclass(frozen=True, slots=True)
class Folded:
    """The source as its distinct combinations of quasi-identifying values.

    Parameters
    ----------
    source
        What later statements read: the plan's source, or the kept rows of its query.
    rows
        Rows of the source, after its filter.
    table
        Words and `n`, one row per combination; `size` rows.
    sensitive
        The columns that criteria speak of, each with its own table of classes split by value.
    cells
        Words, the sensitive columns' codes s0, s1 and so on, and n; None where there are none.
    at_source
        As `table` or `cells`, in the source engine, where the release is written; the others lie on its bench. None
        where that is one place: whoever puts another `table` in its place need not think of it.
    room
        Where the classes stay in the source engine, for they are too many: how many of them the bench has room for
        (`sqldeid.tables.check.bases`). `table` is then there, split by the sensitive columns where there are any.
        Else None.
    keys
        By which the source's persons are known again (`sqldeid.tables.rows.shape.Persons`).
    pairs, persons
        Where a person may have many rows: words with their persons (`sqldeid.tables.check.persons`); how many
        there are.
    both
        Where there is a population: words, n and p, the rows of source and population of every combination of either.
    """

    source: exp.Expr
    rows: int
    table: exp.Table
    size: int
    coding: Coding
    columns: tuple[Coded, ...]
    sensitive: tuple[Sensitive, ...] = ()
    cells: exp.Table | None = None
    at_source: exp.Table | None = None
    room: int | None = None
    keys: tuple[int, int] | None = None
    pairs: exp.Table | None = None
    persons: int = 0
    both: exp.Table | None = None

    @property
    def far(self) -> bool:
        """Whether the classes stay in the source engine."""
        return self.room is not None

    @property
    def words(self) -> tuple[exp.Identifier, ...]:
        """The words' names."""
        return word_names(self.coding)


def word_names(coding: Coding) -> tuple[exp.Identifier, ...]:
    """Names of the words: w0, w1 and so on."""
    return tuple(identifier(f"w{i}") for i in range(coding.words))


def fold(plan: TablePlan, engine: Engine, most: int | None = None) -> Folded:
    """Check the source's persons, bind every hierarchy to the values that are there, and fold.

    Parameters
    ----------
    most
        Classes that are brought to the bench, which may spill; more of them stay in the source engine. None: all are.

    Raises
    ------
    JobError
        If the source is empty, smaller than k, or its person key is NULL or not unique.
    HierarchyError
        If a hierarchy does not cover the values of its column.
    """
    source = keep(plan, engine)
    persons = count_persons(plan, engine, source)
    rows = persons.rows
    _refuse_few(plan, *((persons.persons, "person") if plan.many else (rows, "row")))
    there = held(plan, engine, source)
    beside = None if plan.population is None else Separate(plan, engine, plan.population)
    bound = [_bind(plan, i, there, beside) for i in range(len(plan.qis))]
    if not plan.sampled:
        check_versions(plan.versions, source, engine)
    leaf_codes = [b.hierarchy.codes() for b in bound]
    coding = pack([bits for _, bits in leaf_codes])
    columns = tuple(_code(plan, i, there, b, leaf_codes[i][0], coding.fields[i]) for i, b in enumerate(bound))
    words_there = [] if beside is None else _words(coding, _coded_there(columns, bound, beside))
    values = [code_sensitive(plan, i, engine, there) for i in range(len(plan.judged))]
    there.send()
    classes = engine.make(
        "tables/fold/fold_classes",
        f"{plan.name}_classes",
        source=there.table,
        words=_words(coding, columns),
        sensitive=[v.in_fold(i) for i, v in enumerate(values)],
        n=there.n,
        person=plan.person_column if plan.many else None,
    )
    folded = Folded(
        source, rows, classes, 0, coding, columns, tuple(values), keys=persons.keys, persons=persons.persons
    )
    if plan.many:
        table, pairs, spread = with_persons(plan, engine, classes, folded.words, values)
        size = _total(plan, engine.bench, table, coding, rows)
        at_source = None if engine.bench is engine else classes
        return replace(folded, table=table, size=size, sensitive=spread, at_source=at_source, pairs=pairs)
    if most is not None and _rows_of(engine, classes) > most:
        size = _total(plan, engine, classes, coding, rows)
        return replace(folded, size=size, room=most)
    brought = onto_bench(plan, engine, folded)
    if beside is not None:
        from sqldeid.tables.fold.population import fold_population
        from sqldeid.tables.rows.population import check_population

        check_population(plan, engine)
        both = fold_population(plan, engine, words_there, folded.words, brought.table, columns)
        brought = replace(brought, both=both)
    return replace(brought, size=_total(plan, engine.bench, brought.table, coding, rows))


def _refuse_few(plan: TablePlan, there_are: int, one: str) -> None:
    """Fewer rows, or persons, than k make no class; of a sample that would tell how many there are."""
    if plan.demands.k > there_are and not plan.sampled:
        raise JobError.at(
            f"{plan.key}.privacy.k",
            f"k is {plan.demands.k}{_why(plan)}, but {plan.source_label} has only "
            f"{there_are} {one if there_are == 1 else f'{one}s'}",
        )


def _why(plan: TablePlan) -> str:
    """Why k is another than the job's, where its k-map is estimated."""
    estimated = plan.demands.estimated
    return " by the estimate of k_map" if estimated is not None and estimated.least == plan.demands.k else ""


def onto_bench(plan: TablePlan, engine: Engine, folded: Folded) -> Folded:
    """The same classes on the bench, and split by each sensitive column; `folded.table` is in the source engine.

    Cost: its rows travel, portion by portion.
    """
    names, bench = list(folded.words), engine.bench
    at_source = None if bench is engine else folded.table
    table = engine.to_bench(folded.table)
    if not folded.sensitive:
        return replace(folded, table=table, at_source=at_source, room=None)
    classes = bench.make("tables/fold/merge_classes", f"{plan.name}_merged", folded=table, words=names)
    sensitive = tuple(v.spread(plan, i, bench, table, names) for i, v in enumerate(folded.sensitive))
    return replace(folded, table=classes, cells=table, sensitive=sensitive, at_source=at_source, room=None)


def _rows_of(engine: Engine, table: exp.Table) -> int:
    return int(engine.row("engine/count_rows", table=table)["rows"])


@dataclass(frozen=True, slots=True)
class _Placed(Bound):
    """A hierarchy with its leaves, where values of the source are followed by those that its population alone has.

    Parameters
    ----------
    source
        Distinct values of the source.
    place
        Of each of the population's among all values; None where there is no population.
    """

    source: int
    place: Ints | None = None


def _bind(plan: TablePlan, index: int, there: Separate | Combined, beside: Separate | None) -> _Placed:
    values, n = there.values(index)
    if beside is None:
        return _Placed(cover(plan, index, values, n), n, len(values))
    from sqldeid.tables.rows.population import join_values

    joined = join_values(values, n, beside.values(index)[0])
    return _Placed(cover(plan, index, joined.values, joined.n), joined.n, len(values), joined.place)


def _coded_there(columns: tuple[Coded, ...], bound: Sequence[_Placed], beside: Separate) -> tuple[Coded, ...]:
    """The columns with the population's values and their codes, which are those of the source."""
    found = []
    for i, (c, b) in enumerate(zip(columns, bound, strict=True)):
        place = np.zeros(0, dtype=np.int64) if b.place is None else b.place
        found.append(replace(c, table=beside.code(i, c.codes[c.hierarchy.leaf][place])))
    return tuple(found)


def _code(
    plan: TablePlan,
    index: int,
    there: Separate | Combined,
    bound: _Placed,
    leaf_codes: Ints,
    field: Field,
) -> Coded:
    qi, hierarchy = plan.qis[index], bound.hierarchy
    codes = leaf_codes << np.int64(field.shift)
    value_codes = codes[hierarchy.leaf]
    coded = there.code(index, value_codes[: bound.source])
    missing = hierarchy.values.is_null().to_numpy(zero_copy_only=False)
    null_code = int(value_codes[missing][0]) if missing.any() else None
    return Coded(qi, hierarchy, codes, field, coded, null_code, _marginal(qi, hierarchy, bound.rows))


def _marginal(qi: QuasiIdentifier, hierarchy: Hierarchy, n: Ints) -> Marginal:
    rows, leaves = [], []
    for level in range(hierarchy.height):
        groups = hierarchy.groups[level]
        size = len(hierarchy.labels[level])
        counted = np.zeros(size, dtype=np.int64)
        np.add.at(counted, groups[hierarchy.leaf], n)
        rows.append(counted)
        leaves.append(np.bincount(groups, minlength=size).astype(np.int64))
    return Marginal(qi.name, qi.weight, tuple(rows), tuple(leaves))


def _words(coding: Coding, columns: tuple[Coded, ...]) -> list[dict[str, object]]:
    return [
        {
            "name": name,
            "columns": [
                {
                    "alias": identifier(f"h{i}"),
                    "column": c.qi.column,
                    "coded": c.table,
                    "null_code": c.null_code,
                }
                for i, c in enumerate(columns)
                if c.field.word == word
            ],
        }
        for word, name in enumerate(word_names(coding))
    ]


def _total(plan: TablePlan, engine: Engine, classes: exp.Table, coding: Coding, rows: int) -> int:
    total = engine.row("tables/fold/total_classes", classes=classes, words=list(word_names(coding)))
    if total["uncoded"] or total["rows"] != rows:
        raise JobError.at(
            plan.key,
            f"{plan.source_label} gave other values when it was read again; a source must not change "
            "while it is read (a view over random or current values?)",
        )
    return int(total["classes"])
