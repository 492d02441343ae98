"""What `sqldeid demo` leaves on disk: a database, a job that loads and fits it, or nothing at all."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from sqldeid import demo
from sqldeid.demo import NOTICE, Demo, database
from sqldeid.errors import EngineError, JobError
from sqldeid.hierarchy import open_source
from sqldeid.job import Job
from sqldeid.job.parts import Query
from sqldeid.sql import bind, identifier, parse_query, render, table_name, tables_of
from tests.support.files import read

if TYPE_CHECKING:
    import psycopg

pytestmark = pytest.mark.duckdb14


def adult(path: Path) -> Demo:
    return demo.adult(path, rows=3_000)


def mimic(path: Path) -> Demo:
    return demo.mimic(path, patients=150)


MAKERS = pytest.mark.parametrize("make", [adult, mimic])
Make = Callable[[Path], Demo]


def content(made: Demo) -> dict[str, str]:
    """A hash of the rows of every table, whatever their order."""
    query = "SELECT md5(string_agg(line, '|' ORDER BY line)) FROM (SELECT CAST(t AS VARCHAR) AS line FROM {} AS t)"
    return {t.name: read(made.database, query.format(t.name))[0][0] for t in made.tables}


@MAKERS
def test_tables_have_the_rows_that_are_told(make: Make, tmp_path: Path) -> None:
    made = make(tmp_path / "some.duckdb")
    assert made.notice == NOTICE and "no real person" in NOTICE
    with duckdb.connect(made.database, read_only=True) as connection:
        for table in made.tables:
            assert connection.execute(f"SELECT COUNT(*) FROM {table.name}").fetchall() == [(table.rows,)]
            assert table.rows > 0
        listed = connection.execute("SELECT schema_name || '.' || table_name FROM duckdb_tables()").fetchall()
    assert {name for (name,) in listed} == {table.name for table in made.tables}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["some.duckdb", "some.job.toml"]


@MAKERS
def test_same_seed_same_content(make: Make, tmp_path: Path) -> None:
    assert content(make(tmp_path / "one.duckdb")) == content(make(tmp_path / "two.duckdb"))


def test_another_seed_other_content(tmp_path: Path) -> None:
    for maker in (demo.adult, demo.mimic):
        one, two = (maker(tmp_path / f"{maker.__name__}{seed}.duckdb", 40, seed=seed) for seed in (1, 2))
        hashes = content(one), content(two)
        assert all(hashes[0][name] != hashes[1][name] for name in hashes[0] if not name.endswith("d_icd_procedures"))


@pytest.mark.parametrize("name", ["MIMICIII.PATIENTS", "mimiciii.patients", '"MIMICIII"."Patients"'])
def test_upper_and_lower_case_names_find_the_table(name: str, tmp_path: Path) -> None:
    made = mimic(tmp_path / "some.duckdb")
    assert read(made.database, f"SELECT COUNT(*) FROM {name}") == [(150,)]


@MAKERS
def test_shipped_hierarchies_cover_every_value_of_the_job(make: Make, tmp_path: Path) -> None:
    made = make(tmp_path / "some.duckdb")
    (path,) = made.jobs
    for table in Job.load(path).tables.values():
        source = f"({table.source.query})" if isinstance(table.source, Query) else table.source
        with duckdb.connect(made.database, read_only=True) as connection:
            keys = connection.execute(
                f'SELECT COUNT(*), COUNT(DISTINCT "{table.person}") FROM {source} AS s'
            ).fetchall()
            assert keys[0][0] == keys[0][1] == made.tables[0].rows
            for name, column in table.columns.items():
                values = connection.sql(f'SELECT DISTINCT "{name}" FROM {source} AS s').to_arrow_table()[0]
                if column.role == "quasi-identifying":
                    assert isinstance(column.hierarchy, str)
                    bound = open_source(column.hierarchy, path.parent).bind(values)
                    assert bound.height >= 1


def test_the_query_of_the_job_is_one_that_jobs_may_ask(tmp_path: Path) -> None:
    made = mimic(tmp_path / "some.duckdb")
    query = Job.load(made.jobs[0]).tables["patients"].source
    assert isinstance(query, Query)
    tree = parse_query(query.query, key="tables.patients.source.query")
    assert set(tables_of(tree)) == {("mimiciii", "admissions"), ("mimiciii", "patients")}
    bound = bind(tree, lambda parts: table_name(*parts)).sql(dialect="duckdb")
    rows = [read(made.database, f"SELECT * FROM ({text}) AS s ORDER BY ALL") for text in (query.query, bound)]
    assert rows[0] == rows[1] and len(rows[0]) == 150


def test_templates_run_on_postgres(postgres: psycopg.Connection) -> None:
    columns = [identifier(name) for name in ("id", 'we"ird; DROP TABLE x; --')]
    made = table_name("demo schema", "made")
    postgres.execute('CREATE TEMPORARY TABLE given AS SELECT 1 AS id, \'a\' AS "we""ird; DROP TABLE x; --"')
    for _ in range(2):
        postgres.execute(render("demo/create_schema", "postgres", schema=identifier("demo schema")).encode())
    statement = render("demo/create_table", "postgres", table=made, rows=table_name("given"), columns=columns)
    postgres.execute(statement.encode())
    assert postgres.execute('SELECT * FROM "demo schema".made').fetchall() == [(1, "a")]


@MAKERS
def test_job_is_named_after_the_database_and_says_what_the_data_is(make: Make, tmp_path: Path) -> None:
    (path,) = make(tmp_path / 'we"ird $x.duckdb').jobs
    job = Job.load(path)
    assert job.release.into == 'we"ird $x_release.duckdb'
    assert NOTICE in path.read_text(encoding="utf-8")
    assert not job.warnings()


def test_years_of_birth_are_those_of_ages_0_to_90(tmp_path: Path) -> None:
    made = demo.mimic(tmp_path / "some.duckdb", patients=1_000)
    query = Job.load(made.jobs[0]).tables["patients"].source
    assert isinstance(query, Query)
    years = read(made.database, f"SELECT MIN(year_of_birth), MAX(year_of_birth) FROM ({query.query}) AS s")
    assert years == [(1918, 2008)]


@MAKERS
def test_existing_files_are_not_touched(make: Make, tmp_path: Path) -> None:
    for existing in ("some.duckdb", "some.job.toml"):
        folder = tmp_path / existing
        folder.mkdir()
        (folder / existing).write_text("mine")
        with pytest.raises(JobError, match=r"exists already"):
            make(folder / "some.duckdb")
        assert [file.name for file in folder.iterdir()] == [existing]
        assert (folder / existing).read_text() == "mine"


@MAKERS
@pytest.mark.parametrize(
    ("name", "message"), [("no/where.duckdb", "does not exist"), ("a\nb.duckdb", "not usable"), ("", "exists already")]
)
def test_paths_that_do_not_work(make: Make, name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(JobError, match=message):
        make(tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("seed", [-1])
def test_seed_out_of_range(seed: int, tmp_path: Path) -> None:
    for maker in (demo.adult, demo.mimic):
        with pytest.raises(JobError, match="seed"):
            maker(tmp_path / "some.duckdb", seed=seed)


@pytest.mark.parametrize("count", [0, -3, 1_000_001])
def test_size_out_of_range(count: int, tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"rows is .* 1 to 1,000,000"):
        demo.adult(tmp_path / "some.duckdb", rows=count)
    with pytest.raises(JobError, match=r"patients is .* 1 to 100,000"):
        demo.mimic(tmp_path / "some.duckdb", patients=count)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("failure", "raised"),
    [(duckdb.IOException("disk"), EngineError), (PermissionError(13, "no"), JobError), (KeyboardInterrupt(), None)],
)
def test_a_failed_run_leaves_nothing(
    failure: BaseException, raised: type[Exception] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, job: str) -> None:
        (tmp_path / "some.job.toml").write_text("half")
        raise failure

    monkeypatch.setattr(database, "_write_job", fail)
    with pytest.raises(raised or KeyboardInterrupt):
        adult(tmp_path / "some.duckdb")
    assert not list(tmp_path.iterdir())


def test_package_holds_python_and_toml_only() -> None:
    names = {file.name for file in resources.files(demo).iterdir() if file.is_file()}
    assert {Path(name).suffix for name in names} <= {".py", ".toml"}
    assert {"adult.job.toml", "mimic.job.toml"} <= names
