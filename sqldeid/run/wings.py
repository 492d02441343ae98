"""Find the wing of a release by its section of the job; every wing has the same face."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from shlex import quote
from typing import Any, Protocol, TypeVar

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError, SqldeidError, UnknownKindError
from sqldeid.job import Job
from sqldeid.job.link_rules import link_groups
from sqldeid.job.local_rules import BESIDE
from sqldeid.job.parts import PROVING
from sqldeid.job.rules import SECTIONS
from sqldeid.making import Checking, Making, Nature, Published, Read
from sqldeid.result import Release, Told
from sqldeid.run.parquet import refuse_types
from sqldeid.stages import Explained, Target

T = TypeVar("T")


class Plan(Protocol):
    """What a release, or several that are linked, will do, from the job and the catalogue alone."""

    @property
    def name(self) -> str:
        """The release's name; of linked ones, what they are called together."""

    @property
    def key(self) -> str:
        """Where the job asks for it: ``series.vitals``."""


class Wing(Protocol):
    """The package that a wing is."""

    def plan_unit(self, names: Sequence[str], job: Job, engine: Engine) -> Plan:
        """Plan a release, or several that are linked; no input but the catalogue, no output."""

    def nature(self, plan: Any) -> Nature:
        """What a run must know of a plan."""

    def reads(self, plan: Any, engine: Engine) -> Iterator[Read]:
        """What a release reads."""

    def run(self, planned: Any, making: Making) -> list[Release]:
        """Make what was planned: staged and verified, not yet published."""

    def recheck(self, planned: Any, there: Mapping[str, Published], checking: Checking) -> Mapping[str, Told | Any]:
        """Check published releases again; VerificationError if they are not what they must be."""

    def check_promise(self, planned: Any) -> None:
        """Refuse a plan whose promise does not hold, as far as that is known before a run."""

    def explain(self, planned: Any, target: Target) -> Explained:
        """What `--plan` shows."""


def _wing(section: str) -> Wing:
    """The wing of a section of the job, loaded when first asked for: a job of tables needs no other, half a second."""
    match section:
        case "tables":
            from sqldeid import tables

            return tables
        case "series":
            from sqldeid import series

            return series
        case "events":
            from sqldeid import events

            return events
        case unknown:
            raise UnknownKindError(unknown, "section of a job")


def wing_of(plan: Plan) -> Wing:
    """The wing that a plan is of."""
    return _wing(plan.key.partition(".")[0])


def nature_of(plan: Plan) -> Nature:
    """What a run must know of a plan."""
    return wing_of(plan).nature(plan)


def is_linked(plan: Plan) -> bool:
    """Whether several releases are made at once."""
    return len(nature_of(plan).names) > 1


def plan_release(job: Job, names: Sequence[str], engine: Engine) -> Plan:
    """Plan a release, or several that are linked; refuse what its files could not hold."""
    planned = _wing(part_of(job, names[0])[0]).plan_unit(names, job, engine)
    if job.release.kind == "parquet":
        refuse_types(nature_of(planned), engine)
    return planned


def part_of(job: Job, name: str) -> tuple[str, Any]:
    """The section that holds a release, and what it says there."""
    for section in SECTIONS:
        parts = getattr(job, section, {})
        if name in parts:
            return section, parts[name]
    raise JobError(f"{job.name}: there is no release {name}; it has {', '.join(names_of(job))}", key="only")


def names_of(job: Job) -> list[str]:
    """All releases of a job in the order in which they are made: tables first, for a series may follow one.

    A child table comes after every other table, for its parent's classes are its own.
    """
    names = [name for section in SECTIONS for name in getattr(job, section, {})]
    ordered = sorted((name for name in names if name in job.tables), key=lambda name: _is_child(job, name))
    return [*ordered, *(name for name in names if name not in job.tables)]


def _is_child(job: Job, name: str) -> bool:
    return name in job.tables and job.tables[name].parent is not None


