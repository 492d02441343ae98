"""Fold a source with the columns that are attacked, and the part of a fold that a draw of persons releases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.sql import identifier
from sqldeid.tables.attacks.known import Known, Secret, known_of
from sqldeid.tables.fold.fold import Coded, Folded
from sqldeid.tables.fold.sensitive import code_name, reference_of
from sqldeid.tables.model.evaluation import Marginal
from sqldeid.tables.plan.plan import OtherColumn, TablePlan

NULL_CODE = -1
"""Code of NULL in a column that no criterion speaks of."""

MOST_ATTACKED = 20
"""Sensitive columns that are attacked though neither a criterion nor the job's `secrets` names them: each costs some
statements, and a table may have hundreds."""

BEYOND = (
    f"of sensitive columns that neither criteria nor the job's secrets name, the first {MOST_ATTACKED} are attacked; "
    "name it in secrets"
)


def secrets_of(plan: TablePlan) -> tuple[OtherColumn, ...]:
    """The attacked columns: those that criteria speak of first, then other sensitive ones, then the job's `secrets`.

    Of sensitive columns that neither names, the first `MOST_ATTACKED`.
    """
    more = [c for c in _asked(plan) if c.source.kind != "other" and c.disguise is None]
    first = [c for c in more if c.name not in plan.secrets][:MOST_ATTACKED]
    return (*plan.judged, *first, *(c for c in more if c.name in plan.secrets))


def _asked(plan: TablePlan) -> list[OtherColumn]:
    """The sensitive columns, and the job's `secrets`, that no criterion speaks of."""
    judged = plan.judged
    return [c for c in plan.others if (c.name in plan.secrets or c.role == "sensitive") and c not in judged]


def not_inferred(plan: TablePlan) -> Iterator[tuple[str, str]]:
    """The sensitive columns and the job's `secrets` that are not attacked, each with the reason."""
    attacked = {c.name for c in secrets_of(plan)}
    yield from ((q.name, "the attacker knows quasi-identifying values") for q in plan.qis if q.name in plan.secrets)
    yield from ((c.name, _why_not(c)) for c in _asked(plan) if c.name not in attacked)


def _why_not(column: OtherColumn) -> str:
    if column.disguise is not None:
        return "it is released in disguise: a guess cannot be compared with what it stands for"
    return "values of its type are not compared" if column.source.kind == "other" else BEYOND


def fold_attacked(plan: TablePlan, folded: Folded, engine: Engine) -> Known:
    """The source by quasi-identifying and attacked values.

    Cost: none of the source where criteria speak of every attacked column, for it was folded with them; else a scan of
    each other column and one of the table.

    Raises
    ------
    JobError
        If the source gives other values than when it was folded.
    """
    columns, bench = secrets_of(plan), engine.bench
    secrets = [Secret(c.name, code_name(i)) for i, c in enumerate(columns)]
    more = columns[len(plan.judged) :]
    if not more:
        return known_of(folded, folded.cells or folded.table, secrets, bench, plan.name)
    coded = [v.in_fold(i) for i, v in enumerate(folded.sensitive)]
    for i, c in enumerate(more, start=len(coded)):
        table = engine.make(
            "tables/attacks/code_secret", f"{plan.name}_secret_{i}", column=c.column, source=folded.source
        )
        alias = identifier(f"t{i}")
        coded.append({"name": code_name(i), "alias": alias, "column": c.column, "coded": table, "null_code": NULL_CODE})
    far = engine.make(
        "tables/fold/fold_classes",
        f"{plan.name}_attacked",
        source=folded.source,
        words=_words(folded),
        sensitive=coded,
        n=None,
        person=None,
    )
    return known_of(folded, engine.to_bench(far), secrets, bench, plan.name)


def _words(folded: Folded) -> list[dict[str, object]]:
    return [
        {"name": name, "columns": [_coded(i, c) for i, c in enumerate(folded.columns) if c.field.word == word]}
        for word, name in enumerate(folded.words)
    ]


def _coded(number: int, c: Coded) -> dict[str, object]:
    return {"alias": identifier(f"h{number}"), "column": c.qi.column, "coded": c.table, "null_code": c.null_code}


def folded_part(plan: TablePlan, folded: Folded, people: exp.Table, persons: int, bench: Engine) -> Folded:
    """The fold of those persons who are released, from a fold of all; nothing of the source is read.

    Parameters
    ----------
    people
        From `Known.split`, with the codes of `folded.sensitive` by their names.
    persons
        How many are released.
    """
    words, name = list(folded.words), f"{plan.name}_part"
    table = bench.make("tables/attacks/keep_released", name, people=people, names=words)
    read = bench.ask("tables/attacks/read_part", classes=table, words=words)
    rows = read.column("n").to_numpy().astype(np.int64)
    own = np.stack([read.column(w.name).to_numpy().astype(np.int64) for w in words])
    columns = tuple(replace(c, marginal=_marginal(c, own, rows)) for c in folded.columns)
    part = replace(
        folded,
        rows=persons,
        persons=persons,
        table=table,
        size=len(rows),
        columns=columns,
        at_source=None,
        room=None,
        keys=None,
    )
    if not folded.sensitive:
        return part
    codes = [code_name(i) for i in range(len(folded.sensitive))]
    cells = bench.make("tables/attacks/keep_released", f"{name}_cells", people=people, names=[*words, *codes])
    sensitive = []
    for i, v in enumerate(folded.sensitive):
        counted = bench.rows("tables/attacks/count_codes", cells=cells, code=codes[i])
        rows_of = np.zeros(v.values, dtype=np.int64)
        for row in counted:
            rows_of[int(row["code"])] = int(row["n"])
        reference = bench.put(f"{name}_reference_{i}", reference_of(rows_of))
        mine = replace(v, rows=rows_of, reference=reference)
        sensitive.append(mine.spread(plan, i, bench, cells, words))
    return replace(part, cells=cells, sensitive=tuple(sensitive))


def _marginal(coded: Coded, words: Ints, rows: Ints) -> Marginal:
    """Rows of each group at each level."""
    hierarchy = coded.hierarchy
    leaves = np.bincount(leaves_of(coded, words), weights=rows, minlength=len(coded.codes)).astype(np.int64)
    counted = [
        np.bincount(hierarchy.groups[level], weights=leaves, minlength=len(hierarchy.labels[level])).astype(np.int64)
        for level in range(hierarchy.height)
    ]
    return replace(coded.marginal, rows=tuple(counted))


def leaves_of(coded: Coded, words: Ints) -> Ints:
    """The hierarchy's leaf of each combination, from its code in the word."""
    order = np.argsort(coded.codes, kind="stable")
    own = words[coded.field.word] & np.int64(coded.field.mask(0))
    return np.asarray(order[np.searchsorted(coded.codes[order], own)])
