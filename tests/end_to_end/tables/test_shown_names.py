"""Names are data: a state, or a stacked value, that one person has is named nowhere but in rows that were released."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from tests.support.cli import run
from tests.support.sources import everything

JOB = """
[release]
into = "out"
as = "{kind}"

[events.moves]
source = "moves"
object = "id"
time = "at"
state = ["ward", "kind"]
gap_hours = 5
attacks = false
privacy = {privacy}
generate = {{ seed = 3 }}

[tables.people]
source = "people"
person = "id"

[tables.people.columns]
sex = {{ role = "quasi-identifying", hierarchy = {{ suppress = true }} }}

[tables.people.stack.procedure]
from = "procedures"
on = "id"
value = "code"
order = "seq"
first = 5
role = "quasi-identifying"
hierarchy = {{ suppress = true }}

[tables.people.privacy]
k = 3
suppression_limit = 0.2
"""
METHODS = {"ratio": '{ method = "ratio", epsilon = 0.5 }', "none": '{ method = "none" }'}


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One object has a ward of its own, and one person five procedures; types list both, and values that nobody has."""
    path = tmp_path_factory.mktemp("names") / "source.duckdb"
    with duckdb.connect(str(path)) as c:
        c.execute("CREATE TYPE kinds AS ENUM ('in', 'out', 'CANARYKIND', 'NOBODYKIND')")
        c.execute("CREATE TYPE codes AS ENUM ('a', 'b', 'CANARYCODE', 'NOBODYCODE')")
        c.execute("""CREATE TABLE moves AS SELECT o AS id, TIMESTAMP '2020-01-01' + INTERVAL (o * 7 + p) HOUR AS at,
            CASE WHEN o = 17 AND p = 2 THEN 'CANARYWARD' ELSE 'w' || p END AS ward,
            CAST(CASE WHEN o = 17 AND p = 2 THEN 'CANARYKIND' WHEN p < 3 THEN 'in' ELSE 'out' END AS kinds) AS kind
            FROM RANGE(60) AS r(o), RANGE(4) AS q(p)""")
        c.execute("CREATE TABLE people AS SELECT i AS id, ['f', 'm'][1 + i % 2] AS sex FROM RANGE(60) AS r(i)")
        c.execute("""CREATE TABLE procedures AS SELECT i AS id, j AS seq, CAST(['a', 'b'][1 + j % 2] AS codes) AS code
            FROM RANGE(60) AS r(i), RANGE(1, 3) AS q(j)""")
        c.execute("INSERT INTO procedures SELECT 7, j, 'CANARYCODE' FROM RANGE(3, 6) AS q(j)")
    return path


def shown(folder: Path, kind: str) -> set[str]:
    """The canaries that rows of the release show."""
    with duckdb.connect() as c:
        if kind == "parquet":
            texts = [str(c.execute(f"FROM '{folder}/out/{n}.parquet'").fetchall()) for n in ("moves", "people")]
        else:
            c.execute(f"ATTACH '{folder}/out' AS t (READ_ONLY)")
            texts = [str(c.execute(f"FROM t.release.{n}").fetchall()) for n in ("moves", "people")]
    return {name for name in ("CANARYWARD", "CANARYKIND", "CANARYCODE") if name in "".join(texts)}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["table", "view", "parquet"])
@pytest.mark.parametrize("method", METHODS)
def test_a_state_and_a_stacked_value_of_one_person_are_named_by_released_rows_alone(
    hospital: Path, tmp_path: Path, method: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.toml").write_text(JOB.format(kind=kind, privacy=METHODS[method]))
    pages = {option: str(tmp_path / option[2:]) for option in ("--json", "--public", "--report")}
    pages = {o: p + (".json" if o == "--json" else ".html") for o, p in pages.items()}
    asked = ["anonymize", str(hospital), "--job", str(tmp_path / "job.toml"), *(x for o in pages.items() for x in o)]
    ran = run(capsys, *asked)
    assert ran.code == 0, ran.err
    told = ran.out + ran.err + "".join(Path(p).read_text() for p in pages.values())
    assert "CANARY" not in told and "NOBODY" not in told
    found, there = everything(tmp_path / "out"), shown(tmp_path, kind)
    assert b"NOBODY" not in found
    assert {n for n in ("CANARYWARD", "CANARYKIND", "CANARYCODE") if n.encode() in found} <= there
    if method == "ratio":
        assert there == set()
    assert "CANARYCODE" not in there
    with duckdb.connect() as c:
        if kind == "parquet":
            metadata = c.execute(f"FROM parquet_kv_metadata('{tmp_path}/out/*.parquet')").fetchall()
        else:
            c.execute(f"ATTACH '{tmp_path}/out' AS t (READ_ONLY)")
            columns = "SELECT comment, data_type FROM duckdb_columns() WHERE schema_name = 'release'"
            others = "SELECT comment FROM duckdb_tables() UNION ALL SELECT comment FROM duckdb_views()"
            metadata = [*c.execute(columns).fetchall(), *c.execute(others).fetchall()]
    assert metadata and "CANARY" not in str(metadata) and "ENUM" not in str(metadata)
    people = json.loads(Path(pages["--json"]).read_text())["releases"]["people"]
    assert [n for n in people["columns"] if n != "sex"] == [f"procedure_{i}" for i in range(1, 6)]  # the job's own
