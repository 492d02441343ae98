"""Releases of one job tested for joinability: how far whoever holds two of them matches rows by values that both show.

Only what is released is read, as an attacker has it: two tables are joined on columns of one name, equal values being
equal as text (numbers, and moments, of different types as such); NULL matches NULL and a blanked value the same blank.
Each column alone, all of them, and all but one are tried; a column whose values hardly occur in the other table, as
after another level or in pseudonyms, is no help to anybody and left out. A table is joined with series by the length
of a series, where a numeric column shows about the same lengths in seconds, minutes, hours or days.

Source: soundness.md 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from sqldeid import tables
from sqldeid.engine.base import Column, Engine
from sqldeid.job import Job
from sqldeid.publish import BESIDE_KINDS, SOURCE_NOTE, Note, Staging
from sqldeid.sql import column, identifier, literal, render

if TYPE_CHECKING:
    from sqldeid.tables import Linked

ENOUGH = 0.1
"""A column is comparable if this share of the rows of either table has a value that occurs in the other."""

ALIKE = 0.5
"""A numeric column shows the length of series if the two distributions share as much."""

MOST_SETS = 8
"""With more comparable columns, those sets that leave one out are not tried."""

HOURS = {"seconds": 1 / 3600, "minutes": 1 / 60, "hours": 1.0, "days": 24.0}

NUMBERS, MOMENTS = ("integer", "float", "number"), ("date", "timestamp")
_TEXT, _DOUBLE, _TIMESTAMP = (exp.DataType.build(t, dialect="duckdb") for t in ("varchar", "double", "timestamp"))
_ROUNDED: tuple[Callable[[exp.Expr], exp.Expr], ...] = (
    lambda value: exp.Round(this=value),
    lambda value: exp.Floor(this=value),
    lambda value: exp.Ceil(this=value),
)


@dataclass(frozen=True, slots=True)
class Joinable:
    """Two releases, and the columns by which most of their rows match few rows of the other; none where none compare.

    Parameters
    ----------
    releases
        Their names; those of linked tables, which are one here, with a plus. The other fields are in this order.
    columns
        For series the numeric column of the table that shows their lengths.
    k
        What was asked of each: a row of one that matches fewer rows of the other than the other's k is `below`. At
        least 2.
    rows, matched
        Rows (persons, for series), and those that match any of the other.
    below
        Rows that match 1 … k - 1 rows of the other.
    least
        The fewest rows of the other release that a row matches; 0 where none does.
    """

    releases: tuple[str, str]
    columns: tuple[str, ...]
    k: tuple[int, int]
    rows: tuple[int, int]
    matched: tuple[int, int] = (0, 0)
    below: tuple[int, int] = (0, 0)
    least: tuple[int, int] = (0, 0)
    kinds: tuple[str, str] = ("tables", "tables")

    def warning(self, *, linkable: bool = True) -> str:
        """One sentence; empty where no row matches few. A ledger takes no links: beside one, none is advised."""
        if not any(self.below):
            return ""
        told = [
            f"{self.below[i]:,} of {self.rows[i]:,} {_COUNTED[self.kinds[i]]} of {self.releases[i]} match fewer than "
            f"{self.k[1 - i]} {_COUNTED[self.kinds[1 - i]]} of {self.releases[1 - i]} (as few as {self.least[i]})"
            for i in (0, 1)
            if self.below[i]
        ]
        by = ", ".join(self.columns) + (" as the length of series" if self.kinds[1] == "series" else "")
        names = ", ".join(f"{kind}.{name}" for kind, name in zip(self.kinds, self.releases, strict=True))
        return f"{names}: {' and '.join(told)} by {by}: {'link them, ' if linkable else ''}drop a column or coarsen it"

    def to_dict(self) -> dict[str, object]:
        """As `--json` writes it."""
        return asdict(self)


_COUNTED = {"tables": "rows", "series": "series"}


class Rechecked(dict[str, Any]):
    """What a re-check found, by release; `joinable` are the pairs of them that were compared.

    `house_rules` are those that the job meets; `beside` says what else whoever is given the releases has, and
    `unsummed` of which of them comments were not looked at.
    """

    joinable: tuple[Joinable, ...] = ()
    beside: str = ""
    unsummed: str = ""
    house_rules: tuple[Mapping[str, object], ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Of pairs that can be joined, one sentence each; of what lies beside the releases, and of comments, one."""
        return (*warnings_of(self.joinable), *(text for text in (self.beside, self.unsummed) if text))


