"""Releases of one job that are not linked, joined by what they show: against a join of all rows with all in pandas."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pandas as pd
import pytest

from sqldeid.job import Job
from sqldeid.run import anonymize, verify
from tests.support.cli import run

if TYPE_CHECKING:
    import psycopg

pytestmark = pytest.mark.duckdb14

SHOWN = {"role": "insensitive"}
QI = {"role": "quasi-identifying", "hierarchy": {"keep_first": [1]}}
K = (3, 2)
KEY = "0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0"


def part(source: str, k: int, columns: dict[str, object], **more: object) -> dict[str, object]:
    privacy = {"k": k, "suppression_limit": 0.2}
    return {"source": source, "person": "id", "columns": columns, "privacy": privacy, **more}


def random_tables(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two tables with some persons in common: a name, a number and a remark in both, the last with NULLs."""
    draw = np.random.default_rng(seed)
    people = pd.DataFrame(
        {
            "id": range(60),
            "place": draw.choice(["ax", "ay", "bx"], 60),
            "stay": draw.integers(0, 25, 60),
            "remark": draw.choice(["r", "s", None], 60),
            "own": draw.integers(100, 160, 60),
        }
    )
    taken = [people.sample(n, random_state=seed + n).reset_index(drop=True) for n in (50, 45)]
    taken[1]["own"] = taken[1].own + 1000  # of one name, but never equal
    return taken[0], taken[1]


def matched(here: pd.DataFrame, there: pd.DataFrame, columns: tuple[str, ...]) -> list[int]:
    """For each row here, how many rows there show the same."""
    spelt = [[tuple(str(v) for v in row) for row in f[list(columns)].to_numpy(dtype=object)] for f in (here, there)]
    return [sum(one == other for other in spelt[1]) for one in spelt[0]]


def below(counts: list[int], k: int) -> int:
    return sum(0 < n < k for n in counts)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(6))
def test_the_worst_set_of_columns_and_its_counts(seed: int) -> None:
    frames = random_tables(seed)
    columns = {"id": {"role": "identifying"}, "place": QI, **dict.fromkeys(("stay", "remark", "own"), SHOWN)}
    job = Job.parse({"tables": {"a": part("t0", K[0], columns), "b": part("t1", K[1], columns, never_with=["a"])}})
    with duckdb.connect() as c:
        for i, frame in enumerate(frames):
            c.register("frame", frame)
            c.execute(f"CREATE TABLE t{i} AS SELECT * FROM frame")
        c.execute("ALTER TABLE t1 ALTER COLUMN stay TYPE DOUBLE")  # 3 and 3.0 are one stay
        result = anonymize(job, c)
        again = verify(job, c)
        # the index of pandas is no column, None is what NULL is in both; 3.0 is read as 3
        a, b = (c.execute(f"SELECT * FROM release.{name}").df().replace({np.nan: None}) for name in ("a", "b"))
    b["stay"] = b.stay.astype(int)
    (found,) = result.joinable
    assert [dict(pair.to_dict()) for pair in again.joinable] == [dict(found)]
    alone = [n for n in a.columns if any(matched(a, b, (n,)))]
    assert "own" not in alone
    tried = {s: (matched(a, b, s), matched(b, a, s)) for i in range(1, 4) for s in combinations(alone, i)}
    counted = {s: (below(m[0], K[1]), below(m[1], K[0])) for s, m in tried.items()}
    assert sum(found["below"]) == max(sum(n) for n in counted.values())
    here, there = tried[found["columns"]]
    assert found["below"] == counted[found["columns"]]
    assert found["rows"] == (len(a), len(b))
    assert found["matched"] == (sum(n > 0 for n in here), sum(n > 0 for n in there))
    assert found["least"] == (min(n for n in here if n), min(n for n in there if n))
    (warning,) = [w for w in result.warnings if "link them" in w]
    assert again.warnings == (warning,)
    assert f"{found['below'][0]} of {len(a)} rows of a match fewer than {K[1]} rows of b" in warning
    assert "joinable" not in result.to_public() and result.to_dict()["joinable"]


