"""explore --job looks at what a job's table holds before it is generalised: with its filter and stacks."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import sqldeid
from tests.support.cli import run

PLACES = ["code_1", "code_2", "code_3"]
STACK = """
[tables.people.stack.code]
from = "codes"
on = "id"
value = "code"
order = "seq"
first = 3
role = "quasi-identifying"
hierarchy = { suppress = true }
"""
WARD = 'ward = { role = "insensitive" }'
JOB = f"""
[tables.people]
source = "people"
person = "id"
where = "age > 30"
[tables.people.columns]
name = {{ role = "identifying" }}
age = {{ role = "quasi-identifying", hierarchy = {{ bands = [5, 10] }} }}
sex = {{ role = "quasi-identifying", hierarchy = {{ suppress = true }} }}
{WARD}
{STACK}
[tables.people.privacy]
k = 2
"""
SECOND = JOB.replace("tables.people", "tables.others")


def write(folder: Path, job: str = JOB) -> tuple[Path, Path, pd.DataFrame]:
    """A database, a job, and by pandas what the job's table is."""
    draw = np.random.default_rng(5)
    people = pd.DataFrame(
        {
            "id": np.arange(80),
            "name": [f"canary {i}" for i in range(80)],
            "age": draw.integers(25, 45, 80),
            "sex": draw.choice(["m", "f", None], 80),
            "ward": draw.choice(["a", "b"], 80),
        }
    )
    codes = pd.DataFrame({"id": draw.integers(0, 80, 200), "seq": np.arange(200), "code": draw.integers(0, 6, 200)})
    codes["code"] = "0" + codes["code"].astype(str)
    path, file = folder / "p.duckdb", folder / "job.toml"
    with duckdb.connect(str(path)) as connection:
        for name, frame in {"people": people, "codes": codes}.items():
            connection.register("frame", frame)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM frame")
            connection.unregister("frame")
    file.write_text(job)
    items: Mapping[int, list[str]] = codes.sort_values("seq").groupby("id")["code"].apply(list).to_dict()
    for place, name in enumerate(PLACES):
        people[name] = [(items.get(i, []) + [None] * 3)[place] for i in people["id"]]
    return path, file, people[people["age"] > 30].reset_index(drop=True)


def test_every_set_is_what_pandas_groups(tmp_path: Path) -> None:
    path, file, frame = write(tmp_path)
    found = sqldeid.explore_job(sqldeid.Job.load(file), path, enough=1)
    assert (found.rows, found.persons) == (len(frame), len(frame))
    names = ["age", "sex", *PLACES]
    assert [c.name for c in found.columns] == names
    assert {frozenset(s.columns) for s in found.sets} == {
        frozenset(s) for size in (1, 2, 3) for s in combinations(names, size)
    }
    for s in found.sets:
        sizes = frame.groupby(list(s.columns), dropna=False)["id"].transform("size")
        assert (s.classes, s.rows_below) == (
            frame.groupby(list(s.columns), dropna=False).ngroups,
            {n: int((sizes < n).sum()) for n in (2, 5, 11)},
        )


def test_sets_that_are_named_and_borders(tmp_path: Path) -> None:
    path, file, _ = write(tmp_path)
    job = sqldeid.Job.load(file)
    every = sqldeid.explore_job(job, path, columns=["age", "WARD", *PLACES]).sets[-1]
    assert every.columns == ("age", "ward", *PLACES)
    borders = sqldeid.explore_job(job, path, borders=True, enough=0.5)
    assert borders.largest and all("ward" not in s for s in (*borders.smallest, *borders.largest))


def test_a_job_without_stacks_or_person_is_looked_at_too(tmp_path: Path) -> None:
    path, file, frame = write(tmp_path, JOB.replace(STACK, "").replace('person = "id"', "rows_are_persons = true"))
    found = sqldeid.explore_job(sqldeid.Job.load(file), path)
    assert (found.rows, found.possible) == (len(frame), 3)


@pytest.mark.parametrize(
    ("job", "arguments", "said"),
    [
        (JOB, [], ""),
        (JOB + SECOND, ["--only", "others"], ""),
        (JOB + SECOND, [], "explored at a time, by --only; the job has people, others"),
        (JOB, ["--only", "nobody"], "there is no release nobody; it has people"),
        (JOB, ["--columns", "age,name"], '--columns: job.toml: tables.people has no column "name"; it has age, sex'),
        (JOB, ["--table", "people"], "--table does not go with --job: the job says it"),
        (JOB, ["--person", "id"], "--person does not go with --job"),
        (JOB, ["--per", "id"], "--per does not go with --job: a job has columns alone"),
        (JOB, ["--text", "name"], "--text does not go with --job"),
        (JOB.replace("age > 30", "age > 99"), [], "tables.people: people has no rows (after `where`)"),
        (JOB.replace('person = "id"', 'person = "ward"').replace(WARD, ""), [], "rows but 2 values of ward"),
    ],
)
def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], job: str, arguments: list[str], said: str
) -> None:
    path, file, _ = write(tmp_path, job)
    ran = run(capsys, "explore", path, "--job", file, *arguments)
    shown = " ".join(ran.err.split())
    assert (ran.code, said in shown) == (2 if said else 0, True), ran.err
    assert "Traceback" not in ran.err and "canary" not in ran.out + ran.err
    assert said or "code_3" in ran.out


def test_a_table_or_a_job_is_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, *_ = write(tmp_path)
    ran = run(capsys, "explore", path)
    assert ran.code == 2 and "--table is missing: name the table, or give a job with --job" in " ".join(ran.err.split())
    ran = run(capsys, "explore", path, "--table", "people", "--only", "people")
    assert ran.code == 2 and "--only belongs to --job" in ran.err


MANY = """
[tables.visits]
source = "visits"
person = "who"
rows = "many"
where = "age > 30"
[tables.visits.columns]
age = { role = "quasi-identifying", hierarchy = { bands = [5, 10] } }
sex = { role = "quasi-identifying", hierarchy = { suppress = true } }
[tables.visits.privacy]
k = 3
"""


def test_many_rows_of_a_person_are_one_person(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draw, path, file = np.random.default_rng(8), tmp_path / "v.duckdb", tmp_path / "job.toml"
    ages, sexes = draw.integers(25, 45, 300), draw.choice(["m", "f", None], 300)
    visits = pd.DataFrame({"Who": draw.integers(0, 40, 300), "age": ages, "sex": sexes})
    visits.loc[visits.Who < 3, "age"] = 50  # rows enough, and three persons
    with duckdb.connect(str(path)) as connection:
        connection.register("frame", visits)
        connection.execute("CREATE TABLE visits AS SELECT * FROM frame")
    file.write_text(MANY)
    visits = visits[visits.age > 30]
    found = sqldeid.explore_job(sqldeid.Job.load(file), path, enough=1)
    assert (found.rows, found.persons, found.person) == (len(visits), visits.Who.nunique(), "Who")
    for tried in found.sets:
        persons = visits.groupby(list(tried.columns), dropna=False).Who.transform("nunique")
        for limit in (2, 5, 11):
            assert tried.persons_below[limit] == visits.Who[persons < limit].nunique()
    assert "of 40 persons (Who)" in run(capsys, "explore", path, "--job", file).out
