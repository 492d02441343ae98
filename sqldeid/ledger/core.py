"""Decide which persons of a release are held back, given all that was released before.

`Ledger.settle` says which rows may go out, `Ledger.enter` writes down that they did. What the classes of a release are,
and what stands beside them, its wing says (`Load`): equivalence classes and columns of a table, or feature classes and
measurements of series.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.ledger.book import Book, Subject
from sqldeid.ledger.hashing import hash_persons, hash_values
from sqldeid.ledger.parts import Branches, Decision, decide
from sqldeid.ledger.recurrence import Insisted, refuse_recoded, refuse_strangers
from sqldeid.ledger.rules import Judged, Rule, judge_parts, stored_rules
from sqldeid.ledger.store import table_of
from sqldeid.sql import identifier, literal, render

_ROUNDS = 64
"""Times that parts are judged before what still fails is withdrawn as a whole."""

MUCH = 0.05
"""Of the rows that the criteria let out, the share held back above which a result says why, and what would lower it."""


@dataclass(frozen=True, slots=True)
class Load:
    """One release as the ledger sees it.

    Parameters
    ----------
    subject
        The release, its person key and the types of what it tells.
    kind
        "classes" or "series".
    k
        The least number of persons of its classes.
    rows
        Every row that the criteria let out, one per person: person VARCHAR, class BIGINT, and c0, c1, … VARCHAR, the
        values of `fields`.
    fields
        What the ledger calls each column that is told beside the class.
    rules
        The criteria of these columns.
    marginals
        Tables that t is measured against.
    """

    subject: Subject
    kind: str
    k: int
    rows: pa.Table
    fields: Sequence[str]
    rules: Sequence[Rule] = ()
    marginals: Sequence[pa.Table] = ()


@dataclass(frozen=True, slots=True)
class Settled:
    """What may go out of a load: `held` are the numbers of the rows that may not."""

    load: Load
    judged: Judged
    decided: Decision
    parts: exp.Table
    held: pa.ChunkedArray
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entered:
    """What the ledger wrote down of a release.

    Parameters
    ----------
    account
        What the result says of it.
    mark
        Drawn for this release: by it a ledger knows what it wrote down itself.
    """

    account: Mapping[str, object]
    warnings: tuple[str, ...]
    mark: str


class Ledger:
    """The ledger of one run; its releases are entered one after the other, each held to all before it."""

    def __init__(self, book: Book, insisted: Insisted | None = None) -> None:
        self.book = book
        self.insisted = insisted or Insisted()
        self._engine: Engine = book.engine
        self._entered: list[str] = []

    def settle(self, load: Load, *, also_held: int = 0) -> Settled:
        """Hold back the rows that would single persons out beside the releases before; nothing is written down.

        Parameters
        ----------
        also_held
            Rows that are held back beside those of the load. A load that is empty from the start is let through.

        Raises
        ------
        JobError
            If hardly any person, or value of a column, is found again, and nobody said that they are new.
        VerificationError
            If no row may be released.
        """
        judged = self._match(load)
        told = refuse_strangers(self.book, load.subject, judged.rows, self.insisted)
        told += refuse_recoded(self.book, load.subject, judged.members, judged.fields, load.k, self.insisted)
        for marginal in load.marginals:
            self.book.append_table("marginals", marginal)
        decided, parts = self._settle(judged, load.k, load.rules, stored_rules(self.book.releases()))
        held = self._engine.ask("ledger/list_held", parts=parts).column("row")
        if len(held) == load.rows.num_rows and load.rows.num_rows + also_held > 0:
            raise VerificationError.at(
                load.subject.key,
                f"the ledger holds every row back: beside the earlier releases each would single somebody out"
                f"{_of_this_run(self._entered)}. Nothing was published; what was released before stays. {_LESS}",
            )
        return Settled(load, judged, decided, parts, held, tuple(told))

    def enter(self, settled: Settled, job_sha256: str, *, also_held: int = 0) -> Entered:
        """Write down who is released, in which class, with what.

        Parameters
        ----------
        also_held
            Rows that were held back beside those of the load, for the account.
        """
        load, subject, release, mark = (
            settled.load,
            settled.load.subject,
            self.book.next_release(),
            secrets.token_hex(16),
        )
        homes = self._homes(settled.judged, settled.decided, load.k, release)
        self._enter(load, release, settled.parts, homes, settled.judged.fields)
        criteria = json.dumps([asdict(r) for r in load.rules])
        self.book.enter_release(release, subject.name, load.kind, job_sha256, load.k, criteria, mark=mark)
        void = self.book.count(render("ledger/count_spenders", parts=settled.parts, budgets=table_of("budgets")))
        intersected = self._intersected(release, load.k)
        held, rows = len(settled.held) + also_held, load.rows.num_rows + also_held
        account = {
            "release": release,
            "held_back": held,
            "held_back_share": held / rows if rows else 0.0,
            "torn_cells": len(settled.decided.torn(settled.judged.branches)),
            "intersected": intersected,
        }
        warnings = (*settled.warnings, *self._warnings(subject.key, void))
        warnings += _much_held(load, held, rows, self._entered)
        self._entered.append(subject.key)
        return Entered(account, warnings, mark)

    def _intersected(self, release: int, k: int) -> Mapping[str, int]:
        """Who shares every class with a person of a release, in it and in all before it, by what is written down.

        It is counted from the ledger's tables and not from what was decided, so that an error there shows.
        """
        tables = {name: table_of(name) for name in ("people", "cells", "stays")}
        return {
            n: int(x) for n, x in self._engine.row("ledger/intersect_history", release=release, k=k, **tables).items()
        }

    def _match(self, load: Load) -> Judged:
        """The load beside the ledger."""
        fields = [
            {"name": identifier(f"c{i}"), "alias": identifier(f"f{i}"), "label": literal(label), "column": label}
            for i, label in enumerate(load.fields)
        ]
        put = self._engine.put("rows", self._hashed(load))
        members, table = (self._engine.workbench(name) for name in ("members", "branches"))
        tables = {name: table_of(name) for name in ("people", "cells", "contents")}
        self._engine.run("ledger/match_ledger", members=members, rows=put, fields=fields, **tables)
        self._engine.run("ledger/branch_ledger", branches=table, members=members)
        read = self._engine.ask("ledger/read_ledger", table=table).sort_by("branch")
        cell = read.column("cell").fill_null(-1).to_numpy()
        names, place = np.unique(cell[cell >= 0], return_inverse=True)
        at = np.full(len(cell), -1, dtype=np.int64)
        at[cell >= 0] = place
        leaves = read.column("class").is_null().to_numpy()
        branches = Branches(at, read.column("n").to_numpy(), read.column("k").to_numpy(), leaves)
        return Judged(self._engine, put, members, table, branches, names, fields, secrets.token_hex(16))

    def _settle(
        self, judged: Judged, k: int, now: Sequence[Rule], before: Sequence[Rule]
    ) -> tuple[Decision, exp.Table]:
        """Decide and judge in rounds, until every part meets every criterion."""
        branches = judged.branches
        withdrawn = np.zeros(len(branches.n), dtype=np.bool_)
        least = np.zeros(len(judged.names), dtype=np.int64)
        np.maximum.at(least, branches.cell[branches.known], branches.k[branches.known])
        for number in range(_ROUNDS):
            decided = decide(branches, k, withdrawn, least)
            parts = judged.split(decided)
            failing = judge_parts(judged, decided, parts, now, before)
            if not len(failing.released) and not len(failing.left):
                return decided, parts
            self._engine.drop(parts)
            withdrawn = withdrawn.copy()
            withdrawn[failing.released] = True
            least[failing.left] = 2 * decided.parts(branches)[1][failing.left]
            if number > _ROUNDS // 2:
                withdrawn |= np.isin(branches.cell, failing.left)
        raise VerificationError("the ledger found no parts that meet the criteria; nothing was published")

    def _hashed(self, load: Load) -> pa.Table:
        rows, types = load.rows, load.subject.types
        found = {
            "row": pa.array(np.arange(rows.num_rows), pa.int64()),
            "person": hash_persons(self.book.key, load.subject.person_type, rows.column("person")),
            "class": rows.column("class"),
        }
        for i, label in enumerate(load.fields):
            found[f"c{i}"] = hash_values(self.book.key, label, types[label], rows.column(f"c{i}"))
        return pa.table(found)

    def _enter(
        self,
        load: Load,
        release: int,
        parts: exp.Table,
        homes: exp.Table,
        fields: Sequence[Mapping[str, Any]],
    ) -> None:
        """Write down who was released, in which class, with what."""
        people = table_of("people")
        self._engine.run("ledger/move_people", people=people, parts=parts, homes=homes)
        self._engine.run("ledger/enter_people", people=people, parts=parts, homes=homes)
        self._engine.run("ledger/enter_stays", stays=table_of("stays"), parts=parts, people=people, release=release)
        self._engine.run(
            "ledger/raise_cells", cells=table_of("cells"), stays=table_of("stays"), release=release, k=load.k
        )
        for field in fields:
            self._engine.run(
                "ledger/enter_contents",
                contents=table_of("contents"),
                parts=parts,
                people=people,
                field=field["name"],
                label=field["label"],
                release=release,
            )
        self.book.enter_types(load.subject)

    def _homes(self, judged: Judged, decided: Decision, k: int, release: int) -> exp.Table:
        """New cells: one per part of a torn cell, and one per class of persons released for the first time."""
        branches = judged.branches
        kept, out = decided.parts(branches)
        torn = decided.torn(branches)
        split = np.isin(branches.cell, torn)
        released = np.flatnonzero((kept > 0) & (split | ~branches.known))
        left = torn[out[torn] > 0]
        start = int(self.book.count(render("ledger/count_cells", cells=table_of("cells"))))
        home = start + 1 + np.arange(len(released) + len(left), dtype=np.int64)
        old = np.concatenate([branches.cell[released], left])
        cell = pa.array([None if c < 0 else int(judged.names[c]) for c in old], pa.int64())
        part = pa.array([*map(int, released), *([None] * len(left))], pa.int64())
        most = np.zeros(len(out), dtype=np.int64)
        np.maximum.at(most, branches.cell[branches.known], branches.k[branches.known])
        known = np.where(old >= 0, most[old] if len(most) else 0, 0)
        new_k = np.where(np.arange(len(home)) < len(released), np.maximum(known, k), known)
        self.book.append_table(
            "cells", pa.table({"cell": home, "parent": cell, "born": np.full(len(home), release), "k": new_k})
        )
        return self._engine.put("homes", pa.table({"cell": cell, "part": part, "home": home}))

    def _warnings(self, key: str, void: int) -> list[str]:
        found = []
        if self.book.file.interrupted:
            found.append(
                f"{key}: an earlier run was stopped between the ledger's record and publication; its releases "
                "count as published"
            )
        if void:
            found.append(
                f"{key}: {void:,} of the persons released have spent ε in differentially private releases; this "
                "release voids their totals"
            )
        return found


def _much_held(load: Load, held: int, rows: int, before: Sequence[str]) -> tuple[str, ...]:
    """Why many of the rows that the criteria let out wait, and what to do; `before` are earlier releases of the run."""
    if held <= MUCH * rows:
        return ()
    what = "rows" if load.kind == "classes" else "persons"
    return (
        f"{load.subject.key}: the ledger holds back {held:,} of the {rows:,} {what} that the criteria let out "
        f"({100 * held / rows:.1f} %), for a later load. A class is kept until at least k persons are new in it, and "
        f"of those who were released before at least k alike must go on together{_of_this_run(before)}. {_LESS}",
    )


_LESS = (
    "Coarser levels, fewer columns, one table in place of several, or publishing less often hold back less: see the "
    'page "Every night"'
)


def _of_this_run(before: Sequence[str]) -> str:
    """That the releases which the run has entered already count as earlier ones."""
    return (
        f"; {', '.join(before)} of this run {'counts' if len(before) == 1 else 'count'} as released before"
        if before
        else ""
    )
