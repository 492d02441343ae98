"""Child tables: of many rows per person, the different items of each are released with the parent's pseudonyms.

A parent's release has classes of persons who look alike in its quasi-identifying columns. Whoever knows some of a
person's items besides, diagnoses or procedures, could still find the one of the class who has them. So each item is
shown as its one ancestor on a cut of the code tree, the same for all persons, and what still fails is suppressed: an
item, as it is shown, for a whole class (a cell).

Guarantee
    For every person t of the parent's release, in the class C of t's shown quasi-identifying values, and every m
    items that t has in the source: of their labels, those that the release shows in C are all shown for t, and at
    least k persons of C show all of them; where it shows none of them in C, all of C fit. Whoever knows the values and
    the items therefore finds at least k persons who fit, and t is one of them; or none who show them all.
    k is at most the parent's. This is kᵐ-anonymity within each class. A parent's child tables share one promise: the m
    items may be of several of them, an item of one is another item than its like in the other, and k and m are equal.

    Why it holds. A cell is shown for all persons of the class who have an item below its label, or for none. So of t's
    labels those of suppressed cells are missing for everybody in C, and the others are there for t. The latter are a
    set of at most m labels that somebody, t, has; each such set has k persons of C, or a cell of it would have been
    suppressed. Suppressing a cell changes the count of no set without it; so sets that were counted once stay as they
    are, and none has to be counted again. A label for several items of t counts once, and a coarser cut keeps what a
    finer one has where nothing is suppressed: persons of a union are at least those of either part.
    Child tables of one parent are made one after the other. What the earlier ones show is settled; sets that hold an
    item of theirs are counted with the cells of this one, and broken by suppressing these. A set of settled cells alone
    has k persons since the table that was made last of them was counted.

Assumes
    The attacker knows at most m items, all of which the person has, in the rows that are read (of what `where` leaves
    out nothing is promised); no column of the parent tells items under another name; the parent's promise, with what
    it assumes. A person has an item or not: multiplicity, order and dates of rows are not released. Rows come in the
    order of pseudonyms and labels.

Does not protect
    Who knows more than m items, how many items a person has, or an item that a person lacks (negative knowledge), may
    find fewer than k. An item that all persons of a class show is known of each (homogeneity), as is what the k who
    fit have in common. Whoever knows the algorithm knows that finer cuts lost more or failed, and that an item which
    nobody of a class shows may be missing for it was suppressed, so that fewer than k of the class had it, or it with
    another one (downcoding, minimality). Sensitive columns of the parent are protected by no criterion from who knows
    items besides. Two publications of the same persons can be compared by their items. Pseudonyms are pseudonyms:
    whoever has the key knows everybody.

Sensitive columns
    A column that the job calls sensitive leaves as it is beside each item that is shown, each different row once. The
    promise is then of whoever knows items alone, and neither such a value nor how many rows there are. A column whose
    values go with one item alone would tell the item whatever is shown of it, and one whose values one person alone has
    finds the person: it is refused where more than half of the rows hold such a value. That is a guard against a title
    beside its code and a key or a moment in other words, and no promise: a value that few have says who or what.

Persons without a shown item have no row; persons whom the parent suppressed have none, either, and rows whose person
is in no parent row are left out.

Source
------
Terrovitis, Mamoulis, Kalnis 2008 (kᵐ-anonymity, the count of sets as apriori counts them); Iyengar 2002 (the loss).
Unlike there, sets are counted within the classes of relational quasi-identifiers, as in Poulis et al. 2013, and cells
may be suppressed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import HierarchyError, JobError, NoSolutionError
from sqldeid.hierarchy import Hierarchy
from sqldeid.keys import Key
from sqldeid.making import Making, Published
from sqldeid.publish import Note, Staging
from sqldeid.sql import column, identifier, render
from sqldeid.stages import Stage, walk
from sqldeid.tables.disguise.disguise import PSEUDONYMISED, noted_secrets, person_digest
from sqldeid.tables.disguise.pseudonyms import by_text, draw_secrets
from sqldeid.tables.itemset.count import BEFORE, Counter
from sqldeid.tables.itemset.plan import ChildPlan
from sqldeid.tables.itemset.result import ChildRelease, ChildVerified
from sqldeid.tables.itemset.search import Found, Judged, find_cut
from sqldeid.tables.itemset.spelling import Spelled, spelled_apart
from sqldeid.tables.itemset.statements import counting, searching, verifying, writing
from sqldeid.tables.itemset.tree import CodeTree
from sqldeid.tables.itemset.verify import Shown, noted, read_as_shown, sensitive_of, verify
from sqldeid.tables.plan.versions import check_versions
from sqldeid.tables.rows.bind import bind
from sqldeid.tables.rows.shape import keep
from sqldeid.tables.write.codebook import SHOWN, code_of


def run(planned: ChildPlan, making: Making) -> ChildRelease:
    """Produce a child's release up to, not including, its publication; its parent was staged and verified before.

    Raises
    ------
    JobError, HierarchyError
        If the data breaks a rule of the job.
    NoSolutionError
        If more must be suppressed than the limit allows.
    VerificationError
        If what was written fails its re-check.
    """
    earlier = [making.made(c.name)[0] for c in planned.earlier]
    draft = ChildDraft(planned, making.engine, making.staging, making.made(planned.parent.name), making.key, earlier)
    draft.moved = making.engine.moved
    walk(way_of(planned), draft, partial(making.listener.step, planned.name))
    return draft.result


@dataclass(slots=True, repr=False)
class ChildDraft:
    """A child's release on its way.

    Parameters
    ----------
    parent
        What to read of the parent's release, and the note on it.
    earlier
        What to read of its child tables that were written before.
    """

    planned: ChildPlan
    engine: Engine
    staging: Staging
    parent: Published
    key: Callable[[], Key | None]
    earlier: Sequence[exp.Expr] = ()
    moved: tuple[int, int] = (0, 0)
    source: exp.Expr = field(init=False)
    codes: exp.Table = field(init=False)
    hierarchy: Hierarchy = field(init=False)
    persons: exp.Table = field(init=False)
    pairs: exp.Table = field(init=False)
    left_out: Mapping[str, int] = field(init=False)
    spelled: Spelled = field(init=False)
    counter: Counter | None = None
    found: Found = field(init=False)
    written: exp.Expr = field(init=False)
    verified: ChildVerified = field(init=False)
    result: ChildRelease = field(init=False)


def way_of(planned: ChildPlan) -> tuple[Stage[ChildDraft], ...]:
    """The stages of a child's release, in order."""
    return (
        Stage("counting items", _count, lambda _: counting(planned)),
        Stage("searching the cut", _search, lambda _: searching(planned)),
        Stage("writing the release", _write, lambda target: writing(planned, target)),
        Stage("verifying what was written", _verify, lambda _: verifying(planned)),
        Stage("", _tell),
    )


