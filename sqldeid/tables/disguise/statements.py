"""The statements that replace keys and dates."""

from __future__ import annotations

from collections.abc import Iterator

from sqldeid.sql.steps import as_needed, step
from sqldeid.stages import Step
from sqldeid.tables.disguise.disguise import disguised, pseudonyms
from sqldeid.tables.plan.days import shifted
from sqldeid.tables.plan.plan import TablePlan


def disguising(plan: TablePlan) -> Iterator[Step]:
    """What replaces keys and dates; the parts are of two hundred thousand values each."""
    if not disguised(plan):
        return
    keys = len({c.source.name for c in pseudonyms(plan)} | ({plan.person} if shifted(plan) else set()))
    yield step("tables/disguise/number_values", keys)
    yield step("tables/disguise/read_numbered", None)
    yield step("tables/disguise/create_secrets", keys)
    yield from as_needed("tables/disguise/append_secrets")
    yield step("tables/disguise/disguise_source")
