"""Statistics of classes: against their definition in pandas and whole numbers, cheats, and where they are refused."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from secrets import token_hex
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import sqldeid
from sqldeid.errors import JobError, VerificationError
from sqldeid.run import explain
from sqldeid.tables.write.aggregate import start_of
from tests.support.sources import IDENTIFYING, SENSITIVE, insert, job, qi, release

STATISTICS = ("mean", "median", "mode", "interval")
DAY = Fraction(86400)
UNIT = {"age": Fraction(1), "money": Fraction(1, 100), "height": Fraction(0), "born": DAY, "seen": Fraction(0)}
GRIDS: dict[str, tuple[Any, ...]] = {
    "age": (None, 1, 5),
    "money": (None, 0.25, 10),
    "height": (0.1, 0.5, 25),
    "born": (None, "week"),
    "seen": ("second", "hour", "day"),
}
SECONDS = {"second": 1, "hour": 3600, "day": 86400, "week": 7 * 86400}
EPOCH = datetime(1970, 1, 1)


def table(seed: int, n: int = 240) -> pd.DataFrame:
    """Numbers, dates and times of every kind, on both sides of 0 and 1970, with missing values and ties."""
    rng = np.random.default_rng(seed)

    def some(values: list[Any]) -> list[Any]:
        return [None if rng.random() < 0.2 else v for v in values]

    wide = int(rng.choice([3, 20, 400]))
    return pd.DataFrame(
        {
            "id": range(n),
            "sex": rng.choice(["f", "m", None], n),
            "ward": rng.integers(0, 6, n),
            "age": some([int(v) for v in rng.integers(-wide // 4, wide, n)]),
            "money": some([Decimal(int(v)) / 100 for v in rng.integers(-50 * wide, 100 * wide, n)]),
            "height": some([float(v) for v in rng.normal(0, wide, n).round(int(rng.integers(0, 3)))]),
            "born": some([date(1968, 1, 1) + timedelta(days=int(v)) for v in rng.integers(0, 5 * wide, n)]),
            "seen": some([EPOCH + timedelta(seconds=int(v)) for v in rng.integers(-9 * wide, 9000 * wide, n)]),
        },
        dtype=object,
    )


def fill(path: Path, frame: pd.DataFrame) -> None:
    with duckdb.connect(str(path)) as c:
        c.execute(
            "CREATE TABLE people (id INTEGER, sex TEXT, ward INTEGER, age INTEGER, money DECIMAL(12, 2), "
            "height DOUBLE, born DATE, seen TIMESTAMP)"
        )
        insert(c, "people", frame.values.tolist())


def number(value: object) -> Fraction:
    """A number, or the seconds since 1970."""
    if isinstance(value, datetime):
        return Fraction((value - EPOCH) // timedelta(microseconds=1), 10**6)
    return Fraction((value - EPOCH.date()).days * 86400) if isinstance(value, date) else Fraction(str(value))


def stated(column: str, statistic: str, grid: object, values: list[object], k: int) -> object:
    """What a class shows, by the words of the page: cell by cell, in whole numbers."""
    if grid is None:
        step = UNIT[column] or DAY
    else:
        step = Fraction(SECONDS[grid]) if isinstance(grid, str) else Fraction(str(grid))
    start = Fraction(-3 * 86400 if grid == "week" else 0)
    cells = sorted(math.floor((number(v) - start) / step) for v in values if v is not None)
    if len(cells) < k:
        return None
    if statistic == "interval":
        low, high = begin(cells, k), -begin([-c - 1 for c in cells], k)
        return f"[{said(column, start + step * low)}, {said(column, start + step * high)})"
    if statistic == "mode":
        counted = {c: cells.count(c) for c in cells}
        cell = max(counted, key=lambda c: (counted[c], -c))
        return shown(column, start + step * cell) if counted[cell] >= k else None
    if statistic == "median":
        while len(cells) > k + 1:
            cells = sorted(cells)[1:-1]
    unit = UNIT[column]
    middles = [start + step * c + (step - unit) / 2 for c in cells]
    near = math.floor((sum(middles) / len(middles) - start) / step + Fraction(1, 2))
    return shown(column, start + step * near)


def begin(cells: list[int], k: int) -> int:
    """Where the finest step begins in which the least lies and k do: of 1, 2, 4 … cells, or across 0."""
    cells = sorted(cells)
    for i in range(62):
        first = cells[0] // 2**i * 2**i
        if sum(first <= c < first + 2**i for c in cells) >= k:
            return first
    return -next(2**i for i in range(62) if cells[0] >= -(2**i) and sum(c < 2**i for c in cells) >= k)


def said(column: str, at: Fraction) -> str:
    if column in ("born", "seen"):
        moment = EPOCH + timedelta(seconds=int(at))
        return str(moment.date()) if column == "born" else str(moment)
    whole = f"{Decimal(at.numerator) / Decimal(at.denominator):f}"
    return whole.rstrip("0").rstrip(".") if "." in whole else whole


def shown(column: str, at: Fraction) -> object:
    return said(column, at) if column in ("born", "seen") else int(at) if column == "age" else float(at)


def asked(chosen: dict[str, tuple[str, Any]], k: int, **more: Any) -> sqldeid.Job:
    columns = {
        name: qi({"aggregate": statistic} | ({} if grid is None else {"grid": grid}))
        for name, (statistic, grid) in chosen.items()
    }
    bands = {"sex": qi(), "ward": qi({"bands": [2]})}
    return job(
        {}, people=release({**bands, **columns}, source="people", person="id", k=k, limit=0.4, attacks=False, **more)
    )


def read(path: Path, what: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(path), read_only=True) as c:
        return c.execute(what).fetchall()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(30))
def test_each_class_shows_its_statistics_and_classes_are_those_without(tmp_path: Path, seed: int) -> None:
    rng, frame, path = np.random.default_rng(seed), table(seed), tmp_path / "people.duckdb"
    fill(path, frame)
    chosen = {c: (str(rng.choice(STATISTICS)), g[int(rng.integers(len(g)))]) for c, g in GRIDS.items()}
    k = int(rng.integers(2, 40))
    wanted = asked(chosen, k)
    found = sqldeid.anonymize(wanted, path).releases["people"]
    alone = sqldeid.anonymize(asked({}, k), path, options=sqldeid.Options(replace=True, without_ledger=True))
    same = ("node", "classes", "k", "suppressed", "loss")
    assert [getattr(found, n) for n in same] == [getattr(alone.releases["people"], n) for n in same]
    sqldeid.anonymize(wanted, path, options=sqldeid.Options(replace=True, without_ledger=True))
    assert sqldeid.verify(wanted, path)["people"].classes == found.classes
    level = found.node
    classes: dict[tuple[Any, ...], list[Any]] = {}
    for row in frame.to_dict("records"):
        sex = row["sex"] if level["sex"] == 0 else "*"
        low = row["ward"] // 2 * 2
        ward = (row["ward"], f"[{low}, {low + 2})", "*")[level["ward"]]
        classes.setdefault((sex, ward), []).append(row)
    expected = {
        label: (len(rows), *(stated(c, s, g, [r[c] for r in rows], k) for c, (s, g) in chosen.items()))
        for label, rows in classes.items()
        if len(rows) >= k
    }
    names = ", ".join(chosen)
    there = read(path, f"SELECT sex, ward, COUNT(*), {names} FROM release.people GROUP BY ALL")
    assert {(s, w): tuple(rest) for s, w, *rest in there} == expected
    assert len(there) == len(expected) == found.classes


def test_steps_of_intervals_hold_k_persons_and_are_the_finest() -> None:
    for least in range(-40, 40):
        for other in range(least, 40):
            low = start_of(least, other)
            widths = [2**i for i in range(8)]
            held = [w for w in widths if low % w == 0 or low == -w]
            assert any(low <= least <= other < low + w or (low == -w and other < w) for w in held)
            finer = [w for w in widths if least // w == other // w]
            assert low == (
                least // finer[0] * finer[0] if finer else -next(w for w in widths if -w <= least and other < w)
            )


def test_who_moves_within_a_cell_changes_nothing(tmp_path: Path) -> None:
    frame, shown_of = table(3), []
    chosen: dict[str, tuple[str, Any]] = {"age": ("mean", 5), "height": ("median", 0.5), "money": ("interval", 10)}
    for moved in (False, True):
        path = tmp_path / f"{moved}.duckdb"
        if moved:
            cells = {
                "age": lambda v: v // 5 * 5 + 4,
                "height": lambda v: math.floor(v * 2) / 2 + 0.25,
                "money": lambda v: Decimal(math.floor(v / 10) * 10 + 9),
            }
            for c, to in cells.items():
                frame[c] = pd.Series([v if v is None else to(v) for v in frame[c]], dtype=object)
        fill(path, frame)
        sqldeid.anonymize(asked(chosen, 12), path)
        shown_of.append(sorted(map(repr, read(path, "SELECT * FROM release.people"))))
    assert shown_of[0] == shown_of[1]


def test_a_statistic_of_fewer_than_k_persons_is_missing(tmp_path: Path) -> None:
    """Each class has one value less than k: whoever has none would leave it to fewer."""
    path, k = tmp_path / "people.duckdb", 7
    frame = pd.DataFrame(
        [(i, "fm"[i % 2], 0, 30 if i < 2 * (k - 1) else None, None, None, None, None) for i in range(40)],
        columns=table(0).columns, dtype=object,
    )  # fmt: skip
    fill(path, frame)
    for statistic in STATISTICS:
        again = sqldeid.Options(replace=True, without_ledger=True)
        for asked_k, there in ((k, {None}), (k - 1, {30} if statistic != "interval" else {"[30, 31)"})):
            sqldeid.anonymize(asked({"age": (statistic, None)}, asked_k), path, options=again)
            assert {row[0] for row in read(path, "SELECT DISTINCT age FROM release.people")} == there


@pytest.mark.parametrize(
    ("change", "statistic"),
    [
        ("UPDATE release.people SET age = age + 1 WHERE sex = 'f'", "mean"),
        ("UPDATE release.people SET age = NULL WHERE sex = 'f'", "median"),
        ("UPDATE release.people SET age = (SELECT MIN(age) FROM people) WHERE rowid = 0", "mode"),
        ("UPDATE people SET age = age + 300 WHERE sex = 'm'", "mean"),
        ("UPDATE people SET age = NULL WHERE sex = 'm'", "interval"),
    ],
)
def test_a_release_with_another_statistic_fails_its_recheck(tmp_path: Path, change: str, statistic: str) -> None:
    path = tmp_path / "people.duckdb"
    fill(path, table(1))
    wanted = asked({"age": (statistic, None)}, 5)
    sqldeid.anonymize(wanted, path)
    sqldeid.verify(wanted, path)
    with duckdb.connect(str(path)) as c:
        c.execute(change)
    with pytest.raises(VerificationError, match=rf"do not show the {statistic} of age that their rows in the source"):
        sqldeid.verify(wanted, path)


def test_a_mean_is_not_taken_for_a_median_nor_one_grid_for_another(tmp_path: Path) -> None:
    path = tmp_path / "people.duckdb"
    fill(path, table(2))
    sqldeid.anonymize(asked({"age": ("mean", None)}, 5), path)
    for other in ({"age": ("median", None)}, {"age": ("mean", 5)}, {}):
        with pytest.raises(VerificationError):
            sqldeid.verify(asked(other, 5), path)  # type: ignore[arg-type]


def test_all_members_but_one_solve_for_the_last_of_a_mean(tmp_path: Path) -> None:
    """What the page says is not protected: within half a step for each member, whatever the last one's value is."""
    frame, solved = table(4), []
    for value in (-80, 0, 79):
        path = tmp_path / f"{value}.duckdb"
        frame["age"] = pd.Series([int(i) % 60 for i in frame["id"]], dtype=object)
        frame.loc[0, ["sex", "ward", "age"]] = ["f", 0, value]
        fill(path, frame)
        found = sqldeid.anonymize(asked({"age": ("mean", None)}, 30), path).releases["people"]
        assert any("solved for by all of its members but one" in w for w in found.warnings)
        wards = {0: [0], 1: [0, 1], 2: list(range(6))}[found.node["ward"]]
        members = [r for r in frame.to_dict("records") if r["ward"] in wards and (found.node["sex"] or r["sex"] == "f")]
        sex, ward = ("f", "*")[found.node["sex"]], ("0", "[0, 2)", "*")[found.node["ward"]]
        [(mean,)] = read(path, f"SELECT DISTINCT age FROM release.people WHERE sex = '{sex}' AND ward = '{ward}'")
        rest = sum(r["age"] for r in members if r["id"] != 0)
        solved.append(abs(mean * len(members) - rest - value) / len(members))
    assert max(solved) <= 0.5


