"""The re-check of a child table on its join with the parent, by what readers see: labels, and shown values.

Nothing of the search is read: not its classes, numbers, cells or cut. Sets are counted on the labels that were
written, in classes of the values that the parent shows. With the key of the pseudonyms each row is held against the
source: what is written is true, each item is shown in one way, and an item that some persons of a class show is shown
by all of the class who have it, on which the promise rests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import VerificationError
from sqldeid.hierarchy import Hierarchy
from sqldeid.keys import Key
from sqldeid.making import Published
from sqldeid.publish import names_of
from sqldeid.sql import column, identifier
from sqldeid.tables.disguise.disguise import Secrets, noted_secrets, person_digest
from sqldeid.tables.disguise.pseudonyms import by_text, draw_secrets
from sqldeid.tables.itemset.plan import ChildPlan
from sqldeid.tables.itemset.result import ChildVerified
from sqldeid.tables.plan.versions import check_versions
from sqldeid.tables.rows.bind import bind
from sqldeid.tables.rows.shape import keep

KIND = "child"


def noted(plan: ChildPlan) -> dict[str, object]:
    """What the note on a release keeps: what was asked; never a count."""
    return {
        "kind": KIND,
        "parent": plan.parent.name,
        "items": plan.items.name,
        "hierarchies": {plan.items.name: plan.items.hierarchy_name},
        "criteria": {"k": plan.k, "known": plan.known},
        **({"together": list(plan.family)} if plan.others else {}),
    }


@dataclass(frozen=True, slots=True)
class Shown:
    """What readers hold: what to read of a child table, of its parent with the note on it, and of child tables before.

    Parameters
    ----------
    earlier
        In the order of the plan's.
    """

    written: exp.Expr
    parent: Published
    earlier: Sequence[exp.Expr] = ()


def recheck(
    plan: ChildPlan, note: Mapping[str, object], shown: Shown, engine: Engine, key: Key | None
) -> ChildVerified:
    """Verify a published child table on its join with its parent.

    Raises
    ------
    VerificationError
        If it is not what job, note, parent and source say.
    """
    wanted = noted(plan)
    if any(note.get(name) != wanted.get(name) for name in (*wanted, "together")):
        raise VerificationError.at(plan.key, "the release was made with other items or criteria than the job states")
    return verify(plan, shown, engine, key, limited=True)


def verify(plan: ChildPlan, shown: Shown, engine: Engine, key: Key | None, *, limited: bool = False) -> ChildVerified:
    """Count what was written, and compare it with the source where there is a key.

    Parameters
    ----------
    limited
        Whether what is missing is held to the limit, too: the run has just done so, and rows may be deleted later.

    Raises
    ------
    VerificationError
        If a set of items has fewer than k persons of a class, or a row is not what it must be.

    Cost: a self join of the release for each size of sets; with a key a scan of the source.
    """
    written, (there, note) = shown.written, shown.parent
    _same_columns(plan, written, engine)
    asked = {
        **_released(plan),
        "sensitive": sensitive_of(plan),
        "written": written,
        "parent": there,
        "key": column(plan.pseudonym.name, "p"),
    }
    counted = engine.row("tables/itemset/check_items", **asked)
    rows = int(counted["rows"])
    _refuse(plan, counted["different"] < rows, "a row is there twice")
    _refuse(plan, counted["whole"] < rows, "a row has a gap")
    _refuse(plan, counted["strangers"] > 0, f"rows of persons who are not in {plan.parent.name}")
    _refuse(plan, counted["keyed"] < counted["parents"], f"pseudonyms of {plan.parent.name} are not one a person")
    fewest = _fewest(plan, shown, engine)
    _refuse(
        plan, fewest is not None and fewest < plan.k, f"{fewest} persons of a class have a set of items, not {plan.k}"
    )
    secrets = noted_secrets(plan.parent, note, key)
    if secrets is not None:
        _compare(plan, asked, secrets, engine, limited=limited)
    return ChildVerified(
        plan.parent.name,
        plan.known,
        plan.k,
        fewest,
        rows,
        int(counted["persons"]),
        int(counted["parents"]),
        compared=secrets is not None,
    )


def _released(plan: ChildPlan) -> dict[str, exp.Expr]:
    """The release's columns, read as `r`."""
    return {of: column(name, "r") for of, name in zip(("pseudonym", "item", "level"), plan.own_columns, strict=True)}


def sensitive_of(plan: ChildPlan) -> list[dict[str, exp.Expr]]:
    """The sensitive columns: what they are called, as written (read as `r`), and as the source has them (as `s`)."""
    return [
        {
            "own": identifier(c.name),
            "written": column(c.name, "r"),
            "value": c.leaving,
            "name": identifier(f"a{i}"),
        }
        for i, c in enumerate(plan.sensitive)
    ]


def _shown(plan: ChildPlan) -> list[dict[str, exp.Expr]]:
    """The parent's quasi-identifying columns, read as `p`: who shows the same values is in one class."""
    return [{"value": column(q.name, "p"), "name": identifier(f"q{i}")} for i, q in enumerate(plan.parent.qis)]


def _same_columns(plan: ChildPlan, written: exp.Expr, engine: Engine) -> None:
    there = tuple(names_of(engine.columns(written, key=plan.key), plan.key))
    _refuse(plan, there != plan.columns, f"its columns are not {', '.join(plan.columns)}")


