"""`gap_hours = "auto"` where much is charted at once: batches are no gaps, and there is a floor, which is told."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from sqldeid import anonymize, verify
from sqldeid.job import Job

CHARTED = """CREATE TABLE charted AS
    SELECT who, ['HR', 'BP', 'RR', 'SpO2', 'Temp'][1 + item] AS what,
           TIMESTAMP '2150-01-01' + (who * 400 + visit * 90) * INTERVAL 1 DAY
               + step * {minutes} * INTERVAL 1 MINUTE AS at
    FROM range(60) AS p(who), range(2) AS v(visit), range(8) AS s(step), range(5) AS i(item)"""


def made(folder: Path, minutes: int) -> tuple[dict[str, object], list[str]]:
    source = folder / "charted.duckdb"
    with duckdb.connect(str(source)) as connection:
        connection.execute(CHARTED.format(minutes=minutes))
    part = {"source": "charted", "object": "who", "time": "at", "state": "what", "gap_hours": "auto"}
    part |= {"privacy": {"method": "none"}, "generate": {"seed": 1}}
    job = Job.parse({"release": {"into": "out.duckdb"}, "events": {"e": part}}, folder=folder)
    found = anonymize(job, source).releases["e"]
    verify(job, source)
    return dict(found.gaps), [w for w in found.warnings if "gap_hours" in w]


@pytest.mark.deep
def test_what_is_charted_at_once_is_no_gap(tmp_path: Path) -> None:
    """Rounds every four hours, five values each: the rule found one minute, and cut every round off."""
    gaps, warnings = made(tmp_path, 240)
    assert gaps["threshold_hours"] == pytest.approx(4) and gaps["together"] == pytest.approx(0.81, abs=0.01)
    assert warnings and "81% of the gaps are of less than a minute" in warnings[0] and "4 h;" in warnings[0]


@pytest.mark.deep
def test_the_threshold_is_an_hour_at_least(tmp_path: Path) -> None:
    gaps, warnings = made(tmp_path, 5)
    assert (gaps["threshold_hours"], gaps["floored"]) == (1.0, True)
    assert "auto found 1 h, the least it takes" in warnings[0]
