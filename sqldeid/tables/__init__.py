"""The wing of tables: one row per person, or many, released as classes of persons who look alike; this is its face.

Imported from inside, rooms are named in full: a name of the face is loaded when it is first asked for, and none is that
of a room, which would stand in its place once the room is loaded.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqldeid.tables.certificate.local_bound import ProvenBound
    from sqldeid.tables.certificate.proof import Proven
    from sqldeid.tables.criteria.epsilon_safe import PlanRow, ceil_digits, every_draw, plan_table
    from sqldeid.tables.criteria.sampling import PENALTIES
    from sqldeid.tables.disguise.narrowing import UNITS, WIDTHS, Narrowed, narrow
    from sqldeid.tables.followed.companion import numbered
    from sqldeid.tables.plan.columns import refuse_in_parquet, refuse_own_types_in_parquet
    from sqldeid.tables.plan.linking import Linked
    from sqldeid.tables.plan.plan import TablePlan
    from sqldeid.tables.plan.plan import plan as plan_part
    from sqldeid.tables.release.assess import assess
    from sqldeid.tables.release.days import InSource, days_there, refuse_bare, to_look_at
    from sqldeid.tables.release.face import (
        Unit,
        check_promise,
        plan_lattice,
        plan_lattices,
        plan_unit,
        prove,
        recheck,
        recheck_followed,
        refuse_changed,
        run,
        tradeoff,
    )
    from sqldeid.tables.release.nature import nature, reads
    from sqldeid.tables.release.planned import explain, followed_by
    from sqldeid.tables.release.policy import Given, read_policies
    from sqldeid.tables.release.release import Listener
    from sqldeid.tables.release.tradeoff import Asked
    from sqldeid.tables.rows.linked import join_written
    from sqldeid.tables.rows.shape import count_persons, keep
    from sqldeid.tables.verify.verify import Verified

__all__ = [
    "PENALTIES",
    "UNITS",
    "WIDTHS",
    "Asked",
    "Given",
    "InSource",
    "Linked",
    "Listener",
    "Narrowed",
    "PlanRow",
    "Proven",
    "ProvenBound",
    "TablePlan",
    "Unit",
    "Verified",
    "assess",
    "ceil_digits",
    "check_promise",
    "count_persons",
    "days_there",
    "every_draw",
    "explain",
    "followed_by",
    "join_written",
    "keep",
    "narrow",
    "nature",
    "numbered",
    "plan_lattice",
    "plan_lattices",
    "plan_part",
    "plan_table",
    "plan_unit",
    "prove",
    "read_policies",
    "reads",
    "recheck",
    "recheck_followed",
    "refuse_bare",
    "refuse_changed",
    "refuse_in_parquet",
    "refuse_own_types_in_parquet",
    "run",
    "to_look_at",
    "tradeoff",
]

# Loaded when first asked for: `sqldeid privacy` computes from numbers alone, and a release takes few of the rooms.
_HOMES = {
    "TablePlan": "sqldeid.tables.plan.plan",
    "plan_part": "sqldeid.tables.plan.plan:plan",
    "Proven": "sqldeid.tables.certificate.proof",
    "ProvenBound": "sqldeid.tables.certificate.local_bound",
    "PENALTIES": "sqldeid.tables.criteria.sampling",
    "numbered": "sqldeid.tables.followed.companion",
    "Linked": "sqldeid.tables.plan.linking",
    "assess": "sqldeid.tables.release.assess",
    "Listener": "sqldeid.tables.release.release",
    "Asked": "sqldeid.tables.release.tradeoff",
    "join_written": "sqldeid.tables.rows.linked",
    "Verified": "sqldeid.tables.verify.verify",
    **dict.fromkeys(["PlanRow", "ceil_digits", "every_draw", "plan_table"], "sqldeid.tables.criteria.epsilon_safe"),
    **dict.fromkeys(["UNITS", "WIDTHS", "Narrowed", "narrow"], "sqldeid.tables.disguise.narrowing"),
    **dict.fromkeys(["refuse_in_parquet", "refuse_own_types_in_parquet"], "sqldeid.tables.plan.columns"),
    **dict.fromkeys(
        [
            "Unit",
            "check_promise",
            "plan_unit",
            "plan_lattice",
            "plan_lattices",
            "prove",
            "recheck",
            "recheck_followed",
            "refuse_changed",
            "run",
            "tradeoff",
        ],
        "sqldeid.tables.release.face",
    ),
    **dict.fromkeys(["nature", "reads"], "sqldeid.tables.release.nature"),
    **dict.fromkeys(["explain", "followed_by"], "sqldeid.tables.release.planned"),
    **dict.fromkeys(["InSource", "days_there", "refuse_bare", "to_look_at"], "sqldeid.tables.release.days"),
    **dict.fromkeys(["Given", "read_policies"], "sqldeid.tables.release.policy"),
    **dict.fromkeys(["count_persons", "keep"], "sqldeid.tables.rows.shape"),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, _, called = _HOMES[name].partition(":")
    globals()[name] = found = getattr(import_module(home), called or name)
    return found
