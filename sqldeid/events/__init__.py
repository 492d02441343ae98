"""Event sequences (Shaked & Rokach 2016): sequences ─▶ clusters ─▶ count ─▶ privatise ─▶ generate ─▶ stage."""

from sqldeid.events.face import check_promise, explain, plan, recheck, run
from sqldeid.events.nature import nature, reads

__all__ = ["check_promise", "explain", "nature", "plan", "reads", "recheck", "run"]
