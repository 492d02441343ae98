"""How many statements a run of each kind takes, so that no change adds one unseen.

Who spares a statement lowers a number here; who needs one more raises it, and says why.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import sqldeid
from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.job import Job
from tests.support.charted_series import BASE, charted
from tests.support.events import kind_c
from tests.support.sources import INSENSITIVE, SENSITIVE, database, qi, release

pytestmark = pytest.mark.usefixtures("control_groups")

COLUMNS = {"sex": qi(), "age": qi({"bands": [5, 10]})}


def table(ward: dict[str, Any] = SENSITIVE, **privacy: object) -> dict[str, Any]:
    """A release of the people with a sensitive ward, by a criterion beside k."""
    found = release({**COLUMNS, "ward": ward}, source="people", k=5, limit=0.1, person="id")
    return {"tables": {"people": {**found, "privacy": {**found["privacy"], **privacy}}}}  # type: ignore[dict-item]


def by(method: str, **columns: object) -> dict[str, Any]:
    """A release of the people by another search."""
    asked = {"source": "people", "person": "id", "columns": {**COLUMNS, **columns}, "privacy": {"k": 5}}
    return {"tables": {"people": {**asked, "search": {"method": method}}}}


TAKEN: dict[str, tuple[dict[str, Any], int]] = {
    "full-domain": (table(INSENSITIVE), 100),
    "distinct l-diversity": (table(l_diversity={"column": "ward", "l": 2}), 221),
    "t-closeness": (table(t_closeness={"column": "ward", "t": 0.5}), 212),
    "local": (by("local"), 116),
    "mondrian": (by("mondrian", sex=INSENSITIVE, age=qi({"median": "range"})), 96),
    "series": ({"series": {"vitals": dict(BASE)}}, 173),
    "events": ({"events": {"x": kind_c(source="steps", attacks=False)}}, 110),
}
"""A job of each kind, and the statements that DuckDB is sent from its opening to its closing."""


def source(folder: Path) -> Path:
    """People, charted values and sequences of steps."""
    path = database(folder / "source.duckdb")
    with duckdb.connect(str(path)) as connection:
        connection.register("frame", charted())
        connection.execute("CREATE TABLE charted AS FROM frame")
        connection.execute(
            """CREATE TABLE steps AS
                SELECT i AS row_id, i // 6 AS subject_id, i // 6 AS hadm_id, i % 6 AS ticket_id_seq,
                       'c' || (i * i) % 5 AS cpt_cd FROM RANGE(1200) AS r(i)"""
        )
    return path


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[DuckDBEngine]:
    """Every engine that is opened."""
    engines: list[DuckDBEngine] = []
    opened = DuckDBEngine.__init__

    def counted(self: DuckDBEngine, *arguments: Any, **named: Any) -> None:
        opened(self, *arguments, **named)
        engines.append(self)

    monkeypatch.setattr(DuckDBEngine, "__init__", counted)
    return engines


@pytest.mark.parametrize("kind", TAKEN)
def test_a_run_takes_these_statements(kind: str, tmp_path: Path, engines: list[DuckDBEngine]) -> None:
    asked, statements = TAKEN[kind]
    sqldeid.anonymize(Job.parse({"release": {"into": "out.duckdb"}, **asked}, folder=tmp_path), source(tmp_path))
    assert sum(engine.statements for engine in engines) == statements


CHECKED = {"table": 25, "parquet": 21}
"""What a re-check takes by where the release is: its comments are two statements, in Parquet one for each file.

What lies beside it in a database file takes two, and whether it is a view another.
"""


@pytest.mark.parametrize("place", CHECKED)
def test_a_re_check_takes_these_statements(place: str, tmp_path: Path, engines: list[DuckDBEngine]) -> None:
    job = Job.parse({"release": {"into": "out", "as": place}, **table(INSENSITIVE)}, folder=tmp_path)
    sqldeid.anonymize(job, source(tmp_path))
    engines.clear()
    sqldeid.verify(job, tmp_path / "source.duckdb")
    assert sum(engine.statements for engine in engines) == CHECKED[place]
