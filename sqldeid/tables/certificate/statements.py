"""The statements that check a certificate; writing one takes none."""

from __future__ import annotations

from collections.abc import Iterator

from sqldeid.sql.steps import LOCAL, as_needed, step
from sqldeid.stages import Step, Target
from sqldeid.tables.criteria import others_of, terms_of
from sqldeid.tables.fold.statements import counting_values
from sqldeid.tables.plan.choosing import choosing
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.rows.statements import shaping

NOWHERE = Target("table", LOCAL, str)
"""Where a check goes, which writes nothing; it lists the texts of DuckDB."""


def proving(planned: TablePlan) -> Iterator[Step]:
    """What `verify` executes to check a certificate."""
    plan = choosing(planned)
    yield from shaping(plan, NOWHERE)
    yield from counting_values(plan, plan.qis)
    yield step("tables/certificate/prove_fold", 1 if plan.population is None else 2)
    if plan.beyond_k:
        if plan.judged:
            yield step("tables/verify/rank_values", len(plan.judged))
        yield step("tables/certificate/prove_places")
    yield step("tables/certificate/prove_marginals", len(plan.qis))
    yield from as_needed("tables/certificate/prove_nodes", *(_persons(plan) if plan.many else _rows(plan)))


def _persons(plan: TablePlan) -> Iterator[str]:
    yield "tables/certificate/prove_persons"
    if plan.criteria:
        yield from ("tables/certificate/prove_values", "tables/certificate/read_ranked")


def _rows(plan: TablePlan) -> Iterator[str]:
    yield "tables/certificate/prove_failing"
    if plan.overall is not None:
        yield "tables/certificate/prove_sizes"
    if plan.k_map is not None:
        yield "tables/certificate/prove_mapped"
    if plan.presence is not None:
        yield "tables/certificate/prove_presence"
    kinds = {terms_of(c).kind for c in plan.criteria if not others_of(c)}
    if kinds - {"bounded", "hierarchical"}:
        yield "tables/certificate/prove_criterion"
    if "bounded" in kinds:
        yield "tables/certificate/prove_bounded"
    if "hierarchical" in kinds:
        yield "tables/certificate/prove_levels"
    if any(map(others_of, plan.criteria)):
        yield "tables/certificate/prove_joint"
    if plan.concealing is not None:
        yield "tables/certificate/prove_known"
    if plan.criteria:
        yield from ("tables/certificate/prove_spread", "tables/certificate/read_ranked")
