"""Folded classes whose persons may have many rows, with their persons beside them.

The fold has a row for each person in each combination. A person all of whose rows are in one combination is there at
every coarser level, too, and is only counted; the others keep their key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.sql import identifier
from sqldeid.tables.criteria import known
from sqldeid.tables.fold.sensitive import Sensitive, code_name, reference_of
from sqldeid.tables.plan.plan import TablePlan


def with_persons(
    plan: TablePlan, engine: Engine, folded: exp.Table, words: Sequence[exp.Identifier], sensitive: Sequence[Sensitive]
) -> tuple[exp.Table, exp.Table, tuple[Sensitive, ...]]:
    """On the bench: the classes by their rows, those with their persons, and the columns with both split by value.

    Parameters
    ----------
    folded
        In the source engine: words, sensitive codes, person, n. Its rows travel.

    Raises
    ------
    JobError
        If t-closeness is asked for of a column that has several values for one person.
    """
    names, bench = list(words), engine.bench
    pairs = engine.to_bench(folded)
    classes = bench.make("tables/fold/merge_classes", f"{plan.name}_merged", folded=pairs, words=names)
    settled = _settle(bench, pairs, names, f"{plan.name}_persons")
    spread = tuple(_spread(plan, i, s, bench, pairs, names) for i, s in enumerate(sensitive))
    return classes, settled, spread


def _settle(engine: Engine, pairs: exp.Table, words: Sequence[exp.Identifier], name: str) -> exp.Table:
    groups = [{"word": w, "mask": -1} for w in words]
    return engine.make("tables/fold/settle_pairs", name, pairs=pairs, groups=groups, again=False)


def _spread(
    plan: TablePlan,
    number: int,
    sensitive: Sensitive,
    engine: Engine,
    pairs: exp.Table,
    words: Sequence[exp.Identifier],
) -> Sensitive:
    """The column with its persons: by class, and of the whole table."""
    name = code_name(number)
    split = engine.make(
        "tables/fold/split_pairs", f"{plan.name}_split_{number}", pairs=pairs, words=words, sensitive=name
    )
    spread = _settle(engine, split, [*words, identifier("s")], f"{plan.name}_spread_{number}")
    engine.drop(split)
    read = engine.ask("tables/fold/reference_persons", pairs=pairs, sensitive=name)
    _refuse_varying(plan, sensitive, int(sum(read.column("varying").to_pylist())))
    persons = np.zeros(sensitive.values, dtype=np.int64)
    persons[read.column("s").to_numpy()] = read.column("persons").to_numpy()
    reference = engine.put(f"{plan.name}_sensitive_{sensitive.column.name}_persons", reference_of(persons))
    return replace(sensitive, rows=persons, spread_table=spread, reference=reference)


def _refuse_varying(plan: TablePlan, sensitive: Sensitive, varying: int) -> None:
    close = [c for c in plan.criteria if known(c).against_whole and c.column == sensitive.column.name]
    if close and varying:
        raise JobError.at(
            f"{plan.key}.privacy.{close[0].key}",
            f"{sensitive.column.name} has several values for one person, and {close[0].name} compares the shares of "
            'persons who have each; with rows = "many" ask l_diversity of it, or give one row per person',
        )
