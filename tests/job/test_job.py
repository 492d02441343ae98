"""The job file: what a good one gives, and what each bad one says."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import ValidationError

from sqldeid.errors import JobError
from sqldeid.job import Column, HierarchyRule, Job, Query, Release, Search, Table, schema
from sqldeid.job.criteria import named_sensitive

CONTRACT = """
[release]
into = "mimic_release.duckdb"
schema = "release"
as = "table"

[tables.patients]
source = "mimiciii.patients"
person = "subject_id"
where = "age >= 18"

[tables.patients.columns]
name     = { role = "identifying" }
gender   = { role = "quasi-identifying", hierarchy = "mimic3/gender" }
age      = { role = "quasi-identifying", hierarchy = { bands = [5, 10, 20] } }
zip      = { role = "quasi-identifying", hierarchy = { mask = [1, 2, 3] } }
weight   = { role = "quasi-identifying", hierarchy = { edges = [[50, 60, 70], [60]], tails = true }, uncovered = "top" }
country  = { role = "quasi-identifying", hierarchy = "country.csv" }
born     = { role = "quasi-identifying", hierarchy = { dates = ["month", "year", "decade"] } }
code     = { role = "quasi-identifying", hierarchy = { keep_first = [3, 1] } }
unit     = { role = "quasi-identifying", hierarchy = { suppress = true } }
diagnosis = { role = "sensitive" }
note     = { role = "free-text" }
los      = { role = "insensitive" }

[tables.patients.privacy]
k = 10
suppression_limit = 0.1
suppression = "drop"