def one(sql: str, **tables: dict[str, object]) -> tuple[dict[str, object], ...]:
    """Make a job's releases from what `sql` makes; the pairs that were compared."""
    with duckdb.connect() as c:
        c.execute(sql)
        return tuple(dict(pair) for pair in anonymize(Job.parse({"tables": tables}), c).joinable)


PEOPLE = "CREATE TABLE t AS SELECT i AS id, 'p' || (i % 2) AS q, i % 4 AS v, i AS los FROM range(40) AS r(i);"
IDENTIFYING = {"role": "identifying"}


def test_columns_of_one_level_match_whole_classes() -> None:
    columns = {"id": IDENTIFYING, "q": QI}
    (found,) = one(PEOPLE, a=part("t", 5, columns), b=part("t", 5, columns))
    assert found["below"] == (0, 0) and found["least"] == (20, 20) and found["columns"] == ("q",)


def test_a_column_that_fits_nothing_does_not_hide_one_that_does() -> None:
    """Generalised in one table and not in the other; the stay is exact in both."""
    fine, coarse = {"id": IDENTIFYING, "v": {**SHOWN, "role": "sensitive"}, "los": SHOWN}, {"id": IDENTIFYING}
    coarse |= {"v": {"role": "quasi-identifying", "hierarchy": {"bands": [20]}}, "los": SHOWN}
    (found,) = one(PEOPLE, a=part("t", 5, fine | {"q": QI}), b=part("t", 11, coarse))
    assert found["columns"] == ("los",) and found["below"] == (40, 40) and found["least"] == (1, 1)


def test_no_column_in_common() -> None:
    parts = [{"id": IDENTIFYING, "q": QI}, {"id": IDENTIFYING, "v": {**QI, "hierarchy": {"bands": [2]}}}]
    (found,) = one(PEOPLE, a=part("t", 5, parts[0]), b=part("t", 5, parts[1]))
    assert found["columns"] == () and found["rows"] == (40, 40) and found["matched"] == (0, 0)


def test_linked_tables_are_compared_as_their_join(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third table of 10 values of i // 10 and of i % 10 each matches ten rows of either linked table, one of both."""
    monkeypatch.setenv("SQLDEID_KEY", KEY)
    made = "CREATE TABLE t AS SELECT i AS id, 'p' AS q, i % 10 AS u, i // 10 AS v FROM range(100) AS r(i)"
    pseudonym = {"id": {"role": "identifying", "pseudonym": True}, "q": QI}
    parts = {"a": pseudonym | {"u": SHOWN}, "b": pseudonym | {"v": SHOWN}}
    linked = {name: part("t", 5, columns) for name, columns in parts.items()}
    third = {"c": part("t", 4, {"id": IDENTIFYING, "q": QI, "u": SHOWN, "v": SHOWN})}
    apart = one(made, **linked, **third)
    assert [pair["releases"] for pair in apart] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert all(pair["below"] == (0, 0) for pair in apart)
    linked["b"]["link"] = "a"
    (found,) = one(made, **linked, **third)
    assert found["releases"] == ("a + b", "c") and {"u", "v"} <= set(found["columns"])
    assert found["below"] == (100, 100) and found["least"] == (1, 1) and found["k"] == (5, 4)


def test_other_persons_and_linked_tables_are_not_compared() -> None:
    columns = {"id": {"role": "identifying", "pseudonym": True}, "q": QI, "los": SHOWN}
    other = {**part("u", 5, {"n": IDENTIFYING, "q": QI, "los": SHOWN}), "person": "n"}
    made = PEOPLE + "CREATE TABLE u AS SELECT id AS n, q, los FROM t"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SQLDEID_KEY", KEY)
        assert one(made, a=part("t", 5, columns), b=part("t", 5, columns, link="a"), c=other) == ()


def series_job(step: float, k: int) -> Job:
    vitals = {"source": "charted", "person": "id", "time": "h", "time_unit": "hours", "variable": "v", "value": "x"}
    vitals |= {"variables": {"hr": {"items": [1]}}, "step_hours": step, "durations": {"k": 2}, "privacy": {"k": 2}}
    columns = {"id": IDENTIFYING, "q": QI, "los_days": SHOWN, "age": SHOWN}
    return Job.parse({"tables": {"stays": part("stays", k, columns)}, "series": {"vitals": vitals}})


def make_stays(c: duckdb.DuckDBPyConnection) -> None:
    """60 stays of 12 to 31 whole hours, a record an hour; three have each length."""
    c.execute("""CREATE TABLE stays AS SELECT i AS id, 'p' || (i % 2) AS q, (12 + i % 20) / 24 AS los_days,
                 60 + i % 7 AS age FROM range(60) AS r(i)""")
    c.execute("""CREATE TABLE charted AS SELECT id, h, 1 AS v, 60.0 + (id * 7 + h * h) % 31 AS x
                 FROM stays, range(40) AS r(h) WHERE h < round(24 * los_days)""")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("k", "below"), [(4, 60), (3, 0)])
