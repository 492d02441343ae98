"""Check a published release by local recoding again, against the source as it is now.

No witness is kept of who was put into which class: it would list the source. The labels of every released row must be
those of a noted layer, and there must be a way to give each row one of the source's that they are true of, with all
else that is released of it (`sqldeid.tables.local.matching`). Classes and criteria are counted in the release alone.
Nothing is searched again, and nothing of the search is believed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from sqldeid.arrays import Ints
from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.job.local_rules import RECODING
from sqldeid.making import Checking
from sqldeid.sql import column, identifier, render
from sqldeid.tables.disguise.disguise import Secrets, disguise, exact_of, kept_of, noted_secrets, pseudonyms
from sqldeid.tables.local.matching import Marked, Shown, TooManyError, consistent, unmatched
from sqldeid.tables.local.plan import LocalPlan
from sqldeid.tables.local.result import LocalVerified
from sqldeid.tables.local.rollup import RollUp
from sqldeid.tables.local.told import Told
from sqldeid.tables.local.verify import Compared, Reading, Whole, conclude, of_source, refuse_columns
from sqldeid.tables.model.lattice import Node
from sqldeid.tables.rows.bind import bind
from sqldeid.tables.rows.held_back import without_held_back
from sqldeid.tables.rows.shape import check_stacks, count_persons, keep
from sqldeid.tables.verify.verify import noted_criteria

MOST_PAIRS = 60_000_000
"""Pairs of combination and class that are looked at together: about two gigabytes."""

_UNKNOWN = -1


def recheck(
    planned: LocalPlan,
    note: Mapping[str, object],
    written: exp.Expr,
    checking: Checking,
    beside: Mapping[str, exp.Expr],
    held: exp.Table | None = None,
) -> LocalVerified:
    """Verify a published release.

    Parameters
    ----------
    note
        What is kept on the release: layers, hierarchies and criteria.
    beside
        The tables that stand beside it, by name.
    held
        The persons whom the ledger does not know as released; None where none held it to earlier releases.

    Raises
    ------
    VerificationError
        If the release is not what job, note and source say.
    """
    plan, engine = planned.table, checking.engine
    nodes = _noted(planned, note)
    refuse_columns(planned, written, engine)
    if planned.recoding:
        _refuse_layers(planned, nodes, beside[planned.layers_name], engine)
    source = keep(plan, engine)
    rows = count_persons(plan, engine, source).rows
    whole = None if held is None else Whole(source, rows)
    hierarchies = [bind(plan, i, engine, source).hierarchy for i in range(len(plan.qis))]
    secrets = noted_secrets(plan, dict(note), checking.key() if pseudonyms(plan) else None)
    if secrets is not None:
        source = disguise(plan, engine, source, secrets)
    check_stacks(plan, engine, source)
    source = without_held_back(plan, engine, source, held)
    reading = Reading.of(planned, nodes, hierarchies, engine)
    try:
        found = _compared(reading, source, written, secrets, whole)
    except VerificationError as error:
        other = "" if secrets is None else "; or the key is another than the one it was made with"
        raise VerificationError(f"{error.message}{other}", key=error.key) from None
    if planned.roll_up:
        RollUp(planned, nodes, hierarchies, engine).check(written, beside[planned.rolled_up_name])
    if planned.hierarchies:
        Told(planned, nodes, hierarchies, engine).check(written, beside[planned.hierarchies_name])
    return found


def _noted(planned: LocalPlan, note: Mapping[str, object]) -> tuple[Node, ...]:
    """The layers that are noted on the release, which must be of this job."""
    plan, layers = planned.table, note.get("layers")
    if note.get("method") != "local" or not isinstance(layers, list):
        _refuse(planned, "the release was not made by local recoding, as the job asks for")
    if note.get("hierarchies") != {q.name: q.hierarchy_name for q in plan.qis}:
        _refuse(planned, "the release was made with other quasi-identifying columns or hierarchies than the job names")
    if note.get("criteria") != noted_criteria(plan, plan.demands.k) or note.get(RECODING) != planned.recoding:
        _refuse(planned, "the release was made with other privacy criteria or columns than the job states")
    heights = plan.lattice.heights
    if not all(isinstance(n, list) and len(n) == len(heights) and _within(n, heights) for n in layers):
        _refuse(planned, "the layers noted on the release are not in the lattice")
    return tuple(tuple(node) for node in layers)


def _refuse_layers(planned: LocalPlan, nodes: Sequence[Node], beside: exp.Expr, engine: Engine) -> None:
    """Refuse a table of layers that is not what is noted on the release."""
    names = [RECODING, *(q.name for q in planned.table.qis)]
    there = [c.name for c in engine.columns(beside, key=planned.key)]
    if there != names:
        _refuse(planned, f"{planned.layers_name} has other columns than {RECODING} and the quasi-identifying ones")
    found = engine.query(
        render(
            "tables/local/read_layers",
            layers=beside,
            columns=[{"name": identifier(n), "value": column(n, "y")} for n in names],
        )
    ).to_pylist()
    if sorted(tuple(row.values()) for row in found) != [(i, *node) for i, node in enumerate(nodes, 1)]:
        _refuse(planned, f"{planned.layers_name} does not hold the layers that are noted on the release")


def _within(node: Sequence[object], heights: Sequence[int]) -> bool:
    return all(type(x) is int and 0 <= x < h for x, h in zip(node, heights, strict=True))


def _refuse(planned: LocalPlan, why: str) -> NoReturn:
    raise VerificationError.at(planned.key, why)


def _compared(
    reading: Reading, source: exp.Expr, written: exp.Expr, secrets: Secrets | None, whole: Whole | None
) -> LocalVerified:
    engine, plan = reading.engine, reading.planned.table
    others = [*kept_of(plan, released=False), *exact_of(plan, secrets, released=False)]
    there = _marked(reading, "source", source, reading.source_columns(), others)
    others = [*kept_of(plan, released=True), *exact_of(plan, secrets, released=True)]
    found = _marked(reading, "release", written, reading.release_columns(), [of_source(o) for o in others])
    shown, labels = _labels(reading)
    columns = range(len(plan.qis))
    leaves = np.stack([_numbers(there, i) for i in columns])
    numbers = np.stack([_numbers(found, i) if reading.typed[i] else _numbered(found, i, labels[i]) for i in columns])
    problems = []
    if (leaves == _UNKNOWN).any():
        problems.append("a value of the source is in no group of its hierarchy")
    if (numbers == _UNKNOWN).any():
        problems.append("it shows labels that are of no noted layer")
    if not problems:
        problems += _against_layers(reading, found, numbers, shown)
    if not problems:
        given = Marked(leaves, *(there.column(c).to_numpy().astype(np.int64) for c in ("mark", "n")))
        taken = Marked(numbers, *(found.column(c).to_numpy().astype(np.int64) for c in ("mark", "n")))
        problems += _left_over(reading, given, taken, shown)
    rows = int(there.column("n").to_numpy().sum())
    shown_classes = reading.release(written, secrets)
    sizes = engine.query(render("tables/verify/count_sizes", grouped=shown_classes)).to_pylist()
    counted = {
        "source_rows": rows,
        "rows": sum(int(r["size"]) * int(r["classes"]) for r in sizes),
        "classes": sum(int(r["classes"]) for r in sizes),
        "smallest": min((int(r["size"]) for r in sizes), default=0),
    }
    return conclude(reading, Compared(counted, shown_classes, problems), source, written, whole)


def _marked(
    reading: Reading, what: str, rows: exp.Expr, columns: list[dict[str, object]], others: Sequence[exp.Expr]
) -> pa.Table:
    """Source or release by what classes are told apart by, and a mark of what is released beside it."""
    engine = reading.engine
    grouped = engine.workbench(f"{reading.planned.name}_verify_marked_{what}")
    engine.execute(
        render("tables/local/group_marked", grouped=grouped, source=rows, columns=columns, others=list(others))
    )
    read = engine.query(render("tables/local/read_marked", marked=grouped, columns=[c["name"] for c in columns]))
    engine.drop(grouped)
    return read


def _labels(reading: Reading) -> tuple[list[Shown], list[dict[object, int]]]:
    """Per column, the number of each leaf's label by level, and of each label; equal labels have one number."""
    shown: list[Shown] = []
    numbered: list[dict[object, int]] = []
    for i, hierarchy in enumerate(reading.hierarchies):
        if reading.typed[i]:
            shown.append(Shown({0: np.arange(hierarchy.leaves, dtype=np.int64)}))
            numbered.append({})
            continue
        texts = {x: reading.texts(i, x) for x in sorted({node[i] for node in reading.nodes})}
        number: dict[object, int] = {}
        for of_level in texts.values():
            for text in of_level:
                number.setdefault(text, len(number))
        shown.append(Shown({x: np.array([number[t] for t in of], dtype=np.int64) for x, of in texts.items()}))
        numbered.append(number)
    return shown, numbered


