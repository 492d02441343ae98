"""Releases of series, end to end: what is promised holds, verification refuses what is not, bad input is named."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from sqldeid import anonymize, verify
from sqldeid.engine.opening import Settings
from sqldeid.errors import JobError, VerificationError
from sqldeid.job import Job
from sqldeid.run import Options, explain, plan
from sqldeid.series.result import SeriesRelease
from tests.support.charted_series import BASE, charted
from tests.support.files import read, write

pytestmark = pytest.mark.usefixtures("stages")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("series") / "source.duckdb"
    frame = charted()  # noqa: F841 - SQL reads it
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE charted AS SELECT * FROM frame")
        connection.execute("CREATE TABLE died AS SELECT stay, stay % 2 = 0 AS died FROM charted GROUP BY stay")
    return path


def job(folder: Path, **changes: object) -> Job:
    release = {"into": "out.duckdb", "as": changes.pop("kind", "table")}
    part = {**BASE, **changes}
    return Job.parse(
        {"release": release, "series": {"vitals": {k: v for k, v in part.items() if v is not None}}}, folder=folder
    )


def test_a_plan_shows_the_statements_of_its_stages(source: Path, tmp_path: Path) -> None:
    [planned] = plan(job(tmp_path), source)
    shown = explain(planned, job(tmp_path), source)
    names = [s.template for s in shown.statements or ()]
    assert names.index("series/cut_series") < names.index("series/stage_long") < names.index("series/check_rows")
    assert shown.content["statements"] == [s.to_dict() for s in shown.statements or ()]


def made(source: Path, folder: Path, **changes: object) -> tuple[SeriesRelease, pd.DataFrame]:
    release = anonymize(job(folder, **changes), source).releases["vitals"]
    with duckdb.connect(str(folder / "out.duckdb")) as connection:
        return release, connection.execute("SELECT * FROM release.vitals").df()


CHOICES: list[dict[str, object]] = [
    {},
    {"privacy": {"k": 3, "nulls": "null-aware"}, "perturb": {"method": "shared"}, "shape": "wide"},
    {"privacy": {"k": 4, "nulls": "strict", "targets": "source"}, "perturb": {"method": "source"}},
    {
        **{"privacy": {"k": 3, "heuristic": "diversity"}, "durations": {"k": 6, "method": "source"}},
        **{"perturb": {"method": "projection"}, "resample": "point"},
    },
    {
        **{"privacy": {"k": 2, "nulls": "source"}, "perturb": {"method": "projection"}},
        **{"features": {"HR": ["mean"], "Glu": []}, "step_hours": 0.5},
    },
    {"perturb": {"method": "genetic", "most_iterations": 2, "initial_sd": 1e9, "mutation_sd": 1e9}, "shape": "wide"},
    {
        "perturb": {"method": "genetic", "most_iterations": 30, "idle_iterations": 10},
        "features": {"spread": "max(value) - min(value)", "pH x": []},
    },
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("changes", CHOICES, ids=range(len(CHOICES)))
def test_what_is_promised_holds(source: Path, tmp_path: Path, changes: dict[str, object]) -> None:
    found, rows = made(source, tmp_path, **changes)
    k, nulls = found.asked["k"], found.nulls
    if changes.get("shape") == "wide":
        rows = rows.melt(["person_number", "step"], var_name="variable")
    assert set(rows.person_number) == set(range(1, found.released + 1))
    lengths = rows.groupby("person_number").step.max() + 1
    assert lengths.value_counts().min() >= max(found.durations.k, k)
    there = rows[rows.value.notna()]
    assert len(there) == found.records
    for _, group in there.assign(length=there.person_number.map(lengths)).groupby(["length", "variable"]):
        persons = group.person_number.nunique()
        assert persons >= k or nulls == "source" or group.variable.iloc[0] in dict(changes.get("features", {}))
    again = verify(job(tmp_path, **changes), source)["vitals"]
    assert again.to_dict()["released"] == found.released


LENGTHS = [
    *(("{s}, -600, 1, " + value, value == "80") for value in ("80", "NULL", "'NaN'", "'inf'", "2e9", "19")),
    *(("{s}, " + time + ", 1, 80", False) for time in ("NULL", "'NaN'", "'inf'", "'-inf'")),
    ("{s}, -600, NULL, 80", False),
    ("{s}, -600, 9, 80", False),
    ("NULL, -600, 1, 80", False),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("row", "counts"), LENGTHS)
def test_what_is_no_measurement_begins_no_series(tmp_path: Path, row: str, counts: bool) -> None:
    """NULL in any of the four columns, and what no number or no plausible one is: docs/series-promise.md."""
    path = tmp_path / "s.duckdb"
    write(
        path,
        "CREATE TABLE charted AS SELECT s AS stay, CAST(60 * h + 5 AS DOUBLE) AS minute, 1 AS item, "
        "CAST(80 + (s * 7 + h * 3) % 11 AS DOUBLE) AS value FROM RANGE(8) AS a(s), RANGE(10) AS b(h)",
    )
    write(path, f"INSERT INTO charted SELECT {row.format(s='s')} FROM RANGE(8) AS a(s)")
    made(path, tmp_path, variables={"HR": {"items": [1], "low": 20, "high": 3e9}})
    with duckdb.connect(str(tmp_path / "out.duckdb")) as c:
        assert c.execute("SELECT MAX(step) + 1, COUNT(*) FROM release.vitals").fetchone() == (
            (20, 160) if counts else (10, 80)
        )


def test_rows_of_no_patient_are_those_of_one(source: Path, tmp_path: Path) -> None:
    """`first_of` groups NULL as it groups any key."""
    write(
        source,
        "CREATE OR REPLACE TABLE cohort AS SELECT DISTINCT stay, CASE WHEN stay < 60 THEN stay END AS patient "
        "FROM charted",
    )
    cohort = {"source": "cohort", "person": "stay", "first_of": "patient", "order": "stay"}
    found, _ = made(source, tmp_path, cohort=cohort, durations={"k": 3})
    assert found.persons == 61


@pytest.mark.sampled(1)
@pytest.mark.parametrize("nulls", ["null-aware", "null-strict", "null-pattern"])
def test_targets_are_shared_by_k_persons(source: Path, tmp_path: Path, nulls: str) -> None:
    """With exact projection the released features are the targets, so classes can be seen in the release itself."""
    found, rows = made(source, tmp_path, privacy={"k": 3, "nulls": nulls}, perturb={"method": "projection"})
    assert max(found.tau.values()) < 1e-5
    lengths = rows.groupby("person_number").step.max() + 1
    features = rows.groupby(["person_number", "variable"]).value.agg(["mean", lambda v: v.var(ddof=0), "min", "max"])
    marks = features.round(4).astype(str).agg("/".join, axis=1).unstack().fillna("absent")
    marks["length"] = lengths
    absent = "absent" if nulls == "null-aware" else ""
    for variable in marks.columns.drop("length"):
        counts = marks[marks[variable] != absent].groupby(["length", variable]).size()
        assert counts.min() >= 3, variable


def test_a_series_is_only_shortened_and_its_nulls_stay(source: Path, tmp_path: Path) -> None:
    """The pattern of records of every released series is the end of the pattern of one in the source."""
    variables = {"Glu": {"items": [2]}, "HR": {"items": [1]}}
    _, rows = made(source, tmp_path, variables=variables, perturb={"method": "projection"})
    frame = charted().query("item < 3").sort_values(["stay", "minute"])
    frame["hour"] = ((frame.minute - frame.groupby("stay").minute.transform("min")) // 60).astype(int)
    patterns: dict[int, list[str]] = {}
    for _, stay in frame.groupby("stay"):
        size = int(stay.hour.max()) + 1
        spans = [stay[stay["item"] == item].hour for item in (2, 1)]
        marks = ["".join("x" if len(s) and s.min() <= h <= s.max() else "." for h in range(size)) for s in spans]
        patterns.setdefault(size, []).append("|".join(marks))
    shown = {}
    for number, person in rows.groupby("person_number"):
        wide = person.pivot(index="step", columns="variable", values="value").reindex(columns=["Glu", "HR"])
        shown[number] = ["".join("." if np.isnan(v) else "x" for v in wide[c]) for c in wide.columns]
    possible = [p.split("|") for same in patterns.values() for p in same]
    for glucose, heart in shown.values():
        pairs = [((g, glucose), (h, heart)) for g, h in possible]
        assert any(all(o.endswith(r) or set(r) <= {"."} for o, r in pair) for pair in pairs)


def test_what_is_not_asked_for_is_the_protecting_option(source: Path, tmp_path: Path) -> None:
    """Members of a feature class have one multiset of values: no value belongs to fewer than k persons."""
    found, rows = made(source, tmp_path)
    assert (found.method, found.nulls) == ("shared", "null-pattern")
    assert not any("perturb" in warning or "nulls" in warning for warning in found.warnings)
    assert "have in common" in str(found.to_dict()["limits"]) and found.to_public()["limits"] == found.limits
    marks = rows.sort_values("value").groupby(["person_number", "variable"]).value.agg(lambda v: str(list(v)))
    assert marks.value_counts().min() >= 3


def test_a_method_that_keeps_the_shape_warns_with_the_attackers_figure(source: Path, tmp_path: Path) -> None:
    found, _ = made(source, tmp_path, perturb={"method": "projection"})
    share = found.attacks["raw_points"]["5"]["affine"]["sole"]  # type: ignore[index]
    (warning,) = [text for text in found.warnings if "perturb.method" in text]
    assert f"whoever knows five values singled out {share:.0%} of the persons" in warning
    assert "raw values" in found.limits


def test_the_guarantee_names_what_is_made_common_only(source: Path, tmp_path: Path) -> None:
    asked: dict[str, object] = {"HR": ["mean"], "Glu": [], "level": "avg(value)"}
    found, _ = made(source, tmp_path, features=asked, perturb={"method": "projection"})
    assert found.features == ("mean",) and "spread" not in found.guarantee
    assert "but for Glu, released unchanged" in found.guarantee


@pytest.mark.parametrize("shape", ["long", "wide"])
def test_own_features_are_measured_on_what_was_written(source: Path, tmp_path: Path, shape: str) -> None:
    """They form the classes and are not steered towards: how far they end from their class's means is told."""
    asked = {"last": "max(value) FILTER (WHERE position = 2)", "level": "avg(value)"}
    found, _ = made(source, tmp_path, features=asked, shape=shape, perturb={"method": "projection"})
    assert found.own_features.keys() == asked.keys()
    # means are steered towards, under whatever name: towards those rounded to steps of 1, so that half a step is left
    assert found.round == {"HR": 1, "Glu": "3 digits", "pH x": "3 digits"}
    assert found.own_features["level"]["tau"] <= 0.5 + 1e-6 < found.own_features["level"]["before"]
    assert found.own_features["last"]["tau"] > 1 and found.own_features["last"]["mean_distance"] > 0
    attack = found.attacks["own_features"]
    assert attack["persons"] == found.released and 0 < attack["sole"] <= attack["worst_sole"]  # type: ignore[index]
    told = dict(found.facts())
    assert "Own feature last" in told and "Attack by own features" in told
    assert "own_features" not in found.to_public()


