"""Labels of a series: an outcome model in four trust settings; labels that will not do are refused in a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from sqldeid import anonymize
from sqldeid.errors import JobError
from sqldeid.job import Job
from tests.support.sources import insert

PART = {
    "source": "charted",
    "person": "stay",
    "time": "hour",
    "time_unit": "hours",
    "variable": "item",
    "value": "value",
    "durations": {"k": 20},
    "privacy": {"k": 3},
    "perturb": {"method": "shared", "seed": 5},
}


@pytest.fixture(scope="module")
def hospital() -> Iterator[duckdb.DuckDBPyConnection]:
    """150 stays whose heart rates are faster for who dies; one stay without a label, one with NULL, one unknown."""
    draw = np.random.default_rng(4)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE charted (stay INTEGER, hour INTEGER, item VARCHAR, value DOUBLE)")
        died = draw.random(150) < 0.4
        rows = [
            (stay, hour, "HR", 80 + 25 * died[stay] + draw.normal(0, 8)) for stay in range(150) for hour in range(12)
        ]
        frame = pd.DataFrame(rows)  # noqa: F841 - SQL reads it
        connection.execute("INSERT INTO charted SELECT * FROM frame")
        connection.execute("CREATE TABLE deaths (stay INTEGER, died BOOLEAN, score DOUBLE)")
        labels = [[stay, bool(died[stay]) if stay else None, float(stay)] for stay in range(149)] + [[999, True, 1.0]]
        insert(connection, "deaths", labels)
        yield connection


def run(connection: duckdb.DuckDBPyConnection, folder: Path, column: str = "died", source: object = "deaths"):
    labels = {"source": source, "person": "stay", "column": column}
    asked = {"release": {"into": "out.duckdb"}, "series": {"vitals": {**PART, "labels": labels}}}
    return anonymize(Job.parse(asked, folder=folder), connection).releases["vitals"]


@pytest.mark.deep
def test_four_trust_settings_for_who_has_a_label(hospital, tmp_path):
    found = run(hospital, tmp_path)
    assert found.utility["persons"] == 148
    settings = found.utility["settings"]
    assert list(settings) == ["orig. / orig.", "de-id. / de-id.", "orig. / de-id.", "de-id. / orig."]
    for scores in settings.values():
        assert scores["test_roc_auc"] > 0.8
    assert settings["orig. / orig."]["test_roc_auc_change"] == 0
    shown = dict(found.facts())
    assert "ROC-AUC" in shown["Outcome model de-id. / orig."]
    assert "utility" in found.to_dict()
    assert "utility" not in found.to_public()


def test_a_rare_outcome_is_not_measured_and_stops_nothing(hospital, tmp_path):
    found = run(hospital, tmp_path, source={"query": "SELECT stay, stay = 3 AS died FROM deaths"})
    assert "at least ten persons" in found.utility["not_measured"]
    assert found.released == 150


@pytest.mark.parametrize(
    ("column", "source", "message"),
    [
        ("score", "deaths", "neither true nor false"),
        (
            "died",
            {"query": "SELECT stay, died FROM deaths UNION ALL SELECT stay, died FROM deaths"},
            "more than one row",
        ),
    ],
)
def test_labels_that_will_not_do_are_refused(hospital, tmp_path, column, source, message):
    with pytest.raises(JobError, match=message):
        run(hospital, tmp_path, column, source)
    assert not (tmp_path / "out.duckdb").exists()
