"""Frozen results: what a run returns and `--json` writes. Fields are only ever added (interface.md, *Result*).

Everything here but `Result.to_public` is for the data holder: counts about suppressed people are statistics about
people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from sqldeid.attacked import Attacks
from sqldeid.traded import Tradeoff

if TYPE_CHECKING:
    from sqldeid.notebook import Released

Tree = Mapping[str, Any]
"""A result, or a part of one, as `to_dict` gives it and `--json` writes it."""

HOLDER = "for the data holder only: counts of suppressed rows and of the source are statistics about people"

CHOICES = {
    "by-all": "The levels were chosen by all criteria, so they tell that levels which lose less failed one. No "
    "criterion bounds what that adds for somebody who knows everybody's quasi-identifying values and how levels are "
    "chosen: in some tables nothing; at worst, where finer levels have at least k persons a class, somebody's "
    "sensitive value, with certainty. The data holder can measure a part (documentation: What the choice of a node "
    "tells).",
    "by-k": "The levels were chosen by k-anonymity alone, from quasi-identifying values: they tell nothing of "
    "sensitive ones. A class of at least k persons that is missing failed another criterion.",
}
"""What the choice of the node tells, of releases with criteria beyond k; for whoever reads the release."""

HOLDERS_ONLY = ("loss", "example")
"""What of a column does not go with the release."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """A privacy criterion: what was asked, what the release achieves, and the promise in words.

    `against_released` is t-closeness against the released rows, which a reader can check; what is asked for and
    achieved is against all input rows. None for other criteria.
    """

    name: str
    column: str | None
    asked: float
    achieved: float
    guarantee: str
    against_released: float | None = None


@dataclass(frozen=True, slots=True)
class Code:
    """A value that released rows show, and what it stands for.

    `stands_for` are values of a hierarchy that comes with the program, so none is known of the source: at most a few
    of the `of` that it has; or the bounds that a rule names. Of others, whose leaves may be somebody's, there are none.
    """

    shown: str
    stands_for: tuple[str, ...] = ()
    of: int = 0


@dataclass(frozen=True, slots=True)
class ColumnResult:
    """A released column: its level of `height` levels (0 = original), and its own part of the loss (0 … 1).

    `shown` says what became of its values beside that: a pseudonym, a shifted date, a number cut at the top.
    `example` is a frequent value's label at every level; for the data holder. `type` is that of the released column;
    `codes` are values that its rows show, where they are coarser than the source's; `more_codes` says that there are
    further ones.
    """

    role: str
    level: int | None = None
    level_name: str | None = None
    height: int | None = None
    hierarchy: str | None = None
    loss: float | None = None
    shown: str | None = None
    example: tuple[str, ...] | None = None
    type: str | None = None
    codes: tuple[Code, ...] | None = None
    more_codes: bool | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """A criterion of a job, measured on any table: what is asked, what its worst class achieves, whether all meet it.

    `achieved` is None for a table without rows, and where a class has fewer than l values for recursive l-diversity.
    `against_released`: t-closeness of a release against its own rows, not those of the source; else None.
    """

    name: str
    column: str | None
    asked: float
    achieved: float | None
    met: bool
    against_released: float | None = None


@dataclass(frozen=True, slots=True)
class Uniqueness:
    """The share of a population's persons who are alone in their class, as one estimator has it from a sample.

    Parameters
    ----------
    estimator
        Its author, or the model: Zayatz, Pitman, SNB (slide negative binomial), Dankar (which chooses among them).
    share, low, high
        0 … 1: the estimate, and an interval of 95 % for the chance of sampling. It leaves out that a model may not fit.
    chosen
        Of Dankar's rule, the estimator that it took.
    """

    estimator: str
    share: float
    low: float
    high: float
    chosen: str | None = None


@dataclass(frozen=True, slots=True)
class Risk:
    """Re-identification risk from class sizes (El Emam 2013), and from sensitive columns where a job asks for it.

    Parameters
    ----------
    prosecutor
        Greatest risk of a person known to be in the table: 1 / smallest class. 0 … 1.
    marketer
        Expected share of persons that a match of all would re-identify: classes / rows; where the job has a population,
        by a match with all of its persons. 0 … 1.
    journalist
        Greatest risk of a person not known to be in the table: 1 / persons of the population who fit the class that
        fewest fit (1 where one fits none); without a population table it is the prosecutor's.
    class_sizes
        (class size, number of classes), ascending.
    rows_below
        Rows in classes smaller than 2, 3, 5 and 11.
    one_over_m
        Persons that the riskiest one hides among when the columns of the job's m_concealing may be known (Mazzone
        2019, §5.2); None where it was not measured.
    worst_state
        The known columns of the knowledge state that adds most to that greatest risk.
    criteria
        The job's criteria beyond k, as `assess` measures them.
    uniqueness
        Estimates of how many persons of the population are alone, where the job states its size alone.
    counted
        What a class is as large as it has of: "persons", each of one row or of many; "rows" where no key tells persons.
    rows, greatest_share
        Where a person may have many rows: all rows, and the greatest share of a class's rows that are one person's.
    """

    prosecutor: float
    marketer: float
    journalist: float
    journalist_is_prosecutor: bool
    class_sizes: tuple[tuple[int, int], ...]
    rows_below: Mapping[int, int]
    one_over_m: float | None = None
    worst_state: tuple[str, ...] = ()
    criteria: tuple[Measured, ...] = ()
    counted: str = "persons"
    rows: int | None = None
    greatest_share: float | None = None
    uniqueness: tuple[Uniqueness, ...] = ()

    def _repr_html_(self) -> str:
        """What a notebook shows; for the data holder."""
        from sqldeid.notebook import html_of_risk

        return html_of_risk(self)


def risk_of_persons(sizes: Iterable[tuple[int, int, int]], share: float | None = None) -> Risk:
    """Risk where a person may have many rows, from (persons in a class, classes with so many, rows in these).

    The marketer guesses of each row whose of its class's persons it is.

    Parameters
    ----------
    share
        The greatest share of a class's rows that are one person's, where it was counted.
    """
    found = sorted(sizes)
    rows = sum(n for _, _, n in found)
    prosecutor = 1 / found[0][0] if found else 0.0
    return Risk(
        prosecutor=prosecutor,
        marketer=sum(n / persons for persons, _, n in found) / rows if rows else 0.0,
        journalist=prosecutor,
        journalist_is_prosecutor=True,
        class_sizes=tuple((persons, classes) for persons, classes, _ in found),
        rows_below={limit: sum(n for persons, _, n in found if persons < limit) for limit in (2, 3, 5, 11)},
        rows=rows,
        greatest_share=share,
    )


def risk_of(sizes: Mapping[int, int], counted: str = "persons") -> Risk:
    """Risk from a class-size histogram (size -> classes); an empty table has none."""
    rows = sum(size * classes for size, classes in sizes.items())
    prosecutor = 1 / min(sizes) if sizes else 0.0
    return Risk(
        prosecutor=prosecutor,
        marketer=sum(sizes.values()) / rows if rows else 0.0,
        journalist=prosecutor,
        journalist_is_prosecutor=True,
        class_sizes=tuple(sorted(sizes.items())),
        rows_below={limit: sum(s * c for s, c in sizes.items() if s < limit) for limit in (2, 3, 5, 11)},
        counted=counted,
    )


@dataclass(frozen=True, slots=True)
class Persons:
    """The persons of a release, where one may have many rows (`rows = "many"`).

    Parameters
    ----------
    persons, lost, partly
        Persons of the source; those of whom no row is released; those of whom some rows are not.
    k
        Least persons in a released class; 0 for an empty release.
    sizes
        (persons in a class, classes with so many, rows in these), of the release, ascending.
    greatest_share
        The greatest share of the rows of a released class that are one person's: who picks a row of a class for a
        person whom he knows to have most rows there is right as often. 0 … 1.
    """

    persons: int
    lost: int
    partly: int
    k: int
    sizes: tuple[tuple[int, int, int], ...]
    greatest_share: float


@dataclass(frozen=True, slots=True)
class SearchResult:
    """How the node was found; `gap` is best loss − proven bound in the loss's unit, 0 if `optimal`.

    With `choose` "by-k" node, gap and optimum are about k alone: `chosen_loss` is the loss that the node has with what
    k suppresses, `suppressed_beyond_k` the rows of classes of k and more that were suppressed for other criteria, of
    which `criteria_limit` is the greatest share of all rows. None with "by-all".
    """

    method: str
    loss: str
    optimal: bool
    gap: float
    lattice_size: int
    checks: int
    statements: int
    seconds: float
    certificate: str | None = None
    choose: str = "by-all"
    chosen_loss: float | None = None
    suppressed_beyond_k: int | None = None
    criteria_limit: float | None = None


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The node that is one level finer in one column, and why it was not chosen.

    `suppressed` are the rows that fail there by k alone, where that is more than is `allowed`; else by every criterion.
    `loss` is None where too many fail; else the node is admissible, and loses at least as much.
    """

    column: str
    level: int
    suppressed: int
    allowed: int
    loss: float | None


