"""Jobs built in Python: the same checks as of a file, and a text that reads back as the same job."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path
from typing import Any

import pytest

import sqldeid
from sqldeid import build
from sqldeid.job import Job
from sqldeid.job.fields import Section
from tests.support.places import ROOT

FILES = [
    path
    for path in sorted((ROOT / "examples").rglob("*.toml"))
    if {"tables", "series", "events"} & tomllib.loads(path.read_text(encoding="utf-8")).keys()
]
QI = {"role": "quasi-identifying", "hierarchy": {"suppress": True}}
TABLE = {"source": "t", "person": "id", "columns": {"a": QI}, "privacy": {"k": 2}}


def test_what_is_built_is_what_a_file_says() -> None:
    table = build.Table(
        source="adult",
        person="id",
        columns={
            "id": build.Column(role="identifying"),
            "age": build.Column(role="quasi-identifying", hierarchy=build.HierarchyRule(bands=[5, 10])),
            "sex": {"role": "quasi-identifying", "hierarchy": "adult/sex"},
            "salary-class": build.Column(role="sensitive"),
        },
        privacy=build.Privacy(k=5, l_diversity=[build.LDiversity(column="salary-class", l=2)]),
        search=build.Search(loss="loss"),
    )
    made = Job.parse({"release": build.Release(into="out.duckdb", kind="view"), "tables": {"census": table}})
    text = """
        [release]
        into = "out.duckdb"
        as = "view"
        [tables.census]
        source = "adult"
        person = "id"
        [tables.census.columns]
        id = { role = "identifying" }
        age = { role = "quasi-identifying", hierarchy = { bands = [5, 10] } }
        sex = { role = "quasi-identifying", hierarchy = "adult/sex" }
        salary-class = { role = "sensitive" }
        [tables.census.privacy]
        k = 5
        l_diversity = [{ column = "salary-class", l = 2 }]
        [tables.census.search]
        loss = "loss"
    """
    asked = Job.parse(tomllib.loads(text))
    assert said(made) == said(asked)
    assert made.sha256 == asked.sha256
    assert said(Job.parse(tomllib.loads(made.to_toml()))) == said(asked)
    assert 'age = {role = "quasi-identifying", hierarchy = {bands = [5, 10]}}' in made.to_toml()


def said(job: Job) -> dict[str, Any]:
    return job.model_dump(by_alias=True, exclude_unset=True)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_example_reads_back_as_the_same_job(path: Path) -> None:
    try:
        job = Job.load(path)
    except sqldeid.JobError:
        pytest.fail(f"{path} is no job")
    again = Job.parse(tomllib.loads(job.to_toml()), folder=job.folder)
    assert said(again) == said(job)


def test_hostile_names_read_back() -> None:
    names = ['we"ird.x = 1', "select", "a\nb\t\x7f", "ünï '''", "", " "]
    columns = {n: {"role": "sensitive"} for n in names if n} | {
        "q": {"role": "quasi-identifying", "hierarchy": "q.csv"}
    }
    query = build.Query(query='SELECT 1 AS "we""ird"\n-- \\ """ and \'\'\'\n')
    made = Job.parse(
        {"tables": {'x"]y': {"source": query, "rows_are_persons": True, "columns": columns, "privacy": {"k": 2}}}}
    )
    assert said(Job.parse(tomllib.loads(made.to_toml()))) == said(made)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: build.Column(role="sensitiv"), r"Column: role: "),
        (lambda: build.Column(role="sensitive", hierarchy="x.csv"), r"Column: hierarchy: is for quasi-identifying"),
        (lambda: build.Column(rol="sensitive"), r"Column: unknown key \"rol\"; did you mean role\?|Column: rol"),
        (lambda: build.Table(source="t", columns={"a": {"role": 1}}), r"Table: columns\.a\.role: "),
        (lambda: build.Privacy(k="5"), r"Privacy: k: must be a whole number"),
        (lambda: Job.parse({"tables": {"t": build.Table(**TABLE, link="zz")}}), r"job: tables\.t\.link: "),
    ],
)
def test_what_is_wrong_is_told_as_of_a_file(make: Any, told: str) -> None:
    with pytest.raises(sqldeid.JobError, match=told):
        make()


def test_every_part_of_a_job_can_be_built() -> None:
    parts, waiting = set[str](), [Section]
    while waiting:
        below = [part for part in waiting.pop().__subclasses__() if part.__module__.startswith("sqldeid.job.")]
        parts |= {part.__name__ for part in below if not part.__name__.startswith("_")}
        waiting += below
    assert parts - {"Job", "Disagreeing"} == set(build.__all__)
    for name in build.__all__:
        assert inspect.signature(getattr(build, name)).parameters
    assert set(build.__all__) <= set(dir(build))
    with pytest.raises(AttributeError):
        build.Tabel  # noqa: B018  # ty: ignore
