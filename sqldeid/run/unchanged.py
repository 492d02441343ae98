"""Whether a source has changed since a release of it was made, for whoever would replace that or add another to it.

Two releases of a source that changed in between can be compared: what is different in them is what the source's change
did, and may be one person's. A ledger holds the second to the first. Without one, the second is refused.

Guarantee
    Without a ledger, a release of a DuckDB source is replaced, or given a companion of the same job, only if no column
    that both use has another sum of hashes of (person, value) over all rows than when the first one was made; or the
    holder has said that the first one was never given out.

Assumes
    The first release is where the second goes: of releases elsewhere nothing is known here. Sums of 64-bit hashes are
    the same for two sources by chance alone; whoever may write to the source could make them so, and learns nothing
    that way that the source does not hold.

Does not protect
    Differentially private releases (epsilon-safe, laplace) are not asked: they compose by ε, which the ledger adds up.
    On Postgres and Spark sources are not compared; the page docs/series-promise.md says so.

The sums are kept in the note on the release as HMAC under the holder's key (`sqldeid.keys`): who reads a release, and
guesses a source, cannot confirm it. A note without them, by another key or another version of the engine tells nothing,
and what it is on is not replaced.

Source: soundness.md 5, 18, 23.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from sqlglot import exp

from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError
from sqldeid.events.plan import EventsPlan
from sqldeid.job import Job
from sqldeid.keys import Key, read_key, state_key
from sqldeid.publish import LEDGER_NOTE, SOURCE_NOTE
from sqldeid.run.places import Options
from sqldeid.series.plan import SeriesPlan
from sqldeid.sql import column, identifier, render
from sqldeid.tables.partition_plan import PartitionPlan
from sqldeid.tables.plan import TablePlan

_SCOPE = b"sqldeid source mark\0"
_DIGITS = 32
Mark = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Read:
    """A relation that a release reads: its name among them, the person key, and the columns by label."""

    name: str
    source: exp.Expr
    person: exp.Expr | None
    columns: Sequence[tuple[str, exp.Expr]]


@dataclass(slots=True)
class Sources:
    """The sources of a run, beside what the notes on the releases that are there say of theirs.

    Parameters
    ----------
    job, engine, options
        Of the run.
    names
        The releases that are made.
    there
        Notes of the releases at the target.
    planned
        Plans a release of the job.
    """

    job: Job
    engine: Engine
    options: Options
    names: Sequence[str]
    there: Sequence[Mapping[str, object]]
    planned: Callable[[str], object]
    _keys: list[Key] | None = None
    _compared: bool = False

    def mark(self, name: str) -> list[Mark] | None:
        """What the note on a release keeps: a mark by each key; None where it composes by ε, or on another engine.

        Asked once the release is decided: its own steps have read the source then, and said what is wrong with its SQL.

        Cost: one scan of the source.

        Raises
        ------
        JobError
            If a release is there whose source has changed, or of which that is not known.
        """
        if self.engine.capabilities.dialect != "duckdb":
            return None
        now = self._now(name)
        for note in self.there if not self.options.without_ledger else ():
            other = str(note["release"])
            if LEDGER_NOTE in note:
                continue
            if other == name and now is not None:
                _refuse(note, _compare(note.get(SOURCE_NOTE), now), "replaced")
            elif other not in self.names and now is not None and not self._compared and self._is_ours(other):
                beside = self._now(other)
                if beside is not None:
                    _refuse(note, _compare(note.get(SOURCE_NOTE), beside), "added to")
        self._compared = self._compared or now is not None
        return now

    def _is_ours(self, name: str) -> bool:
        return any(name in part for part in (self.job.tables, self.job.series, self.job.events))

    def _now(self, name: str) -> list[Mark] | None:
        plan = self.planned(name)
        if isinstance(plan, TablePlan) and plan.sampled:
            return None
        if isinstance(plan, EventsPlan) and plan.method == "laplace":
            return None
        if not isinstance(plan, (TablePlan, PartitionPlan, SeriesPlan, EventsPlan)):
            raise TypeError(f"{name}: nobody knows what such a release reads")
        if self._keys is None:
            self._keys = [key for key in (state_key(), read_key(self.options.key_file)) if key is not None]
        sums = _sums(plan, self.engine) if self._keys else {}
        return [_mark(sums, key) for key in self._keys]


def _refuse(note: Mapping[str, object], reason: str, what: str) -> None:
    if not reason:
        return
    section = {"series": "series", "events": "events"}.get(str(note.get("kind")), "tables")
    key = f"{section}.{note['release']}"
    held = "" if section == "events" else "hold releases to each other with --ledger FILE, or, "
    raise JobError(
        f"{key}: the release that is there is not {what}: {reason}. Whoever holds two releases of a source that "
        f"changed can tell apart what changed: {held}if nobody was ever given the release that is there, say so by "
        "--without-ledger",
        key="--without-ledger",
    )


def _compare(noted: object, now: Sequence[Mark]) -> str:
    """Why it is not known that nothing changed; empty where nothing did."""
    if not isinstance(noted, list) or not noted:
        return "its note does not tell what the source was like (an older version made it, or no key could be kept)"
    known = {str(m["key"]): m for m in now}
    pairs = [(m, known[str(m.get("key"))]) for m in noted if isinstance(m, Mapping) and str(m.get("key")) in known]
    if not pairs:
        return "its note was made with another key, on another machine or by another user, and cannot be compared"
    before, after = pairs[0]
    if before.get("engine") != after["engine"]:
        return "its note was made by another version of DuckDB, and cannot be compared"
    old, new = before.get("sums"), after["sums"]
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return "its note cannot be read"
    alike = old.keys() == new.keys()
    changed = before.get("persons") != after["persons"] or any(old[n] != new[n] for n in old.keys() & new.keys())
    if changed or (alike and before.get("whole") != after["whole"]):
        return "its source has changed since"
    if not alike and not (after["named"] and before.get("named")):
        return "it shows other columns, and without a person key its rows cannot be compared"
    return ""


def _mark(sums: Mapping[str, str], key: Key) -> Mark:
    digest = key.hasher(_SCOPE)

    def keyed(*texts: str) -> str:
        return digest("\0".join(texts).encode())[:_DIGITS]

    special = {"persons", "whole", "named"}
    return {
        "key": keyed("key"),
        "engine": keyed("engine", version("duckdb")),
        "persons": keyed("persons", sums["persons"]),
        "whole": keyed("whole", sums["whole"]),
        "named": bool(sums["named"]),
        "sums": {keyed("column", n): keyed("sum", n, s) for n, s in sums.items() if n not in special},
    }


def _sums(plan: TablePlan | PartitionPlan | SeriesPlan | EventsPlan, engine: Engine) -> dict[str, str]:
    """Sums of hashes by relation and column; `persons` and `whole` over all relations."""
    found: dict[str, str] = {}
    persons, whole, named = [], [], False
    for read in _reads(plan, engine):
        labelled = sorted(read.columns, key=lambda c: c[0])
        columns = [{"name": identifier(f"c{i}"), "column": c} for i, (_, c) in enumerate(labelled)]
        statement = render("tables/sum_columns", source=read.source, person=read.person, columns=columns)
        row = engine.query(statement).to_pylist()[0]
        persons.append(f"{read.name}: {row['rows']} {row['persons']}")
        whole.append(f"{read.name}: {row['whole']}")
        named = named or read.person is not None
        found |= {f"{read.name}/{label}": str(row[f"c{i}"]) for i, (label, _) in enumerate(labelled)}
    return {**found, "persons": "; ".join(persons), "whole": "; ".join(whole), "named": "yes" if named else ""}


def _reads(plan: TablePlan | PartitionPlan | SeriesPlan | EventsPlan, engine: Engine) -> Iterator[_Read]:
    """What a release reads."""
    if isinstance(plan, TablePlan):
        yield from _of_table(plan, engine)
    elif isinstance(plan, PartitionPlan):
        columns = [c.source for c in plan.cuts] + [source for _, source, _ in plan.others]
        person = None if plan.person is None else column(plan.person, "s")
        yield _Read("source", plan.source, person, _named(columns))
    elif isinstance(plan, EventsPlan):
        named = [(f"order {n.name.name}", n.value) for n in plan.orders]
        named += [(f"factor {n.name.name}", n.value) for n in plan.expressions]
        columns = [*plan.states, *([plan.time] if plan.time is not None else [])]
        yield _Read("source", plan.source, column(plan.owner.name, "s"), [*_named(columns), *named])
    else:
        yield from _of_series(plan, engine)


def _of_table(plan: TablePlan, engine: Engine) -> Iterator[_Read]:
    there = {c.name.casefold() for c in engine.columns(plan.source, key=plan.key)}
    columns = [c.source for c in plan.released if c.source.name.casefold() in there]
    yield _Read("source", plan.source, plan.person_column, _named(columns))
    for stack in plan.stacked.stacks if plan.stacked is not None else ():
        yield _all(f"stack {stack.name}", stack.relation, engine, stack.key)
        if stack.through is not None:
            yield _all(f"stack {stack.name} through", stack.through.relation, engine, stack.key)


def _of_series(plan: SeriesPlan, engine: Engine) -> Iterator[_Read]:
    columns = plan.columns
    if columns is None:
        yield _all("source", plan.source, engine, plan.key)
    else:
        person = column(plan.person.name, "s")
        # a value belongs to its time and variable: the three are one
        together = exp.func("ROW", *(column(c.name, "s") for c in (columns.time, columns.variable, columns.value)))
        yield _Read("source", plan.source, person, [("measurement", together)])
    for name, table in (plan.sisters or {}).items():
        yield _all(name, table, engine, plan.key)
    if plan.cohort is not None:
        yield _all("cohort", plan.cohort.source, engine, plan.key)


def _all(name: str, relation: exp.Expr, engine: Engine, key: str) -> _Read:
    """All columns of a relation, whose rows are no persons."""
    return _Read(name, relation, None, _named(engine.columns(relation, key=key)))


def _named(columns: Sequence[Column]) -> list[tuple[str, exp.Expr]]:
    return [(name, column(name, "s")) for name in dict.fromkeys(c.name for c in columns)]
