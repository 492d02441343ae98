"""Translate the criteria of a table release beyond k into the rules that the ledger keeps."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.job.ledger_rules import REFUSED
from sqldeid.keys import Key
from sqldeid.ledger.hashing import hash_values, label_of, spelling
from sqldeid.ledger.rules import Rule
from sqldeid.tables.criteria import known, others_of, terms_of
from sqldeid.tables.fold.fold import Folded
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.verify.judgement import rank_values


def rules_of(plan: TablePlan, release: int) -> list[Rule]:
    """The criteria of a release that is made."""
    found = []
    for c in plan.criteria:
        asked = terms_of(c)
        found.append(Rule(label_of(c.column), **asked.recheck, release=release if c.against_whole else 0))
    return found


def marginals_of(plan: TablePlan, folded: Folded, engine: Engine, key: Key, release: int) -> list[pa.Table]:
    """The distribution of each column that is measured against it, over the whole table, as the ledger keeps it."""
    found = []
    columns = {c.column for c in plan.criteria if known(c).against_whole}
    for judged in (c for c in plan.judged if c.name in columns):
        ranked = rank_values(plan, judged, engine, folded.source, judged.column)
        rows = engine.ask("tables/fold/list_ranked", ranked=ranked)
        found.append(
            pa.table(
                {
                    "release": pa.array(np.full(rows.num_rows, release), pa.int32()),
                    "field": pa.array([label_of(judged.name)] * rows.num_rows, pa.string()),
                    "value": hash_values(key, label_of(judged.name), spelling(judged.source), rows.column("value")),
                    "n": rows.column("n"),
                    "place": rows.column("place"),
                }
            )
        )
    return found


def refuse_unkept(plan: TablePlan) -> None:
    """Criteria that the ledger does not hold parts to.

    Raises
    ------
    JobError
        For m-concealing, k-map, joint l-diversity, distances by a hierarchy, and what all released classes must meet
        together.
    """
    key = f"{plan.key}.privacy"
    for c in plan.aggregated:
        raise JobError.at(f"{plan.key}.columns.{c.name}.hierarchy.aggregate", REFUSED["aggregate"])
    if plan.concealing is not None:
        raise JobError.at(f"{key}.m_concealing", REFUSED["m_concealing"])
    if plan.mapped:
        asked = "k_map" if plan.k_map is not None else "delta_presence"
        raise JobError.at(f"{key}.{asked}", REFUSED[asked])
    if plan.overall is not None:
        names = [*plan.overall.said()]
        raise JobError.at(f"{key}.{names[0]}", REFUSED[names[0]])
    if any(terms_of(c).groups is not None for c in plan.criteria):
        raise JobError.at(f"{key}.t_closeness", REFUSED['distance = "hierarchical"'])
    if any(others_of(c) for c in plan.criteria):
        raise JobError.at(f"{key}.l_diversity", REFUSED['scope = "joint"'])