def test_own_features_equal_those_made_by_hand(tmp_path: Path) -> None:
    """One length (of 8), one variable, one class: the mean is that of all, and the farthest is seen in the release."""
    rng = np.random.default_rng(8)
    rows = [(stay, 60 * hour, 1, 80 + 9 * rng.normal()) for stay in range(40) for hour in range(8 + stay % 3)]
    frame = pd.DataFrame(rows, columns=["stay", "minute", "item", "value"])
    asked = job(
        tmp_path,
        variables={"HR": {"items": [1]}},
        durations={"k": 40},
        privacy={"k": 30},
        features={"last": "max(value) FILTER (WHERE position = 7)"},
    )
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE charted AS SELECT * FROM frame")
        found = anonymize(asked, connection).releases["vitals"].own_features["last"]
    with duckdb.connect(str(tmp_path / "out.duckdb")) as connection:
        released = connection.execute("SELECT value FROM release.vitals WHERE step = 7").df().value
    original = frame.groupby("stay").value.last()
    far = (released - original.mean()).abs()
    assert (found["tau"], found["mean_distance"]) == pytest.approx((far.max(), far.mean()), abs=1e-5)
    assert found["before"] == pytest.approx((original - original.mean()).abs().mean(), abs=1e-5)


@pytest.mark.parametrize("asked", [{}, {"distance": "dtw", "band": 2, "persons": 7}])
def test_disagreement_is_measured_where_the_job_asks_for_it(
    source: Path, tmp_path: Path, asked: dict[str, object]
) -> None:
    """Before, everybody's nearest series is the own one; after, it is not."""
    result = anonymize(job(tmp_path, disagreement=asked), source)
    found = result.releases["vitals"]
    rows = found.disagreement["by_length"]
    everybody = sum(row["persons"] for row in rows)
    assert everybody == found.released if not asked else everybody <= 7 * len(rows)
    for row in rows:
        assert row["before"]["first_greatest"] < 1e-5 < row["after"]["first_median"]
        assert 0 < row["after"]["delta_auc_least"] <= row["after"]["delta_auc_mean"]
    curves = found.disagreement["curves"]
    assert len(curves["inclusion"]) == len(curves["after"]["plain"]["mean"]) == len(curves["before"]["plain"]["least"])
    assert curves["inclusion"][-1] == 1 and curves["after"]["normalised"]["mean"][-1] == pytest.approx(1)
    assert len(curves["shares"]) == len(curves["after"]["first"]) and max(curves["before"]["first"]) < 1e-5
    assert "disagreement" in found.seconds and "disagreement" not in found.to_public()
    assert any(name.startswith("Disagreement, ") for name, _ in found.facts())
    page = result.to_html()
    for title in ("figure 5.4", "figure 6.4", "figure 6.5", "figure 6.6", "How far off is the best guess?"):
        assert title in page