[tables.patients.search]
method = "frontier"
loss = "loss"
weights = { age = 3.0 }
time_limit = 60
checks_limit = 10000
"""

SMALL: dict[str, Any] = {
    "tables": {
        "t": {
            "source": "s",
            "person": "id",
            "columns": {"age": {"role": "quasi-identifying", "hierarchy": {"bands": [5, 10]}}},
            "privacy": {"k": 2},
        }
    }
}


def small(**changes: object) -> dict[str, Any]:
    """The small job with keys set by their path, ``__`` between steps; None removes. A step ``t`` is tables.t."""
    job = deepcopy(SMALL)
    for path, value in changes.items():
        here = job
        *steps, last = path.split("__")
        for step in steps:
            here = here["tables"]["t"] if step == "t" else here.setdefault(step, {})
        if value is None:
            del here[last]
        else:
            here[last] = value
    return job


def refused(data: Mapping[str, object]) -> JobError:
    with pytest.raises(JobError) as caught:
        Job.parse(data, name="job.toml")
    assert caught.value.code == 2
    return caught.value


def write(folder: Path, content: str | bytes) -> Path:
    file = folder / "job.toml"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def test_the_contract_loads(tmp_path: Path) -> None:
    job = Job.load(write(tmp_path, CONTRACT))
    table = job.tables["patients"]
    assert (job.release.into, job.release.schema_name, job.release.kind) == ("mimic_release.duckdb", "release", "table")
    assert (table.source, table.person, table.where) == ("mimiciii.patients", "subject_id", "age >= 18")
    assert (table.text, table.view, table.frozen) == (False, "snapshot", False)
    assert (table.privacy.k, table.privacy.suppression_limit, table.privacy.suppression) == (10, 0.1, "drop")
    assert (table.search.method, table.search.weights, table.search.time_limit) == ("frontier", {"age": 3.0}, 60.0)
    assert list(table.columns)[:3] == ["name", "gender", "age"]
    rules = {n: c.hierarchy.to_mapping() for n, c in table.columns.items() if isinstance(c.hierarchy, HierarchyRule)}
    assert rules == {
        "age": {"bands": [5, 10, 20]},
        "zip": {"mask": [1, 2, 3]},
        "weight": {"edges": [[50, 60, 70], [60]], "tails": True},
        "born": {"dates": ["month", "year", "decade"]},
        "code": {"keep_first": [3, 1]},
        "unit": {"suppress": True},
    }
    assert table.columns["country"].hierarchy == "country.csv"
    assert [c.uncovered for n, c in table.columns.items() if n in ("age", "weight")] == ["refuse", "top"]


def test_whole_widths_stay_whole_because_labels_show_them() -> None:
    rule = HierarchyRule(bands=[5, 10.0])
    assert [type(width) for width in rule.to_mapping()["bands"]] == [int, float]  # type: ignore[attr-defined]


def test_a_job_knows_where_it_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, CONTRACT)
    monkeypatch.chdir(tmp_path)
    job = Job.load("job.toml")
    assert (job.path, job.folder, job.name) == (Path("job.toml"), tmp_path, "job.toml")
    assert job.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert job.locate("country.csv") == tmp_path / "country.csv"
    assert job.locate("/elsewhere/c.csv") == Path("/elsewhere/c.csv")


def test_a_mapping_is_copied_and_hashed_whatever_the_order_of_its_keys() -> None:
    data = small(release__into="x.duckdb")
    turned = MappingProxyType(dict(reversed(data.items())))
    job = Job.parse(data, folder=Path("jobs"), name="nightly")
    assert (job.path, job.folder, job.name) == (None, Path("jobs"), "nightly")
    assert job.sha256 == Job.parse(turned).sha256 != Job.parse(SMALL).sha256
    data["tables"]["t"]["columns"].clear()
    assert list(job.tables["t"].columns) == ["age"]


def test_defaults() -> None:
    job = Job.parse(SMALL)
    table = job.tables["t"]
    assert job.release == Release() and job.release.into is None
    assert table.search == Search() and table.search.method == "frontier" and table.search.loss == "loss"
    assert table.privacy.suppression_limit == 0.0


def test_one_criterion_or_a_list_of_them() -> None:
    one = Job.parse(small(**{**diverse(), **close(distance="ordered", order=["a", "b"])})).tables["t"].privacy
    assert [(e.column, e.l, e.kind, e.c) for e in one.l_diversity] == [("x", 2, "distinct", None)]
    assert [(e.column, e.t, e.distance, e.order) for e in one.t_closeness] == [("x", 0.2, "ordered", ["a", "b"])]
    more = [{"column": "x", "l": 3, "kind": "recursive", "c": 2.5}, {"column": "x", "l": 4, "kind": "entropy"}]
    two = Job.parse(small(**{**diverse(), "t__privacy__l_diversity": more})).tables["t"].privacy
    assert [(e.l, e.kind, e.c) for e in two.l_diversity] == [(3, "recursive", 2.5), (4, "entropy", None)]
    assert Job.parse(SMALL).tables["t"].privacy.l_diversity == []


def test_a_query_is_a_source() -> None:
    assert Job.parse(small(t__source={"query": "SELECT 1"})).tables["t"].source == Query(query="SELECT 1")


def test_jobs_are_frozen() -> None:
    job = Job.parse(SMALL)
    with pytest.raises(ValidationError):
        job.tables["t"].privacy.k = 1
    with pytest.raises(ValidationError):
        job.release = Release()


def test_parts_made_in_python_keep_the_same_rules() -> None:
    with pytest.raises(ValidationError):
        Column(role="quasi-identifying")
    with pytest.raises(ValidationError):
        HierarchyRule()
    with pytest.raises(ValidationError):
        Search(max_loss=0.5)
    good = Job.parse(SMALL).tables["t"]
    with pytest.raises(ValidationError):
        Table(source="s", columns={"a": Column(role="sensitive")}, privacy=good.privacy)
    with pytest.raises(ValidationError):
        Job(tables={"t": good, "T": good})
    assert Job(tables={"t": good}).sha256 == Job.parse(SMALL).sha256


def diverse(**changes: object) -> dict[str, object]:
    """Changes that ask for l-diversity of a sensitive column x; None leaves a key out."""
    entry = {"column": "x", "l": 2, **changes}
    asked = {key: value for key, value in entry.items() if value is not None}
    return {"t__columns__x": {"role": "sensitive"}, "t__privacy__l_diversity": asked}


def close(**changes: object) -> dict[str, object]:
    """The same for t-closeness."""
    entry = {"column": "x", "t": 0.2, **changes}
    asked = {key: value for key, value in entry.items() if value is not None}
    return {"t__columns__x": {"role": "sensitive"}, "t__privacy__t_closeness": asked}


GREATEST = "tables.t.privacy.k: must be a whole number, at least 1 and at most 9223372036854775807"
WEIGHT = "must be a number, at least 0.000001 and at most 1000000"
LIMIT = "tables.t.privacy.suppression_limit: must be a number, at least 0 and at most 1"
BAD: list[tuple[dict[str, object], str]] = [
    # unknown, missing, not yet
    ({"t__privacy__supression_limit": 0.1},
     'tables.t.privacy: unknown key "supression_limit"; did you mean "suppression_limit"?'),
    ({"zzz": 1}, 'unknown key "zzz"; valid keys: release, tables'),
    ({"release__kind": "view"}, 'release: unknown key "kind"; valid keys: into, schema, as'),
    ({"t__colums": {}}, 'tables.t: unknown key "colums"; did you mean "columns"?'),
    ({"t__privacy": None}, "tables.t.privacy: missing; add this section with k"),
    ({"t__privacy__k": None}, "tables.t.privacy.k: missing; it must be a whole number, at least 1"),
    ({"t__source": None}, "tables.t.source: missing; it must be text or a table of keys"),
    ({"t__columns": None}, "tables.t.columns: missing; it must be a table of keys"),
    ({"tables": None}, "tables: there is no release; add a section [tables.NAME]"),
    # types and ranges
    ({"t__privacy__k": 0}, "tables.t.privacy.k: must be a whole number, at least 1"),
    ({"t__privacy__k": True}, "tables.t.privacy.k: must be a whole number, at least 1"),
    ({"t__privacy__k": 5.0}, "tables.t.privacy.k: must be a whole number, at least 1"),
    ({"t__privacy__k": "5"}, "tables.t.privacy.k: must be a whole number, at least 1"),
    ({"t__privacy__k": 2**63}, GREATEST),
    ({"t__privacy__k": 10**30}, GREATEST),
    ({"t__privacy__suppression_limit": 1.01}, LIMIT),
    ({"t__privacy__suppression_limit": -0.1}, LIMIT),
    ({"t__privacy__suppression_limit": False}, LIMIT),
    ({"t__privacy__suppression_limit": "0.1"}, LIMIT),
    ({"t__privacy__suppression_limit": float("nan")}, LIMIT),
    ({"t__search__time_limit": 0}, "tables.t.search.time_limit: must be a number, greater than 0"),
    ({"t__search__time_limit": float("inf")}, "tables.t.search.time_limit: must be a number, greater than 0"),
    ({"t__search__checks_limit": 0}, "tables.t.search.checks_limit: must be a whole number, at least 1"),
    ({"t__search__weights": {"age": 0}}, f"tables.t.search.weights.age: {WEIGHT}"),
    ({"t__search__weights": {"age": 5e-324}}, f"tables.t.search.weights.age: {WEIGHT}"),
    ({"t__search__weights": {"age": 1e308}}, f"tables.t.search.weights.age: {WEIGHT}"),
    ({"t__text": "yes"}, "tables.t.text: must be true or false, without quotes"),
    ({"t__text": 1}, "tables.t.text: must be true or false, without quotes"),
    ({"t__where": ""}, "tables.t.where: must be text, not empty and without NUL characters"),
    ({"t__source": ""}, "tables.t.source: must be text, not empty and without NUL characters"),
    ({"t__source": 3}, "tables.t.source: must be text or a table of keys"),
    ({"t__source": {"query": 3}}, "tables.t.source.query: must be text, not empty and without NUL characters"),
    ({"t__source": {"qery": "x"}}, 'tables.t.source: unknown key "qery"; did you mean "query"?'),
    ({"t__columns": []}, "tables.t.columns: must be a table of keys"),
    ({"tables": []}, "tables: must be a table of keys"),
    ({"release__as": "tabel"}, 'release.as: must be one of "view", "table", "parquet"; did you mean "table"?'),
    ({"release__into": "a\0b"}, "release.into: must be text, not empty and without NUL characters"),
    # columns and hierarchies
    ({"t__columns__age__role": "quasi"}, '"free-text"; did you mean "quasi-identifying"?'),
    ({"t__columns__age__hierarchy": None}, "columns.age.hierarchy: missing; a quasi-identifying column needs one"),
    ({"t__columns__x": {"role": "sensitive", "hierarchy": "h.csv"}},
     'tables.t.columns.x.hierarchy: is for quasi-identifying columns; this one is "sensitive"'),
    ({"t__columns__x": {"role": "free-text", "uncovered": "top"}}, "columns.x.uncovered: is for quasi-identifying"),
    ({"t__columns__age__uncovered": "drop"}, 'columns.age.uncovered: must be one of "refuse", "prefix", "top"'),
    ({"t__columns__age__hierarchy": {}}, "tables.t.columns.age.hierarchy: must hold exactly one of bands, edges, mask"),
    ({"t__columns__age__hierarchy": {"bands": [5], "mask": [1]}}, "columns.age.hierarchy: must hold exactly one of"),
    ({"t__columns__age__hierarchy": {"bands": [5], "tails": True}}, "hierarchy.tails: goes with edges alone"),
    ({"t__columns__age__hierarchy": {"bands": []}}, "hierarchy.bands: must be a list, not empty"),
    ({"t__columns__age__hierarchy": {"bands": 5}}, "hierarchy.bands: must be a list, not empty"),
    ({"t__columns__age__hierarchy": {"bands": [5, 0]}}, "hierarchy.bands: item 2 must be a number, greater than 0"),
    ({"t__columns__age__hierarchy": {"bands": [True]}}, "hierarchy.bands: item 1 must be a number, greater than 0"),
    ({"t__columns__age__hierarchy": {"bands": [10, 5]}}, "hierarchy.bands: must rise from each level to the next"),
    ({"t__columns__age__hierarchy": {"mask": [1, 1]}}, "hierarchy.mask: must rise"),
    ({"t__columns__age__hierarchy": {"keep_first": [1, 3]}}, "hierarchy.keep_first: must fall"),
    ({"t__columns__age__hierarchy": {"keep_first": [0]}}, "hierarchy.keep_first: item 1 must be a whole number"),
    ({"t__columns__age__hierarchy": {"edges": [[1, 2], [3, "4"]]}}, "edges: item 2 of item 2 must be a number"),
    ({"t__columns__age__hierarchy": {"edges": [[2, 1]]}}, "hierarchy.edges: must rise within each level"),
    ({"t__columns__age__hierarchy": {"edges": [[]]}}, "hierarchy.edges: item 1 must be a list, not empty"),
    ({"t__columns__age__hierarchy": {"dates": ["year", "month"]}}, "hierarchy.dates: must go from fine to coarse"),
    ({"t__columns__age__hierarchy": {"dates": ["weeks"]}}, "hierarchy.dates: item 1 must be one of"),
    ({"t__columns__age__hierarchy": {"suppress": False}}, "hierarchy.suppress: must be true"),
    ({"t__columns__age__hierarchy": {"mas": [1]}}, 'hierarchy: unknown key "mas"; did you mean "mask"?'),
    ({"t__columns__age": {"role": "sensitive"}}, "tables.t.columns: none is quasi-identifying"),
    ({"t__columns": {}}, "tables.t.columns: none is quasi-identifying"),
    ({"t__columns__AGE": {"role": "sensitive"}}, "tables.t.columns.AGE: another column has this name but for"),
    ({"t__columns__": {"role": "sensitive"}}, 'tables.t.columns."": a column name may not be empty'),
    ({"t__columns__a\0b": {"role": "sensitive"}}, 'columns."a\\u0000b": a column name may not be empty or hold'),
    ({"t__columns__ID": {"role": "insensitive"}},
     'tables.t.columns.ID: is the person key, which is never released; give it role = "identifying"'),
    # search
    ({"t__search__method": "inverse-ola"}, "tables.t.search.max_loss: missing"),
    ({"t__search__max_loss": 0.5}, 'tables.t.search.max_loss: goes with method = "inverse-ola" alone'),
    ({"t__search__method": "inverse-ola", "t__search__max_loss": 50}, "tables.t.search.max_loss: must be at most 1"),
    ({"t__search__method": "inverse-ola", "t__search__max_loss": -1}, "search.max_loss: must be a number, at least 0"),
    ({"t__search__loss": "entropy", "t__search__weights": {"age": 1.0}}, "tables.t.search.weights: are defined for"),
    ({"t__search__weights": {"agee": 1.0}}, "search.weights.agee: is not a quasi-identifying"),
    # criteria
    (diverse(l=None), "tables.t.privacy.l_diversity.l: missing; it must be a whole number, at least 1"),
    (diverse(l=0), "tables.t.privacy.l_diversity.l: must be a whole number, at least 1"),
    (diverse(l=2.0), "tables.t.privacy.l_diversity.l: must be a whole number, at least 1"),
    (diverse(l=True), "tables.t.privacy.l_diversity.l: must be a whole number, at least 1"),
    (diverse(column=None), "tables.t.privacy.l_diversity.column: missing"),
    (diverse(column="age"), 'l_diversity.column: must name a column of this release with role = "sensitive"; with it '
     "there is \"x\""),
    (diverse(column="ill"), 'l_diversity.column: must name a column of this release with role = "sensitive"'),
    (diverse(kind="entropi"), '"distinct", "entropy", "recursive"; did you mean "entropy"?'),
    (diverse(kind="recursive"), 'tables.t.privacy.l_diversity.c: missing; kind = "recursive" needs c'),
    (diverse(c=2.0), 'tables.t.privacy.l_diversity.c: goes with kind = "recursive" alone'),
    (diverse(kind="recursive", c=0), "tables.t.privacy.l_diversity.c: must be a number, greater than 0"),
    (diverse(kind="recursive", c=2e9), "tables.t.privacy.l_diversity.c: must be at most 1,000,000,000"),
    (diverse(kind="recursive", c=1e-10), "tables.t.privacy.l_diversity.c: has more than 9 decimals; round it"),
    (diverse(ll=2), 'tables.t.privacy.l_diversity: unknown key "ll"; did you mean "l"?'),
    ({"t__privacy__l_diversity": 3}, "privacy.l_diversity: must be a table of keys, or a list of such tables"),
    ({"t__privacy__l_diversity": []}, "privacy.l_diversity: must be a table of keys, or a list of such tables"),
    ({"t__privacy__l_diversity": [{"column": "x", "l": 2}, 3]}, "l_diversity: item 2 must be a table of keys"),
    ({"t__privacy__l_diversity": [{"column": "x", "l": 2}, {"column": "x", "l": 0}]},
     "tables.t.privacy.l_diversity.l: item 2 must be a whole number, at least 1"),
    (close(t=-0.1), "tables.t.privacy.t_closeness.t: must be a number, at least 0 and at most 1"),
    (close(t=1.1), "tables.t.privacy.t_closeness.t: must be a number, at least 0 and at most 1"),
    (close(t=float("nan")), "tables.t.privacy.t_closeness.t: must be a number, at least 0 and at most 1"),
    (close(t="0.1"), "tables.t.privacy.t_closeness.t: must be a number, at least 0 and at most 1"),
    (close(t=1e-10), "tables.t.privacy.t_closeness.t: has more than 9 decimals; round it"),
    (close(t=None), "tables.t.privacy.t_closeness.t: missing; it must be a number, at least 0 and at most 1"),
    (close(column="age"), 't_closeness.column: must name a column of this release with role = "sensitive"'),
    (close(distance="far"), 't_closeness.distance: must be one of "equal", "ordered"'),
    (close(order=["a", "b"]), 't_closeness.order: goes with distance = "ordered" alone'),
    (close(distance="ordered", order=["a", "b", "a"]), "tables.t.privacy.t_closeness.order: names a value twice"),
    (close(distance="ordered", order=[]), "t_closeness.order: must be a list, not empty"),
    (close(distance="ordered", order=[1]), "t_closeness.order: item 1 must be text"),
    ({**close(), "t__privacy__t_closeness": [{"column": "x", "t": 0.1}, {"column": "x", "t": 0.2}]},
     "tables.t.privacy.t_closeness: names a column twice; give each its strictest t"),
    ({**close(), "t__search__method": "inverse-ola", "t__search__max_loss": 0.5},
     "tables.t.search.method: inverse-ola seeks the greatest k, or the least m of m_concealing, and knows no other"),
    ({**diverse(), "release__as": "view", "t__view": "computed", "t__frozen": True},
     "tables.t.view: a computed view knows k-anonymity alone; use a snapshot"),
    ({"t__privacy__m_concealing": {}}, "tables.t.privacy.m_concealing.m: missing; it must be a number"),
    ({"t__privacy__m_concealing": {"m": 0}}, "m_concealing.m: must be a number, greater than 0 and at most 1"),
    ({"t__privacy__m_concealing": {"m": 0.1, "known": {"age": 0.1}}},
     'm_concealing.known.age: is not a column of this release with role = "sensitive"'),
    ({"t__columns__x": {"role": "sensitive"}, "t__privacy__m_concealing": {"m": 0.1, "known": {"x": 1.5}}},
     "tables.t.privacy.m_concealing.known.x: must be a number, at least 0 and at most 1"),
    # releases
    ({"release__as": "parquet"}, 'release.into: missing; as = "parquet" writes into a folder'),
    ({"release__as": "parquet", "release__into": "out.duckdb"}, "release.into: must be a folder, not a file"),
    ({"tables__.": {}}, 'tables.".": a release is named like a table and a file, so its name may not start with "."'),
    ({"tables__": {}}, 'tables."": a release is named like a table and a file, so its name may not be empty'),
    ({"tables__a/b": {}}, 'tables."a/b": a release is named like a table and a file, so its name may not hold'),
    ({"tables__a\\b": {}}, "so its name may not hold"),
    ({"tables__" + "ü" * 101: {}}, "so its name may not be longer than 200 bytes"),
    ({"tables__T": SMALL["tables"]["t"]}, "tables.T: another release has this name but for upper and lower case"),
    ({"t__frozen": True}, 'tables.t.frozen: goes with view = "computed" alone'),
    ({"t__view": "computed"}, 'tables.t.view: view = "computed" needs release.as = "view"'),
    ({"release__as": "view", "t__view": "computed", "t__privacy__suppression": "blank"},
     'tables.t.privacy.suppression: must be "drop": a computed view cannot blank rows'),
    ({"release__as": "view", "t__view": "computed", "t__columns__x": {"role": "sensitive"}},
     "tables.t.view: a computed view with more than quasi-identifying columns loses k"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), BAD, ids=[f"{i}" for i in range(len(BAD))])
def test_bad_input_is_refused_in_a_sentence(changes: dict[str, object], message: str) -> None:
    error = refused(small(**changes))
    assert message in error.message
    assert all(line.startswith("job.toml: ") for line in error.message.splitlines())
    assert "pydantic" not in error.message and "Input should" not in error.message


def test_a_job_of_series_alone_does_not_also_lack_tables() -> None:
    text = refused({"series": {"vitals": {}}}).message
    assert "series.vitals.durations: missing" in text and "tables" not in text


def test_names_that_look_like_marks_of_ours_are_names() -> None:
    """Locations hold marks for union branches; columns of those names must not be mistaken for them."""
    bad = {"role": "quasi-identifying", "hierarchy": {"mask": [0]}}
    for name in ("section", "text", "hierarchy", "columns", "[key]", "0", "*"):
        keys = f'"{name}"' if name in ("[key]", "*") else name
        message = refused(small(**{f"t__columns__{name}": bad})).message
        where = f"tables.t.columns.{keys}.hierarchy.mask"
        assert message == f"job.toml: {where}: item 1 must be a whole number, at least 1"


def test_every_problem_is_named_at_once_and_the_first_is_the_key() -> None:
    """A wrong type does not hide a broken rule elsewhere, nor the other way round."""
    job = small(
        t__privacy__k="many", t__privacy__sup=1, t__search__max_loss=0.5, t__frozen=True, release__as="parquet", x=1
    )
    job["tables"]["t"]["columns"]["x"] = {"role": 1, "hierarchy": {}, "extra": 1}
    error = refused(job)
    found = [line.removeprefix("job.toml: ").split(":")[0] for line in error.message.splitlines()]
    assert sorted(found) == [
        "release.into",
        "tables.t.columns.x",
        "tables.t.columns.x.hierarchy",
        "tables.t.columns.x.role",
        "tables.t.frozen",
        "tables.t.privacy",
        "tables.t.privacy.k",
        "tables.t.search.max_loss",
        'unknown key "x"; valid keys',
    ]
    assert error.key in ("release.into", "tables.t.privacy.k")


def test_an_unknown_role_is_one_problem_and_not_repeated() -> None:
    """Nor does it hide that the hierarchy beside it breaks a rule of its own."""
    error = refused(small(t__columns__age={"role": "canary", "hierarchy": {"mask": [2, 1]}}))
    assert [line.split(": ")[1] for line in error.message.splitlines()] == [
        "tables.t.columns.age.role",
        "tables.t.columns.age.hierarchy.mask",
    ]
    assert "canary" not in error.message


def test_the_key_of_an_unknown_key_is_the_key_itself() -> None:
    assert refused(small(t__privacy__kk=1)).key == "tables.t.privacy.kk"
    assert refused(small(zzz=1)).key == "zzz"


def test_values_never_show_and_names_cannot_harm_a_terminal() -> None:
    error = refused(small(**{"t__privacy__k": "canary", "t__where": ["canary"], "t__\x1b[2J\n\u202e": "canary"}))
    assert "canary" not in error.message
    assert "\x1b" not in error.message and "\u202e" not in error.message and len(error.message.splitlines()) == 3


@pytest.mark.parametrize(
    "content",
    ["x y", "= 1", "a b { c = 1 }", '"a" b = 1', "x = 1 2", "a b = \x1b", "[a b", "x = y z = 1", "a\x00 b = 1"],
)
def test_what_quotes_do_not_mend_is_not_told_to_be_quoted(tmp_path: Path, content: str) -> None:
    with pytest.raises(JobError) as caught:
        Job.load(write(tmp_path, content))
    assert "stands in quotes" not in caught.value.message or caught.value.message.endswith('"a b" = …')


def test_the_columns_that_are_sensitive_are_named() -> None:
    assert named_sensitive("Diagnosis", {"diagnosis ICD": "sensitive", "ward": "sensitive", "x": "insensitive"}) == (
        '; with it there are "diagnosis ICD", "ward"; did you mean "diagnosis ICD"?'
    )
    assert named_sensitive("x", {"x": "insensitive"}) == "; none has it: give the column that role"
    assert named_sensitive("x", dict.fromkeys(map(str, range(10)), "sensitive")).endswith('"7" and 2 more')


@pytest.mark.parametrize("data", [[], "text", None, {1: {}}, {"tables": {("t",): {}}}])
def test_what_is_no_mapping_of_text_is_refused(data: Any) -> None:
    assert refused(data).message.startswith("job.toml: ")


def test_a_mapping_that_holds_itself_is_refused() -> None:
    data: dict[str, object] = {}
    data["tables"] = data
    assert "nested too deeply" in refused(data).message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a = 0,05\n", "line 1, column 6: this is not valid TOML: a number has a point, no comma: 0.05"),
        ("a = { x = 0,05 }\n", "a number has a point, no comma: 0.05"),
        ("a = { x = 1, y = -0,5, z = 1 }\n", "a number has a point, no comma: -0.5"),
        (
            "a = { column = Haupt Diagnose, l = 3 }",
            'column 16: this is not valid TOML: text stands in quotes: "Haupt Diag',
        ),
        ("a = Überall # so", 'text stands in quotes: "Überall"'),
        ("a = True", "true and false are written small: true"),
        ('a = "x" y\n', "column 9: this is not valid TOML: expected newline"),
        ("[tables\n", "job.toml, line 1, column 8: this is not valid TOML"),
        ('a = 1\nb = "x', "job.toml, line 2, column 7: this is not valid TOML: unterminated string"),
        ("[tables.t]\n[tables.t]\n", "job.toml, line 2, column 10: [tables.t] is there twice; two sections"),
        ('[tables."a b"]\n[tables."a b"]\n', 'column 14: [tables."a b"] is there twice'),
        ("[a]\nb = 1\nb = 2\n", "job.toml, line 3, column 6: a key or section is there twice"),
        ("a = { b = 1, b = 2 }", "job.toml, line 1, column 19: a key is there twice in one { … }"),
        ("a = {}\na.b = 1", "job.toml, line 2, column 8: [a] adds to a table that was written whole"),
        ("\nk = " + "9" * 5000, "job.toml, line 2, column 5: a number has too many digits"),
        ("a = " + "[" * 50_000, "job.toml: lists or tables are nested too deeply"),
        (b"a = 1\nb = '\xe9'\n", "job.toml, line 2: the file is not in UTF-8"),
        (
            'Birth date = { role = "x" }',
            "; a name with a blank, or any sign but a-z, A-Z, 0-9, _ and -, stands in "
            'quotes: "Birth date" = { role = "x" }',
        ),
        ("\r\n  Größe=1 # cm\r\n", 'stands in quotes: "Größe" =1 # cm'),
        ("(x) = 1", 'stands in quotes: "(x)" = 1'),
        ("No. of kids = 1", 'stands in quotes: "No. of kids" = 1'),
        ("a.b c = [\n1]", 'stands in quotes: a."b c" = …'),
        ("weights = { b = 1, Birth date = 5 }", 'stands in quotes: weights = { b = 1, "Birth date" = 5 }'),
        ("[tables.my table.columns]", 'stands in quotes: [tables."my table".columns]'),
        ("", "job.toml: tables: there is no release"),
        ("[[tables.t]]\n", "job.toml: tables.t: must be a table of keys"),
        ("[tables.t]\nwhere = 2020-01-01\n", "job.toml: tables.t.where: must be text"),
    ],
)
def test_files_that_do_not_parse(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(JobError) as caught:
        Job.load(write(tmp_path, content))
    assert message in caught.value.message
    assert caught.value.key


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path, reason in [
        (tmp_path / "none.toml", "there is no such file"),
        (tmp_path, "is a folder"),
        (tmp_path / ("y" * 300), "cannot be read: "),
        (Path("a\0b"), "is not a path"),
    ]:
        with pytest.raises(JobError, match=reason) as caught:
            Job.load(path)
        assert caught.value.key == "job"


def test_a_byte_order_mark_is_no_syntax_error(tmp_path: Path) -> None:
    assert list(Job.load(write(tmp_path, b"\xef\xbb\xbf" + CONTRACT.encode())).tables) == ["patients"]


def test_warnings_name_what_holds_and_may_still_harm() -> None:
    assert Job.parse(SMALL).warnings() == []
    rows = small(t__person=None, t__rows_are_persons=True)
    assert "tables.t.rows_are_persons: each row is taken for another person" in Job.parse(rows).warnings()[0]
    assert "k = 1 protects nobody" in Job.parse(small(t__privacy__k=1)).warnings()[0]
    inverse = small(t__privacy__k=1, t__search__method="inverse-ola", t__search__max_loss=0.5)
    assert Job.parse(inverse).warnings() == []
    live = small(release__as="view", t__view="computed")
    assert "a computed view follows its source" in Job.parse(live).warnings()[0]
    assert Job.parse(live | {"tables": {"t": live["tables"]["t"] | {"frozen": True}}}).warnings() == []
    twice = Job.parse(small(tables__u=SMALL["tables"]["t"] | {"source": "other"}))
    assert "tables.t, tables.u: seem to hold the same persons" in twice.warnings()[0]
    assert twice.warnings(held=["t"]) == twice.warnings() and twice.warnings(held=["t", "u"]) == []
    more = Job.parse(small(tables__u=SMALL["tables"]["t"], tables__v=SMALL["tables"]["t"] | {"person": "x"}))
    assert "tables.t, tables.u, tables.v: seem" in more.warnings(held=["t", "u"])[0]
    assert all(text.startswith("job: ") for text in twice.warnings())


@pytest.mark.parametrize(
    ("into", "schema", "kind", "ambiguous"),
    [
        ("release.duckdb", "release", "table", True),
        ("to/Release.2026.duckdb", "release", "table", True),
        ("tonight.duckdb", "Tonight", "table", True),
        ("release_1.duckdb", "release", "table", False),
        ("release", "release", "parquet", False),
    ],
)
def test_a_file_that_is_named_as_its_schema_is_told(into: str, schema: str, kind: str, ambiguous: bool) -> None:
    """DuckDB refuses `release.census` of a file release.duckdb, which readers are told to ask."""
    told = Job.parse(SMALL | {"release": {"into": into, "schema": schema, "as": kind}}).warnings()
    assert [f"ask for {schema}.TABLE" in text and "ambiguous" in text for text in told] == [True] * ambiguous


def test_a_view_in_a_file_that_is_named_as_its_schema_is_refused() -> None:
    """DuckDB finds the table beneath it ambiguous, by whatever name the view is asked for."""
    for into, inside in (("release.duckdb", "release"), ("to/Release.x.duckdb", "release"), ("a.duckdb", "A")):
        with pytest.raises(JobError, match=r"release.into: nobody can read a view there: .* otherwise"):
            Job.parse(SMALL | {"release": {"into": into, "schema": inside, "as": "view"}})


def test_a_private_release_beside_others_of_the_same_persons_is_told() -> None:
    made = {"source": "moves", "object": "id", "time": "at", "state": ["ward"]}
    private = {"method": "laplace", "epsilon": 1.0, "states": "wards.txt", "events_max": 9}
    private |= {"time_range": ["2100-01-01", "2130-01-01"], "gap_bins_hours": [1, 24]}
    one, two = {**made, "privacy": private}, {**made, "privacy": {"method": "ratio", "epsilon": 1.0}}
    (first, void) = Job.parse({"events": {"a": one, "b": two}}).warnings()
    assert "seem to hold" in first and "events.a: its differential privacy" in void and "events.b beside it" in void
    again = Job.parse({"events": {"a": one, "b": two}}).warnings(held=["a", "b"])
    assert again == [first, void], "a ledger adds up only"
    adding = Job.parse({"events": {"a": one, "b": one}}).warnings()
    assert len(adding) == 3 and all("add up" in text for text in adding[1:])


def objects(node: object) -> list[dict[str, Any]]:
    """Every schema of an object with named keys, wherever it stands."""
    if isinstance(node, list):
        return [found for item in node for found in objects(item)]
    if not isinstance(node, dict):
        return []
    own = [node] if node.get("type") == "object" and "properties" in node else []
    return own + [found for child in node.values() for found in objects(child)]


def test_the_schema_describes_every_key_and_is_closed() -> None:
    found = objects(schema())
    assert {o["title"] for o in found} == {
        "sqldeid job file", "About", "Release", "Table", "Query", "Column", "HierarchyRule", "Privacy", "Search",
        "LDiversity", "AtRisk", "DeltaPresence", "Game", "Population", "TCloseness", "DeltaDisclosure", "BetaLikeness",
        "MConcealing", "EpsilonSafeSettings", "Stack", "Series", "Variable", "Cohort",
        "Durations", "SeriesPrivacy", "Perturb", "Disagreeing", "Labels", "Events", "EventsPrivacy",
        "Clusters", "Generate",
    }  # fmt: skip
    for part in found:
        assert part["additionalProperties"] is False
        assert part["description"]
        assert all(key.get("description") for key in part["properties"].values())
    assert '"null"' not in repr(schema()).replace("'", '"')


def test_the_schema_is_the_callers_own() -> None:
    schema().clear()
    assert schema()["title"] == "sqldeid job file"


def test_the_schema_holds_the_contract_and_refuses_what_one_key_can_show(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="the schema itself is checked where jsonschema is installed")
    jsonschema.Draft202012Validator.check_schema(schema())
    check = jsonschema.Draft202012Validator(schema())
    assert check.is_valid(tomllib.loads(CONTRACT)) and check.is_valid(SMALL)
    many = {"t__privacy__l_diversity": [{"column": "x", "l": 2}], "t__privacy__t_closeness": [{"column": "x", "t": 0}]}
    for good in (diverse(), close(), {**diverse(), **many}):
        assert check.is_valid(small(**good)), good
    bad: list[dict[str, object]] = [
        {"t__privacy__k": 0}, {"zzz": 1}, {"t__columns__age__hierarchy": None}, {"t__privacy": None},
        {"t__columns__age__hierarchy": {"bands": [5], "mask": [1]}}, {"tables__a/b": SMALL["tables"]["t"]},
        {"t__columns__x": {"role": "sensitive", "hierarchy": "h"}}, {"tables": {}}, {"t__source": {}},
        diverse(l=0), diverse(column=None), close(t=2), {"t__privacy__l_diversity": []}, {"t__privacy__t_closeness": 1},
    ]  # fmt: skip
    for changes in bad:
        assert not check.is_valid(small(**changes)), changes
