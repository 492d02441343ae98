"""The criteria beyond k, re-checked for `verify`: on labels and values, with other formulas than the search's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import SqldeidError, VerificationError
from sqldeid.rechecked import parameters_of
from sqldeid.result import Criterion, Measured
from sqldeid.sql import column, identifier, render
from sqldeid.tables.criteria import ClassCriterion, MConcealing, known, others_of, terms_of
from sqldeid.tables.plan.plan import OtherColumn, QuasiIdentifier, TablePlan
from sqldeid.tables.verify.concealment import Concealment, above, measure, pick

if TYPE_CHECKING:
    from sqldeid.tables.verify.population import Population


@dataclass(frozen=True, slots=True)
class Split:
    """A sensitive column that is judged, and the other ones that classes are split by for it (joint criteria)."""

    column: OtherColumn
    others: tuple[OtherColumn, ...]
    criteria: tuple[ClassCriterion, ...]

    @property
    def names(self) -> list[exp.Identifier]:
        """Names of the others in tables of cells."""
        return [identifier(f"o{i}") for i in range(len(self.others))]


@dataclass(frozen=True, slots=True)
class Judgement:
    """Source and release of one plan, as verify labels them.

    Parameters
    ----------
    labelled
        The quasi-identifying columns at their released level, as parameters of the templates.
    whole
        The table that t is measured against, where `source` is only a part of it.
    population
        The population, counted at the released levels; k-map raises without it.
    """

    plan: TablePlan
    engine: Engine
    source: exp.Expr
    labelled: Sequence[Mapping[str, object]]
    written: exp.Expr
    whole: exp.Expr | None = None
    population: Population | None = None

    @property
    def _names(self) -> list[exp.Identifier]:
        return [identifier(f"q{i}") for i in range(len(self.plan.qis))]

    @property
    def _splits(self) -> list[Split]:
        """What is judged by class."""
        by_name = {c.name: c for c in self.plan.judged}
        asked: dict[tuple[str, tuple[str, ...]], list[ClassCriterion]] = {}
        for c in self.plan.criteria:
            asked.setdefault((c.column, others_of(c)), []).append(c)
        return [
            Split(by_name[name], tuple(by_name[o] for o in others), tuple(criteria))
            for (name, others), criteria in asked.items()
        ]

    def flag(self, grouped: exp.Table, k: int) -> exp.Table:
        """The source's classes with whether they must be suppressed."""
        failing = self.few(k)
        if self.plan.mapped:
            if self.population is None:
                raise SqldeidError("the population was not counted, so that classes cannot be judged by it")
            failing += self.population.failing(grouped)
        for split in self._splits:
            cells, ranked = self._split_source(split), self._ranked(split.column)
            failing += [self.engine.from_bench(self._failing(c, split, cells, ranked)) for c in split.criteria]
        criterion = self.plan.concealing
        if criterion is not None:
            found = self._conceal_source(criterion)
            failing.append(
                pick(self.engine, f"{self.plan.name}_verify", found, found.failing(criterion), len(self.plan.qis))
            )
        return self.engine.make(
            "tables/verify/flag_source",
            f"{self.plan.name}_verify_flagged",
            grouped=grouped,
            columns=self._names,
            k=k,
            failing=[{"table": t, "alias": identifier(f"f{i}")} for i, t in enumerate(failing)],
        )

    def few(self, k: int) -> list[exp.Table]:
        """Classes that fail k by more than their rows, which `flag_source` counts: none where each row is a person."""
        return []

    def blanked_pass(self, flagged: exp.Table, tops: Sequence[Mapping[str, object]]) -> bool:
        """Whether the rows that fail, with those that are at the top anyway, meet every criterion as one class.

        Whether they are k rows is not asked here.
        """
        bench, flagged = self.engine.bench, self.engine.to_bench(flagged)
        if self.plan.concealing is not None and not self._blanked_conceal(self.plan.concealing, flagged, tops):
            return False
        for split in self._splits:
            cells = self._split_source(split)
            merged = bench.make(
                "tables/verify/split_blanked",
                f"{self.plan.name}_verify_blanked",
                cells=cells,
                flagged=flagged,
                columns=list(tops),
                others=split.names,
            )
            ranked = self._ranked(split.column)
            if any(self._count(self._failing(c, split, merged, ranked)) for c in split.criteria):
                return False
        return True

    def _blanked_conceal(
        self, criterion: MConcealing, flagged: exp.Table, tops: Sequence[Mapping[str, object]]
    ) -> bool:
        """Whether no blanked row, in the one class that they become, has a risk above m: every state is summed."""
        cells = self.engine.to_bench(self._conceal_source(criterion).cells)
        codes = [identifier(f"v{i}") for i in range(len(criterion.known))]
        statement = render("tables/verify/blank_known", cells=cells, flagged=flagged, columns=list(tops), codes=codes)
        read = self.engine.bench.query(statement)
        rows = read.column("c").to_numpy().astype(np.int64)
        values = [read.column(c.name).to_numpy().astype(np.int64) for c in codes]
        return not above(np.zeros(len(rows), dtype=np.int64), values, rows, criterion).any()

    def achieved(self, flagged: exp.Table | None = None) -> tuple[Criterion, ...]:
        """The criteria of the release as it was written.

        Parameters
        ----------
        flagged
            The source's classes with whether they are suppressed, for what is counted in the source.

        Raises
        ------
        VerificationError
            If a released class fails one.
        """
        found = []
        for split in self._splits:
            cells = self._released_cells(split, flagged)
            ranked = self._ranked(split.column)
            for criterion in split.criteria:
                failing = self._failing(criterion, split, cells, ranked)
                if count := self._count(failing):
                    raise VerificationError.at(
                        self.plan.key,
                        f"the release failed its re-check: {_failing(count)} {criterion.name} of {criterion.column}",
                    )
                found.append(self._result(criterion, split, cells, ranked))
        return (*found, *self._concealed())

    def measured(self) -> tuple[tuple[Measured, ...], Concealment | None]:
        """What a table with the release's columns achieves by each criterion, met or not; and m-concealing's risks."""
        found = []
        for split in self._splits:
            cells, ranked = self._released_cells(split, None), self._ranked(split.column)
            for criterion in split.criteria:
                met = not self._count(self._failing(criterion, split, cells, ranked))
                achieved = self._achieved(criterion, split, cells, ranked)
                against = None if self.written == self.source else self._against_written(criterion, split, cells)
                found.append(Measured(criterion.name, criterion.column, criterion.asked, achieved, met, against))
        hidden = self.plan.concealing
        if hidden is None:
            return tuple(found), None
        risks = self._conceal_written(hidden)
        met = not len(risks.failing(hidden))
        return (*found, Measured(hidden.name, None, hidden.asked, risks.greatest, met)), risks

    def _concealed(self) -> tuple[Criterion, ...]:
        """m-concealing of the release as it was written."""
        criterion = self.plan.concealing
        if criterion is None:
            return ()
        found = self._conceal_written(criterion)
        if len(found.failing(criterion)):
            raise VerificationError.at(
                self.plan.key,
                f"the release failed its re-check: {_failing(len(found.failing(criterion)))} {criterion.name}",
            )
        return (Criterion(criterion.name, None, criterion.asked, found.greatest, criterion.promise),)

    def _conceal_written(self, criterion: MConcealing) -> Concealment:
        by_name = {c.name: c for c in self.plan.judged}
        columns = [self._shown(q, "s") for q in self.plan.qis]
        known = [self._shown(by_name[name], "s") for name, _ in criterion.known]
        return measure(self.engine, f"{self.plan.name}_released", self.written, columns, known, criterion)

    def _conceal_source(self, criterion: MConcealing) -> Concealment:
        """m-concealing of the source at the released levels, before suppression."""
        by_name = {c.name: c.column for c in self.plan.judged}
        codes = [identifier(f"v{i}") for i in range(len(criterion.known))]
        labelled = self.engine.make(
            "tables/verify/label_rows",
            f"{self.plan.name}_verify_labelled",
            source=self.source,
            columns=list(self.labelled),
            known=[{"name": n, "column": by_name[c]} for n, (c, _) in zip(codes, criterion.known, strict=True)],
        )
        columns = [column(n.name, "s") for n in self._names]
        known = [column(c.name, "s") for c in codes]
        return measure(self.engine, f"{self.plan.name}_verify", labelled, columns, known, criterion)

    def _count(self, table: exp.Table) -> int:
        return int(self.engine.bench.row("engine/count_rows", table=table)["rows"])

    def _result(self, criterion: ClassCriterion, split: Split, cells: exp.Table, ranked: exp.Table) -> Criterion:
        achieved = self._achieved(criterion, split, cells, ranked) or 0.0
        against = self._against_written(criterion, split, cells)
        return Criterion(criterion.name, criterion.column, criterion.asked, achieved, self._promise(criterion), against)

    def _promise(self, criterion: ClassCriterion) -> str:
        return criterion.words.promise

    def _against_written(self, criterion: ClassCriterion, split: Split, cells: exp.Table) -> float | None:
        """What it achieves against the released rows, all that a reader can check, of what is against the whole.

        Values are ranked as the release shows them: one that no released row holds has no place of its own, but for
        those of a stated order.
        """
        if not known(criterion).against_whole:
            return None
        shown = column(split.column.name, "s")
        ranked = self.engine.to_bench(rank_values(self.plan, split.column, self.engine, self.written, shown))
        return self._achieved(criterion, split, cells, ranked)

    def _achieved(self, criterion: ClassCriterion, split: Split, cells: exp.Table, ranked: exp.Table) -> float | None:
        """What the worst class (for joint criteria, group) achieves; None where there is none, or no finite ratio."""
        asked = self._asked(criterion, split, cells, ranked)
        row = self.engine.bench.row("tables/verify/measure_classes", ranked=ranked, **asked)
        return None if row["achieved"] is None else float(row["achieved"])

    def _asked(self, criterion: ClassCriterion, split: Split, cells: exp.Table, ranked: exp.Table) -> dict[str, Any]:
        """Cells, columns, and what is asked of them; of a criterion that is told by a score, the classes' scores."""
        asked, columns = terms_of(criterion).recheck, [*self._names, *split.names]
        return parameters_of(self.engine.bench, asked, cells, ranked, columns, f"{self.plan.name}_verify_scored")

    def _split_source(self, split: Split) -> exp.Table:
        others = [
            {"name": n, "column": o.column, "labels": None, "text": False}
            for n, o in zip(split.names, split.others, strict=True)
        ]
        cells = self.engine.make(
            "tables/verify/split_source",
            f"{self.plan.name}_verify_cells",
            source=self.source,
            sensitive=split.column.column,
            columns=[*self.labelled, *others],
        )
        return self.engine.to_bench(cells)

    def _released_cells(self, split: Split, flagged: exp.Table | None) -> exp.Table:
        return self._split_release(split)

    def _split_release(self, split: Split) -> exp.Table:
        names = [*self._names, *split.names]
        shown: list[QuasiIdentifier | OtherColumn] = [*self.plan.qis, *split.others]
        columns = [{"name": n, "column": self._shown(c, "r")} for n, c in zip(names, shown, strict=True)]
        cells = self.engine.make(
            "tables/verify/split_release",
            f"{self.plan.name}_verify_released_cells",
            release=self.written,
            sensitive=self._shown(split.column, "r"),
            columns=columns,
        )
        return self.engine.to_bench(cells)

    def _shown(self, c: QuasiIdentifier | OtherColumn, table: str) -> exp.Column:
        """A column of what was written; of the source, where that is looked at itself, as the catalogue spells it."""
        return column(c.source.name if self.written == self.source else c.name, table)

    def _ranked(self, judged: OtherColumn) -> exp.Table:
        ranked = rank_values(self.plan, judged, self.engine, self.whole or self.source, judged.column)
        return self.engine.to_bench(ranked)

    def _failing(self, criterion: ClassCriterion, split: Split, cells: exp.Table, ranked: exp.Table) -> exp.Table:
        bench = self.engine.bench
        asked = self._asked(criterion, split, cells, ranked)
        return bench.make("tables/verify/fail_classes", f"{self.plan.name}_verify_failing", ranked=ranked, **asked)


def _failing(classes: int) -> str:
    """A count of classes as the subject of a sentence."""
    return "1 class fails" if classes == 1 else f"{classes:,} classes fail"


def rank_values(
    plan: TablePlan,
    judged: OtherColumn,
    engine: Engine,
    rows: exp.Expr,
    value: exp.Expr,
    person: exp.Column | None = None,
) -> exp.Table:
    """The values of a sensitive column with their rows and places: in their own order, or in the one that is stated.

    Parameters
    ----------
    rows, value
        The table or subquery, called `s`, and the column in it.
    person
        The key in it, where each value counts the persons who have it.
    """
    order = plan.demands.order_of(judged.name)
    stated = None
    if order:
        places = pa.table({"text": list(order), "place": pa.array(range(len(order)), pa.int64())})
        stated = engine.put(f"{plan.name}_verify_order", places)
    return engine.make(
        "tables/verify/rank_values",
        f"{plan.name}_verify_ranked",
        source=rows,
        sensitive=value,
        stated=stated,
        places=len(order),
        person=person,
    )