def read_as_shown(plans: Sequence[ChildPlan], written: Sequence[exp.Expr]) -> list[dict[str, object]]:
    """Child tables of one parent as readers see them: what to read as `r`, its columns, and a number for each."""
    pairs = enumerate(zip(plans, written, strict=True))
    return [{"written": there, "number": number, **_released(plan)} for number, (plan, there) in pairs]


def _fewest(plan: ChildPlan, held: Shown, engine: Engine) -> int | None:
    """The fewest persons of a class who have a set of items that somebody has, of this and the tables before it."""
    plans = (*plan.earlier, plan)
    shown = engine.make(
        "tables/itemset/join_shown",
        f"{plan.name}_shown",
        tables=read_as_shown(plans, (*held.earlier, held.written)),
        parent=held.parent[0],
        key=column(plan.pseudonym.name, "p"),
        columns=_shown(plan),
        several=any(one.sensitive for one in plans),
    )
    found = []
    for size in range(1, plan.known + 1):
        items = [_alias(at) for at in range(size)]
        row = engine.row("tables/itemset/count_sets", shown=shown, items=items)
        if row["fewest"] is None:
            break
        found.append(int(row["fewest"]))
    engine.drop(shown)
    return min(found, default=None)


def _alias(at: int) -> dict[str, exp.Identifier | None]:
    earlier = identifier(f"s{at - 1}") if at else None
    return {"alias": identifier(f"s{at}"), "earlier": earlier, "first": identifier("s0")}


def _compare(plan: ChildPlan, asked: Mapping[str, object], secrets: Secrets, engine: Engine, *, limited: bool) -> None:
    """Hold every row against the source, read anew."""
    source = keep(plan.table, engine)
    check_versions(plan.table.versions, source, engine)
    hierarchy = bind(plan.table, 0, engine, source).hierarchy
    chains = engine.put(f"{plan.name}_chains", chains_of(plan, hierarchy))
    digest = person_digest(plan.parent, secrets)
    keys = draw_secrets(f"{plan.name}_again", plan.person, source, engine, digest=digest, shifted=False)
    items = {"item": plan.items.column, "type": plan.items.travel_type}
    expected = engine.make(
        "tables/itemset/expect_items",
        f"{plan.name}_expected",
        source=source,
        key=plan.person,
        **items,
        text=by_text(engine),
        secrets=keys,
        chains=chains,
        written=asked["written"],
        label=asked["item"],
        level=asked["level"],
        sensitive=asked["sensitive"],
    )
    row = engine.row("tables/itemset/compare_items", expected=expected, chains=chains, columns=_shown(plan), **asked)
    of_source = {"source": source, "key": plan.person, **items, "text": by_text(engine), "secrets": keys}
    counted = _count_pairs(asked, of_source, chains, engine) if limited else None
    for table in (expected, keys, chains):
        engine.drop(table)
    _refuse(plan, row["torn"] > 0, f"{row['torn']} items are shown at two levels")
    _refuse(plan, row["untrue"] > 0, f"{row['untrue']} rows are not what the source gives")
    _refuse(plan, row["missing"] > 0, f"{row['missing']} rows of items that are shown are missing")
    _refuse(
        plan, row["partly"] > 0, f"{row['partly']} items are missing for some persons of a class and not for others"
    )
    if counted is not None:
        missing, most = counted["pairs"] - counted["shown"], 100 * float(plan.limit)
        share = 100 * missing / max(counted["pairs"], 1)
        _refuse(
            plan,
            missing > plan.limit * counted["pairs"],
            f"{share:.1f} % of the pairs of person and item are missing, and suppression_limit allows {most:g} %",
        )


def _count_pairs(
    asked: Mapping[str, object], of_source: Mapping[str, object], chains: exp.Table, engine: Engine
) -> Mapping[str, int]:
    """Pairs of person and item in the source, and how many of them are shown in some way."""
    shown = {"parent": asked["parent"], "own": asked["key"], "written": asked["written"]}
    shown |= {"pseudonym": asked["pseudonym"], "label": asked["item"], "level": asked["level"]}
    return engine.row("tables/itemset/count_pairs", **of_source, chains=chains, **shown)


def chains_of(plan: ChildPlan, hierarchy: Hierarchy) -> pa.Table:
    """Every label of each item that is there: item, label, level; no row for NULL."""
    values, found = hierarchy.values, []
    there = [i for i, null in enumerate(values.is_null().to_pylist()) if not null]
    for level in range(hierarchy.height):
        labels, groups = plan.items.labels(hierarchy, level), hierarchy.groups[level]
        named = [labels[groups[hierarchy.leaf[i]]] for i in there]
        found.append(
            pa.table(
                {
                    "item": values.take(pa.array(there, pa.int64())),
                    "label": pa.array([None if name is None else str(name) for name in named], pa.string()),
                    "level": pa.array([level] * len(there), pa.int32()),
                }
            )
        )
    return pa.concat_tables(found)


def _refuse(plan: ChildPlan, wrong: Sequence[object] | bool, text: str) -> None:
    if wrong:
        raise VerificationError.at(plan.key, f"the release failed its re-check: {text}")
