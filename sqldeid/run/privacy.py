"""What `sqldeid privacy` computes, from numbers alone: what parameters prove, and how far shifted dates narrow."""

from sqldeid.tables import PENALTIES, UNITS, WIDTHS, Narrowed, PlanRow, ceil_digits, every_draw, narrow, plan_table

__all__ = ["PENALTIES", "UNITS", "WIDTHS", "Narrowed", "PlanRow", "ceil_digits", "every_draw", "narrow", "plan_table"]
