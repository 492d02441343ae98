"""Infinite dates among shifted ones: no shift changes them, and what stands beside them is held to the source."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqldeid.errors import VerificationError
from sqldeid.run import anonymize, verify
from tests.support.files import write
from tests.support.sources import INSENSITIVE, job, qi, release

SOURCE = """CREATE TABLE people AS
    SELECT i AS id, i AS true_row, i % 2 AS sex,
           TIMESTAMP '2020-01-03 10:11:12' + INTERVAL (i * 37 % 400) HOUR AS begun,
           CASE WHEN i % 5 = 0 THEN DATE 'infinity' ELSE DATE '2020-03-01' END AS over, DATE '2020-02-01' AS seen
    FROM RANGE(40) AS r(i)"""


@pytest.mark.parametrize(
    ("change", "to"),
    [
        ("over = NULL WHERE true_row = 5", None),
        ("over = DATE '-infinity' WHERE true_row = 5", "month"),
        ("over = NULL, begun = begun + INTERVAL 1 HOUR WHERE true_row = 5", None),
        ("seen = seen + 1 WHERE true_row = 5", None),
        ("seen = seen + 1 WHERE true_row = 5", "day"),
    ],
)
def test_what_stands_beside_an_infinite_date_is_held_to_the_source(tmp_path: Path, change: str, to: str | None) -> None:
    shift = {**INSENSITIVE, "shift": "person", **({} if to is None else {"to": to})}
    columns = {"sex": qi(), "over": shift, "begun": shift, "seen": shift, "true_row": INSENSITIVE}
    source, out = tmp_path / "source.duckdb", tmp_path / "out"
    write(source, SOURCE)
    wanted = job({"into": str(out)}, r=release(columns, source="people", k=3, person="id"))
    anonymize(wanted, source)
    verify(wanted, source)
    write(out, f"UPDATE release.r SET {change}")
    with pytest.raises(VerificationError):
        verify(wanted, source)
