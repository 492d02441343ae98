"""Ask the SQL of the re-check which classes fail a criterion: those of a release, and the parts of a ledger's cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from sqldeid.engine.base import Engine

COUNTED = ("distinct", "entropy", "recursive", "equal", "ordered")
"""Kinds of criteria that are judged by the counts of values; others by each class's score (`score_classes`)."""


def parameters_of(
    engine: Engine,
    asked: Mapping[str, Any],
    cells: exp.Table,
    ranked: exp.Table,
    columns: Sequence[exp.Identifier],
    scored: str,
) -> dict[str, Any]:
    """What `fail_classes` and `measure_classes` take beside `ranked`; of a kind that is not counted, the scores.

    Parameters
    ----------
    asked
        kind, l, num and den.
    scored
        What the table of scores is called, where there must be one.

    Raises
    ------
    UnknownKindError
        For a kind that is neither counted nor scored.
    """
    if asked["kind"] in COUNTED:
        return {**asked, "cells": cells, "columns": columns}
    kind = asked["kind"]
    made = engine.make("tables/verify/score_classes", scored, cells=cells, ranked=ranked, columns=columns, kind=kind)
    return {**asked, "kind": "scored", "cells": made, "columns": columns}
