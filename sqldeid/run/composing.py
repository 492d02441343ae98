"""Composition: what two tables of one run tell together of the persons who are in both (intersection attack).

Beside a ledger it is what a release and all earlier ones tell together; `sqldeid.ledger.core` counts that.

The attacker has two releases, knows the quasi-identifying values of everybody, and that a person is in both. In each he
finds the person's class. She is one of those who are in both classes: her *candidate set*. Where both show a sensitive
column as it is, her value is one that both classes show. Both are counted, over all persons whom both releases show.

*Does not say*
    What three and more releases tell together, nor what subtracting says of who is in one release alone: that is
    refused before (`sqldeid.run.cohorts`). No k is promised of an intersection of releases that are not linked; `link`
    releases them as one, and judges the join.

Source: Ganta, Kasiviswanathan, Smith, *Composition attacks and auxiliary information in data privacy*, 2008, §2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from sqldeid import attacked
from sqldeid.attacked import Attacks, Estimate, LeftOut, counted, percent
from sqldeid.engine.base import Engine
from sqldeid.errors import AttackFailedError, EngineError
from sqldeid.result import Release
from sqldeid.run.cohorts import Compared, Question, Trace, fold_question, known_by, never_together, spelt_apart
from sqldeid.run.joinable import spelt_alike
from sqldeid.sql import identifier

ALONE = "no other table is made with it"
APART = "the others are linked with it and judged together, or differentially private: those add their ε and δ"
EARLIER = "the ledger's earlier releases"
"""What a release that a ledger holds is attacked with: all together, and not two by two."""
FIRST = "none of its persons is in an earlier release of the ledger"
"""Why it is not."""


@dataclass(frozen=True, slots=True)
class CommonValues:
    """What both classes of a person show of a sensitive column.

    Parameters
    ----------
    one, before
        Share of the persons whose two classes have one value in common, which is then certain; and those of whom one
        class alone tells as much.
    """

    column: str
    one: Estimate
    before: Estimate

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return {"column": self.column, "one": self.one.to_dict(), "before": self.before.to_dict()}


@dataclass(frozen=True, slots=True)
class Beside:
    """What a release and another one tell together.

    Parameters
    ----------
    release
        The other one; linked ones with a plus; of a ledger all earlier ones.
    persons, smallest
        Persons whom both show, and the smallest set of those whom one of them may be; 0 where there are none.
    alone, below
        Share of these persons who are alone in both of their classes, and whose set is of fewer than the release's k.
    """

    release: str
    persons: int
    smallest: int
    alone: Estimate
    below: Estimate
    columns: tuple[CommonValues, ...]

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        shares = {"alone": self.alone.to_dict(), "below": self.below.to_dict()}
        found = {"release": self.release, "persons": self.persons, "smallest": self.smallest}
        return {**found, **shares, "columns": [c.to_dict() for c in self.columns]}


@dataclass(frozen=True, slots=True)
class Composition:
    """What a release tells beside each of the others."""

    beside: tuple[Beside, ...]

    @property
    def said(self) -> str:
        """In a few words, for the summary: beside which release most persons are alone, or else have few candidates."""
        worst = max(self.beside, key=lambda b: (b.alone.value, b.below.value))
        few = f"{percent(worst.below.value)} % have fewer candidates than k"
        return f"beside {worst.release}, {percent(worst.alone.value)} % of the persons are alone in both classes, {few}"

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""
        return {"beside": [b.to_dict() for b in self.beside]}


Composed = Mapping[str, tuple[tuple[Beside, ...], tuple[LeftOut, ...]]]
"""By release, what it tells beside others, and beside which it was not attacked."""


def compose(
    cohorts: Compared | None,
    releases: Sequence[str],
    engine: Engine,
    *,
    accounts: Mapping[str, Mapping[str, Any]],
    alone: bool,
    failed: str = "",
) -> Composed:
    """Attack each two tables of a run, before what was placed of them is dropped.

    Parameters
    ----------
    cohorts
        The tables of the run with their persons' classes; None where they are not compared.
    releases
        The table releases of the run.
    accounts
        What a ledger says of releases that it holds: these are attacked with all that it has of their persons.
    alone
        Whether no other table is made in the run; else those that are not compared have a reason of their own.
    failed
        Why it is not done, where it failed before.

    Cost of a pair: a fold of its placed rows, a statement over the classes, and one for each common sensitive column.

    Raises
    ------
    AttackFailedError
        If the engine failed and has ended the run's transaction by that.
    """
    if failed or cohorts is None:
        none = ((), (LeftOut("composition", failed or (ALONE if alone else APART)),))
        return {name: _earlier(accounts[name]) if name in accounts and not failed else none for name in releases}
    found: dict[str, list[Beside]] = {name: [] for name in releases}
    left: dict[str, list[LeftOut]] = {name: [] for name in releases}
    traces = {name: t for t in cohorts.traces for name in t.names}
    for number, (here, there) in enumerate(combinations(cohorts.traces, 2)):
        told = _attacked(cohorts.traces, here, there, engine, number)
        for i, (own, other) in enumerate(((here, there), (there, here))):
            for name in (n for n in own.names if n in found):
                if isinstance(told, str):
                    left[name].append(LeftOut("composition", told, " + ".join(other.names)))
                else:
                    found[name].append(told[i])
    for name in releases:
        for another in releases:
            if name != another and (reason := _apart(traces.get(name), traces.get(another))):
                left[name].append(LeftOut("composition", reason, another))
    return {name: (tuple(found[name]), tuple(left[name])) for name in releases}


def _earlier(account: Mapping[str, Any]) -> tuple[tuple[Beside, ...], tuple[LeftOut, ...]]:
    """What a release tells beside all that its ledger let out before."""
    found = account["intersected"]
    if not (persons := int(found["persons"])):
        return (), (LeftOut("composition", FIRST),)
    alone, below = (counted(int(found[name]), persons) for name in ("alone", "below"))
    return (Beside(EARLIER, persons, int(found["smallest"]), alone, below, ()),), ()


def _apart(here: Trace | None, there: Trace | None) -> str:
    """Why two releases are no pair of the compared ones; empty where they are."""
    if here is None or there is None:
        return "one of the two is differentially private: such releases compose by adding their ε and δ"
    return "they are linked, and the criteria are verified on their join" if here is there else ""


def with_composition(release: Release, composed: Composed) -> Release:
    """A release with what it tells beside others, where attacks were asked for."""
    told = getattr(release, "attacks", None)
    if release.name not in composed or not isinstance(told, Attacks):
        return release
    beside, left = composed[release.name]
    made = Composition(beside) if beside else None
    if made is None and not any(not one.column for one in left):
        reasons = "; ".join(f"beside {one.column} {one.reason}" for one in left) or ALONE
        left = (LeftOut("composition", reasons),)
    others = tuple(one for one in told.left_out if one.attack != "composition")
    found: Release = replace(release, attacks=replace(told, composition=made, left_out=(*left, *others)))  # type: ignore[type-var]
    return found


def _attacked(
    traces: Sequence[Trace], here: Trace, there: Trace, engine: Engine, number: int
) -> tuple[Beside, Beside] | str:
    """What two releases tell together, of each of them; or why they are not compared."""
    asked = _question(traces, here, there)
    if isinstance(asked, str):
        return asked
    try:
        return _intersected(asked, engine, number)
    except attacked.TOLERATED as error:
        reason = attacked.why_failed(error)
        try:
            engine.columns(here.table)
        except EngineError:
            raise AttackFailedError("", "composition", reason) from None
        return reason


def _question(traces: Sequence[Trace], here: Trace, there: Trace) -> Question | str:
    """By what the persons of two releases are known again; or why they are not."""
    if never_together(here, there):
        return "never_with says that nobody is given both"
    if here.cohort.many or there.cohort.many:
        return 'with rows = "many" classes count persons, who may be in many'
    for persons, members in known_by(traces):
        if persons and any(t is here for t in members) and any(t is there for t in members):
            asked = Question(persons, (), (here, there), shared=True)
            if asked.keyed and spelt_apart(here, there):
                return "their person keys are of different types, so that it is not known who is in both"
            return asked
    return "they share neither person key nor source, so that it is not known who is in both"


def _intersected(asked: Question, engine: Engine, number: int) -> tuple[Beside, Beside]:
    here, there = asked.traces
    folded = fold_question(asked, engine, f"composed_{number}")
    sides = (identifier("class0"), identifier("class1"))
    row = engine.row(
        "run/intersect_classes", folded=folded, here=sides[0], there=sides[1], here_k=here.k, there_k=there.k
    )
    columns = tuple(_common(label, asked, folded, engine) for label in _sensitive(here, there))
    engine.drop(folded)
    persons = int(row["persons"])

    def beside(other: Trace, below: str) -> Beside:
        alone = counted(int(row["alone"]), persons)
        return Beside(
            " + ".join(other.names), persons, int(row["smallest"]), alone, counted(int(row[below]), persons), columns
        )

    return beside(there, "here_below"), beside(here, "there_below")


def _sensitive(here: Trace, there: Trace) -> Iterable[str]:
    """Labels of the sensitive columns that both show as they are."""
    return (label for label in here.cohort.sensitive if label in there.cohort.sensitive)


def _common(label: str, asked: Question, folded: object, engine: Engine) -> CommonValues:
    values = spelt_alike([t.columns[label] for t in asked.traces], "t")
    sides: Iterator[dict[str, object]] = (
        {"class": identifier(f"class{i}"), "table": t.table, "value": v}
        for i, (t, v) in enumerate(zip(asked.traces, values, strict=True))
    )
    row = engine.row("run/intersect_values", folded=folded, here=next(sides), there=next(sides))
    persons = int(row["persons"])
    name = asked.traces[0].cohort.shown[label][0].name.rpartition("/")[2]
    return CommonValues(name, counted(int(row["one"]), persons), counted(int(row["before"]), persons))
