"""`search.method = "mondrian"` on tables: k rows share every released combination, ranges hold what they say."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from shutil import copyfile

import duckdb
import numpy as np
import pandas as pd
import pytest

from sqldeid import anonymize, verify
from sqldeid.errors import JobError, NoSolutionError, VerificationError
from sqldeid.job import Job
from sqldeid.run import Options, assess, explain, plan
from tests.support.files import write

pytestmark = pytest.mark.usefixtures("stages")

SOURCE = """CREATE TABLE people AS
    SELECT i AS id, CASE WHEN i % 11 = 0 THEN NULL ELSE (i * 37) % 80 END AS age,
           DATE '1950-01-01' + CAST((i * 91) % 9000 AS INTEGER) AS born, CASE WHEN i % 7 = 0 THEN 'inf'::DOUBLE
           ELSE ((i * 53) % 900) / 10e0 END AS weight, i % 4 AS ward, 'name ' || i AS name
    FROM RANGE(300) AS r(i)"""


def median(show: str = "range", grid: object = None) -> dict[str, object]:
    return {"role": "quasi-identifying", "hierarchy": {"median": show, **({} if grid is None else {"grid": grid})}}


COLUMNS: Mapping[str, object] = {
    "born": median(),
    "age": median(),
    "ward": {"role": "sensitive"},
    "weight": median("mean", 0.1),
    "name": {"role": "identifying"},
}


def job(folder: Path, **changes: object) -> Job:
    table = {"source": "people", "person": "id", "columns": COLUMNS, "privacy": {"k": 5}}
    table = {**table, "search": {"method": "mondrian"}, **changes}
    return Job.parse({"release": {"into": "out.duckdb"}, "tables": {"people": table}}, folder=folder)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "source.duckdb", SOURCE)


def test_a_plan_shows_the_statements_of_its_stages(source: Path, tmp_path: Path) -> None:
    [planned] = plan(job(tmp_path), source)
    shown = explain(planned, job(tmp_path), source).statements or ()
    assert {"tables/mondrian/fold_points", "tables/mondrian/stage_parts"} <= {s.template for s in shown}


def released(folder: Path) -> pd.DataFrame:
    with duckdb.connect(str(folder / "out.duckdb")) as connection:
        return connection.execute("SELECT * FROM release.people").df()


def within(label: str, value: object) -> bool:
    """What a reader understands by a range."""
    missing = value is None or pd.isna(value)
    if label == "*" or (missing and label.endswith("missing") and label != "not missing"):
        return True
    if missing or label == "missing":
        return label == "not missing"
    label, kind = label.removesuffix(" or missing"), type(value)
    read = (lambda text: pd.Timestamp(text)) if kind is pd.Timestamp else float
    if label.startswith("< "):
        return bool(value < read(label[2:]))
    if label.startswith("≥ "):
        return bool(value >= read(label[2:]))
    low, high = label[1:-1].split(", ")
    return bool(read(low) <= value < read(high))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("k", [2, 5, 20])
def test_k_rows_share_every_combination_and_nobody_is_lost(source: Path, tmp_path: Path, k: int) -> None:
    found = anonymize(job(tmp_path, privacy={"k": k}), source).releases["people"]
    rows = released(tmp_path)
    assert list(rows.columns) == ["born", "age", "ward", "weight"]
    sizes = rows.groupby(["born", "age", "weight"], dropna=False).size()
    assert (sizes.min(), len(sizes), len(rows)) == (found.k, found.classes, 300)
    assert found.k >= k
    assert found.classes > 300 / (4 * k)
    with duckdb.connect(str(source), read_only=True) as connection:
        people = connection.execute("SELECT * FROM people").df()
    assert sorted(rows.ward) == sorted(people.ward)
    for column in ("born", "age"):
        assert all(any(within(label, v) for label in set(rows[column])) for v in people[column])
    assert verify(job(tmp_path, privacy={"k": k}), source)["people"].to_dict()["k"] == found.k


def test_cuts_are_shown_and_never_the_least_or_greatest_value(source: Path, tmp_path: Path) -> None:
    anonymize(job(tmp_path, columns={"age": median()}), source)
    labels = set(released(tmp_path).age)
    assert any(label.startswith("< ") for label in labels) and any(label.startswith("≥ ") for label in labels)
    assert not any(label.startswith("[0,") or label.endswith((" 79)", " 80)")) for label in labels)


def test_a_changed_release_is_refused(source: Path, tmp_path: Path) -> None:
    anonymize(job(tmp_path), source)
    write(tmp_path / "out.duckdb", "UPDATE release.people SET age = '*' WHERE rowid = 3")
    with pytest.raises(VerificationError, match=r"its smallest class|are not what the source gives"):
        verify(job(tmp_path), source)
    with pytest.raises(VerificationError, match="other criteria"):
        verify(job(tmp_path, privacy={"k": 4}), source)


PAIR = """(SELECT a.rowid AS one, b.rowid AS other, b.ward, b.tone
           FROM rows AS a JOIN rows AS b ON a.ward <> b.ward AND a.tone <> b.tone
                AND ((a.born, a.age, a.weight) = (b.born, b.age, b.weight)) = {alike}
           ORDER BY one, other LIMIT 1) AS pair"""
ALIKE, APART = PAIR.format(alike=True), PAIR.format(alike=False)
TAMPERS: Mapping[str, str] = {
    "values of two classes change places": "UPDATE rows SET ward = (SELECT SUM(w.ward) FROM rows AS w "
    f"WHERE w.rowid IN (one, other)) - rows.ward FROM {APART} WHERE rows.rowid IN (one, other)",
    "values of a class change places, but for one column": "UPDATE rows SET ward = (SELECT SUM(w.ward) FROM rows AS w "
    f"WHERE w.rowid IN (one, other)) - rows.ward FROM {ALIKE} WHERE rows.rowid IN (one, other)",
    "a row of the class stands in for another": "UPDATE rows SET ward = pair.ward, tone = pair.tone "
    f"FROM {ALIKE} WHERE rows.rowid = one",
    "a value is another": "UPDATE rows SET tone = 'other' WHERE rowid = 3",
    "a value is gone": "UPDATE rows SET ward = NULL WHERE rowid = 3",
    "a missing value is made up": "UPDATE rows SET tone = 'low' FROM (SELECT MIN(rowid) AS one FROM rows "
    "WHERE tone IS NULL) WHERE rows.rowid = one",
    "a row is there twice": "INSERT INTO rows SELECT * FROM rows WHERE rowid = 3",
    "a row is gone": "DELETE FROM rows WHERE rowid = 3",
}
TONED: Mapping[str, object] = {**COLUMNS, "tone": {"role": "insensitive"}}


def test_what_other_columns_hold_is_compared_class_by_class(source: Path, tmp_path: Path) -> None:
    with duckdb.connect(str(source)) as connection:
        tone = "CAST(['low', 'high', NULL][1 + (id // 4) % 3] AS ENUM ('low', 'high', 'never'))"
        connection.execute(f"CREATE OR REPLACE TABLE people AS SELECT *, {tone} AS tone FROM people")
    asked, out, kept = job(tmp_path, columns=TONED), tmp_path / "out.duckdb", tmp_path / "kept.duckdb"
    anonymize(asked, source)
    assert verify(asked, source)["people"].to_dict()["rows"] == 300
    copyfile(out, kept)
    for tamper, statement in TAMPERS.items():
        copyfile(kept, out)
        with duckdb.connect(str(out)) as connection:
            connection.execute("USE release")
            read = "SELECT * FROM people ORDER BY rowid"
            before = connection.execute(read).fetchall()
            connection.execute(statement.replace("rows", "people"))
            assert connection.execute(read).fetchall() != before, tamper
        told = (
            "1 classes are not what" if tamper in ("a row is there twice", "a row is gone") else "other columns do not"
        )
        with pytest.raises(VerificationError, match=told) as raised:
            verify(asked, source)
        assert raised.value.code == 4


PRIVACY: Mapping[str, dict[str, object]] = {
    "distinct": {"l_diversity": {"column": "ward", "l": 4}},
    "entropy": {"l_diversity": {"column": "ward", "l": 3, "kind": "entropy"}},
    "recursive": {"l_diversity": {"column": "ward", "l": 2, "kind": "recursive", "c": 0.7}},
    "close": {"t_closeness": {"column": "ward", "t": 0.2}},
    "delta": {"delta_disclosure": {"column": "ward", "delta": 0.9}},
    "beta": {"beta_likeness": {"column": "ward", "beta": 0.7}},
}


def worst(asked: str, wards: pd.Series, everybody: pd.Series) -> float:
    """What one class achieves, from the definitions."""
    counts = wards.value_counts().sort_values(ascending=False)
    shares = counts / len(wards)
    if asked == "distinct":
        return float(len(counts))
    if asked == "entropy":
        return float(np.exp(-(shares * np.log(shares)).sum()))
    if asked == "recursive":
        return float(counts.iloc[0] / counts.iloc[1:].sum())
    whole = everybody.value_counts(normalize=True)
    if asked == "beta":
        return float((shares.reindex(whole.index, fill_value=0) / whole).max() - 1)
    if asked == "delta":
        return float(np.abs(np.log(shares.reindex(whole.index, fill_value=0) / whole)).max())
    return float((shares.reindex(whole.index, fill_value=0) - whole).abs().sum() / 2)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("heuristic", ["range", "diversity"])
@pytest.mark.parametrize("asked", PRIVACY)
def test_criteria_beyond_k_hold_in_every_class(source: Path, tmp_path: Path, asked: str, heuristic: str) -> None:
    search = {"method": "mondrian", "heuristic": heuristic}
    anonymize(job(tmp_path, search=search), source)
    (asked_for,) = PRIVACY[asked].values()
    numbers = [v for key, v in asked_for.items() if key in ("l", "t", "delta", "beta")]  # type: ignore[attr-defined]
    bound = {"recursive": 0.7}.get(asked, numbers[0])
    assert not holds(asked, extreme(asked, tmp_path), bound)  # k alone is not enough
    changes = {"privacy": {"k": 5, **PRIVACY[asked]}, "search": search}
    found = anonymize(job(tmp_path, **changes), source, options=Options(replace=True, without_ledger=True)).releases[
        "people"
    ]
    (criterion,) = found.criteria
    assert criterion.achieved == pytest.approx(extreme(asked, tmp_path)) and found.classes > 1
    assert holds(asked, extreme(asked, tmp_path), bound)
    assert found.heuristic == heuristic and "achieved" not in str(found.to_public())


def extreme(asked: str, folder: Path) -> float:
    """What the worst class of the release achieves."""
    rows = released(folder)
    each = rows.groupby(["born", "age", "weight"], dropna=False).ward.apply(
        lambda wards: worst(asked, wards, rows.ward)
    )
    return float(each.min() if asked in ("distinct", "entropy") else each.max())


def holds(asked: str, found: float, bound: float) -> bool:
    if asked == "recursive":
        return found < bound
    return found <= bound + 1e-9 if asked in ("close", "delta", "beta") else found >= bound - 1e-9


def test_a_release_and_its_source_are_assessed_and_verified(source: Path, tmp_path: Path) -> None:
    asked = job(tmp_path, privacy={"k": 5, **PRIVACY["distinct"]})
    found = anonymize(asked, source).releases["people"]
    risk = assess(asked, source, release=True)["people"]
    assert (risk.prosecutor, risk.marketer) == (1 / found.k, pytest.approx(found.classes / 300))
    assert [(c.asked, c.achieved, c.met) for c in risk.criteria] == [(4.0, found.criteria[0].achieved, True)]
    before = assess(asked, source)["people"]
    assert before.prosecutor == 1 and not before.criteria[0].met
    assert dict(verify(asked, source)["people"].facts())["distinct l-diversity"].startswith("ward: ")  # type: ignore[attr-defined]
    with pytest.raises(VerificationError, match="other criteria"):
        verify(job(tmp_path), source)
    with duckdb.connect(str(tmp_path / "out.duckdb")) as connection:
        first = connection.execute("SELECT born, age, weight FROM release.people LIMIT 1").fetchone()
        connection.execute("UPDATE release.people SET ward = 0 WHERE born = ? AND age = ? AND weight = ?", first)
    with pytest.raises(VerificationError, match="a class fails distinct l-diversity of ward"):
        verify(asked, source)


def test_what_the_whole_table_does_not_meet_is_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(NoSolutionError, match="as a single class achieves 4; no release meets it"):
        anonymize(job(tmp_path, privacy={"k": 5, "l_diversity": {"column": "ward", "l": 5}}), source)
    assert not (tmp_path / "out.duckdb").exists()


def test_a_plan_says_what_it_is(source: Path, tmp_path: Path) -> None:
    facts = dict(plan(job(tmp_path), source)[0].facts())  # type: ignore[union-attr]
    assert facts["Cut at medians"] == "born (range, grid day), age (range, grid 1), weight (mean, grid 0.1)"


ALONG = {"column": "ward", "t": 0.2, "distance": "hierarchical", "hierarchy": "ward.csv"}
BAD: list[tuple[dict[str, object], str]] = [
    ({"columns": {"name": median()}}, "a column of type VARCHAR has no medians"),
    ({"columns": {"born": median("mean")}}, 'dates have ranges; write "range"'),
    ({"columns": {"age": {"role": "quasi-identifying", "hierarchy": {"bands": [5]}}}}, "cuts at medians: write"),
    ({"search": {}}, 'goes with search.method = "mondrian" alone'),
    ({"privacy": {"k": 5, "suppression_limit": 0.1}}, "suppresses nothing"),
    ({"privacy": {"k": 5, "l_diversity": {"column": "ward", "l": 2, "scope": "joint"}}}, 'scope is "independent"'),
    ({"privacy": {"k": 5, "t_closeness": {"column": "ward", "t": 0.2, "distance": "ordered"}}}, 'distance is "equal"'),
    ({"privacy": {"k": 5, "t_closeness": ALONG}}, 'distance is "equal"'),
    ({"privacy": {"k": 5, "m_concealing": {"m": 0.1, "known": {"ward": 0.1}}}}, "knows k, l and t alone"),
    (
        {
            "search": {"heuristic": "diversity"},
            "columns": {"age": {"role": "quasi-identifying", "hierarchy": {"bands": [5]}}},
        },
        'search.heuristic: goes with method = "mondrian" alone',
    ),
    ({"privacy": {"k": 301}}, "people has 300 rows"),
    ({"columns": {"born": median()}, "person": "ward"}, "give one row per person"),
]


@pytest.mark.parametrize(("changes", "message"), BAD, ids=range(len(BAD)))
def test_bad_input_is_refused(source: Path, tmp_path: Path, changes: dict[str, object], message: str) -> None:
    with pytest.raises(JobError) as raised:
        anonymize(job(tmp_path, **changes), source)
    assert message in raised.value.message
    assert not (tmp_path / "out.duckdb").exists()


@pytest.mark.parametrize("type_", ["STRUCT(a ENUM ('SECRET', 'x'))", "ENUM ('SECRET', 'x')[]"])
def test_a_type_that_lists_values_is_refused(source: Path, tmp_path: Path, type_: str) -> None:
    with duckdb.connect(str(source)) as connection:
        connection.execute(f"CREATE VIEW listing AS SELECT id, age, CAST(NULL AS {type_}) AS x FROM people")
    columns = {"age": median(), "x": {"role": "insensitive"}}
    with pytest.raises(JobError, match="lists values that no row may hold; cast it to text") as raised:
        anonymize(job(tmp_path, source="listing", columns=columns), source)
    assert raised.value.key == "tables.people.columns.x" and "SECRET" not in raised.value.message


SPARSE = 1_000_000
"""Values are this far apart at most: of two persons hardly ever are two neighbours."""


def spread(folder: Path, values: np.ndarray) -> Path:
    path = folder / "spread.duckdb"
    path.unlink(missing_ok=True)
    frame = pd.DataFrame({"id": range(len(values)), "pay": values, "half": values / 8, "ward": values % 3})
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people AS FROM frame")
    assert len(frame)
    return path


PAID: Mapping[str, object] = {"pay": median(), "half": median("mean", 0.5), "ward": {"role": "sensitive"}}


def test_no_bound_is_somebodys_value(tmp_path: Path) -> None:
    """Of independent data about as many bounds are values: before, 42 of 43 were the class's own greatest one."""
    rng = np.random.default_rng(3)
    values, others = (np.sort(rng.choice(SPARSE, 400, replace=False)) for _ in range(2))
    anonymize(job(tmp_path, columns={"pay": median()}), spread(tmp_path, values))
    labels = set(released(tmp_path).pay)
    bounds = {int(b) for label in labels for b in label.strip("[)<≥ ").split(", ")}
    assert len(bounds) > 40
    near = [sum(bool(np.isin([b - 1, b], drawn).any()) for b in bounds) for drawn in (values, others)]
    assert max(near) <= 2, near


