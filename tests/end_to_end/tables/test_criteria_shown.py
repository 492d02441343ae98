"""What the terminal says of criteria: what was asked stands beside what it is compared with."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

import sqldeid
from sqldeid.report.terminal import print_result, print_risk, print_verified
from tests.support.files import write


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """60 people of either sex, ill in three ways: 24, 24 and 12 rows."""
    path = tmp_path / "people.duckdb"
    write(
        path,
        "CREATE TABLE people AS SELECT i AS id, CASE WHEN i % 2 = 0 THEN 'F' ELSE 'M' END AS sex, "
        "CASE i // 2 % 5 WHEN 0 THEN 'rare' WHEN 1 THEN 'a' WHEN 2 THEN 'a' ELSE 'b' END AS ill FROM range(60) t(i)",
    )
    (tmp_path / "sex.csv").write_text("F;*\nM;*\n")
    return path


def job_of(folder: Path, **parts: object) -> sqldeid.Job:
    columns = {"sex": {"role": "quasi-identifying", "hierarchy": "sex.csv"}, **parts.pop("columns", {})}  # type: ignore[dict-item]
    table = {"source": "people", "person": "id", "columns": columns, **parts}
    return sqldeid.Job.parse({"release": {"into": "out.duckdb"}, "tables": {"people": table}}, folder=folder)


def shown(show: object, *arguments: object, **named: object) -> str:
    to = io.StringIO()
    show(*arguments, Console(file=to, width=120), **named)  # type: ignore[operator]
    return " ".join(to.getvalue().split())


def test_recursive_diversity_is_held_against_c(database: Path) -> None:
    asked = {"column": "ill", "kind": "recursive", "l": 2, "c": 1.75}
    privacy = {"k": 5, "l_diversity": asked}
    job = job_of(database.parent, privacy=privacy, columns={"ill": {"role": "sensitive"}})
    result = sqldeid.anonymize(job, database)
    found = result.releases["people"].criteria[1]
    assert (found.asked, found.achieved) == (1.75, pytest.approx(24 / 36))
    line = "0.666667 of ill (asked: below 1.75)"
    assert line in shown(print_result, result, database="d", job="j")
    assert line in shown(print_verified, sqldeid.verify(job, database))
    assert "0.6667 of ill (asked: below 1.75; met)" in shown(print_risk, sqldeid.assess(job, database), released=False)


def test_a_drawn_release_says_epsilon_and_delta_and_counts_no_suppressed_rows(database: Path) -> None:
    search = {"method": "epsilon-safe", "epsilon_safe": {"beta": 0.5, "epsilon": 1.0, "delta": 0.49}}
    job = job_of(database.parent, privacy={"k": 5}, search=search)
    result = sqldeid.anonymize(job, database)
    text = shown(print_result, result, database="d", job="j")
    assert f"Epsilon-safe epsilon 1, delta {result.releases['people'].criteria[0].achieved:.3g}" in text
    assert "of a node that was drawn" in text
    assert "too high" not in text
    checked = sqldeid.verify(job, database)
    assert checked["people"].sampled  # type: ignore[union-attr]
    assert "Suppressed not told" in shown(print_verified, checked)


def test_one_failing_class_is_one(database: Path) -> None:
    privacy = {"k": 5, "l_diversity": {"column": "ill", "l": 3}}
    job = job_of(database.parent, privacy=privacy, columns={"ill": {"role": "sensitive"}})
    sqldeid.anonymize(job, database)
    write(database.parent / "out.duckdb", "UPDATE release.people SET ill = 'a' WHERE sex = 'F'")
    with pytest.raises(sqldeid.VerificationError, match=r"1 class fails distinct l-diversity of ill"):
        sqldeid.verify(job, database)


def test_a_loss_that_does_not_count_suppressed_rows_says_so(database: Path) -> None:
    write(database, "INSERT INTO people SELECT 60 + i, 'X', 'a' FROM range(3) t(i)")
    (database.parent / "sex.csv").write_text("F;*\nM;*\nX;*\n")
    told = {}
    for loss in ("loss", "prec"):
        job = job_of(database.parent, privacy={"k": 5, "suppression_limit": 0.5}, search={"loss": loss})
        result = sqldeid.anonymize(job, database, options=sqldeid.Options(replace=True, without_ledger=True))
        assert result.releases["people"].suppressed == 3
        told[loss] = shown(print_result, result, database="d", job="j")
    assert "suppressed rows are not counted in it" in told["prec"]
    assert "suppressed rows are not counted" not in told["loss"]