def _count(draft: ChildDraft) -> None:
    """Number persons, classes and items, and keep who has which."""
    plan, engine = draft.planned, draft.engine
    there, note = draft.parent
    secrets = noted_secrets(plan.parent, note, draft.key())
    if secrets is None:
        raise JobError.at(f"{plan.key}.parent", "the key of the parent's pseudonyms is needed; name it with --key-file")
    draft.source = source = keep(plan.table, engine)
    check_versions(plan.table.versions, source, engine)
    _refuse_telling(plan, source, engine)
    bound = bind(plan.table, 0, engine, source)
    draft.hierarchy, draft.spelled = bound.hierarchy, spelled_apart(bound.hierarchy.values, bound.rows)
    digest = person_digest(plan.parent, secrets)
    keys = draw_secrets(plan.name, plan.person, source, engine, digest=digest, shifted=False)
    draft.persons = engine.make(
        "tables/itemset/number_persons",
        f"{plan.name}_persons",
        parent=there,
        pseudonym=column(plan.pseudonym.name, "p"),
        columns=[{"value": column(q.name, "p"), "name": identifier(f"q{i}")} for i, q in enumerate(plan.parent.qis)],
        secrets=keys,
    )
    draft.codes = engine.put(f"{plan.name}_codes", _codes(draft.hierarchy))
    draft.pairs = engine.make(
        "tables/itemset/list_pairs",
        f"{plan.name}_pairs",
        source=source,
        key=plan.person,
        **_read_items(plan),
        text=by_text(engine),
        persons=draft.persons,
        codes=draft.codes,
    )
    engine.drop(keys)
    asked = {"source": source, "key": plan.person, "item": plan.items.column, "text": by_text(engine)}
    draft.left_out = engine.row("tables/itemset/count_left_out", persons=draft.persons, **asked)
    pairs = engine.to_bench(draft.pairs)  # numbers of persons, classes and items: neither a value nor a pseudonym
    read = engine.bench.ask("tables/itemset/count_leaves", pairs=pairs)
    if read.num_rows:
        tree = CodeTree.over(draft.hierarchy.groups, read.column("leaf").to_numpy().astype(np.int64))
        _refuse_alike(plan, draft.hierarchy, tree)
        total = int(read.column("pairs").to_numpy().sum())
        before = _before(draft) if plan.earlier and plan.known > 1 else None
        draft.counter = Counter(engine.bench, plan.name, pairs, total, tree, plan.k, plan.known, before)