def test_tables_of_a_run_whose_difference_is_few_are_refused(tmp_path: Path) -> None:
    """From the means below 30 and below 31 follows that of those who are 30: of the few of them who have a value."""
    for thirty in (2, 40):
        path, frame = tmp_path / f"{thirty}.duckdb", table(9)
        ages = [30 if i < thirty else 20 + i % 10 + i % 2 * 30 for i in frame["id"]]
        fill(path, frame.assign(age=pd.Series(ages, dtype=object), money=pd.Series(map(Decimal, ages), dtype=object)))
        both = {
            f"below_{edge}": release(
                {"age": qi({"edges": [[edge]], "tails": True}), "money": qi({"aggregate": "mean"})},
                **{"source": "people", "person": "id", "k": 30, "attacks": False},
            )
            for edge in (30, 31)
        }
        with pytest.raises(JobError, match="shows money of classes that have persons"):
            sqldeid.anonymize(job({}, **both), path)


BY_SEX = {"sex": qi(), "age": qi({"aggregate": "mean"})}
OTHERWISE: dict[str, tuple[dict[str, Any], int, bool]] = {
    "the same": (BY_SEX, 10, True),
    "a mean for another k": (BY_SEX, 20, True),
    "the grid spelt out": (BY_SEX | {"age": qi({"aggregate": "mean", "grid": 1})}, 10, True),
    "cut": (BY_SEX | {"age": qi({"aggregate": "mean"}, top_code=30)}, 10, False),
    "another grid": (BY_SEX | {"age": qi({"aggregate": "mean", "grid": 5})}, 10, False),
    "a median": (BY_SEX | {"age": qi({"aggregate": "median"})}, 10, False),
    "values": (BY_SEX | {"age": SENSITIVE}, 10, True),
    "parts of classes": (BY_SEX | {"ward": qi()}, 10, False),
    "values of parts": ({"sex": qi(), "ward": qi(), "age": SENSITIVE}, 10, False),
}


