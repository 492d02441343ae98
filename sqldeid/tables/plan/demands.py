"""What a table release must meet and how its node is sought, resolved once from the job into typed values.

A run that asks for something else than the job (another k, k alone, the m that a search found, one criterion of many)
changes these values. The job's section is never rewritten, so nothing is asked that no rule of the job has seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqldeid import job as jobfile
from sqldeid.job import EpsilonSafeSettings
from sqldeid.job.criteria import PER_CLASS
from sqldeid.job.parts import PROVING
from sqldeid.tables.criteria import (
    ClassCriterion,
    MConcealing,
    OverallRisk,
    concealing,
    criterion_of,
    delta_presence,
    others_of,
    overall_risk,
)

if TYPE_CHECKING:
    from sqldeid.tables.criteria.delta_presence import DeltaPresence
    from sqldeid.tables.criteria.estimated_map import EstimatedMap
    from sqldeid.tables.criteria.game import NoAttack

Entry = tuple[str, Mapping[str, Any]]
"""What the job asks of classes beyond k: the key of `[tables.….privacy]`, and one of the tables that it holds."""


@dataclass(frozen=True, slots=True)
class Demands:
    """What every class of a release must meet, and how many rows may be suppressed for it.

    Parameters
    ----------
    suppression_limit, criteria_limit
        Shares of rows, 0 … 1; the second is None where there is one limit for all criteria.
    suppression
        As the job says it: ``drop`` or ``blank``; `blanks` is whether rows that fail stay, blanked.
    entries
        The job's tables that ask for criteria per class, in its order.
    sensitive
        Every sensitive column: joint criteria look at each beside the others.
    overall
        What all released classes must meet together, by their sizes.
    k_map
        Persons of the population that each released class fits, at least; None where it is not asked for, or estimated.
    game
        What attackers are paid and spend, where the job states that no attack pays; its k is in `k` or `k_map`.
    presence
        The shares of the population's classes that may be in the source.
    estimated
        k-map by an estimate; `k` is at least its least class.
    weighed
        Whether k-map counts persons by a survey's weights.
    """

    k: int
    suppression_limit: float
    criteria_limit: float | None
    suppression: str
    blanks: bool
    entries: tuple[Entry, ...]
    sensitive: tuple[str, ...]
    criteria: tuple[ClassCriterion, ...]
    concealing: MConcealing | None
    overall: OverallRisk | None = None
    k_map: int | None = None
    game: NoAttack | None = None
    presence: DeltaPresence | None = None
    estimated: EstimatedMap | None = None
    weighed: bool = False

    @property
    def named(self) -> set[str]:
        """The sensitive columns that criteria beyond k look at: their own, the others of joint ones, known ones."""
        found = {name for name, _ in (self.concealing.known if self.concealing else ())}
        return found.union(*({c.column, *others_of(c)} for c in self.criteria))

    def order_of(self, column: str) -> tuple[str, ...]:
        """The order that the job states for a column's values; empty where they order themselves."""
        stated = (e["order"] for _, e in self.entries if e.get("order") is not None and e["column"] == column)
        return tuple(next(stated, ()))

    def hierarchy_of(self, column: str) -> str | None:
        """The hierarchy by which t-closeness takes distances of a column's values; None where it takes none."""
        return next((e["hierarchy"] for _, e in self.entries if e.get("groups") and e["column"] == column), None)

    def asking(self, entries: Sequence[Entry], hidden: MConcealing | None = None) -> Demands:
        """The same k and limits with other criteria beyond k."""
        found = _criteria(entries, self.sensitive)
        return replace(self, entries=tuple(entries), criteria=found, concealing=hidden)

    def k_alone(self) -> Demands:
        """Only k and its limit, and no criterion about a sensitive column."""
        alone = replace(self.asking(()), criteria_limit=None, overall=None, k_map=None, presence=None, game=None)
        return replace(alone, estimated=None)  # k stays what it asks for

    def one_by_one(self) -> Iterator[tuple[str, Demands]]:
        """Each criterion beyond k alone, with its name."""
        for key, entry in self.entries:
            yield (
                f"{key} of {entry['column']}",
                replace(self.asking([(key, entry)]), overall=None, k_map=None, presence=None),
            )
        if self.concealing is not None:
            yield "m_concealing", replace(self.asking((), self.concealing), overall=None, k_map=None, presence=None)
        if self.overall is not None:
            yield "average_risk and at_risk", replace(self.asking(()), k_map=None, presence=None)
        if self.k_map is not None:
            yield "k_map", replace(self.asking(()), overall=None, presence=None)
        if self.presence is not None:
            yield "delta_presence", replace(self.asking(()), overall=None, k_map=None)

    def with_m(self, m: float | None) -> Demands:
        """The demands with the least m that `inverse-ola` reached; as they are where there is none."""
        if m is None or self.concealing is None:
            return self
        return replace(self, concealing=replace(self.concealing, m=Fraction(repr(m))))

    def beyond_k(self) -> dict[str, Any]:
        """The criteria beyond k as the job says them, by its keys; those that are not asked for are empty or None."""
        found: dict[str, Any] = {key: [_stated(e) for own, e in self.entries if own == key] for key in PER_CLASS}
        return {**found, "m_concealing": _said(self.concealing)}

    def noted(self, *, but: Collection[str] = ()) -> dict[str, Any]:
        """The criteria beyond k that are asked for, as files keep them: without keys that say nothing, or are `but`."""
        kept = {
            key: [{name: x for name, x in entry.items() if x is not None and name not in but} for entry in entries]
            for key, entries in self.beyond_k().items()
            if key in PER_CLASS
        }
        hidden = _said(self.concealing)
        overall = {} if self.overall is None else self.overall.said()
        return {**kept, **({} if hidden is None else {"m_concealing": hidden}), **overall, **self._counted()}

    def to_dict(self) -> dict[str, object]:
        """For JSON, as the job says it."""
        return {
            "k": self.k,
            "suppression_limit": self.suppression_limit,
            "criteria_limit": self.criteria_limit,
            "suppression": self.suppression,
            **self.beyond_k(),
            **({} if self.overall is None else self.overall.said()),
            **self._counted(),
        }

    def _counted(self) -> dict[str, object]:
        mapped: dict[str, object] = {} if self.k_map is None else {"k_map": self.k_map}
        mapped |= {"population": {"weights": True}} if self.weighed and mapped else {}
        mapped |= {} if self.estimated is None else self.estimated.said()
        present = {} if self.presence is None else self.presence.said()
        return {**mapped, **present, **({} if self.game is None else {"game": self.game.said()})}


