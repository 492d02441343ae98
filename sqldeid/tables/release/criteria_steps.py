"""List which statements criteria beyond k need, for the steps of a plan."""

from __future__ import annotations

from sqldeid.tables.criteria import known, others_of, terms_of
from sqldeid.tables.plan.plan import TablePlan


def measures(plan: TablePlan) -> list[str]:
    """What measures classes for criteria: common statistics, and bounds of shares."""
    kinds = {terms_of(c).kind for c in plan.criteria}
    statistics = ["tables/check/count_spread"] if kinds - {"bounded"} else []
    return [*statistics, *(["tables/check/bound_classes"] if "bounded" in kinds else [])]


def proofs(plan: TablePlan) -> list[str]:
    """What finds the failing classes by criteria on classes as they are."""
    kinds = {terms_of(c).kind for c in plan.criteria if not others_of(c)}
    counted = ["tables/certificate/prove_criterion"] if kinds - {"bounded"} else []
    return [*counted, *(["tables/certificate/prove_bounded"] if "bounded" in kinds else [])]


def scored(plan: TablePlan) -> int:
    """Criteria that the re-check tells by scores of classes."""
    return sum(bool(terms_of(c).definition) for c in plan.criteria)


def judged(plan: TablePlan) -> tuple[int, int, int]:
    """Splits of classes by sensitive columns, criteria, and those that are measured against the released rows, too."""
    close = sum(known(c).against_whole for c in plan.criteria)
    return len({(c.column, others_of(c)) for c in plan.criteria}), len(plan.criteria), close
