"""The criteria beyond k, re-checked for `verify`: on labels and values, with other formulas than the search's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.result import Criterion, Measured
from sqldeid.sql import column, identifier, render
from sqldeid.tables.concealment import Concealment, measure, pick
from sqldeid.tables.plan import OtherColumn, TablePlan
from sqldeid.tables.privacy import ClassCriterion, MConcealing
from sqldeid.tables.privacy.l_diversity import RecursiveLDiversity
from sqldeid.tables.privacy.t_closeness import TCloseness


@dataclass(frozen=True, slots=True)
class Judgement:
    """Source and release of one plan, as verify labels them.

    Parameters
    ----------
    labelled
        The quasi-identifying columns at their released level, as parameters of the templates.
    """

    plan: TablePlan
    engine: Engine
    source: exp.Expr
    labelled: Sequence[Mapping[str, object]]
    written: exp.Expr

    @property
    def _names(self) -> list[exp.Identifier]:
        return [identifier(f"q{i}") for i in range(len(self.plan.qis))]

    @property
    def _columns(self) -> list[OtherColumn]:
        """The sensitive columns that are judged by class."""
        return [c for c in self.plan.judged if self._of(c)]

    def flag(self, grouped: exp.Table, k: int) -> exp.Table:
        """The source's classes with whether they must be suppressed."""
        failing = []
        for judged in self._columns:
            cells, ranked = self._split_source(judged), self._ranked(judged)
            failing += [self._failing(c, cells, ranked) for c in self._of(judged)]
        criterion = self.plan.concealing
        if criterion is not None:
            found = self._conceal_source(criterion)
            failing.append(
                pick(self.engine, f"{self.plan.name}_verify", found, found.failing(criterion), len(self.plan.qis))
            )
        flagged = self.engine.workbench(f"{self.plan.name}_verify_flagged")
        self.engine.execute(
            render(
                "tables/flag_source",
                flagged=flagged,
                grouped=grouped,
                columns=self._names,
                k=k,
                failing=[{"table": t, "alias": identifier(f"f{i}")} for i, t in enumerate(failing)],
            )
        )
        return flagged

    def blanked_pass(self, flagged: exp.Table, tops: Sequence[Mapping[str, object]]) -> bool:
        """Whether the rows that fail, with those that are at the top anyway, meet every criterion as one class.

        Whether they are k rows is not asked here.
        """
        if self.plan.concealing is not None:
            return False  # dropped in any case, as the search does
        for judged in self._columns:
            cells = self._split_source(judged)
            merged = self.engine.workbench(f"{self.plan.name}_verify_blanked")
            self.engine.execute(
                render("tables/split_blanked", merged=merged, cells=cells, flagged=flagged, columns=list(tops))
            )
            ranked = self._ranked(judged)
            if any(self._count(self._failing(c, merged, ranked)) for c in self._of(judged)):
                return False
        return True

    def achieved(self) -> tuple[Criterion, ...]:
        """The criteria of the release as it was written.

        Raises
        ------
        VerificationError
            If a released class fails one.
        """
        found = []
        for judged in self._columns:
            cells = self._split_release(judged)
            ranked = self._ranked(judged)
            for criterion in self._of(judged):
                failing = self._failing(criterion, cells, ranked)
                if count := self._count(failing):
                    raise VerificationError(
                        f"{self.plan.key}: the release failed its re-check: {count} classes fail {criterion.name} of "
                        f"{criterion.column}",
                        key=self.plan.key,
                    )
                found.append(self._result(criterion, cells, ranked))
        return (*found, *self._concealed())

    def measured(self) -> tuple[tuple[Measured, ...], Concealment | None]:
        """What a table with the release's columns achieves by each criterion, met or not; and m-concealing's risks."""
        found = []
        for judged in self._columns:
            cells, ranked = self._split_release(judged), self._ranked(judged)
            for criterion in self._of(judged):
                met = not self._count(self._failing(criterion, cells, ranked))
                achieved = self._achieved(criterion, cells, ranked)
                found.append(Measured(criterion.name, criterion.column, criterion.asked, achieved, met))
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
            raise VerificationError(
                f"{self.plan.key}: the release failed its re-check: {len(found.failing(criterion))} classes fail "
                f"{criterion.name}",
                key=self.plan.key,
            )
        return (Criterion(criterion.name, None, criterion.asked, found.greatest, criterion.promise),)

    def _conceal_written(self, criterion: MConcealing) -> Concealment:
        columns = [column(q.name, "s") for q in self.plan.qis]
        known = [column(name, "s") for name, _ in criterion.known]
        return measure(self.engine, f"{self.plan.name}_released", self.written, columns, known, criterion)

    def _conceal_source(self, criterion: MConcealing) -> Concealment:
        """m-concealing of the source at the released levels, before suppression."""
        by_name = {c.name: c.column for c in self.plan.judged}
        codes = [identifier(f"v{i}") for i in range(len(criterion.known))]
        labelled = self.engine.workbench(f"{self.plan.name}_verify_labelled")
        self.engine.execute(
            render(
                "tables/label_rows",
                labelled=labelled,
                source=self.source,
                columns=list(self.labelled),
                known=[{"name": n, "column": by_name[c]} for n, (c, _) in zip(codes, criterion.known, strict=True)],
            )
        )
        columns = [column(n.name, "s") for n in self._names]
        known = [column(c.name, "s") for c in codes]
        return measure(self.engine, f"{self.plan.name}_verify", labelled, columns, known, criterion)

    def _count(self, table: exp.Table) -> int:
        return int(self.engine.query(render("tables/count_rows", table=table)).column("rows")[0].as_py())

    def _of(self, judged: OtherColumn) -> list[ClassCriterion]:
        return [c for c in self.plan.criteria if c.column == judged.name]

    def _result(self, criterion: ClassCriterion, cells: exp.Table, ranked: exp.Table) -> Criterion:
        achieved = self._achieved(criterion, cells, ranked)
        return Criterion(criterion.name, criterion.column, criterion.asked, achieved or 0.0, criterion.promise)

    def _achieved(self, criterion: ClassCriterion, cells: exp.Table, ranked: exp.Table) -> float | None:
        """What the worst class achieves; None where there is no class, or no finite ratio."""
        row = self.engine.query(
            render(
                "tables/measure_classes",
                cells=cells,
                ranked=ranked,
                columns=self._names,
                kind=kind_of(criterion),
                l=getattr(criterion, "l", 1),
            )
        ).to_pylist()[0]
        return None if row["achieved"] is None else float(row["achieved"])

    def _split_source(self, judged: OtherColumn) -> exp.Table:
        cells = self.engine.workbench(f"{self.plan.name}_verify_cells")
        self.engine.execute(
            render(
                "tables/split_source",
                cells=cells,
                source=self.source,
                sensitive=judged.column,
                columns=list(self.labelled),
            )
        )
        return cells

    def _split_release(self, judged: OtherColumn) -> exp.Table:
        cells = self.engine.workbench(f"{self.plan.name}_verify_released_cells")
        columns = [{"name": n, "column": column(q.name, "r")} for n, q in zip(self._names, self.plan.qis, strict=True)]
        self.engine.execute(
            render(
                "tables/split_release",
                cells=cells,
                release=self.written,
                sensitive=column(judged.name, "r"),
                columns=columns,
            )
        )
        return cells

    def _ranked(self, judged: OtherColumn) -> exp.Table:
        return rank_values(self.plan, judged, self.engine, self.source)

    def _failing(self, criterion: ClassCriterion, cells: exp.Table, ranked: exp.Table) -> exp.Table:
        failing = self.engine.workbench(f"{self.plan.name}_verify_failing")
        number = criterion.t if isinstance(criterion, TCloseness) else Fraction(0)
        number = criterion.c if isinstance(criterion, RecursiveLDiversity) else number
        self.engine.execute(
            render(
                "tables/fail_classes",
                failing=failing,
                cells=cells,
                columns=self._names,
                kind=kind_of(criterion),
                l=getattr(criterion, "l", 1),
                num=number.numerator,
                den=number.denominator,
                ranked=ranked,
            )
        )
        return failing


def kind_of(criterion: ClassCriterion) -> str:
    """The template's word for a criterion."""
    return criterion.distance if isinstance(criterion, TCloseness) else criterion.kind


def rank_values(plan: TablePlan, judged: OtherColumn, engine: Engine, source: exp.Expr) -> exp.Table:
    """The values of a sensitive column with their rows and places: in their own order, or in the one that is stated."""
    order = plan.order_of(judged.name)
    stated = None
    if order:
        rows = pa.table({"text": list(order), "place": pa.array(range(len(order)), pa.int64())})
        stated = engine.put(f"{plan.name}_verify_order", rows)
    ranked = engine.workbench(f"{plan.name}_verify_ranked")
    engine.execute(
        render(
            "tables/rank_values",
            ranked=ranked,
            source=source,
            sensitive=judged.column,
            stated=stated,
            places=len(order),
        )
    )
    return ranked
