"""A partition, heir or view is no other table: a release of it can be compared with one of what it shares rows with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import sqldeid
from sqldeid.errors import JobError
from tests.support.changing import TABLE
from tests.support.foreign import InPostgres, in_postgres
from tests.support.on_spark import Both, named
from tests.support.spark_tables import both

__all__ = ["both"]

ROWS = "SELECT n AS id, 20 + n % 3 AS age, CASE WHEN n % 2 = 0 THEN 'a' ELSE 'b' END AS ward FROM generate_series"
REFUSED = r"tables\.r: the release that is there is not added to: it has other rows of the same tables"
NO_PERSON = {**{name: part for name, part in TABLE.items() if name != "person"}, "rows_are_persons": True}
PARTITIONED = (
    "CREATE TABLE whole (id BIGINT, age INTEGER, ward TEXT) PARTITION BY RANGE (id)",
    "CREATE TABLE most PARTITION OF whole FOR VALUES FROM (1) TO (12) PARTITION BY RANGE (id)",
    "CREATE TABLE lower PARTITION OF most FOR VALUES FROM (1) TO (6)",
    "CREATE TABLE upper PARTITION OF most FOR VALUES FROM (6) TO (12)",
    "CREATE TABLE last PARTITION OF whole FOR VALUES FROM (12) TO (20)",
    f"INSERT INTO whole {ROWS}(1, 12) AS r(n)",
)
INHERITED = (
    "CREATE TABLE whole (id BIGINT, age INTEGER, ward TEXT)",
    "CREATE TABLE most (id BIGINT, age INTEGER, ward TEXT)",
    "CREATE TABLE lower () INHERITS (whole, most)",
    f"INSERT INTO lower {ROWS}(1, 10) AS r(n)",
    "INSERT INTO whole VALUES (11, 20, 'a')",
    "INSERT INTO most VALUES (12, 20, 'a')",
)
VIEWS = (
    f"CREATE TABLE whole AS {ROWS}(1, 12) AS r(n)",
    "CREATE TABLE objectors AS SELECT 12 AS id",
    "CREATE SCHEMA hidden",
    "CREATE VIEW hidden.inner AS SELECT * FROM whole WHERE id NOT IN (SELECT id FROM objectors)",
    "CREATE VIEW most AS SELECT * FROM hidden.inner",
    "CREATE FUNCTION of_whole() RETURNS SETOF whole LANGUAGE SQL STABLE AS 'SELECT * FROM public.whole WHERE id < 12'",
    "CREATE VIEW called AS SELECT * FROM of_whole()",
    "CREATE MATERIALIZED VIEW kept AS SELECT * FROM whole WHERE id < 12",
)


def job(*sources: str, first: str = "r", **part: Any) -> sqldeid.Job:
    names = (first, "q")
    return sqldeid.Job.parse(
        {"tables": {n: {"source": t, **(part or TABLE)} for n, t in zip(names, sources, strict=False)}}
    )


@pytest.fixture
def server(postgres_cluster: str) -> Iterator[InPostgres]:
    with in_postgres(postgres_cluster) as found:
        yield found


@pytest.mark.parametrize(
    ("made", "here", "there"),
    [
        (PARTITIONED, "whole", "most"),
        (PARTITIONED, "upper", "whole"),
        (INHERITED, "lower", "whole"),
        (INHERITED, "whole", "most"),
        (VIEWS, "whole", "most"),
        (VIEWS, "most", "whole"),
        (VIEWS, "whole", "called"),
        (VIEWS, "kept", "whole"),
    ],
)
def test_of_two_jobs_the_second_is_refused(server: InPostgres, made: tuple[str, ...], here: str, there: str) -> None:
    server.run(*made)
    sqldeid.anonymize(job(here), server.database)
    with pytest.raises(JobError, match=REFUSED):
        sqldeid.anonymize(job(there, first="s"), server.database)
    sqldeid.anonymize(job(there, first="s"), server.database, options=sqldeid.Options(without_ledger=True))


def test_partitions_have_no_row_in_common(server: InPostgres) -> None:
    server.run(*PARTITIONED)
    sqldeid.anonymize(job("lower"), server.database)
    sqldeid.anonymize(job("upper", first="s"), server.database)
    with pytest.raises(JobError, match=r"tables\.[rs]: the release that is there is not added to"):
        sqldeid.anonymize(job("most", first="t"), server.database)


def test_a_partition_that_was_detached_is_known_again(server: InPostgres) -> None:
    server.run(*PARTITIONED)
    sqldeid.anonymize(job("whole"), server.database)
    server.run("ALTER TABLE whole DETACH PARTITION most")
    with pytest.raises(JobError, match=REFUSED):
        sqldeid.anonymize(job("most", first="s"), server.database)


def test_a_view_of_all_rows_is_the_same_source(server: InPostgres) -> None:
    server.run(*VIEWS, "CREATE VIEW every AS SELECT * FROM whole")
    sqldeid.anonymize(job("whole"), server.database)
    sqldeid.anonymize(job("every", first="s"), server.database)


@pytest.mark.parametrize("made", [PARTITIONED, VIEWS], ids=["partition", "view"])
def test_in_one_run_rows_are_told_apart(server: InPostgres, made: tuple[str, ...]) -> None:
    """Without a person key, too: a row of the partition or view is the row of the table with the same values."""
    server.run(*made)
    with pytest.raises(JobError, match=r"tables\.r: beside tables\.q, .* whoever is given them can subtract"):
        sqldeid.anonymize(job("whole", "most", **NO_PERSON), server.database)


@pytest.mark.xdist_group("spark")
@pytest.mark.always
def test_a_view_on_spark(both: Both, request: pytest.FixtureRequest) -> None:
    """By the catalogue and schema that it was made in; a temporary view is not known, and so refused."""
    schema = named(request.node.name)
    both.run(f"CREATE SCHEMA {schema}_in", f"USE {schema}_in")
    both.run("CREATE TABLE whole AS SELECT id, CAST(20 + id % 3 AS INT) AS age, 'a' AS ward FROM RANGE(1, 12)")
    both.run("CREATE VIEW inner_view AS WITH w AS (SELECT * FROM whole) SELECT * FROM w WHERE id <> 7")
    both.run("USE default", f"CREATE VIEW {schema}_most AS SELECT * FROM {schema}_in.inner_view")
    both.run(f"CREATE TEMPORARY VIEW {schema}_called AS SELECT * FROM {schema}_most")
    try:

        def release(source: str, name: str, target: str = "out", **options: Any) -> None:
            asked = {"release": {"schema": f"{schema}_{target}"}, "tables": {name: {"source": source, **TABLE}}}
            sqldeid.anonymize(sqldeid.Job.parse(asked), both.spark, options=sqldeid.Options(**options))

        release(f"{schema}_in.whole", "r")
        for other in (f"{schema}_most", f"{schema}_called"):
            with pytest.raises(JobError, match=REFUSED):
                release(other, "s")
    finally:
        both.run(f"DROP VIEW {schema}_called", f"DROP VIEW {schema}_most")
        both.run(f"DROP SCHEMA {schema}_in CASCADE", f"DROP SCHEMA IF EXISTS {schema}_out CASCADE")