@dataclass(frozen=True, slots=True)
class SetRisk:
    """What a set of quasi-identifying columns tells apart in the source.

    `alone` are rows in a class of their own, `below_k` rows in classes smaller than k.
    """

    columns: tuple[str, ...]
    alone: int
    below_k: int


@dataclass(frozen=True, slots=True)
class TableRelease:
    """One table release (interface.md, *Result*).

    `certificate` is the search's proof where it was asked for; `search.certificate` is the file it was written to.
    `ledger` says how many rows the release ledger holds back for a later load; they count in `rows` only.
    `policy` packs what `--policy` uses again: node, criteria, hierarchies with their leaves (data values).
    `loss` counts suppressed rows in "loss" alone; the others are the node's before suppression.
    `neighbours` are the nodes just below the released one; `tradeoff` what other k and limits cost and
    `uniqueness` what sets of columns tell apart in the source, where a report was asked for.
    `pseudonymised` names the columns that hold pseudonyms; a release that has any is pseudonymised, not anonymous.
    `followed` names the series that have the same person_number, with what the link cost: persons lost on either side.
    `unit` is what k and every risk count: "person", or "row" where no key tells persons. `persons` says how many
    there are, where one may have many rows; `k` is then of persons, `released` and `suppressed` are of rows.
    `linked` says with which releases it can be joined, their common node, and how many persons they do not share; then
    counts, losses, risks and criteria are those of the join.
    `attacks` says what attackers achieve on it; None where the job asks for none.
    """

    name: str
    rows: int
    released: int
    suppressed: int
    node: Mapping[str, int]
    k: int
    classes: int
    criteria: tuple[Criterion, ...]
    one_over_m: float
    loss: Mapping[str, float]
    columns: Mapping[str, ColumnResult]
    risk: Mapping[str, Risk]
    suppression_by: Mapping[str, Mapping[str, float]]
    search: SearchResult
    written: tuple[str, ...]
    moved: Mapping[str, int]
    warnings: tuple[str, ...]
    kind: str = "table"
    certificate: Mapping[str, object] | None = None
    guarantee: Mapping[str, object] | None = None
    pseudonymised: tuple[str, ...] = ()
    policy: Callable[[], Mapping[str, object]] | None = field(default=None, repr=False, compare=False)
    ledger: Mapping[str, object] | None = None
    neighbours: tuple[Neighbour, ...] = ()
    tradeoff: Tradeoff | None = None
    uniqueness: tuple[SetRisk, ...] = ()
    linked: Mapping[str, Any] | None = None
    followed: Mapping[str, Any] | None = None
    suppression_limit: float | None = None
    unit: str = "person"
    persons: Persons | None = None
    attacks: Attacks | None = None

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""
        found = asdict(replace(self, certificate=None, policy=None, attacks=None))
        del found["name"], found["certificate"], found["policy"], found["attacks"]
        if self.attacks is not None:
            found["attacks"] = self.attacks.to_dict()
        if self.policy is not None:
            found["policy"] = dict(self.policy())
        for name in ("guarantee", "pseudonymised", "ledger", "tradeoff", "uniqueness", "linked", "followed", "persons"):
            if not found[name]:
                del found[name]
        found["columns"] = {n: {k: v for k, v in c.items() if v is not None} for n, c in found["columns"].items()}
        return {"kind": found.pop("kind"), **found}

    def to_public(self) -> dict[str, object]:
        """What may go with the release: columns, levels and promises; no count, no loss."""
        columns = {n: _known(c) for n, c in self.columns.items()}
        criteria = [
            {"name": c.name, "column": c.column, "asked": c.asked, "guarantee": c.guarantee} for c in self.criteria
        ]
        found: dict[str, object] = {"kind": self.kind, "node": dict(self.node)}
        found |= {"columns": columns, "criteria": criteria}
        if self.suppression_limit is not None and self.guarantee is None:
            found["suppression_limit"] = self.suppression_limit
            found |= {} if (more := self.search.criteria_limit) is None else {"criteria_limit": more}
        if len(self.criteria) > 1:
            found["choice"] = CHOICES[self.search.choose]
        found |= {"blanked": True} if self.released + self.suppressed > self.rows else {}
        if self.pseudonymised:
            found |= {"pseudonymised": list(self.pseudonymised), "status": "pseudonymised, not anonymous"}
        if self.linked:
            found["linked"] = list(self.linked["with"])
        if self.followed:
            found["followed"] = self.followed["series"]
        return found


