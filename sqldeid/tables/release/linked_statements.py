"""The statements that linked releases run beside those of one table: sources joined, and each table written."""

from __future__ import annotations

from collections.abc import Iterator

from sqldeid.publish.steps import putting
from sqldeid.sql.steps import once, step
from sqldeid.stages import Step, Target
from sqldeid.tables.certificate.statements import NOWHERE, proving
from sqldeid.tables.plan.linking import Linked
from sqldeid.tables.rows.statements import restacking, shaping
from sqldeid.tables.write.statements import keeping, staging


def joining(linked: Linked, target: Target) -> Iterator[Step]:
    """What makes the rows of each source, and joins them by person."""
    for member in linked.members:
        yield from shaping(member, target)
    yield from once("tables/rows/join_linked", "tables/rows/check_person")


def writing_apart(linked: Linked, target: Target) -> Iterator[Step]:
    """What writes the join, then each table of it where it goes, and joins them again as whoever holds them would."""
    plan, tables = linked.joint, len(linked.members)
    yield step("tables/write/label_values", None)
    yield from keeping(plan)
    yield staging(plan)
    yield step("run/sum_columns", None)
    apart = step("tables/rows/stage_linked", tables)
    yield from putting(target.kind, len(plan.released), apart, tables=tables)
    yield from once("tables/rows/match_linked", "tables/rows/join_linked")


def comparing(linked: Linked) -> Iterator[Step]:
    """What checks the join by other SQL."""
    for member in linked.members:
        yield from restacking(member)
        yield step("tables/rows/compare_linked")


def proving_linked(linked: Linked) -> Iterator[Step]:
    """What `verify` executes to check their certificate."""
    yield from joining(linked, NOWHERE)
    yield from proving(linked.joint)