def told(columns: dict[str, Any], k: int, **more: Any) -> dict[str, Any]:
    return release(columns, source="people", person="id", k=k, limit=0.2, attacks=False, **more)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", OTHERWISE)
def test_a_column_is_told_once_of_a_class(tmp_path: Path, name: str) -> None:
    """From a mean and the mean of cut values follows by how much the only one above the cut exceeds it."""
    path, frame = tmp_path / "people.duckdb", table(9)
    frame["sex"] = ["f", "m"] * (len(frame) // 2)
    fill(path, frame)
    columns, k, goes = OTHERWISE[name]
    tables = {"first": told(BY_SEX, 10), "second": told(columns, k)}
    if goes:
        assert set(sqldeid.anonymize(job({}, **tables), path).releases) == set(tables)
        return
    with pytest.raises(JobError, match=r"tables\.second: beside tables\.first, shows age of classes that have persons"):
        sqldeid.anonymize(job({}, **tables), path)
    apart = tables | {"second": told(columns, k, never_with=["first"])}
    assert set(sqldeid.anonymize(job({}, **apart), path).releases) == set(tables)


def test_medians_of_another_k_are_not_told_beside_each_other_nor_one_after_the_other(tmp_path: Path) -> None:
    """The means of the k and of the k + 2 in the middle differ by what two persons have."""
    path, frame = tmp_path / "people.duckdb", table(9)
    fill(path, frame)
    columns = {"sex": qi(), "age": qi({"aggregate": "median"})}
    both = {"first": told(columns, 10), "second": told(columns, 12)}
    with pytest.raises(JobError, match="shows age of classes"):
        sqldeid.anonymize(job({}, **both), path)
    sqldeid.anonymize(job({}, **both), path, options=sqldeid.Options(only=("first",)))
    with pytest.raises(JobError, match="in one run"):
        sqldeid.anonymize(job({}, **both), path, options=sqldeid.Options(only=("second",)))
    for again in ({"first": told(columns, 12)}, {"other": told(columns, 12)}):
        with pytest.raises(JobError, match="other statistics"):
            sqldeid.anonymize(job({}, **again), path, options=sqldeid.Options(replace=True))
    assert sqldeid.anonymize(job({}, first=both["first"]), path, options=sqldeid.Options(replace=True)).releases


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_a_top_code_bounds_what_one_value_does(tmp_path: Path, statistic: str) -> None:
    path, frame = tmp_path / "people.duckdb", table(5)
    frame["age"] = pd.Series([1_000_000 if i % 50 == 0 else 40 for i in frame["id"]], dtype=object)
    fill(path, frame)
    bands = {"sex": qi(), "ward": qi({"bands": [2]}), "age": qi({"aggregate": statistic}, top_code=90)}
    cut = job({}, people=release(bands, source="people", person="id", k=5, limit=0.4))
    result = sqldeid.anonymize(cut, path).releases["people"]
    assert all(40 <= v <= 90 for (v,) in read(path, "SELECT DISTINCT age FROM release.people"))
    assert result.columns["age"].shown == f"{statistic} of the class, grid 1, from 90 on 90"


def test_numbers_too_great_for_their_grid_are_refused(tmp_path: Path) -> None:
    path, frame = tmp_path / "people.duckdb", table(6)
    frame["height"] = pd.Series([1e300 if i == 9 else 1.0 for i in frame["id"]], dtype=object)
    fill(path, frame)
    with pytest.raises(JobError, match=r"tables\.people\.columns\.height\.hierarchy\.grid: holds numbers too great"):
        sqldeid.anonymize(asked({"height": ("mean", 0.5)}, 2), path)
    with duckdb.connect(str(path)) as c:
        c.execute("UPDATE people SET height = CASE id % 3 WHEN 0 THEN 'NaN' WHEN 1 THEN '-Infinity' ELSE '7.2' END")
    sqldeid.anonymize(asked({"height": ("mean", 0.5)}, 2), path)
    shown_of = {v for (v,) in read(path, "SELECT DISTINCT height FROM release.people")}
    assert shown_of <= {7.5, None} and 7.5 in shown_of, "the middle of [7, 7.5) is 7.25, and half goes up"


PAGE = Path(__file__).parents[3] / "docs/microaggregation.md"


def example() -> dict[str, Any]:
    """The job of the page."""
    found: dict[str, Any] = tomllib.loads(PAGE.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0])
    return found


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    path, rng = tmp_path / "study.duckdb", np.random.default_rng(7)
    with duckdb.connect(str(path)) as c:
        c.execute("CREATE TABLE study (id INTEGER, age INTEGER, sex TEXT, income DOUBLE, seen DATE, illness TEXT)")
        rows = [
            (
                i,
                int(rng.integers(20, 90)),
                "fm"[i % 2],
                float(rng.gamma(2, 20000)),
                date(2024, 1, 1 + i % 28),
                str(i % 3),
            )
            for i in range(500)
        ]
        insert(c, "study", rows)
    asked_for = sqldeid.Job.parse(example())
    result = sqldeid.anonymize(asked_for, path)
    assert sqldeid.verify(asked_for, path)["study"].released
    columns = result.to_public()["releases"]["study"]["columns"]
    assert columns["income"]["shown"] == "median of the class, grid 1000"
    [planned] = sqldeid.plan(asked_for, path)
    assert "income (median of the class, grid 1000)" in str(explain(planned, asked_for, path).parts[0].facts)
    policy = sqldeid.Options(policy=result.to_dict(), replace=True, without_ledger=True)
    assert sqldeid.anonymize(asked_for, path, options=policy).releases["study"].node == result.releases["study"].node