BLUNT = 0.5
"""How much `blunt = true` draws."""

DRAWN_ANEW = (
    "levels were drawn in secret, and each run draws others: whoever has two releases of the same persons learns more "
    "than from each, so give out one"
)
"""What whoever blunts levels is warned of."""

_BY_NODES = frozenset({"frontier", "best-first", "flash", "ola", "datafly", "igreedy"})
"""Searches that ask for nodes alone; others read the sizes of all classes, which then travel."""


@dataclass(frozen=True, slots=True)
class Seeking:
    """How a release's node is found: the keys of the job's `search` that a lattice's methods read.

    Parameters
    ----------
    blunt
        How much levels are drawn in secret, 0 … 1; 0: they are the best ones.
    """

    method: str
    loss: str
    choose: str
    weights: Mapping[str, float]
    time_limit: float | None = None
    checks_limit: int | None = None
    max_loss: float | None = None
    epsilon_safe: EpsilonSafeSettings | None = None
    blunt: float = 0.0

    @property
    def by_nodes(self) -> bool:
        """Whether the search asks for nodes alone, so that classes may stay where the source is."""
        return self.method in _BY_NODES

    @property
    def proves(self) -> bool:
        """Whether the search proves what it finds."""
        return self.method in PROVING

    def to_dict(self) -> dict[str, object]:
        """For JSON, without what is not stated."""
        drawn = None if self.epsilon_safe is None else self.epsilon_safe.model_dump(exclude_none=True)
        said = {
            "method": self.method,
            "loss": self.loss,
            "choose": self.choose,
            "weights": dict(self.weights),
            "time_limit": self.time_limit,
            "checks_limit": self.checks_limit,
            "epsilon_safe": drawn,
            "max_loss": self.max_loss,
            "blunt": self.blunt or None,
        }
        return {key: value for key, value in said.items() if value is not None}


