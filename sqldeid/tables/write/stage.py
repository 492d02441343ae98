"""Write a node as a release: generalised values, suppressed rows, and an order that says nothing of the source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.publish import Note, Staging
from sqldeid.sql import column, identifier, literal, render
from sqldeid.tables.check.judge import Judge
from sqldeid.tables.check.persons import PersonJudge
from sqldeid.tables.fold.fold import Coded, Folded
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.plan.plan import QuasiIdentifier, TablePlan
from sqldeid.tables.verify.verify import Claimed
from sqldeid.tables.write.ordering import order_of


@dataclass(frozen=True, slots=True)
class Chosen:
    """The node to release on the folded source.

    Parameters
    ----------
    k
        The least class size (greater than asked with `inverse-ola`, and where all released classes must meet something
        together).
    failing
        Words of the node's classes that fail a criterion beyond k; None where k alone decides.
    """

    plan: TablePlan
    folded: Folded
    node: Node
    k: int
    judge: Judge | None = None
    failing: exp.Table | None = None

    @property
    def noted_k(self) -> int:
        """The k that a release is noted to have: what all its classes must meet together is never told as a k.

        Its re-check finds the least size by itself; and noted, that size would tell of classes that are not released.
        """
        return self.k if self.plan.overall is None else self.plan.demands.k

    @property
    def claimed(self) -> Claimed:
        """What the release claims, for its re-check."""
        hierarchies = [c.hierarchy for c in self.folded.columns]
        return Claimed(self.plan, self.node, self.noted_k, hierarchies, self.folded.source)

    @property
    def words(self) -> list[dict[str, object]]:
        """Word names and the node's masks, with the columns in each."""
        masks = self.folded.coding.masks(self.node)
        return [
            {"name": name, "mask": mask, "columns": [_coded(i, c) for i, c in self._in_word(number)]}
            for number, (name, mask) in enumerate(zip(self.folded.words, masks, strict=True))
        ]

    def _in_word(self, word: int) -> list[tuple[int, Coded]]:
        return [(i, c) for i, c in enumerate(self.folded.columns) if c.field.word == word]


def _coded(number: int, c: Coded) -> dict[str, object]:
    return {"alias": identifier(f"h{number}"), "column": c.qi.column, "coded": c.table, "null_code": c.null_code}


PART = 1_000_000
"""Rows of a part of a release, which one task of a cluster writes; classes do not tell how many rows they stand for."""

PIECES = 250_000
"""Pieces that classes are cut to, about: DuckDB sorts parts of some hundred thousand rows, and a thread reads one."""


def stage(chosen: Chosen, engine: Engine, staging: Staging, note: Note) -> exp.Expr:
    """Write the release where it is staged; what was written, to be verified.

    Cost: none of the source where every released column is quasi-identifying (the classes say it all), else one scan.
    """
    plan = chosen.plan
    kept = keep_classes(chosen, engine, placed=bool(plan.others or plan.aggregated))
    place = {q.name: column(kept_name(i), "e") for i, q in enumerate(plan.qis)}
    if plan.aggregated:
        from sqldeid.tables.write.aggregate import with_statistics

        kept, told = with_statistics(chosen, kept, engine)
        place |= told
    columns = [
        {
            "name": identifier(c.name),
            "value": place[c.name] if isinstance(c, QuasiIdentifier) or c.aggregated else c.leaving,
        }
        for c in plan.released
    ]
    if not plan.others:
        return staging.write(from_classes(kept, columns, chosen.folded.rows), note)
    order = [o for c in plan.others for o in order_of(c, engine)]
    return staging.write(
        lambda target: render(
            "tables/write/stage_rows",
            target=target,
            source=chosen.folded.source,
            kept=kept,
            words=chosen.words,
            columns=columns,
            order=order,
        ),
        note,
    )


