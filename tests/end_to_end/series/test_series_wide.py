"""Series of a wide table, one column a variable, are those of the long table with the same measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

import sqldeid
from sqldeid import anonymize, plan, verify
from sqldeid.engine.opening import open_connection
from sqldeid.errors import JobError
from sqldeid.job.series import Series
from sqldeid.series.planning import plan as plan_series
from tests.support.foreign import bag, in_duckdb
from tests.support.foreign_series import CHOICES, WIDE, charted, periodic, stays, told, wanted

AS_WIDE = [name for name, changes in CHOICES.items() if "source" not in changes and "where" not in changes]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tables = {"charted": charted(), "periodic": periodic(), "stays": stays()}
    return in_duckdb(tmp_path_factory.mktemp("wide") / "s.duckdb", tables)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("choice", [*AS_WIDE, "found variables"])
def test_a_wide_table_gives_the_release_of_the_long_one(source: Path, choice: str) -> None:
    changes: dict[str, Any] = {"variables": None} if choice == "found variables" else dict(CHOICES[choice])
    found = {}
    for shape, more in (("long", {}), ("wide", WIDE)):
        job = wanted(f"{choice} {shape}", **{**changes, **more})
        released = anonymize(job, source).releases["vitals"]
        with duckdb.connect(str(source)) as c:
            rows = c.execute(f'FROM "{choice} {shape}".vitals').fetchall()
        found[shape] = (bag(rows), {k: v for k, v in told(released).items() if k != "warnings"})
        assert released.released > 10 and verify(job, source)["vitals"].to_dict()
    assert found["wide"][0] == found["long"][0]
    differing = {k for k in found["long"][1] if repr(found["long"][1][k]) != repr(found["wide"][1][k])}
    assert differing <= {"source", "moved", "statements"}


def test_it_is_unpivoted_as_pandas_melts(source: Path) -> None:
    """Integers, floats and exact numbers, and a person and time that are called as what is made."""
    with duckdb.connect() as c:
        c.execute("""CREATE TABLE w AS SELECT i % 7 AS variable, 5 * i AS value, i AS "select",
            CASE WHEN i % 3 > 0 THEN i / 4 END AS temp, CAST(i AS DECIMAL(9, 2)) / 4 AS nibp FROM RANGE(40) AS r(i)""")
        names = {"SELECT": "hr", "temp": "T", "nibp": "BP"}
        given = {"source": "w", "person": "variable", "time": "value", "time_unit": "minutes", "wide": names}
        part = Series.model_validate({**given, "durations": {"k": 2}, "privacy": {"k": 2}})
        with open_connection(c) as engine:
            engine.begin()
            planned = plan_series("v", part, engine, Path())
            assert planned.map is not None and planned.map.names == ("BP", "T", "hr")
            text = f"SELECT variable, value, variable_, value_ FROM {planned.source.sql('duckdb')}"
            made = c.execute(text).df()
        rows = c.execute("FROM w").df().rename(columns={"select": "hr", "temp": "T", "nibp": "BP"})
    melted = pd.melt(rows.astype(float), ["variable", "value"], ["hr", "T", "BP"], "variable_", "value_")
    order = ["variable", "value", "variable_"]
    left, right = (t.sort_values(order).reset_index(drop=True) for t in (made, melted[made.columns]))
    pd.testing.assert_frame_equal(left, right, check_dtype=False)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"wide": {"nope": "HR"}}, 'no column "nope"'),
        ({"wide": {"at": "HR"}}, r"series.vitals.wide.at: is of type TIMESTAMP, not a number"),
        ({"wide": {"select": "HR", '"gl': "hr"}}, "another column has this variable"),
        ({"wide": {"select": "HR", "SELECT": "BP"}}, "named twice"),
        ({"wide": {"select": "HR", '"gl': "else"}}, "no variable of variables has"),
        ({"variable": "item"}, "does not go with wide"),
        ({"variables": None, "drop": ["none"]}, "not in wide"),
        ({"variables": None, "drop": ["HR", "glü 'c'"]}, "leaves no variable"),
        ({"time": None}, "time: missing"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_key(source: Path, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(JobError, match=reason):
        plan(wanted("x", **{**WIDE, **changes}), source)


def test_a_plan_says_that_the_table_is_wide(source: Path) -> None:
    (planned,) = sqldeid.plan(wanted("x", **WIDE), source)
    assert dict(planned.facts())["Variables"] == "HR, Glu, each of a column of its own"
