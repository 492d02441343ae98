"""Plan a table release from the job and the catalogue; no row is read, and `--plan` prints the plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from sqlglot import exp

from sqldeid import job as jobfile
from sqldeid.catalogue.columns import Find, columns_of, finder
from sqldeid.catalogue.relations import filtered, outward_in, resolve
from sqldeid.engine.base import Column, Engine
from sqldeid.engine.opening import guessed_types
from sqldeid.errors import JobError
from sqldeid.hierarchy import HierarchySource, open_source
from sqldeid.ledger.hashing import spelling
from sqldeid.sql import column, identifier
from sqldeid.tables.criteria import ClassCriterion, MConcealing, OverallRisk
from sqldeid.tables.model.lattice import Lattice
from sqldeid.tables.plan.columns import (
    Disguise,
    OtherColumn,
    QuasiIdentifier,
    Uncovered,
    refuse_lists,
    released_value,
    travel_type,
)
from sqldeid.tables.plan.cut import cut_hierarchy
from sqldeid.tables.plan.demands import Demands, Seeking, demands_of, seeking_of
from sqldeid.tables.plan.stack import Stacked, outward_stacks, plan_stacks, stacked_keys
from sqldeid.tables.plan.versions import Versions, versions_of

if TYPE_CHECKING:
    from sqldeid.tables.criteria.delta_presence import DeltaPresence
    from sqldeid.tables.plan.aggregated import Aggregated

__all__ = ["OtherColumn", "QuasiIdentifier", "TablePlan", "plan", "released_value", "travel_type"]


@dataclass(frozen=True, slots=True)
class TablePlan:
    """One table release, resolved against the catalogue.

    Parameters
    ----------
    name, key
        The release and its place in the job file (``tables.patients``).
    source
        What the statements read: a table, or a subquery with the job's filter. `joined` says that it is a query,
        which is run once and kept.
    columns
        Every named column in the order of the job.
    outward
        What looks across rows, of the job's SQL (joins, windows, aggregates) or as types that were guessed from all
        rows; guarantees per person rest on looking at one person's rows only.
    stacked
        What child tables add (`shape.keep` puts it together): then `source` is the job's source before its filter and
        without those columns, and only what `keep` returns is the input.
    person_type
        How the person key's values are spelt (`ledger.hashing.spelling`).
    followed
        The release of series that is linked to this one; it is made and checked with it. Empty where there is none.
    versions
        Columns that tell versions of codes.
    filtered
        Whether the job filters the source (`where`).
    many
        Whether a person may have many rows (`rows = "many"`): criteria then count the persons of a class.
    as_text
        Whether the job wants every quasi-identifying column as text at every level.
    computed, frozen
        Whether the release is a view of the source, and whether the job states that the source never changes.
    attacks
        Whether what is written is attacked, and the data holder told what succeeds; of a join never.
    secrets
        Released columns whose values attackers try to infer, beside the sensitive ones.
    stated
        The job's keys for the release, as it states them; of a join none.
    population
        The table of all persons of whom the source holds some (`mapped`), with the same quasi-identifying columns.
    sample, drawn
        Share of the persons that a release is of, chosen by the custodian's key; whether `source` holds them alone.
    rest, keyed
        Whether the population is the source before its filter; whether it is known by a column of the person key's name
        that it has each person once, so that this is checked.
    weight
        The column of the population that tells for how many persons a row stands; None where each is one.
    numbered
        Whether the source is a table as it stands (no view, which may be slow to read) and its persons are integers:
        then keys are counted by their range where that is quicker.
    """

    way: ClassVar[Literal["lattice"]] = "lattice"
    name: str
    key: str
    source: exp.Expr
    source_label: str
    joined: bool
    person: str | None
    columns: tuple[QuasiIdentifier | OtherColumn, ...]
    demands: Demands
    search: Seeking
    outward: tuple[str, ...] = ()
    stacked: Stacked | None = None
    person_type: str = ""
    followed: str = ""
    versions: tuple[Versions, ...] = ()
    filtered: bool = False
    many: bool = False
    as_text: bool = False
    computed: bool = False
    frozen: bool = False
    attacks: bool = False
    secrets: tuple[str, ...] = ()
    stated: Mapping[str, Any] = field(default_factory=dict)
    population: exp.Expr | None = None
    numbered: bool = False
    rest: bool = False
    keyed: bool = False
    sample: Fraction | None = None
    drawn: bool = False
    weight: exp.Column | None = None

    @property
    def qis(self) -> tuple[QuasiIdentifier, ...]:
        """The quasi-identifying columns."""
        return tuple(c for c in self.columns if isinstance(c, QuasiIdentifier))

    @property
    def others(self) -> tuple[OtherColumn, ...]:
        """The columns that are released as they stand."""
        return tuple(c for c in self.columns if isinstance(c, OtherColumn) and c.released and not c.aggregated)

    @property
    def aggregated(self) -> tuple[Aggregated, ...]:
        """The columns of which each row shows a statistic of its class."""
        return tuple(cast("Aggregated", c) for c in self.columns if isinstance(c, OtherColumn) and c.aggregated)

    @property
    def released(self) -> tuple[QuasiIdentifier | OtherColumn, ...]:
        """The columns of the release, in order."""
        return tuple(c for c in self.columns if isinstance(c, QuasiIdentifier) or c.released)

    @property
    def criteria(self) -> tuple[ClassCriterion, ...]:
        """The criteria beyond k-anonymity, in the order of the job."""
        return self.demands.criteria

    @property
    def sampled(self) -> bool:
        """Whether a secret sample is released (`epsilon-safe`)."""
        return self.search.method == "epsilon-safe"

    @property
    def concealing(self) -> MConcealing | None:
        """The job's m-concealing."""
        return self.demands.concealing

    @property
    def overall(self) -> OverallRisk | None:
        """What all released classes must meet together, by their sizes."""
        return self.demands.overall

    @property
    def beyond_k(self) -> bool:
        """Whether classes are judged by more than their rows: by criteria beyond k, or by their persons."""
        return bool(self.criteria) or self.concealing is not None or self.many or self.mapped

    @property
    def k_map(self) -> int | None:
        """Persons of the population that each released class fits, at least."""
        return self.demands.k_map

    @property
    def presence(self) -> DeltaPresence | None:
        """The shares of the population's classes that may be in the source."""
        return self.demands.presence

    @property
    def mapped(self) -> bool:
        """Whether classes are judged by a population."""
        return self.k_map is not None or self.presence is not None

    @property
    def unit(self) -> str:
        """What k counts: "person", or "row" where no key tells persons."""
        return "row" if self.person is None else "person"

    @property
    def judged(self) -> tuple[OtherColumn, ...]:
        """The sensitive columns that criteria speak of."""
        return tuple(c for c in self.others if c.name in self.demands.named)

    @property
    def lattice(self) -> Lattice:
        """The nodes to choose from."""
        return Lattice(tuple(q.hierarchy.height for q in self.qis))

    @property
    def text(self) -> bool:
        """Whether level 0 is released as text: asked for, or because blanked rows share the column."""
        return self.as_text or self.demands.blanks

    @property
    def person_column(self) -> exp.Column | None:
        """The person key, which every template finds in `s`."""
        return column(self.person, "s") if self.person else None

    def with_m(self, m: float | None) -> TablePlan:
        """The plan with the m that a search found; release and re-check go by it."""
        return replace(self, demands=self.demands.with_m(m))


