"""Ask the SQL of the re-check which classes fail a criterion: those of a release, and the parts of a ledger's cells."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
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
    given: dict[str, Any] = {"cells": cells, "ranked": ranked, "columns": columns}
    if kind == "hierarchical":
        parents = engine.put(f"{scored}_parents", pa.table(_parents_of(asked["groups"])))
        size = {"height": len(asked["groups"]), "nowhere": len(asked["groups"][0]) - 1}
        made = engine.make("tables/verify/score_levels", scored, parents=parents, **size, **given)
    else:
        made = engine.make("tables/verify/score_classes", scored, kind=kind, **given)
    told = {name: asked[name] for name in ("l", "num", "den")}
    return {**told, "kind": "scored", "cells": made, "columns": columns}


def _parents_of(groups: Sequence[Sequence[int]]) -> dict[str, list[int]]:
    """A hierarchy's nodes by level: of each place its node, and that node's parent; the top is one node."""
    places = range(len(groups[0]))
    levels = [*groups, [0] * len(places)]
    found: dict[str, list[int]] = {"level": [], "place": [], "node": [], "parent": []}
    for level, (own, above) in enumerate(itertools.pairwise(levels)):
        for place in places:
            for name, x in (("level", level), ("place", place), ("node", own[place]), ("parent", above[place])):
                found[name].append(x)
    return found