def test_a_seed_repeats_the_release_and_none_does_not(source: Path, tmp_path: Path) -> None:
    frames = []
    for n, seed in enumerate([7, 7, None]):
        folder = tmp_path / str(n)
        folder.mkdir()
        frames.append(made(source, folder, perturb={} if seed is None else {"seed": seed})[1])
    pd.testing.assert_frame_equal(frames[0], frames[1])
    assert not frames[0].equals(frames[2])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", ["projection", "shared"])
def test_neither_threads_nor_blocks_change_a_release(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    frames = []
    for threads, cells in ((1, 1_000_000), (4, 50)):
        monkeypatch.setattr("sqldeid.series.blocks.CELLS", cells)
        folder = tmp_path / str(threads)
        folder.mkdir()
        options = Options(settings=Settings(threads=threads))
        anonymize(job(folder, perturb={"method": method, "seed": 3}), source, options=options)
        with duckdb.connect(str(folder / "out.duckdb")) as connection:
            frames.append(connection.execute("SELECT * FROM release.vitals").df())
    pd.testing.assert_frame_equal(frames[0], frames[1], check_exact=True)


def test_no_key_and_no_time_leaves(source: Path, tmp_path: Path) -> None:
    found, rows = made(source, tmp_path)
    assert list(rows.columns) == ["person_number", "step", "variable", "value"]
    notes = str(read(tmp_path / "out.duckdb", "SELECT comment FROM duckdb_tables()"))
    notes = re.sub(r"[0-9a-f]{32,}", "", notes)  # a keyed hash has any digits by chance
    assert "stay" not in notes and str(found.persons) not in re.findall(r"[0-9.]+", notes)
    public = found.to_public()
    assert list(public["columns"]) == list(rows.columns)
    codes = public["columns"]["variable"]["codes"]
    assert {code["shown"] for code in codes} == set(rows.variable)
    assert public.keys() == {
        "kind",
        "columns",
        "variables",
        "features",
        "criteria",
        "method",
        "guarantee",
        "limits",
        "tau",
        "round",
        "unit",
    }
    assert not {str(found.persons), str(found.released), str(found.records)} & set(str(public).split())


TAMPERED = [
    ("INSERT INTO release.vitals SELECT * FROM release.vitals WHERE person_number = 1", "more or fewer|wrong|as many"),
    ("UPDATE release.vitals SET value = value + 50 WHERE person_number = 1 AND variable = 'HR'", "farther"),
    ("DELETE FROM release.vitals WHERE person_number = 1 AND step = 0", "as many persons"),
    ("DELETE FROM release.vitals WHERE person_number = 2", "as many persons"),
    ("ALTER TABLE release.vitals ADD COLUMN stay INTEGER", "its columns"),
    ("UPDATE release.vitals SET variable = 'BP' WHERE person_number = 1 AND variable = 'HR'", "as many persons"),
    ("UPDATE release.vitals SET person_number = person_number + 130000", "does not number its .* from 1"),
    ("UPDATE release.vitals SET person_number = NULL WHERE person_number = 1", "does not number its .* from 1"),
    ("INSERT INTO release.vitals VALUES (132539, 0, 'HR', NULL)", "does not number .*; 1 series have no value"),
    ("INSERT INTO release.vitals VALUES (1, 0, 'stay 132539', NULL)", "1 series have no value at all"),
]


@pytest.fixture(scope="module")
def published(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default release, to be copied by who changes it."""
    folder = tmp_path_factory.mktemp("published")
    anonymize(job(folder), source)
    return folder / "out.duckdb"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("statement", "message"), TAMPERED)
def test_a_changed_release_is_refused(
    source: Path, published: Path, tmp_path: Path, statement: str, message: str
) -> None:
    shutil.copy(published, tmp_path)
    write(tmp_path / "out.duckdb", statement)
    with pytest.raises(VerificationError, match=message):
        verify(job(tmp_path), source)


def pair_of_classes(release: Path) -> tuple[int, int]:
    """Two persons of one length and the same variables, with different features of each."""
    with duckdb.connect(str(release), read_only=True) as connection:
        rows = connection.execute(
            "SELECT person_number AS p, variable, MAX(MAX(step)) OVER (PARTITION BY p), ROUND(AVG(value), 4), "
            "MIN(value), MAX(value) FROM release.vitals GROUP BY p, variable ORDER BY p, variable"
        ).fetchall()
    seen: dict[int, list[tuple[Any, ...]]] = {}
    for person, *features in rows:
        seen.setdefault(person, []).append(tuple(features))
    for one, other in combinations(seen, 2):
        alike = [f[:2] for f in seen[one]] == [f[:2] for f in seen[other]] and len(seen[one]) > 1
        if alike and all(a != b for a, b in zip(seen[one], seen[other], strict=True)):
            return one, other
    raise AssertionError("no two classes alike")


def test_a_class_that_lost_a_member_to_another_is_found(source: Path, published: Path, tmp_path: Path) -> None:
    """Every series is near a target, and every length and variable has as many persons: but one class has k − 1."""
    one, other = pair_of_classes(Path(shutil.copy(published, tmp_path)))
    with duckdb.connect(str(tmp_path / "out.duckdb")) as connection:
        connection.execute(
            "UPDATE release.vitals AS v SET value = o.value FROM release.vitals AS o "
            "WHERE v.person_number = ? AND o.person_number = ? AND o.variable = v.variable AND o.step = v.step",
            [one, other],
        )
    with pytest.raises(VerificationError, match="1 classes have fewer persons than the source gives"):
        verify(job(tmp_path), source)


def test_persons_of_two_classes_at_once_are_found(source: Path, published: Path, tmp_path: Path) -> None:
    """One variable changes places: each target is that of as many as before, but two persons are alone in both."""
    one, other = pair_of_classes(Path(shutil.copy(published, tmp_path)))
    with duckdb.connect(str(tmp_path / "out.duckdb")) as connection:
        connection.execute(
            "UPDATE release.vitals SET person_number = $one + $other - person_number "
            "WHERE person_number IN ($one, $other) AND variable = (SELECT MIN(variable) FROM release.vitals "
            "WHERE person_number = $one)",
            {"one": one, "other": other},
        )
    with pytest.raises(VerificationError, match="2 persons have series near targets of different classes"):
        verify(job(tmp_path), source)


def test_a_wide_release_has_numbers_from_one_and_no_empty_person(source: Path, tmp_path: Path) -> None:
    asked = job(tmp_path, shape="wide")
    anonymize(asked, source)
    shutil.copy(tmp_path / "out.duckdb", tmp_path / "good.duckdb")
    for statement, message in (
        ("SELECT 1", None),
        ("UPDATE release.vitals SET person_number = person_number + 1", "does not number"),
        ("INSERT INTO release.vitals (person_number, step) VALUES (132539, 0)", "1 persons have no value"),
    ):
        shutil.copy(tmp_path / "good.duckdb", tmp_path / "out.duckdb")
        write(tmp_path / "out.duckdb", statement)
        with nullcontext() if message is None else pytest.raises(VerificationError, match=message):
            verify(asked, source)


def test_another_job_is_refused(source: Path, published: Path, tmp_path: Path) -> None:
    shutil.copy(published, tmp_path)
    with pytest.raises(VerificationError, match="other durations, privacy or perturbation"):
        verify(job(tmp_path, privacy={"k": 2}), source)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["view", "parquet"])
def test_views_and_parquet(source: Path, tmp_path: Path, kind: str) -> None:
    into = "out" if kind == "parquet" else "out.duckdb"
    asked = Job.parse({"release": {"into": into, "as": kind}, "series": {"vitals": BASE}}, folder=tmp_path)
    found = anonymize(asked, source).releases["vitals"]
    assert verify(asked, source)["vitals"].to_dict()["released"] == found.released


def test_a_plan_reads_nothing(source: Path, tmp_path: Path) -> None:
    facts = dict(plan(job(tmp_path), source)[0].facts())  # type: ignore[union-attr]
    assert facts["Durations"] == "k = 6, optimal"
    assert not (tmp_path / "out.duckdb").exists()


BAD: list[tuple[dict[str, object], str]] = [
    ({"variables": {"HR": {"items": [99]}}}, "charted has no plausible measurement of the variables"),
    ({"variables": {"HR": {"items": [1], "low": 300, "high": 400}}}, "no plausible measurement"),
    ({"variables": {"HR": {"items": ["HR"]}}}, "write items as whole numbers"),
    ({"variables": "nowhere.csv"}, "there is no file nowhere.csv"),
    ({"variables": {"HR": {"items": [1]}, "hr": {"items": [2]}}}, "but for upper and lower case"),
    ({"variables": {"HR": {"items": [1]}, "BP": {"items": [1]}}}, "names a code of another variable"),
    ({"drop": ["BP"]}, "names a variable that is not in variables"),
    ({"durations": {"k": 1000}}, "series.vitals.durations.k: is 1000, and there are 120 persons"),
    ({"privacy": {"k": 121}}, "series.vitals.privacy.k: is 121, and there are 120 persons"),
    ({"features": {"f": "value"}}, "series.vitals.features.f: is not an aggregate"),
    ({"features": {"f": "max(other)"}}, "series.vitals.features.f: names a column that is not there"),
    ({"features": {"f": "sum(value"}}, "series.vitals.features.f: the SQL cannot be read"),
    (
        {"features": {"g": "max(value)", "f": "max(CAST(CAST(value AS VARCHAR) AS DATE))"}},
        "series.vitals.features.f: a value cannot be converted",
    ),
    ({"features": {"mean": "max(value)"}}, "series.vitals.features.mean: is the name of a built-in feature"),
    ({"features": {"BP": ["mean"]}, "perturb": {"method": "projection"}}, 'there is no variable "BP"'),
    ({"features": ["min"]}, 'series.vitals.features: must be ["mean", "variance", "min", "max"]'),
    ({"features": 7}, "series.vitals.features: must be a list or a table of keys"),
    ({"time_unit": None}, "series.vitals.time_unit: missing; minute is a number"),
    ({"time": "when"}, 'series.vitals.time: charted has no column "when"'),
    ({"person": "who"}, 'series.vitals.person: charted has no column "who"'),
    ({"source": "nothing"}, "series.vitals.source: there is no table or view nothing"),
    ({"source": {"query": "SELECT stay, minute, item, 'x' AS value FROM charted"}}, "not a number; name the numeric"),
    (
        {"source": {"query": "SELECT stay, CAST(minute AS VARCHAR) AS minute, item, value FROM charted"}},
        "cast it to TIMES",
    ),
    ({"where": "stay < 0"}, "no plausible measurement"),
    ({"min_steps": 99}, "series.vitals.min_steps: no person has series of 99 steps"),
    ({"cohort": {"source": "died", "person": "stay", "first_of": "stay"}}, "cohort.order: missing"),
    ({"labels": {"source": "died", "person": "stay", "column": "gone"}}, 'died has no column "gone"'),
    ({"link": "people"}, "series.vitals.link: names no table release of this job"),
    ({"perturb": {"method": "shared"}, "features": {"HR": ["mean"]}}, "features.HR: leaves a series its own shape"),
    ({"perturb": {"method": "shared"}, "features": {"HR": []}}, "features.HR: leaves a series its own shape"),
    ({"perturb": {"method": "shared"}, "privacy": {"k": 3, "nulls": "source"}}, "privacy.nulls: lets a class have"),
    ({"privacy": {"k": 3, "nulls": "source"}}, "privacy.nulls: lets a class have"),
    ({"features": ["mean"]}, "features: leaves a series its own shape"),
    ({"perturb": {"population": 3}}, 'population: goes with method = "genetic" alone'),
    (
        {"perturb": {"method": "genetic", "mutation_sd": 1e300}},
        "perturb.mutation_sd: must be a number, greater than 0 and at most 1000000000",
    ),
    ({"variables": {"HR": {"items": [1], "resolution": 1e-300}}}, "HR.resolution: must be a number, at least 0.000001"),
    ({"perturb": {"method": "genetic", "population": 3}}, "perturb.tournament: must be at most population"),
    ({"perturb": {"method": "genetic", "parents": 4, "tournament": 3}}, "perturb.parents: must be at most tournament"),
    ({"perturb": {"method": "genetic", "parents": 5}}, "parents: must be a whole number, at least 2 and at most 4"),
    ({"step_hours": 0}, "series.vitals.step_hours: must be a number, greater than 0"),
    *(
        ({"step_hours": h}, "series.vitals.step_hours: must be a number, greater than 0 and")
        for h in (1e300, 1e308, 2e9)
    ),
    ({"disagreement": {"band": 2}}, 'series.vitals.disagreement.band: goes with distance = "dtw" alone'),
    ({"resample": "median"}, 'must be one of "mean", "point"'),
    ({"typo": 1}, 'unknown key "typo"'),
    ({"shape": "wide", "variables": {"Step": {"items": [1]}}}, "a wide release has a column Step of its own"),
    (
        {
            "source": {
                "query": "SELECT stay, minute, CASE WHEN item = 1 THEN '' ELSE 'x' END AS item, value FROM charted"
            },
            **{"shape": "wide", "variables": None},
        },
        "series.vitals.variables: a value of item is empty",
    ),
]


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("changes", "message"), BAD, ids=range(len(BAD)))
def test_bad_input_is_refused_in_a_sentence(
    source: Path, tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(JobError) as raised:
        anonymize(job(tmp_path, **changes), source)
    assert message in raised.value.message
    assert not list(tmp_path.iterdir())


NULLS = ("null-pattern", "null-aware", "null-strict", "strict", "source")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(5))
def test_random_sources_pass_their_own_verification(tmp_path: Path, seed: int) -> None:
    """Any lengths, gaps and options: what is released passes, or nobody can be."""
    rng = np.random.default_rng(seed)
    rows = []
    for stay in range(int(rng.integers(8, 60))):
        for item in (1, 2, 3):
            if rng.random() < (1.0, 0.6, 0.15)[item - 1]:
                n = int(rng.integers(1, rng.integers(2, 12)))
                rows += [(stay, int(rng.integers(0, 500)), item, round(float(rng.normal(80, 9)), 1)) for _ in range(n)]
    frame = pd.DataFrame(rows, columns=["stay", "minute", "item", "value"])  # noqa: F841 - SQL reads it
    asked = {
        "durations": {"k": int(rng.integers(2, 7)), "method": str(rng.choice(["optimal", "source"]))},
        "privacy": {
            **{
                "k": int(rng.integers(2, 5)),
                "nulls": NULLS[seed % 5],
                "heuristic": str(rng.choice(["range", "diversity"])),
            },
            "targets": str(rng.choice(["reachable", "source"])),
        },
        "perturb": {"method": str(rng.choice(["projection", "source", "shared"]))},
        "resample": str(rng.choice(["mean", "point"])),
        "shape": str(rng.choice(["long", "wide"])),
    }
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE charted AS SELECT * FROM frame")
        try:
            found = anonymize(job(tmp_path, **asked), connection).releases["vitals"]
        except JobError as error:
            assert "algorithm 3 drops every length" in error.message or "single value" in error.message
            return
        again = verify(job(tmp_path, **asked), connection)["vitals"].to_dict()
    assert again["released"] == found.released
    assert found.released == 0 or again["smallest_class"] >= found.asked["k"]


ODD = {
    "one record": "SELECT i AS stay, 0 AS minute, 1 AS item, 70.0 + i AS value FROM RANGE(30) AS r(i)",
    "constant": "SELECT i // 9 AS stay, i % 9 * 60 AS minute, 1 AS item, 70.0 AS value FROM RANGE(270) AS r(i)",
    "infinite": """SELECT i // 12 AS stay, i % 12 * 60 AS minute, 1 AS item, CASE WHEN i % 4 = 0 THEN
                   CAST('inf' AS DOUBLE) WHEN i % 4 = 1 THEN CAST('nan' AS DOUBLE) ELSE i END AS value
                   FROM RANGE(360) AS r(i)""",
    "all NULL": """SELECT i // 12 AS stay, i % 12 * 60 AS minute, i % 2 + 1 AS item,
                   CASE WHEN i % 2 = 0 THEN i / 3e0 END AS value FROM RANGE(360) AS r(i)""",
    "large": """SELECT i // 9 AS stay, i % 9 * 60 AS minute, 1 AS item, (i * 7 % 31) * 1e5 AS value
                FROM RANGE(270) AS r(i)""",
}


@pytest.fixture
def odd() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


@pytest.mark.parametrize("kind", ["TIMESTAMP", "DATE", "DOUBLE"])
def test_an_infinite_time_is_no_measurement(odd: duckdb.DuckDBPyConnection, tmp_path: Path, kind: str) -> None:
    """The person is released with what remains, not lost with it."""
    when = "i % 4" if kind == "DOUBLE" else "CAST(DATE '2101-01-01' + CAST(i % 4 AS INTEGER) AS TIMESTAMP)"
    odd.execute(f"""CREATE TABLE charted AS SELECT i // 4 AS stay, CAST({when} AS {kind}) AS minute, 1 AS item, 70e0 + i
                AS value FROM RANGE(48) AS r(i)""")
    odd.execute(f"""INSERT INTO charted VALUES (1, CAST('infinity' AS {kind}), 1, 80),
                (1, CAST('-infinity' AS {kind}), 1, 80)""")
    asked = {"variables": {"X": {"items": [1]}}, "time_unit": "hours" if kind == "DOUBLE" else None}
    found = anonymize(job(tmp_path, **asked, step_hours=1 if kind == "DOUBLE" else 24), odd).releases["vitals"]
    assert (found.persons, found.released, found.too_short, found.durations.moved) == (12, 12, 0, 0)


def test_a_time_far_off_is_refused_before_the_steps_to_it_are_filled(
    odd: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    odd.execute("""CREATE TABLE charted AS SELECT i // 4 AS stay, i % 4 * 60 + CASE WHEN i = 7 THEN 3000 * 525_600
                ELSE 0 END AS minute, 1 AS item, 70e0 + i AS value FROM RANGE(48) AS r(i)""")
    with pytest.raises(JobError, match=r"series\.vitals\.time: 1 person has records more than 1,000,000 steps after"):
        anonymize(job(tmp_path, variables={"X": {"items": [1]}}), odd)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("method", ["projection", "shared"])
def test_odd_series_are_released_or_withheld(
    odd: duckdb.DuckDBPyConnection, tmp_path: Path, name: str, method: str
) -> None:
    odd.execute(f"CREATE TABLE charted AS {ODD[name]}")
    asked = {"variables": {"X": {"items": [1, 2]}}, "perturb": {"method": method}}
    found = anonymize(job(tmp_path, **asked), odd).releases["vitals"]
    assert found.released == (0 if name == "one record" else 30)
    assert max(found.tau.values()) < (1e-3 if name == "large" else 1e-6)


def test_targets_are_released_on_the_grid_that_the_job_states(source: Path, tmp_path: Path) -> None:
    """Of each class and variable mean, minimum and maximum are whole steps, whoever counts."""
    steps = {"HR": 2.0, "Glu": 0.25, "pH x": 0.01}
    found, rows = made(source, tmp_path, round=steps)
    assert found.round == steps and found.to_public()["round"] == steps
    there = rows.dropna().groupby(["person_number", "variable"]).value.agg(["mean", "min", "max"])
    step = there.index.get_level_values("variable").map(steps).to_numpy()[:, None]
    cells = there.to_numpy() / step
    np.testing.assert_allclose(cells, np.round(cells), atol=1e-3)
    verify(job(tmp_path, round=steps), source)
    with pytest.raises(VerificationError, match="rounded to other steps"):
        verify(job(tmp_path, round={**steps, "HR": 1.0}), source)
    with pytest.raises(JobError, match=r"series.vitals.round.gone: there is no variable of this name"):
        anonymize(job(tmp_path, round={"gone": 1}), source, options=Options(replace=True, without_ledger=True))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("nulls", ["null-pattern", "null-aware", "strict", "source"])
@pytest.mark.parametrize("kind", ["table", "parquet"])
@pytest.mark.parametrize("shape", ["wide", "long"])
def test_a_variable_that_few_persons_have_is_not_named(
    source: Path, tmp_path: Path, shape: str, kind: str, nulls: str
) -> None:
    """Where names are values of the data: no column, comment, metadata, public text or warning holds it."""
    rare = "TESTOSTERONE CANARY"
    named = "CASE WHEN stay = 3 AND minute < 500 THEN '" + rare + "' WHEN item = 1 THEN 'HR' ELSE 'Glu' END"
    query = {"query": f"SELECT stay, minute, {named} AS item, value FROM charted WHERE item < 3 OR stay = 3"}
    changes: dict[str, Any] = {"source": query, "variables": None, "shape": shape, "kind": kind}
    changes |= {"privacy": {"k": 3, "nulls": nulls}, "perturb": {"method": "projection"}}
    part = {**BASE, **changes}
    release = {"into": "out" if part.pop("kind") == "parquet" else "out.duckdb", "as": kind}
    series = {"vitals": {name: value for name, value in part.items() if value is not None}}
    asked = Job.parse({"release": release, "series": series}, folder=tmp_path)
    result = anonymize(asked, source)
    found = result.releases["vitals"]
    assert set(found.variables) == {"HR", "Glu"}
    assert rare not in str(found.to_public()) + str(found.warnings) + str(found.to_dict())
    assert any("1 of 3 values of item are left out" in w for w in found.warnings)
    files = [p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()]
    assert files and not any(rare.encode() in data for data in files)
    verify(asked, source)