def _with(*keys: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(found: dict[str, Any]) -> None:
        for key in keys[:-1]:
            found = found.setdefault(key, {})
        found[keys[-1]] = value

    return change


REFUSED: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "epsilon-safe": (
        _with("search", value={"method": "epsilon-safe", "epsilon_safe": {"beta": 0.1, "epsilon": 1.0, "delta": 0.1}}),
        "proves nothing of statistics",
    ),
    "local": (_with("search", value={"method": "local"}), "recodes what is left over again"),
    "mondrian": (_with("search", value={"method": "mondrian"}), "cuts every quasi-identifying column"),
    "blank": (_with("privacy", "suppression", value="blank"), "blanked rows are no class"),
    "many": (_with("rows", value="many"), "who has most rows"),
    "view": (_with("view", value="computed"), "knows no statistics"),
    "link": (_with("link", value="others"), "would not be those of the statistic"),
    "k-map": (_with("privacy", "k_map", value=5), "does not go with k_map"),
    "delta-presence": (
        lambda t: t["privacy"].update(delta_presence={"least": 0.1, "most": 0.5}, population={"table": "all"}),
        "does not go with delta_presence",
    ),
    "k": (_with("privacy", "k", value=1), "must be at least 2"),
    "weights": (_with("search", "weights", "income", value=2.0), "has no levels to weigh"),
    "top": (_with("columns", "seen", "top_code", value=2), "goes with mean and median alone"),
    "uncovered": (_with("columns", "seen", "uncovered", value="top"), "aggregate has none"),
    "grid": (_with("columns", "sex", "hierarchy", "grid", value=2), "goes with median or aggregate alone"),
    "two": (_with("columns", "income", "hierarchy", "bands", value=[2]), "must hold exactly one of"),
    "all": (_with("columns", "age", "hierarchy", value={"aggregate": "mean"}), "nothing tells classes apart"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_where_it_does_not_hold_it_is_refused(name: str) -> None:
    content, (change, text) = example(), REFUSED[name]
    if name == "all":
        content["tables"]["study"]["columns"]["sex"]["hierarchy"] = {"aggregate": "mode"}
    change(content["tables"]["study"])
    with pytest.raises(JobError) as refused:
        sqldeid.Job.parse(content)
    assert text in str(refused.value)


def test_a_link_from_another_release_and_a_stacked_column_are_refused() -> None:
    content = example()
    other = {"source": "study", "person": "id", "columns": {"age": qi({"bands": [5]})}, "privacy": {"k": 2}}
    content["tables"]["other"] = other | {"link": "study"}
    content["tables"]["other"]["columns"] |= {"illness": SENSITIVE, "id": IDENTIFYING}
    with pytest.raises(JobError, match=r"does not go with a link from another release \(other\)"):
        sqldeid.Job.parse(content)
    content = example()
    content["tables"]["study"]["stack"] = {
        "x": {"from": "visits", "on": "id", "value": "n", "aggregate": "max", "role": "quasi-identifying"}
        | {"hierarchy": {"aggregate": "mean"}}
    }
    with pytest.raises(JobError, match="a stacked column is not aggregated by class"):
        sqldeid.Job.parse(content)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("ALTER TABLE people ALTER sex TYPE TEXT", "has no mean; numbers and dates have"),
        ("ALTER TABLE people ALTER ward TYPE DOUBLE", "has no resolution of its own"),
    ],
)
def test_a_column_without_order_or_grid_is_refused(tmp_path: Path, change: str, text: str) -> None:
    path = tmp_path / "people.duckdb"
    fill(path, table(7))
    with duckdb.connect(str(path)) as c:
        c.execute(change)
    columns = {"age": qi({"bands": [5]}), "sex" if "sex" in change else "ward": qi({"aggregate": "mean"})}
    with pytest.raises(JobError, match=text):
        sqldeid.anonymize(job({}, people=release(columns, source="people", person="id", k=5, limit=0.4)), path)


