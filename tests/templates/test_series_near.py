"""Who is near which target of a series' class: buckets of means lose nobody, and count nobody twice."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pytest

from sqldeid.sql import identifier, render, table_name

FEATURES = ("mean", "variance", "minimum", "maximum")
NEAR = {"mean": 0.25, "variance": 2.0, "minimum": 1.5, "maximum": 1.5}
NULLS = ", ".join(f"IF(ISNAN({name}), NULL, {name}) AS {name}" for name in FEATURES)


def drawn(seed: int, rows: int, **columns: object) -> pd.DataFrame:
    """Features on a grid of a quarter around 0, so that many lie just at the greatest distance or a bucket's edge."""
    rng = np.random.default_rng(seed)
    features = {name: rng.integers(-12, 12, rows) / 4 for name in FEATURES}
    keys = {"length": rng.integers(3, 5, rows), "variable_number": rng.integers(0, 2, rows).astype(np.int32)}
    return pd.DataFrame({**keys, **features, "table_class": rng.integers(0, 2, rows), **columns})


@pytest.mark.parametrize("linked", [False, True])
def test_buckets_find_whom_every_pair_would(linked: bool) -> None:
    measured = drawn(1, 150, number=np.arange(150)).rename(columns={"length": "steps"})
    targets = drawn(2, 60, **{"class": np.arange(60)})
    for i, name in enumerate(FEATURES):
        targets.loc[i * 5 : i * 5 + 7, name] = None
    with duckdb.connect() as connection:
        for name, rows in (("measured", measured), ("targets", targets)):
            connection.register("rows", rows)
            connection.execute(f"CREATE TABLE {name} AS SELECT * REPLACE ({NULLS}) FROM rows")
        tau = [{"name": identifier(name), "value": value} for name, value in NEAR.items()]
        places = {name: table_name(name) for name in ("near", "measured", "targets")}
        connection.execute(render("series/find_near", **places, linked=linked, tau=tau, width=2 * NEAR["mean"]))
        found = connection.execute("SELECT number, variable_number, class FROM near ORDER BY ALL").fetchall()
    pairs = measured.merge(targets, on="variable_number", suffixes=("", "_target"))
    pairs = pairs[pairs.steps == pairs.length]
    if linked:
        pairs = pairs[pairs.table_class == pairs.table_class_target]
    for name, value in NEAR.items():
        away = (pairs[name] - pairs[f"{name}_target"]).abs()
        pairs = pairs[away.isna() | (away <= value)]
    assert found == sorted(zip(pairs.number, pairs.variable_number, pairs["class"], strict=True))
    assert pairs.mean_target.isna().any() and ((pairs["mean"] - pairs.mean_target).abs() == NEAR["mean"]).any()
