"""Criteria that a job states and that no table can fail: they are as good as none. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_EMPTY: Mapping[str, Callable[[Any], bool]] = {
    "l_diversity": lambda one: one.l < 2 and (one.c is None or one.c > 1),
    "t_closeness": lambda one: bool(one.t >= 1),
    "delta_disclosure": lambda _: False,  # every value of the table must be in every class
    "beta_likeness": lambda _: False,
    "m_concealing": lambda one: bool(one.m >= one.inclusion),
    "average_risk": lambda risk: bool(risk >= 1),
    "at_risk": lambda one: one.threshold >= 1 or one.share >= 1,
    "k_map": lambda k: bool(k < 2),
    "delta_presence": lambda one: one.least <= 0 and one.most >= 1,
    "game": lambda one: bool(one.payout < one.cost),
}


def asks_nothing(key: str, asked: Any) -> bool:
    """Whether a criterion holds of every table, such as l = 1.

    Parameters
    ----------
    key
        Its key in the job's `privacy`.
    asked
        What the job says there; of criteria of columns, one entry.
    """
    return _EMPTY[key](asked)
