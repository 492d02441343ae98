"""Event sequences (Shaked & Rokach 2016): sequences ─▶ clusters ─▶ count ─▶ privatise ─▶ generate ─▶ stage."""

from sqldeid.events.face import check_promise, explain, plan_unit, recheck, run
from sqldeid.events.nature import nature, reads

__all__ = ["check_promise", "explain", "nature", "plan_unit", "reads", "recheck", "run"]
