"""The re-check of a release by Mondrian: what was written against what the source gives, read anew, where both lie.

The source is grouped once more by its values, with a fingerprint of what else its rows hold. A combination counts for
the labels of its class only if it lies between the class's bounds: so every label is true of every row that bears it,
whatever the search took the row for. What is counted so must be what was written, label by label; and every bound or
mean that was written is read back and must be a number of the column's public grid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError, VerificationError
from sqldeid.making import to_the_letter
from sqldeid.publish import names_of
from sqldeid.sql import column, identifier, render
from sqldeid.tables.mondrian.criteria import achieved
from sqldeid.tables.mondrian.plan import PartitionPlan
from sqldeid.tables.mondrian.points import SIDES, Parts, count_rows, others_of, values_of
from sqldeid.tables.mondrian.result import PartitionVerified


def verify_parts(planned: PartitionPlan, parts: Parts, written: exp.Expr, engine: Engine) -> PartitionVerified:
    """Count the rows of each class anew, from the source's values, and compare with what was written.

    So, too, what the other columns hold: the rows of a class have the values that the source gives them, each as often.

    Raises
    ------
    VerificationError
        If columns, classes, counts, a criterion or the other columns' content are not what they must be.

    Cost: one scan of the source, and one of the release, another for each criterion; where the engine has no snapshot,
    another of the source.
    """
    _same_columns(planned, written, engine)
    _on_grid(planned, written, engine)
    with _unmoved(planned, engine) as still:
        rows = parts.rows if still else count_rows(planned, parts.source, engine)
        row = _compare(planned, parts, written, engine)
        problems = []
        if row["smallest"] < planned.part.privacy.k:
            problems.append(f"its smallest class has {row['smallest']} rows, not {planned.part.privacy.k}")
        if rows != parts.rows:
            problems.append("the source has other rows than those that were cut")
        if row["differing"] or not rows == row["expected"] == row["written"]:
            problems.append(f"{row['differing']} classes are not what the source gives")
        _refuse(planned, problems)
        criteria = achieved(planned.criteria, written, [c.name for c in planned.cuts], planned.key, engine)
        if row["changed"]:
            _refuse(planned, [f"in {row['changed']} classes, the other columns do not hold what the source gives"])
    return PartitionVerified(rows, int(row["written"]), int(row["smallest"]), int(row["classes"]), criteria)


def _same_columns(planned: PartitionPlan, written: exp.Expr, engine: Engine) -> None:
    there = names_of(engine.columns(written, key=planned.key), planned.key)
    shown = {c.name for c in planned.cuts} | {n for n, _, _ in planned.others}
    if there != [name for name in planned.part.columns if name in shown]:
        _refuse(planned, ["its columns are not those that the job names"])


def _on_grid(planned: PartitionPlan, written: exp.Expr, engine: Engine) -> None:
    """Nothing of a cut column is finer than its grid."""
    for cut in planned.cuts:
        shown = column(cut.name, "r")
        listed = engine.ask("tables/mondrian/list_labels", release=written, label=shown).column("label").to_pylist()
        wrong = sum(not cut.grid.allows(label) for label in listed)
        if wrong:
            _refuse(planned, [f"{wrong} values of {cut.name} are not on its grid"])


def _compare(planned: PartitionPlan, parts: Parts, written: exp.Expr, engine: Engine) -> dict[str, int]:
    names, others = [identifier(f"q{i}") for i in range(len(planned.cuts))], others_of(planned)
    grouped, expected, shown = (engine.workbench(f"{planned.name}_{w}") for w in ("grouped", "expected", "shown"))
    values = [{"name": c["name"], "column": c["value"], "labels": None, "text": False} for c in values_of(planned)]
    types = [source for _, source, _ in planned.others]
    found = [to_the_letter(o["value"], source) for o, source in zip(others, types, strict=True)]
    engine.run("tables/verify/group_source", grouped=grouped, source=parts.source, columns=values, others=found)
    sides = [{"name": name, **{side: identifier(f"{side}{i}") for side in SIDES}} for i, name in enumerate(names)]
    engine.run("tables/mondrian/expect_parts", expected=expected, grouped=grouped, classes=parts.classes, columns=sides)
    labels = [{"name": n, "column": column(c.name, "r")} for n, c in zip(names, planned.cuts, strict=True)]
    shown_as = (column(o["released"].name, "r") for o in others)
    released = [to_the_letter(value, source) for value, source in zip(shown_as, types, strict=True)]
    engine.run("tables/verify/group_release", grouped=shown, release=written, columns=labels, others=released)
    statement = render("tables/mondrian/compare_parts", expected=expected, written=shown, columns=names)
    row: dict[str, int] = engine.query(statement).to_pylist()[0]
    for used in (expected, shown, grouped):
        engine.drop(used)
    return row


@contextmanager
def _unmoved(planned: PartitionPlan, engine: Engine) -> Iterator[bool]:
    """Whether the engine has a snapshot; where it has none, a failure says that a changed source may be why."""
    still = engine.capabilities.snapshot_reads
    try:
        yield still
    except (JobError, VerificationError) as error:
        if still:
            raise
        raise VerificationError(
            f"{error.message}; where the source changed meanwhile, run again while nobody writes to it",
            key=error.key or planned.key,
        ) from None


def _refuse(planned: PartitionPlan, problems: Sequence[str]) -> None:
    if problems:
        raise VerificationError.at(planned.key, f"the release failed its re-check: {'; '.join(problems)}")
