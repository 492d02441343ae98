"""A key that a mode does not use is refused: each mode is run, and what nobody read of its job must not pass.

Reading is watched at the models themselves. A key that a mode reads by its default counts as read; one that nobody
reads is set to a valid value, and the job must then be refused by that key.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pydantic import BaseModel

import sqldeid
from sqldeid.errors import JobError
from sqldeid.job import Job, parts
from sqldeid.job import events as events_part
from sqldeid.job import series as series_part
from sqldeid.job import stack as stack_part

QI = {"role": "quasi-identifying"}
AGE = {"age": QI | {"hierarchy": {"bands": [10, 20]}}}
SEX = {"sex": QI | {"hierarchy": "adult/sex"}}
MEDIAN = {"age": QI | {"hierarchy": {"median": "range"}}}
DRAWN = {"beta": 0.5, "epsilon": 2.0, "delta": 0.4}
LAPLACE = {
    "epsilon": 1.0,
    "states": "s.txt",
    "other": "OTHER",
    "groups": {"j": ["1"]},
    "time_range": ["2020-01-01", "2021-01-01"],
    "gap_bins_hours": [1, 6],
    "length_bins": [1, 2, 4],
    "events_max": 8,
}


def table(columns: dict[str, Any], stack: dict[str, Any] | None = None, **search: Any) -> dict[str, Any]:
    part = {"source": "people", "person": "id", "columns": columns, "privacy": {"k": 3}, "search": search}
    return {"tables": {"r": part | ({"stack": {"s": stack}} if stack else {})}}


def series(**perturb: Any) -> dict[str, Any]:
    return {
        "series": {
            "r": {
                "source": "m",
                "person": "id",
                "time": "seen",
                "variable": "v",
                "value": "val",
                "variables": {n: {"items": [n], "low": 0, "high": 20} for n in ("HR", "BP")},
                "durations": {"k": 3},
                "privacy": {"k": 3},
                "perturb": perturb,
            }
        }
    }


def events(**privacy: Any) -> dict[str, Any]:
    return {
        "events": {
            "r": {"source": "m", "object": "id", "time": "seen", "order": "j", "state": ["v"], "privacy": privacy}
        }
    }


def qi(hierarchy: object, column: str) -> dict[str, Any]:
    return {column: QI | {"hierarchy": hierarchy}}


VISITS = {"from": "visits", "on": "id", "value": "code", "role": "quasi-identifying", "hierarchy": {"keep_first": [1]}}
ORDERED = VISITS | {"order": "seen", "then": "j"}
THROUGH = ORDERED | {"from": "codes", "through": "visits", "through_on": "visit", "first": 1, "pick_order": "seen"}
HIERARCHIES: dict[str, dict[str, Any]] = {
    "file": qi("sex.csv", "sex"),
    "shipped": SEX,
    "bands": AGE,
    "edges": qi({"edges": [[30, 40], [40]], "tails": True}, "age"),
    "mask": qi({"mask": [1]}, "sex"),
    "keep_first": qi({"keep_first": [1]}, "sex"),
    "dates": qi({"dates": ["month", "year"]}, "born"),
    "suppress": qi({"suppress": True}, "sex"),
    "aggregate": qi({"aggregate": "mean"}, "age") | SEX,
}
STACKS: dict[str, dict[str, Any]] = {
    "first": ORDERED | {"first": 2},
    "items": ORDERED | {"items": [1, 3]},
    "unordered": ORDERED | {"first": 2, "unordered": True},
    "count": {"from": "visits", "on": "id", "aggregate": "count", "role": "sensitive"},
    **{a: ORDERED | {"aggregate": a} for a in ("first value", "last")},
    **{a: VISITS | {"aggregate": a} for a in ("min", "max")},
    "mean": VISITS | {"aggregate": "mean", "value": "number", "uncovered": "top", "hierarchy": {"bands": [10]}},
    "through": {k: v for k, v in THROUGH.items() if k != "pick_order"},
    **{f"pick {p}": THROUGH | {"pick": p} for p in ("first", "last")},
    "pick longest": THROUGH | {"pick": "longest", "pick_order": "number"},
}
STACKS["first value"]["aggregate"] = "first"
PRESET = {
    "series": {
        "r": {
            "preset": "benchmark17",
            "source": "chartevents",
            "person": "icustay_id",
            "durations": {"k": 2},
            "privacy": {"k": 2},
        }
    }
}

MODES: dict[str, dict[str, Any]] = {
    **{m: table(AGE, method=m) for m in ("frontier", "best-first", "flash", "ola", "datafly", "igreedy")},
    "inverse-ola": table(AGE, method="inverse-ola", max_loss=0.9),
    "epsilon-safe": table(SEX, method="epsilon-safe", epsilon_safe=DRAWN),
    "mondrian": table(MEDIAN, method="mondrian"),
    "shared": series(),
    "projection": series(method="projection"),
    "source": series(method="source", iterations=3),
    "genetic": series(method="genetic", most_iterations=5),
    "ratio": events(method="ratio", epsilon=0.65),
    "none": events(method="none"),
    "laplace": events(method="laplace", **LAPLACE),
    **{f"hierarchy {kind}": table(columns) for kind, columns in HIERARCHIES.items()},
    **{f"stack {form}": table(AGE, stack) for form, stack in STACKS.items()},
    "stack epsilon-safe": table(
        SEX, STACKS["first"] | {"hierarchy": "code.csv"}, method="epsilon-safe", epsilon_safe=DRAWN
    ),
    "preset": PRESET,
}
SAMPLES: dict[tuple[str, str], Any] = {
    ("Search", "loss"): "prec",
    ("Search", "choose"): "by-k",
    ("Search", "heuristic"): "range",
    ("Search", "weights"): {"age": 2.0},
    ("Search", "time_limit"): 5,
    ("Search", "checks_limit"): 5,
    ("Search", "epsilon_safe"): DRAWN,
    ("Search", "max_loss"): 0.5,
    ("Search", "layers"): 2,
    ("Search", "blunt"): True,
    ("Column", "uncovered"): "prefix",
    ("Column", "version"): "age",
    ("Column", "to"): "month",
    ("Column", "top_code"): 50,
    ("Privacy", "suppression_limit"): 0.1,
    ("Privacy", "criteria_limit"): 0.1,
    ("Privacy", "suppression"): "blank",
    ("Privacy", "m_concealing"): {"m": 0.5, "known": {"age": 0.1}},
    ("Privacy", "undecided"): ["(5)-map"],
    ("Privacy", "average_risk"): 0.5,
    ("Privacy", "at_risk"): {"threshold": 0.2, "share": 0.5},
    ("Privacy", "k_map"): 5,
    ("Privacy", "game"): {"payout": 3.0, "cost": 2.0},
    ("TCloseness", "hierarchy"): "sex.csv",
    ("Privacy", "delta_presence"): {"least": 0.1, "most": 0.5},
    ("Privacy", "population"): {"table": "people"},
    ("Table", "rows_are_persons"): True,
    ("Table", "rows"): "many",
    ("Table", "text"): True,
    ("Table", "sample"): 0.5,
    ("Table", "never_with"): ["other"],
    ("Table", "other_persons"): ["other"],
    ("Table", "recoding"): True,
    ("Table", "hierarchies"): True,
    ("Table", "roll_up"): {"age": 1},
    ("Table", "secrets"): ["age"],
    ("Table", "attacks"): True,
    ("Table", "parent"): "other",
    ("Table", "items"): "age",
    ("Table", "known"): 2,
    ("HierarchyRule", "bands"): [1],
    ("HierarchyRule", "edges"): [[1]],
    ("HierarchyRule", "tails"): True,
    ("HierarchyRule", "mask"): [1],
    ("HierarchyRule", "keep_first"): [1],
    ("HierarchyRule", "dates"): ["month"],
    ("HierarchyRule", "suppress"): True,
    ("HierarchyRule", "grid"): 5,
    ("HierarchyRule", "aggregate"): "mean",
    ("HierarchyRule", "median"): "range",
    ("HierarchyRule", "table"): "people",
    ("HierarchyRule", "query"): "SELECT sex FROM people",
    ("HierarchyRule", "columns"): ["sex"],
    ("HierarchyRule", "parents"): "codes",
    ("HierarchyRule", "child"): "code",
    ("HierarchyRule", "parent"): "code",
    ("HierarchyRule", "separation"): "j",
    ("HierarchyRule", "depths"): [1],
    ("Events", "gap_hours"): 5,
    ("Events", "end"): "duration",
    ("Events", "clusters"): {"share": 0.2},
    **{("EventsPrivacy", name): value for name, value in LAPLACE.items()},
    ("Stack", "uncovered"): "prefix",
    ("Stack", "version"): "code",
    ("Stack", "then"): "j",
    ("Stack", "order"): "seen",
    ("Stack", "first"): 1,
    ("Stack", "items"): [1],
    ("Stack", "unordered"): True,
    ("Stack", "aggregate"): "count",
    ("Stack", "value"): "code",
    ("Stack", "through"): "visits",
    ("Stack", "through_on"): "id",
    ("Stack", "through_on_as"): "id",
    ("Stack", "through_where"): "j > 0",
    ("Stack", "pick"): "first",
    ("Stack", "pick_order"): "seen",
    ("Stack", "pick_until"): "seen",
    ("Stack", "pick_then"): "j",
    ("Stack", "hierarchy"): {"suppress": True},
    ("Series", "time"): "charttime",
    ("Series", "time_unit"): "hours",
    ("Series", "variable"): "itemid",
    ("Series", "value"): "value",
    ("Series", "where"): "itemid > 0",
    ("Series", "variables"): "mimic3/vitals",
    ("Series", "drop"): ["pH"],
    ("Series", "cohort"): {"source": "patients", "person": "subject_id"},
    ("Series", "min_steps"): 2,
    ("Series", "resample"): "point",
    ("Series", "round"): 2.0,
    ("Series", "wide"): {"value": "itemid"},
}
"""A valid value of each key that some mode does not read; a key that is not here fails the test that meets it."""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    (tmp_path / "s.txt").write_text("HR\nBP\n")
    (tmp_path / "code.csv").write_text("10;*\n21;*\n35;*\n")
    (tmp_path / "sex.csv").write_text("Female;*\nMale;*\n")
    with duckdb.connect(tmp_path / "db.duckdb") as c:
        c.execute(
            "CREATE TABLE people AS SELECT i AS id, CAST(20 + (i * 7) % 40 AS INTEGER) AS age, "
            "['Female', 'Male'][1 + i % 2] AS sex, DATE '1990-01-01' + CAST(i % 40 AS INTEGER) AS born "
            "FROM RANGE(120) AS r(i)"
        )
        c.execute(
            "CREATE TABLE visits AS SELECT id, id * 10 + j AS visit, DATE '2020-01-01' + CAST(j AS INTEGER) AS seen, "
            "j, ['10', '21', '35'][1 + (id + j) % 3] AS code, CAST(j * 10 AS INTEGER) AS number "
            "FROM people, RANGE(4) AS q(j)"
        )
        c.execute("CREATE TABLE codes AS SELECT visit, seen, j, code FROM visits")
        c.execute(
            "CREATE TABLE m AS SELECT id, TIMESTAMP '2020-01-01' + j * INTERVAL '30 minutes' AS seen, "
            "['HR', 'BP'][1 + j % 2] AS v, CAST(j * 1.5 + id % 4 AS DOUBLE) AS val, j FROM people, RANGE(12) AS q(j)"
        )
        _ward(c)
    return tmp_path / "db.duckdb"


def _ward(c: duckdb.DuckDBPyConnection) -> None:
    """The five tables that the preset reads, of forty stays."""
    c.execute("CREATE TABLE patients AS SELECT i AS subject_id, TIMESTAMP '1950-01-01' AS dob FROM RANGE(40) AS r(i)")
    c.execute("CREATE TABLE admissions AS SELECT subject_id, subject_id + 100 AS hadm_id FROM patients")
    c.execute(
        "CREATE TABLE icustays AS SELECT hadm_id + 100 AS icustay_id, subject_id, hadm_id, "
        "TIMESTAMP '2020-01-01' AS intime, 3.0 AS los, 1 AS first_wardid, 1 AS last_wardid, "
        "'a' AS first_careunit, 'a' AS last_careunit FROM admissions"
    )
    c.execute(
        "CREATE TABLE chartevents AS SELECT subject_id, hadm_id, icustay_id, "
        "intime + j * INTERVAL '1 hour' AS charttime, "
        "[211, 618][1 + j % 2] AS itemid, CAST(20 + (j * 7 + subject_id) % 40 AS VARCHAR) AS value, 'x' AS valueuom "
        "FROM icustays, RANGE(48) AS q(j)"
    )
    c.execute("CREATE TABLE labevents AS SELECT * EXCLUDE (icustay_id) FROM chartevents WHERE itemid = 50820")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[tuple[str, str]]]:
    """What is read of a job's parts from now on."""
    found: set[tuple[str, str]] = set()
    plain = BaseModel.__getattribute__

    def watched(self: BaseModel, name: str) -> Any:
        if name in type(self).__pydantic_fields__:
            found.add((type(self).__name__, name))
        return plain(self, name)

    monkeypatch.setattr(BaseModel, "__getattribute__", watched)
    yield found