def _before(draft: ChildDraft) -> exp.Table:
    """Who shows which items in the child tables that were written before, as numbers, where cuts are tried."""
    engine, plan = draft.engine, draft.planned
    shown = engine.make(
        "tables/itemset/list_shown",
        f"{plan.name}_before",
        persons=draft.persons,
        tables=read_as_shown(plan.earlier, draft.earlier),
        start=BEFORE,
    )
    before = engine.to_bench(shown)
    if engine is not engine.bench:
        engine.drop(shown)
    return before


def _refuse_telling(plan: ChildPlan, source: exp.Expr, engine: Engine) -> None:
    """Refuse a sensitive column that names the item, as a title does, or the person, as a key or a moment does."""
    for c in plan.sensitive:
        asked = {"source": source, "item": plan.items.column, "value": c.column, "key": plan.person}
        found = engine.row("tables/itemset/tell_items", **asked)
        if found["items"] > 1 and 2 * found["telling"] > found["rows"]:
            raise JobError.at(
                f"{plan.key}.columns.{c.name}",
                f"more than half of its rows hold a value that goes with one value of {plan.items.name} alone, so it "
                "would tell the item whatever is shown of that; make it coarser in a source query, or leave it out",
            )
        if found["persons"] > 1 and 2 * found["owned"] > found["rows"]:
            raise JobError.at(
                f"{plan.key}.columns.{c.name}",
                "more than half of its rows hold a value that one person alone has, as keys and moments do, so whoever "
                "knows such a value finds the person; make it coarser in a source query, or leave it out",
            )


def _codes(hierarchy: Hierarchy) -> pa.Table:
    """The leaf of each value that is there; no row for NULL, which is no item."""
    codes = pa.table({"item": hierarchy.values, "leaf": pa.array(hierarchy.leaf, pa.int32())})
    return codes.filter(hierarchy.values.is_valid())


def _refuse_alike(plan: ChildPlan, hierarchy: Hierarchy, tree: CodeTree) -> None:
    """Refuse labels by which readers could not tell two nodes of a level apart."""
    key = f"{plan.key}.columns.{plan.items.name}"
    for level, origins in enumerate(tree.origins):
        labels = [plan.items.labels(hierarchy, level)[group] for group in origins]
        if any(label is None for label in labels) or len(set(map(str, labels))) < len(labels):
            raise HierarchyError.at(
                key, f"hierarchy {hierarchy.name}: level {level} has no label of its own for each group; mend it"
            )


def _search(draft: ChildDraft) -> None:
    """Find the cut, and the cells that are suppressed."""
    plan, counter = draft.planned, draft.counter
    if counter is None:
        draft.found = Found(None, 0.0, 0)
        return
    draft.found = find_cut(counter.tree, counter.totals(), counter.total, counter, plan.limit)
    if draft.found.best is None:
        share = 100 * draft.found.nearest / counter.total
        beside = f", beside what {', '.join(c.name for c in plan.earlier)} shows," if plan.earlier else ""
        raise NoSolutionError(
            f"{plan.key}.privacy.suppression_limit: every cut of the items{beside} leaves more than "
            f"{100 * float(plan.limit):g} % of the pairs of person and item to suppress, the nearest one {share:.1f} "
            "%; raise the limit, lower k or known, or let the parent have larger classes",
            key=f"{plan.key}.privacy.suppression_limit",
        )