def _known(column: ColumnResult) -> dict[str, object]:
    """What may be published of a column."""
    return {name: value for name, value in asdict(column).items() if value is not None and name not in HOLDERS_ONLY}


@runtime_checkable
class Told(Protocol):
    """What tells of itself on a terminal: releases and re-checks of series and events."""

    def facts(self) -> list[tuple[str, object]]:
        """Line by line: what it is, and what is said of it; no data value."""


class Release(Protocol):
    """What every kind of release tells of itself; each is a frozen dataclass with these fields and more."""

    @property
    def name(self) -> str:
        """The release's name in the job."""

    @property
    def kind(self) -> str:
        """``table``, ``series`` or ``events``."""

    @property
    def written(self) -> tuple[str, ...]:
        """Where it was written."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What deserves a second look, one sentence each."""

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""

    def to_public(self) -> dict[str, object]:
        """What may go with the release."""


@dataclass(frozen=True, slots=True)
class Result:
    """A run: its releases by name (`TableRelease`, `SeriesRelease`, `EventsRelease`).

    `job` is the job file's name, `finished` the time in UTC (ISO 8601), `versions` those of what computed it;
    `joinable` the pairs of releases that were compared (`sqldeid.run.joinable`), `house_rules` the rules that the job
    was held to and met, with their exceptions. `page` writes the report: results
    know nothing of reports, so the run brings it. `tables_in_memory` are Arrow tables: what was released of frames.
    """

    releases: Mapping[str, Any]
    sqldeid: str
    job_sha256: str
    source: Mapping[str, object]
    seconds: float
    warnings: tuple[str, ...] = ()
    job: str = ""
    finished: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    joinable: tuple[Mapping[str, object], ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)
    house_rules: tuple[Mapping[str, object], ...] = ()
    page: Callable[[Mapping[str, object]], str] = field(kw_only=True, repr=False, compare=False)
    tables_in_memory: Mapping[str, Any] = field(default_factory=dict, kw_only=True, repr=False, compare=False)

    def __getitem__(self, name: str) -> Released:
        """A release by its name, with its rows where it was made from frames."""
        from sqldeid.notebook import Released

        return Released(self.releases[name], self.tables_in_memory.get(name))

    def __repr__(self) -> str:
        """Its releases by name: a notebook keeps this text beside what it shows, unseen, so it holds no value."""
        return f"<Result of {', '.join(f'{name} ({r.kind})' for name, r in self.releases.items())}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: per release the figures asked for first; for the data holder."""
        from sqldeid.notebook import html_of_result

        return html_of_result(self.releases)

    @property
    def tables(self) -> dict[str, TableRelease]:
        """The table releases among them."""
        return {name: r for name, r in self.releases.items() if isinstance(r, TableRelease)}

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""
        return {
            "audience": HOLDER,
            "releases": {name: release.to_dict() for name, release in self.releases.items()},
            "sqldeid": self.sqldeid,
            "job_sha256": self.job_sha256,
            "source": dict(self.source),
            "seconds": self.seconds,
            "warnings": list(self.warnings),
            "job": self.job,
            "finished": self.finished,
            "versions": dict(self.versions),
            **({"joinable": [dict(pair) for pair in self.joinable]} if self.joinable else {}),
            **({"about": dict(self.about)} if self.about else {}),
            **({"house_rules": [dict(rules) for rules in self.house_rules]} if self.house_rules else {}),
        }

    def to_html(self) -> str:
        """The report for the data holder (`--report`); needs the extra `report`."""
        return self.page(self.to_dict())

    def to_public(self) -> dict[str, object]:
        """What may be published with the releases (`--public`)."""
        return {
            "releases": {name: release.to_public() for name, release in self.releases.items()},
            "sqldeid": self.sqldeid,
            **({"about": dict(self.about)} if self.about else {}),
        }