def demands_of(asked: jobfile.Privacy, sensitive: Sequence[str], folder: Path, key: str) -> Demands:
    """What a job asks of a release with these sensitive columns; hierarchies are sought from the job's folder.

    Raises
    ------
    JobError
        If the hierarchy of a distance is not there or not fit.
    """
    entries = tuple(
        (own, _resolved(entry.model_dump(), folder, f"{key}.privacy.{own}.hierarchy"))
        for own, listed in asked.per_class.items()
        for entry in listed
    )
    estimated = _estimated(asked)
    return Demands(
        k=asked.k if estimated is None else max(asked.k, estimated.least),
        suppression_limit=asked.suppression_limit,
        criteria_limit=asked.criteria_limit,
        suppression=asked.suppression,
        blanks=asked.blanks,
        entries=entries,
        sensitive=tuple(sensitive),
        criteria=_criteria(entries, sensitive),
        concealing=concealing(asked),
        overall=overall_risk(asked),
        k_map=asked.k_map if estimated is None else None,
        game=_game(asked),
        presence=delta_presence(asked),
        estimated=estimated,
        weighed=asked.population is not None and asked.population.weights is not None,
    )


def _estimated(asked: jobfile.Privacy) -> EstimatedMap | None:
    """The job's k-map where no table of its population is named; it is loaded where there is one."""
    if asked.population is None or asked.population.size is None or asked.k_map is None:
        return None
    from sqldeid.tables.criteria.estimated_map import EstimatedMap

    return EstimatedMap.of(asked.k_map, asked.population)


def _game(asked: jobfile.Privacy) -> NoAttack | None:
    """The job's game; it is loaded where there is one."""
    if asked.game is None:
        return None
    from sqldeid.tables.criteria.game import NoAttack

    return NoAttack.of(asked.game)


def seeking_of(asked: jobfile.Search) -> Seeking:
    """How a job wants a node to be sought."""
    return Seeking(
        method=asked.method,
        loss=asked.loss,
        choose=asked.choose,
        weights=asked.weights,
        time_limit=asked.time_limit,
        checks_limit=asked.checks_limit,
        max_loss=asked.max_loss,
        epsilon_safe=asked.epsilon_safe,
        blunt=BLUNT if asked.blunt is True else float(asked.blunt),
    )


def _resolved(entry: Mapping[str, Any], folder: Path, key: str) -> Mapping[str, Any]:
    """An entry with the values that its hierarchy names, and their groups; any other as it is."""
    if entry.get("hierarchy") is None:
        return entry
    from sqldeid.tables.plan.distances import grouped

    return grouped(entry, folder, key)


def _stated(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry without the values that its hierarchy names, which no note and no result tells."""
    return {name: x for name, x in entry.items() if "groups" not in entry or name not in ("order", "groups")}


def _criteria(entries: Sequence[Entry], sensitive: Sequence[str]) -> tuple[ClassCriterion, ...]:
    return tuple(criterion_of(key, entry, sensitive) for key, entry in entries)


def _said(hidden: MConcealing | None) -> dict[str, object] | None:
    """m-concealing as the job says it."""
    if hidden is None:
        return None
    return {"m": float(hidden.m), "known": dict(hidden.known), "inclusion": float(hidden.inclusion)}