def _write(draft: ChildDraft) -> None:
    """Write the items of the best cut; with sensitive columns the rows of the source, as often as they differ."""
    plan, engine, counter, best = draft.planned, draft.engine, draft.counter, draft.found.best
    pseudonym, item, level = (identifier(name) for name in plan.own_columns)
    asked: dict[str, object] = {"pseudonym": pseudonym, "item_name": item, "level": level}
    if plan.sensitive or counter is None:
        asked |= {"source": draft.source, "sensitive": sensitive_of(plan)}
    if counter is None or best is None:
        draft.written = draft.staging.write(_staging("stage_nothing", asked), _note(plan))
        return
    placed, cells = counter.released(best)
    if plan.sensitive or engine is not engine.bench:
        counter.engine.drop(placed)  # rows are written, or the items are placed where the release goes
    if engine is not engine.bench:
        cells = engine.from_bench(cells)
    nodes = engine.put(f"{plan.name}_nodes", counter.nodes_of(best.cut))
    labels = engine.put(f"{plan.name}_labels", _labels(plan, draft.hierarchy, counter.tree, best))
    tables = {"cells": cells, "persons": draft.persons, "labels": labels}
    if plan.sensitive:
        tables |= {"codes": draft.codes, "nodes": nodes}
        asked |= {"key": plan.person, "text": by_text(engine), **_read_items(plan)}
    else:
        if engine is not engine.bench:
            placing = {"pairs": draft.pairs, "nodes": nodes}
            placed = engine.make("tables/itemset/place_items", f"{plan.name}_placed", **placing)
        tables |= {"placed": placed}
    asked |= tables
    draft.written = draft.staging.write(_staging("stage_rows" if plan.sensitive else "stage_items", asked), _note(plan))
    if counter.before is not None:
        counter.engine.drop(counter.before)
    for table in dict.fromkeys((*tables.values(), nodes, draft.codes, draft.pairs)):
        engine.drop(table)


def _staging(template: str, asked: Mapping[str, object]) -> Callable[[exp.Table], str]:
    return lambda target: render(f"tables/itemset/{template}", target=target, **asked)


def _read_items(plan: ChildPlan) -> dict[str, exp.Expr]:
    """The item column of the source, and the type in which its values are compared."""
    return {"item": plan.items.column, "type": plan.items.travel_type}


def _labels(plan: ChildPlan, hierarchy: Hierarchy, tree: CodeTree, best: Judged) -> pa.Table:
    """What each node of the cut is shown as: node, label, level."""
    nodes = np.unique(best.cut)
    found = [
        (level, str(plan.items.labels(hierarchy, level)[group])) for level, group in map(tree.origin, nodes.tolist())
    ]
    return pa.table(
        {
            "node": pa.array(nodes, pa.int32()),
            "label": pa.array([label for _, label in found], pa.string()),
            "level": pa.array([level for level, _ in found], pa.int32()),
        }
    )


def _note(plan: ChildPlan) -> Note:
    pseudonym, item, level = plan.own_columns
    shown = {
        pseudonym: f"pseudonym, the same as in {plan.parent.name}",
        item: f"item, generalised by {plan.items.hierarchy_name}",
        level: "level of the item's label, 0 is the code itself",
        **{c.name: "sensitive, as it is; no promise is made to who knows it" for c in plan.sensitive},
    }
    return Note(plan.name, noted(plan), shown)


def _verify(draft: ChildDraft) -> None:
    shown = Shown(draft.written, draft.parent, draft.earlier)
    draft.verified = verify(draft.planned, shown, draft.engine, draft.key())