def sensitive_of(part: jobfile.Table) -> tuple[str, ...]:
    """The sensitive columns of a release, in the order of the job."""
    return tuple(name for name, c in part.every_column.items() if c.role == "sensitive")


def plan(name: str, part: jobfile.Table, engine: Engine, folder: Path) -> TablePlan:
    """Resolve one table release against the catalogue; no row is read but those of hierarchies in the database.

    Raises
    ------
    JobError
        If a table, column or hierarchy is not there or not fit; if it is a child table, which is no table of classes.
    """
    if part.parent is not None:
        raise JobError.at(
            f"tables.{name}.parent",
            "this is for tables with classes of their own, and a child table has its parent's; choose another release "
            "with --only",
        )
    return resolve_child(name, part, engine, folder)


def resolve_child(name: str, part: jobfile.Table, engine: Engine, folder: Path) -> TablePlan:
    """The same of a child table, too: its source and columns, for whoever gives it its parent's classes."""
    key = f"tables.{name}"
    relation, label = resolve(part.source, engine, f"{key}.source")
    there = columns_of(relation, engine, f"{key}.source")
    stacked = plan_stacks(part, relation, there, label, engine, key)
    find = finder((*there, *(stacked.columns if stacked else ())), label)
    if part.where is not None and stacked is None:
        relation = filtered(relation, part.where, engine, f"{key}.where")
    joined: Mapping[str, Column] = {}
    if any(c.version is not None for c in part.columns.values()):
        from sqldeid.tables.plan.mixed import with_versions

        relation, joined = with_versions(relation, part, finder(there, label), engine, folder, key)
    demands = demands_of(part.privacy, sensitive_of(part), folder, key)
    around = _Around(part, find, demands.named, key, folder, engine, joined)
    columns = tuple(_column(n, c, around) for n, c in part.every_column.items())
    versions = versions_of(columns, there, stacked, part, engine, key)
    person = finder(there, label)(part.person, f"{key}.person") if part.person is not None else None
    if person is not None:
        _refuse_released_person({person.name, *stacked_keys(stacked, person.name)}, columns, key)
    population, keyed = _population(part, relation, columns, engine, key)
    return TablePlan(
        name,
        key,
        relation,
        label,
        isinstance(part.source, jobfile.Query),
        person.name if person else None,
        columns,
        demands,
        seeking_of(part.search),
        (*_outward(part), *guessed_types(engine)),
        stacked=stacked,
        person_type=spelling(person) if person else "",
        versions=versions,
        filtered=part.where is not None,
        many=part.many,
        as_text=part.text,
        computed=part.view == "computed",
        frozen=part.frozen,
        attacks=part.attacks,
        secrets=tuple(part.secrets),
        stated=part.model_dump(mode="json", by_alias=True, exclude_unset=True),
        population=population,
        keyed=keyed,
        weight=_weight(part, finder(there, label), key),
        sample=None if part.sample is None else Fraction(repr(part.sample)),
        rest=part.privacy.population is not None and part.privacy.population.rest is True,
        numbered=person is not None and person.kind == "integer" and stacked is None and _stands(relation, engine),
    )