def from_classes(kept: exp.Table, columns: list[dict[str, exp.Expr]], rows: int) -> Callable[[exp.Table], str]:
    """The statement that writes each of the kept classes as often as it has rows, in the order of the classes.

    Parameters
    ----------
    rows
        Of the release, about: they are written in so many parts that every thread or task has some.
    """
    parts = -(-rows // PART)
    copies = max(1, rows // PIECES) if 2 * rows > PIECES else max(1, rows)
    return lambda target: render(
        "tables/write/stage_classes", target=target, kept=kept, columns=columns, parts=parts, copies=copies
    )


def keep_classes(chosen: Chosen, engine: Engine, *, placed: bool = True) -> exp.Table:
    """A temporary table of the released classes with their labels; with their order, too, where it is wanted.

    Where classes are blanked it has their order in any case.
    """
    plan, folded = chosen.plan, chosen.folded
    kept = engine.workbench(f"{plan.name}_kept")
    columns = [
        {
            "name": identifier(kept_name(i)),
            "alias": identifier(f"l{i}"),
            "word": folded.words[c.field.word],
            "mask": c.field.mask(level),
            "labels": labels(chosen, engine, i, level),
            "top": literal(str(c.hierarchy.labels[-1][0])),
            "text": plan.text,
        }
        for i, (c, level) in enumerate(zip(folded.columns, chosen.node, strict=True))
    ]
    blank = plan.demands.blanks
    statement = partial(
        render,
        "tables/write/keep_classes",
        classes=folded.at_source or folded.table,
        words=chosen.words,
        k=chosen.k,
        columns=columns,
        failing=None if chosen.failing is None else engine.from_bench(chosen.failing),
        placed=placed or blank,
    )
    engine.execute(statement(kept=kept, blank=blank))
    if blank and not _blanked_pass(chosen, engine.to_bench(kept)):
        engine.drop(kept)
        kept = engine.workbench(f"{plan.name}_kept")
        engine.execute(statement(kept=kept, blank=False))
    return kept


def _blanked_pass(chosen: Chosen, kept: exp.Table) -> bool:
    if chosen.judge is None or chosen.failing is None:
        return True
    return chosen.judge.blanked_pass(kept, chosen.failing, chosen.words)


def kept_name(number: int) -> str:
    """A quasi-identifier's name among the kept classes, where its own could be that of a count or a word."""
    return f"q{number}"


def labels(chosen: Chosen, engine: Engine, index: int, level: int) -> exp.Table:
    """Code prefix → label of one quasi-identifier at one level; at level 0 the source's values, if none was cut."""
    coded = chosen.folded.columns[index]
    name = f"{chosen.plan.name}_labels_{index}"
    if level == 0 and coded.qi.typed:
        table = engine.workbench(name)
        engine.execute(render("tables/write/label_values", labels=table, coded=coded.table))
        return table
    shown = pa.array(list(coded.qi.labels(coded.hierarchy, level)), type=pa.string())
    return engine.put(name, pa.table({"prefix": coded.prefixes(level), "label": shown}))


def suppression_by(chosen: Chosen, engine: Engine, groups_at_most: int = 1000) -> dict[str, dict[str, float]]:
    """Share of rows suppressed by released value, per column; columns with more groups than that are left out.

    Values of fewer than k rows, or persons, are told together: alone they would be classes smaller than k.
    """
    small = [
        (i, c, level)
        for i, (c, level) in enumerate(zip(chosen.folded.columns, chosen.node, strict=True))
        if len(c.hierarchy.labels[level]) <= groups_at_most
    ]
    if not small:
        return {}
    columns = [
        {"number": i, "word": chosen.folded.words[c.field.word], "mask": c.field.mask(level)} for i, c, level in small
    ]
    read = engine.bench.query(
        render(
            "tables/write/count_suppressed",
            failing=chosen.failing,
            classes=chosen.folded.table,
            words=chosen.words,
            k=chosen.k,
            columns=columns,
        )
    ).to_pylist()
    names = {
        i: dict(zip(c.prefixes(level).tolist(), c.qi.labels(c.hierarchy, level), strict=True)) for i, c, level in small
    }
    counted: dict[str, dict[str, tuple[int, int]]] = {c.qi.name: {} for _, c, _ in small}
    persons = {i: _persons_by(chosen, i) for i in names} if isinstance(chosen.judge, PersonJudge) else None
    for row in sorted(read, key=lambda r: (r["number"], r["prefix"])):
        label = names[row["number"]][row["prefix"]]
        shown = "NULL" if label is None else str(label)
        if persons is None:
            shown = f"(values of fewer than {chosen.k} rows)" if row["rows"] < chosen.k else shown
        elif persons[row["number"]].get(row["prefix"], 0) < chosen.k:
            shown = f"(values of fewer than {chosen.k} persons)"
        by_value = counted[chosen.folded.columns[row["number"]].qi.name]
        suppressed, rows = by_value.get(shown, (0, 0))
        by_value[shown] = (suppressed + row["suppressed"], rows + row["rows"])
    return {c: {value: s / n for value, (s, n) in by_value.items()} for c, by_value in counted.items()}


def _persons_by(chosen: Chosen, number: int) -> dict[int, int]:
    """Persons by the code prefix of one column at the released level."""
    if not isinstance(chosen.judge, PersonJudge):
        return {}
    node = tuple(chosen.node[number] if j == number else top for j, top in enumerate(chosen.plan.lattice.top))
    masks = chosen.folded.coding.masks(node)
    groups = [{"word": w, "mask": m} for w, m in zip(chosen.folded.words, masks, strict=True)]
    field = chosen.folded.columns[number].field
    codes, persons = chosen.judge.persons_of({"id": 0, "groups": groups}, field.word)
    own = (codes & field.mask(chosen.node[number])).tolist()
    return dict(zip(own, persons.tolist(), strict=True))