@dataclass(slots=True)
class Noticing:
    """A place where releases are staged, which remembers what to read of each."""

    staging: Staging
    mark: Callable[[str], object] = lambda name: None
    written: dict[str, exp.Expr] = field(default_factory=dict)
    notes: dict[str, Mapping[str, object]] = field(default_factory=dict)

    def made(self, name: str) -> tuple[exp.Expr, Mapping[str, object]]:
        """What to read of a release that was staged, and the note on it."""
        return self.written[name], self.notes[name]

    def write(self, statement: Callable[[exp.Table], str], note: Note) -> exp.Expr:
        """Stage a release."""
        self.written[note.release] = self.staging.write(statement, self._marked(note))
        self.notes[note.release] = note.content
        return self.written[note.release]

    def write_computed(self, statement: Any, note: Note, tables: Mapping[str, Any]) -> exp.Expr:
        """Stage a computed view."""
        self.written[note.release] = self.staging.write_computed(statement, self._marked(note), tables)
        self.notes[note.release] = note.content
        return self.written[note.release]

    def _marked(self, note: Note) -> Note:
        """The note with what tells its holder whether the source, or a comment on the release, has changed since."""
        beside = note.content.get("kind") in BESIDE_KINDS  # it shows nothing more
        mark = None if beside else self.mark(note.release)
        return (note.also({SOURCE_NOTE: mark}) if mark else note).summed()

    def publish(self) -> tuple[str, ...]:
        """Make everything appear."""
        return self.staging.publish()


def warnings_of(found: Sequence[Joinable], *, linkable: bool = True) -> tuple[str, ...]:
    """One sentence for each pair with rows that match few of the other."""
    return tuple(text for pair in found if (text := pair.warning(linkable=linkable)))


def find_joinable(
    job: Job, written: Mapping[str, exp.Expr], engine: Engine, linked: Sequence[Linked] = ()
) -> tuple[Joinable, ...]:
    """Compare the releases that may hold the same persons and are not linked.

    Parameters
    ----------
    written
        What to read, by release; those that are not there are not compared. Events are never: nobody's are released.
    linked
        The run's linked tables, which are compared as the join that whoever holds them makes.

    Notes
    -----
    Cost of a release: it is described and counted once. Cost of a pair: one scan of either, and of the classes of their
    common columns for each set that is tried.
    """
    units = {name: unit for unit in linked for name in unit.names}
    joins = {
        u.names: tables.join_written(u, [written[n] for n in u.names], engine) for u in _joined(job, units, written)
    }
    pairs = dict.fromkeys((_together(here, units), _together(there, units), kind) for here, there, kind in _pairs(job))
    sides: dict[tuple[str, ...], _Side] = {}
    found = []
    for number, (here, there, kind) in enumerate(pairs):
        if not {*here, *there} <= written.keys():
            continue
        for names, of in ((here, "tables"), (there, kind)):
            if names not in sides:
                relation = joins[names] if names in joins else written[names[0]]
                sides[names] = _side(names, _lengths(relation, engine, number) if of == "series" else relation, engine)
        compare = _compare_tables if kind == "tables" else _compare_lengths
        found.append(compare(_Pair(job, (sides[here], sides[there]), engine, number)))
    return tuple(found)


def compared(job: Job) -> list[str]:
    """The releases that `find_joinable` looks at."""
    return list(dict.fromkeys(name for here, there, _ in _pairs(job) for name in (here, there)))


def _pairs(job: Job) -> list[tuple[str, str, str]]:
    """A table, another release that may hold its persons, and the section of that one."""
    pairs = job.comparable()
    return [(here, there, kind) for (of, here), (kind, there) in pairs if of == "tables" and kind != "events"]


def _together(name: str, linked: Mapping[str, Linked]) -> tuple[str, ...]:
    """A release with those that it is linked with."""
    return linked[name].names if name in linked else (name,)


def _joined(job: Job, linked: Mapping[str, Linked], written: Mapping[str, exp.Expr]) -> list[Linked]:
    """The linked tables that are compared with others and are all there."""
    units = {u.names: u for name in compared(job) if (u := linked.get(name)) is not None}
    return [u for names, u in units.items() if written.keys() >= set(names)]


@dataclass(frozen=True, slots=True)
class _Side:
    """A release, or the join of linked ones, or the lengths of series, that is compared with others.

    Parameters
    ----------
    written
        What to read of it.
    columns
        What the releases call their columns, and the columns of what is read.
    """

    names: tuple[str, ...]
    written: exp.Expr
    columns: tuple[tuple[str, Column], ...]
    rows: int


