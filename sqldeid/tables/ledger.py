"""The release ledger: what was released of whom so far, so that no two releases can be compared to single anybody out.

**Cells.** A person's *trace* is the sequence, over all releases of the ledger, of what was released of the person: the
equivalence class, or nothing; and for each column released beside the class (sensitive, insensitive) which release
was the first to tell the person's value. Persons with one trace are a *cell*. A release tears a cell into parts; each
row of a part that would be too small is held back, and comes with a later load.

Guarantee
    Let p be a person of any release, and let an attacker know the traces of everybody: all quasi-identifying values at
    every load, who is in it, and whose other columns were corrected when, one by one. Whatever the attacker computes
    from all releases together (differences, intersections and unions of classes, of any number of releases), the set of
    persons behind it is empty or has at least k members, k the greatest under which they were released; and the values
    of each l-diverse or t-close column in every release are, over each such least set, l-diverse and t-close.
    *Proof.* A set that the attacker can name by classes of releases is described by traces, so it is a union of cells:
    every two persons of a cell are in the same classes of the same releases. A person of a release is in no cell of
    those who were never released. Each cell has at least its k persons, by induction over releases: a cell is made
    of k or more persons who are released for the first time in one class, and a part of a cell, released or not, is
    left as it is only if it is the whole cell or has k or more persons (`ledger_parts.decide`; `judge_parts` for l
    and t, on what is released now and on what was released of the part before). Rows that a part's persons have in a
    release are indistinguishable by class, and are told from those of the class's other parts at best. A union of sets
    that meet k, l or t meets it (entropy is concave, the distance convex), so each class does, too. ∎
    In particular what joined and what left a class between *any two* releases is 0 or at least k persons (soundness.md
    6), and another node, k or column set for the same persons is held to the join of all releases, not of pairs alone.

Assumes
    One ledger, which is never rolled back, for all releases of these persons (another or an older one is told by the
    mark on the release that is replaced); the person key means one person for good; a column keeps its name.
    Persons' rows are released as they are or held back, never altered. t is measured against the table of the release
    in which a value was first released.

Does not protect
    Against what one release tells by itself (see the criteria), nor against what a missing class tells: that its rows
    were too few, or held back. A person who once left a cell with k - 1 companions is released again only with k of
    these at once: some rows never are, and the longer the series, the more. Values of the persons of a cell that are
    all the same once a criterion was not asked for are not hidden.

Source: soundness.md 5, 6, 7. The joint table of releases: Sweeney 2002, §4 (temporal attack); m-invariance (Xiao & Tao
2007) asks for less, and adds counterfeit rows.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError, VerificationError
from sqldeid.publish import LEDGER_MARK, LEDGER_NOTE, Note
from sqldeid.result import TableRelease
from sqldeid.sql import identifier, literal, render
from sqldeid.tables.admitted import admitted
from sqldeid.tables.ledger_book import OPTION, Book
from sqldeid.tables.ledger_hash import hash_persons, hash_values, label_of
from sqldeid.tables.ledger_parts import Branches, Decision, decide
from sqldeid.tables.ledger_rules import (
    Judged,
    Rule,
    judge_parts,
    marginals_of,
    refuse_unkept,
    rules_of,
    stored_rules,
)
from sqldeid.tables.ledger_tables import table_of
from sqldeid.tables.plan import OtherColumn, TablePlan
from sqldeid.tables.stage import Chosen, keep_classes

_ROUNDS = 64
"""Times that parts are judged before what still fails is withdrawn as a whole."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """What the ledger lets out of a load.

    Parameters
    ----------
    chosen
        The node on the source without the rows that are held back.
    held
        The persons of these rows, as the source spells them; None where there are none.
    account
        What the result says of it.
    mark
        Drawn for this release: by it a ledger knows what it wrote down itself.
    """

    chosen: Chosen
    held: exp.Table | None
    account: Mapping[str, object]
    warnings: tuple[str, ...]
    mark: str


class Ledger:
    """The ledger of one run; its releases are entered one after the other, each held to all before it."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self._engine: Engine = book.engine

    def admit(self, chosen: Chosen, engine: Engine, job_sha256: str) -> Admitted:
        """Hold back what would single persons out beside the releases before; enter the rest.

        Cost: two scans of the source, two where rows are held back; a hash of each released row's person and values.

        Raises
        ------
        JobError
            If the release is of a kind that the ledger cannot keep.
        VerificationError
            If no row may be released.
        """
        plan = chosen.plan
        self._refuse(plan)
        release, mark = self.book.next_release(), secrets.token_hex(16)
        rows = _rows_of(chosen, engine)
        judged = self._match(plan, rows)
        now, before = rules_of(plan, release), stored_rules(self.book.releases())
        for marginal in marginals_of(plan, chosen.folded, engine, self.book.key, release):
            self.book.append_table("marginals", marginal)
        decided, parts = self._settle(judged, chosen.k, now, before)
        held = self._engine.query(render("tables/list_held", parts=parts)).column("row")
        if len(held) == rows.num_rows:
            raise VerificationError(
                f"{plan.key}: the ledger holds every row back: beside the earlier releases each would single somebody "
                "out. Nothing was published; what was released before stays, and the rows come with a later load",
                key=plan.key,
            )
        homes = self._homes(judged, decided, chosen.k, release)
        self._enter(plan, chosen.k, release, parts, homes, judged.fields)
        self.book.enter_release(
            release, plan.name, "classes", job_sha256, chosen.k, json.dumps([asdict(r) for r in now]), mark=mark
        )
        void = self.book.count(render("tables/count_spenders", parts=parts, budgets=table_of("budgets")))
        account = {
            "release": release,
            "held_back": len(held),
            "held_back_share": len(held) / rows.num_rows,
            "torn_cells": len(decided.torn(judged.branches)),
        }
        warnings = tuple(self._warnings(plan, void))
        if not len(held):
            return Admitted(chosen, None, account, warnings, mark)
        persons = engine.put(f"{plan.name}_held", pa.table({"person": rows.column("person").take(held)}))
        return Admitted(_without(chosen, engine, persons), persons, account, warnings, mark)

    def _match(self, plan: TablePlan, rows: pa.Table) -> Judged:
        """The load beside the ledger."""
        fields = [
            {"name": identifier(f"c{i}"), "alias": identifier(f"f{i}"), "label": literal(label_of(c.name))}
            | {"column": label_of(c.name)}
            for i, c in enumerate(plan.others)
        ]
        put = self._engine.put("rows", self._hashed(rows, plan.others))
        members, table = (self._engine.workbench(name) for name in ("members", "branches"))
        tables = {name: table_of(name) for name in ("people", "cells", "contents")}
        self._engine.execute(render("tables/match_ledger", members=members, rows=put, fields=fields, **tables))
        self._engine.execute(render("tables/branch_ledger", branches=table, members=members))
        read = self._engine.query(render("tables/read_ledger", table=table)).sort_by("branch")
        cell = read.column("cell").fill_null(-1).to_numpy()
        names, place = np.unique(cell[cell >= 0], return_inverse=True)
        at = np.full(len(cell), -1, dtype=np.int64)
        at[cell >= 0] = place
        leaves = read.column("class").is_null().to_numpy()
        branches = Branches(at, read.column("n").to_numpy(), read.column("k").to_numpy(), leaves)
        return Judged(self._engine, members, table, branches, names, fields, secrets.token_hex(16))

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

    def _hashed(self, rows: pa.Table, others: Sequence[OtherColumn]) -> pa.Table:
        found = {
            "row": pa.array(np.arange(rows.num_rows), pa.int64()),
            "person": hash_persons(self.book.key, rows.column("person")),
            "class": rows.column("class"),
        }
        for i, other in enumerate(others):
            found[f"c{i}"] = hash_values(self.book.key, label_of(other.name), rows.column(f"c{i}"))
        return pa.table(found)

    def _enter(
        self,
        plan: TablePlan,
        k: int,
        release: int,
        parts: exp.Table,
        homes: exp.Table,
        fields: Sequence[Mapping[str, Any]],
    ) -> None:
        """Write down who was released, in which class, with what."""
        people = table_of("people")
        self._engine.execute(render("tables/move_people", people=people, parts=parts, homes=homes))
        self._engine.execute(render("tables/enter_people", people=people, parts=parts, homes=homes))
        self._engine.execute(
            render("tables/enter_stays", stays=table_of("stays"), parts=parts, people=people, release=release)
        )
        self._engine.execute(
            render("tables/raise_cells", cells=table_of("cells"), stays=table_of("stays"), release=release, k=k)
        )
        for field in fields:
            self._engine.execute(
                render(
                    "tables/enter_contents",
                    contents=table_of("contents"),
                    parts=parts,
                    people=people,
                    field=field["name"],
                    label=field["label"],
                    release=release,
                )
            )
        self.book.enter_types(plan)

    def _homes(self, judged: Judged, decided: Decision, k: int, release: int) -> exp.Table:
        """New cells: one per part of a torn cell, and one per class of persons released for the first time."""
        branches = judged.branches
        kept, out = decided.parts(branches)
        torn = decided.torn(branches)
        split = np.isin(branches.cell, torn)
        released = np.flatnonzero((kept > 0) & (split | ~branches.known))
        left = torn[out[torn] > 0]
        start = int(self.book.count(render("tables/count_cells", cells=table_of("cells"))))
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

    def _warnings(self, plan: TablePlan, void: int) -> list[str]:
        found = []
        if self.book.file.interrupted:
            found.append(
                f"{plan.key}: an earlier run was stopped between the ledger's record and publication; its releases "
                "count as published"
            )
        if void:
            found.append(
                f"{plan.key}: {void:,} of the persons released have spent ε in differentially private releases; this "
                "release voids their totals"
            )
        return found

    def _refuse(self, plan: TablePlan) -> None:
        """What the theorem does not cover."""
        self.book.refuse_person(plan)
        self.book.refuse_types(plan)
        if plan.part.privacy.suppression == "blank":
            key = f"{plan.key}.privacy.suppression"
            raise JobError(f'{key}: blanked rows show who left a class; with {OPTION} write "drop"', key=key)
        if plan.part.view == "computed":
            key = f"{plan.key}.view"
            raise JobError(f"{key}: a computed view changes between two runs; with {OPTION} write a snapshot", key=key)
        refuse_unkept(plan)


