"""The re-check of a release by local recoding: on values and labels, by other SQL than what made it.

It shares nothing with the search, the fold or the writing. The source is grouped once more, by the leaves of its
values in the hierarchies; each combination gets the labels of the layer that it is said to be released by (the
*witness*); and the classes that come of it must be those that were written, each with its rows and a fingerprint of
what its rows hold beside their labels. Every class has at least k rows and meets every criterion, counted in what was
written alone; no more rows are missing than may be suppressed.

What it proves
    That each written row can be told a person of its own whose values its labels are true of, at levels of a noted
    layer, and whose other values it shows. The witness need not be believed: any that leads to what was written proves
    the same, and none does where a row is false. That layers are as low as they could be is not proven; the bound is
    (`sqldeid.tables.certificate.local_bound`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.hierarchy import Hierarchy
from sqldeid.job.local_rules import RECODING
from sqldeid.publish import names_of
from sqldeid.sql import column, identifier, literal, render
from sqldeid.tables.disguise.disguise import Secrets, check_coarse, check_pseudonyms, exact_of, kept_of
from sqldeid.tables.local.plan import LocalPlan
from sqldeid.tables.local.result import LocalVerified
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.plan.choosing import allowed_of
from sqldeid.tables.plan.plan import QuasiIdentifier
from sqldeid.tables.rows.shape import check_stacks
from sqldeid.tables.verify.judgement import Judgement


@dataclass(frozen=True, slots=True)
class Whole:
    """All rows of a source some of which are held back: what t is measured against, and a limit is a share of."""

    source: exp.Expr
    rows: int


@dataclass(frozen=True, slots=True)
class Reading:
    """What source and release are compared by: leaves and labels of each quasi-identifying column.

    Parameters
    ----------
    nodes
        The layers, by number from 1 on.
    typed
        Per column, whether it keeps its type; it is compared by its leaves then, else by its labels.
    """

    planned: LocalPlan
    nodes: tuple[Node, ...]
    hierarchies: tuple[Hierarchy, ...]
    typed: tuple[bool, ...]
    engine: Engine

    @classmethod
    def of(cls, planned: LocalPlan, nodes: Sequence[Node], hierarchies: Sequence[Hierarchy], engine: Engine) -> Reading:
        """How a release by these layers is read."""
        return cls(planned, tuple(nodes), tuple(hierarchies), tuple(planned.typed(nodes)), engine)

    @property
    def names(self) -> list[exp.Identifier]:
        """What the columns are called in tables of this re-check; the layer's number is the last, where it is shown."""
        own = [identifier(f"q{i}") for i in range(len(self.hierarchies))]
        return [*own, *([identifier(RECODING)] if self.planned.recoding else [])]

    def source(self, source: exp.Expr, secrets: Secrets | None) -> exp.Table:
        """The source by leaves: n and fingerprint of each combination."""
        plan = self.planned.table
        others = [*kept_of(plan, released=False), *exact_of(plan, secrets, released=False)]
        return self._grouped("source", source, self.source_columns(), others)

    def release(self, written: exp.Expr, secrets: Secrets | None) -> exp.Table:
        """The release by what it shows; a column with its own type by the leaves of its values."""
        plan = self.planned.table
        others = [*kept_of(plan, released=True), *exact_of(plan, secrets, released=True)]
        return self._grouped("release", written, self.release_columns(), [of_source(o) for o in others])

    def source_columns(self) -> list[dict[str, object]]:
        """Each quasi-identifying column of the source as the number of its value's leaf, for templates."""
        return [self._leaves(i, q, q.column) for i, q in enumerate(self.planned.table.qis)]

    def release_columns(self) -> list[dict[str, object]]:
        """What the release shows, for templates that call it `s`."""
        columns = []
        for i, q in enumerate(self.planned.table.qis):
            shown = column(q.name, "s")
            columns.append(self._leaves(i, q, shown) if self.typed[i] else _as_shown(self.names[i], shown))
        if self.planned.recoding:
            columns.append(_as_shown(self.names[-1], column(RECODING, "s")))
        return columns

    def texts(self, index: int, level: int) -> list[str | None]:
        """The label of each leaf of a column at a level."""
        hierarchy, qi = self.hierarchies[index], self.planned.table.qis[index]
        labels = np.asarray(qi.labels(hierarchy, level), dtype=object)[hierarchy.groups[level]]
        return [None if label is None else str(label) for label in labels.tolist()]

    def labels(self) -> list[dict[str, object]]:
        """Per column, its labels by level and leaf; none where its leaves are compared."""
        return [
            {
                "name": self.names[i],
                "alias": identifier(f"l{i}"),
                "level": identifier(f"x{i}"),
                "labels": None if self.typed[i] else self._labels(i),
            }
            for i in range(len(self.hierarchies))
        ]

    def layers(self) -> exp.Table:
        """The levels of each layer."""
        levels = np.array(self.nodes, dtype=np.int64).reshape(len(self.nodes), len(self.hierarchies))
        rows = {"layer": np.arange(1, len(levels) + 1), **{f"x{i}": levels[:, i] for i in range(levels.shape[1])}}
        return self.engine.put(f"{self.planned.name}_verify_layers", pa.table(rows))

    def _labels(self, index: int) -> exp.Table:
        hierarchy, used = self.hierarchies[index], sorted({node[index] for node in self.nodes})
        rows = {
            "level": np.repeat(np.array(used, dtype=np.int64), hierarchy.leaves),
            "leaf": np.tile(np.arange(hierarchy.leaves, dtype=np.int64), len(used)),
            "label": pa.array([text for x in used for text in self.texts(index, x)], type=pa.string()),
        }
        return self.engine.put(f"{self.planned.name}_verify_labels_{index}", pa.table(rows))

    def _leaves(self, index: int, qi: QuasiIdentifier, value: exp.Expr) -> dict[str, object]:
        """A column as the number of its value's leaf."""
        hierarchy = self.hierarchies[index]
        there = hierarchy.values.is_valid()
        absent = np.flatnonzero(~there.to_numpy(zero_copy_only=False))
        rows = pa.table({"value": hierarchy.values, "label": hierarchy.leaf}).filter(there)
        return {
            "name": self.names[index],
            "column": value,
            "alias": identifier(f"m{index}"),
            "labels": self.engine.put(f"{self.planned.name}_verify_leaves_{index}", rows),
            "type": qi.travel_type,
            "null_label": literal(int(hierarchy.leaf[absent[0]])) if len(absent) else literal(None),
            "text": False,
        }

    def _grouped(
        self, what: str, rows: exp.Expr, columns: Sequence[Mapping[str, object]], others: Sequence[exp.Expr]
    ) -> exp.Table:
        grouped = self.engine.workbench(f"{self.planned.name}_verify_{what}")
        self.engine.execute(
            render(
                "tables/verify/group_source", grouped=grouped, source=rows, columns=list(columns), others=list(others)
            )
        )
        return grouped


