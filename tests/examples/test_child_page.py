"""The job on the page of child tables runs on the demo: its commands, and what it says of its release."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import duckdb
import pytest

from sqldeid import Options, anonymize, verify
from sqldeid.demo.hospital import mimic_rows
from sqldeid.job import Job
from tests.support.child_tables import fewest_who_fit
from tests.support.places import ROOT

PAGE = ROOT / "docs" / "child-tables.md"


@pytest.mark.deep
def test_the_job_of_the_page_runs(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    job_text, more, _ = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    [session] = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    asked = tomllib.loads(job_text)
    del asked["release"]
    (tmp_path / "key").write_text("0123456789abcdef" * 4)
    options = Options(key_file=tmp_path / "key")
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA mimiciii")
        for name, rows in mimic_rows(300, 1).items():
            if name in ("patients", "diagnoses_icd"):
                connection.from_arrow(rows).create(f"mimiciii.{name}")
        job = Job.parse(asked, folder=tmp_path)
        found = anonymize(job, connection, options=options).releases["diagnoses"]
        assert found.fewest >= 3
        assert any(level == "original" for level in found.levels), "a frequent code stays as it is"
        checked = verify(job, connection, options=options)["diagnoses"]
    for name, line in (*found.facts()[:2], checked.facts()[-1]):
        assert re.search(rf"^  {name} +{re.escape(str(line))}$", session, re.MULTILINE), name
    assert re.search(r"`icd9_code_level`", text)
    assert list(found.columns) == ["subject_id", "icd9_code", "icd9_code_level"]
    beside = tomllib.loads(more)["tables"]["diagnoses"]
    asked["tables"]["diagnoses"]["source"] = beside["source"]
    asked["tables"]["diagnoses"]["columns"] |= beside["columns"]
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA mimiciii")
        for name, rows in mimic_rows(300, 1).items():
            if name in ("patients", "diagnoses_icd", "admissions"):
                connection.from_arrow(rows).create(f"mimiciii.{name}")
        made = anonymize(Job.parse(asked, folder=tmp_path), connection, options=options).releases["diagnoses"]
        assert list(made.columns)[3:] == ["half_year"]
        steps = connection.execute("SELECT COUNT(DISTINCT half_year) FROM release.diagnoses").fetchone()
        assert steps is not None
        assert steps[0] > 1


@pytest.mark.deep
def test_the_second_child_table_of_the_page_is_released_with_the_first(tmp_path: Path) -> None:
    job_text, _, other = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    asked = tomllib.loads(job_text)
    del asked["release"]
    asked["tables"] |= tomllib.loads(other)["tables"]
    (tmp_path / "key").write_text("0123456789abcdef" * 4)
    options = Options(key_file=tmp_path / "key")
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA mimiciii")
        for name, rows in mimic_rows(300, 1).items():
            if name in ("patients", "diagnoses_icd", "procedures_icd"):
                connection.from_arrow(rows).create(f"mimiciii.{name}")
        job = Job.parse(asked, folder=tmp_path)
        made = anonymize(job, connection, options=options).releases
        verify(job, connection, options=options)
        joined = connection.execute(
            "SELECT p.subject_id, p.gender, 'd' || i.icd9_code AS item, i.icd9_code_level AS item_level "
            "FROM release.patients AS p JOIN release.diagnoses AS i USING (subject_id) UNION ALL "
            "SELECT p.subject_id, p.gender, 'p' || i.icd9_code, i.icd9_code_level FROM release.patients AS p "
            "JOIN release.procedures AS i USING (subject_id)"
        ).df()
    assert fewest_who_fit(joined, "subject_id", "item", ["gender"]) == made["procedures"].fewest >= 3
    assert any(level == "original" for level in made["procedures"].levels), "not all is hidden"