def test_a_ledger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "people.duckdb"
    fill(path, table(8))
    key = tmp_path / "key"
    key.write_text(token_hex(32))
    options = sqldeid.Options(ledger=tmp_path / "book.ledger", key_file=key)
    with pytest.raises(JobError, match="does not go with a ledger, which keeps who is in a class"):
        sqldeid.anonymize(asked({"age": ("mean", None)}, 5), path, options=options)


def test_an_interval_beyond_the_calendar_is_refused_and_no_release_shows_it(tmp_path: Path) -> None:
    """The last day of the calendar stands for "never" in many tables; the year 10,000 is no date."""
    path, frame = tmp_path / "people.duckdb", table(3)
    fill(path, frame)
    columns = {"sex": qi(), "born": qi({"aggregate": "interval"})}
    asked_ = job({}, people=release(columns, source="people", person="id", k=5, limit=0.2, attacks=False))
    sqldeid.anonymize(asked_, path)
    with duckdb.connect(str(path)) as c:
        c.execute("UPDATE people SET born = DATE '9999-12-31'")
    with pytest.raises(VerificationError, match="do not show the interval of born"):
        sqldeid.verify(asked_, path)
    with pytest.raises(JobError, match=r"columns\.born\.hierarchy\.aggregate: the interval of a class is no date"):
        sqldeid.anonymize(asked_, path, options=sqldeid.Options(replace=True, without_ledger=True))


@pytest.mark.parametrize("grid", [0, -1, float("nan"), "x", True, [1]])
def test_a_grid_that_is_none_is_told_what_it_may_be(grid: object) -> None:
    with pytest.raises(
        JobError, match=r'hierarchy\.grid: must be a number, greater than 0, or one of "second", "minute"'
    ):
        asked({"age": ("mean", grid)}, 5)