def _as_shown(name: exp.Identifier, shown: exp.Expr) -> dict[str, object]:
    return {"name": name, "column": shown, "labels": None, "text": False}


def of_source(released: exp.Expr) -> exp.Expr:
    """A column of a release, which the template calls `s` as it does every relation."""
    found = released.copy()
    for part in found.find_all(exp.Column):
        part.set("table", identifier("s"))
    return found


def verify_layers(
    reading: Reading,
    source: exp.Expr,
    written: exp.Expr,
    witness: pa.Table,
    secrets: Secrets | None = None,
    whole: Whole | None = None,
) -> LocalVerified:
    """Compare what was written with the classes that the source's combinations form by their layers.

    Parameters
    ----------
    source, written
        What to read: the source as the plan filters it, and the release.
    witness
        ``q0``, ``q1`` … (leaves of a combination as the hierarchies number them) and ``layer``, from 1 on; who is not
        in it is suppressed.
    secrets
        With which `source` was disguised.
    whole
        Where `source` is without rows that the ledger holds back: with them.

    Raises
    ------
    VerificationError
        If columns, classes, counts, a criterion or other columns' content are not what they must be.

    Cost: one scan of the source, one of the release, another for each criterion.
    """
    planned, engine = reading.planned, reading.engine
    plan, k = planned.table, planned.table.demands.k
    refuse_columns(planned, written, engine)
    check_stacks(plan, engine, source)
    placed, expected = (engine.workbench(f"{planned.name}_verify_{w}") for w in ("placed", "expected"))
    engine.execute(
        render(
            "tables/local/place_combinations",
            placed=placed,
            grouped=reading.source(source, secrets),
            layers=reading.layers(),
            witness=engine.put(f"{planned.name}_verify_witness", witness),
            columns=reading.labels(),
            recoding=identifier(RECODING) if planned.recoding else None,
        )
    )
    names = reading.names
    columns = [{"name": n, "top": literal("*")} for n in names]
    engine.execute(
        render("tables/verify/expect_release", expected=expected, grouped=placed, k=k, blank=False, columns=columns)
    )
    shown = reading.release(written, secrets)
    row = engine.query(
        render("tables/verify/compare_release", expected=expected, written=shown, source=placed, columns=names)
    ).to_pylist()[0]
    problems = []
    if row["missing"]:
        problems.append(f"{row['missing']} classes are missing or differ from the source")
    if row["unexpected"]:
        problems.append(f"{row['unexpected']} classes are not what the source gives")
    return conclude(reading, Compared(row, shown, problems), source, written, whole)