def test_whoever_moves_within_a_cell_changes_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    values = rng.integers(0, 4000, 300)
    asked = job(
        tmp_path, columns={"pay": median("range", 20), "half": median("mean", 2.5), "ward": {"role": "insensitive"}}
    )
    shown = []
    for moved in (values, values // 20 * 20 + rng.integers(0, 20, 300)):
        path = spread(tmp_path, moved)
        write(path, "UPDATE people SET ward = 0")
        anonymize(asked, path, options=Options(replace=True, without_ledger=True))
        shown.append(sorted(map(str, released(tmp_path).itertuples(index=False))))
    assert shown[0] == shown[1]


def test_a_bound_or_mean_off_the_grid_is_refused(tmp_path: Path) -> None:
    path = spread(tmp_path, np.random.default_rng(7).integers(0, 4000, 300))
    asked = job(tmp_path, columns={**PAID, "pay": median("range", 20)})
    anonymize(asked, path)
    assert all(float(v) * 2 % 1 == 0 for v in released(tmp_path).half)
    for statement in ("SET half = half + 0.25", "SET pay = REPLACE(pay, '0)', '1)')"):
        write(
            tmp_path / "out.duckdb",
            f"CREATE OR REPLACE TABLE kept AS FROM release.people; UPDATE release.people {statement}",
        )
        with pytest.raises(VerificationError, match="are not on its grid"):
            verify(asked, path)
        with duckdb.connect(str(tmp_path / "out.duckdb")) as connection:
            connection.execute("DELETE FROM release.people; INSERT INTO release.people FROM kept; DROP TABLE kept")
    with pytest.raises(VerificationError, match="other criteria"):
        verify(job(tmp_path, columns={**PAID, "pay": median("range", 10)}), path)


def test_floats_need_a_grid_and_missing_is_told_where_it_is(source: Path, tmp_path: Path) -> None:
    with pytest.raises(JobError, match="has no resolution of its own") as raised:
        anonymize(job(tmp_path, columns={"weight": median()}), source)
    assert raised.value.key == "tables.people.columns.weight.hierarchy.grid"
    with pytest.raises(JobError, match="goes with median or aggregate alone"):
        job(tmp_path, search={}, columns={"age": {"role": "quasi-identifying", "hierarchy": {"bands": [5], "grid": 5}}})
    anonymize(job(tmp_path, columns={"born": median(), "age": median("range", 5)}), source)
    rows = released(tmp_path)
    assert not rows.born.str.contains("missing").any() and rows.age.str.contains("missing").any()


def test_a_mean_of_fewer_than_k_values_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "few.duckdb"
    write(
        path,
        "CREATE TABLE people AS SELECT i AS id, i AS age, CASE WHEN i = 7 THEN 77 END AS weight FROM RANGE(40) AS r(i)",
    )
    anonymize(job(tmp_path, columns={"age": median(), "weight": median("mean")}), path)
    assert released(tmp_path).weight.isna().all()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "value",
    [
        "CAST(i AS HUGEINT) * CAST(1e30 AS HUGEINT)",
        "CAST(i AS DECIMAL(38, 0)) * CAST(1e30 AS DECIMAL(38, 0))",
        "CAST(i / 7 AS DECIMAL(38, 20))",
        "9223372036854775807 - 100000 * CAST(i AS BIGINT)",
        "CASE WHEN i % 3 = 0 THEN 999999999999999999 ELSE i END",
    ],
)
def test_numbers_beyond_64_bits_have_true_ranges(tmp_path: Path, value: str) -> None:
    with duckdb.connect(str(tmp_path / "source.duckdb")) as connection:
        connection.execute(f"CREATE TABLE people AS SELECT i AS id, {value} AS x FROM RANGE(200) AS r(i)")
        exact = [Fraction(str(v)) for (v,) in connection.execute("SELECT CAST(x AS VARCHAR) FROM people").fetchall()]
    asked = job(tmp_path, columns={"x": median()})
    found = anonymize(asked, tmp_path / "source.duckdb").releases["people"]
    sizes = released(tmp_path).groupby("x").size()
    assert found.classes > 10 and sizes.min() >= 5
    for label, n in sizes.items():  # one column: ranges do not overlap
        low, high = bounds(str(label))
        assert sum((low is None or v >= low) and (high is None or v < high) for v in exact) == n, label
    verify(asked, tmp_path / "source.duckdb")