def models() -> dict[str, type[BaseModel]]:
    modules = (parts, series_part, events_part, stack_part)
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, BaseModel) and value is not BaseModel
    }


def place(model: str, mode: str) -> tuple[str, ...]:
    """Where in the job of a mode the part that a model reads stands."""
    section = next(iter(MODES[mode]))
    column = next(iter(MODES[mode][section]["r"].get("columns", {"": 0})))
    inside: tuple[str, ...] = {
        "Search": ("search",),
        "Column": ("columns", column),
        "Privacy": ("privacy",),
        "Table": (),
        "HierarchyRule": ("columns", column, "hierarchy"),
        "Events": (),
        "EventsPrivacy": ("privacy",),
        "Series": (),
        "Stack": ("stack", "s"),
    }[model]
    return (section, "r", *inside)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mode", MODES)
def test_what_a_mode_does_not_read_it_refuses(mode: str, database: Path, read: set[tuple[str, str]]) -> None:
    job = Job.parse({"release": {"into": "o.duckdb"}, **MODES[mode]}, folder=database.parent)
    read.clear()
    sqldeid.anonymize(job, database)
    sqldeid.verify(job, database)
    there, seen = models(), set(read)
    touched = sorted({model for model, _ in seen} & set(there))
    unread = [(model, field) for model in touched for field in there[model].model_fields if (model, field) not in seen]
    accepted = []
    for model, field in unread:
        changed = deepcopy(MODES[mode])
        here: Any = changed
        for step in place(model, mode):
            here = here[step]
        if not isinstance(here, dict) or (there[model].model_fields[field].alias or field) in here:
            continue  # a hierarchy that is a name has no keys; what the mode states is read from the whole at once
        here[there[model].model_fields[field].alias or field] = SAMPLES[model, field]
        try:
            sqldeid.plan(Job.parse({"release": {"into": "o.duckdb"}, **changed}, folder=database.parent), database)
        except JobError:
            continue
        accepted.append((model, field))
    assert accepted == []