def _population(
    part: jobfile.Table,
    source: exp.Expr,
    columns: Sequence[QuasiIdentifier | OtherColumn],
    engine: Engine,
    key: str,
) -> tuple[exp.Expr | None, bool]:
    if part.privacy.population is None:
        return None, False
    from sqldeid.tables.plan.population import population_of

    return population_of(part, source, columns, engine, key)


def _weight(part: jobfile.Table, find: Find, key: str) -> exp.Column | None:
    if part.privacy.population is None:
        return None
    from sqldeid.tables.plan.population import weight_of

    return weight_of(part, find, key)


def _outward(part: jobfile.Table) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*outward_in(part.source, [part.where]), *outward_stacks(part)]))


@dataclass(frozen=True, slots=True)
class _Around:
    """What a column stands in: its release, the source's columns, those that criteria look at, codes with versions."""

    table: jobfile.Table
    find: Find
    judged: set[str]
    key: str
    folder: Path
    engine: Engine
    joined: Mapping[str, Column]


def _column(name: str, part: jobfile.Column, around: _Around) -> QuasiIdentifier | OtherColumn:
    table, key = around.table, f"{around.key}.columns.{name}"
    source = around.joined.get(name) or around.find(name, key)
    if source.kind == "other" and name in around.judged:
        raise JobError.at(
            key, f"no criterion compares values of type {source.shown_type}; cast it to text in a source query"
        )
    _refuse_unordered(name, source, table.privacy, around.key)
    _refuse_unfit(source, part, key)
    if part.role != "quasi-identifying":
        other = OtherColumn(name, source, part.role, _disguise(part), part.top_code, part.to)
        if other.released:
            refuse_lists(source, key)
        return other
    if source.kind == "other":
        raise JobError.at(
            key, f"a column of type {source.shown_type} cannot be quasi-identifying; cast it to text in a source query"
        )
    _refuse_zoned(source, part, key)
    if isinstance(part.hierarchy, jobfile.HierarchyRule) and part.hierarchy.aggregate is not None:
        from sqldeid.tables.plan.aggregated import aggregate

        return aggregate(name, source, part, key)
    weights: Mapping[str, float] = table.search.weights
    uncovered: Uncovered = "top" if table.search.method == "epsilon-safe" else part.uncovered
    return QuasiIdentifier(
        name,
        source,
        cut_hierarchy(_hierarchy(part, key, around), part, source, uncovered, key),
        uncovered,  # no refusal of epsilon-safe may depend on the rows
        Fraction(repr(float(weights.get(name, 1.0)))),
        part.top_code,
        *_reads(part),
    )