def _tell(draft: ChildDraft) -> None:
    plan, found, verified = draft.planned, draft.found, draft.verified
    total = 0 if draft.counter is None else draft.counter.total
    best, (pseudonym, item, level) = found.best, plan.own_columns
    suppressed = 0 if best is None else best.suppressed
    rows, size = (after - old for after, old in zip(draft.engine.moved, draft.moved, strict=True))
    draft.result = ChildRelease(
        name=plan.name,
        parent=plan.parent.name,
        known=plan.known,
        k=plan.k,
        fewest=verified.fewest,
        pairs=total,
        released=total - suppressed,
        suppressed=suppressed,
        rows=verified.rows,
        persons=verified.persons,
        parents=verified.parents,
        loss=0.0 if best is None else best.loss,
        bound=found.bound,
        checks=found.checks,
        levels=_levels(draft),
        columns={
            pseudonym: {"role": "identifying", "shown": f"pseudonym, the same as in {plan.parent.name}"},
            item: {
                "role": "item",
                "hierarchy": plan.items.hierarchy_name,
                "shown": "generalised by one cut for all",
                **_shown(draft),
            },
            level: {"role": "level", "shown": "level of the item's label, 0 is the code itself"},
            **{c.name: {"role": "sensitive", "shown": "as it is"} for c in plan.sensitive},
        },
        suppression_limit=float(plan.limit),
        together=plan.others,
        settled=tuple(c.name for c in plan.earlier),
        warnings=(
            f"{plan.key}: is {PSEUDONYMISED}: whoever holds the key can tell whose the items are",
            *_left_out(draft),
            *_spelled(draft),
            *_limited(plan, found, total),
        ),
        moved={"rows": rows, "bytes": size},
    )


def _left_out(draft: ChildDraft) -> Iterator[str]:
    """What rows of the source say nothing in the release, for the data holder: no limit counts them as suppressed."""
    plan = draft.planned
    reasons = {
        "keyless": f"no {plan.table.person}",
        "itemless": f"no {plan.items.name}",
        "strangers": f"the {plan.table.person} of nobody in the release of {plan.parent.name}",
    }
    for name, reason in reasons.items():
        if rows := draft.left_out[name]:
            has = "row has" if rows == 1 else "rows have"
            yield f"{plan.key}: {rows:,} {has} {reason}: they are not released, and count as no suppression"
    if draft.counter is None:
        yield f"{plan.key}: the release is empty"


def _spelled(draft: ChildDraft) -> Iterator[str]:
    """That items may be one and the same, for the data holder, who alone knows whether they are."""
    plan, found = draft.planned, draft.spelled
    if found.items and plan.items.source.kind == "text":
        one = "one" if found.alike == 1 else f"{found.alike:,}"
        yield (
            f"{plan.key}.items: {found.items:,} different items of {plan.items.name} ({found.rows:,} rows) would be "
            f"{one}, were blanks, dots and case left out; each counts as an item of its own, which costs suppression. "
            "If they mean the same, spell them alike in a source query"
        )


def _limited(plan: ChildPlan, found: Found, total: int) -> Iterator[str]:
    """What a greater limit would give, for the data holder."""
    if found.best is not None and found.hopeful is not None:
        share, other = 100 * found.hopeful.suppressed / total, found.hopeful.loss
        yield (
            f"{plan.key}.privacy.suppression_limit: the items lose {found.best.loss:.3f} within the limit; a cut that "
            f"loses {other:.3f} would suppress {share:.1f} % of the pairs of person and item"
        )


def _shown(draft: ChildDraft) -> Mapping[str, object]:
    """Labels above level 0 that released rows show, with what they stand for, in an order that tells no count."""
    counter, best, items = draft.counter, draft.found.best, draft.planned.items
    if counter is None or best is None:
        return {}
    shown = set[tuple[str, int]]()
    for node in np.flatnonzero(best.released).tolist():
        level, group = counter.tree.origin(node)
        if level:
            shown.add((str(items.labels(draft.hierarchy, level)[group]), level))
    ordered = sorted(shown)
    codes = [asdict(code_of(label, items.hierarchy, level)) for label, level in ordered[:SHOWN]]
    return {"codes": codes, "more_codes": len(ordered) > SHOWN} if codes else {}


def _levels(draft: ChildDraft) -> Mapping[str, float]:
    """Of the pairs that are released, the share at each level; what shows the top's label counts as the top."""
    counter, best = draft.counter, draft.found.best
    if counter is None or best is None or best.suppressed == counter.total:
        return {}
    hierarchy, tree = draft.hierarchy, counter.tree
    shown = [draft.planned.items.labels(hierarchy, level) for level in range(hierarchy.height)]
    top, by_level = hierarchy.height - 1, np.zeros(hierarchy.height)
    for node, pairs in enumerate(best.released):
        level, group = tree.origin(node)
        by_level[top if shown[level][group] == shown[top][0] else level] += pairs
    names = hierarchy.level_names
    return {names[i]: float(n) / float(by_level.sum()) for i, n in enumerate(by_level) if n > 0}