def _rows_of(chosen: Chosen, engine: Engine) -> pa.Table:
    """Every row of a released class: person, class, and what is released beside the class."""
    plan = chosen.plan
    fields = [{"name": identifier(f"c{i}"), "column": c.column} for i, c in enumerate(plan.others)]
    kept = keep_classes(chosen, engine)
    rows = engine.query(
        render(
            "tables/list_admissible",
            source=chosen.folded.source,
            person=plan.person_column,
            kept=kept,
            words=chosen.words,
            fields=fields,
        )
    )
    engine.drop(kept)
    return rows


def _without(chosen: Chosen, engine: Engine, held: exp.Table) -> Chosen:
    """The node on the source without these persons."""
    plan, folded = chosen.plan, chosen.folded
    source = admitted(plan, engine, folded.source, held)
    classes = engine.workbench(f"{plan.name}_admitted_classes")
    engine.execute(render("tables/fold_classes", classes=classes, source=source, words=chosen.words, sensitive=[]))
    return replace(chosen, folded=replace(folded, source=source, table=classes))


def held_by(let_out: Admitted | None) -> exp.Table | None:
    """The persons whose rows are held back, where there is a ledger and it holds any."""
    return None if let_out is None else let_out.held


def noted(note: Note, let_out: Admitted | None) -> Note:
    """The note of a release with its number in the ledger: who checks it again must ask the ledger who is in it."""
    if let_out is None:
        return note
    kept = {LEDGER_NOTE: let_out.account["release"], LEDGER_MARK: let_out.mark}
    return replace(note, content={**note.content, **kept})


def with_ledger(result: TableRelease, let_out: Admitted | None) -> TableRelease:
    """The result with what the ledger says of it."""
    if let_out is None:
        return result
    return replace(result, ledger=let_out.account, warnings=(*result.warnings, *let_out.warnings))
