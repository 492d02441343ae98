"""What `assess` measures beyond class sizes: l, t and 1/m of a source and of its release, as counted by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import duckdb
import pytest
from rich.console import Console

import sqldeid
from sqldeid.errors import VerificationError
from sqldeid.report.terminal import print_risk
from tests.support.sources import insert

M = "m-concealing"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The worked example: class M holds 3 rows rich and 2 poor, class F 5 rows rich; the copies differ in a word."""
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people (id INTEGER, sex VARCHAR, wealth VARCHAR, age INTEGER)")
        people = [("M", "rich")] * 3 + [("M", "poor")] * 2 + [("F", "rich")] * 5
        rows = [(i, sex, wealth, 30 + i % 2) for i, (sex, wealth) in enumerate(people)]
        insert(connection, "people", rows)
    return path


def job_of(folder: Path, **criteria: object) -> sqldeid.Job:
    columns = {
        "sex": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
        "wealth": {"role": "sensitive"},
        "age": {"role": "sensitive"},
    }
    privacy = {"k": 2, "suppression_limit": 0.5, **criteria}
    table = {"source": "people", "person": "id", "columns": columns, "privacy": privacy}
    return sqldeid.Job.parse({"release": {"into": "out.duckdb"}, "tables": {"people": table}}, folder=folder)


def test_one_over_m_of_the_worked_example(database: Path) -> None:
    job = job_of(database.parent, m_concealing={"m": 0.5, "known": {"wealth": 0.1}})
    risk = sqldeid.assess(job, database)["people"]
    assert risk.one_over_m == pytest.approx(4.3478, abs=5e-5)
    assert risk.worst_state == ()  # 0.9 · 1/5 is more than 0.1 · 1/2
    assert [(c.name, c.asked, c.met) for c in risk.criteria] == [(M, 0.5, True)]
    assert risk.criteria[0].achieved == pytest.approx(0.23)


@pytest.mark.parametrize(("wealth", "age", "worst"), [(0.9, 0.0, ("wealth",)), (0.9, 0.9, ("wealth", "age"))])
def test_the_worst_state_is_named(database: Path, wealth: float, age: float, worst: tuple[str, ...]) -> None:
    job = job_of(database.parent, m_concealing={"m": 0.01, "known": {"wealth": wealth, "age": age}})
    risk = sqldeid.assess(job, database)["people"]
    assert risk.worst_state == worst
    assert not risk.criteria[0].met
    json.dumps(risk.criteria[0].achieved)


def test_the_worst_of_many_columns_is_named(tmp_path: Path) -> None:
    """Ten known columns: one person has a value of her own in the seventh."""
    path = tmp_path / "people.duckdb"
    names = [f"s{i}" for i in range(10)]
    with duckdb.connect(str(path)) as connection:
        values = ", ".join(
            f"CASE WHEN i = 5 AND {j} = 6 THEN 'own' ELSE 'same' END AS {n}" for j, n in enumerate(names)
        )
        connection.execute(f"CREATE TABLE people AS SELECT i AS id, i % 2 AS sex, {values} FROM range(40) t(i)")
    columns = {"sex": {"role": "quasi-identifying", "hierarchy": {"suppress": True}}}
    columns |= {n: {"role": "sensitive"} for n in names}
    known = dict.fromkeys(names, 0.1) | {"s6": 0.4}
    privacy = {"k": 2, "m_concealing": {"m": 0.5, "known": known}}
    table = {"source": "people", "person": "id", "columns": columns, "privacy": privacy}
    risk = sqldeid.assess(sqldeid.Job.parse({"tables": {"people": table}}, folder=tmp_path), path)["people"]
    assert risk.worst_state == ("s6",)
    assert risk.one_over_m == pytest.approx(1 / (0.4 + 0.6 / 20))


def test_l_and_t_of_a_source_that_meets_neither(database: Path) -> None:
    recursive = {"column": "wealth", "l": 2, "kind": "recursive", "c": 2.0}
    job = job_of(
        database.parent,
        l_diversity=[{"column": "wealth", "l": 2}, recursive, {"column": "age", "l": 2, "kind": "entropy"}],
        t_closeness={"column": "wealth", "t": 0.1},
    )
    found = sqldeid.assess(job, database)["people"]
    assert [(c.column, c.achieved, c.met) for c in found.criteria[:2]] == [
        ("wealth", 1.0, False),
        ("wealth", None, False),
    ]
    assert found.criteria[2].column == "wealth"
    assert found.criteria[2].achieved == pytest.approx(0.2)  # 60 % and 100 % rich where 80 % are
    assert not found.criteria[2].met
    assert found.criteria[3].met == (found.criteria[3].achieved >= 2 - 1e-9)  # type: ignore[operator]
    assert found.one_over_m is None
    shown = StringIO()
    print_risk({"people": found}, Console(file=shown, width=200), released=False)
    assert "0.2 of wealth (asked: 0.1; not met)" in shown.getvalue()
    assert "no figure of wealth (asked: below 2; not met)" in shown.getvalue()


def test_a_release_tells_the_same_1_over_m_as_its_assessment(database: Path) -> None:
    job = job_of(database.parent, m_concealing={"m": 0.22, "known": {"wealth": 0.1}})
    release = sqldeid.anonymize(job, database).releases["people"]
    risk = sqldeid.assess(job, database, release=True)["people"]
    assert risk.one_over_m == pytest.approx(release.one_over_m)
    assert release.one_over_m == pytest.approx(1 / 0.2)  # the five men are suppressed
    assert release.k == 5
    shown = StringIO()
    print_risk({"people": risk}, Console(file=shown, width=200), released=True)
    assert "1/m" in shown.getvalue()
    plain = sqldeid.anonymize(
        job_of(database.parent), database, options=sqldeid.Options(replace=True, without_ledger=True)
    )
    assert plain.releases["people"].one_over_m == plain.releases["people"].k


def test_a_release_of_other_classes_is_not_told_to_be_safer_than_it_is(database: Path) -> None:
    def asked(*quasi: str, sensitive: Sequence[str] = (), **more: object) -> sqldeid.Job:
        columns: dict[str, object] = {n: {"role": "quasi-identifying", "hierarchy": {"suppress": True}} for n in quasi}
        columns |= {name: {"role": "sensitive"} for name in sensitive}
        table = {"source": "people", "person": "id", "columns": columns, "privacy": {"k": 2}, **more}
        job = {"release": {"into": "out.duckdb"}, "tables": {"people": table}}
        return sqldeid.Job.parse(job, folder=database.parent)

    def assess(job: sqldeid.Job) -> object:
        return sqldeid.assess(job, database, release=True)["people"]

    shown = asked("sex", "age")
    sqldeid.anonymize(asked("sex", "age", sensitive=["wealth"]), database)
    assert assess(shown) and assess(asked("sex", "age", "wealth")), "a reader may know more"
    with pytest.raises(VerificationError, match="columns that the job does not name as such"):
        assess(asked("sex"))
    with pytest.raises(VerificationError, match="has not the quasi-identifying columns that the job names"):
        assess(asked("sex", "age", "old", source={"query": "SELECT *, age > 30 AS old FROM people"}))
    options = sqldeid.Options(replace=True, without_ledger=True)
    sqldeid.anonymize(asked("sex", "age", rows="many"), database, options=options)
    assert assess(asked("sex", "age", rows="many"))
    with pytest.raises(VerificationError, match="may have many rows"):
        assess(shown)