def _numbers(read: pa.Table, index: int) -> Ints:
    """Leaf numbers of a column; unknown where a value has none."""
    return np.asarray(pc.fill_null(read.column(f"q{index}").cast(pa.int64()), _UNKNOWN).to_numpy())


def _numbered(read: pa.Table, index: int, number: Mapping[object, int]) -> Ints:
    """Numbers of the labels of a column; unknown where it is no label of a noted layer."""
    coded = pc.dictionary_encode(read.column(f"q{index}").combine_chunks(), null_encoding="encode")
    of_label = np.array([number.get(text, _UNKNOWN) for text in coded.dictionary.to_pylist()], dtype=np.int64)
    return np.asarray(of_label[coded.indices.to_numpy()]) if len(coded) else np.empty(0, dtype=np.int64)


def _against_layers(reading: Reading, read: pa.Table, numbers: Ints, shown: Sequence[Shown]) -> list[str]:
    """What is wrong with the layers that rows tell, where they do."""
    if not reading.planned.recoding:
        return []
    told = np.asarray(pc.fill_null(read.column(RECODING).cast(pa.int64()), 0).to_numpy())
    classes = np.unique(np.concatenate([numbers, told[None, :]]), axis=1)
    if not classes.shape[1]:
        return []
    if classes[-1].min() < 1 or classes[-1].max() > len(reading.nodes):
        return [f"{RECODING} tells a layer that is not noted on it"]
    if np.unique(classes[:-1], axis=1).shape[1] != classes.shape[1]:
        return ["rows with equal labels tell different layers"]
    of_layer = [(node, classes[:-1, classes[-1] == i + 1]) for i, node in enumerate(reading.nodes)]
    if not all(consistent(mine, shown, node).all() for node, mine in of_layer):
        return ["it shows labels that are not of the levels of their layer"]
    return []


def _left_over(reading: Reading, given: Marked, taken: Marked, shown: Sequence[Shown]) -> list[str]:
    """What is wrong where not every released row can be given one of the source."""
    try:
        left = unmatched(given, taken, shown, reading.nodes, MOST_PAIRS)
    except TooManyError:
        _refuse(
            reading.planned,
            f"the release cannot be checked again: more than {MOST_PAIRS:,} pairs of a combination and a class that "
            "may stand for it would have to be looked at together; ask for fewer layers (search.layers)",
        )
    return [f"{left:,} rows are not those of persons of the source, each of another one"] if left else []
