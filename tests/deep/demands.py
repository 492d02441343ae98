"""Criteria of a whole release or of a population, and hierarchies that stand in the database, for `generate.py`."""

from __future__ import annotations

from typing import Any

from tests.deep.hostile import NAMES, Make, Random


def _population(r: Random) -> dict[str, Any]:
    """A population: a table, a number of persons, weights, the rest of the source."""
    size = {"size": r.choice([1000, 10**6, 10]), "fraction": r.choice([0.1, 0.5, 1.0])}
    return r.choice(
        [
            {"table": r.choice(["people", "people", "stays", "visits", "main.people", *NAMES])},
            size,
            size | {"estimate": "poisson", "significance": r.choice([0.05, 0.5])},
            {"weights": r.choice(["weight", "id", *NAMES])},
            {"rest": True},
        ]
    )


DEMANDS: tuple[Make, ...] = (
    lambda r: {"average_risk": r.choice([0.02, 0.3, 1.0])},
    lambda r: {"at_risk": {"threshold": r.choice([0.1, 0.5, 1.0]), "share": r.choice([0.0, 0.05, 1.0])}},
    lambda r: {"k_map": r.choice([2, 5, 20, 10**9]), "population": _population(r)},
    lambda r: {"delta_presence": {"most": r.choice([0.3, 1.0])}, "population": _population(r)},
    lambda r: {"delta_presence": {"least": 0.01, "most": 0.9}, "population": {"table": "people"}},
    lambda r: {"game": {"payout": r.choice([3.0, 10**9]), "cost": r.choice([2.0, 1e-9]), **_attacker(r)}},
)
"""What may be asked of a whole release, beside k; entries of `privacy`."""


def _attacker(r: Random) -> dict[str, Any]:
    return r.choice([{}, {"attacker": "journalist"}, {"attacker": "prosecutor"}])


STORED: dict[str, Make] = {
    "table": lambda r: {"table": r.choice(["visits", "levels", "main.levels", "people", "none.there", *NAMES])},
    "query": lambda r: {
        "query": r.choice(
            [
                "SELECT value, label FROM levels",
                "SELECT DISTINCT code, ward FROM visits",
                "SELECT 1",
                "DELETE FROM levels",
                "SELECT value, label FROM levels; DROP TABLE levels",
            ]
        ),
        **r.choice([{}, {"columns": ["value", "label"]}, {"columns": ["nope"]}, {"separation": "last"}]),
    },
    "parents": lambda r: {
        "parents": r.choice(["tree", "main.tree", "levels"]),
        **r.choice([{"child": "child", "parent": "parent"}, {"child": "nope", "parent": "parent"}, {"child": "child"}]),
    },
}
"""Rules of a hierarchy that is read from the database: `sources.py` makes `levels` and `tree`."""