FORMS: dict[str, dict[str, str]] = {
    "table here": {"as": "table"},
    "view here": {"as": "view"},
    "table in a file": {"as": "table", "into": "o.duckdb"},
    "view in a file": {"as": "view", "into": "o.duckdb"},
    "parquet": {"as": "parquet", "into": "out"},
}
OTHERS = {"schema": "elsewhere", "into": "p.duckdb"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("key", OTHERS)
@pytest.mark.parametrize("form", FORMS)
def test_each_key_of_the_release_changes_where_it_goes_or_is_refused(form: str, key: str, database: Path) -> None:
    """Of `release` all keys are read at one place, so that it is watched what becomes of them."""
    asked = FORMS[form] | {key: OTHERS[key]}
    if form == "parquet" and key == "into":
        asked["into"] = "other"
    where = [
        sqldeid.anonymize(Job.parse({"release": r, **table(AGE)}, folder=database.parent), database)
        .releases["r"]
        .written
        for r in (FORMS[form],)
    ]
    changed = {"release": asked, **table(AGE)}
    options = sqldeid.Options(replace=True)
    try:
        job = Job.parse(changed, folder=database.parent)
        where.append(sqldeid.anonymize(job, database, options=options).releases["r"].written)
    except JobError as refused:
        assert refused.key == f"release.{key}" and "remove it" in refused.message
        with pytest.raises(JobError, match=f"release.{key}"):
            sqldeid.plan(Job.parse(changed, folder=database.parent), database)
        assert (form, key) == ("parquet", "schema")
    else:
        assert where[0] != where[1]


@pytest.mark.parametrize("kind", ["mask", "keep_first", "suppress"])
@pytest.mark.parametrize("part", ["columns", "stack"])
def test_uncovered_is_refused_where_every_value_is_covered(kind: str, part: str) -> None:
    """It is read where hierarchies are bound, whatever their kind, so that the sweep cannot see it."""
    rule = {"mask": {"mask": [1]}, "keep_first": {"keep_first": [1]}, "suppress": {"suppress": True}}[kind]
    made = table(qi(rule, "sex"), ORDERED | {"first": 2, "hierarchy": rule})
    made["tables"]["r"][part]["sex" if part == "columns" else "s"]["uncovered"] = "top"
    with pytest.raises(JobError, match=rf"tables\.r\.{part}\.s\w*\.uncovered: is for hierarchies that may not know"):
        Job.parse(made)


ROUNDS: dict[str, tuple[dict[str, Any], str]] = {
    "of no variable": ({"round": {"RR": 1.0}}, "series.r.round.RR: there is no variable of this name"),
    "of one that is dropped": ({"round": {"BP": 1.0}, "drop": ["BP"]}, "series.r.round.BP: .*dropped"),
    "of none of the preset": (
        PRESET["series"]["r"] | {"round": {"HR": 1.0}},
        'series.r.round: there is no variable "HR"',
    ),
    "of one without features": (
        {"round": {"BP": 1.0}, "features": {"BP": []}, "perturb": {"method": "projection"}},
        "series.r.round.BP: .*features",
    ),
    "of no variable of a map": (
        {"round": {"HR": 1.0}, "variables": "mimic3/vitals"},
        'series.r.round: there is no variable "HR"',
    ),
}


@pytest.mark.parametrize("case", ROUNDS)
def test_a_rounding_that_no_variable_has_is_refused_before_data_are_read(case: str, database: Path) -> None:
    made, (changes, message) = series(), ROUNDS[case]
    made["series"]["r"] = changes if "preset" in changes else made["series"]["r"] | changes
    with pytest.raises(JobError, match=message):
        sqldeid.plan(Job.parse({"release": {"into": "o.duckdb"}, **made}, folder=database.parent), database)
