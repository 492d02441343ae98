"""What explore counts is what pandas counts, group by group; nothing of the data is shown, nothing is changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import sqldeid
from sqldeid.findings import Uniqueness
from tests.support.cli import run

HOSTILE = 'se"x; DROP TABLE people; --'


def people(seed: int, rows: int) -> pd.DataFrame:
    """Rows with every kind of value, NULLs, both zeros, NaN, and persons who share rows."""
    draw = np.random.default_rng(seed)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(draw.integers(0, 40, rows), unit="D")
    made = pd.DataFrame(
        {
            "who": draw.integers(0, max(rows * 2 // 3, 1), rows),
            "age": pd.array(draw.integers(20, 60, rows), dtype="Int64"),
            HOSTILE: draw.choice(["m", "f", "canary 'x'", None], rows),
            "weight": draw.choice([0.0, -0.0, np.nan, 1.5, 70.25], rows),
            "born": days.to_series(index=range(rows)).where(draw.random(rows) > 0.1),
            "constant": "c",
            "nothing": pd.array([None] * rows, dtype="string"),
            "key": np.arange(rows),
        }
    )
    made.loc[draw.random(rows) < 0.1, "age"] = pd.NA
    return made


def load(frame: pd.DataFrame, path: Path) -> Path:
    with duckdb.connect(str(path)) as connection:
        connection.register("frame", frame)
        connection.execute(
            'CREATE TABLE people AS SELECT who, age, "' + HOSTILE.replace('"', '""') + '", CAST(weight AS DOUBLE) AS '
            "weight, born, constant, CAST(nothing AS VARCHAR) AS nothing, key, [key] AS nested FROM frame"
        )
    return path


def expected(frame: pd.DataFrame, columns: tuple[str, ...], person: str | None) -> Uniqueness:
    """By pandas: classes of equal values, NULL and NaN included; both zeros are one value."""
    values = frame[list(columns)].copy()
    for c in columns:
        if c == "weight":
            values[c] = values[c].where(values[c].notna(), 1e300) + 0.0  # NaN is a value of its own, not NULL
    codes = [pd.factorize(values[c].where(values[c].notna(), None))[0] for c in columns]
    keys = pd.Series(list(zip(*codes, strict=True)))
    who = frame[person] if person else pd.Series(range(len(frame)))
    sizes = keys.map(who.groupby(keys).nunique())
    least = sizes.groupby(who).min()
    classes = keys.nunique()
    mean = who.groupby(keys).nunique().mean()
    below = (2, 5, 11)
    return Uniqueness(
        columns,
        len(frame),
        who.nunique(),
        classes,
        mean,
        {n: int((sizes < n).sum()) for n in below},
        {n: int((least < n).sum()) for n in below},
    )


def assert_same(found: Uniqueness, wanted: Uniqueness) -> None:
    assert found.mean_size == pytest.approx(wanted.mean_size)
    fields = ("columns", "rows", "persons", "classes", "rows_below", "persons_below")
    assert [getattr(found, f) for f in fields] == [getattr(wanted, f) for f in fields]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("person", [None, "who"])
@pytest.mark.parametrize(("seed", "rows"), [(1, 60), (2, 150), (3, 1)])
def test_every_set_is_what_pandas_groups(tmp_path, seed, rows, person):
    frame = people(seed, rows)
    found = sqldeid.explore(load(frame, tmp_path / "p.duckdb"), "people", max_size=3, enough=1, person=person)
    assert (found.rows, found.persons) == (rows, frame["who"].nunique() if person else rows)
    for s in found.sets:
        assert_same(s, expected(frame, s.columns, person))
    assert found.left_out["nested"].startswith("type ")
    assert ("key",) in found.smallest
    columns = [c for c in frame.columns if c != person]
    tried = {frozenset(s.columns) for s in found.sets}
    untried = {frozenset(s) for n in (1, 2, 3) for s in combinations(columns, n)} - tried
    assert len(tried) == found.tried and len(tried | untried) == found.possible
    smallest = [frozenset(s) for s in found.smallest]
    assert all(any(m < s for m in smallest) for s in untried)
    for s in found.sets:
        assert (frozenset(s.columns) in smallest) == (s.alone >= 1)


def test_columns_by_themselves(tmp_path):
    frame = people(4, 200)
    found = {c.name: c for c in sqldeid.explore(load(frame, tmp_path / "p.duckdb"), "people", max_size=1).columns}
    assert found["constant"].entropy_bits == 0 and found["constant"].distinct == 1
    assert (found["nothing"].nulls, found["nothing"].distinct, found["nothing"].entropy_bits) == (200, 1, 0)
    assert found["key"].entropy_bits == pytest.approx(np.log2(200))
    assert found["weight"].distinct == 4, "-0.0 is 0.0, and NaN a value"
    counts = frame["age"].astype(object).where(frame["age"].notna(), "NULL").value_counts() / 200
    assert found["age"].entropy_bits == pytest.approx(-(counts * np.log2(counts.astype(float))).sum())
    assert found["age"].nulls == frame["age"].isna().sum()


@pytest.mark.parametrize(("enough", "person"), [(0.05, None), (0.6, None), (0.6, "who")])
def test_borders_equal_brute_force(tmp_path, enough, person):
    frame = people(5, 50)[["who", "age", HOSTILE, "weight", "constant"]]
    path = tmp_path / "p.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("frame", frame)
        connection.execute("CREATE TABLE people AS SELECT * FROM frame")
    found = sqldeid.explore(path, "people", borders=True, enough=enough, person=person)
    columns = [c.name for c in found.columns]
    sets = [s for n in range(1, len(columns) + 1) for s in combinations(columns, n)]
    shares = {frozenset(s): expected(frame, s, person).alone for s in sets}
    reach = {s for s, share in shares.items() if share >= enough}
    assert set(map(frozenset, found.smallest)) == {s for s in reach if not any(r < s for r in reach)}
    rest = set(shares) - reach
    assert set(map(frozenset, found.largest)) == {s for s in rest if not any(s < r for r in rest)}
    assert found.possible == len(shares) > found.tried


def test_sets_that_are_named(tmp_path):
    frame, path = people(6, 100), tmp_path / "p.duckdb"
    load(frame, path)
    found = sqldeid.explore(path, "main.people", columns=[("AGE", HOSTILE), ("key", "age")])
    assert [s.columns for s in found.sets if len(s.columns) == 2] == [("age", "key"), ("age", HOSTILE)]
    one = sqldeid.explore(path, "people", columns=["age", "born"])
    assert sorted(s.columns for s in one.sets) == [("age",), ("age", "born"), ("born",)]
    within = sqldeid.explore(path, "people", columns=["age", "born", "weight"], max_size=2)
    assert within.possible == 6
    with duckdb.connect(str(path)) as connection:
        again = sqldeid.explore(connection, "people", columns=["age", "born"])
        assert again.sets == one.sets
        assert connection.execute("SELECT COUNT(*) FROM duckdb_tables() WHERE temporary").fetchall() == [(0,)]


# ---- sequences -------------------------------------------------------------------------------------------------------


def items(seed: int) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    rows = [
        {"stay": stay, "who": stay // 2, "seq": place, "code": draw.choice(["0331", "331", "a,b", None])}
        for stay in range(60)
        for place in range(1, int(draw.integers(0, 6)) + 1)
    ]
    return pd.DataFrame(rows).sample(frac=1, random_state=seed).reset_index(drop=True)


@pytest.mark.parametrize("person", [None, "who"])
def test_sequences_are_what_a_loop_finds(tmp_path, person):
    frame, path = items(7), tmp_path / "i.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("frame", frame)
        connection.execute("CREATE TABLE items AS SELECT * FROM frame")
        connection.execute("INSERT INTO items VALUES (NULL, 99, 1, 'nobody')")
    found = sqldeid.explore_sequences(
        path,
        "items",
        per=["stay"],
        value="code",
        order=["seq"],
        places=[(1,), (1, 2), (1, 3)],
        unordered=[(1, 2), (1, 2, 3)],
        person=person,
    )
    assert found.owners == frame["stay"].nunique() and found.ties == 0
    for shown, places, ordered in zip(
        found.patterns, [(1,), (1, 2), (1, 3), (1, 2), (1, 2, 3)], [True, True, True, False, False], strict=True
    ):
        known = {}
        for stay, own in frame.sort_values("seq").groupby("stay"):
            codes = own["code"].where(own["code"].notna(), "NULL").tolist()
            if len(codes) >= places[-1]:
                picked = [codes[p - 1] for p in places]
                known[stay] = tuple(picked if ordered else sorted(picked))
        made = pd.DataFrame({"pattern": [repr(p) for p in known.values()], "who": [s // 2 for s in known]})
        wanted = expected(made, ("pattern",), person)
        assert_same(shown, Uniqueness(shown.columns, *[getattr(wanted, f) for f in FIELDS]))


FIELDS = ("rows", "persons", "classes", "mean_size", "rows_below", "persons_below")


def test_ties_are_counted_and_broken_by_the_item(tmp_path):
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE items (stay INTEGER, seq INTEGER, code VARCHAR)")
        connection.execute("INSERT INTO items VALUES (1, 1, 'b'), (1, 1, 'a'), (2, 1, 'a'), (2, 1, 'b'), (3, 1, 'b')")
    found = sqldeid.explore_sequences(path, "items", per=["stay"], value="code", order=["seq"], places=[(1,), (1, 2)])
    assert found.ties == 4
    assert [(p.rows, p.classes) for p in found.patterns] == [(3, 2), (2, 1)]


# ---- text ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "n.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE notes (who INTEGER, note VARCHAR, born DATE)")
        connection.executemany(
            "INSERT INTO notes VALUES (?, ?, NULL)",
            [
                (1, "A 65 Year Old man"),
                (1, "A 65 year-old"),
                (2, "A 65 years"),
                (2, "the theme (she) said"),
                (3, "mangrove .*"),
                (4, None),
                (5, "Grüße\nan Öl"),
            ],
        )
    yield path


def test_text_by_hand(notes):
    found = sqldeid.explore_text(
        notes,
        "notes",
        "note",
        first=[4, 9],
        keywords={"age": ["year old", "year-old"], "sex": ["he", "she", "man"], "odd": [".*", "öl"]},
        person="who",
    )
    assert (found.rows, found.persons) == (6, 4)
    four, nine = found.prefixes
    assert (four.rows, four.persons, four.classes, four.persons_below[2]) == (6, 4, 4, 3)
    assert (nine.rows, nine.classes, nine.rows_below[2], nine.persons_below[2]) == (6, 5, 4, 4)
    assert {k.group: (k.rows, k.persons) for k in found.keywords} == {"age": (2, 1), "sex": (2, 2), "odd": (2, 2)}


def test_without_persons_every_row_is_one(notes):
    found = sqldeid.explore_text(notes, "notes", "note", first=[1], keywords={})
    (one,) = found.prefixes
    assert (one.rows, one.persons, one.classes, one.rows_below[2]) == (6, 6, 4, 3)
    assert found.keywords == ()


# ---- what can go wrong -----------------------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--table", "nobody"], "there is no table or view nobody"),
        (["--table", "people", "--columns", "age,shoe"], '--columns: people has no column "shoe"; it has'),
        (["--table", "people", "--person", "shoe"], '--person: people has no column "shoe"'),
        (["--table", "people", "--columns", "who,age", "--person", "who"], "the person column tells everybody apart"),
        (["--table", "people", "--person", "age"], "--person: age is NULL in"),
        (["--table", "people", "--columns", "nested"], "values of type BIGINT[] cannot be told apart"),
        (["--table", "people", "--columns", "age,,"], "--columns: names are missing"),
        (["--table", "people", "--text", "age"], "--text: age is of type"),
        (["--table", "people", "--text", "nothing"], "--text: nothing is NULL in every row"),
        (["--table", "people", "--per", "who"], "--per needs --value"),
        (["--table", "people", "--places", "1,2"], "--places belongs to --per"),
        (["--table", "people", "--text", HOSTILE, "--max-size", "2"], "--max-size is of columns, not of free text"),
        (["--table", "people", "--per", "who", "--text", "nothing"], "--per and --text look at different things"),
        (
            ["--table", "people", "--per", "who", "--value", "age", "--order", "key", "--places", "2,1"],
            "--places: 2, 1 is no pattern",
        ),
        (
            ["--table", "people", "--per", "who", "--value", "age", "--order", "key", "--places", "x"],
            "--places: write whole numbers",
        ),
        (["--table", "empty"], "--table: empty has no rows"),
        (["--table", "people", "--plot", "x.gif"], "--plot: name a file that ends in .png or .svg"),
        (["--table", "people", "--text", HOSTILE, "--keywords", "none.toml"], "none.toml cannot be read"),
        (["--table", "people", "--text", HOSTILE, "--first", "0"], "--first: a number of characters is at least 1"),
        (["--table", "wide", "--max-size", "4"], "more than 10,000"),
    ],
)
def test_bad_input_is_told_in_one_line(tmp_path, monkeypatch, capsys, arguments, said):
    path = load(people(8, 30), tmp_path / "p.duckdb")
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE empty (a INTEGER)")
        connection.execute("CREATE TABLE wide AS SELECT " + ", ".join(f"1 AS c{i}" for i in range(30)))
    monkeypatch.chdir(tmp_path)
    ran = run(capsys, "explore", path, *arguments)
    assert ran.code == 2 and said in " ".join(ran.err.split()), ran.err
    assert "Traceback" not in ran.err and "canary" not in ran.err


def test_the_command_prints_and_draws_no_value(tmp_path, capsys):
    path = load(people(9, 120), tmp_path / "p.duckdb")
    before = path.read_bytes()
    files = {"--json": tmp_path / "x.json", "--plot": tmp_path / "x.svg"}
    options = [str(part) for pair in files.items() for part in pair]
    ran = run(capsys, "explore", path, "--table", "people", "--max-size", "2", *options)
    assert ran.code == 0, ran.err
    assert "Smallest sets that single out 50 % or more" in ran.out
    written = json.loads(files["--json"].read_text())["explored"]
    assert written["rows"] == 120 and "data holder" in ran.out
    svg = files["--plot"].read_text()
    assert svg.startswith("<?xml")
    for shown in (ran.out, ran.err, json.dumps(written), svg):
        assert "canary" not in shown
    assert path.read_bytes() == before
    text = run(capsys, "explore", path, "--table", "people", "--text", HOSTILE, "--plot", tmp_path / "t.png")
    assert text.code == 0 and "canary" not in text.out
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
    per = ["--per", "who", "--value", HOSTILE, "--order", "key", "--places", "1", "--json", "-"]
    assert run(capsys, "explore", path, "--table", "people", *per).json["explored"]["owners"] > 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["$x$", r"$\nosuch{$", "a $ and $ b_^{", r"\frac"])
@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_column_is_no_formula(tmp_path, capsys, name, kind):
    """Matplotlib reads what stands between dollars as mathematics, and fails on what is none."""
    path = tmp_path / "p.duckdb"
    with duckdb.connect(str(path)) as c:
        c.execute(f'CREATE TABLE people AS SELECT i AS id, i % 7 AS "{name}", i % 11 AS b FROM range(300) AS r(i)')
    for how in ([], ["--person", "id", "--borders"]):
        ran = run(capsys, "explore", path, "--table", "people", *how, "--plot", tmp_path / f"x.{kind}")
        assert ran.code == 0, ran.err
        assert (tmp_path / f"x.{kind}").stat().st_size > 1000
