"""The criteria beyond k that the parts of the ledger's cells must meet, now and on what was released of them before."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.ledger.parts import Branches, Decision
from sqldeid.ledger.store import table_of
from sqldeid.rechecked import parameters_of
from sqldeid.sql import identifier, literal


@dataclass(frozen=True, slots=True)
class Rule:
    """One criterion of one column.

    Parameters
    ----------
    kind
        distinct, entropy or recursive (l-diversity); equal or ordered (t-closeness); else as `score_classes` takes it.
    l, num, den
        As `fail_classes` takes them: l; c or t as a fraction.
    release
        Against whose table t is measured; 0 for l-diversity.
    """

    column: str
    kind: str
    l: int
    num: int
    den: int
    release: int = 0

    @property
    def close(self) -> bool:
        """Whether it is measured against a table."""
        return self.release != 0


def stored_rules(releases: Sequence[Mapping[str, Any]]) -> list[Rule]:
    """The criteria of all releases so far, each once; t-closeness once for each release."""
    return sorted({Rule(**entry) for row in releases for entry in json.loads(row["criteria"])}, key=repr)


@dataclass(frozen=True, slots=True)
class Judged:
    """A load beside the ledger, as the tables that parts are made of.

    Parameters
    ----------
    rows
        The load by itself.
    names
        The ledger's number of each cell, by its place in `branches`.
    fields
        Columns released beside the class: name in the tables, label in the ledger.
    """

    engine: Engine
    rows: exp.Table
    members: exp.Table
    table: exp.Table
    branches: Branches
    names: Ints
    fields: Sequence[Mapping[str, Any]]
    salt: str

    def split(self, decided: Decision) -> exp.Table:
        """Every person with the part that would be released; None where none is."""
        decisions = self.engine.put(
            "decisions",
            pa.table(
                {
                    "branch": np.arange(len(decided.companions), dtype=np.int64),
                    "companions": decided.companions,
                    "withdrawn": decided.withdrawn,
                }
            ),
        )
        return self.engine.make(
            "ledger/split_ledger",
            "parts",
            members=self.members,
            branches=self.table,
            decisions=decisions,
            salt=literal(self.salt),
        )

    def field(self, column: str) -> Mapping[str, Any] | None:
        """How a column is called in the tables, where it is released now."""
        return next((f for f in self.fields if f["column"] == column), None)


@dataclass(frozen=True, slots=True)
class Failing:
    """Parts that fail a criterion: branches that would be released, and cells by what would leave them."""

    released: Ints
    left: Ints


def judge_parts(
    judged: Judged, decided: Decision, parts: exp.Table, now: Sequence[Rule], before: Sequence[Rule]
) -> Failing:
    """Hold the parts to the criteria: the released ones by what is released now, those of torn cells by what was."""
    found = [_failing_now(judged, parts, rule) for rule in now]
    torn = decided.torn(judged.branches)
    if len(torn) and before:
        put = judged.engine.put("torn", pa.table({"cell": judged.names[torn]}))
        ranges = _ranges(before)
        found += [_failing_before(judged, parts, put, rule, ranges.get(rule)) for rule in before]
    failing = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *found]))
    left = -1 - failing[failing < 0]
    return Failing(failing[failing >= 0], np.searchsorted(judged.names, left).astype(np.int64))


def _ranges(rules: Sequence[Rule]) -> dict[Rule, tuple[int, int]]:
    """The versions that a t-close rule is for: after the release with a table before it, up to its own release."""
    found = {}
    for rule in (r for r in rules if r.close):
        earlier = [r.release for r in rules if r.close and r.column == rule.column and r.release < rule.release]
        found[rule] = (max(earlier, default=0) + 1, rule.release)
    return found


def _failing_now(judged: Judged, parts: exp.Table, rule: Rule) -> Ints:
    field = judged.field(rule.column)
    if field is None:
        return np.zeros(0, dtype=np.int64)
    cells = judged.engine.make("ledger/judge_parts", "judged", parts=parts, field=field["name"])
    return _failing(judged.engine, cells, rule, ("part",))


def _failing_before(
    judged: Judged, parts: exp.Table, torn: exp.Table, rule: Rule, versions: tuple[int, int] | None
) -> Ints:
    cells = judged.engine.make(
        "ledger/judge_history",
        "judged_before",
        parts=parts,
        torn=torn,
        contents=table_of("contents"),
        label=literal(rule.column),
        versions=versions is not None,
        first=versions[0] if versions else 0,
        last=versions[1] if versions else 0,
    )
    return _failing(judged.engine, cells, rule, ("part", "since"))


def _failing(engine: Engine, cells: exp.Table, rule: Rule, columns: Sequence[str]) -> Ints:
    ranked = table_of("marginals")
    if rule.close:
        ranked = engine.make(
            "ledger/pick_marginals",
            "ranked",
            marginals=table_of("marginals"),
            release=rule.release,
            label=literal(rule.column),
        )
    asked: dict[str, Any] = {"kind": rule.kind, "l": rule.l, "num": rule.num, "den": rule.den}
    asked = parameters_of(engine, asked, cells, ranked, [identifier(c) for c in columns], "scored")
    failing = engine.make("tables/verify/fail_classes", "failing", ranked=ranked, **asked)
    read = engine.ask("ledger/read_ledger", table=failing).column("part")
    for table in dict.fromkeys((failing, cells, asked["cells"])):
        engine.drop(table)
    found: Ints = read.to_numpy().astype(np.int64)
    return found