@dataclass(frozen=True, slots=True)
class Compared:
    """What a comparison of the release with the source found.

    Parameters
    ----------
    row
        ``source_rows``, ``rows`` (released), ``classes`` and ``smallest``.
    shown
        The release's classes.
    problems
        What was found wrong.
    """

    row: Mapping[str, int]
    shown: exp.Table
    problems: Sequence[str]


def conclude(
    reading: Reading, compared: Compared, source: exp.Expr, written: exp.Expr, whole: Whole | None = None
) -> LocalVerified:
    """Judge what a reader sees: the size of every class, the criteria, the rows that are missing.

    Parameters
    ----------
    whole
        As of `verify_layers`; the rows that are told are its.

    Raises
    ------
    VerificationError
        If anything is wrong.
    """
    planned, engine, row = reading.planned, reading.engine, compared.row
    plan, demands = planned.table, planned.table.demands
    rows, released = int(row["source_rows"]), int(row["rows"])
    found = list(compared.problems)
    if released and row["smallest"] < demands.k:
        found.append(f"its smallest class has {row['smallest']} rows, not {demands.k}")
    every = rows if whole is None else whole.rows
    if not 0 <= rows - released <= allowed_of(plan, every):
        found.append("more rows are missing than may be suppressed")
    if found:
        raise VerificationError.at(planned.key, f"the release failed its re-check: {'; '.join(found)}")
    against = None if whole is None else whole.source
    criteria = Judgement(plan, engine, source, (), written, against).achieved()
    check_pseudonyms(plan, source, written, engine)
    check_coarse(plan, written, engine)
    sizes = engine.query(render("tables/verify/count_sizes", grouped=compared.shown)).to_pylist()
    return LocalVerified(
        rows=every,
        released=released,
        suppressed=rows - released,
        k=int(row["smallest"]),
        classes=int(row["classes"]),
        sizes={int(r["size"]): int(r["classes"]) for r in sizes},
        layers=len(reading.nodes),
        criteria=criteria,
    )


def refuse_columns(planned: LocalPlan, written: exp.Expr, engine: Engine) -> None:
    """Refuse a release whose columns are not those of the job.

    Raises
    ------
    VerificationError
        If they are not.
    """
    there = names_of(engine.columns(written, key=planned.key), planned.key)
    if there != planned.released:
        raise VerificationError.at(
            planned.key,
            f"the release failed its re-check: its columns are not the {len(planned.released)} that the job names",
        )
