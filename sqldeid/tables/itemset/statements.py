"""The statements of a child table's release."""

from __future__ import annotations

from collections.abc import Iterator

from sqldeid.publish.steps import putting
from sqldeid.sql.steps import as_needed, once, step
from sqldeid.stages import Step, Target
from sqldeid.tables.itemset.plan import ChildPlan

_STAGED = {False: "tables/itemset/stage_items", True: "tables/itemset/stage_rows"}
"""What writes a release, by whether it has sensitive columns."""


def counting(planned: ChildPlan) -> Iterator[Step]:
    """What numbers persons, classes and items."""
    yield from _reading(planned)
    if planned.sensitive:
        yield step("tables/itemset/tell_items", len(planned.sensitive))
    yield from once("tables/itemset/number_persons", "tables/itemset/list_pairs", "tables/itemset/count_left_out")
    yield step("tables/itemset/count_leaves")
    if planned.earlier and planned.known > 1:
        yield from as_needed("tables/itemset/list_shown")


def searching(planned: ChildPlan) -> Iterator[Step]:
    """What counts sets of items under the cuts that are tried."""
    yield step("tables/itemset/count_nodes", planned.items.hierarchy.height)
    yield step("tables/itemset/measure_pairs")
    yield from as_needed("tables/itemset/place_items", "tables/itemset/number_cells", "tables/itemset/read_cells")
    if planned.known > 1:
        yield from as_needed("tables/itemset/hold_cells", "tables/itemset/list_sets")


def writing(planned: ChildPlan, target: Target) -> Iterator[Step]:
    """What writes the items as the cut shows them."""
    yield from once("tables/itemset/place_items", "tables/itemset/number_cells", "tables/itemset/keep_cells")
    yield step("run/sum_columns", None)
    yield from putting(target.kind, len(planned.columns), step(_STAGED[bool(planned.sensitive)]))
    yield from as_needed("tables/itemset/stage_nothing")


def verifying(planned: ChildPlan) -> Iterator[Step]:
    """What counts the release anew on its join with the parent, and compares it with the source."""
    yield from once("tables/itemset/check_items", "tables/itemset/join_shown")
    yield step("tables/itemset/count_sets", planned.known)
    yield from _reading(planned)
    yield from once("tables/itemset/expect_items", "tables/itemset/compare_items")


def _reading(planned: ChildPlan) -> Iterator[Step]:
    """What reads the child's source: its values, and its persons' keys."""
    if planned.table.joined:
        yield step("tables/rows/keep_source")
    if planned.table.versions:
        yield step("tables/plan/count_versions", None)
    yield from once("tables/rows/count_values", "tables/rows/read_values", "tables/disguise/number_values")
    yield step("tables/disguise/read_numbered", None)
    yield step("tables/disguise/create_secrets")
    yield from as_needed("tables/disguise/append_secrets")