def _side(names: tuple[str, ...], written: exp.Expr, engine: Engine) -> _Side:
    joined = len(names) > 1  # people/age
    columns = tuple((c.name.partition("/")[2] if joined else c.name, c) for c in engine.columns(written))
    return _Side(names, written, columns, int(engine.row("engine/count_rows", table=written)["rows"]))


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two sides that are compared."""

    job: Job
    sides: tuple[_Side, _Side]
    engine: Engine
    number: int

    @property
    def k(self) -> tuple[int, int]:
        """The least class size of each, or the persons per length; at least 2, for `inverse-ola` may ask for none."""
        here, there = (max(2, *(self._asked(n) for n in side.names)) for side in self.sides)
        return here, there

    def _asked(self, name: str) -> int:
        series = self.job.series.get(name)
        return series.durations.k if series is not None else self.job.tables[name].privacy.k

    def fold(self, columns: Sequence[tuple[exp.Expr, exp.Expr]]) -> exp.Table:
        """The classes of both releases by pairs of expressions over their rows: a table of c0, c1, and so on."""
        folded = self.engine.workbench(f"joinable_{self.number}")
        named = [{"name": _name(i), "here": here, "there": there} for i, (here, there) in enumerate(columns)]
        here, there = (side.written for side in self.sides)
        self.engine.execute(render("run/fold_pair", folded=folded, here=here, there=there, columns=named))
        return folded

    def match(self, folded: exp.Table, sets: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
        """What matches by each set of numbers of columns."""
        asked = [{"number": i, "columns": [_name(c) for c in s]} for i, s in enumerate(sets)]
        here_k, there_k = self.k
        statement = render("run/count_matches", folded=folded, here_k=here_k, there_k=there_k, sets=asked)
        return [dict(row) for row in self.engine.query(statement).to_pylist()]

    def told(self, columns: Sequence[str], row: Mapping[str, Any] | None, kind: str) -> Joinable:
        """The finding by some columns."""
        here, there = self.sides
        names, rows = (" + ".join(here.names), " + ".join(there.names)), (here.rows, there.rows)
        made = Joinable(names, tuple(columns), self.k, rows, kinds=("tables", kind))
        if row is None:
            return made
        matched, below, least = ((int(row[f"here_{of}"]), int(row[f"there_{of}"])) for of in ("rows", "below", "least"))
        return replace(made, matched=matched, below=below, least=least)


def _name(number: int) -> exp.Identifier:
    return identifier(f"c{number}")


def _compare_tables(pair: _Pair) -> Joinable:
    shared = [
        (name, spelt_alike([(identifier(x.name), x) for x in (c, other)], "r"))
        for name, c in pair.sides[0].columns
        for named, other in pair.sides[1].columns
        if name.casefold() == named.casefold()
    ]
    if not shared:
        return pair.told((), None, "tables")
    folded = pair.fold([(here, there) for _, (here, there) in shared])
    alone = pair.match(folded, [[i] for i in range(len(shared))])
    rows = pair.sides[0].rows, pair.sides[1].rows
    comparable = [
        i
        for i, row in enumerate(alone)
        if row["here_rows"] and (row["here_rows"] >= ENOUGH * rows[0] or row["there_rows"] >= ENOUGH * rows[1])
    ]
    tried: dict[tuple[int, ...], dict[str, Any]] = {(i,): alone[i] for i in comparable}
    if sets := [s for s in _sets(comparable) if s not in tried]:
        tried |= dict(zip(sets, pair.match(folded, sets), strict=True))
    pair.engine.drop(folded)
    if not tried:
        return pair.told((), None, "tables")
    worst = max(tried, key=lambda s: (tried[s]["here_below"] + tried[s]["there_below"], -len(s)))
    return pair.told(list(dict.fromkeys(shared[i][0] for i in worst)), tried[worst], "tables")


def _sets(columns: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All columns, and all but one."""
    if columns:
        yield tuple(columns)
    if 2 < len(columns) <= MOST_SETS:
        yield from (tuple(c for c in columns if c != left) for left in columns)


def spelt_alike(columns: Sequence[tuple[exp.Identifier, Column]], alias: str) -> list[exp.Expr]:
    """Columns, by their names in what is read, so that equal values are equal: as text, or as numbers or moments.

    As these where they are of different types.
    """
    wanted, types = _TEXT, {c.type for _, c in columns}
    for kinds, common in ((NUMBERS, _DOUBLE), (MOMENTS, _TIMESTAMP)):
        if all(c.kind in kinds for _, c in columns) and len(types) > 1:
            wanted = common
    return [exp.cast(column(name.name, alias), wanted) for name, _ in columns]


def _lengths(series: exp.Expr, engine: Engine, number: int) -> exp.Table:
    lengths = engine.workbench(f"joinable_lengths_{number}")
    engine.execute(render("run/measure_steps", lengths=lengths, series=series))
    return lengths


def _compare_lengths(pair: _Pair) -> Joinable:
    step = float(pair.job.series[pair.sides[1].names[0]].step_hours)
    steps = column("steps", "r")
    found: list[tuple[str, dict[str, Any]]] = []
    for named, c in pair.sides[0].columns:
        if c.kind not in NUMBERS:
            continue
        values = [_in_steps(c, hours / step, rounded) for hours in HOURS.values() for rounded in _ROUNDED]
        folded = pair.fold([(value, steps) for value in values])
        found += [(named, row) for row in pair.match(folded, [[i] for i in range(len(values))])]
        pair.engine.drop(folded)
    alike = [(name, row) for name, row in found if row["overlap"] >= ALIKE]
    if not alike:
        return pair.told((), None, "series")
    name, row = max(alike, key=lambda f: f[1]["overlap"])
    return pair.told([name], row, "series")


def _in_steps(c: Column, factor: float, rounded: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    value = exp.cast(column(c.name, "r"), _DOUBLE)
    return rounded(exp.Mul(this=value, expression=literal(factor)))
