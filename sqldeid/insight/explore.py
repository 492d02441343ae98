"""Uniqueness before anything is released: what sets of columns tell apart (Mazzone 2019, ch. 3).

One pass numbers each column's values, one folds the table into words of those numbers; then a set of columns is a mask,
as a node of a lattice is, and many are measured in one statement. No value leaves the database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from math import ceil, log
from time import monotonic

from sqlglot import exp

from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError
from sqldeid.findings import BELOW, ColumnFacts, Explored, Uniqueness
from sqldeid.insight.explore_sets import Columns, Tried, borders, count_sets, every_set
from sqldeid.insight.explore_source import LIMITS, Arm, Source, measure, value_of
from sqldeid.sql import column, identifier, literal
from sqldeid.tables.model.coding import Coding, pack

MOST_SETS = 10_000
"""Sets that are tried at most where all are asked for."""

MAX_SIZE = 3
"""Columns in a set, at most, where nothing is said."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about a table's columns.

    Parameters
    ----------
    sets
        Column sets by name. With neither `max_size` nor `borders` exactly these are tried; else their columns are the
        ones that sets are made of. Empty: every column.
    max_size
        Try all sets of at most so many columns that contain no smaller one which singles out `enough`.
    borders
        Only seek the smallest sets that single out `enough`, and the largest that do not.
    enough
        Share of the persons. Above 0, at most 1.
    """

    sets: tuple[tuple[str, ...], ...] = ()
    max_size: int | None = None
    borders: bool = False
    enough: float = 0.5


def explore(asked: Question, source: Source, engine: Engine) -> Explored:
    """Measure what sets of columns of a table tell apart.

    Cost: a scan of each column, one of the table for the fold; the rest reads the fold.

    Raises
    ------
    JobError
        If a table or column is not there, nothing is left to look at, or there are too many sets.
    """
    started, statements = monotonic(), engine.statements
    if not 0 < asked.enough <= 1:
        raise JobError.at("--enough", "a share is above 0 and at most 1")
    columns, left_out = _columns(asked, source)
    numbered = Numbered.of(source, columns, engine)
    tried = Tried(numbered.measure)
    needed = ceil(Fraction(repr(float(asked.enough))) * source.persons)
    smallest, largest, possible = _search(asked, columns, numbered, tried, needed)
    named = [tuple(columns[i].name for i in s) for s in (*smallest, *largest)]
    return Explored(
        table=source.label,
        person=source.person_name,
        rows=source.rows,
        persons=source.persons,
        columns=tuple(numbered.facts),
        sets=tuple(sorted(tried.found.values(), key=lambda u: (len(u.columns), -u.alone, -u.classes, u.columns))),
        enough=asked.enough,
        smallest=tuple(named[: len(smallest)]),
        largest=tuple(named[len(smallest) :]),
        possible=possible,
        tried=len(tried.found),
        statements=engine.statements - statements,
        seconds=round(monotonic() - started, 3),
        left_out=left_out,
    )


def _columns(asked: Question, source: Source) -> tuple[list[Column], dict[str, str]]:
    """The columns that sets are made of, and why others are not."""
    if asked.sets:
        named = [source.find(name, "--columns") for name in chain.from_iterable(asked.sets)]
        if source.person in named:
            raise JobError.at("--columns", "the person column tells everybody apart; leave it out")
        return list(dict.fromkeys(named)), {}
    left_out = {c.name: f"type {c.shown_type}" for c in source.columns if c.kind == "other"}
    if source.person:
        left_out[source.person.name] = "the person column"
    columns = [c for c in source.columns if c.name not in left_out]
    if not columns:
        raise JobError.at("--table", f"{source.label} has no column whose values can be told apart")
    return columns, left_out


def _search(
    asked: Question, columns: Sequence[Column], numbered: Numbered, tried: Tried, needed: int
) -> tuple[list[Columns], list[Columns], int]:
    """The smallest sets, the largest, and how many there are to choose from."""

    def reaches(found: Uniqueness) -> bool:
        return found.persons_below[2] >= needed

    if asked.sets and asked.max_size is None and not asked.borders:
        by_name = {c.name.casefold(): i for i, c in enumerate(columns)}
        sets = [tuple(sorted({by_name[name.strip().casefold()] for name in names})) for names in asked.sets]
        tried.ask([*((i,) for i in range(len(columns))), *sets])
        reaching = [s for s, found in tried.found.items() if reaches(found)]
        smallest = [s for s in reaching if not any(set(r) < set(s) for r in reaching)]
        return smallest, [], len(tried.found)
    size = len(columns) if asked.borders and asked.max_size is None else asked.max_size or MAX_SIZE
    size = min(size, len(columns))
    possible = count_sets(len(columns), size)
    if asked.borders:
        order = sorted(range(len(columns)), key=lambda i: numbered.facts[i].entropy_bits)
        return *borders(order, size, tried, reaches), possible
    if possible > MOST_SETS:
        raise JobError.at(
            "--max-size",
            f"{len(columns)} columns have {possible:,} sets of at most {size}, more than {MOST_SETS:,}; "
            "name some with --columns, lower it, or add --borders",
        )
    return every_set(len(columns), size, tried, reaches), [], possible


@dataclass(slots=True)
class Numbered:
    """A table's columns with their values numbered, folded as far as sets were asked for.

    Parameters
    ----------
    values
        Per column, the table of its numbered values.
    null_ids
        Per column, the number of NULL, where it has any.
    alone
        Per column, its figures by itself, where every row is a person.
    """

    source: Source
    columns: Sequence[Column]
    engine: Engine
    values: list[exp.Table]
    facts: list[ColumnFacts]
    null_ids: list[int | None]
    alone: list[Uniqueness]
    _folded: Mapping[int, int] = field(default_factory=dict, init=False)
    _table: exp.Table | None = field(default=None, init=False)
    _place: Engine | None = field(default=None, init=False)
    _coding: Coding | None = field(default=None, init=False)

    @classmethod
    def of(cls, source: Source, columns: Sequence[Column], engine: Engine) -> Numbered:
        """Number the values of each column. Cost: one scan of each."""
        values = [engine.workbench(f"explore_{i}") for i in range(len(columns))]
        for c, table in zip(columns, values, strict=True):
            engine.run("insight/number_values", values=table, column=value_of(c), source=source.relation)
        listed = [{"number": i, "numbered": table} for i, table in enumerate(values)]
        rows = engine.rows("insight/describe_values", columns=listed, limits=LIMITS)
        facts, null_ids, alone = [], [], []
        for c, row in zip(columns, rows, strict=True):
            _refuse_changed(int(row["members"]), source)
            n, classes = source.rows, int(row["classes"])
            entropy = max(log(n) - row["spread"] / n, 0.0) / log(2)
            facts.append(ColumnFacts(c.name, classes, int(row["nulls"]), entropy))
            null_ids.append(row["last_null"])
            below = {limit: int(row[f"rows_{limit}"]) for limit in BELOW}
            alone.append(Uniqueness((c.name,), n, n, classes, n / classes, below, dict(below)))
        return cls(source, columns, engine, values, facts, null_ids, alone)

    def measure(self, sets: Sequence[Columns]) -> list[Uniqueness]:
        """The figures of sets of columns; those of one column are known where every row is a person."""
        shared = self.source.person is not None
        ask = [s for s in sets if shared or len(s) > 1]
        wanted = set(chain.from_iterable(ask))
        if not wanted <= set(self._folded):
            self._fold(sorted(wanted | set(self._folded)))
        found = iter(measure([self._arm(s) for s in ask], self._place or self.engine, shared=shared))
        return [next(found) if shared or len(s) > 1 else self.alone[s[0]] for s in sets]

    def _fold(self, columns: Sequence[int]) -> None:
        """Fold the table by these columns. Cost: one scan."""
        if self._table is not None:
            (self._place or self.engine).drop(self._table)
        coding = pack([(0, (self.facts[i].distinct - 1).bit_length()) for i in columns])
        self._folded, self._coding = {c: place for place, c in enumerate(columns)}, coding
        self._table = self.engine.workbench("explore_fold")
        words = [
            {
                "name": name,
                "columns": [self._coded(i, place) for i, place in self._folded.items() if self._in(place, word)],
            }
            for word, name in enumerate(self._words)
        ]
        person = self.source.person_column
        self.engine.run(
            "insight/fold_columns", folded=self._table, source=self.source.relation, person=person, words=words
        )
        row = self.engine.row("tables/fold/total_classes", classes=self._table, words=list(self._words))
        _refuse_changed(int(row["rows"]) - int(row["uncoded"]), self.source)
        self._place = self.engine
        if person is None:  # classes may leave the source engine, persons may not
            self._table, self._place = self.engine.to_bench(self._table), self.engine.bench

    @property
    def _words(self) -> list[exp.Identifier]:
        return [identifier(f"w{i}") for i in range(self._coding.words if self._coding else 0)]

    def _in(self, place: int, word: int) -> bool:
        return self._coding is not None and self._coding.fields[place].word == word

    def _coded(self, number: int, place: int) -> dict[str, object]:
        shift = self._coding.fields[place].shift if self._coding else 0
        return {
            "alias": identifier(f"h{number}"),
            "column": value_of(self.columns[number]),
            "numbered": self.values[number],
            "null_id": self.null_ids[number],
            "weight": 1 << shift,
        }

    def _arm(self, columns: Columns) -> Arm:
        """Group by the bits of these columns: the words that hold any."""
        names = tuple(self.columns[i].name for i in columns)
        if self._coding is None or self._table is None:
            raise AssertionError("sets are measured after the fold")
        keep = {self._folded[i] for i in columns}
        masks = self._coding.masks(tuple(0 if place in keep else 1 for place in range(len(self._folded))))
        parts = [_masked(f"w{word}", mask) for word, mask in enumerate(masks) if mask]
        return Arm(names, self._table, tuple(parts or [_masked("w0", 0)]))


def _masked(word: str, mask: int) -> exp.Expr:
    return exp.Paren(this=exp.BitwiseAnd(this=column(word), expression=literal(mask)))


def _refuse_changed(rows: int, source: Source) -> None:
    if rows != source.rows:
        raise JobError.at(
            "--table",
            f"{source.label} gave other values when it was read again; it must not change while it is read "
            "(a view over random or current values?)",
        )
