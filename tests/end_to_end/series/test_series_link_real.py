"""Real stays: age, sex and unit as a table, vitals as series of the same numbers; Challenge 2012 and the MIMIC demo."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sqldeid import anonymize, verify
from sqldeid.job import Job
from sqldeid.result import Result

pytestmark = pytest.mark.xdist_group("series-link-real")

STAYS = """
    SELECT recordid, MAX(CASE WHEN parameter = 'Age' THEN value END) AS age,
           MAX(CASE WHEN parameter = 'Gender' AND value >= 0 THEN value END) AS gender,
           MAX(CASE WHEN parameter = 'ICUType' THEN value END) AS icu
    FROM set_a WHERE minute = 0 GROUP BY recordid
"""
TOP = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}
TABLE: dict[str, Any] = {
    "source": {"query": STAYS},
    "person": "recordid",
    "columns": {"age": {"role": "quasi-identifying", "hierarchy": {"bands": [10, 20, 40]}}, "gender": TOP, "icu": TOP},
    "privacy": {"k": 5, "suppression_limit": 0.01},
}
VITALS = {
    "HR": {"items": ["HR"], "low": 20, "high": 300},
    "SBP": {"items": ["SysABP", "NISysABP"], "low": 30, "high": 300},
    "DBP": {"items": ["DiasABP", "NIDiasABP"], "low": 10, "high": 200},
    "SaO2": {"items": ["SaO2"], "low": 40, "high": 100},
    "Glucose": {"items": ["Glucose"], "low": 10, "high": 2000},
}
SERIES: dict[str, Any] = {
    **{"source": "set_a", "person": "recordid", "time": "minute", "time_unit": "minutes", "variable": "parameter"},
    **{"value": "value", "variables": VITALS, "privacy": {"k": 5}, "link": "stays"},
}
SHOWN = """
    SELECT age, gender, icu, length, variables, features, COUNT(*) AS persons
    FROM release.stays JOIN (
        SELECT person_number, MAX(step) AS length, LIST(variable ORDER BY variable) AS variables,
               LIST([mean, low, high] ORDER BY variable) AS features
        FROM (SELECT person_number, variable, MAX(MAX(step)) OVER (PARTITION BY person_number) AS step,
                     ROUND(AVG(value) + 1.37e-6, 4) AS mean, MIN(value) AS low, MAX(value) AS high
              FROM release.vitals GROUP BY person_number, variable)
        GROUP BY person_number
    ) USING (person_number) GROUP BY ALL
"""


@pytest.fixture(scope="module")
def challenge(shared_data: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        file = shared_data / "physionet2012" / "set-a.parquet"
        connection.execute(f"CREATE TABLE set_a AS SELECT * FROM '{file}'")
        yield connection


def linked(job: Job, database: duckdb.DuckDBPyConnection, folder: Path) -> tuple[Result, dict[str, Any]]:
    result = anonymize(job, database)
    verify(job, database)
    account = result.releases["stays"].followed
    assert account is not None
    with duckdb.connect(str(folder / "out.duckdb"), read_only=True) as connection:
        rows = connection.execute("SELECT COUNT(*), COUNT(DISTINCT person_number) FROM release.stays").fetchone()
        both = connection.execute(
            "SELECT COUNT(*) FROM (SELECT DISTINCT person_number FROM release.vitals) SEMI JOIN release.stays "
            "USING (person_number)"
        ).fetchone()
        assert rows is not None and both is not None
        assert rows[0] == rows[1] == both[0] == account["released"]
    return result, dict(account)


@pytest.mark.deep
@pytest.mark.parametrize(("durations", "left"), [(10, "93 %"), (50, "82 %")])
def test_what_a_link_costs_on_the_challenge_of_2012(
    challenge: duckdb.DuckDBPyConnection,
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    durations: int,
    left: str,
) -> None:
    """The page's figures; and what both releases show together is shown of five persons or more."""
    monkeypatch.setattr("sqldeid.series.attack_sample.CELLS", 0)  # attackers have tests of their own
    series = {**SERIES, "durations": {"k": durations}}
    job = Job.parse(
        {"release": {"into": "out.duckdb"}, "tables": {"stays": TABLE}, "series": {"vitals": series}}, folder=tmp_path
    )
    result, account = linked(job, challenge, tmp_path)
    assert f"{100 * account['released'] / account['in_both']:.0f} %" == left
    page = " ".join((repository / "docs/explanation/series.md").read_text(encoding="utf-8").split())
    assert f"of {account['in_both']:,} stays" in page and left in page
    assert any("series.vitals.link" in text for text in result.releases["vitals"].warnings) == (durations == 50)
    with duckdb.connect(str(tmp_path / "out.duckdb"), read_only=True) as connection:
        found = connection.execute(f"SELECT MIN(persons), SUM(persons) FROM ({SHOWN})").fetchone()
    assert found is not None and found[0] >= 5 and found[1] == account["released"]


@pytest.mark.deep
def test_the_mimic_demo(shared_data: Path, tmp_path: Path) -> None:
    """Stays with a sensitive outcome: two values in whatever both releases show together."""
    source = {
        "query": "SELECT i.icustay_id, p.gender, i.first_careunit AS icu, a.hospital_expire_flag AS died, "
        "least(89, date_diff('year', p.dob, i.intime)) AS age "
        "FROM icustays i JOIN patients p USING (subject_id) JOIN admissions a USING (hadm_id)"
    }
    columns = {**TABLE["columns"], "died": {"role": "sensitive"}}
    privacy = {"k": 4, "suppression_limit": 0.05, "l_diversity": {"column": "died", "l": 2}}
    table = {"source": source, "person": "icustay_id", "columns": columns, "privacy": privacy}
    series = {
        **{"source": "chartevents", "person": "icustay_id", "time": "charttime", "variable": "itemid"},
        **{"value": "valuenum", "variables": "mimic3/vitals", "durations": {"k": 4}, "privacy": {"k": 4}},
        **{"drop": ["Capillary refill rate", "Height"], "link": "stays"},
    }
    job = Job.parse(
        {"release": {"into": "out.duckdb"}, "tables": {"stays": table}, "series": {"vitals": series}}, folder=tmp_path
    )
    with duckdb.connect() as connection:
        for name in ("CHARTEVENTS.csv.gz", "ICUSTAYS.csv", "PATIENTS.csv", "ADMISSIONS.csv"):
            file = shared_data / "mimic3demo" / name
            connection.execute(f"CREATE TABLE {name.split('.')[0]} AS FROM read_csv('{file}', sample_size = -1)")
        result, account = linked(job, connection, tmp_path)
    assert account["released"] > 60 and account["smallest"] >= 4
    achieved = {c.name: c.achieved for c in result.releases["stays"].criteria}
    assert achieved["distinct l-diversity"] == 2
    with duckdb.connect(str(tmp_path / "out.duckdb"), read_only=True) as connection:
        shown = SHOWN.replace("COUNT(*) AS persons", "COUNT(*) AS persons, COUNT(DISTINCT died) AS outcomes")
        shown = shown.replace("ROUND(AVG(value) + 1.37e-6, 4) AS mean", "0 AS mean")
        found = connection.execute(f"SELECT MIN(persons), MIN(outcomes) FROM ({shown})").fetchone()
    assert found is not None and found[0] >= 4 and found[1] == 2
