"""The wing of tables: one row per person, or many, released as classes of persons who look alike; this is its face.

Imported from inside, rooms are named in full: `plan` here is the function, not the room of that name.
"""

from sqldeid.tables.certificate.proof import Proven
from sqldeid.tables.criteria.epsilon_safe import PlanRow, ceil_digits, plan_table
from sqldeid.tables.criteria.sampling import PENALTIES
from sqldeid.tables.disguise.narrowing import UNITS, WIDTHS, Narrowed, narrow
from sqldeid.tables.followed.companion import numbered
from sqldeid.tables.plan.columns import refuse_in_parquet, refuse_own_types_in_parquet
from sqldeid.tables.plan.linking import Linked
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.plan.plan import plan as plan_part
from sqldeid.tables.release.assess import assess
from sqldeid.tables.release.face import (
    Unit,
    check_promise,
    plan,
    plan_lattice,
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
    "Linked",
    "Listener",
    "Narrowed",
    "PlanRow",
    "Proven",
    "TablePlan",
    "Unit",
    "Verified",
    "assess",
    "ceil_digits",
    "check_promise",
    "count_persons",
    "explain",
    "followed_by",
    "join_written",
    "keep",
    "narrow",
    "nature",
    "numbered",
    "plan",
    "plan_lattice",
    "plan_part",
    "plan_table",
    "prove",
    "read_policies",
    "reads",
    "recheck",
    "recheck_followed",
    "refuse_changed",
    "refuse_in_parquet",
    "refuse_own_types_in_parquet",
    "run",
    "tradeoff",
]