def selected(job: Job, only: Sequence[str], *, apart: bool = False) -> list[str]:
    """The releases to make, in the order in which they are made; linked tables all or none, unless taken `apart`."""
    for name in only:
        part_of(job, name)
    names = [name for name in names_of(job) if not only or name in only]
    if not apart:
        _refuse_split(job, names, only)
        _refuse_orphans(job, names)
    return names


def tables_among(job: Job, only: Sequence[str]) -> list[str]:
    """The table releases among those selected: only they have classes of rows to assess, and a lattice; no child."""
    names = selected(job, only, apart=True)
    _refuse_split(job, names, only)
    return [name for name in names if name in job.tables and not _is_child(job, name)]


def why_unproven(job: Job, name: str) -> str:
    """Why a file has no certificate of a table release, and what to do."""
    method = job.tables[name].search.method
    if method in PROVING:
        return "the file holds no certificate of it"
    return f"{method} proves nothing, so there is no certificate to check; name the other releases with --only"


def with_layers(job: Job, names: Sequence[str]) -> list[str]:
    """Releases with the tables that stand beside them, or stood there: what of it is not made anew goes."""
    local = {name for name, table in job.tables.items() if table.search.method == "local"}
    return [made for name in names for made in (name, *(name + b for b in BESIDE if name in local))]


def groups_of(job: Job) -> list[tuple[str, ...]]:
    """The job's linked table releases."""
    return link_groups(job.model_dump(include={"tables": {"__all__": {"link"}}}))


def _refuse_split(job: Job, names: Sequence[str], only: Sequence[str]) -> None:
    """Linked tables are made, checked and looked at together.

    Raises
    ------
    JobError
        If `only` takes some of them alone.
    """
    for group in groups_of(job):
        chosen = [name for name in group if name in names]
        if only and chosen and len(chosen) < len(group):
            missing = ", ".join(name for name in group if name not in names)
            raise JobError(
                f"{job.name}: --only: tables.{chosen[0]} is linked with {missing}, and linked tables are one release; "
                f"give {_only(group)}",
                key="--only",
            )


def _refuse_orphans(job: Job, names: Sequence[str]) -> None:
    """Child tables and their parent are made and checked together: pseudonyms are others in each publication.

    Raises
    ------
    JobError
        If some of them are chosen alone.
    """
    for name, table in job.tables.items():
        if table.parent is not None and (name in names) != (table.parent in names):
            family = [table.parent, *(child for child in job.tables if job.tables[child].parent == table.parent)]
            raise JobError(
                f"{job.name}: --only: tables.{name} is a child of tables.{table.parent} and has its pseudonyms, so "
                f"they are released together; give {_only(family)}",
                key="--only",
            )


def _only(names: Sequence[str]) -> str:
    """Options that choose these releases, as a shell takes them."""
    return " ".join(f"--only {quote(name)}" for name in names)


def gather(job: Job, names: Sequence[str], plan: Callable[[Sequence[str]], T]) -> list[T]:
    """Plan releases in their order, linked ones at once and in the place of the first of them.

    Raises
    ------
    JobError
        With all releases that are refused, a line each: who mends a job of many is told of them at once.
    """
    linked = {name: group for group in groups_of(job) for name in group}
    groups = [linked.get(name, (name,)) for name in names]
    planned: list[T] = []
    refused: dict[str, JobError] = {}
    for group in (group for name, group in zip(names, groups, strict=True) if name == group[0]):
        try:
            planned.append(plan(group))
        except JobError as error:
            refused.setdefault(error.message, error)
        except SqldeidError:
            if not refused:
                raise
            break  # a server may answer nothing after it refused a statement
    if len(refused) > 1:
        first, *others = refused
        lines = (text if text.startswith(f"{job.name}: ") else f"{job.name}: {text}" for text in others)
        raise JobError("\n".join([first, *lines]), key=refused[first].key)
    if refused:
        raise next(iter(refused.values()))
    return planned