def test_a_stay_in_days_is_the_length_of_a_series_in_steps(k: int, below: int) -> None:
    with duckdb.connect() as c:
        make_stays(c)
        job = series_job(1, k)
        result = anonymize(job, c)
        again = verify(job, c)
    (found,) = result.joinable
    assert found["columns"] == ("los_days",) and found["rows"] == (60, 60)
    assert found["matched"] == (60, 60) and found["least"] == (3, 3)
    assert found["below"] == (0, below)
    assert [pair.to_dict() for pair in again.joinable] == [dict(found)]
    assert any("los_days as the length of series" in w for w in result.warnings) == bool(below)


def test_the_command_line_warns_and_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with duckdb.connect(tmp_path / "h.duckdb") as c:
        c.execute(PEOPLE)
    section = 'person = "id"\nsource = "t"\nprivacy = { k = 5 }\ncolumns = { id = { role = "identifying" }, '
    section += (
        'q = { role = "quasi-identifying", hierarchy = { keep_first = [1] } }, los = { role = "insensitive" } }\n'
    )
    (tmp_path / "job.toml").write_text(f"[tables.a]\n{section}[tables.b]\n{section}")
    for command in ("anonymize", "verify"):
        given = (tmp_path / "h.duckdb", "--job", tmp_path / "job.toml", "--json", tmp_path / command)
        ran = run(capsys, command, *given)
        told = " ".join(ran.out.split())
        assert "40 of 40 rows of a match fewer than 5 rows of b (as few as 1)" in told
        written = json.loads((tmp_path / command).read_text())
        assert written["joinable"][0]["below"] == [40, 40] and any("link them" in w for w in written["warnings"])


@pytest.mark.deep
def test_in_postgres_as_in_duckdb(postgres: psycopg.Connection) -> None:
    postgres.execute(
        "CREATE TABLE t AS SELECT i AS id, 'p' || (i % 2) AS q, CAST(i % 4 AS CHAR(3)) AS v, i AS los "
        "FROM generate_series(0, 39) AS r(i)"
    )
    columns = {"id": IDENTIFYING, "q": QI, "v": SHOWN, "los": SHOWN}
    job = Job.parse({"tables": {"a": part("t", 5, columns), "b": part("t", 3, columns)}})
    result = anonymize(job, postgres)
    again = verify(job, postgres)
    (here,) = one(PEOPLE, a=part("t", 5, columns), b=part("t", 3, columns))
    assert dict(result.joinable[0]) == here and here["below"] == (40, 40)
    assert [pair.to_dict() for pair in again.joinable] == [here]
