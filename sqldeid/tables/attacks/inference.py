"""Inference: how often an attacked column's value is guessed from the classes (`sqldeid.tables.attacks.control`)."""

from __future__ import annotations

from sqldeid.tables.attacks.held_out import held_out

ATTACK = held_out(
    "inference",
    ("inference",),
    "inference",
    "the release shows no sensitive column as it is, and none of its secrets",
)
