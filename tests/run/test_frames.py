"""Jobs on data frames and Arrow tables: the release is that of a database, and nothing of a frame goes elsewhere."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sqldeid
from sqldeid import Listener
from sqldeid.notebook import table as html_table
from tests.support.places import ROOT

PEOPLE = ROOT / "examples" / "adult_csv" / "people.csv"
COLUMNS = {
    "age": {"role": "quasi-identifying", "hierarchy": {"bands": [5, 10, 20]}},
    "sex": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
    "income": {"role": "sensitive"},
}


def job(source: object = "people", **release: str) -> sqldeid.Job:
    privacy = {"k": 5, "suppression_limit": 0.05}
    people = {"source": source, "person": "id", "columns": COLUMNS, "privacy": privacy, "attacks": False}
    return sqldeid.Job.parse({"release": release, "tables": {"people": people}})


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return pd.read_csv(PEOPLE)


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*table.to_pydict().values(), strict=True))


@pytest.fixture(scope="module")
def of_a_database(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The oracle: the same job on a database that holds the same table, read by DuckDB alone."""
    with duckdb.connect() as connection:
        connection.from_df(frame).create("people")
        sqldeid.anonymize(job(), connection)
        return rows(connection.table("release.people").to_arrow_table())


class Stream:
    """What any other library hands over."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("given", ["pandas", "arrow", "stream", "by name", "categories", "shuffled", "relation"])
def test_a_frame_is_released_as_the_same_table_of_a_database_is(
    frame: pd.DataFrame, of_a_database: list[tuple[Any, ...]], nowhere: Path, given: str
) -> None:
    """Row by row and in the same order, whatever the order of the frame was."""
    arrow = pa.Table.from_pandas(frame)
    frames = {
        "pandas": frame,
        "arrow": arrow,
        "stream": Stream(arrow),
        "by name": {"people": frame},
        "categories": frame.astype({"sex": "category"}),
        "shuffled": frame.sample(frac=1, random_state=3),
        "relation": duckdb.from_arrow(arrow),
    }
    result = sqldeid.anonymize(job(), frames[given])
    assert rows(result["people"].to_arrow()) == of_a_database
    assert result["people"].to_pandas().equals(result["people"].to_arrow().to_pandas())
    assert result["people"].k == result.releases["people"].k >= 5
    assert list(nowhere.iterdir()) == []


def test_an_index_does_not_come_along(frame: pd.DataFrame, nowhere: Path) -> None:
    named = frame.set_index(pd.Index([f"NAME{i}" for i in frame["id"]], name="name"))
    connection = sqldeid.hold({"people": named})
    assert connection.table("people").columns == list(frame.columns)
    assert "NAME" not in repr(sqldeid.anonymize(job(), named)["people"].to_arrow().to_pydict())


def test_the_copy_is_not_the_callers_frame(frame: pd.DataFrame) -> None:
    mine = frame.copy()
    connection = sqldeid.hold({"people": mine})
    mine["age"] = 0
    assert connection.table("people").max("age").fetchall() != [(0,)]


def test_categories_of_nobody_do_not_come_along(frame: pd.DataFrame) -> None:
    mine = frame.assign(sex=pd.Categorical(frame["sex"], categories=["Female", "Male", "CANARY"]))
    held = sqldeid.hold({"people": mine}).table("people")
    assert str(dict(zip(held.columns, held.types, strict=True))["sex"]) == "VARCHAR"


def test_categories_that_arrow_cannot_cast_are_taken(frame: pd.DataFrame) -> None:
    """Those of Polars are views of text, those of `pandas.cut` intervals: Arrow ended both with its own error."""
    arrow = pa.Table.from_pandas(frame)
    places = pa.array([{"Female": 0, "Male": 1}[sex] for sex in frame["sex"]], pa.uint32())
    views = pa.DictionaryArray.from_arrays(places, pa.array(["Female", "Male", "CANARY"], pa.string_view()))
    mine = arrow.set_column(arrow.column_names.index("sex"), "sex", views)
    released = sqldeid.anonymize(job(), mine)["people"].to_arrow()
    assert rows(released) == rows(sqldeid.anonymize(job(), arrow)["people"].to_arrow())
    cut = frame.assign(sex=pd.cut(frame["age"], [0, 30, 200]))
    with sqldeid.hold({"people": cut}) as held:
        assert held.table("people").aggregate('COUNT(sex."left"), MAX(sex."right")').fetchall() == [(len(frame), 200)]


def test_times_in_nanoseconds_are_times(frame: pd.DataFrame) -> None:
    """pandas 2 makes every time one of them, which events and series refused; none that has them is cut."""
    at = pd.Timestamp("2020-01-01 07:00") + pd.to_timedelta(frame["id"], "h")
    mine = pd.DataFrame(
        {"id": frame["id"] % 50, "at": at.astype("datetime64[ns]"), "finer": at.astype("datetime64[ns]")}
    )
    mine.loc[0, "finer"] += pd.Timedelta(1, "ns")
    mine["ward"] = frame["id"] % 3
    with sqldeid.hold({"stays": mine}) as held:
        stays = held.table("stays")
        assert [str(type_) for type_ in stays.types] == ["BIGINT", "TIMESTAMP", "TIMESTAMP_NS", "BIGINT"]
        assert stays.aggregate('MIN("at"), COUNT("at")').fetchall() == [(at.min(), len(mine))]
    part = {"source": "stays", "object": "id", "time": "at", "state": "ward", "gap_hours": 9000, "factors": ["hour"]}
    asked = sqldeid.Job.parse({"events": {"e": {**part, "privacy": {"method": "ratio", "epsilon": 1.0}}}})
    assert "at" in sqldeid.anonymize(asked, mine)["e"].to_arrow().column_names


def failing_relation() -> duckdb.DuckDBPyRelation:
    """A query of the caller's that is run when its rows are asked for, and quotes one in its error."""
    return duckdb.sql("SELECT 1 AS id, CAST(v AS INTEGER) AS age FROM (VALUES ('CANARY')) AS t (v)")