def bounds(label: str) -> tuple[Fraction | None, Fraction | None]:
    if label.startswith(("< ", "≥ ")):
        at = Fraction(label[2:])
        return (None, at) if label[0] == "<" else (at, None)
    low, high = label[1:-1].split(", ")
    return Fraction(low), Fraction(high)


def test_numbers_that_a_grid_cannot_tell_are_refused(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "source.duckdb")) as connection:
        value = "9223372036854770000 + 20 * i"
        connection.execute(f"CREATE TABLE people AS SELECT i AS id, {value} AS x FROM RANGE(200) AS r(i)")
    with pytest.raises(JobError, match="x holds numbers so great, and so near") as raised:
        anonymize(job(tmp_path, columns={"x": median()}), tmp_path / "source.duckdb")
    assert raised.value.key == "tables.people.columns.x.hierarchy.grid"
    assert not (tmp_path / "out.duckdb").exists()


@pytest.mark.parametrize("value", ["CAST('10:00:00+02' AS TIMETZ)", "[CAST('10:00:00+02' AS TIMETZ)]"])
def test_times_with_a_zone_do_not_go_into_parquet(tmp_path: Path, value: str) -> None:
    write(
        tmp_path / "source.duckdb",
        f"CREATE TABLE people AS SELECT i AS id, i AS x, {value} AS at FROM RANGE(60) AS r(i)",
    )
    table = {"source": "people", "person": "id", "columns": {"x": median(), "at": {"role": "insensitive"}}}
    made = {**table, "privacy": {"k": 5}, "search": {"method": "mondrian"}}
    parquet = {"release": {"into": "out", "as": "parquet"}, "tables": {"people": made}}
    for look in (anonymize, plan):
        with pytest.raises(JobError, match="Parquet has no type TIME WITH TIME ZONE") as raised:
            look(Job.parse(parquet, folder=tmp_path), tmp_path / "source.duckdb")
        assert raised.value.key == "tables.people.columns.at"
