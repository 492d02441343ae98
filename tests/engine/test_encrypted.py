"""Encrypted databases of DuckDB: a connection that has the key is worked on, a command says what it lacks.

DuckDB 1.4 writes no such file without an extension that tests cannot fetch, so that these run on 2.0 alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from sqldeid import Job, JobError, Options, anonymize, verify


@pytest.fixture
def encrypted(tmp_path: Path) -> Path:
    """Thirty people in a file with a key."""
    path = tmp_path / "hospital.duckdb"
    with duckdb.connect() as connection:
        connection.execute("SET force_mbedtls_unsafe = 'true'")  # in place of the extension
        connection.execute(f"ATTACH '{path}' AS hospital (ENCRYPTION_KEY 'the key')")
        connection.execute("CREATE TABLE hospital.people AS SELECT i AS id, i % 3 AS ward FROM range(30) AS t(i)")
    return path


@pytest.fixture
def opened(encrypted: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{encrypted}' AS hospital (ENCRYPTION_KEY 'the key', READ_ONLY)")
        connection.execute("USE hospital")
        yield connection


@pytest.fixture
def job(tmp_path: Path) -> Job:
    ward = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}
    table = {"source": "people", "person": "id", "columns": {"ward": ward}, "privacy": {"k": 5}}
    return Job.parse({"release": {"into": str(tmp_path / "release.duckdb")}, "tables": {"people": table}})


def test_a_file_without_its_key_names_the_mend(encrypted: Path, job: Job) -> None:
    with pytest.raises(JobError, match=r"the file is encrypted.*ENCRYPTION_KEY.*USE") as caught:
        anonymize(job, encrypted)
    assert str(encrypted) in caught.value.message


def test_a_connection_with_the_key_is_worked_on_and_bare_spills_are_told(
    opened: duckdb.DuckDBPyConnection, job: Job
) -> None:
    made = anonymize(job, opened)
    assert made.releases["people"].classes == 3
    assert [w for w in made.warnings if "temporary files of this connection are not" in w]
    assert verify(job, opened)["people"].k == 10
    opened.execute("SET temp_directory = ''")
    again = anonymize(job, opened, options=Options(replace=True))
    assert not [w for w in again.warnings if "temporary files" in w]


def test_a_connection_to_a_bare_database_is_not_warned_of(job: Job) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE people AS SELECT i AS id, i % 3 AS ward FROM range(30) AS t(i)")
        assert not [w for w in anonymize(job, connection).warnings if "temporary files" in w]
