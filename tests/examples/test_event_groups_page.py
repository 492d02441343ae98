"""The job on the page of groups runs on a generated hospital, and its release shows what the page says."""

from __future__ import annotations

import re
import tomllib

import duckdb
import pytest

from sqldeid import anonymize, verify
from sqldeid.demo.hospital import mimic_rows
from sqldeid.job import Job
from tests.support.places import ROOT

PAGE = ROOT / "docs" / "event-groups.md"


@pytest.mark.deep
def test_the_job_of_the_page_runs(tmp_path):
    [text] = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    with duckdb.connect() as connection:
        for name, rows in mimic_rows(300, 1).items():
            if name in ("transfers", "patients"):
                connection.from_arrow(rows).create(name)
        query = "SELECT DISTINCT COALESCE(curr_careunit, '') || chr(9) || eventtype FROM transfers ORDER BY 1"
        states = "\n".join(row[0] for row in connection.execute(query).fetchall())
        (tmp_path / "states.txt").write_text(states, encoding="utf-8")
        job = Job.parse(tomllib.loads(text), folder=tmp_path)
        found = anonymize(job, connection).releases["transfers"]
        assert sum(spend["epsilon"] for spend in found.ledger) == 5.0
        parts = {spend["statistic"]: spend["epsilon"] for spend in found.ledger}
        assert parts["groups"] == 0.05 * 5 and parts["transitions by group"] == parts["transitions"]
        shown = connection.execute("SELECT DISTINCT sex, age_group FROM release.transfers").fetchall()
        assert set(shown) <= {(s, a) for s in "FM" for a in ("under 45", "45 and over")} | {(None, None)}
        assert verify(job, connection)["transfers"].objects == found.objects