def closed_relation() -> duckdb.DuckDBPyRelation:
    connection = duckdb.connect()
    relation = connection.sql("SELECT 1 AS id")
    connection.close()
    return relation


class Broken:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        raise RuntimeError("CANARY")


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        (failing_relation, sqldeid.JobError, "people: a value cannot be converted or is out of range"),
        (closed_relation, sqldeid.EngineError, "people: the connection to the database is closed"),
        (Broken, sqldeid.JobError, "people: its rows cannot be read: RuntimeError, whose text may hold data"),
    ],
)
def test_rows_that_come_only_now_may_fail_and_none_is_shown(given: Any, error: type[Exception], told: str) -> None:
    """DuckDB's error went to the caller as it was, with the value in it."""
    with pytest.raises(error, match=re.escape(told)) as caught:
        sqldeid.anonymize(job(), given())
    assert "CANARY" not in str(caught.value) and caught.value.__suppress_context__


def test_ctrl_c_while_a_frame_is_copied_is_told_as_one(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB hears the signal in the main thread, and tells of it by a RuntimeError, which the caller got."""

    def interrupted(*_: object) -> None:
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr("sqldeid.engine.frames._copy", interrupted)
    with pytest.raises(sqldeid.Interrupted, match="nothing was published"):
        sqldeid.anonymize(job(), frame)


def test_sql_of_a_job_reaches_no_variable_of_the_caller(frame: pd.DataFrame) -> None:
    secret_frame = frame
    assert len(secret_frame)
    with pytest.raises(sqldeid.JobError) as caught:
        sqldeid.anonymize(job({"query": "SELECT * FROM secret_frame"}), {"people": frame})
    assert "secret_frame" in str(caught.value)
    with pytest.raises(duckdb.Error):
        sqldeid.hold({"people": frame}).sql("FROM secret_frame")


def test_queries_join_frames(frame: pd.DataFrame) -> None:
    first, second = frame[["id", "age", "sex"]], frame[["id", "income"]]
    source = {"query": "SELECT a.id, a.age, a.sex, b.income FROM left_ones a JOIN right_ones b ON a.id = b.id"}
    result = sqldeid.anonymize(job(source), {"left_ones": first, "right_ones": second})
    whole = sqldeid.anonymize(job(), frame)
    assert sorted(rows(result["people"].to_arrow())) == sorted(rows(whole["people"].to_arrow()))


@pytest.mark.parametrize("name", ["select", 'a"b', "a b", "Ünï"])
def test_tables_have_any_name(frame: pd.DataFrame, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    assert sqldeid.anonymize(job(quoted), frame)["people"].to_arrow().num_rows > 400
    assert sqldeid.anonymize(job(quoted), {name: frame})["people"].to_arrow().num_rows > 400


@pytest.mark.parametrize("source", ["main.people", "MAIN.people"])
def test_the_schema_may_be_named(frame: pd.DataFrame, of_a_database: list[tuple[Any, ...]], source: str) -> None:
    assert rows(sqldeid.anonymize(job(source), frame)["people"].to_arrow()) == of_a_database


def test_a_release_that_goes_to_a_file_is_there_and_not_in_memory(frame: pd.DataFrame, nowhere: Path) -> None:
    result = sqldeid.anonymize(job(into="out.duckdb"), frame)
    with pytest.raises(sqldeid.JobError, match="where they were written"):
        result["people"].to_arrow()
    with duckdb.connect("out.duckdb", read_only=True) as connection:
        assert connection.table("release.people").shape[0] == result["people"].released
    assert [path.name for path in nowhere.iterdir()] == ["out.duckdb"]


@pytest.mark.parametrize("as_", ["table", "parquet"])
def test_the_working_folder_may_change_meanwhile(frame: pd.DataFrame, nowhere: Path, as_: str) -> None:
    """Another thread may do that. What was staged was left behind, with rows of a release that nobody had verified."""
    (nowhere / "elsewhere").mkdir()
    moving = Listener(step=lambda release, step: os.chdir(nowhere / "elsewhere"))
    result = sqldeid.anonymize(job(into="out", **{"as": as_}), frame, listener=moving)
    assert result["people"].written == ("out/people.parquet" if as_ == "parquet" else "out: release.people",)
    assert sorted(path.name for path in nowhere.iterdir()) == ["elsewhere", "out"]
    assert not any((nowhere / "elsewhere").iterdir())


def test_risk_plan_and_tradeoff_take_frames_and_verify_a_held_database(frame: pd.DataFrame) -> None:
    with sqldeid.hold({"people": frame}) as connection:
        asked = sqldeid.Asked((2, 5), (0.0,))
        assert sqldeid.assess(job(), frame) == sqldeid.assess(job(), connection)
        found, same = (sqldeid.tradeoff(job(), given, asked)["people"] for given in (frame, connection))
        assert [(p.k, p.node, p.loss) for p in found.points] == [(p.k, p.node, p.loss) for p in same.points]
        assert len(sqldeid.plan(job(), frame)) == 1
        sqldeid.anonymize(job(), connection)
        assert sqldeid.verify(job(), connection)["people"].classes > 1
    with pytest.raises(sqldeid.JobError, match=r"sqldeid\.hold"):
        sqldeid.verify(job(), frame)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (pd.DataFrame({"id": [1, 2], "age": ["CANARY", 3]}), "the column age holds values of mixed types"),
        (pd.DataFrame({"age": [1], "AGE": [2]}), "two columns are called age"),
        (pd.DataFrame([[1, 2]], columns=["age", "age"]), "two columns are called age"),
        (pa.table({"age": pa.array([np.float16(1)])}), "cannot read one of the frame's types (halffloat)"),
        (pd.DataFrame(), "has no columns"),
        (pa.table({"age": [1], "Age": [2]}), "two columns are called age"),
        ({}, "give frames by the names of their tables"),
        ({"": pd.DataFrame({"a": [1]})}, "names of tables"),
        ({"a": pd.DataFrame({"a": [1]}), "A": pd.DataFrame({"a": [1]})}, "two frames are called a"),
        ({"people": [1, 2]}, "people: is a list; give a data frame"),
        ({"people": None}, "people: is a NoneType"),
        (pd.Series([1], name="age"), "is a pandas.Series; give a"),
        (pd.DataFrame({"age": pd.period_range("2020", periods=3, freq="D")}), "the column age holds periods of pandas"),
    ],
    ids=range(13),
)
def test_what_cannot_be_a_table_is_refused_without_a_value(given: Any, told: str) -> None:
    for command in (sqldeid.anonymize, sqldeid.plan, sqldeid.assess):
        with pytest.raises(sqldeid.JobError, match=re.escape(told)) as caught:
            command(job(), given)  # type: ignore[operator]
        assert "CANARY" not in str(caught.value) and caught.value.__cause__ is None


def test_one_frame_is_one_table_of_main(frame: pd.DataFrame) -> None:
    for source, told in (("study.people", "in another schema than main"), ({"query": "FROM people"}, "is a query")):
        with pytest.raises(sqldeid.JobError, match=told):
            sqldeid.anonymize(job(source), frame)
    part = {"source": "people", "person": "id", "columns": COLUMNS, "privacy": {"k": 5}}
    both = sqldeid.Job.parse({"tables": {"a": part, "b": {**part, "source": "others"}}})
    with pytest.raises(sqldeid.JobError, match="one frame cannot be 2 sources"):
        sqldeid.anonymize(both, frame)


class Heard(HTMLParser):
    """Tags, and attributes that would load something."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_what_a_notebook_shows_is_escaped_and_loads_nothing(frame: pd.DataFrame) -> None:
    evil = "<script>alert(1)<b>"
    columns: Mapping[str, Any] = {evil if name == "age" else name: column for name, column in COLUMNS.items()}
    people = {"source": "people", "person": "id", "columns": columns, "privacy": {"k": 5}}
    made = sqldeid.Job.parse({"tables": {evil: people}})
    mine = frame.rename(columns={"age": evil})
    result = sqldeid.anonymize(made, mine)
    asked = sqldeid.Asked((2, 500), (0.0,))
    shown = [
        result._repr_html_(),
        result[evil]._repr_html_(),
        sqldeid.assess(made, mine)[evil]._repr_html_(),
        sqldeid.tradeoff(made, mine, asked)[evil]._repr_html_(),
        shown_of_sets(mine, evil),
        html_table(evil, [evil], [(evil, evil)]),
    ]
    for page in shown:
        heard = Heard()
        heard.feed(page)
        assert heard.tags <= {"div", "p", "table", "caption", "thead", "tbody", "tr", "th", "td"}
        assert heard.attributes <= {"scope"}
    assert all("For the data holder only" in page for page in shown[:-1])
    heard = Heard()
    heard.feed(plans := sqldeid.plan(made, mine)._repr_html_())
    assert heard.tags - {"div", "p", "table", "caption", "thead", "tbody", "tr", "th", "td"} == {"details", "summary"}
    assert heard.attributes <= {"scope"}
    assert "tables/fold/fold_classes" in plans and "&lt;script&gt;" in plans and "No row was read" in plans
    assert sqldeid.plan(made, mine)[0].name == evil
    assert f"<td>{result[evil].k}</td>" in shown[0] and "none is admissible" not in shown[0]


def shown_of_sets(frame: pd.DataFrame, column: str) -> str:
    """What a notebook shows of who stands alone by a column."""
    with sqldeid.hold({"people": frame}) as held:
        return sqldeid.explore(held, "people", columns=[column, "sex"], person="id")._repr_html_()


def test_what_a_notebook_keeps_unseen_holds_names_alone(frame: pd.DataFrame) -> None:
    """Beside HTML a notebook keeps the text of `repr`: who clears what is seen may not clear that."""
    result = sqldeid.anonymize(job(), frame)
    assert repr(result) == "<Result of people (table)>"
    assert repr(result["people"]) == "<people (table)>"
    assert repr(sqldeid.plan(job(), frame)) == "<Plans of people>"


def test_a_release_with_its_rows_can_be_copied(frame: pd.DataFrame) -> None:
    released = sqldeid.anonymize(job(), frame)["people"]
    assert pickle.loads(pickle.dumps(replace(released, release="x"))).release == "x"
    with pytest.raises(AttributeError):
        released.no_such_field  # noqa: B018
    with pytest.raises(KeyError):
        sqldeid.anonymize(job(), frame)["nobody"]
