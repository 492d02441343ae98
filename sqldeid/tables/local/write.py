"""Write classes with levels of their own: combination, layer, labels, in the engine of the source."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.job.local_rules import RECODING
from sqldeid.making import Cohorts
from sqldeid.publish import LAYERS_KIND, Note, Staging
from sqldeid.sql import column, identifier, render
from sqldeid.tables.fold.fold import Coded, Folded
from sqldeid.tables.local.layers import Layered
from sqldeid.tables.local.plan import LocalPlan
from sqldeid.tables.plan.plan import QuasiIdentifier
from sqldeid.tables.write.ordering import order_of
from sqldeid.tables.write.stage import from_classes, kept_name


def stage_layers(layered: Layered, staging: Staging, note: Note) -> exp.Expr:
    """Write the release where it is staged; what was written, to be verified.

    Parameters
    ----------
    layered
        With the source as it leaves: disguised, where the job asks for that.

    Cost: none of the source where every released column is quasi-identifying, else one scan.
    """
    planned, folded = layered.planned, layered.folded
    plan = planned.table
    if planned.recoding:
        stage_table_of(layered, staging)
    kept = keep_combinations(layered)
    place = {q.name: column(kept_name(i), "e") for i, q in enumerate(plan.qis)}
    columns = [
        {"name": identifier(c.name), "value": place[c.name] if isinstance(c, QuasiIdentifier) else c.leaving}
        for c in plan.released
    ]
    if planned.recoding:
        columns.append({"name": identifier(RECODING), "value": column(RECODING, "e")})
    if not plan.others:
        return staging.write(from_classes(kept, columns, folded.rows), note)
    return staging.write(
        lambda target: render(
            "tables/write/stage_rows",
            target=target,
            source=folded.source,
            kept=kept,
            words=words_of(planned, folded),
            columns=columns,
            order=[o for c in plan.others for o in order_of(c, layered.engine)],
        ),
        note,
    )


PLACING = ("tables/write/label_values", "tables/local/keep_combinations", "tables/write/place_rows")
"""The statements of `place_layers`."""


def place_layers(layered: Layered, cohorts: Cohorts | None) -> None:
    """Keep the class of every row of the source beside it, for whoever compares the tables of a run."""
    planned, folded, engine = layered.planned, layered.folded, layered.engine
    k, source = planned.table.demands.k, folded.source
    placed = None if cohorts is None else cohorts.place(planned.name, k, source, engine)
    if placed is None:
        return
    kept, words, columns = keep_combinations(layered), words_of(planned, folded), placed.columns
    statement = render(
        "tables/write/place_rows", placed=placed.table, columns=columns, source=source, kept=kept, words=words
    )
    engine.execute(statement)
    engine.drop(kept)


def stage_table_of(layered: Layered, staging: Staging) -> None:
    """Write the table of layers: the level of each quasi-identifying column by the number that rows tell."""
    planned, layers, engine = layered.planned, layered.layers, layered.engine
    names = [q.name for q in planned.table.qis]
    levels = np.array(layers.nodes, dtype=np.int64).reshape(len(layers.nodes), len(names))
    rows = {"layer": np.arange(1, len(levels) + 1), **{_level(i): levels[:, i] for i in range(len(names))}}
    table = engine.put(f"{planned.name}_levels", pa.table(rows))
    columns = [{"name": identifier(n), "level": identifier(_level(i))} for i, n in enumerate(names)]
    told = dict.fromkeys(names, "level, 0 as in the source") | {RECODING: "number of the layer"}
    note = Note(planned.layers_name, {"kind": LAYERS_KIND, "of": planned.name}, told)
    recoding = identifier(RECODING)
    staging.write(
        lambda target: render(
            "tables/local/write_layers", target=target, layers=table, recoding=recoding, columns=columns
        ),
        note,
    )


def keep_combinations(layered: Layered) -> exp.Table:
    """A temporary table of the released combinations with their labels and their place in the release's order.

    Cost: the combinations travel to the source's engine, with the number of their layer.
    """
    planned, folded, found = layered.planned, layered.folded, layered.found
    layers, engine = layered.layers, layered.engine
    name, here = planned.name, layers.released
    words = {w.name: values[here] for w, values in zip(folded.words, found.words, strict=True)}
    numbers = {"layer": layers.layer[here] + 1, "recoding": layers.recoding[here], "n": found.rows[here]}
    assigned = engine.put(f"{name}_assigned", pa.table({**words, **numbers}))
    levels = np.array(layers.nodes, dtype=np.int64).reshape(len(layers.nodes), len(folded.columns))
    masks = [[c.field.mask(int(x)) for x in levels[:, i]] for i, c in enumerate(folded.columns)]
    told = {_level(i): levels[:, i] for i in range(len(folded.columns))}
    told |= {_mask(i): np.array(masks[i], dtype=np.int64) for i in range(len(folded.columns))}
    table = engine.put(f"{name}_layers", pa.table({"layer": np.arange(1, len(levels) + 1), **told}))
    typed = planned.typed(layers.nodes)
    columns = [
        _column(name, i, c, np.unique(levels[:, i]), engine, typed=typed[i]) | {"word": folded.words[c.field.word]}
        for i, c in enumerate(folded.columns)
    ]
    kept = engine.workbench(f"{name}_kept")
    engine.execute(
        render(
            "tables/local/keep_combinations",
            kept=kept,
            assigned=assigned,
            layers=table,
            words=[{"name": w} for w in folded.words],
            recoding=identifier(RECODING) if planned.recoding else None,
            columns=columns,
        )
    )
    return kept


def _column(name: str, index: int, coded: Coded, levels: Ints, engine: Engine, *, typed: bool) -> dict[str, object]:
    """A quasi-identifying column: the source's values where it keeps its type, else labels by level."""
    made = {"name": identifier(kept_name(index)), "alias": identifier(f"l{index}")}
    if typed:
        values = engine.workbench(f"{name}_labels_{index}")
        engine.execute(render("tables/write/label_values", labels=values, coded=coded.table))
        return {**made, "labels": values, "level": None, "mask": coded.field.mask(0)}
    shown = [coded.qi.labels(coded.hierarchy, int(x)).tolist() for x in levels]
    rows = {
        "level": np.repeat(levels, np.array([len(labels) for labels in shown], dtype=np.int64)),
        "prefix": np.concatenate([np.zeros(0, dtype=np.int64), *(coded.prefixes(int(x)) for x in levels)]),
        "label": pa.array([label for labels in shown for label in labels], type=pa.string()),
    }
    labels = engine.put(f"{name}_labels_{index}", pa.table(rows))
    return {**made, "labels": labels, "level": identifier(_level(index)), "mask": identifier(_mask(index))}


def _level(index: int) -> str:
    return f"x{index}"


def _mask(index: int) -> str:
    return f"m{index}"


def words_of(planned: LocalPlan, folded: Folded) -> list[dict[str, object]]:
    """Words with the columns in each; nothing is masked, for a row is found by its whole combination."""
    masks = folded.coding.masks(planned.table.lattice.bottom)
    return [
        {
            "name": name,
            "mask": mask,
            "columns": [
                {"alias": identifier(f"h{i}"), "column": c.qi.column, "coded": c.table, "null_code": c.null_code}
                for i, c in enumerate(folded.columns)
                if c.field.word == word
            ],
        }
        for word, (name, mask) in enumerate(zip(folded.words, masks, strict=True))
    ]
