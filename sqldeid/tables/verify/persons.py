"""The re-check of releases whose persons may have many rows (`rows = "many"`): counted by labels, in other SQL."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.result import Persons
from sqldeid.sql import identifier, render
from sqldeid.tables.criteria import ClassCriterion, known
from sqldeid.tables.plan.plan import OtherColumn, TablePlan
from sqldeid.tables.verify.judgement import Judgement, Split, rank_values


@dataclass(frozen=True, slots=True)
class PersonJudgement(Judgement):
    """As `Judgement`, where k and the criteria count the persons of a class.

    The release does not show whose a row is. What it achieves is counted in the source's classes of the same labels,
    which the re-check compares with those of the release, class by class.
    """

    _made: dict[str, exp.Table] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def _bench(self) -> Engine:
        return self.engine.bench

    def few(self, k: int) -> list[exp.Table]:
        """The classes of fewer than k persons."""
        failing = self._bench.workbench(f"{self.plan.name}_verify_few")
        statement = render(
            "tables/verify/few_persons", failing=failing, counted=self._counted(), columns=self._names, k=k
        )
        self._bench.execute(statement)
        return [self.engine.from_bench(failing)]

    def persons(self, flagged: exp.Table) -> Persons:
        """The persons of the source and of the classes that are released."""
        flagged = self.engine.to_bench(flagged)
        asked = {"flagged": flagged, "columns": self._names}
        sizes = self._bench.rows("tables/verify/tell_persons", counted=self._counted(), **asked)
        owners = self._bench.row("tables/verify/count_owners", owned=self._owned(), **asked)
        return Persons(
            persons=int(owners["persons"]),
            lost=int(owners["lost"]),
            partly=int(owners["partly"]),
            k=min((int(r["persons"]) for r in sizes), default=0),
            sizes=tuple((int(r["persons"]), int(r["classes"]), int(r["size"])) for r in sizes),
            greatest_share=max((float(r["share"]) for r in sizes), default=0.0),
        )

    def sizes(self) -> list[tuple[int, int, int, float]]:
        """Of all classes: persons, classes with so many, their rows, and the greatest share of one person's rows."""
        asked = {"flagged": None, "columns": self._names}
        read = self._bench.rows("tables/verify/tell_persons", counted=self._counted(), **asked)
        return [(int(r["persons"]), int(r["classes"]), int(r["size"]), float(r["share"])) for r in read]

    def refuse_few(self, found: Persons, k: int) -> None:
        """Refuse a release with a class of fewer than k persons.

        Raises
        ------
        VerificationError
            If there is one.
        """
        if found.sizes and found.k < k:
            raise VerificationError.at(
                self.plan.key, f"the release failed its re-check: its smallest class has {found.k} persons, not {k}"
            )

    def _owned(self) -> exp.Table:
        if "owned" not in self._made:
            owned = self.engine.make(
                "tables/verify/own_classes",
                f"{self.plan.name}_verify_owned",
                source=self.source,
                person=self.plan.person_column,
                columns=list(self.labelled),
            )
            self._made["owned"] = self.engine.to_bench(owned)
        return self._made["owned"]

    def _counted(self) -> exp.Table:
        if "counted" not in self._made:
            counted = self._bench.make(
                "tables/verify/count_owned",
                f"{self.plan.name}_verify_counted",
                owned=self._owned(),
                columns=self._names,
            )
            self._made["counted"] = counted
        return self._made["counted"]

    def _split_source(self, split: Split) -> exp.Table:
        name = f"cells of {split.column.name}"
        if name not in self._made:
            cells = self.engine.make(
                "tables/verify/split_persons",
                f"{self.plan.name}_verify_cells",
                source=self.source,
                person=self.plan.person_column,
                sensitive=split.column.column,
                columns=list(self.labelled),
            )
            trimmed = self._bench.make(
                "tables/verify/trim_cells",
                f"{self.plan.name}_verify_trimmed",
                cells=self.engine.to_bench(cells),
                counted=self._counted(),
                columns=self._names,
            )
            self._made[name] = trimmed
        return self._made[name]

    def _released_cells(self, split: Split, flagged: exp.Table | None) -> exp.Table:
        cells = self._split_source(split)
        if flagged is None:
            return cells
        asked = {"cells": cells, "flagged": self.engine.to_bench(flagged), "columns": self._names}
        return self._bench.make("tables/verify/keep_passing", f"{self.plan.name}_verify_passing", **asked)

    def _ranked(self, judged: OtherColumn) -> exp.Table:
        person = self.plan.person_column
        return self.engine.to_bench(
            rank_values(self.plan, judged, self.engine, self.whole or self.source, judged.column, person)
        )

    def _against_written(self, criterion: ClassCriterion, split: Split, cells: exp.Table) -> float | None:
        return None  # persons cannot be counted among released rows

    def _promise(self, criterion: ClassCriterion) -> str:
        return known(criterion).words.of_persons


def as_they_are(plan: TablePlan) -> list[dict[str, object]]:
    """The quasi-identifying columns as the source has them, for classes that nothing generalises."""
    return [
        {"name": identifier(f"q{i}"), "column": q.column, "labels": None, "text": False} for i, q in enumerate(plan.qis)
    ]
