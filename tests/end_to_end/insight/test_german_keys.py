"""Keys as German hospitals call them: a patient's number is the person, and no key is generalised and released."""

from __future__ import annotations

import tomllib

import duckdb
import pytest

import sqldeid


def proposed(name: str, each: int) -> dict[str, object]:
    """The release that `init` proposes of a table in which a key has so many rows; sex says nothing of the key."""
    with duckdb.connect() as connection:
        connection.execute("CREATE MACRO h(i, n, salt) AS CAST(hash(i, salt) % n AS INTEGER)")
        connection.execute(
            f"""CREATE TABLE p AS SELECT 100000 + i // {each} AS "{name}", ['m', 'w'][1 + h(i, 2, 0)] AS geschlecht,
                20 + h(i, 60, 1) AS "alter", ['x', 'y', 'z'][1 + h(i, 3, 2)] AS diagnose FROM RANGE(600) AS r(i)"""
        )
        [table] = tomllib.loads(sqldeid.init(connection, "p"))["tables"].values()
    return table


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name", ["Patienten-Nr", "Patientennummer", "PatientenNummer", "PatID", "Pat_Nr", "PATIENTEN_ID"]
)
def test_a_patients_number_is_the_person(name: str) -> None:
    for each, rows in ((1, None), (2, "many")):
        table = proposed(name, each)
        assert (table["person"], table.get("rows")) == (name, rows)
        assert "rows_are_persons" not in table


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["Fallnummer_Pat", "Fallnummer", "Fall-Nr", "fall_id", "FallNr"])
@pytest.mark.parametrize("each", [1, 2])
def test_a_cases_number_is_not_released(name: str, each: int) -> None:
    column = proposed(name, each)["columns"].get(name, {"role": "left out"})  # type: ignore[attr-defined]
    assert column["role"] in ("identifying", "left out")
