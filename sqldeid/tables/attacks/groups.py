"""Who is hit: success by the value of each quasi-identifying column at its first level."""

from __future__ import annotations

from sqldeid.tables.attacks.base import Attack
from sqldeid.tables.attacks.held_out import left_out_groups, make_groups

ATTACK = Attack("groups", left_out_groups, make_groups)
