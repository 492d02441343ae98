"""What lies beside releases in their file or folder is told by `verify`: it is handed out with them."""

from pathlib import Path

import duckdb
import pytest

import sqldeid

JOB = """
[release]
into = "{into}"
as = "{kind}"

[tables.people]
source = "people"
person = "id"
attacks = false
[tables.people.columns]
age = {{ role = "quasi-identifying", hierarchy = {{ bands = [10] }} }}
[tables.people.privacy]
k = 3
"""


def made(folder: Path, into: str, kind: str) -> tuple[sqldeid.Job, Path]:
    source = folder / "source.duckdb"
    with duckdb.connect(str(source)) as connection:
        connection.execute("CREATE TABLE people AS SELECT i AS id, CAST(i % 40 AS INTEGER) AS age FROM range(200) t(i)")
    (folder / "job.toml").write_text(JOB.format(into=folder / into, kind=kind))
    job = sqldeid.Job.load(folder / "job.toml")
    sqldeid.anonymize(job, source)
    assert not sqldeid.verify(job, source).warnings
    return job, source


def test_a_table_of_somebody_else_in_the_release_file_is_told(tmp_path: Path) -> None:
    job, source = made(tmp_path, "release.duckdb", "table")
    with duckdb.connect(str(tmp_path / "release.duckdb")) as connection:
        connection.execute('CREATE SCHEMA "my own"; CREATE TABLE "my own"."select" AS SELECT 1 AS id')
    (said,) = sqldeid.verify(job, source).warnings
    assert "my own.select" in said
    assert "release.into" in said


def test_a_comment_that_is_nested_without_an_end_is_no_note(tmp_path: Path) -> None:
    """It ended as an internal error, whoever had put it on whichever table."""
    job, source = made(tmp_path, "out.duckdb", "table")
    deep = '{"sqldeid": ' + "[" * 200_000
    with duckdb.connect(str(tmp_path / "out.duckdb")) as connection:
        connection.execute(f"CREATE TABLE other AS SELECT 1 AS id; COMMENT ON TABLE other IS '{deep}'")
    (said,) = sqldeid.verify(job, source).warnings
    assert "main.other" in said
    with pytest.raises(sqldeid.JobError, match="holds 1 tables or views that sqldeid did not make"):
        sqldeid.anonymize(job, source, options=sqldeid.Options(replace=True))


def test_a_file_beside_the_parquet_files_is_told(tmp_path: Path) -> None:
    job, source = made(tmp_path, "release", "parquet")
    for number in range(7):
        (tmp_path / "release" / f"notes{number}.csv").write_text("id\n1\n")
    (said,) = sqldeid.verify(job, source).warnings
    assert "notes0.csv" in said
    assert "and 2 more" in said


@pytest.mark.parametrize("only", [(), ("people",)])
def test_all_releases_of_the_job_are_its_own(tmp_path: Path, only: tuple[str, ...]) -> None:
    _, source = made(tmp_path, "release.duckdb", "table")
    text = (tmp_path / "job.toml").read_text()
    _, mark, table = text.partition("[tables.people]")
    (tmp_path / "two.toml").write_text(text + (mark + table).replace("tables.people", "tables.others"))
    job = sqldeid.Job.load(tmp_path / "two.toml")
    sqldeid.anonymize(job, source, options=sqldeid.Options(replace=True))
    found = sqldeid.verify(job, source, options=sqldeid.Options(only=only))
    assert not any("release.into" in said for said in found.warnings)
    (said,) = [w for w in sqldeid.verify(sqldeid.Job.load(tmp_path / "job.toml"), source).warnings if "into" in w]
    assert "others" in said