def _reads(part: jobfile.Column) -> tuple[bool, bool]:
    """Whether a column's hierarchy stands in the database, and whether it follows links there."""
    rule = part.hierarchy
    there = isinstance(rule, jobfile.HierarchyRule) and rule.in_database
    return there, isinstance(rule, jobfile.HierarchyRule) and rule.parents is not None


def _disguise(part: jobfile.Column) -> Disguise | None:
    if part.pseudonym:
        return "pseudonym"
    return None if part.shift is None else "shift" if part.shift == "person" else "birth"


_FITTING = {
    "pseudonym": ("integer", "number", "text"),
    "shift": ("date", "timestamp"),
    "to": ("date", "timestamp"),
    "top_code": ("integer", "number", "float"),
}


def _refuse_unfit(source: Column, part: jobfile.Column, key: str) -> None:
    """A pseudonym is of a whole number, exact number or text; a shift of dates; a top code of numbers."""
    for name, kinds in _FITTING.items():
        if getattr(part, name) is not None and source.kind not in kinds:
            dated = "timestamp" in kinds and source.type == _ZONED
            raise JobError.at(
                f"{key}.{name}",
                f"is for columns of {', '.join(kinds[:-1])} or {kinds[-1]}, not of type "
                f"{source.shown_type}; {_unzoned(source) if dated else 'cast it in a source query'}",
            )


_ZONED = "TIMESTAMP WITH TIME ZONE"


def _unzoned(source: Column) -> str:
    """How a moment gets a date and a time of day: every engine reads it in UTC, and no job's SQL in another zone."""
    name = source.name if source.name.isidentifier() else identifier(source.name).sql(dialect="duckdb")
    return (
        f"write CAST({name} AS TIMESTAMP) AS {name} in a source query, which reads it in UTC; for another zone, name "
        f"as source a view of the database with {name} AT TIME ZONE 'Europe/Berlin' AS {name}, for example"
    )


def _refuse_zoned(source: Column, part: jobfile.Column, key: str) -> None:
    """A moment has no date before someone chooses a time zone."""
    dates = isinstance(part.hierarchy, jobfile.HierarchyRule) and part.hierarchy.dates is not None
    if dates and source.type == _ZONED:
        raise JobError.at(key, f"a column of type {source.type} has no dates of its own; {_unzoned(source)}")


def _refuse_unordered(name: str, source: Column, privacy: jobfile.Privacy, key: str) -> None:
    """Text in the order of its letters has no distances."""
    for close in privacy.t_closeness:
        unordered = close.distance == "ordered" and close.order is None and source.kind in ("text", "boolean")
        if close.column == name and unordered:
            raise JobError.at(
                f"{key}.privacy.t_closeness",
                f"{name} is of type {source.shown_type}, which has no order; "
                'give order = [ … ] from low to high, or distance = "equal"',
            )


def _hierarchy(part: jobfile.Column, key: str, around: _Around) -> HierarchySource:
    spec = part.hierarchy
    if spec is None:
        raise JobError.at(key, "a quasi-identifying column needs a hierarchy")
    if isinstance(spec, jobfile.HierarchyRule) and spec.median is not None:
        raise JobError.at(key, 'search.method = "mondrian" has no lattice; only anonymize and verify take it')
    try:
        if isinstance(spec, jobfile.HierarchyRule) and spec.in_database:
            from sqldeid.tables.plan.in_database import open_in_database

            return open_in_database(spec, around.table, around.engine, f"{key}.hierarchy")
        return open_source(spec if isinstance(spec, str) else spec.to_mapping(), around.folder)
    except JobError as error:
        if error.key:
            raise
        raise type(error).at(key, error.message) from None


def _stands(relation: exp.Expr, engine: Engine) -> bool:
    """Whether a relation is a table of the database, not a view or a query."""
    if not isinstance(relation, exp.Table):
        return False
    name = tuple(part.name for part in relation.parts)
    return any(there.parts == name and not there.is_view for there in engine.relations())


def _refuse_released_person(
    keys: Collection[str], columns: tuple[QuasiIdentifier | OtherColumn, ...], key: str
) -> None:
    for c in columns:
        leaves = isinstance(c, QuasiIdentifier) or (c.released and c.disguise != "pseudonym")
        if leaves and c.source.name in keys:
            raise JobError.at(
                f"{key}.columns.{c.name}", 'the person key is never released; give it the role "identifying"'
            )
