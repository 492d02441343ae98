"""What a first user tries: equal names, macros, zones, encodings, divisors; each is refused by name, never in part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from sqldeid.errors import JobError
from sqldeid.run import anonymize, plan
from tests.support.sources import PEOPLE, database, job, listed, people, qi, release

INTO = {"into": "out.duckdb"}


def connected() -> duckdb.DuckDBPyConnection:
    c = duckdb.connect()
    c.execute(PEOPLE.format("people", 400))
    return c


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT id, sex, name AS SEX FROM people", '"sex" and "SEX" differ only in case'),
        ("SELECT a.*, b.sex FROM people a JOIN people b ON a.id = b.id", 'two columns are called "sex"'),
        ("SELECT a.*, b.* FROM people a JOIN people b ON a.id = b.id", 'two columns are called "id"'),
        ("SELECT sex, age AS Sex FROM people UNION ALL SELECT sex, age FROM people", '"sex" and "Sex"'),
        ("WITH p AS (SELECT sex, sex AS again FROM people) SELECT sex, again AS SEX FROM p", '"sex" and "SEX"'),
    ],
)
@pytest.mark.parametrize("where", [None, "sex = 'f'"])
def test_equal_names_of_a_query_are_refused(query: str, said: str, where: str | None) -> None:
    more = {} if where is None else {"where": where}
    with pytest.raises(JobError) as raised:
        plan(job(r=release({"sex": qi()}, source={"query": query}, **more)), connected())
    assert raised.value.key == "tables.r.source.query"
    assert said in raised.value.message


def test_different_names_of_a_query_are_kept() -> None:
    query = "SELECT a.*, b.sex AS sex_1 FROM people a JOIN people b USING (id)"
    assert plan(job(r=release({"sex": qi(), "sex_1": qi()}, source={"query": query})), connected())[0].joined


MACROS = {
    "reads a file": ("CREATE MACRO Upper(x) AS (SELECT MAX(content) FROM read_text('/etc/hostname'))", "Upper"),
    "changes k": ("CREATE MACRO min(x) AS max(x)", "min"),
    "temporary": ("CREATE TEMP MACRO count(x) AS 1000", "count"),
    "operator": ('CREATE MACRO "+"(a, b) AS 7', "+"),
    "beside": ("ATTACH ':memory:' AS beside; CREATE MACRO beside.lower(x) AS 'evil'", "lower"),
    "of a table": ("CREATE MACRO range(x) AS TABLE SELECT 1 AS i", "range"),
    "of the catalogue": ("CREATE MACRO duckdb_functions() AS TABLE SELECT 1 AS i", "duckdb_functions"),
}


@pytest.mark.parametrize("name", MACROS)
def test_macros_with_names_of_functions_are_refused(tmp_path: Path, name: str) -> None:
    c = connected()
    c.execute(MACROS[name][0])
    for run in (anonymize, plan):
        with pytest.raises(JobError, match="drop or rename") as raised:
            run(job(INTO, tmp_path, r=people()), c)
        assert f"({MACROS[name][1]})" in raised.value.message
    assert listed(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "function", "types"),
    [("hash", lambda *_: 7, ["VARCHAR"]), ("greatest", lambda a, b: a, ["BIGINT", "BIGINT"])],
)
def test_functions_of_python_with_names_of_functions_are_refused(name: str, function: Any, types: list[Any]) -> None:
    """DuckDB calls them where its own takes any type: the run failed in the midst of it, or counted by them."""
    c = connected()
    c.create_function(name, function, types, "BIGINT")  # type: ignore[arg-type]
    for run in (anonymize, plan):
        with pytest.raises(JobError, match=rf"functions of Python that replace DuckDB's \({name}\)"):
            run(job(r=people()), c)
    c = connected()
    c.create_function("my_own", function, types, "BIGINT")  # type: ignore[arg-type]
    assert anonymize(job(r=people()), c).releases["r"].released > 0


def test_other_macros_stay() -> None:
    c = connected()
    c.execute("CREATE MACRO my_own(x) AS x + 1")
    assert anonymize(job(r=people()), c).releases["r"].released > 0
    assert c.execute("SELECT my_own(1)").fetchall() == [(2,)]


def test_macros_of_a_database_file(tmp_path: Path) -> None:
    """Where the release goes there they are refused; elsewhere our statements do not see them."""
    path = database(tmp_path / "source.duckdb")
    plain = anonymize(job(INTO, tmp_path, r=people()), path)
    with duckdb.connect(str(path)) as c:
        c.execute("CREATE MACRO min(x) AS 1000; CREATE MACRO count(x) AS 1000; CREATE MACRO sum(x) AS 1000")
    with pytest.raises(JobError, match=r"source\.duckdb: .*\(count, min, sum\)"):
        anonymize(job({}, tmp_path, r=people()), path)
    again = anonymize(job({"into": "again.duckdb"}, tmp_path, r=people()), path)
    assert again.releases["r"].node == plain.releases["r"].node
    assert again.releases["r"].released == plain.releases["r"].released


def test_a_moment_needs_a_zone_before_it_has_a_date() -> None:
    c = connected()
    c.execute("CREATE TABLE moments AS SELECT TIMESTAMPTZ '2101-01-01 00:00:00+00' AS seen FROM people")
    columns = {"seen": qi({"dates": ["day", "year"]})}
    with pytest.raises(JobError, match=r"write CAST\(\w+ AS TIMESTAMP\) AS \w+ in a source query") as raised:
        plan(job(r=release(columns, source="moments")), c)
    assert raised.value.key == "tables.r.columns.seen"
    assert "TIMESTAMP WITH TIME ZONE" in raised.value.message
    mended = {"query": "SELECT CAST(seen AS TIMESTAMP) AS seen FROM moments"}
    assert anonymize(job(r=release(columns, source=mended)), c).releases["r"].released == 400


def test_a_csv_file_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    path.write_bytes(b"id;name\n" + b"".join(f"{i};SECRET Müller\n".encode("latin-1") for i in range(50)))
    with pytest.raises(JobError, match=r"names\.csv: the file is not UTF-8") as raised:
        anonymize(job(INTO, tmp_path, r=release({"name": qi()}, source="names")), path)
    assert "SECRET" not in raised.value.message
    assert listed(tmp_path) == ["names.csv"]


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"source": "people", "where": "CAST('SECRET' || name AS INTEGER) = 1"}, "tables.r.where"),
        ({"source": {"query": "SELECT CAST(name AS INTEGER) AS age FROM people"}}, "tables.r.source.query"),
        ({"source": {"query": "FROM people"}, "where": "CAST(name AS INTEGER) = 1"}, "tables.r.where"),
        ({"source": "people", "where": "STRPTIME('SECRET' || name, '%d.%m.%Y') < DATE '2020-01-01'"}, "tables.r.where"),
    ],
)
def test_what_fails_in_the_jobs_sql_names_its_key(more: dict[str, object], key: str) -> None:
    with pytest.raises(JobError, match="cannot be converted") as raised:
        anonymize(job(r=release({"age": qi()}, **more)), connected())  # type: ignore[arg-type]
    assert (raised.value.key, raised.value.code) == (key, 2)
    assert key in raised.value.message
    assert "SECRET" not in raised.value.message


def test_a_division_by_zero_is_the_users_to_mend() -> None:
    """DuckDB 1.4 answers NULL, and no row is left; 2.0 refuses."""
    with pytest.raises(
        JobError, match=r"tables\.r(\.where: a number is divided by zero|: people has no rows)"
    ) as raised:
        anonymize(job(r=release({"age": qi()}, source="people", where="age % 0 = 1")), connected())
    assert raised.value.code == 2


def test_one_row_is_singular() -> None:
    with pytest.raises(JobError, match=r"has only 1 row$"):
        anonymize(job(r=people(where="id = 7")), connected())


@pytest.mark.parametrize("weight", [1e-6, 1e6])
@pytest.mark.parametrize("loss", ["loss", "prec"])
def test_the_extreme_weights_do_not_overflow(weight: float, loss: str) -> None:
    search = {"weights": {"age": weight, "sex": 1e6}, "loss": loss}
    found = anonymize(job(r=people(search=search)), connected()).releases["r"]
    assert found.search.optimal
    assert 0 <= found.loss[loss] <= 1
