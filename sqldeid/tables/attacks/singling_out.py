"""Singling out: whom a predicate that was read from the release isolates (`sqldeid.tables.attacks.control`)."""

from __future__ import annotations

from sqldeid.tables.attacks.held_out import held_out

ATTACK = held_out(
    "singling_out",
    ("singling_out", "singling_out_with_values"),
    "singling out",
    "there is nothing to single out by",
)
