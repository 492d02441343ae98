"""Classes in the population, re-checked by labels: k-map, δ-presence, journalist and marketer risk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.result import Criterion, Measured
from sqldeid.sql import identifier
from sqldeid.tables.criteria.delta_presence import LEAST
from sqldeid.tables.criteria.delta_presence import NAME as NAME_OF_PRESENCE
from sqldeid.tables.criteria.k_map import NAME, WEIGHED, promise_by_weights, promise_of
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.rows.population import check_population


@dataclass(frozen=True, slots=True)
class Mapped:
    """What classes achieve in the population.

    Parameters
    ----------
    least
        Persons of the population whom the class that fits fewest of them fits; 0 where there is none.
    marketer
        Share of the rows that are found by guessing, for each, one person of the population who fits.
    rows
        Of all classes.
    """

    least: int
    marketer: float
    rows: int

    @property
    def journalist(self) -> float:
        """Greatest risk of a person who is not known to be in the table; 1 for who is in no class of the population."""
        return 1 / max(self.least, 1) if self.rows else 0.0


@dataclass(frozen=True, slots=True)
class Population:
    """The population of a plan, counted by labels.

    Parameters
    ----------
    grouped
        Its classes at the released levels: the columns q0, q1 and so on, and n.
    """

    plan: TablePlan
    engine: Engine
    grouped: exp.Table

    @classmethod
    def of(cls, plan: TablePlan, engine: Engine, labelled: Sequence[Mapping[str, object]]) -> Population | None:
        """Count it; None where there is none. Cost: one scan of it."""
        if plan.population is None:
            return None
        check_population(plan, engine)
        grouped = engine.make(
            "tables/verify/group_source",
            f"{plan.name}_verify_population",
            source=plan.population,
            columns=list(labelled),
            others=[],
            weight=plan.weight,
        )
        return cls(plan, engine, grouped)

    def failing(self, grouped: exp.Table) -> list[exp.Table]:
        """The columns of the classes that fail k-map, where it is asked for.

        Raises
        ------
        VerificationError
            If δ-presence fails: no release of these levels meets it, whatever is suppressed.
        """
        self.present(grouped)
        if self.plan.k_map is None:
            return []
        found = self.engine.make(
            "tables/verify/few_mapped",
            f"{self.plan.name}_verify_few_mapped",
            mapped=self._map(grouped),
            columns=self._names,
            k_map=self.plan.k_map,
        )
        return [found]

    def measure(self, grouped: exp.Table) -> Mapped:
        """What the classes of a table achieve."""
        row = self.engine.row("tables/verify/measure_mapped", mapped=self._map(grouped))
        rows = int(row["n"])
        return Mapped(int(row["least"]), float(row["matched"]) / rows if rows else 0.0, rows)

    def present(self, grouped: exp.Table) -> tuple[Criterion, ...]:
        """δ-presence, of all rows of the source: those that are suppressed belong to it.

        Raises
        ------
        VerificationError
            If the share of a class is not within the bounds.
        """
        presence = self.plan.presence
        if presence is None:
            return ()
        found = self.shares(grouped)
        if not all(m.met for m in found):
            raise VerificationError.at(
                self.plan.key, f"the release failed its re-check: a class fails {NAME_OF_PRESENCE}"
            )
        promises = (presence.promise, presence.promise_of_least)
        return tuple(
            Criterion(m.name, None, m.asked, m.achieved or 0.0, p) for m, p in zip(found, promises, strict=False)
        )

    def shares(self, source: exp.Table) -> tuple[Measured, ...]:
        """The greatest share of a class of the population that is in the source; and the least, where one is asked for.

        Parameters
        ----------
        source
            Classes of all of its rows.
        """
        presence = self.plan.presence
        if presence is None:
            return ()
        asked = {"population": self.grouped, "columns": self._names, **presence.sql}
        row = self.engine.row("tables/verify/measure_presence", grouped=source, **asked)
        most, least = (None if row[side] is None else float(row[side]) for side in ("most", "least"))
        found = [Measured(NAME_OF_PRESENCE, None, float(presence.most), most, met=not row["above"])]
        if presence.least:
            found.append(Measured(LEAST, None, float(presence.least), least, met=not row["below"]))
        return tuple(found)

    def achieved(self, grouped: exp.Table, source: exp.Table) -> tuple[Criterion, ...]:
        """k-map of what was written, and δ-presence of the source at its levels; those that are asked for.

        Raises
        ------
        VerificationError
            If a released class fails k-map, or a class of the population δ-presence.
        """
        asked, present = self.plan.k_map, self.present(source)
        if asked is None:
            return present
        found = self.measure(grouped)
        if found.least < asked and found.rows:
            raise VerificationError.at(self.plan.key, f"the release failed its re-check: a class fails {NAME}")
        name, promise = (
            (WEIGHED, promise_by_weights(asked)) if self.plan.weight is not None else (NAME, promise_of(asked))
        )
        return (Criterion(name, None, asked, found.least, promise), *present)

    def measured(self, found: Mapped, source: exp.Table) -> tuple[Measured, ...]:
        """k-map of any table with the columns, and δ-presence of the source; met or not.

        Parameters
        ----------
        found
            Of the table (`measure`).
        source
            Classes of all rows of the source, at the levels of the table.
        """
        asked, shares = self.plan.k_map, self.shares(source)
        if asked is None:
            return shares
        name = WEIGHED if self.plan.weight is not None else NAME
        return (Measured(name, None, asked, float(found.least), found.least >= asked or not found.rows), *shares)

    @property
    def _names(self) -> list[exp.Identifier]:
        return [identifier(f"q{i}") for i in range(len(self.plan.qis))]

    def _map(self, grouped: exp.Table) -> exp.Table:
        return self.engine.make(
            "tables/verify/map_classes",
            f"{self.plan.name}_verify_mapped",
            grouped=grouped,
            population=self.grouped,
            columns=self._names,
        )
