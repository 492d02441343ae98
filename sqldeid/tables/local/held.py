"""Enter a release by local recoding in the ledger (`sqldeid.ledger`), and hold back the rows that it must not show.

*Guarantee*: the ledger's. Its proof takes classes as sets of persons, however they were formed and whatever their
labels: so it holds for classes with levels of their own, and for releases that formed others. *Does not protect*
against what levels tell by themselves: they are chosen before rows are held back, as a node is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.ledger.book import Subject
from sqldeid.ledger.core import Entered, Ledger, Load
from sqldeid.ledger.hashing import label_of
from sqldeid.ledger.levels import Levels, earlier_levels, enter_levels
from sqldeid.tables.ledger.contents import fields_of, refuse_unfit, subject_of
from sqldeid.tables.ledger.rules import marginals_of, rules_of
from sqldeid.tables.local.again import kept_layers, split
from sqldeid.tables.local.combinations import Combinations
from sqldeid.tables.local.layers import SUPPRESSED, Layered, Layers
from sqldeid.tables.local.plan import LocalPlan
from sqldeid.tables.local.write import words_of
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.rows.held_back import without_held_back


@dataclass(frozen=True, slots=True)
class LetOut:
    """What the ledger lets out.

    Parameters
    ----------
    found, layers
        The combinations with the rows that go out, and beside them, as suppressed, with those that do not.
    source
        Without the rows that are held back.
    suppressed
        Rows that criteria suppress; no earlier or later release has to do with them.
    whole
        Whether nobody is held back, and nobody's levels are those of an earlier release.
    """

    found: Combinations
    layers: Layers
    source: exp.Expr
    suppressed: int
    entered: Entered
    whole: bool


def let_out(layered: Layered, ledger: Ledger, job: str) -> LetOut:
    """Keep who was released before in their classes; hold back what would single persons out; enter the rest.

    Parameters
    ----------
    job
        SHA-256 of the job.

    Raises
    ------
    JobError
        If the release is of a kind that the ledger cannot keep.
    VerificationError
        If no row may be released.

    Cost: one scan of the source, another where rows are held back; two hashes of each person, one of each value.
    """
    planned, folded, layers, engine = layered.planned, layered.folded, layered.layers, layered.engine
    plan, book, found = planned.table, ledger.book, layered.found
    subject = subject_of(plan, engine)
    refuse_unfit(ledger, plan, subject)
    rows = _rows_of(layered)
    combination = rows.column("class").to_numpy().astype(np.int64)
    earlier = earlier_levels(book, subject, rows.column("person"))
    again, suppressed = any(earlier), int(layers.problem.rows[~layers.released].sum())
    if again:  # who was suppressed then, or is in no class now, waits: later persons may be like them
        layers, suppressed = _kept(planned, layers, combination, earlier), 0
    in_class = layers.released[combination]
    waiting = int((~in_class).sum()) if again else 0
    load = _load(replace(layered, layers=layers), ledger, subject, rows.filter(pa.array(in_class)))
    settled = ledger.settle(load, also_held=waiting)
    release = book.next_release()
    entered = ledger.enter(settled, job, also_held=waiting)
    enter_levels(book, release, _labels(planned), _levels_of_classes(layers))
    held = ~in_class if again else np.zeros(len(combination), dtype=np.bool_)
    held[np.flatnonzero(in_class)[settled.held.to_numpy()]] = True
    out = np.bincount(combination[~held], minlength=len(layers.problem.rows)).astype(np.int64)
    parted, of = split(layers, out)
    parts = replace(found, words=found.words[:, of], leaf=found.leaf[:, of], rows=parted.problem.rows)
    source = folded.source
    if held.any():
        persons = rows.column("person").filter(pa.array(held))
        put = engine.put(f"{plan.name}_held", pa.table({"person": persons}))
        source = without_held_back(plan, engine, source, put)
    return LetOut(parts, parted, source, suppressed, entered, not again and not held.any())


def _rows_of(layered: Layered) -> pa.Table:
    """Every row of the source: person, number of its combination (called class), and what is released beside it."""
    folded, found, engine = layered.folded, layered.found, layered.engine
    plan = layered.planned.table
    words = {w.name: values for w, values in zip(folded.words, found.words, strict=True)}
    kept = engine.put(f"{plan.name}_numbered", pa.table({**words, "place": np.arange(len(found.rows))}))
    return engine.ask(
        "tables/ledger/list_admissible",
        source=folded.source,
        person=plan.person_column,
        kept=kept,
        words=words_of(layered.planned, folded),
        fields=fields_of(plan, engine),
    )


def _load(layered: Layered, ledger: Ledger, subject: Subject, rows: pa.Table) -> Load:
    """The rows that are in a class, as the ledger takes them."""
    plan, release = layered.planned.table, ledger.book.next_release()
    place = rows.schema.get_field_index("class")
    owner = pa.array(layered.layers.owner[rows.column("class").to_numpy()], pa.int64())
    return Load(
        subject,
        "classes",
        plan.demands.k,
        rows.set_column(place, "class", owner),
        [label_of(c.name) for c in plan.others],
        rules_of(plan, release),
        marginals_of(plan, layered.folded, layered.engine, ledger.book.key, release),
    )


def _kept(planned: LocalPlan, layers: Layers, combination: Ints, earlier: list[Levels | None]) -> Layers:
    """The layers in which who was released last keeps the levels of then, where the job still has such a node."""
    told = [None if levels is None else _node_of(planned, levels) for levels in earlier]
    nodes = sorted({node for node in told if node is not None})
    place = {node: i for i, node in enumerate(nodes)}
    at = np.array([SUPPRESSED if node is None else place[node] for node in told], dtype=np.int64)
    there = at != SUPPRESSED
    return kept_layers(layers.problem, combination[there], at[there], nodes)


def _node_of(planned: LocalPlan, levels: Levels) -> Node | None:
    """A node by its levels; None where the job has other columns or lower hierarchies by now."""
    labels, heights = _labels(planned), planned.table.lattice.heights
    if set(labels) != set(levels):
        return None
    node = tuple(levels[label] for label in labels)
    return node if all(x < h for x, h in zip(node, heights, strict=True)) else None


def _labels(planned: LocalPlan) -> list[str]:
    return [label_of(q.name) for q in planned.table.qis]


def _levels_of_classes(layers: Layers) -> dict[int, Node]:
    """The levels that rows of each class tell."""
    here = layers.released
    return {
        owner: layers.nodes[number - 1]
        for owner, number in zip(layers.owner[here].tolist(), layers.recoding[here].tolist(), strict=True)
    }
