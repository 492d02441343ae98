"""Linkability: whether two parts of what is known of a person lead to one row (`sqldeid.tables.attacks.control`)."""

from __future__ import annotations

from sqldeid.tables.attacks.held_out import held_out

ATTACK = held_out(
    "linkability", ("linkability",), "linking", "one quasi-identifying column cannot be parted between two files"
)
