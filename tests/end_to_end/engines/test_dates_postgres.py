"""Dates that Postgres has and Python has not, where none of them has to travel."""

from __future__ import annotations

import pytest

from sqldeid import anonymize, verify
from sqldeid.errors import VerificationError
from tests.support.foreign import in_postgres
from tests.support.sources import INSENSITIVE, job, qi, release


@pytest.mark.parametrize("kind", ["date", "timestamp"])
def test_an_infinite_date_is_shifted_to_itself(postgres_cluster: str, kind: str) -> None:
    shift = {**INSENSITIVE, "shift": "person"}
    columns = {"sex": qi(), "begun": shift, "over": shift, "seen": shift}
    wanted = job({}, r=release(columns, source="people", k=3, person="id"))
    made = f"""CREATE TABLE people AS SELECT i AS id, i % 2 AS sex,
        CAST(CASE WHEN i % 5 = 0 THEN '-infinity' ELSE '2020-01-0' || (1 + i % 9) END AS {kind}) AS begun,
        CAST(CASE WHEN i % 4 = 0 THEN 'infinity' ELSE '2020-02-0' || (1 + i % 9) END AS {kind}) AS over,
        CAST('2020-03-0' || (1 + i % 9) AS {kind}) AS seen
        FROM GENERATE_SERIES(1, 40) AS i"""
    with in_postgres(postgres_cluster) as server:
        with server.connect() as c:
            c.execute(made.encode())
        anonymize(wanted, server.database)
        assert verify(wanted, server.database)["r"].released == 40
        with server.connect() as c:
            counts = "SELECT COUNT(*) FILTER (WHERE over = 'infinity'), COUNT(*) FILTER (WHERE begun = '-infinity')"
            assert c.execute(f"{counts} FROM release.r".encode()).fetchone() == (10, 8)
            c.execute(b"UPDATE release.r SET seen = seen + INTERVAL '1 day' WHERE begun = '-infinity'")
        with pytest.raises(VerificationError):
            verify(wanted, server.database)
