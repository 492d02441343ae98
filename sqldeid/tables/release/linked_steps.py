"""The statements of linked releases in order: sources joined, then those of one release, written table by table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqldeid.stages import Step
from sqldeid.tables.plan.linking import Linked
from sqldeid.tables.release.steps import (
    DIALECT,
    certificate_steps,
    restacking_steps,
    shaping_steps,
    step_of,
    steps,
)

_EACH = ("publish/copy_parquet", "publish/create_view", "publish/comment_table", "publish/comment_view")
"""What is run for each of the tables where releases go."""


def linked_steps(linked: Linked, kind: str, dialect: str = DIALECT) -> tuple[Step, ...]:
    """What a run of linked releases executes; `kind` and `dialect` as for `steps`.

    Cost: no statement is run.
    """
    return (*_joined(linked, dialect), *_made(linked, kind, dialect), *_checked(linked))


def linked_certificate_steps(linked: Linked) -> tuple[Step, ...]:
    """What `verify` executes to check their certificate."""
    return (*_joined(linked), *certificate_steps(linked.joint))


def _joined(linked: Linked, dialect: str = DIALECT) -> Iterator[Step]:
    for member in linked.members:
        yield from shaping_steps(member, dialect)
    yield step_of("tables/rows/join_linked")
    yield step_of("tables/rows/check_person")


def _made(linked: Linked, kind: str, dialect: str) -> Iterator[Step]:
    """The steps of the join, which has no table of its own."""
    tables = len(linked.members)
    for step in steps(linked.joint, kind, dialect):
        if step.template == "tables/verify/group_source":
            yield step_of("tables/rows/match_linked")
            yield step_of("tables/rows/join_linked")
        if step.template in ("publish/create_schema", "run/sum_columns"):
            continue
        yield replace(step, times=tables) if step.template in _EACH else step
        if step.template == "tables/write/stage_rows":
            yield step_of("run/sum_columns", None)
            if kind != "parquet":
                yield step_of("publish/create_schema")
            yield step_of("tables/rows/stage_linked", tables)


def _checked(linked: Linked) -> Iterator[Step]:
    for member in linked.members:
        yield from restacking_steps(member)
        yield step_of("tables/rows/compare_linked")
